"""Arrays of a CUDA device on machines without one: what is refused, and by which words; and how
calls treat arrays, with a library and kernels that stand in for those of a device (test_cuda.py
has the real ones)."""

import contextlib
import ctypes
import types

import numpy as np
import pytest

import numsim as ns
from conftest import same
from numsim import _arrays, _casts, _core, _device, _matmul, _quantize, _updates

STREAM = 77


class Shown:
    """An array in host memory that says that it is on a CUDA device."""

    __module__ = "shown"
    place = (2, 0)

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self):
        raise AssertionError("the call waits for other streams")

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    T = property(lambda self: Shown(self.array.T))

    def reshape(self, *shape):
        return Shown(self.array.reshape(*shape))

    def __eq__(self, other):
        return self.array == other.array if isinstance(other, Shown) else NotImplemented

    def __ne__(self, number):
        return self.array != number

    def __truediv__(self, other):
        return Shown(self.array / other.array)

    __hash__ = None


class Library(_device.Library):
    """The library of Shown, which shows _core the arrays in host memory."""

    def __init__(self):
        self.made, self.finished, self.copies, self.current = [], [], 0, STREAM

    def stream(self):
        return self.current

    def shown(self, x):
        return x.array

    def finish(self, output):
        self.finished.append(output)
        return output

    def active(self):
        return contextlib.nullcontext()

    def dtype_name(self, x):
        return x.array.dtype.name

    def empty(self, shape, dtype):
        self.made.append(Shown(np.full(shape, 3, dtype)))
        return self.made[-1]

    def is_packed(self, x):
        return x.array.flags.c_contiguous

    def packed(self, x):
        if self.is_packed(x):
            return x
        self.copies += 1
        return Shown(np.ascontiguousarray(x.array))

    def view(self, x, dtype):
        return Shown(x.array.view(dtype))


class Context:
    """A DeviceContext."""

    def __init__(self, stream):
        self.stream = stream


class Kernels:
    """The calls of _core, which compute in host memory under any context."""

    def __init__(self):
        self.contexts, self.delayed = [], []

    def __getattr__(self, name):
        found = getattr(_core, name)
        if isinstance(found, type):
            return found

        def call(*arguments, **named):
            arguments = (None if isinstance(a, Context) else a for a in arguments)
            named = {n: None if isinstance(a, Context) else a for n, a in named.items()}
            return found(*arguments, **named)

        return call

    def device_unavailable(self):
        return ""

    def DeviceContext(self, stream):
        self.contexts.append(stream)
        return Context(stream)

    def DelayedScale(self, *arguments):
        self.delayed.append(arguments[-1])
        return _core.DelayedScale(*arguments[:-1], None)


@pytest.fixture
def device(monkeypatch):
    """A device whose arrays are Shown: .library and .kernels."""
    library, kernels = Library(), Kernels()
    monkeypatch.setitem(_device._LIBRARIES, "shown", lambda: library)
    for module in (_arrays, _casts, _device, _matmul, _quantize, _updates):
        monkeypatch.setattr(module, "_core", kernels)
    monkeypatch.setattr(_device, "_kept", types.SimpleNamespace())
    monkeypatch.setattr(_device, "_index", None)
    return types.SimpleNamespace(library=library, kernels=kernels)


def test_casts_give_arrays_of_the_library(device, rng):
    x = rng.normal(size=(5, 8)).astype(np.float32)
    there = Shown(x)
    for rounding in ("rtz", ns.SR(bits=8, seed=3, stream=1)):
        y = ns.round(there, "e4m3fn", rounding=rounding)
        assert type(y) is Shown and same(y.array, ns.round(x, "e4m3fn", rounding=rounding))
        codes = ns.encode(there, "e4m3fn", rounding=rounding)
        assert codes.array.dtype == np.uint8
        assert np.array_equal(codes.array, ns.encode(x, "e4m3fn", rounding=rounding))
    assert same(ns.decode(codes, "e4m3fn").array, ns.decode(codes.array, "e4m3fn"))
    assert device.library.copies == 0
    assert ns.encode(there, "bf16").array.dtype == np.uint16
    assert ns.encode(there, "fp32").array.dtype == np.uint32


