// The optimiser of a device, with its kernels run on the host: weights, states and results are those
// of Optimizer, bit for bit.
#include <gtest/gtest.h>

#include <memory>

#include "numsim/base/error.h"
#include "numsim/optim/internal/optimizer_at_place.h"
#include "numsim/optim/internal/optimizer_bare_element.h"
#include "tests/optim/optimizer_cases.h"
#include "tests/support/host_runner.h"

namespace numsim::optimizer_cases {
namespace {

// The optimiser on the host and that of kernels, with parameters of their own.
class Pair {
 public:
  explicit Pair(const OptimizerCase& of, bool reports = true) : of_(of), reports_(reports) {
    AddTensors(host_list_);
    AddTensors(list_);
    // Weights whose sign of zero matters, and one that is large.
    for (ParameterList<float>* list : {&host_list_, &list_}) {
      (*list)[2].value.Span()[3] = -0.0f;
      (*list)[4].value.Span()[9] = 1e4f;
    }
    host_ = std::make_unique<Optimizer>(of_.config, of_.scaler, host_list_, 7);
    Start();
  }

  // Takes steps with gradients whose elements are all `value`.
  void ConstantSteps(uint64_t begin, uint64_t end, float value, double rate = 1e-2) {
    for (ParameterList<float>* list : {&host_list_, &list_}) {
      for (Parameter<float>& parameter : *list) {
        std::ranges::fill(parameter.gradient.Span(), value);
      }
    }
    for (uint64_t step = begin; step < end && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(of_.name + ", step " + std::to_string(step));
      const OptimizerStep& expected = host_->Step(rate, step, of_.measure);
      there_->Step(rate, step, of_.measure, {});
      ExpectSameStep(there_->Last(), expected, reports_);
      ExpectSameWeights();
    }
  }

  void Steps(uint64_t begin, uint64_t end, bool hard) {
    for (uint64_t step = begin; step < end && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(of_.name + ", step " + std::to_string(step));
      SetGradients(step, hard);
      std::vector<uint8_t> without;
      if (step % 4 == 3) {
        without.assign(list_.size(), 0);
        without[3] = without[6] = 1;
      }
      const double rate = step == 5 ? 0 : 1e-2;
      const OptimizerStep& expected = host_->Step(rate, step, of_.measure, without);
      there_->Step(rate, step, of_.measure, without);
      ExpectSameStep(there_->Last(), expected, reports_);
      EXPECT_EQ(there_->LossScale(), host_->LossScale());
      ExpectSameWeights();
    }
    ExpectSameState(SaveThere(), host_->Save());
  }

  // Goes on with the state that the host saved, in a new optimiser.
  void Move() {
    const std::vector<NamedBytes> state = host_->Save();
    Start();
    StateReader reader(state);
    there_->Restore(reader);
    std::array<double, 3> scaler{};
    reader.Read("loss_scaler", std::span<double>(scaler));
    reader.CheckAllFound();
    there_->SetScaler(
        {scaler[0], static_cast<uint64_t>(scaler[1]), static_cast<uint64_t>(scaler[2])});
    for (size_t i = 0; i < list_.size(); ++i) {
      CopyMatrix<float>(host_list_[i].value.View(), list_[i].value.View());
    }
    ExpectSameState(SaveThere(), state);
  }

  ParameterList<float>& host_list() { return host_list_; }
  ParameterList<float>& list() { return list_; }
  OptimizerAtPlace& there() { return *there_; }
  Optimizer& host() { return *host_; }

 private:
  void Start() {
    there_ = std::make_unique<OptimizerAtPlace>(of_.config, of_.scaler, list_, 7, MakeHostRunner());
    there_->SetReports(reports_);
  }
  void SetGradients(uint64_t step, bool hard) {
    for (size_t i = 0; i < list_.size(); ++i) {
      const std::vector<float> gradient = GradientOf(step, i, list_[i].Elements(), hard);
      CopyMatrix<float>(gradient, host_list_[i].gradient.View());
      CopyMatrix<float>(gradient, list_[i].gradient.View());
    }
  }
  void ExpectSameWeights() {
    for (size_t i = 0; i < list_.size(); ++i) {
      SCOPED_TRACE(list_[i].name);
      ExpectSameFloats(ToVector(list_[i].value.View()), ToVector(host_list_[i].value.View()));
    }
  }
  std::vector<NamedBytes> SaveThere() {
    std::vector<NamedBytes> state = there_->Save();
    const LossScaler::State scaler = there_->Scaler();
    const std::array<double, 3> numbers = {scaler.scale,
                                           static_cast<double>(scaler.taken_in_row),
                                           static_cast<double>(scaler.skipped)};
    state.push_back(SaveValues("loss_scaler", std::span<const double>(numbers)));
    return state;
  }

