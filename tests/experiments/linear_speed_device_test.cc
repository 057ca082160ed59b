// `linear-speed` under backend cuda, small.
#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <string>

#include "experiments/linear_speed/check.h"
#include "experiments/linear_speed/linear_speed.h"
#include "experiments/linear_speed/operands_device.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/backend/backend.h"
#include "numsim/gemm/gemm_device.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::linear_speed {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;

const Overrides kSmallRun = {
    {"dims", "64,80"}, {"tokens", "96,128"}, {"repeats", "3"}, {"min-seconds", "0"}};

// Tests that need the backend.
class LinearSpeedDevice : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!DeviceAvailable()) return;
    before_ = BackendName();
    ForceBackend("cuda");
  }
  void TearDown() override {
    if (!before_.empty()) ForceBackend(before_);
  }

  // Rules of Hopper's tensor cores, or the library's on another device.
  static Settings SettingsWith(Overrides overrides) {
    overrides.insert(kSmallRun.begin(), kSmallRun.end());
    if (!Device().IsHopper()) overrides["accumulate"] = "library";
    return MakeSettings(LinearSpeed(), "paper", 3, 1, overrides);
  }

  static Tables TablesOf(const Overrides& overrides) {
    const TemporaryDirectory directory;
    Experiment experiment = LinearSpeed();
    experiment.figures = nullptr;
    RunOptions options;
    options.settings = SettingsWith(overrides);
    options.out = directory.Path() / "out";
    experiments::Run(experiment, options);
    return {{"operations", ReadCsv(options.out / "operations.csv")},
            {"layers", ReadCsv(options.out / "layers.csv")},
            {"crossings", ReadCsv(options.out / "crossings.csv")}};
  }

  std::string before_;
};

TEST_F(LinearSpeedDevice, DefaultsAreThoseOfADevice) {
  const Settings settings = MakeSettings(LinearSpeed(), "paper", 0, 1, {});
  EXPECT_EQ(settings.Get("high-precision"), "bf16");
  EXPECT_EQ(settings.Get("product"), "library");
  EXPECT_EQ(settings.Get("formats"), "int8,e4m3fn");
  EXPECT_EQ(settings.Get("repeats"), "20");
  EXPECT_EQ(settings.Get("tokens"), "8192,16384,32768,65536,131072");
}

TEST_F(LinearSpeedDevice, EveryLayerIsCheckedAndTimed) {
  const Tables tables = TablesOf({});
  const Table& operations = tables.at("operations");
  std::set<std::string> kinds;
  size_t unchecked = 0;
  for (size_t r = 0; r < operations.rows.size(); ++r) {
    SCOPED_TRACE(operations.Text(r, "kind") + " " + operations.Text(r, "operation"));
    kinds.insert(operations.Text(r, "kind") + " " + operations.Text(r, "format"));
    EXPECT_EQ(operations.Text(r, "device"), Device().name);
    EXPECT_EQ(operations.Text(r, "backend"), "cuda");
    EXPECT_EQ(operations.Text(r, "library"), DeviceGemmLibrary());
    EXPECT_EQ(operations.Text(r, "high_precision"), "bf16");
    EXPECT_EQ(operations.Number(r, "repeats"), 3);
    const std::string part = operations.Text(r, "part");
    if (part != "other") {
      EXPECT_GT(operations.Number(r, "seconds"), 0);
      EXPECT_LT(operations.Number(r, "seconds"), 1);
    }
    if (part == "product") unchecked += operations.Number(r, "checked") == 0;
    if (operations.Text(r, "operation") == "forward product") {
      EXPECT_EQ(operations.Number(r, "checked"), 32);
    }
  }
  EXPECT_EQ(kinds.size(), 13u);
  // The weight gradient of switchback-m, two formats, two dims, two numbers of tokens, both ways.
  EXPECT_EQ(unchecked, 2u * 2 * 2 * 2);
  const Table& layers = tables.at("layers");
  ASSERT_EQ(layers.rows.size(), 13u * 2 * 2);
  for (size_t r = 0; r < layers.rows.size(); ++r) {
    EXPECT_GT(layers.Number(r, "seconds"), 0);
    EXPECT_FALSE(std::isnan(layers.Number(r, "speedup")));
    double shares = 0;
    for (const Part part : kParts) {
      shares += layers.Number(r, std::string(ToString(part)) + "_share");
    }
    EXPECT_NEAR(shares, 1, 1e-9);
  }
  EXPECT_EQ(tables.at("crossings").rows.size(), 12u * 4);
}

