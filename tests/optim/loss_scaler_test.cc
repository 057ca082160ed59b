// Loss scalers against the rules of PyTorch's GradScaler, written down from its documentation and
// from _amp_update_scale_.
#include "numsim/optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/random/streams.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

LossScalerConfig Dynamic() {
  LossScalerConfig config;
  config.kind = LossScaling::kDynamic;
  return config;
}

// The tensors _scale (float32) and _growth_tracker (int32), and what update() does to them.
struct GradScaler {
  float scale = 65536.0f;
  int growth_tracker = 0;
  double growth_factor = 2.0, backoff_factor = 0.5;
  int growth_interval = 2000;

  void Update(bool found_inf) {
    if (found_inf) {
      scale = static_cast<float>(static_cast<double>(scale) * backoff_factor);
      growth_tracker = 0;
      return;
    }
    const int successful = growth_tracker + 1;
    if (successful != growth_interval) {
      growth_tracker = successful;
      return;
    }
    const auto grown = static_cast<float>(static_cast<double>(scale) * growth_factor);
    if (std::isfinite(grown)) scale = grown;
    growth_tracker = 0;
  }
};

TEST(LossScaler, DefaultsAreThoseOfPyTorch) {
  const LossScalerConfig config;
  const GradScaler reference;
  EXPECT_EQ(config.initial, static_cast<double>(reference.scale));
  EXPECT_EQ(config.growth, reference.growth_factor);
  EXPECT_EQ(config.backoff, reference.backoff_factor);
  EXPECT_EQ(config.growth_interval, static_cast<uint64_t>(reference.growth_interval));
}

// By hand: 65536, two steps, an infinity, and 2000 steps in a row until it is back.
TEST(LossScaler, DynamicHalvesAtOnceAndDoublesAfterTwoThousandSteps) {
  LossScaler scaler(Dynamic());
  EXPECT_EQ(scaler.Scale(), 65536);
  EXPECT_TRUE(scaler.Update(true));
  EXPECT_TRUE(scaler.Update(true));
  EXPECT_EQ(scaler.Scale(), 65536);
  EXPECT_FALSE(scaler.Update(false));
  EXPECT_EQ(scaler.Scale(), 32768);
  EXPECT_EQ(scaler.Skipped(), 1u);
  for (int i = 0; i < 1999; ++i) EXPECT_TRUE(scaler.Update(true));
  EXPECT_EQ(scaler.Scale(), 32768);
  EXPECT_TRUE(scaler.Update(true));
  EXPECT_EQ(scaler.Scale(), 65536);
  EXPECT_EQ(scaler.Skipped(), 1u);
}

TEST(LossScaler, DynamicFollowsPyTorchStepByStep) {
  struct Case {
    double initial, growth, backoff;
    int interval;
    uint32_t bad_in_256;  // how often gradients are not finite
  };
  // Factors that are no powers of two round; small intervals reach the largest float32.
  for (const Case& c : {Case{65536, 2, 0.5, 2000, 1},
                        Case{65536, 2, 0.5, 3, 30},
                        Case{1000, 1.3, 0.77, 5, 20},
                        Case{1e30, 2, 0.5, 1, 2},
                        Case{8, 1, 0.25, 1, 1}}) {
    LossScalerConfig config = Dynamic();
    config.initial = c.initial;
    config.growth = c.growth;
    config.backoff = c.backoff;
    config.growth_interval = static_cast<uint64_t>(c.interval);
    LossScaler scaler(config);
    GradScaler reference{static_cast<float>(c.initial), 0, c.growth, c.backoff, c.interval};
    uint64_t skipped = 0;
    for (uint64_t step = 0; step < 5000; ++step) {
      const bool found_inf = RandomBits({3, 9}, step, 8) < c.bad_in_256;
      ASSERT_EQ(scaler.Update(!found_inf), !found_inf);
      reference.Update(found_inf);
      skipped += found_inf ? 1 : 0;
      ASSERT_EQ(scaler.Scale(), static_cast<double>(reference.scale)) << "step " << step;
      ASSERT_EQ(scaler.Save().taken_in_row, static_cast<uint64_t>(reference.growth_tracker));
    }
    EXPECT_EQ(scaler.Skipped(), skipped);
    EXPECT_GT(skipped, 0u);
  }
}

