"""Measures of a model's tensors while it trains."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy as np
import torch

from numsim import _core
from numsim._arrays import float32_of
from numsim._formats import FormatLike, format as format_of
from numsim._quantize import quantize
from numsim.results import Table
from numsim.torch._linear import between_graphs

COLUMNS = (
    "step",
    "layer",
    "tensor",
    "elements",
    "nonfinite",
    "amax",
    "kurtosis",
    "underflow",
    "sqnr_db",
    "signal_to_noise",
)


class Watch:
    """The measures that `watch` records. `rows` is a list of {column: value}.

    step             forward pass of the model in training mode, from 0
    layer            name of the linear layer
    tensor           "input", "weight", "output", "output-gradient", "input-gradient" or
                     "weight-gradient". The input gradient is the layer's own dX, also where other
                     layers read the same input; a layer whose input needs no gradient has none
    elements, nonfinite   numbers of elements, and of those that are NaN or infinite
    amax, kurtosis   largest magnitude, and E(x - mean)^4 / var^2 (3: normal), of the finite ones
    underflow        share of the finite elements that the format makes zero though they are not
    sqnr_db          signal-to-quantisation-noise ratio in dB; infinite without error
    signal_to_noise  norm of the tensor over norm of its error. Gradients below sqrt(3) train less
                     effectively [FP4AllTheWay]
    """

    def __init__(
        self, model: torch.nn.Module, every: int, format: FormatLike, scaling: str
    ) -> None:
        if every < 1:
            raise ValueError(f"every: expected a number of steps >= 1, found {every}")
        self.rows: list[dict[str, Any]] = []
        self._every, self._format, self._scaling = every, format_of(format), scaling
        self._step = -1
        self._model = model
        self._handles: list[Any] = []
        quantize(np.zeros((1, 1), np.float32), self._format, scaling=scaling)  # refuses bad ones

    def __enter__(self) -> Watch:
        layers = [(n, m) for n, m in self._model.named_modules() if isinstance(m, torch.nn.Linear)]
        if not layers:
            raise ValueError("model: has no linear layer")
        self._handles.append(self._model.register_forward_pre_hook(self._begin))
        for name, module in layers:
            self._watch_layer(name, module)
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Stops recording."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _begin(self, model, _):
        self._step += model.training

    def _watch_layer(self, name, module):
        @between_graphs
        def before_forward(module, inputs):
            if not self._records() or not inputs[0].requires_grad:
                return None
            step, own = self._step, inputs[0].view_as(inputs[0])  # of this layer alone
            own.register_hook(lambda g: self._record(step, name, "input-gradient", g))
            return (own, *inputs[1:])

        @between_graphs
        def after_forward(module, inputs, output):
            if not self._records():
                return
            step = self._step
            self._record(step, name, "input", inputs[0])
            self._record(step, name, "weight", module.weight)
            self._record(step, name, "output", output)
            if output.requires_grad:
                output.register_hook(lambda g: self._record(step, name, "output-gradient", g))

        def after_weight_gradient(gradient):
            if self._records():
                self._record(self._step, name, "weight-gradient", gradient)

        self._handles.append(module.register_forward_pre_hook(before_forward))
        self._handles.append(module.register_forward_hook(after_forward))
        if module.weight.requires_grad:
            self._handles.append(module.weight.register_hook(after_weight_gradient))

    def _records(self):
        return bool(self._handles) and self._model.training and self._step % self._every == 0

    def _record(self, step, layer, tensor, x):
        array, _ = float32_of(x, f"{layer} {tensor}")
        array = array.reshape(-1, array.shape[-1])
        nonfinite, amax, kurtosis = _core.spread(array)
        error = quantize(array, self._format, scaling=self._scaling).error(array)
        noise = error.relative_error
        values = (
            step,
            layer,
            tensor,
            array.size,
            nonfinite,
            amax,
            kurtosis,
            error.underflow_share,
            error.sqnr_db,
            1 / noise if noise else (float("inf") if amax else float("nan")),
        )
        self.rows.append(dict(zip(COLUMNS, values)))

    def table(self) -> Table:
        """Returns the rows as a table: {column: array}, with `where` and, by pandas, `frame`."""
        types = dict.fromkeys(("layer", "tensor"), str) | dict.fromkeys(
            ("step", "elements", "nonfinite"), np.int64
        )
        return Table(
            "watch",
            {c: np.array([r[c] for r in self.rows], types.get(c, np.float64)) for c in COLUMNS},
        )

    def write_csv(self, path: str | pathlib.Path) -> None:
        """Writes the rows as CSV, which `numsim.results.read` of its directory reads."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)


def watch(
    model: torch.nn.Module,
    every: int = 1,
    *,
    format: FormatLike = "e4m3fn",
    scaling: str = "tensor",
) -> Watch:
    """Records measures of the tensors of a model's linear layers: `with watch(model) as log: ...`.

    Every `every`-th forward pass in training mode, and the backward passes that follow it, add rows
    to the `Watch` that this returns: of inputs, weights, outputs and of the gradients of outputs,
    inputs and weights, as they are before anything is quantised, and of the error that quantising them to
    `format` with `scaling` (as in `numsim.quantize`) would make. A tensor (..., n) counts as a
    matrix of rows of n elements. Nothing is changed.
    """
    return Watch(model, every, format, scaling)
