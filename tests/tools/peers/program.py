"""Sums by the numsim program."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import numpy as np

from peers.cases import Grid, Mode, values


def refuse(message: str) -> NoReturn:
    """Ends the program: what was given cannot be compared."""
    print(f"check_peers: {message}", file=sys.stderr)
    sys.exit(2)


class Numsim:
    """The program, called with files in a folder of its own."""

    def __init__(self, program: str | Path) -> None:
        self.program = str(program)
        self._folder = tempfile.TemporaryDirectory(prefix="numsim-peers-")
        self.folder = Path(self._folder.name)

    def run(self, *words: object) -> None:
        command = [self.program, *map(str, words)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        except OSError as error:
            refuse(f"--program {self.program}: {error.strerror}; build it with ./numsim test")
        if done.returncode != 0:
            refuse(f"{' '.join(command)}: {done.stderr}")

    def save(self, name: str, array: np.ndarray) -> str:
        np.save(self.folder / name, array)
        return name

    def load(self, name: str) -> np.ndarray:
        return np.load(self.folder / name)

    def grid(self, mode: Mode, grid: Grid, text: str = "") -> np.ndarray:
        """Returns the bits of the sums, m x n. `text` is computed in the place of the mode."""
        a = self.save("a.npy", values(mode.a, grid.a))
        b = self.save("b.npy", values(mode.b, grid.b))
        words = ["gemm", a, b, "out.npy", "--format", mode.a, "--format-b", mode.b]
        words += ["--accumulation-mode", text or mode.name, "--any-operands"]
        if grid.scale_a is not None and grid.scale_b is not None:
            words += ["--scale-a", self.save("sa.npy", values(mode.scale, grid.scale_a))]
            words += ["--scale-b", self.save("sb.npy", values(mode.scale, grid.scale_b))]
            granularity = f"block:{mode.block}"
            words += ["--granularity-a", granularity, "--granularity-b", granularity]
        self.run(*words)
        return self.load("out.npy").view(np.uint32)

    def rows(self, mode: Mode, grid: Grid, text: str = "") -> np.ndarray:
        """Returns the bits of the sums of row i of A and row i of B, by the oracle."""
        columns = [grid.a, grid.b]
        words = ["oracle", "answer", "--op", "dot", "--format", mode.a, "--format-b", mode.b]
        words += ["--to", "fp32", "--accumulation-mode", text or mode.name, "--any-operands"]
        words += ["--length", str(grid.a.shape[1])]
        if grid.scale_a is not None and grid.scale_b is not None:
            columns += [grid.scale_a, grid.scale_b]
            words += ["--scale-format", mode.scale, "--block", str(mode.block)]
        cases = np.hstack(columns).astype(np.uint32)
        self.run(*words, "--npy", self.save("cases.npy", cases), "--out", "answers.npy")
        return self.load("answers.npy")[:, cases.shape[1]].astype(np.uint32)
