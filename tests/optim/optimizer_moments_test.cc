// Moments in small formats: where they are kept, from which of them the update is made, bytes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "numsim/optim/optimizer.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using optimizer_problem::Floats;
using optimizer_problem::OneMatrix;
using optimizer_problem::Problem;
using optimizer_problem::TensorShape;

OptimizerConfig WithMoments(const char* m, const char* v) {
  OptimizerConfig config;
  config.m = ParseMomentFormat(m);
  config.v = ParseMomentFormat(v);
  config.weight_decay = 0;
  return config;
}

// To bf16, nearest even: add half of what is cut off, and a little more to an odd code.
float RoundBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

// AdamW whose moments lie in bf16, scalar; `reread`: the update is made from what was stored.
struct Bf16Adam {
  bool reread;
  Floats w, m, v;
  double power1 = 1, power2 = 1;

  void Step(std::span<const float> gradient, float lr) {
    const float beta1 = 0.9f, beta2 = 0.95f;
    power1 *= static_cast<double>(beta1);
    power2 *= static_cast<double>(beta2);
    const auto correction1 = static_cast<float>(1 - power1);
    const auto correction2 = static_cast<float>(1 - power2);
    for (size_t i = 0; i < w.size(); ++i) {
      const float g = gradient[i], square = g * g;
      const float kept = beta1 * m[i], added = (1.0f - beta1) * g;
      const float kept_square = beta2 * v[i], added_square = (1.0f - beta2) * square;
      float mean = kept + added, average = kept_square + added_square;
      m[i] = RoundBf16(mean);
      v[i] = RoundBf16(average);
      if (reread) {
        mean = m[i];
        average = v[i];
      }
      const float divisor = std::sqrt(average / correction2) + 1e-8f;
      const float u = -((mean / correction1) / divisor);
      const float move = lr * u;
      w[i] = w[i] + move;
    }
  }
};

TEST(OptimizerMoments, UpdatesComeFromFreshOrFromStoredOnes) {
  constexpr size_t n = 4500;
  for (const bool reread : {false, true}) {
    OptimizerConfig config = WithMoments("bf16", "bf16");
    config.update_from_stored = reread;
    Problem problem(config, OneMatrix(n));
    Bf16Adam reference{reread, problem.WeightValues(), Floats(n), Floats(n)};
    for (uint64_t step = 0; step < 5; ++step) {
      problem.DrawGradients(step);
      reference.Step(problem.Gradient(), 1e-2f);
      problem.optimizer().Step(1e-2, step);
      ASSERT_TRUE(SameBits(problem.Weights(), reference.w)) << reread << " step " << step;
    }
  }
}

// In the first step fresh moments give direction 1 whatever they lose in storage. A stored second
// moment that was flushed to zero leaves epsilon to divide by.
TEST(OptimizerMoments, AFlushedSecondMomentShowsInTheUpdateFromStored) {
  for (const bool reread : {false, true}) {
    OptimizerConfig config = WithMoments("fp32", "e4m3fn@tensor");
    config.update_from_stored = reread;
    config.epsilon = 1e-4;
    Problem problem(config, OneMatrix(2));
    problem.SetWeights({0, 0});
    problem.SetGradient({1, 1e-3f});  // v = 0.05 and 5e-8, below 0.05 / (448 * 512)
    const OptimizerStep& step = problem.optimizer().Step(1e-3, 0);
    EXPECT_NEAR(step.tensors[0].max_update, reread ? 10 : 1, 0.01);
    EXPECT_NEAR(step.tensors[0].rms, reread ? std::sqrt((100 + 1) / 2.0) : 1, 0.01);
  }
}

TEST(OptimizerMoments, LionAndSgdReadWhatWasStored) {
  // Half of bf16's gap is lost in storage: m = 1 + 2^-9 is kept as 1.
  for (const bool reread : {false, true}) {
    OptimizerConfig config = WithMoments("bf16", "fp32");
    config.kind = OptimizerKind::kSgd;
    config.update_from_stored = reread;
    Problem problem(config, OneMatrix(1));
    problem.SetWeights({0});
    problem.SetGradient({1 + 0x1p-9f});
    problem.optimizer().Step(1, 0);
    EXPECT_EQ(problem.Weights()[0], reread ? -1 : -1 - 0x1p-9f);
  }
  OptimizerConfig config = WithMoments("bf16", "fp32");
  config.kind = OptimizerKind::kLion;
  config.beta1 = config.beta2 = 0.5;
  Problem problem(config, OneMatrix(1));
  problem.SetWeights({0});
  problem.SetGradient({2 + 0x1p-8f});
  problem.optimizer().Step(1, 0);  // m = 1 + 2^-9, kept as 1
  problem.SetGradient({-1});
  problem.optimizer().Step(1, 1);  // 0.5 - 0.5 is no direction
  EXPECT_EQ(problem.Weights()[0], -1);
}

