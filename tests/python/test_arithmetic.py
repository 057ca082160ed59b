"""Arithmetic on typed arrays against exact fractions."""

import numpy as np
import pytest

import numsim as ns
from grids import MODES, SMALL

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


def all_pairs(name):
    codes = np.arange(1 << ns.format(name).bits, dtype=np.uint8)
    a, b = np.meshgrid(codes, codes, indexing="ij")
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("mode", MODES)
def test_every_pair_of_codes_equals_rational_arithmetic(name, op, mode):
    grid = SMALL[name]
    a, b = all_pairs(name)
    if op == "div":
        keep = (b & (grid.sign_bit - 1)) != 0  # a division by zero is no rational number
        a, b = a[keep], b[keep]
    result, flags = getattr(ns, op)(
        ns.Array(a, name), ns.Array(b, name), rounding=mode, overflow="saturate", flags=True
    )
    for x, y, code, flag in zip(a.tolist(), b.tolist(), result.codes.tolist(), flags.tolist()):
        exact = OPERATIONS[op](grid.value(x), grid.value(y))
        rounded = grid.value(code)
        assert rounded == grid.value(grid.round(exact, mode)), (x, y)
        assert bool(flag & ns.INEXACT) == (rounded != exact)


@pytest.mark.parametrize("name", SMALL)
def test_fma_and_sqrt_equal_rational_arithmetic(name, rng):
    grid = SMALL[name]
    codes = rng.integers(0, 1 << ns.format(name).bits, (3, 4000)).astype(np.uint8)
    a, b, c = (ns.Array(row, name) for row in codes)
    result = ns.fma(a, b, c, overflow="saturate").codes
    for x, y, z, code in zip(*codes.tolist(), result.tolist()):
        exact = grid.value(x) * grid.value(y) + grid.value(z)
        assert grid.value(code) == grid.value(grid.round(exact, "rne"))
    for code, root in enumerate(
        ns.sqrt(ns.Array(np.arange(grid.sign_bit, dtype=np.uint8), name)).codes
    ):
        # The nearest value: the square lies between the squares of the midpoints beside it.
        m, x = grid.magnitudes, grid.value(code)
        assert root == 0 or ((m[root] + m[root - 1]) / 2) ** 2 <= x
        assert root + 1 == len(m) or x <= ((m[root] + m[root + 1]) / 2) ** 2


def test_results_of_another_format_are_rounded_once():
    a = ns.array([1.0], "bf16")
    b = ns.array([2.0**-30], "fp32")
    assert ns.add(a, b, to="fp32", rounding="rtp").values()[0] == np.float32(1 + 2.0**-23)
    with pytest.raises(ValueError, match="b: the format is fp32 and that of a is bf16; pass to="):
        ns.add(a, b)


def test_operators_broadcast_and_take_numbers(rng):
    x = rng.normal(size=(3, 4)).astype(np.float32)
    a = ns.array(x, "e4m3fn")
    row = ns.array(x[:1], "e4m3fn")
    assert (a + row).shape == (3, 4)
    assert np.array_equal((a + row).codes[2], ns.add(a[2], row[0]).codes)
    assert np.array_equal((1 - a).codes, ns.sub(ns.array(np.ones((3, 4)), "e4m3fn"), a).codes)
    assert np.array_equal((a / 2 * 2).values(), a.values())
    assert np.array_equal(np.asarray(a), a.values()) and len(a) == 3 and a.T.shape == (4, 3)
    with pytest.raises(TypeError):
        a + x
    with pytest.raises(ValueError, match="do not fit each other"):
        a + ns.array(np.ones(5), "e4m3fn")


def test_operands_may_have_gaps_and_mixed_formats(rng):
    a = ns.array(rng.normal(size=(6, 8)).astype(np.float32), "e4m3fn")
    b = ns.array(rng.normal(size=(8, 6)).astype(np.float32), "e5m2")
    for left, right in ((a[::2, ::2], b.T[::2, ::2]), (a.T, b), (a[:, ::-1], b.T), (a[1], b.T)):
        total = ns.add(left, right, to="fp16")  # holds every sum of these
        assert np.array_equal(total.values(), left.values() + right.values())
    same = a.T + a.T
    assert np.array_equal(same.codes, (a + a).T.codes)


def test_matmul_rounds_every_step_in_the_format(rng):
    grid = SMALL["e3m2fn"]
    a = ns.array(rng.normal(size=(4, 7)), "e3m2fn", overflow="saturate")
    b = ns.array(rng.normal(size=(7, 3)), "e3m2fn", overflow="saturate")
    product = a @ b
    assert product.format is a.format
    for i in range(4):
        for j in range(3):
            total = 0
            for k in range(7):
                step = grid.value(int(a.codes[i, k])) * grid.value(int(b.codes[k, j])) + total
                total = grid.value(grid.round(step, "rne"))
            assert grid.value(int(product.codes[i, j])) == total


def test_stochastic_arithmetic_is_seeded(rng):
    a = ns.array(rng.normal(size=1000), "bf16")
    one, again, other = (
        ns.mul(a, a, to="e4m3fn", rounding=ns.SR(seed=s, stream=0)).codes for s in (1, 1, 2)
    )
    assert np.array_equal(one, again) and not np.array_equal(one, other)


def test_errors_name_the_argument():
    a = ns.array([1.0], "e4m3fn")
    with pytest.raises(TypeError, match="b: expected a numsim.Array, found ndarray"):
        ns.add(a, np.ones(1))
    with pytest.raises(TypeError, match="codes: expected uint8"):
        ns.Array([1, 2], "e4m3fn")


def test_a_division_by_zero_raises_its_flag():
    one, zero = ns.array([1.0], "e5m2"), ns.array([0.0], "e5m2")
    result, flags = ns.div(one, zero, flags=True)
    assert result.values()[0] == np.inf and flags[0] == ns.DIVIDE_BY_ZERO
