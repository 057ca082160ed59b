# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Adam's moments in FP8
#
# "Scaling FP8 training to trillion-token LLMs" (Fishman et al., Figure 5) stores both of Adam's
# moments in eight bits and reports that only one combination converges to the baseline: the first
# moment, m, in E4M3 and the second, v, in E5M2. The reason that it gives is range: v enters as
# $1/\sqrt{v}$, so that its smallest values matter most.
#
# The experiment `moment-formats` trains small language models with moments that are stored as codes
# with one scale per tensor. They are far smaller than the paper's 100 million parameters, see the
# list below. This notebook reads six of its published runs and compares their files with SHA-256
# sums; nothing is trained here. All losses are validation losses in nats per token.

# %%
import matplotlib.pyplot as plt
import numpy as np

import published

plt.style.use("paper.mplstyle")
runs = {
    name: published.read(f"experiments/published/moment-formats/{name}")
    for name in ("zipf", "epsilon-zipf", "epsilon-bytes", "small", "stored", "shakespeare")
}
for name, run in runs.items():
    o = run.settings["options"]
    print(
        f"{name:<14} {run.settings['seeds']:>2} seeds, {o['layers']} layers of width {o['width']},"
        f" {o['steps']} steps, epsilon {o['epsilon']}"
    )

# %% [markdown]
# ## The paper's four pairs
#
# The run `zipf` has a vocabulary of 32,768 tokens with Zipf frequencies, and Llama 2's epsilon,
# 1e-5, which is the paper's setting. The figure shows the loss minus that of float32 moments with
# the same seed: estimates and 95 % intervals over ten seeds from `pairs.csv`. Grey is the margin of
# 0.01 nats within which a difference does not count.

# %%
pairs = runs["zipf"].table("pairs")
labels = [f"m {m}, v {v}" for m, v in zip(pairs["m"], pairs["v"])]
fig, ax = plt.subplots(figsize=(3.3, 1.7))
ax.axvspan(-0.01, 0.01, color="0.88", linewidth=0)
chosen = [i for i in range(len(pairs)) if pairs["m"][i] != "fp32"]
for y, i in enumerate(reversed(chosen)):
    gap, low, high = (pairs[name][i] for name in ("gap", "gap_low", "gap_high"))
    color = "C1" if pairs["v"][i] == "e4m3fn" else "C0"
    ax.errorbar(
        gap, y, xerr=[[gap - low], [high - gap]], fmt="o", color=color, capsize=2, linewidth=1
    )
ax.set_yticks(range(len(chosen)), [labels[i] for i in reversed(chosen)])
ax.set_ylim(-0.6, len(chosen) - 0.4)
ax.set_xlabel("gap to fp32 moments, nats");

# %% [markdown]
# At this scale, that v in E4M3 fails is supported. The other two statements are not decided:
# neither that the paper's pair converges to the baseline, nor that both moments in E5M2 do not.

# %%
published.quote(runs["zipf"], "v-e4m3-fails", "m-e4m3-v-e5m2-matches", "both-e5m2-fails")

# %% [markdown]
# ## What is flushed
#
# With one scale per tensor, every v below $r \max v$ is stored as zero, with $r = 2.2\cdot10^{-6}$
# in e4m3fn and $1.3\cdot10^{-10}$ in e5m2 (`docs/moments.md`). The figure shows the fraction of v
# that is nonzero and stored as zero, during the same trainings: means over ten seeds, the band from
# the least to the greatest.

# %%
flushed = runs["zipf"].table("flushed").where(m="e4m3fn")
fig, ax = plt.subplots()
for color, v in (("C1", "e4m3fn"), ("C0", "e5m2")):
    rows = flushed.where(v=v)
    if not len(rows):
        continue
    steps = np.unique(rows["step"])
    shares = 100 * np.array([rows["v_flushed"][rows["step"] == step] for step in steps])
    ax.plot(steps, shares.mean(axis=1), color=color, label=f"v in {v}")
    ax.fill_between(
        steps, shares.min(axis=1), shares.max(axis=1), color=color, alpha=0.25, linewidth=0
    )
ax.set_ylim(0, 100)
ax.set_xlabel("step")
ax.set_ylabel("v flushed to zero, %")
ax.legend();

# %% [markdown]
# ## Epsilon decides
#
# A flushed v leaves epsilon alone in the denominator, if the update is computed from the *stored*
# moments. If it is computed from *fresh* ones, before they are stored (as in the paper's code), the
# gradient of this step still counts. The figure shows the gap to float32 moments against epsilon,
# with m in float32 and learning rate 3e-3. Bars are 95 % intervals from `phases.csv` (ten seeds for
# bytes, five for 32,768 tokens); open markers are points at which seeds diverged. Such a seed
# counts as no better than at its start. The axis is linear between -0.1 and 0.1.

