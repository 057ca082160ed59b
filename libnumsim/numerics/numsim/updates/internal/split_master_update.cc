// Update rule split-master: the weights are one half of float32 masters.
#include <cmath>

#include "numsim/formats/named_formats.h"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

class Split final : public ElementwiseMethod {
 public:
  constexpr Split()
      : ElementwiseMethod({.state = RuleState::kWords, .on_device = true, .only_format = &kBf16}) {}

  void Start(const UpdateStart& start) const override {
    const std::span<uint16_t> remainders = start.state.words.Span();
    for (size_t i = 0; i < start.initial.size(); ++i) {
      const SplitWeight split = SplitMaster(start.initial[i]);
      start.weights[i] = split.weight;
      remainders[i] = split.remainder;
    }
  }

  bool HasFiniteWords(const float* weights, const uint16_t* words, size_t n) const override {
    bool finite = true;
    for (size_t i = 0; i < n; ++i) {
      finite = finite && std::isfinite(JoinMaster(weights[i], words[i]));
    }
    return finite;
  }

  void LoadWeights(const KeptWeights& kept, ElementRange block, double* out) const override {
    const float* const upper = kept.weights.data + block.begin;
    const uint16_t* const remainders = kept.state.words.View().data + block.begin;
    for (size_t i = 0; i < block.count; ++i) {
      out[i] = static_cast<double>(JoinMaster(upper[i], remainders[i]));
    }
  }

  uint64_t StepBlock(const UpdateJob& job, ElementRange block, float* after) const override {
    const float* const weights = job.weights.data() + block.begin;
    const float* const update = job.update.data() + block.begin;
    uint16_t* const remainders = job.state->words.View().data + block.begin;
    const float lr = job.learning_rate;
    uint64_t saturated = 0;
    for (size_t i = 0; i < block.count; ++i) {
      const float wanted = JoinMaster(weights[i], remainders[i]) + lr * update[i];
      saturated += std::abs(wanted) > job.largest ? 1 : 0;
      const SplitWeight split = SplitMaster(wanted);
      after[i] = split.weight;
      remainders[i] = split.remainder;
    }
    return saturated;
  }
};

}  // namespace

const UpdateMethod& SplitMasterMethod() {
  static constexpr Split kMethod;
  return kMethod;
}

}  // namespace numsim
