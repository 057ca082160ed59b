"""Rounding passes gradients straight through in PyTorch and JAX; other calls say if they do not."""

import functools

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32 = np.float32
X = np.array([0.78, 1.3, -3.3, 500.0], F32)


class TestTorch:
    torch = staticmethod(lambda: pytest.importorskip("torch"))

    @pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
    @pytest.mark.parametrize("rounding", ["rne", "sr", ns.SR(bits=8, seed=1, stream=2)])
    def test_a_gradient_passes(self, dtype, rounding):
        torch = self.torch()
        x = torch.tensor(X, dtype=getattr(torch, dtype), requires_grad=True)
        y = ns.round(x, "e4m3fn", rounding=rounding, overflow="saturate")
        assert y.dtype == x.dtype and y.requires_grad
        weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=x.dtype)
        (y * weights).sum().backward()
        assert torch.equal(x.grad, weights)
        if rounding != "sr":
            expected = ns.round(x.detach(), "e4m3fn", rounding=rounding, overflow="saturate")
            assert torch.equal(y.detach(), expected)

    def test_second_derivatives_and_functional_gradients(self):
        torch = self.torch()
        x = torch.tensor(X[:3], requires_grad=True)
        (first,) = torch.autograd.grad((ns.round(x, "e4m3fn") ** 2).sum(), x, create_graph=True)
        assert torch.equal(first, 2 * ns.round(x.detach(), "e4m3fn"))
        (second,) = torch.autograd.grad(first.sum(), x)
        assert torch.equal(second, torch.full((3,), 2.0))
        by_function = torch.func.grad(lambda y: (ns.round(y, "e4m3fn") ** 2).sum())(x.detach())
        assert torch.equal(by_function, first.detach())

    def test_nothing_is_recorded_where_no_gradient_is_wanted(self):
        torch = self.torch()
        x = torch.tensor(X, requires_grad=True)
        with torch.no_grad():
            assert not ns.round(x, "e4m3fn").requires_grad
            assert ns.quantize(x, "e4m3fn").dequantize().shape == (1, 4)
        assert not ns.round(x.detach(), "e4m3fn").requires_grad
        with pytest.raises(TypeError, match="out: only for NumPy arrays"):
            ns.round(x, "e4m3fn", out=X.copy())

    def test_other_calls_refuse(self):
        torch = self.torch()
        x = torch.tensor(X.reshape(2, 2), requires_grad=True)
        for name, call in (
            ("x", lambda: ns.cast(x, "e4m3fn")),
            ("x", lambda: ns.quantize(x, "e4m3fn")),
            ("a", lambda: ns.matmul(x, x.detach())),
            ("b", lambda: ns.matmul(x.detach(), x)),
        ):
            with pytest.raises(
                ValueError, match=rf"^{name}: requires a gradient.*{name}.detach\(\)"
            ):
                call()
        assert ns.encode(x, "e4m3fn").shape == (2, 2)


