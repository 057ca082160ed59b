"""numsim.torch in two processes that share tensors: the bytes of one process."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("numsim.torch")

# {program of rank_programs.py: number of its checks}
PROGRAMS = {"optimizers": 44, "layers": 16, "data_parallel": 32, "rounding": 144}


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_processes_have_the_bytes_of_one(run_ranks, name):
    outputs = run_ranks(name)
    assert [out.strip() for out, _ in outputs] == [f"True {PROGRAMS[name]}"] * 2, outputs
