// The interface of optimisers: a rule that is not element-wise, with states of other shapes than
// its tensor, through the whole of Optimizer.
#include "numsim/optim/optimizer_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/optim/optimizer.h"
#include "numsim/optim/optimizer_kinds.h"
#include "tests/support/error_of.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using ::testing::StartsWith;

using optimizer_problem::Floats;
using optimizer_problem::OneMatrix;
using optimizer_problem::Problem;
using optimizer_problem::TensorShape;

constexpr float kKeep = 0.75f;

// The factored second moment of [AdaFactor]: v_ij = r_i c_j / mean(r), with r and c averages of the
// mean squares of rows and of columns. Counts its steps in a state that is no moment.
class FactoredRule : public OptimizerRule {
 public:
  FactoredRule(size_t rows, size_t cols) : rows_(rows), cols_(cols) {}

  std::vector<StateSpec> States() const override {
    return {{"v.rows", rows_, StateRole::kSecondMoment},
            {"v.cols", cols_, StateRole::kSecondMoment},
            {"taken", 1, StateRole::kOther}};
  }

  DirectionSums Step(const RuleStep& step) override {
    const std::span<float> r = step.states[0], c = step.states[1];
    Average(step, r, [&](size_t k) { return k / cols_; });
    Average(step, c, [&](size_t k) { return k % cols_; });
    step.states[2][0] += 1;
    step.store();
    float mean = 0;
    for (const float x : r) mean += x / static_cast<float>(rows_);
    for (size_t k = 0; k < step.direction.size(); ++k) {
      const float root = std::sqrt(r[k / cols_] * c[k % cols_] / mean);
      step.direction[k] = -step.factor * step.gradient.data[k] / root;
    }
    DirectionSums sums = SumsOf(step.direction);
    sums.ratio_square = sums.update_square;
    return sums;
  }

 private:
  // v = keep v + (1 - keep) mean(g^2), over the elements k with index(k) = i for v[i].
  template <typename Index>
  void Average(const RuleStep& step, std::span<float> v, const Index& index) const {
    const size_t n = step.gradient.Elements();
    const auto share = (1 - kKeep) * static_cast<float>(v.size()) / static_cast<float>(n);
    for (float& x : v) x *= kKeep;
    for (size_t k = 0; k < n; ++k) {
      const float g = step.factor * step.gradient.data[k];
      v[index(k)] += share * (g * g);
    }
  }

  size_t rows_, cols_;
};

std::unique_ptr<OptimizerRule> MakeFactored(const OptimizerConfig&,
                                            const Parameter<float>& parameter) {
  const In<float> value = parameter.value.View();
  return std::make_unique<FactoredRule>(value.rows, value.cols);
}

constexpr OptimizerKindRow kFactored = {.name = "factored", .make = MakeFactored};
constexpr size_t kRows = 40, kCols = 200;

OptimizerConfig Factored(const char* v) {
  OptimizerConfig config;
  config.kind = {&kFactored};
  config.v = ParseMomentFormat(v);
  return config;
}

std::vector<TensorShape> Matrix() { return {{"w", ParameterRole::kMatrix, kRows, kCols}}; }

std::vector<std::string> NamesOf(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const NamedBytes& piece : optimizer.Save()) names.push_back(piece.name);
  return names;
}

TEST(OptimizerRule, AFactoredRuleFollowsItsFormula) {
  OptimizerConfig config = Factored("fp32");
  config.weight_decay = 0;
  Problem problem(config, Matrix());
  std::vector<double> r(kRows), c(kCols);
  const double keep = static_cast<double>(kKeep);
  for (uint64_t step = 0; step < 4; ++step) {
    problem.DrawGradients(step);
    const Floats before = problem.WeightValues();
    std::vector<double> square_r(kRows), square_c(kCols);
    for (size_t k = 0; k < before.size(); ++k) {
      const auto g = static_cast<double>(problem.Gradient()[k]);
      square_r[k / kCols] += g * g / kCols;
      square_c[k % kCols] += g * g / kRows;
    }
    double mean = 0;
    for (size_t i = 0; i < kRows; ++i) {
      r[i] = keep * r[i] + (1 - keep) * square_r[i];
      mean += r[i] / kRows;
    }
    for (size_t j = 0; j < kCols; ++j) c[j] = keep * c[j] + (1 - keep) * square_c[j];
    const OptimizerStep& taken = problem.optimizer().Step(1e-2, step);
    double square = 0;
    for (size_t k = 0; k < before.size(); ++k) {
      const auto g = static_cast<double>(problem.Gradient()[k]);
      const double direction = -g / std::sqrt(r[k / kCols] * c[k % kCols] / mean);
      square += direction * direction;
      const double expected = static_cast<double>(before[k]) + 1e-2 * direction;
      ASSERT_NEAR(static_cast<double>(problem.Weights()[k]), expected, 1e-6) << step;
    }
    EXPECT_NEAR(taken.tensors[0].update_rms, std::sqrt(square / before.size()), 1e-5);
    EXPECT_EQ(taken.tensors[0].rms, taken.tensors[0].update_rms);
  }
}

