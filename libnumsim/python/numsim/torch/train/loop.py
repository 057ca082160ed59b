"""The steps of a training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from numsim import _core
from numsim._linear import recipe_with
from numsim._model_recipes import read_settings
from numsim.torch._linear import Linear
from numsim.torch.train._batches import Batch, Batches
from numsim.torch.train._configuration import fork_of, require_supported, section, seed_of
from numsim.torch.train._optimizer import ConfiguredOptimizer
from numsim.torch.train.models import Llama, VisionTransformer, compile_blocks


AUTOCAST = {"bf16": torch.bfloat16}  # the words of --autocast


class Training:
    """The model, the data and the optimiser of a configuration on a device.

    Weights start with the values of `numsim train`, batches are its batches, and the random bits of
    stochastic rounding are its bits.

    compiled   whether torch.compile makes the code of blocks and norms
    autocast   a key of AUTOCAST, for torch.autocast of the model and the loss; None: float32
    """

    def __init__(
        self,
        config: _core.TrainConfig,
        device: torch.device,
        compiled: bool = False,
        autocast: str | None = None,
    ):
        require_supported(config)
        self.data = _core.TrainData(config)
        self.loop = section(self.data.config, "train")
        self.device = device
        self.batches = Batches(self.data, device)
        words = ["--compile"] * compiled + ([] if autocast is None else ["--autocast", autocast])
        self.options = " ".join(words)  # options that change bits
        self._compiled = compiled
        self._autocast = None if autocast is None else AUTOCAST[autocast]
        self._fork = fork_of(self.data.config)
        self._begin(self.data.fitted(self._fork.baseline))

    def _begin(self, config):
        """Makes the model and the optimiser of one side of the fork."""
        self.config = config
        initial = _core.TrainModel(config)
        self.model = _make_model(config, self.data.shape, initial).to(self.device)
        self.parameters = _with_initial_values(self.model, initial)
        keys = vars(section(config, "optimizer"))
        self.optimizer = ConfiguredOptimizer(self.parameters, keys, seed_of(config))
        if self._compiled:
            compile_blocks(self.model)

    @torch.no_grad()
    def _go_on_from_baseline(self, step):
        """Makes the side after the fork, with the state of the baseline."""
        weights, pieces = self.parameters, self.optimizer.pieces()
        scales = {name: layer.get_extra_state() for name, layer in self._linear_layers().items()}
        self._begin(self.data.config)
        for name, p in self.parameters.items():
            p.copy_(weights[name])
        self.optimizer.restore(step, pieces)
        for name, layer in self._linear_layers().items():
            state = scales[name]
            if self._fork.other_linear:  # scales begin anew, and steps are counted on
                state = layer.get_extra_state()
                state[_STEPS] = step * self.loop.accumulate
            layer.set_extra_state(state)

    def take_step(self, step: int) -> tuple[float, _core.StepNumbers]:
        """Takes a step. Returns the mean loss of its batch, and what the optimiser did."""
        if 0 < step == self._fork.steps:
            self._go_on_from_baseline(step)
        loss = self.compute_gradients(step)
        # With a gradient that is not finite, no weight moves. So the step need not wait for the loss.
        first = next(iter(self.parameters.values())).grad
        assert first is not None  # each parameter has had a gradient
        first.view(-1)[:1].add_(0 * loss)
        self.optimizer.param_groups[0]["lr"] = self.config.learning_rate(step)
        self.optimizer.step()
        numbers, mean = self.optimizer.numbers(), loss.item()
        if not math.isfinite(mean):
            numbers = _core.numbers_without_step(len(self.parameters))
        return mean, numbers

    def compute_gradients(self, step: int) -> torch.Tensor:
        """Adds up the gradients of the parts of a batch. Returns the mean loss, on the device."""
        parts = self.loop.accumulate
        gemms = [one for layer in self._linear_layers().values() for one in layer._all_gemms()]
        loss, counted = torch.zeros((), dtype=torch.float64, device=self.device), 0

        def sum_of(first, end):
            """The gradients of parts first .. end - 1, added as the tree of `numsim train`."""
            nonlocal loss, counted
            if end - first > 1:
                middle = first + (end - first + 1) // 2
                left = sum_of(first, middle)
                torch._foreach_add_(left, sum_of(middle, end))
                return left
            for p in self.parameters.values():
                p.grad = None
            for one in gemms:
                one.updates_scales = end == parts
            batch = self.batches.train(step * parts + first)
            of_rows = self._losses(batch)[0]
            (of_rows.sum() / (batch.counted * parts)).backward()
            loss += of_rows.detach().double().sum()
            counted += batch.counted
            return [p.grad for p in self.parameters.values()]

        for p, gradient in zip(self.parameters.values(), sum_of(0, parts)):
            p.grad = gradient
        return loss / counted

    @torch.no_grad()
    def validate(self) -> tuple[float, int, int]:
        """Returns the sum of the losses over the validation batches, their number, and how many
        predictions are right."""
        self.model.eval()
        loss = torch.zeros((), dtype=torch.float64, device=self.device)
        correct = torch.zeros((), dtype=torch.int64, device=self.device)
        counted = 0
        for index in range(self.data.valid_batches):
            batch = self.batches.valid(index)
            of_rows, logits = self._losses(batch)
            loss += of_rows.double().sum()
            correct += (logits.argmax(-1) == batch.targets.flatten()).sum()
            counted += batch.counted
        self.model.train()  # here, because it takes a while, and a step has no time for it
        return loss.item(), counted, int(correct)

    def _losses(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the cross entropy of each target, and the logits as rows."""
        enabled = self._autocast is not None
        with torch.autocast(self.device.type, self._autocast, enabled=enabled):
            logits = self.model(batch.inputs)
            logits = logits.reshape(-1, logits.shape[-1])
            targets = batch.targets.flatten()
            return F.cross_entropy(logits, targets, ignore_index=-1, reduction="none"), logits

    def tensors(self) -> dict[str, np.ndarray]:
        """Returns the tensors of a checkpoint, with their names in one of `numsim train`."""
        found = {}
        for name, p in self.parameters.items():
            values = p.detach().reshape(1, -1) if p.dim() == 1 else p.detach()
            found[f"model/{name}"] = values.cpu().numpy()
        for name, piece in self.optimizer.pieces().items():
            found[f"optimizer/{name}"] = piece.numpy()
        for name, layer in self._linear_layers().items():
            scales = layer.get_extra_state()[_HEAD:]
            if len(scales):
                found[f"scaling/{name}"] = scales.float().numpy()
        if self.options:
            found[_OPTIONS] = np.frombuffer(bytearray(self.options.encode()), np.uint8)
        return found

    @torch.no_grad()
    def restore(self, step: int, tensors: dict[str, np.ndarray]) -> None:
        """Continues after so many steps from the tensors of a checkpoint."""
        options = tensors.get(_OPTIONS, np.empty(0, np.uint8)).tobytes().decode(errors="replace")
        if options != self.options:
            raise ValueError(
                f"was written {_said(options)}, and this training is {_said(self.options)}, which "
                "gives other bits"
            )
        if 0 < self._fork.steps < step:
            self._begin(self.data.config)
        for name, p in self.parameters.items():
            values = tensors.get(f"model/{name}")
            if values is None or values.size != p.numel():
                raise ValueError(f"tensor 'model/{name}' is missing or of another shape")
            p.copy_(torch.from_numpy(values).reshape(p.shape))
        start = "optimizer/"
        pieces = {k[len(start) :]: torch.from_numpy(v) for k, v in tensors.items()
                  if k.startswith(start)}  # fmt: skip
        self.optimizer.restore(step, pieces)
        for name, layer in self._linear_layers().items():
            scales = tensors.get(f"scaling/{name}", np.empty(0, np.float32))
            head = [1.0, step * self.loop.accumulate, len(scales)]
            layer.set_extra_state(torch.tensor([*head, *scales.tolist()], dtype=torch.float64))

    def _linear_layers(self) -> dict[str, Linear]:
        found = self.model.named_modules()
        return {name: module for name, module in found if isinstance(module, Linear)}


