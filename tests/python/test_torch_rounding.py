"""numsim.torch.round and fake_quantize: values, gradients, compiled code and sharded tensors."""

import numpy as np
import pytest

import numsim as ns
from conftest import same

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nt = pytest.importorskip("numsim.torch")
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
ROUNDINGS = pytest.mark.parametrize(
    "rounding",
    ["rne", "rtz", ns.SR(bits=9, seed=(1 << 64) - 3, stream=(1 << 63) + 5, variant="b", first_index=7)],
    ids=["rne", "rtz", "sr"],
)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


def numbers(rng, *shape):
    return (rng.normal(size=shape) * np.exp(rng.normal(size=shape) * 3)).astype(np.float32)


@DTYPES
@ROUNDINGS
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_rounds_as_the_arrays_and_passes_gradients(rng, dtype, rounding, compiled):
    x = torch.from_numpy(numbers(rng, 5, 7)).to(getattr(torch, dtype)).requires_grad_()
    call = lambda y: nt.round(y, "e4m3fn", rounding=rounding, overflow="saturate") * 2  # noqa: E731
    if compiled:
        call = torch.compile(call, backend="aot_eager", fullgraph=True)
    y = call(x)
    expected = ns.round(x.detach(), "e4m3fn", rounding=rounding, overflow="saturate") * 2
    assert y.dtype == x.dtype and torch.equal(y.detach(), expected)
    weights = torch.randn(5, 7, dtype=x.dtype)
    (gradient,) = torch.autograd.grad(y, x, weights)
    assert torch.equal(gradient, weights * 2)


def test_a_caller_gives_the_random_bits(rng):
    x = torch.from_numpy(numbers(rng, 4, 6))
    bits = torch.from_numpy(rng.integers(0, 2**12, (4, 6), dtype=np.uint32))
    rounding = ns.SR(bits=12, random_bits=bits)
    compiled = torch.compile(nt.round, backend="aot_eager", fullgraph=True)
    expected = ns.round(x.numpy(), "e5m2", rounding=ns.SR(bits=12, random_bits=bits.numpy()))
    for call in (nt.round, compiled):
        assert same(call(x, "e5m2", rounding=rounding).numpy(), expected)


def test_each_call_draws_new_bits(rng):
    x = torch.full((64,), 1.1)
    ns.streams({})
    found = [nt.round(x, "e2m3fn", rounding="sr") for _ in range(2)]
    ns.streams({})
    expected = [ns.round(x, "e2m3fn", rounding="sr") for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(found, expected))
    assert not torch.equal(*found)
    ns.streams({})
    loose = torch.compile(lambda y: nt.round(y, "e2m3fn", rounding="sr"), backend="eager")
    assert all(torch.equal(loose(x), y) for y in expected)  # a graph break
    strict = torch.compile(
        lambda y: nt.round(y, "e2m3fn", rounding="sr"), backend="eager", fullgraph=True
    )
    with pytest.raises(torch._dynamo.exc.Unsupported):
        strict(x)


def test_a_stream_that_changes_is_not_compiled_again(rng):
    x = torch.from_numpy(numbers(rng, 50))
    compiled = torch.compile(
        lambda y, step: nt.round(y, "e4m3fn", rounding=ns.SR(seed=1, stream=step)),
        backend="aot_eager",
        fullgraph=True,
        dynamic=True,
    )
    for step in range(2, 6):
        expected = ns.round(x, "e4m3fn", rounding=ns.SR(seed=1, stream=step))
        assert torch.equal(compiled(x, step), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "given",
    [
        {"scaling": "tensor"},
        {"scaling": "row/pow2-floor"},
        {"scaling": "block:4/e8m0", "rounding": ns.SR(seed=2, stream=1)},
        {"scale": 0.37, "overflow": "saturate"},
    ],
    ids=["tensor", "row", "block", "given"],
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_fake_quantize_has_the_values_of_quantize(rng, dtype, given, compiled):
    x = torch.from_numpy(numbers(rng, 3, 4, 8)).to(getattr(torch, dtype)).requires_grad_()
    call = lambda y: nt.fake_quantize(y, "e4m3fn", **given)  # noqa: E731
    if compiled:
        call = torch.compile(call, backend="aot_eager", fullgraph=True)
    y = call(x)
    rows = x.detach().float().numpy().reshape(12, 8)
    expected = ns.quantize(rows, "e4m3fn", **given).dequantize().reshape(3, 4, 8)
    assert torch.equal(y.detach(), torch.from_numpy(expected).to(x.dtype))
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


def test_operators_are_declared_as_they_behave(rng):
    x = torch.from_numpy(numbers(rng, 4, 8)).requires_grad_()
    calls = {
        torch.ops.numsim.round: (x, None, "e4m3fn", "a", "saturate", [16, 1, 2, 0]),
        torch.ops.numsim.fake_quantize: (x, "e4m3fn", "row", None, "rne", "saturate", []),
    }
    for operator, arguments in calls.items():
        # Not test_aot_dispatch_dynamic, for whose gradients it perturbs nothing
        tests = ("test_schema", "test_faketensor", "test_autograd_registration")
        torch.library.opcheck(operator, arguments, test_utils=tests)


def test_wrong_arguments_are_named():
    x = torch.ones(2, 3)
    for call, message in (
        (lambda: nt.round(x, "e4m3fm"), "e4m3fn"),
        (lambda: nt.round(x, "e4m3fn", rounding=3), "rounding: expected a name or numsim.SR"),
        (lambda: nt.fake_quantize(x, "e4m3fn", scaling="raw"), "row"),
        (lambda: nt.fake_quantize(x, "e4m3fn", scaling=ns.Delayed("e4m3fn")), "scaling: expected"),
        (lambda: nt.fake_quantize(x, "e4m3fn", scale=-1), "scale"),
        (lambda: nt.fake_quantize(x, "e4m3fn", rounding=ns.SR(random_bits=x)), "seed and stream"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
