"""Published results, read only if they are the files that the notebooks were written about.

python notebooks/published.py writes results.sha256 again, for the same directories.
"""

import gzip
import hashlib
import pathlib
import textwrap

import numsim as ns

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMS = pathlib.Path(__file__).with_name("results.sha256")


def read(directory, own=None):
    """Returns the `ns.results.Results` of a directory, such as "experiments/published/update-fidelity".

    Asserts that its files are those of results.sha256: none is missing, new or changed. With `own`,
    a directory of `numsim run` with the same experiment (relative to the root of the repository), its
    results are returned instead; figures then show the arms that it has, and the text is still about
    the published results.
    """
    if own is not None:
        return _read_own(directory, own)
    lines = (line.split("  ", 1) for line in SUMS.read_text(encoding="utf-8").splitlines())
    listed = {path: digest for digest, path in lines if path.rpartition("/")[0] == directory}
    assert listed, f"{directory}: not in {SUMS.name}"
    found = sums(directory)
    for path in sorted(listed.keys() | found.keys()):
        assert path in found, f"{path}: missing"
        assert path in listed, f"{path}: not in {SUMS.name}"
        assert found[path] == listed[path], f"{path}: SHA-256 differs from {SUMS.name}"
    return ns.results.read(ROOT / directory)


def sums(directory):
    """Returns {path: SHA-256} of the files in a directory: a compressed table has the path and the sum
    of the table itself."""
    found = {}
    for path in (ROOT / directory).iterdir():
        if path.is_file():
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            name = path.name.removesuffix(".gz")
            found[f"{directory}/{name}"] = hashlib.sha256(content).hexdigest()
    return found


def _read_own(directory, own):
    run = ns.results.read(ROOT / own)
    published = ns.results.read(ROOT / directory).settings["experiment"]
    found = run.settings.get("experiment")
    assert found == published, f"{own}: results of {found}, not of {published}"
    print(f"{own}: own results; the text is about {directory}")
    return run


def one_of(table, column, wanted):
    """Returns the wanted value if the column has it, else the first value that it has."""
    return wanted if wanted in table[column] else table[column][0]


def rows(run, claim):
    """Returns the rows of a claim in verdicts.csv as dictionaries, one per contrast."""
    table = run.verdicts.where(claim=f"{run.settings['experiment']}/{claim}")
    assert len(table), f"{run.path}: no claim {claim}"
    return [{name: column[i].item() for name, column in table.items()} for i in range(len(table))]


def size_of(row):
    """Returns the word of a verdict's scale, and the size of the training if there is one."""
    sizes = [str(row[name]) for name in ("parameters", "tokens")]
    if sizes[0] in ("", "nan"):
        return row["word"]
    parameters, tokens = (int(float(size)) for size in sizes)
    return f"{row['word']}, {parameters:,} parameters / {tokens:,} tokens"


def quote(run, *claims):
    """Prints verdict, scale, seeds and contrasts of claims, as verdicts.csv has them."""
    for claim in claims:
        contrasts = rows(run, claim)
        first = contrasts[0]
        exploratory = "" if first["primary"] == "yes" else ", exploratory"
        seeds = f"; {first['seeds']} seeds" if first["seeds"] else ""
        reason = f"; {first['reason']}" if first["reason"] else ""
        scale = f"{size_of(first)}; {first['scale']}"
        show(f"{claim}: {first['verdict']}{exploratory} ({scale}{seeds}{reason})")
        for row in contrasts:
            if row["contrast"]:
                control = "control: " if row["role"] == "control" else ""
                show(
                    f"{control}{row['contrast']}: {row['estimate']:.3g} {row['unit']}, [{row['low']:.3g},"
                    f" {row['high']:.3g}] at {row['confidence']:.0%}, margin {row['margin']:g}",
                    indent="    ",
                )


def show(text, indent=""):
    """Prints a line, wrapped to the width of a page."""
    print(
        textwrap.fill(
            text,
            96,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_on_hyphens=False,
        )
    )


if __name__ == "__main__":
    lines = SUMS.read_text(encoding="utf-8").splitlines()
    directories = dict.fromkeys(line.split("  ", 1)[1].rpartition("/")[0] for line in lines)
    renewed = [item for directory in directories for item in sorted(sums(directory).items())]
    SUMS.write_text("".join(f"{digest}  {path}\n" for path, digest in renewed), encoding="utf-8")
