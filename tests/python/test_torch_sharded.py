"""numsim.torch in two processes that share tensors: the bytes of one process."""

import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("numsim.torch")

# {program of rank_programs.py: number of its checks}
PROGRAMS = {"optimizers": 44, "layers": 31, "data_parallel": 32, "rounding": 144}


def assert_held(outputs, programs):
    """Every check held in both processes."""
    for out, error in outputs:
        sys.stderr.write(error)
        assert dict(line.split() for line in out.splitlines()) == {
            name: str(count) for name, count in programs.items()
        }


def test_two_processes_have_the_bytes_of_one(run_ranks):
    assert_held(run_ranks(*PROGRAMS), PROGRAMS)
