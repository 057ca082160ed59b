#!/usr/bin/env python3
"""Checks that pages say about the papers' claims what the published verdicts say.

  check_verdicts.py ROOT         prints FILE:LINE: problem for each; exits 1 when there is one
  check_verdicts.py --self-test  edits copies of pages and checks that each edit is found

A verdict in a page is in backticks, inside parentheses that name its claims:

  (`naive-threshold`, `same-key-cliff`: `exact: holds`; exploratory `norm-cosine`: `contradicted`,
  mechanism)

Groups are separated by semicolons. A claim is EXPERIMENT/NAME, or NAME alone if one experiment has
it. The verdict is that of `numsim claims`; with "in `RUN`" before the colon, that of the run
experiments/published/RUN. A group says "exploratory" if and only if its claims are. Tables between the
comments of experiments/published are left to the test of published runs.

The scale of each verdict stands in its group: "mechanism", or the word with parameters and tokens,
"toy, 0.14 M / 1.6 M tokens" (docs/verdicts.md). A last group of scales alone is that of all groups of the
parentheses that have none of their own. Exact arithmetic holds at every size, and what is not tested has
none: these verdicts need no scale.

Pages about results use the words supported, contradicted, inconclusive and refuted in no other way.
"""

import csv
import glob
import os
import re
import shutil
import sys
import tempfile

