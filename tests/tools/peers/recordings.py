"""Products that GPUs computed, as MATLAB-tensor-core publishes them [MATLAB-TC].

Each is d = c + a[0] b[0] + ... of one instruction: V100, A100, A2, RTX 1000 Ada, L40S, H100, H200, B200.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from peers import accumulator
from peers.cases import Grid, Mode
from peers.compare import Recompute, Row, equal, judge
from peers.formats import FORMATS
from peers.program import Numsim, refuse

FORMAT_OF = {"fp16": "fp16", "bf16": "bf16", "tf32": "tf32", "E4M3": "e4m3fn", "E5M2": "e5m2"}
FAMILY = {
    "V100": "volta", "A100": "ampere", "A2": "ampere", "A30": "ampere", "Ada": "ada", "L40S": "ada",
    "H100": "hopper", "H200": "hopper", "B200": "blackwell",
}  # fmt: skip
# Bits below the largest exponent, and products of a step, of 16 bits and of tf32.
UNIT = {"volta": (23, 4, 4), "ampere": (24, 8, 4), "ada": (24, 8, 4), "hopper": (25, 16, 8), "blackwell": (25, 16, 8)}


def mode_of(card: str, kind: str) -> Mode:
    """Returns the mode of a card's instruction: wgmma on Hopper, mma.sync on all others."""
    family, name = FAMILY[card], FORMAT_OF[kind]
    if kind[0] != "E":
        bits, step, step_tf32 = UNIT[family]
        step = step_tf32 if kind == "tf32" else step
        return Mode(f"{family}-{kind}", name, name, step, f"trunc:{bits - 1},{step}", fraction_bits=bits)
    if family == "ada":
        return Mode("ada-fp8", name, name, 16, "trunc:12,16", fraction_bits=13)
    if family == "hopper":
        return Mode("hopper-fp8-fast", name, name, 32, "trunc:12,32", fraction_bits=13)
    return Mode("blackwell-fp8", name, name, 32, "trunc:12,32", fraction_bits=25)


def _words(path: Path, base: int) -> np.ndarray:
    return np.array([[int(word, base) for word in line.split()] for line in path.open()], np.uint32)


def compare(root: Path, numsim: Numsim, source: str, modes: list[str], plant: bool) -> Iterator[Row]:
    """Yields a row for each card and format of a checkout."""
    folder = root / "model_validation"
    if not folder.is_dir():
        refuse(f"{root}: expected a checkout of MATLAB-tensor-core, found no folder model_validation")
    for card in FAMILY:
        for kind in FORMAT_OF:
            place = folder / card / kind
            mode = mode_of(card, kind)
            if not place.is_dir() or (modes and mode.name not in modes):
                continue
            a, b = (_words(place / f"{x}_{card}_{kind}.txt", 16).view(np.float32) for x in "ab")
            c, d = (_words(place / f"{x}_{card}_fp32.txt", 2)[:, 0] for x in "cd")
            spec = FORMATS[FORMAT_OF[kind]]
            rows = Grid(spec.encode(a), spec.encode(b))
            start = c.view(np.float32)
            if mode.name == "hopper-fp8-fast":
                start = np.zeros_like(start)  # wgmma ran with an accumulator of zero
            row = Row(mode.name, f"{source} recorded on {card}", FORMAT_OF[kind])
            _compare(row, mode, rows, start, d, numsim, plant)
            yield row


def _compare(row: Row, mode: Mode, rows: Grid, c: np.ndarray, d: np.ndarray, numsim: Numsim, plant: bool) -> None:
    ours, usable = accumulator.sums(numsim, mode, rows, c, mode.neighbour if plant else "")
    row.sums, row.products = int(usable.sum()), int(usable.sum()) * rows.a.shape[1]
    row.left_out = int((~usable).sum())
    rules: dict[str, Recompute] = {}
    if mode.name == "blackwell-fp8" and not plant:
        late = Mode("hopper-mma-fp8", mode.a, mode.b, 32, "", late=True)
        other, _ = accumulator.sums(numsim, late, rows, c)
        # Where that mode gives what was recorded, the difference is explained.
        explained = np.where(equal(other, d), ours, d)
        reason = "mma.sync of B200 is hopper-mma-fp8, which adds c in float32"
        rules[reason] = lambda grid, i, j: int(explained[i])
    for i in np.nonzero(~equal(ours, d) & usable)[0]:
        judge(row, mode, rows, (int(i), int(i)), (int(ours[i]), int(d[i])), rules)
