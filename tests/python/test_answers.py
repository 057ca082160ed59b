"""The commands of docs/answers.md, with the output that the page shows."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(text):
    """Yields (command, expected lines) of the blocks of a page; lines after "> " belong to the command."""
    for block in CONSOLE.findall(text):
        command, expected = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command, expected
                command, expected = line[2:], []
            elif line.startswith("> ") and not expected:
                command += "\n" + line[2:]
            else:
                expected.append(line)
        yield command, expected


def shows(expected, lines):
    """Whether the output is as expected, where "..." stands for any lines."""
    if not expected:
        return not lines
    if expected[0] == "...":
        return any(shows(expected[1:], lines[skip:]) for skip in range(len(lines) + 1))
    return bool(lines) and lines[0].rstrip() == expected[0] and shows(expected[1:], lines[1:])


def test_shows_compares_whole_lines():
    assert shows(["a", "...", "c"], ["a", "b", "b", "c"])
    assert shows(["..."], [])
    assert not shows(["a"], ["a", "b"])
    assert not shows(["a", "...", "c"], ["a", "b"])
    assert not shows(["a"], ["ab"])


def test_every_answer_is_what_its_command_prints(source_dir, tmp_path):
    program = os.environ.get("NUMSIM_PROGRAM")
    if not program:
        pytest.skip("NUMSIM_PROGRAM is not set: this build has no numsim program")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "numsim").symlink_to(pathlib.Path(program).resolve())
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    page = (source_dir / "docs/answers.md").read_text(encoding="utf-8")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    failures, count = [], 0
    for command, expected in commands(page):
        run = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        if run.returncode or not shows(expected, run.stdout.splitlines()):
            failures.append(f"$ {command}\n{run.stdout}{run.stderr}")
        count += 1
    assert count >= page.count("\n## ") >= 12
    assert not failures, "\n".join(failures)
