#!/usr/bin/env python3
"""Checks what a release states and holds: versions, changelog, packs with their readers, source archive, recipes.

  check_release.py ROOT PROGRAM    prints a line for each check; exits with 1 if one fails

PROGRAM is numsim. The package of Python is checked where NUMSIM_PACKAGE names its folder, the reader in SystemVerilog
where iverilog is installed.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = None

ROOT, PROGRAM = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
READERS = ROOT / "packaging/readers"


def output(*command, cwd=None, code=0):
    """What a command prints. Requires that exit code."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def load_release():
    """packaging/release as a module."""
    loader = importlib.machinery.SourceFileLoader("release", str(ROOT / "packaging/release"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


RELEASE = load_release()
VERSION = RELEASE.stated_version()


class Versions(unittest.TestCase):
    def test_the_program_has_the_version_of_the_sources(self):
        self.assertRegex(output(PROGRAM, "--version"), rf"^numsim {re.escape(VERSION)} \(")

    def test_the_package_has_it(self):
        if not os.environ.get("NUMSIM_PACKAGE"):
            self.skipTest("NUMSIM_PACKAGE is not set: this build has no Python package")
        code = "import numsim; print(numsim.__version__)"
        environment = {**os.environ, "PYTHONPATH": os.environ["NUMSIM_PACKAGE"]}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout, f"{VERSION}\n")

    def test_all_files_that_state_it_do(self):
        RELEASE.check_version(VERSION)

    def test_a_tag_of_the_commit_is_it(self):
        tags = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "tag", "--points-at", "HEAD", "--list", "v*"],
            capture_output=True, text=True, check=False,
        ).stdout.split()
        self.assertIn(tags, ([], [f"v{VERSION}"]))

    def test_the_changelog_descends_to_the_first_version(self):
        headings = RELEASE.HEADING.findall(RELEASE.read("CHANGELOG.md"))
        versions = [tuple(map(int, h.split()[0].split("."))) for h in headings if h != "Unreleased"]
        self.assertEqual(versions, sorted(versions, reverse=True))
        self.assertEqual(versions[-1], (0, 1, 0))
        self.assertIn(tuple(map(int, VERSION.split("."))), versions)


