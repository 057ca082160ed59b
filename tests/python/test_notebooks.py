"""The notebooks: what their cells may do, that they run, and that they notice changed results."""

import ast
import base64
import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

HEADLINES = {  # notebook: directory below experiments/published and claim that its last cell derives
    "formats_and_rounding": ("update-fidelity", "worked-example"),
    "why_stochastic_rounding": ("update-fidelity", "stochastic-works-longer"),
    "inner_dimension": ("quantization-variance", "drowns-int8"),
    "fp8_moments": ("moment-formats/zipf", "v-e4m3-fails"),
    "small_updates": ("update-convergence", "norm-falls-behind"),
}
COMPUTE = ("formats_and_rounding", "why_stochastic_rounding")  # they may round numbers
SECONDS = 60  # for all notebooks together

# Names of modules that a notebook may import, and attributes that no notebook may use: they compute
# experiments, start programs, or read and write files in other ways than `published`.
MODULES = {"matplotlib", "matplotlib.pyplot", "numpy", "published"}
ATTRIBUTES = {
    "run",
    "system",
    "popen",
    "results",
    "load",
    "loadtxt",
    "genfromtxt",
    "fromfile",
    "save",
    "savez",
    "savetxt",
    "savefig",
    "tofile",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "Optimizer",
    "Moments",
    "ctypeslib",
}
NAMES = {"open", "exec", "eval", "compile", "__import__", "getattr", "globals", "vars"}

# Runs a program without a network.
OFFLINE = """
import runpy, socket, sys
class Refused(socket.socket):
    def __init__(self, *_, **__):
        raise OSError("a notebook uses no network")
def refuse(*_, **__):
    raise OSError("a notebook uses no network")
socket.socket, socket.create_connection, socket.getaddrinfo = Refused, refuse, refuse
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def cells(text):
    """Yields (kind, source) of each cell in jupytext's percent format; the header is no cell."""
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        mark, _, body = part.partition("\n")
        body = body.strip("\n")
        if mark.strip() == "[markdown]":
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        else:
            yield "code", body


def faults(text, may_compute):
    """Returns what a notebook must not do and does."""
    found = []
    modules = MODULES | ({"numsim"} if may_compute else set())
    for source in (source for kind, source in cells(text) if kind == "code"):
        magics = re.findall(r"^\s*(?:# ?)?([!%]\S.*)", source, re.MULTILINE)
        if magics:  # jupytext comments them out
            found += [f"magic {line}" for line in magics]
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found += [f"import {name.name}" for name in node.names if name.name not in modules]
            elif isinstance(node, ast.ImportFrom):
                found.append(f"from {node.module} import")
            elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
                found.append(f".{node.attr}")
            elif isinstance(node, ast.Name) and node.id in NAMES:
                found.append(node.id)
    return found


def is_assertion(node):
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Assert) or called.startswith("np.testing.assert_")


@pytest.fixture(scope="module")
def folder(source_dir):
    return source_dir / "notebooks"


