"""Optimisers with weights and moments in any format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from numsim import _core, _settings
from numsim._arrays import float32_of, matrix_shape
from numsim._names import did_you_mean

# The check of each setting.
_CHECKS = {
    "kind": _settings.text,
    "beta1": _settings.rate,
    "beta2": _settings.rate,
    "epsilon": _settings.rate,
    "weight_decay": _settings.rate,
    "decay_filter": _settings.text,
    "clip_norm": _settings.rate,
    "m": _settings.text,
    "v": _settings.text,
    "moment_filter": _settings.text,
    "update_from_stored": _settings.flag,
    "weights": _settings.text,
    "update": _settings.text,
}


@dataclasses.dataclass(frozen=True)
class TensorStep:
    """The effect of a step on one tensor."""

    gradient_norm: float
    rms: float  # of the gradient relative to the root of v; adamw and stable-adamw only
    max_update: float  # largest magnitude of the direction
    moved: int  # weights whose value changed
    flushed_m: int  # nonzero elements of the moments that were stored as zero
    flushed_v: int


@dataclasses.dataclass(frozen=True)
class Step:
    """The effect of a step. `skipped`: no weight changed; `finite`: all gradients are finite."""

    skipped: bool
    finite: bool
    gradient_norm: float
    clip_factor: float
    tensors: dict[str, TensorStep]


class Optimizer:
    """An optimiser of the library over named arrays (docs/optimizers.md, docs/moments.md).

    parameters   {name: float32 array}, copied. Those of two or more dimensions count as matrices,
                 which the filters tell from vectors
    kind         "adamw", "stable-adamw", "sgd" or "lion"
    m, v         formats of the moments: "fp32", "bf16", "e4m3fn@block:128+sr", "dynamic:256"
    weights      format of the weights
    update       rule by which they take a step (docs/updates.md): "naive", "stochastic:16", "kahan"
    beta1, beta2, epsilon, weight_decay, clip_norm   numbers; the library's defaults (0.9, 0.95,
                 1e-8, 0.1, off)
    decay_filter "matrices", "all" or "none"; moment_filter "matrices" or "all"
    update_from_stored   whether a step reads the moments back from their storage
    seed         of stochastic rounding; every step and parameter has random bits of its own

    Calls from several threads wait for one another.
    """

    def __init__(self, parameters: dict[str, Any], *, seed: int = 0, **settings: Any) -> None:
        for name in settings:
            if name not in _CHECKS:
                raise TypeError(
                    f"Optimizer: unknown setting {name!r}{did_you_mean(name, _CHECKS)}"
                )
        checked = {name: _CHECKS[name](value, name) for name, value in settings.items()}
        self._core = _core.Optimizer(checked, _settings.integer(seed, "seed"))
        self._shapes = {}
        for name, value in _settings.arrays(parameters, "parameters").items():
            array, _ = float32_of(value, f"parameters[{name!r}]")
            self._core.add(name, array.ndim > 1, *matrix_shape(array.shape), array)
            self._shapes[name] = array.shape

    def __getitem__(self, name: str) -> np.ndarray:
        """The current weights of a parameter: a read-only view of float32 values of the format."""
        if name not in self._shapes:
            raise KeyError(f"{name!r}; the parameters are {', '.join(self._shapes)}")
        return self._core.weights(name).reshape(self._shapes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def step(self, gradients: dict[str, Any], *, lr: float) -> Step:
        """Takes a step with {name: gradient}, one for every parameter. Returns a `Step`."""
        if set(_settings.arrays(gradients, "gradients")) != set(self._shapes):
            raise ValueError(
                f"gradients: expected {', '.join(self._shapes)}, found {', '.join(gradients)}"
            )
        arrays = {}
        for name, gradient in gradients.items():
            array, _ = float32_of(gradient, f"gradients[{name!r}]")
            if array.shape != self._shapes[name]:
                raise ValueError(
                    f"gradients[{name!r}]: expected shape {self._shapes[name]}, found {array.shape}"
                )
            arrays[name] = array
        self._core.step(_settings.rate(lr, "lr"), arrays)
        skipped, finite, norm, clip, tensors = self._core.last()
        steps = {name: TensorStep(*row) for name, row in zip(self._shapes, tensors)}
        return Step(skipped, finite, norm, clip, steps)

    def bytes(self) -> dict[str, float]:
        """Returns the bytes per parameter that are stored: {"m", "v", "weights", "other"}."""
        return dict(zip(("m", "v", "weights", "other"), self._core.bytes()))
