"""The configuration of a training: what it says, and what this program cannot do."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from numsim import _core

# What this program does. Every other key must have its default, so that none is ignored.
_SECTIONS = ("data", "fork", "linear", "optimizer", "schedule", "train")
_BEFORE_FORK = ("linear", "schedule")  # sections in which a baseline may differ
_KEYS = ("telemetry.every", "checkpoint.every", "model.kind", "model.layers", "model.width",
         "model.heads", "model.hidden", "model.mlp", "model.context", "model.patch",
         "model.qk_norm", "model.layer_scale", "model.norm_epsilon", "model.rope_base",
         "model.initial_deviation", "model.scaled_branches")  # fmt: skip
_CHOICES = {
    "model.kind": ("llama", "vit"),
    "model.mlp": ("swiglu", "clamped-swiglu", "gelu"),
    # Its default has rows that this program does not write; 0 has none either.
    "telemetry.tensors_every": (100, 0),
}


def value_of(toml: str) -> Any:
    """Returns the value of a key as `_core.TrainConfig.keys` has it."""
    try:
        return json.loads(toml)
    except ValueError:
        return float(toml)  # inf


def keys_of(config: _core.TrainConfig) -> dict[str, Any]:
    """Returns {key: value} of every key of a configuration."""
    return {name: value_of(toml) for name, toml, _ in config.keys}


def section(config: _core.TrainConfig, name: str) -> SimpleNamespace:
    """Returns the keys of a section as attributes."""
    start = name + "."
    found = keys_of(config).items()
    return SimpleNamespace(**{k[len(start) :]: v for k, v in found if k.startswith(start)})


def seed_of(config: _core.TrainConfig) -> int:
    """Returns the seed of a training, which is a text if TOML has no such number."""
    return int(keys_of(config)["train.seed"])


def fork_of(config: _core.TrainConfig) -> SimpleNamespace:
    """Returns the fork of a configuration: its steps (0: there is none), whether the baseline has
    other linear layers (other_linear), and the baseline's configuration (baseline), which does not
    know the data and is the configuration itself where there is no fork."""
    keys = keys_of(config)
    steps, before = keys["fork.steps"], keys["fork.before"]
    if steps == 0:
        return SimpleNamespace(steps=0, other_linear=False, baseline=config)
    other_linear = any(key.startswith("linear.") for key in before)
    left_out = ("fork.", "linear.") if other_linear else ("fork.",)
    kept = [f"{name}={toml}" for name, toml, _ in config.keys if not name.startswith(left_out)]
    baseline = _core.TrainConfig.of_keys([*kept, *before])
    return SimpleNamespace(steps=steps, other_linear=other_linear, baseline=baseline)


def require_supported(config: _core.TrainConfig) -> None:
    """Raises ValueError that names the first key whose value this program cannot do."""
    defaults = keys_of(_core.TrainConfig())
    for assignment in keys_of(config)["fork.before"]:
        if assignment.partition(".")[0] not in _BEFORE_FORK:
            raise ValueError(
                f"fork.before: numsim.torch.train does not do {json.dumps(assignment)}; expected "
                f"keys of {' or '.join(_BEFORE_FORK)} (`numsim train` has others)"
            )
    for key, value in keys_of(config).items():
        if key in _CHOICES:
            allowed: tuple[Any, ...] = _CHOICES[key]
        elif key.partition(".")[0] in _SECTIONS or key in _KEYS:
            continue
        else:
            allowed = (defaults[key],)
        if value not in allowed:
            raise ValueError(
                f"{key}: numsim.torch.train does not do {json.dumps(value)}; expected "
                f"{' or '.join(json.dumps(one) for one in allowed)} (`numsim train` has all keys)"
            )
