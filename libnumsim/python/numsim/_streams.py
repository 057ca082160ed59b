"""Streams of random bits for calls that are given none: each takes the next one of its seed."""

from __future__ import annotations

import threading

from numsim import _settings

# Streams from here on are those of calls without `stream=`. Each takes a block, because a layer
# draws from several (libnumsim/numerics/numsim/linear/linear.h).
_FIRST = 1 << 63
BLOCK = 8
_MOST = 1 << 60  # blocks of a seed

_lock = threading.Lock()
_used: dict[int, int] = {}  # by seed: the number of blocks that were taken
_last = threading.local()  # .pair: (seed, stream) of the newest one of a thread


def next_stream(seed: int) -> int:
    """Takes the next stream of a seed. No other call of this process has it."""
    with _lock:
        block = _used.get(seed, 0)
        if block >= _MOST:
            raise ValueError(f"seed: {seed} has no more streams; take another seed")
        _used[seed] = block + 1
    stream = _FIRST + BLOCK * block
    _last.pair = seed, stream
    return stream


def streams(state: dict[int, int] | None = None) -> dict[int, int]:
    """Returns {seed: number of streams taken}, after setting it if `state` is given.

    A call with stochastic rounding and without `stream=` takes the next stream of its seed, so that
    no two calls of a process share random bits, and the same script draws the same ones each time.
    Save `streams()` with a checkpoint and pass it to `streams` to go on as an uninterrupted script
    would; `streams({})` begins again. Processes that run side by side need a seed each.
    """
    if state is not None:
        checked = {
            _settings.integer(seed, "streams: seed"): _settings.integer(
                count, f"streams: number of streams of seed {seed}", 0, _MOST
            )
            for seed, count in dict(state).items()
        }
        with _lock:
            _used.clear()
            _used.update(checked)
    with _lock:
        return dict(_used)


def last_stream() -> tuple[int, int] | None:
    """Returns (seed, stream) that the newest call of this thread took by itself, or None.

    `SR(seed=seed, stream=stream)` repeats that call.
    """
    return getattr(_last, "pair", None)
