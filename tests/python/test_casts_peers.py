"""Casts against ml_dtypes, PyTorch, gfloat and exact fractions, which share no code with numsim."""

from fractions import Fraction

import numpy as np
import pytest

import numsim as ns
from conftest import all_halves, same, wide_floats
from grids import MODES, SMALL

ML_FORMATS = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "bfloat16",
]
NARROW_ML_FORMATS = ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]


def as_ml(values, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with np.errstate(all="ignore"):
        return values.astype(getattr(ml_dtypes, name))


@pytest.mark.parametrize("name", ML_FORMATS)
def test_casts_equal_ml_dtypes(name, rng):
    x = wide_floats(rng, 4_000_000)
    theirs = as_ml(x, name)
    ours = ns.cast(x, name)
    assert ours.dtype == theirs.dtype
    assert same(ours.astype(np.float32), theirs.astype(np.float32))
    numbers = ~np.isnan(theirs.astype(np.float32))
    codes = ns.encode(x, name)
    assert np.array_equal(codes[numbers], theirs.view(codes.dtype)[numbers])


@pytest.mark.parametrize("name", NARROW_ML_FORMATS)
def test_casts_to_formats_without_specials_equal_ml_dtypes_within_range(name, rng):
    # Beyond the range ml_dtypes' 0.6.0 rounds to the largest value, as saturation does.
    x = rng.normal(size=1_000_000).astype(np.float32) * 4
    assert same(ns.round(x, name, overflow="saturate"), as_ml(x, name).astype(np.float32))


@pytest.mark.parametrize("source", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_casts_of_every_half_equal_ml_dtypes(source, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    halves = all_halves().view(np.float16 if source == "float16" else ml_dtypes.bfloat16)
    theirs = as_ml(halves, name).astype(np.float32)
    assert same(ns.cast(halves, name).astype(np.float32), theirs)


@pytest.mark.parametrize("name", ["bfloat16", "float16", *ML_FORMATS])
def test_decoding_every_code_equals_the_dtype(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    f = ns.format(name)
    dtype = np.dtype("float16") if name == "float16" else np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(1 << f.bits, dtype=np.uint32).astype(f.code_dtype)
    expected = codes.view(dtype).astype(np.float32)
    assert same(ns.decode(codes, f), expected)
    assert same(ns.decode(codes.view(dtype)), expected)


@pytest.mark.parametrize(
    "name",
    ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "bfloat16", "float16"],
)
def test_casts_equal_torch_within_range(name, rng):
    # Versions of PyTorch differ in what they do beyond the range (docs/disagreements.md).
    torch = pytest.importorskip("torch")
    f = ns.format(name)
    near = (rng.normal(size=1_000_000) * f.max / 8).astype(np.float32)
    x = np.concatenate([wide_floats(rng, 3_000_000), near])
    x = x[np.abs(x) <= f.max]
    theirs = torch.from_numpy(x).to(getattr(torch, name))
    assert np.array_equal(ns.encode(x, name), theirs.view(getattr(torch, f"uint{f.bits}")).numpy())
    assert same(ns.round(x, name), theirs.to(torch.float32).numpy())
    assert ns.cast(torch.from_numpy(x), name).dtype == theirs.dtype


# numsim's name, gfloat's name of the format.
GFLOAT_FORMATS = [
    ("e4m3fn", "format_info_ocp_e4m3"),
    ("e5m2", "format_info_ocp_e5m2"),
    ("bf16", "format_info_bfloat16"),
    ("fp16", "format_info_binary16"),
]


def gfloat_inputs(rng, f):
    """Finite numbers of every magnitude near the format's range, ties and values included."""
    values = f.values()
    values = values[np.isfinite(values)].astype(np.float64)
    values = values[:: max(1, len(values) // 4096)]
    middles = (values[1:] + values[:-1]) / 2
    scale = np.exp2(rng.uniform(f.min_exponent - f.mantissa_bits - 2, f.max_exponent + 1, 200_000))
    random = rng.normal(size=scale.size) * scale
    x = np.concatenate([values, middles, random])
    x = x[np.abs(x) < 3e38].astype(np.float32)
    return x


@pytest.mark.parametrize("name, theirs", GFLOAT_FORMATS)
@pytest.mark.parametrize(
    "mode, round_mode",
    [
        ("rne", "TiesToEven"),
        ("rna", "TiesToAway"),
        ("rtz", "TowardZero"),
        ("rtp", "TowardPositive"),
        ("rtn", "TowardNegative"),
    ],
)
@pytest.mark.parametrize("overflow", ["saturate", "nonsaturate"])
def test_every_mode_equals_gfloat(name, theirs, mode, round_mode, overflow, rng):
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    x = gfloat_inputs(rng, ns.format(name))
    with np.errstate(all="ignore"):
        expected = gfloat.round_ndarray(
            getattr(formats, theirs),
            x.astype(np.float64),
            getattr(gfloat.RoundMode, round_mode),
            sat=overflow == "saturate",
        )
    ours = ns.round(x, name, rounding=mode, overflow=overflow)
    assert same(ours, expected.astype(np.float32))
    assert same(ns.round(x.astype(np.float64), name, rounding=mode, overflow=overflow), expected)


@pytest.mark.parametrize("name, theirs", GFLOAT_FORMATS)
@pytest.mark.parametrize(
    "variant, round_mode",
    [("a", "StochasticFastest"), ("b", "StochasticFast"), ("c", "Stochastic")],
)
@pytest.mark.parametrize("bits", [1, 5, 8, 16])
def test_stochastic_rounding_by_given_bits_equals_gfloat(
    name, theirs, variant, round_mode, bits, rng
):
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    x = gfloat_inputs(rng, ns.format(name))
    words = rng.integers(0, 1 << bits, x.size)
    with np.errstate(all="ignore"):
        expected = gfloat.round_ndarray(
            getattr(formats, theirs),
            x.astype(np.float64),
            getattr(gfloat.RoundMode, round_mode),
            sat=True,
            srbits=words,
            srnumbits=bits,
        )
    rounding = ns.SR(bits=bits, variant=variant, random_bits=words)
    assert same(
        ns.round(x, name, rounding=rounding, overflow="saturate"), expected.astype(np.float32)
    )


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_equals_rational_arithmetic(name, mode, rng):
    grid = SMALL[name]
    points = [float(m) for m in grid.magnitudes]
    middles = [(a + b) / 2 for a, b in zip(points, points[1:])]
    x = np.array(points + middles + list(rng.normal(size=2000) * points[-1] / 2))
    x = np.concatenate([x, -x])
    expected = [grid.round(Fraction(v), mode, np.signbit(v)) for v in x.tolist()]
    assert ns.encode(x, name, rounding=mode, overflow="saturate").tolist() == expected