_HEAD = 3  # numbers before the scales of a layer: version, steps, number of scales
_STEPS = 1
_OPTIONS = "torch/options"  # tensor of a checkpoint: the text of Training.options, if not empty


def _make_model(
    config: _core.TrainConfig, shape: dict[str, Any], initial: _core.TrainModel
) -> Llama | VisionTransformer:
    """Returns the model of a configuration, whose linear layers have the recipes of [linear].

    shape   of the data
    """
    settings, seed = section(config, "model"), seed_of(config)
    layers = {name: (number, recipe_with(read_settings(recipe)))
              for number, (name, recipe) in enumerate(initial.linear_layers)}  # fmt: skip

    def linear(name: str, inputs: int, outputs: int, bias: bool) -> Linear:
        number, recipe = layers[name]
        return Linear(inputs, outputs, bias, recipe, seed=seed, number=number)

    if settings.kind == "vit":
        image = shape["height"], shape["channels"], shape["classes"]
        return VisionTransformer(settings, *image, linear)
    return Llama(settings, shape["vocabulary"], linear)


def _said(options):
    return f"with {options}" if options else "without --compile and --autocast"


@torch.no_grad()
def _with_initial_values(
    model: torch.nn.Module, initial: _core.TrainModel
) -> dict[str, torch.nn.Parameter]:
    """Gives parameters their initial values. Returns them by name, in the library's order."""
    found = dict(model.named_parameters())
    ordered = {name: found.pop(name) for name, *_ in initial.parameters}
    if found:
        raise RuntimeError(f"parameters that `numsim train` does not have: {', '.join(found)}")
    for name, _, values in initial.parameters:
        ordered[name].copy_(torch.from_numpy(np.array(values)).reshape(ordered[name].shape))
    return ordered


def run(
    training: Training,
    record: _core.RecordedRun,
    must_stop: Callable[[], bool],
    show: Callable[[int, float, float], None],
) -> bool:
    """Takes steps until the training ends or must stop. Returns whether it was stopped.

    `show` gets the number of steps, the loss and the seconds of each step.
    """
    every = section(training.config, "checkpoint").every
    while record.status == "running":
        _validate_if_due(training, record)
        began = time.perf_counter()
        loss, numbers = training.take_step(record.steps)
        seconds = time.perf_counter() - began
        record.add_step(loss, numbers, seconds)
        _validate_if_due(training, record)
        show(record.steps, loss, seconds)
        stopped = must_stop()
        due = every > 0 and record.steps % every == 0
        if stopped or due or record.status != "running":
            record.save(training.tensors())
        if stopped:
            return record.status == "running"
    return False


def _validate_if_due(training, record):
    if record.validation_is_due:
        record.add_validation(*training.validate())
