#include "numsim/analysis/precision_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/analysis/internal/ranking_candidates.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/stats/error_measures.h"

namespace numsim {
namespace {

constexpr Keyword<RankBy> kRankBys[] = {
    {"layer", RankBy::kLayer},
    {"tensor", RankBy::kTensor},
    {"operand", RankBy::kOperand},
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns ||g - r|| / ||r|| from the sums; infinite if g is not finite, or if r is zero and g is
// not.
double Relative(const ErrorMeasures& sums) {
  if (sums.overflow > 0) return kInfinity;
  return sums.error_square == 0 ? 0 : std::sqrt(sums.error_square / sums.signal_square);
}

// Errors of gradients relative to the reference gradients.
class GradientErrors {
 public:
  GradientErrors(const StepGradients<float>& reference, const StepGradients<float>& gradients) {
    for (size_t i = 0; i < reference.gradients.size(); ++i) {
      const NamedGradient<float>& one = gradients.gradients[i];
      const ErrorMeasures sums = MeasureError(reference.gradients[i].values, one.values, kInfinity);
      all_.Merge(sums);
      if (!worst_parameter_.empty() && !(Relative(sums) > worst_)) continue;
      worst_parameter_ = one.name;
      worst_ = Relative(sums);
    }
  }

  double All() const { return Relative(all_); }
  const std::string& worst_parameter() const { return worst_parameter_; }
  double worst() const { return worst_; }

 private:
  ErrorMeasures all_;
  std::string worst_parameter_;
  double worst_ = 0;
};

// Returns the fraction of the squared error removed when `error` becomes `without`.
double Effect(double error, double without) {
  if (std::isinf(error)) return std::isinf(without) ? 0 : 1;
  if (error == 0) return 0;
  const double ratio = without / error;
  return 1 - ratio * ratio;
}

bool IsFinite(const StepGradients<float>& gradients) {
  const auto is_finite = [](float value) { return std::isfinite(value); };
  return std::all_of(gradients.gradients.begin(), gradients.gradients.end(), [&](const auto& one) {
    return std::all_of(one.values.begin(), one.values.end(), is_finite);
  });
}

// Orders by descending effect, then by descending error_alone. std::stable_sort keeps the model's
// order of equal tensors.
bool ComesBefore(const RankedTensor& a, const RankedTensor& b) {
  if (a.effect != b.effect) return a.effect > b.effect;
  return a.error_alone > b.error_alone;
}

}  // namespace

RankBy ParseRankBy(std::string_view text) { return ParseKeyword(kRankBys, "rank", text); }
std::string_view ToString(RankBy by) { return KeywordToString(kRankBys, by); }

PrecisionRanking RankPrecision(const Trainer& trainer,
                               RankBy by,
                               const std::function<void(size_t, size_t)>& progress) {
  const StepReplay replay(trainer);
  const StepGradients<float> reference = replay.Run<float>(Float32Precision());
  if (!IsFinite(reference)) {
    throw Error::Format(
        "step {}: the gradient is not finite even in float32, so tensors cannot be ranked",
        replay.step());
  }
  const auto error_of = [&](const ReplayPrecision& precision) {
    return GradientErrors(reference, replay.Run<float>(precision)).All();
  };
  PassRecord record;
  const StepGradients<float> configured = replay.Run(PrecisionOf(replay.config()), &record);
  const GradientErrors errors(reference, configured);
  RankingCandidates tried = MakeRankingCandidates(replay.config(), trainer.model(), record, by);

  PrecisionRanking ranking;
  ranking.by = by;
  ranking.step = replay.step();
  ranking.loss = configured.loss.Mean();
  ranking.float32_loss = reference.loss.Mean();
  ranking.error = errors.All();
  ranking.error_high = error_of(tried.high);
  ranking.worst_parameter = errors.worst_parameter();
  ranking.worst_error = errors.worst();
  const size_t passes = 2 * tried.candidates.size();
  const auto report = [&](size_t done) {
    if (progress) progress(done, passes);
  };
  for (RankingCandidate& candidate : tried.candidates) {
    RankedTensor& tensor = candidate.tensor;
    tensor.error_without = error_of(candidate.without);
    tensor.effect = Effect(ranking.error, tensor.error_without);
    report(2 * ranking.tensors.size() + 1);
    tensor.error_alone = error_of(candidate.alone);
    ranking.tensors.push_back(std::move(tensor));
    report(2 * ranking.tensors.size());
  }
  std::stable_sort(ranking.tensors.begin(), ranking.tensors.end(), ComesBefore);
  return ranking;
}

}  // namespace numsim
