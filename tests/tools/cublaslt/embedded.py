#!/usr/bin/env python3
"""Writes the splits of experiments/published/cuda as the table that libnumsim holds.

    tests/tools/cublaslt/embedded.py > libnumsim/numerics/numsim/gemm/internal/recorded_splits.inc

One line per M and N, "M N K:CELLS K:CELLS ...", in ascending order. A cell is a character: its place in ALPHABET is
that of the number of parts in the first line, which lists all numbers; "-" is not recorded. Cells are those of
COLUMNS, each for 1 and for 32 MiB of workspace. Plans of 16-bit products do not depend on the result's format.
"""

import csv
import gzip
import pathlib
import string
import sys
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from cublaslt.published import PLAN  # noqa: E402

CUDA = pathlib.Path(__file__).resolve().parents[3] / "experiments" / "published" / "cuda"
ALPHABET = string.ascii_lowercase + string.ascii_uppercase + string.digits
COLUMNS = ("e4m3-bf16", "e4m3-fp32", "e4m3-fast-bf16", "e4m3-fast-fp32", "bf16-bf16", "fp16-fp16")
WORKSPACES = ("1MiB", "32MiB")


def rows_of(name):
    with gzip.open(CUDA / f"cublaslt-{name}.csv.gz", "rt", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def splits():
    """Returns {(M, N, K): {(kind, workspace): number of parts}} of all recorded plans of the heuristic."""
    found = defaultdict(dict)
    for row in rows_of("plans"):
        shape = tuple(int(row[x]) for x in "MNK")
        for kind in COLUMNS:
            for workspace in WORKSPACES:
                cell = row[f"{kind}@{workspace}"]
                cell = row[f"{kind}@1MiB"] if cell == "=" else cell
                found[shape][kind, workspace] = int(cell.split(" ")[PLAN.index("split")])
    for row in rows_of("tails"):
        if row["splits"] == "0" and row["kind"] in COLUMNS:
            shape = tuple(int(row[x]) for x in "MNK")
            parts = found[shape].setdefault((row["kind"], "32MiB"), int(row["split"]))
            if parts != int(row["split"]):
                raise ValueError(f"{row}: {parts} parts in another table")
    return found


def table():
    found = splits()
    numbers = sorted({parts for cells in found.values() for parts in cells.values()})
    letters = {parts: ALPHABET[at] for at, parts in enumerate(numbers)} | {None: "-"}
    lines = defaultdict(list)
    for (m, n, k), cells in sorted(found.items()):
        text = "".join(letters[cells.get((kind, workspace))] for kind in COLUMNS for workspace in WORKSPACES)
        lines[m, n].append(f"{k}:{text}")
    yield "// Written by tests/tools/cublaslt/embedded.py, which says what the lines hold."
    yield "// clang-format off"
    yield f'"{" ".join(map(str, numbers))}\\n"'
    for (m, n), texts in sorted(lines.items()):
        yield f'"{m} {n} {" ".join(texts)}\\n"'


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
