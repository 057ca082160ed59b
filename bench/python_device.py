#!/usr/bin/env python3
"""Times calls of numsim on PyTorch's arrays of a CUDA device, beside PyTorch's own copies and casts.

    python3 bench/python_device.py

Needs PyTorch, a CUDA device, and a package built with GPU kernels (docs/python.md). Prints microseconds
per call, the mean of 20 after three that warm up, on 65,536 x 4,096 elements.
"""

import contextlib
import time

import numpy as np
import torch

import numsim as ns

SHAPE = (65536, 4096)


def microseconds(call, count=20):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count * 1e6


def show(name, call, count=20):
    print(f"{name:<40} {microseconds(call, count):8.0f}")


def main():
    x = torch.randn(SHAPE, device="cuda", dtype=torch.bfloat16)
    wide, small = x.float(), torch.zeros(8, device="cuda")
    show("copy bf16", x.clone)
    for scaling in ("row", "tensor", "block:128"):
        show(f"quantize e4m3fn {scaling}", lambda: ns.quantize(x, "e4m3fn", scaling=scaling))
    show("quantize NVFP4", lambda: ns.quantize(x, "e2m1fn", scaling="block:16/nvfp4"))
    show("quantize MXFP4", lambda: ns.quantize(x, "e2m1fn", scaling="block:32/e8m0"))
    delayed = ns.Delayed("e4m3fn")
    show("quantize e4m3fn, delayed", lambda: ns.quantize(x, "e4m3fn", scaling=delayed))
    stochastic = ns.SR(bits=16, seed=1, stream=2)
    show("copy float32", wide.clone)
    show("encode e4m3fn", lambda: ns.encode(wide, "e4m3fn"))
    show("encode e4m3fn, 16 random bits", lambda: ns.encode(wide, "e4m3fn", rounding=stochastic))
    show("torch .to(float8_e4m3fn)", lambda: wide.to(torch.float8_e4m3fn))
    show("round e4m3fn", lambda: ns.round(wide, "e4m3fn"))
    words = torch.randint(-(2**31), 2**31, SHAPE, device="cuda", dtype=torch.int32)
    given = ns.SR(bits=16, random_bits=words)
    show("encode e4m3fn, given bits", lambda: ns.encode(wide, "e4m3fn", rounding=given))
    del words, given
    double = wide.double()
    show("copy float64", double.clone)
    show("encode e4m3fn of float64", lambda: ns.encode(double, "e4m3fn"))
    del double
    weights, direction = wide[:16384].contiguous(), wide[16384:32768].contiguous()
    for rule in ("naive", "stochastic:16"):
        step = {"lr": 1e-3, "rule": rule, "format": "bf16"}
        show(f"update {rule}, a quarter", lambda: ns.update(weights, direction, **step))
    w = torch.randn((4096, 4096), device="cuda", dtype=torch.bfloat16)
    a = ns.quantize(x, "e4m3fn", scaling="row")
    b = ns.quantize(w, "e4m3fn", scaling="tensor").T
    for mode in ("hopper-fp8-fast", "hopper-fp8"):
        show(f"matmul {mode}", lambda: ns.matmul(a, b, accumulate=mode), 5)
    show("round of 8 elements", lambda: ns.round(small, "e4m3fn"), 2000)
    show("torch .to(float16) of 8 elements", lambda: small.to(torch.float16), 2000)
    show("quantize of 8 elements", lambda: ns.quantize(small, "e4m3fn"), 2000)
    with contextlib.suppress(ImportError):
        import cupy

        there = cupy.zeros(8, "float32")
        show("round of 8 elements of CuPy", lambda: ns.round(there, "e4m3fn"), 2000)
    with contextlib.suppress(ImportError):
        import jax

        array = jax.device_put(np.zeros(8, "float32"))
        show("round of 8 elements of JAX", lambda: ns.round(array, "e4m3fn"), 500)


if __name__ == "__main__":
    main()
