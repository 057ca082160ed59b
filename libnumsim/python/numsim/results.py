"""Results of experiments and trainings: tables, settings and manifests, read and never computed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import pathlib
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from numsim import _core


class Table(dict):
    """A table: {column: array}. Columns of numbers are float64 or int64, others are texts.

    An empty cell among numbers is NaN.
    """

    def __init__(self, name: str, columns: dict[str, np.ndarray]) -> None:
        super().__init__(columns)
        self.name = name

    def __len__(self):
        return len(next(iter(self.values()))) if self.keys() else 0

    def __bool__(self):
        return True

    def where(self, **values: Any) -> Table:
        """Returns the rows whose columns have these values, as a table.

        A number and its text are the same: epsilon=1e-5, epsilon="1e-5" and epsilon="0.00001". NaN
        selects empty cells. Raises ValueError for an unknown column, for a text that is no number
        in a column of numbers, and for a number in a column without any.
        """
        wanted = np.ones(len(self), bool)
        for name, value in values.items():
            if name not in self:
                raise ValueError(f"{self.name}: no column {name!r}; it has {', '.join(self)}")
            wanted &= _equal(self[name], value, f"{self.name}: {name}")
        return Table(self.name, {name: column[wanted] for name, column in self.items()})

    def to_latex(self, columns: Sequence[str] | None = None, digits: int = 3) -> str:
        """Returns the table as a LaTeX tabular, which needs the package booktabs.

        columns   names of the columns, in this order; None: all
        digits    significant digits of numbers that are not whole; an empty cell is a dash
        """
        names = list(self if columns is None else columns)
        for name in names:
            if name not in self:
                raise ValueError(f"{self.name}: no column {name!r}; it has {', '.join(self)}")
        if not names:
            raise ValueError("columns: expected at least one")
        if isinstance(digits, bool) or not isinstance(digits, (int, np.integer)) or digits < 1:
            raise ValueError(f"digits: expected a whole number from 1, found {digits!r}")
        rows = zip(*(_latex_cells(self[name], digits) for name in names))
        align = "".join("l" if self[name].dtype.kind == "U" else "r" for name in names)
        lines = [f"\\begin{{tabular}}{{{align}}}", "\\toprule"]
        lines += [" & ".join(_latex_text(name) for name in names) + r" \\", "\\midrule"]
        lines += [" & ".join(row) + r" \\" for row in rows]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def frame(self):
        """Returns a pandas DataFrame. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame(dict(self))

    def __repr__(self):
        return f"<{self.name}: {len(self)} rows of {', '.join(self)}>"


class Results:
    """The results in a directory. A table may be compressed by gzip, as NAME.csv.gz.

    path       the directory
    settings   settings.json: experiment, preset, seeds and options; or {}
    manifest   manifest.json: command, commit, machine and outputs with SHA-256; or {}
    summary    the text of summary.txt; or ""
    """

    def __init__(self, path: str | pathlib.Path) -> None:
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            raise FileNotFoundError(f"{self.path}: no such directory")
        files = [file.name for file in self.path.iterdir()]
        names = {name.removesuffix(".gz") for name in files}
        self.tables = sorted(name.removesuffix(".csv") for name in names if name.endswith(".csv"))
        self.settings = self._json("settings.json")
        self.manifest = self._json("manifest.json")
        if not self.tables and not self.settings and not self.manifest:
            raise ValueError(f"{self.path}: no results: no .csv, settings.json or manifest.json")
        self._has_former_names = self._are_names_former()
        if self._has_former_names and "options" in self.settings:
            options = self.settings["options"]
            self.settings["options"] = {k: _core.from_former_names(v) for k, v in options.items()}
        summary = self.path / "summary.txt"
        self.summary = summary.read_text(encoding="utf-8") if summary.exists() else ""

    def _json(self, name):
        path = self.path / name
        if not path.exists():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{path}: expected an object, found {type(found).__name__}")
        return found

    def _are_names_former(self):
        """Whether an older numsim wrote the results, in which e2m1 and others have another meaning
        (docs/formats.md)."""
        if self.settings:
            # This experiment has always had the names of OCP.
            is_former = "names" not in self.settings
            return is_former and self.settings.get("experiment") != "fp8-interventions"
        config = self.path / "config.toml"
        return config.exists() and not config.read_text(encoding="utf-8").startswith("names")

    def table(self, name: str) -> Table:
        """Returns the table NAME.csv."""
        if name not in self.tables:
            raise ValueError(f"{self.path}: no table {name!r}; it has {', '.join(self.tables)}")
        path = self.path / f"{name}.csv"
        rows = list(csv.reader(io.StringIO(self._bytes(path).decode("utf-8"), newline="")))
        if not rows:
            raise ValueError(f"{path}: no header")
        header, rows = rows[0], rows[1:]
        if self._has_former_names:
            rows = [[_core.from_former_names(c) if "m" in c else c for c in row] for row in rows]
        for number, row in enumerate(rows, 2):
            if len(row) != len(header):
                raise ValueError(f"{path}: record {number} has {len(row)} cells, not {len(header)}")
        columns = zip(*rows) if rows else ((),) * len(header)
        return Table(name, {key: _column(column) for key, column in zip(header, columns)})

    @staticmethod
    def _bytes(path):
        """The content of a file, which may be there as PATH.gz."""
        packed = path.with_name(f"{path.name}.gz")
        if not packed.exists():
            return path.read_bytes()
        if path.exists():
            raise ValueError(f"{packed}: is there beside {path.name}, expected one of them")
        try:
            return gzip.decompress(packed.read_bytes())
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{packed}: damaged: {error}") from None

    @property
    def verdicts(self) -> Table:
        """The table verdicts.csv: a verdict per claim (docs/verdicts.md)."""
        return self.table("verdicts")

    def verify(self) -> None:
        """Compares the files with the SHA-256 of the manifest.

        Raises ValueError that names a file that is missing or differs, or if there is no manifest.
        """
        if not self.manifest:
            raise ValueError(f"{self.path}: no manifest.json")
        for name, digest in self._outputs():
            path = self.path / name
            if not path.is_file() and not path.with_name(f"{path.name}.gz").is_file():
                raise ValueError(f"{path}: missing, and listed in the manifest")
            if hashlib.sha256(self._bytes(path)).hexdigest() != digest:
                raise ValueError(f"{path}: differs from the manifest")

    def _outputs(self):
        """[(path, SHA-256)] of the outputs in the manifest."""
        outputs = self.manifest.get("outputs")
        if not isinstance(outputs, list):
            raise ValueError(f"{self.path / 'manifest.json'}: no list of outputs")
        for output in outputs:
            whole = isinstance(output, dict) and all(
                isinstance(output.get(key), str) for key in ("path", "sha256")
            )
            if not whole or "\0" in output["path"]:
                raise ValueError(
                    f"{self.path / 'manifest.json'}: an output without path or SHA-256"
                )
        return [(output["path"], output["sha256"]) for output in outputs]

    def __repr__(self):
        name = self.settings.get("experiment") or self.manifest.get("experiment") or "results"
        return f"<{name} in {self.path}: {', '.join(self.tables)}>"


