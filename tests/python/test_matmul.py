"""Matrix products against fractions and against float32 in a loop."""

from fractions import Fraction

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32 = np.float32


def sequential(a, b):
    """a @ b in float32, one rounding per step, products exact in float64."""
    total = np.zeros((a.shape[0], b.shape[1]), F32)
    for k in range(a.shape[1]):
        total = (total.astype(float) + np.outer(a[:, k], b[k]).astype(float)).astype(F32)
    return total


def e4m3(rng, *shape):
    return ns.round(rng.normal(size=shape).astype(F32), "e4m3fn")


def test_mode_exact_rounds_the_exact_sum_once(rng):
    a, b = rng.normal(size=(5, 40)).astype(F32), rng.normal(size=(40, 4)).astype(F32)
    a[:, ::7] *= F32(1e6)
    c = ns.matmul(a, b, accumulate="exact")
    for i in range(5):
        for j in range(4):
            total = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j]))
            nearest = F32(float(total))  # float(Fraction) rounds correctly; checked to be no tie:
            assert abs(total - Fraction(float(nearest))) <= abs(
                total - Fraction(float(np.nextafter(nearest, F32(float(total)) * 2, dtype=F32)))
            )
            assert c[i, j] == nearest


def test_mode_fp32_adds_in_order(rng):
    # Products of e4m3fn are exact in float32, sums with them in float64.
    a, b = e4m3(rng, 9, 64), e4m3(rng, 64, 6)
    assert same(ns.matmul(a, b), sequential(a, b))


def test_codes_values_and_layouts_give_the_same_product(rng):
    a, b = e4m3(rng, 9, 32), e4m3(rng, 32, 6)
    expected = ns.matmul(a, b)
    ta, tb = ns.array(a, "e4m3fn"), ns.array(b, "e4m3fn")
    assert same(ns.matmul(ta, tb), expected)
    assert same(ns.matmul(np.asfortranarray(a), b), expected)
    assert same(ns.matmul(a, np.asfortranarray(b)), expected)
    assert same(ns.matmul(ns.Array(np.asfortranarray(ta.codes), "e4m3fn"), tb), expected)
    wide = np.zeros((9, 64), F32)
    wide[:, ::2] = a
    assert same(ns.matmul(wide[:, ::2], b), expected)
    assert same(ns.matmul(b.T, a.T), expected.T)


def test_scales_enter_when_a_sum_is_stored(rng):
    x, w = rng.normal(size=(8, 32)).astype(F32), rng.normal(size=(5, 32)).astype(F32)
    t, u = ns.quantize(x, "e4m3fn", scaling="row"), ns.quantize(w, "e4m3fn", scaling="row")
    sums = sequential(ns.decode(t.codes, "e4m3fn"), ns.decode(u.codes, "e4m3fn").T)
    scales = t.scales.astype(float) * u.scales.T.astype(float)
    expected = (sums.astype(float) * scales).astype(F32)
    assert same(t @ u.T, expected)
    assert same(ns.matmul(t, u.T), expected)


def test_the_exact_mode_of_a_device_is_named_and_checked(rng):
    a, b = rng.normal(size=(4, 32)).astype(F32), rng.normal(size=(32, 4)).astype(F32)
    assert "hopper-fp8" in ns.accumulation_modes()
    with pytest.raises(ValueError, match="hopper-fp8.*any_operands=True"):
        ns.matmul(a, b, accumulate="hopper-fp8")
    ns.matmul(a, b, accumulate="hopper-fp8", any_operands=True)


