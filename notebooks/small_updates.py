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
# # Updates below half an ulp
#
# A weight of a small format takes a step that is smaller than half the gap to its next value. To
# nearest, nothing happens, at this step and at every later one. The note "Low precision, low LR"
# proposes to scale the update until the *norm* of the step that survives rounding is the wanted
# one, found by bisection. Two experiments tested this: `update-fidelity` takes single steps of 1024
# x 1024 weights at 21 learning rates (five seeds), `update-convergence` trains two small problems
# with weights in bf16 for 240 steps (ten seeds).
#
# The next cell reads their tables and compares them with their SHA-256 sums; nothing is computed
# anew.

# %%
import matplotlib.pyplot as plt
import numpy as np

import published

plt.style.use("paper.mplstyle")
fidelity = published.read("experiments/published/update-fidelity")
convergence = published.read("experiments/published/update-convergence")
steps = fidelity.table("fidelity")
losses = convergence.table("losses")
colors = {
    "naive": "C1",
    "stochastic": "C0",
    "norm-matched": "C2",
    "projection-matched": "C3",
    "note-as-printed": "C4",
    "kahan": "C5",
    "master-fp32": "k",
}
styles = {
    "naive": "-",
    "stochastic": "-",
    "norm-matched": "--",
    "projection-matched": "-.",
    "note-as-printed": "-",
    "kahan": "--",
    "master-fp32": ":",
}

# %% [markdown]
# ## The search as printed
#
# The code of the note compares a squared norm with lr times a squared norm. So it ends at a step of
# $\sqrt{\mathrm{lr}}\,\|u\|$. `norm-matched` is the same search with the target that the text
# describes. The figure shows the norm of the step relative to that of the update, for bf16 weights;
# means over five seeds, drawn where a weight moves at all in every seed (bands: least to greatest
# seed, mostly thinner than the line). Here, with weights and updates drawn independently,
# norm-matched has the wanted norm to 10 % in every seed down to 1e-9. The verdicts below count all
# three formats, both choices of keys, and the mean of the step per parameter, too.

# %%
def over_seeds(column, rule, format, keys="independent"):
    """Rates, and the values of the column by rate and seed."""
    rows = steps.where(rule=rule, format=format, keys=keys)
    rates = np.unique(rows["lr"])
    return rates, np.array([rows[column][rows["lr"] == rate] for rate in rates])


def draw(ax, column, rule, format, times_rate=False):
    if not len(steps.where(rule=rule, format=format)):
        return
    rates, values = over_seeds(column, rule, format)
    moved = over_seeds("moved_share", rule, format)[1].min(axis=1) > 0
    values = values * (rates[:, None] if times_rate else 1)
    rates, values = rates[moved], values[moved]
    ax.plot(rates, values.mean(axis=1), color=colors[rule], linestyle=styles[rule], label=rule)
    ax.fill_between(
        rates, values.min(axis=1), values.max(axis=1), color=colors[rule], alpha=0.25, linewidth=0
    )


fig, ax = plt.subplots()
rates = np.unique(steps["lr"])
ax.plot(rates, rates, color="0.6", linewidth=2.5, label="lr")
ax.plot(rates, np.sqrt(rates), color="0.8", linewidth=2.5, label=r"$\sqrt{\mathrm{lr}}$")
for rule in ("note-as-printed", "norm-matched", "naive"):
    draw(ax, "norm_ratio", rule, published.one_of(steps, "format", "bf16"), times_rate=True)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xlabel("learning rate")
ax.set_ylabel("norm of step / norm of update")
fig.legend(ncols=2, loc="outside upper center", columnspacing=1);

# %%
published.quote(
    fidelity,
    "root-learning-rate",
    "target-norm",
    "small-rates-as-printed",
    "small-rates-as-intended",
)

# %% [markdown]
# ## Norm or projection, not both
#
# A step can have the right norm and still point elsewhere. The upper figure shows the norm of the
# step over that of lr u, the lower figure its projection on u over that of lr u, for e4m3fn weights
# and rules without state. Matching the norm moves few weights, those with the largest update in
# units of their gap, so that little of the step is along u. Stochastic rounding keeps the
# projection in the mean and pays with the norm. That no rule without state can have both is exact.

# %%
fig, axes = plt.subplots(2, 1, figsize=(3.3, 4.4), sharex=True)
for ax, column in zip(axes, ("norm_ratio", "projection_ratio")):
    ax.axhline(1, color="0.7", linewidth=0.8)
    for rule in ("naive", "stochastic", "norm-matched", "projection-matched"):
        draw(ax, column, rule, published.one_of(steps, "format", "e4m3fn"))
axes[0].set_yscale("log")
axes[0].set_ylim(0.03, 300)
axes[0].set_ylabel("norm / wanted norm")
axes[1].set_ylim(-0.1, 2)
axes[1].set_ylabel("projection / wanted projection")
axes[1].set_xscale("log")
axes[1].set_xlim(1e-6, 1.5)
axes[1].set_xlabel("learning rate")
fig.legend(
    *axes[0].get_legend_handles_labels(), ncols=2, loc="outside upper center", columnspacing=1
);

