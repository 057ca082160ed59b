"""The three GEMMs of a linear layer, y = x w^T and its two gradients, and their state."""

from __future__ import annotations

import torch

from numsim import _core, _device, _settings
from numsim._linear import RecipeLike, recipe_of
from numsim.torch import _operators

MAX_LAYERS = 4096  # of a model, as `numsim train` numbers the streams of its layers
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_MOST_WATCHED = 64  # forward passes whose backward passes may still be watched
_VERSION = 1  # of the tensor that holds the state of layers


class Gemms:
    """Computes a layer's products under a recipe, and keeps what one step leaves for the next.

    state        int64 on the host: [number of this object, forward passes in training mode]. The
                 operators take it as an argument that they change, so that compiled code keeps
                 the order of passes
    updates_scales  whether passes in training mode update delayed scales. Of a batch in parts all but
                 the last record their maxima only, so that a step has one update
    watcher      of the next forward pass and its backward pass, or None: it is told what they
                 quantise, `forward(operands)` and `backward(operands, weight gradient or None)`
    """

    def __init__(self, recipe: RecipeLike, seed: int, number: int) -> None:
        self.recipe = recipe_of(recipe)
        self.number = _settings.integer(number, "number", 0, MAX_LAYERS - 1)
        self.watcher = None
        self._before: list[float] = []  # scales before the newest forward pass in training mode
        self._seed = _core.linear_seed(_settings.integer(seed, "seed"))
        self._start()

    def _start(self, steps=0):
        self._context = None  # of the device where the layer is; None on the host
        self._core = _core.Linear(self.recipe._core)
        self._watchers = {}  # {step: watcher of its backward pass}
        self.updates_scales = True
        self.state = _operators.new_state(self, steps)
        self.key = _operators.key_of(self.recipe)

    @property
    def steps(self):
        """The number of forward passes in training mode."""
        return int(self.state[1])

    @steps.setter
    def steps(self, steps):
        self.state[1] = steps

    def product(self, x, w, training):
        """Returns x w^T. Training counts a step and lets delayed scales move on."""
        if not torch.compiler.is_compiling():
            _operators.refuse_transforms()
        _check_input(x, w)
        return _operators.linear(_as_under_autocast(x), w, self.state, self.key, training)

    def forward(self, x, w, state, training):
        """Returns the product, what backward needs of it, and its step, outside of autograd.

        Counts the step in `state`, an array with the numbers of `self.state`: compiled code makes
        copies of that.
        """
        self._move_to(x)
        step, watcher, self.watcher = int(state[1]), self.watcher, None
        if not training:
            return self._at(x, w, step, watcher, after=self._core.save())
        if in_backward() and step > 0:  # a checkpoint repeats the newest forward pass
            now = self._core.save()
            return self._at(x, w, step - 1, watcher, after=now, before=self._before)
        self._before = self._core.save()
        result = self._at(x, w, step, watcher)
        state[1] = step + 1
        return result

    def _move_to(self, x):
        """Brings the layer to the place of a tensor, and to PyTorch's current stream there."""
        context = _device.shared_context(x, "input") if x.is_cuda else None
        if context is self._context:
            return
        core = _core.Linear(self.recipe._core, context)
        core.restore(self._core.save())
        self._core, self._context = core, context

    def _at(self, x, w, step, watcher, after=(), before=()):
        """`forward` at a step. Scales are set to `before` and `after` it, unless empty."""
        if before:
            self._core.restore(before)
        x_matrix, w_matrix = _matrix(x), _matrix(w)
        y = _room(x_matrix.shape[0], w.shape[0], x)
        memory = _operators.room_to_save(self.key, x, w)
        operands = None if watcher is None else []
        lent = _lent(x_matrix, x_matrix.shape[0], x_matrix, w_matrix, memory)
        updates = self.updates_scales
        self._core.forward_lent(lent, _shown(y), *self._random(step), operands, updates)
        if watcher is not None:
            watcher.forward(operands)
        self._keep_watcher(step, watcher)
        if after:
            self._core.restore(after)
        y = y.reshape(*x.shape[:-1], w.shape[0]).to(x.dtype)
        return y, memory, torch.full((1,), step)

    def backward(self, g, w, x, memory, step, needs_x, needs_w):
        """Returns the gradients of x and w, or None. `x` is None where the memory has all of it."""
        step = int(step.cpu().numpy()[0])  # hooks of saved tensors may have moved it
        watcher = self._watchers.get(step)
        g_matrix, w_matrix = _matrix(g), _matrix(w)
        tokens = g_matrix.shape[0]
        dx = _room(tokens, w.shape[1], g) if needs_x else None
        dw = _room(*w.shape, w) if needs_w else None
        operands = None if watcher is None else []
        lent = _lent(None if x is None else _matrix(x), tokens, g_matrix, w_matrix, memory)
        results = [None if r is None else _shown(r) for r in (dx, dw)]
        random, updates = self._random(step), self.updates_scales
        self._core.backward_lent(lent, _shown(g_matrix), *results, *random, operands, updates)
        if watcher is not None:
            watcher.backward(operands, None if dw is None else dw.float().cpu().numpy())
        if needs_x:
            dx = dx.reshape(*g.shape[:-1], w.shape[1]).to(g.dtype)
        if needs_w:
            dw = dw.to(w.dtype)
        return dx, dw

    def _random(self, step):
        return self._seed, step * MAX_LAYERS + self.number

    def _keep_watcher(self, step, watcher):
        """Remembers who watches the backward pass of a step."""
        self._watchers.pop(step, None)
        if watcher is not None:
            while len(self._watchers) >= _MOST_WATCHED:
                del self._watchers[next(iter(self._watchers))]
            self._watchers[step] = watcher

    @property
    def has_state(self):
        """Whether a later step depends on earlier ones, or on their number."""
        operands = [operand for a, b, *_ in self.recipe.gemms.values() for operand in (a, b)]
        draws = (" sr", " ms-eden", ":redrawn")
        return bool(self._core.save()) or any(
            word in operand for operand in operands for word in draws
        )

    def scales(self):
        """Returns {tensor: (delayed scale, amaxes of earlier steps, the newest last)}."""
        each = 1 + int(self.recipe.settings.get("delayed_history", 0))
        state = self._core.save()
        pieces = [state[i : i + each] for i in range(0, len(state), each)]
        names = ("x", "w", "g", "w backward", "x backward")
        return {n: (1 / p[0], p[2:]) for n, p in zip(names, pieces)}  # p[1] is being recorded

    def __getstate__(self):
        own = ("recipe", "number", "_before", "_seed", "steps")
        return {name: getattr(self, name) for name in own} | {"scales": self._core.save()}

    def __setstate__(self, state):
        state = dict(state)
        steps, scales = state.pop("steps"), state.pop("scales")
        self.__dict__.update(state, watcher=None)
        self._start(steps)
        self._core.restore(scales)


