// Which operations a layer really does, and in which order.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"

namespace numsim {
namespace {

// Begin and End must alternate, each pair of one step.
class Recorder : public LinearObserver {
 public:
  void Begin(LinearOp step) override {
    EXPECT_FALSE(open_) << ToString(step) << " begins within another step";
    open_ = true;
    steps.push_back(step);
  }
  void End(LinearOp step) override {
    EXPECT_TRUE(open_);
    EXPECT_EQ(steps.back(), step);
    open_ = false;
  }

  std::vector<LinearOp> steps;

 private:
  bool open_ = false;
};

struct Steps {
  std::vector<std::string> forward, backward;
};

std::vector<std::string> Names(const std::vector<LinearOp>& steps) {
  std::vector<std::string> names;
  for (LinearOp step : steps) names.emplace_back(ToString(step));
  return names;
}

Steps StepsOf(const LinearOptions& options, bool want_dx = true, bool want_dw = true) {
  const LinearProblem p = UnevenProblem({9, 8, 7});
  Linear layer(MakeLinearRecipe(options));
  Recorder forward, backward;
  LinearSaved saved;
  std::vector<float> y(63), dx(want_dx ? 72 : 0), dw(want_dw ? 56 : 0);
  layer.Forward(HostMatrix(p.x.data, p.Shape().X()),
                HostMatrix(p.w.data, p.Shape().W()),
                y,
                saved,
                {},
                &forward);
  layer.Backward(p.g.data, p.w.data, saved, dx, dw, {}, &backward);
  return {Names(forward.steps), Names(backward.steps)};
}

LinearOptions Options(const std::string& kind, const char* high_precision = "") {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = high_precision;
  return options;
}

using List = std::vector<std::string>;

TEST(LinearOp, HasNames) {
  EXPECT_EQ(ToString(LinearOp::kQuantizeX), "quantize X");
  EXPECT_EQ(ToString(LinearOp::kForwardProduct), "forward product");
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(LinearOp::kSaveX); ++i) {
    names.emplace_back(ToString(static_cast<LinearOp>(i)));
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

// Algorithm 1. The copy of X in high precision is made in the forward pass.
TEST(LinearObserver, SwitchBackQuantisesXAndWThenGAndWTransposed) {
  const Steps steps = StepsOf(Options("switchback"));
  List forward = steps.forward;
  EXPECT_EQ(std::erase(forward, "keep X"), 1u);
  EXPECT_EQ(forward, (List{"quantize X", "quantize W", "forward product"}));
  EXPECT_EQ(steps.backward,
            (List{"quantize G",
                  "quantize W^T",
                  "input gradient product",
                  "quantize G^T",
                  "weight gradient product"}));
  // fp32 operands are not cast.
  EXPECT_EQ(
      StepsOf(Options("switchback", "fp32")).backward,
      (List{"quantize G", "quantize W^T", "input gradient product", "weight gradient product"}));
}

// Algorithm 3: W_int8 is kept, X is dequantised.
TEST(LinearObserver, SwitchBackMDequantisesXAndQuantisesGAlone) {
  const Steps steps = StepsOf(Options("switchback-m", "fp32"));
  EXPECT_EQ(steps.forward, (List{"quantize X", "quantize W", "forward product"}));
  List backward = steps.backward;
  std::ranges::sort(backward);
  EXPECT_EQ(
      backward,
      (List{"dequantize X", "input gradient product", "quantize G", "weight gradient product"}));
  const auto position = [&](const char* name) {
    return std::ranges::find(steps.backward, name) - steps.backward.begin();
  };
  EXPECT_LT(position("dequantize X"), position("weight gradient product"));
  EXPECT_LT(position("quantize G"), position("input gradient product"));
}

TEST(LinearObserver, LlmInt8QuantisesSixOperands) {
  const Steps steps = StepsOf(Options("llm-int8"));
  List forward = steps.forward;
  EXPECT_EQ(std::erase(forward, "keep X"), 1u);
  EXPECT_EQ(forward, (List{"quantize X", "quantize W", "forward product"}));
  EXPECT_EQ(steps.backward,
            (List{"quantize G",
                  "quantize W^T",
                  "input gradient product",
                  "quantize G^T",
                  "quantize X^T",
                  "weight gradient product"}));
}

// Codes of X, W and G serve two products each.
TEST(LinearObserver, TeHybridQuantisesEachTensorOnce) {
  for (bool delayed : {false, true}) {
    LinearOptions options = Options("te-hybrid");
    if (delayed) options.delayed = DelayedScalingOptions{};
    const Steps steps = StepsOf(options);
    EXPECT_EQ(steps.forward, (List{"quantize X", "quantize W", "forward product"}));
    EXPECT_EQ(steps.backward,
              (List{"quantize G", "input gradient product", "weight gradient product"}));
  }
}

// Nothing is quantised in Algorithm 5; in fp32 nothing is even cast.
TEST(LinearObserver, StandardInFp32OnlyMultiplies) {
  const Steps steps = StepsOf(Options("standard", "fp32"));
  List forward = steps.forward;
  EXPECT_LE(std::erase(forward, "keep X"), 1u);  // the copy
  EXPECT_EQ(forward, List{"forward product"});
  EXPECT_EQ(steps.backward, (List{"input gradient product", "weight gradient product"}));
}

// X is rounded once: what is kept is what the forward product reads. So is G, for two products.
TEST(LinearObserver, StandardInBf16CastsItsOperands) {
  const Steps steps = StepsOf(Options("standard", "bf16"));
  EXPECT_EQ(steps.forward, (List{"quantize X", "quantize W", "forward product"}));
  EXPECT_EQ(
      steps.backward,
      (List{"quantize G", "quantize W^T", "input gradient product", "weight gradient product"}));
}

TEST(LinearObserver, NothingIsDoneForAnEmptyGradient) {
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    const auto has = [](const List& steps, const char* name) {
      return std::ranges::find(steps, name) != steps.end();
    };
    const List dx = StepsOf(Options(kind), true, false).backward;
    EXPECT_TRUE(has(dx, "input gradient product"));
    for (const char* name :
         {"weight gradient product", "quantize G^T", "quantize X^T", "dequantize X"}) {
      EXPECT_FALSE(has(dx, name)) << name;
    }
    const List dw = StepsOf(Options(kind), false, true).backward;
    EXPECT_TRUE(has(dw, "weight gradient product"));
    for (const char* name : {"input gradient product", "quantize W^T"}) {
      EXPECT_FALSE(has(dw, name)) << name;
    }
  }
}

TEST(LinearObserver, EveryKindDoesEachProductOnce) {
  for (const std::string& kind : KindNames()) {
    const Steps steps = StepsOf(Options(kind));
    EXPECT_EQ(std::ranges::count(steps.forward, "forward product"), 1) << kind;
    EXPECT_EQ(std::ranges::count(steps.backward, "input gradient product"), 1) << kind;
    EXPECT_EQ(std::ranges::count(steps.backward, "weight gradient product"), 1) << kind;
  }
}

}  // namespace
}  // namespace numsim
