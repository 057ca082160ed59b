"""Writes the reference of the Python package, one page per public module."""

import prose
import python_names

TITLES = {
    "numsim": "numsim: arrays",
    "numsim.oracle": "numsim.oracle: right results, and a judge",
    "numsim.results": "numsim.results: published tables",
    "numsim.torch": "numsim.torch: layers, optimiser and measures for PyTorch",
    "numsim.torch.train": "numsim.torch.train: trainings in plain PyTorch",
}


def underlined(title, letter):
    return [title, letter * len(title), ""]


def item_lines(item, module, known, depth=0):
    name = item.place.removeprefix(f"{module}.") if depth == 0 else item.place.rsplit(".", 1)[1]
    options = []
    signature = item.signature
    if item.kind in ("property", "attribute") and signature:
        options, signature = [f"   :type: {signature.removeprefix(': ')}"], ""
    if item.kind == "data" and signature:
        options, signature = [f"   :value: {signature.removeprefix(' = ')}"], ""
    lines = [f".. py:{item.kind}:: {name}{signature}", *options, ""]
    others = known | {item.place.rsplit(".", 1)[1]: None}  # no link to itself
    lines += ["   " + line if line else "" for line in prose.rst(item.text, others)]
    for member in item.members:
        lines += ["   " + line if line else "" for line in item_lines(member, module, known, depth + 1)]
    return [*lines, ""]


def page(package, module, known):
    place = package if module == "numsim" else package[module.removeprefix("numsim.")]
    lines = [*underlined(TITLES[module], "="), f".. py:module:: {module}", ""]
    lines += prose.rst(python_names.docstring(place), known)
    topics = {}
    names = python_names.public_names(package, module)
    for item in names:
        topics.setdefault(item.topic, []).append(item)
    for topic, items in topics.items():
        lines += underlined(topic.replace("`", ""), "-") if len(topics) > 1 else []
        for item in items:
            lines += item_lines(item, module, known)
    returned = list(python_names.returned_classes(package, module, {item.place for item in names}))
    if returned:
        lines += [
            *underlined("What calls return", "-"),
            "Objects of these classes are results; no call takes them.",
            "",
        ]
        for item in returned:
            lines += item_lines(item, module, known)
    return lines


def links(package):
    """{name: link} of the functions and classes, as docstrings name them."""
    found = {}
    for module in python_names.MODULES:
        for item in python_names.public_names(package, module):
            short = item.place.rsplit(".", 1)[1]
            link = f":py:obj:`{item.place}`"
            found[item.place] = link
            if len(short) > 4 and short[0].isupper():
                found.setdefault(short, f":py:obj:`{short} <{item.place}>`")
    return found


def write(folder):
    folder = folder / "python"
    folder.mkdir(parents=True, exist_ok=True)
    package = python_names.load()
    known = links(package)
    index = [*underlined("Python reference", "=")]
    index += [
        "Every public name of the package. :doc:`/docs/python` has recipes.",
        "",
        ".. toctree::",
        "   :maxdepth: 2",
        "",
    ]
    for module in python_names.MODULES:
        (folder / f"{module}.rst").write_text("\n".join(page(package, module, known)) + "\n", encoding="utf-8")
        index.append(f"   {module}")
    (folder / "index.rst").write_text("\n".join(index) + "\n", encoding="utf-8")
