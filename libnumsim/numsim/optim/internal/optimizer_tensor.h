// One parameter of an optimiser: its moments, its direction, its step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "numsim/optim/internal/optimizer_directions.h"
#include "numsim/optim/optimizer.h"
#include "numsim/optim/optimizer_state.h"

namespace numsim {

// What a step is, beside the gradients.
struct OptimizerInputs {
  float factor = 1;  // of the gradients: takes out the loss scale and clips
  double learning_rate = 0;
  uint64_t step = 0;
  bool measure = false;
  uint64_t moment_seed = 0, update_seed = 0;  // of random draws
};

class OptimizerTensor {
 public:
  // `number` tells tensors apart in their random draws; < kMaxTensors. Both must live as long.
  // Rounds the parameter to the format of the weights.
  OptimizerTensor(const OptimizerConfig& config, Parameter<float>& parameter, size_t number);
  static constexpr size_t kMaxTensors = size_t{1} << 20;

  size_t Elements() const { return parameter_->Elements(); }
  std::span<const float> Gradient() const { return parameter_->gradient.View().Span(); }

  // Moments that are not kept as float32 are worked on here: spans of at least Elements().
  struct Scratch {
    std::span<float> m, v;
  };
  // The first half of a step: new moments, and the direction, of Elements(). Fills in the report
  // but for rms and weights. Returns the sum of the squares of which rms is the root mean.
  double MakeDirection(const OptimizerInputs& inputs,
                       const Scratch& scratch,
                       std::span<float> direction,
                       TensorStep& report);
  // The second half: the weights take the step, clipped where `rms` is large (StableAdamW).
  void TakeStep(const OptimizerInputs& inputs,
                double rms,
                std::span<const float> direction,
                TensorStep& report);

  // In bytes, not in bytes a parameter.
  Optimizer::Bytes StoredBytes() const;
  void Save(std::vector<NamedBytes>& state) const;
  void Restore(StateReader& state);

 private:
  struct Rates;
  struct Work;
  struct Sums;

  Rates Advance();
  std::span<float> Open(std::optional<MomentStore>& store, std::span<float> scratch, bool measure);
  MomentLoss Close(std::optional<MomentStore>& store,
                   std::span<float> values,
                   const OptimizerInputs& inputs,
                   uint64_t which);
  Sums AdvanceBlock(const Work& work, size_t begin, size_t count) const;
  Sums DirectBlock(const Work& work, const float* x, size_t begin, size_t count) const;
  bool IsAdam() const;
  bool RereadsMoments() const;
  std::string NameOf(const char* piece) const;

  const OptimizerConfig* config_;
  Parameter<float>* parameter_;
  size_t number_;
  bool decays_;
  // Members, not locals of Advance: g++ 12 takes float64 -> float32 -> float64 of two neighbours
  // for nothing at all when it packs them into a vector (-ftree-slp-vectorize).
  float beta1_, beta2_;
  std::optional<MomentStore> m_, v_;
  UpdateState update_;
  uint64_t steps_ = 0;              // t
  double power1_ = 1, power2_ = 1;  // beta^t
};

}  // namespace numsim
