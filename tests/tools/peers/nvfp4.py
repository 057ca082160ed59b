"""The reference quantizer of NVFP4 of Transformer Engine [TransformerEngine]. Needs PyTorch.

Only its file is loaded, with stand-ins for the base classes, which need a GPU.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from peers.compare import Row
from peers.formats import FORMATS
from peers.program import Numsim, refuse

PACKAGE = "transformer_engine.pytorch.custom_recipes"
SHAPE = (64, 256)
# numsim's rule, the quantizer's options, and a rule with a fault: --plant.
RULES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("nvfp4-inverse", {}, "4over6-mae"),
    ("4over6-mae", {"nvfp4_use_4over6": True, "nvfp4_e4m3_max": 256, "nvfp4_4over6_err_mode": "MAE"}, "4over6-mse"),
    ("4over6-mse", {"nvfp4_use_4over6": True, "nvfp4_e4m3_max": 256, "nvfp4_4over6_err_mode": "MSE"}, "4over6-mae"),
)


def load(root: Path) -> tuple[Any, Any]:
    """Returns (torch, the class of the reference quantizer)."""
    folder = root / PACKAGE.replace(".", "/")
    if not (folder / "reference_nvfp4.py").exists():
        refuse(f"{root}: expected a checkout of TransformerEngine, found no {PACKAGE}/reference_nvfp4.py")
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    pytorch = "transformer_engine.pytorch"
    for name in ("transformer_engine", pytorch, PACKAGE):
        module = types.ModuleType(name)
        module.__path__ = [str(root / name.replace(".", "/"))]
        sys.modules[name] = module
    bases = {name: type(name, (), {}) for name in ("QuantizedTensorStorage", "Quantizer")}
    for name, contents in (("quantized_tensor", bases), ("tensor.utils", {"is_custom": None})):
        module = types.ModuleType(name)
        vars(module).update(contents)
        sys.modules[f"{pytorch}.{name}"] = module
    sys.modules[f"{pytorch}.tensor"] = types.ModuleType("tensor")
    return torch, importlib.import_module(f"{PACKAGE}.reference_nvfp4").NVFP4QuantizerRef


def matrix(rng: np.random.Generator, number: int) -> np.ndarray:
    """Returns numbers of float32, every second time of bf16: normal, wide, with zeros, tiny or huge."""
    x = rng.standard_normal(SHAPE, np.float32)
    kind = number // 2 % 5
    if kind == 1:
        x *= np.exp(rng.standard_normal(SHAPE, np.float32) * 2)
    elif kind == 2:
        x[rng.random(SHAPE) < 0.5] = 0
        x[: SHAPE[0] // 2, :32] = 0
    elif kind == 3:
        x *= np.float32(2.0) ** rng.integers(-100, -60)
    elif kind == 4:
        x *= np.float32(2.0) ** rng.integers(60, 100)
    if number % 2:
        x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return x


def _theirs(torch: Any, quantizer: Any, x: np.ndarray, tile: int, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    tensor = torch.from_numpy(x)
    packed, scales = quantizer._quantize_blockwise_reference(
        tensor, tensor.abs().max(), 16, tile, pow_2_scales=False, eps=0.0, **options
    )
    packed = packed.numpy()
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(SHAPE)
    return codes, scales.contiguous().view(torch.uint8).numpy().reshape(SHAPE[0], -1)


def _ours(numsim: Numsim, x: np.ndarray, tile: int, rule: str) -> tuple[np.ndarray, np.ndarray]:
    granularity = "block:16" if tile == 1 else "tile:16x16"
    numsim.run(
        "cast", numsim.save("x.npy", x), "codes.npy", "--format", "e2m1fn", "--granularity", granularity,
        "--scale", rule, "--scales-out", "scales.npy", "--tensor-scale-out", "tensor.npy",
    )  # fmt: skip
    scales = np.repeat(numsim.load("scales.npy"), tile, axis=0)
    return numsim.load("codes.npy"), FORMATS["ue4m3fn"].encode(scales).astype(np.uint8)


def compare(root: Path, numsim: Numsim, source: str, rules: list[str], elements: int, seed: int, plant: bool) -> Iterator[Row]:
    """Yields a row for each rule and shape of the groups: scales as sums, elements as products."""
    torch, quantizer = load(root)
    for rule, options, neighbour in RULES:
        for tile in (1, 16):
            if rules and rule not in rules:
                continue
            row = Row(rule, source, "1 x 16" if tile == 1 else "16 x 16")
            rng = np.random.default_rng([seed, tile])
            number = 0
            while row.products < elements:
                x = matrix(rng, number)
                number += 1
                _compare(row, x, _ours(numsim, x, tile, neighbour if plant else rule),
                         _theirs(torch, quantizer, x, tile, options))  # fmt: skip
            yield row


def _compare(row: Row, x: np.ndarray, ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> None:
    row.products += x.size
    row.sums += ours[1].size
    codes = ours[0] != theirs[0]
    scales = ours[1] != theirs[1]
    row.different += int(codes.sum() + scales.sum())
    for i, j in np.argwhere(scales)[:1]:
        row.example = row.example or f"scale {ours[1][i, j]:02X}, other {theirs[1][i, j]:02X} of {x[i, 16 * j:16 * j + 16]}"
    for i, j in np.argwhere(codes)[:1]:
        row.example = row.example or f"code {ours[0][i, j]:X}, other {theirs[0][i, j]:X} of {x[i, j]!r}"
