"""Calls and what they return, print, warn of or raise, against golden files.

A golden file has sections "# name" of lines ">>> Python" with the outcome of each below. The lines
of a section share names. NUMSIM_UPDATE_GOLDEN=1 writes the outcomes anew: then read what changed.
"""

import ast
import dataclasses
import decimal
import fractions
import os
import pathlib
import warnings

import numpy as np
import pytest

import numsim as ns

GOLDEN = pathlib.Path(__file__).parent / "golden"


def sections(name):
    """[(name, [line of Python])] of a golden file."""
    found = []
    for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            found.append((line[2:], []))
        elif line.startswith(">>> "):
            found[-1][1].append(line[4:])
    return found


def shown(value):
    """A value as a text that does not depend on the version of NumPy."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} {shown(value.tolist())}"
    if isinstance(value, np.generic):
        return f"{value.dtype.name} {value.item()!r}"
    if isinstance(value, dict):
        inner = ", ".join(f"{k!r}: {shown(v)}" for k, v in value.items())
        return f"{type(value).__name__} {{{inner}}}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(shown, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if dataclasses.is_dataclass(value) and "__repr__" not in vars(type(value)):
        return shown(dataclasses.asdict(value))
    return value if isinstance(value, str) else repr(value)


def outcome(line, names):
    """What a line of Python does, as lines of text."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            if isinstance(ast.parse(line).body[0], ast.Expr):
                text = shown(eval(line, names))  # noqa: S307
            else:
                exec(line, names)  # noqa: S102
                text = ""
        except Exception as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}"
    warned = [f"{type(t.message).__name__}: {t.message}" for t in told]
    return [line for part in (*warned, text) for line in part.splitlines()]


def outcome_of(call):
    """What a call returns or raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


def text_of(lines, **names):
    names = {"ns": ns, "np": np, "F32": np.float32, "core": ns._core, **names}
    names["outcome_of"] = outcome_of
    names |= {"Fraction": fractions.Fraction, "Decimal": decimal.Decimal}
    text = []
    for line in lines:
        folder = str(names.get("folder", "DIR"))
        text += [f">>> {line}", *(out.replace(folder, "DIR") for out in outcome(line, names))]
    return text


def require_golden(name, section, lines, **names):
    found = text_of(lines, **names)
    path = GOLDEN / name
    before, _, rest = path.read_text(encoding="utf-8").partition(f"# {section}\n")
    old, mark, after = rest.partition("\n# ")
    if os.environ.get("NUMSIM_UPDATE_GOLDEN"):
        body = "\n".join(found) + "\n"
        path.write_text(f"{before}# {section}\n{body}{mark}{after}", encoding="utf-8")
        return
    # pytest shows the lines that differ.
    assert found == old.splitlines(), f"{path}: NUMSIM_UPDATE_GOLDEN=1 writes it anew"


def by_section(name):
    return pytest.mark.parametrize(
        ("section", "lines"), sections(name), ids=lambda x: x if isinstance(x, str) else ""
    )


@by_section("calls.txt")
def test_calls(section, lines, tmp_path):
    pytest.importorskip("ml_dtypes")
    if section == "long doubles" and np.finfo(np.longdouble).nmant != 63:
        pytest.skip("long doubles of another width")
    require_golden("calls.txt", section, lines, folder=tmp_path)


@by_section("calls_torch.txt")
def test_calls_of_numsim_torch(section, lines, tmp_path):
    torch = pytest.importorskip("torch")
    import numsim.torch as nt

    torch.manual_seed(1)
    require_golden("calls_torch.txt", section, lines, folder=tmp_path, torch=torch, nt=nt)
