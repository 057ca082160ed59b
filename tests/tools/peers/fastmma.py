"""Fixtures of fastmma, a port of MMA-Sim: bench/fixtures/*.pt, inputs and outputs of whole instructions.

Needs PyTorch, which wrote them.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from peers import accumulator, mma_sim
from peers.cases import Grid, Mode
from peers.compare import Recompute, Row, equal, judge
from peers.program import Numsim, refuse

FLOAT32_MODE = Mode("fp32", "fp32", "fp32", 1, "fp32:unfused")


def find_mode(spec: dict[str, str]) -> Mode | None:
    """Returns the mode of an instruction, or None if numsim has none: float64, results in float16."""

    def key(kind: str, arch: str, qualifier: str) -> tuple[str, str, str]:
        return kind, arch, re.sub(r"^m\d+n\d+", "", qualifier)

    wanted = key(spec["kind"], spec["arch"], spec["qualifier"])
    for instruction in mma_sim.instructions():
        if key(instruction.kind, instruction.arch, instruction.qualifier) == wanted and not instruction.promote:
            return instruction.mode
    is_float32 = spec["kind"] == "mfma" and re.fullmatch(r"f32_\d+x\d+x\d+(_\d+b)?_?f32", spec["qualifier"])
    return FLOAT32_MODE if is_float32 else None


def _codes(torch: Any, name: str, tensor: Any) -> np.ndarray:
    """Returns the codes of a tensor of rows of products."""
    tensor = tensor.contiguous()
    if name == "e2m1fn":
        packed = tensor.view(torch.uint8).numpy()
        return np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1).astype(np.uint32)
    if tensor.element_size() == 1:
        return tensor.view(torch.uint8).numpy().astype(np.uint32)
    if tensor.element_size() == 2:
        return tensor.view(torch.int16).numpy().view(np.uint16).astype(np.uint32)
    return tensor.numpy().view(np.uint32) >> (13 if name == "tf32" else 0)


def _pairs(torch: Any, mode: Mode, inputs: dict[str, Any]) -> Grid:
    """Returns a row for each element of the result, in order."""
    a, b = _codes(torch, mode.a, inputs["A"]), _codes(torch, mode.b, inputs["B"].T)
    sides = [a, b]
    if mode.scale:
        sides += [_codes(torch, mode.scale, inputs["scale_A"]), _codes(torch, mode.scale, inputs["scale_B"].T)]
    m, n = a.shape[0], b.shape[0]
    return Grid(*(np.repeat(x, n, axis=0) if i % 2 == 0 else np.tile(x, (m, 1)) for i, x in enumerate(sides)))


def compare(root: Path, numsim: Numsim, source: str, modes: list[str], plant: bool) -> Iterator[Row]:
    """Yields a row for each fixture that numsim has a mode for, and says which have none."""
    folder = root / "bench" / "fixtures"
    if not folder.is_dir():
        refuse(f"{root}: expected a checkout of fastmma, found no folder bench/fixtures")
    torch = importlib.import_module("torch")
    without = []
    for path in sorted(folder.glob("*.pt")):
        bundle = torch.load(path, weights_only=True)
        mode = find_mode(bundle["spec"])
        if mode is None:
            without.append(path.stem)
            continue
        if modes and mode.name not in modes:
            continue
        operands = mode.a if mode.a == mode.b else f"{mode.a} x {mode.b}"
        row = Row(mode.name, f"{source} {path.stem}", operands)
        for sample in bundle["samples"]:
            _compare(torch, row, mode, sample, numsim, plant)
        yield row
    if without:
        print(f"no mode of numsim: {', '.join(without)}", file=sys.stderr)


def _compare(torch: Any, row: Row, mode: Mode, sample: dict[str, Any], numsim: Numsim, plant: bool) -> None:
    rows = _pairs(torch, mode, sample["inputs"])
    c = sample["inputs"]["C"].float().contiguous().numpy().reshape(-1)
    d = sample["output"].contiguous().numpy().view(np.uint32).reshape(-1)
    ours, usable = accumulator.sums(numsim, mode, rows, c, mode.neighbour if plant else "")
    row.sums += int(usable.sum())
    row.products += int(usable.sum()) * rows.a.shape[1]
    row.left_out += int((~usable).sum())
    rules: dict[str, Recompute] = {}
    if mode.name.startswith("cdna1"):
        rules[mma_sim.IN_PAIRS] = lambda grid, i, j: mma_sim.exact_chunks(mode, grid.one(i, j), c[i])
    if mode.name.startswith("cdna3"):
        rules[mma_sim.HIDES_PRODUCTS] = lambda grid, i, j: mma_sim.infinite_sum(mode, grid.one(i, j), c[i])
    for i in np.nonzero(~equal(ours, d) & usable)[0]:
        judge(row, mode, rows, (int(i), int(i)), (int(ours[i]), int(d[i])), rules)
