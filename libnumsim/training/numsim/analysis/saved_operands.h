// Saves the operands of linear layers as they occur in a training, so that errors of GEMMs can be
// measured on real tensors (experiment linear-error, `numsim stats`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/io/array.h"
#include "numsim/train/trainer.h"

namespace numsim {

// Returns the operands of the next step of `trainer`, which is not changed: for every linear layer
// whose name matches `pattern` ('*' matches any characters), in the order of the model,
//   LAYER.x  tokens x in   its input, as the forward pass reads it
//   LAYER.w  out x in      its weights
//   LAYER.g  tokens x out  the gradient of its output, without the loss scale
// in float32, after rounding for storage and before quantisation. Throws KeyError "pattern" if no
// layer matches, and Error as StepReplay does.
std::vector<std::pair<std::string, Array>> OperandsOfNextStep(const Trainer& trainer,
                                                              std::string_view pattern);

struct SavedOperands {
  uint64_t step = 0;             // steps taken before the one whose operands these are
  bool from_checkpoint = false;  // false: the first step of a training
  size_t layers = 0;
  std::string file;  // written, relative to `out`
};

// Writes these operands of the step after the checkpoint in `out`, or of the first step if there is
// none, to OUT/operands.safetensors, without training. The metadata have the step and the
// configuration. Throws Error as RunTraining does with `resume`, and as OperandsOfNextStep does; the
// files are then unchanged.
SavedOperands SaveOperands(const TrainConfig& config,
                           const std::filesystem::path& out,
                           std::string_view pattern);

}  // namespace numsim
