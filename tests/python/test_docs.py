"""The examples of the documentation, with the output that they show."""

import doctest
import importlib.util
import re
import runpy

import numpy as np

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {"PyTorch": "torch", "How do I train through a rounding in JAX?": "jax"}
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def sections(text):
    """Yields (heading, its blocks of Python) of a page."""
    for section in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
        blocks = BLOCK.findall(section)
        if blocks:
            yield section.partition("\n")[0], blocks


def test_every_recipe_shows_what_it_prints(source_dir, monkeypatch):
    monkeypatch.chdir(source_dir)
    np.set_printoptions(legacy=False)
    page = source_dir / "docs/python.md"
    recipes = dict(sections(page.read_text(encoding="utf-8")))
    assert len(recipes) >= 10 and set(NEEDS) <= set(recipes)
    failures = []
    for heading, blocks in recipes.items():
        needed = NEEDS.get(heading)
        if needed and not importlib.util.find_spec(needed):
            continue
        test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, heading, str(page), 0)
        assert test.examples, heading
        output = []
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=output.append)
        failures += output
    assert not failures, "".join(failures)


def test_the_example_of_the_package_runs(source_dir):
    text = (source_dir / "libnumsim/python/README.md").read_text(encoding="utf-8")
    for block in BLOCK.findall(text):
        exec(compile(block, "README.md", "exec"), {})


def test_the_first_example_runs(source_dir, capsys):
    runpy.run_path(str(source_dir / "libnumsim/python/examples/first.py"))
    out = capsys.readouterr().out
    assert "nearest    0.75" in out and re.search(r"stochastic 0\.(779|78)\d*", out)
