"""numsim.torch on two GPUs with NCCL: the programs of test_torch_sharded.py, with a GPU per process."""

import pytest

import numsim as ns
from test_torch_sharded import PROGRAMS, assert_held

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if torch.cuda.device_count() < 2:
    pytest.skip(
        f"needs two CUDA devices, and PyTorch finds {torch.cuda.device_count()}",
        allow_module_level=True,
    )
if not torch.distributed.is_nccl_available():
    pytest.skip("PyTorch was built without NCCL", allow_module_level=True)
if ns._core.device_unavailable():
    pytest.skip(f"numsim: {ns._core.device_unavailable()}", allow_module_level=True)

CHECKS = {**PROGRAMS, "layers": 25}  # without those of the kind mx


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_gpus_have_the_bytes_of_one(run_ranks, name):
    assert_held(run_ranks(name, device="cuda"), {name: CHECKS[name]})


def test_a_process_may_use_any_of_the_gpus_that_it_sees(run_ranks):
    name = "data_parallel"
    assert_held(run_ranks(name, device="cuda", all_seen=True), {name: CHECKS[name]})
