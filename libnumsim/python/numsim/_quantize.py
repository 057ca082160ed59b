"""Quantised matrices: codes with one scale per tensor, row, column, block or tile."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from numsim import _core, _gradients, _settings
from numsim._arrays import F32, NUMPY, float32_of, is_float32, take, widened
from numsim._casts import encode
from numsim._formats import FormatLike, format_of
from numsim._matmul import matmul
from numsim._rounding import SR, plan_of


class Delayed:
    """Delayed scaling: the scale of a tensor follows from the absolute maxima of earlier steps.

    Pass it to `quantize` as `scaling` in each step, then call `update()`. The first step has scale
    1.

    format      that of the codes
    history     number of maxima that are remembered, >= 1
    algorithm   "max", "most-recent" or "window"
    margin      the scale leaves room for values 2^margin times larger; -32 to 32
    rule        "absmax", "pow2-floor" or "pow2-ceil"
    """

    def __init__(
        self,
        format: FormatLike,
        *,
        history: int = 1024,
        algorithm: str = "max",
        margin: int = 0,
        rule: str = "absmax",
    ) -> None:
        self.format = format_of(format)
        self._options = (
            _settings.integer(history, "history", 1),
            _settings.text(algorithm, "algorithm"),
            _settings.integer(margin, "margin", -32, 32),
            _settings.text(rule, "rule"),
        )
        self._context = None  # the DeviceContext in whose memory the state is; None: the host's
        self._state = _core.DelayedScale(self.format.spec, *self._options, None)

    def _at(self, context):
        """The state in the memory of a context, or of the host for None.

        It stays where it was used last. A move to another stream or to the host waits.
        """
        if context is not self._context:
            state = _core.DelayedScale(self.format.spec, *self._options, context)
            state.restore(self._state.save())
            self._state, self._context = state, context
        return self._state

    @property
    def scale(self) -> float:
        """The current scale: value = code value * scale."""
        return self._state.scale

    def update(self) -> None:
        """Ends a step: the scale of the next one follows from the maxima until now."""
        self._state.update()

    def state(self) -> list[float]:
        """Returns the state as a list of numbers, for checkpoints."""
        return self._state.save()

    def restore(self, state: list[float]) -> None:
        """Sets the state that `state()` returned."""
        self._state.restore(_settings.numbers(state, "state"))


class Parts(NamedTuple):
    """The arrays of a quantised matrix on a device: codes as a matrix, scales as a vector, and under
    two levels the scale of the tensor. On the host _core's matrix has these three."""

    codes: Any
    scales: Any
    tensor_scale: Any


