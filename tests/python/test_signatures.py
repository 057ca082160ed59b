"""The public names of the package with their arguments and defaults, against golden files."""

import ast
import dataclasses
import difflib
import importlib
import inspect
import itertools
import os
import pathlib

import pytest

import numsim

GOLDEN = pathlib.Path(__file__).parent / "golden"


def plain(signature):
    """A signature without annotations, whose texts differ between versions of Python."""
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=empty))


def lines_of_class(place, kind):
    if dataclasses.is_dataclass(kind):
        settings = kind.__dataclass_params__
        yield f"{place}: dataclass, frozen={settings.frozen}, eq={settings.eq}"
        for number, field in enumerate(dataclasses.fields(kind)):
            given = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
            by_name = ", by name" if field.kw_only else ""
            yield f"{place}: field {number}: {field.name}{given}{by_name}"
    elif getattr(kind.__init__, "__module__", "").startswith("numsim"):
        yield f"{place}{plain(inspect.signature(kind))}"
    yield f"{place}: hash={kind.__hash__ is not None}"
    for owner in reversed(kind.__mro__):
        if not owner.__module__.startswith("numsim"):
            continue
        for name, value in sorted(vars(owner).items()):
            if name.startswith("_"):
                continue
            if isinstance(value, property) or inspect.ismemberdescriptor(value):
                yield f"{place}.{name}: attribute"
            elif inspect.isfunction(value):
                yield f"{place}.{name}{plain(inspect.signature(value))}"


def lines_of_module(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, public)
        place = f"{name}.{public}"
        if public.startswith("_") or inspect.ismodule(value):
            continue
        if not hasattr(module, "__all__") and getattr(value, "__module__", name) != name:
            continue  # imported
        if inspect.isclass(value) and value.__module__ == "numsim._core":
            yield f"{place}: of the extension"
        elif inspect.isclass(value) and value.__module__.startswith("numsim"):
            yield from lines_of_class(place, value)
        elif inspect.isfunction(inspect.unwrap(value)) and value.__module__.startswith("numsim"):
            yield f"{place}{plain(inspect.signature(value))}"
        elif isinstance(value, (int, float, str)):
            yield f"{place} = {value!r}"


def lines_of_results(modules):
    """The dataclasses that calls return, whether or not they have a public name."""
    for name in modules:
        for kind in vars(importlib.import_module(name)).values():
            if dataclasses.is_dataclass(kind) and getattr(kind, "__module__", "") == name:
                yield from lines_of_class(f"{name}.{kind.__name__}", kind)


def lines_of_stub(path):
    """The functions of the extension, with the defaults of the bindings."""

    def visit(body, place):
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield f"{place}.{node.name}"
                yield from visit(node.body, f"{place}.{node.name}")
            elif isinstance(node, ast.FunctionDef):
                for argument in ast.walk(node.args):
                    if isinstance(argument, ast.arg):
                        argument.annotation = None
                kinds = "".join(f" @{ast.unparse(kind)}" for kind in node.decorator_list)
                yield f"{place}.{node.name}({ast.unparse(node.args)}){kinds}"

    return visit(ast.parse(path.read_text(encoding="utf-8")).body, "numsim._core")


def require_golden(name, lines):
    """Compares lines with a golden file, or writes it with NUMSIM_UPDATE_GOLDEN=1."""
    path, found = GOLDEN / name, sorted(set(lines))
    if os.environ.get("NUMSIM_UPDATE_GOLDEN"):
        path.write_text("\n".join(found) + "\n", encoding="utf-8")
    expected = path.read_text(encoding="utf-8").splitlines()
    changes = "\n".join(difflib.unified_diff(expected, found, str(path), "found", "", "", 0, ""))
    assert not changes, f"{changes}\n{path}: NUMSIM_UPDATE_GOLDEN=1 writes it anew"


def test_the_public_names():
    public = map(lines_of_module, ("numsim", "numsim.oracle", "numsim.results"))
    inner = lines_of_results(
        ("numsim._linear", "numsim._model_recipes", "numsim._optimizer", "numsim._profiles")
    )
    require_golden("signatures.txt", itertools.chain(*public, inner))


def test_the_public_names_of_numsim_torch():
    pytest.importorskip("torch")
    require_golden("signatures_torch.txt", lines_of_module("numsim.torch"))


def test_the_calls_of_the_extension():
    stub = pathlib.Path(numsim._core.__file__).with_name("_core.pyi")
    if not stub.exists():
        pytest.skip(f"{stub}: this build has no stubs")
    require_golden("signatures_core.txt", lines_of_stub(stub))
