"""Arrays of a format, and correctly rounded arithmetic on them."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from numsim import _core, _numbers
from numsim._arrays import is_plain, native, require_host
from numsim._casts import decode, encode
from numsim._formats import FormatLike, format_of
from numsim._matmul import matmul
from numsim._rounding import SR, plan_of

# Bits of `flags`, as in Berkeley SoftFloat.
INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = 1, 2, 4, 8, 16


class Array:
    """An array of codes of one format. The operators + - * / and @ round every operation once.

    A number of Python beside an operator is first rounded to the format, once from its exact value,
    as NumPy does with its arrays. `@` adds products in the order of the inner dimension, each step
    a fused multiply-add in the format; `numsim.matmul` has other modes. Operators round to nearest
    even; the functions `add`, `sub`, `mul`, `div`, `fma` and `sqrt` take other roundings and
    formats of the result.
    """

    __slots__ = ("codes", "format")
    __array_ufunc__ = None  # NumPy arrays leave operators to this class

    def __init__(self, codes: Any, format: FormatLike) -> None:
        self.format = format_of(format)
        self.codes = native(np.asarray(codes))
        if self.codes.dtype != self.format.code_dtype:
            raise TypeError(
                f"codes: expected {self.format.code_dtype.name}, the codes of {self.format.name}, "
                f"found {self.codes.dtype.name}"
            )

    shape = property(lambda self: self.codes.shape)
    ndim = property(lambda self: self.codes.ndim)
    size = property(lambda self: self.codes.size)

    @property
    def T(self) -> Array:
        """The transposed array (a view)."""
        return Array(self.codes.T, self.format)

    def values(self) -> np.ndarray:
        """Returns the exact values as float32."""
        return decode(self.codes, self.format)

    def reshape(self, *shape: Any) -> Array:
        """Returns the same elements in another shape."""
        return Array(self.codes.reshape(*shape), self.format)

    def __getitem__(self, index):
        return Array(self.codes[index], self.format)

    def __len__(self):
        return len(self.codes)

    def __array__(self, dtype=None, copy=None):
        values = self.values()
        return values if dtype is None else values.astype(dtype)

    def __repr__(self):
        return (
            f"numsim.array({np.array2string(self.values(), separator=', ')}, {self.format.name!r})"
        )

    def _other(self, other):
        if isinstance(other, Array):
            return other
        if _numbers.is_number(other):
            return array(other, self.format)
        return None

    def _operate(self, op, other, swapped=False):
        if type(other) is not Array:
            other = self._other(other)
            if other is None:
                return NotImplemented
        return _apply(op, (other, self) if swapped else (self, other))

    def __add__(self, other):
        return self._operate("add", other)

    def __sub__(self, other):
        return self._operate("sub", other)

    def __mul__(self, other):
        return self._operate("mul", other)

    def __truediv__(self, other):
        return self._operate("div", other)

    def __radd__(self, other):
        return self._operate("add", other, True)

    def __rsub__(self, other):
        return self._operate("sub", other, True)

    def __rmul__(self, other):
        return self._operate("mul", other, True)

    def __rtruediv__(self, other):
        return self._operate("div", other, True)

    def _gemm_codes(self):
        return self.codes, self.format

    def __matmul__(self, other):
        if not isinstance(other, Array):
            return NotImplemented
        if other.format is not self.format:
            raise ValueError(
                f"b: expected the format {self.format.name}, found {other.format.name}; "
                "numsim.matmul takes two formats"
            )
        return array(matmul(self, other, accumulate=self.format.name), self.format)


def array(
    x: Any, format: FormatLike, *, rounding: str | SR = "rne", overflow: str = "nonsaturate"
) -> Array:
    """Returns numbers as a typed array, rounded as by `round`."""
    f = format_of(format)
    if is_plain(x):
        return Array(encode(x, f, rounding=rounding, overflow=overflow), f)
    require_host(x, "x")
    return Array(np.asarray(encode(x, f, rounding=rounding, overflow=overflow)), f)


def _apply(op, operands, to=None, rounding="rne", overflow="nonsaturate", flags=False):
    first = operands[0]
    given = []
    for operand in operands:
        if type(operand) is not Array or operand.format is not first.format:
            _check(operands, to)
        given.append(operand.format.spec)
        given.append(operand.codes)
    to, plan, random, words, _ = plan_of(first.format if to is None else to, rounding, overflow)
    if words is not None:
        raise ValueError("rounding: arithmetic takes random bits of a seed and stream only")
    shape = first.codes.shape
    out = np.empty(shape, to.code_dtype)
    each = np.empty(shape, np.uint8) if flags else None
    if not _core.arithmetic(op, given, plan, out, random, each):  # the shapes differ
        given[1::2] = _broadcast(operands)
        out = np.empty(given[1].shape, to.code_dtype)
        each = np.empty(out.shape, np.uint8) if flags else None
        _core.arithmetic(op, given, plan, out, random, each)
    result = Array.__new__(Array)  # the codes are right: no check
    result.codes, result.format = out, to
    return (result, each) if flags else result


def _broadcast(operands):
    """Returns the codes of the operands in one shape."""
    try:
        return np.broadcast_arrays(*(operand.codes for operand in operands))
    except ValueError:
        shapes = ", ".join(str(operand.shape) for operand in operands)
        raise ValueError(f"operands of shapes {shapes} do not fit each other") from None


def _check(operands, to):
    """Raises an error that names an operand that is no typed array, or of another format."""
    for name, operand in zip("abc", operands):
        if not isinstance(operand, Array):
            raise TypeError(f"{name}: expected a numsim.Array, found {type(operand).__name__}")
    for name, operand in zip("abc", operands):
        if to is None and operand.format is not operands[0].format:
            raise ValueError(
                f"{name}: the format is {operand.format.name} and that of a is "
                f"{operands[0].format.name}; pass to=, the format of the result"
            )


_DOCUMENTATION = """Returns {text}, the exact result rounded once, as a typed array.

    Operands are typed arrays whose shapes broadcast as NumPy's. `to` is the format of the result;
    it may be left out if all operands have the same. With `flags` also returns a uint8 array of
    exception flags: an OR of INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO and INVALID. Special
    values: {special}.
    """

_IEEE = "as in IEEE 754 (libnumsim/numerics/numsim/arith/arith.h)"


def unary(op: str, text: str, special: str = _IEEE) -> Callable[..., Any]:
    """Returns the function of one typed array that the extension calls `op`."""

    def function(
        a: Array,
        *,
        to: FormatLike | None = None,
        rounding: str | SR = "rne",
        overflow: str = "nonsaturate",
        flags: bool = False,
    ) -> Any:
        return _apply(op, (a,), to, rounding, overflow, flags)

    return _named(function, op, text, special)


def _binary(op, text):
    def function(
        a: Array,
        b: Array,
        *,
        to: FormatLike | None = None,
        rounding: str | SR = "rne",
        overflow: str = "nonsaturate",
        flags: bool = False,
    ) -> Any:
        return _apply(op, (a, b), to, rounding, overflow, flags)

    return _named(function, op, text, _IEEE)


def _named(function, op, text, special):
    function.__name__ = function.__qualname__ = op.replace("-", "_")
    function.__module__ = "numsim"
    function.__doc__ = _DOCUMENTATION.format(text=text, special=special)
    return function


add = _binary("add", "a + b")
sub = _binary("sub", "a - b")
mul = _binary("mul", "a * b")
div = _binary("div", "a / b")
sqrt = unary("sqrt", "the square root of a")


def fma(
    a: Array,
    b: Array,
    c: Array,
    *,
    to: FormatLike | None = None,
    rounding: str | SR = "rne",
    overflow: str = "nonsaturate",
    flags: bool = False,
) -> Any:
    return _apply("fma", (a, b, c), to, rounding, overflow, flags)


_named(fma, "fma", "a * b + c", _IEEE)
