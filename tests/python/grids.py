"""Formats and rounding in exact rational arithmetic: a second definition, for small formats.

It shares no code with numsim: a format is the list of its finite values, and rounding compares
fractions.
"""

import bisect
from fractions import Fraction


class Grid:
    """The finite values of a format without infinity whose codes are sign, exponent, mantissa."""

    def __init__(self, exponent, mantissa, bias, top_codes_left_out=0):
        self.magnitudes = []
        for code in range((1 << (exponent + mantissa)) - top_codes_left_out):
            e, m = code >> mantissa, code & ((1 << mantissa) - 1)
            significand = m if e == 0 else m + (1 << mantissa)
            self.magnitudes.append(
                Fraction(significand) * Fraction(2) ** (max(e, 1) - bias - mantissa)
            )
        self.sign_bit = 1 << (exponent + mantissa)

    def value(self, code):
        """The value of a finite code."""
        magnitude = self.magnitudes[code & (self.sign_bit - 1)]
        return -magnitude if code & self.sign_bit else magnitude

    def round(self, x, mode, negative_zero=False):
        """The code of the fraction x in a mode; magnitudes beyond the largest saturate."""
        negative = x < 0 or (x == 0 and negative_zero)
        sign = self.sign_bit if negative else 0
        m = abs(x)
        if m >= self.magnitudes[-1]:
            return sign | (len(self.magnitudes) - 1)
        below = bisect.bisect_right(self.magnitudes, m) - 1
        rest = m - self.magnitudes[below]
        if rest == 0:
            return sign | below
        gap = self.magnitudes[below + 1] - self.magnitudes[below]
        up = {
            "rne": rest * 2 > gap or (rest * 2 == gap and below % 2 == 1),
            "rna": rest * 2 >= gap,
            "rtz": False,
            "rtp": not negative,
            "rtn": negative,
            "odd": below % 2 == 0,
        }[mode]
        return sign | (below + up)


E2M1 = Grid(2, 1, 1)  # e2m1fn
E3M2 = Grid(3, 2, 3)  # e3m2fn
E2M3 = Grid(2, 3, 1)  # e2m3fn
E4M3 = Grid(4, 3, 7, top_codes_left_out=1)  # e4m3fn, without NaN
SMALL = {"e2m1fn": E2M1, "e3m2fn": E3M2, "e2m3fn": E2M3}
MODES = ("rne", "rna", "rtz", "rtp", "rtn", "odd")
