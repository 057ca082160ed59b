"""Libraries whose arrays lie in the memory of a CUDA device: PyTorch, CuPy and JAX.

A call runs in the current stream of the library that the arrays belong to, and returns before its
work is done, as that library's own calls do; JAX shows no stream, so that calls wait there. Results
are arrays of that library. Nothing is copied to the host, and nothing on the device unless an array
has gaps between its elements.

A process computes on one device. That is the device of PyTorch's first array, as in a process of
torchrun, or the first that CUDA shows.
"""

import functools
import sys
import threading

import numpy as np

from numsim import _core, _formats

UINT32 = np.dtype(np.uint32)
_HOST = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
_CUDA = 2  # kDLCUDA
_MOST_CONTEXTS = 16  # streams of a thread whose working memory is kept


class Library:
    """The calls on arrays of a device. _arrays.Host has the same for host memory."""

    on_device = True

    def call(self):
        """Returns a context manager for a call of _core, which gives its argument `context`."""
        return _Call(self)

    def stream(self):
        """Returns the address of the current stream."""
        return 0

    def active(self):
        """Returns a context in which the device is the current one; None if it is already."""
        return None

    def device(self, index):
        """Returns the number of the device of this process, whose first array is on `index`."""
        return 0

    def shown(self, x):
        """Returns a packed array as _core takes it, for one call."""
        return x

    def finish(self, output):
        """Returns what a call of _core wrote, as an array of the library."""
        return output

    def give(self, array, format):
        """Returns a result, numbers or codes of `format`, as the caller gets it."""
        return array if format is None else self.as_format(array, format)

    def values(self, x):
        """Returns the array without its gradient."""
        return x

    def dtype_name(self, x):
        return x.dtype.name

    def dtype(self, x):
        """Returns the dtype of NumPy of float32, float64 or unsigned integers."""
        return np.dtype(self.dtype_name(x))

    def view(self, x, dtype):
        """Returns the same bits in another dtype of NumPy."""
        return x.view(dtype)

    def as_format(self, codes, format):
        """Returns codes in the dtype that is the format."""
        return self.view(codes, _formats.numpy_dtype(format))

    def is_packed(self, x):
        """Returns whether there are no gaps between the elements."""
        return True

    def packed(self, x):
        """Returns the array without gaps between its elements."""
        return x

    def number(self, x):
        """Returns an array of one element as a number, where that needs no wait."""
        return x

    def count(self, condition):
        """Returns the number of elements that are true."""
        return int(condition.sum())

    def words(self, words):
        """Returns the caller's random bits as packed uint32."""
        if not on_device(words) or library_of(words, "rounding") is not self:
            raise ValueError("rounding: random_bits are not an array of x's library on its device")
        kind = self.dtype_name(words)
        if kind not in ("uint32", "int32"):
            raise TypeError(f"rounding: random_bits: expected uint32 or int32, found {kind}")
        packed = self.packed(self.values(words))
        return packed if kind == "uint32" else self.view(packed, UINT32)


class _Torch(Library):
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
            return self._raw_stream(_index)
        return self._torch.cuda.current_stream(_index).cuda_stream

    def active(self):
        cuda = self._torch.cuda
        return cuda.device(_index) if cuda.current_device() != _index else None

    def device(self, index):
        return index

    def values(self, x):
        return x.detach()

    def dtype_name(self, x):
        return str(x.dtype).removeprefix("torch.")

    def empty(self, shape, dtype):
        return self._torch.empty(shape, dtype=self._dtypes[dtype], device=f"cuda:{_index}")

    def view(self, x, dtype):
        return x.view(self._dtypes[dtype])

    def as_format(self, codes, format):
        return codes.view(torch_dtype(format))

    def is_packed(self, x):
        return x.is_contiguous()

    def packed(self, x):
        return x.contiguous()


