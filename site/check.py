#!/usr/bin/env python3
"""Checks of the documentation that need no build of the site.

  check.py pages       the navigation reaches every page, and links lead to files and headings that are there
  check.py names       every public name of C++, C and Python has a sentence
  check.py citation    CITATION.cff is valid, and .zenodo.json says the same
  check.py self-test   plants faults and checks that each is found

Prints a line for each problem and exits with 1 if there is one; with 77 if what a check needs is not installed
(site/build --environment installs it).
"""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import check_built
import pages
import prose

SKIPPED = 77


def problems_of_navigation(root):
    listed = [page for group in pages.navigation(root) for page in group["pages"]]
    for page in sorted(set(listed)):
        if listed.count(page) > 1:
            yield f"site/navigation.toml: lists {page} twice"
    for page in pages.all_sources(root):
        if page not in listed:
            yield f"{page}.md: not in site/navigation.toml"


def problems_of_links(root):
    known = {}  # path: its anchors
    for page in pages.all_sources(root):
        path = root / f"{page}.md"
        for number, line in enumerate(pages.without_code(path.read_text(encoding="utf-8")).split("\n"), 1):
            for match in [*pages.LINK.finditer(line), *pages.IMAGE.finditer(line)]:
                target, _, anchor = match["target"].partition("#")
                if re.match(r"[a-z]+:", target):
                    continue
                place = (path.parent / target).resolve() if target else path
                where = f"{page}.md:{number}"
                if not place.exists():
                    yield f"{where}: there is no {target}"
                elif anchor and place.suffix == ".md":
                    if place not in known:
                        known[place] = pages.anchors(place)
                    if anchor not in known[place]:
                        yield f"{where}: {target or page + '.md'} has no heading #{anchor}"


def problems_of_pages(root):
    yield from problems_of_navigation(root)
    yield from problems_of_links(root)


def problems_of_names():
    import headers
    import python_names

    for header in headers.read():
        for line, name, _ in headers.without_sentence(header.items):
            yield f"{header.path}:{line}: {name} has no sentence"
    package = python_names.load()
    for module in python_names.MODULES:
        names = python_names.public_names(package, module)
        names += python_names.returned_classes(package, module, {item.place for item in names})
        for place in python_names.without_sentence(names):
            yield f"{place} has no docstring"


def problems_of_citation(root):
    from cffconvert import Citation

    text = (root / "CITATION.cff").read_text(encoding="utf-8")
    citation = Citation(text)
    try:
        citation.validate()
    except Exception as error:  # of the schema's library
        yield f"CITATION.cff: {str(error).splitlines()[0]}"
        return
    cff = citation.cffobj
    zenodo = json.loads((root / ".zenodo.json").read_text(encoding="utf-8"))
    same = {"title": "title", "abstract": "description", "license": "license", "keywords": "keywords"}
    for ours, theirs in same.items():
        if cff.get(ours) != zenodo.get(theirs):
            yield f".zenodo.json: {theirs} is not the {ours} of CITATION.cff"
    if [author["name"] for author in cff["authors"]] != [creator["name"] for creator in zenodo["creators"]]:
        yield ".zenodo.json: creators are not the authors of CITATION.cff"


# Plain text and its reStructuredText.
TEXTS = [
    ("Of NaN, `a`b and Encode(x).", ["Of NaN, ``a``\\ b and :cpp:func:`Encode`\\ (x).", ""]),
    ("kMax_x * |y|_ in docs/mx.md", ["``kMax_x`` \\* \\|y\\|\\_ in :doc:`docs/mx.md </docs/mx>`", ""]),
    ("x   first\n    more\ny   --flag", ["``x``", "   first more", "``y``", "   ``--flag``", ""]),
    ("Bits       in\nFloat unit out", ["``Bits``", "   in", "``Float unit``", "   out", ""]),
    ("FILE:LINE, e4m3fn@tensor", ["FILE\\:LINE, e4m3fn\\@tensor", ""]),
    ("- one\n  two\n- three", ["- one two", "- three", ""]),
    ("Text\n  code *\nmore", ["Text", "", "::", "", "     code *", "", "more", ""]),
]


def self_test():
    """Yields the faults that are not found in a copy of the pages, and texts that are converted wrongly."""
    for text, right in TEXTS:
        found = prose.rst(text, {"Encode": ":cpp:func:`Encode`"})
        if found != right:
            yield f"{text!r} becomes {found}, expected {right}"
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for page in [*pages.all_sources(pages.ROOT)]:
            (copy / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pages.ROOT / f"{page}.md", copy / f"{page}.md")
        (copy / "site").mkdir()
        shutil.copy(pages.ROOT / "site/navigation.toml", copy / "site")
        yield from self_test_of_built(copy / "built")
        before = set(problems_of_pages(copy))  # links to files that are not pages
        faults = {
            "docs/nowhere.md": ("# Nowhere\n", "not in site/navigation.toml"),
            "docs/mx.md": ("\n[x](formats.md#no-such-heading)\n", "has no heading #no-such-heading"),
            "docs/stats.md": ("\n[x](no-such-page.md)\n", "there is no no-such-page.md"),
            "docs/data.md": ("\n![x](figures/no-such.svg)\n", "there is no figures/no-such.svg"),
        }
        for page, (text, _) in faults.items():
            with open(copy / page, "a", encoding="utf-8") as file:
                file.write(text)
        found = set(problems_of_pages(copy)) - before
        for page, (_, message) in faults.items():
            if not any(problem.startswith(page) and message in problem for problem in found):
                yield f"not found: {page}: {message}"


def self_test_of_built(folder):
    """Yields the faults of a built site that check_built.py does not find."""
    folder.mkdir()
    right = ["b.html", "b.html#there", "#here", "https://a.b"]
    wrong = ["c.html", "b.html#nowhere", "#nowhere", "mailto:a@b"]
    page = "".join(f'<a href="{link}">x</a>' for link in right + wrong)
    page += '<p id="here"></p><script src="//host/x.js"></script>'
    (folder / "a.html").write_text(page, encoding="utf-8")
    (folder / "b.html").write_text('<p id="there"></p>', encoding="utf-8")
    found = [problem.rsplit(" ", 1)[1] for problem in check_built.problems(folder)]
    if found != [*wrong, "//host/x.js"]:
        yield f"in a built site: {found}"


CHECKS = {
    "pages": lambda: problems_of_pages(pages.ROOT),
    "names": problems_of_names,
    "citation": lambda: problems_of_citation(pages.ROOT),
    "self-test": self_test,
}


def main(arguments):
    if len(arguments) != 1 or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        problems = list(CHECKS[arguments[0]]())
    except ModuleNotFoundError as error:
        python = pages.ROOT / "build/site-venv/bin/python"
        if python.exists() and pathlib.Path(sys.prefix) != python.parent.parent:
            os.execv(python, [python, __file__, *arguments])
        print(f"there is no {error.name}: site/build --environment installs it")
        return SKIPPED
    print("\n".join(problems), end="\n" if problems else "")
    print(f"{arguments[0]}: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
