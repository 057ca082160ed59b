"""Number formats: names, properties, values and tables."""

from __future__ import annotations

import functools
import sys
import types
import warnings
from typing import Any, Union

import numpy as np

from numsim import _core

_CODE_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
}


# What stands for a format: an object, a name, or a dtype of NumPy, ml_dtypes or torch.
FormatLike = Union["Format", str, Any]


class Format:
    """A number format of up to 32 bits. Made by `numsim.format`, which returns one object per
    format.

    Attributes are those of the C++ `FormatSpec`: `bits`, `exponent_bits`, `mantissa_bits`, `bias`,
    `is_signed`, `has_infinity`, `has_nan`, `has_zero`, `min_exponent`, `max_exponent`, `nan_code`
    (None without NaN); the float64 numbers `max` (largest finite value), `min_normal` and
    `min_positive`; and `code_dtype`, the NumPy dtype of its codes (uint8, uint16 or uint32).
    """

    __slots__ = ("name", "spec", "code_dtype", "bits", "__weakref__")

    def __init__(self, name: str, spec: _core.FormatSpec) -> None:
        self.name = name
        self.spec = spec
        self.bits = spec.bits
        self.code_dtype = _CODE_DTYPES[spec.storage_bytes]

    exponent_bits = property(lambda self: self.spec.exponent_bits)
    mantissa_bits = property(lambda self: self.spec.mantissa_bits)
    bias = property(lambda self: self.spec.bias)
    is_signed = property(lambda self: self.spec.is_signed)
    has_infinity = property(lambda self: self.spec.has_infinity)
    has_nan = property(lambda self: self.spec.has_nan)
    has_zero = property(lambda self: self.spec.has_zero)
    max = property(lambda self: self.spec.max_finite)
    min_normal = property(lambda self: self.spec.min_normal)
    min_positive = property(lambda self: self.spec.min_positive)
    min_exponent = property(lambda self: self.spec.min_exponent)
    max_exponent = property(lambda self: self.spec.max_exponent)
    nan_code = property(lambda self: self.spec.nan_code)

    @property
    def note(self) -> str:
        """One line about a format of the table; "" for a custom one."""
        return _notes().get(self.name, ("", ""))[1]

    @property
    def source(self) -> str:
        """The key of docs/references.md that defines a format of the table; "" for a custom one."""
        return _notes().get(self.name, ("", ""))[0]

    @property
    def dtype(self) -> np.dtype | None:
        """The NumPy dtype whose arrays hold values of this format, or None.

        float32, float16, or one of the package ml_dtypes, if that is installed.
        """
        return _dtype_of(self.name)

    def values(self) -> np.ndarray:
        """Returns the exact values of the codes 0, 1, ... as float32. Formats of at most 16 bits.

        NaN codes give NaN.
        """
        if self.bits > 16:
            raise ValueError(
                f"values: expected a format of at most 16 bits, {self.name} has {self.bits}"
            )
        codes = np.arange(1 << self.bits, dtype=self.code_dtype)
        out = np.empty(codes.shape, np.float32)
        _core.decode(self.spec, codes, out)
        return out

    def table(self) -> str:
        """Returns a text with one line per code: hexadecimal, fields in binary, class and value."""
        spec, digits = self.spec, (self.bits + 3) // 4
        lines = [f"{'code':>{digits + 2}}  {'fields':<{self.bits + 2}}  {'class':<9}  value"]
        for code, value in enumerate(self.values()):
            bits = f"{code:0{self.bits}b}"
            cuts = [1] if spec.is_signed else []
            cuts = [0, *cuts, self.bits - spec.mantissa_bits, self.bits]
            if spec.is_table:
                cuts = [0, self.bits]
            fields = " ".join(bits[a:b] for a, b in zip(cuts, cuts[1:]) if b > a)
            kind = spec.class_of(code)
            lines.append(f"0x{code:0{digits}x}  {fields:<{self.bits + 2}}  {kind:<9}  {value:.9g}")
        return "\n".join(lines)

    def __str__(self):
        return self.name

    def __repr__(self):
        about = f"  # {self.source}: {self.note}" if self.note else ""
        return f"numsim.format({self.name!r}){about}"

    def __reduce__(self):
        return _parse, (self.name,)


