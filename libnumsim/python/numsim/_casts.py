"""Casts: numbers to the values or codes of a format, and back."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from numsim import _core, _device, _gradients
from numsim._arrays import F32, F64, Exact, is_plain, take, take_codes, widened
from numsim._formats import Format, FormatLike, format as format_of, holds
from numsim._rounding import SR, plan_of, plan_there, require_words

ArrayT = TypeVar("ArrayT")  # a kind of arrays: what comes in goes out


def round(
    x: ArrayT,
    format: FormatLike,
    *,
    rounding: str | SR = "rne",
    overflow: str = "nonsaturate",
    out: np.ndarray | None = None,
) -> ArrayT:
    """Rounds numbers to values of a format, once, from their exact values.

    x          array of any shape of float64, float32, float16 or a dtype of ml_dtypes or torch that
               is a format, of long doubles or signed integers (or uint64); a number of Python, such
               as an int of any size, a Fraction or a Decimal; or a list of numbers
    format     the format to round to, see `numsim.format`
    rounding   "rne", "rna", "rtz", "rtp", "rtn", "odd", "sr", or `SR(...)`
    overflow   "nonsaturate", "saturate" or "propagate" (docs/rounding.md)
    out        a C-contiguous NumPy array of the shape and dtype of x for the result; may be x, and
               does not overlap it otherwise

    Returns an array of x's kind, shape and dtype; of integers, and of numbers of Python, float64.
    NaN becomes the NaN of the format, or its largest value if it has none. float16 and smaller
    inputs must be able to hold every value of the format.

    A gradient passes straight through, as if rounding were the identity: that of a tensor of
    PyTorch that requires one, and that of an array of JAX under jit, grad and so on. Under JAX's
    transformations, stochastic rounding takes `SR(random_bits=)` or `SR(stream=)`.
    """
    f = format if type(format) is Format else format_of(format)
    if type(x) is not np.ndarray:
        if out is not None and (_gradients.is_followed(x) or _gradients.is_traced(x)):
            raise TypeError("out: only for NumPy arrays")
        if _gradients.is_followed(x):
            return _gradients.round_of_torch(
                x, lambda y: round(y, f, rounding=rounding, overflow=overflow)
            )
        if _gradients.is_traced(x):
            return _gradients.round_of_jax(x, round, f, rounding, overflow)
    if _device.on_device(x):
        return _round_on_device(x, f, rounding, overflow, out)
    plan, random, words, ordered = plan_of(f, rounding, overflow)
    array: Any = x  # of some kind, which type checkers cannot follow
    if out is None and is_plain(x):
        require_words(words, array.shape)
        result: Any = np.empty_like(array)
        _core.round(plan, array, result, random, words)
        return result
    taken = take(x, "x")
    array = taken.array
    require_words(words, array.shape)
    if taken.format is not None:
        return _round_codes(taken, f, plan, (random, words), out)
    if type(array) is Exact:
        return _round_exact(taken, f, (plan, random, words), out)
    if not ordered and array.flags.f_contiguous and not array.flags.c_contiguous and out is None:
        result = np.empty_like(array)
        _core.round(plan, array.T, result.T)
        return taken.give(result, None)
    array = np.asarray(array, order="C")
    if out is None:
        result = np.empty(array.shape, array.dtype)
    else:
        result = _checked_out(out, array, words)
    _core.round(plan, array, result, random, words)
    return result if out is not None else taken.give(result, None)


def _checked_out(out, array, words):
    if not isinstance(out, np.ndarray) or not out.flags.c_contiguous or not out.flags.writeable:
        raise TypeError("out: expected a writable C-contiguous NumPy array")
    if out.shape != array.shape or out.dtype != array.dtype:
        order = "" if out.dtype.isnative else " in another byte order"
        raise ValueError(
            f"out: expected {array.dtype.name} of shape {array.shape}, "
            f"found {out.dtype.name}{order} of shape {out.shape}"
        )
    same = out.ctypes.data == array.ctypes.data  # and so is their size
    if not same and np.may_share_memory(out, array):
        raise ValueError("out: overlaps x; expected x itself, or other memory")
    if words is not None and np.may_share_memory(out, words):
        raise ValueError("out: overlaps random_bits")
    return out


def _encode_exact(numbers, f, plan, random, words):
    codes = np.empty(numbers.shape, f.code_dtype)
    arrays = (np.asarray(a, order="C") for a in (numbers.words, numbers.exponents))
    _core.encode_exact(plan, *arrays, codes, random, words)
    return codes


def _round_exact(taken, f, how, out):
    if out is not None:
        raise TypeError("out: only for float32 and float64 inputs")
    codes = _encode_exact(taken.array, f, *how)
    return taken.give(_decoded(codes, f).astype(F64), None)


def _round_codes(taken, f, plan, random, out):
    if out is not None:
        raise TypeError("out: only for float32 and float64 inputs")
    exact = _exact_plan(taken.format, f)
    wide = widened(taken, "x")
    _core.round(plan, wide, wide, *random)
    codes = np.empty(wide.shape, taken.format.code_dtype)
    _core.encode(exact, wide, codes)
    return taken.give(codes, taken.format)


def _exact_plan(container, f):
    """The plan by which the format `container` stores values of `f`. Requires that it holds all."""
    if not holds(container, f):
        raise ValueError(
            f"x: {container.name} does not hold every value of {f.name}; pass x as float32"
        )
    return plan_of(container, "rne", "nonsaturate")[0]


def _round_on_device(x, f, rounding, overflow, out):
    if out is not None:
        raise TypeError("out: only for NumPy arrays")
    plan, random = plan_there(f, rounding, overflow)
    there = _device.take(x, "x")
    if there.format is None:
        return _device.round(there, plan, random, rounding)
    return _device.round_codes(there, plan, _exact_plan(there.format, f), random, rounding)


def encode(
    x: Any, format: FormatLike, *, rounding: str | SR = "rne", overflow: str = "nonsaturate"
) -> Any:
    """Returns the codes of numbers, as `round` rounds them: uint8, uint16 or uint32 by the width.

    Takes what `round` takes. The result is a NumPy array for NumPy arrays, lists and numbers;
    otherwise an array of x's kind with an integer dtype of that size. `cast` returns the dtype of
    ml_dtypes or torch instead.
    """
    f = format if type(format) is Format else format_of(format)
    if is_plain(x):
        return _codes_of_plain(x, f, rounding, overflow)
    if _device.on_device(x):
        return _codes_on_device(x, f, rounding, overflow)[1]
    taken, codes = _codes_of(x, f, rounding, overflow)
    return taken.give(codes, None)


def _codes_of_plain(x, f, rounding, overflow):
    plan, random, words, _ = plan_of(f, rounding, overflow)
    require_words(words, x.shape)
    codes = np.empty(x.shape, f.code_dtype)
    _core.encode(plan, x, codes, random, words)
    return codes


def _codes_of(x, f, rounding, overflow):
    plan, random, words, _ = plan_of(f, rounding, overflow)
    taken = take(x, "x")
    require_words(words, taken.array.shape)
    if type(taken.array) is Exact:
        return taken, _encode_exact(taken.array, f, plan, random, words)
    if taken.format is None:
        array = np.asarray(taken.array, order="C")
    else:
        array = widened(taken, "x")
    codes = np.empty(array.shape, f.code_dtype)
    _core.encode(plan, array, codes, random, words)
    return taken, codes


def _codes_on_device(x, f, rounding, overflow):
    plan, random = plan_there(f, rounding, overflow)
    there = _device.take(x, "x")
    return there, _device.encode(there, f, plan, random, rounding)


def cast(
    x: Any, format: FormatLike, *, rounding: str | SR = "rne", overflow: str = "nonsaturate"
) -> Any:
    """Returns numbers rounded as by `round` in the dtype of the format.

    That is a dtype of ml_dtypes (NumPy) or of torch (tensors), such as float8_e4m3fn. Raises
    ValueError if there is none for the format; `encode` and `round` serve every format.
    """
    f = format if type(format) is Format else format_of(format)
    _gradients.refuse_followed(x, "x", "cast")
    if is_plain(x) and f.dtype is not None:
        return _codes_of_plain(x, f, rounding, overflow).view(f.dtype)
    if _device.on_device(x):
        there, codes = _codes_on_device(x, f, rounding, overflow)
        return there.library.as_format(codes, f)
    taken, codes = _codes_of(x, f, rounding, overflow)
    if f.dtype is None and (not hasattr(x, "__dlpack__") or isinstance(x, np.ndarray)):
        raise ValueError(
            f"format: there is no NumPy dtype for {f.name}, or ml_dtypes is not installed; "
            "encode and round serve every format"
        )
    return taken.give(codes, f)


def decode(codes: Any, format: FormatLike | None = None) -> Any:
    """Returns the exact values of codes as float32, an array of the same kind and shape.

    codes    integers. In the format's own dtype (`Format.code_dtype`), bits above its width are
             ignored; in host memory other dtypes of integers are taken too, and what is no code of
             the format is refused. Or an array whose dtype is a format, such as float8_e4m3fn or
             int8, whose elements are the codes. Or raw bytes of the format's width (dtype void), as
             NumPy reads dtypes that it does not know
    format   the format of the codes; may be left out if the dtype tells it
    """
    if type(codes) is np.ndarray and format is not None:
        f = format if type(format) is Format else format_of(format)
        if codes.dtype is f.code_dtype and codes.flags.c_contiguous:
            return _decoded(codes, f)
    if _device.on_device(codes):
        there = _device.take_codes(codes, "codes")
        return _device.decode(there, _format_of_codes(format, there))
    taken = take_codes(codes, "codes", None if format is None else format_of(format))
    f = _format_of_codes(format, taken)
    array = np.asarray(narrowed(taken.array, f), order="C")
    return taken.give(_decoded(array, f), None)


def _decoded(codes, f):
    out = np.empty(codes.shape, F32)
    _core.decode(f.spec, codes, out)
    return out


def _format_of_codes(format, taken):
    """The format of codes: the one that is given, or the one that their dtype tells."""
    known = taken.format
    if format is None:
        if known is None:
            raise TypeError(f"format: {taken.dtype_name} codes do not tell their format")
        return known
    f = format_of(format)
    if known is not None and known is not f:
        raise ValueError(f"format: the dtype of codes is {known.name}, not {f.name}")
    return f


def narrowed(array, f):
    """Returns codes in the integer dtype of the format. Those of another dtype have to fit it."""
    if array.dtype == f.code_dtype:
        return array
    if array.size and (array.min() < 0 or array.max() >= 1 << f.bits):
        raise ValueError(f"codes: expected 0 to {(1 << f.bits) - 1}, the codes of {f.name}")
    return array.astype(f.code_dtype)
