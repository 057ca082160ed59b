"""numsim: small number formats, bit for bit.

    import numsim as ns
    ns.round(x, "e4m3fn")                                  # values of the format, x's kind and
                                                           dtype
    ns.encode(x, "e4m3fn", rounding=ns.SR(bits=16, seed=1))   # codes, stochastically rounded,
                                                           # with new random bits in every call
    t = ns.quantize(x, "e4m3fn", scaling="row")
    ns.matmul(t, t.T, accumulate="hopper-fp8")             # as an H200 adds

docs/python.md has recipes. Errors about arguments are ValueError (`numsim.Error` where the library
found them) or TypeError, and name the argument.
"""

from __future__ import annotations

import importlib
import os

from numsim import _core, _settings
from numsim._casts import cast, decode, encode, round
from numsim._core import Error
from numsim._elementary import (
    acos,
    acosh,
    acospi,
    asin,
    asinh,
    asinpi,
    atan,
    atanh,
    atanpi,
    cos,
    cosh,
    cospi,
    exp,
    exp2,
    expm1,
    gelu,
    gelu_tanh,
    log,
    log1p,
    log2,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sinpi,
    softplus,
    tan,
    tanh,
    tanpi,
)
from numsim._formats import Format, format, formats, value_table
from numsim._given import dequantize, from_codes
from numsim._linear import Linear, LinearRecipe, linear_kinds
from numsim._matmul import accumulation_modes, matmul, matmul_error
from numsim._model_recipes import model_recipes
from numsim._optimizer import Optimizer
from numsim._profiles import Difference, Profile, diff, profile_targets, profiles
from numsim._quantize import Delayed, Quantized, quantize
from numsim._rounding import SR, random_bits, rounding_modes
from numsim._streams import last_stream, streams
from numsim._typed import (
    DIVIDE_BY_ZERO,
    INEXACT,
    INVALID,
    OVERFLOW,
    UNDERFLOW,
    Array,
    add,
    array,
    div,
    fma,
    mul,
    sqrt,
    sub,
)
from numsim._updates import Moments, Update, UpdateState, update, update_kinds

__version__ = _core.build_version()

_is_forked = False


def _enter_forked_process():
    """The threads of OpenMP do not exist in a forked process, which would wait for them for ever."""
    global _is_forked
    _is_forked = True
    _core.enter_forked_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enter_forked_process)


def _apply_environment():
    """NUMSIM_BACKEND chooses a backend, and OMP_NUM_THREADS must be a number of threads."""
    _core.thread_count()
    try:
        _core.force_backend_from_environment()
    except Error as error:
        raise Error(f"NUMSIM_BACKEND: {error}") from None


_apply_environment()


def threads(count: int | None = None) -> int:
    """Returns the number of threads of array calls, after setting it if `count` is given.

    1 to 4096; a forked process has one.
    """
    if count is not None:
        count = _settings.integer(count, "threads", 1, 4096)
        if _is_forked and count > 1:
            raise ValueError(
                f"threads: a forked process has one, found {count}: start it by 'spawn', as "
                "multiprocessing.get_context('spawn') does"
            )
        _core.set_thread_count(count)
    return _core.thread_count()


def backend(name: str | None = None) -> str:
    """Returns the name of the active backend, after choosing one if `name` is given.

    All give the same bits (docs/adding-a-backend.md). A call that runs in another thread ends under
    the backend under which it began: a choice waits for it. The environment variable NUMSIM_BACKEND
    names the first one.
    """
    if name is not None:
        _core.force_backend(_settings.text(name, "backend"))
    return _core.backend()


def build_info() -> dict[str, object]:
    """Returns {"version", "commit", "compiler", "build_type", "backends", "gemm_library"}."""
    return {
        "version": _core.build_version(),
        "commit": _core.build_commit(),
        "compiler": _core.build_compiler(),
        "build_type": _core.build_type(),
        "backends": _core.available_backends(),
        "gemm_library": _core.gemm_library(),
    }


_ON_DEMAND = ("oracle", "results")
__all__ = [
    name
    for name in dir()
    if not name.startswith("_") and name not in ("annotations", "importlib", "os")
]
__all__ += _ON_DEMAND


def __getattr__(name):
    if name in (*_ON_DEMAND, "torch"):  # numsim.torch needs PyTorch
        return importlib.import_module(f"numsim.{name}")
    raise AttributeError(f"module 'numsim' has no attribute {name!r}")


def __dir__():
    return __all__
