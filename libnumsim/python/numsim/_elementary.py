"""Correctly rounded elementary functions of typed arrays."""

from __future__ import annotations

from typing import Any, Callable

from numsim._formats import FormatLike
from numsim._rounding import SR
from numsim._typed import Array, apply

_DOCUMENTATION = """Returns {text}: the exact real value, rounded once, as a typed array of a's shape.

    `to` is the format of the result (default: that of a). With `flags` also returns a uint8 array
    of exception flags: an OR of INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO and INVALID. Special
    values are the limits of the function (libnumsim/numsim/arith/elementary.h).
    """


def _function(name: str, text: str) -> Callable[..., Any]:
    """Returns the function of a typed array that the library calls `name`."""

    def function(
        a: Array,
        *,
        to: FormatLike | None = None,
        rounding: str | SR = "rne",
        overflow: str = "nonsaturate",
        flags: bool = False,
    ) -> Any:
        return apply(name, (a,), to, rounding, overflow, flags)

    function.__name__ = function.__qualname__ = name.replace("-", "_")
    function.__module__ = "numsim"
    function.__doc__ = _DOCUMENTATION.format(text=text)
    return function


exp = _function("exp", "e^a")
exp2 = _function("exp2", "2^a")
log = _function("log", "the natural logarithm of a")
log2 = _function("log2", "the logarithm of a to base 2")
tanh = _function("tanh", "the hyperbolic tangent of a")
sigmoid = _function("sigmoid", "1 / (1 + e^-a)")
gelu = _function("gelu", "a Phi(a), where Phi is the distribution function of the normal distribution")
gelu_tanh = _function(
    "gelu-tanh", "a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2, an approximation of gelu"
)
