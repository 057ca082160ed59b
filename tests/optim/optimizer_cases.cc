#include "tests/optim/optimizer_cases.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "numsim/formats/named_formats.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/random/distributions.h"
#include "tests/support/error_of.h"
#include "tests/support/moment_loss.h"

namespace numsim::optimizer_cases {
namespace {

std::vector<std::string> Kinds() {
  std::vector<std::string> kinds;
  for (const OptimizerKindRow& row : OptimizerKindRows()) kinds.emplace_back(row.name);
  return kinds;
}

OptimizerConfig ConfigOf(const std::string& kind, const std::string& m, const std::string& v) {
  OptimizerConfig config;
  config.kind = ParseOptimizerKind(kind);
  config.m = ParseMomentFormat(m);
  config.v = ParseMomentFormat(v);
  config.clip_norm = 20;
  return config;
}

OptimizerCase WithWeights(const std::string& kind,
                          const std::string& weights,
                          const std::string& rule,
                          const std::string& moments = "fp32") {
  OptimizerConfig config = ConfigOf(kind, moments, moments);
  config.weights = ParseFormat(weights);
  config.update = ParseUpdateRule(rule);
  return {kind + " " + weights + " " + rule + " " + moments, config};
}

}  // namespace

std::vector<OptimizerCase> MomentCases() {
  const std::pair<const char*, const char*> formats[] = {{"fp32", "fp32"},
                                                         {"bf16", "bf16"},
                                                         {"bf16+sr", "bf16+sr"},
                                                         {"fp16@tensor", "fp16@block"},
                                                         {"e4m3fn", "e5m2"},
                                                         {"e4m3fn+sr", "e5m2+sr:8"},
                                                         {"e4m3fn@block", "e4m3fn@block:100+sr"},
                                                         {"int8@none", "e5m2@none"},
                                                         {"e2m1fn@block+sr", "e2m1fn@block:32"},
                                                         {"e4m3fn@coat", "e5m2@coat:64+sr"},
                                                         {"dynamic", "dynamic:128+sr"},
                                                         {"fp32", "e4m3fn@block:8192"},
                                                         {"dynamic+sr:5", "fp32"}};
  std::vector<OptimizerCase> cases;
  for (const std::string& kind : Kinds()) {
    for (const auto& [m, v] : formats) {
      OptimizerConfig config = ConfigOf(kind, m, v);
      const std::string name = kind + " " + m + " " + v;
      cases.push_back({name, config, {}, true});
      config.update_from_stored = true;
      config.moment_filter = MomentFilter::kAll;
      config.moment_minimum = 3;
      cases.push_back({name + " from stored", config});
    }
  }
  return cases;
}

std::vector<OptimizerCase> WeightCases() {
  std::vector<std::pair<std::string, std::string>> rules = {{"fp32", "naive"},
                                                            {"e4m3fn", "naive"},
                                                            {"bf16", "stochastic:16"},
                                                            {"e5m2", "stochastic:7"},
                                                            {"fp16", "kahan:bf16"},
                                                            {"fp32", "master-fp32"},
                                                            {"e4m3fn", "master-fp32"},
                                                            {"bf16", "projection-matched:none"}};
  for (const UpdateKind kind : UpdateKinds()) {
    const UpdateRule rule{.kind = kind};
    if (ErrorOf([&] { CheckOnDevice(rule, kBf16); }) == kNoError) {
      rules.emplace_back("bf16", ToString(rule));
    }
  }
  std::vector<OptimizerCase> cases;
  for (const std::string& kind : Kinds()) {
    for (const auto& [weights, rule] : rules) {
      cases.push_back(WithWeights(kind, weights, rule));
      cases.push_back(WithWeights(kind, weights, rule, "e4m3fn@block+sr"));
      cases.back().config.weight_decay = 0;
      cases.back().name += " without decay";
    }
  }
  return cases;
}

std::vector<OptimizerCase> DecisionCases() {
  std::vector<OptimizerCase> cases;
  for (const std::string& kind : Kinds()) {
    for (const LossScaling scaling :
         {LossScaling::kNone, LossScaling::kDynamic, LossScaling::kTensor}) {
      OptimizerConfig config = ConfigOf(kind, "bf16", "e4m3fn@block");
      config.decay_filter = DecayFilter::kAll;
      config.clip_norm = scaling == LossScaling::kNone ? 0 : 3;
      const LossScalerConfig scaler{.kind = scaling, .initial = 1024, .growth_interval = 3};
      const std::string name = kind + " " + std::string(ToString(scaling));
      cases.push_back({name, config, scaler, true});
      OptimizerConfig small = config;  // all tensors in 8 bits, the smallest too
      small.moment_filter = MomentFilter::kAll;
      small.moment_minimum = 1;
      for (const char* const scales : {"@tensor", "@block:128", "@block:256"}) {
        small.m = ParseMomentFormat(std::string("e4m3fn") + scales);
        small.v = ParseMomentFormat(std::string("e5m2") + scales);
        for (const double clip_norm : {0.0, 3.0}) {
          small.clip_norm = clip_norm;
          small.beta2_decay =
              clip_norm == 0 ? 0.8 : 0;  // then states depend on the number of the step
          cases.push_back(
              {fmt::format("{} {} clipped at {}", name, scales, clip_norm), small, scaler});
        }
      }
      config.epsilon = 1.2e-38;  // directions overflow where v was flushed
      config.m = ParseMomentFormat("fp32");
      config.v = ParseMomentFormat("e4m3fn@tensor");
      config.update_from_stored = true;
      config.update = ParseUpdateRule("kahan");
      config.weights = ParseFormat("bf16");
      cases.push_back({name + " tiny epsilon", config, scaler});
    }
  }
  for (int bits = 0; bits < 64; ++bits) {
    OptimizerConfig config =
        ConfigOf(bits % 2 == 0 ? "adamw" : "stable-adamw", "fp32", "e4m3fn@block");
    config.stable = {.clipped_decay = (bits & 2) != 0,
                     .epsilon_added = (bits & 4) != 0,
                     .previous_u = (bits & 8) != 0,
                     .of_update = (bits & 16) != 0,
                     .of_moment = (bits & 24) == 0 && bits % 3 != 0,
                     .global = (bits & 32) != 0,
                     .threshold = 0.5};
    config.update_from_stored = bits % 3 == 0;
    config.beta2_decay = bits % 5 == 0 ? 0.8 : 0;
    cases.push_back({"stable " + std::to_string(bits), config});
  }
  return cases;
}

std::vector<OptimizerCase> WithoutReports(const std::vector<OptimizerCase>& cases) {
  std::vector<OptimizerCase> found;
  for (OptimizerCase each : cases) {
    each.measure = false;
    // Kernels of their own have only moments that are rounded to nearest.
    if (each.config.update.kind != UpdateKind::kNaive && !each.config.m.IsExact()) {
      each.config.m = each.config.v = ParseMomentFormat("e4m3fn@block");
    }
    const bool clips = ToString(each.config.kind) == "stable-adamw";  // its ratios come before
    if (!each.config.update_from_stored && !(clips && found.size() % 8 != 0)) found.push_back(each);
  }
  return found;
}

void AddTensors(ParameterList<float>& parameters) {
  const auto add = [&](const char* name, ParameterRole role, size_t rows, size_t cols) {
    parameters.Add(name, role, rows, cols, {0, 0.1f});
  };
  add("one", ParameterRole::kMatrix, 1, 1);
  add("two", ParameterRole::kGain, 1, 2);
  add("small", ParameterRole::kMatrix, 5, 51);
  add("bias", ParameterRole::kBias, 1, 300);
  add("almost", ParameterRole::kMatrix, 1, 4095);
  add("block", ParameterRole::kEmbedding, 64, 64);
  add("more", ParameterRole::kMatrix, 17, 241);
  add("gain", ParameterRole::kGain, 1, 64);
  add("large", ParameterRole::kMatrix, 100, 100);
  add("empty", ParameterRole::kMatrix, 0, 4);
  add("longer", ParameterRole::kMatrix, 1, 17001);
}

std::vector<float> GradientOf(uint64_t step, size_t tensor, size_t n, bool hard) {
  std::vector<float> gradient(n);
  FillNormal({91, step * 100 + tensor}, 0, gradient);
  const float scale = std::ldexp(1.0f, static_cast<int>(step % 4) - 3);
  for (float& g : gradient) g *= scale;
  if (n == 0) return gradient;
  if ((step + tensor) % 5 == 0) std::fill(gradient.begin(), gradient.begin() + n / 2, 0.0f);
  if (step == tensor % 3)
    std::fill(gradient.begin(), gradient.end(), tensor % 2 != 0 ? 0.0f : -0.0f);
  if (!hard) return gradient;
  if (step % 3 == 2 && tensor % 4 == 0) {
    for (float& g : gradient) g *= 100;
    gradient[n / 2] *= 1e4f;
  }
  const float specials[] = {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            3e38f,
                            1e20f,
                            1e-40f};
  if (step % 3 == 1 && tensor % 4 == 2) gradient[n / 2] = specials[(step + tensor) % 5];
  return gradient;
}

void ExpectSameFloats(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << ": " << actual[i] << ", expected " << expected[i];
  }
}

