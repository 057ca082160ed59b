"""Rounding modes, stochastic rounding, and the plans of conversions."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from numsim import _core, _settings
from numsim._formats import Format, format_of, is_known
from numsim._streams import next_stream


@dataclasses.dataclass(frozen=True, kw_only=True)
class SR:
    """Stochastic rounding: a number moves up in magnitude with the probability of its remainder.

    bits          number of random bits, 1 to 32
    seed, stream  the random bits of element i of an array, in C order, are a function of (`seed`,
                  `stream`, `first_index` + i) and of nothing else. Without `stream` every call
                  takes the next one of the seed (`numsim.streams`), so that a loop never reuses
                  bits and the same script draws the same ones. With `stream` a call can be repeated
                  by itself: stream 0 has the bits of `numsim cast --rounding sr --seed SEED`
    first_index   for parts of one array, which share a stream
    variant       "a", "b" or "c": the rule of P3109 (docs/rounding.md)
    random_bits   an array of unsigned integers of the numbers' shape, where the numbers lie, in
                  place of a stream: each holds the caller's bits in its low `bits` bits

    Two arrays whose errors should be independent need different streams.
    """

    bits: int = 32
    seed: int = 0
    stream: int | None = None
    variant: str = "a"
    first_index: int = 0
    random_bits: Any = dataclasses.field(default=None, compare=False)

    def __new__(cls, *unnamed, **_):
        if unnamed:
            raise TypeError(
                "SR: expected keywords: SR(seed=...) for a seed, SR(bits=...) for the number of "
                "random bits"
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        checked = {
            "bits": _settings.integer(self.bits, "SR: bits", 1, 32),
            "seed": _settings.integer(self.seed, "SR: seed"),
            "variant": _settings.text(self.variant, "SR: variant"),
            "first_index": _settings.integer(self.first_index, "SR: first_index"),
        }
        if self.stream is not None:
            checked["stream"] = _settings.integer(self.stream, "SR: stream")
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.random_bits is not None and (self.stream is not None or self.first_index):
            raise ValueError("SR: random_bits: excludes stream and first_index")
        if self.random_bits is None and self.stream is None and self.first_index:
            raise ValueError("SR: first_index: expected stream= too; parts of an array share one")


def has_only(sr, *names):
    """Returns whether an SR has its defaults in all fields but the named ones."""
    others = [f for f in dataclasses.fields(SR) if f.compare and f.name not in names]
    return sr.random_bits is None and all(getattr(sr, f.name) == f.default for f in others)


def random_of(rounding):
    """Returns the ArrayRandom of an SR. Without a stream it takes the next one."""
    if rounding.random_bits is not None:
        return _NO_SEED
    stream = next_stream(rounding.seed) if rounding.stream is None else rounding.stream
    return _core.ArrayRandom(rounding.seed, stream, rounding.first_index)


def seed_and_stream(seed, stream):
    """Returns the ArrayRandom of a call's arguments `seed` and `stream`, which an SR would check."""
    seed = _settings.integer(seed, "SR: seed")
    stream = next_stream(seed) if stream is None else _settings.integer(stream, "SR: stream")
    return _core.ArrayRandom(seed, stream, 0)


_NO_SEED = _core.ArrayRandom(0, 0, 0)


def plan_of(format, rounding, overflow):
    """Returns (Format, EncodePlan, ArrayRandom, the caller's random bits or None, whether order
    matters)."""
    if type(rounding) is str:  # an SR is no key: its hash takes long
        try:
            known = _by_names.get((format, rounding, overflow))
        except TypeError:  # a dtype object that cannot be a key
            known = None
        if known is not None:
            return known
    f = format_of(format)
    if type(overflow) is not str:
        overflow = str(_settings.text(overflow, "overflow"))
    if type(rounding) is str:
        if rounding == "sr":
            return f, _plan(f, rounding, overflow), random_of(_SR), None, True
        result = f, _plan(f, rounding, overflow), _NO_SEED, None, False
        if len(_by_names) < _MOST_PLANS and type(format) in (str, Format) and is_known(format):
            _by_names[format, rounding, overflow] = result
        return result
    if isinstance(rounding, SR):
        plan = _stochastic_plan(f, overflow, rounding.bits, rounding.variant)
        return f, plan, random_of(rounding), rounding.random_bits, True
    if isinstance(rounding, str):
        return plan_of(f, str(rounding), overflow)
    raise TypeError(f"rounding: expected a name or numsim.SR, found {type(rounding).__name__}")


_SR = SR()
_MOST_PLANS = 4096  # in each cache

# What plan_of returned for names of modes that draw no random bits, by (format, rounding, overflow):
# one look here spares those for the format, the plan and the kind of rounding.
_by_names: dict[tuple[Any, str, str], tuple[Any, ...]] = {}


@functools.lru_cache(maxsize=_MOST_PLANS)
def _plan(format, rounding, overflow):
    return _core.EncodePlan(format.spec, rounding, overflow)


@functools.lru_cache(maxsize=_MOST_PLANS)
def _stochastic_plan(format, overflow, bits, variant):
    return _core.EncodePlan(format.spec, "sr", overflow, bits, variant)


def rounding_modes() -> dict[str, tuple[str, str]]:
    """Returns {name: (direction, at a tie)} of the rounding modes (docs/rounding.md)."""
    return {name: (rounds, tie) for name, _, rounds, tie in _core.rounding_modes()}


def random_bits(
    n: int, *, bits: int = 32, seed: int = 0, stream: int | None = None, first_index: int = 0
) -> np.ndarray:
    """Returns the random bits that SR with these arguments uses for n elements, as uint32."""
    rounding = SR(bits=bits, seed=seed, stream=stream, first_index=first_index)
    out = np.empty(_settings.integer(n, "n"), np.uint32)
    _core.random_bits(random_of(rounding), rounding.bits, out)
    return out
