"""Rounding modes, stochastic rounding, and the plans of conversions."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from numsim import _core, _formats

_LIMIT = 1 << 64


@dataclasses.dataclass(frozen=True)
class SR:
    """Stochastic rounding: a number moves up in magnitude with the probability of its remainder.

    The random bits of element i of an array, in C order, are a function of (`seed`, `stream`,
    `first_index` + i) and of nothing else; `numsim cast --rounding sr --seed SEED` uses stream 0.
    Two arrays whose errors should be independent need different streams. `bits` (1 to 32) is the
    number of random bits, `variant` ("a", "b" or "c") the rule of P3109 (docs/rounding.md).

    `random_bits`, an array of unsigned integers with an element per number, replaces the stream:
    each holds the caller's bits in its low `bits` bits. It lies where the numbers lie.
    """

    bits: int = 32
    seed: int = 0
    stream: int = 0
    variant: str = "a"
    first_index: int = 0
    random_bits: Any = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 32:
            raise ValueError(f"SR: bits: expected 1 to 32, found {self.bits}")
        for name in ("seed", "stream", "first_index"):
            if not 0 <= getattr(self, name) < _LIMIT:
                raise ValueError(f"SR: {name}: expected 0 to 2^64 - 1, found {getattr(self, name)}")


def random_of(rounding):
    """Returns the ArrayRandom of an SR."""
    return _core.ArrayRandom(rounding.seed, rounding.stream, rounding.first_index)


_NO_SEED = _core.ArrayRandom(0, 0, 0)


def plan_of(format, rounding, overflow):
    """Returns (EncodePlan, ArrayRandom, the caller's random bits or None, whether order matters)."""
    if type(rounding) is str:
        return _plan(format, rounding, overflow), _NO_SEED, None, rounding == "sr"
    if type(rounding) is SR:
        words = rounding.random_bits
        if words is not None:
            words = _words_on_host(words)
        plan = _stochastic_plan(format, overflow, rounding.bits, rounding.variant)
        return plan, random_of(rounding), words, True
    raise TypeError(f"rounding: expected a name or numsim.SR, found {type(rounding).__name__}")


def _words_on_host(words):
    if hasattr(words, "__dlpack_device__") and int(words.__dlpack_device__()[0]) not in (1, 3):
        raise ValueError("rounding: random_bits are on a device, and the numbers are not")
    return np.ascontiguousarray(words, np.uint32)


def plan_there(format, rounding, overflow):
    """Returns (EncodePlan, ArrayRandom) for numbers on a device, with which `random_bits` lie."""
    if type(rounding) is SR:
        plan = _stochastic_plan(format, overflow, rounding.bits, rounding.variant)
        return plan, random_of(rounding)
    return plan_of(format, rounding, overflow)[:2]


@functools.lru_cache(maxsize=4096)
def _plan(format, rounding, overflow):
    return _core.EncodePlan(_formats.format(format).spec, rounding, overflow)


@functools.lru_cache(maxsize=4096)
def _stochastic_plan(format, overflow, bits, variant):
    return _core.EncodePlan(_formats.format(format).spec, "sr", overflow, bits, variant)


def rounding_modes() -> dict[str, tuple[str, str]]:
    """Returns {name: (direction, at a tie)} of the rounding modes (docs/rounding.md)."""
    return {name: (rounds, tie) for name, _, rounds, tie in _core.rounding_modes()}


def random_bits(
    n: int, *, bits: int = 32, seed: int = 0, stream: int = 0, first_index: int = 0
) -> np.ndarray:
    """Returns the random bits that SR with these arguments uses for n elements, as uint32."""
    rounding = SR(bits, seed, stream, first_index=first_index)
    out = np.empty(n, np.uint32)
    _core.random_bits(random_of(rounding), rounding.bits, out)
    return out
