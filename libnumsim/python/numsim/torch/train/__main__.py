"""python -m numsim.torch.train CONFIG.toml: a training as `numsim train` runs it, in PyTorch."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from numsim import _core
from numsim._names import did_you_mean
from numsim.torch.train import _side_by_side
from numsim.torch.train.loop import AUTOCAST, Training, run

STOPPED = 75  # the exit code after a signal: --resume continues
BAD_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Runs the program with these arguments. Returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = _parse(words)
        _check(options)
        if len(options.config) > 1 or options.devices is not None:
            return _side_by_side.run_all(options, sys.executable)
        return _train(options, ["python", "-m", "numsim.torch.train", *words])
    except (ValueError, OSError) as error:
        message = str(error)
    except (MemoryError, torch.cuda.OutOfMemoryError):
        message = "out of memory; a larger train.accumulate needs less"
    print(f"numsim.torch.train: {message}", file=sys.stderr)
    return BAD_INPUT


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"{message} (see --help)")


def _parser():
    presets = ", ".join(name for name, _ in _core.train_presets())
    parser = _Parser(
        prog="python -m numsim.torch.train",
        description="Trains a llama or a vit in PyTorch by a configuration of `numsim train`, into "
        "a directory of the same form. SIGINT or SIGTERM saves a checkpoint and ends with exit code "
        f"{STOPPED}: --resume continues.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("config", metavar="CONFIG", nargs="*", help="configuration files (docs/configuration.md)")
    add("--preset", help=f"preset to use instead of a file: {presets}")
    add("--set", metavar="KEY=VALUE", action="append", default=[],
        help="override a configuration key; repeatable")  # fmt: skip
    add("--out", help="result directory (default: results/train/NAME, the name of the file or "
        "preset); of several files the directory that has one of each NAME")  # fmt: skip
    add("--resume", action="store_true",
        help="continue from the checkpoint in --out; without CONFIG, under the configuration in "
        "--out")  # fmt: skip
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--devices", metavar="N,N", help="numbers of CUDA devices; each has one training of "
        "several files at a time")  # fmt: skip
    add("--stop-after", metavar="MINUTES", type=float,
        help="save a checkpoint after the step that ends then, as at a signal")  # fmt: skip
    add("--compile", action="store_true",
        help="compile the blocks of the model by torch.compile, which pays on a GPU")  # fmt: skip
    add("--autocast", metavar="bf16", help="compute attention and activations in bf16, by "
        "torch.autocast, which pays on a GPU; losses then differ from those of `numsim train` by "
        "more than float32's noise (default: float32)")  # fmt: skip
    return parser


def _parse(words):
    parser = _parser()
    options, unknown = parser.parse_known_args(words)
    if unknown:
        known = [option for action in parser._actions for option in action.option_strings]
        hint = did_you_mean(unknown[0], known)
        raise ValueError(f"{unknown[0]}: there is no such option{hint} (see --help)")
    return options


def _check(options):
    for name in ("preset", "out"):
        if getattr(options, name) == "":
            raise ValueError(f"--{name}: expected a text that is not empty")
    if options.stop_after is not None and not options.stop_after > 0:
        raise ValueError(f"--stop-after: expected a number above 0, found {options.stop_after}")
    if options.autocast not in (None, *AUTOCAST):
        raise ValueError(
            f"--autocast: expected {' or '.join(AUTOCAST)}, found {options.autocast!r}"
        )
    if options.config and options.preset is not None:
        raise ValueError(
            "--preset: not allowed with a file, which sets its preset by the key 'preset'"
        )
    if options.devices is not None and options.device != "cpu":
        raise ValueError("--device: not allowed with --devices")
    if not options.config and options.devices is not None:
        raise ValueError("--devices: is for configuration files; expected CONFIG")


def _read(options) -> _core.TrainConfig:
    """Returns the configuration, read as `numsim train` reads it."""
    if options.config:
        return _core.TrainConfig.read(options.config[0], options.set)
    if options.preset is None and options.resume and options.out is not None:
        path = Path(options.out) / "config.toml"
        if not path.is_file():
            raise ValueError(f"{path}: there is none to resume from; give CONFIG or --preset")
        return _core.TrainConfig.read(str(path), options.set)
    if options.preset is None:
        presets = ", ".join(name for name, _ in _core.train_presets())
        raise ValueError(
            f"CONFIG is missing: give a TOML file, --preset with one of {presets}, or --resume "
            "with the --out of a training"
        )
    return _core.TrainConfig.of_keys([f"preset={options.preset}", *options.set])


def _out(options) -> Path:
    if options.out is not None:
        return Path(options.out)
    name = Path(options.config[0]).stem if options.config else options.preset
    return Path("results/train") / name


def _device(text):
    """Returns a device that can be used."""
    try:
        device = torch.device(text)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"--device: expected cpu, cuda or cuda:N, found {text!r}")
    if device.type != "cuda":
        return device
    device = torch.device("cuda", device.index or 0)  # PyTorch wants a number where it is chosen
    if device.index >= torch.cuda.device_count():
        raise ValueError(f"--device {text}: PyTorch finds {torch.cuda.device_count()} CUDA devices")
    return device


class _Stop:
    """Whether a signal came or the time is over. A second signal has its default effect."""

    def __init__(self, minutes: float | None) -> None:
        self._end = None if minutes is None else time.monotonic() + 60 * minutes
        self._signalled = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number, frame):
        if self._signalled:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._signalled = True

    def __call__(self) -> bool:
        return self._signalled or (self._end is not None and time.monotonic() >= self._end)


def _make_deterministic():
    """Makes every operation of PyTorch give the same bits again, or fail."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False


