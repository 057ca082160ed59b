// Delayed scaling over several steps, against a history kept by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "tests/linear/linear_problem.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{11, 13, 7};

LinearOptions Options(AmaxAlgorithm algorithm, size_t history = 4, int margin = 0) {
  LinearOptions options;
  options.kind = "te-hybrid";
  options.delayed = DelayedScalingOptions{history, algorithm, margin};
  return options;
}

// The rule of [TransformerEngine] with amax_history_len = history.
class Tensor {
 public:
  Tensor(const char* format, float largest, const DelayedScalingOptions& options)
      : format_(format), largest_(largest), options_(options) {}

  // Quantises under the scale of earlier steps.
  naive::Operand Quantise(const naive::Matrix& in) const {
    return naive::Quantised(in,
                            {.format = format_,
                             .group = naive::WholeTensor(),
                             .given = Scale{1 / inv_scale_, inv_scale_}});
  }

  // The end of a step in which `in` was quantised.
  void Update(const naive::Matrix& in) {
    float absmax = 0;
    for (float x : in.data)
      absmax = std::isnan(x) || std::isnan(absmax) ? kNaN : std::max(absmax, std::abs(x));
    seen_.push_back(absmax);
    const bool recent = options_.algorithm == AmaxAlgorithm::kMostRecent;
    const size_t count = recent ? 1 : std::min(options_.history, seen_.size());
    float a = 0;
    for (size_t i = seen_.size() - count; i < seen_.size(); ++i) {
      a = std::isnan(a) || std::isnan(seen_[i]) ? kNaN : std::max(a, seen_[i]);
    }
    if (absmax == 0) seen_.pop_back();
    const bool window = options_.algorithm == AmaxAlgorithm::kWindow;
    if (window && seen_.size() % options_.history != 0) return;
    if (window) seen_.clear();
    if (a == 0 || !std::isfinite(a)) return;
    inv_scale_ = std::ldexp(largest_, -options_.margin) / a;
    if (options_.rule == ScaleRule::kPow2Floor)
      inv_scale_ = std::exp2(std::ceil(std::log2(inv_scale_)));
  }

  // As DelayedScale::Save after Update().
  std::vector<float> State() const {
    std::vector<float> state(1 + options_.history, 0.0f);
    state[0] = inv_scale_;
    const size_t count = std::min(options_.history - 1, seen_.size());
    std::copy(seen_.end() - static_cast<std::ptrdiff_t>(count),
              seen_.end(),
              state.end() - static_cast<std::ptrdiff_t>(count));
    return state;
  }

 private:
  std::string format_;
  float largest_;
  DelayedScalingOptions options_;
  float inv_scale_ = 1;
  std::vector<float> seen_;
};

// The layer with its three tensors.
struct ByHand {
  explicit ByHand(const DelayedScalingOptions& options)
      : x("e4m3fn", 448, options), w("e4m3fn", 448, options), g("e5m2", 57344, options) {}

  naive::Results Step(const LinearProblem& p) {
    const naive::Operand x8 = x.Quantise(p.x), w8 = w.Quantise(p.w), g8 = g.Quantise(p.g);
    x.Update(p.x);
    w.Update(p.w);
    g.Update(p.g);
    return {naive::Product(x8, w8, "fp32"),
            naive::Product(g8, Transposed(w8), "fp32"),
            naive::Product(Transposed(g8), Transposed(x8), "fp32")};
  }

  std::vector<float> State() const {
    std::vector<float> all = x.State();
    for (const Tensor* tensor : {&w, &g}) {
      const std::vector<float> state = tensor->State();
      all.insert(all.end(), state.begin(), state.end());
    }
    return all;
  }

  Tensor x, w, g;
};

// e5m2-backward: X and W have a copy of their own for the backward pass, with a scale of its own.
struct CopiesByHand {
  explicit CopiesByHand(const DelayedScalingOptions& options)
      : x("e4m3", 240, options),
        w("e4m3", 240, options),
        g("e5m2", 57344, options),
        w_back("e5m2", 57344, options),
        x_back("e5m2", 57344, options) {}

  naive::Results Step(const LinearProblem& p) {
    const naive::Matrix x16 = naive::Cast(p.x, "bf16").values;
    const naive::Operand x8 = x.Quantise(p.x), w8 = w.Quantise(p.w), g8 = g.Quantise(p.g);
    const naive::Operand w52 = w_back.Quantise(p.w), x52 = x_back.Quantise(x16);
    x.Update(p.x);
    w.Update(p.w);
    g.Update(p.g);
    w_back.Update(p.w);
    x_back.Update(x16);
    return {naive::Product(x8, w8, "fp32"),
            naive::Product(g8, Transposed(w52), "fp32"),
            naive::Product(Transposed(g8), Transposed(x52), "fp32")};
  }

