"""Writes the reference of the C++ library and of the C interface, one page per room."""

import re

import headers
import prose

DOMAINS = {
    "function": "function",
    "struct": "struct",
    "class": "class",
    "enum": "enum",
    "member": "member",
    "variable": "var",
    "enumerator": "enumerator",
    "type": "type",
    "macro": "macro",
}
C_DIRECTIVES = {"variable": "var", "class": "struct", "member": "member"}


def room_of(header):
    """The room of a header; the front headers stand in none."""
    parts = header.name.split("/")
    return parts[1] if len(parts) > 2 else "front"


def page_name(room):
    return "c" if room == "capi" else f"cpp/{room}"


def anchor(name):
    return re.sub(r"\W+", "-", name)


def underlined(title, letter):
    return [title, letter * len(title), ""]


def names_with_links(found):
    """{name: link} of the names that stand for one thing only."""
    places, kinds = {}, {}
    for header in found:
        domain = "c" if room_of(header) == "capi" else "cpp"
        for item in header.items:
            for name in item.names:
                places.setdefault(name, set()).add((domain, item.scope))
                kinds[name] = item.kind
    links = {}
    roles = {"function": "func", "variable": "var", "macro": "macro", "type": "type", "enum": "enum"}
    for name, where in places.items():
        if len(where) != 1 or not name or len(name) < 4 or re.search(r"\W", name):
            continue
        domain, scope = next(iter(where))
        role = roles.get(kinds[name], "struct")
        if domain == "cpp" and role == "macro":
            domain = "c"
        target = f"{scope}::{name}" if domain == "cpp" and scope else name
        links[name] = f":{domain}:{role}:`{name} <{target}>`"
    return links


class Page:
    def __init__(self, domain, known):
        self.domain, self.known, self.lines = domain, known, []

    def add(self, lines, depth=0):
        self.lines += ["   " * depth + line if line else "" for line in lines]

    def directive(self, item):
        kind = DOMAINS[item.kind]
        if item.kind == "macro":
            return "c:macro"
        if self.domain == "c":
            return f"c:{C_DIRECTIVES.get(item.kind, kind)}"
        if item.kind == "enum":
            return "cpp:enum-class"
        return f"cpp:{kind}"

    def item(self, item, depth=0, owner=""):
        if item.kind == "enum" and not item.names[0]:  # the constants of an enum without a name
            for member in item.members:
                self.item(member, depth, owner)
            return
        name = self.directive(item)
        opening = f".. {name}:: "
        signatures = item.signatures
        first, *others = signatures
        self.add([opening + first, *(" " * len(opening) + text for text in others), ""], depth)
        self.add(prose.rst(item.text, self.known), depth + 1)
        for member in item.members:
            self.item(member, depth + 1, item.names[0])
        self.add([""], 0)


def header_lines(header, domain, known):
    page = Page(domain, known)
    page.add(["", f".. _{anchor(header.name)}:", ""])
    page.add(underlined(header.name, "-"))
    page.add(prose.rst(header.text, known))
    page.add([".. code-block:: cpp", "", f"   #include <{'numsim.h' if domain == 'c' else header.name}>", ""])
    scope = None
    for item in header.items:
        if domain == "cpp" and item.scope != scope:
            scope = item.scope
            page.add([f".. cpp:namespace:: {scope or 'NULL'}", ""])
        page.item(item)
    return page.lines


def write(folder):
    """Writes the pages below `folder`; returns {header: (page, anchor)}."""
    found = headers.read()
    known = names_with_links(found)
    rooms, places = {}, {}
    for header in found:
        rooms.setdefault(room_of(header), []).append(header)
    for room, of_room in sorted(rooms.items()):
        title = {"capi": "C reference", "front": "Front headers"}.get(room, room)
        lines = underlined(title, "=")
        if room == "front":
            lines += ["Each includes what its task needs.", ""]
        for header in of_room:
            places[header.path] = (f"reference/{page_name(room)}", anchor(header.name))
            domain = "c" if room == "capi" else "cpp"
            lines += header_lines(header, domain, known)
        path = folder / f"{page_name(room)}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_index(folder, sorted(room for room in rooms if room != "capi"))
    return places


def write_index(folder, rooms):
    tasks = dict(headers.check_installed.TASKS)
    lines = underlined("C++ reference", "=")
    lines += [
        "Every public name of the library, read from the headers that are installed, in the namespace ``numsim``. A",
        "page has the headers of one folder. :doc:`/docs/library` shows how to build with the library, and",
        ":doc:`/docs/headers` lists the headers by task.",
        "",
    ]
    groups = {"Front headers": ["front"]}
    groups |= {task: [room for room in members if room in rooms] for task, members in tasks.items()}
    for task, members in groups.items():
        lines += [".. toctree::", f"   :caption: {task}", "   :maxdepth: 2", ""]
        lines += [f"   {room}" for room in members] + [""]
    (folder / "cpp/index.rst").write_text("\n".join(lines), encoding="utf-8")
