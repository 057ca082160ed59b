#!/usr/bin/env python3
"""Checks experiments/published and the size of docs.

  check_published.py ROOT         prints FILE: problem for each; exits 1 when there is one
  check_published.py --self-test  publishes a run in a temporary tree by experiments/published/add, then
                                  plants faults and checks that each is found

runs.csv lists every run once, with a page; a run has settings, a summary and verdicts. A table of more
than 32 KiB is compressed, without name and time; others are not. docs has no tables, and less than 4 MiB.
"""

import csv
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = "experiments/published"
PLAIN = {"settings.json", "summary.txt", "verdicts.csv"}
LARGE = 32 * 1024
DOCS_LIMIT = 4 * 1024 * 1024
# Magic, deflate, no flags, no time; the next byte is the level of compression.
GZIP_HEADER = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0])


def problems_of_list(root):
    folder = root / FOLDER
    with open(folder / "runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if rows[:1] != [["directory", "page"]]:
        yield "runs.csv: expected the columns directory and page"
        return
    listed = [row[0] for row in rows[1:]]
    for name in sorted(set(listed)):
        if listed.count(name) > 1:
            yield f"runs.csv: lists {name} twice"
    for name, page in rows[1:]:
        if not (root / page).is_file():
            yield f"runs.csv: {name}: no page {page}"
        for file in sorted(PLAIN):
            if not (folder / name / file).is_file():
                yield f"{name}/{file}: missing, and {name} is in runs.csv"
    found = {path.parent.relative_to(folder).as_posix() for path in folder.rglob("settings.json*")}
    for name in sorted(found - set(listed)):
        yield f"{name}: not in runs.csv"


def problems_of_tables(root):
    folder = root / FOLDER
    for path in sorted(folder.rglob("*.csv")):
        if path.name not in PLAIN and path.stat().st_size > LARGE:
            yield f"{path.relative_to(folder)}: large and not compressed; run {FOLDER}/add --pack"
    for path in sorted(folder.rglob("*.gz")):
        name = path.relative_to(folder)
        content = path.read_bytes()
        if path.suffixes[-2:] != [".csv", ".gz"] or path.stem in PLAIN:
            yield f"{name}: expected no compressed file but tables"
        if path.with_suffix("").exists():
            yield f"{name}: is there beside {path.stem}"
        if not content.startswith(GZIP_HEADER):
            yield f"{name}: expected gzip without name and time"
            continue
        try:
            if len(gzip.decompress(content)) <= LARGE:
                yield f"{name}: compressed, and not large"
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            yield f"{name}: damaged: {error}"


def problems_of_docs(root):
    files = [path for path in (root / "docs").rglob("*") if path.is_file()]
    for path in files:
        if path.suffix in (".csv", ".gz"):
            yield f"{path.relative_to(root)}: expected no tables in docs"
    size = sum(path.stat().st_size for path in files)
    if size > DOCS_LIMIT:
        yield f"docs: {size} bytes, expected at most {DOCS_LIMIT}"


def check(root):
    return [*problems_of_list(root), *problems_of_tables(root), *problems_of_docs(root)]


def write_run(folder):
    """Writes what a finished `numsim run` has: a large table, a small one, times, a figure."""
    rows = "".join(f"{i},{i * i}\n" for i in range(4000))
    files = {
        "settings.json": '{"experiment": "e"}\n',
        "summary.txt": "e\n",
        "verdicts.csv": "claim,verdict\n",
        "large.csv": "i,square\n" + rows,
        "small.csv": "i\n1\n",
        "times.csv": "seconds\n1\n",
        "figure.svg": "<svg/>\n",
    }
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    outputs = [
        {"path": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in files.items()
    ]
    (folder / "manifest.json").write_text(json.dumps({"outputs": outputs}))


def make_tree(root):
    """A repository with a published run and a result directory."""
    published = root / FOLDER
    published.mkdir(parents=True)
    (root / "docs/figures").mkdir(parents=True)
    (root / "docs/page.md").write_text("A page.\n")
    (published / "runs.csv").write_text("directory,page\n")
    shutil.copy(ROOT / FOLDER / "add", published / "add")
    write_run(root / "results/run")


def add(root, *arguments):
    """Runs the command; returns (exit status, what it says)."""
    done = subprocess.run(
        [sys.executable, root / FOLDER / "add", *arguments], capture_output=True, text=True, cwd=root
    )
    return done.returncode, done.stdout + done.stderr


def replace(path, text):
    path.write_text(text)


# Each plants one fault below the folder of published runs.
FAULTS = {
    "a run that is not listed": lambda d: shutil.copytree(d / "group/run", d / "other"),
    "a run listed twice": lambda d: replace(d / "runs.csv", (d / "runs.csv").read_text() + "group/run,docs/page.md\n"),
    "a run that is missing": lambda d: shutil.rmtree(d / "group"),
    "no verdicts": lambda d: os.remove(d / "group/run/verdicts.csv"),
    "no page": lambda d: os.remove(d.parent.parent / "docs/page.md"),
    "no header": lambda d: replace(d / "runs.csv", "group/run,docs/page.md\n"),
    "a large table": lambda d: replace(d / "group/run/t.csv", "i\n" * 20000),
    "a table twice": lambda d: replace(d / "group/run/large.csv", "i\n"),
    "a time in gzip": lambda d: (d / "group/run/t.csv.gz").write_bytes(gzip.compress(b"i\n" * 20000, mtime=1)),
    "a small table compressed": lambda d: (d / "group/run/t.csv.gz").write_bytes(gzip.compress(b"i\n", mtime=0)),
    "a damaged table": lambda d: (d / "group/run/large.csv.gz").write_bytes(
        (d / "group/run/large.csv.gz").read_bytes()[:-9]
    ),
    "compressed settings": lambda d: (d / "group/run/settings.json.gz").write_bytes(
        gzip.compress(b" " * 40000, mtime=0)
    ),
    "a table in docs": lambda d: replace(d.parent.parent / "docs/t.csv", "i\n"),
    "large docs": lambda d: replace(d.parent.parent / "docs/figures/f.svg", "x" * DOCS_LIMIT),
}

PUBLISH = ("results/run", "group/run", "docs/page.md", "--without", "times")


def change_results(root):
    replace(root / "results/run/small.csv", "i\n2\n")


# What `add` refuses: (change of the tree, arguments, words of the message).
REFUSED = [
    (None, ("results/none", "a", "docs/page.md"), "results/none: expected the finished results"),
    (None, ("results/run", "a", "docs/none.md"), "docs/none.md: no such page"),
    (None, ("results/run", "../a", "docs/page.md"), "../a: expected folders of letters"),
    (None, ("results/run", "a", "docs/page.md", "--without", "time"), "no table time; there are large"),
    (None, ("results/run", "group/run", "docs/page.md"), "published already"),
    (change_results, ("results/run", "a", "docs/page.md"), "small.csv: differs from manifest.json"),
    (None, ("results/run", "a"), "add RESULTS NAME PAGE"),
]


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, plant in {"nothing": lambda d: None, **FAULTS}.items():
            root = pathlib.Path(temporary, name.replace(" ", "-"))
            make_tree(root)
            status, said = add(root, *PUBLISH)
            if status != 0 or check(root):
                failures.append(f"add: {said} {check(root)}")
                break
            plant(root / FOLDER)
            if bool(check(root)) != (name != "nothing"):
                failures.append(f"not found: {name}")
        root = pathlib.Path(temporary, "nothing")
        run = root / FOLDER / "group/run"
        names = sorted(path.name for path in run.iterdir())
        if names != ["large.csv.gz", "settings.json", "small.csv", "summary.txt", "verdicts.csv"]:
            failures.append(f"add: published {names}")
        large = (root / "results/run/large.csv").read_bytes()
        first = (run / "large.csv.gz").read_bytes()
        if gzip.decompress(first) != large:
            failures.append("add: another table")
        shutil.copy(root / "results/run/large.csv", run)
        os.remove(run / "large.csv.gz")
        if add(root, "--pack")[0] != 0 or (run / "large.csv.gz").read_bytes() != first or check(root):
            failures.append("add --pack: other bytes")
        before = (root / FOLDER / "runs.csv").read_text()
        for change, arguments, words in REFUSED:
            if change is not None:
                change(root)
            status, said = add(root, *arguments)
            if status != 2 or words not in said or (root / FOLDER / "a").exists():
                failures.append(f"add {' '.join(arguments)}: {status}, {said}")
        if (root / FOLDER / "runs.csv").read_text() != before:
            failures.append("add: lists what it refuses")
    count = len(FAULTS) + len(REFUSED) + 3
    print("\n".join([*failures, f"{count - len(failures)} of {count} cases as expected"]))
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    problems = check(pathlib.Path(arguments[0]))
    print("\n".join([*(f"{FOLDER}: {problem}" for problem in problems), f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
