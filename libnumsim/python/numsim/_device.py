"""Arrays of a CUDA device: PyTorch's tensors and CuPy's arrays, where they lie.

A call runs in the current stream of the library that the arrays belong to, and returns before its
work is done, as that library's own calls do. Results are arrays of that library. Nothing is copied
to the host, and nothing on the device unless an array has gaps between its elements.
"""

import contextlib
import sys
import threading

import numpy as np

from numsim import _core, _formats
from numsim._arrays import F32, HOST, UINTS, torch_name

_CUDA = 2  # DLPack's kDLCUDA
_MOST_CONTEXTS = 16  # streams of a thread whose working memory is kept


class _Torch:
    """PyTorch: the calls that arrays on a device need."""

    def __init__(self):
        self._torch = sys.modules["torch"]

    def stream(self):
        return self._torch.cuda.current_stream(0).cuda_stream

    def active(self):
        """A context in which the device of the arrays is the current one."""
        return self._torch.cuda.device(0)

    def values(self, x):
        return x.detach()

    def dtype_name(self, x):
        return str(x.dtype).removeprefix("torch.")

    def empty(self, shape, dtype):
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype.name), device="cuda:0")

    def full(self, shape, value):
        return self._torch.full(shape, value, dtype=self._torch.float32, device="cuda:0")

    def is_contiguous(self, x):
        return x.is_contiguous()

    def contiguous(self, x):
        return x.contiguous()

    def as_codes(self, x, dtype):
        return x.view(getattr(self._torch, dtype.name))

    def as_format(self, codes, format):
        name = torch_name(format)
        if name is None:
            raise ValueError(
                f"format: torch has no dtype for {format.name}; encode serves every format"
            )
        return codes.view(getattr(self._torch, name))


class _CuPy:
    """CuPy: the same calls."""

    def __init__(self):
        self._cupy = sys.modules["cupy"]

    def stream(self):
        return self._cupy.cuda.get_current_stream().ptr

    def active(self):
        return self._cupy.cuda.Device(0)

    def values(self, x):
        return x

    def dtype_name(self, x):
        return x.dtype.name

    def empty(self, shape, dtype):
        return self._cupy.empty(shape, dtype)

    def full(self, shape, value):
        return self._cupy.full(shape, value, F32)

    def is_contiguous(self, x):
        return x.flags.c_contiguous

    def contiguous(self, x):
        return self._cupy.ascontiguousarray(x)

    def as_codes(self, x, dtype):
        return x.view(dtype)

    def as_format(self, codes, format):
        if format.dtype is None:
            raise ValueError(
                f"format: there is no NumPy dtype for {format.name}, or ml_dtypes is not "
                "installed; encode and round serve every format"
            )
        return codes.view(format.dtype)


_LIBRARIES = {"torch": _Torch, "cupy": _CuPy}


class There:
    """An array of a device: float32 numbers, or codes of `format`, and the library it belongs to."""

    __slots__ = ("array", "format", "library")

    def __init__(self, array, format, library):
        self.array = array
        self.format = format  # None for float32, and for integers
        self.library = library

    shape = property(lambda self: tuple(self.array.shape))
    dtype_name = property(lambda self: self.library.dtype_name(self.array))

    def packed(self):
        """The array without gaps between its elements."""
        array = self.array
        return array if self.library.is_contiguous(array) else self.library.contiguous(array)

    def empty(self, shape, dtype):
        return self.library.empty(shape, dtype)


