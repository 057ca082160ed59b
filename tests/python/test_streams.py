"""Stochastic rounding has no silent stream: calls share random bits only where they are told to."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32 = np.float32
FIRST = 1 << 63  # of the streams of calls that are given none


def x_of(rng, n=4000):
    return rng.normal(size=n).astype(F32)


# Calls with stochastic rounding, as functions of (x, arguments of SR); each returns an array.
def layer(x, random):
    linear = ns.Linear(ns.LinearRecipe("switchback-int8", gradient_rounding="sr:16"))
    g, w = x[:3200].reshape(40, 80), x[-1600:].reshape(80, 20)
    _, saved = linear.forward(np.ascontiguousarray(x[:800].reshape(40, 20)), w, random)
    return linear.backward(g, w, saved, random)[0]


CALLS = {
    "round": lambda x, r: ns.round(x, "bf16", rounding=r),
    "round, float64": lambda x, r: ns.round(x.astype(float), "bf16", rounding=r),
    "round, float16": lambda x, r: ns.round(x.astype(np.float16), "e4m3fn", rounding=r),
    "round, list": lambda x, r: ns.round(x[:500].tolist(), "e4m3fn", rounding=r),
    "round, out": lambda x, r: ns.round(x, "e4m3fn", rounding=r, out=np.empty_like(x)),
    "round, integers": lambda x, r: ns.round(
        [int(v * 2**70) for v in x.tolist()], "bf16", rounding=r
    ),
    "encode": lambda x, r: ns.encode(x, "bf16", rounding=r),
    "encode, strided": lambda x, r: ns.encode(x[::2], "bf16", rounding=r),
    "array": lambda x, r: ns.array(x, "bf16", rounding=r).codes,
    "mul": lambda x, r: ns.mul(
        ns.array(x, "fp16"), ns.array(x, "fp16"), to="e4m3fn", rounding=r
    ).codes,
    "add": lambda x, r: ns.add(
        ns.array(x, "fp16"), ns.array(x[:1], "fp16"), to="e5m2", rounding=r
    ).codes,
    "exp": lambda x, r: ns.exp(ns.array(x, "fp16"), to="e4m3fn", rounding=r).codes,
    "quantize": lambda x, r: ns.quantize(x, "e4m3fn", rounding=r).codes,
    "quantize, scale": lambda x, r: ns.quantize(x, "e4m3fn", scale=0.1, rounding=r).codes,
    "quantize, delayed": lambda x, r: ns.quantize(
        x, "e4m3fn", scaling=ns.Delayed("e4m3fn"), rounding=r
    ).codes,
}
SEEDED = {
    "update": lambda x, **r: ns.update(
        ns.round(x, "bf16"), x, lr=1e-3, rule="stochastic:16", format="bf16", **r
    ).weights,
    "moments": lambda x, **r: stored(x, **r),
    "linear": lambda x, **r: layer(x, ns.SR(**r)),
    "random_bits": lambda x, **r: ns.random_bits(1000, **r),
    **{
        name: lambda x, call=call, **r: call(x, ns.SR(bits=16, **r)) for name, call in CALLS.items()
    },
}


def stored(x, **random):
    moments = ns.Moments("e4m3fn+sr", x.size)
    moments.store(x, **random)
    return moments.load()


@pytest.mark.parametrize("call", CALLS)
def test_the_name_sr_never_repeats_bits_and_is_reported(call, rng):
    x = x_of(rng)
    first, second = CALLS[call](x, "sr"), CALLS[call](x, "sr")
    assert not np.array_equal(first, second)
    assert ns.streams() == {0: 2}
    seed, stream = ns.last_stream()
    assert seed == 0 and stream > FIRST
    again = CALLS[call](x, ns.SR(seed=seed, stream=stream))
    assert np.array_equal(second, again, equal_nan=True)
    assert ns.streams() == {0: 2}


@pytest.mark.parametrize("call", SEEDED)
def test_a_loop_never_repeats_bits_and_a_stream_does(call, rng):
    x = x_of(rng)
    results = [SEEDED[call](x, seed=5) for _ in range(3)]
    assert not np.array_equal(results[0], results[1])
    assert not np.array_equal(results[1], results[2])
    used = ns.streams()
    assert set(used) == {5}
    ns.streams({})  # the same script again
    assert all(np.array_equal(r, SEEDED[call](x, seed=5)) for r in results)
    assert ns.streams() == used
    told = [SEEDED[call](x, seed=5, stream=3) for _ in range(2)]
    assert np.array_equal(*told) and not np.array_equal(told[0], results[0])
    assert ns.streams() == used
    assert not np.array_equal(SEEDED[call](x, seed=6), results[0])


def test_small_additions_in_a_loop_keep_their_mean():
    for rounding in ("sr", ns.SR(), ns.SR(bits=16, seed=1)):
        x = np.ones(2000, F32)
        for _ in range(1000):
            x = ns.round(x + F32(0.001), "bf16", rounding=rounding)
        assert x.mean() == pytest.approx(2.0, abs=0.02) and x.std() == pytest.approx(0.08, abs=0.02)
        a, step = ns.array(np.ones(500), "bf16"), ns.array(0.001, "bf16")
        for _ in range(1000):
            a = ns.add(a, step, rounding=rounding)
        assert a.values().mean() == pytest.approx(2.0, abs=0.03)


def test_updates_in_a_loop_keep_their_mean(rng):
    w, u = np.ones(2000, F32), np.ones(2000, F32)
    for _ in range(300):
        w = ns.update(w, u, lr=1e-3, rule="stochastic:16", format="bf16").weights
    assert w.mean() == pytest.approx(1.3, abs=0.01) and w.std() < 0.06


def test_a_saved_count_goes_on_as_an_uninterrupted_script(rng):
    x = x_of(rng)
    whole = [ns.encode(x, "e4m3fn", rounding="sr") for _ in range(4)]
    ns.streams({})
    parts = [ns.encode(x, "e4m3fn", rounding="sr") for _ in range(2)]
    saved = ns.streams()
    ns.streams({})
    ns.streams(saved)
    parts += [ns.encode(x, "e4m3fn", rounding="sr") for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts))


def test_threads_never_share_a_stream():
    taken = []

    def work():
        mine = []
        for _ in range(300):
            ns.round(1.0, "bf16", rounding="sr")
            mine.append(ns.last_stream())
        taken.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 1200 and ns.streams() == {0: 1200}


def test_a_layer_takes_whole_blocks(rng):
    """Operand o of a layer uses stream 8 s + o: none of them is a stream of another call."""
    linear = ns.Linear(ns.LinearRecipe("switchback-int8", gradient_rounding="sr:16"))
    x, w = x_of(rng).reshape(40, 100), x_of(rng, 2000).reshape(20, 100)
    y, saved = linear.forward(x, w)
    dx, _ = linear.backward(y, w, saved)
    assert ns.streams() == {0: 2}
    _, stream = ns.last_stream()
    assert stream == FIRST + 8
    sr = ns.SR(bits=16, stream=stream + 2)  # G is operand 2
    g = ns.quantize(y, "int8", scaling="row", rounding=sr)
    assert same(dx, ns.matmul(g, ns.quantize(w, "int8")))
    for wrong in (
        ns.SR(bits=16),
        ns.SR(stream=1, first_index=2),
        ns.SR(random_bits=[1]),
        ns.SR(variant="b"),
    ):
        with pytest.raises(
            ValueError, match="random: of an SR, a layer takes seed and stream alone"
        ):
            linear.forward(x, w, wrong)
    with pytest.raises(ValueError, match="random: stream: expected 0 to"):
        linear.forward(x, w, ns.SR(stream=1 << 61))
    with pytest.raises(TypeError, match="random: expected numsim.SR, found int"):
        linear.forward(x, w, 3)


def test_other_modes_take_no_stream(rng):
    for rounding in ("rne", "odd", ns.SR(stream=3), ns.SR(random_bits=np.zeros(10, np.uint32))):
        ns.round(np.ones(10, F32), "bf16", rounding=rounding)
    assert ns.streams() == {}


def test_sr_takes_keywords_alone():
    for arguments in ((1,), (16, 1), (32, 0, 1)):
        with pytest.raises(TypeError, match=r"SR\(seed=...\) for a seed, SR\(bits=...\)"):
            ns.SR(*arguments)
    sr = ns.SR(bits=np.int64(8), seed=np.uint64(7))
    assert sr == ns.SR(bits=8, seed=7) and hash(sr) == hash(ns.SR(bits=8, seed=7))
    assert pickle.loads(pickle.dumps(sr)) == copy.deepcopy(sr) == sr
    assert repr(sr).startswith("SR(bits=8, seed=7, stream=None")


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(bits=1.5), TypeError, "SR: bits: expected an integer, found float"),
        (dict(bits=True), TypeError, "SR: bits: expected an integer, found bool"),
        (dict(seed="1"), TypeError, "SR: seed: expected an integer, found str"),
        (dict(stream=1.0), TypeError, "SR: stream: expected an integer, found float"),
        (dict(variant=3), TypeError, "SR: variant: expected a text, found int"),
        (dict(bits=33), ValueError, "SR: bits: expected 1 to 32, found 33"),
        (
            dict(seed=1 << 200),
            ValueError,
            "SR: seed: expected 0 to 2.64 - 1, found an integer of 201",
        ),
        (dict(first_index=5), ValueError, "SR: first_index: expected stream= too"),
        (dict(random_bits=[1], stream=5), ValueError, "SR: random_bits: excludes stream"),
    ],
)
def test_fields_of_sr_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        ns.SR(**arguments)


def test_states_of_streams_are_checked():
    for state in ({-1: 0}, {0: -1}, {0: 1 << 61}):
        with pytest.raises(ValueError, match="^streams: "):
            ns.streams(state)
    with pytest.raises(TypeError, match="^streams: seed: expected an integer, found str"):
        ns.streams({"0": 1})
    ns.streams({4: 1 << 60})
    with pytest.raises(ValueError, match="seed: 4 has no more streams"):
        ns.round(1.0, "bf16", rounding=ns.SR(seed=4))


def test_the_same_script_gives_the_same_bytes():
    code = (
        "import numpy as np, numsim as ns\n"
        "x = np.linspace(0, 1, 1000, dtype=np.float32)\n"
        "for _ in range(3): print(ns.encode(x, 'e4m3fn', rounding='sr').sum())\n"
    )
    out = [
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert out[0] == out[1] and len(set(out[0].split())) == 3
