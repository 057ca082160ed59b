#include "numsim/optim/optimizer_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "numsim/base/error.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

// Returns the field that the error of a changed configuration names, or kNoError.
std::string FaultOf(const std::function<void(OptimizerConfig&)>& change) {
  OptimizerConfig config;
  change(config);
  const std::string message = ErrorOf([&] { CheckOptimizerConfig(config); });
  return message.substr(0, message.find(": "));
}

TEST(OptimizerConfig, DefaultIsAdamWInFloat32) {
  const OptimizerConfig config;
  CheckOptimizerConfig(config);
  EXPECT_EQ(config.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(config.weights.name, "fp32");
  EXPECT_TRUE(config.m.IsExact());
  EXPECT_TRUE(config.v.IsExact());
  EXPECT_EQ(config.update.kind, UpdateKind::kNaive);
}

TEST(OptimizerConfig, AveragesLieBelowOne) {
  for (const double beta : {0.0, 0.5, 0.999, 0.9999999}) {
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.beta1 = beta; }), kNoError) << beta;
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.beta2 = beta; }), kNoError) << beta;
  }
  // The last is below 1, but not as a float32.
  for (const double beta : {-0.1, 1.0, 2.0, std::nan(""), 0.99999999}) {
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.beta1 = beta; }), "optimizer.beta1") << beta;
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.beta2 = beta; }), "optimizer.beta2") << beta;
  }
}

TEST(OptimizerConfig, NumbersInRange) {
  const double nan = std::nan("");
  for (const double bad : {-0.1, 1.5, nan}) {
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.beta2_decay = bad; }), "optimizer.beta2_decay");
  }
  for (const double bad : {0.0, -1e-8, 1e-50, 1e-40, HUGE_VAL, nan}) {
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.epsilon = bad; }), "optimizer.epsilon") << bad;
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.stable.threshold = bad; }),
              "optimizer.stable.threshold");
  }
  for (const double bad : {-1.0, -1e-50, 1e39, nan}) {
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.weight_decay = bad; }), "optimizer.weight_decay");
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.clip_norm = bad; }), "optimizer.clip_norm");
  }
  EXPECT_EQ(FaultOf([](OptimizerConfig& c) {
              c.beta2_decay = 0.8;
              c.weight_decay = 0;
              c.clip_norm = 1;
              c.stable.threshold = 2;
            }),
            kNoError);
}

// The RMS is that of the moment, of the update, or of the gradient over the previous second moment.
TEST(OptimizerConfig, RmsOfTheMomentExcludesThatOfAnother) {
  const auto complaint = [](OptimizerKind kind, bool StableOptions::*other) {
    OptimizerConfig config;
    config.kind = kind;
    config.stable.of_moment = true;
    config.stable.*other = true;
    return ErrorOf([&] { CheckOptimizerConfig(config); });
  };
  for (const auto kind : {OptimizerKind::kAdamW, OptimizerKind::kStableAdamW}) {
    for (bool StableOptions::*const compatible : {&StableOptions::of_moment,
                                                  &StableOptions::clipped_decay,
                                                  &StableOptions::epsilon_added,
                                                  &StableOptions::global}) {
      EXPECT_EQ(complaint(kind, compatible), kNoError);
    }
    EXPECT_EQ(complaint(kind, &StableOptions::of_update),
              "optimizer.stable.of_moment: true together with of_update");
    EXPECT_EQ(complaint(kind, &StableOptions::previous_u),
              "optimizer.stable.of_moment: true together with previous_u");
  }
  EXPECT_EQ(FaultOf([](OptimizerConfig& c) {
              c.stable.of_moment = c.stable.of_update = c.stable.previous_u = true;
            }),
            "optimizer.stable.of_moment");
  EXPECT_EQ(FaultOf([](OptimizerConfig& c) { c.stable.of_update = c.stable.previous_u = true; }),
            kNoError);
}

TEST(OptimizerConfig, FormatsHaveSignAndZero) {
  for (const char* const bad : {"e8m0fnu", "ue4m4"}) {
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.weights = ParseFormat(bad); }),
              "optimizer.weights");
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.m.format = ParseFormat(bad); }), "optimizer.m");
    EXPECT_EQ(FaultOf([&](OptimizerConfig& c) { c.v.format = ParseFormat(bad); }), "optimizer.v");
  }
  EXPECT_EQ(FaultOf([](OptimizerConfig& c) { c.m.block = 0; }), "optimizer.m");
}

TEST(OptimizerConfig, RuleServesTheWeights) {
  const auto split = [](const char* format) {
    return [format](OptimizerConfig& c) {
      c.update = ParseUpdateRule("split-master");
      c.weights = ParseFormat(format);
    };
  };
  EXPECT_EQ(FaultOf(split("bf16")), kNoError);
  EXPECT_EQ(FaultOf(split("fp16")), "optimizer.update");
}

TEST(OptimizerConfig, NamesReadBack) {
  for (const auto kind : {OptimizerKind::kAdamW,
                          OptimizerKind::kStableAdamW,
                          OptimizerKind::kSgd,
                          OptimizerKind::kLion}) {
    EXPECT_EQ(ParseOptimizerKind(ToString(kind)), kind);
  }
  for (const auto filter : {DecayFilter::kMatrices, DecayFilter::kAll, DecayFilter::kNone}) {
    EXPECT_EQ(ParseDecayFilter(ToString(filter)), filter);
  }
  for (const auto filter : {MomentFilter::kMatrices, MomentFilter::kAll}) {
    EXPECT_EQ(ParseMomentFilter(ToString(filter)), filter);
  }
}

TEST(OptimizerConfig, UnknownNamesListTheKnown) {
  EXPECT_EQ(ErrorOf([] { ParseOptimizerKind("adam"); }),
            "optimizer 'adam' is not one of adamw, stable-adamw, sgd, lion; did you mean adamw?");
  EXPECT_THROW(ParseDecayFilter("weights"), Error);
  EXPECT_THROW(ParseMomentFilter(""), Error);
}

}  // namespace
}  // namespace numsim
