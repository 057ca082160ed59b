"""Reading results."""

import csv
import gzip
import hashlib
import json

import numpy as np
import pytest

import numsim as ns


def write(path, outputs=()):
    (path / "a.csv").write_text('name,n,x\n"one, two",1,0.5\nthree,2,\n', encoding="utf-8")
    (path / "settings.json").write_text('{"experiment": "e", "seeds": 3}', encoding="utf-8")
    listed = [
        {"path": name, "sha256": hashlib.sha256((path / name).read_bytes()).hexdigest()}
        for name in outputs
    ]
    (path / "manifest.json").write_text(json.dumps({"outputs": listed}), encoding="utf-8")


def test_columns_have_the_types_of_their_cells(tmp_path):
    write(tmp_path)
    run = ns.results.read(tmp_path)
    table = run.table("a")
    assert list(table) == ["name", "n", "x"] and len(table) == 2
    assert table["name"].tolist() == ["one, two", "three"]
    assert table["n"].dtype == np.int64 and table["x"].dtype == np.float64
    assert table["x"][0] == 0.5 and np.isnan(table["x"][1])
    assert table.where(n=2)["name"].tolist() == ["three"]
    assert run.settings["seeds"] == 3 and run.tables == ["a"]


def test_a_file_that_differs_from_the_manifest_is_named(tmp_path):
    write(tmp_path, ["a.csv"])
    run = ns.results.read(tmp_path)
    run.verify()
    (tmp_path / "a.csv").write_text("name\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.csv: differs from the manifest"):
        run.verify()
    (tmp_path / "a.csv").unlink()
    with pytest.raises(ValueError, match=r"a\.csv: missing"):
        run.verify()


def test_compressed_tables_are_read_and_verified(tmp_path):
    write(tmp_path, ["a.csv"])
    expected = ns.results.read(tmp_path).table("a")
    plain = (tmp_path / "a.csv").read_bytes()
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(plain))
    with pytest.raises(ValueError, match=r"a\.csv\.gz: is there beside a\.csv"):
        ns.results.read(tmp_path).table("a")
    (tmp_path / "a.csv").unlink()
    run = ns.results.read(tmp_path)
    run.verify()
    assert run.tables == ["a"] and repr(run.table("a")) == repr(expected)
    assert run.table("a")["name"].tolist() == ["one, two", "three"]
    whole = packed.read_bytes()
    for damaged in (whole[:-3], whole[:5], whole[:20] + b"\xff\xff" + whole[22:], b"a,b\n"):
        packed.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a\.csv\.gz: damaged"):
            run.table("a")
    packed.write_bytes(gzip.compress(plain + b"four,4,4\n"))
    with pytest.raises(ValueError, match=r"a\.csv: differs from the manifest"):
        run.verify()


