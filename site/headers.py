"""Reads the public names of the C++ library and of the C interface from the headers that are installed.

A comment belongs to the declaration below it or before it in its line, and to the declarations that follow
without an empty line and have none of their own.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

import clang.cindex
from clang.cindex import CursorKind as Kind

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/structure"))
import check_installed  # noqa: E402  the lists of the headers

C_HEADER = "numsim/capi/numsim.h"
TYPES = {
    Kind.STRUCT_DECL: "struct",
    Kind.CLASS_DECL: "class",
    Kind.CLASS_TEMPLATE: "class",
    Kind.ENUM_DECL: "enum",
}
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.CONVERSION_FUNCTION}
VALUES = {Kind.FIELD_DECL: "member", Kind.VAR_DECL: "variable", Kind.ENUM_CONSTANT_DECL: "enumerator"}
ALIASES = {Kind.TYPE_ALIAS_DECL, Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL}
DROPPED = re.compile(
    r"\b(NUMSIM_HOST_DEVICE|NUMSIM_API|NUMSIM_NOEXCEPT|HWY_\w+|inline|friend|extern)\b\s*|\[\[\w+\]\]\s*"
)


@dataclasses.dataclass
class Item:
    """Declarations that share a comment."""

    kind: str  # function, struct, class, enum, member, enumerator, variable, type or macro
    names: list
    signatures: list
    text: str  # of the comment; empty if there is none
    line: int
    scope: str = ""  # namespace within numsim
    members: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Header:
    name: str  # as it is included
    path: str  # below ROOT
    text: str
    items: list


def public_headers():
    """Returns {name: path} of the headers that are installed."""
    listed = [name for name, kind in check_installed.lists(str(ROOT)).items() if kind == "PUBLIC"]
    fronts = [check_installed.included_as(path) for path in check_installed.in_wings(str(ROOT), "numsim/*.h")]
    listed.append(C_HEADER)
    return {
        name: os.path.relpath(check_installed.place_of(str(ROOT), name), ROOT) for name in sorted({*listed, *fronts})
    }


def builtin_headers():
    """Returns the arguments by which libclang finds headers such as stddef.h, which it does not bring."""
    for compiler in ("clang", "clang-14"):
        if shutil.which(compiler):
            found = subprocess.run([compiler, "-print-resource-dir"], capture_output=True, text=True, check=True)
            return ["-resource-dir", found.stdout.strip()]
    found = subprocess.run(["g++", "-print-file-name=include"], capture_output=True, text=True, check=True)
    return ["-isystem", found.stdout.strip()]


def parse(names, language, standard):
    source = "".join(f'#include "{name}"\n' for name in names)
    arguments = ["-x", language, f"-std={standard}", *builtin_headers()]
    arguments += [f"-I{ROOT / wing}" for wing in check_installed.WINGS]
    unit = clang.cindex.Index.create().parse(
        "public.cc",
        arguments,
        [("public.cc", source)],
        clang.cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES,
    )
    errors = [str(d) for d in unit.diagnostics if d.severity >= clang.cindex.Diagnostic.Error]
    if errors:
        raise SystemExit("the public headers do not compile:\n" + "\n".join(errors[:10]))
    return unit.cursor


class Lines:
    """The lines of a header and the comments among them."""

    def __init__(self, path):
        self.text = (ROOT / path).read_text(encoding="utf-8")
        self.lines = [""] + self.text.split("\n")
        self.bytes = self.text.encode()

    def is_comment(self, number):
        return 0 < number < len(self.lines) and self.lines[number].lstrip().startswith("//")

    def is_blank(self, number):
        return not self.lines[number].strip()

    def indent(self, number):
        return len(self.lines[number]) - len(self.lines[number].lstrip())

    def head(self):
        """The comment at the top of the file."""
        last = next(n for n in range(1, len(self.lines)) if not self.is_comment(n))
        return self.comment(1, last)

    def comment(self, first, end):
        return "\n".join(re.sub(r"^\s*// ?", "", line) for line in self.lines[first:end])

    def above(self, number):
        """The comment that ends in the line above, at the same indentation."""
        first = number
        while self.is_comment(first - 1) and self.indent(first - 1) <= self.indent(number):
            first -= 1
        return self.comment(first, number)

    def beside(self, last):
        """The comment after the code of a line, and its continuation."""
        match = re.search(r"[;,{}\w)]\s+// ?(.*)$", self.lines[last])
        if not match or self.is_comment(last):
            return ""
        texts, number = [match[1]], last + 1
        while self.is_comment(number) and self.indent(number) > self.indent(last):
            texts.append(re.sub(r"^\s*// ?", "", self.lines[number]))
            number += 1
        return " ".join(texts)

    def slice(self, extent):
        return self.bytes[extent.start.offset : extent.end.offset].decode()


def function_signature(source):
    """The declaration without its body, initialisers and attributes of compilers."""
    text = DROPPED.sub("", re.sub(r"//.*", "", re.sub(r"/\*(\w+)\*/", r"\1", source)))
    depth, opened = 0, False
    for place, letter in enumerate(text):
        depth += (letter in "(") - (letter in ")")
        opened |= letter == "("
        rest = text[place:]
        if depth == 0 and opened and (letter == ";" or re.match(r"\{|:(?!:)|= *(default|delete)|requires\b", rest)):
            if text[place - 1 : place] == ":":
                continue
            text = text[:place]
            break
    return re.sub(r"\s+", " ", text).strip()


def value_signature(cursor, lines):
    """Type, name and default of a field or constant."""
    kind, extra = cursor.type.spelling, ""
    array = re.match(r"(.*?)\s*((?:\[\d*\])+)$", kind)
    if array:
        kind, extra = array[1], array[2]
    written = lines.bytes[cursor.location.offset : cursor.extent.end.offset].decode()
    default = re.sub(r"\s+", " ", written.removeprefix(cursor.spelling)).strip()
    default = re.sub(r"^(\[[^\]]*\])+\s*", "", default)
    shown = f" {default}" if default.startswith("=") and len(default) < 50 and "//" not in default else ""
    return f"{kind} {cursor.spelling}{extra}{shown}"


def type_signature(cursor, lines):
    text = lines.slice(cursor.extent)
    head = re.sub(r"\s+", " ", DROPPED.sub("", re.sub(r"//.*", "", text.split("{")[0]))).strip()
    return re.sub(r"(^|>) *(enum class|enum|struct|class)\b", r"\1", head, count=1).strip() or cursor.spelling


class Reader:
    def __init__(self, headers):
        self.headers = headers
        self.lines = {str(ROOT / path): Lines(path) for path in headers.values()}

    def items(self, parent, file=None, scope=""):
        """Yields (file, Item) of the public declarations in a namespace or type."""
        run = {}  # file: the last item and its last line
        for cursor in parent.get_children():
            place = cursor.location.file and os.path.normpath(cursor.location.file.name)
            if place not in self.lines or (file and place != file):
                continue
            if cursor.kind == Kind.NAMESPACE:
                if cursor.spelling not in ("internal", "detail", "std"):
                    inner = f"{scope}::{cursor.spelling}" if scope else cursor.spelling
                    yield from self.items(cursor, None, inner)
                continue
            if cursor.kind in (Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL):
                yield from self.items(cursor, file, scope)
                continue
            if cursor.kind == Kind.FRIEND_DECL:
                cursor = next(iter(cursor.get_children()), cursor)
            item = self.item(cursor, self.lines[place], scope)
            if item is None:
                continue
            if parent.kind in TYPES and cursor.extent.start.line == parent.extent.start.line:
                item.text = ""  # that of the type, which stands in one line
            last, end = run.get(place, (None, -1))
            first = cursor.extent.start.line
            joined = last and first <= end + 1 and not item.text
            if joined and item.kind == last.kind and item.kind not in ("struct", "class", "enum"):
                if set(item.signatures) - set(last.signatures):
                    last.names += item.names
                    last.signatures += item.signatures
                run[place] = (last, max(end, cursor.extent.end.line))
                continue
            run[place] = (item, cursor.extent.end.line)
            yield place, item

    def item(self, cursor, lines, scope):
        """Returns the item of a declaration, or None if it is not public or needs no entry."""
        kind, name = cursor.kind, cursor.spelling
        if cursor.access_specifier.name in ("PRIVATE", "PROTECTED"):
            return None
        first, last = cursor.extent.start.line, cursor.extent.end.line
        text = lines.above(first)
        if kind in TYPES:
            if not cursor.is_definition():
                return None
            unnamed = not name or "unnamed" in name
            head = "" if unnamed else type_signature(cursor, lines)
            text = text or (lines.beside(last) if first == last else lines.beside(first))
            members = [item for _, item in self.items(cursor, os.path.normpath(cursor.location.file.name))]
            if unnamed:  # the comment of an enum without a name is that of its constants
                for member in members:
                    member.text = member.text or text
            return Item(TYPES[kind], ["" if unnamed else name], [head], text, first, scope, members)
        text = text or lines.beside(last)
        source = lines.slice(cursor.extent)
        if kind in FUNCTIONS:
            if cursor.semantic_parent != cursor.lexical_parent and cursor.semantic_parent.kind in TYPES:
                return None  # the definition of a member, outside of its class
            # A copy, a move or the end of an object needs no sentence.
            if re.search(r"=\s*(default|delete)\s*$", self.tail(cursor, lines)):
                return None
            return Item("function", [name], [function_signature(source)], text, first, scope)
        if kind in VALUES:
            if kind == Kind.ENUM_CONSTANT_DECL:
                signature = re.sub(r"\s+", " ", source)
            else:
                signature = value_signature(cursor, lines)
                is_static = "static" in source.split(name)[0] or kind == Kind.VAR_DECL
                constant = re.match(r".*\bconstexpr\b", source.split(name)[0], re.DOTALL) and is_static
                if constant:
                    signature = "constexpr " + signature.removeprefix("const ")
            return Item(VALUES[kind], [name], [signature], text, first, scope)
        if kind in ALIASES:
            if re.match(r"typedef\s+(struct|enum|union)\b", source):
                return None
            if source.startswith("typedef"):
                signature = re.sub(r"\s+", " ", source.removeprefix("typedef").strip())
            else:
                signature = re.sub(r"\s+", " ", re.sub(r"\busing\b\s*", "", source))
            return Item("type", [name], [signature], text, first, scope)
        return None

    @staticmethod
    def tail(cursor, lines):
        """The declaration up to its semicolon."""
        rest = lines.bytes[cursor.extent.start.offset :].decode()
        return re.split(r"[;{]", rest, maxsplit=1)[0]


def macros(lines):
    """Yields the macros that a header leaves defined, except those of its own declarations."""
    seen = {"NUMSIM_API", "NUMSIM_NOEXCEPT"}
    for number, line in enumerate(lines.lines):
        match = re.match(r"#define (NUMSIM_\w+?)(\([^)]*\))?(?:\s+(.*))?$", line)
        if match and match[3] and match[1] not in seen and f"#undef {match[1]}" not in lines.text:
            seen.add(match[1])
            yield Item("macro", [match[1]], [match[1] + (match[2] or "")], lines.above(number), number)


def read():
    """Returns [Header] of all public headers, in the order of their names."""
    paths = public_headers()
    reader = Reader(paths)
    found = {name: [] for name in paths}
    name_of = {str(ROOT / path): name for name, path in paths.items()}
    for names, language, standard in (
        ([name for name in paths if name != C_HEADER], "c++", "c++20"),
        ([C_HEADER], "c", "c11"),
    ):
        for place, item in reader.items(parse(names, language, standard)):
            found[name_of[place]].append(item)
    for name, path in paths.items():
        found[name] += macros(reader.lines[str(ROOT / path)])
        found[name].sort(key=lambda item: item.line)
    return [Header(name, path, reader.lines[str(ROOT / path)].head(), found[name]) for name, path in paths.items()]


def without_sentence(items, owner=""):
    """Yields (line, name, kind) of each name that no comment describes.

    The comment of a type speaks for its fields, its enumerators and its constructors.
    """
    for item in items:
        first = item.names[0]
        of_type = item.kind in ("member", "enumerator") or first.split("<")[0] == owner.split("<")[0]
        described = item.text.strip() or not first or re.match(r"operator\W", first)
        if not described and not (owner and of_type):
            yield from ((item.line, f"{owner}::{name}" if owner else name, item.kind) for name in item.names)
        if item.members:
            yield from without_sentence(item.members, first)
