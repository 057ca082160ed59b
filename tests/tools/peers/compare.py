"""The comparison of sums: counts of differences by the rule that explains them, and the table."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from peers.cases import Grid, Mode, values
from peers.program import Numsim, refuse

# Recomputes one sum of a grid by the other project's code with one thing changed. Returns its bits.
Recompute = Callable[[Grid, int, int], int]


@dataclasses.dataclass
class Answers:
    """What another project answers to a grid: bits of float32, and where it stops with an error."""

    bits: np.ndarray
    stopped: np.ndarray | None = None


@dataclasses.dataclass
class Row:
    """One line of the table."""

    mode: str
    source: str
    operands: str
    sums: int = 0
    products: int = 0
    different: int = 0
    stopped: int = 0  # sums for which the other project raises an error
    left_out: int = 0  # sums that numsim cannot begin, see accumulator.py
    reasons: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    example: str = ""  # the first difference that no rule explains

    @property
    def unexplained(self) -> int:
        return self.different - sum(self.reasons.values())


def equal(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whether bits of float32 are the same; all NaNs are."""
    nans = [(bits & 0x7FFFFFFF) > 0x7F800000 for bits in (ours, theirs)]
    return (ours == theirs) | (nans[0] & nans[1])


def describe(mode: Mode, grid: Grid, ours: int, theirs: int) -> str:
    """Returns the operands of one sum, without products of zero, and both answers."""
    a, b = values(mode.a, grid.a[0]), values(mode.b, grid.b[0])
    kept = [i for i in range(a.size) if not (a[i] == 0 or b[i] == 0)][:40]
    terms = [f"[{i}] {float(a[i]).hex()} * {float(b[i]).hex()}" for i in kept]
    scales = ""
    if grid.scale_a is not None and grid.scale_b is not None:
        scales = f"; scales {grid.scale_a[0].tolist()[:8]} {grid.scale_b[0].tolist()[:8]} (codes)"
    more = f" of {a.size} products" if len(kept) < a.size else ""
    return (
        f"numsim {ours:08X}, other {theirs:08X} ({_float(ours)}, {_float(theirs)}){more}: "
        f"{', '.join(terms)}{scales}"
    )


def _float(bits: int) -> str:
    return float(np.array(bits, np.uint32).view(np.float32)).hex()


def compare_grids(
    row: Row,
    mode: Mode,
    grids: Iterable[Grid],
    numsim: Numsim,
    peer: Callable[[Grid], Answers],
    rules: dict[str, Recompute],
    text: str = "",
) -> Row:
    """Compares all sums of grids. `text` is numsim's mode with a planted fault, or nothing."""
    for grid in grids:
        ours, answers = numsim.grid(mode, grid, text), peer(grid)
        stopped = np.zeros(ours.shape, bool) if answers.stopped is None else answers.stopped
        row.sums += grid.sums
        row.products += grid.products
        row.stopped += int(stopped.sum())
        # An error stands for an answer that is not finite.
        differ = np.where(stopped, np.isfinite(ours.view(np.float32)), ~equal(ours, answers.bits))
        for i, j in zip(*np.nonzero(differ)):
            bits = int(ours[i, j]), int(answers.bits[i, j])
            judge(row, mode, grid, (int(i), int(j)), bits, rules)
    return row


def judge(
    row: Row,
    mode: Mode,
    grid: Grid,
    place: tuple[int, int],
    bits: tuple[int, int],
    rules: dict[str, Recompute],
) -> None:
    """Counts a difference, of (numsim's, the other's) bits, under the first rule whose sum is numsim's."""
    row.different += 1
    for reason, recompute in rules.items():
        if equal(np.array(bits[0]), np.array(recompute(grid, *place))):
            row.reasons[reason] += 1
            return
    row.example = row.example or describe(mode, grid.one(*place), *bits)


COLUMNS = ("mode", "source", "operands", "sums", "products", "different", "stops", "left out", "reason")


def table(rows: list[Row]) -> str:
    """Returns the rows as a table of Markdown."""
    lines = [list(COLUMNS)]
    for row in rows:
        reasons = [f"{count} {reason}" for reason, count in row.reasons.items()]
        if row.unexplained:
            reasons.append(f"{row.unexplained} UNEXPLAINED")
        lines.append(
            [row.mode, row.source, row.operands, f"{row.sums:,}", f"{row.products:,}",
             f"{row.different:,}", f"{row.stopped:,}", f"{row.left_out:,}", "; ".join(reasons)]  # fmt: skip
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    lines.insert(1, ["-" * width for width in widths])
    cells = (" | ".join(cell.ljust(w) for cell, w in zip(line, widths)) for line in lines)
    return "\n".join(f"| {line} |" for line in cells)


def finish(rows: list[Row], planted: bool) -> int:
    """Prints the table. Returns the exit code: 1 if a difference is unexplained, or a fault unseen."""
    print(table(rows))
    if not rows:
        refuse("nothing was compared: no mode is selected, or the folder has none of the cases")
    if planted:
        unseen = [row for row in rows if not row.unexplained]
        for row in unseen:
            print(f"{row.mode}, {row.operands}: the planted fault was not seen")
        print(f"{len(rows) - len(unseen)} of {len(rows)} planted faults were seen")
        return 1 if unseen else 0
    for row in rows:
        if row.unexplained:
            print(f"{row.mode}, {row.operands}: {row.unexplained} unexplained; {row.example}")
    return 1 if any(row.unexplained for row in rows) else 0