class TestJax:
    jax = staticmethod(lambda: pytest.importorskip("jax"))

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    @pytest.mark.parametrize("rounding", ["rne", "rtz", ns.SR(bits=8, seed=1, stream=2)])
    def test_jit_gives_the_bits_of_the_plain_call(self, dtype, rounding):
        jax = self.jax()
        x = jax.numpy.asarray(X, dtype)
        plain = ns.round(x, "e4m3fn", rounding=rounding)
        compiled = jax.jit(lambda y: ns.round(y, "e4m3fn", rounding=rounding))(x)
        assert compiled.dtype == x.dtype
        assert same(np.asarray(compiled, F32), np.asarray(plain, F32))

    def test_gradients_pass(self):
        jax = self.jax()
        x = jax.numpy.asarray(X[:3])
        loss = lambda y: (ns.round(y, "e4m3fn") ** 2).sum()  # noqa: E731
        expected = 2 * np.asarray(ns.round(x, "e4m3fn"))
        for gradient in (jax.grad(loss), jax.jit(jax.grad(loss)), jax.grad(jax.jit(loss))):
            assert same(np.asarray(gradient(x)), expected)
        value, tangent = jax.jvp(lambda y: ns.round(y, "e4m3fn"), (x,), (x * 3,))
        assert same(np.asarray(tangent), X[:3] * 3) and same(np.asarray(value), expected / 2)
        assert np.asarray(jax.hessian(loss)(x)).tolist() == (2 * np.eye(3)).tolist()

    def test_vmap_and_scan(self):
        jax = self.jax()
        x = jax.numpy.asarray(X.reshape(2, 2))
        rows = jax.vmap(lambda row: ns.round(row, "e4m3fn"))(x)
        assert same(np.asarray(rows), np.asarray(ns.round(x, "e4m3fn")))
        total, _ = jax.lax.scan(lambda c, v: (ns.round(c + v, "bf16"), None), x[0], x)
        expected = x[0]
        for row in x:
            expected = ns.round(expected + row, "bf16")
        assert same(np.asarray(total), np.asarray(expected))

    def test_random_bits_may_be_traced(self):
        jax = self.jax()
        x = jax.numpy.full(4000, 1.06, "float32")

        @jax.jit
        def rounded(y, key):
            bits = jax.random.bits(key, y.shape, "uint32")
            return ns.round(y, "e4m3fn", rounding=ns.SR(random_bits=bits))

        one, two = (np.asarray(rounded(x, jax.random.key(k))) for k in (1, 2))
        assert not np.array_equal(one, two) and one.mean() == pytest.approx(1.06, abs=0.005)
        slope = jax.grad(lambda y: rounded(y, jax.random.key(1)).sum())(x)
        assert np.asarray(slope).tolist() == [1.0] * 4000

    @pytest.mark.parametrize("rounding", ["sr", ns.SR(), ns.SR(bits=16, seed=3)])
    def test_a_stream_that_every_run_would_share_is_refused(self, rounding):
        jax = self.jax()
        for transformed in (jax.jit, lambda f: jax.grad(lambda y: f(y).sum())):
            with pytest.raises(ValueError, match="rounding: .*SR\\(random_bits=jax.random.bits"):
                transformed(lambda y: ns.round(y, "e4m3fn", rounding=rounding))(
                    jax.numpy.asarray(X)
                )

    @pytest.mark.parametrize(
        "call",
        [
            lambda y: ns.encode(y, "e4m3fn"),
            lambda y: ns.cast(y, "e4m3fn"),
            lambda y: ns.decode(y, "e4m3fn"),
            lambda y: ns.array(y, "e4m3fn"),
            lambda y: ns.quantize(y, "e4m3fn"),
            lambda y: ns.update(y, y, lr=1, rule="naive", format="bf16"),
        ],
    )
    def test_other_calls_name_the_argument(self, call):
        jax = self.jax()
        for transformed in (jax.jit, lambda f: jax.grad(lambda y: f(y).sum()), jax.vmap):
            with pytest.raises(TypeError, match="^(x|codes|weights): JAX traces this call"):
                transformed(call)(jax.numpy.asarray(X.reshape(2, 2)))
        with pytest.raises(TypeError, match="^a: JAX traces this call"):
            jax.jit(lambda y: ns.matmul(y, y))(jax.numpy.asarray(X.reshape(2, 2)))
        with pytest.raises(TypeError, match="^x: expected an array of floats, found int32"):
            jax.jit(lambda y: ns.round(y, "e4m3fn"))(jax.numpy.arange(3))

    def test_random_bits_of_another_kind_or_shape_are_refused(self):
        jax = self.jax()
        x = jax.numpy.asarray(X)
        for bits, found in (
            (np.zeros(X.shape, np.int32), r"int32 of shape"),
            (np.zeros(1, np.uint32), r"uint32 of shape \(1,\)"),
            (np.zeros(X.shape, F32), "float32 of shape"),
        ):
            expected = rf"^rounding: random_bits: expected unsigned integers of shape .*{found}"
            with pytest.raises(ValueError, match=expected):
                jax.jit(lambda y: ns.round(y, "e4m3fn", rounding=ns.SR(random_bits=bits)))(x)
        with pytest.raises(TypeError, match="^out: only for NumPy arrays"):
            jax.jit(lambda y: ns.round(y, "e4m3fn", out=X.copy()))(x)

    @pytest.mark.parametrize("overflow", ["saturate", "nonsaturate", "propagate"])
    def test_overflow_and_a_width_reach_the_traced_call(self, overflow):
        jax = self.jax()
        x = np.array([1e9, -1e9, 1.06, np.inf], F32)
        bits = np.array([0, 5, 1 << 31, 7], np.uint32)
        for rounding in ("rtz", ns.SR(random_bits=bits), ns.SR(bits=3, stream=1)):
            call = functools.partial(
                ns.round, format="e4m3fn", rounding=rounding, overflow=overflow
            )
            assert same(np.asarray(jax.jit(call)(jax.numpy.asarray(x))), call(x))
