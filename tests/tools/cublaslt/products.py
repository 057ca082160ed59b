"""Products A B^T whose plans are studied: their kinds, operands, and sums of a split inner dimension.

A kind names the formats of operands and result and the accumulation mode of one accumulator. Operands are codes
that depend on seed, row and column alone, so that rows can be made again one at a time on any machine. A
hypothesis about a split of the inner dimension has three parts: which products belong to which part, in which
order the sums of the parts are added, and whether these sums are first rounded to the format of the result.
"""

import warnings
from dataclasses import dataclass

import numpy as np

TILES = (64, 128, 32, 256, 16)  # products of a k-tile, the likeliest first
SAMPLE = 40  # rows and columns of a product that are compared


@dataclass(frozen=True)
class Kind:
    name: str
    operand: str  # a format of numsim
    result: str  # "fp32", "bf16", "fp16" or "int32"
    mode: str  # numsim's accumulation mode of one accumulator; "" where sums are exact
    fast: bool = False  # cuBLASLt's fast accumulation, of FP8

    @property
    def bytes(self):
        return 1 if self.operand in ("e4m3fn", "int8") else 2

    @property
    def code_dtype(self):
        return np.uint8 if self.bytes == 1 else np.uint16

    @property
    def result_dtype(self):
        return {"fp32": np.uint32, "int32": np.uint32, "bf16": np.uint16, "fp16": np.uint16}[self.result]

    @property
    def granule(self):
        """The elements of 16 bytes: leading dimensions are multiples of it."""
        return 16 // self.bytes


KINDS = {
    kind.name: kind
    for kind in (
        Kind("e4m3-bf16", "e4m3fn", "bf16", "hopper-fp8"),
        Kind("e4m3-fp32", "e4m3fn", "fp32", "hopper-fp8"),
        Kind("e4m3-fast-bf16", "e4m3fn", "bf16", "hopper-fp8-fast", fast=True),
        Kind("e4m3-fast-fp32", "e4m3fn", "fp32", "hopper-fp8-fast", fast=True),
        Kind("bf16-bf16", "bf16", "bf16", "hopper-bf16"),
        Kind("bf16-fp32", "bf16", "fp32", "hopper-bf16"),
        Kind("fp16-fp16", "fp16", "fp16", "hopper-fp16"),
        Kind("fp16-fp32", "fp16", "fp32", "hopper-fp16"),
        Kind("int8-int32", "int8", "int32", ""),
    )
}


