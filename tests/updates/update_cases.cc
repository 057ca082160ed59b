#include "tests/updates/update_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <utility>

#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "tests/reference/inputs.h"
#include "tests/reference/updates/update_exact.h"
#include "tests/support/every_backend.h"

namespace update_cases {
namespace {

using numsim::UpdateOutcome;
using oracle::TestRandom;
using update_reference::Exact;
using update_reference::Result;
using update_reference::Storage;
using update_reference::StorageOf;

constexpr double kSumError = 1e-12;  // far above that of float64 sums of the lengths used here

// Uniform on [0, 1).
double Fraction(TestRandom& random) {
  return std::ldexp(static_cast<double>(random.Next32()), -32);
}

float Finite(double x) {
  return static_cast<float>(std::clamp(x, -0x1.fffffep127, 0x1.fffffep127));
}

// The wanted step of a weight whose magnitude stands at that position.
double HardStep(const Storage& storage, int64_t position, TestRandom& random) {
  const double value = storage.grid().Value(position);
  const double gap = storage.grid().Value(position + 1) - value;
  switch (random.Below(9)) {
    case 0:
      return gap / 2;  // away from zero a tie
    case 1:
      return position > 0 ? -(value - storage.grid().Value(position - 1)) / 2 : gap / 2;
    case 2:
      return gap * (static_cast<double>(random.Below(16)) - 8) / 4;
    case 3:
      return gap * (4 * Fraction(random) - 2);
    case 4:
      return std::ldexp(gap * (Fraction(random) - 0.5), -static_cast<int>(random.Below(60)));
    case 5:
      return 0;
    case 6:
      return -1.5 * value * Fraction(random);
    case 7:
      return storage.MaxFinite() * (3 * Fraction(random) - 1.5);
    default:
      return std::ldexp(Fraction(random) - 0.5, -static_cast<int>(random.Below(150)));
  }
}

bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

bool SameBits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

void ExpectClose(double actual, double expected, double error, const char* field) {
  if (!std::isfinite(expected)) {
    EXPECT_FALSE(std::isfinite(actual)) << field;
  } else {
    EXPECT_NEAR(actual, expected, error) << field;
  }
}

bool MovesNothing(numsim::UpdateStatus status, uint64_t moved) {
  return moved == 0 && (status == numsim::UpdateStatus::kNonfinite ||
                        status == numsim::UpdateStatus::kZeroUpdate);
}

Result ApplyOnce(const Case& c, bool in_place) {
  Result result{std::vector<float>(c.arrays.weights.size()), {}, {}, {}};
  numsim::WeightUpdate step = StepOf(c);
  if (in_place) result.weights = c.arrays.weights;
  const numsim::MatrixSpan<float> moved = numsim::HostMatrix(result.weights, c.Shape());
  if (in_place) step.weights = moved;
  numsim::UpdateState state = ToUpdateState(c.state, c.Shape());
  result.outcome = numsim::ApplyUpdate(c.rule, step, c.random, state, moved, &result.groups);
  result.state = FromUpdateState(state);
  return result;
}

}  // namespace

const std::vector<std::string>& SignedFormats() {
  static const std::vector<std::string> formats = {"e4m3fn",
                                                   "e5m2",
                                                   "fp16",
                                                   "bf16",
                                                   "fp32",
                                                   "tf32",
                                                   "e2m1fn",
                                                   "e3m2fn",
                                                   "int8",
                                                   "e4m3fnuz",
                                                   "e5m2fnuz",
                                                   "bnb-e4m3",
                                                   "bnb-e5m2",
                                                   "binary8p3se",
                                                   "binary8p1sf",
                                                   "e4m3:bias=147",
                                                   "e1m6",
                                                   "e3m14:bias=40",
                                                   "e8m3:bias=146",
                                                   "e4m3:nan=all-ones,inf=top",
                                                   "e2m0:inf=none,nan=none"};
  return formats;
}

Arrays DrawHard(std::string_view format, float learning_rate, size_t n, uint64_t seed) {
  const Storage& storage = StorageOf(format);
  const int64_t end = storage.grid().end();
  TestRandom random(seed);
  Arrays arrays;
  for (size_t i = 0; i < n; ++i) {
    const auto any = static_cast<int64_t>(random.Below(static_cast<uint64_t>(end)));
    const int64_t ends[] = {0, 1, end - 1, end - 2};
    const int64_t position = random.Below(8) == 0 ? std::max<int64_t>(0, ends[i % 4]) : any;
    const double sign = random.Below(2) == 0 ? -1 : 1;
    const float weight = static_cast<float>(sign) * storage.Magnitude(position);
    arrays.weights.push_back(storage.Nearest(Exact(weight)));  // no -0 where there is none
    arrays.update.push_back(
        Finite(sign * HardStep(storage, position, random) / static_cast<double>(learning_rate)));
  }
  return arrays;
}

Arrays DrawNormal(std::string_view format, size_t n, uint64_t seed) {
  Arrays arrays{std::vector<float>(n), std::vector<float>(n)};
  numsim::FillNormal({seed, 0}, 0, arrays.weights);
  numsim::FillNormal({seed, 1}, 0, arrays.update);
  const Storage& storage = StorageOf(format);
  for (float& w : arrays.weights) w = storage.Nearest(Exact(w));
  return arrays;
}

Case MakeCase(std::string_view format,
              const numsim::UpdateRule& rule,
              Arrays arrays,
              float learning_rate) {
  const size_t n = arrays.weights.size();
  Case c;
  c.format = format;
  c.rule = rule;
  c.arrays = std::move(arrays);
  c.cols = n;
  c.learning_rate = learning_rate;
  Restart(c);
  return c;
}

Case MakeCase(std::string_view format, std::string_view rule, Arrays arrays, float learning_rate) {
  return MakeCase(format, numsim::ParseUpdateRule(rule), std::move(arrays), learning_rate);
}

void Restart(Case& c) {
  std::vector<float> weights(c.arrays.weights.size());
  c.state = Start(c.rule, numsim::ParseFormat(c.format).spec, c.Shape(), c.arrays.weights, weights);
}

Case WithHistory(std::string_view rule, size_t n) {
  Case c = MakeCase("bf16", rule, DrawNormal("bf16", n, 71), 0.003f);
  for (int k = 0; k < 3; ++k) {
    Result result = Apply(c);
    c.arrays.weights = std::move(result.weights);
    c.state = std::move(result.state);
    ++c.random.stream;
  }
  return c;
}

numsim::WeightUpdate StepOf(const Case& c) {
  return {numsim::ParseFormat(c.format).spec,
          numsim::HostMatrix(c.arrays.weights, c.Shape()),
          numsim::HostMatrix(c.arrays.update, c.Shape()),
          c.learning_rate,
          c.weight_decay};
}

numsim::UpdateState ToUpdateState(const update_reference::State& state,
                                  numsim::MatrixShape shape,
                                  numsim::Place place) {
  const auto buffer = [&](const auto& values) {
    const bool whole = values.size() == shape.Elements();
    const numsim::MatrixShape held = whole ? shape : numsim::MatrixShape{1, values.size()};
    return numsim::CopyAt(numsim::HostMatrix(values, held), place);
  };
  return {buffer(state.values), buffer(state.words), buffer(state.scales)};
}

update_reference::State FromUpdateState(const numsim::UpdateState& state) {
  const numsim::UpdateState here = state.CopiedTo({});
  const auto values = here.values.Span(), scales = here.scales.Span();
  const auto words = here.words.Span();
  return {
      {values.begin(), values.end()}, {words.begin(), words.end()}, {scales.begin(), scales.end()}};
}

update_reference::State Start(const numsim::UpdateRule& rule,
                              const numsim::FormatSpec& format,
                              numsim::MatrixShape shape,
                              const std::vector<float>& initial,
                              std::vector<float>& weights) {
  return FromUpdateState(numsim::StartUpdates(
      rule, format, numsim::HostMatrix(initial, shape), numsim::HostMatrix(weights, shape)));
}

Result Apply(const Case& c) { return ApplyOnce(c, false); }

Result ApplyInPlace(const Case& c) { return ApplyOnce(c, true); }

Result Expected(const Case& c) {
  return update_reference::TakeStep(c.rule, c.format, StepOf(c), c.random, c.state);
}

void ExpectSameBits(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(SameBits(actual[i], expected[i]))
        << "element " << i << ": " << testing::PrintToString(actual[i]) << ", expected "
        << testing::PrintToString(expected[i]);
  }
}

