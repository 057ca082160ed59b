"""MMA-Sim [MMA-Sim]: its instruction classes, chained over the inner dimension.

Its functions take tiles of an instruction's shape. How a tile is laid out does not matter to a sum, so
the instances here are given the shape of the grid. Needs PyTorch.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from peers.cases import Grid, Mode, values
from peers.compare import Answers, Recompute
from peers.program import refuse

FP8 = ("e4m3fn", "e5m2")
TORCH_NAMES = {
    "e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2", "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz", "fp16": "float16", "bf16": "bfloat16", "tf32": "float32",
    "e8m0fnu": "float8_e8m0fnu", "ue4m3fn": "float8_e4m3fn",
}  # fmt: skip
IN_PAIRS = "it adds CDNA1's products in pairs in float32, numsim exactly"
HIDES_PRODUCTS = "beside an infinity it does not see finite products beyond float32"
NO_EXPONENT = -(10**6)  # of zero
PTX = {"e4m3fn": "e4m3", "e5m2": "e5m2", "e2m1fn": "e2m1", "fp16": "f16", "bf16": "bf16", "tf32": "tf32"}


@dataclasses.dataclass(frozen=True)
class Instruction:
    """A mode of numsim and the instruction of MMA-Sim that it describes."""

    mode: Mode
    kind: str  # name of the class
    arch: str
    qualifier: str
    promote: int = 0  # products whose sum is added in float32


def _nvidia() -> Iterator[Instruction]:
    def one(name: str, formats: str, step: int, bits: int, neighbour: str, kind: str, arch: str,
            shape: str, promote: int = 0) -> Instruction:  # fmt: skip
        a, _, b = formats.partition(" ")
        mode = Mode(name, a, b or a, step, neighbour, fraction_bits=bits)
        accumulator = ".f32" if kind == "mma" else ""
        qualifier = f"{shape}.f32.{PTX[a]}.{PTX[b or a]}{accumulator}"
        return Instruction(mode, kind, arch, qualifier, promote)

    mixed = ("e4m3fn", "e5m2", "e4m3fn e5m2")
    for pair in mixed:
        yield one("hopper-fp8-fast", pair, 32, 13, "trunc:14,32", "wgmma", "Hopper", "m64n8k32")
    yield one("hopper-fp8", "e4m3fn", 32, 13, "trunc:13,32,256", "wgmma", "Hopper", "m64n8k32", 128)
    for f, k in (("bf16", 16), ("fp16", 16), ("tf32", 8)):
        shape = f"m64n8k{k}"
        yield one(f"hopper-{f}", f, k, 25, f"trunc:24,{k}", "wgmma", "Hopper", shape)
        yield one(f"blackwell-{f}", f, k, 25, f"trunc:25,{k // 2}", "tcgen05mma", "Blackwell", shape)
    for pair in mixed:
        yield one("blackwell-fp8", pair, 32, 25, "trunc:25,16", "tcgen05mma", "Blackwell", "m64n8k32")
    yield one("blackwell-fp8", "e4m3fn", 32, 25, "trunc:24,32", "mma", "RTX Blackwell", "m16n8k32")
    yield one("volta-fp16", "fp16", 4, 23, "trunc:24,4", "mma", "Volta", "m8n8k4")
    yield one("turing-fp16", "fp16", 8, 24, "trunc:23,8", "mma", "Turing", "m16n8k8")
    for family, arch in (("ampere", "Ampere"), ("ada", "Ada Lovelace")):
        yield one(f"{family}-fp16", "fp16", 8, 24, "trunc:24,16", "mma", arch, "m16n8k16")
        yield one(f"{family}-bf16", "bf16", 8, 24, "trunc:25,8", "mma", arch, "m16n8k16")
        yield one(f"{family}-tf32", "tf32", 4, 24, "trunc:24,8", "mma", arch, "m16n8k8")
    for pair in mixed:
        yield one("ada-fp8", pair, 16, 13, "trunc:13,32", "mma", "Ada Lovelace", "m16n8k32")


def _block_scaled() -> Iterator[Instruction]:
    for kind, arch, shape in (("mma_block_scale", "RTX Blackwell", "m16n8"),
                              ("tcgen05mma_block_scale", "Blackwell", "m128n8")):  # fmt: skip
        accumulator = ".f32" if kind == "mma_block_scale" else ""
        for a, b in (("e4m3fn", "e4m3fn"), ("e5m2", "e5m2"), ("e4m3fn", "e5m2")):
            mode = Mode("mxf8f6f4", a, b, 32, "trunc:25,32", "e8m0fnu", 32, 25)
            formats = f"f32.{PTX[a]}.{PTX[b]}{accumulator}"
            yield Instruction(mode, kind, arch, f"{shape}k32.block32.{formats}.ue8m0")
        for name, scale, block, suffix in (("mxf4", "e8m0fnu", 32, "ue8m0"),
                                           ("mxf4", "e8m0fnu", 16, "ue8m0"),
                                           ("mxf4nvf4", "ue4m3fn", 16, "ue4m3")):  # fmt: skip
            mode = Mode(name, "e2m1fn", "e2m1fn", 64, "trunc:35,64", scale, block, 35)
            formats = f"f32.e2m1.e2m1{accumulator}"
            yield Instruction(mode, kind, arch, f"{shape}k64.block{block}.{formats}.{suffix}")


def _amd() -> Iterator[Instruction]:
    for name, a, b, step, neighbour, arch, qualifier in (
        ("cdna1-fp16", "fp16", "fp16", 4, "trunc:24,4", "CDNA1", "f32_32x32x8f16"),
        ("cdna1-bf16", "bf16", "bf16", 2, "cdna2-bf16-2", "CDNA1", "f32_32x32x4bf16"),
        ("cdna2-fp16", "fp16", "fp16", 4, "cdna1-fp16", "CDNA2", "f32_32x32x8f16"),
        ("cdna2-bf16", "bf16", "bf16", 4, "cdna2-bf16-2", "CDNA2", "f32_32x32x8bf16_1k"),
        ("cdna2-bf16-2", "bf16", "bf16", 2, "cdna2-bf16", "CDNA2", "f32_32x32x4bf16"),
        ("cdna3-fp16", "fp16", "fp16", 8, "cdna3-tf32", "CDNA3", "f32_32x32x8_f16"),
        ("cdna3-bf16", "bf16", "bf16", 8, "cdna3-tf32", "CDNA3", "f32_32x32x8_bf16"),
        ("cdna3-tf32", "tf32", "tf32", 4, "cdna3-fp16", "CDNA3", "f32_16x16x8_xf32"),
        ("cdna3-fp8", "e4m3fnuz", "e4m3fnuz", 16, "cdna3-fp16", "CDNA3", "f32_16x16x32_fp8_fp8"),
        ("cdna3-fp8", "e5m2fnuz", "e5m2fnuz", 16, "cdna3-fp16", "CDNA3", "f32_16x16x32_bf8_bf8"),
        ("cdna3-fp8", "e5m2fnuz", "e4m3fnuz", 16, "cdna3-fp16", "CDNA3", "f32_16x16x32_bf8_fp8"),
    ):
        yield Instruction(Mode(name, a, b, step, neighbour), "mfma", arch, qualifier)


def instructions() -> list[Instruction]:
    """Returns all pairs of a mode and an instruction that are compared."""
    return [*_block_scaled(), *_nvidia(), *_amd()]


class MmaSim:
    """The simulator of a checkout."""

    def __init__(self, checkout: Path) -> None:
        if not (checkout / "mmasim").is_dir():
            refuse(f"{checkout}: expected a checkout of MMA-Sim, found no folder mmasim")
        sys.path.insert(0, str(checkout))
        self.torch: Any = importlib.import_module("torch")
        self.torch.set_num_threads(1)
        self.arithmetic: Any = importlib.import_module("mmasim.simulator.arithmetic")
        self.nvidia: Any = importlib.import_module("mmasim.simulator.nv_ptx")
        self.amd: Any = importlib.import_module("mmasim.simulator.amd")
        self._widen_pairs()

    def _widen_pairs(self) -> None:
        """Lets pairwise_dot take fp16 and bf16, as amd.py calls it; it asserts float32."""
        original = self.arithmetic.pairwise_dot
        self.amd.pairwise_dot = lambda a, b, flush=False: original(a.float(), b.float(), flush)

    def tensor(self, name: str, codes: np.ndarray) -> Any:
        """Returns codes as a tensor of their format; e2m1fn in pairs, as MMA-Sim packs it."""
        if name == "e2m1fn":
            packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
            return self.torch.from_numpy(packed)
        dtype = getattr(self.torch, TORCH_NAMES[name])
        if name == "tf32":
            raw = (codes << 13).astype(np.uint32).view(np.int32)
        else:
            raw = codes.astype(np.uint16).view(np.int16) if dtype.itemsize == 2 else codes.astype(np.uint8)
        return self.torch.from_numpy(np.ascontiguousarray(raw)).view(dtype)

    def operation(self, instruction: Instruction, m: int, n: int) -> Any:
        module = self.amd if instruction.kind == "mfma" else self.nvidia
        operation = getattr(module, instruction.kind)(instruction.arch, instruction.qualifier)
        operation.m, operation.n = m, n
        if instruction.kind == "mfma":
            operation.k = instruction.mode.step  # only the number of steps of a call
        return operation

    def sums(self, instruction: Instruction, grid: Grid) -> Answers:
        """Returns the sums of a grid. Tiles that raise an error are computed one sum at a time."""
        try:
            return Answers(self._chain(instruction, grid))
        except (OverflowError, ValueError):
            shape = (grid.a.shape[0], grid.b.shape[0])
            bits, stopped = np.zeros(shape, np.uint32), np.zeros(shape, bool)
            for i, j in np.ndindex(*shape):
                try:
                    bits[i, j] = self._chain(instruction, grid.one(i, j))[0, 0]
                except (OverflowError, ValueError):
                    stopped[i, j] = True
            return Answers(bits, stopped)

    def _chain(self, instruction: Instruction, grid: Grid) -> np.ndarray:
        mode, torch = instruction.mode, self.torch
        operation = self.operation(instruction, grid.a.shape[0], grid.b.shape[0])
        grid = grid.padded(operation.k)
        total = acc = torch.zeros((operation.m, operation.n), dtype=torch.float32)
        for begin in range(0, grid.a.shape[1], operation.k):
            if instruction.promote and begin and begin % instruction.promote == 0:
                total, acc = total + acc, torch.zeros_like(acc)
            part = grid.part(begin, begin + operation.k, mode.block or 1)
            words = [self.tensor(mode.a, part.a), self.tensor(mode.b, part.b).T, acc]
            if part.scale_a is not None and part.scale_b is not None:
                words += [self.tensor(mode.scale, part.scale_a), self.tensor(mode.scale, part.scale_b).T]
            acc = operation(*words)
        if instruction.promote:
            acc = total + acc
        return acc.numpy().view(np.uint32)

    def rules(self, instruction: Instruction) -> dict[str, Recompute]:
        """Returns the known ways in which MMA-Sim differs, each as a recomputation."""
        if instruction.arch == "CDNA1":
            return {IN_PAIRS: lambda grid, i, j: exact_chunks(instruction.mode, grid.one(i, j))}
        if instruction.arch == "CDNA2":
            return {}
        if instruction.arch == "CDNA3":
            return {
                "zero operands have the exponent -126, in numsim zero products": self._again(
                    instruction, self.arithmetic, fused_sum=self._sum_with_zero_products
                ),
                HIDES_PRODUCTS: self._again(
                    instruction, self.amd, amd_fused_dot_rd_add=self._add_infinite_products
                ),
            }
        return {
            "its least exponent is -126, not -133": self._again(
                instruction,
                self.arithmetic,
                extract_significand_exponent=self._extract_nonzero,
                fused_sum=self._sum_of_nonzero,
            )
        }

    def _again(self, instruction: Instruction, module: Any, **changed: Callable[..., Any]) -> Recompute:
        """Returns a recomputation with changed functions. Each is called with the original first."""

        def recompute(grid: Grid, i: int, j: int) -> int:
            originals = {name: getattr(module, name) for name in changed}
            for name, function in changed.items():
                setattr(module, name, functools.partial(function, originals[name]))
            try:
                return int(self._chain(instruction, grid.one(i, j))[0, 0])
            finally:
                for name, original in originals.items():
                    setattr(module, name, original)

        return recompute

    @staticmethod
    def _extract_nonzero(original: Any, x: Any, dtype: Any = None) -> tuple[float, int]:
        significand, exponent = original(x, dtype)
        return significand, NO_EXPONENT if significand == 0 else exponent

    @staticmethod
    def _sum_of_nonzero(original: Any, significands: Any, exponents: Any, bits: int) -> tuple[float, int]:
        """Zeros have no exponent, but a group of mxf4 whose sum is zero keeps that of its scales."""
        kept = [(s, e) for s, e in zip(significands, exponents) if e > NO_EXPONENT // 2]
        return original(*map(list, zip(*kept, (0.0, -133))), bits)

    @staticmethod
    def _sum_with_zero_products(original: Any, significands: Any, exponents: Any, bits: int) -> tuple[float, int]:
        exponents = [-126 if s == 0 else e for s, e in zip(significands, exponents)]
        return original(significands, exponents, bits)

    def _add_infinite_products(self, original: Any, a: Any, b: Any, c: Any, **options: Any) -> float:
        """Products of 2^128 and beyond are infinities like all others."""
        products = a.double() * b.double()
        infinite = products[products.abs() >= 2.0**128] * float("inf")
        if infinite.numel() and self.torch.isinf(products.sum() + c.double()):
            return float(infinite.sum() + c)
        return original(a, b, c, **options)


def exact_chunks(mode: Mode, grid: Grid, start: float = 0) -> int:
    """Returns the bits of acc = fl32(acc + the exact sum of each step), of one sum from `start` on."""
    products = values(mode.a, grid.a[0]).astype(np.float64) * values(mode.b, grid.b[0])  # exact
    acc = np.float32(start)
    for begin in range(0, products.size, mode.step):
        terms = [np.float64(acc), *products[begin : begin + mode.step]]
        if np.isfinite(terms).all():
            acc = round_to_float32(sum(map(Fraction, terms), Fraction(0)))
        else:
            with np.errstate(invalid="ignore"):
                acc = np.float32(sum(x for x in terms if not np.isfinite(x)))
    return int(acc.view(np.uint32))


def infinite_sum(mode: Mode, grid: Grid, start: float) -> int:
    """Returns the bits of the sum of all infinities, products of 2^128 and beyond among them."""
    with np.errstate(invalid="ignore", over="ignore"):
        products = values(mode.a, grid.a[0]).astype(np.float64) * values(mode.b, grid.b[0])
        products = np.where(np.abs(products) >= 2.0**128, np.copysign(np.inf, products), products)
        total = np.float32(start) + sum(x for x in products if not np.isfinite(x))
    return int(np.float32(total).view(np.uint32))


def round_to_float32(exact: Fraction) -> np.float32:
    """Returns the float32 next to a fraction, ties to even."""
    if exact == 0:
        return np.float32(0)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    whole = round(magnitude / unit) * unit  # round() takes ties to even
    value = np.float32(np.inf) if whole >= Fraction(2) ** 128 else np.float32(float(whole))
    return -value if exact < 0 else value
