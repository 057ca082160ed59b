"""Fixtures of the tests of the Python package.

The environment names what is tested: PYTHONPATH the package in the build tree, NUMSIM_PROGRAM the
program, NUMSIM_SOURCE_DIR the repository.
"""

import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest


@pytest.fixture(scope="session")
def source_dir():
    """The root of the repository."""
    return pathlib.Path(
        os.environ.get("NUMSIM_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2]
    )


@pytest.fixture(scope="session")
def numsim_program():
    """Runs the numsim program with arguments; the test is skipped in builds without it."""
    program = os.environ.get("NUMSIM_PROGRAM")
    if not program:
        pytest.skip("NUMSIM_PROGRAM is not set: this build has no numsim program")

    def run(*arguments):
        subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)

    return run


@pytest.fixture(autouse=True)
def first_streams():
    """Calls without a stream of their own draw the same random bits in any order of the tests."""
    import numsim

    numsim.streams({})


@pytest.fixture
def run_ranks(tmp_path):
    """Runs programs of rank_programs.py in two processes. Returns [(stdout, stderr)] of them.

    On "cuda" each has a GPU: the only one that it sees, or `all_seen` the one with its number. The
    test is skipped without torch.distributed.
    """
    if not pytest.importorskip("torch").distributed.is_available():
        pytest.skip("PyTorch was built without torch.distributed")
    command = [sys.executable, pathlib.Path(__file__).with_name("rank_programs.py")]

    def environment(rank, all_seen):
        if all_seen:
            return None
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
        return {**os.environ, "CUDA_VISIBLE_DEVICES": devices[rank]}

    def run(*names, device="cpu", all_seen=False):
        texts = [[tmp_path / f"rank{rank}.{end}" for end in ("out", "err")] for rank in range(2)]
        ranks = []
        for rank, (out, error) in enumerate(texts):
            with out.open("w") as stdout, error.open("w") as stderr:
                words = [*command, str(rank), str(tmp_path / "store"), device, *names]
                env = environment(rank, all_seen or device == "cpu")
                ranks.append(subprocess.Popen(words, stdout=stdout, stderr=stderr, env=env))
        end = time.monotonic() + 120
        try:
            while any(rank.poll() is None for rank in ranks) and time.monotonic() < end:
                if any(rank.poll() for rank in ranks):  # one failed, and the other waits for it
                    time.sleep(1)
                    break
                time.sleep(0.05)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        return [tuple(path.read_text() for path in pair) for pair in texts]

    return run


@pytest.fixture
def rng():
    return np.random.default_rng(20261125)


# The values of the codes 0, 1, ... of e2m1fn.
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
FP4 = np.concatenate([FP4, -FP4])


def spread(scales, rows, cols, shape):
    """One scale per element: the grid of scales, each repeated over its block."""
    return np.repeat(np.repeat(scales, rows, -2), cols, -1)[..., : shape[-2], : shape[-1]]


def all_halves():
    """Every 16-bit pattern: all inputs of bf16 and fp16."""
    return np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def wide_floats(rng, n):
    """float32 numbers with uniform bits, so of all magnitudes, with infinities and NaNs."""
    return rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)


def same(a, b):
    """Whether two float arrays have the same values, signs of zeros included; NaNs are equal."""
    a, b = np.asarray(a), np.asarray(b)
    return (
        a.shape == b.shape
        and np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b))
    )
