"""The operations of P3109 against the rules of its report in fractions (p3109_reference.py)."""

import os
import pathlib
import random
import re

import numpy as np
import pytest

import numsim as ns
import p3109_reference as ref
from p3109_reference import NAN, Format

MORE = int(os.environ.get("NUMSIM_P3109_MORE", "1"))  # times as many cases and projections
DOCS = pathlib.Path(__file__).parents[2] / "docs"

EXTERNAL = {"fp32": Format("fp32", 32, 24, external_bias=127), "fp16": Format("fp16", 16, 11, external_bias=15), "bf16": Format("bf16", 16, 8, external_bias=127)}


def format_of(name):
    if name in EXTERNAL:
        return EXTERNAL[name]
    k, p, sign, domain = re.fullmatch(r"binary(\d+)p(\d+)([su])([ef])", name).groups()
    return Format(name, int(k), int(p), sign == "s", domain == "e")


FORMATS = {
    name: format_of(name)
    for name in (
        "binary8p4se", "binary8p3se", "binary4p2sf", "binary8p1uf", "binary8p4ue", "binary6p3uf",
        "binary5p1se", "binary5p2se", "binary6p5sf", "binary4p1ue", "fp32", "fp16", "bf16",
    )
}  # fmt: skip
SR = [("sr-a", 3), ("sr-b", 5), ("sr-c", 8), ("sr-c", 1)]
MODES = ["rne", "rna", "rtz", "rtp", "rtn", "odd", *SR]
SATURATIONS = ["nonsaturate", "saturate", "propagate"]
# (format of the operands, of the result)
PAIRS = [("binary8p4se", "binary8p4se"), ("binary8p3se", "binary8p4ue"), ("binary4p2sf", "fp16"), ("binary8p1uf", "binary5p1se"), ("bf16", "binary6p3uf"), ("binary6p5sf", "fp32"), ("binary5p2se", "binary4p1ue")]  # fmt: skip
NAMES = {name.removeprefix("p3109.") for name in ns.oracle.operations() if name.startswith("p3109.")}
ELEMENTWISE = sorted(ref.OPERATIONS)


def operands(op):
    return 3 if op in ("FMA", "FAA", "Clamp") else 1 if op in ref.AT or op in ("Convert", "Abs", "Negate", "Recip") else 2


def options_of(mode, saturation):
    if isinstance(mode, str):
        return {"rounding": mode, "overflow": saturation}
    name, bits = mode
    return {"rounding": "sr", "variant": name[-1], "random_bits": bits, "overflow": saturation}


def projections(op, every):
    """Pairs of mode and saturation; all of them, or one of a few that depends on the name."""
    pairs = [(mode, saturation) for mode in MODES for saturation in SATURATIONS]
    if every:
        return pairs
    choice = random.Random(op)
    return [("rne", "nonsaturate"), *choice.sample(pairs, min(4 * MORE, len(pairs)))]


def rounded(value, f, mode, saturation, r):
    name, bits = mode if isinstance(mode, tuple) else (mode, 0)
    return ref.project(value, f, name, saturation, bits, int(r))


def results_of(name, source, target, level, mode, saturation, **more):
    return ns.oracle.vectors(
        "p3109." + name, source, level=level, to=target, **options_of(mode, saturation), **more
    )


def require(table, want, what):
    got = table["result"].tolist()
    for i, (g, w) in enumerate(zip(got, want)):
        assert g == w, (what, {name: hex(column[i]) for name, column in table.items()}, hex(w))


def test_every_operation_of_the_report_has_its_name():
    names = set(ELEMENTWISE) | set(ref.COMPARISONS) | set(ref.PREDICATES)
    names |= {"Class", "NextGreaterThan", "NextLessThan"}
    names |= {"ConvertFromBlock", "ConvertToBlock", "ConvertToBlockMaxAbsFinite"}
    names |= {"BlockReduceAdd", "BlockReduceMultiply", "BlockDotProduct"}
    names |= {prefix + op for op in ELEMENTWISE for prefix in ("Block", "Scaled")}
    assert names == NAMES


def test_the_page_lists_every_operation():
    page = (DOCS / "p3109.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`p3109\.(\w+)`", page))
    elementwise = {prefix + op for op in ELEMENTWISE for prefix in ("Block", "Scaled")}
    assert names <= NAMES | {"Block"}
    assert names >= NAMES - elementwise
    header = DOCS.parent / "libnumsim/numerics/numsim/arith/p3109.h"
    struct = header.read_text(encoding="utf-8").split("struct FormatProperties {")[1].split("}")[0]
    fields = re.findall(r"^  \w+ (\w+) =", struct, re.MULTILINE)
    assert len(fields) == 12
    for field in fields:
        assert f"`{field}`" in page, field


