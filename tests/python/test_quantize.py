"""Quantised matrices against NumPy: scales by definition, codes by casts judged elsewhere."""

import numpy as np
import pytest

import numsim as ns
from conftest import same
from numsim import _quantize

F32 = np.float32


def groups(layout, rows, cols):
    """The index of the scale of each element, by the definition of the layout."""
    r, c = np.indices((rows, cols))
    kind, _, numbers = layout.partition(":")
    if kind == "tensor":
        return np.zeros((rows, cols), int)
    if kind == "row":
        return r
    if kind == "column":
        return c
    height, width = (1, int(numbers)) if kind == "block" else map(int, numbers.split("x"))
    return r // height * -(-cols // width) + c // width


LAYOUTS = ["tensor", "row", "column", "block:8", "tile:3x5"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "int8", "fp16"])
def test_scales_and_codes_follow_the_definition(layout, name, rng):
    x = rng.normal(size=(7, 21)).astype(F32)
    x[3, 4], x[5, 6], x[0] = np.nan, np.inf, 0
    f = ns.format(name)
    index = groups(layout, *x.shape)
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    absmax = np.zeros(index.max() + 1, F32)
    np.maximum.at(absmax, index, finite)
    nonzero = np.where(absmax == 0, F32(1), absmax)
    scales = np.where(absmax == 0, F32(1), nonzero / F32(f.max)).astype(F32)
    inverse = np.where(absmax == 0, F32(1), F32(f.max) / nonzero).astype(F32)
    t = ns.quantize(x, name, scaling=layout)
    assert np.array_equal(t.scales.ravel(), scales)
    codes = ns.encode(x * inverse[index], name, overflow="saturate")
    assert np.array_equal(t.codes, codes)
    assert same(t.dequantize(), ns.decode(codes, name) * scales[index])
    assert t.scales.size == 1 or np.broadcast_shapes(t.scales.shape[:1], (t.scales.shape[0],))


@pytest.mark.parametrize("rule, expected", [("pow2-floor", np.floor), ("pow2-ceil", np.ceil)])
def test_power_of_two_scales_follow_the_definition(rule, expected, rng):
    x = rng.normal(size=(5, 16)).astype(F32)
    scales = ns.quantize(x, "e4m3fn", scaling=f"row/{rule}").scales
    ratio = np.abs(x).max(axis=1, keepdims=True).astype(float) / 448
    assert np.array_equal(scales, np.exp2(expected(np.log2(ratio))))


def test_mx_blocks_have_the_shared_scale_of_the_standard(rng):
    x = rng.normal(size=(4, 64)).astype(F32)
    t = ns.quantize(x, "e2m1fn", scaling="block:32/e8m0")
    exponents = np.floor(np.log2(np.abs(x).reshape(4, 2, 32).max(axis=2).astype(float))) - 2
    assert t.scales.shape == (4, 2) and np.array_equal(t.scales, np.exp2(exponents))
    values = ns.round((x.reshape(4, 2, 32) / t.scales[..., None]), "e2m1fn", overflow="saturate")
    assert same(t.dequantize(), (values * t.scales[..., None]).reshape(4, 64))


def test_the_transpose_has_the_same_codes_and_values(rng):
    x = rng.normal(size=(6, 10)).astype(F32)
    t = ns.quantize(x, "e4m3fn", scaling="block:4")
    assert t.T.shape == (10, 6) and np.array_equal(t.T.codes, t.codes.T)
    assert same(t.T.dequantize(), t.dequantize().T) and t.T.T.shape == t.shape
    assert t.T.scales.shape == t.scales.shape[::-1]