class _CuPy(Library):
    def __init__(self):
        self._cupy = sys.modules["cupy"]

    def stream(self):
        return self._cupy.cuda.get_current_stream().ptr

    def active(self):
        return self._cupy.cuda.Device(0)

    def shown(self, x):
        return x.__dlpack__(stream=-1)  # the call works in the current stream: nothing to wait for

    def empty(self, shape, dtype):
        return self._cupy.empty(shape, dtype)

    def is_packed(self, x):
        return x.flags.c_contiguous

    def packed(self, x):
        return self._cupy.ascontiguousarray(x)


class _Jax(Library):
    """JAX shows no stream and lets nobody write to its arrays: calls work in CUDA's default stream,
    results are memory of numsim that JAX takes, and every call waits for its work."""

    def __init__(self):
        self._jax = sys.modules["jax"]

    def shown(self, x):
        if isinstance(x, self._jax.Array):
            return x.__dlpack__(stream=1)  # the default stream waits for x
        return x

    def finish(self, output):
        _core.device_wait(_context(0))
        return self._jax.dlpack.from_dlpack(output)

    def empty(self, shape, dtype):
        return _core.device_memory(_context(0), list(shape), dtype.name)

    def view(self, x, dtype):
        return self._jax.lax.bitcast_convert_type(x, dtype)


# By the package that an array's type belongs to; each is made once.
_LIBRARIES = {
    "torch": functools.cache(_Torch),
    "cupy": functools.cache(_CuPy),
    "jaxlib": functools.cache(_Jax),
}


def torch_dtype(format):
    """Returns torch's dtype of a format. Raises ValueError if there is none."""
    torch = sys.modules["torch"]
    name = {"bf16": "bfloat16", "fp16": "float16"}.get(format.name, f"float8_{format.name}")
    if not hasattr(torch, name):
        raise ValueError(
            f"format: torch has no dtype for {format.name}; encode serves every format"
        )
    return getattr(torch, name)


def on_device(x):
    """Returns whether `x` is an array outside host memory."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return False
    return int(x.__dlpack_device__()[0]) not in _HOST


def library_of(x, name):
    """Returns the library of an array of a device. Raises ValueError if calls do not serve it."""
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
            f"torch, cupy and jax: convert it by torch.from_dlpack, or copy it to the host"
        )
    library = _LIBRARIES[root]()
    _require_index(library, index, name)
    reason = _core.device_unavailable()
    if reason:
        raise ValueError(
            f"{name}: the array is on a CUDA device, and {reason}: pass {name}.cpu(), or see "
            "GPU in docs/python.md"
        )
    return library


_index: int | None = None  # of the device of this process, once it has one


def _require_index(library, index, name):
    """Raises ValueError unless an array on this device can be computed with."""
    global _index
    own = library.device(index) if _index is None else _index
    if index != own:
        raise ValueError(
            f"{name}: the array is on CUDA device {index}, and this process computes on device "
            f"{own} alone: start one process per device, or choose by CUDA_VISIBLE_DEVICES"
        )
    _index = own


_kept = threading.local()  # .contexts: {stream: DeviceContext} of a thread


def _context(stream):
    contexts = _kept.__dict__.setdefault("contexts", {})
    if stream not in contexts:
        if len(contexts) >= _MOST_CONTEXTS:
            del contexts[next(iter(contexts))]
        contexts[stream] = _core.DeviceContext(stream)
    return contexts[stream]


# Of layers, whose calls come from several threads: {stream: context}.
_shared: dict[int, _core.DeviceContext] = {}


def shared_context(x, name):
    """Returns the DeviceContext of all threads for the current stream of an array's library.

    What it serves runs on PyTorch's current device, which must be that of the array.
    """
    library = library_of(x, name)
    if library.active() is not None:
        raise ValueError(
            f"{name}: is on CUDA device {_index}, which is not PyTorch's current one: call "
            f"torch.cuda.set_device({_index})"
        )
    stream = library.stream()
    if stream not in _shared:
        _shared[stream] = _core.DeviceContext(stream)
    return _shared[stream]


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