@pytest.mark.parametrize("op", ELEMENTWISE)
@pytest.mark.parametrize("source,target", PAIRS)
def test_values(op, source, target):
    f, to, n = FORMATS[source], FORMATS[target], operands(op)
    wide = source in EXTERNAL or source == "binary8p1uf"
    if wide and op in ref.REAL and op not in ("Sqrt", "RSqrt", "Hypot"):
        pytest.skip("decimals of such large and small arguments take long")
    for mode, saturation in projections(op + source, every=MORE > 1 and n == 1 and f.k <= 6):
        full = n == 1 and f.k <= 8 and isinstance(mode, str)
        level = "full" if full else f"uniform:{100 * MORE}" if n == 1 else f"random:{40 * MORE}"
        table = results_of(op, source, target, level, mode, saturation, **({"format_c": source} if n == 3 else {}))
        columns = [table[name].tolist() for name in "abc"[:n]]
        draws = table["random"].tolist() if "random" in table else [0] * len(columns[0])
        want = [
            rounded(ref.OPERATIONS[op](*map(f.decode, codes)), to, mode, saturation, r)
            for *codes, r in zip(*columns, draws)
        ]
        require(table, want, (op, source, target, mode, saturation))


@pytest.mark.parametrize("source", [name for name, f in FORMATS.items() if f.k <= 8])
def test_predicates_classes_and_neighbours(source):
    f = FORMATS[source]
    values = [f.decode(code) for code in range(2**f.k)]
    for op, predicate in ref.PREDICATES.items():
        table = ns.oracle.vectors("p3109." + op, source, level="full")
        require(table, [int(predicate(x, f)) for x in values], (op, source))
    table = ns.oracle.vectors("p3109.Class", source, level="full")
    assert table["class"].tolist() == [ref.class_of(x, f) for x in values]
    for op, above in (("NextGreaterThan", True), ("NextLessThan", False)):
        table = ns.oracle.vectors("p3109." + op, source, level="full")
        want = [f.encode(ref.neighbour(x, f, above)) for x in values]
        require(table, want, (op, source))


@pytest.mark.parametrize("op", ref.COMPARISONS)
@pytest.mark.parametrize("a,b", [("binary8p4se", "binary8p3se"), ("binary4p2sf", "binary5p1se"), ("binary8p1uf", "binary6p5sf")])
def test_comparisons(op, a, b):
    f, g = FORMATS[a], FORMATS[b]
    table = ns.oracle.vectors("p3109." + op, a, format_b=b, level="full")
    values = {f.name: [f.decode(c) for c in range(2**f.k)], g.name: [g.decode(c) for c in range(2**g.k)]}
    want = [int(ref.COMPARISONS[op](x, y)) for x in values[a] for y in values[b]]
    require(table, want, (op, a, b))


BLOCKS = [("binary8p4se", "binary8p1uf", "binary8p3se"), ("binary4p2sf", "binary8p4se", "fp16"), ("binary5p2se", "fp32", "binary8p4ue")]  # fmt: skip


def block(table, name, f, scale, row):
    """The exact values of a block of one row."""
    s = scale.decode(int(table["scale-" + name][row]))
    return [ref.multiply(s, f.decode(int(table[f"{name}[{i}]"][row]))) for i in range(LENGTH)]


LENGTH = 3


def draws_of(table, row, n):
    if "random" in table:
        return [table["random"][row]] * n
    return [table[f"random[{i}]"][row] if f"random[{i}]" in table else 0 for i in range(n)]


