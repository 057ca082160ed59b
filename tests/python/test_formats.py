"""Names, properties and tables of formats."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

import numsim as ns
from grids import E4M3, SMALL


@pytest.mark.parametrize(
    "text, name",
    [
        ("e4m3fn", "e4m3fn"),
        ("float8_e4m3fn", "e4m3fn"),
        ("torch.float8_e5m2", "e5m2"),
        ("torch.bfloat16", "bf16"),
        ("bfloat16", "bf16"),
        ("float16", "fp16"),
        ("float4_e2m1fn", "e2m1fn"),
        ("float6_e3m2fn", "e3m2fn"),
        ("float8_e8m0fnu", "e8m0fnu"),
        ("binary8p4se", "binary8p4se"),
        ("binary4p2sf", "binary4p2sf"),
        ("e5m3", "e5m3"),
    ],
)
def test_names_of_other_libraries_are_understood(text, name):
    assert ns.format(text).name == name
    assert ns.format(text) is ns.format(name)


def test_dtype_objects_are_formats():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert ns.format(ml_dtypes.float8_e4m3fn).name == "e4m3fn"
    assert ns.format(np.dtype(ml_dtypes.bfloat16)).name == "bf16"
    assert ns.format(np.float16).name == "fp16"
    assert ns.format("e4m3fn").dtype == np.dtype(ml_dtypes.float8_e4m3fn)
    assert ns.format("binary8p4se").dtype is None


def test_a_format_of_p3109_that_is_no_row_has_its_definitions_values():
    # binary6p3se: K = 6, P = 3, signed, extended: bias 2^(K-P-1) = 4, NaN at -0, infinity on top.
    f = ns.format("binary6p3se")
    values = f.values()
    assert np.isnan(values[0x20]) and values[0x1F] == np.inf and values[0x3F] == -np.inf
    for code in range(0x1F):
        e, m = code >> 2, code & 3
        expected = Fraction(m if e == 0 else m + 4) * Fraction(2) ** (max(e, 1) - 4 - 2)
        assert Fraction(float(values[code])) == expected


def test_an_unsigned_format_of_p3109_has_its_definitions_values():
    # binary5p2uf: K = 5, P = 2, unsigned, finite: bias 2^(K-P) = 8, NaN is the last code.
    f = ns.format("binary5p2uf")
    values = f.values()
    assert f.bits == 5 and not f.is_signed and np.isnan(values[31])
    for code in range(31):
        e, m = code >> 1, code & 1
        expected = Fraction(m if e == 0 else m + 2) * Fraction(2) ** (max(e, 1) - 8 - 1)
        assert Fraction(float(values[code])) == expected
    with pytest.raises(ValueError, match="the precision leaves no exponent"):
        ns.format("binary6p6sf")


def test_custom_formats_by_widths_and_fields():
    f = ns.format(exponent=4, mantissa=3, inf="none", nan="all-ones")
    assert f is ns.format("e4m3fn")
    assert not ns.format(exponent=3, mantissa=2, signed=False).is_signed
    with pytest.raises(ValueError, match="exponent"):
        ns.format(exponent=9, mantissa=3)
    with pytest.raises(TypeError, match="exponent= and mantissa="):
        ns.format(exponent=9)


@pytest.mark.parametrize("name, grid", [*SMALL.items(), ("e4m3fn", E4M3)])
def test_values_are_those_of_the_definition(name, grid):
    values = ns.format(name).values()
    for code in range(2 * grid.sign_bit):
        if (code & (grid.sign_bit - 1)) < len(grid.magnitudes):
            assert Fraction(float(values[code])) == grid.value(code)


def test_properties_are_those_of_the_table():
    f = ns.format("e4m3fn")
    assert (f.bits, f.max, f.min_normal, f.min_positive) == (8, 448.0, 2.0**-6, 2.0**-9)
    assert (f.exponent_bits, f.mantissa_bits, f.bias) == (4, 3, 7)
    assert f.nan_code == 0x7F and not f.has_infinity and f.code_dtype == np.uint8
    assert ns.format("e2m1fn").nan_code is None
    assert "OCP" in f.source and "E4M3" in repr(f)


def test_the_tables_list_every_code_and_format():
    assert len(ns.format("e2m1fn").table().splitlines()) == 1 + 16
    table = ns.formats()
    assert "int8" in [f.name for f in table]
    assert len(repr(table).splitlines()) == 1 + len(table)
    with pytest.raises(ValueError, match="16 bits"):
        ns.format("fp32").values()


def test_copies_are_the_same_object():
    f = ns.format("e4m3fn")
    assert copy.deepcopy(f) is f and pickle.loads(pickle.dumps(f)) is f


@pytest.mark.parametrize("wrong, nearest", [("e4m3fm", "e4m3fn"), ("bf6", "bf16"), ("in8", "int8")])
def test_unknown_names_raise_with_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match=f"did you mean {nearest}"):
        ns.format(wrong)


def test_other_objects_are_no_formats():
    with pytest.raises(TypeError, match="found float"):
        ns.format(3.5)