# %%
published.quote(
    fidelity,
    "norm-or-projection",
    "stochastic-works-longer",
    "stochastic-norm-grows",
    "projection-less-noisy",
)

# %% [markdown]
# ## Training
#
# Weights in bf16 with a learning rate of 1e-5, below half of their spacing. Lines show the loss in
# units of float32's progress: 0 is the start, 1 is what float32 weights reach after 240 steps with
# the same seed. Means over ten seeds; bands go from the least seed to the greatest. `kahan` and
# `master-fp32` store two and four more bytes per weight, the others none.

# %%
def progress(problem, optimiser, rule, format="bf16"):
    """Steps, and the progress by seed and step in units of float32's."""
    own = losses.where(problem=problem, optimiser=optimiser, rule=rule, format=format)
    base = losses.where(problem=problem, optimiser=optimiser, rule="naive", format="fp32")
    shares = []
    for seed in np.unique(base["seed"]):
        reference = base["loss"][base["seed"] == seed]
        loss = own["loss"][own["seed"] == seed]
        shares.append((reference[0] - loss) / (reference[0] - reference[-1]))
    return np.unique(own["step"]), np.array(shares)


fig, axes = plt.subplots(2, 1, figsize=(3.3, 4.6), sharex=True)
for ax, problem in zip(axes, ("logistic", "quadratic")):
    for rule in (
        "kahan",
        "master-fp32",
        "stochastic",
        "projection-matched",
        "norm-matched",
        "naive",
    ):
        if not len(losses.where(problem=problem, optimiser="adam", rule=rule, format="bf16")):
            continue
        at, shares = progress(problem, "adam", rule)
        ax.plot(at, shares.mean(axis=0), color=colors[rule], linestyle=styles[rule], label=rule)
        ax.fill_between(
            at, shares.min(axis=0), shares.max(axis=0), color=colors[rule], alpha=0.25, linewidth=0
        )
    ax.set_title(f"{problem}, Adam", loc="left")
    ax.set_ylabel("share of fp32's progress")
axes[1].set_xlabel("step")
fig.legend(
    *axes[0].get_legend_handles_labels(), ncols=2, loc="outside upper center", columnspacing=1
);

# %% [markdown]
# The note's own conclusion, "as training continues the low precision version falls further and
# further behind", is contradicted for the search as printed, which runs ahead at the rate
# sqrt(lr). For the search with the intended target it is supported on the logistic problem
# (exploratory). On the quadratic it is contradicted (exploratory), because with momentum the gap
# does not grow. As the last verdict says, whether stochastic rounding ends below projection-matched
# everywhere is not decided.

# %%
published.quote(
    convergence,
    "as-printed-falls-behind",
    "norm-falls-behind",
    "norm-slower",
    "norm-weights-move-slower",
    "norm-falls-behind-quadratic",
    "projection-beats-norm",
    "stochastic-beats-projection",
)

# %% [markdown]
# ## The headline numbers, derived again
#
# First the exact one: in each search as printed, at lr up to 0.5, that met its own target to 1 %,
# the norm of the step is $\sqrt{\mathrm{lr}}\,\|u\|$ to within 1 %, and in none it is lr times
# $\|u\|$ to within 10 %. Then how much further norm-matched falls behind than master-fp32 from
# half-time to the end.

# %%
search = steps.where(rule="note-as-printed")
met = (search["lr"] <= 0.5) & (np.abs(search["own_target_ratio"] - 1) <= 0.01)
root = (search["norm_ratio"] * np.sqrt(search["lr"]))[met]
wanted = np.abs(search["norm_ratio"][met] - 1) <= 0.1
print(f"{met.sum()} searches; norm / (sqrt(lr) ||u||) is {root.min():.3f} to {root.max():.3f}")
line = f"{met.sum()} searches at lr <= 0.5 met their own target; sqrt(lr) ||step|| / (lr ||u||) is"
assert line in " ".join(fidelity.summary.split())
verdicts = {True: "exact: holds", False: "exact: refuted"}
assert (
    published.rows(fidelity, "root-learning-rate")[0]["verdict"]
    == verdicts[bool(np.all(np.abs(root - 1) <= 0.01))]
)
assert published.rows(fidelity, "target-norm")[0]["verdict"] == verdicts[bool(np.all(wanted))]

for row in published.rows(convergence, "norm-falls-behind"):
    optimiser = row["contrast"].split(" / ")[1]
    growth = {}
    for rule in ("norm-matched", "master-fp32"):
        at, shares = progress("logistic", optimiser, rule)
        gap = progress("logistic", optimiser, "naive", "fp32")[1] - shares
        growth[rule] = gap[:, -1] - gap[:, at.size // 2]
    number = np.mean(growth["norm-matched"] - growth["master-fp32"])
    print(f"{optimiser}: derived {number:.5f} of fp32's progress, published {row['estimate']:.5f}")
    np.testing.assert_allclose(number, row["estimate"], rtol=1e-9)
