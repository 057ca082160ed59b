"""nn.MultiheadAttention whose projections are linear layers of the library."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from numsim._linear import LinearRecipe
from numsim.torch._gemms import HoldsGemms, no_fast_path

# The products of projections of the input, as torch.nn.functional.multi_head_attention_forward has
# them: one in self-attention, two where key and value are one tensor, else three.
PRODUCTS = ("qkv", "q", "kv", "k", "v")


class Projection(torch.nn.Module):
    """One product of the projections of an attention's inputs, x w^T; the weight is the caller's."""

    def __init__(self, gemms) -> None:
        super().__init__()
        self._gemms = gemms

    def forward(self, input, weight):
        return self._gemms.product(input, weight, self.training)


class MultiheadAttention(HoldsGemms, torch.nn.MultiheadAttention):
    """nn.MultiheadAttention that runs through linear layers; `convert` makes it.

    The projections of query, key and value have a recipe, or PyTorch's precision if that is None.
    `out_proj` is called as the module that it is. The products are those of PyTorch: one for all
    three in self-attention, two where key is value, else three, each with steps and delayed scales
    of its own. Products of queries, keys and values are PyTorch's. The result is that of
    nn.MultiheadAttention without its fast path, up to the order of sums.
    """

    @property
    def recipe(self) -> LinearRecipe | None:
        """The recipe of the projections of query, key and value."""
        return self._projections["qkv"]._gemms.recipe if self._projections else None

    @property
    def steps(self) -> int:
        """The number of products of the input's projections in training mode."""
        return sum(gemms.steps for gemms in self._all_gemms())

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Returns what nn.MultiheadAttention returns, with projections under the recipe."""
        if query.is_nested or key.is_nested or value.is_nested:
            raise TypeError("query: nested tensors are not supported by layers of numsim.torch")
        if is_causal and attn_mask is None:
            raise RuntimeError("attn_mask: is_causal is a hint about a mask, which has to be given")
        batched = query.dim() == 3
        q, k, v = (self._heads(x, batched) for x in self._project(query, key, value))
        k, v = self._with_more_keys(k, self.bias_k), self._with_more_keys(v, self.bias_v)
        mask = self._mask(attn_mask, key_padding_mask, q, k)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q * math.sqrt(1.0 / self.head_dim)) @ k.transpose(-2, -1)
            weights = F.dropout((scores if mask is None else scores + mask).softmax(-1), dropout)
            out = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights if batched else weights.squeeze(0)
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        return self.out_proj(self._tokens(out, batched)), weights

    def _project(self, query, key, value):
        """The projected query, key and value, in the shapes of the inputs."""
        width, bias = self.embed_dim, self.in_proj_bias
        if self.in_proj_weight is None:
            named = (("q", query), ("k", key), ("v", value))
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            calls = [(name, x, w) for (name, x), w in zip(named, weights)]
        elif key is value and query is key:
            calls = [("qkv", query, self.in_proj_weight)]
        elif key is value:
            w_q, w_kv = self.in_proj_weight.split([width, 2 * width])
            calls = [("q", query, w_q), ("kv", key, w_kv)]
        else:
            w_q, w_k, w_v = self.in_proj_weight.chunk(3)
            calls = [("q", query, w_q), ("k", key, w_k), ("v", value, w_v)]
        products = [part for call in calls for part in self._product(*call).split(width, -1)]
        if bias is None:
            return products
        return [y + b.to(y.dtype) for y, b in zip(products, bias.chunk(3))]

    def _product(self, name, x, w):
        if not self._projections:
            return F.linear(x, w)
        return self._projections[name].train(self.training)(x, w)

    def _heads(self, x, batched):
        """From (batch, tokens, width), (tokens, batch, width) or (tokens, width) to batch, heads,
        tokens, width of a head."""
        if not batched:
            x = x.unsqueeze(0)
        elif not self.batch_first:
            x = x.transpose(0, 1)
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _tokens(self, x, batched):
        """The inverse of `_heads`."""
        x = x.transpose(1, 2).flatten(-2)
        if not batched:
            return x.squeeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _with_more_keys(self, x, bias):
        """Appends the learnt bias and the zero that attention may have as further keys."""
        batch = x.shape[0]
        more = [x]
        if bias is not None:
            more.append(self._heads(bias.flatten(1), False).to(x.dtype).expand(batch, -1, -1, -1))
        if self.add_zero_attn:
            more.append(x.new_zeros((batch, self.num_heads, 1, self.head_dim)))
        return torch.cat(more, 2) if len(more) > 1 else x

    def _mask(self, attention, padding, q, k):
        """What is added to the scores (batch, heads, queries, keys), or None."""
        (batch, heads, queries, _), keys = q.shape, k.shape[2]
        own = keys - (self.bias_k is not None) - self.add_zero_attn  # keys that masks know of
        total = None
        if attention is not None:
            shapes = ((queries, own), (batch * heads, queries, own))
            _require_shape("attn_mask", attention, shapes)
            attention = _added(attention, q.dtype)
            if attention.dim() == 3:
                attention = attention.unflatten(0, (batch, heads))
            total = F.pad(attention, (0, keys - own))
        if padding is not None:
            _require_shape("key_padding_mask", padding, ((batch, own), (own,)))
            padding = _added(padding, q.dtype).reshape(batch, 1, 1, own)
            padding = F.pad(padding, (0, keys - own))
            total = padding if total is None else total + padding
        return total

    def _start(self, gemms, plain):
        """Gives a module that was of class `plain` what is its own.

        `gemms` are those of PRODUCTS; if there are none, the inputs' projections stay PyTorch's.
        """
        self._projections = {name: Projection(g) for name, g in zip(PRODUCTS, gemms)}
        self._fast_path = self.register_forward_pre_hook(no_fast_path)

    def _stop(self):
        """Makes it an nn.MultiheadAttention again."""
        self._fast_path.remove()
        self.__class__ = torch.nn.MultiheadAttention
        for name in ("_projections", "_fast_path"):
            delattr(self, name)

    def _all_gemms(self):
        return [projection._gemms for projection in self._projections.values()]

    def extra_repr(self) -> str:
        return f"recipe={self.recipe!r}"


def _require_shape(name, mask, shapes):
    if tuple(mask.shape) not in shapes:
        expected = " or ".join(map(str, shapes))
        raise ValueError(f"{name}: expected shape {expected}, found {tuple(mask.shape)}")


def _added(mask, dtype):
    """A mask as numbers that are added to scores; True means that a key is left out."""
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))
    if not mask.is_floating_point():
        raise TypeError(f"mask: expected bool or a float dtype, found {mask.dtype}")
    return mask.to(dtype)
