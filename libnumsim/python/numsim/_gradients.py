"""Gradients of rounding: straight through, as if rounding were the identity.

PyTorch's autograd and JAX's transformations (jit, grad, vmap, jvp) see `numsim.round` so; nothing
else of this package has a gradient, except the layers of numsim.torch.
"""

from __future__ import annotations

import dataclasses
import functools
import sys

import numpy as np


def is_traced(x):
    """Returns whether `x` stands for an array of JAX in a transformation."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def is_followed(x):
    """Returns whether `x` is a tensor of PyTorch whose gradient is wanted."""
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and isinstance(x, torch.Tensor)
        and x.requires_grad
        and torch.is_grad_enabled()
    )


def refuse_followed(x, name, call):
    """Raises ValueError if `x` is a tensor of PyTorch whose gradient is wanted."""
    if is_followed(x):
        raise ValueError(
            f"{name}: requires a gradient, which {call} does not give: pass {name}.detach(), or "
            "call it under torch.no_grad(). numsim.round passes gradients straight through"
        )


def round_of_torch(x, call):
    """Returns call(x without gradient) with the gradient of x."""
    return _torch_function().apply(x, call)


@functools.cache
def _torch_function():
    torch = sys.modules["torch"]

    class StraightThrough(torch.autograd.Function):
        @staticmethod
        def forward(x, call):
            return call(x.detach())

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):
            return gradient, None

        @staticmethod
        def jvp(ctx, tangent, _):
            return tangent.clone()

    return StraightThrough


def round_of_jax(x, round, format, rounding, overflow):
    """Returns the rounding of an array that JAX traces: a call of the host when the code runs."""
    if not np.issubdtype(x.dtype, np.floating) and "float" not in x.dtype.name:
        raise TypeError(f"x: expected an array of floats, found {x.dtype.name}")
    words = None
    if dataclasses.is_dataclass(rounding):
        if rounding.random_bits is not None:
            words = sys.modules["jax"].numpy.asarray(rounding.random_bits)
            if words.dtype.kind != "u" or words.shape != x.shape:
                raise ValueError(
                    f"rounding: random_bits: expected unsigned integers of shape {x.shape}, found "
                    f"{words.dtype.name} of shape {words.shape}"
                )
            rounding = dataclasses.replace(rounding, random_bits=None)
    draws = rounding == "sr" or getattr(rounding, "stream", 0) is None
    if words is None and draws:
        raise ValueError(
            "rounding: JAX traces this call once for many runs, which would share their random "
            "bits: pass SR(random_bits=jax.random.bits(key, x.shape, 'uint32')), or SR(stream=...) "
            "if every run may round alike"
        )
    return _jax_function()(x, words, round, format, rounding, overflow)


@functools.cache
def _jax_function():
    jax = sys.modules["jax"]

    @functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4, 5))
    def straight_through(x, words, round, format, rounding, overflow):
        def host(x, words):
            how = rounding
            if words is not None:
                how = dataclasses.replace(rounding, random_bits=np.asarray(words))
            return round(np.asarray(x), format, rounding=how, overflow=overflow)

        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(host, result, x, words, vmap_method="broadcast_all")

    @straight_through.defjvp
    def rule(round, format, rounding, overflow, primals, tangents):
        return straight_through(*primals, round, format, rounding, overflow), tangents[0]

    return straight_through
