// Stochastic rounding of gradients: which draws, and that they are right on average.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/linear/linear_problem.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{37, 29, 23};

LinearOptions Stochastic(const std::string& kind,
                         int bits = 32,
                         StochasticVariant variant = StochasticVariant::kA) {
  LinearOptions options;
  options.kind = kind;
  if (kind != "te-hybrid") options.format = "e4m3fn";
  options.gradient_rounding = {RoundingMode::kStochastic, variant, bits};
  return options;
}

std::vector<std::string> QuantisedKinds() {
  std::vector<std::string> names = KindNames();
  std::erase(names, "standard");
  return names;
}

// The one operand number, of 0 .. 7, with whose stream 8 * stream + operand the definition gives
// `actual`; -1 for none, 8 for several.
template <typename Pick>
int OperandOf(const LinearOptions& options,
              const LinearProblem& p,
              RandomStream random,
              const naive::Matrix& actual,
              const Pick& pick) {
  int found = -1;
  naive::Setup setup = naive::SetupOf(options);
  Linear layer(MakeLinearRecipe(options));
  setup.keeps_quantized = layer.recipe().saves == LinearSaves::kQuantized;
  setup.seed = random.seed;
  for (int operand = 0; operand < 8; ++operand) {
    setup.dx_stream = setup.dw_stream = 8 * random.stream + static_cast<uint64_t>(operand);
    const naive::Results r = naive::Layer(options, setup, p.x, p.w, p.g);
    if (SameBits(pick(r).data, actual.data)) found = found == -1 ? operand : 8;
  }
  return found;
}

// Element t * out + o of the stream of an operand of this call is drawn for G(t, o), in every
// layout and in both gradients.
TEST(LinearStochastic, DrawsAreThoseOfAnOperandsStreamByElementOfG) {
  const LinearProblem p = UnevenProblem(kShape);
  const RandomStream random{.seed = 11, .stream = 1234567};
  for (const std::string& kind : QuantisedKinds()) {
    for (int bits : {8, 32}) {
      const LinearOptions options = Stochastic(kind, bits, StochasticVariant::kB);
      const naive::Results r = Step(options, p, random);
      const int of_dx =
          OperandOf(options, p, random, r.dx, [](const naive::Results& x) { return x.dx; });
      EXPECT_TRUE(of_dx >= 0 && of_dx < 8) << kind << " " << of_dx;
      if (Linear(MakeLinearRecipe(options)).recipe()[LinearGemm::kWeightGradient].a.Unscaled())
        continue;
      const int of_dw =
          OperandOf(options, p, random, r.dw, [](const naive::Results& x) { return x.dw; });
      EXPECT_TRUE(of_dw >= 0 && of_dw < 8) << kind << " " << of_dw;
      // Quantised once, the gradients share their draws.
      // One tensor of codes serves both gradients, or each quantises G for itself.
      const bool once = kind == "te-hybrid" || kind == "tensor-wise" || kind == "e5m2-backward";
      EXPECT_EQ(of_dx == of_dw, once) << kind;
    }
  }
}

TEST(LinearStochastic, BitsFollowSeedAndStreamAndNothingElse) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const std::string& kind : QuantisedKinds()) {
    SCOPED_TRACE(kind);
    const LinearOptions options = Stochastic(kind);
    const naive::Results first = Step(options, p, {.seed = 1, .stream = 2});
    Linear layer(MakeLinearRecipe(options));
    Step(layer, p, {.seed = 9, .stream = 9});  // a layer has no generator
    EXPECT_TRUE(SameBits(Step(layer, p, {.seed = 1, .stream = 2}), first));
    for (const RandomStream other : {RandomStream{1, 3}, RandomStream{2, 2}, RandomStream{1, 1}}) {
      const naive::Results r = Step(options, p, other);
      EXPECT_TRUE(SameBits(r.y.data, first.y.data));  // gradients alone are stochastic
      EXPECT_FALSE(SameBits(r.dx.data, first.dx.data));
    }
  }
}

TEST(LinearStochastic, NearestGradientsDoNotReadTheStream) {
  const LinearProblem p = UnevenProblem(kShape);
  for (const std::string& kind : KindNames()) {
    LinearOptions options;
    options.kind = kind;
    EXPECT_TRUE(SameBits(Step(options, p, {.seed = 1, .stream = 2}), Step(options, p))) << kind;
  }
}

// G is 0.3 steps everywhere except for one 127 in each row and column, which sets the scale, so
// rounding to nearest loses all of the rest. An element of a gradient is a sum of `inner`
// independent two-valued terms of range |factor|; by Hoeffding's inequality its mean over N streams
// is off by more than sqrt(ln(2 / p) sum(range^2) / (2 N)) with probability at most p = 1e-9 an
// element, in all below 1e-6.
TEST(LinearStochastic, TheMeanOverManyStreamsIsTheExactGradient) {
  constexpr size_t kSide = 8, kStreams = 2000;
  LinearProblem p{{kSide, kSide, std::vector<float>(kSide * kSide, 1.0f)},
                  {kSide, kSide, std::vector<float>(kSide * kSide, 1.0f)},
                  {kSide, kSide, std::vector<float>(kSide * kSide, 0.3f)}};
  for (size_t i = 0; i < kSide; ++i) p.g.data[i * kSide + i] = 127.0f;
  const double exact = 127 + 0.3 * (kSide - 1);
  const double bound = std::sqrt(std::log(2 / 1e-9) * (kSide - 1) / (2.0 * kStreams)) + 1e-4;
  for (const char* kind :
       {"switchback", "switchback-m", "switchback-q", "llm-int8", "tensor-wise"}) {
    LinearOptions options;
    options.kind = kind;
    options.format = options.gradient_format = "int8";
    EXPECT_GT(std::abs(Step(options, p).dx.data[0] - exact), 10 * bound) << kind;
    options.gradient_rounding.mode = RoundingMode::kStochastic;
    Linear layer(MakeLinearRecipe(options));
    std::vector<double> dx(kSide * kSide), dw(kSide * kSide);
    LinearSaved saved;
    std::vector<float> y(kSide * kSide), dx_once(kSide * kSide), dw_once(kSide * kSide);
    layer.Forward(
        HostMatrix(p.x.data, p.Shape().X()), HostMatrix(p.w.data, p.Shape().W()), y, saved);
    for (uint64_t stream = 0; stream < kStreams; ++stream) {
      layer.Backward(p.g.data, p.w.data, saved, dx_once, dw_once, {.seed = 3, .stream = stream});
      for (size_t i = 0; i < dx.size(); ++i) {
        dx[i] += dx_once[i] / static_cast<double>(kStreams);
        dw[i] += dw_once[i] / static_cast<double>(kStreams);
      }
    }
    const bool both = !layer.recipe()[LinearGemm::kWeightGradient].a.Unscaled();
    for (size_t i = 0; i < dx.size(); ++i) {
      ASSERT_NEAR(dx[i], exact, bound) << kind << " dX " << i;
      if (both) {
        ASSERT_NEAR(dw[i], exact, bound) << kind << " dW " << i;
      }
    }
  }
}

}  // namespace
}  // namespace numsim