TEST(OptimizerMoments, LossIsMeasuredWhereAsked) {
  Problem problem(WithMoments("fp32", "e4m3fn@tensor"), OneMatrix(3));
  problem.SetGradient({1, 1e-4f, 0});
  const OptimizerStep& silent = problem.optimizer().Step(1e-3, 0, false);
  EXPECT_EQ(silent.tensors[0].v.nonzero, 0u);
  const OptimizerStep& step = problem.optimizer().Step(1e-3, 1, true);
  EXPECT_EQ(step.tensors[0].m.nonzero, 2u);
  EXPECT_EQ(step.tensors[0].m.flushed, 0u);
  EXPECT_EQ(step.tensors[0].m.error_square, 0);
  EXPECT_GT(step.tensors[0].m.signal_square, 0);
  EXPECT_EQ(step.tensors[0].v.nonzero, 2u);
  EXPECT_EQ(step.tensors[0].v.flushed, 1u);
}

// Measuring takes another way through memory and must not change a bit.
TEST(OptimizerMoments, MeasuringChangesNothing) {
  for (const char* const moments : {"fp32", "e5m2@tensor+sr"}) {
    Problem measured(WithMoments(moments, moments), OneMatrix(9000));
    Problem plain(WithMoments(moments, moments), OneMatrix(9000));
    for (uint64_t step = 0; step < 3; ++step) {
      measured.DrawGradients(step);
      measured.optimizer().Step(1e-2, step, true);
      plain.DrawnStep(1e-2, step);
      ASSERT_TRUE(SameBits(measured.Weights(), plain.Weights())) << moments;
    }
  }
}

TEST(OptimizerMoments, FilterAndMinimumChooseTensors) {
  const std::vector<TensorShape> shapes = {{"matrix", ParameterRole::kMatrix, 8, 16},
                                           {"small", ParameterRole::kMatrix, 1, 127},
                                           {"table", ParameterRole::kEmbedding, 16, 16},
                                           {"gain", ParameterRole::kGain, 1, 256}};
  OptimizerConfig config = WithMoments("e4m3fn@tensor", "bf16");
  config.moment_minimum = 128;
  Problem matrices(config, shapes);
  const Optimizer& optimizer = matrices.optimizer();
  EXPECT_EQ(optimizer.StoredBytes(0).m, (128 + 4) / 128.0) << "codes and a scale";
  EXPECT_EQ(optimizer.StoredBytes(0).v, 2);
  EXPECT_EQ(optimizer.StoredBytes(1).m, 4);
  EXPECT_EQ(optimizer.StoredBytes(1).v, 4);
  EXPECT_EQ(optimizer.StoredBytes(2).m, (256 + 4) / 256.0);
  EXPECT_EQ(optimizer.StoredBytes(3).m, 4);
  const double elements = 128 + 127 + 256 + 256;
  EXPECT_EQ(optimizer.StoredBytes().m, (132 + 4 * 127 + 260 + 4 * 256) / elements);
  EXPECT_EQ(optimizer.StoredBytes().v, (2 * 128 + 4 * 127 + 2 * 256 + 4 * 256) / elements);
  EXPECT_EQ(optimizer.StoredBytes().weights, 4);
  config.moment_filter = MomentFilter::kAll;
  EXPECT_EQ(Problem(config, shapes).optimizer().StoredBytes(3).m, (256 + 4) / 256.0);
  config.moment_tensors = "*t*l*";
  Problem named(config, shapes);
  EXPECT_EQ(named.optimizer().StoredBytes(0).m, 4) << "'matrix' has no l";
  EXPECT_EQ(named.optimizer().StoredBytes(2).m, (256 + 4) / 256.0);
  EXPECT_EQ(named.optimizer().StoredBytes(3).v, 4);
}

TEST(OptimizerMoments, OptimisersWithoutASecondMomentStoreNone) {
  for (const auto kind : {OptimizerKind::kSgd, OptimizerKind::kLion}) {
    OptimizerConfig config;
    config.kind = kind;
    EXPECT_EQ(Problem(config, OneMatrix(10)).optimizer().StoredBytes().v, 0);
  }
}

// Draws are functions of (seed, step, tensor), and m and v have their own.
TEST(OptimizerMoments, StochasticStorageIsKeyed) {
  const std::vector<TensorShape> two = {{"a", ParameterRole::kMatrix, 1, 500},
                                        {"b", ParameterRole::kMatrix, 1, 500}};
  const OptimizerConfig config = WithMoments("e4m3fn@none+sr", "e4m3fn@none+sr");
  const auto states = [&](uint64_t seed, uint64_t step) {
    Problem problem(config, two, {}, seed);
    for (size_t i = 0; i < 2; ++i) problem.SetGradient(Floats(500, 2), i);  // m = v = 0.2
    problem.optimizer().Step(1e-3, step);
    std::vector<std::vector<std::byte>> moments;
    for (const NamedBytes& piece : problem.optimizer().Save()) {
      if (piece.name.ends_with("/m") || piece.name.ends_with("/v")) moments.push_back(piece.bytes);
    }
    return moments;
  };
  const auto first = states(1, 3);
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first, states(1, 3));
  EXPECT_NE(first[0], first[1]) << "m and v";
  EXPECT_NE(first[0], first[2]) << "tensors";
  EXPECT_NE(first, states(2, 3)) << "seed";
  EXPECT_NE(first, states(1, 4)) << "step";
}

}  // namespace
}  // namespace numsim
