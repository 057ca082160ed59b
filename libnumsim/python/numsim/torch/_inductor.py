"""Tells PyTorch's compiler that the results of numsim's operators begin at aligned addresses.

Inductor takes the results of an operator for unaligned if one of its arguments is, and every tensor
on the host counts as such, so also the state of a layer. Kernels that read results would then load
one element at a time, which costs 5 % of a training step. Results are new tensors of PyTorch's
allocator, so they are aligned; compiled code checks it.
"""

from __future__ import annotations

import sys


def results_are_aligned(operators):
    """Changes how Inductor lowers the operators, if a process has loaded it.

    Inductor has no public name for this. Where its inner names are others, code is only slower.
    """
    lowering = sys.modules.get("torch._inductor.lowering")
    if lowering is None:
        return
    for operator in operators:
        if operator in lowering.lowerings:
            continue
        try:
            lowering.make_fallback(operator, warn=False)
            lowering.lowerings[operator] = _aligned(lowering.lowerings[operator])
        except (AttributeError, TypeError):
            lowering.lowerings.pop(operator, None)  # Inductor makes it anew


def _aligned(lower):
    from torch._inductor.virtualized import V

    def lower_aligned(*args, **kwargs):
        results = lower(*args, **kwargs)
        for result in results:
            V.graph.unaligned_buffers.discard(result.get_name())
        return results

    return lower_aligned
