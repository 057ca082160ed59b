"""Trainings in plain PyTorch from the configurations of `numsim train`.

    python -m numsim.torch.train CONFIG.toml

`models` has a Llama and a vision transformer, `loop` the steps of a training: code to copy from.
Data, initial values, random bits and run directories are those of `numsim train`; linear layers and
optimiser are those of numsim.torch. docs/training.md has the options.
"""

from numsim.torch.train.loop import Training
from numsim.torch.train.models import Llama, VisionTransformer

__all__ = ["Llama", "Training", "VisionTransformer"]
