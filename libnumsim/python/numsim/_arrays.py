"""Kinds of arrays: what comes in, and how a result of the same kind goes out.

NumPy arrays (also of the dtypes of ml_dtypes), tensors of PyTorch and any array with `__dlpack__`
are taken without a copy if they are contiguous and in this machine's byte order. Those in host
memory become NumPy arrays; those of a CUDA device stay arrays of their library (_device.py). Lists
and numbers become float64, or `Exact` where float64 does not hold them (_numbers.py).
"""

import collections.abc
import contextlib
import math
import sys

import numpy as np

from numsim import _core, _device, _formats, _gradients, _numbers
from numsim._numbers import F32, F64, LONG, Exact

FLOATS = ("float32", "float64")
UINTS = ("uint8", "uint16", "uint32")  # of codes
_NO_CONTEXT = contextlib.nullcontext()


class Host:
    """NumPy arrays in host memory, with the calls of _device.Library."""

    __slots__ = ("give",)
    on_device = False

    def __init__(self, give):
        self.give = give  # makes a result of the caller's kind of (array, format or None)

    @staticmethod
    def call():
        return _NO_CONTEXT

    @staticmethod
    def shown(x):
        return x

    finish = shown
    empty = staticmethod(np.empty)
    count = staticmethod(np.count_nonzero)

    @staticmethod
    def dtype(x):
        return x.dtype

    @staticmethod
    def is_packed(x):
        return x.flags.c_contiguous

    @staticmethod
    def packed(x):
        return np.asarray(x, order="C")

    @staticmethod
    def number(x):
        return float(x[0])

    @staticmethod
    def words(words):
        if _device.on_device(words):
            raise ValueError("rounding: random_bits are on a device, and the numbers are not")
        array = np.asarray(words)
        good = array.dtype.kind == "u" or (
            array.dtype.kind == "i" and (not array.size or array.min() >= 0)
        )
        if not good:
            found = "negative integers" if array.dtype.kind == "i" else array.dtype.name
            raise TypeError(f"rounding: random_bits: expected unsigned integers, found {found}")
        return np.asarray(array, np.uint32, order="C")


class Taken:
    """An input as an array of a library, Host or one of _device.py: numbers, or codes of `format`.

    `array` is an Exact where float64 does not hold the numbers.
    """

    __slots__ = ("array", "format", "library", "typed")

    def __init__(self, array, format, library, typed=True):
        self.array = array
        self.format = format  # None for numbers
        self.library = library
        self.typed = typed  # whether the input had a dtype of floats

    shape = property(lambda self: tuple(self.array.shape))
    dtype = property(lambda self: self.library.dtype(self.array))  # NumPy's

    def packed(self):
        """Returns the array without gaps between its elements."""
        return self.library.packed(self.array)

    def give(self, array, format=None):
        """Returns a result, numbers or codes of `format`, as an array of the input's kind."""
        return self.library.give(array, format)


def is_plain(x):
    """Returns whether `x` is a C-contiguous NumPy array of float32 or float64: taken as it is."""
    return type(x) is np.ndarray and (x.dtype is F32 or x.dtype is F64) and x.flags.c_contiguous


def is_float32(x):
    """Returns whether `x` is a C-contiguous NumPy array of float32."""
    return type(x) is np.ndarray and x.dtype is F32 and x.flags.c_contiguous


