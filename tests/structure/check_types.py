#!/usr/bin/env python3
"""A type name means one type in each namespace: python3 check_types.py ROOT | --self-test

The one-definition rule forbids two types of one name in one namespace, and no compiler or linker reports
them: a program that links both may call the destructor of the wrong one. Checked are the library with its C
and Python interfaces, programs, experiments, benchmarks and tests. Types in anonymous namespaces, in functions
and in other types do not count, nor do declarations without a body, specialisations, and aliases in source
files, which are names for types and no types.
"""

import collections
import pathlib
import re
import sys

FOLDERS = ("libnumsim", "apps", "experiments", "tests", "bench")
HEADERS = (".h", ".cuh", ".inc")
EXTENSIONS = (*HEADERS, ".cc", ".cu")

# Strings, character literals and comments, which may hold braces.
IGNORED = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.S,
)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
TYPE = re.compile(
    r"(?:^|[;{}>\s])(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*|[A-Z_]{2,}(?:\([^)]*\))?\s+)*"
    r"(\w+)\s*(?:final\s*)?(?::[^:][^;{}()]*)?$"
)
ALIAS = re.compile(r"^\s*using\s+(\w+)\s*=")


def without_text(source):
    """The source with literals and comments blanked, and preprocessor lines emptied."""
    source = IGNORED.sub(lambda m: '""' if m.group()[0] in "R\"'" else " ", source)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", source, flags=re.M | re.S)


def types_of(source):
    """Yields (namespace, name, whether it is an alias) of what a file defines in namespaces."""
    scopes = []  # of open braces: the name of a namespace, "" for an anonymous one, None for another
    start = 0
    for mark in re.finditer(r"[{};]", text := without_text(source)):
        head = text[start : mark.start()]
        start = mark.end()
        named = all(scopes)  # within namespaces that have names, and nothing else
        if mark.group() == "}":
            if scopes:
                scopes.pop()
        elif mark.group() == ";":
            alias = ALIAS.match(head)
            if named and scopes and alias:
                yield "::".join(scopes), alias.group(1), True
        else:
            space, kind = NAMESPACE.search(head), TYPE.search(head)
            if space:
                scopes.append(space.group(1) or "")
                continue
            if kind and named and scopes:
                yield "::".join(scopes), kind.group(1), False
            scopes.append(None)


def problems(files):
    """Yields a line for each type that more than one of the {path: source} defines."""
    places = collections.defaultdict(list)
    for path, source in files.items():
        for space, name, alias in sorted(set(types_of(source))):
            if not alias or path.endswith(HEADERS):
                places[space, name].append(path)
    for (space, name), paths in sorted(places.items()):
        if len(paths) > 1:
            yield f"{space}::{name} is defined in {' and '.join(paths)}"


def self_test():
    one, two = "namespace a { struct S { int x; }; }", "namespace a { class S final : B<1> {}; }"
    # (source of f.h, source of g.h, whether a::S is found)
    cases = [
        (one, two, True),
        (one, "namespace a::b { struct S {}; }", False),
        (one, "namespace a { namespace { struct S {}; } }", False),
        (one, "namespace a { struct S; void F() { struct S {}; } }", False),
        (one, "namespace a { struct T { struct S {}; }; }", False),
        (one, 'namespace a { const char* s = "{"; } // }\nnamespace a { enum class S { k }; }', True),
        (one, "namespace a { template <typename T> struct S<T*> {}; }", False),
        (one, "#define X {\nnamespace a { template <int n> struct alignas(8) S {}; }", True),
        ("namespace a { using S = int; }", one, True),
        ("namespace a { void F() { using S = int; } }", one, False),
        ("namespace a { constexpr int k = 1'000; }\n" + one, two, True),
        ("namespace a { constexpr char k = '{'; }\n" + one, two, True),
        ("namespace a { inline namespace v { struct T {}; } union S {}; }", two, True),
    ]
    failures = []
    for f, g, expected in cases:
        found = list(problems({"f.h": f, "g.h": g}))
        if found != (["a::S is defined in f.h and g.h"] if expected else []):
            failures.append(f"{f} | {g}: found {found}")
    aliases = {"f.cc": "namespace a { using S = int; }", "g.cc": "namespace a { using S = T; }"}
    if list(problems(aliases)):
        failures.append("aliases of source files are found")
    print("\n".join([*failures, f"{len(cases) + 1} cases, {len(failures)} not as expected"]))
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0])
    files = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in EXTENSIONS
    }
    if not files:
        print(f"{root}: no sources there", file=sys.stderr)
        return 2
    found = list(problems(files))
    print("\n".join([*found, f"{len(files)} files, {len(found)} types of one name"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
