"""Numbers that enter, exactly.

Numbers of Python, integers and long doubles become float64 where float64 holds each of them. Others
become `Exact`, which the library rounds once, from their exact values, as it rounds results of
arithmetic.
"""

from __future__ import annotations

import ctypes
import decimal
import math
import numbers

import numpy as np

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
LONG = np.dtype(np.longdouble)

_KEPT = 62  # bits of a significand; more are rounded to odd (Unrounded::kKeptBits of the library)
_NAN, _INFINITY = 1 << 20, (1 << 20) - 1  # in place of an exponent
_FAR = 1 << 19  # no format has numbers so large or so small
_SIGN = np.uint64(1 << 63)
_MOST_DIGITS = 100_000  # a decimal exponent beyond it is far outside of every format


class Exact:
    """Numbers of which float64 does not hold each one.

    The magnitude of each is the low 63 bits of `words` times 2^`exponents`, exact or rounded to odd;
    the top bit is the sign.
    """

    __slots__ = ("words", "exponents")

    def __init__(self, words, exponents):
        self.words = words
        self.exponents = exponents

    shape = property(lambda self: self.words.shape)


def is_number(x):
    """Returns whether `x` is a number of Python, as far as its type tells; False for a bool."""
    return _is_number_type(type(x))


def _is_number_type(kind):
    if kind is int or kind is float:
        return True
    if issubclass(kind, (bool, np.bool_, np.complexfloating)):
        return False
    if issubclass(kind, np.generic) and not issubclass(kind, (np.integer, np.floating)):
        return hasattr(kind, "dtype") and "float" in np.dtype(kind).name  # of ml_dtypes
    return issubclass(kind, (int, float, np.generic, numbers.Rational, decimal.Decimal))


def of_objects(x, name):
    """The numbers of an array of Python objects, as float64 or Exact. Refuses what is no number."""
    flat = x.ravel().tolist()
    kinds = set(map(type, flat))
    for kind in kinds:
        if kind in (list, tuple, np.ndarray):
            raise TypeError(f"{name}: expected rows of equal length")
        if not _is_number_type(kind):
            raise TypeError(f"{name}: expected numbers, found {kind.__name__}")
    if kinds <= {float}:
        return np.array(flat, F64).reshape(x.shape)
    flat = [int(v) if isinstance(v, np.integer) else v for v in flat]
    doubles = _doubles(flat, name)
    if doubles is not None:
        return np.array(doubles, F64).reshape(x.shape)
    pairs = [_word(v) for v in flat]
    words = np.array([word for word, _ in pairs], np.uint64).reshape(x.shape)
    return Exact(words, np.array([e for _, e in pairs], np.int32).reshape(x.shape))


def _doubles(values, name):
    """The numbers as float64, or None if float64 does not hold each of them."""
    doubles = []
    for value in values:
        try:
            double = float(value)
        except OverflowError:
            return None
        except ValueError:
            raise ValueError(f"{name}: {value!r} is no number") from None
        # Python compares its integers, fractions and decimals with floats exactly.
        if not (double == value or double != double):
            return None
        doubles.append(double)
    return doubles


def _word(value):
    """(word, exponent) of a number, as in Exact."""
    if isinstance(value, decimal.Decimal):
        special = value.is_nan(), value.is_infinite()
        negative = value.is_signed()
    elif isinstance(value, (float, np.generic)):
        special = bool(np.isnan(value)), bool(np.isinf(value))
        negative = bool(np.signbit(value))
    else:
        special, negative = (False, False), value < 0
    sign = int(negative) << 63
    if any(special):
        return sign, _NAN if special[0] else _INFINITY
    significand, exponent = _odd(*_ratio(value))
    return sign | significand, exponent


def _ratio(value):
    """The magnitude of a finite number as a quotient of two integers."""
    if isinstance(value, decimal.Decimal) and value and abs(value.adjusted()) > _MOST_DIGITS:
        huge = 1 << _FAR
        return (huge, 1) if value.adjusted() > 0 else (1, huge)
    if isinstance(value, (float, decimal.Decimal, np.floating)):
        numerator, denominator = value.as_integer_ratio()
    elif isinstance(value, np.generic):  # of ml_dtypes
        numerator, denominator = float(value).as_integer_ratio()
    else:
        numerator, denominator = value.numerator, value.denominator
    return abs(int(numerator)), int(denominator)


def _odd(numerator, denominator):
    """(significand, exponent) of a quotient, rounded to odd if it has more bits than are kept."""
    shift = _KEPT - (numerator.bit_length() - denominator.bit_length())
    up, down = max(shift, 0), max(-shift, 0)
    quotient, rest = divmod(numerator << up, denominator << down)
    return quotient | (rest != 0), min(max(-shift, -_FAR), _FAR)


def of_integers(x):
    """An array of integers as float64 or Exact."""
    if x.dtype.itemsize <= 4:
        return x.astype(F64)
    negative = x < 0
    magnitude = x.astype(np.uint64)
    with np.errstate(over="ignore"):
        magnitude = np.where(negative, ~magnitude + np.uint64(1), magnitude)
    if not magnitude.size or magnitude.max() <= 1 << 53:
        return x.astype(F64)
    wide = magnitude >> np.uint64(_KEPT) != 0
    sticky = (magnitude & np.uint64(3) != 0).astype(np.uint64)
    words = np.where(wide, magnitude >> np.uint64(2) | sticky, magnitude)
    words = np.where(negative, words | _SIGN, words)
    return Exact(words, np.where(wide, 2, 0).astype(np.int32))


def of_long(x):
    """An array of long doubles as float64 or Exact."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        double = x.astype(F64)
        if np.all((double == x) | np.isnan(x)):
            return double
    finite = np.isfinite(x)
    fraction, exponents = np.frexp(np.where(finite, np.abs(x), 0))
    scaled = np.ldexp(fraction, _KEPT)  # in [2^61, 2^62), or zero
    whole = np.floor(scaled)
    words = whole.astype(np.uint64) | (whole != scaled).astype(np.uint64)
    exponents = np.clip(exponents - _KEPT, -_FAR, _FAR)
    exponents = np.where(finite, exponents, np.where(np.isnan(x), _NAN, _INFINITY))
    return Exact(np.where(np.signbit(x), words | _SIGN, words), exponents.astype(np.int32))


def to_float64(value, name):
    """A number, rounded once to float64. What is beyond float64 becomes infinite."""
    value = _scalar(value, name)
    try:
        return float(value)  # rounds each kind of numbers once, to nearest even
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def to_float32(value, name):
    """A number, rounded once to float32. What is beyond float32 becomes infinite."""
    value = _scalar(value, name)
    double = value if isinstance(value, float) else _odd_float64(value)
    return ctypes.c_float(double).value  # as NumPy rounds, which would look for its warnings first


def _scalar(value, name):
    """A number, also where it is an array without dimensions."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not is_number(value):
        raise TypeError(f"{name}: expected a number, found {type(value).__name__}")
    return value


def _odd_float64(value):
    """A number as float64, cut to odd, which does not change a rounding to fewer bits."""
    word, exponent = _word(int(value) if isinstance(value, np.integer) else value)
    sign, magnitude = -1.0 if word >> 63 else 1.0, word & ~(1 << 63)
    if exponent in (_NAN, _INFINITY):
        return math.nan if exponent == _NAN else sign * math.inf
    cut = max(magnitude.bit_length() - 53, 0)
    rest = magnitude & ((1 << cut) - 1)
    try:
        return sign * math.ldexp(float(magnitude >> cut | (rest != 0)), exponent + cut)
    except OverflowError:
        return sign * math.inf