def take(x, name, anywhere=False):
    """Returns `x` as a Taken. `name` is the argument's name in errors.

    An array of a device is refused unless it may be `anywhere`.
    """
    if isinstance(x, np.ndarray):
        return _take_numpy(x, name, NUMPY)
    if type(x) is float:
        return _take_number(x, name)
    if _gradients.is_traced(x):
        raise TypeError(
            f"{name}: JAX traces this call (jit, grad, vmap), and numsim.round alone can be traced; "
            "make it outside, or by jax.pure_callback"
        )
    if hasattr(x, "__dlpack__") and not isinstance(x, np.generic):
        return _take_foreign(x, name, anywhere)
    if _numbers.is_number(x):
        return _take_number(x, name)
    if isinstance(x, collections.abc.Sequence) and not isinstance(x, (str, bytes, bytearray)):
        return _take_objects(_as_objects(x, name), name, NUMPY)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected an array of floats, found {type(x).__name__}") from None
    if array.dtype == object and not array.ndim:
        raise TypeError(f"{name}: expected an array of floats, found {type(x).__name__}")
    return _take_numpy(array, name, NUMPY)


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
    if type(x) is float:
        return Taken(np.asarray(x, F64), None, _SCALAR, False)
    if isinstance(x, np.generic) and x.dtype.kind in "iu":
        return Taken(_numbers.of_integers(np.asarray(x)), None, _SCALAR, False)
    if isinstance(x, np.longdouble):
        return Taken(_numbers.of_long(np.asarray(x)), None, _LONG_SCALAR, False)
    if isinstance(x, (float, np.generic)):
        return Taken(np.asarray(x, F64), None, _SCALAR, False)
    one = np.empty((), object)
    one[()] = x
    return _take_objects(one, name, _SCALAR)


def _take_objects(x, name, host):
    return Taken(_numbers.of_objects(x, name), None, host, False)


def _take_numpy(x, name, host):
    dtype = x.dtype
    if dtype is F32 or dtype is F64:
        return Taken(x, None, host)
    x = native(x)
    dtype = x.dtype
    if dtype == F32 or dtype == F64:  # with metadata
        return Taken(x.astype(F32 if dtype == F32 else F64), None, host)
    if dtype == np.int8:
        return Taken(x.view(np.uint8), _formats.format("int8"), host)
    if dtype.kind == "i" or dtype == np.uint64:
        return Taken(_numbers.of_integers(x), None, host, False)
    if dtype == LONG:
        return Taken(_numbers.of_long(x), None, Host(_as_long(host.give)))
    if dtype.kind == "O":
        return _take_objects(x, name, host)
    if dtype.name == "float16" or (dtype.kind in "Vf" and hasattr(dtype.type, "dtype")):
        try:
            format = _formats.of_dtype(dtype.name)
        except ValueError:
            format = None
        if format is not None and format.code_dtype.itemsize == dtype.itemsize:
            return Taken(x.view(format.code_dtype), format, host)
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


NUMPY = Host(give_numpy)
_SCALAR = Host(_give_scalar)
_LONG_SCALAR = Host(_as_long(_give_scalar))


def require_host(x, name):
    """Raises ValueError if `x` is an array outside host memory."""
    if _device.on_device(x):
        kind = int(x.__dlpack_device__()[0])
        raise ValueError(
            f"{name}: the array is on a device (DLPack device type {kind}), and this call has no "
            f"device path: pass {name}.cpu(), or an array in host memory"
        )


def _take_foreign(x, name, anywhere):
    if anywhere and _device.on_device(x):
        expected = "expected float32, float64 or a dtype that is a format"
        return _take_there(x, name, FLOATS, expected)
    require_host(x, name)
    host = Host(_giver(x))
    if host.give is _give_torch:
        return _take_torch(x.detach(), name, host)
    try:
        array = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError):
        array = np.asarray(x)  # dtypes that NumPy's DLPack does not know, such as JAX's bfloat16
    return _take_numpy(array, name, host)


def _take_there(x, name, plain, expected):
    """An array of a device as a Taken: of the dtypes `plain`, or one that is a format."""
    library = _device.library_of(x, name)
    kind, array = library.dtype_name(x), library.values(x)
    if kind in plain:
        return Taken(array, None, library)
    try:
        format = None if kind in FLOATS else _formats.of_dtype(kind)
    except (TypeError, ValueError):
        format = None
    if format is None:
        raise TypeError(f"{name}: {expected}, found {kind}")
    return Taken(library.view(array, format.code_dtype), format, library)


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


