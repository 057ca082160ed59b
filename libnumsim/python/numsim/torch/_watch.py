"""Measures of a model's tensors while it trains."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy as np
import torch

from numsim import _core, _settings
from numsim._arrays import float32_of
from numsim._formats import FormatLike, format as format_of, warn as warn_caller
from numsim._quantize import quantize
from numsim.results import Table
from numsim.torch._attention import MultiheadAttention
from numsim.torch._gemms import in_backward
from numsim.torch._report import LeftOutWarning

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
QUANTISED_COLUMNS = (
    "step",
    "layer",
    "operand",
    "format",
    "scaling",
    "scale_min",
    "scale_max",
    "range",
    "amax",
    "saturated",
    "underflow",
    "sqnr_db",
    "signal_to_noise",
)
_TEXTS = ("layer", "tensor", "operand", "format", "scaling")
_COUNTS = ("step", "elements", "nonfinite")
_IN_PROJ = "in_proj."  # before the names of an attention's products


def _between_graphs(function):
    """Makes torch.compile call a function as it is, between two graphs."""
    reason = "nt.watch records tensors"
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # PyTorch before 2.7 takes no reason
        return torch.compiler.disable(function)


class Watch:
    """The measures that `watch` records: `rows` and `quantised`, lists of {column: value}.

    `rows` are measures of tensors before they are quantised, and of the error that a format would
    make:

    step             forward pass of the model in training mode, from 0
    layer            name of the linear layer; of a converted attention NAME also NAME.in_proj.qkv, or
                     .q and .kv, or .q, .k and .v: the products by which its inputs are projected
    tensor           "input", "weight", "output", "output-gradient", "input-gradient" or
                     "weight-gradient". The gradients of input and weight are the layer's own dX and
                     dW, also where other modules use the same tensor: under tied weights the sum is
                     in weight.grad. A layer whose input needs no gradient has no "input-gradient"
    elements, nonfinite   numbers of elements, and of those that are NaN or infinite
    amax, kurtosis   largest magnitude, and E(x - mean)^4 / var^2 (3: normal), of the finite ones
    underflow        share of the finite elements that the format makes zero though they are not
    sqnr_db          signal-to-quantisation-noise ratio in dB; infinite without error
    signal_to_noise  norm of the tensor over norm of its error. Gradients below sqrt(3) train less
                     effectively [FP4AllTheWay]

    `quantised` are measures of what converted layers themselves quantise, with their own formats and
    scales, delayed scales too. An operand that is quantised once for two GEMMs has one row. On a CUDA
    device X has no row of the weight gradient where saved codes are dequantised to bf16 at once.

    operand          "forward X", "forward W", "input gradient G", "weight gradient G", ...
    format, scaling  of the codes; "tensor delayed": the scale comes from earlier steps
    scale_min, scale_max   the smallest and the largest scale
    range            largest magnitude that the largest scale leaves room for
    amax             largest magnitude; elements half a step above `range` and more saturate
    saturated, underflow   shares of the finite elements that saturate, or become zero though they
                     are not
    """

    def __init__(
        self, model: torch.nn.Module, every: int, format: FormatLike, scaling: str
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.quantised: list[dict[str, Any]] = []
        self._every = _settings.integer(every, "every", 1)
        self._format, self._scaling = format_of(format), scaling
        self._step = -1
        self._running = False  # whether the model's forward pass runs
        self._model = model
        self._names: list[str] = []
        self._outside: set[str] = set()  # layers that ran without the model's forward pass
        self._missing: set[tuple[int, str, str]] = set()  # gradients that have not come
        self._handles: list[Any] = []
        quantize(np.zeros((1, 1), np.float32), self._format, scaling=scaling)  # refuses bad ones

    def __enter__(self) -> Watch:
        layers = dict(_watched(self._model))
        if not layers:
            raise ValueError("model: has no linear layer")
        self._names = list(layers)
        self._handles.append(self._model.register_forward_pre_hook(self._begin))
        self._handles.append(self._model.register_forward_hook(self._end, always_call=True))
        for name, module in layers.items():
            self._watch_layer(name, module)
        return self

    def __exit__(self, error, *_) -> None:
        self.close(warn=error is None)

    def close(self, warn: bool = True) -> None:
        """Stops recording. Warns with a `LeftOutWarning` of what was not recorded."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        left_out = self._left_out()
        if warn and left_out:
            warn_caller(f"watch: {left_out}", LeftOutWarning)

    def _left_out(self):
        """What a user may miss, as a text."""
        if self._step < 0:
            return "recorded nothing: the model's forward was never called in training mode"
        seen = {_layer_of(row["layer"]) for row in self.rows}
        silent = [name for name in dict.fromkeys(map(_layer_of, self._names)) if name not in seen]
        with_gradients = {r["step"] for r in self.rows if r["tensor"].endswith("gradient")}
        missing = sorted(m for m in self._missing if m[0] in with_gradients)
        found = []
        if silent:
            found.append(
                f"recorded nothing of {', '.join(silent)}: their forward did not run, or was compiled "
                "by torch.compile before (torch.compiler.set_stance('force_eager') runs it)"
            )
        if missing:
            names = sorted({f"{layer} {tensor}" for _, layer, tensor in missing})
            found.append(f"no gradient came for {', '.join(names)}")
        return "; ".join(found)

    @_between_graphs
    def _begin(self, model, _):
        self._step += model.training
        self._running = True

    @_between_graphs
    def _end(self, *_):
        self._running = False

    def _watch_layer(self, name, module):
        gemms = getattr(module, "_gemms", None)

        @_between_graphs
        def before_forward(module, inputs, named):
            if gemms is not None:
                gemms.watcher = None
            if not self._records(name, module):
                return None
            step = self._step
            if gemms is not None:
                gemms.watcher = _Watcher(self, step, name, gemms)
            x = _first(inputs, named)
            if x is None or not x.requires_grad:
                return None
            own = x.view_as(x)  # of this layer alone
            self._hook(own, step, name, "input-gradient")
            if inputs:
                return (own, *inputs[1:]), named
            return (), {**named, next(iter(named)): own}

        @_between_graphs
        def after_forward(module, inputs, named, output):
            if not self._records(name, module):
                return
            step, x = self._step, _first(inputs, named)
            weight = module.weight if isinstance(module, torch.nn.Linear) else inputs[1]
            if not in_backward():  # a checkpoint repeats what was recorded
                self._record(step, name, "input", x)
                self._record(step, name, "weight", weight)
                self._record(step, name, "output", output)
            if not output.requires_grad:
                return
            self._hook(output, step, name, "output-gradient")
            if weight.requires_grad:
                self._missing.add((step, name, "weight-gradient"))
                if gemms is None:
                    x = x.detach()
                    output.register_hook(lambda g: self._weight_gradient(step, name, x, g))

        before = module.register_forward_pre_hook(before_forward, with_kwargs=True)
        after = module.register_forward_hook(after_forward, with_kwargs=True)
        self._handles += [before, after]

    def _hook(self, tensor, step, layer, kind):
        """Records the gradient of a tensor when it comes."""
        self._missing.add((step, layer, kind))
        tensor.register_hook(lambda g: self._record(step, layer, kind, g))

    def _weight_gradient(self, step, layer, x, g):
        """Records the gradient that a plain layer's weight gets from this layer."""
        x = x.reshape(-1, x.shape[-1]).to(g.dtype)
        self._record(step, layer, "weight-gradient", g.reshape(-1, g.shape[-1]).T @ x)

    def _records(self, name, module):
        """Whether a pass of a layer is recorded. One outside of the model's own cannot be."""
        if not self._handles or not self._model.training:
            return False
        if not (self._running or in_backward()):
            if module.training and not self._outside:
                warn_caller(
                    f"watch: {name} runs without the model's forward, which counts the steps, and is "
                    "not recorded; watch the module that is called, or call the model",
                    LeftOutWarning,
                )
            self._outside.add(name)
            return False
        return self._step % self._every == 0

    def _record(self, step, layer, tensor, x):
        self._missing.discard((step, layer, tensor))
        if getattr(x, "is_cuda", False):
            x = x.cpu()  # measured on the host
        array, _ = float32_of(x, f"{layer} {tensor}")
        array = array.reshape(-1, array.shape[-1])
        nonfinite, amax, kurtosis = _core.spread(array)
        error = quantize(array, self._format, scaling=self._scaling).error(array)
        values = (step, layer, tensor, array.size, nonfinite, amax, kurtosis)
        self.rows.append(dict(zip(COLUMNS, (*values, *_error(error, amax)))))

    def _record_operands(self, step, layer, operands, delayed):
        for operand, format, layout, least, largest, largest_value, amax, error in operands:
            scaling = f"{layout} delayed" if delayed else layout
            room = largest * largest_value
            values = (step, layer, operand, format, scaling, least, largest, room, amax)
            rest = (error.overflow_share, *_error(error, amax))
            self.quantised.append(dict(zip(QUANTISED_COLUMNS, (*values, *rest))))

    def table(self) -> Table:
        """Returns `rows` as a table: {column: array}, with `where` and, by pandas, `frame`."""
        return _table("watch", COLUMNS, self.rows)

    def quantised_table(self) -> Table:
        """Returns `quantised` as a table."""
        return _table("quantised", QUANTISED_COLUMNS, self.quantised)

    def write_csv(self, path: str | pathlib.Path) -> None:
        """Writes `rows` as CSV, which `numsim.results.read` of its directory reads."""
        _write(path, COLUMNS, self.rows)

    def write_quantised_csv(self, path: str | pathlib.Path) -> None:
        """Writes `quantised` as CSV."""
        _write(path, QUANTISED_COLUMNS, self.quantised)


