"""Profiles and differences."""

import numpy as np
import pytest

import numsim as ns
from conftest import wide_floats


def test_profiles_are_listed_and_abbreviated():
    names = [p.name for p in ns.profiles()]
    assert "cuda-13" in names and ns.Profile("cuda", "e4m3fn").name in names
    assert "e4m3fn" in ns.profile_targets("cuda-13")
    with pytest.raises(ValueError, match="cuda-13"):
        ns.Profile("cudda-13", "e4m3fn")


def test_the_profile_of_ml_dtypes_is_ml_dtypes(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    name = next(p.name for p in ns.profiles() if p.name.startswith("ml-dtypes"))
    x = wide_floats(rng, 500_000)
    with np.errstate(all="ignore"):
        theirs = x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    assert np.array_equal(ns.Profile(name, "e4m3fn").encode(x), theirs)


def test_a_difference_lists_exactly_the_inputs_that_differ(rng):
    a, b = ns.Profile("rule:rne,saturate", "e4m3fn"), ns.Profile("hip-host", "e4m3fn")
    difference = ns.diff(a, b)
    assert difference and difference.differing == sum(i.count for i in difference.intervals)
    # Around every end of every interval, and at random, the two differ where the list says so.
    ends = [e for i in difference.intervals for e in (i.first_bits, i.last_bits)]
    bits = np.concatenate(
        [
            (np.array(ends, np.int64)[:, None] + np.arange(-2, 3)).ravel().clip(0, (1 << 32) - 1),
            rng.integers(0, 1 << 32, 500_000),
        ]
    ).astype(np.uint32)
    listed = np.zeros(bits.size, bool)
    for i in difference.intervals:
        listed |= (bits >= i.first_bits) & (bits <= i.last_bits)
    differ = a.encode(bits.view(np.float32)) != b.encode(bits.view(np.float32))
    assert np.array_equal(differ, listed)
    for i in difference.intervals:
        x = np.array([i.first_bits, i.last_bits], np.uint32).view(np.float32)
        assert a.encode(x).tolist() == [i.code_a] * 2 and b.encode(x).tolist() == [i.code_b] * 2
        assert i.cause and i.explanation
        assert (i.first, i.last) == tuple(x.tolist())


def test_a_profile_does_not_differ_from_itself():
    assert not ns.diff("cuda-13", "cuda-13", "e5m2")
    with pytest.raises(TypeError, match="to: expected the target format of a"):
        ns.diff("cuda-13", "hip-host")
    with pytest.raises(ValueError, match="by 'vlaue'"):
        ns.diff("cuda-13", "hip-host", "e4m3fn", by="vlaue")


def test_a_profile_takes_its_source_type():
    with pytest.raises(TypeError, match="x: expected float32, found float64"):
        ns.Profile("cuda-13", "e4m3fn").encode(np.zeros(3))
    ns.Profile("rule:rne,saturate", "e4m3fn", source="float64").encode(np.zeros(3))
