"""Kinds of arrays: what comes in, and how a result of the same kind goes out.

NumPy arrays (also of the dtypes of ml_dtypes), tensors of PyTorch and any array with `__dlpack__`
are taken without a copy if they are contiguous and in host memory. Lists and numbers become
float64. Arrays of a CUDA device are the matter of _device.py.
"""

import sys

import numpy as np

from numsim import _core, _formats

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
UINTS = ("uint8", "uint16", "uint32")  # of codes
HOST = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost


class Taken:
    """An input as a NumPy array: its numbers, or codes of `format`; and how to return a result."""

    __slots__ = ("array", "format", "give")

    def __init__(self, array, format, give):
        self.array = array
        self.format = format  # None for float32 and float64
        self.give = give  # makes a result of the input's kind of (array, format or None)

    dtype_name = property(lambda self: self.array.dtype.name)


def is_plain(x):
    """Returns whether `x` is a C-contiguous NumPy array of float32 or float64: taken as it is."""
    return type(x) is np.ndarray and (x.dtype is F32 or x.dtype is F64) and x.flags.c_contiguous


def take(x, name):
    """Returns `x` as a Taken. `name` is the argument's name in errors."""
    if isinstance(x, np.ndarray):
        return _take_numpy(x, name, give_numpy)
    if hasattr(x, "__dlpack__"):
        return _take_foreign(x, name)
    if isinstance(x, (np.generic, int, float)):
        return Taken(np.asarray(x, F64), None, _give_scalar)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected an array of floats, found {type(x).__name__}") from None
    if array.dtype.kind in "iu" or array.dtype == bool:
        array = array.astype(F64)
    return _take_numpy(array, name, give_numpy)


def _take_numpy(x, name, give):
    dtype = x.dtype
    if dtype is F32 or dtype is F64:
        return Taken(x, None, give)
    if dtype == F32 or dtype == F64:  # another byte order
        return Taken(x.astype(dtype.newbyteorder("=")), None, give)
    if dtype.name == "float16" or (dtype.kind in "Vf" and hasattr(dtype.type, "dtype")):
        try:
            format = _formats.format(dtype.name)
        except ValueError:
            format = None
        if format is not None and format.code_dtype.itemsize == dtype.itemsize:
            return Taken(x.view(format.code_dtype), format, give)
    raise TypeError(
        f"{name}: expected float64, float32, float16 or a dtype of ml_dtypes that is a format, "
        f"found {dtype.name}"
    )


def give_numpy(array, format):
    if format is None:
        return array
    return array.view(format.dtype)


def _give_scalar(array, format):
    return give_numpy(array, format)[()]


def require_host(x, name):
    """Raises ValueError if an array with __dlpack__ is not in host memory."""
    device = x.__dlpack_device__()
    if int(device[0]) not in HOST:
        raise ValueError(
            f"{name}: the array is on a device (DLPack device type {int(device[0])}), and this call "
            f"has no device path: pass {name}.cpu(), or an array in host memory"
        )


def _take_foreign(x, name):
    require_host(x, name)
    give = _giver(x)
    if give is _give_torch:
        return _take_torch(x.detach(), name)
    try:
        array = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError):
        array = np.asarray(x)  # dtypes that NumPy's DLPack does not know, such as JAX's bfloat16
    return _take_numpy(array, name, give)


def _giver(x):
    """The function that makes results of the kind of an array with __dlpack__."""
    root = type(x).__module__.partition(".")[0]
    if root == "torch":
        return _give_torch
    space = x.__array_namespace__() if hasattr(x, "__array_namespace__") else sys.modules[root]

    def give(result, format):
        result = give_numpy(result, format)
        known = format is None or format.name == "fp16"
        return space.from_dlpack(result) if known else space.asarray(result)

    return give


def _take_torch(x, name):
    torch = sys.modules["torch"]
    kind = str(x.dtype).removeprefix("torch.")
    if kind in ("float32", "float64"):
        return Taken(np.from_dlpack(x), None, _give_torch)
    try:
        format = _formats.format(kind)
        codes = {1: torch.uint8, 2: torch.int16}[format.code_dtype.itemsize]
    except (ValueError, KeyError):
        raise TypeError(f"{name}: expected a tensor of floats, found {x.dtype}") from None
    array = np.from_dlpack(x.view(codes)).view(format.code_dtype)
    return Taken(array, format, _give_torch)


def _give_torch(result, format):
    torch = sys.modules["torch"]
    if format is None:
        return torch.from_dlpack(result)
    name = torch_name(format)
    if name is None:
        raise ValueError(
            f"format: torch has no dtype for {format.name}; encode serves every format"
        )
    plain = result.view(np.int16) if result.dtype.itemsize == 2 else result
    return torch.from_dlpack(plain).view(getattr(torch, name))


def torch_name(format):
    """The name of torch's dtype of a format, or None."""
    if format.name in ("bf16", "fp16"):
        return {"bf16": "bfloat16", "fp16": "float16"}[format.name]
    name = f"float8_{format.name}"
    return name if hasattr(sys.modules["torch"], name) else None


def take_codes(codes, name):
    """Returns codes as a Taken whose format is None unless the dtype tells it."""
    foreign = not isinstance(codes, np.ndarray) and hasattr(codes, "__dlpack__")
    if foreign and "float" in str(codes.dtype):
        return take(codes, name)
    if foreign:
        require_host(codes, name)
        taken = Taken(np.from_dlpack(codes), None, _giver(codes))
    else:
        taken = Taken(np.asarray(codes), None, give_numpy)
        if taken.array.dtype.kind not in "iu":
            taken = _take_numpy(taken.array, name, give_numpy)
    if taken.array.dtype in (F32, F64):
        raise TypeError(
            f"{name}: expected unsigned integers or a dtype that is a format, "
            f"found {taken.array.dtype.name}"
        )
    return taken


def float32_of(x, name):
    """Returns (`x` as contiguous float32, Taken). Values of small dtypes widen exactly."""
    taken = take(x, name)
    return widened(taken, name), taken


def widened(taken, name):
    """The numbers of a Taken as contiguous float32."""
    array = taken.array
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    if taken.format is not None:
        out = np.empty(array.shape, F32)
        _core.decode(taken.format.spec, array, out)
        return out
    if array.dtype is F64:
        raise TypeError(f"{name}: expected float32 or smaller, found float64")
    return array
