"""Linear layers of a model to the library's and back, chosen by patterns."""

from __future__ import annotations

import fnmatch

import torch

from numsim._linear import LinearRecipe, RecipeLike, recipe_of
from numsim._names import did_you_mean
from numsim.torch._linear import Linear, start, stop

GEMMS = ("forward", "input-gradient", "weight-gradient")
_OTHER_NAMES = {"dgrad": "input-gradient", "wgrad": "weight-gradient"}  # of TransformerEngine


def convert(
    model: torch.nn.Module,
    recipes: RecipeLike | dict[str, RecipeLike | None],
    *,
    seed: int = 0,
) -> torch.nn.Module:
    """Gives linear layers of a model the precision of recipes, in place. Returns the model.

    recipes   one recipe for all, or {pattern: recipe}. A pattern is a glob for names of modules
              ("blocks.*.mlp.*"; '*' also matches dots), or GLOB/GEMM with GEMM forward,
              input-gradient (dgrad) or weight-gradient (wgrad) for one of the three GEMMs of a
              layer. The recipe None leaves a layer as it is, and a GEMM in the recipe's high
              precision. For each GEMM of each layer the first pattern that matches counts; a GEMM
              without one stays in high precision, and a layer without one stays as it is
    seed      of stochastically rounded gradients; the layers get the numbers 0, 1, ... in the order
              of model.named_modules()

    A layer becomes a `Linear` and stays the same object with the same parameters and hooks.
    Modules of exactly the class nn.Linear are layers, and those that an earlier call converted,
    which start anew. `converted` lists what was done, `revert` undoes it.

    Raises ValueError for a pattern that matches no layer (with the nearest name of one) or that
    never counts because of earlier ones, and for a layer whose GEMMs have two recipes.
    """
    if not isinstance(recipes, dict):
        recipes = {"*": recipes}
    layers = _layers(model)
    rules = [_rule(pattern, recipe) for pattern, recipe in recipes.items()]
    chosen = _choose(rules, list(layers))
    plan = {name: _layer_recipe(name, gemms) for name, gemms in chosen.items()}
    numbered = ((name, recipe) for name, recipe in plan.items() if recipe is not None)
    for number, (name, recipe) in enumerate(numbered):
        module = layers[name]
        if type(module) is Linear:
            _to_plain(module)
        module.__class__ = Linear
        start(module, recipe, seed, number)
    return model


def converted(model: torch.nn.Module) -> dict[str, LinearRecipe]:
    """Returns {name of layer: recipe} of the layers of class `Linear`."""
    return {name: m.recipe for name, m in _layers(model).items() if type(m) is Linear}


def revert(model: torch.nn.Module) -> torch.nn.Module:
    """Makes every `Linear` an nn.Linear again, the same object. Returns the model."""
    for module in _layers(model).values():
        if type(module) is Linear:
            _to_plain(module)
    return model


def _to_plain(module):
    stop(module)
    module.__class__ = torch.nn.Linear


def _layers(model):
    kinds = (torch.nn.Linear, Linear)
    return {name: module for name, module in model.named_modules() if type(module) in kinds}


def _rule(pattern, recipe):
    """Returns (pattern, glob, GEMMs, recipe)."""
    glob, slash, gemm = pattern.partition("/")
    gemm = _OTHER_NAMES.get(gemm, gemm)
    if slash and gemm not in GEMMS:
        hint = did_you_mean(gemm, [*GEMMS, *_OTHER_NAMES])
        raise ValueError(f"recipes: {pattern!r}: GEMMs are {', '.join(GEMMS)}{hint}")
    gemms = (gemm,) if slash else GEMMS
    return pattern, glob, gemms, None if recipe is None else recipe_of(recipe)


def _choose(rules, names):
    """Returns {layer: {GEMM: recipe or None}} of the first rules that match."""
    chosen = {name: {} for name in names}
    for pattern, glob, gemms, recipe in rules:
        matched = [name for name in names if fnmatch.fnmatchcase(name, glob)]
        if not matched:
            known = ", ".join(names) or "none"
            raise ValueError(
                f"recipes: {pattern!r} matches no linear layer{did_you_mean(glob, names)} "
                f"(layers: {known})"
            )
        free = [(name, gemm) for name in matched for gemm in gemms if gemm not in chosen[name]]
        if not free:
            raise ValueError(
                f"recipes: {pattern!r} never counts: earlier patterns match its layers; "
                "put it first"
            )
        for name, gemm in free:
            chosen[name][gemm] = recipe
    return chosen


def _layer_recipe(name, gemms):
    """Returns the recipe of a layer, or None if it stays as it is."""
    recipes = {recipe for recipe in gemms.values() if recipe is not None}
    if not recipes:
        return None
    if len(recipes) > 1:
        raise ValueError(
            f"recipes: the GEMMs of {name!r} have {len(recipes)} recipes: "
            f"{', '.join(sorted(map(repr, recipes)))}; a layer has one, and None for single GEMMs"
        )
    recipe = recipes.pop()
    high = [gemm for gemm in GEMMS if gemms.get(gemm) is None]
    if not high:
        return recipe
    high += filter(None, [recipe.settings.get("high_operands")])
    try:
        return recipe.with_settings(high_operands=",".join(high))
    except ValueError as error:
        raise ValueError(f"recipes: {name!r}: {error}") from None
