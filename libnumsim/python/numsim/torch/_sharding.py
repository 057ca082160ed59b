"""The part of a DTensor that a process has, and where it lies in the whole."""

from __future__ import annotations

import math
import sys


def shard_of(x):
    """Returns the Shard of a DTensor; None for any other tensor."""
    module = sys.modules.get("torch.distributed.tensor")
    return Shard(x) if module is not None and isinstance(x, module.DTensor) else None


class Shard:
    """A process's part of a DTensor.

    local        the part, through which gradients pass
    placements   of the DTensor
    """

    def __init__(self, x):
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

        if any(placement.is_partial() for placement in x.placements):
            raise ValueError("x: is a DTensor of partial sums; redistribute it first")
        self.local = x.to_local()
        self.placements = x.placements
        self._x = x
        _, self._offset = compute_local_shape_and_global_offset(
            x.shape, x.device_mesh, x.placements
        )

    def restore(self, local):
        """Returns the DTensor whose part in this process is `local`."""
        x = self._x
        return type(x).from_local(
            local, x.device_mesh, x.placements, run_check=False, shape=x.shape, stride=x.stride()
        )

    def whole(self):
        """Returns the whole tensor, without gradients. Every process must call it."""
        return self._x.detach().full_tensor()

    def cut(self, whole):
        """Returns the part of a tensor or array of the whole's shape that this process has."""
        ranges = zip(self._offset, self.local.shape)
        return whole[tuple(slice(begin, begin + length) for begin, length in ranges)]

    def placed(self):
        """Returns a tensor of the whole's shape with the part at its place, and 0 elsewhere."""
        whole = self.local.new_zeros(self._x.shape)
        self.cut(whole).copy_(self.local.detach())
        return whole

    def first_index(self):
        """Returns the index in the whole of the part's first element, in C order.

        None if the elements of the part do not follow one another there.
        """
        if self.local.numel() == 0:
            return 0
        if self.local.shape[1:] != self._x.shape[1:]:
            return None
        return self._offset[0] * math.prod(self._x.shape[1:]) if self._offset else 0
