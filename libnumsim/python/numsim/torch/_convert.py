"""Linear layers of a model to the library's and back, chosen by patterns."""

from __future__ import annotations

import fnmatch
import warnings

import torch

from numsim._linear import LinearRecipe, RecipeLike, recipe_of, recipe_with
from numsim._model_recipes import model_recipe, model_recipes, require_usual_mlp
from numsim._names import did_you_mean
from numsim.torch._attention import PRODUCTS, MultiheadAttention
from numsim.torch._gemms import Gemms
from numsim.torch._layers import (
    NO_RECIPE,
    InputProjection,
    converted_layers,
    kept_matrices,
    linear_layers,
)
from numsim.torch._linear import Linear
from numsim.torch._report import LeftOutWarning, idle_text, left_out_text, report

GEMMS = ("forward", "input-gradient", "weight-gradient")
_OTHER_NAMES = {"dgrad": "input-gradient", "wgrad": "weight-gradient"}  # of TransformerEngine


def convert(
    model: torch.nn.Module,
    recipes: RecipeLike | dict[str, RecipeLike | None],
    *,
    seed: int = 0,
) -> torch.nn.Module:
    """Gives linear layers of a model the precision of recipes, in place. Returns the model.

    recipes   one recipe for all, or {pattern: recipe}. A pattern is a glob for names of layers
              ("blocks.*.mlp.*"; '*' also matches dots), or GLOB/GEMM with GEMM forward,
              input-gradient (dgrad) or weight-gradient (wgrad) for one of the three GEMMs of a
              layer. The recipe None leaves a layer as it is, and a GEMM in the recipe's high
              precision. For each GEMM of each layer the first pattern that matches counts; a GEMM
              without one stays in high precision, and a layer without one stays as it is.
              A recipe of docs/configuration.md for all, such as "fp8-delayed", leaves the last
              layer in bf16, and the first one too if no nn.Embedding comes before it; in a pattern
              it is the recipe of the layers alone
    seed      of stochastically rounded gradients; layers get numbers 0, 1, ... in the order of
              model.named_modules(), the projections of an attention's inputs five of them

    A layer becomes a `Linear` and stays the same object with the same parameters and hooks.
    Modules of exactly the class nn.Linear are layers, and those that an earlier call converted,
    which start anew; so are the projections of a module NAME of exactly the class
    nn.MultiheadAttention, as NAME.in_proj and NAME.out_proj. `converted` lists what was done,
    `revert` undoes it.

    Warns with a `LeftOutWarning` that names every other matrix of parameters: those that a pattern
    with recipe None matches are accepted. `report(model)` has the same list. After the first
    forward pass of the model in training mode warns of converted layers that did not run.

    Raises ValueError for a pattern that matches no layer (with the nearest name of one) or that
    never counts because of earlier ones, and for a layer whose GEMMs have two recipes.
    """
    layers = linear_layers(model)
    edges, accepted = [], []
    if isinstance(recipes, str) and recipes in model_recipes():
        plan, edges = _plan_of_model(recipes, model, layers)
    else:
        rules = [_rule(*item) for item in _as_patterns(recipes).items()]
        accepted = [glob for _, glob, gemms, recipe in rules if recipe is None and gemms == GEMMS]
        chosen = _choose(rules, list(layers), kept_matrices(model))
        plan = {name: _layer_recipe(name, gemms) for name, gemms in chosen.items()}
        plan = {name: recipe for name, recipe in plan.items() if recipe is not None}
    _convert_layers(model, layers, plan, seed)
    _watch_for_idle(model)
    done = report(model)
    left = [str(k) for k in done.kept if not any(_covers(glob, k) for glob in accepted)]
    if left or edges:
        text = left_out_text(done, left, edges, recipes)
        warnings.warn(text, LeftOutWarning, stacklevel=2)
    return model


def _as_patterns(recipes):
    return recipes if isinstance(recipes, dict) else {"*": recipes}


def revert(model: torch.nn.Module) -> torch.nn.Module:
    """Makes every converted layer a plain one again, the same object. Returns the model."""
    for module in list(model.modules()):
        if type(module) is Linear or type(module) is MultiheadAttention:
            module._stop()
        if "_numsim_nested" in vars(module):  # of an nn.TransformerEncoder
            module.use_nested_tensor = module._numsim_nested
            del module._numsim_nested
    _stop_watching_for_idle(model)
    return model


