"""Names of formats as other sources write them, names with two meanings, and unknown names."""

import csv
import pathlib
import warnings

import numpy as np
import pytest

import numsim as ns
from conftest import FP4
from numsim import _core

_FILE = pathlib.Path(__file__).parents[1] / "formats" / "names.tsv"


def _rows():
    lines = [line for line in _FILE.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t"))


def _number(text):
    return float.fromhex(text) if text.startswith("0x") else float(text)


def _finite(f):
    if f.bits > 16:  # IEEE 754: the top exponent of both signs has no numbers
        return (1 << f.bits) - (2 << f.mantissa_bits)
    count = np.isfinite(f.values()).sum()
    return int(count) - (f.name == "int8")  # the code of -128 is not used


@pytest.mark.parametrize("row", _rows(), ids=lambda row: f"{row['source']} {row['name']}")
def test_names_mean_what_their_sources_mean(row):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f = ns.format(row["name"])
    assert f.name == row["format"]
    assert f.bits == int(row["bits"])
    assert f.max == _number(row["largest"])
    assert f.min_positive == _number(row["smallest"])
    assert _finite(f) == int(row["finite"])
    assert f.has_nan == (row["nan"] != "none")
    if f.has_nan:
        assert f.spec.class_of(int(row["nan"], 16)) == "nan"
    assert len(caught) == (row["note"] == "yes")
    assert _core.parse_format(f.name) == (f.name, f.spec)


def test_the_list_is_long_and_has_every_source():
    rows = _rows()
    assert len({row["name"] for row in rows}) >= 120
    assert {"OCP", "CUDA", "torch", "ml_dtypes", "ONNX"} <= {row["source"] for row in rows}


def test_dtypes_of_ml_dtypes_have_the_numbers_of_their_formats():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    seen = 0
    for row in _rows():
        dtype = getattr(ml_dtypes, row["name"], None)
        if row["source"] != "ml_dtypes" or dtype is None:
            continue
        seen += 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f = ns.format(dtype)  # a dtype has one meaning
        info = ml_dtypes.iinfo(dtype) if "int" in row["name"] else ml_dtypes.finfo(dtype)
        assert float(info.max) == f.max == _number(row["largest"])
        if f.bits <= 8:
            codes = np.arange(1 << f.bits, dtype=np.uint8)
            np.testing.assert_array_equal(codes.view(dtype).astype(np.float32), f.values())
        else:
            assert float(info.smallest_subnormal) == f.min_positive
    assert seen >= 12


def test_dtypes_of_torch_have_the_numbers_of_their_formats():
    torch = pytest.importorskip("torch")
    for row in _rows():
        if row["source"] != "torch" or "int" in row["name"] or row["name"].endswith("_x2"):
            continue
        dtype = getattr(torch, row["name"].removeprefix("torch.").replace("-", "_").lower())
        assert torch.finfo(dtype).max == _number(row["largest"]) == ns.format(dtype).max
    assert ns.format(torch.float4_e2m1fn_x2) is ns.format("e2m1fn")


def test_packed_arrays_are_not_taken_for_codes():
    with pytest.raises(ValueError, match="two codes"):
        from numsim import _formats

        _formats.of_dtype("float4_e2m1fn_x2")


@pytest.mark.parametrize(
    "call",
    [
        lambda: ns.format("e4m3"),
        lambda: ns.format("E4M3"),
        lambda: ns.round([1.5], "e4m3"),
        lambda: ns.LinearRecipe("switchback-e4m3"),
        lambda: ns.LinearRecipe("switchback", gradient_format="e4m3"),
        lambda: ns.Optimizer({"w": np.ones(3, np.float32)}, m="e4m3", v="e4m3"),
        lambda: ns.Optimizer({"w": np.ones(3, np.float32)}, v="e4m3@block:64+sr"),
        lambda: ns.matmul(np.ones((1, 1), "f4"), np.ones((1, 1), "f4"), accumulate="e4m3"),
    ],
)
def test_e4m3_warns_wherever_it_is_accepted(call):
    with pytest.warns(UserWarning, match="e4m3 ends at 240; OCP E4M3 of papers is e4m3fn") as caught:
        call()
    assert {warning.filename for warning in caught} == {__file__}


def test_a_line_warns_once_and_each_line_does():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            ns.format("e1m2")
        ns.format("e1m2")
    assert len(caught) == 2
    assert "e1m2 follows IEEE 754 and ends at 1.5" in str(caught[0].message)


def test_the_table_and_explicit_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("e4m3fn", "ieee-e4m3", "F8_E4M3", ".e4m3", "e2m1", "e4m3:bias=8"):
            ns.format(text)
        assert "e4m3" in [f.name for f in ns.formats()]
        ns.format(exponent=4, mantissa=3)


@pytest.mark.parametrize(
    "text, hint",
    [
        ("mxfp4", 'numsim.quantize(x, "e2m1fn", scaling="block:32/e8m0")'),
        ("NVFP4", 'numsim.quantize(x, "e2m1fn", scaling="block:16/nvfp4")'),
        ("mxfp8", 'numsim.quantize(x, "e4m3fn", scaling="block:32/e8m0")'),
        ("fp8", "did you mean e4m3fn"),
        ("fp6", "e2m3fn"),
        ("int", "did you mean int8 (-127 to 127) or fixed8.0"),
        ("nf44", "did you mean nf4?"),
        ("e4m3nf", "did you mean e4m3fn?"),
        ("bfloat61", "did you mean bfloat16?"),
    ],
)
def test_unknown_names_get_the_spelling_that_is_meant(text, hint):
    with pytest.raises(ValueError) as error:
        ns.format(text)
    assert hint in str(error.value)


def test_the_spelling_with_scales_works():
    """Numbers that MXFP4 and NVFP4 hold come back, with the scales that they have."""
    powers = np.array([[8, 0.25]] * 4, np.float32)
    x = FP4[np.arange(4 * 64) * 5 % 16].reshape(4, 64) * np.repeat(powers, 32, 1)
    mx = ns.quantize(x, "e2m1fn", scaling="block:32/e8m0")
    assert (mx.dequantize() == x).all() and (mx.scales == powers).all()
    nv = ns.quantize(x, "e2m1fn", scaling="block:16/nvfp4")
    assert (nv.dequantize() == x).all() and nv.scales.shape == (4, 4)


def test_former_names_are_todays_ieee_like_formats():
    assert _core.from_former_names("e2m1 block:32,e3m2") == "ieee-e2m1 block:32,ieee-e3m2"
    former = [ns.format("ieee-" + name).max for name in ("e2m1", "e3m2", "e2m3", "ue4m3")]
    today = [ns.format(name).max for name in ("e2m1", "e3m2", "e2m3", "ue4m3")]
    assert (former, today) == ([3, 14, 3.75, 240], [6, 28, 7.5, 448])
