#!/usr/bin/env python3
"""Training steps of numsim's presets, relative to the same model in PyTorch with torch.compile.

    python bench/training_peers.py [--program NUMSIM] [--presets P ...] [--threads N ...]
                                   [--rounds R] [--steps S]

Needs PyTorch (pip install torch numpy, for example in a virtual environment of its own) and a
built `numsim`. PyTorch trains in float32 and, for information, under bf16 autocast. Each training
runs S steps per round, in turn, so that all of them see the same machine; the result is the
fastest step of all rounds, so that warm-up and other programs do not count. Before that, the
script checks that PyTorch's model has numsim's parameters by name and shape, and linear layers of
the same number of operations per step. Prints the versions, the machine and a table in Markdown.
"""

import argparse
import json
import math
import os
import platform
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWITCHBACK = ("linear.kind=switchback", "linear.format=")
# Per preset, what numsim trains: the name of the row and the keys to set.
ROWS = {
    "small": {
        "named order": (),
        "library products": ("linear.high_precision_accumulate=library",),
        "int8 SwitchBack": (SWITCHBACK[0], SWITCHBACK[1] + "int8"),
        "the same, bf16 weight gradients": (
            SWITCHBACK[0],
            SWITCHBACK[1] + "int8",
            "linear.high_precision=bf16",
            "linear.high_precision_accumulate=library",
        ),
        "simulated e4m3fn SwitchBack": (SWITCHBACK[0], SWITCHBACK[1] + "e4m3fn"),
    },
    "vit-small": {"named order": ()},
    "clip-small": {"named order": ()},
}
PEERS = ("fp32", "bf16")  # PyTorch's precisions; the first is the one that counts
BASIC = ("train.valid_every=0", "train.valid_batches=1", "telemetry.tensors_every=0")


class Mismatch(Exception):
    """The two programs do not train the same model."""


# numsim