  OptimizerCase of_;
  bool reports_;
  ParameterList<float> host_list_{5}, list_{5};
  std::unique_ptr<Optimizer> host_;
  std::unique_ptr<OptimizerAtPlace> there_;
};

void Compare(const std::vector<OptimizerCase>& cases, bool hard, bool reports = true) {
  for (const OptimizerCase& each : cases) {
    SCOPED_TRACE(each.name);
    Pair pair(each, reports);
    pair.Steps(0, 2, hard);
    pair.there().SetOnlyWriter(true);
    pair.Steps(2, 6, hard);
    pair.Move();
    pair.Steps(6, 8, hard);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(OptimizerKernels, EveryMomentGivesTheBitsOfTheHost) { Compare(MomentCases(), false); }
TEST(OptimizerKernels, EveryUpdateRuleGivesTheBitsOfTheHost) { Compare(WeightCases(), false); }
TEST(OptimizerKernels, DecisionsAreThoseOfTheHost) { Compare(DecisionCases(), true); }

// Steps that do not report have kernels of their own.
TEST(OptimizerKernels, MomentsAreTheSameWithoutReports) {
  Compare(WithoutReports(MomentCases()), false, false);
}
TEST(OptimizerKernels, WeightsAreTheSameWithoutReports) {
  Compare(WithoutReports(WeightCases()), false, false);
}
TEST(OptimizerKernels, DecisionsAreTheSameWithoutReports) {
  Compare(WithoutReports(DecisionCases()), true, false);
}

TEST(OptimizerKernels, WeightsThatAreNotFiniteStay) {
  for (const char* const rule : {"naive", "kahan", "split-master", "master-fp32", "stochastic"}) {
    OptimizerCase each{rule, {}, {}};
    each.config.weights = ParseFormat("bf16");
    each.config.update = ParseUpdateRule(rule);
    Pair pair(each);
    pair.Steps(0, 2, false);
    for (ParameterList<float>* list : {&pair.host_list(), &pair.list()}) {
      (*list)[5].value.Span()[100] = std::numeric_limits<float>::infinity();
      (*list)[8].value.Span()[7] = std::numeric_limits<float>::quiet_NaN();
    }
    pair.Steps(2, 4, false);
    if (HasFailure()) return;
    EXPECT_EQ(pair.there().Last().tensors[5].weights.status, UpdateStatus::kNonfinite);
  }
}

// The moments grow for ten steps before they overflow.
TEST(OptimizerKernels, MomentsThatOverflowStopTheWeights) {
  for (const char* const kind : {"sgd", "adamw", "lion"}) {
    OptimizerCase each{kind, {}, {.kind = LossScaling::kTensor, .initial = 1}};
    each.config.kind = ParseOptimizerKind(kind);
    Pair pair(each);
    pair.ConstantSteps(0, 20, 5e37f);
    if (HasFailure()) return;
    const UpdateStatus status = pair.there().Last().tensors[0].weights.status;
    EXPECT_EQ(status == UpdateStatus::kNonfinite, std::string(kind) == "sgd");
  }
}

// A step without its report must find what tells the next one that an update is not finite: the
// weights change sign and grow ninefold at each step, until their decay overflows.
TEST(OptimizerKernels, WeightsThatDecayTooFarStayWithoutReports) {
  for (const char* const weights : {"fp32", "bf16"}) {
    OptimizerCase each{weights, {}, {}};
    each.config.kind = ParseOptimizerKind("sgd");
    each.config.beta1 = 0;
    each.config.weights = ParseFormat(weights);
    each.config.weight_decay = 10;
    each.config.decay_filter = DecayFilter::kAll;
    Pair pair(each, false);
    pair.there().SetOnlyWriter(true);
    pair.ConstantSteps(0, 45, 1, 1);
    if (HasFailure()) return;
    EXPECT_EQ(pair.host().Last().tensors[5].weights.status, UpdateStatus::kNonfinite);
  }
}

// A thread adds the sums of 32 blocks before it loads the next ones, which end within a tensor.
TEST(OptimizerKernels, SumsOfManyBlocksAreThoseOfTheHost) {
  constexpr size_t kSizes[] = {70 * 4096 + 5, 40 * 4096, 300};
  OptimizerConfig config;
  config.clip_norm = 3;
  ParameterList<float> host_list(5), list(5);
  for (ParameterList<float>* const parameters : {&host_list, &list}) {
    for (const size_t n : kSizes) {
      Parameter<float>& added =
          parameters->Add("w" + std::to_string(n), ParameterRole::kMatrix, 1, n, {0, 0.1f});
      CopyMatrix<float>(GradientOf(1, n, n, false), added.gradient.View());
    }
  }
  Optimizer host(config, {}, host_list, 7);
  OptimizerAtPlace there(config, {}, list, 7, MakeHostRunner());
  const OptimizerStep& expected = host.Step(1e-2, 0);
  there.Step(1e-2, 0, false, {});
  ExpectSameStep(there.Last(), expected, true);
  for (size_t i = 0; i < list.size(); ++i) {
    ExpectSameFloats(ToVector(list[i].value.View()), ToVector(host_list[i].value.View()));
  }
}

// Gradients may be in other memory at each step, and weights in that of somebody else.
TEST(OptimizerKernels, MemoryMayBeBorrowed) {
  std::vector<float> weights(5000, 1),
      gradients[2] = {std::vector<float>(5000, 1), std::vector<float>(5000, -1)};
  ParameterList<float> list(1, InitialValues::kMeans);
  Parameter<float>& parameter =
      list.AddBorrowed("w", ParameterRole::kMatrix, MatrixSpan<float>(weights.data(), 50, 100), {});
  const OptimizerConfig config;
  OptimizerAtPlace optimizer(config, {}, list, 7, MakeHostRunner());
  for (size_t step = 0; step < 4; ++step) {
    parameter.gradient.Borrow(MatrixSpan<float>(gradients[step % 2].data(), 50, 100));
    parameter.gradient.Resize(50, 100);
    optimizer.Step(1e-2, step, false, {});
    EXPECT_EQ(optimizer.Last().tensors[0].weights.moved, 5000u);
  }
  EXPECT_NE(weights[4999], 1);
  // A tensor that takes no part needs no gradient.
  parameter.gradient = Buffer<float>();
  optimizer.Step(1e-2, 4, false, std::vector<uint8_t>{1});
  EXPECT_TRUE(optimizer.Last().tensors[0].skipped);
  EXPECT_THROW(optimizer.Step(1e-2, 5, false, {}), Error);
}

// Kernels that take four numbers at once must not need them where four could begin.
TEST(OptimizerKernels, MemoryMayBeginAnywhere) {
  constexpr size_t kElements = 1201;
  OptimizerConfig config;
  config.m = config.v = ParseMomentFormat("e4m3fn");
  std::vector<float> expected;
  for (const size_t offset : {0, 1, 2, 3}) {
    Buffer<float> memory(Place(), 2 * kElements + 16);
    const MatrixSpan<float> weights(memory.View().data + offset, 1, kElements);
    const MatrixSpan<float> gradient(weights.data + kElements + 7, 1, kElements);
    for (size_t i = 0; i < kElements; ++i) {
      weights.data[i] = 0.01f * static_cast<float>(i);
      gradient.data[i] = 0.5f - 0.001f * static_cast<float>(i);
    }
    ParameterList<float> list(1, InitialValues::kMeans);
    Parameter<float>& parameter = list.AddBorrowed("w", ParameterRole::kMatrix, weights, {});
    parameter.gradient.Borrow(gradient);
    parameter.gradient.Resize(1, kElements);
    OptimizerAtPlace optimizer(config, {}, list, 7, MakeHostRunner());
    optimizer.SetReports(false);
    for (uint64_t step = 0; step < 3; ++step) optimizer.Step(1e-2, step, false, {});
    const std::vector<float> found(weights.data, weights.data + kElements);
    if (offset == 0) expected = found;
    ExpectSameFloats(found, expected);
  }
  EXPECT_NE(expected[kElements - 1], 12.0f);
}

// Quotients of moderate numbers by one divisor are those of IEEE 754.
TEST(OptimizerKernels, DividingByOneNumberRoundsOnce) {
  constexpr ModerateLanes<HostThreads> lanes;
  size_t wrong = 0;
  for (const float divisor : {0.1f, 0.19f, 1e-3f, 0x1.fffffep-1f, 0x1.000002p-20f}) {
    for (uint32_t bits = 0x3F800000; bits < 0x40000000; bits += 3) {
      const float x = std::bit_cast<float>(bits);
      wrong += lanes.DivBy(x, divisor) != x / divisor ? 1 : 0;
    }
    for (int exponent = -100; exponent < 45; ++exponent) {
      for (uint32_t k = 0; k < 999; ++k) {
        const float x = std::ldexp(std::bit_cast<float>(0x3F800000 + k * 8397), exponent);
        wrong += lanes.DivBy(x, divisor) != x / divisor ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(OptimizerKernels, WhatADeviceLacksIsNamed) {
  const auto error_of = [](const OptimizerConfig& config) -> std::string {
    try {
      CheckOptimizerAtPlace(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  OptimizerConfig config;
  EXPECT_EQ(error_of(config), "");
  config.update = ParseUpdateRule("master-fp16-scaled");
  EXPECT_NE(error_of(config).find("no rule master-fp16-scaled"), std::string::npos);
  config.update = ParseUpdateRule("note-as-printed");
  EXPECT_NE(error_of(config).find("no rule note-as-printed"), std::string::npos);
}

}  // namespace
}  // namespace numsim::optimizer_cases