def words(seed, count, first=0):
    """Returns `count` 64-bit words of SplitMix64, from word `first` on [Steele et al., OOPSLA 2014]."""
    x = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x += np.uint64(seed)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_rows(seed, rows, columns, dtype):
    """Returns rows of uniform bits, (len(rows), columns); row r depends on the seed and r alone."""
    size = np.dtype(dtype).itemsize
    per_row = -(-columns * size // 8)
    if len(rows) and list(rows) == list(range(rows[0], rows[0] + len(rows))):
        bits = words(seed, per_row * len(rows), per_row * rows[0]).reshape(len(rows), per_row)
    else:
        bits = np.stack([words(seed, per_row, per_row * row) for row in rows])
    return bits.view(np.uint8).view(dtype).reshape(len(rows), -1)[:, :columns].copy()


def levels(half):
    """Returns how small the elements of each of the columns 0 to half - 1 are, 0 to 3.

    Long and short runs of columns are small together, so that sums of k-tiles, of promotion intervals and of parts
    differ in size. Otherwise float32 holds the sums of a few parts of 14 bits exactly, in any order.
    """
    k = np.arange(half)
    long, short = (words(99 + length, half // length + 1)[k // length] for length in (max(1, half // 6), 192))
    return (long % np.uint64(3) + short % np.uint64(2)).astype(np.uint16)


def wide_codes(kind, bits, level):
    """Returns finite codes with wide exponents of uniform bits; exponents are the smaller the higher the level."""
    if kind.operand == "int8":
        return bits
    if kind.operand == "e4m3fn":  # every code except NaN
        finite = np.where(bits & 0x7F == 0x7F, bits ^ 1, bits)
        return (finite & (0x87 | (15 >> level) << 3)).astype(np.uint8)
    if kind.operand == "bf16":  # exponents -8 to 7 less 10 per level
        return ((bits & 0x8000) | (((bits >> 7 & 15) + 119 - 10 * level) << 7) | (bits & 0x7F)).astype(np.uint16)
    exponent = (bits >> 10 & 15) >> level  # -13 to 2
    return ((bits & 0x8000) | ((exponent + 2) << 10) | (bits & 0x3FF)).astype(np.uint16)


def tiny_codes(kind, codes):
    """Returns the codes with the lowest exponents in place of theirs."""
    if kind.operand == "e4m3fn":
        return codes & np.uint8(0x8F)
    if kind.operand == "bf16":
        return codes & np.uint16(0x807F) | np.uint16(107 << 7)  # 2^-20
    return codes & np.uint16(0x87FF)


def operand_codes(kind, inner, seed, rows, paired):
    """Returns codes of the given rows, (len(rows), inner).

    Columns have partners in the other half. If `paired`, as in B, an element equals its partner. Otherwise, as in
    A, it is the negative of its partner in every second row, except that one pair of 61 is tiny. The exact
    results of those rows are then small, and every bit that a sum of parts loses shows in them.
    """
    half = inner // 2
    partner = half + (np.arange(half) + half // 3) % half
    level = np.zeros(inner, np.uint16)
    level[:half] = np.where(partner < inner - 256, levels(half), 0)  # the last products are large, to be missed
    level[partner] = level[:half]
    codes = wide_codes(kind, random_rows(seed, rows, inner, kind.code_dtype), level)
    if paired:
        codes[:, partner] = codes[:, :half]
        return codes
    if kind.operand == "int8":
        return codes
    sign = kind.code_dtype(1 << (8 * kind.bytes - 1))
    small = np.flatnonzero(np.arange(half) % 61 == 7)
    odd = np.flatnonzero(np.asarray(rows) % 2)
    cancelled = codes[odd]
    cancelled[:, small] = tiny_codes(kind, cancelled[:, small])
    cancelled[:, partner] = cancelled[:, :half] ^ sign
    cancelled[:, partner[small]] = tiny_codes(kind, cancelled[:, small][:, ::-1])
    codes[odd] = cancelled
    return codes


def operands(kind, inner, seed, rows, columns):
    """Returns the codes of rows of A and of rows of B, which are columns of the product."""
    return (operand_codes(kind, inner, 2 * seed, rows, False), operand_codes(kind, inner, 2 * seed + 1, columns, True))


def sampled(count, seed):
    """Returns up to SAMPLE sorted indices below count, the first and the last four among them."""
    if count <= SAMPLE:
        return list(range(count))
    chosen = {*range(4), *range(count - 4, count)}
    for word in words(seed, 10 * SAMPLE):
        if len(chosen) == SAMPLE:
            break
        chosen.add(int(word) % count)
    return sorted(chosen)


# ---- Hypotheses ----
#
# A partition is a tuple with one entry for each part: a tuple of ranges (begin, end) of products, in order.


def cut(inner, splits, length):
    """Returns parts of `length` products one after another; the last ones may be short or empty."""
    ranges = [(min(s * length, inner), min((s + 1) * length, inner)) for s in range(splits)]
    return tuple(((begin, end),) if begin < end else () for begin, end in ranges)


def tiles_of(inner, tile):
    return -(-inner // tile)


def contiguous(inner, splits, tile):
    """Returns parts of ceil(T / S) of the T k-tiles."""
    return cut(inner, splits, -(-tiles_of(inner, tile) // splits) * tile)


def by_length(inner, splits, tile):
    """Returns parts of floor(K / S) products, rounded up to whole k-tiles: they may end before K does."""
    return cut(inner, splits, -(-(inner // splits) // tile) * tile)


def whole_tiles(inner, splits, tile):
    """Returns `contiguous` parts of whole k-tiles only: the last K mod tile products are missing."""
    return contiguous(inner // tile * tile, splits, tile)


def balanced(inner, splits, tile):
    """Returns parts of floor(T / S) k-tiles, the first T mod S of them with one more."""
    tiles = tiles_of(inner, tile)
    ends = [0]
    for s in range(splits):
        ends.append(ends[-1] + tiles // splits + (s < tiles % splits))
    ranges = [(min(a * tile, inner), min(b * tile, inner)) for a, b in zip(ends, ends[1:])]
    return tuple(((begin, end),) if begin < end else () for begin, end in ranges)


def interleaved(inner, splits, tile):
    """Returns parts of every S-th k-tile."""
    ranges = [(begin, min(begin + tile, inner)) for begin in range(0, inner, tile)]
    return tuple(tuple(ranges[s::splits]) for s in range(splits))


RULES = {
    "contiguous": contiguous,
    "by-length": by_length,
    "balanced": balanced,
    "interleaved": interleaved,
    "whole-tiles": whole_tiles,
}


def partitions(inner, splits):
    """Returns {partition: [names]} of all rules and tiles, equal partitions once, the likeliest first."""
    found = {}
    if splits == 1:
        found[contiguous(inner, 1, inner)] = ["unsplit"]
        for tile in TILES:
            found.setdefault(whole_tiles(inner, 1, tile), []).append(f"whole-tiles:{tile}")
        return found
    for name, rule in RULES.items():
        for tile in TILES:
            found.setdefault(rule(inner, splits, tile), []).append(f"{name}:{tile}")
    return found


def forward(sums):
    total = sums[0]
    for x in sums[1:]:
        total = total + x
    return total


def pairs(sums):
    while len(sums) > 1:
        sums = [sums[i] + sums[i + 1] if i + 1 < len(sums) else sums[i] for i in range(0, len(sums), 2)]
    return sums[0]


ORDERS = {
    "forward": forward,
    "backward": lambda sums: forward(sums[::-1]),
    "pairs": pairs,
    "exact": lambda sums: forward([x.astype(np.float64) for x in sums]).astype(np.float32),
}


def rounded(values, result):
    """Returns codes of the float32 values in the format of the result, rounded to nearest even."""
    bits = values.view(np.uint32)
    if result == "fp32":
        return bits
    if result == "fp16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    kept = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), 0x7FC0, kept).astype(np.uint16)


def numbers(codes, result):
    """Returns the values of codes of the result's format, as float64."""
    if result == "int32":
        return codes.view(np.int32).astype(np.float64)
    if result == "bf16":
        codes = codes.astype(np.uint32) << np.uint32(16)
    return codes.view(np.float16 if result == "fp16" else np.float32).astype(np.float64)


def exact_integers(a, b):
    """Returns A B^T of int8 codes as int32 bits; float64 holds every sum below 2^53."""
    total = a.view(np.int8).astype(np.float64) @ b.view(np.int8).astype(np.float64).T
    return total.astype(np.int64).astype(np.uint32)


def product(kind, a, b, mode=None):
    """Returns A B^T of codes in float32 by one accumulator (int8: the bits of int32), as numsim defines it."""
    if kind.operand == "int8":
        return exact_integers(a, b)
    if a.shape[1] == 0:
        return np.zeros((len(a), len(b)), np.float32)
    import numsim as ns

    with warnings.catch_warnings():  # of sums that are longer than any that was compared: they are compared here
        warnings.simplefilter("ignore")
        return ns.matmul(ns.Array(a, kind.operand), ns.Array(b, kind.operand).T, accumulate=mode or kind.mode)


class Sums:
    """The sums of parts of one product; each part is computed once."""

    def __init__(self, kind, a, b, mode=None):
        self.kind, self.a, self.b, self.mode, self.known = kind, a, b, mode, {}

    def of(self, part):
        if part not in self.known:
            columns = np.concatenate([np.arange(*r) for r in part]) if part else np.arange(0)
            a, b = (np.ascontiguousarray(x[:, columns]) for x in (self.a, self.b))
            self.known[part] = product(self.kind, a, b, self.mode)
        return self.known[part]


def combined(kind, sums, order, through_result):
    """Returns the codes of the result. `through_result`: each sum is rounded to the result's format first."""
    if kind.operand == "int8":
        return forward(sums)
    if through_result:
        sums = [numbers(rounded(x, kind.result), kind.result).astype(np.float32) for x in sums]
    with np.errstate(all="ignore"):
        total = ORDERS[order](sums)
    return rounded(total + np.float32(0), kind.result)  # cuBLASLt returns +0 for a zero


def differing(x, y, result):
    """Returns the number of elements whose bits differ; all NaN are equal."""
    return int(np.sum((x != y) & ~(np.isnan(numbers(x, result)) & np.isnan(numbers(y, result)))))


def judged(kind, a, b, splits, out, mode=None):
    """Returns [(elements that differ, names of the hypothesis)] in the order of likelihood.

    a, b are codes of rows and columns, out the codes of the result that the device gave for them.
    """
    sums, found = Sums(kind, a, b, mode), []
    several = splits > 1 and kind.operand != "int8"
    ways = [(order, False) for order in (ORDERS if several else ["forward"])]
    if several and kind.result != "fp32":
        ways += [(order, True) for order in ORDERS]
    for partition, names in partitions(a.shape[1], splits).items():
        parts = [sums.of(part) for part in partition]
        for order, through_result in ways:
            got = combined(kind, parts, order, through_result)
            text = "=".join(names)
            if several:
                text += f" {order}" + (" of rounded parts" if through_result else "")
            found.append((differing(got, out, kind.result), text))
    return found


# ---- Tails ----


def tile_of(stages):
    """Returns the products of a k-tile by cublasLtMatmulStages_t, or 0 if it names none."""
    if 1 <= stages <= 24:
        return 16 << (stages - 1) // 6
    others = {25: 32, 26: 8, 27: 16, 28: 8, 31: 8, 32: 8, 33: 16, 34: 32, 35: 64, 36: 128, 37: 256, 38: 768}
    return others.get(stages, 0)


def predicted_loss(config, inner):
    """Returns how many last products parts of floor(K / S), rounded up to k-tiles, leave out (algorithm 66)."""
    tile = tile_of(config["stages"])
    if config["id"] != 66 or config["split"] < 2 or not tile:
        return 0
    return inner - max((end for part in by_length(inner, config["split"], tile) for _, end in part), default=0)
