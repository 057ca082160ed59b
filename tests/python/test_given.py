"""Codes with given scales, against NumPy: shapes are no multiples of the blocks."""

import numpy as np
import pytest

import numsim as ns
from conftest import FP4, spread

RNG = np.random.default_rng(6)
ROWS, COLS = 300, 261


def drawn_codes(shape, codes=127):
    return RNG.integers(0, codes, shape).astype(np.uint8)


@pytest.mark.parametrize(
    ("shape", "scaling", "rows", "cols"),
    [
        ((), None, ROWS, COLS),
        ((1,), "tensor", ROWS, COLS),
        ((ROWS,), None, 1, COLS),
        ((ROWS, 1), "row", 1, COLS),
        ((1, COLS), None, ROWS, 1),
        ((COLS,), "column", ROWS, 1),
        ((3, 3), "tile:128x128", 128, 128),
        ((ROWS, 9), "block:32", 1, 32),
        ((43, 6), "tile:7x50", 7, 50),
    ],
)
def test_matrices(shape, scaling, rows, cols):
    codes, scales = drawn_codes((ROWS, COLS)), RNG.random(shape, np.float32)
    grid = scales.reshape(-(-ROWS // rows), -(-COLS // cols))
    each = spread(grid, rows, cols, codes.shape)
    values = ns.decode(codes, "e4m3fn")
    expected = values * each
    assert (ns.dequantize(codes, scales, "e4m3fn", scaling=scaling) == expected).all()
    q = ns.from_codes(codes, scales, "e4m3fn", scaling=scaling)
    assert (q.dequantize() == expected).all()
    assert (q.T.dequantize() == expected.T).all()
    x = RNG.standard_normal((4, COLS)).astype(np.float32)
    x = ns.round(x, "bf16")
    exact = x.astype(float) @ (values.astype(float) * each.astype(float)).T
    got = ns.matmul(x, q.T, accumulate="exact")
    assert np.abs(got - exact).max() <= 2e-6 * np.abs(exact).max()  # segments are added in float32
    y = ns.round(RNG.standard_normal((3, ROWS)).astype(np.float32), "bf16")
    exact = y.astype(float) @ (values.astype(float) * each.astype(float))
    got = ns.matmul(y, q, accumulate="exact")
    assert np.abs(got - exact).max() <= 2e-6 * np.abs(exact).max()
    original = (expected * 1.01).astype(np.float32)
    error = expected.astype(float) - original
    sqnr = 10 * np.log10((original.astype(float) ** 2).sum() / (error**2).sum())
    assert abs(q.error(original).sqnr_db - sqnr) < 1e-9


def test_quantized_matrices_come_back():
    x = RNG.standard_normal((30, 50)).astype(np.float32)
    for scaling in ("tensor", "row", "column", "block:32", "tile:7x9", "block:16/e8m0"):
        for format in ("e4m3fn", "int8", "e2m1fn", "bf16"):
            q = ns.quantize(x, format, scaling=scaling)
            layout = scaling.partition("/")[0]
            again = ns.from_codes(q.codes, q.scales, format, scaling=layout)
            assert (again.dequantize() == q.dequantize()).all()
            assert again.error(x).sqnr_db == q.error(x).sqnr_db


def test_mx_and_nvfp4():
    for cols in (70, 64):
        codes = drawn_codes((5, cols), 16)
        powers = RNG.integers(100, 140, (5, -(-cols // 32))).astype(np.uint8)
        packed = codes[:, 0::2] | codes[:, 1::2] << 4
        expected = FP4[codes] * spread(np.exp2(powers - 127.0), 1, 32, codes.shape)
        assert (ns.dequantize(codes, powers, "e2m1fn") == expected).all()
        assert (ns.dequantize(packed, powers, "e2m1fn", packed=True) == expected).all()
        q = ns.from_codes(codes, powers, "e2m1fn")
        assert q.scaling == "block:32"
        assert (q.scale_codes == powers).all()
        groups = ns.encode(RNG.random((5, -(-cols // 16)), np.float32) * 400, "e4m3fn")
        scales = ns.decode(groups, "e4m3fn")
        tensor = np.float32(0.0123)
        expected = FP4[codes] * spread(scales * tensor, 1, 16, codes.shape)
        got = ns.dequantize(codes, scales, "e2m1fn", scaling="block:16", tensor_scale=tensor)
        assert (got == expected).all()


def test_stacks():
    codes = drawn_codes((3, 200, 130))
    values = ns.decode(codes, "e4m3fn")
    scales = RNG.random((3, 2, 2), np.float32)
    expected = values * spread(scales, 128, 128, codes.shape)
    got = ns.dequantize(codes, scales, "e4m3fn", scaling="tile:128x128")
    assert (got == expected).all()
    for shape in ((3,), (3, 1, 1), (3, 200), (3, 200, 1), (3, 1, 130), ()):
        scales = RNG.random(shape, np.float32)
        each = scales.reshape(shape + (1,) * (3 - len(shape)))
        assert (ns.dequantize(codes, scales, "e4m3fn") == values * each).all()


def test_a_stack_may_be_empty():
    for scales, scaling in (((0, 4, 2), "block:32"), ((0, 4, 1), None), ((0, 1, 1), None)):
        codes, ones = np.zeros((0, 4, 64), np.uint8), np.ones(scales, np.float32)
        assert ns.dequantize(codes, ones, "e4m3fn", scaling=scaling).shape == codes.shape


def test_codes_of_other_integer_dtypes_are_those_of_the_format():
    codes = drawn_codes((6, 5), 16)
    expected = ns.dequantize(codes, np.float32(2), "e2m1fn")
    for dtype in (np.int64, np.uint16, ">i4"):
        other = codes.astype(dtype)
        assert (ns.dequantize(other, np.float32(2), "e2m1fn") == expected).all()
        assert (ns.decode(other, "e2m1fn") == FP4[codes]).all()
        for wrong in (16, -1 if np.dtype(dtype).kind == "i" else 256):
            other[2, 3] = wrong
            for call in (ns.decode, lambda c, f: ns.from_codes(c, np.float32(2), f)):
                with pytest.raises(ValueError, match="codes: expected 0 to 15, the codes of e2m1fn"):
                    call(other, "e2m1fn")


def test_int8():
    codes = RNG.integers(-128, 128, (6, 4, 3, 3)).astype(np.int8)
    scales = RNG.random((6, 1, 1, 1), np.float32)
    assert (ns.dequantize(codes, scales) == codes.astype(np.float32) * scales).all()


def test_arrays_of_pytorch():
    torch = pytest.importorskip("torch")
    codes = torch.from_numpy(drawn_codes((5, 70)))
    scales = torch.rand(5, 1)
    got = ns.dequantize(codes.view(torch.float8_e4m3fn), scales)
    assert isinstance(got, torch.Tensor)
    assert torch.equal(got, codes.view(torch.float8_e4m3fn).float() * scales)
    powers = torch.from_numpy(RNG.integers(100, 140, (5, 3)).astype(np.uint8))
    got = ns.dequantize(codes.view(torch.float8_e4m3fn), powers.view(torch.float8_e8m0fnu))
    assert torch.equal(got, torch.from_numpy(ns.dequantize(codes.numpy(), powers.numpy(), "e4m3fn")))


def test_what_does_not_fit_is_refused():
    codes = drawn_codes((300, 200))
    grid = np.ones((3, 2), np.float32)
    for message, call in (
        ("scales: .*name it, as block:N", lambda: ns.dequantize(codes, grid, "e4m3fn")),
        (
            r"scales: .*has scales of shape \(5, 4\)",
            lambda: ns.dequantize(codes, grid, "e4m3fn", scaling="tile:64x64"),
        ),
        ("scales: 1e.39 is no float32", lambda: ns.dequantize(codes, np.array(1e39), "e4m3fn")),
        ("codes: ", lambda: ns.dequantize(codes, np.float32(1), "e2m1fn")),
        ("codes: expected a matrix", lambda: ns.from_codes(codes[None], np.float32(1), "e4m3fn")),
        ("at most 16 bits", lambda: ns.dequantize(codes.astype(np.uint32), np.float32(1), "fp32")),
        ("packed: ", lambda: ns.dequantize(codes, np.float32(1), "e4m3fn", packed=True)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="format: missing"):
        ns.dequantize(codes, np.float32(1))
    with pytest.raises(ValueError, match="codes: expected 0 to 255"):
        ns.dequantize(codes.view(np.int8) - 100, np.float32(1), "e4m3fn")


def test_nvfp4_with_two_levels_multiplies_as_the_unit_does():
    x = RNG.standard_normal((5, 96)).astype(np.float32)
    q = ns.quantize(x, "nvfp4")
    scales = ns.decode(q.scale_codes, "e4m3fn")
    given = ns.from_codes(q.codes, scales, "e2m1fn", scaling="block:16", tensor_scale=q.tensor_scale)
    assert given.tensor_scale == q.tensor_scale
    assert (given.dequantize() == q.dequantize()).all()
    expected = ns.matmul(q, q.T, accumulate="mxf4nvf4")
    assert (ns.matmul(given, given.T, accumulate="mxf4nvf4") == expected).all()
    alone = ns.from_codes(q.codes, scales, "e2m1fn", scaling="block:16")
    tensor = np.float64(q.tensor_scale)
    sums = ns.matmul(alone, alone.T, accumulate="mxf4nvf4").astype(np.float64)
    assert ((sums * (tensor * tensor)).astype(np.float32) == expected).all()
