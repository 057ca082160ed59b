"""The library's AdamW as an optimiser of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from numsim import _core
from numsim._arrays import float32_of
from numsim._formats import FormatLike, format as format_of, holds
from numsim._rounding import SR, plan_of

_STATE = "numsim"  # the key of state_dict() with the moments and the states of update rules


class AdamW(torch.optim.Optimizer):
    """AdamW with moments and weights in any format: the steps of `numsim.Optimizer`.

    lr, betas, eps, weight_decay   as in torch.optim.AdamW; groups may have their own. If betas
                    change, the bias correction has their product over all steps, whereas PyTorch
                    has the newest to the power of the steps
    moments         formats of m and v (docs/moments.md): "fp32", "e4m3fn", "e4m3fn@block:128+sr",
                    "dynamic:256"
    weights         format of the weights. The dtype of a parameter has to hold it; the constructor
                    rounds parameters to it
    rounding        how weights take a step: an update rule ("naive", "stochastic:16", "kahan":
                    docs/updates.md), or an `SR`, whose bits and seed count
    seed            of stochastic rounding; group i of the parameters has seed + i
    decay_filter    "all" (as in PyTorch), "matrices" or "none"
    moment_filter   parameters whose moments have the formats: "matrices" (two or more dimensions)
                    or "all"; the others have fp32
    update_from_stored   whether a step reads the moments back from their storage

    `step` needs a gradient of every parameter. If one is not finite, no weight of its group
    changes. Between steps nothing else may change a parameter, except that `load_state_dict`
    continues with the parameters as they are then. `last` holds the steps' numbers.
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
        if isinstance(rounding, SR):
            if rounding != SR(bits=rounding.bits, seed=rounding.seed):
                raise ValueError("rounding: of an SR, an optimiser takes bits and seed alone")
            seed = rounding.seed
            rounding = f"stochastic:{rounding.bits}"
        self._seed = SR(seed=seed).seed
        self._fixed = {
            "m": moments[0],
            "v": moments[1],
            "weights": self._weights.name,
            "update": rounding,
            "decay_filter": decay_filter,
            "moment_filter": moment_filter,
            "update_from_stored": update_from_stored,
        }
        self._groups: list[_Group] = []
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group of parameters, which are rounded to the format of the weights."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        _core.Optimizer(self._settings(group), 0)  # refuses settings that are out of range
        for i, p in enumerate(group["params"]):
            name = f"params[{i}]"
            kind = format_of(p.dtype)
            if not holds(kind, self._weights):
                raise TypeError(f"{name}: {p.dtype} does not hold weights of {self._weights.name}")
            _write(p, _rounded(p, self._weights, name))
        self._groups.append(_Group())

    def _settings(self, group):
        beta1, beta2 = group["betas"]
        return {
            **self._fixed,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": group["eps"],
            "weight_decay": group["weight_decay"],
        }

    @torch.no_grad()
    def step(self, closure=None):
        """Takes a step with the gradients of the parameters. Returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for i, (held, group) in enumerate(zip(self._groups, self.param_groups)):
            held.prepare(self._settings(group), group["params"], self._seed + i, self._weights)
        for held, group in zip(self._groups, self.param_groups):
            held.step(group["params"], float(group["lr"]))
        return loss

    @property
    def last(self) -> list[dict[str, Any]]:
        """Numbers of the last step of each group: {"skipped", "finite", "gradient_norm"}."""
        return [held.last for held in self._groups]

    def bytes(self) -> list[dict[str, float]]:
        """Returns the stored bytes per parameter of each group: {"m", "v", "weights", "other"}."""
        for i, (held, group) in enumerate(zip(self._groups, self.param_groups)):
            held.prepare(self._settings(group), group["params"], self._seed + i, self._weights)
        return [dict(zip(("m", "v", "weights", "other"), g.core.bytes())) for g in self._groups]

    def state_dict(self) -> dict:
        """Returns the state as in PyTorch; the key "numsim" has that of the library."""
        return {**super().state_dict(), _STATE: [held.save() for held in self._groups]}

    def load_state_dict(self, state_dict: dict) -> None:
        """Continues from what `state_dict` of an optimiser with the same arguments returned.

        The parameters are not part of it: load the model's first.
        """
        if _STATE not in state_dict or len(state_dict[_STATE]) != len(self._groups):
            raise ValueError(f"state_dict: expected the key {_STATE!r} with an entry per group")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != _STATE})
        for held, saved in zip(self._groups, state_dict[_STATE]):
            held.restore(saved)


class _Group:
    """The library's optimiser of one group of parameters, made when it is first needed."""

    def __init__(self):
        self.core = None
        self.settings = None
        self.saved = (0, {})  # the state with which the next core starts
        self.last = {}

    def save(self):
        if self.core is not None:
            self.saved = self.core.save()
        steps, pieces = self.saved
        tensors = {
            name: torch.from_numpy(np.frombuffer(data, np.uint8).copy())
            for name, data in pieces.items()
        }
        return {"steps": steps, "pieces": tensors}

    def restore(self, saved):
        pieces = {name: data.numpy().tobytes() for name, data in saved["pieces"].items()}
        self.saved = (saved["steps"], pieces)
        self.core = None

    def prepare(self, settings, params, seed, format):
        """Makes the core anew if there is none or a setting has changed; checks the parameters."""
        if self.core is not None and settings == self.settings:
            self._check_unchanged(params)
            return
        if self.core is not None:
            self._check_unchanged(params)
            self.saved = self.core.save()
        core = _core.Optimizer(settings, seed % (1 << 64))
        for i, p in enumerate(params):
            value = _rounded(p, format, f"params[{i}]")
            rows = p.shape[0] if p.ndim > 1 else 1
            core.add(str(i), p.ndim > 1, rows, p.numel() // max(rows, 1), value)
        if self.saved[1]:
            core.restore(*self.saved)
        self.core, self.settings = core, settings

    def _check_unchanged(self, params):
        for i, p in enumerate(params):
            array, _ = float32_of(p, f"params[{i}]")
            held = self.core.weights(str(i))
            if not np.array_equal(held.view(np.uint32), array.reshape(-1).view(np.uint32)):
                raise ValueError(
                    f"params[{i}]: was changed between two steps; continue with "
                    f"optimizer.load_state_dict(optimizer.state_dict())"
                )

    def step(self, params, lr):
        for i, p in enumerate(params):
            if p.grad is None:
                raise ValueError(
                    f"params[{i}]: has no gradient; leave parameters that get none out of the "
                    f"optimiser"
                )
            gradient, _ = float32_of(p.grad, f"params[{i}].grad")
            self.core.set_gradient(str(i), gradient)
        skipped, finite, norm, _, _ = self.core.step(lr)
        self.last = {"skipped": skipped, "finite": finite, "gradient_norm": norm}
        for i, p in enumerate(params):
            _write(p, self.core.weights(str(i)).reshape(p.shape))


def _rounded(p, format, name):
    """Returns a parameter's values, rounded to a format, as contiguous float32."""
    array, _ = float32_of(p, name)
    plan, *_ = plan_of(format, "rne", "saturate")
    out = np.empty(array.shape, np.float32)
    _core.round(plan, array, out)
    return out


@torch.no_grad()
def _write(p, values):
    p.copy_(torch.from_numpy(np.array(values)))
