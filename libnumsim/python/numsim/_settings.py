"""Settings of calls: each is checked for its type, and errors name it."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from numsim import _numbers

_WORD = (1 << 64) - 1


def text(value: Any, name: str) -> str:
    """Returns a setting that is a text."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a text, found {type(value).__name__}")
    return value


def flag(value: Any, name: str) -> bool:
    """Returns a setting that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected True or False, found {type(value).__name__}")
    return bool(value)


def integer(value: Any, name: str, low: int = 0, high: int = _WORD) -> int:
    """Returns a setting that is an integer in a range."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected an integer, found {type(value).__name__}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, found {type(value).__name__}") from None
    if not low <= number <= high:
        limit = "2^64 - 1" if high == _WORD else high
        raise ValueError(f"{name}: expected {low} to {limit}, found {_short(number)}")
    return number


def real(value: Any, name: str) -> float:
    """Returns a setting that is a finite number, rounded once to float64."""
    return _in_range(value, name, _numbers.to_float64(value, name), "float64")


def numbers(value: Any, name: str) -> list[float]:
    """Returns a setting that is a list of numbers, each rounded once to float64."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{name}: expected a list of numbers, found {type(value).__name__}")
    return [_numbers.to_float64(x, name) for x in value]


def arrays(value: Any, name: str) -> dict[str, Any]:
    """Returns a setting that is a dictionary of arrays by name."""
    if not isinstance(value, dict):
        found = type(value).__name__
        raise TypeError(f"{name}: expected a dictionary of arrays by name, found {found}")
    for key in value:
        text(key, f"{name}: name")
    return value


def rate(value: Any, name: str) -> float:
    """Returns a setting that is a finite number, rounded once to float64, for arithmetic in float32.

    Refused if rounding to float32 makes it infinite, or makes it zero though it is not.
    """
    real32(value, name)
    return real(value, name)


def real32(value: Any, name: str, *, negative: bool = True) -> float:
    """Returns a setting that is a finite number, rounded once to float32.

    Refused if that rounding makes it infinite, or makes it zero though it is not.
    """
    number = _in_range(value, name, _numbers.to_float32(value, name), "float32")
    if number < 0 and not negative:
        raise ValueError(f"{name}: expected a number >= 0, found {_short(value)}")
    return number


def _in_range(value, name, number, holder):
    if number != number or abs(number) == np.inf:
        raise ValueError(f"{name}: {_short(value)} is no finite {holder} number")
    if number == 0 and value != 0:
        raise ValueError(f"{name}: {_short(value)} is below the smallest {holder} number")
    return number


def _short(value):
    """A value for an error, cut if it is long."""
    if isinstance(value, int) and abs(value) >> 128:
        return f"an integer of {value.bit_length()} bits"
    found = str(value)
    return found if len(found) <= 60 else found[:57] + "..."
