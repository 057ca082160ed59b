"""The linear layers of a model, and its matrices that are none."""

from __future__ import annotations

import dataclasses

import torch
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.utils import parametrize

from numsim.torch._attention import MultiheadAttention
from numsim.torch._linear import Linear

_ATTENTION = (torch.nn.MultiheadAttention, MultiheadAttention)
_OUT_PROJ = (NonDynamicallyQuantizableLinear, Linear)
_IN_PROJ = ".in_proj"
_MORE_KEYS = ("bias_k", "bias_v")
NO_RECIPE = "no recipe"  # why a layer stays as it is


@dataclasses.dataclass(frozen=True)
class Kept:
    """A matrix of parameters that stays in high precision: its name, its shape, and why."""

    name: str
    shape: tuple[int, ...]
    reason: str

    def __str__(self):
        shape = " x ".join(map(str, self.shape)) or "of no shape yet"
        return f"{self.name} {shape}: {self.reason}"


class InputProjection:
    """The projections of query, key and value of an attention, which are a layer by themselves."""

    def __init__(self, attention):
        self.attention = attention


def linear_layers(model):
    """Returns {name: nn.Linear, Linear or InputProjection} of what a recipe can be given to.

    An attention NAME has the layers NAME.in_proj and NAME.out_proj.
    """
    layers = {}
    for name, module in model.named_modules():
        if type(module) in _ATTENTION and type(module.out_proj) in _OUT_PROJ:
            layers[(name + _IN_PROJ).removeprefix(".")] = InputProjection(module)
            layers[(name + ".out_proj").removeprefix(".")] = module.out_proj
        elif type(module) in (torch.nn.Linear, Linear):
            layers[name] = module
    return {name: layer for name, layer in layers.items() if not _is_lazy(layer)}


def converted_layers(model):
    """Returns {name: Linear, or MultiheadAttention for its projections of the inputs}."""
    layers = {}
    for name, module in model.named_modules():
        if isinstance(module, MultiheadAttention) and module.recipe is not None:
            layers[(name + _IN_PROJ).removeprefix(".")] = module
        elif isinstance(module, Linear):
            layers[name] = module
    return layers


def kept_matrices(model):
    """Returns [Kept] of the parameters of two or more dimensions that no converted layer has."""
    converted = {id(p) for p in converted_matrices(model)}
    layers = linear_layers(model).values()
    free = {id(m.attention if isinstance(m, InputProjection) else m) for m in layers}
    kept = []
    for name, module in model.named_modules():
        for own, p in module.named_parameters(name, recurse=False):
            lazy = torch.nn.parameter.is_lazy(p)
            if id(p) in converted or not (own.endswith("weight") if lazy else p.dim() > 1):
                continue
            reason = NO_RECIPE if id(module) in free else _reason(module)
            if isinstance(module, torch.nn.MultiheadAttention) and own.endswith(_MORE_KEYS):
                reason = "a key and value that attention appends"
            kept.append(Kept(own, () if lazy else tuple(p.shape), reason))
    return kept


def converted_matrices(model):
    """Returns the parameters of two or more dimensions of converted layers, each once."""
    found = {}
    for layer in converted_layers(model).values():
        inputs = isinstance(layer, MultiheadAttention)
        named = layer.named_parameters(recurse=not inputs)
        found |= {id(p): p for name, p in named if p.dim() > 1 and name not in _MORE_KEYS}
    return list(found.values())


def _is_lazy(module):
    lazy = torch.nn.modules.lazy.LazyModuleMixin
    return isinstance(module, lazy) and module.has_uninitialized_params()


def _reason(module):
    kind = type(module).__name__
    if _is_lazy(module):
        return f"{kind} has no shape yet: run the model once before"
    if isinstance(module, parametrize.ParametrizationList):
        return "a parametrised weight: convert first, then parametrise"
    if isinstance(module, torch.nn.Linear):
        return f"{kind} is a subclass of nn.Linear"
    if type(module) in _ATTENTION:
        return "its out_proj is not PyTorch's"
    if isinstance(module, torch.nn.MultiheadAttention):
        return f"{kind} is a subclass of nn.MultiheadAttention"
    if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
        return f"{kind} looks rows up"
    return f"a parameter of {kind}, which is not a linear layer"