@pytest.mark.parametrize(
    "scaling",
    ["tensor", "column", "block:16/nvfp4", "tile:2x16/4over6-mse", ns.Delayed("e2m1fn")],
)
def test_results_in_arrays_of_numpy_are_those_in_memory_of_the_library(monkeypatch, scaling, rng):
    x = rng.normal(size=(6, 40)).astype(F32)
    own = ns.quantize(x, "e2m1fn", scaling=scaling)
    monkeypatch.setattr(_quantize, "_SMALL", x.size - 1)
    lent = ns.quantize(x, "e2m1fn", scaling=scaling)
    for q in (own, lent):
        assert not q.codes.flags.writeable and q.codes.shape == q.T.codes.T.shape == x.shape
        assert same(q.T.dequantize(), q.dequantize().T)
    assert np.array_equal(own.codes, lent.codes) and same(own.scales, lent.scales)
    assert same(own.dequantize(), lent.dequantize()) and same(own @ lent.T, lent @ own.T)
    assert own.error(x).sqnr_db == lent.error(x).sqnr_db
    if scaling in ("block:16/nvfp4", "tile:2x16/4over6-mse"):
        assert own.tensor_scale == lent.tensor_scale
        assert np.array_equal(own.scale_codes, lent.scale_codes)


def test_codes_are_views_that_outlive_the_matrix(rng):
    x = rng.normal(size=(6, 10)).astype(F32)
    t = ns.quantize(x, "e4m3fn")
    codes, kept = t.codes, t.codes.copy()
    assert not codes.flags.writeable and np.shares_memory(codes, t.codes)
    del t
    assert np.array_equal(codes, kept)


def test_a_given_scale_is_used(rng):
    x = rng.normal(size=(6, 10)).astype(F32)
    t = ns.quantize(x, "e4m3fn", scale=0.25)
    assert t.scale == 0.25 and np.array_equal(
        t.codes, ns.encode(x * 4, "e4m3fn", overflow="saturate")
    )
    with pytest.raises(ValueError, match="scale: expected a positive number"):
        ns.quantize(x, "e4m3fn", scale=0)


def test_delayed_scales_follow_earlier_steps(rng):
    x = rng.normal(size=(6, 10)).astype(F32)
    delayed = ns.Delayed("e4m3fn", history=2)
    assert ns.quantize(x, "e4m3fn", scaling=delayed).scale == 1.0
    delayed.update()
    absmax = np.abs(x).max()
    assert ns.quantize(x * 4, "e4m3fn", scaling=delayed).scale == F32(1) / (F32(448) / absmax)
    delayed.update()
    assert delayed.scale == F32(1) / (F32(448) / (absmax * 4))
    other = ns.Delayed("e4m3fn", history=2)
    other.restore(delayed.state())
    assert other.scale == delayed.scale
    with pytest.raises(ValueError, match="scaling: follows a tensor of e4m3fn"):
        ns.quantize(x, "e5m2", scaling=delayed)


def test_stochastic_codes_use_the_index_of_the_element(rng):
    x = rng.normal(size=(6, 10)).astype(F32)
    sr = ns.SR(bits=8, seed=3, stream=1)
    t = ns.quantize(x, "e4m3fn", rounding=sr)
    inverse = F32(448) / np.abs(x).max()
    assert np.array_equal(
        t.codes, ns.encode(x * inverse, "e4m3fn", rounding=sr, overflow="saturate")
    )


