"""The package as a whole."""

import importlib.resources
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import numsim as ns


def test_it_says_how_it_was_built(source_dir):
    text = (source_dir / "CMakeLists.txt").read_text(encoding="utf-8")
    assert f"VERSION {ns.__version__}\n" in text
    assert (
        ns.build_info()["version"] == ns.__version__ and ns.backend() in ns.build_info()["backends"]
    )


def test_it_is_typed():
    files = {path.name for path in importlib.resources.files("numsim").iterdir()}
    assert {"py.typed", "_core.pyi"} <= files


def test_type_checkers_find_no_error(source_dir, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    package = pathlib.Path(ns.__file__).parent
    command = [sys.executable, "-m", "mypy", "-p", "numsim", "--no-error-summary"]
    command += ["--config-file", source_dir / "pyproject.toml", "--cache-dir", tmp_path]
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    out = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert out.returncode == 0, out.stdout + out.stderr


def test_the_extension_shows_one_symbol():
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    command = ["nm", "--dynamic", "--defined-only", "--format=just-symbols", ns._core.__file__]
    symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert symbols == ["PyInit__core"]


# Of the system, or of the libraries that a build for this machine needs; packaging/wheel links those statically.
SYSTEM = {"libc", "libm", "libgcc_s", "libstdc++", "libgomp", "libpthread", "libdl", "librt"}
SYSTEM |= {"ld-linux"}
ADDED = {"libfmt", "libhwy", "libcrypto", "libz", "libdnnl"}
ADDED |= {"libsentencepiece", "libsentencepiece_train"}


def test_what_a_wheel_holds_works_by_itself(source_dir, tmp_path):
    build = pathlib.Path(ns.__file__).parents[3]
    if not (build / "CMakeCache.txt").is_file():
        pytest.skip("the package is not in a build tree")
    command = ["cmake", "--install", build, "--component", "python", "--prefix", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    held = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    package = source_dir / "libnumsim/python"
    expected = {str(path.relative_to(package)) for path in (package / "numsim").rglob("*.py")}
    extension = f"numsim/{pathlib.Path(ns._core.__file__).name}"
    assert held == expected | {"numsim/py.typed", "numsim/_core.pyi", extension}
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import numsim as ns, numpy as np
assert ns.__file__.startswith({str(tmp_path)!r}), ns.__file__
print(ns.round(np.float32([0.3, 1000]), "e4m3fn", overflow="saturate").tolist(), ns.__version__)
"""
    out = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert out.stdout == f"[0.3125, 448.0] {ns.__version__}\n", out.stderr


def test_the_extension_needs_what_a_wheel_may_need():
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed")
    command = ["readelf", "--dynamic", ns._core.__file__]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # auditwheel adds part of a hash to the names of the libraries that it puts into a wheel.
    ending = r"(?:-x86-64|-aarch64|-[0-9a-f]{8})?\.so[.\d]*"
    needed = set(re.findall(rf"\(NEEDED\).*\[(.*?){ending}\]", text))
    assert "libc" in needed and needed <= SYSTEM | ADDED
    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)
    assert all("$ORIGIN" in path for path in paths), "a wheel must not name folders of this machine"


def test_the_extension_is_for_all_pythons_from_3_10_on(source_dir):
    if not sys.abiflags:
        assert ns._core.__file__.endswith((".abi3.so", ".pyd"))
    text = (source_dir / "pyproject.toml").read_text(encoding="utf-8")
    assert 'wheel.py-api = "cp310"' in text and 'requires-python = ">=3.10"' in text


def test_functions_state_the_types_of_their_arguments():
    for name in ns.__all__:
        function = getattr(ns, name)
        if inspect.isfunction(function):
            hints = inspect.signature(function)
            assert hints.return_annotation is not hints.empty, name
            assert all(p.annotation is not p.empty for p in hints.parameters.values()), name


def test_every_public_name_is_documented():
    for name in ns.__all__:
        thing = getattr(ns, name)
        if inspect.isfunction(thing) or inspect.isclass(thing) or inspect.ismodule(thing):
            assert thing.__doc__ or thing is ns.Error, name


def test_every_function_is_on_the_page(source_dir):
    page = (source_dir / "docs/python.md").read_text(encoding="utf-8")
    functions = [name for name in ns.__all__ if inspect.isfunction(getattr(ns, name))]
    assert len(functions) > 30
    missing = [name for name in functions if not re.search(rf"(`|ns\.){name}\b", page)]
    assert not missing, "docs/python.md: no row of the overview has them"


def test_importing_it_does_not_import_other_packages():
    # ml_dtypes, torch and pandas are used when they are there, and loaded when they are needed.
    others = ("ml_dtypes", "torch", "pandas", "json")
    code = f"import sys, numsim; print([m for m in {others} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "[]"


def test_without_pytorch_its_part_says_what_is_missing():
    code = """
import sys; sys.modules["torch"] = None  # as if it were not installed
import numsim as ns
try:
    ns.torch
except ImportError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.startswith("numsim.torch needs PyTorch"), out.stderr


def test_errors_of_the_library_are_value_errors():
    assert issubclass(ns.Error, ValueError)
    with pytest.raises(ns.Error):
        ns.format("no format")


def test_a_forked_process_computes_with_one_thread():
    # A process of its own, because pytest may have threads; it is killed if its child hangs.
    code = """
import os, numpy as np, numsim as ns
x = np.ones(1_000_000, np.float32)
ns.threads(2), ns.encode(x, "e4m3fn")
if os.fork() == 0:
    os._exit(0 if ns.encode(x, "e4m3fn").all() and ns.threads() == 1 else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]), ns.threads())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert out.stdout.split() == ["0", "2"], out.stderr


def test_calls_run_side_by_side(rng):
    x = rng.normal(size=1_000_000).astype(np.float32)
    expected = ns.encode(x, "e4m3fn")
    results = [None] * 4

    def work(i):
        results[i] = ns.encode(x, "e4m3fn")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, expected) for result in results)
