"""Update rules for weights in a small format, and optimiser moments in their storage."""

from __future__ import annotations

from typing import Any

import numpy as np

from numsim import _core, _settings
from numsim._arrays import F32, float32_of, matrix_shape, take, widened
from numsim._formats import FormatLike, format_of
from numsim._rounding import seed_and_stream


class UpdateState:
    """What a rule keeps of the weights between steps: for weights of its shape and format, under
    its rule."""

    __slots__ = ("rule", "format", "shape", "_core")

    def __init__(self, rule: str, format: str, shape: tuple[int, ...], state: Any) -> None:
        self.rule = rule
        self.format = format
        self.shape = shape
        self._core = state

    def copy(self) -> UpdateState:
        """Returns a copy, which later steps with the original do not change."""
        return UpdateState(self.rule, self.format, self.shape, self._core.copy())

    def __repr__(self):
        return f"<UpdateState of {self.rule}: weights of {self.format}, shape {self.shape}>"


class Update:
    """The outcome of one step: `weights`, the `state` for the next step (or None), and numbers.

    status                     "ok", "zero-update", "below-min-step", "not-converged", "saturated"
                               or "nonfinite"
    moved, saturated           numbers of weights whose value changed, or saturated
    swallowed                  number of weights with an update other than zero that did not move
    achieved_norm, target_norm; achieved_projection, target_projection; alpha; passes
                               as UpdateOutcome of libnumsim/numerics/numsim/updates/update_rule.h says
    """

    __slots__ = ("weights", "state", "swallowed", "_outcome")

    def __init__(self, weights, state, swallowed, outcome):
        self.weights = weights
        self.state = state
        self.swallowed = swallowed
        self._outcome = outcome

    status = property(lambda self: self._outcome.status)
    moved = property(lambda self: self._outcome.moved)
    saturated = property(lambda self: self._outcome.saturated)
    achieved_norm = property(lambda self: self._outcome.achieved_norm)
    target_norm = property(lambda self: self._outcome.target_norm)
    achieved_projection = property(lambda self: self._outcome.achieved_projection)
    target_projection = property(lambda self: self._outcome.target_projection)
    alpha = property(lambda self: self._outcome.alpha)
    passes = property(lambda self: self._outcome.passes)

    def __repr__(self):
        return f"<Update {self.status}: {self.moved} moved, {self.swallowed} swallowed>"


