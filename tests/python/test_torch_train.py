"""python -m numsim.torch.train: trainings in PyTorch beside those of `numsim train`."""

import csv
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from numsim import _core as core

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("numsim.torch")
program = pytest.importorskip("numsim.torch.train.__main__")
configuration = pytest.importorskip("numsim.torch.train._configuration")
models = pytest.importorskip("numsim.torch.train.models")
side_by_side = pytest.importorskip("numsim.torch.train._side_by_side")

TABLES = "telemetry.tensors_every=0"  # tables that a training in PyTorch does not write
LLAMA = ["preset=small", "train.steps=10", "train.batch=4", "model.layers=2", "model.context=64",
         "data.size=131072", "train.valid_batches=1", TABLES]  # fmt: skip
VIT = ["preset=vit-small", "train.steps=10", "train.batch=8", "model.layers=2", "data.size=1000",
       "train.valid_batches=1", TABLES]  # fmt: skip
TINY = ["preset=tiny", "train.steps=6", "train.batch=4", "train.valid_every=3", TABLES]
# With most of what has a state: delayed scales; stochastic gradients, moments and weights.
STATEFUL = [*TINY, "linear.kind=te-hybrid", "linear.delayed_history=4",
            "linear.gradient_rounding=sr", "optimizer.m=e4m3fn@tensor+sr",
            "optimizer.v=bf16+sr", "optimizer.weights=bf16", "optimizer.update=stochastic:16",
            "train.accumulate=2"]  # fmt: skip
# Files whose bytes do not depend on time and place.
SAME = ["train.csv", "valid.csv", "summary.txt", "config.toml", "checkpoint.safetensors"]