TEST(LossScaler, DynamicStaysBelowOverflow) {
  LossScalerConfig config = Dynamic();
  config.growth_interval = 1;
  LossScaler scaler(config);
  for (int i = 0; i < 300; ++i) scaler.Update(true);
  EXPECT_EQ(scaler.Scale(), 0x1p127);
}

TEST(LossScaler, DynamicFallsBelowOneButNeverToZero) {
  LossScaler scaler(Dynamic());
  for (int i = 0; i < 20; ++i) scaler.Update(false);
  EXPECT_EQ(scaler.Scale(), 0x1p-4);
  for (int i = 0; i < 300; ++i) scaler.Update(false);
  EXPECT_EQ(scaler.Scale(), static_cast<double>(std::numeric_limits<float>::min()));
  EXPECT_EQ(scaler.Skipped(), 320u);
}

TEST(LossScaler, TensorAndNoneAreConstantAndTakeEveryStep) {
  LossScalerConfig config;
  config.kind = LossScaling::kTensor;
  config.initial = 1024;
  config.growth_interval = 1;
  LossScaler tensor(config);
  config.kind = LossScaling::kNone;
  LossScaler none(config);
  for (const bool finite : {true, false, true, true, false}) {
    EXPECT_TRUE(tensor.Update(finite));
    EXPECT_TRUE(none.Update(finite));
    EXPECT_EQ(tensor.Scale(), 1024);
    EXPECT_EQ(none.Scale(), 1);
  }
  EXPECT_EQ(tensor.Skipped(), 0u);
}

TEST(LossScaler, RestoredContinuesAsTheOther) {
  LossScalerConfig config = Dynamic();
  config.growth_interval = 3;
  LossScaler first(config), second(config);
  for (const bool finite : {true, false, true, true}) first.Update(finite);
  second.Restore(first.Save());
  EXPECT_EQ(second.Scale(), 32768);
  EXPECT_EQ(second.Skipped(), 1u);
  for (const bool finite : {true, true, false, true}) {
    EXPECT_EQ(first.Update(finite), second.Update(finite));
    EXPECT_EQ(first.Scale(), second.Scale());
  }
}

TEST(LossScaler, StatesThatCannotBeAreRefused) {
  LossScalerConfig config = Dynamic();
  config.growth_interval = 3;
  LossScaler scaler(config);
  EXPECT_THROW(scaler.Restore({std::nan(""), 0, 0}), Error);
  EXPECT_THROW(scaler.Restore({0, 0, 0}), Error);
  EXPECT_THROW(scaler.Restore({65536, 3, 0}), Error);
  config.kind = LossScaling::kTensor;
  LossScaler tensor(config);
  EXPECT_THROW(tensor.Restore({32768, 0, 0}), Error);
  EXPECT_EQ(tensor.Scale(), 65536);
}

TEST(LossScaler, ErrorsNameTheField) {
  const auto fault = [](const LossScalerConfig& config) {
    const std::string message = ErrorOf([&] { LossScaler scaler(config); });
    return message.substr(0, message.find(':'));
  };
  LossScalerConfig config = Dynamic();
  EXPECT_EQ(fault(config), kNoError);
  for (const double initial : {0.0, -1.0, 1e39, 1e-40, std::nan("")}) {
    config = Dynamic();
    config.initial = initial;
    EXPECT_EQ(fault(config), "loss_scaler.initial") << initial;
  }
  config = Dynamic();
  config.growth = 0.5;
  EXPECT_EQ(fault(config), "loss_scaler.growth");
  for (const double backoff : {0.0, 1.0, -0.5, 2.0}) {
    config = Dynamic();
    config.backoff = backoff;
    EXPECT_EQ(fault(config), "loss_scaler.backoff") << backoff;
  }
  config = Dynamic();
  config.growth_interval = 0;
  EXPECT_EQ(fault(config), "loss_scaler.growth_interval");
}

TEST(LossScaler, NamesReadBack) {
  for (const auto kind : {LossScaling::kNone, LossScaling::kDynamic, LossScaling::kTensor}) {
    EXPECT_EQ(ParseLossScaling(ToString(kind)), kind);
  }
  EXPECT_THROW(ParseLossScaling("static"), Error);
}

}  // namespace
}  // namespace numsim
