"""The three GEMMs of a linear layer, y = x w^T and its two gradients, as a function of PyTorch."""

from __future__ import annotations

import torch

from numsim import _core, _device, _settings
from numsim._linear import RecipeLike, recipe_of

MAX_LAYERS = 4096  # of a model, as `numsim train` numbers the streams of its layers
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_VERSION = 1  # of the tensor that holds the state of layers


def between_graphs(function):
    """Makes torch.compile call a function as it is, between two graphs."""
    reason = "numsim computes outside of PyTorch"
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # PyTorch before 2.7 takes no reason
        return torch.compiler.disable(function)


class Gemms:
    """Computes a layer's products under a recipe, and keeps what one step leaves for the next.

    steps        forward passes in training mode
    watcher      of the next forward pass and its backward pass, or None: it is told what they
                 quantise, `forward(operands)` and `backward(operands, weight gradient or None)`
    """

    def __init__(self, recipe: RecipeLike, seed: int, number: int) -> None:
        self.recipe = recipe_of(recipe)
        self.number = _settings.integer(number, "number", 0, MAX_LAYERS - 1)
        self.steps = 0
        self.watcher = None
        self._before: list[float] = []  # scales before the newest forward pass in training mode
        self._seed = _core.linear_seed(_settings.integer(seed, "seed"))
        self._context = None  # of the device where the layer is; None on the host
        self._core = _core.Linear(self.recipe._core)

    def product(self, x, w, training):
        """Returns x w^T. Training counts a step and lets delayed scales move on."""
        _refuse_transforms()
        _check_input(x, w)
        x = _as_under_autocast(x)
        self._move_to(x)
        watcher, self.watcher = self.watcher, None
        if not training:
            return self._at(x, w, self.steps, watcher, after=self._core.save())
        if in_backward() and self.steps > 0:  # a checkpoint repeats the newest forward pass
            now = self._core.save()
            return self._at(x, w, self.steps - 1, watcher, after=now, before=self._before)
        self._before = self._core.save()
        y = self._at(x, w, self.steps, watcher)
        self.steps += 1
        return y

    def _move_to(self, x):
        """Brings the layer to the place of a tensor, and to PyTorch's current stream there."""
        context = _device.shared_context(x, "input") if x.is_cuda else None
        if context is self._context:
            return
        core = _core.Linear(self.recipe._core, context)
        core.restore(self._core.save())
        self._core, self._context = core, context

    def _at(self, x, w, step, watcher, after=(), before=()):
        """The product at a step. Scales are set to `before` and `after` it, unless empty."""
        if before:
            self._core.restore(before)
        random = (self._seed, step * MAX_LAYERS + self.number)
        y = _Product.apply(x, w, self._core, random, watcher)
        if after:
            self._core.restore(after)
        return y

    @property
    def has_state(self):
        """Whether a later step depends on earlier ones, or on their number."""
        operands = [operand for a, b, *_ in self.recipe.gemms.values() for operand in (a, b)]
        return bool(self._core.save()) or any(" sr" in operand for operand in operands)

    def scales(self):
        """Returns {tensor: (delayed scale, amaxes of earlier steps, the newest last)}."""
        each = 1 + int(self.recipe.settings.get("delayed_history", 0))
        state = self._core.save()
        pieces = [state[i : i + each] for i in range(0, len(state), each)]
        names = ("x", "w", "g", "w backward", "x backward")
        return {n: (1 / p[0], p[2:]) for n, p in zip(names, pieces)}  # p[1] is being recorded

    def __getstate__(self):
        return {**self.__dict__, "_core": self._core.save(), "_context": None, "watcher": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._core = _core.Linear(self.recipe._core)
        self._core.restore(state["_core"])


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


def _refuse(what):
    raise RuntimeError(
        f"numsim.torch.Linear: {what}: layers of numsim have first derivatives by backward() and "
        "torch.autograd.grad only; numsim.torch.revert(model) makes plain layers of them"
    )


def _refuse_transforms():
    if torch._C._are_functorch_transforms_active():
        _refuse("does not work under the transforms of torch.func (grad, vmap, jvp, jacrev, ...)")
    if torch.jit.is_tracing():
        _refuse("cannot be traced by torch.jit")


def _is_batched(x):
    """Whether a tensor stands for many, as in a backward pass of many gradients at once."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(x) or functorch.is_legacy_batchedtensor(x)


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
    """Returns a packed tensor as _core takes it."""
    if not x.is_cuda:
        return x.numpy()
    if x.dtype == torch.bfloat16:
        x = x.view(torch.uint16)  # DLPack would name a type that _core does not have
    return torch.utils.dlpack.to_dlpack(x)


def _lent(x, tokens, bf16, w, memory):
    """Returns what a call reads, and the memory of what it saves, for _core."""
    x = None if x is None else _shown(x)
    return _core.LinearLent(x, tokens, bf16, _shown(w), [_shown(piece) for piece in memory])


class _Product(torch.autograd.Function):
    """y = x w^T with the layer's own forward and backward pass.

    What backward needs is in tensors of PyTorch, so that its hooks, checkpoints and allocator see it.
    """

    @staticmethod
    def forward(ctx, x, w, core, random, watcher):
        x_matrix, w_matrix = _matrix(x), _matrix(w)
        tokens = x_matrix.shape[0]
        y = _room(tokens, w.shape[0], x)
        sizes = core.saved_bytes(_shown(x_matrix), _shown(w_matrix))
        memory = [torch.empty(n, dtype=torch.uint8, device=x.device) for n in sizes]
        operands = None if watcher is None else []
        bf16 = x_matrix.dtype == torch.bfloat16
        lent = _lent(x_matrix, tokens, bf16, w_matrix, memory)
        core.forward_lent(lent, _shown(y), *random, operands)
        if watcher is not None:
            watcher.forward(operands)
        # No piece for x: backward reads x itself.
        own = x if x_matrix.data_ptr() == x.data_ptr() else x_matrix
        kept = [own] if not sizes[0] and tokens else []
        ctx.save_for_backward(w, *memory, *kept)
        ctx.pieces, ctx.tokens, ctx.bf16 = len(memory), tokens, bf16
        ctx.core, ctx.random, ctx.watcher = core, random, watcher
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return y.reshape(*x.shape[:-1], w.shape[0]).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        # With create_graph the results would seem to depend on g alone, and not on x and w: second
        # derivatives would be zero.
        if torch.is_grad_enabled():
            _refuse("has no second derivative (create_graph=True, as for a Hessian)")
        if _is_batched(g):
            _refuse("takes no batch of gradients (is_grads_batched, vectorize)")
        w, *rest = ctx.saved_tensors
        memory, kept = rest[: ctx.pieces], rest[ctx.pieces :]
        g_matrix, w_matrix = _matrix(g), _matrix(w)
        needs_x, needs_w = ctx.needs_input_grad[:2]
        dx = _room(ctx.tokens, w.shape[1], g) if needs_x else None
        dw = _room(*w.shape, w) if needs_w else None
        operands = None if ctx.watcher is None else []
        lent = _lent(_matrix(kept[0]) if kept else None, ctx.tokens, ctx.bf16, w_matrix, memory)
        results = [None if r is None else _shown(r) for r in (dx, dw)]
        ctx.core.backward_lent(lent, _shown(g_matrix), *results, *ctx.random, operands)
        if ctx.watcher is not None:
            ctx.watcher.backward(operands, None if dw is None else dw.float().cpu().numpy())
        if needs_x:
            dx = dx.reshape(ctx.shape).to(ctx.dtype)
        if needs_w:
            dw = dw.to(w.dtype)
        return dx, dw, None, None, None

    @staticmethod
    def jvp(ctx, *tangents):
        _refuse("has no forward-mode derivative")
