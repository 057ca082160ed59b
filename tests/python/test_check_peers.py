"""tests/tools/check_peers against tiny stand-ins for the other projects, with a fault that it must find."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import numsim as ns


@pytest.fixture(scope="module")
def program():
    """The path of the numsim program; the test is skipped in builds without it."""
    found = os.environ.get("NUMSIM_PROGRAM")
    if not found:
        pytest.skip("NUMSIM_PROGRAM is not set: this build has no numsim program")
    return found


@pytest.fixture
def peers(source_dir, monkeypatch):
    """The modules of the tool can be imported."""
    monkeypatch.syspath_prepend(str(source_dir / "tests" / "tools"))


@pytest.fixture
def check(source_dir, program):
    """Runs the tool. Returns (exit code, its output)."""

    def run(*words):
        tool = source_dir / "tests" / "tools" / "check_peers"
        command = [sys.executable, tool, "--program", program, "--products", "1500", "--longest", "128", *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


# A tensor core of Volta: each four products and c are cut to 23 bits below the largest exponent. It is
# also the text of the programs that stand in for others.
VOLTA = '''
import math
from fractions import Fraction

def exponent(x, least=-14):
    return max(math.frexp(x)[1] - 1, least)

def step(a, b, c):
    terms = [x * y for x, y in zip(a, b)] + [c]
    special = sum(t for t in terms if not math.isfinite(t))
    if special != 0:
        return special
    exponents = [exponent(x) + exponent(y) for x, y in zip(a, b) if x * y != 0]
    if c != 0:
        exponents.append(exponent(c, -126))
    if not exponents:
        return 0.0
    unit = Fraction(2) ** (max(exponents) - 23)
    total = float(sum(int(Fraction(t) / unit) * unit for t in terms))
    place = Fraction(2) ** (exponent(total, -126) - 23)
    return float(int(Fraction(total) / place) * place)

def volta(a, b, c=0.0):
    a, b = [[float(x) for x in side] for side in (a, b)]
    for first in range(0, len(a), 4):
        c = step(a[first:first + 4], b[first:first + 4], c)
    return c
'''
STAND_IN = {}
exec(VOLTA, STAND_IN)


def words(path, rows, form):
    path.write_text("\n".join(" ".join(form(x) for x in row) for row in rows) + "\n")


def bits_of(x):
    return int(np.float32(x).view(np.uint32))


@pytest.fixture
def recordings(tmp_path, rng):
    """Writes recorded products of a V100; the last bit of one of them is `fault`."""

    def write(fault):
        folder = tmp_path / "model_validation" / "V100" / "fp16"
        folder.mkdir(parents=True, exist_ok=True)
        a, b = rng.normal(size=(2, 40, 4)).astype(np.float16).astype(np.float32)
        c = rng.normal(size=(40, 1)).astype(np.float32)
        d = [[bits_of(STAND_IN["volta"](*row))] for row in zip(a, b, c[:, 0].tolist())]
        d[7][0] ^= fault
        for name, values in (("a_V100_fp16", a), ("b_V100_fp16", b)):
            words(folder / f"{name}.txt", values, lambda x: f"{bits_of(x):08x}")
        words(folder / "c_V100_fp32.txt", c, lambda x: f"{bits_of(x):032b}")
        words(folder / "d_V100_fp32.txt", d, lambda x: f"{x:032b}")
        return tmp_path

    return write


def test_recorded_products_are_those_of_the_mode(check, recordings):
    code, text = check("recordings", recordings(0))
    assert code == 0 and "volta-fp16, fp16: 40 sums, 0 different" in text


def test_a_recorded_product_with_another_bit_is_found(check, recordings):
    code, text = check("recordings", recordings(1))
    assert code == 1 and "volta-fp16, fp16: 40 sums, 1 different" in text
    assert "1 unexplained; numsim " in text and "[3] " in text


def test_a_neighbouring_mode_is_seen(check, recordings):
    code, text = check("recordings", recordings(0), "--plant")
    assert code == 0 and "1 of 1 planted faults were seen" in text


OCTAVE = """#!{python}
import os, re, sys
import numpy as np
{volta}
text = open(sys.argv[-1]).read()
cases, answers = re.search("fopen\\\\('(.*)', 'r'\\\\).*fopen\\\\('(.*)', 'w'\\\\)", text).groups()
numbers, out = np.fromfile(cases), []
while numbers.size:
    m, n, k = map(int, numbers[:3])
    a, b = numbers[3:3 + m * k].reshape(m, k), numbers[3 + m * k:3 + (m + n) * k].reshape(n, k)
    numbers = numbers[3 + (m + n) * k:]
    out += [[0, volta(x, y)] for x in a for y in b]
