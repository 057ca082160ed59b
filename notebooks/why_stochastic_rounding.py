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
# # Why stochastic rounding
#
# Rounding to nearest makes the smallest possible error in each number. Stochastic rounding makes a
# larger one, on purpose: it takes the upper neighbour with a probability that makes the *mean* of
# the result equal to the number. This notebook shows what that buys and what it costs.
#
# Sections 1 to 3 are small computations. Section 4 reads a published result, whose files the next
# cell compares with their SHA-256 sums.

# %%
import matplotlib.pyplot as plt
import numpy as np

import numsim as ns
import published

plt.style.use("paper.mplstyle")
fidelity = published.read("experiments/published/update-fidelity")

# %% [markdown]
# ## 1. Many small steps
#
# A weight of 0.75 in e4m3fn takes 400 steps of 0.003. The gap to its next value is 0.0625, so that
# a step is a twentieth of it. To nearest, the first step is lost, and so are all that follow.
# Rounded stochastically, one step in about twenty is taken, and it is a whole gap. The band is the
# middle 90 % of 200 weights, each with random bits of its own. From 1 on the gaps are twice as
# wide: fewer steps are taken, larger ones, and the band grows faster.

# %%
steps, step = 400, np.float32(0.003)
nearest = np.full(steps + 1, 0.75, dtype=np.float32)
weights = np.full((steps + 1, 200), 0.75, dtype=np.float32)
for t in range(steps):
    nearest[t + 1] = ns.round(nearest[t] + step, "e4m3fn")
    weights[t + 1] = ns.round(weights[t] + step, "e4m3fn", rounding=ns.SR(bits=16, stream=t))

fig, ax = plt.subplots()
low, high = np.quantile(weights, [0.05, 0.95], axis=1)
ax.fill_between(range(steps + 1), low, high, color="C0", alpha=0.25, linewidth=0)
ax.plot(weights.mean(axis=1), label="stochastic, mean")
ax.plot(0.75 + step * np.arange(steps + 1), color="k", linestyle=":", label="without rounding")
ax.plot(nearest, color="C1", label="to nearest")
ax.set_xlabel("steps")
ax.set_ylabel("weight in e4m3fn")
ax.legend(loc="upper left");

# %% [markdown]
# ## 2. The mean, exactly
#
# With four random bits there are 16 cases, and all of them can be tried: no sampling is needed to
# know the mean. Random bits have a resolution of their own. A probability is a multiple of
# $2^{-b}$, with $b$ bits, and is cut down to it, so that the mean is too low by up to $2^{-b}$ of a
# gap. A step up of less than $2^{-b}$ of a gap is never taken.

# %%
x = np.linspace(1, 1.125, 513, dtype=np.float32)  # one gap of e4m3fn
gap = 0.125
fig, ax = plt.subplots()
ax.plot(x, (ns.round(x, "e4m3fn") - x) / gap, color="k", linewidth=0.8, label="to nearest")
for bits in (1, 2, 4, 8):
    cases = 2**bits
    rounding = ns.SR(bits=bits, random_bits=np.tile(np.arange(cases, dtype=np.uint32), x.size))
    mean = (
        ns.round(np.repeat(x, cases), "e4m3fn", rounding=rounding).reshape(-1, cases).mean(axis=1)
    )
    worst = np.max(x - mean) / gap
    ax.plot(x, (mean - x) / gap, label=f"{bits} bit" + "s" * (bits > 1))
    print(f"{bits} random bits: the mean is too low by at most {worst:.4f} of a gap")
    assert worst < 2.0**-bits
ax.set_xlabel("number, from one value of e4m3fn to the next")
ax.set_ylabel("mean error, gaps")
ax.legend(ncols=2, fontsize=8, loc="lower left", bbox_to_anchor=(0, 0.99), columnspacing=1);

# %% [markdown]
# ## 3. What it costs
#
# The error of one number is larger: its mean square over a gap is 1/6 of the squared gap, not 1/12.
# In a sum this turns around. The figure rounds $n$ equal numbers of 0.78 to e4m3fn and shows the
# relative error of their sum. To nearest all errors are equal and add up. Stochastic errors cancel,
# and the relative error falls with the square root of $n$ (dotted). The band is the middle 90 % of
# 200 sums.

# %%
lengths = 2 ** np.arange(0, 13)
number = np.float32(0.78)
draws = ns.round(np.full((200, lengths[-1]), number), "e4m3fn", rounding=ns.SR(bits=16, seed=1, stream=0))
errors = np.abs(
    np.cumsum(draws, axis=1, dtype=np.float64)[:, lengths - 1] / (lengths * float(number)) - 1
)
nearest_error = abs(float(ns.round(number, "e4m3fn")) / float(number) - 1)

