"""The models of MATLAB-tensor-core [MATLAB-TC], run by GNU Octave.

Octave 7 has neither `string` nor `fma`, which the models of AMD's units call; stand-ins for what they
need are written beside the driver. MI300MC.m is not in the repository.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from peers.cases import Grid, Mode, values
from peers.compare import Answers, Recompute
from peers.program import refuse

MODEL_FORMAT = {"fp16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3fn": "fp8-e4m3", "e5m2": "fp8-e5m2"}

ALL = 1 << 20  # products of one call of a model: more than there are

# Reads grids (m, n, k, A, B transposed, all float64), writes (stopped, D) of each. Each call of a model
# takes `step` products.
DRIVER = """
addpath('{models}'); addpath('{models}/tools'); addpath('{folder}');
in = fopen('{cases}', 'r'); out = fopen('{answers}', 'w');
while true
  shape = fread(in, 3, 'double');
  if numel(shape) < 3, break; end
  A = fread(in, [shape(3), shape(1)], 'double')';
  B = fread(in, [shape(3), shape(2)], 'double');
  for i = 1:shape(1)
    for j = 1:shape(2)
      try
        d = 0;
        for first = 1:{step}:shape(3)
          part = first:min(first + {step} - 1, shape(3));
          d = double(single({call}));
        end
        fwrite(out, [0, double(d)], 'double');
      catch
        fwrite(out, [1, 0], 'double');
      end
    end
  end
