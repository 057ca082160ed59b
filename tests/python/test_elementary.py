"""Elementary functions of typed arrays against decimals of fifty digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import numsim as ns
from grids import MODES, SMALL, Grid


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620900")
FP16 = Grid(5, 10, 15, top_codes_left_out=1024)  # without infinity and NaN


def power(x):  # e^x
    return x.exp()


def tanh(x):
    return (power(2 * x) - 1) / (power(2 * x) + 1)


def sigmoid(x):
    return 1 / (1 + power(-x))


def gelu_tanh(x):
    """x (1 + tanh(u)) / 2 as x sigmoid(2 u), which does not cancel below zero."""
    return x * sigmoid(2 * (2 / PI).sqrt() * (x + Decimal("0.044715") * x**3))


def gelu(x):
    """x Phi(x) by the series of Phi, whose terms all have one sign: phi(x) (x + x^3 / 3 + ...)."""
    term = total = x
    for k in range(3, 4000, 2):
        term = term * x * x / k
        total += term
        if abs(term) <= abs(total) * Decimal("1e-75"):
            break
    return x * (Decimal("0.5") + power(-x * x / 2) / (2 * PI).sqrt() * total)


FUNCTIONS = {
    "exp": power,
    "exp2": lambda x: power(x * Decimal(2).ln()),
    "log": lambda x: x.ln(),
    "log2": lambda x: x.ln() / Decimal(2).ln(),
    "tanh": tanh,
    "sigmoid": sigmoid,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}
EXACT = {"exp": {0: 1}, "log": {1: 0}, "tanh": {0: 0}, "sigmoid": {0: Fraction(1, 2)}, "gelu": {0: 0}, "gelu_tanh": {0: 0}}


def exact(name, x):
    """The value at a fraction x, exact or to fifty digits; None where it is not a finite number."""
    if x in EXACT.get(name, {}):
        return Fraction(EXACT[name][x])
    if name == "exp2" and x.denominator == 1:
        return Fraction(2) ** int(x)
    if name in ("log", "log2") and x <= 0:
        return None
    if name == "log2":
        exponent = x.numerator.bit_length() - x.denominator.bit_length()
        if Fraction(2) ** exponent == x:
            return Fraction(exponent)
    with localcontext() as context:
        # 1 - sigmoid(2 u) is about e^-1610 at 28, the largest number of these formats.
        context.prec = 900 if name == "gelu_tanh" else 80
        argument = Decimal(x.numerator) / Decimal(x.denominator)
        return Fraction(FUNCTIONS[name](argument))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("format", SMALL)
@pytest.mark.parametrize("mode", MODES)
def test_every_code_equals_the_decimal_rounded(name, format, mode):
    grid = SMALL[format]
    codes = np.arange(1 << ns.format(format).bits, dtype=np.uint8)
    result, flags = getattr(ns, name)(
        ns.Array(codes, format), rounding=mode, overflow="saturate", flags=True
    )
    for code, got, flag in zip(codes.tolist(), result.codes.tolist(), flags.tolist()):
        value = exact(name, grid.value(code))
        if value is None:
            assert flag & (ns.INVALID | ns.DIVIDE_BY_ZERO)
            continue
        assert grid.value(got) == grid.value(grid.round(value, mode)), grid.value(code)
        assert bool(flag & ns.INEXACT) == (grid.value(got) != value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fp16_equals_the_decimal_rounded(name, rng):
    """Enough bits to tell each function from the others, gelu from its approximation too."""
    codes = rng.integers(0x2C00, 0x4600, 150).astype(np.uint16)  # 0.0625 to 6
    codes[1::2] |= 0 if name.startswith("log") else 0x8000
    got = getattr(ns, name)(ns.Array(codes, "fp16")).codes
    want = [FP16.round(exact(name, FP16.value(code)), "rne") for code in codes.tolist()]
    assert got.tolist() == want


def test_wide_formats_and_other_results_agree_with_float64():
    x = ns.array(np.linspace(-20, 20, 4001), "fp16")
    values = x.values().astype(np.float64)
    np.testing.assert_array_equal(
        ns.tanh(x, to="e4m3fn").codes, ns.encode(np.tanh(values), "e4m3fn")
    )
    assert np.abs(ns.exp(x, to="bf16").values() / np.exp(values) - 1).max() <= 2**-8


def test_special_values_flags_and_names():
    x = ns.Array(np.array([0xFC00, 0x8000, 0x7C00, 0x7E00], np.uint16), "fp16")  # -inf -0 inf nan
    result, flags = ns.log(x, flags=True)
    assert np.isnan(result.values()[[0, 3]]).all()
    assert result.values()[1] == -np.inf and result.values()[2] == np.inf
    assert flags.tolist() == [ns.INVALID, ns.DIVIDE_BY_ZERO, 0, 0]
    assert ns.gelu_tanh.__name__ == "gelu_tanh" and "gelu" in ns.gelu_tanh.__doc__
    with pytest.raises(TypeError, match="a: expected a numsim.Array"):
        ns.exp(1.0)