class Quantized:
    """A quantised matrix. Made by `quantize`; `T` and `@` copy nothing.

    format   of the codes
    shape    (rows, columns)
    """

    __slots__ = ("format", "shape", "_scaling", "_library", "_core", "_arrays", "_transposed")

    def __init__(self, format, shape, scaling, library, core, arrays, transposed=False):
        self.format = format
        self.shape = shape
        self._scaling = scaling  # (layout, rule)
        self._library = library
        self._core = core
        self._arrays = arrays  # what has codes, scales and tensor_scale: `core`, or a Parts
        self._transposed = transposed

    @property
    def scaling(self) -> str:
        """The text of the layout, such as "row" or "block:32"."""
        return self._scaling[0]

    @property
    def codes(self) -> np.ndarray:
        """The codes as a read-only NumPy array of the matrix's shape (a view).

        On a device, an array of the library of the matrix that was quantised.
        """
        codes = self._arrays.codes
        return codes.T if self._transposed else codes

    @property
    def scales(self) -> np.ndarray:
        """The scales as a read-only float32 array: value = code value * scale.

        Its shape is () for a tensor, else that of the grid of scales: (rows, 1), (1, columns),
        (rows, blocks) or (bands, blocks).
        """
        return self._in_grid(self._arrays.scales)

    @property
    def tensor_scale(self) -> Any:
        """The scale of the tensor under rule "nvfp4" and four over six: `scales` are its products
        with the values of `scale_codes`, rounded to float32.

        A float; on a device, an array of one number.
        """
        tensor_scale = self._arrays.tensor_scale
        if tensor_scale is None:
            raise ValueError("tensor_scale: this matrix has one level of scales; see `scales`")
        return self._library.number(tensor_scale)

    @property
    def scale_codes(self) -> Any:
        """The scales of the groups in the format of their storage, in the shape of `scales`.

        Under rule "nvfp4" and four over six codes of e4m3fn; with `tensor_scale` and `codes` they
        are the matrix in NVFP4. Under "e4m3" codes of e4m3fn, too. Under "e8m0", and other rules
        whose scales are powers of two, codes of e8m0fnu, as in MX. Scales of other rules are
        float32 numbers and have no codes.
        """
        scales, tensor_scale = self._arrays.scales, self._arrays.tensor_scale
        _, rule = self._scaling
        if rule in _POWERS_OF_TWO:
            return self._in_grid(encode(scales, "e8m0fnu"))
        if rule == "e4m3":
            return self._in_grid(encode(scales, "e4m3fn"))
        if tensor_scale is None:
            raise ValueError(
                f"scale_codes: the scales of rule {rule} are float32 numbers; see `scales`"
            )
        # The quotients are nearer to these numbers than to others (GroupScaleCodes).
        return self._in_grid(encode(scales / tensor_scale, "e4m3fn"))

    def _in_grid(self, scales):
        """One number per group, in the shape of the grid of scales."""
        rows, cols = self.shape[::-1] if self._transposed else self.shape  # of the codes
        kind, _, numbers = self.scaling.partition(":")
        shape = {"tensor": (), "row": (rows, 1), "column": (1, cols), "block": (rows, -1)}.get(kind)
        if shape is None:
            height = int(numbers.partition("x")[0])
            shape = (-(-rows // height), -1)
        scales = scales.reshape(shape)
        return scales.T if self._transposed and scales.ndim else scales

    @property
    def scale(self) -> float:
        """The scale of a matrix that has one for the whole tensor."""
        if self.scaling != "tensor":
            raise ValueError(f"scale: this matrix has scales per {self.scaling}; see `scales`")
        return float(self._arrays.scales[0])

    @property
    def T(self) -> Quantized:
        """The transposed matrix, with the same codes and scales."""
        return Quantized(
            self.format,
            self.shape[::-1],
            self._scaling,
            self._library,
            self._core,
            self._arrays,
            not self._transposed,
        )

    def dequantize(self) -> Any:
        """Returns code value * scale, rounded to float32; an array of the input's kind."""
        library = self._library
        if not library.on_device:
            out = self._dequantized(None)
        else:
            with library.call() as context:
                out = self._dequantized(context)
        return library.give(out.T if self._transposed else out, None)

    def _dequantized(self, context):
        """The numbers in the order of the codes."""
        library = self._library
        out = library.empty(self.shape[::-1] if self._transposed else self.shape, F32)
        _core.dequantize(self._core, library.shown(out), context)
        return library.finish(out)

    def error(self, x: Any) -> _core.ErrorMeasures:
        """Measures the error against the matrix `x` that was quantised.

        Returns an object with `sqnr_db`, `relative_error`, `mean_error`, `max_error`,
        `underflow_share`, `overflow_share` and counts.
        """
        if self._library.on_device:
            raise ValueError("error: has no device path; quantize x.cpu() and compare with that")
        array, _ = float32_of(x, "x")
        if array.shape != self.shape:
            raise ValueError(f"x: expected shape {self.shape}, found {array.shape}")
        array = np.ascontiguousarray(array.T) if self._transposed else array
        return self._core.error(array, np.empty(array.shape, np.float32))

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def _gemm_operand(self, columns):
        return self._library, self.shape, self.format, self._core, self._transposed != columns

    def __repr__(self):
        rows, cols = self.shape
        return f"<Quantized {rows} x {cols} of {self.format.name}, scales per {self.scaling}>"


# Rules whose scales are numbers of e8m0fnu.
_POWERS_OF_TWO = (
    "e8m0",
    "e8m0-even",
    "e8m0-ulp",
    "e8m0-three-eighths",
    "e8m0-ceil",
    "pow2-floor",
    "pow2-ceil",
)

# Rules with a scale of the tensor.
_TWO_LEVELS = ("nvfp4", "nvfp4-inverse", "4over6-mae", "4over6-mse")

# Scales that float32 holds as normal numbers, and whose inverse does too.
_LEAST_SCALE, _LARGEST_SCALE = 2.0**-126, 2.0**126


def _given_scale(scale):
    """The argument `scale`, rounded once to float32."""
    number = _settings.real32(scale, "scale")
    if not number > 0:
        raise ValueError(f"scale: expected a positive number, found {scale}")
    if not _LEAST_SCALE <= number <= _LARGEST_SCALE:
        raise ValueError(
            "scale: expected 2^-126 to 2^126, so that float32 holds it and its inverse, "
            f"found {scale}"
        )
    return number


def quantize(
    x: Any,
    format: FormatLike,
    *,
    scaling: str | Delayed = "tensor",
    scale: float | None = None,
    rounding: str | SR = "rne",
    overflow: str = "saturate",
    divide: bool = False,
    nan_scales: bool = False,
) -> Quantized:
    """Quantises a matrix: codes and scales with x ~ code value * scale.

    x         matrix of float32 or of a smaller float dtype; a vector is one row. Of a stack of
              matrices, quantise each by itself
    format    of the codes, at most 16 bits; or "mxfp8", "mxfp8-e5m2", "mxfp6", "mxfp6-e2m3",
              "mxfp4", "mxint8" or "nvfp4", which name the scaling too
    scaling   LAYOUT or LAYOUT/RULE. LAYOUT is "tensor", "row", "column", "block:N" (N elements of a
              row) or "tile:RxC"; RULE is "absmax" (default), "pow2-floor", "pow2-ceil", "e8m0" (the
              shared scale of an MX block), "e8m0-even", "e8m0-ulp", "e8m0-three-eighths",
              "e8m0-ceil" (the same, rounded otherwise; docs/mx.md), "e4m3" (e4m3fn per group),
              "none" (scale 1), "nvfp4" (e4m3fn per group under a scale of the tensor),
              "nvfp4-inverse" (the same with a product in place of a quotient; docs/mx.md), or
              "4over6-mae" or "4over6-mse" (the same, with the largest element at 4 or 6,
              whichever has the smaller error).
              "block:32/e8m0" is MX, "block:16/nvfp4" with e2m1fn NVFP4.
              Or a `Delayed`.
    scale     a number: the given scale of the whole tensor, instead of `scaling`, rounded once to
              float32 (`Quantized.scale`); 2^-126 to 2^126
    rounding, overflow   as in `round`, and saturating by default
    divide      whether codes are those of x / scale, rounded to float32, instead of x times the inverse
                scale; of arrays on the host
    nan_scales  whether a NaN makes the scale that it shares NaN, and so all elements that share it; of
                arrays on the host. By default scales follow from the finite elements

    Returns a `Quantized`.
    """
    if type(format) is str and format in _WORDS:
        format, scaling = _word(format, scaling, scale)
    f, plan, random, words, _ = plan_of(format, rounding, overflow)
    if type(scaling) is str and scale is None:
        grid = _layout_and_rule(scaling)
        how: Any = grid[1]
    else:
        grid, how = _other_scaling(scaling, scale, f)
    if words is not None:
        raise ValueError("rounding: quantize takes random bits of a seed and stream only")
    if type(divide) is not bool or type(nan_scales) is not bool:
        divide = _settings.flag(divide, "divide")
        nan_scales = _settings.flag(nan_scales, "nan_scales")
    library: Any = NUMPY
    array = x
    if not is_float32(x):
        library, array = _floats_of(x)
    if array.ndim != 2:
        array = _as_matrix(array)
    if library.on_device or array.size > _SMALL:
        return _quantized(library, array, f, plan, grid, how, random, divide, nan_scales)
    if isinstance(how, Delayed):
        how = how._at(None)
    core = _core.quantize(array, plan, grid[0], how, random, divide, nan_scales)
    return Quantized(f, array.shape, grid, library, core, core)


# Words for formats with scales: {word: (format, scaling)}.
_WORDS: dict[str, tuple[str, str]] = _core.scaled_formats()


def _word(word, scaling, scale):
    """(format, scaling) of a word for a format with scales."""
    format, meant = _WORDS[word]
    if scale is not None or scaling not in ("tensor", meant):  # "tensor" is the default
        raise ValueError(f"scaling: {word} is {format} with {meant}")
    return format, meant


# The most elements of a matrix on the host for whose codes and scales _core makes room itself: arrays
# for them would take as long as the work. For large ones NumPy makes room sooner, by large pages.
_SMALL = 1 << 14


def _quantized(library, array, f, plan, grid, how, random, divide, nan_scales):
    """`quantize` of a matrix where it lies, into arrays of its library."""
    layout, rule = grid
    shape, shown = tuple(array.shape), library.shown
    count = 1 if layout == "tensor" else _core.scale_count(layout, *shape)
    with library.call() as context:
        if isinstance(how, Delayed):
            how = how._at(context)
        codes, scales = library.empty(shape, f.code_dtype), library.empty((count,), F32)
        tensor = library.empty((1,), F32) if rule in _TWO_LEVELS else None
        arrays = shown(codes), shown(scales), None if tensor is None else shown(tensor)
        source = shown(array)
        core = _core.quantize(
            source, plan, layout, how, random, divide, nan_scales, *arrays, context
        )
        tensor = None if tensor is None else library.finish(tensor)
        parts = Parts(library.finish(codes), library.finish(scales), tensor)
    return Quantized(f, shape, grid, library, core, parts if library.on_device else core)


@functools.lru_cache(maxsize=4096)
def _layout_and_rule(scaling):
    """The two parts of a text LAYOUT or LAYOUT/RULE."""
    layout, _, rule = scaling.partition("/")
    return layout, rule or "absmax"


def _other_scaling(scaling, scale, f):
    """((layout, rule), what gives the scales) of what is not just a text."""
    if scale is not None:
        if not isinstance(scaling, str) or scaling != "tensor":
            raise ValueError("scale: excludes scaling")
        return _layout_and_rule("tensor"), _given_scale(scale)
    if isinstance(scaling, str):
        parts = _layout_and_rule(str(scaling))
        return parts, parts[1]
    if not isinstance(scaling, Delayed):
        found = type(scaling).__name__
        raise TypeError(f"scaling: expected a text or numsim.Delayed, found {found}")
    if scaling.format is not f:
        raise ValueError(f"scaling: follows a tensor of {scaling.format.name}, not {f.name}")
    return ("tensor", "none"), scaling


def _floats_of(x):
    """(library, packed float32, or codes of bf16 on a device)."""
    _gradients.refuse_followed(x, "x", "quantize")
    taken = take(x, "x", True)
    as_it_is = taken.library.on_device and taken.format is not None and taken.format.name == "bf16"
    return taken.library, taken.packed() if as_it_is else widened(taken, "x")


def _as_matrix(array):
    """A vector as one row."""
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2:
        raise ValueError(
            f"x: expected a matrix, found {array.ndim} dimensions; of a stack of matrices, "
            "quantize each by itself: [ns.quantize(matrix, ...) for matrix in x]"
        )
    return array
