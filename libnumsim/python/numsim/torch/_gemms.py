"""The three GEMMs of a linear layer, y = x w^T and its two gradients, as a function of PyTorch."""

from __future__ import annotations

import numpy as np
import torch

from numsim import _core, _settings
from numsim._arrays import float32_of
from numsim._linear import RecipeLike, recipe_of

MAX_LAYERS = 4096  # of a model, as `numsim train` numbers the streams of its layers
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_VERSION = 1  # of the tensor that holds the state of layers


def between_graphs(function):
    """Makes torch.compile call a function as it is, between two graphs."""
    reason = "numsim computes outside of PyTorch"
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # PyTorch before 2.7 takes no reason
        return torch.compiler.disable(function)


class Gemms:
    """Computes a layer's products under a recipe, and keeps what one step leaves for the next.

    steps        forward passes in training mode
    watcher      of the next forward pass and its backward pass, or None: it is told what they
                 quantise, `forward(operands)` and `backward(operands, weight gradient or None)`
    """

    def __init__(self, recipe: RecipeLike, seed: int, number: int) -> None:
        self.recipe = recipe_of(recipe)
        self.number = _settings.integer(number, "number", 0, MAX_LAYERS - 1)
        self.steps = 0
        self.watcher = None
        self._before: list[float] = []  # scales before the newest forward pass in training mode
        self._seed = _core.linear_seed(_settings.integer(seed, "seed"))
        self._core = _core.Linear(self.recipe._core)

    def product(self, x, w, training):
        """Returns x w^T. Training counts a step and lets delayed scales move on."""
        _refuse_transforms()
        _check_input(x, w.shape[1])
        watcher, self.watcher = self.watcher, None
        if not training:
            return self._at(x, w, self.steps, watcher, after=self._core.save())
        if in_backward() and self.steps > 0:  # a checkpoint repeats the newest forward pass
            now = self._core.save()
            return self._at(x, w, self.steps - 1, watcher, after=now, before=self._before)
        self._before = self._core.save()
        y = self._at(x, w, self.steps, watcher)
        self.steps += 1
        return y

    def _at(self, x, w, step, watcher, after=(), before=()):
        """The product at a step. Scales are set to `before` and `after` it, unless empty."""
        if before:
            self._core.restore(before)
        random = (self._seed, step * MAX_LAYERS + self.number)
        y = _Product.apply(x, w, self._core, random, watcher)
        if after:
            self._core.restore(after)
        return y

    @property
    def has_state(self):
        """Whether a later step depends on earlier ones, or on their number."""
        operands = [operand for a, b, *_ in self.recipe.gemms.values() for operand in (a, b)]
        return bool(self._core.save()) or any(" sr" in operand for operand in operands)

    def scales(self):
        """Returns {tensor: (delayed scale, amaxes of earlier steps, the newest last)}."""
        each = 1 + int(self.recipe.settings.get("delayed_history", 0))
        state = self._core.save()
        pieces = [state[i : i + each] for i in range(0, len(state), each)]
        names = ("x", "w", "g", "w backward", "x backward")
        return {n: (1 / p[0], p[2:]) for n, p in zip(names, pieces)}  # p[1] is being recorded

    def __getstate__(self):
        return {**self.__dict__, "_core": self._core.save(), "watcher": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._core = _core.Linear(self.recipe._core)
        self._core.restore(state["_core"])


def pack(all_gemms):
    """Returns the steps and delayed scales of some Gemms as a tensor of float64.

    It holds the version, and for each of them: steps, the number of scales, scales.
    """
    numbers = [float(_VERSION)]
    for gemms in all_gemms:
        scales = gemms._core.save()
        numbers += [gemms.steps, len(scales), *scales]
    return torch.tensor(numbers, dtype=torch.float64)


def unpack(state, all_gemms):
    """Sets what `pack` returned, or a dict {"steps", "scales"} of earlier versions."""
    if isinstance(state, dict):
        numbers = [_VERSION, state["steps"], len(state["scales"]), *state["scales"]]
    else:
        numbers = state.tolist()
    if not numbers or numbers[0] != _VERSION:
        raise ValueError("_extra_state: is not a state of numsim's layers")
    at, found = 1, []
    for _ in all_gemms:
        head = numbers[at : at + 2]
        if len(head) < 2:
            raise ValueError("_extra_state: is the state of another layer: it ends early")
        steps, count = map(int, head)
        found.append((steps, numbers[at + 2 : at + 2 + count]))
        at += 2 + count
    if at != len(numbers):
        raise ValueError(f"_extra_state: expected {at} numbers, found {len(numbers)}")
    for gemms, (steps, scales) in zip(all_gemms, found):
        try:
            gemms._core.restore(scales)
        except ValueError as error:
            raise ValueError(f"_extra_state: saved under another recipe: {error}") from None
        gemms.steps = steps


class HoldsGemms:
    """The part of a module that holds the state of its GEMMs in state_dict().

    The key `_extra_state` is there if later steps depend on it: under delayed scaling, and where
    gradients are rounded stochastically. A state_dict without it is loaded too.
    """

    def _all_gemms(self):
        raise NotImplementedError

    def get_extra_state(self) -> torch.Tensor:
        return pack(self._all_gemms())

    def set_extra_state(self, state) -> None:
        unpack(state, self._all_gemms())

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not any(gemms.has_state for gemms in self._all_gemms()):
            del destination[prefix + "_extra_state"]

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, *rest):
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, *rest)
        extra = prefix + "_extra_state"
        if extra in missing:
            missing.remove(extra)


