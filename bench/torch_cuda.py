#!/usr/bin/env python3
"""Trainings in PyTorch with numsim's layers and optimiser beside PyTorch's own, on one GPU.

    python bench/torch_cuda.py [--part step|optimizer ...] [--models NAME ...] [--layers NAME ...]
    python bench/torch_cuda.py --device cpu --models tiny      # a rehearsal without a GPU

Whole steps: a Llama (numsim.torch.train.models), whose blocks are compiled (fullgraph=True; equal blocks
share code), under bf16 autocast, with nn.Linear and with numsim's layers, forward, backward and
optimiser; each row names the accumulation mode. "of nn.Linear" is the time of nn.Linear's step over
that of the row. Optimiser steps: the parameters of a 12 x 768 Llama; "of copy" is the time that a copy
takes for the bytes that the step must move (gradients and weights read, weights and states written,
states read), over its own time, where the device has all calls in its queue; "processor ms" is what
a step takes the processor to queue. Each row takes turns with what it is compared to, and is printed when
it is measured, with its median and its fastest round. torchao and TransformerEngine are measured where
they can be imported.
"""

import argparse
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
from numsim.torch.train.models import Llama, compile_blocks

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
# Name: settings of a LinearRecipe.
LAYERS = {
    "standard bf16": ("standard", BF16),
    "standard bf16, library": ("standard", {**BF16, "high_precision_accumulate": "library"}),
    "switchback e4m3fn": ("switchback-e4m3fn", {**BF16, "accumulate": MODE}),
    "switchback int8": ("switchback-int8", {**BF16, "accumulate": MODE}),
    "tensor-wise e4m3fn": ("tensor-wise-e4m3fn", {**BF16, "accumulate": MODE}),
}
PEERS = ("torchao float8", "TransformerEngine fp8")
SMALL = ("e4m3fn", "e5m2")  # moments
# Of optimiser steps: calls that take a device this long are queued, while it waits for so many cycles (25 ms
# at 2 GHz), in which the processor can queue them: it needs less than twice their time.
QUEUED_MS, QUEUE_CYCLES = 10, 50_000_000
WITH_SMALL = "switchback e4m3fn, e4m3fn and e5m2 moments"
ROWS = (*LAYERS, WITH_SMALL, *PEERS)  # beside nn.Linear
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

    def milliseconds(self, call, count, busy=0):
        """Returns the milliseconds of one call. `busy`: clock cycles for which a device first waits, so that
        it has all calls in its queue when the first begins, and their time is the device's alone."""
        self.wait()
        if not self.on_gpu:
            begin = time.perf_counter()
            for _ in range(count):
                call()
            return (time.perf_counter() - begin) / count * 1e3
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if busy:
            torch.cuda._sleep(busy)
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / count


