#!/usr/bin/env python3
"""Trainings in PyTorch with numsim's layers and optimiser beside PyTorch's own, on one GPU.

    python bench/torch_cuda.py [--part step|optimizer ...] [--models NAME ...] [--seconds S]
    python bench/torch_cuda.py --device cpu --models tiny      # a rehearsal without a GPU

Whole steps: a Llama (numsim.torch.train.models) under torch.compile(fullgraph=True) and bf16 autocast,
with nn.Linear and with numsim's layers, forward, backward and optimiser; each row names the
accumulation mode. "of nn.Linear" is the time of nn.Linear's step over that of the row. Optimiser steps:
the parameters of a 12 x 768 Llama; "of copy" is the time that a copy takes for the bytes that the step
must move (gradients and weights read, weights and states written, states read), over its own time.
All rows of a part take turns; each shows its median and its fastest round. torchao and
TransformerEngine are measured where they can be imported.
"""

import argparse
import contextlib
import datetime
import gc
import importlib.util
import platform
import statistics
import time
import warnings
from types import SimpleNamespace

import torch

import numsim as ns
import numsim.torch as nt
from numsim import _core
from numsim.torch.train.models import Llama

# Name: (layers, width, heads, vocabulary, batch, length)
MODELS = {
    "tiny": (2, 64, 2, 256, 2, 32),
    "12x768": (12, 768, 12, 256, 64, 1024),
    "12x768-32k": (12, 768, 12, 32768, 32, 2048),
    "16x1024": (16, 1024, 16, 256, 64, 1024),
}
DEFAULT_MODELS = ("12x768", "16x1024")
MODE = "tensor-cores"
BF16 = {"high_precision": "bf16", "high_precision_accumulate": MODE}
# Name: settings of a LinearRecipe, or None for nn.Linear.
LAYERS = {
    "nn.Linear, bf16": None,
    "standard bf16": ("standard", BF16),
    "standard bf16, library": ("standard", {**BF16, "high_precision_accumulate": "library"}),
    "switchback e4m3fn": ("switchback-e4m3fn", {**BF16, "accumulate": MODE}),
    "switchback int8": ("switchback-int8", {**BF16, "accumulate": MODE}),
    "tensor-wise e4m3fn": ("tensor-wise-e4m3fn", {**BF16, "accumulate": MODE}),
}
SMALL = ("e4m3fn", "e5m2")  # moments
# Name: (arguments of nt.AdamW or None for PyTorch's fused AdamW, bytes that move per parameter).
OPTIMIZERS = {
    "torch.optim.AdamW, fused": (None, 28),
    "fp32": ({}, 28),
    "e4m3fn, e5m2 per tensor": ({"moments": SMALL}, 16),
    "e4m3fn, e5m2 block:128": (
        {"moments": tuple(m + "@block:128" for m in SMALL)},
        12 + 4 * (1 + 4 / 128),
    ),
    "bf16 weights, stochastic": ({"weights": "bf16", "rounding": ns.SR(bits=16)}, 28),
}


class Clock:
    """Times calls on a device: the milliseconds of one call, of a batch of them."""

    def __init__(self, device):
        self.on_gpu = device.type == "cuda"

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def milliseconds(self, call, count):
        self.wait()
        if not self.on_gpu:
            begin = time.perf_counter()
            for _ in range(count):
                call()
            return (time.perf_counter() - begin) / count * 1e3
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / count


def in_turns(clock, calls, seconds, warm=3):
    """Returns {name: milliseconds of each round}: all calls take turns until the time is over."""
    counts = {}
    for name, call in calls.items():
        for _ in range(warm):
            call()
        once = clock.milliseconds(call, 1)
        counts[name] = max(1, int(200 / max(once, 0.01)))
    found = {name: [] for name in calls}
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(next(iter(found.values()))) < 3:
        for name, call in calls.items():
            found[name].append(clock.milliseconds(call, counts[name]))
    return found


def make_model(name, make_linear, device):
    layers, width, heads, vocabulary, batch, length = MODELS[name]
    settings = SimpleNamespace(
        layers=layers, width=width, heads=heads, hidden=0, context=length, mlp="swiglu",
        qk_norm=False, layer_scale="none", norm_epsilon=1e-5, rope_base=10000.0,
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        model = Llama(settings, vocabulary, make_linear)
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.02)
    tokens = torch.randint(vocabulary, (batch, length + 1), device=device)
    return model, tokens


def linear_of(recipe):
    """Returns what makes a linear layer for a Llama. The first and last layer are in bf16."""
    if recipe is None:
        return lambda name, inputs, outputs, bias: torch.nn.Linear(inputs, outputs, bias)
    kind, settings = recipe
    plain = ns.LinearRecipe("standard", **BF16)
    chosen = ns.LinearRecipe(kind, **settings)

    def make(name, inputs, outputs, bias):
        return nt.Linear(inputs, outputs, bias, plain if name == "head" else chosen)

    return make


