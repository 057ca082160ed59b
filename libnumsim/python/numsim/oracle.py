"""The oracle: right results of operations on codes, and a judge of implementations.

Operations are those of `numsim oracle` (docs/oracle.md): add, sub, mul, div, fma, sqrt, convert,
comparisons, minima, conversions to and from integers, blocks and dot products. A case is a row of
columns: operands, the random bits of stochastic rounding, results and flags.

Levels of cases: "edges" (special and boundary codes), "full" (every combination, at most 2^32),
"random:N" and "uniform:N" (N cases, functions of the seed).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from numsim import _core, _settings
from numsim._arrays import native, take_codes
from numsim._casts import decode, encode
from numsim._formats import FormatLike, format as format_of
from numsim._names import did_you_mean

_BATCH = 1 << 20  # cases of one call of an implementation

# The options of operations, and the check of those that are no format.
_OPTIONS = {
    "format_b": None,
    "format_c": None,
    "to": None,
    "scale_format": None,
    "accumulation": _settings.text,
    "any_operands": _settings.flag,
    "rounding": _settings.text,
    "variant": _settings.text,
    "random_bits": lambda value, name: _settings.integer(value, name, 1, 32),
    "overflow": _settings.text,
    "tininess": _settings.text,
    "length": lambda value, name: _settings.integer(value, name, 0, (1 << 31) - 1),
    "tensor_scale": _settings.flag,
    "block": lambda value, name: _settings.integer(value, name, 0, (1 << 31) - 1),
    "scale_rule": _settings.text,
    "scale_rounding": _settings.text,
    "profile": _settings.text,
}


def operations() -> dict[str, str]:
    """Returns {name: summary} of the operations."""
    return dict(_core.operation_table())


def _operation(op, format, options):
    """The operation with a name. "cast" is convert from fp32 to `format`."""
    checked = {}
    for key, value in options.items():
        if key not in _OPTIONS:
            raise TypeError(f"{op}: unknown option {key!r}{did_you_mean(key, _OPTIONS)}")
        check = _OPTIONS[key]
        checked[key] = format_of(value).name if check is None else check(value, key)
    _settings.text(op, "op")
    if op == "cast":
        if "to" in checked:
            raise TypeError("to: the format of a cast is its argument `format`")
        return _core.make_operation("convert", format="fp32", to=format_of(format).name, **checked)
    return _core.make_operation(op, format=format_of(format).name, **checked)


def _rows(operation, level, seed, results):
    """The cases of a level."""
    level, seed = _settings.text(level, "level"), _settings.integer(seed, "seed")
    return _core.CaseRows(operation, level, seed, results)


def _dtype_for(bits):
    return np.dtype(
        np.uint8
        if bits <= 8
        else np.uint16
        if bits <= 16
        else np.uint32
        if bits <= 32
        else np.uint64
    )


def _columns(matrix, columns):
    return {
        name: matrix[:, i].astype(_dtype_for(bits)) for i, (name, bits, _, _) in enumerate(columns)
    }


def vectors(
    op: str, format: FormatLike, *, level: str = "edges", seed: int = 0, **options: Any
) -> dict[str, np.ndarray]:
    """Returns cases with their right results as {column: array of unsigned integers}.

    op        a name of `operations()`, or "cast": float32 to `format`
    format    of the operands
    level     see above; "full" and "random:N" make as many rows as they say
    options   of the operation: format_b, format_c, to, scale_format, accumulation, rounding,
              variant, random_bits, overflow, tininess ("after", "before"), length, profile;
              scale_format, block and tensor_scale give a dot product block scales; any_operands
              gives it an accumulation mode of a device that does not take its formats; scale_rule
              is of quantize-mx, scale_rounding of p3109.ConvertToBlockMaxAbsFinite

    The last column is "flags" if the operation has flags.
    """
    operation = _operation(op, format, options)
    rows = _rows(operation, level, seed, True)
    matrix = np.empty((len(rows), len(rows.columns)), np.uint64)
    rows.fill(0, matrix)
    return _columns(matrix, rows.columns)


@dataclasses.dataclass(frozen=True)
class Counterexample:
    """A case on which an implementation is wrong."""

    case: int  # number of the case
    inputs: dict
    got: dict
    expected: dict
    kind: str  # "value", "flags", or "nan": a NaN of another code


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What `check` found. True if all cases are right."""

    cases: int
    wrong: int
    first: list[Counterexample]  # the first counterexamples

    def __bool__(self):
        return self.wrong == 0

    def __repr__(self):
        lines = [f"{self.wrong} of {self.cases} cases wrong"]
        for c in self.first:
            inputs = ", ".join(f"{name} = {_text(x)}" for name, x in c.inputs.items())
            got, right = (", ".join(map(_text, d.values())) for d in (c.got, c.expected))
            lines.append(f"  {inputs}: got {got}, expected {right} ({c.kind})")
        return "\n".join(lines)


