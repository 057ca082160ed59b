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
        group.reports = True  # for `numbers`
        return group

    def numbers(self) -> _core.StepNumbers:
        """Returns the numbers of the last step. Waits for a device."""
        numbers = self._groups[0].core.numbers()
        if numbers.rms_tensor:
            numbers.rms_tensor = self.names[int(numbers.rms_tensor)]
        return numbers

    def pieces(self) -> dict[str, torch.Tensor]:
        """Returns the state by the names of `numsim train`: "PARAMETER/m" and so on."""
        self._prepare()
        saved = self.state_dict()["numsim"][0]["pieces"]
        return {self._renamed(name, self.names): piece for name, piece in saved.items()}

    def restore(self, steps: int, pieces: dict[str, torch.Tensor]) -> None:
        """Continues after so many steps from what `pieces` returned."""
        state = self.state_dict()
        numbers = {name: str(i) for i, name in enumerate(self.names)}
        (group,) = state["numsim"]
        group["steps"] = steps
        group["pieces"] = {self._renamed(name, numbers): piece for name, piece in pieces.items()}
        self.load_state_dict(state)

    @staticmethod
    def _renamed(piece, names):
        """The name of a piece with another name of its parameter, if it has one."""
        name, slash, rest = piece.rpartition("/")
        if not slash:
            return piece
        try:
            return f"{names[int(name)] if isinstance(names, list) else names[name]}/{rest}"
        except KeyError:
            message = f"tensor 'optimizer/{piece}': the model has no such parameter"
            raise ValueError(message) from None