def test_products_equal_those_of_the_command_line(numsim_program, tmp_path, rng):
    a, b = rng.normal(size=(6, 48)).astype(F32), rng.normal(size=(48, 5)).astype(F32)
    qa, qb = ns.quantize(a, "e4m3fn", scaling="row"), ns.quantize(b, "e4m3fn")
    arrays = {"a": qa.codes, "b": qb.codes, "sa": qa.scales.ravel(), "sb": qb.scales.reshape(1)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    numsim_program(
        "gemm",
        tmp_path / "a.npy",
        tmp_path / "b.npy",
        tmp_path / "c.npy",
        "--format",
        "e4m3fn",
        "--accumulation-mode",
        "hopper-fp8",
        "--transpose-b",
        "--scale-a",
        tmp_path / "sa.npy",
        "--scale-b",
        tmp_path / "sb.npy",
    )
    assert same(ns.matmul(qa, qb, accumulate="hopper-fp8"), np.load(tmp_path / "c.npy"))


def test_int8_is_added_exactly_by_default(rng):
    x = rng.uniform(0.5, 1, size=(3, 50001)).astype(F32)
    t = ns.quantize(x, "int8")  # the sums exceed 2^24
    codes = t.codes.view(np.int8).astype(np.int64)
    scale = float(t.scale) * float(t.scale)
    assert same(t @ t.T, ((codes @ codes.T).astype(float) * scale).astype(F32))


def test_the_error_of_a_mode_is_measured(rng):
    a, b = e4m3(rng, 16, 512), e4m3(rng, 512, 16)
    exact = ns.matmul(a, b, accumulate="exact").astype(float)
    got = ns.matmul(a, b, accumulate="bf16").astype(float)
    error = ns.matmul_error(a, b, accumulate="bf16")
    assert np.isclose(error.relative_error, np.linalg.norm(got - exact) / np.linalg.norm(exact))


def test_bad_arguments_are_named(rng):
    a = e4m3(rng, 4, 6)
    with pytest.raises(ValueError, match="b: expected 6 rows"):
        ns.matmul(a, a)
    with pytest.raises(ValueError, match="b: expected a matrix, found 1 dimensions"):
        ns.matmul(a, a[0])
    with pytest.raises(TypeError, match="a: expected float32 or smaller"):
        ns.matmul(a.astype(float), a.T)
    with pytest.raises(ValueError, match="hoper-fp8.*did you mean hopper-fp8"):
        ns.matmul(a, a.T, accumulate="hoper-fp8")


def test_sums_that_are_longer_than_measured_are_warned_of(recwarn):
    def product(mode, k):
        x = np.ones((1, k), np.uint8).view(np.uint8)
        return ns.matmul(ns.Array(x, "e4m3fn"), ns.Array(x.T, "e4m3fn"), accumulate=mode)

    longest = {row[0]: row[4] for row in ns._core.accumulation_modes()}
    assert longest["hopper-fp8-fast"] > 1000
    for mode in ("hopper-fp8-fast", "hopper-fp8"):
        product(mode, longest[mode])
        assert not recwarn.list
        with pytest.warns(UserWarning, match=f"{mode} was compared .* up to {longest[mode]} products, and"):
            product(mode, longest[mode] + 1)
    product("fp32", 40_000)
    assert not recwarn.list


def test_epilogues_scale_in_float32_in_a_stated_order(rng):
    a = ns.quantize(rng.normal(size=(7, 40)).astype(F32), "e4m3fn", scaling="row")
    b = ns.quantize(rng.normal(size=(40, 9)).astype(F32), "e4m3fn", scaling="column")
    sums = sequential(ns.decode(a.codes, "e4m3fn"), ns.decode(b.codes, "e4m3fn"))
    sa, sb = a.scales.reshape(7, 1), b.scales.reshape(1, 9)
    assert same(ns.matmul(a, b, epilogue="float32:a,b"), sums * sa * sb)
    assert same(ns.matmul(a, b, epilogue="float32:b,a"), sums * sb * sa)
    assert same(ns.matmul(a, b, epilogue="float32:ab"), sums * (sa * sb))
    assert same(ns.matmul(a, b, epilogue="cublaslt"), sums * sb * sa)
    wide = sums.astype(float) * (sa.astype(float) * sb)
    assert same(ns.matmul(a, b), wide.astype(F32))
    with pytest.raises(ValueError, match="epilogue 'float32'"):
        ns.matmul(a, b, epilogue="float32")


def parts_of(inner, parts, tile, partition):
    """The part of each product; -1 is none."""
    k = np.arange(inner)
    if partition == "contiguous":
        return k // tile // -(-len(range(0, inner, tile)) // parts)
    part = k // (-(-(inner // parts) // tile) * tile)
    return np.where(part < parts, part, -1)


@pytest.mark.parametrize("partition", ["contiguous", "cublaslt"])
@pytest.mark.parametrize("partials", ["fp32", "bf16"])
def test_split_sums_are_parts_added_in_order(rng, partition, partials):
    for inner, parts, tile in ((150, 4, 8), (265, 4, 16), (97, 12, 5)):
        a, b = e4m3(rng, 5, inner), e4m3(rng, inner, 7)
        part = parts_of(inner, parts, tile, partition)
        total = np.zeros((5, 7), F32)
        for s in range(parts):
            sums = sequential(a[:, part == s], b[part == s]) if (part == s).any() else np.zeros((5, 7), F32)
            total = total + ns.round(sums, partials)
        split = {"split_k": parts, "split_tile": tile, "split_partition": partition, "split_partials": partials}
        lost = int((part < 0).sum())
        if lost:
            with pytest.warns(UserWarning, match=f"the last {lost} of {inner} products are not summed"):
                got = ns.matmul(a, b, **split)
        else:
            got = ns.matmul(a, b, **split)
        assert same(got, total)


def test_a_split_has_the_tiles_of_cublaslt_and_tells_of_bad_settings(rng):
    ones = ns.Array(np.full((1, 400), 0x38, np.uint8), "e4m3fn")
    with pytest.warns(UserWarning, match="the last 16 of 400"):
        lost = ns.matmul(ones, ones.T, split_k=32, split_tile=12, split_partition="cublaslt")
    assert lost[0, 0] == 384
    assert ns._core.split_tile(ns.format("e4m3fn").spec, ns.format("bf16").spec) == 64
    for settings, text in (
        ({"split_tile": 3}, "split_k: expected a number of parts"),
        ({"split_k": 0}, "split_k: expected 1 to"),
        ({"split_k": 2, "split_tile": 0}, "split_tile: expected 1 to"),
        ({"split_k": 2, "split_partition": "cublas"}, "did you mean cublaslt"),
        ({"split_k": 401, "split_partition": "cublaslt"}, "401 parts of 400 products"),
    ):
        with pytest.raises(ValueError, match=text):
            ns.matmul(ones, ones.T, **settings)


def test_oracle_has_dot_products_with_block_scales():
    cases = ns.oracle.vectors(
        "dot", "e2m1fn", to="fp32", scale_format="e8m0fnu", length=64, level="random:200"
    )
    value = lambda name, format: ns.decode(cases[name], format).astype(float)  # noqa: E731
    total = sum(
        value(f"a[{i}]", "e2m1fn")
        * value(f"b[{i}]", "e2m1fn")
        * value(f"scale-a[{i // 32}]", "e8m0fnu")
        * value(f"scale-b[{i // 32}]", "e8m0fnu")
        for i in range(64)
    )
    exact = np.abs(total) < 2.0**120  # few bits: float64 holds these sums, and float32 rounds them
    assert exact.sum() > 150
    assert same(cases["result"].view(F32)[exact], total.astype(F32)[exact])


# --- Block-scaled units, in integers: a definition that shares nothing with the library.


def exponent(x, least):
    return max(int(np.frexp(abs(float(x)))[1]) - 1, least)


def cut(x, unit):
    """A Fraction cut toward zero to a multiple of 2^unit."""
    units = abs(x) / Fraction(2) ** unit
    return (1 if x >= 0 else -1) * (units.numerator // units.denominator) * Fraction(2) ** unit


def block_scaled(a, sa, b, sb, bits, chunk, group, block, least):
    """The sum of a unit: `least` are the least exponents of elements and of scales."""
    acc = Fraction(0)
    for begin in range(0, len(a), chunk):
        addends = []
        for k in range(begin, min(begin + chunk, len(a)), group or 1):
            x, y = sa[k // block], sb[k // block]
            e = exponent(x, least[1]) + exponent(y, least[1])
            run = range(k, min(k + (group or 1), len(a)))
            total = sum(Fraction(float(a[i])) * Fraction(float(b[i])) for i in run)
            if not group:
                e += exponent(a[k], least[0]) + exponent(b[k], least[0])
            if x * y != 0 and (group or total != 0):
                addends.append((total * Fraction(float(x)) * Fraction(float(y)), e))
        exponents = [e for _, e in addends] + [-133]
        if acc != 0:
            exponents.append(exponent(float(acc), -126))
        unit = max(exponents) - bits
        total = cut(acc, unit) + sum(cut(x, unit) for x, _ in addends)
        top = exponent(float(total), -126) if total else 0
        acc = cut(total, top - 23)
    return F32(float(acc))


UNITS = [
    ("mxf8f6f4", "e4m3fn", "block:32/e8m0", (25, 32, 0, 32, (-6, -127))),
    ("mxf8f6f4", "e5m2", "block:32/pow2-ceil", (25, 32, 0, 32, (-14, -127))),
    ("mxf8f6f4", "e2m3fn", "block:32/e8m0", (25, 32, 0, 32, (0, -127))),
    ("mxf4", "e2m1fn", "block:32/e8m0", (35, 64, 16, 32, (0, -127))),
    ("mxf4nvf4", "e2m1fn", "block:16/nvfp4", (35, 64, 16, 16, (0, -6))),
]


@pytest.mark.parametrize("mode, fmt, scaling, unit", UNITS)
def test_block_scaled_modes_take_the_scales_into_the_sum(rng, mode, fmt, scaling, unit):
    x, w = (rng.normal(size=(n, 200)).astype(F32) for n in (5, 3))
    x[1] *= np.exp2(rng.integers(-30, 20, 200)).astype(F32)
    a, b = ns.quantize(x, fmt, scaling=scaling), ns.quantize(w, fmt, scaling=scaling)
    got = ns.matmul(a, b.T, accumulate=mode)
    two_levels = scaling.endswith("nvfp4")
    values = [ns.decode(q.codes, fmt) for q in (a, b)]
    scales = [ns.decode(q.scale_codes, "e4m3fn" if two_levels else "e8m0fnu") for q in (a, b)]
    tensors = [float(q.tensor_scale) if two_levels else 1.0 for q in (a, b)]
    for i in range(5):
        for j in range(3):
            sum_ = block_scaled(values[0][i], scales[0][i], values[1][j], scales[1][j], *unit)
            assert got[i, j] == F32(float(sum_) * (tensors[0] * tensors[1]))
    if fmt == "e4m3fn":  # sums of the others are exact
        assert not np.array_equal(got, ns.matmul(a, b.T))


def test_block_scaled_modes_refuse_other_scales():
    x = np.ones((2, 64), F32)
    q = ns.quantize(x, "e4m3fn", scaling="block:32/absmax")
    with pytest.raises(ns.Error, match="not a number of e8m0fnu, as mode mxf8f6f4 takes them"):
        ns.matmul(q, q.T, accumulate="mxf8f6f4")
    short = ns.quantize(x, "e4m3fn", scaling="block:16/e8m0")
    with pytest.raises(ns.Error, match="a scale for each 16 elements, but mode mxf8f6f4"):
        ns.matmul(short, short.T, accumulate="mxf8f6f4")
    with pytest.raises(ns.Error, match="mxf4 is for e2m1fn, not for e4m3fn"):
        ns.matmul(q, q.T, accumulate="mxf4")