VERDICTS = (
    "supported", "contradicted", "inconclusive", "not tested", "exact: holds", "exact: refuted",
)
# Pages in which the words may only stand as verdicts.
RESULT_PAGES = (
    "README.md", "docs/results.md", "docs/moments.md", "docs/updates.md", "docs/linear.md",
    "docs/swiglu-alignment.md", "docs/results/*.md",
)
DEFINITION = "docs/verdicts.md"  # says what the words mean
PLAIN = re.compile(r"\b(supported|contradicted|inconclusive|refuted)\b")
VERDICT = re.compile("`(" + "|".join(VERDICTS) + ")`")
QUOTED = re.compile(r"`([^`\n]+)`")
PUBLISHED_TABLE = re.compile(r"<!-- verdicts of .*?<!-- end of verdicts -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


COUNT = r"[\d.]+(?: [kMBT])?"
SCALE = re.compile(rf"\b(?:mechanism|(?:toy|paper scale), {COUNT} / {COUNT} tokens)")


def count_text(count):
    """As CountText in experiments/claims/scale.h: two digits and a letter."""
    digits = float(f"{count:.1e}")
    for below, size, letter in ((1e3, 1, ""), (1e5, 1e3, " k"), (1e9, 1e6, " M"), (1e12, 1e9, " B")):
        if digits < below:
            return f"{count if size == 1 else digits / size:g}{letter}"
    return f"{digits / 1e12:g} T"


def scale_of(row):
    """The scale that stands with a verdict; "" if it needs none."""
    if row["verdict"].startswith("exact") or row["verdict"] == "not tested":
        return ""
    if not row["parameters"]:
        return row["word"]
    size = f"{count_text(float(row['parameters']))} / {count_text(float(row['tokens']))} tokens"
    return f"{row['word']}, {size}"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def blank(match):
    """Keeps the line numbers of what is left out."""
    return "\n" * match.group(0).count("\n")


class Published:
    """The verdicts of experiments/published."""

    def __init__(self, root):
        self.runs = {}  # by directory, in the order of runs.csv: {claim: row}
        results = os.path.join(root, "experiments/published")
        with open(os.path.join(results, "runs.csv"), newline="") as file:
            directories = [row["directory"] for row in csv.DictReader(file)]
        for directory in directories:
            with open(os.path.join(results, directory, "verdicts.csv"), newline="") as file:
                self.runs[directory] = {row["claim"]: row for row in csv.DictReader(file)}
        self.claims = sorted({claim for run in self.runs.values() for claim in run})

    def find(self, name):
        """The claims of that name: one if it can be quoted so."""
        return [claim for claim in self.claims if name in (claim, claim.split("/")[1])]

    @staticmethod
    def knowledge(row):
        if row["verdict"] != "not tested":
            return 2
        return 1 if row["reason"].startswith(("out of reach: ", "no evidence: ")) else 0

    def row(self, claim, run=None):
        if run is not None:
            return self.runs[run].get(claim)
        rows = [verdicts[claim] for verdicts in self.runs.values() if claim in verdicts]
        digits = lambda size: float(f"{float(size or 0):.1e}")
        order = lambda row: (self.knowledge(row), digits(row["parameters"]), digits(row["tokens"]))
        most = max(map(order, rows))
        return [row for row in rows if order(row) == most][-1]


def parenthesis_around(text, place):
    """The text of the innermost parentheses around `place`, without their own, or None."""
    depth = 0
    for begin in range(place - 1, -1, -1):
        if text.startswith("\n\n", begin):
            return None
        depth += {")": 1, "(": -1}.get(text[begin], 0)
        if depth < 0:
            break
    else:
        return None
    depth = 0
    for end in range(place, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth < 0:
            return begin + 1, end
    return None


def rows_of_group(group, published):
    """The published rows that a group quotes, and its problems."""
    group = SCALE.sub("", group)
    verdicts = VERDICT.findall(group)
    if "`" not in group:
        return [], []  # a number, say
    if len(verdicts) != 1:
        return [], [f"{len(verdicts)} verdicts between semicolons: {group.strip()}"]
    head, _, tail = group.partition(f"`{verdicts[0]}`")
    run = re.search(r"\bin\s+`([^`]+)`", head)
    names = [name for name in QUOTED.findall(head) if run is None or name != run.group(1)]
    if not names:
        return [], [f"`{verdicts[0]}` without the name of a claim"]
    if run is not None and run.group(1) not in published.runs:
        return [], [f"{run.group(1)}: not in experiments/published/runs.csv"]
    words = re.sub(r"[\s,:]+", " ", QUOTED.sub("", head)).split() + tail.replace(",", " ").split()
    extra = [word for word in words if word not in ("exploratory", "and", "in")]
    problems = [f"'{' '.join(extra)}' beside claims and a verdict"] if extra else []
    rows = []
    for name in names:
        found = published.find(name)
        if len(found) != 1:
            problems.append(f"{name}: {'no such claim' if not found else 'claim of several experiments'}")
            continue
        row = published.row(found[0], run.group(1) if run else None)
        if row is None:
            problems.append(f"{name}: not a claim of {run.group(1)}")
            continue
        rows.append(row)
        if row["verdict"] != verdicts[0]:
            problems.append(f"{name}: `{verdicts[0]}`, published is `{row['verdict']}`")
        exploratory = row["primary"] == "no"
        if exploratory != ("exploratory" in words):
            problems.append(f"{name}: is {'exploratory' if exploratory else 'a primary claim'}")
    return rows, problems


def problems_of_scales(groups):
    """Each verdict has its scale, and no scale stands where no verdict has it. `groups` are pairs of a
    group's text and the published rows that it quotes."""
    scales_alone = lambda group: SCALE.search(group) and not re.search(r"\w|`", SCALE.sub("", group).replace("and", ""))
    shared = set()
    if len(groups) > 1 and scales_alone(groups[-1][0]):
        shared = set(SCALE.findall(groups.pop()[0]))
    unused = set(shared)
    for group, rows in groups:
        own = set(SCALE.findall(group))
        needed = {scale_of(row) for row in rows} - {""}
        unused -= needed if not own else set()
        for row in rows:
            if scale_of(row) not in (own or shared) | {""}:
                yield f"{row['claim'].split('/')[1]}: the scale of its verdict is missing: {scale_of(row)}"
        for scale in sorted(own - needed):
            yield f"'{scale}' is the scale of none of the verdicts of its group"
    for scale in sorted(unused):
        yield f"'{scale}' is the scale of none of these verdicts"


def problems_of_page(text, published, is_result_page):
    """Yields (line number, problem)."""
    text = CODE.sub(blank, PUBLISHED_TABLE.sub(blank, text))
    # A link's address has parentheses of its own.
    text = re.sub(r"\]\([^)\n]*\)", lambda match: "]" + " " * (len(match.group(0)) - 1), text)
    line_of = lambda place: text.count("\n", 0, place) + 1
    seen = set()
    for match in VERDICT.finditer(text):
        around = parenthesis_around(text, match.start())
        if around is None:
            yield line_of(match.start()), f"{match.group(0)} without the name of a claim"
            continue
        if around in seen:
            continue
        seen.add(around)
        parenthesis = " ".join(text[around[0]:around[1]].split())
        quoted = []
        for group in parenthesis.split(";"):
            rows, problems = rows_of_group(group.strip(), published)
            quoted.append((group, rows))
            for problem in problems:
                yield line_of(match.start()), problem
        for problem in problems_of_scales(quoted):
            yield line_of(match.start()), problem
    if not is_result_page:
        return
    plain = QUOTED.sub(lambda match: "`" + "." * len(match.group(1)) + "`", text)
    for match in PLAIN.finditer(plain):
        yield line_of(match.start()), f"'{match.group(0)}' is a verdict: name its claim"


def pages_of(root):
    paths = ["README.md"] + glob.glob("docs/**/*.md", root_dir=root, recursive=True)
    return sorted(path for path in paths if path != DEFINITION)


def check(root):
    published = Published(root)
    results = {path for pattern in RESULT_PAGES for path in glob.glob(pattern, root_dir=root)}
    return [
        f"{path}:{line}: {problem}"
        for path in pages_of(root)
        for line, problem in problems_of_page(read(root, path), published, path in results)
    ]


# The self-test: edits that have to be found. Each is (page, old text as a pattern, new text).
EDITS = (
    ("README.md", r"`exact: holds`\)", "`exact: refuted`)"),
    ("README.md", r"`supported`", "`contradicted`"),
    ("README.md", r"`inconclusive`", "`supported`"),
    ("README.md", r"`not tested`", "`supported`"),
    ("README.md", r"exploratory `", "`"),
    ("README.md", r"toy, [\d.]+ M", "toy, 999 M"),
    # A scale that stands elsewhere in the cell of a table, or in another group, is not that of the verdict.
    ("README.md", r"(\(`delayed-costs-loss`[^)]*), toy, [^)]*tokens\)([^|]*)\|",
     r"\1)\2 Toy, 0.87 M / 77 k tokens: toy, 0.87 M / 77 k tokens. |"),
    ("README.md", r"(\(`drowns-dw-int8`[^)]*), mechanism\)([^|]*)\|", r"\1)\2 All of it: mechanism. |"),
    ("docs/results/stability.md",
     r"\(`size-beta2-removes`([^)]*)`inconclusive`, (toy, [^)]*)\)",
     r"(`size-beta2-removes`\1`inconclusive`; exploratory `curvature-predicts-better`: `supported`, "
     r"toy, 18 k / 77 k tokens and \2)"),
    ("docs/results/stability.md", r", toy, [^)]*tokens\)", ")"),
    ("docs/results/fp8-training.md", r"`contradicted`, toy, ", "`contradicted`, paper scale, "),
    ("README.md", r"\(`naive-threshold`", "(`naive-treshold`"),
    ("README.md", r"\(`naive-threshold`, `same-key-cliff`: `exact: holds`\)", "(`exact: holds`)"),
    ("README.md", r"\A", "That it works is supported.\n"),
    ("README.md", r"\A", "That it works is `supported`.\n"),
    ("docs/results.md", r"in `moment-formats/", "in `moment-format/"),
    ("docs/results/stability.md", r"`supported`, toy", "`contradicted`, toy"),
    ("docs/results/earlier-statements.md", r"`inconclusive`", "`supported`"),
    ("experiments/published/update-fidelity/verdicts.csv", r"exact: holds", "exact: refuted"),
)


def self_test(root):
    """Returns the edits that are not found."""
    missed = []
    with tempfile.TemporaryDirectory() as copy:
        for path in ("README.md", "docs", "experiments/published"):
            source, target = os.path.join(root, path), os.path.join(copy, path)
            if os.path.isdir(source):
                shutil.copytree(source, target)
            else:
                shutil.copy(source, target)
        if check(copy):
            return ["anything else, since the pages themselves have problems"]
        for path, old, new in EDITS:
            text = read(copy, path)
            edited, count = re.subn(old, new, text, count=1)
            with open(os.path.join(copy, path), "w", encoding="utf-8") as file:
                file.write(edited)
            if count == 0 or not check(copy):
                missed.append(f"{path}: {old} -> {new}")
            with open(os.path.join(copy, path), "w", encoding="utf-8") as file:
                file.write(text)
    return missed


def main():
    if sys.argv[1:] and sys.argv[1] == "--self-test":
        root = sys.argv[2] if len(sys.argv) > 2 else "."
        missed = self_test(root)
        for edit in missed:
            print(f"not found: {edit}")
        print(f"{len(EDITS) - len(missed)} of {len(EDITS)} edits found")
        return 1 if missed else 0
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    problems = check(sys.argv[1])
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
