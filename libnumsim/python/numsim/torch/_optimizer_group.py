"""One group of an optimiser's parameters in the library."""

from __future__ import annotations

import numpy as np
import torch

from numsim import _core, _device
from numsim._arrays import float32_of, matrix_shape
from numsim._casts import round
from numsim._formats import format as format_of, holds
from numsim._rounding import plan_of
from numsim.torch._owners import Owners

VERSION = 1  # of the state of a group
_NO_VALUES = np.empty(0, np.float32)
_ARGUMENTS = {
    "optimizer.beta1": "betas[0]",
    "optimizer.beta2": "betas[1]",
    "optimizer.epsilon": "eps",
    "optimizer.weight_decay": "weight_decay",
}


def new_core(settings, seed, context=None):
    """Returns the library's optimiser. Errors about settings have the names of AdamW's arguments."""
    try:
        return _core.Optimizer(settings, seed, context)
    except _core.Error as error:
        name, colon, rest = str(error).partition(":")
        raise _core.Error(_ARGUMENTS.get(name, name) + colon + rest) from None


class Group:
    """The library's optimiser of one group of parameters, made when it is first needed.

    `settings` are those of `_core.Optimizer`. A parameter takes part from the time when it first
    needs a gradient or has one; before, it has no moments, and nothing rounds it.
    """

    def __init__(self, params, settings, seed, weights):
        self.use(params)
        self.names = [str(i) for i in range(len(params))]  # of the parameters in the core
        self.settings, self.seed, self.weights = settings, seed, weights
        self.core = None
        self.context = None  # of the device where the core is; None on the host
        self.saved = None  # (steps, pieces) with which the next core starts
        self._last = {}  # None: ask the core
        self.values = {}  # {index: float32 tensor on a device whose memory the core uses}
        self._in_place = set()  # of these, the parameters themselves, when a step began
        self.reports = False  # the core tells how each step moved each tensor, which takes a device time
        self._versions = {}  # {index: PyTorch's count of writes after the last step}
        self.taking_part = [False] * len(params)
        self._let_in()

    def use(self, params):
        """Takes the parameters of PyTorch's group."""
        self.params, self.owners = params, Owners(params)

    def _let_in(self):
        """Lets parameters take part that now need a gradient. Returns whether there are any."""
        found = False
        for i, p in enumerate(self.params):
            if not self.taking_part[i] and (p.requires_grad or p.grad is not None):
                _require_room(p, self.weights, f"params[{i}]")
                self._round(i)
                self.taking_part[i] = found = True
        return found

    def _round(self, i):
        """Rounds a parameter to the format of the weights."""
        p = self.owners.local(self.params[i].detach())
        if p.is_cuda:
            with torch.no_grad():
                p.copy_(round(_packed(p), self.weights, overflow="saturate"))
        else:
            _write(p, _rounded(p, self.weights, f"params[{i}]"))

    def prepare(self, settings):
        """Makes the core anew if there is none, if a setting or who takes part has changed."""
        if self.core is not None:
            if self.context is None:
                self._require_unchanged()
            else:
                self._require_memory()
        before = list(self.taking_part)
        context = self._context()
        changed = self._let_in() or settings != self.settings or context is not self.context
        if self.core is None or changed:
            self._keep_state()
            self.settings, self.context = settings, context
            self.core = self._make_core(self.saved, before)
            self._in_place = self._find_in_place()

    def _context(self):
        """Returns the context of the parameters' device and its stream; None on the host."""
        devices = {p.device for p, taking in zip(self.params, self.taking_part) if taking}
        if not any(device.type == "cuda" for device in devices):
            return None
        if len(devices) > 1:
            raise ValueError(
                "params: are on several devices: " + ", ".join(sorted(map(str, devices)))
            )
        i = self.taking_part.index(True)
        return _device.shared_context(self.owners.local(self.params[i]), f"params[{i}]")

    def _make_core(self, saved, had_state):
        """A core that continues from a state, in which the parameters `had_state` have theirs."""
        core = new_core(self.settings, self.seed % (1 << 64), self.context)
        self.values, self._versions = {}, {}
        for i, p in enumerate(self.params):
            # A parameter that takes no part here has no elements, and the others keep their numbers.
            whole = self.owners.whole(i, p) if self.taking_part[i] else None
            taking = self._is_here(i)
            shape = matrix_shape(p.shape) if taking else (1, 0)
            is_matrix = taking and p.ndim > 1
            if self.context is None:
                value = _rounded(whole, self.weights, f"params[{i}]") if taking else _NO_VALUES
                core.add(self.names[i], is_matrix, *shape, value)
            else:
                empty = self.owners.local(p).new_empty(shape)
                values = self.values[i] = _packed((whole if taking else empty).detach())
                core.add_borrowed(self.names[i], is_matrix, *shape, self._shown(values, i))
        if saved is not None:
            steps, pieces = saved
            had_one = [had and self._is_here(i) for i, had in enumerate(had_state)]
            new = {name for name, had in zip(self.names, had_one) if not had}
            kept = {name: data for name, data in pieces.items() if name.split("/")[0] not in new}
            core.restore(steps, core.save()[1] | kept)
        return core

    def _is_here(self, i):
        """Whether the core of this process has a parameter."""
        return self.taking_part[i] and self.owners.mine(i)

    def _require_unchanged(self):
        """Raises ValueError if somebody else has written a parameter on the host."""
        for i, p in enumerate(self.params):
            if not self._is_here(i):
                continue
            array, _ = float32_of(self.owners.local(p), f"params[{i}]")
            held = self.owners.part(i, self.core.weights(self.names[i]).reshape(p.shape))
            if not np.array_equal(held.view(np.uint32), array.view(np.uint32)):
                raise ValueError(
                    f"params[{i}]: was changed between two steps; continue with "
                    f"optimizer.load_state_dict(optimizer.state_dict())"
                )

    @staticmethod
    def _shown(x, i):
        """Returns a packed tensor of a device as the core takes it."""
        return _device.library_of(x, f"params[{i}]").shown(x)

    def _require_memory(self):
        """Looks where the parameters of a device lie; the core is made anew if one has moved."""
        self._in_place = self._find_in_place()
        for i, p in enumerate(self.params):
            can_be_in_place = self.taking_part[i] and not self.owners.is_sharded(i)
            if can_be_in_place and i not in self._in_place and p.dtype == torch.float32:
                self._last = self.last
                self._keep_state()
                self.core = None
                return

    def _find_in_place(self):
        """Returns the parameters in whose own memory the core works, of which none is sharded.

        Addresses alone do not tell: all empty tensors have one.
        """
        params, owners = self.params, self.owners
        return {i for i, values in self.values.items() if not owners.is_sharded(i)
                and values.data_ptr() == owners.local(params[i]).data_ptr()}  # fmt: skip

    @property
    def last(self):
        """Returns the numbers of the last step. Waits for a device."""
        if self._last is None:
            skipped, finite, norm, *_ = self.core.last()
            self._last = {"skipped": skipped, "finite": finite, "gradient_norm": norm}
        return self._last

    def step(self, lr):
        """Takes a step with the gradients that there are. Parameters without one stay."""
        moving = [i for i, p in enumerate(self.params) if p.grad is not None]
        if not moving:
            self._last = {"skipped": True, "finite": True, "gradient_norm": 0.0}
            return
        self.core.step(lr, self._gradients(moving), self.reports, not self._written_elsewhere())
        self._last = None
        for i in moving:
            self._show(i)

    def _gradients(self, moving):
        """Returns {name: gradient as the core takes it} of the parameters that are here."""
        gradients = {i: self.params[i].grad for i in moving}
        for i, gradient in gradients.items():
            if gradient.layout != torch.strided:
                raise TypeError(f"params[{i}].grad: expected a dense tensor, found {gradient.layout}")
        finite = self.owners.all_finite(gradients.values()) if self.owners.are_many else None
        # All are on one device: one look tells how the core takes them.
        shown = None
        if self.context is not None:
            i = moving[0]
            shown = _device.library_of(self.owners.local(gradients[i]), f"params[{i}].grad").shown
        found = {}
        for i, gradient in gradients.items():
            gradient = self.owners.whole(i, gradient)
            if not self._is_here(i):
                continue
            if finite is not None:  # a number that is not finite anywhere stops the step everywhere
                gradient = gradient.where(finite, torch.nan)
            if shown is None:
                found[self.names[i]], _ = float32_of(gradient, f"params[{i}].grad")
            else:
                found[self.names[i]] = shown(_packed(gradient))
        return found

    def _written_elsewhere(self):
        """Whether somebody else has written parameters on a device, as far as PyTorch counts that.

        It does not count what is written through `.data`.
        """
        return any(self._versions.get(i) != self.params[i]._version for i in self._in_place)

    def _show(self, i):
        """Makes PyTorch see what a step has written."""
        p = self.params[i]
        if self.context is None:
            held = np.array(self.core.weights(self.names[i]))  # writable, as PyTorch wants it
            self.owners.give(i, torch.from_numpy(held).view(p.shape) if self._is_here(i) else None)
        elif i in self._in_place:
            torch.autograd.graph.increment_version(p)
            self._versions[i] = p._version
        else:
            self.owners.give(i, self.values[i])

    def bytes(self):
        return dict(zip(("m", "v", "weights", "other"), self.core.bytes()))

    def _keep_state(self):
        if self.core is not None:
            self.saved = self.core.save()

    def save(self):
        """Returns the state, and what gives its bytes their meaning."""
        self._keep_state()
        steps, pieces = self.saved or (0, {})
        if self.owners.are_many:
            pieces = self.owners.gather(pieces)
        return {
            "version": VERSION,
            "formats": _meaning(self.settings),
            "shapes": [list(p.shape) for p in self.params],
            "taking_part": list(self.taking_part),
            "steps": steps,
            "pieces": {name: torch.frombuffer(bytearray(b), dtype=torch.uint8) if b else _empty()
                       for name, b in pieces.items()},
        }  # fmt: skip

    def check(self, saved):
        """Raises ValueError if a saved state is not one of this group."""
        version = saved.get("version", VERSION)
        if version != VERSION:
            raise ValueError(f"state_dict: expected version {VERSION}, found {version}")
        for key, own in _meaning(self.settings).items():
            found = saved.get("formats", {}).get(key, own)
            if found != own:
                raise ValueError(
                    f"state_dict: saved with {key} = {found!r}, and this optimiser has {own!r}"
                )
        shapes = [list(p.shape) for p in self.params]
        if saved.get("shapes", shapes) != shapes:
            raise ValueError(f"state_dict: expected shapes {shapes}, found {saved['shapes']}")
        if saved["pieces"]:
            taking_part, self.taking_part = self.taking_part, _taking_part(saved)
            self.context = self._context()
            try:
                self._make_core(_pieces(saved), self.taking_part)
            except ValueError as error:
                raise ValueError(f"state_dict: {error}") from None
            finally:
                self.taking_part = taking_part

    def restore(self, saved):
        """Continues from a state that `check` accepts, with the parameters as they are then."""
        self.saved = _pieces(saved) if saved["pieces"] else None
        self.taking_part = _taking_part(saved)
        self.core, self._last = None, {}


