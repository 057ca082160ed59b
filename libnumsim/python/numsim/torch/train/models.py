"""A Llama and a vision transformer in plain PyTorch, with the names of numsim's parameters.

`s` are the keys of [model] of a configuration. `linear(name, inputs, outputs, bias)` makes the linear
layer of a name: `torch.nn.Linear(inputs, outputs, bias)`, or a layer of any other precision.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MakeLinear = Callable[[str, int, int, bool], nn.Module]


class Norm(nn.Module):
    """LayerNorm, or without a bias RMSNorm."""

    def __init__(self, width: int, epsilon: float, bias: bool) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if self.bias is None:
            x = x.float()  # queries and keys are bf16 under autocast
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.gain
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.epsilon)


class Branch(nn.Module):
    """A function of a norm that a block adds to its stream, perhaps with layer-scale."""

    def __init__(self, s: SimpleNamespace, bias: bool) -> None:
        super().__init__()
        self.norm = Norm(s.width, s.norm_epsilon, bias)
        scaled = s.layer_scale != "none"
        self.scale = nn.Parameter(torch.full((s.width,), float(s.layer_scale))) if scaled else None

    def scaled(self, y: Tensor) -> Tensor:
        return y if self.scale is None else self.scale * y


class Attention(Branch):
    """Attention of several heads; causal in a Llama, which also rotates queries and keys."""

    def __init__(
        self, s: SimpleNamespace, name: str, linear: MakeLinear, bias: bool, causal: bool
    ) -> None:
        super().__init__(s, bias)
        self.heads, self.causal = s.heads, causal
        self.qkv = linear(f"{name}.qkv", s.width, 3 * s.width, bias)
        self.query_norm = self.key_norm = None
        if s.qk_norm:
            self.query_norm = Norm(s.width // s.heads, s.norm_epsilon, bias)
            self.key_norm = Norm(s.width // s.heads, s.norm_epsilon, bias)
        self.out = linear(f"{name}.out", s.width, s.width, bias)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.unbind(2)
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        if rotation is not None:
            q, k = rotate(q, *rotation), rotate(k, *rotation)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))  # batch, heads, length, head
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.scaled(self.out(y.transpose(1, 2).reshape(batch, length, width)))


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turns elements j and j + half of each head by their position. x: batch, length, heads, head."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)


def rotation_of(length: int, head: int, base: float) -> tuple[Tensor, Tensor]:
    """Returns the cosines and sines of the positions, for `rotate`."""
    frequencies = base ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
    angles = torch.arange(length, dtype=torch.float64)[:, None, None] * frequencies
    return angles.cos().float(), angles.sin().float()


class Mlp(Branch):
    """The MLP of a block: SwiGLU, or GELU without a gate."""

    def __init__(
        self, s: SimpleNamespace, name: str, linear: MakeLinear, bias: bool, kind: str, hidden: int
    ) -> None:
        super().__init__(s, bias)
        self.kind = kind
        if kind == "gelu":
            self.up = linear(f"{name}.up", s.width, hidden, bias)
        else:
            self.gate_up = linear(f"{name}.gate_up", s.width, 2 * hidden, bias)
        self.down = linear(f"{name}.down", hidden, s.width, bias)

    def hidden(self, x: Tensor) -> Tensor:
        if self.kind == "gelu":
            return F.gelu(self.up(x), approximate="tanh")
        gate, up = self.gate_up(x).chunk(2, -1)
        if self.kind == "clamped-swiglu":
            gate, up = gate.clamp(max=7), up.clamp(-7, 7)
        return F.silu(gate) * up

    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(self.down(self.hidden(self.norm(x))))


class Block(nn.Module):
    """x + attention(norm(x)), then the same with the MLP."""

    def __init__(self, attention: Attention, mlp: Mlp) -> None:
        super().__init__()
        self.attention, self.mlp = attention, mlp

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None) -> Tensor:
        x = x + self.attention(x, rotation)
        return x + self.mlp(x)


class Embedding(nn.Module):
    """The vectors of the tokens."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.zeros(vocabulary, width))

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.tokens)


class Llama(nn.Module):
    """RMSNorm, rotary positions, SwiGLU, no biases. tokens (batch, length) -> logits."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, s: SimpleNamespace, vocabulary: int, linear: MakeLinear) -> None:
        super().__init__()
        hidden = s.hidden or -(-8 * s.width // 96) * 32  # 8/3 of the width, a multiple of 32
        self.embedding = Embedding(vocabulary, s.width)
        self.blocks = nn.ModuleList(
            Block(
                Attention(s, f"blocks.{i}.attention", linear, bias=False, causal=True),
                Mlp(s, f"blocks.{i}.mlp", linear, False, s.mlp, hidden),
            )
            for i in range(s.layers)
        )
        self.final_norm = Norm(s.width, s.norm_epsilon, bias=False)
        self.head = linear("head", s.width, vocabulary, False)
        cosines, sines = rotation_of(s.context, s.width // s.heads, s.rope_base)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns the logits of a batch of sequences of tokens."""
        length = tokens.shape[1]
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, (self.cosines[:length], self.sines[:length]))
        return self.head(self.final_norm(x))


class VisionTransformer(nn.Module):
    """Patches, class token, learned positions. images (batch, side, side, channels) -> logits."""

    def __init__(
        self, s: SimpleNamespace, side: int, channels: int, classes: int, linear: MakeLinear
    ) -> None:
        super().__init__()
        self.patch = s.patch
        hidden = s.hidden or 4 * s.width
        self.patches = linear("patches", s.patch * s.patch * channels, s.width, True)
        self.class_token = nn.Parameter(torch.zeros(1, s.width))
        self.positions = nn.Parameter(torch.zeros((side // s.patch) ** 2 + 1, s.width))
        self.blocks = nn.ModuleList(
            Block(
                Attention(s, f"blocks.{i}.attention", linear, bias=True, causal=False),
                Mlp(s, f"blocks.{i}.mlp", linear, True, "gelu", hidden),
            )
            for i in range(s.layers)
        )
        self.final_norm = Norm(s.width, s.norm_epsilon, bias=True)
        self.head = linear("head", s.width, classes, True)

    def cut(self, images: Tensor) -> Tensor:
        """Returns the patches of images as vectors: batch, patches, patch * patch * channels."""
        batch, side, _, channels = images.shape
        n, p = side // self.patch, self.patch
        tiles = images.view(batch, n, p, n, p, channels).transpose(2, 3)
        return tiles.reshape(batch, n * n, p * p * channels)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the logits of a batch of images, with channels last."""
        x = self.patches(self.cut(images))
        x = torch.cat((self.class_token.expand(len(x), 1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x[:, 0]))


def compile_blocks(model: Llama | VisionTransformer) -> None:
    """Lets torch.compile make the code of a model's blocks, one for all that are equal."""
    limits = torch._dynamo.config  # of the variants of one code: training, validation, recipes
    limits.cache_size_limit = max(limits.cache_size_limit, 4 * len(model.blocks))
    for module in (*model.blocks, model.final_norm):
        module.compile(fullgraph=True, dynamic=False)
