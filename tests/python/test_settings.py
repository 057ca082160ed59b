"""Settings of a wrong type or out of range: TypeError or ValueError that names the argument."""

import types

import numpy as np
import pytest

import numsim as ns

F32 = np.float32
X = np.ones((2, 2), F32)


def step(**settings):
    return ns.update(X, X, **{"lr": 1.0, "rule": "naive", "format": "bf16", **settings})


def optimizer(**settings):
    return ns.Optimizer({"w": X}, **settings)


WRONG_TYPES = {
    "beta1": lambda: optimizer(beta1="0.9"),
    "epsilon": lambda: optimizer(epsilon=None),
    "kind": lambda: optimizer(kind=3),
    "update_from_stored": lambda: optimizer(update_from_stored="yes"),
    "seed": lambda: optimizer(seed=1.5),
    "lr": lambda: optimizer().step({"w": X}, lr="1"),
    "parameters: name": lambda: ns.Optimizer({3: X}),
    "scaling": lambda: ns.quantize(X, "e4m3fn", scaling=5),
    "scale": lambda: ns.quantize(X, "e4m3fn", scale="1"),
    "overflow": lambda: ns.round(X, "e4m3fn", overflow=[]),
    "rounding": lambda: ns.encode(X, "e4m3fn", rounding=["rne"]),
    "accumulate": lambda: ns.matmul(X, X, accumulate=32),
    "any_operands": lambda: ns.matmul(X, X, any_operands=1),
    "rule": lambda: step(rule=5),
    "tolerance": lambda: step(tolerance="1"),
    "iterations": lambda: step(iterations=2.5),
    "state": lambda: step(rule="kahan", state={}),
    "history": lambda: ns.Delayed("e4m3fn", history="8"),
    "margin": lambda: ns.Delayed("e4m3fn", margin=0.5),
    "algorithm": lambda: ns.Delayed("e4m3fn", algorithm=1),
    "format": lambda: ns.Moments(5, 3),
    "n": lambda: ns.Moments("bf16", "3"),
    "signed": lambda: ns.Moments("bf16", 3, signed=1),
    "recipe": lambda: ns.LinearRecipe(5),
    "backend": lambda: ns.backend(5),
    "threads": lambda: ns.threads("2"),
    "word": lambda: ns.Profile("cuda-13", "e4m3fn").encode(X, word="1"),
    "source": lambda: ns.Profile("cuda-13", "e4m3fn", source=32),
    "profile": lambda: ns.Profile(13, "e4m3fn"),
    "by": lambda: ns.diff("cuda-13", "hip-host", "e4m3fn", by=1),
    "op": lambda: ns.oracle.vectors(3, "e4m3fn"),
    "level": lambda: ns.oracle.vectors("add", "e2m1fn", level=3),
    "length": lambda: ns.oracle.vectors("dot", "e2m1fn", length="4"),
    "nan": lambda: ns.oracle.check(None, "add", "e2m1fn", nan=1),
    "parameters": lambda: ns.Optimizer([X]),
    "gradients": lambda: optimizer().step([X], lr=1),
    "state ": lambda: ns.Linear("te-hybrid").restore("x"),
    "state  ": lambda: ns.Delayed("e4m3fn").restore([1, "2"]),
    "rounding ": lambda: ns.quantize(X, "e4m3fn", rounding=1),
    "seed ": lambda: ns.oracle.vectors("add", "e2m1fn", seed="1"),
    "stream": lambda: step(stream="1"),
    "saved": lambda: ns.Linear().backward(X, X, None),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_setting_of_a_wrong_type_is_named(name):
    with pytest.raises(TypeError, match=f"^(SR: )?{name.strip()}: expected .*found"):
        WRONG_TYPES[name]()


OUT_OF_RANGE = {
    "margin": lambda: ns.Delayed("e4m3fn", margin=10**6),
    "history": lambda: ns.Delayed("e4m3fn", history=0),
    "epsilon": lambda: optimizer(epsilon=1e-60),
    "beta2": lambda: optimizer(beta2=1e39),
    "weight_decay": lambda: optimizer(weight_decay=float("nan")),
    "lr": lambda: optimizer().step({"w": X}, lr=10**400),
    "iterations": lambda: step(iterations=0),
    "n": lambda: ns.Moments("bf16", -1),
    "word": lambda: ns.Profile("cuda-13", "e4m3fn").encode(X, word=1 << 32),
    "random_bits": lambda: ns.oracle.vectors("cast", "e4m3fn", rounding="sr", random_bits=33),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_a_setting_out_of_range_is_named(name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        OUT_OF_RANGE[name]()


def test_a_margin_of_the_largest_magnitude_works():
    for margin in (-32, 32):
        delayed = ns.Delayed("e4m3fn", history=1, margin=margin)
        ns.quantize(X, "e4m3fn", scaling=delayed)
        delayed.update()
        assert delayed.scale == pytest.approx(2.0**margin / 448)


def test_an_array_whose_library_takes_no_result_is_refused(monkeypatch):
    class Odd:
        def __dlpack__(self, **_):
            return X.__dlpack__()

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    with pytest.raises(TypeError, match="Odd: its module .* has no from_dlpack"):
        ns.round(Odd(), "e4m3fn")
    Odd.__array_namespace__ = lambda self: types.SimpleNamespace()
    with pytest.raises(TypeError, match="Odd: its module .* has no from_dlpack"):
        ns.encode(Odd(), "e4m3fn")


def test_unknown_options_of_the_oracle_get_the_nearest_name():
    for call in (
        lambda: ns.oracle.vectors("add", "e2m1fn", format_x="bf16"),
        lambda: ns.oracle.check(lambda a, b: a, "add", "e2m1fn", format_x="bf16"),
    ):
        with pytest.raises(
            TypeError, match="^add: unknown option 'format_x'; did you mean format_b"
        ):
            call()
    with pytest.raises(TypeError, match="^to: the format of a cast"):
        ns.oracle.vectors("cast", "e4m3fn", to="bf16")


RULES = ["kahan", "kahan:bf16", "master-fp32", "master-fp16-scaled", "master-fp16-scaled@row"]


def test_a_state_belongs_to_its_rule_format_and_shape(rng):
    w, u = (rng.normal(size=(8, 16)).astype(F32) for _ in range(2))
    step = lambda rule, format, state, x=w: ns.update(  # noqa: E731
        x, u[: len(x)], lr=1e-3, rule=rule, format=format, state=state
    )
    states = {rule: step(rule, "bf16", None).state for rule in RULES}
    for rule, state in states.items():
        for other in RULES:
            if other == rule or {rule, other} == {"kahan", "kahan:bf16"}:
                continue
            with pytest.raises(
                ValueError, match=f"^state: belongs to rule .*{rule[:5]}.* this step"
            ):
                step(other, "bf16", state)
        with pytest.raises(ValueError, match="^state: belongs to .* format bf16"):
            step(rule, "fp16", state)
        with pytest.raises(ValueError, match=r"^state: belongs to .* shape \(8, 16\)"):
            step(rule, "bf16", state, w[:4])
    before = states["kahan"].copy()
    step("kahan", "bf16", states["kahan"])
    again = [step("kahan", "bf16", s).weights for s in (before.copy(), before)]
    assert np.array_equal(*again) and "UpdateState of kahan" in repr(before)


def test_what_a_layer_saved_belongs_to_its_recipe(rng):
    x, w, g = (rng.normal(size=s).astype(F32) for s in ((8, 32), (4, 32), (8, 4)))
    recipes = ["standard", "switchback-int8", "llm-int8", "mx-e4m3fn", "te-hybrid"]
    saved = {recipe: ns.Linear(recipe).forward(x, w)[1] for recipe in recipes}
    for recipe in recipes:
        layer = ns.Linear(recipe)
        layer.backward(g, w, saved[recipe])
        for other in recipes:
            if other != recipe:
                with pytest.raises(ValueError, match="^saved: of the recipe"):
                    layer.backward(g, w, saved[other])
        with pytest.raises(ValueError, match="^w: expected a matrix of 4 x 32"):
            layer.backward(g, w[:, :16], saved[recipe])


def test_results_cannot_be_changed(rng):
    opt = optimizer()
    taken = opt.step({"w": X}, lr=1e-3)
    interval = ns.diff("cuda-13", "hip-host", "e4m3fn").intervals[0]
    verdict = ns.oracle.check(lambda a, b: np.zeros_like(a), "add", "e2m1fn", limit=1)
    results = [
        (ns.profiles()[0], "name"),
        (interval, "count"),
        (ns.diff("cuda-13", "cuda-13", "e4m3fn"), "differing"),
        (verdict, "wrong"),
        (verdict.first[0], "case"),
        (taken, "skipped"),
        (taken.tensors["w"], "moved"),
        (ns.SR(), "seed"),
    ]
    for result, field in results:
        with pytest.raises(AttributeError):
            setattr(result, field, 0)
    assert len({ns.profiles()[0], ns.profiles()[0], interval}) == 2


def test_the_extension_keeps_its_own_limits():
    """Calls of the extension that the package does not make: errors, no reading out of bounds."""
    core = ns._core
    a = np.arange(36, dtype=F32).reshape(6, 6)
    plain = ns.format("fp32").spec, np.eye(3, dtype=F32), False
    out = np.empty((6, 3), F32)
    core.gemm(plain[0], a[:, ::2], False, *plain, "fp32", True, out, "float64")
    assert np.array_equal(out, a[:, ::2])
    x = np.ones((4, 64), F32)
    matrix = ns.quantize(x, "e2m1fn", scaling="block:16/nvfp4")._core
    with pytest.raises(ValueError, match="Dequantize: .*out.* 3 elements, expected 256"):
        core.dequantize(matrix, np.empty(3, F32))
    one = np.ones(1, F32)
    few = core.QuantizedMatrix(ns.format("e4m3fn").spec, "row", np.zeros((4, 8), np.uint8), one)
    with pytest.raises(ValueError, match="AsOperand: .*scales.* 1 elements, expected 4"):
        core.gemm(plain[0], few, False, *plain, "fp32", True, np.empty((4, 3), F32), "float64")
    codes, plan = np.empty((4, 3), np.uint8), core.EncodePlan(ns.format("e4m3fn").spec, "rne", "saturate")
    with pytest.raises(ValueError, match="at most the 12 of the memory"):
        core.quantize(x, plan, "tensor", "absmax", core.ArrayRandom(0, 0, 0), False, False, codes, one)
    operation = core.make_operation("add", format="e2m1fn")
    rows = core.CaseRows(operation, "edges", 0, True)
    for first in (len(rows), 2**64 - 1):
        with pytest.raises(ValueError, match="cases: beyond the last one"):
            rows.fill(first, np.empty((2, len(rows.columns)), np.uint64))
    with pytest.raises(ValueError, match="out: expected 4 columns"):
        rows.fill(0, np.empty((2, 3), np.uint64))
    judge = core.Judge(operation, "any", 1)
    for width in (0, 2, 5):
        with pytest.raises(ValueError, match="rows: expected 3 columns, or 4 with flags"):
            judge.add(np.empty((2, width), np.uint64), 0)
    plan = core.EncodePlan(ns.format("bf16").spec, "rne", "nonsaturate")
    with pytest.raises(ValueError, match="exponent .*, expected a magnitude below"):
        core.encode_exact(
            plan, np.ones(1, np.uint64), np.full(1, 1 << 21, np.int32), np.empty(1, np.uint16)
        )


def test_names_of_parameters_may_hold_any_character(rng):
    opt = ns.Optimizer({"a\0b": X, "a\0c": X * 2})
    opt.step({"a\0b": X, "a\0c": -X}, lr=1e-3)
    steps, state = opt._core.save()
    assert {name.rpartition("/")[0] for name in state if "/m" in name} == {"a\0b", "a\0c"}
    other = ns.Optimizer({"a\0b": opt["a\0b"], "a\0c": opt["a\0c"]})
    other._core.restore(steps, state)
    for each in (opt, other):
        each.step({"a\0b": X, "a\0c": X}, lr=1e-3)
    assert np.array_equal(opt["a\0c"], other["a\0c"])


def test_the_spread_of_a_tensor():
    nonfinite, absmax, kurtosis = ns._core.spread(np.array([1.0, -3.0, 2.0, np.nan, np.inf], F32))
    assert (nonfinite, absmax) == (2, 3.0)
    x = np.array([1.0, -3.0, 2.0])
    assert kurtosis == pytest.approx(((x - x.mean()) ** 4).mean() / x.var() ** 2, rel=1e-6)
