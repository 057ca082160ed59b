#!/usr/bin/env python3
"""Checks the commands of the launcher `numsim`, with stand-ins for the build and the program.

  check_launcher.py ROOT   exits 1 when a command does what it should not
"""

import os
import shutil
import subprocess
import sys
import tempfile

# Both note that they ran; the program also writes what the launcher reads.
BUILD = """#!/bin/sh
echo "build $*" >>"$LOG"
"""
PROGRAM = """#!/bin/sh
echo "program $*" >>"$LOG"
case "$1 $2" in
  "list --names") printf 'linear-error\\nother\\n' ;;
  "run "*)
    out=$(echo "$*" | sed -n 's/.*--out \\([^ ]*\\).*/\\1/p')
    mkdir -p "$out" && echo "summary of $2" >"$out/summary.txt" && touch "$out/figure.svg"
    ;;
  "--help "*) echo "help of the program" ;;
esac
"""


class Launcher:
    """The launcher in a directory of its own."""

    def __init__(self, launcher, directory):
        self.root = directory
        self.log = os.path.join(directory, "log")
        shutil.copy(launcher, os.path.join(directory, "numsim"))
        for path in (".ci/install-packages", "bin/cmake", "bin/apt-get"):
            self.write(path, BUILD)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def add_program(self):
        self.write("build/release/apps/numsim", PROGRAM)

    def run(self, *arguments):
        """Exit code, stdout, stderr, and the lines that build and program noted."""
        open(self.log, "w", encoding="utf-8").close()
        path = os.path.join(self.root, "bin") + os.pathsep + os.environ["PATH"]
        result = subprocess.run(
            [os.path.join(self.root, "numsim"), *arguments],
            env={**os.environ, "PATH": path, "LOG": self.log},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        with open(self.log, encoding="utf-8") as file:
            return result.returncode, result.stdout, result.stderr, file.read().splitlines()


FAILURES = []


def expect(what, condition, *shown):
    if not condition:
        FAILURES.append(what)
        print(f"{what}:", *shown, file=sys.stderr)


def check_help(launcher):
    for arguments in ([], ["-h"], ["--help"]):
        code, out, err, noted = launcher.run(*arguments)
        expect(f"{arguments} prints help", code == 0 and "./numsim demo" in out, code, out, err)
        expect(f"{arguments} builds nothing", noted == [], noted)
    launcher.add_program()
    code, out, err, noted = launcher.run()
    expect("no argument runs nothing", code == 0 and noted == [], code, noted)
    code, out, err, noted = launcher.run("--help")
    expect(
        "--help ends with the program's help",
        code == 0 and out.index("./numsim demo") < out.index("help of the program"),
        code,
        out,
        err,
    )
    expect("--help builds nothing", noted == ["program --help"], noted)


def check_bad_arguments(launcher):
    for arguments in (["--bad"], ["--all", "--bad"], ["results"]):
        code, out, err, noted = launcher.run("demo", *arguments)
        expect(f"demo {arguments} fails", code == 2 and out == "", code, out)
        expect(
            f"demo {arguments} says why in a line",
            err.count("\n") == 1 and " ".join(arguments) in err,
            err,
        )
        expect(f"demo {arguments} builds nothing", noted == [], noted)


def check_demo(launcher):
    launcher.add_program()
    code, out, err, noted = launcher.run("demo")
    expect("demo succeeds", code == 0 and err == "", code, out, err)
    expect("demo builds the program alone", noted[-2].endswith("--target numsim_app"), noted)
    expect("demo runs the program's", noted[-1] == "program demo", noted)


def check_all(launcher):
    launcher.add_program()
    code, out, err, noted = launcher.run("demo", "--all")
    runs = [line for line in noted if line.startswith("program run")]
    expected = [
        "program run linear-error --preset quick --out results/linear-error --seeds 3",
        "program run other --preset quick --out results/other",
    ]
    expect("demo --all succeeds", code == 0 and err == "", code, out, err)
    expect("demo --all runs what the program lists", runs == expected, runs)
    for text in ("summary of linear-error", "summary of other", "results/other/figure.svg"):
        expect(f"demo --all shows {text}", text in out, out)


# A Python that answers what the launcher asks: its version, whether it has venv; pip fails.
PYTHON = """#!/bin/sh
echo "python3 $*" >>"$LOG"
case "$*" in
  *ensurepip*) exit %d ;;
  "-m venv --clear "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
  "-m pip install "*) echo "ERROR: no registry" >&2; exit %d ;;
esac
"""


# What ctest leaves behind, with a test that GoogleTest and two that pytest skipped.
CTEST = """#!/bin/sh
echo "ctest $*" >>"$LOG"
mkdir -p build/release/Testing/Temporary
printf '%s\\n' 'a_test.cc:1: Skipped' 'no device' '[  SKIPPED ]' \\
  'SKIPPED [2] a_test.py:61: no torch' >build/release/Testing/Temporary/LastTest.log
"""


def check_test(launcher):
    launcher.write("tests/python/requirements.txt", "numpy\n")
    launcher.write("bin/ctest", CTEST)
    launcher.write(".ci/pip-certificates", "#!/bin/sh\nexit 1\n")
    cases = (
        (1, 0, "python3 has no venv", False),
        (0, 1, "ERROR: no registry", False),
        (0, 0, None, True),
    )
    for without_venv, without_registry, why, built in cases:
        launcher.write("bin/python3", PYTHON % (without_venv, without_registry))
        shutil.rmtree(os.path.join(launcher.root, "build"), ignore_errors=True)
        code, out, err, noted = launcher.run("test", "-R", "x")
        expect("test succeeds", code == 0 and err == "", code, out, err)
        expect("test runs ctest last", noted[-1].endswith("-R x"), noted)
        expect("test lists what was skipped", "  1: no device" in out and "  2: no torch" in out, out)
        left_out = "The tests of the Python package are left out"
        expect(f"test says {why}", (left_out in out) == (why is not None), out)
        expect(f"test says {why}", why is None or why in out, out)
        switch = "NUMSIM_PYTHON=" + ("ON" if built else "OFF")
        expect(f"test configures with {switch}", any(switch in line for line in noted), noted)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for check in (check_help, check_bad_arguments, check_demo, check_all, check_test):
        with tempfile.TemporaryDirectory() as directory:
            check(Launcher(os.path.join(sys.argv[1], "numsim"), directory))
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
