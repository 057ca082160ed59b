"""The library's linear layer as a module of PyTorch."""

from __future__ import annotations

import torch

from numsim._linear import LinearRecipe, RecipeLike
from numsim.torch._gemms import Gemms, HoldsGemms, no_fast_path


class Linear(HoldsGemms, torch.nn.Linear):
    """nn.Linear whose three GEMMs have the precision of a recipe (docs/linear.md).

    recipe   a name, "switchback-int8", or a `LinearRecipe`
    seed, number   the random bits of stochastically rounded gradients are a function of the seed,
             the number of the layer (0 to 4095) and the step. Each forward pass in training mode is
             a step of its own; `steps` counts them

    Inputs are float32, bfloat16 or float16 of any shape (..., in_features); the computation takes
    them as float32, and its results are rounded to the dtypes of the input and of the weight. In
    float32, y without bias, dx and dw have the bits of the C++ layer. The sum over tokens that is
    the bias' gradient is PyTorch's. In evaluation mode, steps and delayed scales stay as they are.
    There are first derivatives only: create_graph=True, forward mode, and the transforms of
    torch.func are errors.

    state_dict() holds both, as a tensor under `_extra_state`, if later steps depend on them: under
    delayed scaling and where gradients are rounded stochastically. A state_dict of nn.Linear is
    loaded too.

    On a CUDA device the layer computes there, in PyTorch's current stream, with the bits of the
    host wherever the recipe's accumulation modes have any (docs/linear.md); accumulate=
    "tensor-cores" chooses modes that tensor cores compute. What backward needs is in tensors of
    PyTorch, which hooks of saved tensors see. A layer may move between devices.

    torch.compile puts the layer into its graph as one operator, torch.ops.numsim.linear, also with
    fullgraph=True. Under autocast the input is cast to its dtype, as nn.Linear casts it; the weight
    is quantised as it is. A forward pass that torch.utils.checkpoint repeats is the layer's newest
    one, with its step and its scales.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        recipe: RecipeLike = "switchback-int8",
        *,
        seed: int = 0,
        number: int = 0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._start([Gemms(recipe, seed, number)], torch.nn.Linear)

    @property
    def recipe(self) -> LinearRecipe:
        """The precision of the layer's three GEMMs."""
        return self._gemms.recipe

    @property
    def number(self) -> int:
        """The number of the layer in its model, which selects its random bits."""
        return self._gemms.number

    @property
    def steps(self) -> int:
        """The number of forward passes in training mode."""
        return self._gemms.steps

    def delayed_scales(self) -> dict[str, tuple[float, list[float]]]:
        """Returns {"x", "w", "g", ...: (scale, amaxes of earlier steps)}; {} without delayed scaling.

        The scale is that of the next step, from at most `delayed_history` steps. The newest amax is
        the last.
        """
        return self._gemms.scales()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Returns input @ weight.T + bias, computed under the recipe."""
        y = self._gemms.product(input, self.weight, self.training)
        return y if self.bias is None else y + self.bias.to(y.dtype)

    def _start(self, gemms, plain):
        """Gives a module that was of class `plain` what is a Linear's own."""
        (self._gemms,), self._plain = gemms, plain
        self._fast_path = self.register_forward_pre_hook(no_fast_path)

    def _stop(self):
        """Makes it a plain module again."""
        self._fast_path.remove()
        self.__class__ = self._plain
        for name in ("_gemms", "_plain", "_fast_path"):
            delattr(self, name)

    def _all_gemms(self):
        return [self._gemms]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, recipe={self.recipe!r}"
