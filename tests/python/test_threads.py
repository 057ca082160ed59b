"""Calls of several threads and processes: one backend per call, one step at a time."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import numsim as ns
from conftest import same

F32 = np.float32


def run_all(works, seconds):
    """Runs functions over and over in threads of their own. Raises what they raise."""
    stop, failures = time.monotonic() + seconds, []

    def loop(work):
        try:
            while time.monotonic() < stop:
                work()
        except BaseException as error:  # noqa: B036
            failures.append(error)

    threads = [threading.Thread(target=loop, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def script(code, **environment):
    """Runs a script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "import numpy as np, numsim as ns\n" + code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("mode", ["hopper-fp8", "fp32", "bf16"])
def test_a_product_keeps_its_backend_while_another_thread_changes_it(mode, rng):
    x = rng.normal(size=(48, 160)).astype(F32)
    q = ns.quantize(x, "e4m3fn", scaling="row")
    expected, active = ns.matmul(q, q.T, accumulate=mode), ns.backend()
    products, switches = [0], [0]
    names = ns.build_info()["backends"]

    def multiply():
        assert same(ns.matmul(q, q.T, accumulate=mode), expected)
        products[0] += 1

    def switch():
        for name in names:
            ns.backend(name)
        assert ns.build_info()["backends"] == names
        switches[0] += 1

    try:
        run_all([multiply, multiply, switch], 0.7)
    finally:
        ns.backend(active)
    assert switches[0] >= 3 and products[0] >= 10


def test_two_threads_step_one_optimizer(rng):
    shapes = {"a": (64, 32), "b": (32,)}
    start = {name: rng.normal(size=shape).astype(F32) for name, shape in shapes.items()}
    gradients = [
        {name: np.full(shape, value, F32) for name, shape in shapes.items()} for value in (1, -1)
    ]
    opt = ns.Optimizer(start, kind="sgd", beta1=0, weight_decay=0)
    counts = [0, 0]

    def stepping(i):
        def work():
            step = opt.step(gradients[i], lr=2.0**-10)
            # No gradient is mixed from two calls: all elements are 1, or all are -1.
            assert step.gradient_norm == np.sqrt(64 * 32 + 32)
            assert step.tensors["a"].moved == 64 * 32
            opt["b"], opt.bytes()
            counts[i] += 1

        return work

    run_all([stepping(0), stepping(1), stepping(0)], 1.0)
    assert min(counts) > 10
    # Every step was taken once: sums of +-2^-10 are exact up to the rounding of the start.
    moved = (counts[1] - counts[0]) * 2.0**-10
    for name, value in start.items():
        np.testing.assert_allclose(opt[name], value + moved, atol=1e-2)


def test_the_number_of_threads_has_limits():
    before = ns.threads()
    for count in (0, -1, 4097, 100_000, 10**9):
        with pytest.raises(ValueError, match="threads: "):
            ns.threads(count)
    for count in ("2", 2.0, True):
        with pytest.raises(TypeError, match="threads: expected an integer"):
            ns.threads(count)
    assert ns.threads() == before


def test_too_many_threads_of_the_environment_are_refused():
    out = script("ns.round(np.zeros(100000), 'bf16')", OMP_NUM_THREADS="99999")
    assert (
        out.returncode == 1
        and "OMP_NUM_THREADS: expected at most 4096 threads, found 99999" in out.stderr
    )
    out = script("ns.threads(2); print(ns.threads())", OMP_NUM_THREADS="3")
    assert out.stdout == "2\n", out.stderr


def test_the_program_refuses_too_many_threads_of_the_environment(tmp_path):
    program = os.environ.get("NUMSIM_PROGRAM")
    if not program:
        pytest.skip("NUMSIM_PROGRAM is not set")
    out = subprocess.run(
        [program, "backends"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "99999"},
    )
    assert out.returncode == 2
    assert out.stderr == "numsim: OMP_NUM_THREADS: expected at most 4096 threads, found 99999\n"


def test_the_environment_chooses_the_backend():
    out = script("print(ns.backend())", NUMSIM_BACKEND="scalar")
    assert out.stdout == "scalar\n", out.stderr
    out = script("", NUMSIM_BACKEND="scaler")
    assert out.returncode == 1
    assert "NUMSIM_BACKEND: backend 'scaler' is not available here" in out.stderr
    assert "did you mean scalar" in out.stderr
    assert script("print(ns.backend())", NUMSIM_BACKEND="").stdout == f"{ns.backend()}\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_keeps_one_thread_and_may_change_its_backend():
    out = script(
        "import os, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "x = np.linspace(-3, 3, 300000)\n"
        "ns.threads(2); ns.round(x, 'e4m3fn')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: ns.threads(2)\n"
        "    except ValueError as error: print(error, flush=True)\n"
        "    ns.backend('scalar'); ns.threads(1)\n"
        "    print(ns.threads(), ns.backend(), ns.round(x, 'e4m3fn').sum(), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(ns.threads())\n"
    )
    lines = out.stdout.splitlines()
    assert lines[0].startswith("threads: a forked process has one, found 2"), out.stderr
    assert lines[1].startswith("1 scalar ") and lines[2] == "2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no signals as of POSIX")
def test_ctrl_c_ends_a_long_product():
    """A product that would take minutes: its bands of rows look at signals."""
    code = (
        "import numpy as np, numsim as ns\n"
        "x = ns.array(np.ones((8000, 256), np.float32), 'bf16')\n"
        "print('begin', flush=True)\n"
        "try: ns.matmul(x, x[:1000].T, accumulate='bf16')\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "else: print('not interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begin\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out == "interrupted\n"


@pytest.mark.parametrize("mode", ["fp32", "exact", "hopper-fp8-fast"])
@pytest.mark.parametrize("scaling", ["row", "block:32/e8m0", "tile:48x64", "tensor"])
def test_a_long_product_has_the_bits_of_its_parts(scaling, mode, rng):
    x, y = (rng.normal(size=s).astype(F32) for s in ((720, 640), (640, 640)))
    a = ns.quantize(x, "e4m3fn", scaling=scaling)
    b = ns.quantize(y, "e4m3fn", scaling="row").T
    whole = ns.matmul(a, b, accumulate=mode)  # more than 2^28 products: several bands
    for rows in (slice(0, 48), slice(48, 96), slice(672, 720)):
        how = {"scale": a.scale} if scaling == "tensor" else {"scaling": scaling}
        part = ns.quantize(x[rows], "e4m3fn", **how)
        assert np.array_equal(part.codes, a.codes[rows])
        assert same(whole[rows], ns.matmul(part, b, accumulate=mode))