class _Watcher:
    """Records what one pass of a converted layer quantises, and its own weight gradient."""

    def __init__(self, watch, step, layer, gemms):
        self._watch, self._step, self._layer = watch, step, layer
        self._delayed = bool(gemms.recipe.settings.get("delayed_history"))
        self._repeated = in_backward()

    def forward(self, operands):
        if not self._repeated:
            self._watch._record_operands(self._step, self._layer, operands, self._delayed)

    def backward(self, operands, weight_gradient):
        self._watch._record_operands(self._step, self._layer, operands, self._delayed)
        if weight_gradient is not None:
            self._watch._record(self._step, self._layer, "weight-gradient", weight_gradient)


def _watched(model):
    """Yields (name, module) of linear layers and of the products of attentions' projections."""
    for name, module in model.named_modules():
        name = name.replace("_orig_mod.", "")  # of torch.compile
        if isinstance(module, MultiheadAttention):
            for product, projection in module._projections.items():
                yield f"{name}.{_IN_PROJ}{product}".removeprefix("."), projection
        elif isinstance(module, torch.nn.Linear):
            yield name, module


def _first(inputs, named):
    """The first argument of a layer's call, which is its input; None if there is none."""
    return next(iter((*inputs, *named.values())), None)


def _layer_of(name):
    """The layer of a name: the projections of an attention's inputs have several products."""
    attention, found, _ = name.partition(_IN_PROJ)
    return f"{attention}in_proj" if found else name


def _error(error, amax):
    """(underflow, SQNR, signal to noise) of an ErrorMeasures."""
    noise = error.relative_error
    ratio = 1 / noise if noise else (float("inf") if amax else float("nan"))
    return error.underflow_share, error.sqnr_db, ratio


def _table(name, columns, rows):
    types = dict.fromkeys(_TEXTS, str) | dict.fromkeys(_COUNTS, np.int64)
    return Table(
        name, {c: np.array([r[c] for r in rows], types.get(c, np.float64)) for c in columns}
    )


def _write(path, columns, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


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
    inputs and weights, as they are before anything is quantised, and of the error that quantising
    them to `format` with `scaling` (as in `numsim.quantize`) would make. What converted layers
    quantise themselves is in `quantised`. A tensor (..., n) counts as a matrix of rows of n
    elements. Nothing is changed. Where nothing is recorded, a `LeftOutWarning` says so.
    """
    return Watch(model, every, format, scaling)