def pack(all_gemms):
    """Returns the steps and delayed scales of some Gemms as a tensor of float64.

    It holds the version, and for each of them: steps, the number of scales, scales.
    """
    numbers = [float(_VERSION)]
    for gemms in all_gemms:
        scales = gemms._core.save()
        numbers += [gemms.steps, len(scales), *scales]
    return torch.tensor(numbers, dtype=torch.float64)


def unpack(state, all_gemms):
    """Sets what `pack` returned, or a dict {"steps", "scales"} of earlier versions."""
    if isinstance(state, dict):
        numbers = [_VERSION, state["steps"], len(state["scales"]), *state["scales"]]
    else:
        numbers = state.tolist()
    if not numbers or numbers[0] != _VERSION:
        raise ValueError("_extra_state: is not a state of numsim's layers")
    at, found = 1, []
    for _ in all_gemms:
        head = numbers[at : at + 2]
        if len(head) < 2:
            raise ValueError("_extra_state: is the state of another layer: it ends early")
        steps, count = map(int, head)
        found.append((steps, numbers[at + 2 : at + 2 + count]))
        at += 2 + count
    if at != len(numbers):
        raise ValueError(f"_extra_state: expected {at} numbers, found {len(numbers)}")
    for gemms, (steps, scales) in zip(all_gemms, found):
        try:
            gemms._core.restore(scales)
        except ValueError as error:
            raise ValueError(f"_extra_state: saved under another recipe: {error}") from None
        gemms.steps = steps


