#!/usr/bin/env python3
"""Records products of a Hopper GPU's matrix units, operands and float32 results.

  record_hopper.py DIR [--large]

Writes DIR/CASE-a.npy, CASE-b.npy (codes, M x K and N x K) and CASE-out.npy (M x N float32 bits as
uint32). cuBLASLt through PyTorch; mma.sync through record_mma_cuda.cu, compiled with nvcc. --large
writes more and larger cases.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
FP8 = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
WIDE = {"bf16": torch.bfloat16, "fp16": torch.float16}
RNG = np.random.default_rng(20261121)


def values(rows, inner):
    """Rows of six kinds, one after another: normal; wide exponents; small beside large; pairs that
    cancel; zeros of both signs; tiny."""
    x = RNG.standard_normal((rows, inner)).astype(np.float32)
    x[1::6] *= np.exp2(RNG.integers(-8, 9, (rows, inner))).astype(np.float32)[1::6]
    x[2::6] *= np.where(RNG.random((rows, inner)) < 0.03, 128, 2.0**-6).astype(np.float32)[2::6]
    half = inner // 2
    x[3::6, half : 2 * half] = -x[3::6, :half] * 1.0625
    x[4::6] = np.where(RNG.random((rows, inner)) < 0.9, -0.0, x)[4::6]
    x[5::6] *= np.float32(2.0**-7)
    return x


def codes_fp8(name, rows, inner, special):
    tensor = torch.from_numpy(values(rows, inner)).clamp(-400, 400).to(FP8[name])
    codes = tensor.view(torch.uint8).numpy().copy()
    if special:
        codes[7] = RNG.integers(0, 256, inner)  # every code, NaN and infinity among them
        codes[8] = RNG.integers(0, 256, inner)
        codes[8, codes[8] % 128 >= 0x78] = 0x38  # but these
    return codes


def codes_wide(name, rows, inner, special):
    codes = torch.from_numpy(values(rows, inner)).to(WIDE[name]).view(torch.int16).numpy()
    codes = codes.view(np.uint16).copy()
    if special:
        infinity = 0x7F80 if name == "bf16" else 0x7C00
        codes[7, 3] = infinity
        codes[8, 5] = infinity | 0x8000
        codes[9, 2] = infinity | 1
        codes[10] = RNG.integers(0, 0x0400 if name == "fp16" else 0x0080, inner)  # subnormals
        if name == "fp16":
            codes[11] = RNG.integers(0, 0x7C00, inner) | (RNG.integers(0, 2, inner) << 15)
    return codes


def tiny_bf16(rows, inner):
    tensor = torch.from_numpy(values(rows, inner) * np.float32(2.0**-66)).to(torch.bfloat16)
    return tensor.view(torch.int16).numpy().view(np.uint16).copy()


def product_fp8(a, name_a, b, name_b, fast):
    x = torch.from_numpy(a).cuda().view(FP8[name_a])
    y = torch.from_numpy(b).cuda().view(FP8[name_b])
    one = torch.ones((), device="cuda")
    return torch._scaled_mm(x, y.t(), one, one, out_dtype=torch.float32, use_fast_accum=fast)


def product_wide(a, b, name):
    x = torch.from_numpy(a.view(np.int16)).cuda().view(WIDE[name])
    y = torch.from_numpy(b.view(np.int16)).cuda().view(WIDE[name])
    return torch.mm(x, y.t(), out_dtype=torch.float32)


def product_mma(a, b, program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x")
        a.tofile(path + "a")
        b.tofile(path + "b")
        shape = [str(a.shape[0]), str(b.shape[0]), str(a.shape[1])]
        subprocess.run([program, *shape, path + "a", path + "b", path + "o"], check=True)
        return np.fromfile(path + "o", np.uint32).reshape(a.shape[0], b.shape[0])


def save(folder, case, a, b, out):
    if not isinstance(out, np.ndarray):
        out = out.float().contiguous().cpu().view(torch.int32).numpy().view(np.uint32)
    np.save(os.path.join(folder, f"{case}-a.npy"), a)
    np.save(os.path.join(folder, f"{case}-b.npy"), b)
    np.save(os.path.join(folder, f"{case}-out.npy"), out)
    print(case, a.shape, b.shape, f"{np.isnan(out.view(np.float32)).mean():.3f} NaN")


def main():
    folder = sys.argv[1]
    large = "--large" in sys.argv
    os.makedirs(folder, exist_ok=True)
    program = os.path.join(tempfile.gettempdir(), "record_mma")
    source = os.path.join(HERE, "record_mma_cuda.cu")
    subprocess.run(["nvcc", "-arch=sm_90a", "-o", program, source], check=True)
    rows = 256 if large else 48
    depths8 = [16, 32, 64, 128, 272, 1024, 4096] if large else [16, 272]
    depths16 = [16, 32, 64, 272, 1024] if large else [16, 144]
    pairs = [("e4m3fn", "e4m3fn"), ("e4m3fn", "e5m2"), ("e5m2", "e4m3fn")]
    for name_a, name_b in pairs:
        for inner in depths8 if name_a == name_b or large else [272]:
            a = codes_fp8(name_a, rows, inner, True)
            b = codes_fp8(name_b, rows, inner, False)
            for fast in (True, False):
                rule = "hopper-fp8-fast" if fast else "hopper-fp8"
                out = product_fp8(a, name_a, b, name_b, fast)
                save(folder, f"{rule}.{name_a}.{name_b}.{inner}", a, b, out)
    for name in WIDE:
        for inner in depths16:
            a = codes_wide(name, rows, inner, True)
            b = codes_wide(name, rows, inner, False)
            save(folder, f"hopper-{name}.{name}.{name}.{inner}", a, b, product_wide(a, b, name))
    for inner in [32, 64, 1024] if large else [32, 160]:
        a = codes_fp8("e4m3fn", rows, inner, True)
        b = codes_fp8("e4m3fn", rows, inner, False)
        save(folder, f"hopper-mma-fp8.e4m3fn.e4m3fn.{inner}", a, b, product_mma(a, b, program))
    if not large:  # products about 2^-132, where the unit's least exponent shows
        a, b = (tiny_bf16(rows, 64), tiny_bf16(rows, 64))
        save(folder, "hopper-bf16.bf16.bf16.64", a, b, product_wide(a, b, "bf16"))
    print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name())


main()
