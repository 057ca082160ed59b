"""Matrices that somebody else has quantised: codes with given scales, as checkpoints have them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from numsim import _core
from numsim._arrays import F32, Taken, held_by_float32, is_float32, take, take_codes, widened
from numsim._casts import narrowed
from numsim._formats import Format, FormatLike, format as format_of
from numsim._quantize import Quantized

# The usual blocks of a grid of scales, by the format of the scales: MX and NVFP4.
_USUAL = {"e8m0fnu": "block:32", "e4m3fn": "block:16"}


def from_codes(
    codes: Any,
    scales: Any,
    format: FormatLike | None = None,
    *,
    scaling: str | None = None,
    tensor_scale: Any = None,
    packed: bool = False,
) -> Quantized:
    """Returns the quantised matrix with these codes and scales: value = code value * scale.

    codes         a matrix of codes, as `decode` takes them, but bits above the format's width are
                  refused
    scales        float32 numbers, or an array of a smaller float dtype such as e8m0fnu; unsigned
                  bytes are codes of e8m0fnu. What float32 does not hold is refused
    format        of the codes, at most 16 bits; may be left out if their dtype tells it
    scaling       which codes share a scale: "tensor", "row", "column", "block:N" or "tile:RxC", with
                  partial blocks at the edges. None: the shape of the scales tells, (), (rows,),
                  (rows, 1) or (1, columns); a grid is "block:32" for scales of e8m0fnu (MX) and
                  "block:16" for those of e4m3fn (NVFP4), and must be named otherwise
    tensor_scale  a number that multiplies the scales, as in NVFP4. The accumulation mode mxf4nvf4 takes
                  the scales without it, and multiplies the sum by it
    packed        whether bytes hold two codes of 4 bits each, the first in the lower half

    Its `dequantize()`, `error(original)`, `T` and `@` are those of a matrix of `quantize`.
    """
    taken, array, f = _codes(codes, format, packed)
    if array.ndim > 2:
        raise ValueError(f"codes: expected a matrix, found {array.ndim} dimensions")
    (pair,), layout, rule, tensor = _matrices(array, scales, f, scaling, tensor_scale)
    own_codes, own_scales = (part.copy() for part in pair)
    core = _core.QuantizedMatrix(f.spec, layout, own_codes, own_scales, tensor)
    return Quantized(f, own_codes.shape, (layout, rule), taken.library, core, core)


def dequantize(
    codes: Any,
    scales: Any,
    format: FormatLike | None = None,
    *,
    scaling: str | None = None,
    tensor_scale: Any = None,
    packed: bool = False,
) -> Any:
    """Returns code value * scale, rounded to float32: an array of the kind of the codes.

    The arguments are those of `from_codes`. Codes of three and more dimensions are a stack of
    matrices in their last two; their scales have the same dimensions before, then those of a matrix.
    Scales whose shape is that of the first dimensions, then ones, are one per index of these.
    """
    taken, array, f = _codes(codes, format, packed)
    pairs, layout, _, _ = _matrices(array, scales, f, scaling, tensor_scale)
    out = np.empty(array.shape, F32)
    parts: Any = out.reshape(len(pairs), -1) if array.size else []
    for pair, part in zip(pairs, parts):
        _core.dequantize(_core.QuantizedMatrix(f.spec, layout, *pair), part)
    return taken.give(out)


def _codes(codes, format, packed):
    """(Taken, the codes as a contiguous array of the format's unsigned integers, the format)."""
    if str(getattr(codes, "dtype", "")).endswith("float4_e2m1fn_x2"):  # torch's pairs of codes
        codes, packed, format = codes.view(sys.modules["torch"].uint8), True, format or "e2m1fn"
    named = None if format is None else format_of(format)
    taken = take_codes(codes, "codes", named)
    f = taken.format or named
    if f is None:
        raise TypeError(f"format: missing, and a dtype of {taken.dtype.name} does not tell it")
    if named is not None and f.spec != named.spec:
        raise TypeError(f"format: {named.name}, but the codes are {f.name}")
    array = taken.array
    if packed:
        if f.bits != 4 or array.dtype.itemsize != 1:
            raise ValueError(f"packed: expected bytes with codes of 4 bits, {f.name} has {f.bits}")
        array = np.stack((array & 15, array >> 4), -1).reshape(*array.shape[:-1], -1)
    return taken, np.asarray(narrowed(array, f), order="C"), f


def _scales(scales):
    """The scales as contiguous float32, and the format of their codes or None."""
    if is_float32(scales):
        return scales, None
    array = np.asarray(scales) if isinstance(scales, np.ndarray) else scales
    if str(getattr(array, "dtype", "")).rpartition(".")[2] == "uint8":
        taken = take_codes(array, "scales")
        taken = Taken(taken.array, format_of("e8m0fnu"), taken.library)
    else:
        taken = take(array, "scales")
    if taken.format is not None:
        return widened(taken, "scales"), taken.format
    return held_by_float32(taken.array, "scales"), None


def _matrices(codes, scales, f: Format, scaling, tensor_scale):
    """((codes, scales) of each matrix, the layout of their scales, the rule of these, and the scale of
    the tensor, which they include, as an array of one number or None)."""
    if f.bits > 16:
        raise ValueError(f"format: expected at most 16 bits, {f.name} has {f.bits}")
    numbers, own = _scales(scales)
    usual = _USUAL.get(own.name, "") if own else ""
    try:
        count, rows, cols, layout = _core.place_scales(
            codes.shape, numbers.shape, scaling or "", usual
        )
    except _core.Error as error:
        raise ValueError(f"scales: {error}") from None
    tensor = None
    if tensor_scale is not None:
        factor, _ = _scales(tensor_scale)
        if factor.size != 1:
            raise ValueError(f"tensor_scale: expected one number, found {factor.size}")
        numbers = numbers * factor.reshape(())
        tensor = factor.reshape(1)
    if f.bits < 8 * codes.itemsize:
        wrong = np.flatnonzero(codes > (1 << f.bits) - 1)
        if wrong.size:
            code = codes.flat[wrong[0]]
            raise ValueError(
                f"codes: code {wrong[0]} is {code:#x}, which exceeds the {f.bits} bits of {f.name}"
            )
    parts = codes.reshape(count, rows, cols), numbers.reshape(count, numbers.size // max(count, 1))
    rule = "e8m0" if own and own.name == "e8m0fnu" else "given"
    return list(zip(*parts, strict=True)), layout, rule, tensor
