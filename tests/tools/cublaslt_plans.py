#!/usr/bin/env python3
"""Studies how cuBLASLt plans products and splits their sums, on the GPU of this machine.

    tests/tools/cublaslt_plans.py OUT --limit-seconds 540      # the study; continues what OUT holds
    tests/tools/cublaslt_plans.py OUT --steps replay,publish,summary   # what needs numsim and no GPU
    tests/tools/cublaslt_plans.py OUT --dry                    # a small study of a stand-in with planted rules

Steps, each resumed where it was stopped:
  plans     the heuristic's plan of each product of a grid (algorithms.csv.gz, plans.csv.gz)
  products  products by exactly these plans, of operands on which order and truncation show (products.csv.gz)
  scan      plans of long sums whose length is no multiple of a k-tile (scan.csv.gz)
  tails     whether the last products of a sum are in it, with the heuristic's splits and with forced ones
            (tails.csv.gz)
  replay    numsim's accumulation modes, part by part, under hypotheses of cublaslt/products.py (replays.csv.gz)
  publish   the folder published: the tables as experiments/published/cuda holds them
  summary   summary.txt, and the same on the standard output

`plans`, `products`, `scan` and `tails` need PyTorch and a CUDA device; `replay` needs the package numsim. Plans are
those of A (M x K) times the transpose of B (N x K), both with K contiguous. A cell of plans.csv is "algorithm
workspace-bytes waves", "-" where the heuristic has none, "=" where it is that of the smaller workspace.
"""
import argparse
import base64
import importlib.util
import json
import multiprocessing
import os
import sys
import time
import zlib
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cublaslt import products, published
from cublaslt.library import FIELD_NAMES, Library, LibraryError
from cublaslt.products import KINDS, predicted_loss
from cublaslt.stand_in import StandIn
from cublaslt.summary import summary
from cublaslt.tables import CASE, WORKSPACES, Tables

SCHEMES = ("COMPUTE_TYPE", "INPLACE", "OUTPUT_TYPE")
DEVICE_STEPS = ("plans", "products", "scan", "tails")
STEPS = (*DEVICE_STEPS, "replay", "publish", "summary")


@dataclass(frozen=True)
class Study:
    grid: tuple  # of M, of N, of K
    ragged: int  # products of random shapes, half of them small ones with long sums
    cases: tuple  # replayed products of each kind: with splits, without
    forced_case: tuple  # M, N, whole k-tiles of products with forced splits, their numbers of splits
    scanned_pairs: tuple  # M, N
    scanned_tiles: range  # whole k-tiles of scanned sums
    forced_pairs: tuple
    forced_splits: tuple
    forced_tiles: tuple


FULL = Study(
    grid=(
        (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192),
        (16, 64, 128, 256, 512, 768, 1024, 2048, 3072, 4096, 5120, 8192, 14336, 28672),
        (512, 768, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 11008, 14336, 16384, 28672, 32768, 65536, 131072),
    ),
    ragged=1200,
    cases=(40, 16),
    forced_case=(48, 64, 64, (3, 7, 16, 32)),
    scanned_pairs=(
        (1, 16), (1, 64), (1, 1024), (16, 16), (16, 256), (32, 32), (32, 2048), (64, 64), (64, 512), (128, 128),
        (128, 1024), (256, 256),
    ),
    scanned_tiles=range(30, 1000),
    forced_pairs=((1, 16), (16, 16), (64, 64), (128, 256)),
    forced_splits=(2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 17, 18, 20, 24, 32, 36, 48, 60),
    forced_tiles=(64, 90, 96, 102, 120, 128, 180),
)
SMALL = Study(
    grid=((1, 16, 48), (16, 64, 128), (256, 1024, 1536, 8192)),
    ragged=60,
    cases=(6, 2),
    forced_case=(16, 16, 18, (3, 18)),
    scanned_pairs=((1, 16), (16, 16)),
    scanned_tiles=range(16, 60),
    forced_pairs=((16, 16),),
    forced_splits=(2, 9, 18, 20, 48),
    forced_tiles=(18, 36),
)