def _train(options, command):
    stop = _Stop(options.stop_after)
    _make_deterministic()
    config, out, device = _read(options), _out(options), _device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    training = Training(config, device, options.compile, options.autocast)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    elements = sum(p.numel() for p in training.parameters.values())
    versions = {"torch": torch.__version__, "torch_device": name}
    if training.options:
        versions["torch_options"] = training.options
    record = _core.RecordedRun(
        training.data, str(out), options.resume, True, elements, command, versions
    )
    for line in record.notices:
        print(f"numsim.torch.train: {line}", file=sys.stderr)
    checkpoint = record.take_checkpoint()
    if checkpoint is not None:
        try:
            training.restore(record.steps, checkpoint)
        except ValueError as error:
            raise ValueError(f"{out / 'checkpoint.safetensors'}: {error}") from None
    stopped = run(training, record, stop, _progress(training.loop.steps))
    training.batches.close()
    if stopped:
        resume = command if options.resume else [*command, "--resume"]
        print(f"interrupted after {record.steps} steps; saved in {out}\n"
              f"to resume: {shlex.join(resume)}")  # fmt: skip
        return STOPPED
    summary, files, speed = record.finish(**training.optimizer.bytes()[0])
    print(summary)
    if speed["steps"]:
        print("{steps} steps in {seconds:.1f} s, {per_second:.0f} {unit}/s".format(**speed))
    print(f"written to {out}:", *(f"  {file}" for file in files), sep="\n")
    return 0


def _progress(steps) -> Callable[[int, float, float], None]:
    """Returns a function that rewrites a line on a terminal, a few times per second."""
    shown = 0.0

    def show(done, loss, seconds):
        nonlocal shown
        last = done >= steps
        if last or time.monotonic() - shown > 0.25:
            shown = time.monotonic()
            line = f"\rstep {done} of {steps}, loss {loss:.4f}, {seconds:.3f} s per step "
            print(line, end="\n" if last else "", file=sys.stderr, flush=True)

    return show if sys.stderr.isatty() else lambda *_: None


def _let_threads_sleep():
    """Starts the program anew, unless the environment says how OpenMP's threads wait.

    PyTorch and numsim have threads of their own. Where those of one spin while the other computes,
    a step takes several times as long. OpenMP reads the variable when it is loaded.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "passive"
        os.execv(sys.executable, [sys.executable, "-m", "numsim.torch.train", *sys.argv[1:]])


if __name__ == "__main__":
    _let_threads_sleep()
    sys.exit(main())
