"""Sharded parameters of an optimiser: each is updated as a whole, by one of the processes.

So scales and sums over a tensor are those of the whole tensor, and for equal gradients the bytes of
weights and states are those of a single process, whatever their formats.
"""

from __future__ import annotations

import torch

from numsim.torch._sharding import shard_of


class Owners:
    """Which process updates which parameter, and the exchange of their parts.

    Every process calls the same methods in the same order, except `is_sharded`, `mine`, `local` and `part`.
    """

    def __init__(self, params):
        self._params = params
        self._group = _common_group(params)
        self._owner = {}  # {index: rank in the group}, of sharded parameters
        if self._group is None:
            return
        distributed = torch.distributed
        self._rank = distributed.get_rank(self._group)
        load = [0] * distributed.get_world_size(self._group)
        sharded = [i for i, p in enumerate(params) if _sharded_dimension(p) is not None]
        for i in sorted(sharded, key=lambda i: (-params[i].numel(), i)):
            self._owner[i] = load.index(min(load))
            load[self._owner[i]] += params[i].numel()

    @property
    def are_many(self):
        """Whether any parameter is sharded."""
        return bool(self._owner)

    def is_sharded(self, i):
        """Whether no process has all of a parameter."""
        return i in self._owner

    def mine(self, i):
        """Whether this process updates a parameter: all do where it is not sharded."""
        return i not in self._owner or self._owner[i] == self._rank

    @staticmethod
    def local(x):
        """Returns this process's part of a tensor."""
        return x.to_local() if shard_of(x) else x

    def whole(self, i, x):
        """Returns a parameter's values or gradient as a whole."""
        return shard_of(x).whole() if i in self._owner else self.local(x.detach())

    def part(self, i, whole):
        """Returns this process's part of a whole."""
        return shard_of(self._params[i]).cut(whole) if i in self._owner else whole

    def give(self, i, whole):
        """Makes values of a parameter, which its owner has, the values of it in every process."""
        p = self._params[i]
        if i in self._owner:
            distributed = torch.distributed
            sent = whole.to(p.dtype) if self.mine(i) else self.local(p).new_empty(p.shape)
            source = distributed.get_global_rank(self._group, self._owner[i])
            distributed.broadcast(sent, source, self._group)
            whole = sent
        self.local(p).copy_(self.part(i, whole))

    def all_finite(self, gradients):
        """Returns whether all numbers of the gradients are finite, in every process: a tensor."""
        finite = torch.stack([self.local(g).isfinite().all() for g in gradients]).all()
        flag = finite.to(torch.int32)
        torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MIN, self._group)
        return flag.bool()

    def gather(self, pieces):
        """Returns {name of a piece: bytes} of all parameters; names are INDEX/..., or of no parameter."""
        found = [None] * torch.distributed.get_world_size(self._group)
        torch.distributed.all_gather_object(found, pieces, self._group)
        owners = {str(i): rank for i, rank in self._owner.items()}
        return {
            name: found[owners.get(name.split("/")[0], self._rank)][name]
            for name in dict.fromkeys(name for own in found for name in own)
        }


def _sharded_dimension(p):
    """The dimension of a DTensor's mesh along which it is sharded; None if there is none."""
    if shard_of(p) is None:
        return None
    found = [i for i, placement in enumerate(p.placements) if placement.is_shard()]
    if len(found) > 1:
        raise ValueError(f"params: sharded along {len(found)} dimensions of a mesh, expected one")
    return found[0] if found else None


def _common_group(params):
    """Returns the processes that share the sharded parameters; None if none is sharded."""
    groups = []
    for p in params:
        dimension = _sharded_dimension(p)
        if dimension is not None:
            groups.append(p.device_mesh.get_group(dimension))
    if any(group is not groups[0] for group in groups):
        raise ValueError("params: of one group are sharded over different processes")
    return groups[0] if groups else None
