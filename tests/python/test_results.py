"""Reading results."""

import csv
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
    directories = {path.parent for path in (source_dir / "docs/results").rglob("settings.json")}
    assert len(directories) > 20
    for directory in directories:
        run = ns.results.read(directory)
        assert run.settings["experiment"]
        for name in run.tables:
            with open(directory / f"{name}.csv", encoding="utf-8", newline="") as file:
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
    run = ns.results.read(source_dir / "docs/results/moment-formats/small")
    frame = run.table("final").frame()
    assert frame["valid_loss"].dtype == np.float64 and len(frame) == len(run.table("final"))
