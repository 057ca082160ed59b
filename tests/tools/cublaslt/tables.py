"""The files of a study of cuBLASLt's plans: compressed tables that survive a kill at any time."""

import csv
import io
import os
import time
import zlib

from cublaslt.library import FIELD_NAMES
from cublaslt.products import KINDS

WORKSPACES = (1 << 20, 32 << 20)  # of PyTorch 2.7 and of Transformer Engine
# The key of a replayed product. `forced` is "0", or a number of splits and a reduction scheme.
CASE = ("kind", "M", "N", "K", "workspace", "forced")


class Table:
    """A compressed CSV file to which complete blocks of rows are appended; what a kill cut off is dropped."""

    def __init__(self, folder, name, columns, keys):
        self.path, self.columns, self.keys = folder / f"{name}.csv.gz", columns, keys
        self.rows, self._new, self._written = [], [], time.monotonic()
        if self.path.exists():
            self._read()
        self.done = {self._key(row) for row in self.rows}

    def _key(self, row):
        return tuple(str(x) for x in row[: self.keys])

    def _read(self):
        data, text, complete = self.path.read_bytes(), [], 0
        while complete < len(data):
            block = zlib.decompressobj(wbits=31)
            try:
                content = block.decompress(data[complete:])
            except zlib.error:
                break
            if not block.eof:
                break
            text.append(content.decode())
            complete = len(data) - len(block.unused_data)
        os.truncate(self.path, complete)
        rows = list(csv.reader(io.StringIO("".join(text))))
        if rows and rows[0] != list(self.columns):
            raise SystemExit(f"{self.path}: has columns {rows[0]}, expected {list(self.columns)}")
        self.rows = rows[1:]

    def has(self, *key):
        return self._key(key) in self.done

    def add(self, *row):
        row = [str(x) for x in row]
        self.rows.append(row)
        self._new.append(row)
        self.done.add(self._key(row))
        if time.monotonic() - self._written > 5:
            self.flush()

    def flush(self):
        self._written = time.monotonic()
        if not self._new:
            return
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self.path.exists() or self.path.stat().st_size == 0:
            writer.writerow(self.columns)
        writer.writerows(self._new)
        pack = zlib.compressobj(9, wbits=31)
        with open(self.path, "ab") as file:
            file.write(pack.compress(text.getvalue().encode()) + pack.flush())
            file.flush()
            os.fsync(file.fileno())
        self._new = []

    def records(self):
        return [dict(zip(self.columns, row)) for row in self.rows]


class Tables:
    def __init__(self, folder):
        cells = [f"{kind}@{workspace >> 20}MiB" for kind in KINDS for workspace in WORKSPACES]
        shape = ("kind", "M", "N", "K")
        self.algorithms = Table(folder, "algorithms", ("algorithm", *FIELD_NAMES), 1)
        self.plans = Table(folder, "plans", ("M", "N", "K", *cells), 3)
        results = ("needed", "torch-differs", "unsteady", "operands", "out")
        self.products = Table(folder, "products", (*CASE, *FIELD_NAMES, *results), len(CASE))
        counts = ("sums", "planned", "split", "largest", "loses", "losing", "others")
        self.scan = Table(folder, "scan", ("kind", "M", "N", "tail", *counts), 4)
        self.tails = Table(
            folder,
            "tails",
            (*shape, "splits", "origin", *FIELD_NAMES, "predicted", "missing", "missing-rest", "torch-missing"),
            6,
        )
        judgements = ("split", "elements", "mode", "differing", "next", "best", "fitting")
        self.replays = Table(folder, "replays", (*CASE, *judgements), len(CASE))

    def flush(self):
        for table in vars(self).values():
            table.flush()
