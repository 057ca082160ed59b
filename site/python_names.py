"""Reads the public names of the Python package from its source: nothing is imported or compiled."""

import ast
import dataclasses
import pathlib

import griffe

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ("numsim", "numsim.oracle", "numsim.results", "numsim.torch", "numsim.torch.train")
# Names without a definition in Python: those of the extension, and constants. {name: (kind, value, text)}
OTHERS = {
    "numsim.Error": (
        "exception",
        "",
        "The error of arguments that the library refuses: a ValueError that names the argument.",
    ),
    "numsim.INEXACT": ("data", "1", "The flag of a result that is not exact."),
    "numsim.UNDERFLOW": ("data", "2", "The flag of a result that is tiny and not exact."),
    "numsim.OVERFLOW": ("data", "4", "The flag of a result that is beyond the largest number of the format."),
    "numsim.DIVIDE_BY_ZERO": ("data", "8", "The flag of an infinity that is the exact result for finite operands."),
    "numsim.INVALID": ("data", "16", "The flag of a result that is no number, such as 0 / 0."),
}
# Arithmetic of numsim._typed is made by these functions from a text: (signature, place of the text).
OPTIONS = (
    "*, to: FormatLike | None = None, rounding: str | SR = 'rne', overflow: str = 'nonsaturate', flags: bool = False"
)
MAKERS = {"unary": f"(a: Array, {OPTIONS}) -> Array", "_binary": f"(a: Array, b: Array, {OPTIONS}) -> Array"}
IMPORTED = ("annotations", "importlib", "os")
HOOKS = ("extra_repr",)  # methods that only PyTorch calls


@dataclasses.dataclass
class Name:
    place: str  # numsim.torch.AdamW.step
    kind: str  # function, class, exception, method, property, attribute or data
    signature: str  # what follows the name
    text: str
    topic: str = ""  # first sentence about the file that defines it
    members: list = dataclasses.field(default_factory=list)


def load():
    return griffe.load(
        "numsim",
        search_paths=[ROOT / "libnumsim/python"],
        try_relative_path=False,
        resolve_aliases=True,
        resolve_implicit=True,
        allow_inspection=False,
    )


def docstring(thing):
    return thing.docstring.value if thing.docstring else ""


def signature_of(thing):
    shown = thing.signature()
    return shown[shown.index("(") :]


def member(thing, place):
    """Returns the entry of a member of a class, or None if it needs none of its own."""
    if thing.is_function:
        return Name(
            place, "method", signature_of(thing).replace("(self, ", "(").replace("(self)", "()"), docstring(thing)
        )
    if thing.is_attribute:
        kind = "property" if "property" in thing.labels else "attribute"
        annotation = f": {thing.annotation}" if thing.annotation else ""
        return Name(place, kind, annotation, docstring(thing))
    return None


def entry(thing, place):
    if thing.is_class:
        kind = "exception" if any("Warning" in str(base) or "Error" in str(base) for base in thing.bases) else "class"
        signature = signature_of(thing) if "__init__" in thing.members or "dataclass" in thing.labels else ""
        found = Name(place, kind, signature.replace("(self, ", "("), docstring(thing))
        for name, inner in thing.members.items():
            if not name.startswith("_") and not inner.is_alias and name not in HOOKS:
                item = member(inner, f"{place}.{name}")
                if item and (item.kind != "attribute" or item.text):  # fields are in the text of their class
                    found.members.append(item)
        return found
    if thing.is_function:
        text = docstring(thing) or made_text(thing.module, "a * b + c" if thing.name == "fma" else "")
        return Name(place, "function", signature_of(thing), text)
    call = ast.parse(str(thing.value)).body[0].value if thing.value else None
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") in MAKERS:
        text = made_text(thing.parent, call.args[1].value)
        return Name(place, "function", MAKERS[call.func.id], text)
    return Name(place, "data", f" = {thing.value}" if thing.value else "", docstring(thing))


def made_text(module, result):
    """Returns the docstring of arithmetic with that result, from the text that the package itself uses."""
    typed = module if "_DOCUMENTATION" in module.members else module.parent["_typed"]
    if not result:
        return ""
    template = ast.literal_eval(str(typed["_DOCUMENTATION"].value))
    lines = template.format(text=result, special="those of the operation").split("\n")
    return "\n".join(line.strip() for line in lines)


def topic_of(thing, module):
    home = thing.module
    text = docstring(home).split("\n")[0].rstrip(".")
    return "The package" if home.path == module or not text else text


def public_names(package, module):
    """The entries of a module, in the order in which it names them."""
    place = package if module == "numsim" else package[module.removeprefix("numsim.")]
    exported = None if module == "numsim" else place.exports
    if exported:
        names = [str(name) for name in exported]
    else:  # numsim computes its list: all names but those that the file imports for itself
        names = [
            name
            for name, thing in place.members.items()
            if name[0] != "_" and (module == "numsim" or not thing.is_alias) and name not in IMPORTED
        ]
    found = []
    for name in names:
        where = f"{module}.{name}"
        if where in OTHERS:
            kind, value, text = OTHERS[where]
            found.append(Name(where, kind, value and f" = {value}", text, "The package"))
            continue
        thing = place.members[name]
        thing = thing.final_target if thing.is_alias else thing
        if thing.is_module:
            continue
        item = entry(thing, where)
        item.topic = topic_of(thing, module)
        found.append(item)
    return found


def returned_classes(package, module, known):
    """The dataclasses that calls of a module return and that have no public name."""
    place = package if module == "numsim" else package[module.removeprefix("numsim.")]
    for home in place.modules.values():
        if not home.name.startswith("_"):
            continue
        for name, thing in home.classes.items():
            if thing.is_alias:
                continue
            if "dataclass" in thing.labels and name[0] != "_" and f"{module}.{name}" not in known:
                yield entry(thing, f"{home.path}.{name}")


def without_sentence(names):
    """Yields the places of names that no docstring describes."""
    for item in names:
        if not item.text.strip():
            yield item.place
        yield from without_sentence(item.members)
