"""Profiles: the conversion rules of other implementations, and all inputs on which two differ."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from numsim import _core, _settings
from numsim._arrays import Exact, take
from numsim._formats import Format, FormatLike, format as format_of

_BITS = {"float32": np.uint32, "float64": np.uint64}


@dataclasses.dataclass(frozen=True)
class ProfileInfo:
    """A row of the table of profiles (docs/oracle.md)."""

    name: str
    version: str
    evidence: str  # "specification", "measured", "read" or "third-party"
    source: str
    note: str
    stochastic: bool


def profiles() -> list[ProfileInfo]:
    """Returns the profiles, as a list of ProfileInfo."""
    return [ProfileInfo(*row) for row in _core.profile_table()]


def profile_targets(profile: str, source: str = "float32") -> list[str]:
    """Returns the names of the formats that a profile converts to."""
    return _core.profile_targets(
        _settings.text(profile, "profile"), _settings.text(source, "source")
    )


class Profile:
    """One conversion of one implementation, bit for bit.

    profile   a name of `profiles()` or the beginning of one; "p3109-a:BITS"; or
              "rule:ROUNDING,OVERFLOW", this library's own rule for any format
    to        the target format
    source    "float32" or "float64"
    """

    def __init__(self, profile: str, to: FormatLike, source: str = "float32") -> None:
        self.format = format_of(to)
        self.source = _settings.text(source, "source")
        name = _settings.text(profile, "profile")
        self._conversion = _core.ProfileConversion(name, source, self.format.name)

    name = property(lambda self: self._conversion.name)
    random_bits = property(lambda self: self._conversion.random_bits)

    @property
    def meaning(self) -> Format:
        """The format by which the implementation reads the codes; mostly `format`."""
        return format_of(self._conversion.meaning)

    def encode(self, x: Any, *, word: int = 0) -> Any:
        """Returns the codes of an array of the source type; `word` is its random register."""
        taken = take(x, "x")
        if type(taken.array) is Exact:
            raise TypeError(f"x: expected {self.source}, which does not hold these numbers")
        if taken.array.dtype != np.dtype(self.source) or taken.format is not None:
            raise TypeError(f"x: expected {self.source}, found {taken.array.dtype.name}")
        array = np.asarray(taken.array, order="C")
        codes = np.empty(array.shape, np.uint32)
        word = _settings.integer(word, "word", 0, (1 << 32) - 1)
        self._conversion.encode(array.view(_BITS[self.source]), word, codes)
        return taken.give(codes.astype(self.format.code_dtype))


@dataclasses.dataclass(frozen=True)
class Interval:
    """Consecutive inputs of one sign on which two conversions give two codes."""

    first: float  # the input of the smallest magnitude
    last: float
    first_bits: int
    last_bits: int
    code_a: int
    code_b: int
    count: int
    cause: str
    explanation: str


@dataclasses.dataclass(frozen=True)
class Difference:
    """All inputs on which two conversions differ; `differing` counts them, of 2^32 or 2^64."""

    intervals: list[Interval]
    differing: int
    differing_nan: int

    def __bool__(self):
        return self.differing != 0

    def __repr__(self):
        lines = [f"{self.differing} inputs differ, {self.differing_nan} of them NaN"]
        for i in self.intervals:
            codes = f"0x{i.code_a:02x} 0x{i.code_b:02x}"
            lines.append(
                f"{i.first!r:>24} .. {i.last!r:<24} {i.count:>10}  {codes}  {i.explanation}"
            )
        return "\n".join(lines)


def diff(
    a: str | Profile,
    b: str | Profile,
    to: FormatLike | None = None,
    *,
    source: str = "float32",
    word: int = 0,
    by: str = "code",
) -> Difference:
    """Returns every input on which two conversions differ: exact and complete, by bisection.

    a, b     names of profiles, or `Profile`s
    to       the target format, for names
    by       "code": bit patterns. "value": numbers; all NaNs are equal, and so are -0 and +0
    word     the random register of stochastic conversions
    """
    sides = []
    for name, side in (("a", a), ("b", b)):
        if not isinstance(side, Profile):
            if to is None:
                raise TypeError(f"to: expected the target format of {name}, {side!r}")
            side = Profile(side, to, source)
        sides.append(side)
    one, two = (side._conversion for side in sides)
    word = _settings.integer(word, "word", 0, (1 << 32) - 1)
    found = _core.diff(one, two, word, _settings.text(by, "by"))
    number = np.dtype(sides[0].source)
    intervals = []
    for i in found.intervals:
        ends = np.array([i.first, i.last], _BITS[sides[0].source]).view(number)
        cause, explanation = _core.cause_of(i, one, two)
        numbers = (float(ends[0]), float(ends[1]), i.first, i.last, i.code_a, i.code_b, i.count)
        intervals.append(Interval(*numbers, cause, explanation))
    return Difference(intervals, found.differing, found.differing_nan)
