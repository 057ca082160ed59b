#include "tests/reference/updates/matched_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "numsim/random/streams.h"
#include "tests/reference/arithmetic.h"
#include "tests/reference/exact_step.h"

namespace numsim {
namespace {

constexpr uint32_t kLargestBits = 0x7F7FFFFF;

double Target(const MatchedProblem& problem) {
  const auto lr = static_cast<double>(problem.learning_rate);
  return (problem.quantity == MatchedQuantity::kNorm ? lr * lr : lr) * problem.update_square;
}

}  // namespace

MatchedDefinition::MatchedDefinition(const MatchedProblem& problem, RoundAll round_all)
    : problem_(problem),
      round_all_(std::move(round_all)),
      target_(Target(problem)),
      unit_exponent_(std::ilogb(target_) - 50) {}

double MatchedDefinition::TermOf(size_t i, float new_weight) const {
  const double d = static_cast<double>(new_weight) - static_cast<double>(problem_.weights[i]);
  return d * (problem_.quantity == MatchedQuantity::kNorm
                  ? d
                  : static_cast<double>(problem_.update[i]));
}

// From 2^53 units on a float64 is an integer anyway.
double MatchedDefinition::UnitsOf(size_t i, float new_weight) const {
  const double units = std::ldexp(TermOf(i, new_weight), -unit_exponent_);
  return units < 0x1p53 ? std::nearbyint(units) : units;
}

double MatchedDefinition::SumOf(const std::vector<float>& new_weights) const {
  double units = 0;
  for (size_t i = 0; i < new_weights.size(); ++i) units += UnitsOf(i, new_weights[i]);
  return units;
}

double MatchedDefinition::MatchedOf(double units) const {
  const double sum = std::ldexp(units, unit_exponent_);
  return problem_.quantity == MatchedQuantity::kNorm ? std::sqrt(sum) : sum;
}

bool MatchedDefinition::Reaches(float alpha) const {
  return std::ldexp(SumOf(round_all_(alpha)), unit_exponent_) >= target_;
}

float MatchedDefinition::LeastAlpha() const {
  uint32_t below = 0, reaches = kLargestBits;
  if (!Reaches(std::bit_cast<float>(reaches))) return 0;
  while (reaches - below > 1) {
    const uint32_t middle = below + (reaches - below) / 2;
    (Reaches(std::bit_cast<float>(middle)) ? reaches : below) = middle;
  }
  return std::bit_cast<float>(reaches);
}

bool MatchedDefinition::MovesTheLast(double term) const {
  if (problem_.small_step == SmallStep::kNone) return false;
  const RandomStream stream = {problem_.random.seed, problem_.random.stream + (uint64_t{1} << 63)};
  const double word = RandomWord(stream, problem_.first_index);
  const double p = problem_.quantity == MatchedQuantity::kNorm
                       ? std::sqrt(target_) / std::sqrt(term)  // sqrt(d d) is |d|
                       : target_ / term;
  return (word + 0.5) * 0x1p-32 < p;
}

MatchedResult MatchedDefinition::OutOfReach() const {
  MatchedResult result;
  result.step.status = UpdateStatus::kSaturated;
  result.step.target = problem_.quantity == MatchedQuantity::kNorm ? std::sqrt(target_) : target_;
  result.weights.assign(problem_.weights.begin(), problem_.weights.end());
  return result;
}

// The weights that differ, in the order in which they change.
std::vector<size_t> MatchedDefinition::Group(const std::vector<float>& below,
                                             const std::vector<float>& at) const {
  std::vector<size_t> group;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] != below[i]) group.push_back(i);
  }
  const auto word = [this](size_t i) {
    return RandomWord(problem_.random, problem_.first_index + i);
  };
  std::stable_sort(
      group.begin(), group.end(), [&word](size_t a, size_t b) { return word(a) < word(b); });
  return group;
}

double MatchedDefinition::Jump(size_t i, float from, float to) const {
  const double jump = std::abs(static_cast<double>(to) - static_cast<double>(from));
  if (problem_.quantity == MatchedQuantity::kNorm) return jump;
  return jump * std::abs(static_cast<double>(problem_.update[i]));
}

MatchedResult MatchedDefinition::StepAt(float alpha) const {
  MatchedResult result = OutOfReach();
  result.step.alpha = alpha;
  const std::vector<float> at = round_all_(alpha);
  const std::vector<float> below =
      round_all_(std::bit_cast<float>(std::bit_cast<uint32_t>(alpha) - 1));
  const std::vector<size_t> group = Group(below, at);
  result.group = group.size();
  double sum = SumOf(below);
  result.matched_below = MatchedOf(sum);
  result.matched_at = MatchedOf(SumOf(at));
  result.weights = at;
  for (const size_t i : group) {
    result.weights[i] = below[i];
    result.greatest_jump = std::max(result.greatest_jump, Jump(i, below[i], at[i]));
  }
  bool more = true;
  for (size_t k = 0; k < group.size() && more; ++k) {
    const size_t i = group[k];
    const double next = sum - UnitsOf(i, below[i]) + UnitsOf(i, at[i]);
    bool changes = true;
    if (std::ldexp(next, unit_exponent_) >= target_) {
      more = false;
      const bool small = sum == 0 && std::ldexp(next, unit_exponent_) > target_;
      result.step.status = small ? UpdateStatus::kBelowMinStep : UpdateStatus::kOk;
      changes = small ? MovesTheLast(TermOf(i, at[i]))
                      : result.step.target - MatchedOf(sum) > MatchedOf(next) - result.step.target;
    }
    if (!changes) break;
    sum = next;
    result.weights[i] = at[i];
    ++result.changed;
  }
  result.step.matched = MatchedOf(sum);
  return result;
}

MatchedResult MatchedDefinition::Step() const {
  const float alpha = LeastAlpha();
  return alpha == 0 ? OutOfReach() : StepAt(alpha);
}

MatchedDefinition::RoundAll RoundAllByOracle(const MatchedProblem& problem,
                                             const oracle::Grid& grid) {
  const oracle::Setting setting = {.mode = oracle::Mode::kNearestEven,
                                   .policy = oracle::Policy::kSaturate};
  return [&grid, setting, problem](float alpha) {
    std::vector<float> rounded;
    for (size_t i = 0; i < problem.weights.size(); ++i) {
      const oracle::ExactNumber sum = ExactStep(problem.weights[i], alpha, problem.update[i]);
      const oracle::Placement place(grid, sum, oracle::Modes::kDeterministic);
      const auto outcome = place.Round(setting, oracle::Tininess::kAfterRounding);
      rounded.push_back(ValueOf(grid, outcome.code));
    }
    return rounded;
  };
}

}  // namespace numsim
