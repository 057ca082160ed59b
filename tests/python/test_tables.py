"""Tables of values, integers and flushed subnormals, against plain NumPy and exact fractions."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

import numsim as ns

F32 = np.float32


def nearest(values, x):
    """The place of the nearest value, exactly; ties to the even place."""
    x = Fraction(float(x))
    distances = [abs(Fraction(float(v)) - x) for v in values]
    least = min(distances)
    places = [i for i, d in enumerate(distances) if d == least]
    return next(i for i in places if len(places) == 1 or i % 2 == 0)


def test_nf4_has_the_published_values_and_those_of_its_construction():
    quantile = statistics.NormalDist().inv_cdf
    steps = [quantile(0.9677083 + (0.5 - 0.9677083) * i / 8) for i in range(8)]
    below = [-quantile(0.9677083 + (0.5 - 0.9677083) * i / 7) for i in range(7)]
    expected = np.array(sorted([*steps, 0, *below])) / steps[0]
    values = ns.format("nf4").values()
    assert np.abs(values - expected).max() < 1.2e-7
    assert values[12] == F32(0.44070982933044434) and values[7] == 0


@pytest.mark.parametrize("name", ["nf4", "nf2", "bnb-fp4", "bnb-dynamic"])
def test_codes_are_those_of_the_nearest_values(rng, name):
    f = ns.format(name)
    ordered = np.unique(f.values())
    x = np.concatenate([rng.uniform(-1.2, 1.2, 500).astype(F32), (ordered[1:] + ordered[:-1]) / 2])
    expected = ordered[[nearest(ordered, v) for v in x]]
    assert np.array_equal(ns.round(x, f), expected)
    assert np.array_equal(ns.decode(ns.encode(x, f), f), expected)
    assert np.array_equal(ns.round(x.astype(np.float64), f), expected)


def test_qlora_blocks(rng):
    x = rng.normal(size=(4, 256)).astype(F32)
    q = ns.quantize(x, "nf4", scaling="block:64")
    absmax = np.abs(x.reshape(4, 4, 64)).max(2)
    assert np.array_equal(q.scales, absmax)
    values = ns.format("nf4").values()
    inverse = (F32(1) / absmax).repeat(64, 1)
    codes = np.array([nearest(values, v) for v in (x * inverse).ravel()]).reshape(x.shape)
    assert np.array_equal(q.codes, codes)
    assert np.array_equal(q.dequantize(), values[codes] * absmax.repeat(64, 1))
    # Blocks of 64 normal numbers: NF4 is a little better than equal steps [QLoRA].
    assert q.error(x).sqnr_db > ns.quantize(x, "int4", scaling="block:64").error(x).sqnr_db


def test_stochastic_rounding_has_the_probabilities_of_the_distances():
    f = ns.value_table([-1, 0, 0.25, 1], "quarters")
    assert f.name == "table:quarters" and f.bits == 2 and f.max == 1
    x = np.full(40_000, 0.4375, F32)
    share = (ns.round(x, f, rounding=ns.SR(seed=3)) == 1).mean()
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / x.size)


def test_a_table_of_a_file(tmp_path):
    path = tmp_path / "mine.npy"
    np.save(path, np.array([0, 2, -5], F32))
    f = ns.format(f"table:{path}")
    assert np.array_equal(ns.encode(np.array([1.5, -9, 0.1, np.nan], F32), f), [1, 2, 0, 1])
    np.save(path, np.array([0, 2, -6], F32))
    assert ns.format(f"table:{path}").values()[2] == -6
    assert "unused" in f.table()


@pytest.mark.parametrize(
    "values, message",
    [
        ([1], "1 values"),
        ([1, math.inf], "value 1 is inf"),
        ([3, 3], "equal"),
        ([[1, 2]], "dimension"),
    ],
)
def test_bad_tables_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ns.value_table(values)


def test_tables_are_refused_where_they_mean_nothing(rng):
    x = rng.normal(size=(8, 64)).astype(F32)
    q = ns.quantize(x, "nf4", scaling="row")
    with pytest.raises(ValueError, match="nf4.*a table of values"):
        ns.matmul(q, q.T)
    with pytest.raises(ValueError, match="nf4.*a table of values"):
        ns.Linear(64, 64, ns.LinearRecipe("mx", format="nf4"))
    with pytest.raises(ValueError, match="needs a format with mantissa bits, not nf4"):
        ns.quantize(x, "nf4", scaling="block:32/e8m0-even")


@pytest.mark.parametrize(
    "name, step, low, high",
    [
        ("int4", 1, -8, 7),
        ("int4:range=symmetric", 1, -7, 7),
        ("int2", 1, -2, 1),
        ("uint8", 1, 0, 255),
        ("uint4", 1, 0, 15),
        ("fixed4.4", 1 / 16, -8, 8 - 1 / 16),
        ("ufixed1.7", 1 / 128, 0, 2 - 1 / 128),
    ],
)
def test_fixed_point_is_rint_and_clip(rng, name, step, low, high):
    x = np.concatenate([rng.normal(size=5000) * high, np.arange(-40, 40) / 4 * step]).astype(F32)
    expected = np.clip(np.rint(x.astype(np.float64) / step) * step, low, high)
    assert np.array_equal(ns.round(x, name).astype(np.float64), expected)
    codes = ns.encode(x, name).astype(int)
    assert np.array_equal(codes, (expected / step).astype(int) % (1 << ns.format(name).bits))


def test_flushed_subnormals_are_zeros():
    f = ns.format("e4m3fn:subnormals=flush")
    x = np.array([0.015625, 0.0156, 0.0149, -0.01, 0.0, 448, 1e-30], F32)
    kept = ns.round(x, "e4m3fn")
    assert np.array_equal(ns.round(x, f), np.where(np.abs(kept) < 0.015625, 0, kept))
    assert np.signbit(ns.round(x, f)[3]) and f.min_positive == 0.015625
    assert not ns.decode(np.arange(8, dtype=np.uint8), f).any()


@pytest.mark.parametrize("bits", [2, 4, 5, 8, 12])
@pytest.mark.parametrize("kind", ["int", "uint", "symmetric"])
def test_integers_of_every_half_precision_number(bits, kind):
    halves = np.arange(65536, dtype=np.uint16)
    brains = (halves.astype(np.uint32) << 16).view(F32)
    x = np.concatenate([halves.view(np.float16).astype(F32), brains])
    x = x[np.isfinite(x)]
    name = {"int": f"fixed{bits}.0", "uint": f"uint{bits}"}.get(kind, f"int{bits}:range=symmetric")
    high = 2**bits - 1 if kind == "uint" else 2 ** (bits - 1) - 1
    low = {"int": -high - 1, "uint": 0}.get(kind, -high)
    away = lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)  # noqa: E731
    rounds = {"rne": np.rint, "rtz": np.trunc, "rtp": np.ceil, "rtn": np.floor, "rna": away}
    for rounding, function in rounds.items():
        expected = np.clip(function(x.astype(np.float64)), low, high)
        assert np.array_equal(ns.round(x, name, rounding=rounding), expected), rounding