class Step:
    """A training step of a model."""

    def __init__(self, model_name, recipe, optimizer, device):
        self._model, self._tokens = make_model(model_name, linear_of(recipe), device)
        self._run = torch.compile(self._model, fullgraph=True)
        self._device = device
        parameters = list(self._model.parameters())
        if optimizer is None:
            fused = device.type == "cuda"
            self._optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=fused)
        else:
            self._optimizer = nt.AdamW(parameters, lr=1e-4, **optimizer)

    def __call__(self):
        self._optimizer.zero_grad()
        tokens = self._tokens
        with torch.autocast(self._device.type, torch.bfloat16):
            logits = self._run(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        self._optimizer.step()


def print_table(columns, rows):
    cells = [columns, *([str(c) for c in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for k, row in enumerate(cells):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |")
        if k == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print(flush=True)


def peer_steps(model_name, device):
    """Returns {name: step or why there is none} of other libraries' layers."""
    found = {}
    if importlib.util.find_spec("torchao") is None:
        found["torchao float8"] = "not installed"
    else:
        from torchao.float8 import convert_to_float8_training

        step = Step(model_name, None, None, device)
        convert_to_float8_training(step._model, module_filter_fn=lambda _, name: name != "head")
        found["torchao float8"] = step
    if importlib.util.find_spec("transformer_engine") is None:
        found["TransformerEngine fp8"] = "not installed"
    else:
        found["TransformerEngine fp8"] = "not measured: its layers are none of nn.Linear's form"
    return found


def host_costs(step, device):
    """Returns what a step costs beyond its work: (waits that PyTorch sees, allocations of memory)."""
    if device.type != "cuda":
        return "-", "-"

    def allocated():
        return torch.cuda.memory_stats()["num_device_alloc"], _core.device_bytes()

    step()
    before = allocated()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = sum("synchroniz" in str(w.message) for w in caught)
    after = allocated()
    grown = f"{after[0] - before[0]} (+{after[1] - before[1]} bytes of numsim)"
    return waits, grown


def measure_steps(names, device, seconds):
    clock = Clock(device)
    for name in names:
        layers, width, heads, vocabulary, batch, length = MODELS[name]
        steps = {row: Step(name, recipe, None, device) for row, recipe in LAYERS.items()}
        recipe = LAYERS["switchback e4m3fn"]
        steps["switchback e4m3fn, e4m3fn and e5m2 moments"] = Step(
            name, recipe, {"moments": SMALL}, device
        )
        missing = {}
        for row, step in peer_steps(name, device).items():
            (missing if isinstance(step, str) else steps)[row] = step
        times = in_turns(clock, steps, seconds)
        base = statistics.median(times["nn.Linear, bf16"])
        print(f"Whole steps, Llama {layers} x {width}, vocabulary {vocabulary}, "
              f"{batch} x {length} tokens; named modes: {MODE}")  # fmt: skip
        rows = []
        for row, found in times.items():
            middle = statistics.median(found)
            waits, grown = host_costs(steps[row], device)
            rows.append((row, f"{middle:.2f}", f"{min(found):.2f}", f"{base / middle:.3f}",
                         f"{batch * length / middle:,.0f}", waits, grown))  # fmt: skip
        rows += [(row, why, "", "", "", "", "") for row, why in missing.items()]
        print_table(
            ["layers", "ms", "fastest", "of nn.Linear", "k tokens/s", "waits", "allocations"], rows
        )
        del steps
        gc.collect()
        torch._dynamo.reset()
        with contextlib.suppress(RuntimeError):
            torch.cuda.empty_cache()


def measure_optimizers(name, device, seconds):
    clock = Clock(device)
    model, _ = make_model(name, linear_of(None), device)
    elements = sum(p.numel() for p in model.parameters())

    def make(arguments):
        parameters = [torch.nn.Parameter(p.detach().clone()) for p in model.parameters()]
        for p in parameters:
            p.grad = torch.randn_like(p) * 1e-3
        if arguments is None:
            fused = device.type == "cuda"
            return torch.optim.AdamW(parameters, lr=1e-4, fused=fused).step
        return nt.AdamW(parameters, lr=1e-4, **arguments).step

    source = torch.empty(64 << 20 if device.type == "cuda" else 1 << 20, device=device)
    target = torch.empty_like(source)
    calls = {row: make(arguments) for row, (arguments, _) in OPTIMIZERS.items()}
    calls["copy"] = lambda: target.copy_(source)
    times = {row: statistics.median(t) for row, t in in_turns(clock, calls, seconds).items()}
    rate = 2 * source.numel() * source.element_size() / times.pop("copy")  # bytes per ms
    print(f"Optimiser steps, {elements / 1e6:.1f} million parameters; a copy moves "
          f"{rate / 1e9:.2f} TB/s")  # fmt: skip
    rows = []
    for row, (_, moved) in OPTIMIZERS.items():
        share = elements * moved / rate / times[row]
        rows.append((row, f"{times[row]:.3f}", f"{moved:.1f}", f"{share:.3f}"))
    print_table(["optimiser", "ms", "bytes per parameter", "of copy"], rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("step", "optimizer")
    parser.add_argument("--part", nargs="+", choices=parts, default=parts)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=DEFAULT_MODELS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=20, help="of rounds per table")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("--device: PyTorch finds no CUDA device; --device cpu --models tiny rehearses")
    torch.backends.cuda.matmul.allow_tf32 = True
    card = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "CPU"
    print(f"{card}, PyTorch {torch.__version__}, numsim {ns.__version__}, "
          f"{datetime.date.today()}\n")  # fmt: skip
    if "optimizer" in options.part:
        measure_optimizers(options.models[0], device, options.seconds)
    if "step" in options.part:
        measure_steps(options.models, device, options.seconds)


if __name__ == "__main__":
    main()