void ExpectSameState(const update_reference::State& actual,
                     const update_reference::State& expected) {
  ExpectSameBits(actual.values, expected.values);
  ExpectSameBits(actual.scales, expected.scales);
  EXPECT_EQ(actual.words, expected.words);
}

void ExpectSameOutcome(const UpdateOutcome& actual, const UpdateOutcome& expected) {
  EXPECT_EQ(ToString(actual.status), ToString(expected.status));
  EXPECT_EQ(actual.moved, expected.moved);
  // Where nothing was tried, no sum is promised.
  if (MovesNothing(expected.status, expected.moved)) return;
  EXPECT_EQ(actual.saturated, expected.saturated);
  EXPECT_EQ(actual.passes, expected.passes);
  EXPECT_TRUE(SameBits(actual.alpha, expected.alpha)) << actual.alpha << " " << expected.alpha;
  const auto relative = [&](double actual_sum, double sum, const char* field) {
    ExpectClose(actual_sum, sum, kSumError * std::fabs(sum), field);
  };
  relative(actual.achieved_norm, expected.achieved_norm, "achieved_norm");
  relative(actual.target_norm, expected.target_norm, "target_norm");
  relative(actual.target_projection, expected.target_projection, "target_projection");
  relative(actual.matched, expected.matched, "matched");
  relative(actual.matched_target, expected.matched_target, "matched_target");
  // Its terms have both signs; together they are at most ||w' - w|| ||u||.
  const double update_norm =
      expected.target_norm == 0 ? 0 : expected.target_projection / expected.target_norm;
  ExpectClose(actual.achieved_projection,
              expected.achieved_projection,
              kSumError * expected.achieved_norm * update_norm,
              "achieved_projection");
}