def test_bad_directories_and_tables_are_named(tmp_path):
    with pytest.raises(ValueError, match="no results"):
        ns.results.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        ns.results.read(tmp_path / "none")
    write(tmp_path)
    run = ns.results.read(tmp_path)
    with pytest.raises(ValueError, match="no table 'b'; it has a"):
        run.table("b")
    with pytest.raises(ValueError, match="no column 'y'; it has name, n, x"):
        run.table("a").where(y=1)
    (tmp_path / "a.csv").write_text("x,y\n1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="record 2 has 1 cells, not 2"):
        run.table("a")


def test_every_committed_result_is_read(source_dir):
    directories = {path.parent for path in (source_dir / "experiments/published").rglob("settings.json")}
    assert len(directories) > 20
    for directory in directories:
        run = ns.results.read(directory)
        assert run.settings["experiment"]
        for name in run.tables:
            path = directory / f"{name}.csv.gz"
            opened = gzip.open if path.exists() else open
            path = path if path.exists() else directory / f"{name}.csv"
            with opened(path, "rt", encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
            table = run.table(name)
            assert list(table) == rows[0] and len(table) == len(rows) - 1
            for i, column in enumerate(table.values()):
                for value, row in zip(column.tolist(), rows[1:]):
                    if isinstance(value, float) and row[i]:
                        assert value == float(row[i]) or np.isnan(value)
                    elif isinstance(value, str):
                        assert value == row[i]


def test_pandas_gets_a_frame(source_dir):
    pytest.importorskip("pandas")
    run = ns.results.read(source_dir / "experiments/published/moment-formats/small")
    frame = run.table("final").frame()
    assert frame["valid_loss"].dtype == np.float64 and len(frame) == len(run.table("final"))


def settings_table(tmp_path):
    """A table as a sweep over epsilon writes it."""
    (tmp_path / "pairs.csv").write_text(
        "v,update_from,epsilon,gap,seeds,limit\n"
        "e4m3fn,fresh_m,1e-05,0.25,3,none\n"
        "e5m2,stored,1e-05,-0.012345,3,0.1\n"
        "e5m2,stored,1e-08,,2,0.10\n",
        encoding="utf-8",
    )
    return ns.results.read(tmp_path).table("pairs")


@pytest.mark.parametrize(
    "value", [1e-5, "1e-5", "1E-05", "0.00001", np.float32(1e-5), np.float64(1e-5)]
)
def test_where_compares_numbers_however_they_are_written(tmp_path, value):
    table = settings_table(tmp_path)
    assert table.where(epsilon=value)["v"].tolist() == ["e4m3fn", "e5m2"]
    assert len(table.where(epsilon=value, v="e5m2")) == 1


def test_where_finds_numbers_among_texts_and_empty_cells(tmp_path):
    table = settings_table(tmp_path)
    assert table.where(limit=0.1)["epsilon"].tolist() == [1e-5, 1e-8]
    assert len(table.where(limit="0.1")) == 2
    assert len(table.where(limit="none")) == 1
    assert table.where(gap=np.nan)["epsilon"].tolist() == [1e-8]
    assert len(table.where(seeds="2")) == 1


@pytest.mark.parametrize(
    ("column", "value", "error", "message"),
    [
        ("epsilon", "1e-5x", ValueError, "pairs: epsilon: expected a number"),
        ("epsilon", "", ValueError, "pairs: epsilon: expected a number"),
        ("v", 3, ValueError, "pairs: v: expected a text, such as 'e4m3fn', 'e5m2', found 3"),
        ("v", True, TypeError, "pairs: v: expected a number or a text, found True"),
        ("seeds", [2, 3], TypeError, "pairs: seeds: expected a number or a text"),
        ("v", None, TypeError, "found None"),
    ],
)
def test_where_refuses_a_value_that_the_column_cannot_have(tmp_path, column, value, error, message):
    with pytest.raises(error, match=message):
        settings_table(tmp_path).where(**{column: value})


def test_latex_escapes_texts_and_shows_small_numbers(tmp_path):
    table = settings_table(tmp_path)
    assert table.to_latex(["update_from", "epsilon", "gap", "seeds"]) == (
        "\\begin{tabular}{lrrr}\n"
        "\\toprule\n"
        "update\\_from & epsilon & gap & seeds \\\\\n"
        "\\midrule\n"
        "fresh\\_m & $10^{-5}$ & $0.250$ & $3$ \\\\\n"
        "stored & $10^{-5}$ & $-0.0123$ & $3$ \\\\\n"
        "stored & $10^{-8}$ & -- & $2$ \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )
    assert "-0.01235" in table.to_latex(["gap"], digits=4)
    with pytest.raises(ValueError, match="no column 'x'; it has v, update_from"):
        table.to_latex(["x"])
    with pytest.raises(ValueError, match="digits: expected a whole number from 1, found 0"):
        table.to_latex(digits=0)
    special = ns.results.Table("t", {"x": np.array(["a\\b~^<>|&%$#_{}"])})
    assert (
        r"a\textbackslash{}b\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}"
        r"\textbar{}\&\%\$\#\_\{\}"
    ) in special.to_latex()
    numbers = ns.results.Table("t", {"x": np.array([1.5e-7, np.inf, 0.001, -1e-9])})
    assert [line for line in numbers.to_latex().splitlines() if "$" in line] == [
        r"$1.5 \times 10^{-7}$ \\",
        r"$\infty$ \\",
        r"$0.001$ \\",
        r"$-10^{-9}$ \\",
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        "{",
        "[]",
        "3",
        '{"outputs": 3}',
        '{"outputs": [3]}',
        '{"outputs": [{}]}',
        "[" * 100_000,
        '{"outputs": [{"path": "a.csv"}]}',
        '{"outputs": [{"path": 3, "sha256": "x"}]}',
        '{"outputs": [{"path": "a.csv", "sha256": null}]}',
        '{"a": 1}',
        "\x00",
        '"a"',
        '{"outputs": [{"path": "a\\u0000b", "sha256": "x"}]}',
        '{"outputs": [{"path": ".", "sha256": "x"}]}',
        '{"outputs": [{"path": "none/\\ud800", "sha256": "x"}]}',
    ],
)
def test_a_damaged_manifest_is_a_value_error(manifest, tmp_path):
    write(tmp_path, ["a.csv"])
    (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(ValueError, match=r"manifest\.json|missing"):
        ns.results.read(tmp_path).verify()


def test_bytes_of_a_manifest_that_are_no_text(tmp_path):
    write(tmp_path, ["a.csv"])
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match=r"manifest\.json: no JSON"):
        ns.results.read(tmp_path)
