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
from numsim import _core, _device

STREAM = 77


class Shown:
    """An array in host memory that says that it is on a CUDA device."""

    __module__ = "shown"
    place = (2, 0)

    def __init__(self, array):
        self.array = array
        self.streams = []  # that were asked for

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    T = property(lambda self: Shown(self.array.T))

    def reshape(self, *shape):
        return Shown(self.array.reshape(*shape))


class Library:
    """The calls of _device's libraries, for Shown."""

    def __init__(self):
        self.made, self.copies, self.current = [], 0, STREAM

    def stream(self):
        return self.current

    def active(self):
        return contextlib.nullcontext()

    def values(self, x):
        return x

    def dtype_name(self, x):
        return x.array.dtype.name

    def empty(self, shape, dtype):
        self.made.append(Shown(np.full(shape, 3, dtype)))
        return self.made[-1]

    def full(self, shape, value):
        return Shown(np.full(shape, value, np.float32))

    def is_contiguous(self, x):
        return x.array.flags.c_contiguous

    def contiguous(self, x):
        self.copies += 1
        return Shown(np.ascontiguousarray(x.array))

    def as_codes(self, x, dtype):
        return Shown(x.array.view(dtype))

    def as_format(self, codes, format):
        return Shown(codes.array.view(format.dtype))


def factors(shape, layout, scales):
    """The scale of each element of a matrix."""
    if layout == "tensor":
        return np.full(shape, scales[0])
    if layout == "row":
        return np.repeat(scales[:, None], shape[1], axis=1)
    block = int(layout.removeprefix("block:"))
    return np.repeat(scales.reshape(shape[0], -1), block, axis=1)[:, : shape[1]]


class Kernels:
    """The device calls of _core, on host memory."""

    def __init__(self):
        self.contexts = []

    def __getattr__(self, name):
        return getattr(_core, name)

    def device_unavailable(self):
        return ""

    def DeviceContext(self, stream):
        self.contexts.append(stream)
        return ("context", stream)

    def device_round(self, context, plan, x, out, random):
        _core.round(plan, x.array, out.array, random, None)

    def device_encode(self, context, plan, x, codes, random):
        _core.encode(plan, x.array, codes.array, random, None)

    def device_decode(self, context, spec, codes, out):
        _core.decode(spec, codes.array, out.array)

    def device_quantize(self, context, x, plan, layout, rule, random, codes, scales):
        matrix = _core.quantize(x.array, plan, layout, rule, random)
        codes.array[...], scales.array[...] = matrix.codes, matrix.scales

    def device_quantize_under(self, context, x, plan, inverse, random, codes):
        assert inverse.array.shape == (1,)
        _core.encode(plan, x.array * inverse.array[0], codes.array, random, None)

    def device_dequantize(self, context, spec, codes, layout, scales, out):
        _core.decode(spec, codes.array, out.array)
        out.array *= factors(codes.shape, layout, scales.array)

    def DeviceOperand(self, spec, array, columns, layout, scales):
        values = array.array
        if values.dtype != np.float32:
            out = np.empty(values.shape, np.float32)
            _core.decode(spec, values, out)
            values = out if scales is None else out * factors(out.shape, layout, scales.array)
        return values.T if columns else values

    def device_gemm(self, context, a, b, mode, any_operands, out):
        out.array[...] = a @ b.T


@pytest.fixture
def device(monkeypatch):
    """A device whose arrays are Shown: .library and .kernels."""
    library, kernels = Library(), Kernels()
    monkeypatch.setitem(_device._LIBRARIES, "shown", lambda: library)
    monkeypatch.setattr(_device, "_core", kernels)
    monkeypatch.setattr(_device, "_kept", types.SimpleNamespace())
    return types.SimpleNamespace(library=library, kernels=kernels)


def test_casts_give_arrays_of_the_library(device, rng):
    x = rng.normal(size=(5, 8)).astype(np.float32)
    there = Shown(x)
    for rounding in ("rtz", ns.SR(bits=8, seed=3)):
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
    assert there.streams == [STREAM, STREAM]
    assert [made.streams for made in device.library.made] == [[-1], [-1]]
    device.library.current = 0  # the default stream, which DLPack calls 1
    ns.round(there, "e4m3fn")
    assert there.streams[-1] == 1 and device.kernels.contexts == [STREAM, 0]
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
    assert there.T.shape == (20, 6) and same(there.T.dequantize().array, here.dequantize().T)
    product = ns.matmul(there, there.T, accumulate="fp64")
    assert type(product) is Shown
    np.testing.assert_allclose(product.array, ns.matmul(here, here.T), rtol=1e-5)
    assert device.library.copies == 0


def test_a_given_scale_and_vectors(device, rng):
    x = rng.normal(size=20).astype(np.float32)
    there, here = (ns.quantize(a, "int8", scale=0.02) for a in (Shown(x), x))
    assert np.array_equal(there.codes.array, here.codes)
    assert same(there.dequantize().array, here.dequantize())


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
        (TypeError, "x: float64 has no device path", lambda: ns.round(shown(np.float64), "int8")),
        (TypeError, "x: expected float32 or .* int64", lambda: ns.encode(shown(np.int64), "int8")),
        (TypeError, "out: only for NumPy", lambda: ns.round(shown(), "int8", out=np.ones(3))),
        (
            ValueError,
            "random_bits have no device",
            lambda: ns.round(shown(), "int8", rounding=WORDS),
        ),
        (
            ValueError,
            "Delayed has no device",
            lambda: ns.quantize(shown(), "int8", scaling=DELAYED),
        ),
        (ValueError, "error: has no device path", lambda: ns.quantize(shown(), "int8").error(1)),
        (ValueError, "at most 16 bits", lambda: ns.quantize(shown(), "fp32")),
        (
            ValueError,
            "b: expected an operand at the",
            lambda: ns.matmul(shown(), np.eye(4, dtype="f4")),
        ),
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
        (ValueError, "no device path: pass weights.cpu", lambda: update(shown())),
        (ValueError, "no device path: pass x.cpu", lambda: ns.array(shown(), "int8")),
        (ns.Error, "granularity 'rows'", lambda: ns.quantize(shown(), "int8", scaling="rows")),
    ],
)
def test_what_has_no_device_path_says_so(device, error, message, call):
    with pytest.raises(error, match=message):
        call()


DELAYED = ns.Delayed("int8")


def update(x):
    return ns.update(x, x, lr=0.1, rule="naive", format="bf16")


def test_arrays_of_other_libraries_are_refused_by_name():
    with pytest.raises(
        ValueError, match="x: .* of shown; arrays there are taken of torch and cupy"
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


def test_the_extension_takes_packed_arrays_of_a_device_alone():
    kept, spec = [], ns.format("e4m3fn").spec
    codes = np.zeros((4, 6), np.uint8)
    _core.DeviceOperand(spec, capsule(codes, 2, kept), False)
    for refused in (capsule(codes, 1, kept), capsule(codes.T, 2, kept), codes):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _core.DeviceOperand(spec, refused, False)
