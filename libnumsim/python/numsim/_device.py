"""Arrays of a CUDA device: PyTorch's tensors and arrays of CuPy and JAX, where they lie.

A call runs in the current stream of the library that the arrays belong to, and returns before its
work is done, as that library's own calls do; JAX shows no stream, so that calls wait there. Results
are arrays of that library. Nothing is copied to the host, and nothing on the device unless an array
has gaps between its elements.
"""

import functools
import sys
import threading

import numpy as np

from numsim import _core, _formats
from numsim._arrays import F32, F64, HOST, UINTS, torch_name
from numsim._rounding import plan_there

UINT32 = np.dtype(np.uint32)
_CUDA = 2  # DLPack's kDLCUDA
_MOST_CONTEXTS = 16  # streams of a thread whose working memory is kept


class _Torch:
    """PyTorch: the calls that arrays on a device need."""

    def __init__(self):
        self._torch = torch = sys.modules["torch"]
        torch.cuda.init()
        kinds = ("float32", "float64", "uint8", "uint16", "uint32")
        self._dtypes = {np.dtype(kind): getattr(torch, kind) for kind in kinds}
        # Not Tensor.__dlpack__, which takes tens of microseconds; it would wait for other streams,
        # and every call works in the current one.
        self.shown = torch.utils.dlpack.to_dlpack

        # What compiled code of PyTorch calls; a Stream object takes microseconds.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def stream(self):
        if self._raw_stream is not None:
            return self._raw_stream(0)
        return self._torch.cuda.current_stream(0).cuda_stream

    def active(self):
        """A context in which the device of the arrays is the current one; None if it is already."""
        return self._torch.cuda.device(0) if self._torch.cuda.current_device() != 0 else None

    def finish(self, output):
        """Returns what was written, as an array of the library."""
        return output

    def to_host(self, x):
        return x.cpu().numpy()

    def from_host(self, array):
        return self._torch.from_numpy(array).to("cuda:0")

    def count_nonzero(self, condition):
        return int(condition.sum())

    def values(self, x):
        return x.detach()

    def dtype_name(self, x):
        return str(x.dtype).removeprefix("torch.")

    def empty(self, shape, dtype):
        return self._torch.empty(shape, dtype=self._dtypes[dtype], device="cuda:0")

    def full(self, shape, value):
        return self._torch.full(shape, value, dtype=self._torch.float32, device="cuda:0")

    def is_contiguous(self, x):
        return x.is_contiguous()

    def contiguous(self, x):
        return x.contiguous()

    def as_codes(self, x, dtype):
        return x.view(self._dtypes[dtype])

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

    def shown(self, x):
        return x.__dlpack__(stream=-1)  # the call works in the current stream: nothing to wait for

    def finish(self, output):
        return output

    def to_host(self, x):
        return self._cupy.asnumpy(x)

    def from_host(self, array):
        return self._cupy.asarray(array)

    def count_nonzero(self, condition):
        return int(condition.sum())

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
            raise ValueError(_NO_DTYPE.format(format.name))
        return codes.view(format.dtype)


class _Jax:
    """JAX. It shows no stream and lets nobody write to its arrays: calls work in CUDA's default
    stream, results are memory of numsim that JAX takes, and every call waits for its work."""

    def __init__(self):
        self._jax = sys.modules["jax"]

    def stream(self):
        return 0

    def active(self):
        return None

    def shown(self, x):
        if isinstance(x, self._jax.Array):
            return x.__dlpack__(stream=1)  # the default stream waits for x
        return x

    def finish(self, output):
        _core.device_wait(_context(0))
        return self._jax.dlpack.from_dlpack(output)

    def to_host(self, x):
        return np.array(x)

    def from_host(self, array):
        return self._jax.numpy.asarray(array)

    def count_nonzero(self, condition):
        return int(condition.sum())

    def values(self, x):
        return x

    def dtype_name(self, x):
        return x.dtype.name

    def empty(self, shape, dtype):
        return _core.device_memory(list(shape), dtype.name)

    def full(self, shape, value):
        return self._jax.numpy.full(shape, value, F32)

    def is_contiguous(self, x):
        return True

    def as_codes(self, x, dtype):
        return self._jax.lax.bitcast_convert_type(x, dtype)

    def as_format(self, codes, format):
        if format.dtype is None:
            raise ValueError(_NO_DTYPE.format(format.name))
        return self._jax.lax.bitcast_convert_type(codes, format.dtype)


_NO_DTYPE = (
    "format: there is no NumPy dtype for {}, or ml_dtypes is not installed; encode and round serve "
    "every format"
)
# By the package that an array's type belongs to; each is made once.
_LIBRARIES = {
    "torch": functools.cache(_Torch),
    "cupy": functools.cache(_CuPy),
    "jaxlib": functools.cache(_Jax),
}


