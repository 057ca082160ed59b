#include "numsim/updates/internal/naive_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/updates/internal/update_method.h"
#include "numsim/updates/shared/decay_update.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

// True if no element of the decayed update or of the new weights can overflow. False for NaN.
bool StaysFinite(const Scan& scan, float learning_rate, float weight_decay) {
  constexpr double kLimit = 0x1p127;
  const auto weight = static_cast<double>(std::bit_cast<float>(scan.weights));
  const double update = static_cast<double>(std::bit_cast<float>(scan.update)) +
                        std::abs(static_cast<double>(weight_decay)) * weight;
  return update < kLimit && weight + static_cast<double>(learning_rate) * update < kLimit;
}

// True if the decayed update has a nonzero element. Cheap, because that is usually the first.
bool Moves(std::span<const float> update, float decay, std::span<const float> weights) {
  for (size_t i = 0; i < update.size(); ++i) {
    float decayed = 0;
    DecayUpdate(&update[i], &weights[i], 1, decay, &decayed);
    if (decayed != 0) return true;
  }
  return false;
}

struct NaiveSums {
  StepSums step;
  double update_square = 0;

  NaiveSums& operator+=(const NaiveSums& other) {
    step += other.step;
    update_square += other.update_square;
    return *this;
  }
};

// AddStep and StepBlock are separate functions because the compiler must not move their arithmetic
// out of the default floating-point environment.
void AddStep(const float* weights, const float* update, size_t n, float rate, float* after) {
  for (size_t i = 0; i < n; ++i) after[i] = weights[i] + rate * update[i];
}

NaiveSums StepBlock(const float* update, size_t n, float rate, float decay, float* weights) {
  alignas(64) std::array<float, kSumBlock> decayed, after;
  const float* moved = update;
  if (decay != 0) {
    DecayUpdate(update, weights, n, decay, decayed.data());
    moved = decayed.data();
  }
  AddStep(weights, moved, n, rate, after.data());
  const NaiveSums sums{StepSumsOfBlock(weights, after.data(), moved, n),
                       SquaredSumOfBlock(moved, n)};
  std::copy_n(after.data(), n, weights);
  return sums;
}

}  // namespace

std::optional<UpdateOutcome> TakeNaiveStep(std::span<const float> update,
                                           float learning_rate,
                                           float weight_decay,
                                           std::span<float> weights) {
  NUMSIM_CHECK(update.size() == weights.size(), "{} of {}", update.size(), weights.size());
  const DefaultFloatEnvironment environment;
  if (learning_rate == 0 || !Moves(update, weight_decay, weights) ||
      !StaysFinite(ScanArrays(weights, update), learning_rate, weight_decay)) {
    return std::nullopt;
  }
  const NaiveSums sums = SumOverBlocks<NaiveSums>(weights.size(), [&](size_t begin, size_t count) {
    return StepBlock(
        update.data() + begin, count, learning_rate, weight_decay, weights.data() + begin);
  });
  UpdateOutcome found;
  found.alpha = learning_rate;
  return CompleteOutcome(UpdateKind::kNaive, learning_rate, sums.step, sums.update_square, found);
}

}  // namespace numsim