def plain_state_dict(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns model.state_dict() without what plain layers have no place for.

    That is the state of delayed scaling and of stochastic rounding under `_extra_state`. The model
    that was not converted loads it, strictly.
    """
    state = model.state_dict()
    for name, module in model.named_modules():
        if isinstance(module, (Linear, MultiheadAttention)):
            state.pop(f"{name}._extra_state".removeprefix("."), None)
    return state


def _convert_layers(model, layers, plan, seed):
    """Gives layers the recipes of a plan {name: recipe}, with numbers in its order."""
    number = 0
    for name, recipe in plan.items():
        layer = layers[name]
        module, target = layer, Linear
        if isinstance(layer, InputProjection):
            module, target = layer.attention, MultiheadAttention
        if type(module) is target:  # from an earlier call
            module._stop()
        count = len(PRODUCTS) if target is MultiheadAttention else 1
        _become(module, target, [Gemms(recipe, seed, number + i) for i in range(count)])
        number += count
    for module in list(model.modules()):
        if type(module) is torch.nn.MultiheadAttention and type(module.out_proj) is Linear:
            _become(module, MultiheadAttention, [])
    for module in model.modules():
        encoder = isinstance(module, torch.nn.TransformerEncoder) and converted_layers(module)
        if encoder and "_numsim_nested" not in vars(module):
            module._numsim_nested = module.use_nested_tensor  # `revert` sets it again
            module.use_nested_tensor = False


def _become(module, target, gemms):
    plain = type(module)
    module.__class__ = target
    module._start(gemms, plain)


def _plan_of_model(name, model, layers):
    """Returns ({name of layer: recipe}, names of those that stay in high precision) of a recipe."""
    whole = model_recipe(name)
    require_usual_mlp(name, whole)
    plan = dict.fromkeys(layers, recipe_with(whole.layers))
    has_edges = whole.first_last_high and whole.layers["kind"] != "standard"
    edges = _edges(model, list(layers)) if has_edges else []
    plan |= dict.fromkeys(edges, LinearRecipe("standard"))
    for pattern, settings in whole.overrides.items():
        matched = [layer for layer in layers if fnmatch.fnmatchcase(layer, pattern)]
        if not matched:
            raise ValueError(
                f"recipes: {name!r} has layers of its own by the names {pattern}, and the model has "
                f"none; write them as patterns: {{'NAMES': {recipe_with(settings)!r}, "
                f"'*': {recipe_with(whole.layers)!r}}}"
            )
        plan |= dict.fromkeys(matched, recipe_with(settings))
    return plan, [edge for edge in edges if plan[edge].settings["kind"] == "standard"]


def _edges(model, names):
    """The last layer, and the first one unless an embedding comes before it: it may be the same."""
    if not names or names == [""]:
        return []
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding):
            return [names[-1]]
        if name == names[0] or name + ".in_proj" == names[0]:
            break
    return list(dict.fromkeys((names[0], names[-1])))


def _rule(pattern, recipe):
    """Returns (pattern, glob, GEMMs, recipe)."""
    glob, slash, gemm = pattern.partition("/")
    gemm = _OTHER_NAMES.get(gemm, gemm)
    if slash and gemm not in GEMMS:
        hint = did_you_mean(gemm, [*GEMMS, *_OTHER_NAMES])
        raise ValueError(f"recipes: {pattern!r}: GEMMs are {', '.join(GEMMS)}{hint}")
    gemms = (gemm,) if slash else GEMMS
    return pattern, glob, gemms, None if recipe is None else recipe_of(recipe)


def _choose(rules, names, kept):
    """Returns {layer: {GEMM: recipe or None}} of the first rules that match."""
    chosen = {name: {} for name in names}
    for pattern, glob, gemms, recipe in rules:
        matched = [name for name in names if fnmatch.fnmatchcase(name, glob)]
        others = [k for k in kept if k.reason != NO_RECIPE and _covers(glob, k)]
        if recipe is None and others:  # accepts that they stay in high precision
            pass
        elif not matched:
            known = ", ".join(names) or "none"
            found = f"; {others[0]}" if others else did_you_mean(glob, names)
            raise ValueError(
                f"recipes: {pattern!r} matches no linear layer{found} (layers: {known})"
            )
        elif not any(gemm not in chosen[name] for name in matched for gemm in gemms):
            raise ValueError(
                f"recipes: {pattern!r} never counts: earlier patterns match its layers; "
                "put it first"
            )
        for name in matched:
            chosen[name] = dict.fromkeys(gemms, recipe) | chosen[name]
    return chosen


def _covers(glob, kept):
    """Whether a pattern matches a matrix, by its own name or by that of its module or layer."""
    module = kept.name.rpartition(".")[0]
    names = (kept.name, module, f"{module}.in_proj".removeprefix("."))
    return any(fnmatch.fnmatchcase(name, glob) for name in names)


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


def _watch_for_idle(model):
    """Warns after the model's first forward pass in training mode of layers that did not run."""
    _stop_watching_for_idle(model)
    if not isinstance(model, Linear):
        model._numsim_idle = model.register_forward_hook(_warn_of_idle)


def _stop_watching_for_idle(model):
    if "_numsim_idle" in vars(model):
        model._numsim_idle.remove()
        del model._numsim_idle


def _warn_of_idle(model, inputs, output):
    if torch.compiler.is_compiling():
        return  # steps are not counted yet: a later pass warns, if one is not compiled
    if "_numsim_idle" not in vars(model) or not model.training:
        return
    idle = [n for n, m in converted_layers(model).items() if m.training and not m.steps]
    if len(idle) == len(converted_layers(model)):
        return  # nothing has run: the pass was not a whole one
    _stop_watching_for_idle(model)
    if idle:
        warnings.warn(idle_text(idle), LeftOutWarning, stacklevel=2)
