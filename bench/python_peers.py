#!/usr/bin/env python3
"""Casts from float32 to E4M3 by numsim and its peers, in one process: millions of elements per
second.

    python bench/python_peers.py [--largest N] [--seconds S]

Each number is the fastest of several calls on an array of normal numbers; an allocation of the
result belongs to the call, as in use. A peer that is not installed, has no such rounding, or whose
next call would take longer than --seconds, has a dash. Prints the versions, the machine, and two
tables.
"""

import argparse
import importlib.metadata
import os
import platform
import time

import numpy as np

import numsim as ns


def module(name):
    try:
        return __import__(name)
    except ImportError:
        return None


ml_dtypes, gfloat, pychop, torch = map(module, ("ml_dtypes", "gfloat", "pychop", "torch"))


def numsim_nearest(x):
    e4m3fn = ns.format("e4m3fn")
    return lambda: ns.round(x, e4m3fn)


def numsim_codes(x):
    e4m3fn = ns.format("e4m3fn")
    return lambda: ns.encode(x, e4m3fn)


def numsim_stochastic(x):
    e4m3fn, sr = ns.format("e4m3fn"), ns.SR(bits=16, seed=1)
    return lambda: ns.round(x, e4m3fn, rounding=sr)


def ml_dtypes_nearest(x):
    return ml_dtypes and (lambda: x.astype(ml_dtypes.float8_e4m3fn))


def torch_nearest(x):
    if not torch:
        return None
    tensor = torch.from_numpy(x)
    return lambda: tensor.to(torch.float8_e4m3fn)


def gfloat_nearest(x):
    if not gfloat or x.size > 10**7:  # its temporary arrays take 100 bytes per element
        return None
    from gfloat.formats import format_info_ocp_e4m3

    return lambda: gfloat.round_ndarray(format_info_ocp_e4m3, x)


def gfloat_stochastic(x):
    if not gfloat or x.size > 10**7:
        return None
    from gfloat.formats import format_info_ocp_e4m3

    mode = gfloat.RoundMode.StochasticFastest
    rng = np.random.default_rng(1)
    return lambda: gfloat.round_ndarray(
        format_info_ocp_e4m3, x, mode, srbits=rng.integers(0, 1 << 16, x.size), srnumbits=16
    )


def pychop_rounding(x, mode):
    if not pychop or x.size > 10**7:
        return None
    pychop.backend("numpy")
    chop = pychop.Chop(exp_bits=4, sig_bits=3, rmode=mode)
    return lambda: chop(x)


def pychop_nearest(x):
    return pychop_rounding(x, 1)


def pychop_stochastic(x):
    return pychop_rounding(x, 5)


TABLES = {
    "to nearest even": {
        "numsim, values": numsim_nearest,
        "numsim, codes": numsim_codes,
        "ml_dtypes": ml_dtypes_nearest,
        "torch": torch_nearest,
        "gfloat": gfloat_nearest,
        "pychop": pychop_nearest,
    },
    "stochastic": {
        "numsim, values": numsim_stochastic,
        "gfloat": gfloat_stochastic,
        "pychop": pychop_stochastic,
    },
}


def fastest(call, seconds):
    """The shortest time of a call, among those that fit 0.3 seconds, at least three."""
    best, spent, count = float("inf"), 0.0, 0
    while count < 3 or (spent < 0.3 and count < 3000):
        start = time.perf_counter()
        call()
        taken = time.perf_counter() - start
        best, spent, count = min(best, taken), spent + taken, count + 1
        if spent > seconds:
            break
    return best


def machine():
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(
                line.split(":")[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def versions():
    for name in ("numsim", "numpy", "ml_dtypes", "gfloat", "pychop", "torch"):
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield f"{name} {ns.__version__}" if name == "numsim" else f"{name} not installed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--largest", type=int, default=10**8, help="largest number of elements")
    parser.add_argument("--seconds", type=float, default=10, help="longest time of one call")
    arguments = parser.parse_args()
    print(f"{', '.join(versions())}; Python {platform.python_version()}")
    print(f"{machine()}, {ns.threads()} threads, backend {ns.backend()}")
    x = np.random.default_rng(0).normal(size=arguments.largest).astype(np.float32)
    for title, peers in TABLES.items():
        print(f"\n{title}, million elements per second\n")
        print("| elements | " + " | ".join(peers) + " |")
        print("| ---: |" + " ---: |" * len(peers))
        last = dict.fromkeys(peers, 0.0)  # seconds per element at the size before
        for power in range(3, 9):
            size = 10**power
            if size > arguments.largest:
                break
            cells = []
            for name, make in peers.items():
                call = make(x[:size]) if last[name] * size < arguments.seconds else None
                if call is None:
                    cells.append("-")
                    last[name] = float("inf")
                    continue
                with np.errstate(all="ignore"):
                    taken = fastest(call, arguments.seconds)
                last[name] = taken / size
                cells.append(
                    f"{size / taken / 1e6:,.3g}"
                    if size / taken < 1e9
                    else f"{size / taken / 1e6:,.0f}"
                )
            print(f"| 10^{power} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