class There:
    """An array of a device: float32 or float64 numbers, or codes of `format`, and its library."""

    __slots__ = ("array", "format", "library")

    def __init__(self, array, format, library):
        self.array = array
        self.format = format  # None for float32, float64 and integers
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
    if kind in HOST:
        raise ValueError(f"{name}: the array is in host memory, and the other one is on a device")
    if kind != _CUDA:
        raise ValueError(
            f"{name}: the array is on a device of DLPack type {kind}; expected host memory or a "
            f"CUDA device: pass {name}.cpu()"
        )
    root = type(x).__module__.partition(".")[0]
    if root not in _LIBRARIES:
        raise ValueError(
            f"{name}: the array is on a CUDA device and of {root}; arrays there are taken of "
            f"torch, cupy and jax: convert it by torch.from_dlpack, or copy it to the host"
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
    """Returns an array of a device as There: float32 or float64, or codes if its dtype is a format."""
    library = _library_of(x, name)
    kind = library.dtype_name(x)
    format = None
    if kind not in ("float32", "float64"):
        try:
            format = _formats.of_dtype(kind)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: expected float32, float64 or a dtype that is a format, found {kind}"
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
    if kind in ("float32", "float64") or "float" not in kind:
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
    """A call in the current stream of a library, in whose device it is: a context manager that gives
    the DeviceContext."""

    def __init__(self, library):
        self._library = library
        self._active = library.active()

    def __enter__(self):
        if self._active is not None:
            self._active.__enter__()
        return _context(self._library.stream())

    def __exit__(self, *error):
        return None if self._active is None else self._active.__exit__(*error)


def _words_of(rounding, library, array):
    """The caller's random bits of a rounding as uint32 for _core, or None."""
    words = getattr(rounding, "random_bits", None)
    if words is None:
        return None
    if not on_device(words) or type(_library_of(words, "rounding")) is not type(library):
        raise ValueError("rounding: random_bits are not an array of x's library on its device")
    kind = library.dtype_name(words)
    if kind not in ("uint32", "int32"):
        raise TypeError(f"rounding: random_bits: expected uint32 or int32, found {kind}")
    packed = There(library.values(words), None, library).packed()
    expected, found = tuple(array.shape), tuple(packed.shape)
    if found != expected:
        raise ValueError(f"rounding: random_bits: expected shape {expected}, found {found}")
    return library.shown(packed if kind == "uint32" else library.as_codes(packed, UINT32))


def widened(there, name):
    """The numbers of a There as float32 without gaps."""
    if there.format is None and there.dtype_name == "float64":
        raise TypeError(f"{name}: expected float32 or smaller, found float64")
    array = there.packed()
    return array if there.format is None else _decoded(there.library, array, there.format)


def _decoded(library, codes, format):
    with _Call(library) as context:
        out = library.empty(tuple(codes.shape), F32)
        _core.device_decode(context, format.spec, library.shown(codes), library.shown(out))
        return library.finish(out)


def _numbers(there):
    """The numbers of a There as float32 or float64 without gaps."""
    return there.packed() if there.format is None else widened(there, "x")


def _encoded(library, array, plan, code_dtype, random, words=None):
    with _Call(library) as context:
        codes = library.empty(tuple(array.shape), code_dtype)
        arrays = library.shown(array), library.shown(codes)
        _core.device_encode(context, plan, *arrays, random, words)
        return library.finish(codes)


def _rounded(library, array, plan, random, words):
    with _Call(library) as context:
        dtype = F32 if library.dtype_name(array) == "float32" else F64
        out = library.empty(tuple(array.shape), dtype)
        arrays = library.shown(array), library.shown(out)
        _core.device_round(context, plan, *arrays, random, words)
        return library.finish(out)


def round(there, plan, random, rounding):
    """`numsim.round` of float32 and float64 numbers."""
    array, library = there.packed(), there.library
    return _rounded(library, array, plan, random, _words_of(rounding, library, array))


def round_codes(there, plan, exact, random, rounding):
    """`numsim.round` of an array whose dtype is a format, which the plan `exact` encodes."""
    array, library = widened(there, "x"), there.library
    words = _words_of(rounding, library, array)
    rounded = _rounded(library, array, plan, random, words)
    codes = _encoded(library, rounded, exact, there.format.code_dtype, random)
    return library.as_format(codes, there.format)


def encode(there, f, plan, random, rounding):
    """The codes of numbers, unsigned integers."""
    array, library = _numbers(there), there.library
    words = _words_of(rounding, library, array)
    return _encoded(library, array, plan, f.code_dtype, random, words)


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

    def __init__(self, format, layout, shape, codes, scales, library, tensor_scale=None):
        self.format = format
        self.layout = layout
        self.rows, self.cols = shape
        self.codes = codes
        self.scales = scales
        self.tensor_scale = tensor_scale  # of two levels
        self._library = library

    def scale_codes(self):
        """The scales of the groups under two levels, as codes of e4m3fn."""
        # The quotients are nearer to these numbers than to others (GroupScaleCodes).
        there = There(self.scales / self.tensor_scale, None, self._library)
        f = _formats.format("e4m3fn")
        return encode(there, f, *plan_there(f, "rne", "nonsaturate"), "rne")

    def dequantized(self):
        library = self._library
        with _Call(library) as context:
            out = library.empty((self.rows, self.cols), F32)
            codes, scales = library.shown(self.codes), library.shown(self.scales)
            _core.device_dequantize(
                context, self.format.spec, codes, self.layout, scales, library.shown(out)
            )
            return library.finish(out)

    def operand(self, transposed):
        """The Operand whose vectors are the rows, or the columns if `transposed`."""
        return Operand(self._library, self.format, self.codes, transposed, self.layout, self.scales)


def _as_matrix(there):
    """The numbers as a matrix: float32, or codes of bf16, which quantising reads as they are."""
    is_bf16 = there.format is not None and there.format.name == "bf16"
    array = there.packed() if is_bf16 else widened(there, "x")
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
    with _Call(library) as context:
        codes, scales = library.empty(shape, f.code_dtype), library.empty((count,), F32)
        outputs = [codes, scales]
        if rule == "nvfp4":
            outputs.append(library.empty((1,), F32))  # the scale of the tensor
        shown = [library.shown(output) for output in outputs]
        _core.device_quantize(context, library.shown(array), plan, layout, rule, random, *shown)
        codes, scales, *tensor_scale = (library.finish(output) for output in outputs)
        return Matrix(f, layout, shape, codes, scales, library, *tensor_scale)


def quantize_under(there, f, plan, scale, random):
    """`numsim.quantize` under one given scale."""
    array, library = _as_matrix(there), there.library
    scale = F32.type(scale)
    with _Call(library) as context:
        codes = library.empty(tuple(array.shape), f.code_dtype)
        scales = library.full((1,), float(scale))
        inverse = library.full((1,), float(F32.type(1) / scale))
        inputs = library.shown(array), plan, library.shown(inverse)
        _core.device_quantize_under(context, *inputs, random, library.shown(codes))
        return Matrix(f, "tensor", tuple(array.shape), library.finish(codes), scales, library)


def quantize_delayed(there, f, plan, state_at, random):
    """`numsim.quantize` under the delayed scale that `state_at` gives for a DeviceContext."""
    array, library = _as_matrix(there), there.library
    with _Call(library) as context:
        codes, scale = library.empty(tuple(array.shape), f.code_dtype), library.empty((1,), F32)
        outputs = library.shown(codes), library.shown(scale)
        inputs = library.shown(array), plan, state_at(context)
        _core.device_quantize_delayed(context, *inputs, random, *outputs)
        shape = tuple(array.shape)
        return Matrix(f, "tensor", shape, library.finish(codes), library.finish(scale), library)


class Operand:
    """An operand of a product: an array of a device whose rows, or columns, are the vectors."""

    def __init__(self, library, format, array, columns, layout="tensor", scales=None):
        self.library = library
        self._arguments = (format, array, columns, layout, scales)

    def for_core(self):
        format, array, columns, layout, scales = self._arguments
        scales = None if scales is None else self.library.shown(scales)
        return _core.DeviceOperand(format.spec, self.library.shown(array), columns, layout, scales)


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
    with _Call(library) as context:
        out = library.empty(shape, F32)
        operands = left.for_core(), right.for_core()
        _core.device_gemm(context, *operands, mode, any_operands, library.shown(out))
        return library.finish(out)


class Step:
    """What `numsim.update` needs of weights and an update on a device."""

    def __init__(self, weights, update):
        self._library = weights.library
        self._old = widened(weights, "weights")
        self._direction = widened(update, "update")
        self.shape = tuple(self._old.shape)
        if self.shape != tuple(self._direction.shape):
            found = tuple(self._direction.shape)
            raise ValueError(f"update: expected shape {self.shape}, found {found}")

    def start(self, rule, spec, matrix, plan, random):
        """Rounds the weights by the plan and returns the state that goes with them.

        A rule that keeps a state starts it on the host.
        """
        if not rule.has_state:
            self._old = _rounded(self._library, self._old, plan, random, None)
            return _core.UpdateState()
        initial = self._library.to_host(self._old)
        rounded = np.empty(initial.shape, F32)
        state = _core.start_updates(rule, spec, *matrix, initial, rounded)
        self._old = self._library.from_host(rounded)
        return state

    def take(self, rule, spec, matrix, state, random, **numbers):
        """Returns (new weights, state, number of weights that did not move, outcome)."""
        library, old = self._library, self._old
        with _Call(library) as context:
            state = _core.update_state_at(context, state)
            new = library.empty(self.shape, F32)
            arrays = library.shown(old), library.shown(self._direction), library.shown(new)
            outcome = _core.device_apply_update(
                context, rule, spec, *matrix, *arrays, state, random, **numbers
            )
            new = library.finish(new)
        still = library.count_nonzero((new == old) & (self._direction != 0))
        return new, state, still, outcome
