// Update rule note-as-printed: the search of [Seed003], exactly as printed there.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

// Tries one candidate of the search of note-as-printed: writes new_weights and returns `actual`.
double TryAlpha(const EncodePlan& plan,
                std::span<const float> weights,
                std::span<const float> update,
                float alpha,
                std::span<float> new_weights) {
  return SumOverBlocks<double>(weights.size(), [&](size_t begin, size_t count) {
    const float* const w = weights.data() + begin;
    const float* const u = update.data() + begin;
    float* const out = new_weights.data() + begin;
    for (size_t i = 0; i < count; ++i) out[i] = w[i] + alpha * u[i];
    FakeQuantizeSerial(plan, out, count, out, {});
    std::array<float, kSumBlock> step{};
    for (size_t i = 0; i < count; ++i) step[i] = out[i] - w[i];
    FakeQuantizeSerial(plan, step.data(), count, step.data(), {});
    return SquaredSumOfBlock(step.data(), count);
  });
}

// Does the search.
UpdateOutcome SearchAsPrinted(const UpdateJob& job,
                              const UpdateGroup& group,
                              std::span<float> new_weights) {
  UpdateOutcome outcome;
  outcome.status = UpdateStatus::kNotConverged;
  outcome.matched_target = static_cast<double>(job.learning_rate) * group.update_square;
  float low = 0, high = 1;
  while (outcome.passes < job.rule->iterations) {
    ++outcome.passes;
    outcome.alpha = (low + high) / 2;
    outcome.matched = TryAlpha(job.own_plan,
                               group.range.Of(job.weights),
                               group.range.Of(job.update),
                               outcome.alpha,
                               new_weights);
    const double error = std::abs(outcome.matched - outcome.matched_target);
    if (error / outcome.matched_target < job.rule->tolerance) {
      outcome.status = UpdateStatus::kOk;
      break;
    }
    // A NaN counts as too large a step, as in the `where` of the source.
    if (outcome.matched < outcome.matched_target) {
      low = outcome.alpha;
    } else {
      high = outcome.alpha;
    }
  }
  return outcome;
}

class NoteAsPrinted final : public UpdateMethod {
 public:
  constexpr NoteAsPrinted()
      : UpdateMethod({.has_scope = true, .searches = true, .tells_if_nothing_moved = true}) {}

  void CheckOptions(const UpdateRule& rule) const override {
    NUMSIM_REQUIRE(rule.iterations >= 1,
                   "update rule {}: {} iterations, expected at least 1",
                   ToString(rule.kind),
                   rule.iterations);
  }

  EncodePlan OwnPlan(const UpdateRule&, const FormatSpec& format) const override {
    return MakeEncodePlan(format);
  }

  GroupResult StepGroup(const UpdateJob& job, const UpdateGroup& group) const override {
    const std::span<const float> before = group.range.Of(job.weights);
    const std::span<float> target = group.range.Of(job.new_weights);
    // Every candidate starts from the old weights.
    std::vector<float> apart(job.InPlace() ? before.size() : 0);
    const std::span<float> after = job.InPlace() ? std::span<float>(apart) : target;
    GroupResult result;
    result.outcome = SearchAsPrinted(job, group, after);
    result.sums = SumStep(before,
                          after,
                          group.range.Of(job.update),
                          result.outcome.alpha,
                          job.LimitAt(result.outcome.alpha));
    if (!std::isfinite(AbsmaxOfAll(after.data(), after.size())))
      result.outcome.status = UpdateStatus::kNonfinite;
    if (job.InPlace()) std::copy(apart.begin(), apart.end(), target.begin());
    return result;
  }
};

}  // namespace

const UpdateMethod& NoteAsPrintedMethod() {
  static constexpr NoteAsPrinted kMethod;
  return kMethod;
}

}  // namespace numsim
