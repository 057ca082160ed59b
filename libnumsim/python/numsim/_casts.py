"""Casts: numbers to the values or codes of a format, and back."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from numsim import _core, _gradients
from numsim._arrays import (
    F32,
    F64,
    NUMPY,
    Exact,
    decoded,
    is_plain,
    take,
    take_codes,
    widened,
    words_of,
)
from numsim._formats import FormatLike, format_of, holds, numpy_dtype
from numsim._rounding import SR, plan_of

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
    if type(x) is not np.ndarray:
        f = format = format_of(format)
        if out is not None and (_gradients.is_followed(x) or _gradients.is_traced(x)):
            raise TypeError("out: only for NumPy arrays")
        if _gradients.is_followed(x):
            return _gradients.round_of_torch(
                x, lambda y: round(y, f, rounding=rounding, overflow=overflow)
            )
        if _gradients.is_traced(x):
            return _gradients.round_of_jax(x, round, f, rounding, overflow)
    f, plan, random, words, ordered = plan_of(format, rounding, overflow)
    array: Any = x  # of some kind, which type checkers cannot follow
    if out is None and is_plain(x):
        if words is not None:
            words = words_of(NUMPY, words, array.shape)
        result: Any = np.empty(array.shape, array.dtype)
        _core.round(plan, array, result, random, words)
        return result
    taken = take(x, "x", True)
    library, array = taken.library, taken.array
    if words is not None:
        words = words_of(library, words, taken.shape)
    if out is not None and library.on_device:
        raise TypeError("out: only for NumPy arrays")
    if taken.format is not None or type(array) is Exact:
        if out is not None:
            raise TypeError("out: only for float32 and float64 inputs")
        return _round_others(taken, f, plan, random, words)
    if out is not None:
        array = taken.packed()
        result = _checked_out(out, array, words)
        _core.round(plan, array, result, random, words)
        return result
    if library.on_device:
        with library.call() as context:
            return _rounded(taken, plan, random, words, context)
    if not ordered and not array.flags.c_contiguous and array.flags.f_contiguous:
        result = np.empty_like(array)
        _core.round(plan, array.T, result.T)
        return taken.give(result)
    return _rounded(taken, plan, random, words, None)


def _rounded(taken, plan, random, words, context):
    """`round` of float32 and float64."""
    library, array = taken.library, taken.packed()
    result = library.empty(array.shape, taken.dtype)
    _core.round(plan, library.shown(array), library.shown(result), random, words, context)
    return taken.give(library.finish(result))


def _round_others(taken, f, plan, random, words):
    """`round` of numbers that float64 does not hold, and of arrays whose dtype is a format."""
    library = taken.library
    if taken.format is None:
        codes = _encode_exact(taken.array, f, plan, random, words)
        return taken.give(decoded(library, codes, f).astype(F64))
    if not holds(taken.format, f):
        raise ValueError(
            f"x: {taken.format.name} does not hold every value of {f.name}; pass x as float32"
        )
    exact = plan_of(taken.format, "rne", "nonsaturate")[1]
    array, shown = taken.packed(), library.shown
    with library.call() as context:
        wide = library.empty(array.shape, F32)
        codes = library.empty(array.shape, taken.format.code_dtype)
        _core.decode(taken.format.spec, shown(array), shown(wide), context)
        _core.round(plan, shown(wide), shown(wide), random, words, context)
        _core.encode(exact, shown(wide), shown(codes), random, None, context)
        return taken.give(library.finish(codes), taken.format)


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


def encode(
    x: Any, format: FormatLike, *, rounding: str | SR = "rne", overflow: str = "nonsaturate"
) -> Any:
    """Returns the codes of numbers, as `round` rounds them: uint8, uint16 or uint32 by the width.

    Takes what `round` takes. The result is a NumPy array for NumPy arrays, lists and numbers;
    otherwise an array of x's kind with an integer dtype of that size. `cast` returns the dtype of
    ml_dtypes or torch instead.
    """
    if is_plain(x):
        return _codes_of_plain(x, format, rounding, overflow)
    taken, codes = _codes_of(x, format, rounding, overflow)
    return taken.give(codes)


def _codes_of_plain(x, format, rounding, overflow):
    f, plan, random, words, _ = plan_of(format, rounding, overflow)
    if words is not None:
        words = words_of(NUMPY, words, x.shape)
    codes = np.empty(x.shape, f.code_dtype)
    _core.encode(plan, x, codes, random, words)
    return codes


def _codes_of(x, format, rounding, overflow):
    """Returns (`x` as a Taken, its codes)."""
    f, plan, random, words, _ = plan_of(format, rounding, overflow)
    taken = take(x, "x", True)
    library = taken.library
    if words is not None:
        words = words_of(library, words, taken.shape)
    if type(taken.array) is Exact:
        return taken, _encode_exact(taken.array, f, plan, random, words)
    array = taken.packed() if taken.format is None else widened(taken, "x")
    if not library.on_device:
        return taken, _encoded(library, array, f, plan, random, words, None)
    with library.call() as context:
        return taken, _encoded(library, array, f, plan, random, words, context)


def _encoded(library, array, f, plan, random, words, context):
    """The codes of packed float32 or float64."""
    codes = library.empty(array.shape, f.code_dtype)
    _core.encode(plan, library.shown(array), library.shown(codes), random, words, context)
    return library.finish(codes)


def cast(
    x: Any, format: FormatLike, *, rounding: str | SR = "rne", overflow: str = "nonsaturate"
) -> Any:
    """Returns numbers rounded as by `round` in the dtype of the format.

    That is a dtype of ml_dtypes (NumPy) or of torch (tensors), such as float8_e4m3fn. Raises
    ValueError if there is none for the format; `encode` and `round` serve every format.
    """
    f = format_of(format)
    _gradients.refuse_followed(x, "x", "cast")
    if is_plain(x) and f.dtype is not None:
        return _codes_of_plain(x, f, rounding, overflow).view(f.dtype)
    taken, codes = _codes_of(x, f, rounding, overflow)
    if not hasattr(x, "__dlpack__") or isinstance(x, np.ndarray):
        numpy_dtype(f)
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
        f = format_of(format)
        if codes.dtype is f.code_dtype and codes.flags.c_contiguous:
            out = np.empty(codes.shape, F32)
            _core.decode(f.spec, codes, out)
            return out
    taken = take_codes(codes, "codes", None if format is None else format_of(format), True)
    f = _format_of_codes(format, taken)
    if not taken.library.on_device:
        array = np.asarray(narrowed(taken.array, f), order="C")
    elif taken.dtype == f.code_dtype:
        array = taken.packed()
    else:
        raise TypeError(
            f"codes: on a device, expected {f.code_dtype.name} for {f.name}, "
            f"found {taken.dtype.name}"
        )
    return taken.give(decoded(taken.library, array, f))


def _format_of_codes(format, taken):
    """The format of codes: the one that is given, or the one that their dtype tells."""
    known = taken.format
    if format is None:
        if known is None:
            raise TypeError(f"format: {taken.dtype.name} codes do not tell their format")
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
