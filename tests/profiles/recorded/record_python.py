#!/usr/bin/env python3
"""Records the conversions of PyTorch and ml_dtypes of all 2^32 float32 patterns to 8, 6 and 4 bits.

  record_python.py DIR [torch-cpu] [torch-cuda] [ml-dtypes]

Writes DIR/NAME.txt for each name, in the format that README.md describes.
"""

import multiprocessing
import os
import platform
import sys

import numpy as np

CHUNK = 1 << 24
TORCH_FORMATS = {
    "float8_e4m3fn": "e4m3fn",
    "float8_e5m2": "e5m2",
    "float8_e4m3fnuz": "e4m3fnuz",
    "float8_e5m2fnuz": "e5m2fnuz",
    "float8_e8m0fnu": "e8m0fnu",
}
ML_DTYPES_FORMATS = {
    "float8_e4m3fn": "e4m3fn",
    "float8_e5m2": "e5m2",
    "float8_e4m3fnuz": "e4m3fnuz",
    "float8_e5m2fnuz": "e5m2fnuz",
    "float8_e4m3b11fnuz": "e4m3b11fnuz",
    "float8_e4m3": "e4m3",
    "float8_e3m4": "e3m4",
    "float8_e8m0fnu": "e8m0fnu",
    "float6_e2m3fn": "e2m3fn",
    "float6_e3m2fn": "e3m2fn",
    "float4_e2m1fn": "e2m1fn",
}


def starts_of_runs(codes, first, before):
    """[(pattern, code)] where a run begins; `before` is the code of the pattern before, or None."""
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    runs = [(first + int(i), int(codes[i])) for i in changes]
    if before is None or codes[0] != before:
        runs.insert(0, (first, int(codes[0])))
    return runs


def joined(chunks):
    """Runs of all chunks, given as (first pattern, runs beginning with the chunk's own start)."""
    runs = []
    for chunk in chunks:
        for start, code in chunk:
            if not runs or runs[-1][1] != code:
                runs.append((start, code))
    return runs


def patterns(first):
    return np.arange(first, first + CHUNK, dtype=np.uint64).astype(np.uint32).view(np.float32)


def ml_dtypes_chunk(task):
    import ml_dtypes

    name, first = task
    with np.errstate(all="ignore"):
        codes = patterns(first).astype(getattr(ml_dtypes, name)).view(np.uint8)
    return starts_of_runs(codes, first, None)


def record_ml_dtypes(file):
    import ml_dtypes

    file.write(f"# ml_dtypes {ml_dtypes.__version__}, NumPy {np.__version__}, {platform.machine()}\n")
    with multiprocessing.Pool() as pool:
        for name, target in ML_DTYPES_FORMATS.items():
            if not hasattr(ml_dtypes, name):
                file.write(f"# no {name}\n")
                continue
            tasks = [(name, first) for first in range(0, 1 << 32, CHUNK)]
            write(file, target, joined(pool.map(ml_dtypes_chunk, tasks)))


def record_torch(file, device):
    import torch

    where = torch.cuda.get_device_name(0) if device == "cuda" else platform.machine()
    file.write(f"# PyTorch {torch.__version__}, {where}\n")
    for name, target in TORCH_FORMATS.items():
        chunks = []
        for first in range(0, 1 << 32, CHUNK):
            values = torch.from_numpy(patterns(first)).to(device)
            codes = values.to(getattr(torch, name)).view(torch.uint8).cpu().numpy()
            chunks.append(starts_of_runs(codes, first, None))
        write(file, target, joined(chunks))


def write(file, target, runs):
    file.write(f"conversion {target}\n")
    for start, code in runs:
        file.write(f"{start:08X} {code:02X}\n")


def main():
    directory, names = sys.argv[1], sys.argv[2:]
    for name in names:
        with open(os.path.join(directory, name + ".txt"), "w") as file:
            if name == "ml-dtypes":
                record_ml_dtypes(file)
            else:
                record_torch(file, name.removeprefix("torch-"))


if __name__ == "__main__":
    main()