def test_small_dtypes_stay_what_they_are(device, rng):
    x = rng.normal(size=(5, 8)).astype(np.float16)
    y = ns.round(Shown(x), "e4m3fn")
    assert y.array.dtype == np.float16 and same(y.array, ns.round(x, "e4m3fn"))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    y = ns.cast(Shown(x), "float8_e4m3fn")
    assert y.array.dtype == ml_dtypes.float8_e4m3fn
    assert same(ns.decode(y).array, y.array.astype(np.float32))
    with pytest.raises(ValueError, match="float16 does not hold|fp16 does not hold"):
        ns.round(Shown(x), "bf16")


def test_calls_run_in_the_current_stream(device, rng):
    there = Shown(rng.normal(size=4).astype(np.float32))
    ns.round(there, "e4m3fn"), ns.encode(there, "e4m3fn")
    assert device.library.finished == device.library.made and len(device.library.made) == 2
    device.library.current = 0  # the default stream
    ns.round(there, "e4m3fn")
    assert device.kernels.contexts == [STREAM, 0]
    for stream in range(1, 40):
        device.library.current = stream
        ns.round(there, "e4m3fn")
    assert len(_device._kept.contexts) == 16


def test_arrays_with_gaps_are_packed_by_their_library(device, rng):
    x = rng.normal(size=(6, 8)).astype(np.float32)
    assert same(ns.round(Shown(x[:, ::2]), "e4m3fn").array, ns.round(x[:, ::2], "e4m3fn"))
    assert device.library.copies == 1


@pytest.mark.parametrize("scaling", ["tensor", "row", "block:4", "block:16/nvfp4"])
def test_quantised_matrices_stay_there(device, scaling, rng):
    x = rng.normal(size=(6, 20)).astype(np.float32)
    there, here = (ns.quantize(a, "e2m1fn", scaling=scaling) for a in (Shown(x), x))
    assert np.array_equal(there.codes.array, here.codes) and there.shape == (6, 20)
    assert same(there.scales.array, here.scales) and there.scaling == here.scaling
    assert same(there.dequantize().array, here.dequantize())
    if scaling.endswith("nvfp4"):
        assert there.tensor_scale.array == here.tensor_scale
        assert np.array_equal(there.scale_codes.array, here.scale_codes)
    assert there.T.shape == (20, 6) and same(there.T.dequantize().array, here.dequantize().T)
    product = ns.matmul(there, there.T, accumulate="fp64")
    assert type(product) is Shown
    assert same(product.array, ns.matmul(here, here.T, accumulate="fp64"))
    assert device.library.copies == 0


def test_a_given_scale_and_vectors(device, rng):
    x = rng.normal(size=20).astype(np.float32)
    there, here = (ns.quantize(a, "int8", scale=0.02) for a in (Shown(x), x))
    assert np.array_equal(there.codes.array, here.codes)
    assert same(there.dequantize().array, here.dequantize())


def test_float64_is_rounded_once_and_stays_float64(device, rng):
    x = rng.normal(size=(5, 8)) * (1 + 2.0**-40)
    y = ns.round(Shown(x), "e4m3fn", rounding="rtp")
    assert y.array.dtype == np.float64 and same(y.array, ns.round(x, "e4m3fn", rounding="rtp"))
    assert np.array_equal(ns.encode(Shown(x), "bf16").array, ns.encode(x, "bf16"))
    for call in (lambda: ns.quantize(Shown(x), "int8"), lambda: ns.matmul(Shown(x), Shown(x.T))):
        with pytest.raises(TypeError, match="x?a?: expected float32 or .*found float64"):
            call()


