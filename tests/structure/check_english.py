#!/usr/bin/env python3
"""Rejects turns of phrase that a reader has to read twice.

    check_english.py ROOT        every tracked source, help text and page below ROOT
    check_english.py --self-test

Comments of sources are checked, and pages of documentation outside their code blocks. Recorded
output (docs/figures) is left alone.
"""
import re
import subprocess
import sys
from pathlib import Path

# A pattern, where it applies ("any" text, or the first words of a "doc" comment), what to write.
PATTERNS = [
    (r"What\b(?![^.?]*\?)", "doc", 'begin with a verb or a noun phrase: "Returns ...", not "What ..."'),
    (r"\bas there(?=[,.:;)]|\s*$)", "any", "name the thing that is meant"),
    (r"\bthe same of\b", "any", "name the thing that is meant"),
    (r"\blikewise\b", "any", '"also"'),
    (r"\b(?:come|comes|came) about\b", "any", '"is computed" or "results from"'),
    (r"\bbut for\b", "any", '"except"'),
    (r"\bmatrix units?\b", "any", '"tensor core"'),
    (r"\brules? of accumulation\b", "any", '"accumulation mode"'),
    (r"\bcritical groups?\b", "any", '"tie set"'),
]
SOURCE = re.compile(r"\.(h|c|cc|cu|cuh|inc)$")
SKIPPED = re.compile(r"^docs/figures/|^LICENSE")


def comment_blocks(text):
    """Yields (line number, text) of each run of // comments; code before a comment ends the run."""
    block, start = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        whole = re.match(r"\s*//+ ?(.*)", line)
        trailing = None if whole else re.search(r"(?:^|[;,{}()\s])//+ (.*)", line)
        if whole:
            if not block:
                start = number
            block.append(whole.group(1))
            continue
        if block:
            yield start, "\n".join(block)
            block = []
        if trailing:
            yield number, trailing.group(1)
    if block:
        yield start, "\n".join(block)


def page_blocks(text):
    """Yields (line number, text) of each line outside fenced code; `code` and quotations are dropped."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r'`[^`]*`|"[^"]*"|“[^”]*”', " ", line)


def faults(path, text):
    """Returns the lines at fault as "path:line: phrase: what to write"."""
    source = SOURCE.search(path)
    found = []
    for start, block in comment_blocks(text) if source else page_blocks(text):
        plain = re.sub(r'`[^`]*`|"[^"]*"', lambda m: re.sub(r"[^\n]", " ", m.group(0)), block)
        for pattern, where, instead in PATTERNS:
            if where == "doc":
                match = re.match(pattern, plain) if source else None
            else:
                match = re.search(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE)
            if match:
                line = start + plain.count("\n", 0, match.start())
                phrase = " ".join(match.group(0).split())
                found.append(f"{path}:{line}: '{phrase}': {instead}")
    return found


def check(root):
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True).stdout.split("\n")
    paths = [p for p in listed
             if (SOURCE.search(p) or p.endswith(".md")) and not SKIPPED.match(p) and (Path(root) / p).exists()]
    found = []
    for path in paths:
        found += faults(path, (Path(root) / path).read_text(encoding="utf-8"))
    print("\n".join(found + [f"{len(paths)} files, {len(found)} phrases"]))
    return 1 if found or not paths else 0


def self_test():
    cases = [  # path, text, number of faults
        ("a.h", "// What is left of x.\nint a;\n", 1),
        ("a.h", "// Returns what is left.\nint a;\n", 0),
        ("a.h", "// Whatever is left.\nint a;\n", 0),
        ("a.h", "int a;  // What is left\n", 1),
        ("a.h", "// Adds. Likewise for b,\n// and this comes\n// about by c.\n", 2),
        ("a.cc", "// As there, the same\n// of int8.\n", 2),
        ("a.cc", 'const char* text = "likewise";\n', 0),
        ("a.cc", '// The phrase "likewise" is quoted.\n', 0),
        ("a.cc", "// It was there, but forty times.\n", 0),
        ("a.cc", "// All but for one.\n", 1),
        ("docs/a.md", "Likewise for b.\n\n```\nlikewise\n```\n`likewise` \"as there\"\n", 1),
        ("docs/a.md", "# What numsim is\n", 0),
    ]
    wrong = [(path, text, faults(path, text)) for path, text, count in cases
             if len(faults(path, text)) != count]
    for case in wrong:
        print("self-test:", case)
    print(f"{len(cases)} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else check(sys.argv[1]))
