"""What `convert` did to a model, and what it left out."""

from __future__ import annotations

import dataclasses

import torch

from numsim._linear import LinearRecipe
from numsim.torch._layers import Kept, converted_layers, converted_matrices, kept_matrices

_LISTED = 50  # matrices that a warning lists by name


class LeftOutWarning(UserWarning):
    """Something of a model stays in high precision, never runs, or is not measured."""


@dataclasses.dataclass(frozen=True)
class Report:
    """The matrices of a model by what computes with them. Prints as a list.

    converted   {name of layer: recipe}
    kept        matrices of parameters that stay in high precision: `Kept` with name, shape, reason.
                A matrix that a converted layer shares with another module is not among them
    share       of the elements of all matrices, those in converted layers
    idle        names of converted layers that have not run in training mode, though others have:
                layers whose weight is used in another way, as by torch.nn.functional.linear
    """

    converted: dict[str, LinearRecipe]
    kept: list[Kept]
    share: float
    idle: list[str]

    def __str__(self):
        lines = [f"{self.share:.0%} of the elements of matrices are in converted layers"]
        lines += [f"  {name}: {recipe!r}" for name, recipe in self.converted.items()]
        if self.kept:
            lines += ["in high precision:", *(f"  {kept}" for kept in self.kept)]
        if self.idle:
            lines += ["converted, but never run in training mode:", f"  {', '.join(self.idle)}"]
        return "\n".join(lines)


def converted(model: torch.nn.Module) -> dict[str, LinearRecipe]:
    """Returns {name of layer: recipe} of the converted layers.

    The projections of query, key and value of a MultiheadAttention NAME have the name NAME.in_proj.
    """
    return {name: layer.recipe for name, layer in converted_layers(model).items()}


def report(model: torch.nn.Module) -> Report:
    """Returns what is converted, what stays in high precision, and what never ran."""
    layers = converted_layers(model)
    inside = sum(p.numel() for p in converted_matrices(model))
    every = {id(p): p for p in model.parameters() if not torch.nn.parameter.is_lazy(p)}
    total = sum(p.numel() for p in every.values() if p.dim() > 1)
    ran = any(layer.steps for layer in layers.values())
    idle = [name for name, layer in layers.items() if ran and not layer.steps]
    share = inside / total if total else 0.0
    return Report(converted(model), kept_matrices(model), share, idle)


def left_out_text(report, left, edges, recipe):
    """The warning about what stays in high precision.

    `left` has a text for each matrix that is in no converted layer; `edges` are the names of those
    converted layers that a recipe for models leaves in bf16.
    """
    lines = []
    if edges:
        lines.append(
            f"convert: {recipe!r} leaves first and last layers in bf16: {', '.join(edges)} "
            f"({len(edges)} of {len(report.converted)} converted layers)"
        )
    if left:
        stay = "1 matrix stays" if len(left) == 1 else f"{len(left)} matrices stay"
        lines.append(
            f"convert: {stay} in high precision{' too' if edges else ''}; {report.share:.0%} of the "
            "elements of matrices are in converted layers. To accept a matrix, give its name the recipe None."
        )
        lines += [f"  {text}" for text in left[:_LISTED]]
    if len(left) > _LISTED:
        lines.append(f"  and {len(left) - _LISTED} more: print(numsim.torch.report(model))")
    return "\n".join(lines)


def idle_text(idle):
    """The warning about converted layers that do not run."""
    return (
        f"converted layers did not run in the first forward pass of the model: {', '.join(idle)}; "
        "a weight that is used otherwise, as by torch.nn.functional.linear, is in high precision there"
    )