@pytest.mark.parametrize("layout, rows, cols", [("block:16", 1, 16), ("tile:16x16", 16, 16)])
def test_nvfp4_is_e4m3fn_under_a_scale_of_the_tensor(layout, rows, cols, rng, tmp_path, request):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = rng.normal(size=(48, 64)).astype(F32)
    x *= np.exp2(-np.repeat(rng.integers(0, 20, (48, 4)), 16, axis=1)).astype(F32)
    absmax = np.abs(x).reshape(48 // rows, rows, 64 // cols, cols).max(axis=(1, 3))
    encode = F32(448 * 6) / absmax.max()
    of_group = (absmax / F32(6) * encode).astype(ml_dtypes.float8_e4m3fn).astype(F32)
    scales = of_group * (F32(1) / encode)
    each = np.repeat(np.repeat(scales, rows, axis=0), cols, axis=1)
    with np.errstate(divide="ignore"):
        inverse = np.where(each == 0, F32(0), F32(1) / each)
    codes = np.clip(x * inverse, -6, 6).astype(ml_dtypes.float4_e2m1fn)
    t = ns.quantize(x, "e2m1fn", scaling=f"{layout}/nvfp4")
    assert np.array_equal(t.scales, scales)
    assert t.tensor_scale == F32(1) / encode
    levels = t.scale_codes.view(ml_dtypes.float8_e4m3fn).astype(F32)
    assert np.array_equal(levels, of_group) and np.array_equal(t.T.scale_codes, t.scale_codes.T)
    assert np.array_equal(t.codes, codes.view(np.uint8))
    assert np.array_equal(t.dequantize(), codes.astype(F32) * each)
    assert rows == 16 or (scales == 0).any()
    run = request.getfixturevalue("numsim_program")
    np.save(tmp_path / "x.npy", x)
    options = ["--format", "e2m1fn", "--granularity", layout, "--scale", "nvfp4"]
    files = [tmp_path / f"{name}.npy" for name in ("x", "codes", "scales")]
    run("cast", *files[:2], *options, "--scales-out", files[2])
    assert np.array_equal(np.load(files[1]), t.codes)
    assert np.array_equal(np.load(files[2]), t.scales)


def test_one_level_of_scales_has_no_second_one(rng):
    t = ns.quantize(rng.normal(size=(4, 16)).astype(F32), "e2m1fn", scaling="block:16")
    with pytest.raises(ValueError, match="tensor_scale: this matrix has one level of scales"):
        t.tensor_scale
    with pytest.raises(ValueError, match="scale_codes: the scales of rule absmax are float32"):
        t.scale_codes


def test_errors_are_measured(rng):
    x = rng.normal(size=(16, 16)).astype(F32)
    t = ns.quantize(x, "e4m3fn", scaling="row")
    y = t.dequantize().astype(float)
    error = t.error(x)
    assert np.isclose(error.relative_error, np.linalg.norm(y - x) / np.linalg.norm(x))
    assert np.isclose(error.sqnr_db, -20 * np.log10(error.relative_error))
    assert t.T.error(x.T).relative_error == error.relative_error


def test_bad_arguments_are_named(rng):
    x = rng.normal(size=(6, 10)).astype(F32)
    with pytest.raises(ValueError, match="granularity 'rows'"):
        ns.quantize(x, "e4m3fn", scaling="rows")
    with pytest.raises(ValueError, match="scale rule 'absmin'"):
        ns.quantize(x, "e4m3fn", scaling="row/absmin")
    with pytest.raises(TypeError, match="x: expected float32 or smaller, found float64"):
        ns.quantize(x.astype(float), "e4m3fn")
    with pytest.raises(ValueError, match="x: expected a matrix, found 3 dimensions"):
        ns.quantize(x[None], "e4m3fn")
    with pytest.raises(ValueError, match="expected at most 16"):
        ns.quantize(x, "fp32")
    with pytest.raises(ValueError, match="scale: this matrix has scales per row"):
        ns.quantize(x, "e4m3fn", scaling="row").scale


@pytest.mark.parametrize("rule", ["e8m0", "pow2-floor", "pow2-ceil"])
@pytest.mark.parametrize("layout", ["block:32", "row", "column", "tile:4x16"])
def test_scales_that_are_powers_of_two_have_codes(layout, rule, rng):
    x = (rng.normal(size=(8, 64)) * 2.0 ** rng.integers(-60, 60, (8, 64))).astype(F32)
    t = ns.quantize(x, "e2m1fn", scaling=f"{layout}/{rule}")
    assert t.scale_codes.dtype == np.uint8 and t.scale_codes.shape == t.scales.shape
    assert np.array_equal(ns.decode(t.scale_codes, "e8m0fnu"), t.scales)
    assert np.array_equal(t.scale_codes, np.log2(t.scales).astype(int) + 127)
    assert np.array_equal(t.T.scale_codes, t.scale_codes.T)


def test_stacks_of_matrices_are_refused_with_what_to_do(rng):
    x = rng.normal(size=(2, 4, 4)).astype(F32)
    with pytest.raises(ValueError, match=r"x: expected a matrix, found 3 dim.* for matrix in x"):
        ns.quantize(x, "e4m3fn")
    for a, b in ((x, x[0]), (x[0], x)):
        with pytest.raises(ValueError, match=r"(a|b): expected a matrix, found 3 dim.*np.stack"):
            ns.matmul(a, b)


@pytest.mark.parametrize(
    "word, fmt, scaling",
    [
        ("mxfp8", "e4m3fn", "block:32/e8m0"),
        ("mxfp8-e5m2", "e5m2", "block:32/e8m0"),
        ("mxfp6", "e3m2fn", "block:32/e8m0"),
        ("mxfp6-e2m3", "e2m3fn", "block:32/e8m0"),
        ("mxfp4", "e2m1fn", "block:32/e8m0"),
        ("mxint8", "fixed2.6:range=symmetric", "block:32/e8m0"),
        ("nvfp4", "e2m1fn", "block:16/nvfp4"),
    ],
)
def test_words_name_element_block_and_rule(rng, word, fmt, scaling):
    x = rng.normal(size=(3, 70)).astype(np.float32)
    a, b = ns.quantize(x, word), ns.quantize(x, fmt, scaling=scaling)
    assert a.format is b.format and a.scaling == b.scaling
    assert same(a.codes, b.codes) and same(a.scales, b.scales)
    assert same(ns.quantize(x, word, scaling=scaling).codes, b.codes)
    with pytest.raises(ValueError, match=f"scaling: {word} is {fmt} with {scaling}"):
        ns.quantize(x, word, scaling="row")
    with pytest.raises(ValueError, match=f"scaling: {word} is"):
        ns.quantize(x, word, scale=2.0)


@pytest.mark.parametrize(
    "rule, scales",
    [
        ("e8m0", [1, 1, 1, 1]),
        ("e8m0-even", [1, 1, 1, 2]),
        ("e8m0-ulp", [1, 1, 2, 2]),
        ("e8m0-three-eighths", [1, 1, 1, 1]),
        ("e8m0-ceil", [2, 2, 2, 2]),
        ("pow2-ceil", [1, 1, 2, 2]),
        ("e4m3", [0.75, 0.9375, 1.125, 1.25]),
    ],
)
def test_scale_rules_of_other_projects(rule, scales):
    x = np.zeros((4, 16), np.float32)
    x[:, 3] = [4.5, 5.5, 6.5, 7.2]
    q = ns.quantize(x, "e2m1fn", scaling=f"block:16/{rule}")
    assert q.scales.ravel().tolist() == scales
    code_format = "e4m3fn" if rule == "e4m3" else "e8m0fnu"
    assert ns.decode(q.scale_codes, code_format).ravel().tolist() == scales


def test_division_and_nan_scales():
    # ROCm/aiter #5259: a kernel that divides has the second code 2.
    x = np.array([[1.1423687934875488, 7.470498530892655e-06]], np.float32)
    assert ns.quantize(x, "e4m3fn").codes[0, 1] == 1
    q = ns.quantize(x, "e4m3fn", divide=True)
    assert q.codes[0, 1] == 2
    assert same(q.codes, ns.encode(x / np.float32(q.scale), "e4m3fn", overflow="saturate"))
    # pytorch/ao #4725: a NaN makes the scale of its block NaN.
    x = np.ones((1, 64), np.float32)
    x[0, 40] = np.nan
    usual, nan = ns.quantize(x, "mxfp4"), ns.quantize(x, "mxfp4", nan_scales=True)
    assert usual.scale_codes.tolist() == [[125, 125]] and nan.scale_codes.tolist() == [[125, 255]]
    values = nan.dequantize()
    assert (values[0, :32] == 1).all() and np.isnan(values[0, 32:]).all()
    large = np.ones((200, 128), np.float32)
    large[3, 5] = np.nan
    assert np.isnan(ns.quantize(large, "nvfp4", nan_scales=True).dequantize()).sum() == 16
    with pytest.raises(ns.Error, match="are not for a given scale"):
        ns.quantize(x, "e4m3fn", scale=2.0, divide=True)
    with pytest.raises(TypeError, match="divide: expected True or False"):
        ns.quantize(x, "e4m3fn", divide=1)
