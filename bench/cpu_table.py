#!/usr/bin/env python3
"""Measures the CPU's kernels beside their peers and prints a table in Markdown (docs/speed.md).

  cpu_table.py [--programs DIR] [--threads N] [--repeats N] [--only TEXT] [--training [ARGUMENTS]]

DIR has the benchmarks of a Release build, build/release/bench if not given. A row is measured with one
thread and with N. Its benchmark and its peer's run in one process, in turns, and the best of
all repeats counts on both sides. The products of "VNNI alone" run in a process in which oneDNN may not
use AMX. --training also runs training_peers.py, which needs PyTorch, with these arguments.
"""

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

UPDATE = "bf16/16M/{}/lr:0.0001"


@dataclass
class Row:
    """A row: the rate of `name`, or its ratio to the peers'; if `times`, a time over the peers' sum."""

    what: str
    program: str
    name: str
    required: str
    goal: str
    peers: tuple = ()
    times: bool = False
    vnni_alone: bool = False


def of_memcpy(what, name, required, goal="1.0"):
    return Row(what, "cast_bench", name, required, goal, ("memcpy",))


def of_naive_pass(what, rule, required):
    return Row(
        what,
        "update_bench",
        f"apply/{rule}/{UPDATE.format('normal')}",
        required,
        "-",
        (f"naive-pass/{UPDATE.format('normal')}",),
        times=True,
    )


ROWS = [
    Row("int8 1024^3 over oneDNN", "gemm_bench", "int8/exact/1024", "0.9", "1.0", ("int8/onednn/1024",)),
    Row(
        "int8 1024^3 by VNNI alone over oneDNN by VNNI",
        "gemm_bench",
        "int8/vnni/1024",
        "0.95",
        "1.0",
        ("int8/onednn/1024",),
        vnni_alone=True,
    ),
    Row("`hopper-fp8-fast`, GFLOP/s", "gemm_bench", "e4m3fn/hopper-fp8-fast/1024", "40 per thread", "80"),
    Row("`hopper-fp8`, GFLOP/s", "gemm_bench", "e4m3fn/hopper-fp8/1024", "40 per thread", "80"),
    Row(
        "`hopper-bf16`, far exponents, GFLOP/s",
        "gemm_bench",
        "bf16/hopper-bf16/1024",
        "16 per thread",
        "25",
    ),
    of_memcpy("decode e4m3fn over memcpy", "decode/e4m3fn", "0.9"),
    of_memcpy("encode e4m3fn toward zero over memcpy", "encode_rtz/e4m3fn", "0.8"),
    of_memcpy("encode bnb-e4m3 toward zero over memcpy", "encode_rtz/bnb-e4m3", "0.5"),
    of_memcpy("decode bnb-e4m3 over memcpy", "decode/bnb-e4m3", "0.5"),
    of_memcpy("encode e4m3fn from float64 over memcpy", "encode_f64_rne/e4m3fn", "0.5"),
    of_memcpy("encode e4m3fn from float64 toward zero over memcpy", "encode_f64_rtz/e4m3fn", "0.5"),
    of_memcpy("encode int8 from float64 over memcpy", "encode_f64_rne/int8", "0.5"),
    of_memcpy("encode bf16 from float64 over memcpy", "encode_f64_rne/bf16", "0.5"),
    of_memcpy("encode bnb-e4m3 from float64 over memcpy", "encode_f64_rne/bnb-e4m3", "0.5"),
    Row(
        "Hadamard of 16 and NVFP4, stochastic, over memcpy",
        "quantize_bench",
        "hadamard:16/rows/nvfp4/sr",
        "0.5",
        "1.0",
        ("memcpy",),
    ),
    of_naive_pass("`ApplyUpdate` naive over a bare pass", "naive", "1.5"),
    of_naive_pass("`ApplyUpdate` stochastic over a bare pass", "stochastic", "2.5"),
    Row(
        "matched update with sign updates over a pass and a read",
        "update_bench",
        f"selection-projection/{UPDATE.format('signs')}",
        "4",
        "3",
        (f"naive-pass/{UPDATE.format('signs')}", f"read/{UPDATE.format('signs')}"),
        times=True,
    ),
]


def measure(programs, rows, threads, repeats):
    """Returns {benchmark: (largest rate, least time)} of one process per program."""
    found = {}
    for program, vnni_alone in sorted({(row.program, row.vnni_alone) for row in rows}):
        mine = [row for row in rows if (row.program, row.vnni_alone) == (program, vnni_alone)]
        names = sorted({name for row in mine for name in (row.name, *row.peers)})
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "active"}
        if vnni_alone:
            environment["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_VNNI"
        command = [
            os.path.join(programs, program),
            f"--benchmark_filter=^({'|'.join(names)})/threads:{threads}/",
            f"--benchmark_repetitions={repeats}",
            "--benchmark_enable_random_interleaving=true",
            "--benchmark_format=json",
        ]
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        for entry in json.loads(run.stdout)["benchmarks"]:
            if entry["run_type"] != "iteration" or entry.get("error_occurred"):
                continue
            key = (program, vnni_alone, entry["name"].split("/threads:")[0])
            rate = max(entry.get("GFLOP/s", 0), entry.get("GB/s", 0))
            best_rate, best_time = found.get(key, (0, float("inf")))
            found[key] = (max(best_rate, rate), min(best_time, entry["real_time"]))
    return found


def value(row, found):
    """Returns the text of a cell, a dash where a benchmark cannot run on this machine."""
    keys = [(row.program, row.vnni_alone, name) for name in (row.name, *row.peers)]
    if any(key not in found for key in keys):
        return "-"
    own, *peers = (found[key] for key in keys)
    if row.times:
        return f"{own[1] / sum(time for _, time in peers):.2f}"
    if not peers:
        return f"{own[0]:.1f}"
    return f"{own[0] / peers[0][0]:.2f} ({own[0]:.0f} of {peers[0][0]:.0f})"


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read()
    model = re.search(r"model name\s*: (.*)", text)
    units = [name for name in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if f" {name}" in text]
    return f"{model[1] if model else platform.machine()}, {', '.join(units)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--programs", default=os.path.join(here, "../build/release/bench"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose first cell contains this text")
    parser.add_argument("--training", nargs="?", const="", metavar="ARGUMENTS")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only in row.what]
    if not rows:
        parser.error(f"--only {arguments.only}: no row of the table contains this text")
    missing = {row.program for row in rows} - set(os.listdir(arguments.programs))
    if missing:
        parser.error(f"{arguments.programs}: no {', '.join(sorted(missing))}; build them first")
    counts = sorted({1, arguments.threads})
    found = {n: measure(arguments.programs, rows, n, arguments.repeats) for n in counts}
    print(f"{processor()}\n")
    print("| what |" + "".join(f" {n} thread{'s' * (n > 1)} |" for n in counts) + " required | goal |")
    print("| --- |" + " ---: |" * len(counts) + " ---: | ---: |")
    for row in rows:
        cells = "".join(f" {value(row, found[n])} |" for n in counts)
        print(f"| {row.what} |{cells} {row.required} | {row.goal} |")
    if arguments.training is not None:
        script = os.path.join(here, "training_peers.py")
        return subprocess.run([sys.executable, script, *shlex.split(arguments.training)]).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