def _column(cells):
    """Texts as int64, as float64 (empty: NaN) or, if one of them is no number, as they are."""
    cells = list(cells)
    if not any(cells):
        return np.array(cells, dtype=str)
    for dtype, texts in ((np.int64, cells), (np.float64, [cell or "nan" for cell in cells])):
        try:
            return np.array(texts, dtype=str).astype(dtype)
        except (ValueError, OverflowError):
            continue
    return np.array(cells, dtype=str)


def _number(text):
    """The number that a text stands for, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def _equal(column, value, place):
    """The rows of a column that equal a value; `place` names the column in errors."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, int, float, np.number)):
        raise TypeError(f"{place}: expected a number or a text, found {value!r}")
    if isinstance(value, str):
        if column.dtype.kind == "U":
            return (column == value) | _equal_numbers(column, _number(value))
        number = _number(value)
        if number is None:
            raise ValueError(f"{place}: expected a number, as the column has, found {value!r}")
        return _equal_numbers(column, number)
    if column.dtype.kind == "U" and len(column) and all(_number(c) is None for c in column):
        some = ", ".join(repr(str(text)) for text in np.unique(column)[:4])
        raise ValueError(f"{place}: expected a text, such as {some}, found {value!r}")
    return _equal_numbers(column, value)


def _equal_numbers(column, number):
    """The rows of a column, of texts or of numbers, that are a number; None equals nothing."""
    if number is None:
        return np.zeros(len(column), bool)
    if column.dtype.kind == "U":
        texts = [_number(text) for text in column]
        column = np.array([np.nan if text is None else text for text in texts])
        if number != number:
            return np.array([text is not None and text != text for text in texts], bool)
    if isinstance(number, np.floating) and number.dtype.itemsize < 8:
        column = column.astype(number.dtype)  # 1e-5 as float32 is another number than 1e-5
    return np.isnan(column) if number != number else column == number


# Of LaTeX; texts of tables hold no other characters that are special there.
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{c: "\\" + c for c in "&%$#_{}"},
}


def _latex_text(text):
    return "".join(_LATEX.get(c, c) for c in str(text))


def _latex_cells(column, digits):
    """The cells of a column: texts, whole numbers, 0.0123, or 1.23 times a power of ten.

    Zeros at the end are kept unless every number is exact with so many digits, like a setting.
    """
    if column.dtype.kind == "U":
        return [_latex_text(cell) for cell in column]
    numbers = [float(cell) for cell in column]
    exact = all(float(f"{x:.{digits}g}") == x for x in numbers if abs(x) < np.inf)
    return [_latex_number(x, digits, exact) for x in numbers]


def _latex_number(number, digits, exact):
    if number != number:
        return "--"
    if abs(number) == np.inf:
        return r"$\infty$" if number > 0 else r"$-\infty$"
    if number == int(number) and abs(number) < 10**6:
        return f"${int(number)}$"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    if -5 < int(exponent) < 6:
        text = f"{number:.{max(digits - 1 - int(exponent), 0)}f}"
        return f"${text.rstrip('0').rstrip('.') if exact and '.' in text else text}$"
    if exact and "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    factor = {"1": "", "-1": "-"}.get(mantissa, rf"{mantissa} \times ")
    return f"${factor}10^{{{int(exponent)}}}$"


def read(directory: str | pathlib.Path) -> Results:
    """Returns the `Results` in a directory: of `numsim run`, of `numsim train` or published ones."""
    return Results(directory)
