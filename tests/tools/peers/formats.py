"""Number formats as the other projects store them: codes, their values, and codes drawn by exponent.

Decoding is written out here and shares nothing with numsim.
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Format:
    """Sign, exponent and fraction bits of a code, from the top. Scales have no sign."""

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: str = "ieee"  # "ieee", "fn": NaN in the last code, "fnuz": NaN for -0, "none"
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.signed + self.exponent_bits + self.fraction_bits

    @property
    def least_exponent(self) -> int:
        """Exponent of the smallest normal number, and of all subnormals."""
        return 1 - self.bias

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Returns the values of codes, in float64."""
        codes = np.asarray(codes).astype(np.int64)
        fraction = codes & ((1 << self.fraction_bits) - 1)
        field = codes >> self.fraction_bits & ((1 << self.exponent_bits) - 1)
        hidden = np.where(field > 0, 1 << self.fraction_bits, 0)
        exponent = np.maximum(field, 1) - self.bias - self.fraction_bits
        values = np.ldexp((fraction + hidden).astype(np.float64), exponent)
        top = (1 << self.exponent_bits) - 1
        if self.specials == "ieee":
            values = np.where(field == top, np.where(fraction == 0, np.inf, np.nan), values)
        elif self.specials == "fn":
            last = (field == top) & (fraction == (1 << self.fraction_bits) - 1)
            values = np.where(last, np.nan, values)
        negative = codes >> (self.bits - 1) & 1 if self.signed else np.zeros_like(codes)
        values = np.where(negative == 1, -values, values)
        if self.specials == "fnuz":
            values = np.where(codes == 1 << (self.bits - 1), np.nan, values)
        return values

    def find(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (codes, whether a code has just that value)."""
        values = np.asarray(values, np.float64)
        if self.name == "fp32":
            with np.errstate(over="ignore"):
                codes = values.astype(np.float32).view(np.uint32).astype(np.int64)
        else:
            order, table = _sorted_values(self)
            place = np.searchsorted(table, np.where(np.isnan(values), 0, values))
            codes = order[np.minimum(place, table.size - 1)]
            if self.signed and self.specials != "fnuz":
                codes = np.where((values == 0) & np.signbit(values), 1 << (self.bits - 1), codes)
            codes = np.where(np.isnan(values), _nan_code(self), codes)
        back = self.decode(codes)
        return codes, (back == values) | (np.isnan(back) & np.isnan(values))

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Returns the codes of values of the format. Raises ValueError if one is no such value."""
        codes, found = self.find(values)
        if not found.all():
            raise ValueError(f"{np.asarray(values)[~found].flat[0]!r} is no value of {self.name}")
        return codes


_TABLES: dict[str, tuple[np.ndarray, np.ndarray]] = {}


def _sorted_values(spec: Format) -> tuple[np.ndarray, np.ndarray]:
    """Returns (codes, values) of all numbers of a format except NaN, ascending, with +0 alone for zero."""
    if spec.name not in _TABLES:
        codes = np.arange(1 << spec.bits)
        values = spec.decode(codes)
        keep = ~np.isnan(values) & ~((values == 0) & (codes != 0))
        codes, values = codes[keep], values[keep]
        order = np.argsort(values)
        _TABLES[spec.name] = (codes[order], values[order])
    return _TABLES[spec.name]


def _nan_code(spec: Format) -> int:
    """Returns a NaN of the format, or 0 if it has none."""
    if spec.specials == "fnuz":
        return 1 << (spec.bits - 1)
    return 0 if spec.specials == "none" else (1 << (spec.bits - spec.signed)) - 1


FORMATS = {
    f.name: f
    for f in (
        Format("fp32", 8, 23, 127),
        Format("fp16", 5, 10, 15),
        Format("bf16", 8, 7, 127),
        Format("tf32", 8, 10, 127),
        Format("e5m2", 5, 2, 15),
        Format("e4m3fn", 4, 3, 7, "fn"),
        Format("e5m2fnuz", 5, 2, 16, "fnuz"),
        Format("e4m3fnuz", 4, 3, 8, "fnuz"),
        Format("e3m2fn", 3, 2, 3, "none"),
        Format("e2m3fn", 2, 3, 1, "none"),
        Format("e2m1fn", 2, 1, 1, "none"),
        Format("ue4m3fn", 4, 3, 7, "fn", signed=False),
    )
}


def decode(name: str, codes: np.ndarray) -> np.ndarray:
    """Returns the values of codes in float64. e8m0fnu is 2^(code - 127), and its code 255 NaN."""
    if name == "e8m0fnu":
        codes = np.asarray(codes).astype(np.int64)
        return np.where(codes == 255, np.nan, np.ldexp(1.0, codes - 127))
    return FORMATS[name].decode(codes)