class HoldsGemms:
    """The part of a module that holds the state of its GEMMs in state_dict().

    The key `_extra_state` is there if later steps depend on it: under delayed scaling, and where
    gradients are rounded stochastically. A state_dict without it is loaded too.
    """

    def _all_gemms(self):
        raise NotImplementedError

    def get_extra_state(self) -> torch.Tensor:
        return pack(self._all_gemms())

    def set_extra_state(self, state) -> None:
        unpack(state, self._all_gemms())

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not any(gemms.has_state for gemms in self._all_gemms()):
            del destination[prefix + "_extra_state"]

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, *rest):
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, *rest)
        extra = prefix + "_extra_state"
        if extra in missing:
            missing.remove(extra)


def no_fast_path(module, inputs):
    """A hook without effect: where it is, torch.nn's Transformer modules call the layer's forward."""


def in_backward():
    """Whether a backward pass runs in this thread, as it does while checkpoints are recomputed."""
    return torch._C._current_graph_task_id() != -1


def _check_input(x, w):
    if x.is_nested:
        raise TypeError("input: nested tensors are not supported by layers of numsim.torch")
    for tensor, name in ((x, "input"), (w, "weight")):
        if tensor.dtype not in _DTYPES:
            raise TypeError(f"{name}: expected float32, bfloat16 or float16, found {tensor.dtype}")
    if x.device != w.device:
        raise ValueError(f"input: is on {x.device}, and the weight on {w.device}")
    if x.device.type not in ("cpu", "cuda"):
        raise ValueError(f"input: is on {x.device}; expected the CPU or a CUDA device")
    if x.shape[-1:] != w.shape[1:]:
        raise ValueError(f"input: expected shape (..., {w.shape[1]}), found {tuple(x.shape)}")


def _as_under_autocast(x):
    """Returns the input in the dtype of autocast, as nn.Linear takes it, if that is active."""
    kind = x.device.type
    if not hasattr(torch, "get_autocast_dtype") or not torch.is_autocast_enabled(kind):
        return x  # PyTorch before 2.4 cannot be asked
    return x.to(torch.get_autocast_dtype(kind))


def _matrix(x):
    """Returns a tensor as a packed matrix that _core reads: of float32 or, on a device, bfloat16."""
    x = x.detach().reshape(-1, x.shape[-1])
    if x.dtype != torch.float32 and not (x.is_cuda and x.dtype == torch.bfloat16):
        x = x.float()
    return x.contiguous()


def _room(rows, columns, like):
    """Returns a matrix for a result that is rounded to the dtype of a tensor."""
    bf16 = like.is_cuda and like.dtype == torch.bfloat16
    dtype = torch.bfloat16 if bf16 else torch.float32
    return torch.empty(rows, columns, dtype=dtype, device=like.device)


def _shown(x):
    """Returns a packed tensor as _core takes it.

    Not as an array of NumPy: PyTorch never resizes the memory of a tensor that became one, which
    fully_shard does with the weights that it gathers.
    """
    if x.dtype == torch.bfloat16:
        x = x.view(torch.uint16)  # DLPack would name a type that _core does not have
    return torch.utils.dlpack.to_dlpack(x)


def _lent(x, tokens, like_x, w, memory):
    """Returns what a call reads, and the memory of what it saves, for _core.

    `like_x` is a matrix of the dtype of x.
    """
    x = None if x is None else _shown(x)
    bf16 = like_x.dtype == torch.bfloat16
    return _core.LinearLent(x, tokens, bf16, _shown(w), _shown(memory))