namespace {

void ExpectSameOutcome(const UpdateOutcome& actual, const UpdateOutcome& expected) {
  EXPECT_EQ(ToString(actual.status), ToString(expected.status));
  EXPECT_EQ(actual.moved, expected.moved);
  EXPECT_EQ(actual.saturated, expected.saturated);
  EXPECT_EQ(actual.achieved_norm, expected.achieved_norm);
  EXPECT_EQ(actual.target_norm, expected.target_norm);
  EXPECT_EQ(actual.achieved_projection, expected.achieved_projection);
  EXPECT_EQ(actual.target_projection, expected.target_projection);
  EXPECT_EQ(actual.alpha, expected.alpha);
  EXPECT_EQ(actual.matched, expected.matched);
  EXPECT_EQ(actual.matched_target, expected.matched_target);
}

}  // namespace

void ExpectSameStep(const OptimizerStep& actual, const OptimizerStep& expected, bool reports) {
  EXPECT_EQ(actual.skipped, expected.skipped);
  EXPECT_EQ(actual.finite, expected.finite);
  EXPECT_EQ(actual.gradient_norm, expected.gradient_norm);
  EXPECT_EQ(actual.clip_factor, expected.clip_factor);
  EXPECT_EQ(actual.learning_rate, expected.learning_rate);
  EXPECT_EQ(actual.loss_scale, expected.loss_scale);
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < actual.tensors.size(); ++i) {
    SCOPED_TRACE("tensor " + std::to_string(i));
    const TensorStep &a = actual.tensors[i], &e = expected.tensors[i];
    EXPECT_EQ(a.skipped, e.skipped);
    EXPECT_EQ(a.gradient_norm, e.gradient_norm);
    if (!reports) continue;
    EXPECT_EQ(a.rms, e.rms);
    EXPECT_EQ(a.update_rms, e.update_rms);
    EXPECT_EQ(a.max_update, e.max_update);
    ExpectSameLoss(a.m, e.m);
    ExpectSameLoss(a.v, e.v);
    ExpectSameOutcome(a.weights, e.weights);
  }
}

void ExpectSameState(const std::vector<NamedBytes>& actual,
                     const std::vector<NamedBytes>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].name, expected[i].name);
    EXPECT_TRUE(actual[i].bytes == expected[i].bytes) << actual[i].name;
  }
}

}  // namespace numsim::optimizer_cases
