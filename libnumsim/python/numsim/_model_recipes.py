"""Recipes for whole models by name (docs/configuration.md)."""

from __future__ import annotations

import dataclasses
import functools

from numsim import _core


@functools.cache
def model_recipes() -> dict[str, str]:
    """Returns {name: meaning} of the recipes for models (docs/configuration.md)."""
    return dict(_core.model_recipes())


@dataclasses.dataclass(frozen=True)
class ModelRecipe:
    """What a recipe for models sets: settings are keyword arguments of a LinearRecipe."""

    layers: dict  # settings of every layer
    overrides: dict[str, dict]  # {pattern of layers: their settings}
    first_last_high: bool  # whether the first and the last layer are of kind standard
    mlp: str | None  # the MLP that the model needs


def model_recipe(name):
    """Returns the ModelRecipe of a name that is one."""
    layers, overrides, first_last_high, mlp = _core.model_recipe(name)
    read = {pattern: read_settings(settings) for pattern, settings in overrides.items()}
    return ModelRecipe(read_settings(layers), read, first_last_high, mlp)


def settings_of_model_recipe(name):
    """Returns the settings that all layers of a recipe have. Raises ValueError if they differ."""
    recipe = model_recipe(name)
    require_usual_mlp(name, recipe)
    if recipe.overrides:
        raise ValueError(
            f"recipe: {name!r} has other layers where a name matches {', '.join(recipe.overrides)}, "
            f"so that it is no recipe of a single layer; most layers are those of "
            f"{_plain_name(recipe)!r}"
        )
    return recipe.layers


def require_usual_mlp(name, recipe):
    """Raises ValueError for a recipe that changes more than linear layers."""
    if recipe.mlp is not None:
        raise ValueError(
            f"recipe: {name!r} needs a model whose MLP is {recipe.mlp}, as in a configuration of "
            f"`numsim train`; its linear layers are those of {_plain_name(recipe)!r}"
        )


def _plain_name(recipe):
    """The name of the recipe with the same layers and nothing else."""
    for name in model_recipes():
        other = model_recipe(name)
        if other.layers == recipe.layers and not other.overrides and other.mlp is None:
            return name
    return None


def read_settings(settings):
    """Returns {key: TOML} of the library as keyword arguments of a LinearRecipe."""
    return {"kind": "standard"} | {key: _value(toml) for key, toml in settings.items()}


def _value(toml):
    """The value of a TOML string, boolean or number."""
    if toml.startswith('"'):
        return toml.strip('"')
    if toml in ("true", "false"):
        return toml == "true"
    try:
        return int(toml)
    except ValueError:
        return float(toml)