@pytest.mark.parametrize("kind", [np.uint32, np.int32])
@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
def test_random_bits_of_the_caller_lie_beside_the_numbers(device, kind, source, rng):
    x = rng.normal(size=(5, 8)).astype(source)
    words = rng.integers(0, 1 << 16, (5, 8)).astype(kind)
    here, there = (ns.SR(bits=16, random_bits=w) for w in (words, Shown(words)))
    assert same(ns.round(Shown(x), "e4m3fn", rounding=there).array, ns.round(x, "e4m3fn", rounding=here))
    codes = ns.encode(Shown(x), "e4m3fn", rounding=there)
    assert np.array_equal(codes.array, ns.encode(x, "e4m3fn", rounding=here))
    short = ns.SR(bits=16, random_bits=Shown(words[:3]))
    for arguments, message in [
        ((Shown(x), "int8", here), "not an array of x's library on its device"),
        ((x, "int8", there), "random_bits are on a device, and the numbers are not"),
        ((Shown(x), "int8", short), r"random_bits: expected shape \(5, 8\), found \(3, 8\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            ns.encode(*arguments[:2], rounding=arguments[2])


def test_delayed_scales_follow_from_arrays_there(device, rng):
    there, here = (ns.Delayed("e4m3fn", history=3) for _ in range(2))
    for step in range(6):
        x = rng.normal(size=(4, 8)).astype(np.float32) * 2.0**step
        device.library.current = STREAM + step // 3  # the state moves along
        matrix = ns.quantize(Shown(x), "e4m3fn", scaling=there)
        expected = ns.quantize(x, "e4m3fn", scaling=here)
        assert np.array_equal(matrix.codes.array, expected.codes)
        assert same(matrix.scales.array, np.array(expected.scales))
        there.update(), here.update()
        assert there.scale == here.scale and there.state() == here.state()
    contexts = [context for context in device.kernels.delayed if context is not None]
    assert [context.stream for context in contexts] == [STREAM, STREAM + 1]


@pytest.mark.parametrize("rule", ["naive", "stochastic:16", "kahan", "master-fp32", "norm-matched"])
def test_updates_have_the_bits_of_the_host(device, rule, rng):
    x, u = (rng.normal(size=(6, 8)).astype(np.float32) for _ in range(2))
    here, there, states = x, Shown(x), (None, None)
    for step in range(3):
        arguments = {"lr": 1e-3, "rule": rule, "format": "bf16", "stream": step}
        a = ns.update(here, u, state=states[0], **arguments)
        b = ns.update(there, Shown(u), state=states[1], **arguments)
        assert same(b.weights.array, a.weights) and type(b.weights) is Shown
        assert (b.swallowed, b.moved, b.status) == (a.swallowed, a.moved, a.status)
        here, there, states = a.weights, b.weights, (a.state, b.state)
        assert (states[0] is None) == (states[1] is None)
    with pytest.raises(ValueError, match=r"update: expected shape \(6, 8\), found \(8, 6\)"):
        ns.update(there, Shown(u.T), lr=1e-3, rule=rule, format="bf16")


def test_products_read_transposes_as_they_lie(device, rng):
    a, b = (rng.normal(size=(5, 7)).astype(np.float32) for _ in range(2))
    product = ns.matmul(Shown(a), Shown(b).T)
    np.testing.assert_allclose(product.array, a @ b.T, rtol=1e-5)
    half = Shown(b.astype(np.float16))
    np.testing.assert_allclose(ns.matmul(half.T, Shown(a)).array, half.array.T @ a, rtol=1e-2)
    assert device.library.copies == 0


def shown(dtype=np.float32, place=(2, 0)):
    array = Shown(np.ones((4, 4), dtype))
    array.place = place
    return array


WORDS = ns.SR(random_bits=np.zeros(16, np.uint32))


@pytest.mark.parametrize(
    "error, message, call",
    [
        (TypeError, "x: expected float32, float64 or .* int64", lambda: ns.encode(shown(np.int64), "int8")),
        (TypeError, "out: only for NumPy", lambda: ns.round(shown(), "int8", out=np.ones(3))),
        (ValueError, "bits of a seed and stream", lambda: ns.quantize(shown(), "int8", rounding=WORDS)),
        (ValueError, "follows a tensor of int8", lambda: ns.quantize(shown(), "e5m2", scaling=DELAYED)),
        (ValueError, "error: has no device path", lambda: ns.quantize(shown(), "int8").error(1)),
        (ValueError, "expected at most 16", lambda: ns.quantize(shown(), "fp32")),
        (
            ValueError,
            "b: expected an operand at the",
            lambda: ns.matmul(shown(), np.eye(4, dtype="f4")),
        ),
        (ValueError, "epilogue: has no device", lambda: ns.matmul(*SQUARES, epilogue="cublaslt")),
        (ValueError, "matmul_error: has no device", lambda: ns.matmul_error(shown(), shown())),
        (TypeError, "uint8 codes do not tell", lambda: ns.decode(shown(np.uint8))),
        (
            TypeError,
            "expected uint16 for bf16, found uint8",
            lambda: ns.decode(shown(np.uint8), "bf16"),
        ),
        (TypeError, "on a device, expected uint8", lambda: ns.decode(shown(np.int32), "int8")),
        (
            ValueError,
            "CUDA device 3, and .* CUDA_VISIBLE",
            lambda: ns.round(shown(place=(2, 3)), "int8"),
        ),
        (ValueError, "DLPack type 10; .* x.cpu", lambda: ns.round(shown(place=(10, 0)), "int8")),
        (ValueError, "update: .* in host memory", lambda: update(shown(), np.ones((4, 4)))),
        (ValueError, "no device path: pass update.cpu", lambda: update(np.ones((4, 4), "f4"), shown())),
        (ValueError, "no device path: pass x.cpu", lambda: ns.array(shown(), "int8")),
        (ns.Error, "granularity 'rows'", lambda: ns.quantize(shown(), "int8", scaling="rows")),
    ],
)
def test_what_has_no_device_path_says_so(device, error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_the_first_array_chooses_the_device_of_a_process(device, monkeypatch):
    monkeypatch.setattr(device.library, "device", lambda index: index)  # as PyTorch's
    ns.round(shown(place=(2, 3)), "int8")
    with pytest.raises(ValueError, match="CUDA device 0, and this process computes on device 3"):
        ns.round(shown(place=(2, 0)), "int8")
    with pytest.raises(ValueError, match=r"input: is on CUDA device 3, .*cuda.set_device\(3\)"):
        _device.shared_context(shown(place=(2, 3)), "input")  # another one is current
    monkeypatch.setattr(device.library, "active", lambda: None)
    monkeypatch.setattr(_device, "_shared", {})
    assert _device.shared_context(shown(place=(2, 3)), "input").stream == STREAM


DELAYED = ns.Delayed("int8")
SQUARES = shown(), shown()


def update(weights, direction):
    return ns.update(weights, direction, lr=0.1, rule="naive", format="bf16")


def test_arrays_of_other_libraries_are_refused_by_name():
    with pytest.raises(
        ValueError, match="x: .* of shown; arrays there are taken of torch, cupy and jax"
    ):
        ns.round(shown(), "e4m3fn")


def test_a_package_without_kernels_says_so(device, monkeypatch):
    if not _core.device_unavailable():
        pytest.skip("a device is there")
    monkeypatch.setattr(device.kernels, "device_unavailable", _core.device_unavailable)
    with pytest.raises(ValueError, match=r"x: the array is on a CUDA device, and .*: pass x\.cpu"):
        ns.round(shown(), "e4m3fn")
    with pytest.raises(ns.Error):
        _core.DeviceContext(0)


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def capsule(array, device_type, kept):
    """A DLPack capsule of an array of uint8 that says that it is on a device of that type."""
    pairs = ctypes.c_int64 * array.ndim
    shape, strides = pairs(*array.shape), pairs(*array.strides)
    tensor = DLTensor(array.ctypes.data, device_type, 0, array.ndim, 1, 8, 1, shape, strides)
    kept.append((array, shape, strides, tensor))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
    ]
    return new(ctypes.addressof(tensor), b"dltensor", None)


def test_the_extension_takes_packed_arrays_at_the_place_of_the_call():
    kept, spec = [], ns.format("e4m3fn").spec
    codes = np.zeros((4, 6), np.uint8)

    def square(array, out=np.empty((4, 4), np.float32)):
        _core.gemm(spec, array, False, spec, codes, False, "fp32", False, out, "float64")

    square(capsule(codes, 1, kept))
    with pytest.raises(ns.Error, match="matmul: an array that is not in memory of the host"):
        square(capsule(codes, 2, kept))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        square(capsule(codes.T, 1, kept))
