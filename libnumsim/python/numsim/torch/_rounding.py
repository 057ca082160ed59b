"""Differentiable rounding: operators of PyTorch whose gradients pass straight through."""

from __future__ import annotations

import torch

import numsim as ns
from numsim import _settings
from numsim._formats import FormatLike, format as format_of
from numsim._gradients import round_of_torch
from numsim._rounding import SR
from numsim._streams import next_stream
from numsim.torch._sharding import shard_of

_WORD = 1 << 64


def round(
    x: torch.Tensor,
    format: FormatLike,
    *,
    rounding: str | SR = "rne",
    overflow: str = "nonsaturate",
) -> torch.Tensor:
    """Rounds a tensor to values of a format, once; its gradient passes straight through.

    x          tensor of any shape of float32, float64 or a dtype that holds every value of the
               format, on the CPU or a CUDA device; a DTensor whose parts are shards
    format, rounding, overflow   as in `numsim.round`

    Returns a tensor of x's shape and dtype. Stochastic rounding draws the bits of an element by its
    index in the whole tensor, so that a DTensor has the bits of the tensor that it is a part of;
    `SR(stream=)` must then be the same in every process. torch.compile takes the call into its
    graph; with stochastic rounding that needs `SR(stream=)` or `SR(random_bits=)`, because all runs
    of one graph would share the bits of one stream. Without them there is a graph break.
    """
    name = format_of(format).name
    text, numbers, bits = _as_arguments(rounding)
    return _of_shards(
        x, bits, numbers, lambda y, b, n: torch.ops.numsim.round(y, b, name, text, overflow, n)
    )


def fake_quantize(
    x: torch.Tensor,
    format: FormatLike,
    *,
    scaling: str = "tensor",
    scale: float | None = None,
    rounding: str | SR = "rne",
    overflow: str = "saturate",
) -> torch.Tensor:
    """Returns the values that quantising a tensor would leave of it; its gradient passes straight through.

    x          tensor (..., n) of float32, bfloat16 or float16, taken as rows of n elements, on the
               CPU or a CUDA device; a DTensor whose parts are shards is quantised as a whole
    format, scaling, scale, rounding, overflow   as in `numsim.quantize`

    The values are those of `numsim.quantize(x, ...).dequantize()`, rounded to x's dtype. Elements
    beyond the largest value pass their gradients too. A DTensor is gathered in every process.
    torch.compile takes the call into its graph, under the conditions of `round`.
    """
    if not isinstance(scaling, str):
        raise TypeError(f"scaling: expected a text, found {type(scaling).__name__}")
    name = format_of(format).name
    text, numbers, bits = _as_arguments(rounding)
    if bits is not None:
        raise ValueError("rounding: fake_quantize takes random bits of a seed and stream only")
    scale = None if scale is None else _settings.real(scale, "scale")
    shard = shard_of(x)
    if shard is None:
        return torch.ops.numsim.fake_quantize(x, name, scaling, scale, text, overflow, numbers)
    whole = torch.ops.numsim.fake_quantize(
        shard.whole(), name, scaling, scale, text, overflow, numbers
    )
    return shard.restore(round_of_torch(shard.local, lambda _: shard.cut(whole)))


def _as_arguments(rounding):
    """Returns (text, numbers, random bits or None) of a rounding, as operators take it.

    The numbers of an SR are its bits, seed, stream and first index, as signed integers of 64 bits.
    """
    if isinstance(rounding, str) and rounding == "sr":
        rounding = SR()
    if not isinstance(rounding, SR):
        if not isinstance(rounding, str):
            found = type(rounding).__name__
            raise TypeError(f"rounding: expected a name or numsim.SR, found {found}")
        return str(rounding), [], None
    if rounding.random_bits is not None:
        return rounding.variant, [rounding.bits], rounding.random_bits
    stream = rounding.stream
    if stream is None:
        if torch.compiler.is_compiling():
            raise ValueError(
                "rounding: torch.compile traces this call once for many runs, which would share "
                "their random bits: pass SR(stream=...) or SR(random_bits=...)"
            )
        stream = next_stream(rounding.seed)
    numbers = (rounding.bits, rounding.seed, stream, rounding.first_index)
    return rounding.variant, [_signed(n) for n in numbers], None


def _signed(n):
    return n - _WORD if n >= _WORD // 2 else n


def _rounding_of(text, numbers, bits):
    """The inverse of `_as_arguments`."""
    if not numbers:
        return text
    if bits is not None:
        return SR(bits=numbers[0], variant=text, random_bits=bits)
    count, seed, stream, first = (n % _WORD for n in numbers)
    return SR(bits=count, seed=seed, stream=stream, first_index=first, variant=text)


def _of_shards(x, bits, numbers, call):
    """Returns call(x, bits, numbers), for a DTensor with the indices of its elements in the whole."""
    shard = shard_of(x)
    if shard is None:
        return call(x, bits, numbers)
    local, bits = shard.local, None if bits is None else _local_bits(bits, shard)
    if bits is not None or not numbers:
        return shard.restore(call(local, bits, numbers))
    first = shard.first_index()
    if first is not None:
        return shard.restore(call(local, None, [*numbers[:3], _signed(numbers[3] % _WORD + first)]))
    # Elements that do not follow one another in the whole are rounded at their places in it.
    with torch.no_grad():
        rounded = shard.cut(call(shard.placed(), None, numbers))
    return shard.restore(round_of_torch(local, lambda _: rounded))


def _local_bits(bits, shard):
    found = shard_of(bits)
    if found is None or found.placements != shard.placements:
        raise ValueError("rounding: random_bits: expected a DTensor with the placements of x")
    return found.local


_LIBRARY = torch.library.Library("numsim", "FRAGMENT")
_LIBRARY.define(
    "round(Tensor x, Tensor? bits, str format, str rounding, str overflow, SymInt[] numbers)"
    " -> Tensor"
)
_LIBRARY.define(
    "fake_quantize(Tensor x, str format, str scaling, float? scale, str rounding, str overflow,"
    " SymInt[] numbers) -> Tensor"
)


def _round(x, bits, format, rounding, overflow, numbers):
    return ns.round(x, format, rounding=_rounding_of(rounding, numbers, bits), overflow=overflow)


def _fake_quantize(x, format, scaling, scale, rounding, overflow, numbers):
    rows = x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)
    how = {"scaling": scaling, "rounding": _rounding_of(rounding, numbers, None)}
    if scale is not None:
        how["scale"] = scale
    values = ns.quantize(rows, format, overflow=overflow, **how).dequantize()
    return torch.as_tensor(values).reshape(x.shape).to(x.dtype)


def _same_shape(x, *_):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _straight(ctx, gradient):
    return gradient, *[None] * (ctx.arguments - 1)


def _count_arguments(ctx, inputs, output):
    ctx.arguments = len(inputs)


for _name, _call in (("round", _round), ("fake_quantize", _fake_quantize)):
    _LIBRARY.impl(_name, _call, "CompositeExplicitAutograd")
    torch.library.register_fake(f"numsim::{_name}", _same_shape, lib=_LIBRARY)
    torch.library.register_autograd(
        f"numsim::{_name}", _straight, setup_context=_count_arguments, lib=_LIBRARY
    )
