#!/usr/bin/env python3
"""Checks that every source is in a list of CMake, and every header of a room's folder among PUBLIC.
The files of the Python package are sources too.

  check_lists.py ROOT         prints FILE: RULE for each file that no list has; exits 1 when there
                              is one (an entry that is no file is an error of CMake)
  check_lists.py --self-test  plants such files in a temporary tree and checks that they are found

A list is the CMakeLists.txt of the nearest folder that has one. A source may also stand in the list
of another folder, as ../FOLDER/FILE.
"""

import os
import re
import sys
import tempfile

TREES = ("libnumsim", "experiments", "apps", "tests")
# Projects and programs of their own.
LEFT_OUT = ("tests/package", "tests/apps/programs", "tests/gemm/recorded", "tests/profiles/recorded")
SOURCES = (".cc", ".cu")
PYTHON_PACKAGE = "libnumsim/python/numsim/"
ENTRY = re.compile(r"[A-Za-z0-9_/.]+\.(?:cc|cu|h|inc|py)\b")


def lists(root):
    """Yields (folder, names in its CMakeLists.txt, sources below it that no deeper list has)."""
    for tree in TREES:
        for folder, _, names in os.walk(os.path.join(root, tree)):
            place = os.path.relpath(folder, root)
            if "CMakeLists.txt" not in names or place.startswith(LEFT_OUT):
                continue
            with open(os.path.join(folder, "CMakeLists.txt"), encoding="utf-8") as file:
                entries = ENTRY.findall(re.sub(r"#.*", "", file.read()))
            yield place, entries, sorted(files_of(folder))


def files_of(folder):
    """Paths relative to the folder, without those of folders with a list of their own."""
    for below, subfolders, names in os.walk(folder):
        subfolders[:] = [
            name
            for name in subfolders
            if not os.path.exists(os.path.join(below, name, "CMakeLists.txt"))
        ]
        for name in names:
            yield os.path.relpath(os.path.join(below, name), folder)


def check(root):
    """Returns (number of entries, list of 'file: rule')."""
    count, problems = 0, []
    all_lists = list(lists(root))
    elsewhere = {
        os.path.normpath(os.path.join(place, entry))
        for place, entries, _ in all_lists
        for entry in entries
        if entry.startswith("../")
    }
    for place, entries, files in all_lists:
        count += len(entries)
        is_room = re.fullmatch(r"libnumsim/[a-z]+/numsim/[a-z_0-9]+", place)
        for name in files:
            path = f"{place}/{name}"
            if path.startswith(LEFT_OUT):
                continue
            public = is_room and name.endswith((".h", ".inc")) and "/" not in name
            public = public and name != "numsim.h"  # the C interface is installed apart
            if path in elsewhere and not public:
                continue
            packaged = path.startswith(PYTHON_PACKAGE) and name.endswith(".py")
            if (name.endswith(SOURCES) or public or packaged) and name not in entries:
                problems.append(f"{path}: not in {place}/CMakeLists.txt")
    return count, problems


def self_test():
    room = "libnumsim/numerics/numsim/cast"
    listed = "numsim_room(\n  PUBLIC\n    a.h\n  SOURCES\n    a.cc\n    internal/b.cc)\n"
    other = "libnumsim/numerics/numsim/gemm/CMakeLists.txt"
    # (files beside those of the list, the problem)
    cases = [
        ([], None),
        (["c.cc"], f"{room}/c.cc: not in {room}/CMakeLists.txt"),
        (["internal/d.cu"], f"{room}/internal/d.cu: not in {room}/CMakeLists.txt"),
        (["e.h"], f"{room}/e.h: not in {room}/CMakeLists.txt"),
        (["internal/f.h"], None),
        (["elsewhere/g.cc"], None),
        (["elsewhere/h.cc"], f"{room}/elsewhere/h.cc: not in {room}/CMakeLists.txt"),
    ]
    failures = []
    for extra, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for name in ["a.h", "a.cc", "internal/b.cc", "CMakeLists.txt", *extra]:
                path = os.path.join(root, room, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(listed if name == "CMakeLists.txt" else "")
            os.makedirs(os.path.dirname(os.path.join(root, other)))
            with open(os.path.join(root, other), "w", encoding="utf-8") as file:
                file.write("numsim_tests(gemm\n  COMMON\n    ../cast/elsewhere/g.cc)\n")
            found = check(root)[1]
        if found != ([] if expected is None else [expected]):
            failures.append(f"{extra}: expected {expected}, found {found}")
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
        print(f"{arguments[0]}: no lists there", file=sys.stderr)
        return 2
    print("\n".join(problems + [f"{count} entries, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
