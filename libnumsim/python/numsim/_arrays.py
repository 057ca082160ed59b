"""Kinds of arrays: what comes in, and how a result of the same kind goes out.

NumPy arrays (also of the dtypes of ml_dtypes), tensors of PyTorch and any array with `__dlpack__`
are taken without a copy if they are contiguous, in host memory and in its byte order. Lists and
numbers become float64, or `Exact` where float64 does not hold them (_numbers.py). Arrays of a CUDA
device are the matter of _device.py.
"""

import collections.abc
import math
import sys

import numpy as np

from numsim import _core, _formats, _gradients, _numbers
from numsim._numbers import F32, F64, LONG, Exact

UINTS = ("uint8", "uint16", "uint32")  # of codes
HOST = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost


class Taken:
    """An input as a NumPy array: its numbers, or codes of `format`; and how to return a result.

    `array` is an Exact where float64 does not hold the numbers.
    """

    __slots__ = ("array", "format", "give", "typed")

    def __init__(self, array, format, give, typed=True):
        self.array = array
        self.format = format  # None for numbers
        self.give = give  # makes a result of the input's kind of (array, format or None)
        self.typed = typed  # whether the input had a dtype of floats

    dtype_name = property(lambda self: self.array.dtype.name)


def is_plain(x):
    """Returns whether `x` is a C-contiguous NumPy array of float32 or float64: taken as it is."""
    return type(x) is np.ndarray and (x.dtype is F32 or x.dtype is F64) and x.flags.c_contiguous


def take(x, name):
    """Returns `x` as a Taken. `name` is the argument's name in errors."""
    if isinstance(x, np.ndarray):
        return _take_numpy(x, name, give_numpy)
    if _gradients.is_traced(x):
        raise TypeError(
            f"{name}: JAX traces this call (jit, grad, vmap), and numsim.round alone can be traced; "
            "make it outside, or by jax.pure_callback"
        )
    if hasattr(x, "__dlpack__") and not isinstance(x, np.generic):
        return _take_foreign(x, name)
    if type(x) is float or _numbers.is_number(x):
        return _take_number(x, name)
    if isinstance(x, collections.abc.Sequence) and not isinstance(x, (str, bytes, bytearray)):
        return _take_objects(_as_objects(x, name), name, give_numpy)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected an array of floats, found {type(x).__name__}") from None
    if array.dtype == object and not array.ndim:
        raise TypeError(f"{name}: expected an array of floats, found {type(x).__name__}")
    return _take_numpy(array, name, give_numpy)


def native(x):
    """Returns a NumPy array in this machine's byte order; the same array if it has that already."""
    if x.dtype.isnative or x.dtype.names is not None:
        return x
    return x.astype(x.dtype.newbyteorder("="))


def _as_objects(x, name):
    """A list, perhaps of lists, as an array of the numbers as they are."""
    try:
        return np.asarray(x, object)
    except ValueError:
        raise TypeError(f"{name}: expected rows of equal length") from None


def _take_number(x, name):
    if isinstance(x, np.generic) and x.dtype.kind in "iu":
        return Taken(_numbers.of_integers(np.asarray(x)), None, _give_scalar, False)
    if isinstance(x, np.longdouble):
        return Taken(_numbers.of_long(np.asarray(x)), None, _give_long, False)
    if isinstance(x, (float, np.generic)):
        return Taken(np.asarray(x, F64), None, _give_scalar, False)
    one = np.empty((), object)
    one[()] = x
    return _take_objects(one, name, _give_scalar)


def _take_objects(x, name, give):
    return Taken(_numbers.of_objects(x, name), None, give, False)


def _take_numpy(x, name, give):
    dtype = x.dtype
    if dtype is F32 or dtype is F64:
        return Taken(x, None, give)
    x = native(x)
    dtype = x.dtype
    if dtype == F32 or dtype == F64:  # with metadata
        return Taken(x.astype(F32 if dtype == F32 else F64), None, give)
    if dtype == np.int8:
        return Taken(x.view(np.uint8), _formats.format("int8"), give)
    if dtype.kind == "i" or dtype == np.uint64:
        return Taken(_numbers.of_integers(x), None, give, False)
    if dtype == LONG:
        return Taken(_numbers.of_long(x), None, _as_long(give))
    if dtype.kind == "O":
        return _take_objects(x, name, give)
    if dtype.name == "float16" or (dtype.kind in "Vf" and hasattr(dtype.type, "dtype")):
        try:
            format = _formats.of_dtype(dtype.name)
        except ValueError:
            format = None
        if format is not None and format.code_dtype.itemsize == dtype.itemsize:
            return Taken(x.view(format.code_dtype), format, give)
    raise TypeError(
        f"{name}: expected float64, float32, float16 or a dtype of ml_dtypes that is a format, "
        f"found {dtype.name}{_what_to_do(dtype)}"
    )


