#!/usr/bin/env python3
"""Checks that header, library and documentation of the C interface agree.

  check_interface.py ROOT NM LIBRARY  ROOT of the repository, the program nm, path of libnumsim.so

Prints what differs and exits 1 unless
  the functions that numsim.h declares are exactly the symbols that the library exports,
  docs/c-abi.md lists exactly these functions,
  its examples are the files of docs/examples.
"""

import os
import re
import subprocess
import sys

HEADER = "libnumsim/numerics/numsim/capi/numsim.h"
PAGE = "docs/c-abi.md"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def declared(header):
    return set(re.findall(r"^NUMSIM_API [^;(]*?\b(numsim_\w+)\(", header, re.MULTILINE))


def exported(nm, library):
    """Defined dynamic symbols but for the names of symbol versions (type A)."""
    lines = subprocess.run(
        [nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {f[-1].split("@")[0] for f in fields if f[-2] != "A"}


def documented(page):
    rows = "\n".join(line for line in page.split("\n") if line.startswith("| `"))
    return set(re.findall(r"`(numsim_\w+)`", rows))


def compare(what, found, wanted):
    lines = [f"{what}: {name} is missing" for name in sorted(wanted - found)]
    return lines + [f"{what}: {name} should not be there" for name in sorted(found - wanted)]


def examples(root, page):
    blocks = re.findall(r"<!-- the file (\S+) -->\n```\w+\n(.*?)```\n", page, re.DOTALL)
    problems = [
        f"{PAGE}: the example is not {path}" for path, text in blocks if read(root, path) != text
    ]
    return problems if len(blocks) == 4 else problems + [f"{PAGE}: {len(blocks)} examples, not 4"]


def main(root, nm, library):
    functions = declared(read(root, HEADER))
    page = read(root, PAGE)
    problems = compare(library, exported(nm, library), functions)
    problems += compare(PAGE, documented(page), functions)
    problems += examples(root, page)
    print("\n".join(problems + [f"{len(functions)} functions, {len(problems)} problems"]))
    return 1 if problems or not functions else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
