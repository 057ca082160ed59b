"""numsim for PyTorch: linear layers, optimisers and measures of models in any precision.

    import numsim.torch as nt
    nt.convert(model, "switchback-int8")                    # or {pattern: recipe}
    print(nt.report(model))                                 # what it converted and what it left out
    optimizer = nt.AdamW(model.parameters(), moments=("e4m3fn", "e5m2"), weights="bf16")
    with nt.watch(model, format="e4m3fn") as log:
        loss(model(x)).backward()
    log.table()

Everything computes where its tensors are, on the CPU or on a CUDA device, bit for bit as the
library and `numsim train` do. docs/python.md has the calls.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "numsim.torch needs PyTorch, which is not installed: pip install torch", name="torch"
    ) from None

from numsim._linear import LinearRecipe
from numsim.torch._attention import MultiheadAttention
from numsim.torch._convert import convert, plain_state_dict, revert
from numsim.torch._layers import Kept
from numsim.torch._linear import Linear
from numsim.torch._optimizer import AdamW
from numsim.torch._report import LeftOutWarning, Report, converted, report
from numsim.torch._rounding import fake_quantize, round
from numsim.torch._watch import Watch, watch

__all__ = [
    "AdamW",
    "Kept",
    "LeftOutWarning",
    "Linear",
    "LinearRecipe",
    "MultiheadAttention",
    "Report",
    "Watch",
    "convert",
    "converted",
    "fake_quantize",
    "plain_state_dict",
    "report",
    "revert",
    "round",
    "watch",
]