class Unfinished(Exception):
    """A step that cannot go on here or now."""


class Clock:
    def __init__(self, limit):
        self._limit, self._end = limit, time.monotonic() + limit

    def check(self):
        if time.monotonic() > self._end:
            raise Unfinished(f"stopped after {self._limit:g} s; run again to continue")


# ---- Plans ----


def shapes_of(study):
    """Returns the shapes (M, N, K) of the study; N and K are multiples of 16, as FP8 requires."""
    of_m, of_n, of_k = study.grid
    shapes = [(m, n, k) for m in of_m for n in of_n for k in of_k]
    for i in range(study.ragged):
        a, b, c = (int(x) for x in products.words(20261129, 3, 3 * i))
        if i % 2:  # a small product with a long sum
            shape = (1 + a % 128, 16 * (1 + b % 32), 16 * (of_k[-1] // 512 + c % (of_k[-1] // 64)))
        else:
            shape = (1 + a % of_m[-1], 16 * (1 + b % (of_n[-1] // 16)), 16 * (1 + c % (of_k[-1] // 128)))
        shapes.append(shape)
    return list(dict.fromkeys(shapes))


def step_plans(study, library, tables, clock, notes):
    index = {tuple(row[1:]): int(row[0]) for row in tables.algorithms.rows}
    calls, begin = 0, time.monotonic()

    def cell(plan):
        if plan is None:
            return "-"
        key = tuple(str(x) for x in plan.config)
        if key not in index:
            index[key] = len(index)
            tables.algorithms.add(index[key], *plan.config)
        return f"{index[key]} {plan.workspace} {plan.waves:.3g}"

    try:
        for shape in shapes_of(study):
            if tables.plans.has(*shape):
                continue
            clock.check()
            cells = []
            for kind in KINDS.values():
                texts = [cell(library.plan(kind, shape, workspace)) for workspace in WORKSPACES]
                cells += [texts[0], *("=" if text == texts[0] else text for text in texts[1:])]
                calls += len(WORKSPACES)
            tables.algorithms.flush()  # before a row that names it
            tables.plans.add(*shape, *cells)
    finally:
        seconds = time.monotonic() - begin
        if calls:
            notes["plan-calls"] = notes.get("plan-calls", 0) + calls
            notes["plan-seconds"] = round(notes.get("plan-seconds", 0) + seconds, 3)


def recorded_plans(tables):
    """Yields (kind, shape, workspace, algorithm) of the recorded plans; equal ones of two workspaces once."""
    algorithms = {row[0]: dict(zip(FIELD_NAMES, map(int, row[1:]))) for row in tables.algorithms.rows}
    for row in tables.plans.rows:
        shape, cells = tuple(map(int, row[:3])), iter(row[3:])
        for kind in KINDS.values():
            for workspace in WORKSPACES:
                text = next(cells)
                if text not in "-=":
                    yield kind, shape, workspace, algorithms[text.split(" ")[0]]


# ---- Products ----


def chosen_cases(study, tables):
    """Returns (kind, shape, workspace, "0") of products to replay: of each kind some with splits, some without.

    They are dealt in turn from classes of equal algorithm, number of splits, stages, reduction and raggedness of
    K, so that rare plans are among them.
    """
    classes = defaultdict(list)
    for kind, (m, n, k), workspace, a in recorded_plans(tables):
        if (m + n) * k > 1 << 24 or m * n > 1 << 22:
            continue
        split = a["split"] > 1
        key = (kind.name, split, (a["id"], a["split"], a["stages"], a["reduction"], k % 128 != 0))
        order = zlib.crc32(f"{kind.name} {m} {n} {k} {workspace}".encode())
        classes[key].append((order, kind, (m, n, k), workspace))
    chosen = []
    for kind in KINDS.values():
        for split, count in zip((True, False), study.cases):
            of_kind = [deck for key, deck in classes.items() if key[:2] == (kind.name, split)]
            decks = sorted((sorted(deck, key=lambda x: x[0]) for deck in of_kind), key=lambda deck: deck[0][0])
            dealt = 0
            for turn in range(max(map(len, decks), default=0)):
                for deck in decks:
                    if turn < len(deck) and dealt < count:
                        chosen.append((*deck[turn][1:], "0"))
                        dealt += 1
    return chosen


def forced_cases(study):
    """Returns the same of products whose splits and reduction scheme are forced; their K has a tail."""
    m, n, tiles, splits = study.forced_case
    of_float = [kind for kind in KINDS.values() if kind.operand != "int8"]
    shapes = {kind: (m, n, tiles * (128 if kind.bytes == 1 else 64) + kind.granule) for kind in of_float}
    return [
        (kind, shapes[kind], WORKSPACES[1], f"{s} {scheme}")
        for kind in of_float
        for s in splits
        for scheme in SCHEMES
    ]


def planned(library, kind, shape, workspace, forced):
    """Returns the heuristic's plan, or that with forced splits "S SCHEME"; None if the library has none."""
    plan = library.plan(kind, shape, workspace)
    if forced == "0" or plan is None:
        return plan
    splits, scheme = forced.split(" ")
    return library.forced(kind, shape, plan, int(splits), scheme)


def seed_of(kind, shape, workspace):
    return zlib.crc32(f"{kind.name} {shape} {workspace} operands".encode())


def sample_of(shape, seed):
    return products.sampled(shape[0], seed), products.sampled(shape[1], seed + 1)


def step_products(study, library, tables, clock, notes):
    for kind, shape, workspace, forced in chosen_cases(study, tables) + forced_cases(study):
        key = (kind.name, *shape, workspace, forced)
        if tables.products.has(*key):
            continue
        clock.check()
        plan = planned(library, kind, shape, workspace, forced)
        if plan is None:
            tables.products.add(*key, *[""] * (len(FIELD_NAMES) + 4), "refused")
            continue
        seed = seed_of(kind, shape, workspace)
        a, b = products.operands(kind, shape[2], seed, range(shape[0]), range(shape[1]))
        held = [library.upload(kind, x) for x in (a, b)]
        row = [*key, *plan.config, plan.workspace]
        try:
            out, again = (library.multiply(kind, held, plan) for _ in range(2))
        except LibraryError as error:
            print(error, flush=True)
            tables.products.add(*row, "", "", "", "failed")
            continue
        theirs = library.torch_product(kind, held)
        rows, columns = sample_of(shape, seed)
        tables.products.add(
            *row,
            "refused" if theirs is None else products.differing(theirs, out, kind.result),
            products.differing(out, again, kind.result),
            zlib.crc32(a[rows].tobytes() + b[columns].tobytes()),
            base64.b64encode(np.ascontiguousarray(out[np.ix_(rows, columns)]).tobytes()).decode(),
        )


# ---- Tails ----


def coverage(kind, shape):
    """Returns a, the code of every element of B, and the right results of the rows: which products enter a sum?

    Row r of A is 1 in the r-th granule of 16 bytes from the end of K, its last row in up to 256 places of what
    comes before these; B is 1. So result row r is the number of its products that were added.
    """
    m, _, k = shape
    one = {"e4m3fn": 0x38, "bf16": 0x3F80, "fp16": 0x3C00, "int8": 1}[kind.operand]
    a, granules = np.zeros((m, k), kind.code_dtype), max(1, m - 1)
    for row in range(granules):
        end = max(0, k - row * kind.granule)
        a[row, max(0, end - kind.granule) : end] = one
    if m > 1:
        a[m - 1, : max(0, k - granules * kind.granule) : -(-k // 256)] = one
    return a, one, np.count_nonzero(a, axis=1).astype(np.float64)


def missing_products(kind, out, expected):
    """Returns how many products of the last granules, and of the sparse row, are not in the sums."""
    missing = np.max(np.abs(expected[:, None] - products.numbers(out, kind.result)), axis=1)
    last = missing if len(expected) == 1 else missing[:-1]
    return f"{last.sum():g}", "" if len(expected) == 1 else f"{missing[-1]:g}"


def dictionary(plan):
    return dict(zip(FIELD_NAMES, plan.config))


def step_scan(study, library, tables, clock, notes):
    for kind in KINDS.values():
        tile = 128 if kind.bytes == 1 else 64
        for m, n in study.scanned_pairs:
            for tail in (kind.granule, 2 * kind.granule):
                if tables.scan.has(kind.name, m, n, tail):
                    continue
                clock.check()
                lengths = [tiles * tile + tail for tiles in study.scanned_tiles]
                plans = [(k, library.plan(kind, (m, n, k), WORKSPACES[1])) for k in lengths]
                plans = [(k, dictionary(plan)) for k, plan in plans if plan is not None]
                split = [(k, config) for k, config in plans if config["split"] > 1]
                losing = [k for k, config in split if predicted_loss(config, k)]
                others = [k for k, config in split if not predicted_loss(config, k)]
                tables.scan.add(
                    kind.name, m, n, tail, len(lengths), len(plans), len(split),
                    max((config["split"] for _, config in split), default=1), len(losing),
                    " ".join(map(str, spread(losing, 8))), " ".join(map(str, spread(others, 4))),
                )


def spread(values, count):
    """Returns up to `count` of the values, evenly spread."""
    return values if len(values) <= count else [values[i * len(values) // count] for i in range(count)]


def tail_cases(study, tables):
    """Yields (kind, shape, splits, origin); splits 0 is the heuristic's own plan."""
    for row in tables.scan.records():
        for k in [*row["losing"].split(), *row["others"].split()]:
            yield KINDS[row["kind"]], (int(row["M"]), int(row["N"]), int(k)), [0], "heuristic"
    for kind in KINDS.values():
        tile = 128 if kind.bytes == 1 else 64
        for m, n in study.forced_pairs:
            for tiles in study.forced_tiles:
                for tail in (0, kind.granule, 2 * kind.granule, 4 * kind.granule):
                    yield kind, (m, n, tiles * tile + tail), [0, *study.forced_splits], "forced"


def step_tails(study, library, tables, clock, notes):
    table = tables.tails
    for kind, shape, splits, origin in tail_cases(study, tables):
        left = [s for s in splits if not table.has(kind.name, *shape, s, origin)]
        if not left:
            continue
        clock.check()
        a, one, expected = coverage(kind, shape)
        held = [library.upload(kind, a), library.filled(kind, shape[1], shape[2], one)]
        own = library.plan(kind, shape, WORKSPACES[1])
        theirs = library.torch_product(kind, held) if 0 in left else None
        for s in left:
            key = (kind.name, *shape, s, origin)
            plan = library.forced(kind, shape, own, s) if s and own else own
            if plan is None:
                table.add(*key, *[""] * len(FIELD_NAMES), "", "refused", "", "")
                continue
            predicted = predicted_loss(dictionary(plan), shape[2])
            try:
                missing = missing_products(kind, library.multiply(kind, held, plan), expected)
            except LibraryError as error:
                print(error, flush=True)
                missing = ("failed", "")
            seen = "" if theirs is None or s else missing_products(kind, theirs, expected)[0]
            table.add(*key, *plan.config, predicted, *missing, seen)


# ---- Replay ----


def other_modes(kind):
    """Returns accumulation modes to try if the kind's own fits no hypothesis."""
    if kind.operand == "e4m3fn":
        return ("hopper-fp8" if kind.fast else "hopper-fp8-fast", "hopper-mma-fp8", "fp32")
    return () if kind.operand == "int8" else ("trunc:24,8", "trunc:25,8", "fp32")


def replayed(record):
    """Returns the row of replays.csv of a row of products.csv."""
    kind = KINDS[record["kind"]]
    shape, workspace = tuple(int(record[x]) for x in "MNK"), int(record["workspace"])
    seed, splits = seed_of(kind, shape, workspace), max(1, int(record["split"]))
    rows, columns = sample_of(shape, seed)
    a, b = products.operands(kind, shape[2], seed, rows, columns)
    if zlib.crc32(a.tobytes() + b.tobytes()) != int(record["operands"]):
        raise ValueError(f"{kind.name} {shape}: the operands differ from those of the device run")
    out = np.frombuffer(base64.b64decode(record["out"]), kind.result_dtype).reshape(len(rows), len(columns))
    best = None
    for mode in (kind.mode, *other_modes(kind)):
        found = products.judged(kind, a, b, splits, out, mode)
        least = min(found, key=lambda x: x[0])
        if best is None or least[0] < best[2]:
            fitting = [text for differing, text in found if differing == 0]
            following = min((differing for differing, _ in found if differing), default="")
            best = (out.size, mode or "exact", least[0], following, least[1], "|".join(fitting))
        if best[2] == 0:
            break
    return [*(record[x] for x in CASE), splits, *best]


def step_replay(tables, clock, jobs):
    clock.check()
    computed = [r for r in tables.products.records() if r["out"] not in ("failed", "refused")]
    left = [r for r in computed if not tables.replays.has(*[r[x] for x in CASE])]
    if not left:
        return
    if importlib.util.find_spec("numsim") is None:
        raise Unfinished("needs the package numsim; run --steps replay,publish,summary where it is")
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
    try:
        for row in pool.map(replayed, left):
            tables.replays.add(*row)
            clock.check()
    finally:
        pool.shutdown(cancel_futures=True)


# ---- Program ----


def stored_environment(folder, library):
    """Returns the environment of the results in the folder, which must be that of the library, if one is given."""
    path = folder / "environment.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    if library is None:
        return stored
    found = library.environment()
    stored = stored or {"environment": found, "notes": {}}
    if any(stored["environment"][x] != found[x] for x in ("cublaslt", "card")):
        raise SystemExit(f"{path}: holds results of {stored['environment']}, and this is {found}: give another folder")
    if stored["environment"] != found:  # another driver, say
        stored["notes"]["continued-with"] = found
    return stored


def store_environment(folder, stored):
    path = folder / "environment.json"
    path.with_suffix(".new").write_text(json.dumps(stored, indent=1) + "\n")
    os.replace(path.with_suffix(".new"), path)


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the results")
    parser.add_argument("--steps", default=",".join(STEPS), help="steps, separated by commas (all)")
    parser.add_argument("--limit-seconds", type=float, default=1e9, help="stop after this time (none)")
    parser.add_argument("--library", help="path of libcublasLt (the one that PyTorch loads)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of the replay (number of cores)")
    parser.add_argument("--dry", action="store_true", help="a small study of a stand-in, without a device")
    options = parser.parse_args(arguments)
    options.steps = options.steps.split(",")
    for step in options.steps:
        if step not in STEPS:
            parser.error(f"--steps: expected some of {', '.join(STEPS)}, found {step!r}")
    return options


def main(arguments=None):
    options = parsed(arguments)
    clock = Clock(options.limit_seconds)
    options.out.mkdir(parents=True, exist_ok=True)
    study = SMALL if options.dry else FULL
    library = None
    if set(options.steps) & set(DEVICE_STEPS):
        library = StandIn() if options.dry else Library(options.library)
    stored = stored_environment(options.out, library)
    store_environment(options.out, stored)
    tables, finished = Tables(options.out), True
    try:
        for step in options.steps:
            begin = time.monotonic()
            try:
                if step in DEVICE_STEPS:
                    globals()[f"step_{step}"](study, library, tables, clock, stored["notes"])
                elif step == "replay":
                    step_replay(tables, clock, options.jobs)
                elif step == "publish":
                    published.write(tables, options.out / "published")
                print(f"{step}: {time.monotonic() - begin:.1f} s", flush=True)
            except Unfinished as reason:
                finished = False
                print(f"{step}: {reason}", flush=True)
    finally:
        tables.flush()
        if library is not None:
            refusals = stored["notes"].setdefault("refusals", {})
            refusals.update({text: refusals.get(text, 0) + count for text, count in library.refusals.items()})
        store_environment(options.out, stored)
    text = summary(tables, stored.get("environment", {}), stored.get("notes", {}))
    (options.out / "summary.txt").write_text(text)
    print(text, end="")
    return 0 if finished else 3


if __name__ == "__main__":
    sys.exit(main())
