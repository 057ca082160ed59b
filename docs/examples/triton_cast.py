"""Casts the float32 column of cases.npy to e4m3fn in a Triton kernel: rows of input and result.

  numsim oracle gen --op convert --format fp32 --to e4m3fn --level random:1000000 --npy cases.npy
  python3 triton_cast.py cases.npy answers.npy
  numsim oracle check --op convert --format fp32 --to e4m3fn --npy answers.npy
"""
import sys

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def cast(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(y + i, value.to(tl.float8e4nv), mask=i < n)


bits = np.load(sys.argv[1])[:, 0].astype(np.uint32)
x = torch.from_numpy(bits.view(np.float32)).cuda()
y = torch.empty(len(x), dtype=torch.float8_e4m3fn, device="cuda")
cast[(triton.cdiv(len(x), 1024),)](x, y, len(x), BLOCK=1024)
codes = y.view(torch.uint8).cpu().numpy()
np.save(sys.argv[2], np.stack([bits, codes.astype(np.uint32)], axis=1))
