"""A first look at numsim: one tensor, four questions."""

import numpy as np

import numsim as ns

x = np.random.default_rng(0).normal(size=(4, 256)).astype(np.float32)

print("1. What becomes of numbers in OCP's E4M3?")
print("   ", x[0, :5])
print("   ", ns.round(x[0, :5], "e4m3fn"))

print("2. Which error has each format, with one scale per row?")
for name in ("e4m3fn", "e5m2", "int8", "e2m1fn"):
    error = ns.quantize(x, name, scaling="row").error(x)
    print(f"    {name:<8} {error.sqnr_db:5.1f} dB")

print("3. Does stochastic rounding keep the mean? 0.78 lies between 0.75 and 0.8125.")
many = np.full(100_000, 0.78, np.float32)
print("    nearest   ", ns.round(many, "e4m3fn").mean())
print("    stochastic", ns.round(many, "e4m3fn", rounding=ns.SR(bits=16, seed=1)).mean())

print("4. How far is the sum of a Hopper tensor core from the exact one?")
t = ns.quantize(x, "e4m3fn", scaling="row")
error = ns.matmul_error(t, t.T, accumulate="hopper-fp8-fast")
print(f"    relative error {error.relative_error:.2e}")
