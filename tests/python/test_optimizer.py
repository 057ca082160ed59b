"""Optimisers over arrays, against the formulas in float64."""

import numpy as np
import pytest

import numsim as ns

F32 = np.float32


def parameters(rng):
    return {"w": rng.normal(size=(8, 16)).astype(F32), "b": rng.normal(size=16).astype(F32)}


def test_the_help_lists_every_kind():
    with pytest.raises(ValueError) as error:
        ns.Optimizer({}, kind="x")
    kinds = str(error.value).split(" is not one of ")[1].split(", ")
    line = next(s for s in ns.Optimizer.__doc__.splitlines() if s.startswith("    kind "))
    assert line.split('"')[1::2] == kinds


def test_adamw_follows_its_formula(rng):
    start = parameters(rng)
    beta1, beta2, epsilon, decay, lr = 0.9, 0.95, 1e-6, 0.1, 1e-2
    opt = ns.Optimizer(start, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=decay)
    w = {name: x.astype(float) for name, x in start.items()}
    m = {name: np.zeros(x.shape) for name, x in start.items()}
    v = {name: np.zeros(x.shape) for name, x in start.items()}
    for t in range(1, 6):
        gradients = {name: rng.normal(size=x.shape).astype(F32) for name, x in start.items()}
        step = opt.step(gradients, lr=lr)
        for name, g in gradients.items():
            m[name] = beta1 * m[name] + (1 - beta1) * g
            v[name] = beta2 * v[name] + (1 - beta2) * g.astype(float) ** 2
            direction = m[name] / (1 - beta1**t) / (np.sqrt(v[name] / (1 - beta2**t)) + epsilon)
            decayed = decay if name == "w" else 0  # matrices alone
            w[name] -= lr * (direction + decayed * w[name])
            assert step.tensors[name].moved == g.size
    norm = np.sqrt(sum(np.sum(g.astype(float) ** 2) for g in gradients.values()))
    assert step.finite and not step.skipped and step.gradient_norm == pytest.approx(norm)
    for name, expected in w.items():
        assert opt[name].shape == expected.shape
        np.testing.assert_allclose(opt[name], expected, rtol=2e-5, atol=2e-6)


def test_sgd_keeps_its_weights_in_their_format(rng):
    start = parameters(rng)
    opt = ns.Optimizer(start, kind="sgd", beta1=0, weight_decay=0, weights="bf16", seed=3)
    assert np.array_equal(opt["w"], ns.round(start["w"], "bf16"))
    gradients = {name: rng.normal(size=x.shape).astype(F32) for name, x in start.items()}
    opt.step(gradients, lr=0.5)
    expected = ns.round(ns.round(start["w"], "bf16") - F32(0.5) * gradients["w"], "bf16")
    assert np.array_equal(opt["w"], expected)


def test_moments_take_the_bytes_of_their_formats(rng):
    opt = ns.Optimizer(
        {"w": np.zeros((64, 128), F32)},
        m="e4m3fn@block:128",
        v="bf16",
        weights="bf16",
        update="stochastic:16",
    )
    assert opt.bytes() == {"m": 1 + 4 / 128, "v": 2, "weights": 2, "other": 0}


def test_steps_are_functions_of_the_seed(rng):
    start = parameters(rng)
    gradients = {name: rng.normal(size=x.shape).astype(F32) for name, x in start.items()}
    results = []
    for seed in (1, 1, 2):
        opt = ns.Optimizer(start, weights="bf16", update="stochastic", seed=seed)
        opt.step(gradients, lr=1e-3)
        results.append(opt["w"].copy())
    assert np.array_equal(results[0], results[1]) and not np.array_equal(results[0], results[2])


def test_a_gradient_that_is_not_finite_changes_nothing(rng):
    start = parameters(rng)
    opt = ns.Optimizer(start)
    gradients = {name: np.full(x.shape, np.nan, F32) for name, x in start.items()}
    step = opt.step(gradients, lr=1e-3)
    assert not step.finite and np.array_equal(opt["w"], start["w"])


def test_bad_arguments_are_named(rng):
    start = parameters(rng)
    with pytest.raises(TypeError, match="unknown setting 'epsilom'; did you mean epsilon"):
        ns.Optimizer(start, epsilom=1)
    with pytest.raises(ValueError, match="did you mean adamw"):
        ns.Optimizer(start, kind="adam")
    with pytest.raises(ValueError, match="beta2"):
        ns.Optimizer(start, beta2=1.5)
    opt = ns.Optimizer(start)
    with pytest.raises(ValueError, match="gradients: expected w, b, found w"):
        opt.step({"w": start["w"]}, lr=1)
    with pytest.raises(ValueError, match=r"gradients\['b'\]: expected shape \(16,\)"):
        opt.step({"w": start["w"], "b": start["w"]}, lr=1)
    with pytest.raises(KeyError, match="the parameters are w, b"):
        opt["x"]


def test_every_step_draws_other_random_bits(rng):
    n, start = 20_000, 1.0
    opt = ns.Optimizer(
        {"w": np.full(n, start, F32)},
        kind="sgd",
        beta1=0,
        weight_decay=0,
        weights="bf16",
        update="stochastic:16",
    )
    gradient = {"w": np.full(n, -1.0, F32)}
    before = np.full(n, start, F32)
    for _ in range(3):  # a quarter of the weights that are left moves in each step
        opt.step(gradient, lr=2.0**-9)
        still = before == start
        moved = np.count_nonzero(opt["w"][still] != start) / np.count_nonzero(still)
        assert moved == pytest.approx(0.25, abs=0.02)
        before = opt["w"].copy()
