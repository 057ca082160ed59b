#include "tests/updates/matched_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "tests/reference/inputs.h"

namespace numsim {
namespace {

constexpr std::array kLearningRates = {
    1e-12f, 1e-9f, 6e-7f, 1e-5f, 1e-4f, 1e-3f, 0x1p-7f, 0.03f, 0.1f, 0.5f, 1.0f, 10.0f};

float ValueOfOrdinal(const FormatSpec& format,
                     uint32_t magnitude_code,
                     oracle::TestRandom& random) {
  const Dyadic value = MagnitudeValue(format, std::min(magnitude_code, format.MaxFiniteCode()));
  const float x = std::ldexp(static_cast<float>(value.significand), value.exponent);
  return format.IsSigned() && random.Below(2) == 1 ? -x : x;
}

uint32_t DrawCode(const FormatSpec& format, WeightKind kind, oracle::TestRandom& random) {
  const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random.Below(n)); };
  switch (kind) {
    case WeightKind::kZero:
      return 0;
    case WeightKind::kLargest:
      return format.MaxFiniteCode() - below(3) / 2;
    case WeightKind::kSubnormal:
      return below((uint32_t{1} << format.mantissa_bits) + 1);
    default:
      return below(format.MaxFiniteCode() + 1);
  }
}

std::vector<float> DrawWeights(const EncodePlan& plan,
                               WeightKind kind,
                               size_t n,
                               oracle::TestRandom& random) {
  std::vector<float> weights(n);
  if (kind == WeightKind::kNormal) {
    FillNormal({random.Next(), 0}, 0, weights);
    FakeQuantize(plan, weights, weights);
    return weights;
  }
  for (float& w : weights) {
    const WeightKind one =
        kind == WeightKind::kMixed ? static_cast<WeightKind>(random.Below(5)) : kind;
    w = ValueOfOrdinal(plan.format, DrawCode(plan.format, one, random), random);
  }
  if (kind == WeightKind::kAllEqual) std::fill(weights.begin(), weights.end(), weights[0]);
  return weights;
}

float DrawUpdate(UpdateShape shape, float normal, float weight, oracle::TestRandom& random) {
  switch (shape) {
    case UpdateShape::kNormal:
      return normal;
    case UpdateShape::kSigns:
      return normal < 0 ? -1.0f : 1.0f;
    case UpdateShape::kSameAsWeight:
      return weight;
    case UpdateShape::kHeavyTail:
      return normal * std::ldexp(1.0f, static_cast<int>(random.Below(30)) - 15);
    case UpdateShape::kMostlyZero:
      return random.Below(5) == 0 ? normal : random.Below(2) == 0 ? 0.0f : -0.0f;
    case UpdateShape::kTiny:
      return normal * 1e-30f;
    case UpdateShape::kHuge:
      return normal * 1e30f;
    case UpdateShape::kGaps:
      break;
  }
  const int exponent = weight == 0 ? -10 : std::ilogb(weight);
  const float gap = std::ldexp(1.0f, std::clamp(exponent - 3, -140, 120));
  return normal < 0 ? -gap : gap;
}

}  // namespace

EncodePlan MatchedPlan(const std::string& format) {
  return MakeEncodePlan(ParseFormat(format).spec, {}, Overflow::kSaturate);
}

std::vector<oracle::Format> SymmetricFormats() {
  std::vector<oracle::Format> formats;
  for (const oracle::Format& format : oracle::AllFormats()) {
    if (!format.lowest) formats.push_back(format);
  }
  return formats;
}

MatchedProblem MatchedCase::Problem() const {
  double square = 0;
  for (const float u : update) square += static_cast<double>(u) * static_cast<double>(u);
  return {.plan = &plan,
          .weights = weights,
          .update = update,
          .learning_rate = learning_rate,
          .update_square = square,
          .quantity = quantity,
          .small_step = small_step,
          .random = random,
          .first_index = first_index};
}

MatchedCase DrawCase(
    const std::string& format, WeightKind weights, UpdateShape update, size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  MatchedCase c;
  c.format = format;
  c.plan = MatchedPlan(format);
  c.weights = DrawWeights(c.plan, weights, n, random);
  std::vector<float> normals(n);
  FillNormal({random.Next(), 1}, 0, normals);
  for (size_t i = 0; i < n; ++i) {
    c.update.push_back(DrawUpdate(update, normals[i], c.weights[i], random));
  }
  const auto is_zero = [](float u) { return u == 0; };
  if (std::all_of(c.update.begin(), c.update.end(), is_zero)) c.update[random.Below(n)] = 0.7f;
  c.learning_rate = kLearningRates[random.Below(kLearningRates.size())];
  c.quantity = random.Below(2) == 0 ? MatchedQuantity::kNorm : MatchedQuantity::kProjection;
  c.small_step = random.Below(4) == 0 ? SmallStep::kNone : SmallStep::kOneAtRandom;
  c.random = {.seed = random.Next(), .stream = random.Next()};
  c.first_index = random.Below(3) == 0 ? 0 : random.Next() >> 20;
  return c;
}

void PrintTo(const MatchedCase& c, std::ostream* os) { *os << Describe(c); }

std::string Describe(const MatchedCase& c) {
  std::string text = fmt::format("{} {} {} lr {:a}, {} weights, seed {} stream {} first {}\n",
                                 c.format,
                                 c.quantity == MatchedQuantity::kNorm ? "norm" : "projection",
                                 c.small_step == SmallStep::kNone ? "none" : "one",
                                 c.learning_rate,
                                 c.weights.size(),
                                 c.random.seed,
                                 c.random.stream,
                                 c.first_index);
  for (size_t i = 0; i < std::min<size_t>(c.weights.size(), 12); ++i) {
    text += fmt::format("  {}: {:a} + alpha {:a}\n", i, c.weights[i], c.update[i]);
  }
  return text;
}

}  // namespace numsim