end
fclose(in); fclose(out);
"""
STAND_INS = {
    "string.m": "function s = string(x)\n  s = cellstr(x);\nend\n",
    "fma.m": "function d = fma(a, b, c)\n  if b ~= 1, error('fma: expected a factor of 1'); end\n"
             "  d = single(a) + single(c);\nend\n",
}  # fmt: skip


def models() -> list[tuple[str, Mode]]:
    """Returns the models and the modes that describe the same units."""

    def one(model: str, name: str, f: str, step: int, neighbour: str) -> tuple[str, Mode]:
        return model, Mode(name, f, f, step, neighbour)

    return [
        one("V100TC", "volta-fp16", "fp16", 4, "trunc:22,4"),
        one("A100TC", "ampere-fp16", "fp16", 8, "trunc:23,8"),
        one("A100TC", "ampere-bf16", "bf16", 8, "trunc:23,8"),
        one("A100TC", "ampere-tf32", "tf32", 4, "trunc:23,4"),
        one("AdaTC", "ada-fp16", "fp16", 8, "trunc:23,8"),
        one("AdaTC", "ada-bf16", "bf16", 8, "trunc:24,16"),
        one("AdaTC", "ada-tf32", "tf32", 4, "trunc:24,8"),
        one("AdaTC", "ada-fp8", "e4m3fn", 16, "trunc:12,16"),
        one("AdaTC", "ada-fp8", "e5m2", 16, "trunc:13,32"),
        one("H100TC", "hopper-fp16", "fp16", 16, "trunc:24,16"),
        one("H100TC", "hopper-bf16", "bf16", 16, "trunc:24,16"),
        one("H100TC", "hopper-tf32", "tf32", 8, "trunc:25,16"),
        one("H100TC", "hopper-fp8-fast", "e4m3fn", 32, "trunc:12,32"),
        one("H100TC", "hopper-fp8-fast", "e5m2", 32, "trunc:13,16"),
        one("B200TC", "blackwell-fp16", "fp16", 16, "trunc:24,16"),
        one("B200TC", "blackwell-bf16", "bf16", 16, "trunc:25,8"),
        one("B200TC", "blackwell-tf32", "tf32", 8, "trunc:24,8"),
        one("B200TC", "blackwell-fp8", "e4m3fn", 32, "trunc:24,32"),
        one("B200TC", "blackwell-fp8", "e5m2", 32, "trunc:25,16"),
        one("MI100MC", "cdna1-fp16", "fp16", 4, "cdna2-fp16"),
        one("MI100MC", "cdna1-bf16", "bf16", 2, "cdna2-bf16-2"),
        one("MI210MC", "cdna2-fp16", "fp16", 4, "cdna1-fp16"),
        one("MI210MC", "cdna2-bf16", "bf16", 4, "cdna2-bf16-2"),
    ]


class Matlab:
    """The models of a checkout in a process of Octave for each grid."""

    def __init__(self, checkout: Path, octave: str) -> None:
        if not (checkout / "models" / "tools").is_dir():
            refuse(f"{checkout}: expected a checkout of MATLAB-tensor-core, found no folder models/tools")
        if shutil.which(octave) is None:
            refuse(f"--octave {octave}: not found; Debian's package is octave")
        self.octave = octave
        self.models = checkout / "models"
        self._folder = tempfile.TemporaryDirectory(prefix="numsim-octave-")
        self.folder = Path(self._folder.name)
        for name, text in STAND_INS.items():
            (self.folder / name).write_text(text)

    def answers(
        self, model: str, mode: Mode, grids: list[Grid], folder: Path | None = None, step: int = ALL
    ) -> list[Answers]:
        """Returns the answers of a model to grids, called with `step` products at a time."""
        informat = f"'{MODEL_FORMAT[mode.a]}', "
        if model == "V100TC":
            informat = ""
        words = f"{informat}'fp32'" if model.endswith("TC") else informat.rstrip(", ")
        files = {name: self.folder / name for name in ("cases", "answers", "driver.m")}
        with files["cases"].open("wb") as out:
            for grid in grids:
                sizes = (grid.a.shape[0], grid.b.shape[0], grid.a.shape[1])
                for array in (np.array(sizes), values(mode.a, grid.a), values(mode.b, grid.b)):
                    out.write(array.astype(np.float64).tobytes())
        files["driver.m"].write_text(
            DRIVER.format(models=folder or self.models, folder=self.folder, cases=files["cases"],
                          answers=files["answers"], step=step,
                          call=f"{model}(1, A(i, part), B(part, j), 1, d, {words})")  # fmt: skip
        )
        command = [self.octave, "--no-gui", "--quiet", "--no-history", str(files["driver.m"])]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            refuse(f"{' '.join(command)}: {done.stderr}")
        found = np.fromfile(files["answers"]).reshape(-1, 2)
        result, begin = [], 0
        for grid in grids:
            shape = (grid.a.shape[0], grid.b.shape[0])
            part = found[begin : begin + grid.sums]
            begin += grid.sums
            with np.errstate(over="ignore"):
                bits = part[:, 1].astype(np.float32).view(np.uint32)
            result.append(Answers(bits.reshape(shape), part[:, 0].reshape(shape) != 0))
        return result

    def rules(self, model: str, mode: Mode) -> dict[str, Recompute]:
        """Returns the known ways in which a model differs, each as a recomputation."""
        rules = {}
        folder = self.models
        least = re.search(r"min_exp_limit\s*=\s*(-\d+)", (self.models / f"{model}.m").read_text())
        if model.endswith("TC") and least is not None and least[1] != "-133":
            folder = self._changed(f"least-{model}", f"{model}.m", least[0], "min_exp_limit = -133")
            rules[f"its least exponent is {least[1]}, not -133"] = self._again(model, mode, folder)
        if model == "MI210MC":
            infinite = self._changed("products", "tools/GEMM.m", "r = a .* b;", "r = double(single(a .* b));")
            reason = "GEMM.m does not see infinite products or accumulators"
            return {reason: self._again(model, mode, infinite, mode.step)}
        reason = "GEMM.m does not see that its accumulator has become infinite"
        rules[reason] = self._again(model, mode, folder, mode.step)
        return rules

    def _changed(self, name: str, file: str, old: str, new: str) -> Path:
        """Returns a copy of the models in which one text of one file is another."""
        copy = self.folder / name
        if not copy.exists():
            shutil.copytree(self.models, copy)
            text = (copy / file).read_text()
            if old not in text:
                refuse(f"{self.models / file}: expected {old!r}; the rules are for another commit")
            (copy / file).write_text(text.replace(old, new))
        return copy

    def _again(self, model: str, mode: Mode, folder: Path, step: int = ALL) -> Recompute:
        """Returns a recomputation by the models of a folder. It keeps the answers to one grid."""
        kept: list[tuple[Grid, Answers]] = []

        def recompute(grid: Grid, i: int, j: int) -> int:
            if not kept or kept[0][0] is not grid:
                kept[:] = [(grid, self.answers(model, mode, [grid], folder, step)[0])]
            return int(kept[0][1].bits[i, j])

        return recompute


def batches(grids: Iterator[Grid], size: int = 40) -> Iterator[list[Grid]]:
    """Yields lists of grids: an Octave takes longer to start than a grid to compute."""
    batch: list[Grid] = []
    for grid in grids:
        batch.append(grid)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
