"""Linear layers whose three GEMMs have a precision each (docs/linear.md)."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from numsim import _core, _settings
from numsim._arrays import float32_of
from numsim._model_recipes import model_recipes, settings_of_model_recipe
from numsim._names import did_you_mean
from numsim._rounding import SR, has_only
from numsim._streams import BLOCK, next_stream


class LinearRecipe:
    """The precision of a linear layer. Prints as the operands and accumulation of its GEMMs.

    name       KIND, such as "switchback" or "mx" (`linear_kinds()`), or KIND-FORMAT with the format
               of the quantised operands, "switchback-int8"; of "standard" the format is
               `high_precision`: "standard-fp32". Or a recipe for models, "fp8-delayed"
               (`model_recipes()`), of whose layers in the middle this is the recipe
    settings   the keys of the section [linear] of a configuration (docs/configuration.md): format,
               gradient_format, high_precision, gradient_rounding, accumulate,
               high_precision_accumulate, container, scale_rule, block, high_operands,
               backward_from_codes, hadamard, hadamard_size, hadamard_signs, delayed_history,
               delayed_algorithm, delayed_margin

    Raises ValueError that names the setting, with the nearest valid name.
    """

    __slots__ = ("name", "settings", "_core")

    def __init__(self, name: str = "standard", **settings: Any) -> None:
        known = [key for key, _, _ in _core.linear_settings()]
        for key in settings:
            if key not in known:
                raise TypeError(
                    f"LinearRecipe: unknown setting {key!r}{did_you_mean(key, known)}"
                )
        settings = {key: _text_of_rounding(key, value) for key, value in settings.items()}
        name = _settings.text(name, "recipe")
        if name in model_recipes():
            settings = {**settings_of_model_recipe(name), **settings}
        else:
            kind, format = _split(name)
            settings = {"kind": kind, **settings}
            if format:
                key = "high_precision" if kind == "standard" else "format"
                if key in settings:
                    raise TypeError(f"LinearRecipe: {key}: the name {name!r} gives it already")
                settings[key] = format
        self.name = name
        self.settings = settings
        self._core = _core.LinearRecipe([f"{key}={value}" for key, value in settings.items()])

    def with_settings(self, **settings: Any) -> LinearRecipe:
        """Returns a recipe with other values of some settings."""
        return recipe_with({**self.settings, **settings})

    @property
    def gemms(self) -> dict[str, tuple[str, str, str, str | None]]:
        """{GEMM: (operand A, operand B, accumulation mode, container or None)}."""
        return {name: tuple(rest) for name, *rest in self._core.gemms()}

    def __eq__(self, other):
        return isinstance(other, LinearRecipe) and self.settings == other.settings

    def __hash__(self):
        return hash(tuple(sorted((key, str(value)) for key, value in self.settings.items())))

    def __repr__(self):
        rest = {key: value for key, value in self.settings.items() if key != "kind"}
        given = "".join(f", {key}={value!r}" for key, value in rest.items())
        return f"LinearRecipe({self.settings['kind']!r}{given})"

    def __str__(self):
        lines = [repr(self)]
        for name, (a, b, mode, container) in self.gemms.items():
            inside = f" in {container}" if container else ""
            lines.append(f"  {name:<16} {a} x {b}{inside}, {mode}")
        return "\n".join(lines)

    def __reduce__(self):
        return recipe_with, (self.settings,)


def _text_of_rounding(key, value):
    """Returns the text of an SR that a setting is, and any other value as it is."""
    if not isinstance(value, SR):
        return value
    if not has_only(value, "bits", "variant"):
        raise ValueError(
            f"LinearRecipe: {key}: of an SR, a recipe takes bits and variant; the seed and the stream "
            "belong to the layer (seed= of numsim.torch.convert, random= of numsim.Linear)"
        )
    return f"sr:{value.bits}:{value.variant}"


def recipe_with(settings):
    """Returns the recipe of some settings, of which "kind" is one."""
    rest = dict(settings)
    return LinearRecipe(rest.pop("kind"), **rest)


# What stands for a recipe.
RecipeLike = Union[LinearRecipe, str]


def recipe_of(recipe):
    """Returns a recipe from a recipe or a name."""
    if isinstance(recipe, LinearRecipe):
        return recipe
    if isinstance(recipe, str):
        return LinearRecipe(recipe)
    raise TypeError(f"recipe: expected a name or a LinearRecipe, found {type(recipe).__name__}")


def _split(name):
    """Returns (kind, format or "") of KIND or KIND-FORMAT."""
    kinds = linear_kinds()
    for kind in sorted(kinds, key=len, reverse=True):
        if name == kind:
            return kind, ""
        if name.startswith(kind + "-"):
            return kind, name[len(kind) + 1 :]
    models = model_recipes()
    raise ValueError(
        f"recipe: {name!r} is neither a kind nor KIND-FORMAT nor a recipe for models; kinds are "
        f"{', '.join(kinds)}; recipes for models are {', '.join(models)}"
        f"{did_you_mean(name, [*models, *kinds])}"
    )


def linear_kinds() -> dict[str, tuple[str, str]]:
    """Returns {kind of linear layer: (summary, source)} (docs/linear.md)."""
    return {name: (summary, source) for name, summary, source in _core.linear_kinds()}


class Linear:
    """A linear layer without bias on arrays: y = x w^T and its two gradients under a recipe.

    It holds the state of delayed scaling; the caller keeps the weights and what `forward` saves.
    Stochastically rounded gradients take their bits from `random`, an `SR` of seed and stream
    alone: operand o uses stream 8 * stream + o (docs/linear.md), so that every layer and
    step needs a stream of its own, below 2^61. Without `random`, or a stream in it, every call
    takes the next one of the seed (`numsim.streams`). Calls from several threads wait for one
    another. `numsim.torch.Linear` is this layer as a module of PyTorch.
    """

    def __init__(self, recipe: RecipeLike = "standard") -> None:
        self.recipe = recipe_of(recipe)
        self._core = _core.Linear(self.recipe._core)

    def forward(self, x: Any, w: Any, random: SR | None = None) -> tuple[Any, _core.LinearSaved]:
        """Returns (y = x w^T, what backward needs).

        x: tokens x in, w: out x in, of float32 or a smaller float dtype; y: tokens x out, float32
        of x's kind. Under delayed scaling, updates the scales of x and w.
        """
        x_array, taken = float32_of(x, "x")
        w_array, _ = float32_of(w, "w")
        _require_matrix(w_array, "w", (None, None))
        _require_matrix(x_array, "x", (None, w_array.shape[1]))
        y = np.empty((x_array.shape[0], w_array.shape[0]), np.float32)
        saved = self._core.forward(x_array, w_array, y, *_seed_and_stream(random))
        return taken.give(y), saved

    def backward(
        self, g: Any, w: Any, saved: _core.LinearSaved, random: SR | None = None
    ) -> tuple[Any, Any]:
        """Returns (dx = g w, dw = g^T x) in float32, of g's kind.

        g: tokens x out, the gradient of y; w as in `forward`; saved: what a `forward` of this
        recipe returned. Under delayed scaling, updates the scale of g.
        """
        if not isinstance(saved, _core.LinearSaved):
            found = type(saved).__name__
            raise TypeError(f"saved: expected what forward returned, found {found}")
        g_array, taken = float32_of(g, "g")
        w_array, _ = float32_of(w, "w")
        _require_matrix(w_array, "w", saved.weights)
        _require_matrix(g_array, "g", (saved.tokens, w_array.shape[0]))
        dx = np.empty((saved.tokens, w_array.shape[1]), np.float32)
        dw = np.empty(w_array.shape, np.float32)
        self._core.backward(g_array, w_array, saved, dx, dw, *_seed_and_stream(random))
        return taken.give(dx), taken.give(dw)

    def state(self) -> list[float]:
        """Returns the state of delayed scaling, for checkpoints; [] without it."""
        return self._core.save()

    def restore(self, state: list[float]) -> None:
        """Sets the state that `state()` returned."""
        self._core.restore(_settings.numbers(state, "state"))

    def __repr__(self):
        return f"Linear({self.recipe!r})"


def _seed_and_stream(random):
    """The seed and stream of a layer's call."""
    if random is None:
        return 0, next_stream(0) // BLOCK
    if not isinstance(random, SR):
        raise TypeError(f"random: expected numsim.SR, found {type(random).__name__}")
    if not has_only(random, "seed", "stream"):
        raise ValueError("random: of an SR, a layer takes seed and stream alone")
    if random.stream is None:
        return random.seed, next_stream(random.seed) // BLOCK
    return random.seed, _settings.integer(random.stream, "random: stream", 0, (1 << 61) - 1)


def _require_matrix(array, name, shape):
    matches = len(array.shape) == 2 and all(
        n is None or n == found for n, found in zip(shape, array.shape)
    )
    if not matches:
        expected = " x ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name}: expected a matrix of {expected}, found shape {array.shape}")