  std::vector<float> State() const {
    std::vector<float> all;
    for (const Tensor* tensor : {&x, &w, &g, &w_back, &x_back}) {
      const std::vector<float> state = tensor->State();
      all.insert(all.end(), state.begin(), state.end());
    }
    return all;
  }

  Tensor x, w, g, w_back, x_back;
};

// Operands of step `t`, of sizes that go up and down and meet every special maximum.
LinearProblem ProblemOf(size_t t) {
  LinearProblem p = UnevenProblem(kShape);
  const float x_sizes[] = {1.0f, 300.0f, 0.01f, 4.0f, 0.7f, 0.7f, 0.7f, 0.7f, 0.7f, 90.0f};
  const float g_sizes[] = {1e-6f, 2e-5f, 1e-7f, 3e-7f, 1e3f, 1e-4f, 1e-5f, 1e-5f, 1e-5f, 1e-5f};
  for (float& x : p.x.data) x *= x_sizes[t % 10];
  for (float& w : p.w.data) w *= 1.0f + 0.1f * static_cast<float>(t);
  for (float& g : p.g.data) g *= g_sizes[t % 10];
  if (t == 3) std::ranges::fill(p.g.data, 0.0f);
  if (t == 6) p.x.data[5] = kInfinity;
  if (t == 7) p.g.data[5] = kNaN;
  return p;
}

TEST(LinearDelayed, EachStepIsScaledByTheMaximaOfTheStepsBefore) {
  for (AmaxAlgorithm algorithm : {AmaxAlgorithm::kMax, AmaxAlgorithm::kMostRecent}) {
    for (size_t history : {1, 2, 4, 1024}) {
      for (int margin : {0, 1}) {
        const LinearOptions options = Options(algorithm, history, margin);
        Linear layer(MakeLinearRecipe(options));
        ByHand expected(*options.delayed);
        EXPECT_TRUE(SameBits(layer.SaveState(), expected.State()));
        for (size_t t = 0; t < 14; ++t) {
          SCOPED_TRACE("history " + std::to_string(history) + " margin " + std::to_string(margin) +
                       " step " + std::to_string(t));
          const LinearProblem p = ProblemOf(t);
          ExpectSameBits(Step(layer, p), expected.Step(p));
          EXPECT_TRUE(SameBits(layer.SaveState(), expected.State()));
        }
      }
    }
  }
}

TEST(LinearDelayed, CopiesForTheBackwardPassHaveScalesOfTheirOwn) {
  for (AmaxAlgorithm algorithm :
       {AmaxAlgorithm::kMax, AmaxAlgorithm::kMostRecent, AmaxAlgorithm::kWindow}) {
    for (size_t history : {1, 3, 16}) {
      LinearOptions options = Options(algorithm, history);
      options.kind = "e5m2-backward";
      options.format = "e4m3";
      const LinearRecipe recipe = MakeLinearRecipe(options);
      Linear layer(recipe);
      CopiesByHand expected(*recipe.delayed);
      for (size_t t = 0; t < 14; ++t) {
        SCOPED_TRACE("history " + std::to_string(history) + " step " + std::to_string(t));
        const LinearProblem p = ProblemOf(t);
        ExpectSameBits(Step(layer, p), expected.Step(p));
        EXPECT_TRUE(SameBits(layer.SaveState(), expected.State()));
      }
      Linear restored(recipe);
      restored.RestoreState(layer.SaveState());
      const LinearProblem p = ProblemOf(14);
      ExpectSameBits(Step(restored, p), expected.Step(p));
    }
  }
}

// 1000 is beyond 448 in the first step, whose scale is 1: it saturates. The second knows it.
TEST(LinearDelayed, AnOutlierSaturatesInItsFirstStepAlone) {
  LinearProblem p{{1, 2, {1000.0f, 1.0f}}, {1, 2, {1.0f, 1.0f}}, {1, 1, {1.0f}}};
  Linear layer(MakeLinearRecipe(Options(AmaxAlgorithm::kMax)));
  EXPECT_EQ(Step(layer, p).y.data[0], 449.0f);
  EXPECT_NEAR(Step(layer, p).y.data[0], 1001.0f, 1.0f);
  Linear current(MakeLinearRecipe([] {
    LinearOptions options;
    options.kind = "te-hybrid";
    return options;
  }()));
  EXPECT_NEAR(Step(current, p).y.data[0], 1001.0f, 1.0f);
}