def no_fast_path(module, inputs):
    """A hook without effect: where it is, torch.nn's Transformer modules call the layer's forward."""


def in_backward():
    """Whether a backward pass runs in this thread, as it does while checkpoints are recomputed."""
    return torch._C._current_graph_task_id() != -1


def _check_input(x, inner):
    if x.is_nested:
        raise TypeError("input: nested tensors are not supported by layers of numsim.torch")
    if x.dtype not in _DTYPES:
        raise TypeError(f"input: expected float32, bfloat16 or float16, found {x.dtype}")
    if x.shape[-1:] != (inner,):
        raise ValueError(f"input: expected shape (..., {inner}), found {tuple(x.shape)}")


def _refuse(what):
    raise RuntimeError(
        f"numsim.torch.Linear: {what}: layers of numsim have first derivatives by backward() and "
        "torch.autograd.grad only; numsim.torch.revert(model) makes plain layers of them"
    )


def _refuse_transforms():
    if torch._C._are_functorch_transforms_active():
        _refuse("does not work under the transforms of torch.func (grad, vmap, jvp, jacrev, ...)")
    if torch.jit.is_tracing():
        _refuse("cannot be traced by torch.jit")


def _is_batched(x):
    """Whether a tensor stands for many, as in a backward pass of many gradients at once."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(x) or functorch.is_legacy_batchedtensor(x)


class _Product(torch.autograd.Function):
    """y = x w^T with the layer's own forward and backward pass."""

    @staticmethod
    def forward(ctx, x, w, core, random, watcher):
        x_array, _ = float32_of(x.reshape(-1, x.shape[-1]), "input")
        w_array, _ = float32_of(w, "weight")
        y = np.empty((x_array.shape[0], w_array.shape[0]), np.float32)
        operands = None if watcher is None else []
        ctx.saved = core.forward(x_array, w_array, y, *random, operands)
        if watcher is not None:
            watcher.forward(operands)
        ctx.save_for_backward(w)
        ctx.core, ctx.random, ctx.watcher = core, random, watcher
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return torch.from_numpy(y).reshape(*x.shape[:-1], w.shape[0]).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        # With create_graph the results would seem to depend on g alone, and not on x and w: second
        # derivatives would be zero.
        if torch.is_grad_enabled():
            _refuse("has no second derivative (create_graph=True, as for a Hessian)")
        if _is_batched(g):
            _refuse("takes no batch of gradients (is_grads_batched, vectorize)")
        (w,) = ctx.saved_tensors
        g_array, _ = float32_of(g.reshape(-1, g.shape[-1]), "gradient")
        w_array, _ = float32_of(w, "weight")
        needs_x, needs_w = ctx.needs_input_grad[:2]
        dx = np.empty((g_array.shape[0], w_array.shape[1]), np.float32) if needs_x else None
        dw = np.empty(w_array.shape, np.float32) if needs_w else None
        operands = None if ctx.watcher is None else []
        ctx.core.backward(g_array, w_array, ctx.saved, dx, dw, *ctx.random, operands)
        if ctx.watcher is not None:
            ctx.watcher.backward(operands, dw)
        if needs_x:
            dx = torch.from_numpy(dx).reshape(ctx.shape).to(ctx.dtype)
        if needs_w:
            dw = torch.from_numpy(dw).to(w.dtype)
        return dx, dw, None, None, None

    @staticmethod
    def jvp(ctx, *tangents):
        _refuse("has no forward-mode derivative")