@pytest.mark.parametrize("op", ELEMENTWISE)
@pytest.mark.parametrize("element,scale,target", BLOCKS)
def test_blocks_and_scaled_values(op, element, scale, target):
    f, s, to, n = FORMATS[element], FORMATS[scale], FORMATS[target], operands(op)
    if op in ref.REAL and op not in ("Sqrt", "RSqrt", "Hypot"):
        pytest.skip("tests/arith/p3109_test.cc, against MPFR")
    more = {"scale_format": scale, **({"format_c": element} if n == 3 else {})}
    for mode, saturation in projections(op + element, every=False):
        for level in ("edges", f"random:{10 * MORE}"):
            table = results_of("Block" + op, element, target, level, mode, saturation, length=LENGTH, **more)
            step = max(1, len(table["q[0]"]) // (20 * MORE))
            for row in range(0, len(table["q[0]"]), step):
                values = [block(table, name, f, s, row) for name in "abc"[:n]]
                divisor = s.decode(int(table["scale"][row]))
                for i, r in enumerate(draws_of(table, row, LENGTH)):
                    exact = ref.block_project(ref.OPERATIONS[op](*(v[i] for v in values)), divisor)
                    want = rounded(exact, to, mode, saturation, r)
                    assert table[f"q[{i}]"][row] == want, (op, mode, saturation, level, row, i)
        table = results_of("Scaled" + op, element, target, "random:20", mode, saturation, **more)
        for row in range(20):
            x = [ref.multiply(s.decode(int(table["scale-" + name][row])), f.decode(int(table[name][row]))) for name in "abc"[:n]]
            want = rounded(ref.OPERATIONS[op](*x), to, mode, saturation, draws_of(table, row, 1)[0])
            assert table["result"][row] == want, (op, mode, saturation, row)


@pytest.mark.parametrize("element,scale,target", BLOCKS)
@pytest.mark.parametrize("mode", MODES)
def test_conversions_and_reductions_of_blocks(element, scale, target, mode):
    f, s, to = FORMATS[element], FORMATS[scale], FORMATS[target]
    for saturation in SATURATIONS:
        for level in (f"random:{15 * MORE}", *(("edges",) if saturation == "propagate" else ())):
            check_conversions(f, s, to, mode, saturation, level)
            for op in ("BlockReduceAdd", "BlockReduceMultiply", "BlockDotProduct"):
                table = results_of(op, f.name, to.name, level, mode, saturation, scale_format=s.name, length=LENGTH)
                for row in range(len(table["result"])):
                    values = block(table, "a", f, s, row)
                    if op == "BlockDotProduct":
                        values = list(map(ref.multiply, values, block(table, "b", f, s, row)))
                    exact = (ref.reduce_multiply if op.endswith("Multiply") else ref.reduce_add)(values)
                    want = rounded(exact, to, mode, saturation, draws_of(table, row, 1)[0])
                    assert table["result"][row] == want, (op, mode, saturation, level, row)


def check_conversions(f, s, to, mode, saturation, level):
    common = {"scale_format": s.name, "length": LENGTH}
    table = results_of("ConvertFromBlock", f.name, to.name, level, mode, saturation, **common)
    for row in range(len(table["q[0]"])):
        for i, (x, r) in enumerate(zip(block(table, "a", f, s, row), draws_of(table, row, LENGTH))):
            assert table[f"q[{i}]"][row] == rounded(x, to, mode, saturation, r), (row, i)
    table = results_of("ConvertToBlock", f.name, to.name, level, mode, saturation, **common)
    for row in range(len(table["q[0]"])):
        require_elements(table, row, f, s.decode(int(table["scale"][row])), to, mode, saturation)
    common["scale_rounding"] = "rtp,saturate"
    table = results_of("ConvertToBlockMaxAbsFinite", f.name, to.name, level, mode, saturation, **common)
    for row in range(len(table["q[0]"])):
        values = [f.decode(int(table[f"a[{i}]"][row])) for i in range(LENGTH)]
        scale = ref.project(ref.max_abs_finite(values), s, "rtp", "saturate")
        assert table["scale"][row] == scale, row
        require_elements(table, row, f, s.decode(scale), to, mode, saturation)


def require_elements(table, row, f, scale, to, mode, saturation):
    for i, r in enumerate(draws_of(table, row, LENGTH)):
        exact = ref.block_project(f.decode(int(table[f"a[{i}]"][row])), scale)
        assert table[f"q[{i}]"][row] == rounded(exact, to, mode, saturation, r), (row, i)


def test_the_scale_of_a_block_has_the_projection_of_its_elements_by_default():
    for mode in ("rne", "rtp", ("sr-b", 4)):
        table = results_of("ConvertToBlockMaxAbsFinite", "fp16", "binary8p4se", "random:50", mode, "propagate", scale_format="binary8p3se", length=2)
        for row in range(50):
            values = [FORMATS["fp16"].decode(int(table[f"a[{i}]"][row])) for i in range(2)]
            r = table["random-scale"][row] if "random-scale" in table else 0
            want = rounded(ref.max_abs_finite(values), FORMATS["binary8p3se"], mode, "propagate", r)
            assert table["scale"][row] == want


def test_long_products_are_exact():
    table = ns.oracle.vectors(
        "p3109.BlockReduceMultiply", "binary8p4se", to="fp32", length=200, scale_format="binary8p4se", level="random:200"
    )
    f, to = FORMATS["binary8p4se"], FORMATS["fp32"]
    for row in range(200):
        s = f.decode(int(table["scale-a"][row]))
        exact = ref.reduce_multiply([ref.multiply(s, f.decode(int(table[f"a[{i}]"][row]))) for i in range(200)])
        assert table["result"][row] == ref.project(exact, to)


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(ns.Error, match="--op p3109.Add does not use --scale-rounding"):
        ns.oracle.vectors("p3109.Add", "binary8p4se", scale_rounding="rtp")
    with pytest.raises(ns.Error, match="--scale-rounding rtq: "):
        ns.oracle.vectors("p3109.ConvertToBlockMaxAbsFinite", "fp32", scale_rounding="rtq")
    with pytest.raises(ns.Error, match="did you mean p3109.ArcTan2?"):
        ns.oracle.vectors("p3109.ArcTan3", "fp32", level="random:1")


def test_nan_is_one_code():
    table = ns.oracle.vectors("p3109.Convert", "fp16", to="bf16", level="full")
    nan = np.isnan(table["a"].view(np.float16))
    assert set(table["result"][nan].tolist()) == {0x7FC0}
    assert table["result"][table["a"] == 0x8000].tolist() == [0]
    assert FORMATS["bf16"].encode(NAN) == 0x7FC0
