#!/usr/bin/env python3
"""The cost of a call on eight elements in Python above the same call in C++, in microseconds.

    python bench/python_calls.py [--cpp build/release/bench/call_bench] [--most US]

Each number is the shortest mean of 100 calls, less that of a function that does nothing; the calls
take turns, so that a busy moment of the machine hits all of them. The program of --cpp measures the
C++ calls. With --most, exits with 1 if a call costs more than that above its C++ call.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

import numsim as ns


def calls():
    x = np.array([0.1, -0.7, 1.3, -2.1, 3.3, -0.01, 17, 250], np.float32)
    e4m3fn = "e4m3fn"  # by its name, as in use
    codes, typed, sr = ns.encode(x, e4m3fn), ns.array(x, e4m3fn), ns.SR(bits=16, seed=1)
    row, a, b = x.reshape(1, 8), x.reshape(2, 4), x.reshape(4, 2)
    quantized, qa, qb = (ns.quantize(matrix, e4m3fn) for matrix in (row, a, b))
    result = {
        "round": lambda: ns.round(x, e4m3fn),
        "round, 16 random bits": lambda: ns.round(x, e4m3fn, rounding=sr),
        "encode": lambda: ns.encode(x, e4m3fn),
        "decode": lambda: ns.decode(codes, e4m3fn),
        "quantize": lambda: ns.quantize(row, e4m3fn),
        "quantize by rows": lambda: ns.quantize(row, e4m3fn, scaling="row"),
        "dequantize": quantized.dequantize,
        "+": lambda: typed + typed,
        "*": lambda: typed * typed,
        "fma": lambda: ns.fma(typed, typed, typed),
        "matmul of quantized": lambda: ns.matmul(qa, qb),
        "matmul of float32": lambda: ns.matmul(a, b),
    }
    if ns.format(e4m3fn).dtype is not None:  # with ml_dtypes
        result["cast"] = lambda: ns.cast(x, e4m3fn)
    return result


def shortest(functions, rounds=300, count=100):
    """Returns {name: seconds per call}."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter()
            for _ in range(count):
                function()
            best[name] = min(best[name], (time.perf_counter() - begin) / count)
    return best


def of_cpp(program):
    """Returns {name: microseconds} of the C++ calls."""
    command = [program, "--benchmark_format=json", "--benchmark_min_time=0.02"]
    command += ["--benchmark_repetitions=10"]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    best = {}
    for run in json.loads(out.stdout)["benchmarks"]:
        if run["run_type"] == "iteration":
            name = run["run_name"]
            best[name] = min(best.get(name, float("inf")), run["real_time"] / 1e3)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cpp", default="build/release/bench/call_bench", help="the C++ program")
    parser.add_argument("--most", type=float, help="the most that a call may cost above C++")
    arguments = parser.parse_args()
    ours = shortest({**calls(), "nothing": lambda: None})
    nothing = ours.pop("nothing")
    cpp = of_cpp(arguments.cpp)
    print("| call | Python | C++ | above |\n| --- | ---: | ---: | ---: |")
    missed = []
    for name, seconds in ours.items():
        python = (seconds - nothing) * 1e6
        above = python - cpp[name]
        print(f"| {name} | {python:.2f} | {cpp[name]:.2f} | {above:.2f} |")
        if arguments.most is not None and above > arguments.most:
            missed.append(name)
    if missed:
        sys.exit(f"more than {arguments.most} microseconds above C++: {', '.join(missed)}")


if __name__ == "__main__":
    main()
