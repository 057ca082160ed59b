// The bits of a layer do not depend on where and how it runs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

// Stochastic gradients wherever G is quantised, so that draws take part.
LinearOptions Options(const std::string& kind, const char* format) {
  LinearOptions options;
  options.kind = kind;
  if (kind == "standard") return options;
  if (kind != "te-hybrid") options.format = format;
  options.gradient_rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
  return options;
}

template <typename Check>
void WithEachThreadCount(const Check& check) {
  const ExecutionState state;
  for (int threads : {1, 2, 5}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    SetThreadCount(threads);
    check();
  }
}

TEST(Linear, BitsAreTheSameOnEachBackendAtAnyThreadCount) {
  const LinearProblem p = UnevenProblem({67, 34, 33});
  for (const std::string& kind : KindNames()) {
    for (const char* format : {"int8", "e4m3fn"}) {
      SCOPED_TRACE(kind + " " + format);
      const naive::Results first = Step(Options(kind, format), p, {.seed = 5, .stream = 6});
      WithEachThreadCount([&] {
        EXPECT_TRUE(SameBits(Step(Options(kind, format), p, {.seed = 5, .stream = 6}), first));
      });
      WithEachBackend([&] {
        EXPECT_TRUE(SameBits(Step(Options(kind, format), p, {.seed = 5, .stream = 6}), first));
      });
    }
  }
}

TEST(Linear, DelayedScalingIsTheSameOnEachBackendAtAnyThreadCount) {
  LinearOptions options;
  options.kind = "te-hybrid";
  options.delayed = DelayedScalingOptions{.history = 3};
  const auto run = [&] {
    Linear layer(MakeLinearRecipe(options));
    for (size_t step = 0; step < 3; ++step) {
      Step(layer, UnevenProblem({40 + step, 34, 33}));
    }
    return Step(layer, UnevenProblem({67, 34, 33}));
  };
  const naive::Results first = run();
  WithEachThreadCount([&] { EXPECT_TRUE(SameBits(run(), first)); });
  WithEachBackend([&] { EXPECT_TRUE(SameBits(run(), first)); });
}

TEST(Linear, AnEmptyGradientIsNotComputedAndTheOtherIsTheSame) {
  const LinearProblem p = UnevenProblem({20, 30, 40});
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    Linear layer(MakeLinearRecipe(Options(kind, "e4m3fn")));
    const RandomStream random{.seed = 1, .stream = 2};
    const naive::Results both = Step(layer, p, random);
    std::vector<float> y(800), dx(600), dw(1200);
    LinearSaved saved;
    layer.Forward(p.x.data, p.w.data, p.Shape(), y, saved, random);
    layer.Backward(p.g.data, p.w.data, saved, dx, {}, random);
    EXPECT_TRUE(SameBits(dx, both.dx.data));
    layer.Backward(p.g.data, p.w.data, saved, {}, dw, random);
    EXPECT_TRUE(SameBits(dw, both.dw.data));
  }
}

}  // namespace
}  // namespace numsim