@pytest.fixture(autouse=True)
def as_before():
    """The program takes signals and makes PyTorch deterministic, as long as it is a program."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    torch.use_deterministic_algorithms(False)


def words_of(settings, out):
    start = [f"--preset={settings[0].removeprefix('preset=')}"]
    return [*start, *(w for s in settings[1:] for w in ("--set", s)), "--out", str(out)]


def in_torch(settings, out, *more):
    return program.main([*words_of(settings, out), *more])


@pytest.fixture
def in_both(numsim_program, tmp_path):
    """Trains in C++ and in PyTorch. Returns the rows of a table of both."""

    def train(settings, table="train"):
        numsim_program("train", *words_of(settings, tmp_path / "cpp"))
        assert in_torch(settings, tmp_path / "torch") == 0
        return rows(tmp_path / "cpp", table), rows(tmp_path / "torch", table)

    return train


def rows(directory, table="train"):
    with open(directory / f"{table}.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def distance(one, other, column="loss"):
    assert len(one) == len(other) > 0
    return max(abs(float(a[column]) - float(b[column])) for a, b in zip(one, other))


def contents(directory):
    return {name: (directory / name).read_bytes() for name in SAME}


@pytest.mark.parametrize(
    "settings",
    [
        LLAMA,
        VIT,
        [*LLAMA, "model.qk_norm=true", "model.layer_scale=0.5", "train.accumulate=2"],
        [*VIT, "model.qk_norm=true", "model.layer_scale=0.5", "model.hidden=96"],
        [*TINY, "model.mlp=gelu"],
        [*TINY, "model.mlp=clamped-swiglu", "model.rope_base=100"],
    ],
    ids=["small", "vit-small", "llama-norms", "vit-norms", "gelu", "clamped"],
)
def test_losses_are_those_of_the_library(settings, in_both):
    cpp, torchs = in_both(settings)
    assert distance(cpp, torchs) < 5e-7  # 1e-6 is a GELU of the other form
    for column in ("step", "tokens", "lr", "skipped"):
        assert [r[column] for r in cpp] == [r[column] for r in torchs]
    for column in ("gradient_norm", "rms"):
        for a, b in zip(cpp, torchs):
            assert float(a[column]) == pytest.approx(float(b[column]), rel=1e-3)


FORK = ["fork.steps=3"]
TO_INT8 = [*FORK, "linear.kind=switchback", "linear.format=int8",
           'fork.before=["linear.kind=standard", "schedule.peak=0.04"]']  # fmt: skip


def test_forks_are_those_of_the_library(in_both, tmp_path):
    settings = [*TINY, *TO_INT8]
    cpp, torchs = in_both(settings)
    assert distance(cpp, torchs) < 1.5e-4
    assert [r["lr"] for r in cpp] == [r["lr"] for r in torchs]
    rates = [float(r["lr"]) for r in torchs]
    assert rates[2] > 2 * rates[3]  # the peak of the baseline is larger
    assert in_torch([*settings, "fork.before=[]"], tmp_path / "scratch") == 0
    assert distance(torchs, rows(tmp_path / "scratch")) > 1e-3


def test_the_baseline_of_a_fork_knows_the_data(in_both):
    fork = [*FORK, 'fork.before=["schedule.peak=0.002"]']
    assert distance(*in_both([*VIT, "data.classes=7", "model.patch=7", *fork])) < 5e-7


def tensors_of(file):
    """The header of a safetensors file without its metadata, and the bytes of its tensors."""
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return header, data[end:]


@pytest.mark.parametrize("settings", [TINY, STATEFUL], ids=["tiny", "stateful"])
def test_a_fork_that_changes_nothing_has_the_same_bytes(settings, tmp_path):
    plain, forked = tmp_path / "plain", tmp_path / "forked"
    assert in_torch(settings, plain) == 0
    assert in_torch([*settings, *FORK], forked) == 0
    for name in ("train.csv", "valid.csv"):
        assert (plain / name).read_bytes() == (forked / name).read_bytes()
    name = "checkpoint.safetensors"
    assert tensors_of(plain / name) == tensors_of(forked / name)


def test_a_fork_resumes_on_both_sides(tmp_path):
    settings = [*STATEFUL, *FORK, 'fork.before=["linear.kind=standard"]']
    assert in_torch(settings, tmp_path / "whole") == 0
    assert in_torch(settings, tmp_path / "parts", "--stop-after", "1e-9") == program.STOPPED
    again = ["--out", str(tmp_path / "parts"), "--resume"]
    for _ in range(4):
        assert program.main([*again, "--stop-after", "1e-9"]) == program.STOPPED
    assert program.main(again) == 0
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_validations_are_those_of_the_library(in_both):
    cpp, torchs = in_both(TINY, "valid")
    assert [r["step"] for r in cpp] == [r["step"] for r in torchs] == ["0", "3", "6"]
    assert distance(cpp, torchs) < 1e-4 and distance(cpp, torchs, "accuracy") < 0.02


def test_another_epsilon_is_seen(in_both, monkeypatch):
    plain = models.Norm.__init__
    wrong = lambda self, width, epsilon, bias: plain(self, width, 2 * epsilon, bias)  # noqa: E731
    monkeypatch.setattr(models.Norm, "__init__", wrong)
    assert distance(*in_both(LLAMA)) > 1e-4


@pytest.mark.parametrize(
    "settings",
    [
        ["linear.kind=switchback", "linear.format=e4m3fn", "linear.first_last_high=true"],
        ["linear.kind=mx", "linear.format=e4m3fn", "linear.override.0.layers=*.down"],
        ["optimizer.m=e4m3fn@tensor+sr", "optimizer.v=e5m2@block:64+sr", "optimizer.weights=bf16",
         "optimizer.update=stochastic:16"],
        [*STATEFUL[len(TINY) :], "train.seed=1"],  # with seed 0 one bit does
        ["optimizer.kind=stable-adamw", "optimizer.stable.global=true",
         "optimizer.beta2_decay=0.5"],
        ["optimizer.kind=sgd", "optimizer.moment_minimum=100", "optimizer.m=e4m3fn@tensor"],
        ["optimizer.m=e4m3fn", "optimizer.v=e4m3fn", "optimizer.moment_tensors=blocks.*"],
        ["optimizer.kind=lion", "optimizer.decay_filter=all", "schedule.peak=1e-4"],
    ],
    ids=["switchback", "mx", "moments", "stateful", "stable", "sgd", "blocks", "lion"],
)  # fmt: skip
def test_layers_and_optimisers_are_those_of_the_configuration(settings, in_both, tmp_path):
    # A difference in a last bit may round the other way. Other random bits make it 4e-4.
    cpp, torchs = in_both([*TINY, *settings])
    assert distance(cpp, torchs) < 1.5e-4
    texts = [(tmp_path / d / "summary.txt").read_text() for d in ("cpp", "torch")]
    assert re.findall("^bytes per.*", texts[0], re.M) == re.findall("^bytes per.*", texts[1], re.M)


def test_a_run_that_is_stopped_and_resumed_has_the_same_bytes(tmp_path, capsys):
    assert in_torch(STATEFUL, tmp_path / "whole") == 0
    assert in_torch(STATEFUL, tmp_path / "parts", "--stop-after", "1e-9") == program.STOPPED
    assert "interrupted after 1 steps" in capsys.readouterr().out
    again = ["--out", str(tmp_path / "parts"), "--resume"]  # under its own configuration
    assert program.main([*again, "--stop-after", "1e-9"]) == program.STOPPED
    assert program.main(again) == 0
    assert len(rows(tmp_path / "parts")) == 6
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


# Options that change bits: what compiled code, or bf16, makes of the same training.
OPTIONS = [["--autocast", "bf16"], ["--compile", "--autocast", "bf16"]]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_options_that_change_bits_are_kept_by_a_resumed_run(options, tmp_path, capsys):
    settings = [*TINY, "linear.kind=te-hybrid", "linear.delayed_history=4"]
    assert in_torch(settings, tmp_path / "plain") == 0
    assert in_torch(settings, tmp_path / "whole", *options) == 0
    assert contents(tmp_path / "whole")["train.csv"] != contents(tmp_path / "plain")["train.csv"]
    assert distance(rows(tmp_path / "whole"), rows(tmp_path / "plain")) < 0.02
    manifest = json.loads((tmp_path / "whole/manifest.json").read_text())
    assert manifest["versions"]["torch_options"] == " ".join(options)

    parts = ["--out", str(tmp_path / "parts"), "--resume"]
    stop = [*options, "--stop-after", "1e-9"]
    assert in_torch(settings, tmp_path / "parts", *stop) == program.STOPPED
    assert program.main(parts) == program.BAD_INPUT
    assert f"was written with {' '.join(options)}, and this" in capsys.readouterr().err
    assert program.main([*parts, *options]) == 0
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_autocast_computes_attention_in_bf16(monkeypatch):
    seen = []
    plain = models.F.scaled_dot_product_attention

    def attention(q, k, v, **how):
        y = plain(q, k, v, **how)
        seen.append(y.dtype)
        return y

    monkeypatch.setattr(models.F, "scaled_dot_product_attention", attention)
    config = core.TrainConfig.of_keys(TINY)
    for autocast, dtype in ((None, torch.float32), ("bf16", torch.bfloat16)):
        seen.clear()
        training = program.Training(config, torch.device("cpu"), autocast=autocast)
        losses, _ = training._losses(training.batches.train(0))
        assert set(seen) == {dtype} and losses.dtype == torch.float32
        losses.sum().backward()
        assert {p.grad.dtype for p in training.parameters.values()} == {torch.float32}


def test_equal_blocks_share_compiled_code(monkeypatch):
    torch._dynamo.reset()
    compiled = []
    backend = lambda graph, inputs: compiled.append(graph) or graph.forward  # noqa: E731
    plain = torch.nn.Module.compile
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda self, **how: plain(self, backend=backend, **how)
    )
    config = core.TrainConfig.of_keys([*TINY, "model.layers=3"])
    training = program.Training(config, torch.device("cpu"), compiled=True)
    training.take_step(0)
    assert len(compiled) == 2  # of three blocks, and of the norm behind them
    training.validate()
    assert len(compiled) == 4


def test_a_checkpoint_goes_from_one_engine_to_the_other(numsim_program, tmp_path):
    settings = [*TINY, "linear.kind=te-hybrid", "linear.delayed_history=4"]
    numsim_program("train", *words_of(settings, tmp_path / "cpp"))
    assert in_torch(settings, tmp_path / "torch", "--stop-after", "1e-9") == program.STOPPED
    shutil.copytree(tmp_path / "torch", tmp_path / "moved")
    numsim_program("train", "--out", tmp_path / "moved", "--resume")
    assert distance(rows(tmp_path / "cpp"), rows(tmp_path / "moved")) < 1e-3
    more = ["--set", "train.steps=9", "--out", str(tmp_path / "cpp"), "--resume"]
    assert program.main(more) == 0
    assert len(rows(tmp_path / "cpp")) == 9


def test_a_loss_that_is_not_finite_moves_no_weight(monkeypatch):
    config = core.TrainConfig.of_keys(TINY)
    training = program.Training(config, torch.device("cpu"))
    training.take_step(0)
    before = {name: p.detach().clone() for name, p in training.parameters.items()}
    plain = training._losses
    # Infinite, with the gradients of a finite one.
    monkeypatch.setattr(training, "_losses", lambda batch: (plain(batch)[0] + math.inf, None))
    loss, numbers = training.take_step(1)
    assert loss == math.inf and math.isnan(numbers.gradient_norm)
    assert numbers.skipped == len(before)
    assert all(torch.equal(p, before[name]) for name, p in training.parameters.items())


def test_a_diverged_run_says_what_the_library_says(in_both, tmp_path):
    cpp, torchs = in_both([*TINY, "schedule.peak=1e30", "schedule.warmup=0"])
    assert len(cpp) == len(torchs)
    first = [(tmp_path / d / "summary.txt").read_text().splitlines()[0] for d in ("cpp", "torch")]
    assert first[0] == first[1] and "diverged: step" in first[0]


def test_compare_takes_its_directories(in_both, numsim_program, tmp_path):
    in_both(TINY)
    numsim_program("compare", tmp_path / "cpp", tmp_path / "torch", "--out", tmp_path / "both")
    assert len(rows(tmp_path, "both")) == 2 * (6 + 3)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--set", "stress.input_tail=1"], "stress.input_tail: numsim.torch.train does not do 1"),
        (["--set", "what_if.recipes=e4m3fn tensor"], "what_if.recipes: "),
        (["--set", "storage.activations=bf16"], 'storage.activations: .* expected "fp32"'),
        (["--set", "attention.format=bf16"], 'attention.format: .* expected "fp32"'),
        (["--set", "loss_scaler.kind=dynamic"], "loss_scaler.kind: "),
        (["--set", "optimizer.moment_tensors=block.*"],
         "optimizer.moment_tensors: 'block.*' matches no parameter"),
        (["--set", "fork.steps=3", "--set", 'fork.before=["optimizer.m=bf16"]'],
         'fork.before: .* "optimizer.m=bf16"; expected keys of linear or schedule'),
        (["--set", "telemetry.tensors_every=25"], "telemetry.tensors_every: .* expected 100 or 0"),
        (["--set", "model.kind=gpt"], 'model.kind: .* expected "llama" or "vit"'),
        (["--set", "model.mlp=smooth-swiglu"], "model.mlp: "),
        (["--set", "optimizer.betaz=1"], "--set: optimizer.betaz: .* did you mean optimizer.beta"),
        (["--set", "data.kind=images"], "data.path: "),
        (["--device", "tpu"], "--device: expected cpu, cuda"),
        (["--device", "cuda:99"], "--device cuda:99: PyTorch finds"),
        (["--stop-after", "0"], "--stop-after: expected a number above 0"),
        (["--stop-afte"], "--stop-afte: there is no such option; did you mean --stop-after"),
        (["--out", ""], "--out: expected a text"),
        (["--devices", "0,1"], "--devices: "),
        (["--autocast", "fp8"], "--autocast: expected bf16, found 'fp8'"),
    ],
)
def test_what_it_cannot_do_is_refused(words, message, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["--preset", "small", "--set", "data.size=65536", "--out", str(out), *words]
    assert program.main(given) == program.BAD_INPUT
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1, error
    assert not out.exists()


def test_a_directory_is_protected(tmp_path, capsys):
    assert in_torch(TINY, tmp_path / "run") == 0
    assert in_torch(TINY, tmp_path / "run") == program.BAD_INPUT
    assert "continue it with --resume" in capsys.readouterr().err
    with open(tmp_path / "run/checkpoint.safetensors", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    assert in_torch(TINY, tmp_path / "run", "--resume") == program.BAD_INPUT
    assert "checkpoint.safetensors: has been changed" in capsys.readouterr().err


def start(*words):
    command = [sys.executable, "-m", "numsim.torch.train", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_signal_saves_and_stops(tmp_path):
    settings = [*TINY[:1], "train.steps=100000", *TINY[2:]]
    process = start(*words_of(settings, tmp_path / "run"))
    table = tmp_path / "run/train.csv"
    for _ in range(600):
        if table.exists() and table.read_bytes().count(b"\n") > 2:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == program.STOPPED, error
    assert "to resume: python -m numsim.torch.train" in out and (
        tmp_path / "run/checkpoint.safetensors"
    ).exists()


def write_config(folder, name, steps=3):
    text = f'preset = "tiny"\n[train]\nsteps = {steps}\n[telemetry]\ntensors_every = 0\n'
    (folder / f"{name}.toml").write_text(text)
    return str(folder / f"{name}.toml")


# Stands for a training: it takes a while, and notes when, where and under which options.
STAND_IN = """#!/bin/sh
name=$(basename "$3" .toml)
echo "start $name $*" >> "$0.log"
sleep 0.5
echo "end $name $*" >> "$0.log"
echo "result of $name"
if [ "$name" = b ]; then exit 2; fi
"""


def test_several_configurations_have_a_device_each(tmp_path, capsys):
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    files = [write_config(tmp_path, name) for name in "abcde"]
    words = [*files, "--devices", "0,3", "--out", str(tmp_path / "out"), "--set", "train.batch=2"]
    assert side_by_side.run_all(program._parse(words), str(python)) == 2  # of b
    out = capsys.readouterr().out
    assert all(f"{name}: result of {name}\n" in out for name in "abcde")  # in spite of b
    busy, most = [], 0
    for line in (tmp_path / "python.log").read_text().splitlines():
        what, name, _, module, config, *rest = line.split()
        device = rest[rest.index("--device") + 1]
        assert module == "numsim.torch.train" and config == files["abcde".index(name)]
        assert rest[rest.index("--out") + 1] == str(tmp_path / "out" / name)
        assert rest[rest.index("--set") + 1] == "train.batch=2"
        assert (device in busy) == (what == "end") and device in ("cuda:0", "cuda:3")
        busy = [*busy, device] if what == "start" else [d for d in busy if d != device]
        most = max(most, len(busy))
    assert most == 2 and not busy


def test_a_signal_goes_on_to_the_training_and_starts_no_other(tmp_path, capsys):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ntrap "exit 75" TERM\necho began\nwhile :; do sleep 0.05; done\n')
    python.chmod(0o755)
    files = [write_config(tmp_path, name) for name in "ab"]
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    options = program._parse([*files, "--out", str(tmp_path / "out")])
    assert side_by_side.run_all(options, str(python)) == program.STOPPED
    assert capsys.readouterr().out == "a: starts on cpu\na: began\n"


def test_several_configurations_are_checked_before_the_first_starts(tmp_path, capsys):
    good, wrong = write_config(tmp_path, "a"), write_config(tmp_path, "wrong", 0)
    for names, message in (([good, good], "two files have the name 'a'"),
                           ([good, wrong], "wrong.toml:3: train.steps: 0 is below 1")):  # fmt: skip
        assert program.main([*names, "--out", str(tmp_path / "out")]) == program.BAD_INPUT
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_example_for_a_gpu_is_a_configuration(source_dir):
    config = core.TrainConfig.read(str(source_dir / "docs/examples/llama_100m.toml"), [])
    configuration.require_supported(config)
    s = configuration.section(config, "model")
    linear = lambda name, i, o, bias: torch.nn.Linear(i, o, bias, device="meta")  # noqa: E731
    with torch.device("meta"):
        model = models.Llama(s, 256, linear)
    assert 85e6 < sum(p.numel() for p in model.parameters()) < 100e6
