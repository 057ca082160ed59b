"""The tables of a study of cuBLASLt's plans as experiments/published/cuda holds them: without what can be made again.

cublaslt-plans     M, N, K and the plan of each kind and workspace: the fields of PLAN with blanks between them; "-"
                   where the heuristic has none, "=" where it is that of the smaller workspace
cublaslt-products  each replayed product: its plan, elements that differ from PyTorch's and from the replay's, in
                   which accumulation mode, partition and order; of some also the device's results, base64, in
                   the rows and columns of products.sampled
cublaslt-tails     each product with a tail: its splits, the last products that were predicted to be missing, those
                   that were, those that were elsewhere, and those that PyTorch's product misses
"""

import csv
import gzip
import io

from cublaslt.library import FIELD_NAMES
from cublaslt.products import SAMPLE
from cublaslt.tables import CASE

PLAN = ("id", "tile", "split", "reduction", "stages", "custom", "cluster")  # swizzle and inner are 0 everywhere
TAIL = ("kind", "M", "N", "K", "splits", "origin", "split", "predicted", "missing", "missing-rest", "torch-missing")
PRODUCT = (*CASE, *PLAN, "torch-differs", "unsteady", "elements", "mode", "differing", "next", "fitting", "out")
FORCED_SAMPLES = ("e4m3-bf16", "e4m3-fast-bf16", "bf16-bf16", "fp16-fp16")  # of 1600 results, and they lose products


def plans(tables):
    texts = {row[0]: " ".join(dict(zip(FIELD_NAMES, row[1:]))[x] for x in PLAN) for row in tables.algorithms.rows}
    yield tables.plans.columns
    for row in sorted(tables.plans.rows, key=lambda row: tuple(map(int, row[:3]))):
        yield [*row[:3], *(cell if cell in "-=" else texts[cell.split(" ")[0]] for cell in row[3:])]


def is_sample(row):
    """Whether the results of a product of products.csv are published: few, of few products to repeat."""
    if row["kind"] == "int8-int32" or int(row["K"]) > 40000:
        return False
    few = int(row["M"]) <= 16 and min(int(row["N"]), SAMPLE) * int(row["M"]) <= 300
    return few if row["forced"] == "0" else row["forced"] == "32 COMPUTE_TYPE" and row["kind"] in FORCED_SAMPLES


def replayed(tables):
    judged = {tuple(row[x] for x in CASE): row for row in tables.replays.records()}
    yield PRODUCT
    for row in tables.products.records():
        row |= judged.get(tuple(row[x] for x in CASE), {})
        row["out"] = row["out"] if is_sample(row) else ""
        yield [row.get(x, "") for x in PRODUCT]


def tails(tables):
    yield TAIL
    rows = tables.tails.records()
    rows.sort(key=lambda row: (row["origin"], *(int(row[x]) for x in ("splits", "M", "N", "K")), row["kind"]))
    for row in rows:
        yield [row[x] for x in TAIL]


def write(tables, folder):
    """Writes the tables, compressed without name and time."""
    folder.mkdir(exist_ok=True)
    for name, rows in (("plans", plans(tables)), ("products", replayed(tables)), ("tails", tails(tables))):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        packed = gzip.compress(text.getvalue().encode(), 9, mtime=0)
        (folder / f"cublaslt-{name}.csv.gz").write_bytes(packed)
