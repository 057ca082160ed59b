"""Operands on which accumulation modes are compared: pairs of matrices, by seed.

Every kind of operands aims at one thing that units do differently: alignment of close and of far
exponents, cancellation, subnormals and sums at the bottom of float32, overflow, zeros, and special
codes. Both matrices of a pair are of one kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from peers.formats import FORMATS, Format, decode


@dataclasses.dataclass(frozen=True)
class Mode:
    """An accumulation mode of numsim, with what a comparison needs to know of it."""

    name: str
    a: str  # format of the left operand
    b: str  # and of the right
    step: int  # products that are added at once
    neighbour: str  # mode with a fault: --plant
    scale: str = ""  # format of the scales of blocks, or none
    block: int = 0  # products that share a scale
    fraction_bits: int = 0  # kept below the largest exponent, in units that cut
    late: bool = False  # the accumulator is added in float32 after the products


@dataclasses.dataclass
class Grid:
    """Codes of A (m x k) and B (n x k). Every row of A meets every row of B: m n sums of k products.

    Under block-scaled modes scales have one code per row and block.
    """

    a: np.ndarray
    b: np.ndarray
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None

    @property
    def sums(self) -> int:
        return self.a.shape[0] * self.b.shape[0]

    @property
    def products(self) -> int:
        return self.sums * self.a.shape[1]

    def one(self, i: int, j: int) -> Grid:
        """Returns the grid of one sum."""
        scales = [None if s is None else s[[r]] for s, r in ((self.scale_a, i), (self.scale_b, j))]
        return Grid(self.a[[i]], self.b[[j]], *scales)

    def part(self, begin: int, end: int, block: int = 0) -> Grid:
        """Returns the grid of products begin to end, which are whole blocks."""
        scales = [
            None if s is None else s[:, begin // block : (end + block - 1) // block]
            for s in (self.scale_a, self.scale_b)
        ]
        return Grid(self.a[:, begin:end], self.b[:, begin:end], *scales)

    def padded(self, step: int) -> Grid:
        """Returns the grid with zeros up to a multiple of `step` products."""
        missing = -self.a.shape[1] % step
        wide = ((0, 0), (0, missing))
        return Grid(np.pad(self.a, wide), np.pad(self.b, wide), self.scale_a, self.scale_b)


KINDS = ("close", "wide", "cancel", "tiny", "bottom", "huge", "uniform", "sparse", "special", "one sign")
PARTS = ((0, 8), (128, 8), (1024, 4), (4096, 2), (8192, 2))  # products of a sum, rows of a matrix
SCALE_KINDS = ("near", "wide", "low", "high", "nan")


def _by_exponent(
    rng: np.random.Generator, spec: Format, shape: tuple[int, int], low: int, high: int
) -> np.ndarray:
    """Codes whose exponents are uniform in [low, high], within those of finite numbers."""
    top = (1 << spec.exponent_bits) - 1
    field = rng.integers(low, high + 1, shape) + spec.bias
    field = np.clip(field, 0, top)
    fraction = rng.integers(0, 1 << spec.fraction_bits, shape)
    sign = rng.integers(0, 2, shape) if spec.signed else np.zeros(shape, np.int64)
    codes = sign << (spec.bits - 1) | field << spec.fraction_bits | fraction
    return np.where(np.isfinite(spec.decode(codes)), codes, sign << (spec.bits - 1))


def _special_codes(spec: Format) -> np.ndarray:
    """Zeros, the smallest and largest numbers, infinities and NaNs, of both signs."""
    half = np.arange(1 << (spec.bits - 1))
    size = spec.decode(half)
    finite = half[np.isfinite(size)]
    rest = half[~np.isfinite(size)]
    picked = np.concatenate([finite[:2], finite[-1:], rest[:1], rest[-1:]])
    return np.concatenate([picked, picked | 1 << (spec.bits - 1)])


def _codes(rng: np.random.Generator, spec: Format, shape: tuple[int, int], kind: str) -> np.ndarray:
    least, most = -spec.bias, (1 << spec.exponent_bits) - 1 - spec.bias
    is_wide = spec.exponent_bits == 8  # products leave the range of float32
    if kind == "tiny":
        low, high = (-75, -58) if is_wide else (least, least + 2)
    elif kind == "bottom":  # where the least exponent of a unit decides
        low, high = (-80, -66) if is_wide else (least, least)
    elif kind == "huge":
        low, high = (56, 64) if is_wide else (most - 2, most)
    elif kind == "wide":
        low, high = (-66, 62) if is_wide else (least, most)
    else:
        low, high = -2, 2
    codes = _by_exponent(rng, spec, shape, low, high)
    if kind == "uniform":
        codes = rng.integers(0, 1 << spec.bits, shape)
    elif kind == "sparse":
        # Also whole steps without products.
        codes = np.where(rng.random(shape) < rng.choice([0.5, 0.9, 0.99]), 0, codes)
    elif kind == "special":
        special = _special_codes(spec)
        for row in codes:
            row[rng.integers(0, shape[1], rng.integers(0, 3))] = rng.choice(special)
    elif kind == "one sign":
        codes &= (1 << (spec.bits - 1)) - 1
    return codes.astype(np.uint32)


def _cancelling(rng: np.random.Generator, mode: Mode, grid: Grid) -> None:
    """Makes every second product almost the opposite of the one before it."""
    k = grid.a.shape[1] // 2 * 2
    grid.a[:, 1:k:2] = grid.a[:, 0:k:2]
    bits = FORMATS[mode.b].bits
    flip = 1 << (bits - 1) | (rng.random((grid.b.shape[0], k // 2)) < 0.3)
    grid.b[:, 1:k:2] = grid.b[:, 0:k:2] ^ flip.astype(np.uint32)
    order = rng.permutation(grid.a.shape[1])
    grid.a, grid.b = grid.a[:, order], grid.b[:, order]


def _scales(rng: np.random.Generator, name: str, shape: tuple[int, int], kind: str) -> np.ndarray:
    if name == "e8m0fnu":
        low, high = {"near": (123, 131), "wide": (0, 254), "low": (58, 72), "high": (180, 192),
                     "nan": (123, 131)}[kind]  # fmt: skip
        nan = 255
    else:
        low, high = {"near": (0x30, 0x40), "wide": (0, 0x7E), "low": (0, 9), "high": (0x70, 0x7E),
                     "nan": (0x30, 0x40)}[kind]  # fmt: skip
        nan = 0x7F
    codes = rng.integers(low, high + 1, shape)
    if kind == "nan":
        codes = np.where(rng.random(shape) < 0.5 / shape[1], nan, codes)
    return codes.astype(np.uint32)


def make_grid(
    rng: np.random.Generator, mode: Mode, shape: tuple[int, int, int], kind: str, scale_kind: str
) -> Grid:
    """Returns operands of m x n sums of k products."""
    m, n, k = shape
    grid = Grid(
        _codes(rng, FORMATS[mode.a], (m, k), kind), _codes(rng, FORMATS[mode.b], (n, k), kind)
    )
    if kind == "cancel":
        _cancelling(rng, mode, grid)
    if mode.scale:
        blocks = -(-k // mode.block)
        grid.scale_a = _scales(rng, mode.scale, (m, blocks), scale_kind)
        grid.scale_b = _scales(rng, mode.scale, (n, blocks), scale_kind)
    return grid


def grids(
    mode: Mode, products: int, seed: int, salt: str = "", longest: int = 8192
) -> Iterator[Grid]:
    """Yields grids with at least `products` products in all, a function of all arguments.

    A part of the products is in sums of up to two steps, of any length where there are no scales, and
    as large a part each in sums of about 128, 1024, 4096 and 8192 products, up to `longest`.
    """
    text = f"{mode.name} {mode.a} {mode.b} {mode.block} {salt}"
    rng = np.random.default_rng([seed, *text.encode()])
    number = 0
    parts = [part for part in PARTS if part[0] <= longest]
    for length, side in parts:
        left = -(-products // len(parts))
        while left > 0:
            k = -(-length // mode.step) * mode.step or 2 * mode.step
            if length == 0 and not mode.scale:
                k = int(rng.integers(1, 2 * mode.step + 1))
            elif length == 0:
                k = mode.step * int(rng.integers(1, 3))
            kind = KINDS[number % len(KINDS)]
            if kind == "uniform" and k > 64:
                kind = "wide"  # long sums of uniform codes are NaN
            scale_kind = SCALE_KINDS[rng.integers(len(SCALE_KINDS))]
            grid = make_grid(rng, mode, (side, side, k), kind, scale_kind)
            yield grid
            left -= grid.products
            number += 1


def values(name: str, codes: np.ndarray) -> np.ndarray:
    """Returns the values of codes in float32, which holds all of them."""
    return decode(name, codes).astype(np.float32)