def _what_to_do(dtype):
    if dtype.name in UINTS:
        return "; decode has the numbers of codes, and int64 is taken as numbers"
    if dtype.type is np.void and dtype.names is None:
        return "; decode takes raw bytes as codes of a named format"
    return ""


def give_numpy(array, format):
    if format is None:
        return array
    if format.dtype is None and format.name == "int8":
        return array.view(np.int8)
    return array.view(format.dtype)


def _give_scalar(array, format):
    return give_numpy(array, format)[()]


def _as_long(give):
    """As `give`, with numbers as long doubles."""
    return lambda array, format: give(array.astype(LONG) if array.dtype is F64 else array, format)


_give_long = _as_long(_give_scalar)


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
    if not hasattr(space, "from_dlpack"):
        raise TypeError(f"{type(x).__name__}: its module {root} has no from_dlpack for the result")

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
        format = _formats.of_dtype(kind)
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


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns (rows, columns) of a parameter: its first dimension and the rest. A vector is a row."""
    rows = shape[0] if len(shape) > 1 else 1
    return rows, math.prod(shape) // rows if rows else 0


def take_codes(codes, name, given=None):
    """Returns codes as a Taken whose format is None unless the dtype tells it.

    Raw bytes (void, as NumPy reads dtypes that it does not know) are codes of the format `given`.
    """
    foreign = not isinstance(codes, np.ndarray) and hasattr(codes, "__dlpack__")
    if _gradients.is_traced(codes) or (foreign and "float" in str(codes.dtype)):
        return take(codes, name)
    if foreign and not isinstance(codes, np.generic):
        require_host(codes, name)
        array, give = np.from_dlpack(codes), _giver(codes)
    else:
        array, give = native(np.asarray(codes)), give_numpy
    if given is not None and array.dtype.type is np.void and array.dtype.names is None:
        if array.dtype.itemsize != given.code_dtype.itemsize:
            raise TypeError(
                f"{name}: expected {given.code_dtype.itemsize} bytes for a code of {given.name}, "
                f"found {array.dtype.itemsize}"
            )
        return Taken(array.view(given.code_dtype), None, give)
    if array.dtype == np.int8 and (given is None or given.name == "int8"):
        return Taken(array.view(np.uint8), _formats.format("int8"), give)
    if array.dtype.kind in "iu":
        return Taken(array, None, give)
    taken = _take_numpy(array, name, give)
    if taken.format is None:
        raise TypeError(
            f"{name}: expected unsigned integers or a dtype that is a format, "
            f"found {array.dtype.name}"
        )
    return taken


def float32_of(x, name):
    """Returns (`x` as contiguous float32, Taken). Values of small dtypes widen exactly.

    Numbers without a dtype of floats, such as lists, are taken if float32 holds each of them.
    """
    taken = take(x, name)
    return widened(taken, name), taken


def widened(taken, name):
    """The numbers of a Taken as contiguous float32."""
    array = taken.array
    if taken.format is None and type(array) is Exact or array.dtype is F64:
        return _narrowed(taken, name)
    array = np.asarray(array, order="C")
    if taken.format is not None:
        out = np.empty(array.shape, F32)
        _core.decode(taken.format.spec, array, out)
        return out
    return array


def _narrowed(taken, name):
    """Numbers without a dtype as float32, if that holds each of them."""
    array = taken.array
    if taken.typed:
        found = "float64" if type(array) is not Exact else LONG.name
        raise TypeError(f"{name}: expected float32 or smaller, found {found}")
    return held_by_float32(array, name, "; pass an array of float32")


def held_by_float32(array, name, advice=""):
    """An array of numbers, or an Exact, as contiguous float32, if that holds each of them."""
    if type(array) is Exact:
        raise ValueError(f"{name}: a number that float32 does not hold{advice}")
    with np.errstate(over="ignore", under="ignore"):
        narrow = array.astype(F32)
    wrong = ~((narrow == array) | np.isnan(array))
    if wrong.any():
        raise ValueError(f"{name}: {array[wrong].flat[0]!s} is no float32 number{advice}")
    return np.asarray(narrow, order="C")