TEST(LinearDelayed, XAndWAreUpdatedByForwardAndGByBackward) {
  const LinearOptions options = Options(AmaxAlgorithm::kMostRecent);
  Linear layer(MakeLinearRecipe(options));
  ByHand expected(*options.delayed);
  const LinearProblem p = ProblemOf(1);
  std::vector<float> y(p.g.data.size()), dx(p.x.data.size()), dw(p.w.data.size());
  LinearSaved saved;
  layer.Forward(HostMatrix(p.x.data, kShape.X()), HostMatrix(p.w.data, kShape.W()), y, saved);
  expected.x.Update(p.x);
  expected.w.Update(p.w);
  EXPECT_TRUE(SameBits(layer.SaveState(), expected.State()));
  layer.Backward(p.g.data, p.w.data, saved, dx, dw);
  expected.g.Update(p.g);
  EXPECT_TRUE(SameBits(layer.SaveState(), expected.State()));
}

// Two micro-batches in flight: each backward pass has the codes and scales of its own forward one.
TEST(LinearDelayed, BackwardUsesTheScalesOfItsOwnForward) {
  const LinearOptions options = Options(AmaxAlgorithm::kMostRecent);
  Linear layer(MakeLinearRecipe(options));
  ByHand expected(*options.delayed);
  const LinearProblem first = ProblemOf(1), second = ProblemOf(2);
  const naive::Results want = expected.Step(first);
  std::vector<float> y(first.g.data.size()), dx(first.x.data.size()), dw(first.w.data.size());
  LinearSaved saved, other;
  layer.Forward(
      HostMatrix(first.x.data, kShape.X()), HostMatrix(first.w.data, kShape.W()), y, saved);
  layer.Forward(
      HostMatrix(second.x.data, kShape.X()), HostMatrix(second.w.data, kShape.W()), y, other);
  layer.Backward(first.g.data, first.w.data, saved, dx, dw);
  EXPECT_TRUE(SameBits(dx, want.dx.data));
  EXPECT_TRUE(SameBits(dw, want.dw.data));
}

TEST(LinearDelayed, ARestoredLayerGoesOnWithTheSameBits) {
  const LinearOptions options = Options(AmaxAlgorithm::kMax, 3, 1);
  Linear layer(MakeLinearRecipe(options));
  for (size_t t = 0; t < 5; ++t) Step(layer, ProblemOf(t));
  const std::vector<float> state = layer.SaveState();
  EXPECT_EQ(state.size(), 3u * (1 + 3));
  Linear restored(MakeLinearRecipe(options));
  restored.RestoreState(state);
  Linear fresh(MakeLinearRecipe(options));
  EXPECT_FALSE(SameBits(Step(fresh, ProblemOf(5)), Step(layer, ProblemOf(5))));
  Step(restored, ProblemOf(5));
  for (size_t t = 6; t < 12; ++t) {
    EXPECT_TRUE(SameBits(Step(restored, ProblemOf(t)), Step(layer, ProblemOf(t)))) << t;
    EXPECT_TRUE(SameBits(restored.SaveState(), layer.SaveState())) << t;
  }
}

TEST(LinearDelayed, RestoreRefusesTheStateOfAnotherRecipe) {
  Linear layer(MakeLinearRecipe(Options(AmaxAlgorithm::kMax, 4)));
  Step(layer, ProblemOf(0));
  const std::vector<float> good = layer.SaveState();
  std::vector<float> bad = good;
  bad.pop_back();
  EXPECT_THROW(layer.RestoreState(bad), Error);
  bad = good;
  bad.push_back(0);
  EXPECT_THROW(layer.RestoreState(bad), Error);
  EXPECT_THROW(layer.RestoreState({}), Error);
  EXPECT_THROW(
      layer.RestoreState(Linear(MakeLinearRecipe(Options(AmaxAlgorithm::kMax, 5))).SaveState()),
      Error);
  for (size_t tensor = 0; tensor < 3; ++tensor) {
    bad = good;
    bad[tensor * 5] = 0;  // its inv_scale
    EXPECT_THROW(layer.RestoreState(bad), Error) << tensor;
    EXPECT_TRUE(SameBits(layer.SaveState(), good)) << "a refused state must not leave a trace";
  }
}

TEST(LinearDelayed, WithoutDelayedScalingThereIsNoState) {
  for (const std::string& kind : KindNames()) {
    LinearOptions options;
    options.kind = kind;
    Linear layer(MakeLinearRecipe(options));
    Step(layer, UnevenProblem(kShape));
    EXPECT_TRUE(layer.SaveState().empty()) << kind;
    EXPECT_NO_THROW(layer.RestoreState({}));
    EXPECT_THROW(layer.RestoreState(std::vector<float>{1.0f, 0.0f}), Error) << kind;
  }
}

}  // namespace
}  // namespace numsim