void ExpectIdenticalOutcome(const UpdateOutcome& a, const UpdateOutcome& b) {
  EXPECT_EQ(ToString(a.status), ToString(b.status));
  EXPECT_EQ(a.moved, b.moved);
  EXPECT_EQ(a.saturated, b.saturated);
  EXPECT_EQ(a.passes, b.passes);
  EXPECT_TRUE(SameBits(a.achieved_norm, b.achieved_norm));
  EXPECT_TRUE(SameBits(a.target_norm, b.target_norm));
  EXPECT_TRUE(SameBits(a.achieved_projection, b.achieved_projection));
  EXPECT_TRUE(SameBits(a.target_projection, b.target_projection));
  EXPECT_TRUE(SameBits(a.alpha, b.alpha));
  EXPECT_TRUE(SameBits(a.matched, b.matched));
  EXPECT_TRUE(SameBits(a.matched_target, b.matched_target));
}

void ExpectSameResult(const Result& actual, const Result& expected) {
  ExpectSameBits(actual.weights, expected.weights);
  ExpectSameState(actual.state, expected.state);
  ExpectSameOutcome(actual.outcome, expected.outcome);
  ASSERT_EQ(actual.groups.size(), expected.groups.size());
  for (size_t k = 0; k < expected.groups.size(); ++k) {
    SCOPED_TRACE("group " + std::to_string(k));
    ExpectSameOutcome(actual.groups[k], expected.groups[k]);
  }
}

void ExpectAsDefined(const Case& c) {
  SCOPED_TRACE(c.format + " " + ToString(c.rule) + " lr " + std::to_string(c.learning_rate));
  const Result expected = Expected(c);
  numsim::WithEachBackend([&] {
    if (testing::Test::HasFailure()) return;
    ExpectSameResult(ApplyOnce(c, false), expected);
    const Result in_place = ApplyOnce(c, true);
    ExpectSameBits(in_place.weights, expected.weights);
    ExpectSameState(in_place.state, expected.state);
  });
}

void ExpectStepsAsDefined(Case c, int steps) {
  TestRandom random(c.random.seed);
  for (int k = 0; k < steps; ++k) {
    SCOPED_TRACE("step " + std::to_string(k));
    ExpectAsDefined(c);
    if (testing::Test::HasFailure()) return;
    const Result next = Expected(c);
    c.arrays.weights = next.weights;
    c.state = next.state;
    std::shuffle(c.arrays.update.begin(), c.arrays.update.end(), std::mt19937(random.Next32()));
    const float factor = std::ldexp(1.0f, static_cast<int>(random.Below(12)) - 8);
    for (float& u : c.arrays.update) u = Finite(-u * factor * (0.75 + Fraction(random)));
    ++c.random.stream;
  }
}

}  // namespace update_cases