TEST_F(LinearSpeedDevice, KeptBytesAreThoseOfTheCpuInBf16) {
  const Table layers = TablesOf({{"kinds", "standard,switchback-m"},
                                 {"formats", "int8"},
                                 {"dims", "64"},
                                 {"tokens", "96"}})
                           .at("layers");
  ASSERT_EQ(layers.rows.size(), 2u);
  const double x = 96 * (64 + 256) / 2;
  EXPECT_EQ(layers.Number(0, "kept_bytes"), 2 * x);
  EXPECT_EQ(layers.Number(1, "kept_bytes"), x + 4 * 64 * 64 + 4 * 96 + 4);
}

TEST_F(LinearSpeedDevice, OddShapesAreChecked) {
  const Table table =
      TablesOf({{"dims", "33"}, {"tokens", "17"}, {"widths", "1,3"}}).at("operations");
  EXPECT_GT(table.rows.size(), 0u);
}

TEST_F(LinearSpeedDevice, RefusesWhatTheDeviceDoesNotRun) {
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { LinearSpeed().trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  EXPECT_THAT(message({{"kinds", "block"}}), HasSubstr("block"));
  EXPECT_THAT(message({{"high-precision", "fp32"}}), HasSubstr("fp32"));
  EXPECT_THAT(message({{"product", "bf16"}}), HasSubstr("mode bf16"));
}

TEST_F(LinearSpeedDevice, OperandsAreThoseOfTheCpu) {
  constexpr LinearShape kShape{.tokens = 70, .in = 30, .out = 50};
  const LayerTensors tensors(kShape, 9, 64);
  std::vector<DeviceOperands> sets = MakeDeviceSets(tensors, 100000);
  EXPECT_EQ(sets.size(), 100000 / sets[0].Bytes() + 1);
  for (const DeviceOperands* on : {&sets.front(), &sets.back()}) {
    for (const auto& [matrix, tensor] : {std::pair{on->X(), &tensors.x},
                                         std::pair{on->W(), &tensors.w},
                                         std::pair{on->G(), &tensors.g}}) {
      EXPECT_EQ(ToVector(matrix.Bf16()), Bf16Codes(tensor->Values()));
    }
  }
}

TEST_F(LinearSpeedDevice, AnElementThatIsNotWrittenEndsTheRun) {
  constexpr LinearShape kShape{.tokens = 64, .in = 32, .out = 48};
  const LayerTensors tensors(kShape, 9);
  DeviceOperands on(tensors);
  LinearOptions options;
  options.kind = "switchback";
  const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options), !Device().IsHopper());
  Linear layer(recipe, place());
  LinearSaved saved;
  on.Run(layer, saved, {});
  const auto message = [&] {
    return ErrorOf([&] { CheckProduct(recipe, "a layer", LinearGemm::kForward, tensors, on); });
  };
  EXPECT_EQ(message(), "no error");
  uint16_t* const y = on.Y().Bf16().data;
  device_memory::FillBytes(y + 700, 0xFF, sizeof(uint16_t), stream());
  EXPECT_EQ(message(), "a layer: forward GEMM: a NaN or an unwritten element in 64 x 48");
  on.Run(layer, saved, {});
  device_memory::FillBytes(y, 0x00, sizeof(uint16_t), stream());
  EXPECT_TRUE(message().starts_with("a layer: forward GEMM: element (0, 0) of 64 x 48 is 0 on"))
      << message();
}

TEST_F(LinearSpeedDevice, TheCpuOfAComparisonIsNotTheDevice) {
  {
    const WithoutDevice host;
    EXPECT_FALSE(UsesDevice());
  }
  EXPECT_TRUE(UsesDevice());
}

}  // namespace
}  // namespace numsim::experiments::linear_speed