out[5][1] += float(os.environ.get("FAULT", "0"))
np.array(out).tofile(answers)
"""


def test_models_of_octave_are_compared(check, tmp_path, monkeypatch):
    octave = tmp_path / "octave"
    octave.write_text(OCTAVE.format(python=sys.executable, volta=VOLTA))
    octave.chmod(0o755)
    (tmp_path / "models" / "tools").mkdir(parents=True)
    (tmp_path / "models" / "V100TC.m").write_text("def_params.min_exp_limit   = -1024;\n")
    command = ("matlab", tmp_path, "--octave", octave, "--mode", "volta-fp16", "--longest", "1")
    code, text = check(*command)
    assert code == 0 and " 0 different" in text
    monkeypatch.setenv("FAULT", "1e30")
    code, text = check(*command)
    assert code == 1 and "UNEXPLAINED" in text


def test_bad_arguments_are_named(check, tmp_path):
    for words, message in (
        (("recordings", tmp_path), f"{tmp_path}: expected a checkout of MATLAB-tensor-core"),
        (("mma-sim", tmp_path), f"{tmp_path}: expected a checkout of MMA-Sim"),
        (("mma-sim", tmp_path, "--products", "0"), "--products: invalid positive value: '0'"),
    ):
        code, text = check(*words)
        assert code == 2 and message in text


def test_differences_are_counted_by_the_rule_that_explains_them(peers, program):
    from peers import cases, compare
    from peers.program import Numsim

    mode, numsim = cases.Mode("hopper-fp8-fast", "e4m3fn", "e4m3fn", 32, "trunc:12,32"), Numsim(program)
    grid = cases.make_grid(np.random.default_rng(1), mode, (4, 4, 64), "close", "")
    right = numsim.grid(mode, grid)

    def peer(grid):
        bits, stopped = right.copy(), np.zeros(right.shape, bool)
        bits[0, :3] ^= 1 << 10
        stopped[3, 3] = True  # though numsim's answer is finite
        return compare.Answers(bits, stopped)

    rules = {
        "never": lambda grid, i, j: 0,
        "first": lambda grid, i, j: int(right[i, j]) ^ (j != 0),
    }
    row = compare.compare_grids(compare.Row("m", "s", "o"), mode, [grid], numsim, peer, rules)
    assert (row.sums, row.products, row.different, row.stopped) == (16, 1024, 4, 1)
    assert row.reasons == {"first": 1} and row.unexplained == 3
    assert "of 64 products" in row.example or "[63]" in row.example


def test_formats_are_numsims(peers):
    from peers.formats import FORMATS, decode

    for name, spec in FORMATS.items():
        if spec.bits <= 19:
            codes = np.arange(1 << spec.bits, dtype=np.uint32)
            ours = ns.decode(codes.astype(np.uint8 if spec.bits <= 8 else np.uint32), name)
            assert np.array_equal(decode(name, codes).astype(np.float32), ours, equal_nan=True), name
            finite = codes[~np.isnan(ours)]
            assert np.array_equal(spec.encode(ours[~np.isnan(ours)]), finite), name
    codes = np.arange(256, dtype=np.uint8)
    assert np.array_equal(decode("e8m0fnu", codes), ns.decode(codes, "e8m0fnu"), equal_nan=True)


def test_sums_begin_with_accumulators(peers, program):
    from peers import accumulator, mma_sim
    from peers.cases import Grid
    from peers.program import Numsim

    numsim = Numsim(program)
    c = np.random.default_rng(2).normal(size=50).astype(np.float32)
    seen = set()
    names = ("volta-fp16", "ampere-bf16", "ampere-tf32", "hopper-fp16", "hopper-fp8-fast", "blackwell-fp8",
             "mxf8f6f4", "mxf4", "cdna1-bf16", "cdna2-bf16-2", "cdna3-fp16", "cdna3-fp8")  # fmt: skip
    for mode in (instruction.mode for instruction in mma_sim.instructions()):
        if mode.name in seen or mode.name not in names:
            continue
        seen.add(mode.name)
        zeros = np.zeros((50, 64), np.uint32)
        scales = [] if not mode.scale else [np.full((50, 64 // mode.block), 127)] * 2
        got, usable = accumulator.sums(numsim, mode, Grid(zeros, zeros, *scales), c)
        # A unit of 13 bits keeps that many; in 4 bits of significand few numbers are sums of products.
        wanted = c if mode.fraction_bits != 13 else (c.view(np.uint32) & 0xFFFFFC00).view(np.float32)
        assert np.array_equal(got[usable], wanted.view(np.uint32)[usable]), mode
        small = mode.a in ("e4m3fn", "e4m3fnuz") and mode.name not in ("mxf8f6f4", "blackwell-fp8")
        assert small or usable.sum() > 30, mode
    assert len(seen) == len(names)


def test_exact_sums_of_steps_are_rounded_once(peers):
    from peers.mma_sim import round_to_float32

    for x in (1, Fraction(1, 3), Fraction(2) ** -150, Fraction(3) * Fraction(2) ** -150, Fraction(2) ** 128, 16777217):
        for sign in (1, -1):
            expected = np.float32(ns.encode(np.float64(sign * x), "fp32").view(np.float32)[()])
            assert round_to_float32(sign * Fraction(x)) == expected


MMA_SIM = {
    "__init__": "",
    "simulator/__init__": "",
    "simulator/arithmetic": """
def pairwise_dot(a, b, flush): raise NotImplementedError
def extract_significand_exponent(x, dtype=None): raise NotImplementedError
def fused_sum(significands, exponents, bits): raise NotImplementedError
""",
    "simulator/amd": "",
    "simulator/nv_ptx": VOLTA
    + """
import os, torch
class mma:
    def __init__(self, arch, qualifier):
        assert (arch, qualifier) == ("Volta", "m8n8k4.f32.f16.f16.f32")
        self.k = 4
    def __call__(self, A, B, C):
        D = torch.tensor([[volta(A[i].tolist(), B[:, j].tolist(), C[i, j].item()) for j in range(B.shape[1])]
                          for i in range(A.shape[0])], dtype=torch.float32)
        if "FAULT" in os.environ: D[0, 0] += 1e30
        return D
""",
}


def test_instructions_of_mma_sim_are_compared(check, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    for name, text in MMA_SIM.items():
        path = tmp_path / "mmasim" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = ("mma-sim", tmp_path, "--mode", "volta-fp16", "--longest", "1")
    code, text = check(*command)
    assert code == 0 and " 0 different" in text
    monkeypatch.setenv("FAULT", "1")
    code, text = check(*command, "--products", "300")
    assert code != 0 and "0 different" not in text
