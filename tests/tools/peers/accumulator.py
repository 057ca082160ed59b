"""Sums that begin with a given accumulator, though numsim's begin with +0.

The accumulator is made by a step of products that goes before: pieces of its significand times powers
of two. numsim itself is asked whether it comes out exactly; where it does not, the sum is left out.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from peers.cases import Grid, Mode, values
from peers.formats import FORMATS
from peers.program import Numsim

SCALED_EXPONENT = 8  # of accumulators in the formats of 8 bits, where scales bring the rest
HALVES = (12, 8, 6, 4, 3, 2, 1)  # twice the numbers of e2m1fn
QUARTERS = sorted({x * y for x in HALVES for y in HALVES}, reverse=True)  # four times their products


def sums(numsim: Numsim, mode: Mode, rows: Grid, c: np.ndarray, text: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Returns (bits of c + the products of row i of both matrices, whether numsim can begin with c)."""
    if mode.late:
        with np.errstate(all="ignore"):
            after = numsim.rows(mode, rows, text).view(np.float32) + c
        return after.view(np.uint32), np.ones(c.size, bool)
    if mode.name == "blackwell-fp8":  # the same unit; its scales give accumulators more range
        mode = dataclasses.replace(mode, name="mxf8f6f4", scale="e8m0fnu", block=32)
        ones = np.full((c.size, rows.a.shape[1] // 32), 127)
        rows = Grid(rows.a, rows.b, ones, ones)
    c = _cut(mode, rows, c)
    first = _first_step(mode, c)
    whole = Grid(*(_joined(x, y) for x, y in zip(_parts(first), _parts(rows))))
    made = numsim.rows(mode, first, text if mode.name != "mxf8f6f4" else "")
    return numsim.rows(mode, whole, text), (made == c.view(np.uint32)) | (np.isnan(c) & _is_nan(made))


def _parts(grid: Grid) -> tuple[np.ndarray | None, ...]:
    return grid.a, grid.b, grid.scale_a, grid.scale_b


def _joined(x: np.ndarray | None, y: np.ndarray | None) -> np.ndarray:
    return None if x is None or y is None else np.hstack([x, y])  # type: ignore[return-value]


def _is_nan(bits: np.ndarray) -> np.ndarray:
    return (bits & 0x7FFFFFFF) > 0x7F800000


def _exponent(x: np.ndarray) -> np.ndarray:
    return np.frexp(np.where(np.isfinite(x), x, 0))[1].astype(np.int64) - 1


def _cut(mode: Mode, rows: Grid, c: np.ndarray) -> np.ndarray:
    """Cuts off what a unit of few bits never sees of c.

    It aligns c and the products of the first step to the exponent of c or more, and to half the largest
    product or more.
    """
    if not 0 < mode.fraction_bits < 23:
        return c
    step = slice(0, mode.step)
    with np.errstate(invalid="ignore"):
        products = np.abs(values(mode.a, rows.a[:, step]).astype(float) * values(mode.b, rows.b[:, step]))
    largest = np.max(np.where(np.isfinite(products), products, 0), axis=1)
    of_products = np.where(largest > 0, _exponent(largest) - 1, -1000)
    top = np.maximum(of_products, _exponent(c))
    unit = np.ldexp(1.0, top - mode.fraction_bits)
    return np.where(np.isfinite(c), np.trunc(c / unit) * unit, c).astype(np.float32)


def _first_step(mode: Mode, c: np.ndarray) -> Grid:
    """Returns the products, a multiple of a step of them, whose sum is c where that can be."""
    if mode.name in ("mxf4", "mxf4nvf4"):
        return _first_step_of_fp4(mode, c)
    a_format, b_format = FORMATS[mode.a], FORMATS[mode.b]
    shift = np.zeros(c.size, np.int64)
    if mode.scale:
        shift = np.clip(_exponent(c) - SCALED_EXPONENT, -127, 127)
    size = a_format.fraction_bits + 1
    pieces = -(-24 // size)
    scaled = np.ldexp(np.where(np.isfinite(c), c, 0).astype(float), -shift)
    low = _exponent(scaled) - (size * pieces - 1)
    whole = np.ldexp(np.abs(scaled), -low).astype(np.int64)
    width = -(-pieces // mode.step) * mode.step
    a, b = np.zeros((c.size, width)), np.zeros((c.size, width))
    top = (1 << b_format.exponent_bits) - 2 - b_format.bias
    for j in range(pieces):
        exponent = low + size * (pieces - 1 - j)
        piece = (whole >> size * (pieces - 1 - j)) & ((1 << size) - 1)
        power = np.clip(exponent, b_format.least_exponent, top)
        b[:, j] = np.where(piece == 0, 0, np.ldexp(1.0, power))
        a[:, j] = np.sign(scaled) * np.ldexp(piece.astype(float), exponent - power)
    a[:, 0] = np.where(np.isfinite(c), a[:, 0], c)
    b[:, 0] = np.where(np.isfinite(c), b[:, 0], 1)
    codes = a_format.find(a)[0], b_format.find(b)[0]
    if not mode.scale:
        return Grid(*codes)
    return Grid(*codes, 127 + shift[:, None], np.full((c.size, 1), 127))


def _first_step_of_fp4(mode: Mode, c: np.ndarray) -> Grid:
    """Two blocks of 32 products, each 12 bits of the significand in quarters, under scales of 2^n."""
    finite = np.where(np.isfinite(c), c, 0).astype(float)
    low = _exponent(finite) - 23
    whole = np.ldexp(np.abs(finite), -low).astype(np.int64)
    a, b = np.zeros((c.size, 64)), np.zeros((c.size, 64))
    for i, rest in enumerate(whole):
        for half, quarters in enumerate((rest >> 12, rest & 4095)):
            place = 32 * half
            while quarters:
                piece = next(q for q in QUARTERS if q <= quarters)
                left = next(x for x in HALVES if piece % x == 0 and piece // x in HALVES)
                a[i, place], b[i, place] = np.sign(finite[i]) * left / 2, piece // left / 2
                quarters, place = quarters - piece, place + 1
    exponents = np.stack([low + 12, low], axis=1) + 2
    halves = 32 // mode.block
    if mode.scale == "e8m0fnu":
        codes = np.clip(127 + exponents, 0, 254)
    else:  # ue4m3fn, as far as it reaches
        codes = np.where(np.abs(exponents) <= 6, (np.clip(exponents, -6, 6) + 7) << 3, 0)
    one = 127 if mode.scale == "e8m0fnu" else 7 << 3
    spread = np.repeat(codes, halves, axis=1)
    fp4 = FORMATS["e2m1fn"]
    return Grid(fp4.encode(a), fp4.encode(b), spread, np.full(spread.shape, one))