def in_turns(clock, calls, seconds, warm=3, busy=0):
    """Returns [milliseconds of each round] of every call: they take turns until the time is over.

    `busy`: see Clock.milliseconds.
    """
    counts = []
    for call in calls:
        for _ in range(warm):
            call()
        once = clock.milliseconds(call, 1)
        counts.append(max(1, int((QUEUED_MS if busy else 200) / max(once, 0.01))))
    found = [[] for _ in calls]
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(found[0]) < 3:
        for times, call, count in zip(found, calls, counts):
            times.append(clock.milliseconds(call, count, busy))
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

    whole = False  # whether models are compiled as a whole, and not block by block

    def __init__(self, model_name, recipe, optimizer, device):
        self.model, self._tokens = make_model(model_name, linear_of(recipe), device)
        if self.whole:
            self.model.compile(fullgraph=True)
        else:
            compile_blocks(self.model)
        self._device = device
        parameters = list(self.model.parameters())
        if optimizer is None:
            fused = device.type == "cuda"
            self._optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=fused)
        else:
            self._optimizer = nt.AdamW(parameters, lr=1e-4, **optimizer)

    def __call__(self):
        self._optimizer.zero_grad()
        tokens = self._tokens
        with torch.autocast(self._device.type, torch.bfloat16):
            logits = self.model(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        self._optimizer.step()


class Table:
    """A table whose rows are printed as they come."""

    def __init__(self, columns, names):
        self._widths = [max(map(len, (columns[0], *names))), *(max(len(c), 9) for c in columns[1:])]
        self.add(*columns)
        print("|" + "|".join("-" * (width + 2) for width in self._widths) + "|", flush=True)

    def add(self, *cells):
        cells = (*cells, *[""] * (len(self._widths) - len(cells)))
        text = (str(c).ljust(width) for c, width in zip(cells, self._widths))
        print("| " + " | ".join(text) + " |", flush=True)


def peer_step(name, model_name, device):
    """Returns the step of another library's layers, or why there is none."""
    package = "torchao" if name.startswith("torchao") else "transformer_engine"
    if importlib.util.find_spec(package) is None:
        return "not installed"
    if package == "transformer_engine":
        return "not measured: its layers are none of nn.Linear's form"
    from torchao.float8 import convert_to_float8_training

    step = Step(model_name, None, None, device)
    convert_to_float8_training(step.model, module_filter_fn=lambda _, layer: layer != "head")
    return step


def make_step(row, model_name, device):
    """Returns the step of a row, or why there is none."""
    if row in PEERS:
        return peer_step(row, model_name, device)
    if row == WITH_SMALL:
        return Step(model_name, LAYERS["switchback e4m3fn"], {"moments": SMALL}, device)
    return Step(model_name, LAYERS[row], None, device)


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


def free_memory():
    """Gives the memory of objects that are gone back to the device, where numsim allocates too."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def first_call(clock, call):
    """Returns the seconds of a first call, which compiles."""
    began = time.perf_counter()
    call()
    clock.wait()
    return time.perf_counter() - began


def costliest(step, device, count):
    """Returns (milliseconds, calls, name) of the kernels on which a step spends most time.

    On the CPU, of PyTorch's operations. Then come the sum of all and the time of the step by the clock.
    """
    kinds = torch.profiler.ProfilerActivity
    activities = [kinds.CPU] + ([kinds.CUDA] if device.type == "cuda" else [])
    step()
    Clock(device).wait()
    with torch.profiler.profile(activities=activities) as profile:
        begin = time.perf_counter()
        step()
        Clock(device).wait()
        all_of_it = (time.perf_counter() - begin) * 1e3
    wanted = getattr(torch.autograd.DeviceType, device.type.upper())
    spent = {}
    for event in profile.events():
        if event.device_type == wanted:
            own = event.self_device_time_total if wanted.name == "CUDA" else event.self_cpu_time_total
            before, calls = spent.get(event.name, (0, 0))
            spent[event.name] = before + own / 1e3, calls + 1
    most = sorted(((ms, calls, kernel) for kernel, (ms, calls) in spent.items()), reverse=True)
    total = sum(ms for ms, *_ in most), sum(calls for _, calls, _ in most), "all kernels"
    return [*most[:count], total, (all_of_it, 1, "the step, profiled")]


def print_profile(row, step, device, count):
    print(f"\n{row}:")
    for ms, calls, kernel in costliest(step, device, count):
        print(f"  {ms:9.3f} ms {calls:5}  {kernel[:110]}")


def measure_steps(name, device, seconds, chosen, profiled=0):
    clock = Clock(device)
    layers, width, heads, vocabulary, batch, length = MODELS[name]
    print(f"Whole steps, Llama {layers} x {width}, vocabulary {vocabulary}, "
          f"{batch} x {length} tokens; named modes: {MODE}; compiled "
          f"{'whole' if Step.whole else 'block by block'}")  # fmt: skip
    table = Table(
        ["layers", "ms", "fastest", "of nn.Linear", "k tokens/s", "waits", "first step s",
         "allocations"],
        chosen,
    )  # fmt: skip

    def add(row, step, found, base, first):
        middle = statistics.median(found)
        ratio = statistics.median(base) / middle
        waits, grown = host_costs(step, device)
        rate = f"{batch * length / middle:,.0f}"
        table.add(row, f"{middle:.2f}", f"{min(found):.2f}", f"{ratio:.3f}", rate, waits,
                  f"{first:.0f}", grown)  # fmt: skip
        if profiled:
            print_profile(row, step, device, profiled)

    base = Step(name, None, None, device)
    first = first_call(clock, base)
    (times,) = in_turns(clock, [base], seconds)
    add("nn.Linear, bf16", base, times, times, first)
    for row in chosen:
        step = make_step(row, name, device)
        if isinstance(step, str):
            table.add(row, step)
            continue
        first = first_call(clock, step)
        of_base, times = in_turns(clock, [base, step], seconds)
        add(row, step, times, of_base, first)
        del step
        free_memory()
    print(flush=True)
    torch._dynamo.reset()


def host_milliseconds(clock, call, count=20):
    """Returns the milliseconds that a call takes the processor: on a device, to queue its work."""
    call()
    clock.wait()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    spent = (time.perf_counter() - begin) / count * 1e3
    clock.wait()
    return spent


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
    copied = 2 * source.numel() * source.element_size()
    print(f"Optimiser steps, {elements / 1e6:.1f} million parameters")
    columns = ["optimiser", "ms", "bytes per parameter", "of copy", "copy TB/s", "processor ms"]
    table = Table(columns, OPTIMIZERS)
    for row, (arguments, moved) in OPTIMIZERS.items():
        call = make(arguments)
        host = host_milliseconds(clock, call)
        calls = [lambda: target.copy_(source), call]
        copy, step = (statistics.median(t) for t in in_turns(clock, calls, seconds, busy=QUEUE_CYCLES))
        share = elements * moved / step / (copied / copy)
        table.add(row, f"{step:.3f}", f"{moved:.1f}", f"{share:.3f}", f"{copied / copy / 1e9:.2f}",
                  f"{host:.3f}")  # fmt: skip
        del calls
        free_memory()
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("step", "optimizer")
    parser.add_argument("--part", nargs="+", choices=parts, default=parts)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=DEFAULT_MODELS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", nargs="+", choices=ROWS, default=ROWS, metavar="NAME",
        help="rows of whole steps: " + "; ".join(ROWS))  # fmt: skip
    parser.add_argument("--whole", action="store_true",
        help="compile whole models, which takes minutes and lets blocks share kernels")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=4, help="of rounds per row (default: 4)")
    parser.add_argument("--profile", type=int, default=0, metavar="N",
        help="also list the N kernels on which each row's step spends most time")  # fmt: skip
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("--device: PyTorch finds no CUDA device; --device cpu --models tiny rehearses")
    torch.backends.cuda.matmul.allow_tf32 = True
    Step.whole = options.whole
    card = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "CPU"
    print(f"{card}, PyTorch {torch.__version__}, numsim {ns.__version__}, "
          f"{datetime.date.today()}\n")  # fmt: skip
    if "optimizer" in options.part:
        measure_optimizers(options.models[0], device, options.seconds)
    if "step" in options.part:
        for name in options.models:
            measure_steps(name, device, options.seconds, options.layers, options.profile)


if __name__ == "__main__":
    main()