def _take_torch(x, name, host):
    torch = sys.modules["torch"]
    kind = str(x.dtype).removeprefix("torch.")
    if kind in FLOATS:
        return Taken(np.from_dlpack(x), None, host)
    try:
        format = _formats.of_dtype(kind)
        codes = {1: torch.uint8, 2: torch.int16}[format.code_dtype.itemsize]
    except (ValueError, KeyError):
        raise TypeError(f"{name}: expected a tensor of floats, found {x.dtype}") from None
    array = np.from_dlpack(x.view(codes)).view(format.code_dtype)
    return Taken(array, format, host)


def _give_torch(result, format):
    torch = sys.modules["torch"]
    if format is None:
        return torch.from_dlpack(result)
    plain = result.view(np.int16) if result.dtype.itemsize == 2 else result
    return torch.from_dlpack(plain).view(_device.torch_dtype(format))


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns (rows, columns) of a parameter: its first dimension and the rest. A vector is a row."""
    rows = shape[0] if len(shape) > 1 else 1
    return rows, math.prod(shape) // rows if rows else 0


def take_codes(codes, name, given=None, anywhere=False):
    """Returns codes as a Taken whose format is None unless the dtype tells it.

    Raw bytes (void, as NumPy reads dtypes that it does not know) are codes of the format `given`.
    """
    foreign = not isinstance(codes, np.ndarray) and hasattr(codes, "__dlpack__")
    if foreign and anywhere and not _gradients.is_traced(codes) and _device.on_device(codes):
        expected = f"on a device, expected {', '.join(UINTS)} or a dtype that is a format"
        return _take_there(codes, name, UINTS, expected)
    if _gradients.is_traced(codes) or (foreign and "float" in str(codes.dtype)):
        return take(codes, name)
    if foreign and not isinstance(codes, np.generic):
        require_host(codes, name)
        array, host = np.from_dlpack(codes), Host(_giver(codes))
    else:
        array, host = native(np.asarray(codes)), NUMPY
    if given is not None and array.dtype.type is np.void and array.dtype.names is None:
        if array.dtype.itemsize != given.code_dtype.itemsize:
            raise TypeError(
                f"{name}: expected {given.code_dtype.itemsize} bytes for a code of {given.name}, "
                f"found {array.dtype.itemsize}"
            )
        return Taken(array.view(given.code_dtype), None, host)
    if array.dtype == np.int8 and (given is None or given.name == "int8"):
        return Taken(array.view(np.uint8), _formats.format("int8"), host)
    if array.dtype.kind in "iu":
        return Taken(array, None, host)
    taken = _take_numpy(array, name, host)
    if taken.format is None:
        raise TypeError(
            f"{name}: expected unsigned integers or a dtype that is a format, "
            f"found {array.dtype.name}"
        )
    return taken


def words_of(library, words, shape):
    """Returns the caller's random bits of numbers of a shape, shown to _core; None without them."""
    if words is None:
        return None
    array = library.words(words)
    if tuple(array.shape) != tuple(shape):
        expected, found = tuple(shape), tuple(array.shape)
        raise ValueError(f"rounding: random_bits: expected shape {expected}, found {found}")
    return library.shown(array)


def decoded(library, codes, format):
    """Returns the values of packed codes as float32."""
    if not library.on_device:
        return _decoded(library, codes, format, None)
    with library.call() as context:
        return _decoded(library, codes, format, context)


def _decoded(library, codes, format, context):
    out = library.empty(codes.shape, F32)
    _core.decode(format.spec, library.shown(codes), library.shown(out), context)
    return library.finish(out)


def float32_of(x, name):
    """Returns (`x` as contiguous float32, Taken) of an array in host memory, a list or a number.

    Values of small dtypes widen exactly. Numbers without a dtype of floats, such as lists, are taken
    if float32 holds each of them.
    """
    if is_float32(x):
        return x, Taken(x, None, NUMPY)
    taken = take(x, name)
    return widened(taken, name), taken


def widened(taken, name):
    """Returns the numbers of a Taken as contiguous float32."""
    if taken.format is not None:
        return decoded(taken.library, taken.packed(), taken.format)
    if type(taken.array) is not Exact and taken.dtype is F32:
        return taken.packed()
    return _narrowed(taken, name)


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