class Command(unittest.TestCase):
    def test_another_version_changes_every_file_that_states_it(self):
        changed = RELEASE.write_version("9.8.7", "2030-01-02")
        self.assertEqual(set(changed) - {"CHANGELOG.md"}, {name for name, _ in RELEASE.STATED})
        for name, text in RELEASE.STATED:
            self.assertIn(text.format("9.8.7"), changed[name])
            self.assertNotIn(text.format(VERSION), changed[name])
        self.assertEqual(set(RELEASE.write_version(VERSION, "2030-01-02")) - {"CHANGELOG.md"}, set())

    def test_only_versions_that_follow_are_taken(self):
        self.assertEqual(RELEASE.followers("0.2.9"), ["0.2.10", "0.3.0", "1.0.0"])
        for wrong in ("0.1.9", "0.9.9", "v0.2.0", "2"):
            with self.assertRaisesRegex(RELEASE.Refused, "VERSION: expected .*found"):
                RELEASE.check_version(wrong)

    def test_a_dry_run_lists_the_steps_and_writes_nothing(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()) as errors:
            code = RELEASE.main([VERSION, "--dry-run"])
        for step in RELEASE.STEPS:
            self.assertEqual(step in text.getvalue(), step != "tag", step)
        clean = not RELEASE.git("status", "--porcelain")  # else the last check refuses
        self.assertEqual(code, 0 if clean else 2, errors.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(RELEASE.main([VERSION, "--only", "pack"]), 2)
        self.assertIn("--only: 'pack' is not one of version, build, packs", errors.getvalue())

    def test_archives_of_the_same_files_are_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("a", "b"):
                (folder / name / "x").mkdir(parents=True)
                (folder / name / "x/y.txt").write_text("y")
                os.utime(folder / name / "x/y.txt", (len(name), ord(name[0])))
                RELEASE.archive(folder / f"{name}.tar.gz", folder / name, "same")
            data = (folder / "a.tar.gz").read_bytes()
            self.assertEqual(data, (folder / "b.tar.gz").read_bytes())
            self.assertEqual(data[4:8], bytes(4), "the time in the head of gzip")


class Packs(unittest.TestCase):
    """One small set in every form, and the readers on the file that they judge."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        for form in RELEASE.FORMS:
            output(PROGRAM, "oracle", "pack", cls.folder / form, "--set", "operations", "--as", form)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def file(self, form, ending):
        """A file of convert from e4m3fn to fp32, all codes, which the set itself does not have."""
        path = self.folder / f"decode.{ending}"
        command = [PROGRAM, "oracle", "gen", "--results", "--op", "convert", "--format", "e4m3fn"]
        path.write_text(output(*command, "--to", "fp32", "--level", "full", "--as", form))
        return path

    def test_manifests_name_the_version_the_form_and_every_file(self):
        for form in RELEASE.FORMS:
            manifest = json.loads((self.folder / form / "manifest.json").read_text())
            self.assertEqual(
                (manifest["numsim_version"], manifest["form"], manifest["pack"]),
                (VERSION, form, "operations"),
            )
            files = {path.name for path in (self.folder / form).iterdir()}
            listed = {file["path"] for file in manifest["files"]}
            self.assertEqual(files, listed | {"manifest.json", "README.md"})

    def test_the_release_has_every_set_and_form(self):
        said = output(PROGRAM, "oracle", "pack", "--help")
        for name in (*RELEASE.SETS, *RELEASE.FORMS):
            self.assertRegex(said, rf"\b{name}\b")
        wrong = output(PROGRAM, "oracle", "pack", self.folder / "x", "--set", "no", code=2)
        self.assertIn("one of " + ", ".join(RELEASE.SETS), wrong)

    def test_python_reads_every_form_and_sees_a_changed_byte(self):
        reader = [sys.executable, READERS / "read_pack.py"]
        for form in RELEASE.FORMS:
            if form == "npy" and not importlib.util.find_spec("numpy"):
                continue
            self.assertIn(f"form {form}: ", output(*reader, self.folder / form))
        wrong = self.folder / "wrong"
        shutil.copytree(self.folder / "csv", wrong)
        path = next(wrong.glob("add-*.csv"))
        path.write_bytes(path.read_bytes()[:-2] + b"7\n")
        self.assertIn("SHA-256", output(*reader, wrong, code=1))

    def test_c_reads_hex_and_csv_and_judges(self):
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
        program = self.folder / "read_pack"
        options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        output(compiler, *options, "-o", program, READERS / "read_pack.c", "-lm")
        for form, ending in (("hex", "txt"), ("csv", "csv")):
            path = self.file(form, ending)
            self.assertIn("256 cases of 3 columns, 0 wrong", output(program, path, "--judge"))
            path.write_text(path.read_text().replace("3F100000", "3F200000"))
            self.assertIn("256 cases of 3 columns, 1 wrong", output(program, path, "--judge", code=1))
            path.write_text(path.read_text() + "00 zz\n")
            self.assertIn(":257" if form == "hex" else ":258", output(program, path, code=2))

    def test_systemverilog_reads_readmemh_and_judges(self):
        if not shutil.which("iverilog"):
            self.skipTest("iverilog is not installed")
        circuit = self.folder / "circuit"
        output("iverilog", "-g2012", "-o", circuit, READERS / "read_pack.sv")
        path = self.file("readmemh", "mem")
        self.assertIn("256 cases, 0 wrong", output("vvp", circuit, f"+file={path}"))
        path.write_text(path.read_text().replace("3F100000", "3F200000"))
        self.assertIn("256 cases, 1 wrong", output("vvp", circuit, f"+file={path}", code=1))

    def test_readers_are_short(self):
        for reader in READERS.iterdir():
            self.assertLessEqual(len(reader.read_text().splitlines()), 100, reader.name)


class Sources(unittest.TestCase):
    def test_the_source_archive_has_what_its_build_reads(self):
        """By the rules of pyproject.toml, in which a path that begins with / is one of the root."""
        if tomllib is None:
            self.skipTest("this Python has no tomllib")
        settings = tomllib.loads(RELEASE.read("pyproject.toml"))["tool"]["scikit-build"]["sdist"]
        tracked = RELEASE.git("ls-files").splitlines()

        def is_in(path):
            if any(re.match(pattern_of(rule), path) for rule in settings["include"]):
                return True
            return not any(re.match(pattern_of(rule), path) for rule in settings["exclude"])

        def pattern_of(rule):
            return re.escape(rule.lstrip("/")).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") + r"(/|$)"

        held = {path for path in tracked if is_in(path)}
        runs = [line.split(",")[0] for line in RELEASE.read("experiments/published/runs.csv").split()[1:]]
        needed = {f"experiments/published/{run}/verdicts.csv" for run in runs}
        needed |= {path for path in tracked if path.startswith(("cmake/", "libnumsim/", "apps/"))}
        needed |= {"CMakeLists.txt", "README.md", "LICENSE", "docs/references.md", "experiments/published/runs.csv"}
        self.assertEqual(needed - held, set())
        size = sum((ROOT / path).stat().st_size for path in held)
        self.assertLess(size, 12e6, "bytes of the files in the source archive")

    def test_the_debian_package_builds_with_what_install_packages_has(self):
        control = RELEASE.read("packaging/debian/control").replace("\n ", " ")
        wanted = re.search(r"^Build-Depends: (.*)$", control, re.MULTILINE).group(1)
        names = {name.split()[0] for name in wanted.split(", ")} - {"debhelper-compat"}
        listed = set(output(ROOT / ".ci/install-packages", "--list").split())
        self.assertLessEqual(names, listed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
