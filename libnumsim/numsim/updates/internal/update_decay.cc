// The weights as precisely as a rule knows them, and weight decay based on them.
#include <array>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/formats/named_formats.h"
#include "numsim/updates/internal/require_state.h"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_groups.h"
#include "numsim/updates/internal/update_kinds.h"

namespace numsim {
namespace {

// Returns a + b + c rounded once: the errors of both additions are added with rounding to odd.
// [Boldo]
double RoundedSum(double a, double b, double c) {
  const SumAndError small = SumExactly(b, c);
  const SumAndError all = SumExactly(a, small.sum);
  return all.sum + OddSum(all.error, small.error);
}

// Writes s h for a block, which may have several scales.
void LoadScaledMaster(const UpdateRule& rule,
                      size_t cols,
                      const UpdateState& state,
                      ElementRange block,
                      double* master) {
  std::array<float, kSumBlock> h{};
  DecodeSerial(kFp16, state.words.View().data + block.begin, block.count, h.data());
  const float* const scales = state.scales.View().data;
  const bool one = rule.scope.granularity == Granularity::kTensor;
  for (size_t i = 0; i < block.count; ++i) {
    const size_t at = block.begin + i;
    const size_t group = one ? 0 : rule.scope.Index(at / cols, at % cols, cols);
    master[i] = static_cast<double>(scales[group]) * static_cast<double>(h[i]);
  }
}

// Writes the weights of a block as precisely as the rule knows them; float64 holds them exactly.
// For kahan, the compensation is left out.
void LoadWeights(const UpdateRule& rule,
                 size_t cols,
                 const float* all_weights,
                 const UpdateState& state,
                 ElementRange block,
                 double* out) {
  const float* const weights = all_weights + block.begin;
  switch (rule.kind) {
    case UpdateKind::kMasterFp16Scaled:
      return LoadScaledMaster(rule, cols, state, block, out);
    case UpdateKind::kSplitMaster: {
      const uint16_t* const remainders = state.words.View().data + block.begin;
      for (size_t i = 0; i < block.count; ++i) {
        out[i] = static_cast<double>(JoinMaster(weights[i], remainders[i]));
      }
      return;
    }
    default: {
      const bool master = rule.kind == UpdateKind::kMasterFp32;
      const float* const from = master ? state.values.View().data + block.begin : weights;
      for (size_t i = 0; i < block.count; ++i) out[i] = static_cast<double>(from[i]);
    }
  }
}

}  // namespace

void DecayedUpdate(const UpdateRule& rule,
                   const WeightUpdate& step,
                   const UpdateState& state,
                   std::span<float> decayed) {
  const double decay = static_cast<double>(step.weight_decay);
  const bool compensated = rule.kind == UpdateKind::kKahan;
  const float* const compensation = state.values.View().data;
  ForEachBlock(decayed.size(), [&](size_t begin, size_t count) {
    std::array<double, kSumBlock> weights{};
    LoadWeights(rule, step.weights.cols, step.weights.data, state, {begin, count}, weights.data());
    for (size_t i = 0; i < count; ++i) {
      const double u = static_cast<double>(step.update.data[begin + i]);
      const double pull = decay * weights[i];  // exact
      const double sum =
          compensated ? RoundedSum(u, -pull, -decay * static_cast<double>(compensation[begin + i]))
                      : u - pull;
      decayed[begin + i] = static_cast<float>(sum);
    }
  });
}

std::vector<double> KnownWeights(const UpdateRule& rule,
                                 MatrixSpan<const float> weights,
                                 const UpdateState& state) {
  RequireHost("KnownWeights", {weights.place});
  RequireLikeWeights(weights, weights, "KnownWeights", "weights");
  const size_t cols = weights.cols;
  const ElementGroups groups(HasScope(rule.kind) ? rule.scope : ScaleLayout{}, weights.rows, cols);
  RequireState(rule, state, weights, groups.Count(), "KnownWeights");
  std::vector<double> known(weights.Elements());
  const float* const compensation = state.values.View().data;
  ForEachBlock(known.size(), [&](size_t begin, size_t count) {
    LoadWeights(rule, cols, weights.data, state, {begin, count}, known.data() + begin);
    if (rule.kind != UpdateKind::kKahan) return;
    for (size_t i = begin; i < begin + count; ++i) known[i] += static_cast<double>(compensation[i]);
  });
  return known;
}

}  // namespace numsim