def _taking_part(saved):
    return list(saved["taking_part"])


def _pieces(saved):
    return saved["steps"], {n: t.numpy().tobytes() for n, t in saved["pieces"].items()}


def _empty():
    return torch.empty(0, dtype=torch.uint8)


def _meaning(settings):
    """The settings without which a state cannot be read."""
    names = {"m": "moments[0]", "v": "moments[1]", "weights": "weights", "update": "rounding"}
    return {name: settings[key] for key, name in names.items()} | {
        "moment_filter": settings["moment_filter"]
    }


def _require_room(p, weights, name):
    """Raises TypeError if the dtype of a parameter does not hold weights of a format."""
    try:
        own = format_of(p.dtype)
    except (TypeError, ValueError):
        own = None
    if own is None or own.bits > 32:
        raise TypeError(f"{name}: expected float32, bfloat16 or float16, found {p.dtype}")
    if not holds(own, weights):
        raise TypeError(
            f"{name}: {p.dtype} does not hold weights of {weights.name}; pass "
            f'weights="{own.name}", or parameters of float32'
        )


def _rounded(p, format, name):
    """Returns a parameter's values, rounded to a format, as contiguous float32."""
    array, _ = float32_of(p, name)
    _, plan, *_ = plan_of(format, "rne", "saturate")
    out = np.empty(array.shape, np.float32)
    _core.round(plan, array, out)
    return out


def _packed(x):
    """Returns a detached tensor of a device as float32 without gaps: itself, if it is that."""
    return x.float().contiguous()


@torch.no_grad()
def _write(p, values):
    p.copy_(torch.from_numpy(np.array(values)))