class FormatTable(tuple):
    """The formats of the table, in its order; prints as a table."""

    def __repr__(self):
        lines = [f"{'name':<14} {'bits':>4} {'max':>12} {'min normal':>12} {'min':>12}  note"]
        for f in self:
            numbers = f"{f.max:>12.6g} {f.min_normal:>12.6g} {f.min_positive:>12.6g}"
            lines.append(f"{f.name:<14} {f.bits:>4} {numbers}  {f.note}")
        return "\n".join(lines)


@functools.lru_cache(maxsize=None)
def _notes():
    rows = [*_core.format_table(), *_core.value_tables()]
    return {name: (source, note) for name, source, note in rows}


@functools.lru_cache(maxsize=None)
def _dtype_of(name):
    plain = {"fp32": "float32", "fp16": "float16"}.get(name)
    if plain:
        return np.dtype(plain)
    try:
        import ml_dtypes
    except ImportError:
        return None
    for prefix in ("float8_", "float6_", "float4_"):
        if hasattr(ml_dtypes, prefix + name):
            return np.dtype(getattr(ml_dtypes, prefix + name))
    return np.dtype(ml_dtypes.bfloat16) if name == "bf16" else None


def numpy_dtype(format: Format) -> np.dtype:
    """Returns NumPy's dtype of a format. Raises ValueError if there is none."""
    if format.dtype is None:
        raise ValueError(
            f"format: there is no NumPy dtype for {format.name}, or ml_dtypes is not installed; "
            "encode and round serve every format"
        )
    return format.dtype


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line that called the package; Python shows a warning once per line."""
    level = 1
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "numsim":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


_by_canonical_name: dict[str, Format] = {}
_by_text: dict[Any, Format] = {}
_MOST_NAMES = 4096  # in _by_text


def _text_of(name):
    if isinstance(name, str):
        return name
    own = getattr(name, "name", None)  # a NumPy dtype
    return own if isinstance(own, str) else _type_name(name)


def _parse(text):
    return _format_named(*_core.parse_format(text))


def _format_named(canonical, spec):
    known = _by_canonical_name.get(canonical)
    if known is None or known.spec != spec:  # the file of a table may have changed
        known = _by_canonical_name[canonical] = Format(canonical, spec)
    return known


def _type_name(kind):
    text = str(kind)
    if text.startswith("torch."):
        return text
    try:
        return np.dtype(kind).name  # a scalar type such as ml_dtypes.bfloat16
    except TypeError:
        message = (
            f"format: expected a name, a dtype or a numsim.Format, found {type(kind).__name__}"
        )
        raise TypeError(message) from None


def format(
    name: FormatLike | None = None,
    *,
    exponent: int | None = None,
    mantissa: int | None = None,
    signed: bool = True,
    **fields: Any,
) -> Format:
    """Returns the format with a name, or a custom one.

    `name` is one of
      a name of `formats()`, such as "e4m3fn", "bf16", "binary8p4se", "int8";
      a name of torch, ml_dtypes, CUDA, OCP, ONNX and others, in any case, such as "float8_e4m3fn",
      "__nv_fp8_e4m3" or "E2M1" (docs/formats.md), or a dtype object of torch or ml_dtypes;
      binary{K}p{P}{s|u}{e|f} of P3109 for any width that the library serves;
      fixedI.F, ufixedI.F, intN or uintN: fixed point and integers, the sign bit among the I bits;
      "nf4", "bnb-fp4" and other tables of values, or "table:FILE", a text or .npy file of numbers
      (`value_table` makes one of numbers): for casts and `quantize`;
      eXmY or ueXmY with X exponent and Y mantissa bits, and fields after a colon:
      "e5m3:bias=20,inf=none,nan=all-ones". "e2m1", "e2m3", "e3m2" and "ue4m3" are those of OCP and
      CUDA; "ieee-e2m1" is the IEEE-like format of that shape, as other eXmY are.
    Or `exponent` and `mantissa` give the two widths, and `bias`, `inf`, `nan`, `zero`, `overflow` and
    `subnormals` what differs from IEEE 754, as in the text (docs/formats.md).

    Warns of a name that means different formats in different texts: "e4m3", "e1m2". Raises
    ValueError, with the nearest valid name, for another text or an impossible format.
    """
    if type(name) is Format:
        return name
    if name is None:
        if exponent is None or mantissa is None:
            raise TypeError("format: expected a name, or exponent= and mantissa=")
        given = ",".join(f"{key}={value}" for key, value in fields.items())
        base = f"ieee-{'' if signed else 'u'}e{exponent}m{mantissa}"
        name = base + (f":{given}" if given else "")
    elif fields or exponent is not None or mantissa is not None or not signed:
        raise TypeError(
            "format: a name and fields exclude each other; write the fields into the name"
        )
    return format_of(name)


def format_of(name: FormatLike) -> Format:
    """Returns the format that a name, a dtype or an object stands for, as `format` does."""
    if type(name) is Format:
        return name
    try:
        return _by_text[name]
    except (KeyError, TypeError):
        return _new_name(name)


def _new_name(name):
    """`format_of` of what is not in _by_text."""
    if name is None:
        return format()
    text = _text_of(name)
    result = _parse(text)
    note = _core.format_note(text) if isinstance(name, str) else ""
    if note:
        warn(note)  # at each call, so that the text is not cached
    elif len(_by_text) < _MOST_NAMES and not text.startswith("table:"):  # its file may change
        try:
            _by_text[name] = result
        except TypeError:  # a dtype object that cannot be a key
            pass
    return result


def is_known(name: FormatLike) -> bool:
    """Returns whether `format_of` knows a hashable name already, and does not warn of it."""
    return type(name) is Format or name in _by_text


@functools.lru_cache(maxsize=None)
def of_dtype(name: str) -> Format:
    """Returns the format of which arrays of a dtype hold one code per element.

    Raises ValueError for every other name of a dtype.
    """
    if name.endswith("_x2"):
        raise ValueError(f"dtype {name!r}: an element holds two codes")
    return _parse(name)


def formats() -> FormatTable:
    """Returns the table of formats (docs/formats.md). It prints as a table."""
    return FormatTable(_parse(name) for name, _, _ in _core.format_table())


def value_table(values: Any, name: str = "values") -> Format:
    """Returns the format whose code c stands for values[c], a table of values.

    values   2 to 256 finite numbers, rounded to float32; of several equal ones the first has the code
             that casts write
    name     the format is called "table:" + name

    For casts and `quantize` of arrays on the host. Numbers between two values go to the nearer one,
    ties to the one with the even place in ascending order; other roundings are those of `round`.
    Numbers beyond the ends become the ends, NaN the highest value (docs/formats.md).
    """
    numbers = np.asarray(values, np.float32)
    if numbers.ndim != 1:
        raise ValueError(f"values: expected one dimension, found shape {numbers.shape}")
    if not isinstance(name, str):
        raise TypeError(f"name: expected a str, found {type(name).__name__}")
    return _format_named(*_core.add_table(name, numbers.tolist()))


@functools.lru_cache(maxsize=None)
def holds(outer: Format, inner: Format) -> bool:
    """Returns whether every value of the format `inner`, specials included, is one of `outer`."""
    if inner is outer or outer.name == "fp32":
        return True
    if inner.bits > 16 or outer.bits > 16:
        return False
    values = inner.values()
    codes = np.empty(values.shape, outer.code_dtype)
    _core.encode(_core.EncodePlan(outer.spec, "rne", "nonsaturate"), values, codes)
    return np.array_equal(outer.values()[codes], values, equal_nan=True)