def _text(x):
    return x if isinstance(x, str) else f"0x{x:02x}"


def check(
    implementation: Callable[..., Any],
    op: str,
    format: FormatLike,
    *,
    level: str = "edges",
    nan: str = "any",
    limit: int = 10,
    seed: int = 0,
    **options: Any,
) -> Verdict:
    """Judges a Python function by the oracle, on every case of a level.

    implementation   called with one array per operand (and one of random bits, in stochastic
                     modes), batch by batch. For "cast" it gets float32 numbers; for other
                     operations codes, as uint8, uint16 or uint32. It returns an array of codes, or
                     of a dtype of ml_dtypes or torch, or of float32 values of the format; a tuple
                     of arrays if the operation has several results; or (results..., flags) to be
                     judged by flags too
    op, format       as in `vectors`
    level            default: "edges"; "full" is exhaustive (2^32 cases for a cast: minutes)
    nan              "any": every NaN code is right where NaN is; "exact": only the canonical one
    limit            number of counterexamples that are kept

    Returns a Verdict. What the implementation raises is not caught.
    """
    operation = _operation(op, format, options)
    rows = _rows(operation, level, seed, False)
    judge = _core.Judge(operation, _settings.text(nan, "nan"), _settings.integer(limit, "limit"))
    for first in range(0, len(rows), _BATCH):
        count = min(_BATCH, len(rows) - first)
        inputs = np.empty((count, len(rows.columns)), np.uint64)
        rows.fill(first, inputs)
        arguments = list(_columns(inputs, rows.columns).values())
        if op == "cast":
            arguments[0] = arguments[0].view(np.float32)
        answers = _answers(implementation(*arguments), operation, count)
        judge.add(np.column_stack([inputs, *answers]), first)
    return Verdict(judge.cases, judge.mismatches, _counterexamples(judge, operation, op))


def _answers(results, operation, count):
    """The columns that an implementation returned, as uint64."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    columns = operation.results
    names = [name for name, _, _, _ in columns]
    widths = [len(columns)] + ([len(columns) + 1] if operation.has_flags else [])
    if len(results) not in widths:
        flags = " and perhaps flags" if operation.has_flags else ""
        raise ValueError(
            f"implementation: expected {', '.join(names)}{flags}, found {len(results)} arrays"
        )
    answers = []
    for i, result in enumerate(results):
        name, bits, format, _ = columns[i] if i < len(columns) else ("flags", 8, "", False)
        codes = _result_codes(result, name, format)
        if codes.shape != (count,):
            raise ValueError(
                f"implementation: {name}: expected shape ({count},), found {codes.shape}"
            )
        if codes.size and codes.max() >> np.uint64(bits - 1) > 1:
            raise ValueError(f"implementation: {name}: codes of more than {bits} bits")
        answers.append(codes)
    return answers


def _result_codes(result, name, format):
    if isinstance(result, np.ndarray):
        result = native(result)
    if format and isinstance(result, np.ndarray) and result.dtype in (np.float32, np.float64):
        return _codes_of_values(result, name, format).astype(np.uint64)
    taken = take_codes(result, f"implementation: {name}")
    if format and taken.format is not None and taken.format.name != format:
        raise ValueError(f"implementation: {name}: expected {format}, found {taken.format.name}")
    array = taken.array
    if array.dtype.kind == "i":
        array = array.view(array.dtype.str.replace("i", "u"))
    return array.astype(np.uint64)


def _codes_of_values(values, name, format):
    """The codes of numbers that must be values of the format."""
    codes = encode(values, format, overflow="nonsaturate")
    back = decode(codes, format)
    wrong = np.nonzero(~((back == values) | (np.isnan(back) & np.isnan(values))))[0]
    if wrong.size:
        raise ValueError(f"implementation: {name}: {values[wrong[0]]!r} is no value of {format}")
    return codes


def _counterexamples(judge, operation, op):
    found = []
    inputs = [name for name, _, _, _ in operation.inputs]
    results = [name for name, _, _, _ in operation.results]
    for case, row, expected, flags, kind in judge.first():
        given = dict(zip(inputs, row))
        if op == "cast":
            bits = np.array(given[inputs[0]], np.uint32)
            given[inputs[0]] = f"{float(bits.view(np.float32))!r} (0x{bits:08x})"
        got = dict(zip(results + ["flags"], row[len(inputs) :]))
        right = dict(zip(results, expected))
        if "flags" in got:
            right["flags"] = flags
        found.append(Counterexample(case, given, got, right, kind))
    return found