def execute(folder, name, seconds=SECONDS):
    """Runs a notebook as a program, without display and network."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", OFFLINE, f"{name}.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


@pytest.fixture
def copy(source_dir, tmp_path):
    """The notebooks and the results that they read, to be changed."""
    pytest.importorskip("matplotlib")
    shutil.copytree(
        source_dir / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns("*.ipynb")
    )
    lines = (source_dir / "notebooks/results.sha256").read_text().splitlines()
    for directory in {line.split("  ", 1)[1].rpartition("/")[0] for line in lines}:
        shutil.copytree(source_dir / directory, tmp_path / directory)
    return tmp_path


def test_the_notebooks_are_those_that_are_tested(folder):
    found = {
        path.stem for path in folder.glob("*.py") if "\n# %%" in path.read_text(encoding="utf-8")
    }
    assert found == set(HEADLINES)


@pytest.mark.parametrize("name", HEADLINES)
def test_a_notebook_reads_and_does_not_recompute(folder, name):
    text = (folder / f"{name}.py").read_text(encoding="utf-8")
    assert not faults(text, name in COMPUTE)
    code = [source for kind, source in cells(text) if kind == "code"]
    assert "published.read(" in code[0]
    assert any(is_assertion(node) for node in ast.walk(ast.parse(code[-1])))


@pytest.mark.parametrize(
    "line",
    [
        "ns.run('moment-formats')",
        "import subprocess",
        "import os\nos.system('numsim run')",
        "!ls",
        "# !numsim run x",
        "%timeit x",
        "# %run x.py",
        "%%bash\nls",
        "import urllib.request",
        "from socket import socket",
        "import requests as np",
        "ns.results.read('experiments/published')",
        "open('x')",
        "np.save('x', 1)",
        "__import__('os')",
        "import numsim as ns",
    ],
)
def test_what_a_notebook_must_not_do_is_found(line):
    assert faults(f"# %%\n{line}\n", may_compute=False)


def test_the_notebooks_run_offline_and_print_what_the_executed_ones_show(folder):
    pytest.importorskip("matplotlib")
    end = time.monotonic() + SECONDS
    for name in HEADLINES:
        result = execute(folder, name, end - time.monotonic())
        assert result.returncode == 0, f"{name}:\n{result.stderr}"
        shown = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
        streams = [
            "".join(output["text"])
            for cell in shown["cells"]
            for output in cell.get("outputs", [])
            if output["output_type"] == "stream"
        ]
        assert result.stdout == "".join(streams), f"{name}: run notebooks/execute again"


@pytest.mark.parametrize("name", HEADLINES)
def test_an_executed_notebook_has_the_cells_of_its_source(folder, name):
    path = folder / f"{name}.ipynb"
    assert path.stat().st_size < 300_000
    executed = json.loads(path.read_text(encoding="utf-8"))
    text = (folder / f"{name}.py").read_text(encoding="utf-8")
    own = [(cell["cell_type"], "".join(cell["source"])) for cell in executed["cells"]]
    assert own == list(cells(text)), "run notebooks/execute again"
    for kind, source in cells(text):
        assert kind == "markdown" or ast.parse(source)
    for cell in executed["cells"]:
        kinds = [output["output_type"] for output in cell.get("outputs", [])]
        assert set(kinds) <= {"stream", "display_data"}
        pngs = [
            o["data"]["image/png"]
            for o in cell.get("outputs", [])
            if o["output_type"] == "display_data"
        ]
        assert len(pngs) == ("plt.subplots" in "".join(cell["source"]))
        assert all(base64.b64decode(png).startswith(b"\x89PNG") for png in pngs)


@pytest.mark.parametrize("name", HEADLINES)
def test_a_changed_result_stops_the_first_cell(copy, name):
    with open(copy / "experiments/published" / HEADLINES[name][0] / "summary.txt", "a") as file:
        file.write("\n")
    result = execute(copy / "notebooks", name)
    assert result.returncode != 0 and result.stdout == ""
    assert "summary.txt: SHA-256 differs from results.sha256" in result.stderr


@pytest.mark.parametrize("name", HEADLINES)
def test_another_published_number_stops_the_last_cell(copy, name):
    directory, claim = HEADLINES[name]
    path = copy / "experiments/published" / directory / "verdicts.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["claim"].endswith(f"/{claim}"):
            row["verdict"] = {"exact: holds": "exact: refuted"}.get(row["verdict"], row["verdict"])
            row["estimate"] = row["estimate"] and float(row["estimate"]) * 1.001
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    subprocess.run([sys.executable, copy / "notebooks/published.py"], check=True)
    result = execute(copy / "notebooks", name)
    assert result.returncode != 0 and "AssertionError" in result.stderr
    text = (copy / f"notebooks/{name}.py").read_text(encoding="utf-8")
    last = text[: text.rindex("\n# %%\n")].count("\n")
    lines = [int(line) for line in re.findall(rf'File "{name}\.py", line (\d+)', result.stderr)]
    assert lines and lines[-1] > last


def test_the_sums_are_those_that_the_command_writes(copy, folder):
    subprocess.run([sys.executable, copy / "notebooks/published.py"], check=True)
    sums = "results.sha256"
    assert (copy / "notebooks" / sums).read_bytes() == (folder / sums).read_bytes()


def test_a_changed_compressed_table_is_named(copy, monkeypatch):
    monkeypatch.syspath_prepend(copy / "notebooks")
    monkeypatch.delitem(sys.modules, "published", raising=False)
    import published

    monkeypatch.delitem(sys.modules, "published")
    directory = "experiments/published/update-fidelity"
    path = copy / directory / "fidelity.csv.gz"
    table = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(table, 1))  # other bytes of the same table
    published.read(directory)
    path.write_bytes(gzip.compress(table.replace(b"1", b"2", 1)))
    with pytest.raises(AssertionError, match="fidelity.csv: SHA-256 differs"):
        published.read(directory)


def test_missing_and_new_files_are_named(copy, monkeypatch):
    monkeypatch.syspath_prepend(copy / "notebooks")
    monkeypatch.delitem(sys.modules, "published", raising=False)
    import published

    monkeypatch.delitem(sys.modules, "published")
    directory = "experiments/published/update-fidelity"
    assert published.read(directory).settings["seeds"] == 5
    (copy / directory / "new.csv").write_text("x\n1\n")
    with pytest.raises(AssertionError, match="new.csv: not in results.sha256"):
        published.read(directory)
    (copy / directory / "new.csv").unlink()
    (copy / directory / "settings.json").unlink()
    with pytest.raises(AssertionError, match="settings.json: missing"):
        published.read(directory)
    with pytest.raises(AssertionError, match="experiments/published: not in results.sha256"):
        published.read("experiments/published")


# Results of the reader's own, with one format of those of the published results: the notebook, the
# directory that they replace, how it is read, the column and the values that are kept.
OWN = [
    ("small_updates", "update-fidelity", '"experiments/published/{}"', "format", {"e4m3fn", "", "fp16"}),
    ("why_stochastic_rounding", "update-fidelity", '"experiments/published/{}"', "format", {"fp16", ""}),
    ("inner_dimension", "quantization-variance", '"experiments/published/{}"', "format", {"e4m3fn", "int8"}),
    ("fp8_moments", "moment-formats/zipf", 'f"experiments/published/moment-formats/{{name}}"', "v", {"e5m2"}),
]


@pytest.mark.parametrize(("name", "directory", "read", "column", "kept"), OWN)
def test_a_notebook_shows_own_results(copy, name, directory, read, column, kept):
    own = copy / "mine"
    shutil.copytree(copy / "experiments/published" / directory, own)
    for path in own.glob("*.csv.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    for path in own.glob("*.csv"):
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if path.stem == "verdicts" or not rows or column not in rows[0]:
            continue
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(row for row in rows if row[column] in kept | {"fp32"})
    source = copy / "notebooks" / f"{name}.py"
    text = source.read_text(encoding="utf-8")
    read = read.format(directory)
    chosen = 'own="mine" if name == "zipf" else None' if name == "fp8_moments" else 'own="mine"'
    assert f"published.read({read})" in text
    text = text.replace(f"published.read({read})", f"published.read({read}, {chosen})")
    source.write_text(text[: text.rindex("\n# %%\n")], encoding="utf-8")  # without the last cell
    result = execute(copy / "notebooks", name)
    assert result.returncode == 0, result.stderr
    assert f"mine: own results; the text is about experiments/published/{directory}" in result.stdout


def test_own_results_of_another_experiment_are_refused(copy, monkeypatch):
    monkeypatch.syspath_prepend(copy / "notebooks")
    monkeypatch.delitem(sys.modules, "published", raising=False)
    import published

    monkeypatch.delitem(sys.modules, "published")
    with pytest.raises(AssertionError, match="results of update-convergence, not of update-fidel"):
        published.read("experiments/published/update-fidelity", own="experiments/published/update-convergence")
