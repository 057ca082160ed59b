#!/usr/bin/env python3
"""Checks that a header is installed if and only if users of the library need it.

  check_installed.py ROOT           prints a line for each problem; exits 1 when there is one
  check_installed.py --write ROOT   writes docs/headers.md, the page that lists them
  check_installed.py --self-test

Users need what a front header (numsim/cast.h and its like), an example, the package test, a page for
users or the Python package names, and what that includes. Rooms list these headers as PUBLIC or
FRAGMENTS. The other headers of a room, which only numsim's own programs and tests include beside the
library, stand in the list OURS.
"""

import glob
import os
import re
import sys
import tempfile

WINGS = ("libnumsim/numerics/", "libnumsim/training/")
INCLUDE = re.compile(r'^#include "(numsim/[^"]+)"', re.MULTILINE)
NAMED = re.compile(r"(?<![\w/])(?:numsim/)?([a-z_]+/[a-z0-9_]+\.h)\b")
NOT_FOR_USERS = re.compile(r"docs/(adding-|architecture|testing|headers)")  # pages for contributors
PAGE = "docs/headers.md"

TASKS = {
    "Formats, rounding and casts": ("formats", "rounding", "random", "cast", "arith"),
    "Quantisation and products": ("quantize", "gemm", "linear"),
    "Updates and optimisers": ("updates", "moments", "optim"),
    "Models, data and trainings": ("ops", "models", "data", "config", "train", "analysis"),
    "Comparison with other implementations": ("profiles", "oracle", "mma_probe", "stats"),
    "Devices, files and the rest": ("backend", "io", "base", "plot", "capi"),
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_wings(root, pattern):
    """The files of that pattern in each wing of the library."""
    return [path for wing in WINGS for path in glob.glob(os.path.join(root, wing, pattern))]


def included_as(path):
    """What #include names a file of the library, or a folder, by."""
    return "numsim/" + path.rsplit("/numsim/", 1)[1]


def place_of(root, header):
    """The path of a header that is included by that name, or None."""
    places = [os.path.join(root, wing, header) for wing in WINGS]
    return next((path for path in places if os.path.exists(path)), None)


def lists(root):
    """{header: name of its list} of all rooms."""
    found = {}
    for path in in_wings(root, "numsim/*/CMakeLists.txt"):
        room = included_as(os.path.dirname(path))
        text = re.sub(r"#.*", "", read(path))
        for name, files in re.findall(r"\b(PUBLIC|FRAGMENTS|OURS)\s((?:\s*[\w./-]+\.(?:h|inc)\b)+)", text):
            found |= {f"{room}/{file}": name for file in files.split()}
    return found


def naming(root):
    """(name of a file, headers that it names) of all that stands for users."""
    for path in in_wings(root, "numsim/*.h"):
        yield path, {included_as(path)}
    for pattern in ("docs/examples/**/*", "tests/package/**/*", "libnumsim/python/src/*"):
        for path in glob.glob(os.path.join(root, pattern), recursive=True):
            if path.endswith((".h", ".c", ".cc")):
                yield path, set(INCLUDE.findall(read(path)))
    for path in glob.glob(os.path.join(root, "**/*.md"), recursive=True):
        place = os.path.relpath(path, root)
        if place.startswith(("docs/", "README")) and not NOT_FOR_USERS.match(place):
            yield path, {f"numsim/{name}" for name in NAMED.findall(read(path))}


def needed(root):
    """{header: why users need it}."""
    reasons, waiting = {}, []
    for path, headers in naming(root):
        for header in headers:
            waiting.append((header, f"named in {os.path.relpath(path, root)}"))
    while waiting:
        header, reason = waiting.pop()
        path = place_of(root, header)
        if header in reasons or not path:
            continue
        reasons[header] = reason
        waiting += [(other, f"included in {header}") for other in INCLUDE.findall(read(path))]
    return reasons


def check(root):
    """Returns the problems, one text for each."""
    of_rooms, reasons = lists(root), needed(root)
    problems = []
    for header, name in sorted(of_rooms.items()):
        if name == "OURS" and header in reasons:
            problems.append(f"{header}: users need it, {reasons[header]}: list it as PUBLIC")
        if name == "PUBLIC" and header not in reasons:
            problems.append(f"{header}: nothing for users names it: list it under OURS")
    if page(root) != (read(os.path.join(root, PAGE)) if os.path.exists(os.path.join(root, PAGE)) else ""):
        problems.append(f"{PAGE}: is not what {os.path.basename(__file__)} --write writes")
    return problems


def summary(path):
    """The first sentence of the comment at the head of a header."""
    comment = re.match(r"(?://[^\n]*\n)+", read(path))
    text = " ".join(line.lstrip("/ ") for line in comment.group().splitlines()) if comment else ""
    sentence = re.match(r"(.*?)\.(?: |$)", text)
    return (sentence.group(1) if sentence else text).rstrip(":").replace("|", "\\|")


def page(root):
    """The text of the page of installed headers."""
    headers = [header for header, name in lists(root).items() if name == "PUBLIC"]
    known = [room for rooms in TASKS.values() for room in rooms]
    others = sorted({header.split("/")[1] for header in headers} - set(known))
    if others:
        raise SystemExit(f"check_installed.py: TASKS has no {', '.join(others)}")
    text = (
        "# Headers\n\nThis page lists the headers that are installed, by task. It is written by\n"
        "`tests/structure/check_installed.py --write .`, which also checks that users need each of them: a\n"
        "front header, an example, a page or the Python package names it, or includes it. The front headers\n"
        "`numsim/cast.h`, `quantize.h`, `gemm.h`, `update.h` and `train.h` include what most programs need\n"
        "([library.md](library.md)).\n"
    )
    for task, rooms in TASKS.items():
        rows = [h for room in rooms for h in sorted(headers) if h.split("/")[1] == room]
        if not rows:
            continue
        text += f"\n## {task}\n\n| header | holds |\n| --- | --- |\n"
        for header in rows:
            path = place_of(root, header)
            text += f"| [{header}](../{os.path.relpath(path, root)}) | {summary(path)} |\n"
    return text


def self_test():
    files = {
        "libnumsim/numerics/numsim/cast.h": '#include "numsim/cast/a.h"\n',
        "libnumsim/numerics/numsim/cast/a.h": '// Casts. More.\n#include "numsim/cast/b.h"\n',
        "libnumsim/numerics/numsim/cast/b.h": "// What a.h needs.\n",
        "libnumsim/numerics/numsim/cast/c.h": "// For programs.\n",
        "libnumsim/numerics/numsim/cast/CMakeLists.txt": "numsim_room(\n  PUBLIC\n    a.h\n    b.h\n  OURS\n    c.h\n)\n",
        "docs/adding-a-cast.md": "cast/c.h\n",
    }
    nothing = "nothing for users names it"
    # (file, its text, part of the problem)
    cases = [
        ("README.md", "", None),
        ("docs/page.md", "see `numsim/cast/c.h`\n", "c.h: users need it, named in docs/page.md"),
        ("libnumsim/python/src/a.cc", '#include "numsim/cast/c.h"\n', "c.h: users need it"),
        ("libnumsim/numerics/numsim/cast/a.h", "// Casts.\n", f"b.h: {nothing}"),
        ("libnumsim/numerics/numsim/cast/b.h", '#include "numsim/cast/c.h"\n', "included in numsim/cast/b.h"),
        (PAGE, "another text\n", f"{PAGE}: is not what"),
    ]
    failures = []
    for name, text, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, content in {**files, name: text}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(content)
            if name != PAGE:
                with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
                    file.write(page(root))
            found = check(root)
        if (len(found) != 1 or expected not in found[0]) if expected else found:
            failures.append(f"{name}: expected {expected}, found {found}")
    print("\n".join(failures + [f"{len(cases) - len(failures)} of {len(cases)} cases as expected"]))
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    write = arguments[:1] == ["--write"]
    if len(arguments) != 1 + write:
        print(__doc__, file=sys.stderr)
        return 2
    root = arguments[-1]
    if write:
        with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
            file.write(page(root))
        return 0
    problems = check(root)
    print("\n".join(problems + [f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