# %%
fig, axes = plt.subplots(2, 1, figsize=(3.3, 4.4), sharex=True, sharey=True)
arms = [
    ("e4m3fn", "fresh", "C1", "-", 0.88),
    ("e4m3fn", "stored", "C1", "--", 1.14),
    ("e5m2", "fresh", "C0", "-", 0.94),
    ("e5m2", "stored", "C0", "--", 1.07),
]
for ax, name, title, margin in (
    (axes[0], "epsilon-bytes", "bytes as tokens", 0.02),
    (axes[1], "epsilon-zipf", "32,768 tokens", 0.01),
):
    phases = runs[name].table("phases").where(lr=0.003, m="fp32")
    ax.axhspan(-margin, margin, color="0.88", linewidth=0)
    for v, update, color, style, shift in arms:
        rows = phases.where(v=v, update_from=update)
        if not len(rows):
            continue
        order = np.argsort(rows["epsilon"])
        x, gap, low, high, diverged = (
            rows[c][order] for c in ("epsilon", "gap", "gap_low", "gap_high", "diverged")
        )
        x = x * shift
        ax.errorbar(
            x,
            gap,
            yerr=[gap - low, high - gap],
            color=color,
            linestyle=style,
            capsize=1.5,
            linewidth=1,
        )
        ax.plot(x[diverged == 0], gap[diverged == 0], "o", color=color)
        ax.plot(x[diverged > 0], gap[diverged > 0], "o", color=color, markerfacecolor="white")
        ax.plot([], [], color=color, linestyle=style, label=f"v {v}, {update}")
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_yticks([-1, -0.1, 0, 0.1, 1, 5], ["-1", "-0.1", "0", "0.1", "1", "5"])
    ax.set_ylim(-1, 6)
    ax.set_title(title, loc="left")
    ax.set_ylabel("gap, nats")
axes[1].set_xlabel("epsilon")
fig.legend(
    *axes[0].get_legend_handles_labels(), ncols=2, loc="outside upper center", columnspacing=1
);

# %%
published.quote(runs["epsilon-zipf"], "epsilon-decides-fresh", "epsilon-decides-stored")
published.quote(runs["epsilon-bytes"], "epsilon-decides-fresh", "epsilon-decides-stored")

# %% [markdown]
# ## The same claim where it does not hold
#
# With bytes as tokens and epsilon 1e-8, from fresh moments, v in E4M3 ends *below* float32, on
# generated text and on Shakespeare; there the claim is contradicted. From stored moments some seeds
# diverge, and three seeds decide nothing. So the claim needs its regime: vocabulary, epsilon, and
# whether updates are computed before or after the moments are stored.

# %%
for name in ("small", "shakespeare", "stored"):
    print(f"-- {name}")
    published.quote(runs[name], "v-e4m3-fails")

# %% [markdown]
# ## Memory
#
# Table 4 of the paper states about 30 % less memory, measured on eight devices, with fp16 master
# weights. What else these devices hold is not stated. The bytes of moments, weights and gradients
# alone are 18.2 % fewer (`summary.txt`), which decides nothing about the devices.

# %%
published.quote(runs["zipf"], "memory")
print(next(line.strip() for line in runs["zipf"].summary.splitlines() if "8 devices:" in line))

# %% [markdown]
# ## The headline numbers, derived again
#
# The gaps of both pairs with v in E4M3, from the losses of the single trainings, and the difference
# of gaps between epsilon 1e-8 and 1e-5. A training that diverged counts as no better than at its
# start.

# %%
def losses(run, **arm):
    """The losses of an arm in the order of its seeds; a diverged one counts as its start."""
    rows = run.table("final").where(**arm)
    order = np.argsort(rows["seed"])
    finished = rows["status"] == "finished"
    return np.where(finished, rows["valid_loss"], rows["start_loss"])[order]


baseline = losses(runs["zipf"], m="fp32", v="fp32")
for row in published.rows(runs["zipf"], "v-e4m3-fails"):
    m = row["contrast"].split(" / ")[0]
    gap = np.mean(losses(runs["zipf"], m=m, v="e4m3fn") - baseline)
    print(f"m {m}, v e4m3fn: derived {gap:.5f} nats, published {row['estimate']:.5f}")
    np.testing.assert_allclose(gap, row["estimate"], rtol=1e-9)

gaps = [
    np.mean(
        losses(runs["epsilon-zipf"], v="e4m3fn", epsilon=epsilon, update_from="fresh")
        - losses(runs["epsilon-zipf"], v="fp32", epsilon=epsilon, update_from="fresh")
    )
    for epsilon in (1e-8, 1e-5)
]
row = published.rows(runs["epsilon-zipf"], "epsilon-decides-fresh")[0]
print(
    f"epsilon 1e-8 minus 1e-5: derived {gaps[0] - gaps[1]:.5f} nats,"
    f" published {row['estimate']:.5f}"
)
np.testing.assert_allclose(gaps[0] - gaps[1], row["estimate"], rtol=1e-9)
