// The weights as precisely as a rule knows them, and weight decay based on them.
#include <array>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/updates/internal/require_state.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

// Returns a + b + c rounded once: the errors of both additions are added with rounding to odd.
// [Boldo]
double RoundedSum(double a, double b, double c) {
  const SumAndError small = SumExactly(b, c);
  const SumAndError all = SumExactly(a, small.sum);
  return all.sum + OddSum(all.error, small.error);
}

// Returns the compensation of the weights, or null for rules without.
const float* CompensationOf(const UpdateMethod& method, const UpdateState& state) {
  return method.traits.compensates ? state.values.View().data : nullptr;
}

}  // namespace

void DecayedUpdate(const UpdateRule& rule,
                   const WeightUpdate& step,
                   const UpdateState& state,
                   std::span<float> decayed) {
  const double decay = static_cast<double>(step.weight_decay);
  const UpdateMethod& method = MethodOf(rule.kind);
  const float* const compensation = CompensationOf(method, state);
  ForEachBlock(decayed.size(), [&](size_t begin, size_t count) {
    std::array<double, kSumBlock> weights{};
    method.LoadWeights({rule, step.weights, state}, {begin, count}, weights.data());
    for (size_t i = 0; i < count; ++i) {
      const double u = static_cast<double>(step.update.data[begin + i]);
      const double pull = decay * weights[i];  // exact
      const double sum =
          compensation != nullptr
              ? RoundedSum(u, -pull, -decay * static_cast<double>(compensation[begin + i]))
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
  const ElementGroups groups(ScopeOf(rule), weights.rows, weights.cols);
  RequireState(rule, state, weights, groups.Count(), "KnownWeights");
  const UpdateMethod& method = MethodOf(rule.kind);
  const float* const compensation = CompensationOf(method, state);
  std::vector<double> known(weights.Elements());
  ForEachBlock(known.size(), [&](size_t begin, size_t count) {
    method.LoadWeights({rule, weights, state}, {begin, count}, known.data() + begin);
    if (compensation == nullptr) return;
    for (size_t i = begin; i < begin + count; ++i) known[i] += static_cast<double>(compensation[i]);
  });
  return known;
}

}  // namespace numsim
