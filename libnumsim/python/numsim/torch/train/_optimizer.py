"""The optimiser of a configuration."""

from __future__ import annotations

from typing import Any

import torch

from numsim import _core
from numsim.torch._optimizer import AdamW


class ConfiguredOptimizer(AdamW):
    """numsim.torch.AdamW with every key of [optimizer]: other kinds, clipping, variants.

    parameters   {name: parameter}, in the order of the library's model
    keys         {key of [optimizer]: value}
    """

    def __init__(
        self, parameters: dict[str, torch.nn.Parameter], keys: dict[str, Any], seed: int
    ) -> None:
        self.names = list(parameters)
        self._keys = keys
        super().__init__(
            parameters.values(),
            lr=0,
            betas=(keys["beta1"], keys["beta2"]),
            eps=keys["epsilon"],
            weight_decay=keys["weight_decay"],
            moments=(keys["m"], keys["v"]),
            weights=keys["weights"],
            rounding=keys["update"],
            seed=seed,
            decay_filter=keys["decay_filter"],
            moment_filter=keys["moment_filter"],
            update_from_stored=keys["update_from_stored"],
        )

    def _settings_of(self, group):
        return {**self._keys, **super()._settings_of(group)}

    def _new_group(self, *arguments):
        group = super()._new_group(*arguments)
        group.names = self.names  # which moment_tensors means
        group.reports = True  # for `numbers`
        return group

    def numbers(self) -> _core.StepNumbers:
        """Returns the numbers of the last step. Waits for a device."""
        return self._groups[0].core.numbers()

    def pieces(self) -> dict[str, torch.Tensor]:
        """Returns the state by the names of `numsim train`: "PARAMETER/m" and so on."""
        self._prepare()
        return self.state_dict()["numsim"][0]["pieces"]

    def restore(self, steps: int, pieces: dict[str, torch.Tensor]) -> None:
        """Continues after so many steps from what `pieces` returned."""
        for piece in pieces:
            name, slash, _ = piece.rpartition("/")
            if slash and name not in self.names:
                raise ValueError(f"tensor 'optimizer/{piece}': the model has no such parameter")
        state = self.state_dict()
        (group,) = state["numsim"]
        group["steps"] = steps
        group["pieces"] = pieces
        self.load_state_dict(state)
