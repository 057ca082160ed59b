"""The study of cuBLASLt's plans on a stand-in whose rules are known, and its constants against CUDA's headers."""

import csv
import ctypes
import gzip
import os
import re
import shutil
import sys
import warnings
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
import cublaslt_plans as study  # noqa: E402
from cublaslt import embedded, library, products, tables  # noqa: E402
from cublaslt.published import PLAN as PUBLISHED_PLAN  # noqa: E402
from cublaslt.stand_in import PLANTED  # noqa: E402

FLOATS = tuple(kind for kind in products.KINDS if kind != "int8-int32")
NAMES = ("algorithms", "plans", "products", "scan", "tails", "replays")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    assert study.main([str(folder), "--dry", "--jobs", "1"]) == 0
    return folder


def text_of(folder, name):
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        return file.read()


def rows_of(folder, name):
    return list(csv.DictReader(text_of(folder, name).splitlines()))


def fitting(row):
    """{"rule:tile order"} of a row of replays."""
    found = set()
    for text in filter(None, row["fitting"].split("|")):
        names, _, way = text.partition(" ")
        found |= {f"{name} {way}".strip() for name in names.split("=")}
    return found


@pytest.mark.parametrize("name", products.KINDS)
def test_the_planted_rule_fits_every_split_product_and_others_do_not(out, name):
    rule, tile, order, rounded = PLANTED[name]
    text = f"{rule}:{tile}"
    if name != "int8-int32":
        text += f" {order}" + (" of rounded parts" if rounded else "")
    rows = [r for r in rows_of(out, "replays") if r["kind"] == name and int(r["split"]) > 1]
    forced = 0 if name == "int8-int32" else 3 * len(study.SMALL.forced_case[3])
    assert len(rows) == study.SMALL.cases[0] + forced
    assert all(r["differing"] == "0" and r["mode"] == (products.KINDS[name].mode or "exact") for r in rows)
    common = set.intersection(*map(fitting, rows))
    assert text in common
    for other in products.RULES:
        if other != rule and not {other, rule} <= {"contiguous", "by-length", "balanced", "whole-tiles"}:
            assert not any(x.startswith(f"{other}:") for x in common)
    if rule == "by-length":  # a forced split of the study loses products
        assert not any(x.startswith("contiguous:") for x in common)
    if name == "int8-int32":  # a dropped tail is seen in random operands, too
        assert all(x.startswith("whole-tiles:") for x in common)


def test_unsplit_products_are_one_accumulator(out):
    rows = [r for r in rows_of(out, "replays") if int(r["split"]) == 1]
    assert len(rows) == len(products.KINDS) * study.SMALL.cases[1]
    assert all("unsplit" in fitting(r) for r in rows)


