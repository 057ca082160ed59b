#!/usr/bin/env python3
"""Checks that every reference key in sources and docs has an entry in docs/references.md.

  check_references.py ROOT         prints FILE:LINE: KEY for each key without an entry; exits 1 when
                                   there is one, or when an entry occurs twice
  check_references.py --self-test  plants keys in a temporary tree and checks what is found

A key is [Word] in a comment or string of a source, or in a docs page where it is no link; and each
word of the field `source` of the table of formats. Words begin with a capital letter, but for the
two keys that KEY names.
"""

import os
import re
import sys
import tempfile

REFERENCES = "docs/references.md"
FORMAT_TABLE = "libnumsim/numerics/numsim/formats/format_list.h"
SOURCE_DIRECTORIES = ("libnumsim", "experiments", "apps", "tests", "bench")
SOURCE_ENDINGS = (".h", ".cc", ".inc", ".cu", ".in")

ENTRY = re.compile(r"^- \*\*\[([A-Za-z][A-Za-z0-9-]+)\]\*\* ", re.MULTILINE)
# Not an index, an attribute or a link.
KEY = re.compile(r"(?<![\w\])>\[*])\[([A-Z][A-Za-z0-9-]+|bnb|safetensors)\](?![\w\[({\]])")
# A line of the table: FormatEntry{"name", spec, "sources", "note"}.
FORMAT_SOURCE = re.compile(
    r"FormatEntry\{\s*\"[^\"]*\",.*?\"([^\"]*)\",\s*\"[^\"]*\"\s*\}", re.DOTALL
)


def comments_and_strings(line):
    """The part of a source line in which keys may stand: a comment, and what is quoted."""
    comment = re.search(r"//.*", line)
    strings = " ".join(re.findall(r"\"(?:\\.|[^\"\\])*\"", line))
    return (comment.group(0) if comment else "") + " " + strings


def keys_of_text(text, is_source):
    """Yields (line number, key)."""
    for number, line in enumerate(text.split("\n"), 1):
        searched = comments_and_strings(line) if is_source else line
        for match in KEY.finditer(searched):
            yield number, match.group(1)


def keys_of_format_table(text):
    """Yields (line number, key) of the source field of each format."""
    for match in FORMAT_SOURCE.finditer(text):
        number = text.count("\n", 0, match.start(1)) + 1
        for key in match.group(1).split(","):
            yield number, key.strip()


def files(root):
    """Paths relative to root of what may cite, sorted."""
    found = []
    for top in SOURCE_DIRECTORIES + ("docs",):
        endings = (".md",) if top == "docs" else SOURCE_ENDINGS
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                path = os.path.relpath(os.path.join(directory, name), root)
                if name.endswith(endings) and path != REFERENCES:
                    found.append(path)
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def check(root):
    """Returns (number of citations, list of problems)."""
    entries = ENTRY.findall(read(root, REFERENCES))
    problems = [
        f"{REFERENCES}: [{key}] occurs twice"
        for key in sorted(set(entries))
        if entries.count(key) > 1
    ]
    count = 0
    for path in files(root):
        text = read(root, path)
        cited = list(keys_of_text(text, not path.endswith(".md")))
        if path == FORMAT_TABLE:
            cited += keys_of_format_table(text)
        count += len(cited)
        problems += [
            f"{path}:{number}: [{key}] is not in {REFERENCES}"
            for number, key in cited
            if key not in entries
        ]
    return count, problems


def self_test():
    table = 'FormatEntry{"a", Ieee(8, 23), "Known, Missing", "note"},\n'
    # (path, text, keys that must be reported)
    cases = [
        ("libnumsim/numerics/numsim/base/a.h", "// See [Known] and [Missing].\n", ["Missing"]),
        ("libnumsim/numerics/numsim/base/b.h", "int x[Missing];  // none\n", []),
        ("libnumsim/numerics/numsim/base/c.h", "[[Missing]] int f();  // a[Missing], [Known]\n", []),
        ("libnumsim/numerics/numsim/base/d.inc", "// [bnb]\n", ["bnb"]),
        ("libnumsim/numerics/numsim/base/e.cc", 'e.reproduces = "[Missing] Figure 1";\n', ["Missing"]),
        ("libnumsim/numerics/numsim/base/f.cc", "auto f = [Missing](int) {};\n", []),
        ("docs/a.md", "As in [Missing], not [Link](b.md).\n", ["Missing"]),
        (FORMAT_TABLE, table, ["Missing"]),
    ]
    failures = []
    for path, text, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for name, content in ((REFERENCES, "- **[Known]** A book.\n"), (path, text)):
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(content)
            problems = check(root)[1]
        want = [f"{path}:1: [{key}] is not in {REFERENCES}" for key in expected]
        if problems != want:
            failures.append(f"{path}: expected {want}, found {problems}")
    print("\n".join(failures + [f"{len(cases) - len(failures)} of {len(cases)} cases as expected"]))
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    count, problems = check(arguments[0])
    if count == 0:
        print(f"{arguments[0]}: no references there", file=sys.stderr)
        return 2
    print("\n".join(problems + [f"{count} references, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
