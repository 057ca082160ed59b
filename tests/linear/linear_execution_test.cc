// The bits of a layer do not depend on where and how it runs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
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
    layer.Forward(
        HostMatrix(p.x.data, p.Shape().X()), HostMatrix(p.w.data, p.Shape().W()), y, saved, random);
    layer.Backward(p.g.data, p.w.data, saved, dx, {}, random);
    EXPECT_TRUE(SameBits(dx, both.dx.data));
    layer.Backward(p.g.data, p.w.data, saved, {}, dw, random);
    EXPECT_TRUE(SameBits(dw, both.dw.data));
  }
}

// Returns the numbers as bf16, rounded to nearest even.
std::vector<float> AsBf16(std::vector<float> values) {
  FakeQuantize(MakeEncodePlan(kBf16), values, values);
  return values;
}

// A matrix whose numbers are of bf16.
FloatSpan Bf16Matrix(std::vector<float>& values, MatrixShape shape) {
  return {values.data(), shape, Place(), Element::kBfloat16};
}

TEST(Linear, TensorsOfBf16GiveTheBitsOfFloat32RoundedOnceWhenStored) {
  LinearProblem p = UnevenProblem({20, 30, 40});
  for (naive::Matrix* m : {&p.x, &p.w, &p.g}) m->data = AsBf16(m->data);
  const LinearShape shape = p.Shape();
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    const LinearRecipe recipe = MakeLinearRecipe(Options(kind, "e4m3fn"));
    Linear in_float32(recipe), in_bf16(recipe);
    const RandomStream random{.seed = 1, .stream = 2};
    const naive::Results expected = Step(in_float32, p, random);
    std::vector<float> y(800), dx(600), dw(1200);
    LinearSaved saved;
    in_bf16.Forward(Bf16Matrix(p.x.data, shape.X()),
                    Bf16Matrix(p.w.data, shape.W()),
                    Bf16Matrix(y, shape.Y()),
                    saved,
                    random);
    in_bf16.Backward(Bf16Matrix(p.g.data, shape.Y()),
                     Bf16Matrix(p.w.data, shape.W()),
                     saved,
                     Bf16Matrix(dx, shape.X()),
                     HostMatrix(dw, shape.W()),  // weight gradients stay in float32
                     random);
    EXPECT_TRUE(SameBits(y, AsBf16(expected.y.data)));
    EXPECT_TRUE(SameBits(dx, AsBf16(expected.dx.data)));
    EXPECT_TRUE(SameBits(dw, expected.dw.data));
  }
}

}  // namespace
}  // namespace numsim
