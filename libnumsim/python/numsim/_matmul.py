"""Matrix products under a named accumulation mode."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from numsim import _core, _device, _gradients, _settings
from numsim._arrays import F32, NUMPY, Exact, Taken, is_float32, take, widened
from numsim._formats import format_of, warn

_FP32, _INT8 = format_of("fp32"), format_of("int8")


def matmul(
    a: Any,
    b: Any,
    *,
    accumulate: str | None = None,
    any_operands: bool = False,
    epilogue: str = "float64",
    split_k: int | None = None,
    split_tile: int | None = None,
    split_partition: str = "contiguous",
    split_partials: str = "fp32",
) -> Any:
    """Returns a @ b in float32, summed as the accumulation mode says, bit for bit.

    a, b           matrices: results of `quantize`, typed arrays (`array`), float32 arrays, or
                   arrays whose dtype is a format
    accumulate     None ("exact" for two int8 operands, else "fp32"), "exact", "fp32", "fp64", a
                   format ("bf16", "e5m10:unfused"), "fp32-chunked:N", "trunc:F,CHUNK[,PROMOTE]",
                   "library" (fast, order not specified), or the name of a device's mode, such as
                   "hopper-fp8" (`accumulation_modes()`). Under "mxf8f6f4", "mxf4" and "mxf4nvf4"
                   the scales of blocks enter the sum, as in Blackwell's tensor cores (docs/mx.md)
    any_operands   also take formats that the named device does not
    epilogue       how a sum S is multiplied by the scales of its row and column: "float64", once,
                   "float32:ab" (S (sa sb)), "float32:a,b" ((S sa) sb), "float32:b,a" ((S sb) sa) in
                   float32, or "cublaslt", as on an H200; `round` makes bf16 of the result
    split_k        None (one sum), or the number of parts into which the inner dimension is cut; their
                   sums are added in float32, in order, before the epilogue
    split_tile     products of a k-tile, of which parts consist; None: 128 for formats of at most 8
                   bits, else 64, as cuBLASLt on an H200
    split_partition  "contiguous": parts of ceil(tiles / parts) k-tiles, or "cublaslt": parts of
                   floor(inner / parts) products, rounded up to k-tiles, as on an H200. The last
                   products may then be in no part, with a warning (docs/results/library-products.md)
    split_partials the format to which the sum of a part is rounded before it is added

    Transposes and Fortran order cost no copy. The result does not depend on the number of threads
    or the processor, except in mode "library"; it is of a's kind. Warns if the device of the mode
    was compared for shorter sums only. Source: docs/linear.md.
    """
    if accumulate is not None:
        accumulate = _settings.text(accumulate, "accumulate")
    if type(any_operands) is not bool:
        any_operands = _settings.flag(any_operands, "any_operands")
    if type(epilogue) is not str:
        epilogue = _settings.text(epilogue, "epilogue")
    split = None
    if split_k is not None or (split_tile, split_partition, split_partials) != (None, "contiguous", "fp32"):
        split = _split_settings(split_k, split_tile, split_partition, split_partials)
    left, right = _operand(a, "a", False), _operand(b, "b", True)
    library, shape_a, format_a, _, _ = left
    other, shape_b, format_b, _, _ = right
    if shape_a[1] != shape_b[0]:
        raise ValueError(f"b: expected {shape_a[1]} rows for a of shape {shape_a}, found {shape_b}")
    if accumulate is None:
        accumulate = "exact" if format_a is _INT8 and format_b is _INT8 else "fp32"
    products = shape_a[1]
    if split is not None:
        split = _split(split, format_a, format_b)
        products = split.longest(products)
        _warn_of_lost_products(split, shape_a[1])
    if accumulate in _measured():
        _warn_of_long_sums(accumulate, products)
    if library.on_device != other.on_device:
        raise ValueError("b: expected an operand at the place of a: one is on a device, one is not")
    if not library.on_device:
        return _product(left, right, accumulate, any_operands, epilogue, split, None)
    for name, given in (("epilogue", epilogue != "float64"), ("split_k", split is not None)):
        if given:
            raise ValueError(f"{name}: has no device path; pass operands in host memory")
    with library.call() as context:
        return _product(left, right, accumulate, any_operands, epilogue, None, context)


def _split_settings(parts, tile, partition, partials):
    """Returns the settings of a split, checked one by one."""
    if parts is None:
        raise ValueError("split_k: expected a number of parts beside the other settings of a split")
    parts = _settings.integer(parts, "split_k", 1, 1 << 30)
    if tile is not None:
        tile = _settings.integer(tile, "split_tile", 1, 1 << 30)
    return parts, tile, _settings.text(partition, "split_partition"), format_of(partials)


def _split(settings, format_a, format_b):
    parts, tile, partition, partials = settings
    if tile is None:
        tile = _core.split_tile(format_a.spec, format_b.spec)
    return _core.SplitK(parts, tile, partition, partials.spec)


def _warn_of_lost_products(split, inner):
    lost = split.left_out(inner)
    if lost:
        warn(f"split_partition: the last {lost} of {inner} products are not summed, as cuBLASLt does")


def _product(left, right, accumulate, any_operands, epilogue, split, context):
    """The product of two operands that _operand returned, as an array of the left one's kind."""
    library, shape_a, format_a, source_a, columns_a = left
    _, shape_b, format_b, source_b, columns_b = right
    out = library.empty((shape_a[0], shape_b[1]), F32)
    _core.gemm(
        format_a.spec,
        source_a,
        columns_a,
        format_b.spec,
        source_b,
        columns_b,
        accumulate,
        any_operands,
        library.shown(out),
        epilogue,
        split,
        context,
    )
    return out if library is NUMPY else library.give(library.finish(out), None)