fig, ax = plt.subplots()
low, high = np.quantile(errors, [0.05, 0.95], axis=0)
rms = np.sqrt((errors**2).mean(axis=0))
ax.fill_between(lengths, low, high, color="C0", alpha=0.25, linewidth=0)
ax.plot(lengths, rms, marker="o", label="stochastic, rms")
ax.plot(lengths, np.full(lengths.size, nearest_error), color="C1", label="to nearest")
ax.plot(lengths, rms[0] / np.sqrt(lengths), "k:", label=r"$1/\sqrt{n}$")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set_ylim(1e-5, 0.2)
ax.set_xlabel("number of terms n")
ax.set_ylabel("relative error of the sum")
ax.legend(loc="lower left");

# %% [markdown]
# ## 4. Steps of a million weights
#
# The experiment `update-fidelity` gives 1024 x 1024 weights one step of learning rate lr, with
# normal weights and updates drawn independently (five seeds; the lines are means, the bands go from
# the least to the greatest seed and are mostly thinner than the line). The upper figure shows the
# mean of the step per parameter relative to the step that was asked for; stochastic rounding is
# shown in expectation over its random bits. To nearest, the mean is lost as soon as steps are below
# half a gap. At the smallest rates the 32 random bits no longer resolve the probabilities (section
# 2), which shows first in e4m3fn, whose gaps are the widest. The lower figure shows the price: the
# norm of the stochastic step relative to the wanted one grows as lr falls. It is drawn where at
# least 100 weights move in every seed.

# %%
table = fidelity.table("fidelity").where(keys="independent")


def over_seeds(format, rule, column):
    """Rates, and mean, least and greatest value of the column over the seeds."""
    rows = table.where(format=format, rule=rule)
    rates = np.unique(rows["lr"])
    values = np.array([rows[column][rows["lr"] == rate] for rate in rates])
    return rates, values.mean(axis=1), values.min(axis=1), values.max(axis=1)


fig, axes = plt.subplots(2, 1, figsize=(3.3, 4.2), sharex=True)
for color, format in enumerate(["e4m3fn", "fp16", "bf16"]):
    if format not in table["format"]:
        continue
    for ax, rule, column, style in (
        (axes[0], "naive", "mean_ratio", "--"),
        (axes[0], "stochastic", "expected_mean_ratio", "-"),
        (axes[1], "stochastic", "norm_ratio", "-"),
    ):
        rates, mean, least, greatest = over_seeds(format, rule, column)
        label = format if style == "-" else None
        if ax is axes[1]:
            moved = over_seeds(format, rule, "moved_share")[2] * 1024**2 >= 100
            rates, mean, least, greatest = rates[moved], mean[moved], least[moved], greatest[moved]
        ax.plot(rates, mean, color=f"C{color}", linestyle=style, label=label)
        ax.fill_between(rates, least, greatest, color=f"C{color}", alpha=0.25, linewidth=0)
axes[0].plot([], [], color="0.4", linestyle="--", label="to nearest")
axes[0].set_ylabel("mean step / wanted step")
axes[0].legend(loc="upper right", ncols=2, columnspacing=1)
axes[1].set_yscale("log")
axes[1].set_ylabel("norm of step / wanted norm")
axes[1].set_xscale("log")
axes[1].set_xlabel("learning rate")
axes[1].legend();

# %% [markdown]
# The published verdicts, with the scale and the seeds on which they rest. The first statement is
# the note's "works for longer"; its number is the worst of six panels (three formats, and weights
# and updates from one key or from two). It is a bound, "at most", as in some panels stochastic
# rounding keeps the mean down to the smallest rate that was tried.

# %%
published.quote(fidelity, "stochastic-works-longer", "stochastic-norm-grows")

# %% [markdown]
# ## The headline number, derived again
#
# In each panel: the smallest rate down to which the mean is kept to 10 %, stochastic over naive, as
# a decimal logarithm. The largest of the six is the number of a seed, and the verdict's estimate is
# the mean over the seeds.

# %%
table = fidelity.table("fidelity")


def kept_from(rows, column):
    """The smallest rate such that at it and at all larger ones |column - 1| is at most 0.1."""
    order = np.argsort(-rows["lr"])
    kept = np.cumprod(np.abs(rows[column][order] - 1) <= 0.1).astype(bool)
    return rows["lr"][order][kept].min()


seeds = []
for seed in np.unique(table["seed"]):
    panels = []
    for format in np.unique(table["format"]):
        for keys in np.unique(table["keys"]):
            panel = table.where(seed=seed, format=format, keys=keys)
            stochastic = kept_from(panel.where(rule="stochastic"), "expected_mean_ratio")
            panels.append(np.log10(stochastic / kept_from(panel.where(rule="naive"), "mean_ratio")))
    seeds.append(max(panels))
published_number = published.rows(fidelity, "stochastic-works-longer")[0]["estimate"]
print(f"derived {np.mean(seeds):.3f} decades, published {published_number:.3f}")
np.testing.assert_allclose(np.mean(seeds), published_number, rtol=1e-9)
