"""Results of experiments and trainings: tables, settings and manifests, read and never computed."""

from __future__ import annotations

import csv
import hashlib
import json
import pathlib
from typing import Any

import numpy as np


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
        """Returns the rows whose columns have these values, as a table."""
        wanted = np.ones(len(self), bool)
        for name, value in values.items():
            if name not in self:
                raise ValueError(f"{self.name}: no column {name!r}; it has {', '.join(self)}")
            wanted &= self[name] == value
        return Table(self.name, {name: column[wanted] for name, column in self.items()})

    def frame(self):
        """Returns a pandas DataFrame. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame(dict(self))

    def __repr__(self):
        return f"<{self.name}: {len(self)} rows of {', '.join(self)}>"


class Results:
    """The results in a directory.

    path       the directory
    settings   settings.json: experiment, preset, seeds and options; or {}
    manifest   manifest.json: command, commit, machine and outputs with SHA-256; or {}
    summary    the text of summary.txt; or ""
    """

    def __init__(self, path: str | pathlib.Path) -> None:
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            raise FileNotFoundError(f"{self.path}: no such directory")
        self.tables = sorted(file.stem for file in self.path.glob("*.csv"))
        self.settings = self._json("settings.json")
        self.manifest = self._json("manifest.json")
        if not self.tables and not self.settings and not self.manifest:
            raise ValueError(f"{self.path}: no results: no .csv, settings.json or manifest.json")
        summary = self.path / "summary.txt"
        self.summary = summary.read_text(encoding="utf-8") if summary.exists() else ""

    def _json(self, name):
        path = self.path / name
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def table(self, name: str) -> Table:
        """Returns the table NAME.csv."""
        if name not in self.tables:
            raise ValueError(f"{self.path}: no table {name!r}; it has {', '.join(self.tables)}")
        path = self.path / f"{name}.csv"
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        if not rows:
            raise ValueError(f"{path}: no header")
        header, rows = rows[0], rows[1:]
        for number, row in enumerate(rows, 2):
            if len(row) != len(header):
                raise ValueError(f"{path}: record {number} has {len(row)} cells, not {len(header)}")
        columns = zip(*rows) if rows else ((),) * len(header)
        return Table(name, {key: _column(column) for key, column in zip(header, columns)})

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
        for output in self.manifest["outputs"]:
            path = self.path / output["path"]
            if not path.exists():
                raise ValueError(f"{path}: missing, and listed in the manifest")
            if hashlib.sha256(path.read_bytes()).hexdigest() != output["sha256"]:
                raise ValueError(f"{path}: differs from the manifest")

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


def read(directory: str | pathlib.Path) -> Results:
    """Returns the `Results` in a directory: of `numsim run`, `numsim train` or docs/results."""
    return Results(directory)