def _warn_of_long_sums(accumulate, products):
    """Warns if the device adds so many products in an order that nobody compared with the mode."""
    longest, note = _measured()[accumulate]
    if longest and products > longest:
        warn(
            f"{accumulate} was compared with the device for sums of up to {longest} products, and "
            f"these have {products}; it describes: {note}"
        )


@functools.cache
def _measured():
    """{name of an accumulation mode: (longest sum that was compared with the device, note)}."""
    return {name: (longest, note) for name, _, _, note, longest in _core.accumulation_modes()}


def _operand(x, name, columns):
    """Returns (library, shape, format, source, columns) of x as an operand of a product.

    The source is an array as _core takes it, float32 or codes of the format, or _core's quantised
    matrix. Its rows are the vectors of the product, or its columns if `columns`. Classes of the
    package say themselves how they enter a product: by `_gemm_operand(columns)`, which returns the
    same, or by `_gemm_codes()`, which returns (codes, format).
    """
    if is_float32(x) and x.ndim == 2:
        return NUMPY, x.shape, _FP32, x, columns
    operand = getattr(x, "_gemm_operand", None)
    if operand is not None:
        return operand(columns)
    codes = getattr(x, "_gemm_codes", None)
    if codes is None:
        _gradients.refuse_followed(x, name, "matmul")
        taken = take(x, name, True)
    else:
        taken = Taken(*codes(), NUMPY)
    library, array = taken.library, taken.array
    shape = tuple(array.shape)
    if len(shape) != 2:
        raise ValueError(
            f"{name}: expected a matrix, found {len(shape)} dimensions; of stacks of matrices, "
            "multiply pairs: np.stack([ns.matmul(x, y) for x, y in zip(a, b)])"
        )
    if taken.format is None:
        as_it_is = type(array) is not Exact and taken.dtype is F32
    else:
        as_it_is = taken.format.bits <= 16  # the library takes no wider codes
    if not as_it_is:
        array = widened(taken, name)
    if not library.is_packed(array):
        if library.is_packed(array.T):
            array, columns = array.T, not columns
        else:
            array = library.packed(array)
    format = taken.format or _FP32
    return library, shape, format, library.shown(array), columns


def matmul_error(
    a: Any, b: Any, *, accumulate: str | None = None, any_operands: bool = False
) -> _core.ProductError:
    """Compares a @ b under a mode with the exact product of the same operands.

    The operands are in host memory. Returns an object with `relative_error` (Frobenius),
    `row_error`, `column_error`, `sqnr_db`, `cosine`, `gain`, `bias`, `error_variance` and `signal_variance`.
    """
    if _is_on_device(a) or _is_on_device(b):
        raise ValueError("matmul_error: has no device path; pass operands in host memory")
    exact = _as_numpy(matmul(a, b, accumulate="exact"))
    got = _as_numpy(matmul(a, b, accumulate=accumulate, any_operands=any_operands))
    return _core.compare_product(exact, got, exact.shape[1])


def _is_on_device(x):
    if hasattr(x, "_gemm_operand"):
        return x._gemm_operand(False)[0].on_device
    return _device.on_device(x)


def _as_numpy(x):
    return x if isinstance(x, np.ndarray) else np.from_dlpack(x)


def accumulation_modes() -> dict[str, tuple[str, bool, str]]:
    """Returns {name: (formats that the device takes, measured by this project, note)}."""
    return {
        name: (operands, measured, note)
        for name, operands, measured, note, _ in _core.accumulation_modes()
    }
