// A step of a training written out: what StepReplay has to give, without its code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/models/pass.h"
#include "numsim/train/trainer.h"

namespace numsim {

// The precision of a step by hand.
struct HandPrecision {
  LinearPrecision linear;
  StorageConfig storage;
  // The tensors that are rounded to the formats of `storage`; empty: all.
  std::function<bool(std::string_view, TensorRole)> rounds = {};
};

struct HandStep {
  LossSum loss;
  // Without the loss scale; in the order of the model's parameters.
  std::vector<std::pair<std::string, std::vector<float>>> gradients;
  // The tensors that the pass showed, in order.
  std::vector<std::pair<std::string, TensorRole>> points;
};

// The step that the trainer would take next. Only text data and planted activations; no tails.
HandStep StepByHand(Trainer& trainer, const HandPrecision& precision);
HandPrecision PrecisionByHand(const TrainConfig& config);
// Standard layers of float32, and nothing is rounded.
HandPrecision Float32ByHand();

// ||g - r|| / ||r|| of all gradients together, in long double; infinite where g is not finite.
double ErrorByHand(const HandStep& g, const HandStep& r);
// The gradient of one parameter.
double ErrorByHand(const std::vector<float>& g, const std::vector<float>& r);

// `precision` with one override for each of the trainer's layers, so that each can be changed
// alone. Requires that no layer is high for being the first or last.
LinearPrecision LayerByLayer(Trainer& trainer, const LinearPrecision& precision);

}  // namespace numsim
