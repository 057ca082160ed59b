"""The oracle: vectors and the judge of Python functions."""

import numpy as np
import pytest

import numsim as ns
from grids import SMALL


def test_vectors_of_every_pair_equal_rational_arithmetic():
    grid = SMALL["e2m1fn"]
    v = ns.oracle.vectors("add", "e2m1fn", level="full", overflow="saturate")
    assert list(v) == ["a", "b", "result", "flags"] and len(v["a"]) == 256
    for a, b, result in zip(v["a"].tolist(), v["b"].tolist(), v["result"].tolist()):
        exact = grid.value(a) + grid.value(b)
        assert grid.value(result) == grid.value(grid.round(exact, "rne"))


def test_vectors_equal_those_of_the_command_line(numsim_program, tmp_path):
    path = tmp_path / "cases.npy"
    numsim_program(
        "oracle",
        "gen",
        "--results",
        "--op",
        "fma",
        "--format",
        "e4m3fn",
        "--level",
        "random:500",
        "--seed",
        3,
        "--npy",
        path,
    )
    v = ns.oracle.vectors("fma", "e4m3fn", level="random:500", seed=3)
    assert np.array_equal(np.column_stack(list(v.values())), np.load(path))


def test_a_right_cast_is_right_on_every_level():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def cast(x):
        with np.errstate(all="ignore"):
            return x.astype(ml_dtypes.float8_e4m3fn)

    for level in ("edges", "random:300000", "uniform:2500000"):
        verdict = ns.oracle.check(cast, "cast", "e4m3fn", level=level)
        assert verdict and verdict.cases > 1000 and verdict.first == []


def test_a_wrong_cast_is_shown_with_counterexamples():
    def truncate(x):
        return ns.encode(x, "e4m3fn", rounding="rtz")

    verdict = ns.oracle.check(truncate, "cast", "e4m3fn", limit=3)
    assert not verdict and len(verdict.first) == 3
    case = verdict.first[0]
    assert case.kind == "value" and case.got["result"] != case.expected["result"]
    assert f"{verdict.wrong} of {verdict.cases} cases wrong" in repr(verdict)
    assert ns.oracle.check(truncate, "cast", "e4m3fn", rounding="rtz")


def test_one_wrong_code_of_65536_is_found():
    def add(a, b):
        c = ns.add(ns.Array(a, "e4m3fn"), ns.Array(b, "e4m3fn")).codes
        c[(a == 0x12) & (b == 0x34)] ^= 1
        return c

    verdict = ns.oracle.check(add, "add", "e4m3fn", level="full")
    assert (verdict.cases, verdict.wrong) == (65536, 1)
    assert verdict.first[0].inputs == {"a": 0x12, "b": 0x34}


def test_counterexamples_have_the_number_of_their_case():
    vectors = ns.oracle.vectors("cast", "e4m3fn", level="uniform:1100000", seed=4)
    last = vectors["a"][-1]

    def cast(x):
        codes = ns.encode(x, "e4m3fn")
        codes[x.view(np.uint32) == last] ^= 1
        return codes

    verdict = ns.oracle.check(cast, "cast", "e4m3fn", level="uniform:1100000", seed=4)
    assert [c.case for c in verdict.first] == np.nonzero(vectors["a"] == last)[0].tolist()


def test_values_and_flags_are_judged_too():
    def values(a, b):
        return ns.decode(a, "e3m2fn") + ns.decode(b, "e3m2fn")

    with pytest.raises(ValueError, match="is no value of e3m2fn"):
        ns.oracle.check(values, "add", "e3m2fn", level="full")

    def rounded(a, b):
        return ns.round(values(a, b), "e3m2fn")

    assert ns.oracle.check(rounded, "add", "e3m2fn", level="full")

    def without_flags(a, b):
        c = ns.add(ns.Array(a, "e3m2fn"), ns.Array(b, "e3m2fn")).codes
        return c, np.zeros(c.size, np.uint8)

    verdict = ns.oracle.check(without_flags, "add", "e3m2fn", level="full")
    assert not verdict and verdict.first[0].kind == "flags"


@pytest.mark.parametrize("rule", ["e8m0", "e8m0-even", "e8m0-ulp", "e8m0-ceil", "pow2-ceil"])
def test_blocks_under_a_scale_rule_are_those_of_quantize(rule):
    options = {"to": "e2m1fn", "scale_rule": rule, "length": 4}
    v = ns.oracle.vectors("quantize-mx", "fp32", level="random:2000", **options)
    x = np.column_stack([v[f"x[{i}]"] for i in range(4)]).astype(np.uint32).view(np.float32)
    q = ns.quantize(x, "e2m1fn", scaling=f"block:4/{rule}")
    assert np.array_equal(q.scale_codes[:, 0], v["scale"])
    numbers = ~np.isnan(x)
    codes = np.column_stack([v[f"q[{i}]"] for i in range(4)])
    assert np.array_equal(q.codes[numbers], codes[numbers])
    with pytest.raises(ns.Error, match="--scale-rule nvfp4: scales of quantize-mx are powers of"):
        ns.oracle.vectors("quantize-mx", "fp32", to="e2m1fn", scale_rule="nvfp4")


def test_stochastic_casts_are_judged_by_their_random_bits():
    def cast(x, random):
        return ns.encode(x, "e5m2", rounding=ns.SR(bits=8, variant="b", random_bits=random))

    options = dict(rounding="sr", random_bits=8, variant="b", level="random:50000")
    assert ns.oracle.check(cast, "cast", "e5m2", **options)
    assert not ns.oracle.check(cast, "cast", "e5m2", **{**options, "variant": "a"})


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="did you mean sqrt"):
        ns.oracle.vectors("sqr", "e4m3fn")
    with pytest.raises(ValueError, match="level"):
        ns.oracle.vectors("add", "e4m3fn", level="ful")
    with pytest.raises(ValueError, match=r"implementation: result: expected shape"):
        ns.oracle.check(lambda x: np.zeros(3, np.uint8), "cast", "e4m3fn")
    with pytest.raises(ValueError, match="implementation: result: codes of more than 8 bits"):
        ns.oracle.check(lambda x: np.full(x.shape, 256, np.uint16), "cast", "e4m3fn")
    with pytest.raises(ValueError, match="implementation: expected result and perhaps flags"):
        ns.oracle.check(lambda x: (x, x, x), "cast", "e4m3fn")
    assert "fma" in ns.oracle.operations()
