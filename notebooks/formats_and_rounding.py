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
# # Formats and rounding at a glance
#
# A small floating-point format has few values, and every number has to become one of them. This
# notebook shows which values the common formats have, how far apart they are, and which of two
# neighbours each rounding mode takes.
#
# The numbers are computed here, by `numsim`, except for the last section: it reads a published
# result, whose files the next cell compares with their SHA-256 sums.

# %%
import matplotlib.pyplot as plt
import numpy as np

import numsim as ns
import published

plt.style.use("paper.mplstyle")
fidelity = published.read("experiments/published/update-fidelity")

# %% [markdown]
# ## What a format can hold
#
# `e4m3fn` has 4 bits of exponent and 3 of mantissa; `fn` says that it is finite: it has NaN, but no
# infinity. This is the format that papers call E4M3. numsim's `e4m3` is another one, like IEEE
# 754's formats, and ends at 240. `e2m1fn`, `e2m3fn` and `e3m2fn` are the elements of the MX
# formats.

# %%
names = ["e2m1fn", "e2m3fn", "e3m2fn", "e4m3fn", "e4m3", "e5m2", "fp16", "bf16"]
print("format  bits  mantissa  smallest  smallest normal   largest  infinity")
for name in names:
    f = ns.format(name)
    print(
        f"{name:<7} {f.bits:>4}  {f.mantissa_bits:>8}  {f.min_positive:>8.3g}"
        f"  {f.min_normal:>15.3g}  {f.max:>8.6g}  {'yes' if f.has_infinity else 'no':>8}"
    )

# %% [markdown]
# Each line below is a positive value. Mantissa bits make the lines dense, exponent bits make the
# range wide, and eight bits have to be divided between them.

# %%
shown = ["e2m1fn", "e2m3fn", "e3m2fn", "e4m3fn", "e5m2"]
fig, ax = plt.subplots(figsize=(3.3, 2.0))
for row, name in enumerate(reversed(shown)):
    values = ns.format(name).values()
    values = values[np.isfinite(values) & (values > 0)]
    ax.vlines(values, row - 0.36, row + 0.36, color=f"C{len(shown) - 1 - row}", linewidth=0.6)
ax.set_xscale("log", base=2)
ax.set_yticks(range(len(shown)), reversed(shown))
ax.grid(axis="y", visible=False)
ax.set_xlabel("positive values of the format");

# %% [markdown]
# ## How far a number is from the nearest value
#
# The figure shows the relative error of rounding to nearest, at worst within each quarter of a
# power of two. Where a format is normal, the bound is $2^{-m-1}$ with $m$ mantissa bits. Below, its
# values are evenly spaced, so that the relative error grows until everything becomes zero (error
# 1). int8 with one scale per tensor has even spacing throughout. It is drawn for a tensor whose
# largest magnitude is 448, that of e4m3fn: its error is below that of e4m3fn only above about a
# sixteenth of the maximum.

# %%
x = np.float32(2) ** np.linspace(-20, 9, 29 * 256, endpoint=False).astype(np.float32)


def worst_error(rounded):
    """The largest relative error within each quarter of a power of two."""
    return (np.abs(rounded - x) / x).reshape(-1, 64).max(axis=1)


fig, ax = plt.subplots()
middle = np.sqrt(x.reshape(-1, 64)[:, 0] * x.reshape(-1, 64)[:, -1])
for name in ["e4m3fn", "e5m2", "fp16", "bf16"]:
    inside = middle < min(448, ns.format(name).max)
    rounded = ns.round(x, name, overflow="saturate")
    ax.plot(middle[inside], worst_error(rounded)[inside], label=name)
step = np.float32(448 / 127)
inside = middle < 448
ax.plot(
    middle[inside], worst_error(step * ns.round(x / step, "int8"))[inside], label="int8, scaled"
)
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set_ylim(1e-4, 2)
ax.set_xlabel("magnitude of the number")
ax.set_ylabel("worst relative error")
fig.legend(ncols=3, loc="outside upper center", columnspacing=1, handlelength=1.2);

# %% [markdown]
# ## Which neighbour a mode takes
#
# All of e2m1fn's values up to 6 are seen in this figure. To nearest even (`rne`), a number in the
# middle goes to the neighbour whose last bit is zero; toward zero (`rtz`), down to the smaller
# magnitude. Stochastic rounding (`sr`) goes up with a probability that is the distance to the lower
# neighbour in units of the gap, so that its mean, here over all 16 patterns of four random bits,
# follows the number.

# %%
x = np.linspace(0, 6, 1201, dtype=np.float32)
patterns = np.arange(16, dtype=np.uint32)
all_patterns = ns.SR(bits=4, random_bits=np.tile(patterns, x.size))
mean = ns.round(np.repeat(x, 16), "e2m1fn", rounding=all_patterns).reshape(-1, 16).mean(axis=1)

fig, ax = plt.subplots()
ax.plot(x, x, color="0.7", linewidth=0.8)
ax.plot(x, ns.round(x, "e2m1fn"), label="rne")
ax.plot(x, ns.round(x, "e2m1fn", rounding="rtz"), label="rtz", linestyle="--")
ax.plot(x, mean, label="sr, mean")
ax.set_xlabel("number")
ax.set_ylabel("rounded to e2m1fn")
ax.legend();

# %% [markdown]
# ## Beyond the largest value
#
# What happens there is not a matter of rounding alone. A format with infinities overflows to them,
# e4m3fn to NaN, and both can saturate instead. Which of these a library does differs
# (`docs/disagreements.md` lists where).

# %%
for number in [448, 464, 465, 1000]:
    row = [
        ns.round(np.float32(number), name, overflow=policy)
        for name in ("e4m3fn", "e5m2")
        for policy in ("nonsaturate", "saturate")
    ]
    print(f"{number:>5}: e4m3fn {row[0]:>5} or {row[1]:>5} (saturated), e5m2 {row[2]} or {row[3]}")

# %% [markdown]
# ## A step that is rounded away
#
# The note "Low precision, low LR" starts from this example: a weight of 0.75 in E4M3 and a step of
# 0.03. The next value is 0.8125, the middle is 0.78125, and 0.78 is below it. The published verdict
# is exact: it has neither seeds nor chance.

# %%
published.quote(fidelity, "worked-example")

# %% [markdown]
# The last cell repeats the example and asserts that it agrees with the published verdict.

# %%
above = ns.decode(ns.encode(np.float32(0.75), "e4m3fn") + np.uint8(1), "e4m3fn")
rounded = ns.round(np.float32(0.75) + np.float32(0.03), "e4m3fn")
print(
    f"0.75 + 0.03 rounds to {rounded}; the next value is {above}, the middle {(0.75 + above) / 2}"
)
holds = rounded == 0.75 and above == 0.8125
assert published.rows(fidelity, "worked-example")[0]["verdict"] == (
    "exact: holds" if holds else "exact: refuted"
)
