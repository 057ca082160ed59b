#include "numsim/optim/weight_update.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/kernels/cast_serial.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

constexpr Keyword<UpdateRule> kRules[] = {
    {"naive", UpdateRule::kNaive},
    {"stochastic", UpdateRule::kStochastic},
    {"binary-search", UpdateRule::kBinarySearch},
};

constexpr Keyword<UpdateStatus> kStatuses[] = {
    {"ok", UpdateStatus::kOk},
    {"unchanged", UpdateStatus::kUnchanged},
    {"not-converged", UpdateStatus::kNotConverged},
    {"zero-update", UpdateStatus::kZeroUpdate},
    {"nonfinite", UpdateStatus::kNonfinite},
};

// The unit of summation, and small enough that a block's buffers stay in the first-level cache.
constexpr size_t kBlock = 4096;
constexpr size_t kGrain = 8;  // blocks worth a thread's while

// Calls body(block, begin, count) for every block of n elements, on all threads.
template <typename Body>
void ForEachBlock(size_t n, const Body& body) {
  ParallelFor((n + kBlock - 1) / kBlock, kGrain, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) body(b, b * kBlock, std::min(kBlock, n - b * kBlock));
  });
}

// The sum over blocks of body(begin, count), in their order.
template <typename Body>
double SumOverBlocks(size_t n, const Body& body) {
  std::vector<double> sums((n + kBlock - 1) / kBlock);
  ForEachBlock(n,
               [&](size_t block, size_t begin, size_t count) { sums[block] = body(begin, count); });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double SquaredSumOfBlock(const float* x, size_t n) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> lanes = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = static_cast<double>(x[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (size_t lane = 0; i < n; ++i, ++lane) {
    const double value = static_cast<double>(x[i]);
    lanes[lane] += value * value;
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

// new_params = Q(fl32(params + fl32(factor update))) for `count` elements from `begin`.
void AddScaled(const EncodePlan& plan,
               const WeightUpdate& weights,
               float factor,
               size_t begin,
               size_t count,
               float* new_params) {
  const float* const params = weights.params.data() + begin;
  const float* const update = weights.update.data() + begin;
  float* const out = new_params + begin;
  for (size_t i = 0; i < count; ++i) out[i] = params[i] + factor * update[i];
  FakeQuantizeSerial(plan, out, count, out, {});
}

UpdateOutcome ApplyNaive(const WeightUpdate& weights,
                         const UpdateSettings&,
                         std::span<float> new_params) {
  const EncodePlan plan = MakeEncodePlan(weights.format);
  const float factor = static_cast<float>(weights.learning_rate);
  ForEachBlock(new_params.size(), [&](size_t, size_t begin, size_t count) {
    AddScaled(plan, weights, factor, begin, count, new_params.data());
  });
  return {};
}

UpdateOutcome ApplyStochastic(const WeightUpdate& weights,
                              const UpdateSettings& settings,
                              std::span<float> new_params) {
  const EncodePlan plan = MakeEncodePlan(
      weights.format, {RoundingMode::kStochastic, StochasticVariant::kA, settings.random_bits});
  const ArrayRandom& random = settings.random;
  ForEachBlock(new_params.size(), [&](size_t, size_t begin, size_t count) {
    std::array<uint32_t, kBlock> words;
    RandomBitsArray({random.stream, random.first_index + begin},
                    settings.random_bits,
                    std::span(words).first(count));
    for (size_t i = 0; i < count; ++i) {
      const double sum = static_cast<double>(weights.params[begin + i]) +
                         weights.learning_rate * static_cast<double>(weights.update[begin + i]);
      const uint32_t code = EncodeF64(plan, std::bit_cast<uint64_t>(sum), words[i]);
      new_params[begin + i] = Decode(weights.format, code);
    }
  });
  return {};
}

// One candidate of the search: fills new_params and returns `actual`.
double TryAlpha(const EncodePlan& plan,
                const WeightUpdate& weights,
                float alpha,
                std::span<float> new_params) {
  return SumOverBlocks(new_params.size(), [&](size_t begin, size_t count) {
    AddScaled(plan, weights, alpha, begin, count, new_params.data());
    std::array<float, kBlock> step;
    for (size_t i = 0; i < count; ++i) step[i] = new_params[begin + i] - weights.params[begin + i];
    FakeQuantizeSerial(plan, step.data(), count, step.data(), {});
    return SquaredSumOfBlock(step.data(), count);
  });
}

UpdateOutcome ApplyBinarySearch(const WeightUpdate& weights,
                                const UpdateSettings& settings,
                                std::span<float> new_params) {
  NUMSIM_CHECK(settings.iterations >= 1, "{} iterations", settings.iterations);
  const EncodePlan plan = MakeEncodePlan(weights.format);
  UpdateOutcome outcome;
  outcome.status = UpdateStatus::kNotConverged;
  outcome.target = weights.learning_rate * SquaredSum(weights.update);
  float low = 0, high = 1;
  while (outcome.iterations < settings.iterations) {
    ++outcome.iterations;
    outcome.alpha = (low + high) / 2;
    outcome.achieved = TryAlpha(plan, weights, outcome.alpha, new_params);
    const double error = std::abs(outcome.achieved - outcome.target) / outcome.target;
    if (error < settings.tolerance) {
      outcome.status = UpdateStatus::kOk;
      break;
    }
    // A NaN counts as too large a step, as the source's `where` has it.
    if (outcome.achieved < outcome.target) {
      low = outcome.alpha;
    } else {
      high = outcome.alpha;
    }
  }
  return outcome;
}

using Rule = UpdateOutcome (*)(const WeightUpdate&, const UpdateSettings&, std::span<float>);

Rule RuleFunction(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::kNaive:
      return ApplyNaive;
    case UpdateRule::kStochastic:
      return ApplyStochastic;
    case UpdateRule::kBinarySearch:
      return ApplyBinarySearch;
  }
  NUMSIM_CHECK(false, "rule {}", static_cast<int>(rule));
  return nullptr;
}

// The status that follows from the arrays alone.
UpdateStatus StatusOfArrays(const WeightUpdate& weights, std::span<const float> new_params) {
  struct Seen {
    bool nonfinite = false, wanted = false, moved = false;
  };
  const size_t n = new_params.size();
  std::vector<Seen> blocks((n + kBlock - 1) / kBlock);
  ForEachBlock(n, [&](size_t block, size_t begin, size_t count) {
    Seen seen;
    for (size_t i = begin; i < begin + count; ++i) {
      const float before = weights.params[i], update = weights.update[i], after = new_params[i];
      seen.nonfinite |= !std::isfinite(before) || !std::isfinite(update) || !std::isfinite(after);
      seen.wanted |= update != 0;
      seen.moved |= after != before;
    }
    blocks[block] = seen;
  });
  Seen all;
  for (const Seen& seen : blocks) {
    all.nonfinite |= seen.nonfinite;
    all.wanted |= seen.wanted;
    all.moved |= seen.moved;
  }
  if (all.nonfinite) return UpdateStatus::kNonfinite;
  if (!all.wanted || weights.learning_rate == 0) return UpdateStatus::kZeroUpdate;
  return all.moved ? UpdateStatus::kOk : UpdateStatus::kUnchanged;
}

}  // namespace

std::string_view Name(UpdateRule rule) { return KeywordText(kRules, rule); }

std::string_view Name(UpdateStatus status) { return KeywordText(kStatuses, status); }

UpdateRule ParseUpdateRule(std::string_view text) {
  return ParseKeyword(kRules, "update rule", text);
}

UpdateOutcome ApplyUpdate(UpdateRule rule,
                          const WeightUpdate& weights,
                          const UpdateSettings& settings,
                          std::span<float> new_params) {
  NUMSIM_CHECK(
      weights.params.size() == weights.update.size() && weights.params.size() == new_params.size(),
      "{} parameters, {} updates, {} new parameters",
      weights.params.size(),
      weights.update.size(),
      new_params.size());
  NUMSIM_CHECK(std::isfinite(weights.learning_rate) && weights.learning_rate >= 0,
               "learning rate {}",
               weights.learning_rate);
  UpdateOutcome outcome = RuleFunction(rule)(weights, settings, new_params);
  outcome.status = std::max(outcome.status, StatusOfArrays(weights, new_params));
  return outcome;
}

double SquaredSum(std::span<const float> x) {
  return SumOverBlocks(x.size(), [&](size_t begin, size_t count) {
    return SquaredSumOfBlock(x.data() + begin, count);
  });
}

}  // namespace numsim