TEST(OptimizerRule, StatesAreStoredAndCountedByTheirRoles) {
  Problem plain(Factored("fp32"), Matrix()), small(Factored("e4m3fn@tensor"), Matrix());
  const double n = kRows * kCols;
  EXPECT_EQ(plain.optimizer().StoredBytes().m, 0);
  EXPECT_EQ(plain.optimizer().StoredBytes().v, 4 * (kRows + kCols) / n);
  EXPECT_EQ(plain.optimizer().StoredBytes().other, 4 / n);
  EXPECT_EQ(small.optimizer().StoredBytes().v, (kRows + 4 + kCols + 4) / n);
  EXPECT_EQ(small.optimizer().StoredBytes().other, 4 / n);
  EXPECT_DOUBLE_EQ(small.optimizer().StoredBytes().Sum(), 4 + (kRows + 4 + kCols + 4 + 4) / n);
  EXPECT_EQ(
      NamesOf(small.optimizer()),
      (std::vector<std::string>{"w/steps", "w/v.rows", "w/v.cols", "w/taken", "loss_scaler"}));
  small.DrawGradients(0);
  const OptimizerStep& step = small.optimizer().Step(1e-3, 0, true);
  EXPECT_EQ(step.tensors[0].v.nonzero, kRows + kCols);
  EXPECT_GT(step.tensors[0].v.error_square, 0);
  EXPECT_EQ(step.tensors[0].m.nonzero, 0u);
}

// Saved after some steps, restored elsewhere, the steps that follow have the same bits.
TEST(OptimizerRule, ARestoredRuleContinuesBitForBit) {
  for (const char* const format : {"fp32", "bf16+sr", "e4m3fn@tensor+sr:8"}) {
    for (const bool from_stored : {false, true}) {
      OptimizerConfig config = Factored(format);
      config.update_from_stored = from_stored;
      Problem first(config, Matrix()), second(config, Matrix());
      for (uint64_t step = 0; step < 3; ++step) first.DrawnStep(1e-2, step);
      second.SetWeights(first.WeightValues());
      second.optimizer().Restore(first.optimizer().Save());
      for (uint64_t step = 3; step < 6; ++step) {
        first.DrawnStep(1e-2, step);
        second.DrawnStep(1e-2, step);
        ASSERT_TRUE(SameBits(first.Weights(), second.Weights())) << format << " step " << step;
      }
      const auto a = first.optimizer().Save(), b = second.optimizer().Save();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].bytes, b[i].bytes) << a[i].name;
    }
  }
}

TEST(OptimizerRule, StatesThatDoNotFitAreNamed) {
  Problem problem(Factored("fp32"), Matrix());
  std::vector<NamedBytes> state = problem.optimizer().Save();
  state[2].bytes.pop_back();
  EXPECT_THAT(ErrorOf([&] { problem.optimizer().Restore(state); }),
              StartsWith("optimiser state: 'w/v.cols': "));
}

// A rule whose direction is its states, all alike, to see what store() made of them.
class MirrorRule : public OptimizerRule {
 public:
  explicit MirrorRule(size_t size) : size_(size) {}

  std::vector<StateSpec> States() const override {
    std::vector<StateSpec> specs;
    for (const char* const name : {"a", "b", "c", "d"}) specs.push_back({name, size_});
    return specs;
  }

  DirectionSums Step(const RuleStep& step) override {
    for (const std::span<float> state : step.states) {
      for (size_t k = 0; k < size_; ++k) state[k] = step.gradient.data[k];
    }
    step.store();
    std::copy_n(step.states[3].data(), size_, step.direction.data());
    return SumsOf(step.direction);
  }

 private:
  size_t size_;
};

constexpr OptimizerKindRow kMirror = {
    .name = "mirror",
    .make = [](const OptimizerConfig&,
               const Parameter<float>& parameter) -> std::unique_ptr<OptimizerRule> {
      return std::make_unique<MirrorRule>(parameter.Elements());
    }};

// Weights that start at 0 and move by 1 times the direction.
Floats MirroredWeights(const OptimizerConfig& config, Problem& problem, size_t n) {
  EXPECT_EQ(config.kind, OptimizerKind{&kMirror});
  problem.SetWeights(Floats(n));
  problem.SetGradient(Floats(n, 1 + 0x1p-10f));
  problem.optimizer().Step(1, 0);
  return problem.WeightValues();
}

TEST(OptimizerRule, StoreGivesBackWhatComesFromStorageWhereAsked) {
  OptimizerConfig config;
  config.kind = {&kMirror};
  config.weight_decay = 0;
  config.m = ParseMomentFormat("bf16");
  for (const bool from_stored : {false, true}) {
    config.update_from_stored = from_stored;
    Problem problem(config, OneMatrix(8));
    EXPECT_EQ(MirroredWeights(config, problem, 8), Floats(8, from_stored ? 1 : 1 + 0x1p-10f));
  }
}

TEST(OptimizerRule, EachStateDrawsItsOwnRandomBits) {
  OptimizerConfig config;
  config.kind = {&kMirror};
  config.m = ParseMomentFormat("bf16+sr");
  Problem problem(config, OneMatrix(500));
  MirroredWeights(config, problem, 500);
  const std::vector<NamedBytes> state = problem.optimizer().Save();
  for (size_t i = 1; i <= 4; ++i) {
    for (size_t j = 1; j < i; ++j) EXPECT_NE(state[i].bytes, state[j].bytes) << i << " " << j;
  }
}

TEST(OptimizerRule, NamesOfStatesDiffer) {
  OptimizerConfig config;
  const OptimizerKindRow twice = {
      .make = [](const OptimizerConfig&,
                 const Parameter<float>&) -> std::unique_ptr<OptimizerRule> {
        class TwiceRule : public OptimizerRule {
          std::vector<StateSpec> States() const override { return {{"m", 1}, {"m", 1}}; }
          DirectionSums Step(const RuleStep&) override { return {}; }
        };
        return std::make_unique<TwiceRule>();
      }};
  config.kind = {&twice};
  EXPECT_EQ(ErrorOf([&] { Problem(config, OneMatrix(1)); }),
            "OptimizerRule::States: two states 'm', expected distinct names");
}

}  // namespace
}  // namespace numsim
