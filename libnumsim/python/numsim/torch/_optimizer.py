"""The library's AdamW as an optimiser of PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from numsim import _core, _settings
from numsim._formats import FormatLike, format as format_of
from numsim._rounding import SR, has_only
from numsim.torch._optimizer_group import Group, new_core

_STATE = "numsim"  # the key of state_dict() with the moments and the states of update rules


class AdamW(torch.optim.Optimizer):
    """AdamW with moments and weights in any format: the steps of `numsim.Optimizer`.

    lr, betas, eps, weight_decay   as in torch.optim.AdamW; groups may have their own. If betas
                    change, the bias correction has their product over all steps, whereas PyTorch
                    has the newest to the power of the steps
    moments         formats of m and v (docs/moments.md), each with a rounding of its own: "fp32",
                    "e4m3fn", "e4m3fn+sr" (stochastic), "e4m3fn@block:128+sr", "dynamic:256"
    weights         format of the weights. The dtype of a parameter has to hold it; the constructor
                    rounds parameters to it
    rounding        how weights, and not moments, take a step: an update rule ("naive",
                    "stochastic:16", "kahan": docs/updates.md), "sr", or an `SR` of bits and seed
                    alone
    seed            of stochastic rounding of weights and moments; group i of the parameters has
                    seed + i
    decay_filter    "all" (as in PyTorch), "matrices" or "none"
    moment_filter   parameters whose moments have the formats: "matrices" (two or more dimensions)
                    or "all"; the others have fp32
    update_from_stored   whether a step reads the moments back from their storage

    As in PyTorch, a parameter without a gradient is left out of a step, which does not count in its
    bias correction. Parameters that need no gradient have no moments and are not rounded until they
    do. If a gradient is not finite, no weight of its group changes. Between steps nothing else may
    change a parameter, except that `load_state_dict` continues with the parameters as they are
    then. `last` holds the steps' numbers, and waits for a device.

    Parameters of a CUDA device are updated there, without a wait; all of a group are on one device.

    Parameters that are DTensors, as fully_shard makes them, are gathered and updated as wholes, each
    by one process, which holds its state. For equal gradients the bytes are those of one process.
    `state_dict`, which every process calls, is then that of one process, and any number of them
    loads it; `bytes` and the norm of `last` are of the parameters that the process updates.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        moments: tuple[str, str] = ("fp32", "fp32"),
        weights: FormatLike = "fp32",
        rounding: str | SR = "naive",
        seed: int = 0,
        decay_filter: str = "all",
        moment_filter: str = "matrices",
        update_from_stored: bool = False,
    ) -> None:
        self._weights = format_of(weights)
        m, v = _moment_formats(moments)
        update, seed = _update_rule(rounding, seed, self._weights, (m, v))
        self._seed = SR(seed=seed).seed
        self._fixed = {
            "m": m,
            "v": v,
            "weights": self._weights.name,
            "update": update,
            "decay_filter": _settings.text(decay_filter, "decay_filter"),
            "moment_filter": _settings.text(moment_filter, "moment_filter"),
            "update_from_stored": _settings.flag(update_from_stored, "update_from_stored"),
        }
        self._groups: list[Group] = []
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group of parameters, which are rounded to the format of the weights."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            _learning_rate(group)
            new_core(self._settings_of(group), 0)  # refuses settings that are out of range
            self._groups.append(self._new_group(group, len(self._groups)))
        except (TypeError, ValueError):
            del self.param_groups[-1]
            raise

    def _new_group(self, group, number):
        settings = self._settings_of(group)
        return Group(group["params"], settings, self._seed + number, self._weights)

    def _settings_of(self, group):
        beta1, beta2 = group["betas"]
        return {
            **self._fixed,
            "beta1": _settings.rate(beta1, "betas[0]"),
            "beta2": _settings.rate(beta2, "betas[1]"),
            "epsilon": _settings.rate(group["eps"], "eps"),
            "weight_decay": _settings.rate(group["weight_decay"], "weight_decay"),
        }

    def _prepare(self):
        for held, group in zip(self._groups, self.param_groups):
            held.prepare(self._settings_of(group))

    @torch.no_grad()
    def step(self, closure=None):
        """Takes a step with the gradients of the parameters. Returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._prepare()
        for held, group in zip(self._groups, self.param_groups):
            held.step(_learning_rate(group))
        return loss

    @property
    def last(self) -> list[dict[str, Any]]:
        """Numbers of the last step of each group: {"skipped", "finite", "gradient_norm"}.

        A group without any gradient was skipped.
        """
        return [held.last for held in self._groups]

    def bytes(self) -> list[dict[str, float]]:
        """Returns the stored bytes per parameter of each group: {"m", "v", "weights", "other"}."""
        self._prepare()
        return [held.bytes() for held in self._groups]

    def state_dict(self) -> dict:
        """Returns the state as in PyTorch; the key "numsim" has that of the library.

        It says in which formats its bytes are: `load_state_dict` refuses a state of others.
        """
        return {**super().state_dict(), _STATE: [held.save() for held in self._groups]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Continues from what `state_dict` of an optimiser with the same arguments returned.

        The parameters are not part of it: load the model's first. Raises ValueError, and changes
        nothing, if the formats of moments or weights, the rounding or the shapes differ.
        """
        found = state_dict.get(_STATE)
        if found is None or len(found) != len(self._groups):
            raise ValueError(
                f"state_dict: expected the key {_STATE!r} with an entry per group, which "
                "numsim.torch.AdamW with as many groups writes"
            )
        if any("formats" not in saved for saved in found):
            warnings.warn(
                "state_dict: does not say in which formats it is, as older versions of numsim wrote "
                "it; it is read in those of this optimiser",
                stacklevel=2,
            )
        saved_groups = [{"taking_part": [True] * len(held.params), **saved}
                        for held, saved in zip(self._groups, found)]  # fmt: skip
        for held, saved in zip(self._groups, saved_groups):
            held.check(saved)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != _STATE})
        for held, saved in zip(self._groups, saved_groups):
            held.restore(saved)

    def __getstate__(self) -> dict:
        own = {"_weights": self._weights.name, "_seed": self._seed, "_fixed": self._fixed}
        return {**super().__getstate__(), **own, "_groups": [held.save() for held in self._groups]}

    def __setstate__(self, state: dict) -> None:
        saved_groups = state.pop("_groups", None)  # absent where PyTorch loads a state_dict
        super().__setstate__(state)
        if saved_groups is None:
            for held, group in zip(self._groups, self.param_groups):
                held.use(group["params"])
            return
        self._weights = format_of(self._weights)
        self._groups = []
        for group, saved in zip(self.param_groups, saved_groups):
            self._groups.append(self._new_group(group, len(self._groups)))
            self._groups[-1].restore(saved)


