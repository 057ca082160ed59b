"""Kinds of arrays beside NumPy's: what comes in goes out, through DLPack."""

import numpy as np
import pytest

import numsim as ns
from conftest import same


def test_arrays_of_the_array_standard_stay_what_they_are(rng):
    strict = pytest.importorskip("array_api_strict")
    x = rng.normal(size=(5, 8)).astype(np.float32)
    array = strict.asarray(x)
    y = ns.round(array, "e4m3fn")
    assert type(y) is type(array) and y.dtype == strict.float32
    assert same(np.from_dlpack(y), ns.round(x, "e4m3fn"))
    codes = ns.encode(array, "e4m3fn")
    assert codes.dtype == strict.uint8 and type(ns.decode(codes, "e4m3fn")) is type(array)
    assert type(ns.quantize(array, "e4m3fn").dequantize()) is type(array)
    assert type(ns.matmul(array, strict.asarray(x.T))) is type(array)


def test_jax_arrays_stay_what_they_are(rng):
    jnp = pytest.importorskip("jax.numpy")
    x = rng.normal(size=(5, 8)).astype(np.float32)
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
        array = jnp.asarray(x).astype(dtype)
        y = ns.round(array, "e4m3fn")
        assert isinstance(y, type(array)) and y.dtype == dtype
        assert same(np.asarray(y, np.float32), ns.round(np.asarray(array, np.float32), "e4m3fn"))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "float8_e5m2"])
def test_tensors_stay_what_they_are(torch, kind, rng):
    x = torch.from_numpy(rng.normal(size=(5, 8)).astype(np.float32)).to(getattr(torch, kind))
    y = ns.round(x, "e2m1fn")
    assert type(y) is torch.Tensor and y.dtype == x.dtype and y.shape == x.shape
    assert same(y.float().numpy(), ns.round(x.float().numpy(), "e2m1fn"))
    assert same(ns.round(x.T, "e2m1fn").float().numpy(), y.T.float().numpy())


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "bfloat16"])
def test_casts_equal_torchs(torch, kind, rng):
    # Finite numbers in range: outside of it torch's rule depends on its version.
    bound = ns.format(kind).max * 0.9
    x = torch.from_numpy((rng.uniform(-1, 1, 2_000_000) ** 9 * min(bound, 1e30)).astype(np.float32))
    ours, theirs = ns.cast(x, kind), x.to(getattr(torch, kind))
    assert ours.dtype == theirs.dtype
    assert same(ours.float().numpy(), theirs.float().numpy())
    assert same(ns.decode(theirs).numpy(), theirs.float().numpy())


def test_results_for_tensors_are_writable_tensors(torch):
    x = torch.linspace(-3, 3, 1000)
    assert ns.round(x, "e4m3fn").numpy().flags.writeable
    assert ns.matmul(x.reshape(20, 50), x.reshape(50, 20)).dtype == torch.float32
    with pytest.raises(TypeError, match="x: expected a tensor of floats, found torch.int64"):
        ns.round(torch.arange(3), "e4m3fn")


def test_tensors_that_need_gradients_give_codes_of_their_values(torch):
    x = torch.linspace(-3, 3, 10, requires_grad=True)
    assert torch.equal(ns.encode(x, "e4m3fn"), ns.encode(x.detach(), "e4m3fn"))
