"""The products of linear layers as operators of PyTorch, torch.ops.numsim.linear.

torch.compile puts them into its graphs as they are. Each changes the `state` of its layer (Gemms),
which tells compiled code that passes have an order.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from typing import Any

import torch

from numsim import _core
from numsim._linear import LinearRecipe
from numsim.torch._inductor import results_are_aligned

_numbers = itertools.count()
_layers: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # {number: Gemms}
_recipes: dict[str, LinearRecipe] = {}  # by key_of


def new_state(gemms, steps):
    """Returns the state of a new layer: its number and its steps."""
    number = next(_numbers)
    _layers[number] = gemms
    with torch.inference_mode(False):
        return torch.tensor([number, steps], device="cpu")


def key_of(recipe):
    """Returns the text that stands for a recipe in graphs. Layers with equal recipes share code."""
    key = ",".join(f"{name}={value}" for name, value in sorted(recipe.settings.items()))
    _recipes.setdefault(key, recipe)
    return key


def room_to_save(key, x, w):
    """Returns memory for what a forward pass saves."""
    return torch.empty(_saved(key, x, w)[0], dtype=torch.uint8, device=x.device)


def _saved(key, x, w):
    """Returns the bytes that a forward pass saves, and whether its backward pass reads x besides.

    Numbers of tokens that a compiler took for variable become fixed.
    """
    on_device = x.is_cuda
    bf16 = [on_device and t.dtype == torch.bfloat16 for t in (x, w)]
    tokens = int(math.prod(x.shape[:-1]))
    return _saved_of(key, tokens, int(w.shape[1]), int(w.shape[0]), on_device, *bf16)


@functools.lru_cache(maxsize=4096)
def _saved_of(key, tokens, inputs, outputs, on_device, x_bf16, w_bf16):
    return _planner(key, on_device).saved_bytes(tokens, inputs, outputs, x_bf16, w_bf16)


@functools.cache
def _planner(key, on_device):
    """A layer of the recipe that is asked for sizes alone."""
    return _core.Linear(_recipes[key]._core, _any_context() if on_device else None)


@functools.cache
def _any_context():
    return _core.DeviceContext(0)


def _refuse(what):
    raise RuntimeError(
        f"numsim.torch.Linear: {what}: layers of numsim have first derivatives by backward() and "
        "torch.autograd.grad only; numsim.torch.revert(model) makes plain layers of them"
    )


def refuse_transforms():
    if torch._C._are_functorch_transforms_active():
        _refuse("does not work under the transforms of torch.func (grad, vmap, jvp, jacrev, ...)")
    if torch.jit.is_tracing():
        _refuse("cannot be traced by torch.jit")


def _is_batched(x):
    """Whether a tensor stands for many, as in a backward pass of many gradients at once."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(x) or functorch.is_legacy_batchedtensor(x)


def linear(x, w, state, key, training):
    """Returns x w^T of the layer with that state, which counts a step if training."""
    if _is_seen(x, w):
        return torch.ops.numsim.linear(x, w, state, key, training)[0]
    return _Linear.apply(x, w, state, key, training, True)[0]


def _is_seen(x, w):
    """Whether somebody looks at operators: a compiler, a mode, a class of tensors of its own.

    Otherwise the operator is not called, but what it does: that saves half of a small call.
    """
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return True
    return not {type(x), type(w)} <= {torch.Tensor, torch.nn.Parameter}


_LIBRARY = torch.library.Library("numsim", "DEF")
_STRIDES = torch.Tag.needs_fixed_stride_order  # a compiler keeps matrices row by row
_LIBRARY.define(
    "linear(Tensor x, Tensor w, Tensor(a!) state, str key, bool training)"
    " -> (Tensor y, Tensor memory, Tensor step)",
    tags=_STRIDES,
)
_LIBRARY.define(
    "linear_backward(Tensor g, Tensor w, Tensor? x, Tensor memory, Tensor step, Tensor(a!) state,"
    " bool needs_x, bool needs_w) -> (Tensor dx, Tensor dw)",
    tags=_STRIDES,
)


def _layer_of(state):
    return _layers[state.numpy()[0]]


def _forward(x, w, state, key, training):
    return _layer_of(state).forward(x, w, state.numpy(), training)


def _backward(g, w, x, memory, step, state, needs_x, needs_w):
    gradients = _layer_of(state).backward(g, w, x, memory, step, needs_x, needs_w)
    return tuple(g.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _forward_shapes(x, w, state, key, training):
    results_are_aligned((torch.ops.numsim.linear.default, torch.ops.numsim.linear_backward.default))
    y = x.new_empty((*x.shape[:-1], w.shape[0]))
    return y, room_to_save(key, x, w), state.new_empty(1)


def _backward_shapes(g, w, x, memory, step, state, needs_x, needs_w):
    dx = g.new_empty((*g.shape[:-1], w.shape[1]) if needs_x else 0)
    return dx, w.new_empty(w.shape) if needs_w else g.new_empty(0)


class _Linear(torch.autograd.Function):
    """The operator with the layer's own backward pass.

    What that needs is in tensors of PyTorch, so that its hooks, checkpoints and allocator see it.
    """

    @staticmethod
    def forward(ctx, x, w, state, key, training, direct=False):
        if direct:
            y, memory, step = _forward(x, w, state, key, training)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                y, memory, step = torch.ops.numsim.linear(x, w, state, key, training)
        ctx.save_for_backward(w, memory, step, *([x] if _saved(key, x, w)[1] else []))
        ctx.mark_non_differentiable(memory, step)
        ctx.set_materialize_grads(False)
        ctx.state, ctx.direct = state, direct
        return y, memory, step

    @staticmethod
    def backward(ctx, g, *_):
        if g is None:
            return (None,) * 6
        # With create_graph the results would seem to depend on g alone, and not on x and w: second
        # derivatives would be zero.
        if torch.is_grad_enabled():
            _refuse("has no second derivative (create_graph=True, as for a Hessian)")
        if _is_batched(g):
            _refuse("takes no batch of gradients (is_grads_batched, vectorize)")
        w, memory, step, *kept = ctx.saved_tensors
        x = kept[0] if kept else None
        needs = ctx.needs_input_grad[:2]
        backward = _backward if ctx.direct else torch.ops.numsim.linear_backward
        results = backward(g, w, x, memory, step, ctx.state, *needs)
        dx, dw = (result if needed else None for result, needed in zip(results, needs))
        return dx, dw, None, None, None, None

    @staticmethod
    def jvp(ctx, *tangents):
        _refuse("has no forward-mode derivative")


_LIBRARY.impl("linear", _forward, "CompositeExplicitAutograd")
_LIBRARY.impl("linear", _Linear.apply, "Autograd")
_LIBRARY.impl("linear_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("numsim::linear", _forward_shapes, lib=_LIBRARY)
torch.library.register_fake("numsim::linear_backward", _backward_shapes, lib=_LIBRARY)
