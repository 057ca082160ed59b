"""What the campaigns of this folder share: scenarios, a folder for each, and the comparison of results.

A scenario is a command of the numsim program that writes files, always the same bytes. After an interruption,
`resume` must finish it with those bytes. A scenario without `resume` replaces one file in one step: after an
interruption the file has its old or its new bytes.
"""
import argparse
import array
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Files that hold times, that lock, or whose lines stand in the order in which trials ended.
UNEQUAL = ("times.csv", "-times.gp", "-times.svg", "-times.pdf", "manifest.json", "lock", ".jsonl")


@dataclass
class Scenario:
    name: str
    command: list
    resume: list = None


def resumable(name, *command):
    command = [*command, "--out", "out"]
    return Scenario(name, command, [*command, "--resume"])


TRAIN = ["train", "--preset", "tiny", "--set", "train.steps=24", "checkpoint.every=5", "train.valid_every=12"]
SCENARIOS = [
    resumable("train", *TRAIN),
    resumable("train-fp8-moments", *TRAIN, "optimizer.v=e4m3fn@block", "optimizer.weights=bf16"),
    resumable("quantization-variance", "run", "quantization-variance", "--pairs", "4", "--k-high", "128",
              "--seeds", "1"),
    resumable("update-fidelity", "run", "update-fidelity", "--formats", "bf16", "--size", "64", "--per-decade", "1",
              "--seeds", "2"),
    Scenario("cast", ["cast", "x.npy", "y.npy", "--format", "bf16"]),
]


def parse_arguments(text, disk=False, **numbers):
    """Returns the arguments of a campaign; each of `numbers` is an option with its default and its meaning."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", type=Path, default=REPOSITORY / "build/release/apps/numsim")
    parser.add_argument("--work", type=Path, required=True, help="folder for the files of the campaign; emptied")
    parser.add_argument("--scenario", action="append", choices=[scenario.name for scenario in SCENARIOS],
                        help="one scenario alone (repeatable)")
    if disk:
        parser.add_argument("--disk", type=Path, required=True, help="the shared library of faulty_disk.c")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is drawn (0)")
    for name, (default, meaning) in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, help=f"{meaning} ({default})")
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    arguments.work = arguments.work.resolve()
    if disk:
        arguments.disk = arguments.disk.resolve()
    arguments.scenarios = [scenario for scenario in SCENARIOS
                           if not arguments.scenario or scenario.name in arguments.scenario]
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    return arguments


def write_npy(path, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
                     + array.array("f", values).tobytes())


def make_folder(path):
    """Returns a new folder with the files that scenarios read, and the old y.npy that some replace."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    write_npy(path / "x.npy", [0.37 * i - 900 for i in range(5000)])
    write_npy(path / "y.npy", [0.0] * 10)
    return path


def environment(**more):
    return dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", **more)


def run(arguments, command, folder, **more):
    """Runs the program; returns its CompletedProcess."""
    return subprocess.run([arguments.program, *command], cwd=folder, env=environment(**more),
                          stdin=subprocess.DEVNULL, capture_output=True)


def results(folder, unequal=UNEQUAL):
    """Returns the bytes of the files below a folder by name, without those whose names end so."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(unequal)}


def reference(arguments, scenario):
    """Returns the results of a run that nothing disturbs, and those that were there before."""
    folder = make_folder(arguments.work / f"{scenario.name}-reference")
    before = results(folder)
    done = run(arguments, scenario.command, folder)
    if done.returncode != 0:
        sys.exit(f"{scenario.name} fails without a disturbance: {done.stderr.decode()}")
    return results(folder), before


def difference(found, expected):
    """Returns "" if both have the same files with the same bytes, otherwise the first difference."""
    for name in sorted(found.keys() | expected.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is left over"
        if found[name] != expected[name]:
            return f"{name} has other bytes"
    return ""


def trouble_after(arguments, scenario, folder, expected, before):
    """Finishes an interrupted scenario in `folder`. Returns "" if its files are right, otherwise the trouble."""
    if scenario.resume is None:
        found = results(folder)
        found = {name: found[name] for name in found if not name.startswith(".numsim-")}
        return difference(found, expected) and difference(found, before) and "neither old nor new bytes"
    done = run(arguments, scenario.resume, folder)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.decode().strip()}"
    return difference(results(folder), expected)


class Report:
    """Counts disturbances and keeps the troubles."""

    def __init__(self, what):
        self.what, self.counts, self.troubles = what, {}, []

    def add(self, scenario, place, trouble):
        self.counts[scenario.name] = self.counts.get(scenario.name, 0) + 1
        if trouble:
            self.troubles.append(f"{scenario.name}, {place}: {trouble}")
            print(self.troubles[-1], flush=True)

    def exit_code(self):
        for name, count in self.counts.items():
            print(f"{name:24} {count:6} {self.what}")
        print(f"{sum(self.counts.values())} {self.what}, {len(self.troubles)} troubles")
        return 1 if self.troubles else 0