def _learning_rate(group):
    """The learning rate of a group, which may be a tensor of one number."""
    lr = group["lr"]
    rate = _settings.real(lr.item() if isinstance(lr, torch.Tensor) else lr, "lr")
    if rate < 0:
        raise ValueError(f"lr: expected a number >= 0, found {rate}")
    return rate


def _moment_formats(moments):
    """Returns the texts of the formats of m and v, without defaults."""
    if isinstance(moments, str) or not hasattr(moments, "__len__") or len(moments) != 2:
        raise ValueError(
            f'moments: expected a pair of formats such as ("e4m3fn", "e5m2"), found {moments!r}'
        )
    texts = [text if isinstance(text, str) else format_of(text).name for text in moments]
    try:
        return [_core.MomentStore(t, 1, first).format for t, first in zip(texts, (True, False))]
    except _core.Error as error:
        raise _core.Error(f"moments: {error}") from None


def _update_rule(rounding, seed, weights, moments):
    """Returns (text of an update rule, seed)."""
    if isinstance(rounding, str) and rounding == "sr":
        rounding = SR(seed=seed)
        seed = 0
    if not isinstance(rounding, SR):
        if not isinstance(rounding, str):
            found = type(rounding).__name__
            raise TypeError(f"rounding: expected an update rule or numsim.SR, found {found}")
        try:
            return str(_core.UpdateRule(rounding)), seed
        except _core.Error as error:
            raise _core.Error(f"rounding: {error}") from None
    if not has_only(rounding, "bits", "seed"):
        raise ValueError("rounding: of an SR, an optimiser takes bits and seed alone")
    if seed:
        raise ValueError(f"seed: belongs into rounding=SR(seed={seed})")
    small = [text for text in moments if text != "fp32"]
    if weights.name == "fp32" and small and not any("+sr" in text for text in small):
        told = tuple(text if text == "fp32" else text + "+sr" for text in moments)
        raise ValueError(
            "rounding: is that of the weights, which are fp32 here; moments are rounded "
            f"stochastically by their formats: moments={told!r}"
        )
    return f"stochastic:{rounding.bits}", rounding.seed