def on_device(x):
    """Returns whether `x` is an array outside host memory."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return False
    return int(x.__dlpack_device__()[0]) not in HOST


def _library_of(x, name):
    kind, index = (int(n) for n in x.__dlpack_device__())
    if kind != _CUDA:
        raise ValueError(
            f"{name}: the array is on a device of DLPack type {kind}; expected host memory or a "
            f"CUDA device: pass {name}.cpu()"
        )
    root = type(x).__module__.partition(".")[0]
    if root not in _LIBRARIES:
        raise ValueError(
            f"{name}: the array is on a CUDA device and of {root}; arrays there are taken of "
            f"torch and cupy: convert it by torch.from_dlpack, or copy it to the host"
        )
    if index != 0:
        raise ValueError(
            f"{name}: the array is on CUDA device {index}, and this package computes on device 0 "
            "of those that CUDA shows: choose it by CUDA_VISIBLE_DEVICES"
        )
    return _LIBRARIES[root]()


def _require_device(name):
    reason = _core.device_unavailable()
    if reason:
        raise ValueError(
            f"{name}: the array is on a CUDA device, and {reason}: pass {name}.cpu(), or see "
            "GPU in docs/python.md"
        )


def take(x, name):
    """Returns an array of a device as There: float32, or codes if its dtype is a format."""
    library = _library_of(x, name)
    kind = library.dtype_name(x)
    if kind == "float64":
        raise TypeError(f"{name}: float64 has no device path; pass float32, or {name}.cpu()")
    format = None
    if kind != "float32":
        try:
            format = _formats.format(kind)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: expected float32 or a dtype that is a format, found {kind}"
            ) from None
    _require_device(name)
    x = library.values(x)
    return There(x if format is None else library.as_codes(x, format.code_dtype), format, library)


def take_codes(x, name):
    """Returns codes of a device as There whose format is None unless the dtype tells it."""
    library = _library_of(x, name)
    kind = library.dtype_name(x)
    if kind in UINTS:
        _require_device(name)
        return There(x, None, library)
    if kind == "float32" or "float" not in kind:
        raise TypeError(
            f"{name}: on a device, expected uint8, uint16, uint32 or a dtype that is a format, "
            f"found {kind}"
        )
    return take(x, name)


_kept = threading.local()  # .contexts: {stream: DeviceContext} of a thread


def _context(stream):
    contexts = _kept.__dict__.setdefault("contexts", {})
    if stream not in contexts:
        if len(contexts) >= _MOST_CONTEXTS:
            del contexts[next(iter(contexts))]
        contexts[stream] = _core.DeviceContext(stream)
    return contexts[stream]


class _Call:
    """A call in the current stream of the library: its context, and arrays for it."""

    def __init__(self, stream):
        self.context = _context(stream)
        self._stream = stream or 1  # in DLPack, 1 is CUDA's default stream

    def read(self, array):
        return array.__dlpack__(stream=self._stream)

    def write(self, array):
        return array.__dlpack__(stream=-1)  # allocated in this stream: nothing to wait for


@contextlib.contextmanager
def _call(library):
    with library.active():
        yield _Call(library.stream())


def _refuse_words(words):
    if words is not None:
        raise ValueError(
            "rounding: random_bits have no device path; give SR a seed and a stream, or pass x.cpu()"
        )


def widened(there):
    """The numbers of a There as float32 without gaps."""
    array = there.packed()
    return array if there.format is None else _decoded(there.library, array, there.format)


def _decoded(library, codes, format):
    with _call(library) as call:
        out = library.empty(tuple(codes.shape), F32)
        _core.device_decode(call.context, format.spec, call.read(codes), call.write(out))
    return out


def _encoded(library, array, plan, code_dtype, random):
    with _call(library) as call:
        codes = library.empty(tuple(array.shape), code_dtype)
        _core.device_encode(call.context, plan, call.read(array), call.write(codes), random)
    return codes


def round(there, plan, random, words):
    """`numsim.round` of float32 numbers."""
    _refuse_words(words)
    array = there.packed()
    with _call(there.library) as call:
        out = there.empty(there.shape, F32)
        _core.device_round(call.context, plan, call.read(array), call.write(out), random)
    return out


def round_codes(there, plan, exact, random, words):
    """`numsim.round` of an array whose dtype is a format, which the plan `exact` encodes."""
    wide = There(widened(there), None, there.library)
    rounded = round(wide, plan, random, words)
    codes = _encoded(there.library, rounded, exact, there.format.code_dtype, random)
    return there.library.as_format(codes, there.format)


def encode(there, f, plan, random, words):
    """The codes of numbers, unsigned integers."""
    _refuse_words(words)
    return _encoded(there.library, widened(there), plan, f.code_dtype, random)


def decode(there, f):
    """The values of codes as float32."""
    found = there.dtype_name
    if found != f.code_dtype.name:
        raise TypeError(
            f"codes: on a device, expected {f.code_dtype.name} for {f.name}, found {found}"
        )
    return _decoded(there.library, there.packed(), f)


class Matrix:
    """What `Quantized` needs of a quantised matrix, with codes and scales on a device."""

    def __init__(self, format, layout, shape, codes, scales, library):
        self.format = format
        self.layout = layout
        self.rows, self.cols = shape
        self.codes = codes
        self.scales = scales
        self._library = library

    def dequantized(self):
        with _call(self._library) as call:
            out = self._library.empty((self.rows, self.cols), F32)
            _core.device_dequantize(
                call.context,
                self.format.spec,
                call.read(self.codes),
                self.layout,
                call.read(self.scales),
                call.write(out),
            )
        return out

    def operand(self, transposed):
        """The Operand whose vectors are the rows, or the columns if `transposed`."""
        return Operand(self._library, self.format, self.codes, transposed, self.layout, self.scales)


def _as_matrix(there):
    """The numbers as a matrix: float32, or codes of bf16, which quantising reads as they are."""
    is_bf16 = there.format is not None and there.format.name == "bf16"
    array = there.packed() if is_bf16 else widened(there)
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2:
        raise ValueError(f"x: expected a matrix, found {array.ndim} dimensions")
    return array


def quantize(there, f, plan, layout, rule, random):
    """`numsim.quantize` with scales that follow from the matrix."""
    array, library = _as_matrix(there), there.library
    shape = tuple(array.shape)
    count = _core.scale_count(layout, *shape)
    with _call(library) as call:
        codes = library.empty(shape, f.code_dtype)
        scales = library.empty((count,), F32)
        outputs = call.write(codes), call.write(scales)
        _core.device_quantize(call.context, call.read(array), plan, layout, rule, random, *outputs)
    return Matrix(f, layout, shape, codes, scales, library)


def quantize_under(there, f, plan, scale, random):
    """`numsim.quantize` under one given scale."""
    array, library = _as_matrix(there), there.library
    scale = F32.type(scale)
    with _call(library) as call:
        codes = library.empty(tuple(array.shape), f.code_dtype)
        scales = library.full((1,), float(scale))
        inverse = library.full((1,), float(F32.type(1) / scale))
        inputs = call.read(array), plan, call.read(inverse)
        _core.device_quantize_under(call.context, *inputs, random, call.write(codes))
    return Matrix(f, "tensor", tuple(array.shape), codes, scales, library)


class Operand:
    """An operand of a product: an array of a device whose rows, or columns, are the vectors."""

    def __init__(self, library, format, array, columns, layout="tensor", scales=None):
        self.library = library
        self._arguments = (format, array, columns, layout, scales)

    def at(self, call):
        format, array, columns, layout, scales = self._arguments
        scales = None if scales is None else call.read(scales)
        return _core.DeviceOperand(format.spec, call.read(array), columns, layout, scales)


def operand_of_array(there, columns):
    """Returns the Operand of a matrix. A transposed one is read as it lies."""
    array, library = there.array, there.library
    if not library.is_contiguous(array) and library.is_contiguous(array.T):
        array, columns = array.T, not columns
    else:
        array = there.packed()
    return Operand(library, there.format or _formats.format("fp32"), array, columns)


def matmul(left, right, shape, mode, any_operands):
    """Returns the product of two Operands."""
    library = left.library
    with _call(library) as call:
        out = library.empty(shape, F32)
        operands = left.at(call), right.at(call)
        _core.device_gemm(call.context, *operands, mode, any_operands, call.write(out))
    return out