def train(program, preset, settings, threads, steps, folder):
    """Trains in `folder` and returns the manifest."""
    command = [program, "train", "--preset", preset, "--out", str(folder)]
    for setting in (*BASIC, "checkpoint.every=0", f"train.steps={steps}", *settings):
        command += ["--set", setting]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def shapes_in(checkpoint):
    """Returns the shape of each parameter in a checkpoint of numsim."""
    with open(checkpoint, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    prefix = "model/"
    return {
        name[len(prefix) :]: tuple(entry["shape"])
        for name, entry in header.items()
        if name.startswith(prefix)
    }


def describe(program, preset):
    """Returns the options, parameter shapes and linear operations per step of a preset."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = train(program, preset, (), 1, 2, Path(folder) / "run")
        shapes = shapes_in(Path(folder) / "run" / "checkpoint.safetensors")
    keys = ("steps", "seconds", "share_product", "layer_gflops")
    steps, seconds, share, rate = (float(manifest["measurements"][key]) for key in keys)
    flops = rate * 1e9 * share * seconds / steps
    options = {key: value.strip('"') for key, value in manifest["options"].items()}
    return {"options": options, "shapes": shapes, "flops": flops}


# PyTorch: one process per model, precision and number of threads, because torch.compile writes the
# number of threads into its kernels.


def peer(description, precision, threads):
    """Prints a line when the model is compiled; then, per line with a number of steps, the seconds
    of the fastest step."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    options, shapes = description["options"], description["shapes"]
    number = lambda key: float(options[key])
    kind, heads = options["model.kind"], int(options["model.heads"])
    batch, epsilon = int(options["train.batch"]), number("model.norm_epsilon")

    def linear(name):
        outputs, inputs = shapes[name + ".weight"]
        return nn.Linear(inputs, outputs, bias=name + ".bias" in shapes)

    class Norm(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(shapes[name + ".gain"]))
            layer = name + ".bias" in shapes
            self.bias = nn.Parameter(torch.zeros(shapes[name + ".bias"])) if layer else None

        def forward(self, x):
            size = x.shape[-1:]
            if self.bias is None:
                return F.rms_norm(x, size, self.gain[0], epsilon)
            return F.layer_norm(x, size, self.gain[0], self.bias[0], epsilon)

    class Attention(nn.Module):
        def __init__(self, name, causal, rotary):
            super().__init__()
            self.norm = Norm(name + ".norm")
            self.qkv, self.out = linear(name + ".qkv"), linear(name + ".out")
            self.causal, self.rotary = causal, rotary
            size = self.qkv.in_features // heads
            if rotary:
                angles = torch.outer(
                    torch.arange(int(options["model.context"])),
                    number("model.rope_base") ** (-torch.arange(0, size, 2) / size),
                )
                self.register_buffer("cos", angles.cos(), persistent=False)
                self.register_buffer("sin", angles.sin(), persistent=False)

        def rotate(self, x):
            low, high = x.chunk(2, -1)
            cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
            return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)

        def forward(self, x):
            examples, length, width = x.shape
            split = self.qkv(self.norm(x)).view(examples, length, 3, heads, width // heads)
            q, k, v = split.permute(2, 0, 3, 1, 4)
            if self.rotary:
                q, k = self.rotate(q), self.rotate(k)
            core = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.out(core.transpose(1, 2).reshape(examples, length, width))

    class Mlp(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.norm, self.down = Norm(name + ".norm"), linear(name + ".down")
            self.gated = name + ".gate_up.weight" in shapes
            if self.gated:
                self.gate_up = linear(name + ".gate_up")
            else:
                self.up = linear(name + ".up")

        def forward(self, x):
            x = self.norm(x)
            if not self.gated:
                return self.down(F.gelu(self.up(x)))
            gate, up = self.gate_up(x).chunk(2, -1)
            return self.down(F.silu(gate) * up)

    class Block(nn.Module):
        def __init__(self, name, causal, rotary):
            super().__init__()
            self.attention = Attention(name + ".attention", causal, rotary)
            self.mlp = Mlp(name + ".mlp")

        def forward(self, x):
            x = x + self.attention(x)
            return x + self.mlp(x)

    def blocks(prefix, causal, rotary=False):
        index = prefix.count(".")
        names = {name.split(".")[index] for name in shapes if name.startswith(prefix)}
        return nn.Sequential(*(Block(f"{prefix}{i}", causal, rotary) for i in range(len(names))))

    class Embedding(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.tokens = nn.Parameter(torch.randn(shapes[name + ".tokens"]) * 0.02)
            learned = shapes.get(name + ".positions")
            self.positions = nn.Parameter(torch.randn(learned) * 0.01) if learned else None

        def forward(self, tokens):
            x = F.embedding(tokens, self.tokens)
            return x if self.positions is None else x + self.positions

    class ImageTower(nn.Module):
        def __init__(self, prefix):
            super().__init__()
            self.patches = linear(prefix + "patches")
            self.class_token = nn.Parameter(torch.randn(shapes[prefix + "class_token"]) * 0.02)
            self.positions = nn.Parameter(torch.randn(shapes[prefix + "positions"]) * 0.02)
            has = prefix + "pre_norm.gain" in shapes
            self.pre_norm = Norm(prefix + "pre_norm") if has else None
            self.blocks = blocks(prefix + "blocks.", causal=False)
            self.final_norm = Norm(prefix + "final_norm")

        def forward(self, images):
            examples, side, _, channels = images.shape
            patch = int(options["model.patch"])
            cut = images.view(examples, side // patch, patch, side // patch, patch, channels)
            x = self.patches(cut.transpose(2, 3).reshape(examples, -1, patch * patch * channels))
            first = self.class_token.expand(examples, 1, -1).to(x.dtype)
            x = torch.cat((first, x), 1) + self.positions
            x = self.blocks(x if self.pre_norm is None else self.pre_norm(x))
            return self.final_norm(x[:, 0])

    class TextTower(nn.Module):
        def __init__(self, prefix):
            super().__init__()
            self.embedding = Embedding(prefix + "embedding")
            self.blocks = blocks(prefix + "blocks.", causal=True)
            self.final_norm = Norm(prefix + "final_norm")

        def forward(self, tokens, ends):
            x = self.blocks(self.embedding(tokens))
            return self.final_norm(x[torch.arange(len(ends)), ends])

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = Embedding("embedding")
            self.blocks = blocks("blocks.", causal=True, rotary=True)
            self.final_norm, self.head = Norm("final_norm"), linear("head")

        def forward(self, tokens, targets):
            logits = self.head(self.final_norm(self.blocks(self.embedding(tokens))))
            return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    class Vit(ImageTower):
        def __init__(self):
            super().__init__("")
            self.head = linear("head")

        def forward(self, images, labels):
            return F.cross_entropy(self.head(super().forward(images)).float(), labels)

    class Clip(nn.Module):
        def __init__(self):
            super().__init__()
            self.image, self.text = ImageTower("image."), TextTower("text.")
            self.image.projection = linear("image.projection")
            self.text.projection = linear("text.projection")
            self.logit_scale = nn.Parameter(torch.full((1, 1), math.log(1 / 0.07)))

        def forward(self, images, tokens, ends):
            u = F.normalize(self.image.projection(self.image(images)), dim=-1)
            v = F.normalize(self.text.projection(self.text(tokens, ends)), dim=-1)
            logits = (u @ v.T).float() * self.logit_scale.clamp(0, math.log(100)).exp()
            own = torch.arange(len(logits))
            return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2

    def pictures():
        rows = shapes["image.positions" if kind == "clip" else "positions"][0] - 1
        patch = int(options["model.patch"])
        side = math.isqrt(rows) * patch
        inputs = shapes["image.patches.weight" if kind == "clip" else "patches.weight"][1]
        return torch.randn(batch, side, side, inputs // patch**2)

    def draw():
        """Returns a batch. What is drawn does not change the time of a step."""
        if kind == "llama":
            size = (batch, int(options["model.context"]))
            tokens = torch.randint(shapes["embedding.tokens"][0], size)
            return tokens, torch.roll(tokens, -1, 1)
        if kind == "vit":
            return pictures(), torch.randint(shapes["head.weight"][0], (batch,))
        length = shapes["text.embedding.positions"][0]
        tokens = torch.randint(shapes["text.embedding.tokens"][0], (batch, length))
        return pictures(), tokens, torch.randint(length, (batch,))

    model = {"llama": Llama, "vit": Vit, "clip": Clip}[kind]()
    check(model, draw(), description, nn, torch)

    matrices, vectors = [], []
    for parameter in model.parameters():
        (matrices if min(parameter.shape) > 1 else vectors).append(parameter)
    decay = number("optimizer.weight_decay")
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=number("schedule.peak"),
        betas=(number("optimizer.beta1"), number("optimizer.beta2")),
        eps=number("optimizer.epsilon"),
        fused=True,
    )
    compiled = torch.compile(model)

    def step():
        tensors = draw()
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = compiled(*tensors)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), number("optimizer.clip_norm"))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        return time.perf_counter() - start

    for _ in range(3):
        step()
    print(f"PyTorch {torch.__version__}", flush=True)
    for line in sys.stdin:
        print(min(step() for _ in range(int(line))), flush=True)


def check(model, tensors, description, nn, torch):
    """Raises Mismatch unless the model has numsim's parameters and operations per step."""
    shapes = {name: tuple(value.shape) for name, value in model.named_parameters()}
    flat = lambda pairs: {name: tuple(n for n in shape if n != 1) for name, shape in pairs.items()}
    if flat(shapes) != flat(description["shapes"]):
        differ = set(flat(shapes).items()) ^ set(flat(description["shapes"]).items())
        raise Mismatch(f"parameters differ: {sorted(differ)}")
    flops = 0

    def count(layer, inputs, _):
        nonlocal flops
        flops += 3 * 2 * inputs[0].numel() * layer.out_features  # a forward and two backward GEMMs

    layers = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    handles = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        model(*tensors)
    for handle in handles:
        handle.remove()
    if abs(flops / description["flops"] - 1) > 1e-9:
        raise Mismatch(f"{flops} operations per step, numsim {description['flops']}")


class Peer:
    """A process that trains in PyTorch when told to."""

    def __init__(self, description, precision, threads):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        command = [sys.executable, os.path.abspath(__file__), "--peer", precision]
        self.process = subprocess.Popen(
            [*command, "--threads", str(threads)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.version = self.ask(json.dumps(description))

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"PyTorch ended with exit code {self.process.wait()}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(arguments, preset, description, threads):
    """Returns the seconds of the fastest step per training, and the versions of both programs."""
    peers = {precision: Peer(description, precision, threads) for precision in PEERS}
    fastest = {}
    note = lambda name, seconds: fastest.update({name: min(seconds, fastest.get(name, math.inf))})
    manifest, steps = None, arguments.steps
    for _ in range(arguments.rounds):
        for precision, process in peers.items():
            note(precision, float(process.ask(steps)))
        for name, settings in ROWS[preset].items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "run"
                manifest = train(arguments.program, preset, settings, threads, steps, path)
            note(name, float(manifest["measurements"]["seconds_of_fastest_step"]))
    versions = (
        f"numsim {manifest['git_commit']} ({manifest['compiler']}, {manifest['build_type']}, "
        f"{manifest['simd_target']}, library {manifest['measurements']['library']}); "
        f"{peers[PEERS[0]].version}"
    )
    for process in peers.values():
        process.close()
    return fastest, versions


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", default=str(root / "build/release/apps/numsim"))
    parser.add_argument("--presets", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="per round and training")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(json.loads(sys.stdin.readline()), arguments.peer, arguments.threads[0])
    print(machine(), flush=True)
    lines, versions = [], ""
    for preset in arguments.presets:
        description = describe(arguments.program, preset)
        count = sum(math.prod(shape) for shape in description["shapes"].values())
        giga = description["flops"] / 1e9
        print(f"{preset}: {count} parameters, {giga:.4g} GFLOP per step in linear layers")
        for threads in arguments.threads:
            fastest, versions = compare(arguments, preset, description, threads)
            reference, autocast = (fastest[precision] * 1e3 for precision in PEERS)
            for name in ROWS[preset]:
                own = fastest[name] * 1e3
                lines.append(
                    f"| `{preset}`, {name} | {threads} | {own:.1f} | {reference:.1f} | "
                    f"{reference / own:.2f} | {autocast:.1f} |"
                )
                print(lines[-1], flush=True)
    print(f"\n{versions}\n")
    print("| training | threads | ms per step | PyTorch fp32 | ratio | PyTorch bf16 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(lines))
    return None


if __name__ == "__main__":
    main()