def test_planted_losses_of_the_last_products_are_found_and_no_others(out):
    lost = {kind: 0 for kind in products.KINDS}
    for row in rows_of(out, "tails"):
        if row["missing"] == "refused":
            assert int(row["splits"]) > 32
            continue
        inner, splits, (rule, tile, _, _) = int(row["K"]), int(row["split"]), PLANTED[row["kind"]]
        held = inner
        if splits > 1 and rule == "by-length":
            held = min(inner, splits * -(-(inner // splits) // tile) * tile)
        elif splits > 1 and rule == "whole-tiles":
            held = inner - inner % tile
        granules = max(1, int(row["M"]) - 1) * products.KINDS[row["kind"]].granule
        assert float(row["missing"]) == min(inner - held, granules), row
        if splits > 1 and rule == "by-length":
            assert int(row["predicted"]) == inner - held
        lost[row["kind"]] += held < inner
    for kind, (rule, *_) in PLANTED.items():
        assert (lost[kind] > 0) == (rule in ("by-length", "whole-tiles")), kind


def test_a_product_that_follows_no_rule_fits_no_hypothesis(out):
    record = dict(rows_of(out, "products")[0])
    kind = products.KINDS[record["kind"]]
    codes = study.np.frombuffer(study.base64.b64decode(record["out"]), kind.result_dtype).copy()
    codes[len(codes) // 2] ^= 1
    record["out"] = study.base64.b64encode(codes.tobytes()).decode()
    row = dict(zip(tables.Tables(out).replays.columns, study.replayed(record)))
    assert int(row["differing"]) > 0 and row["fitting"] == ""


def test_operands_of_rows_are_those_of_the_whole():
    for kind in products.KINDS.values():
        whole = products.operands(kind, 1040, 7, range(50), range(33))
        some = products.operands(kind, 1040, 7, [0, 3, 8, 49], [5, 32])
        assert (whole[0][[0, 3, 8, 49]] == some[0]).all() and (whole[1][[5, 32]] == some[1]).all()


def test_a_killed_study_continues_with_the_same_results(out, tmp_path):
    assert study.main([str(tmp_path), "--dry", "--jobs", "1", "--limit-seconds", "0"]) == 3
    for name in NAMES:  # a block at the end is cut off, as by a kill
        shutil.copy(out / f"{name}.csv.gz", tmp_path)
    (tmp_path / "environment.json").write_bytes((out / "environment.json").read_bytes())
    table = tables.Tables(tmp_path).tails
    table.add(*["x"] * len(table.columns))
    table.flush()
    for name in ("tails", "replays"):
        path = tmp_path / f"{name}.csv.gz"
        os.truncate(path, path.stat().st_size - 5)
    assert study.main([str(tmp_path), "--dry", "--jobs", "1"]) == 0
    for name in NAMES:
        assert text_of(tmp_path, name) == text_of(out, name), name


def test_results_of_another_library_are_refused(out, tmp_path):
    shutil.copytree(out, tmp_path / "copy")
    path = tmp_path / "copy" / "environment.json"
    path.write_text(path.read_text().replace("0.0.0", "13.1.0"))
    with pytest.raises(SystemExit, match="give another folder"):
        study.main([str(tmp_path / "copy"), "--dry", "--steps", "plans"])


def published(folder, name):
    return rows_of(folder, f"cublaslt-{name}")


def test_published_tables_hold_what_the_study_found(out):
    algorithms = {row["algorithm"]: row for row in rows_of(out, "algorithms")}
    shown = {tuple(row[x] for x in "MNK"): row for row in published(out / "published", "plans")}
    for row in rows_of(out, "plans"):
        other = shown[tuple(row[x] for x in "MNK")]
        for name in list(row)[3:]:
            if row[name] in "-=":
                assert other[name] == row[name]
            else:
                plan = dict(zip(PUBLISHED_PLAN, other[name].split(" ")))
                assert {x: algorithms[row[name].split(" ")[0]][x] for x in plan} == plan
    assert [r["differing"] for r in published(out / "published", "products")] == ["0"] * len(rows_of(out, "products"))
    assert len(published(out / "published", "tails")) == len(rows_of(out, "tails"))


# ---- The tables of the H200, and the page about them ----

CUDA = TOOLS.parents[1] / "experiments" / "published" / "cuda"
PAGE = TOOLS.parents[1] / "docs" / "results" / "library-products.md"


def tile(row):
    return 128 if row["kind"].startswith("e4m3") else 64


def lost(row):
    """The last products that the page says are missing."""
    inner, splits = int(row["K"]), int(row["split"])
    return inner % splits if inner // splits % tile(row) == 0 and row["kind"] != "int8-int32" else 0


def test_every_product_with_a_tail_misses_what_the_page_says():
    rows = published(CUDA, "tails")
    floats = [r for r in rows if r["kind"] != "int8-int32"]
    for row in rows:
        granule = products.KINDS[row["kind"]].granule
        seen = min(lost(row), granule * max(1, int(row["M"]) - 1))
        assert float(row["missing"]) == seen and float(row["missing-rest"] or 0) == 0, row
        if row["torch-missing"]:
            assert float(row["torch-missing"]) == seen, row
    losing = [r for r in rows if lost(r)]
    ran = [r for r in floats if r["torch-missing"]]
    whole = [r for r in floats if int(r["K"]) % tile(r) == 0]
    even = [r for r in floats if int(r["K"]) % int(r["split"]) == 0]
    assert not any(map(lost, whole + even))
    text = " ".join(PAGE.read_text().split())
    for words in (
        f"in each of {len(rows):,} products",
        f"{sum(r['splits'] != '0' for r in rows):,} of them with a forced",
        f"{len(losing):,} lost the products that it names, {len(rows) - len(losing):,} none",
        f"{sum(float(r['torch-missing']) > 0 for r in ran)} of the {len(ran):,} products",
        f"none of {len(whole):,} such products lost any, nor did any of {len(even):,}",
    ):
        assert words in text, words


def test_every_replayed_product_of_the_h200_fits_the_rule_of_the_page():
    rows = published(CUDA, "products")
    floats = [r for r in rows if r["kind"] != "int8-int32"]
    for row in floats:
        expected = f"by-length:{tile(row)} forward" if int(row["split"]) > 1 else "unsplit"
        assert row["differing"] == "0" and expected in fitting(row), row
        assert row["mode"] == products.KINDS[row["kind"]].mode and row["unsteady"] == "0"
    split = [r for r in floats if int(r["split"]) > 1 and r["forced"] == "0"]
    forced = [r for r in floats if r["forced"] != "0"]
    text = " ".join(PAGE.read_text().split())
    for words in (
        f"Each of {len(floats)} products of floats",
        f"all {sum(int(r['elements']) for r in floats):,} results are equal",
        f"{len(floats) - len(split) - len(forced)} products without a split",
        f"{len(split)} that the heuristic splits",
        f"{len(forced)} with forced splits",
        f"{sum(lost(r) > 0 for r in forced)} of these lose products",
    ):
        assert words in text, words


def test_numsim_computes_what_the_h200_computed():
    import numsim as ns

    rows = [r for r in published(CUDA, "products") if r["out"]]
    assert len(rows) >= 20 and sum(lost(r) > 0 for r in rows) == 4 and {r["kind"] for r in rows} == {*FLOATS}
    for row in rows:
        kind, shape = products.KINDS[row["kind"]], tuple(int(row[x]) for x in "MNK")
        seed = study.seed_of(kind, shape, int(row["workspace"]))
        of_rows, of_columns = study.sample_of(shape, seed)
        a, b = products.operands(kind, shape[2], seed, of_rows, of_columns)
        with warnings.catch_warnings():  # of the products that are lost
            warnings.simplefilter("ignore")
            got = ns.matmul(
                ns.Array(a, kind.operand),
                ns.Array(b, kind.operand).T,
                accumulate=kind.mode,
                epilogue="cublaslt",
                split_k=int(row["split"]),
                split_partition="cublaslt",
            )
        codes = study.np.asarray(ns.encode(got, kind.result)).view(kind.result_dtype)
        recorded = study.np.frombuffer(study.base64.b64decode(row["out"]), kind.result_dtype)
        assert products.differing(codes, recorded.reshape(codes.shape), kind.result) == 0, row


def test_the_splits_of_the_page_are_those_of_the_table():
    rows = published(CUDA, "plans")
    lines = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if "MiB | " in line]
    found = 0
    for operand, results, workspace, splits, largest, shortest, most, decoding in lines:
        for result in results.replace("float32", "fp32").split(","):
            name = f"{operand.strip().removesuffix('fn')}-{result.strip()}@"
            plans = []
            for row in rows:
                cell = row[name + workspace.strip().replace(" ", "")]
                cell = row[name + "1MiB"] if cell == "=" else cell
                plans.append((*(int(row[x]) for x in "MNK"), int(cell.split(" ")[PUBLISHED_PLAN.index("split")])))
            parts = [plan for plan in plans if plan[3] > 1]
            decoders = [p for p in plans if p[0] <= 64 and p[1] >= 1024 and p[2] >= 4096]
            assert splits.split() == [str(len(parts)), f"({len(parts) / len(rows):.0%}".replace("%", ""), "%)"]
            assert int(largest.replace(",", "")) == max(m * n for m, n, _, _ in parts)
            assert int(shortest) == min(k for _, _, k, _ in parts) and int(most) == max(s for *_, s in parts)
            assert decoding.split()[0] == str(sum(p[3] > 1 for p in decoders))
            found += 1
    assert found == 14


def test_the_table_of_the_library_is_the_published_one():
    held = TOOLS.parents[1] / "libnumsim" / "numerics" / "numsim" / "gemm" / "internal" / "recorded_splits.inc"
    assert held.read_text() == "\n".join(embedded.table()) + "\n"


def headers():
    for root in (os.environ.get("CUDA_HOME"), "/usr/local/cuda", TOOLS.parents[1] / "build" / "cuda-toolkit"):
        folder = Path(root or "/nowhere") / "include"
        if (folder / "cublasLt.h").exists():
            return "".join((folder / name).read_text() for name in ("cublasLt.h", "cublas_api.h", "library_types.h"))
    pytest.skip("no headers of cuBLASLt here")


def test_constants_and_signatures_are_those_of_the_headers():
    text = headers()
    for name, value in library.CONSTANTS.items():
        assert re.findall(rf"\b{name}\s*=\s*(\d+)", text) == [str(value)], name
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    for name, (_, arguments) in library.SIGNATURES.items():
        parameters = re.search(rf"\b{name}\(([^)]*)\)\s*;", plain).group(1).strip()
        expected = [] if parameters in ("", "void") else parameters.split(",")
        assert len(arguments) == len(expected), name
        for found, parameter in zip(arguments, expected):
            kind = parameter.replace("const", "").split()[0]
            of_four_bytes = kind in ("int", "cublasStatus_t", "cublasComputeType_t", "cudaDataType", "cudaDataType_t")
            pointer = "*" in parameter or "[" in parameter
            size = 4 if not pointer and (of_four_bytes or "Attribute" in kind) else 8
            assert ctypes.sizeof(found) == size, (name, parameter)


def test_the_k_tiles_of_stages_are_those_of_the_headers():
    named = re.findall(r"CUBLASLT_MATMUL_STAGES_(\d+)x\w+\s*=\s*(\d+)", headers())
    assert len(named) >= 36
    assert {int(value): products.tile_of(int(value)) for _, value in named} == {int(v): int(t) for t, v in named}


def test_the_structures_have_the_layout_of_the_headers():
    result = library.HeuristicResult
    assert ctypes.sizeof(result) == 96
    assert [x.offset for x in (result.workspace, result.state, result.waves)] == [64, 72, 76]
    declared = re.search(r"\{([^{}]*)\} cublasLtMatmulHeuristicResult_t;", headers()).group(1)
    members = re.findall(r"^\s*(\w+) \w+(?:\[\d\])?;", re.sub(r"/\*.*?\*/", "", declared, flags=re.S), flags=re.M)
    assert members == ["cublasLtMatmulAlgo_t", "size_t", "cublasStatus_t", "float", "int"]