def update(
    weights: Any,
    update: Any,
    *,
    lr: float,
    rule: str,
    format: FormatLike,
    state: UpdateState | None = None,
    seed: int = 0,
    stream: int | None = None,
    weight_decay: float = 0.0,
    tolerance: float = 1e-2,
    iterations: int = 32,
) -> Update:
    """Takes one step of weights of a format: weights + lr * update under a rule.

    weights    float32, rounded to the format if they are not values of it; 2 dimensions where the
               rule has scopes (row, block)
    update     the direction to move in, such as minus the gradient; the same shape
    lr         learning rate, >= 0, rounded once to float32. Refused if that makes it infinite, or
               makes it zero though it is not
    rule       KIND[:ARGUMENT][@SCOPE], such as "naive", "stochastic:16", "kahan:bf16",
               "norm-matched@row" (docs/updates.md)
    state      of the previous step (`Update.state`), for rules that keep one; None starts it. It
               must be of this rule, format and shape
    seed, stream   of the random bits. Without `stream` every call takes the next one of the seed
               (`numsim.streams`)
    weight_decay   decoupled: the rule moves by update - weight_decay * weights
    tolerance, iterations   of note-as-printed

    The inputs stay as they are; `Update.weights` is of their kind. `state` is changed in place, or
    copied and left as it is if it lies in another memory or stream of a device. A device has the
    rules that docs/cuda.md names, and a state starts through the host there.
    """
    f = format_of(format)
    parsed = _core.UpdateRule(
        _settings.text(rule, "rule"),
        _settings.real(tolerance, "tolerance"),
        _settings.integer(iterations, "iterations", 1, (1 << 31) - 1),
    )
    parsed.check(f.spec)
    rates: dict[str, Any] = {
        "learning_rate": _settings.real32(lr, "lr", negative=False),
        "weight_decay": _settings.real32(weight_decay, "weight_decay"),
    }
    random = seed_and_stream(seed, stream)
    owner = str(parsed), f.name
    taken = take(weights, "weights", True)
    library = taken.library
    other = take(update, "update", library.on_device)
    if library.on_device and not other.library.on_device:
        raise ValueError("update: the array is in host memory, and the other one is on a device")
    old, direction = widened(taken, "weights"), widened(other, "update")
    if old.shape != direction.shape:
        raise ValueError(
            f"update: expected shape {tuple(old.shape)}, found {tuple(direction.shape)}"
        )
    held: Any = _held_state(state, *owner, old.shape)
    shape, shown = matrix_shape(tuple(old.shape)), library.shown
    with library.call() as context:
        if held is None or not parsed.has_state:
            rounded = library.empty(old.shape, F32)
            start = shown(old), shown(rounded)
            held = _core.start_updates(parsed, f.spec, *shape, *start, context)
            old = library.finish(rounded)
        held = _core.update_state_at(held, context)
        new = library.empty(old.shape, F32)
        arrays = shown(old), shown(direction), shown(new)
        outcome = _core.apply_update(
            parsed, f.spec, *shape, *arrays, held, random, **rates, context=context
        )
        new = library.finish(new)
    swallowed = int(library.count((new == old) & (direction != 0)))
    new_state = None
    if parsed.has_state:
        new_state = UpdateState(*owner, tuple(old.shape), held)
    return Update(taken.give(new), new_state, swallowed, outcome)


def _held_state(state, rule, format, shape):
    """The state that a step is given, as the library's; None if there is none."""
    if state is None:
        return None
    if not isinstance(state, UpdateState):
        found = type(state).__name__
        raise TypeError(f"state: expected that of an Update, or None, found {found}")
    if (state.rule, state.format, state.shape) != (rule, format, tuple(shape)):
        raise ValueError(
            f"state: belongs to rule {state.rule}, format {state.format} and shape {state.shape}, "
            f"and this step has {rule}, {format} and {tuple(shape)}"
        )
    return state._core


def update_kinds() -> list[str]:
    """Returns the names of the kinds of update rules (docs/updates.md)."""
    return _core.update_kinds()


class Moments:
    """One moment of one tensor in its storage: packed codes and scales (docs/moments.md).

    format   FORMAT[@SCALING[:BLOCK]][+sr[:BITS]], such as "e4m3fn@block:128" or "dynamic:256"
    n        number of elements; all are zero at first
    signed   False for second moments
    """

    def __init__(self, format: str, n: int, *, signed: bool = True) -> None:
        self._store = _core.MomentStore(
            _settings.text(format, "format"),
            _settings.integer(n, "n"),
            _settings.flag(signed, "signed"),
        )

    format = property(lambda self: self._store.format)
    bytes = property(lambda self: self._store.bytes, doc="Bytes that are stored, scales included.")

    def __len__(self):
        return self._store.size

    def store(self, values: Any, *, seed: int = 0, stream: int | None = None) -> _core.MomentLoss:
        """Replaces the values. Returns the loss: counts `nonzero`, `flushed` (stored as zero) and
        `saturated`, and the sums `signal_square` and `error_square`.

        `seed` and `stream` are those of stochastic rounding. Without `stream` every call takes the
        next one of the seed (`numsim.streams`).
        """
        array, _ = float32_of(values, "values")
        return self._store.store(array, seed_and_stream(seed, stream))

    def load(self) -> np.ndarray:
        """Returns the stored values as float32."""
        out = np.empty(len(self), np.float32)
        self._store.load(out)
        return out
