"""Update rules and moments."""

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32 = np.float32


def step(rng, n=4000):
    weights = ns.round(rng.normal(size=n).astype(F32), "bf16")
    return weights, rng.normal(size=n).astype(F32)


def test_the_naive_rule_rounds_the_float32_sum(rng):
    w, u = step(rng)
    r = ns.update(w, u, lr=0.01, rule="naive", format="bf16")
    expected = ns.round(w + F32(0.01) * u, "bf16", overflow="saturate")
    assert same(r.weights, expected) and r.state is None and r.status == "ok"
    assert r.moved == np.count_nonzero(expected != w)
    assert r.swallowed == np.count_nonzero((expected == w) & (u != 0))


def test_masters_keep_what_the_weights_lose(rng):
    w, u = step(rng)
    state, weights, master = None, w, w.copy()
    for _ in range(5):
        r = ns.update(weights, u, lr=1e-4, rule="master-fp32", format="bf16", state=state)
        weights, state, master = r.weights, r.state, master + F32(1e-4) * u
    assert same(weights, ns.round(master, "bf16"))
    assert not same(weights, w)


def test_stochastic_steps_are_seeded_and_equal_the_command_line(numsim_program, tmp_path, rng):
    w, u = step(rng)
    np.save(tmp_path / "w.npy", w), np.save(tmp_path / "u.npy", u)
    numsim_program(
        "update",
        tmp_path / "w.npy",
        tmp_path / "u.npy",
        tmp_path / "out.npy",
        "--format",
        "bf16",
        "--rule",
        "stochastic:16",
        "--lr",
        "1e-3",
        "--seed",
        7,
    )
    r = ns.update(w, u, lr=1e-3, rule="stochastic:16", format="bf16", seed=7, stream=0)
    theirs = np.load(tmp_path / "out.npy")
    theirs = theirs if theirs.dtype == F32 else ns.decode(theirs, "bf16")
    assert same(r.weights, theirs)


def test_matched_steps_meet_their_target_per_row(rng):
    w, u = (x.reshape(40, 100) for x in step(rng))
    r = ns.update(w, u, lr=1e-3, rule="projection-matched@row", format="bf16")
    moved = (r.weights - w).astype(float)
    for row in range(40):
        projection = np.dot(moved[row], u[row].astype(float))
        assert projection == pytest.approx(1e-3 * np.sum(u[row].astype(float) ** 2), rel=0.2)


def test_inputs_stay_as_they_are(rng):
    w, u = step(rng)
    before = w.copy()
    ns.update(w, u, lr=1.0, rule="kahan", format="bf16")
    assert same(w, before)


def test_bad_arguments_are_named(rng):
    w, u = step(rng)
    with pytest.raises(ValueError, match="update: expected shape"):
        ns.update(w, u[1:], lr=1.0, rule="naive", format="bf16")
    with pytest.raises(ValueError, match="did you mean naive"):
        ns.update(w, u, lr=1.0, rule="naiv", format="bf16")
    with pytest.raises(ValueError, match="split-master"):
        ns.update(w, u, lr=1.0, rule="split-master", format="e4m3fn")
    assert "norm-matched" in ns.update_kinds()


def test_moments_are_stored_as_quantised_blocks(rng):
    x = rng.normal(size=256).astype(F32)
    moments = ns.Moments("e4m3fn@block:128", 256)
    loss = moments.store(x)
    blocks = ns.quantize(x.reshape(2, 128), "e4m3fn", scaling="row").dequantize().ravel()
    assert np.allclose(moments.load(), blocks, rtol=1e-6, atol=0)
    assert moments.bytes == 256 + 2 * 4
    assert loss.flushed == np.count_nonzero((moments.load() == 0) & (x != 0))


def test_moments_are_signed_by_default():
    moments = ns.Moments("dynamic:256", 256)
    x = np.linspace(-1, 1, 256, dtype=F32)
    moments.store(x)
    assert moments.load()[0] < -0.9 and np.abs(moments.load() - x).max() < 0.1
    second = ns.Moments("dynamic:256", 256, signed=False)
    second.store(x * x)
    assert np.abs(second.load() - x * x).max() < 0.1


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (0, 3, 2)])
@pytest.mark.parametrize("rule", ["naive", "kahan", "norm-matched@row", "stochastic:16"])
def test_weights_without_elements(shape, rule):
    r = ns.update(np.zeros(shape, F32), np.zeros(shape, F32), lr=1.0, rule=rule, format="bf16")
    assert r.weights.shape == shape and r.moved == r.swallowed == 0
