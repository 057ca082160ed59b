"""A stand-in for cuBLASLt without a device: it plans by a fixed rule and splits sums as PLANTED says.

The study of plans must find these rules again. Which part a product belongs to is computed for each product, not
by ranges as in the hypotheses, and sums of parts are added one at a time.
"""

import warnings

import numpy as np

from cublaslt.library import Plan

# Of each kind: partition, products of a k-tile, order, and whether sums of parts are rounded to the result first.
PLANTED = {
    "e4m3-bf16": ("contiguous", 128, "forward", False),
    "e4m3-fp32": ("contiguous", 128, "backward", False),
    "e4m3-fast-bf16": ("contiguous", 128, "forward", True),
    "e4m3-fast-fp32": ("by-length", 128, "forward", False),
    "bf16-bf16": ("contiguous", 64, "forward", False),
    "bf16-fp32": ("contiguous", 64, "forward", False),
    "fp16-fp16": ("interleaved", 64, "forward", False),
    "fp16-fp32": ("by-length", 64, "forward", False),
    "int8-int32": ("whole-tiles", 128, "forward", False),
}


def part_of_products(rule, tile, inner, splits):
    """Returns the part of each product; -1 is none."""
    k = np.arange(inner)
    tiles = (inner + tile - 1) // tile
    if rule == "contiguous":
        return (k // tile) // ((tiles + splits - 1) // splits)
    if rule == "interleaved":
        return (k // tile) % splits
    if rule == "by-length":
        length = (inner // splits + tile - 1) // tile * tile
        return np.where(k < splits * length, k // length, -1)
    whole = inner // tile  # whole-tiles
    return np.where(k < whole * tile, (k // tile) // max(1, (whole + splits - 1) // splits), -1)


class StandIn:
    """The interface of library.Library."""

    def __init__(self):
        self.refusals = {}

    def environment(self):
        return {"library": "stand-in", "cublaslt": "0.0.0", "card": "none", "driver": "none", "torch": "none"}

    @staticmethod
    def _made(kind, shape, splits):
        m, n, _ = shape
        stages = 36 if kind.bytes == 1 else 35
        config = (66, 10, splits, 2 if splits > 1 else 0, 0, 1, stages, 0, 2)
        workspace = 4 * m * n * splits if splits > 1 else 0
        return Plan(bytes([splits]) + bytes(63), config, workspace, m * n / 4096)

    def plan(self, kind, shape, workspace):
        m, n, k = shape
        splits = 2 + (k // 16 + m) % 11 if k >= 1024 and m * n <= 4096 else 1
        if splits > 1 and 4 * m * n * splits > workspace:
            splits = 1
        return self._made(kind, shape, splits)

    def forced(self, kind, shape, plan, splits, reduction="COMPUTE_TYPE"):
        return self._made(kind, shape, splits) if splits <= 32 else None

    def upload(self, kind, codes):
        return codes

    def filled(self, kind, rows, columns, code):
        return np.full((rows, columns), code, kind.code_dtype)

    def multiply(self, kind, held, plan):
        a, b = held
        splits, inner = plan.algorithm[0], a.shape[1]
        rule, tile, order, through_result = PLANTED[kind.name]
        part = part_of_products(rule, tile, inner, splits) if splits > 1 else np.zeros(inner, int)
        sums = [self._sum(kind, a[:, part == s], b[:, part == s], through_result) for s in range(splits)]
        if order == "backward":
            sums.reverse()
        total = sums[0]
        for x in sums[1:]:
            total = (total + x).astype(total.dtype)
        if kind.operand == "int8":
            return total.astype(np.int64).astype(np.uint32)
        return self._codes(kind, total + np.float32(0))

    @staticmethod
    def _codes(kind, values):
        import numsim as ns

        return np.asarray(ns.encode(values, kind.result)).view(kind.result_dtype)

    @staticmethod
    def _sum(kind, a, b, through_result):
        import numsim as ns

        if kind.operand == "int8":
            return a.view(np.int8).astype(np.int64) @ b.view(np.int8).astype(np.int64).T
        if a.shape[1] == 0:
            return np.zeros((len(a), len(b)), np.float32)
        x, y = (ns.Array(np.ascontiguousarray(codes), kind.operand) for codes in (a, b))
        with warnings.catch_warnings():  # of sums that are longer than the device's that were compared
            warnings.simplefilter("ignore")
            total = ns.matmul(x, y.T, accumulate=kind.mode)
        return ns.round(total, kind.result) if through_result else total

    def torch_product(self, kind, held):
        return None
