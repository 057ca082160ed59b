"""mmaemu: GEMMs in FP8 as cuBLAS computes them on an H100 PCIe and an RTX 4060. Needs PyTorch."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from peers.cases import Grid, Mode
from peers.compare import Answers
from peers.program import refuse

FORMATS = {"e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def plans() -> list[tuple[str, bool, Mode]]:
    """Returns (profile, fast accumulation, mode) of all that is compared. Long sums are not split."""
    found = []
    for a, b in (("e4m3fn", "e4m3fn"), ("e5m2", "e4m3fn"), ("e5m2", "e5m2")):
        found += [
            ("hopper", True, Mode("hopper-fp8-fast", a, b, 32, "trunc:14,32")),
            ("hopper", False, Mode("hopper-fp8", a, b, 32, "trunc:13,32,256")),
            ("ada", True, Mode("ada-fp8", a, b, 16, "trunc:12,16")),
            ("ada", False, Mode("trunc:13,16,128", a, b, 16, "ada-fp8")),
        ]
    return found


class Mmaemu:
    """The package in a folder."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "mmaemu").is_dir():
            refuse(f"{folder}: expected a folder that holds the package mmaemu, found none")
        sys.path.insert(0, str(folder))
        self.torch: Any = importlib.import_module("torch")
        self.torch.set_num_threads(1)
        self.package: Any = importlib.import_module("mmaemu")

    @property
    def version(self) -> str:
        return str(self.package.__version__)

    def _tensor(self, name: str, codes: np.ndarray) -> Any:
        return self.torch.from_numpy(codes.astype(np.uint8)).view(getattr(self.torch, FORMATS[name]))

    def sums(self, profile: str, fast: bool, mode: Mode, grid: Grid) -> Answers:
        found = self.package.accumulate(
            self._tensor(mode.a, grid.a),
            self._tensor(mode.b, grid.b),
            use_fast_accum=fast,
            profile=profile,
            splitk=1,
        )
        return Answers(found.numpy().view(np.uint32))
