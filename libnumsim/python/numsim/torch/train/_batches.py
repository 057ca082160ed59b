"""Batches of the library's data on a device."""

from __future__ import annotations

import concurrent.futures
from typing import NamedTuple

import torch

from numsim import _core


class Batch(NamedTuple):
    inputs: torch.Tensor  # tokens (batch, length), or images (batch, side, side, channels)
    targets: torch.Tensor  # tokens that follow, -1 for none; or labels
    counted: int  # targets that are not -1


class Batches:
    """The batches of a training in order. For a device, the next one is made during a step."""

    def __init__(self, data: _core.TrainData, device: torch.device) -> None:
        self._data, self._device = data, device
        self._pool = concurrent.futures.ThreadPoolExecutor(1) if device.type == "cuda" else None
        self._index: int | None = None  # of the batch that is made, `_future`
        self._future: concurrent.futures.Future

    def train(self, index: int) -> Batch:
        """Returns training batch `index`."""
        if self._pool is None:
            return self._moved(self._made(self._data.train_batch(index)))
        if self._index != index:
            self._ahead(index)
        made = self._future
        self._ahead(index + 1)
        return self._moved(made.result())

    def valid(self, index: int) -> Batch:
        """Returns validation batch `index`."""
        return self._moved(self._made(self._data.valid_batch(index)))

    def close(self) -> None:
        """Waits for a batch that is being made."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _ahead(self, index):
        self._index, self._future = index, self._pool.submit(self._made_in_thread, index)

    def _made_in_thread(self, index):
        with torch.cuda.device(self._device):  # each thread has its own current device
            return self._made(self._data.train_batch(index))

    def _made(self, arrays):
        tokens, targets, values = arrays
        inputs = torch.from_numpy(values if tokens is None else tokens)
        labels = torch.from_numpy(targets)
        if self._device.type == "cuda":
            inputs, labels = inputs.pin_memory(), labels.pin_memory()
        return Batch(inputs, labels, int((targets >= 0).sum()))

    def _moved(self, batch):
        inputs = batch.inputs.to(self._device, non_blocking=True)
        targets = batch.targets.to(self._device, non_blocking=True).long()
        return Batch(inputs, targets, batch.counted)
