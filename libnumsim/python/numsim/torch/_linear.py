"""The library's linear layer as a module of PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from numsim import _core
from numsim._arrays import float32_of
from numsim._linear import LinearRecipe, RecipeLike, recipe_of

_MAX_LAYERS = 4096  # of a model, as `numsim train` numbers the streams of its layers
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _in_backward():
    """Whether a backward pass runs in this thread, as it does while checkpoints are recomputed."""
    return torch._C._current_graph_task_id() != -1


def between_graphs(function):
    """Makes torch.compile call a function as it is, between two graphs."""
    reason = "numsim computes outside of PyTorch"
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # PyTorch before 2.7 takes no reason
        return torch.compiler.disable(function)


class _Product(torch.autograd.Function):
    """y = x w^T with the layer's own forward and backward pass."""

    @staticmethod
    def forward(ctx, x, w, layer, random):
        x_array, _ = float32_of(x.reshape(-1, x.shape[-1]), "input")
        w_array, _ = float32_of(w, "weight")
        y = np.empty((x_array.shape[0], w_array.shape[0]), np.float32)
        ctx.saved = layer.forward(x_array, w_array, y, *random)
        ctx.save_for_backward(w)
        ctx.layer, ctx.random = layer, random
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return torch.from_numpy(y).reshape(*x.shape[:-1], w.shape[0]).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        g_array, _ = float32_of(g.reshape(-1, g.shape[-1]), "gradient")
        w_array, _ = float32_of(w, "weight")
        needs_x, needs_w = ctx.needs_input_grad[:2]
        dx = np.empty((g_array.shape[0], w_array.shape[1]), np.float32) if needs_x else None
        dw = np.empty(w_array.shape, np.float32) if needs_w else None
        ctx.layer.backward(g_array, w_array, ctx.saved, dx, dw, *ctx.random)
        if needs_x:
            dx = torch.from_numpy(dx).reshape(ctx.shape).to(ctx.dtype)
        if needs_w:
            dw = torch.from_numpy(dw).to(w.dtype)
        return dx, dw, None, None


def _no_fast_path(module, inputs):
    """A hook without effect: where it is, nn.TransformerEncoderLayer calls the layer's forward."""


class Linear(torch.nn.Linear):
    """nn.Linear whose three GEMMs have the precision of a recipe (docs/linear.md).

    recipe   a name, "switchback-int8", or a `LinearRecipe`
    seed, number   the random bits of stochastically rounded gradients are a function of the seed,
             the number of the layer (0 to 4095) and the step. Each forward pass in training mode is
             a step of its own; `steps` counts them

    Inputs are float32, bfloat16 or float16 of any shape (..., in_features); the computation takes
    them as float32, and its results are rounded to the dtypes of the input and of the weight. In
    float32, y without bias, dx and dw have the bits of the C++ layer. The sum over tokens that is
    the bias' gradient is PyTorch's. In evaluation mode, steps and delayed scales stay as they are.
    state_dict() holds both; a state_dict of nn.Linear is loaded too.

    torch.compile has a graph break at each layer. Autocast does not reach into a layer: its
    precision is the recipe's, and its result has the dtype of its input. A forward pass that
    torch.utils.checkpoint repeats is the layer's newest one, with its step and its scales.
    """

    recipe: LinearRecipe
    _scales: list[float]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        recipe: RecipeLike = "switchback-int8",
        *,
        seed: int = 0,
        number: int = 0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        start(self, recipe, seed, number)

    @between_graphs
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dtype not in _DTYPES:
            raise TypeError(f"input: expected float32, bfloat16 or float16, found {input.dtype}")
        if input.shape[-1:] != (self.in_features,):
            raise ValueError(
                f"input: expected shape (..., {self.in_features}), found {tuple(input.shape)}"
            )
        if not self.training:
            y = self._at(input, self.steps, self._layer.save())
        elif _in_backward() and self.steps > 0:
            y = self._at(input, self.steps - 1, self._layer.save(), self._scales)
        else:
            self._scales = self._layer.save()
            y = self._at(input, self.steps)
            self.steps += 1
        return y if self.bias is None else y + self.bias.to(y.dtype)

    def _at(self, input, step, after=(), before=()):
        """The product at a step. Scales are set to `before` and `after` it, unless empty."""
        if before:
            self._layer.restore(before)
        y = _Product.apply(
            input, self.weight, self._layer, (self._seed, step * _MAX_LAYERS + self.number)
        )
        if after:
            self._layer.restore(after)
        return y

    def get_extra_state(self) -> dict:
        return {"steps": self.steps, "scales": self._layer.save()}

    def set_extra_state(self, state: dict) -> None:
        self._layer.restore(state["scales"])
        self.steps = state["steps"]

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, *rest):
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, *rest)
        extra = prefix + "_extra_state"
        if extra in missing:  # saved from nn.Linear
            missing.remove(extra)

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_layer"] = self._layer.save()
        return state

    def __setstate__(self, state):
        scales = state.pop("_layer")
        super().__setstate__(state)
        self._layer = _core.Linear(self.recipe._core)
        self._layer.restore(scales)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, recipe={self.recipe!r}"


def start(module, recipe, seed, number):
    """Gives a module of class Linear, just made from nn.Linear, what is its own."""
    if not 0 <= number < _MAX_LAYERS:
        raise ValueError(f"number: expected 0 to {_MAX_LAYERS - 1}, found {number}")
    module.recipe = recipe_of(recipe)
    module.number = number
    module.steps = 0
    module._scales = []  # of delayed scaling, before the newest forward pass in training mode
    module._seed = _core.linear_seed(seed)
    module._layer = _core.Linear(module.recipe._core)
    module._fast_path = module.register_forward_pre_hook(_no_fast_path)


def stop(module):
    """Takes away what `start` gave."""
    module._fast_path.remove()
    for name in ("recipe", "number", "steps", "_scales", "_seed", "_layer", "_fast_path"):
        delattr(module, name)
