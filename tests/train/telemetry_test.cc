#include "numsim/train/telemetry.h"

#include <bit>
#include <cmath>
#include <set>

#include "numsim/train/shared/tensor_telemetry.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

TEST(Telemetry, TablesHaveTheirColumnsAndNoRows) {
  const Telemetry telemetry;
  std::set<std::string> names;
  for (const TelemetryTable& table : TelemetryTables()) {
    EXPECT_TRUE(names.insert(std::string(table.name)).second) << table.name;
    EXPECT_FALSE(table.when.empty());
    ASSERT_EQ(telemetry.Of(table.name).columns.size(), table.columns.size());
    EXPECT_EQ(telemetry.Of(table.name).columns[0], "step");
    EXPECT_TRUE(telemetry.Of(table.name).rows.empty());
    for (const auto& [column, meaning] : table.columns) EXPECT_FALSE(meaning.empty()) << column;
  }
  EXPECT_EQ(
      names,
      (std::set<std::string>{"train", "valid", "tensors", "quantised", "optimizer", "what_if"}));
}

TEST(Telemetry, OnlyRecipesHaveTheTableWhatIf) {
  TrainConfig config;
  EXPECT_EQ(TelemetryTables(config).size(), TelemetryTables().size() - 1);
  for (const TelemetryTable& table : TelemetryTables(config)) EXPECT_NE(table.name, kWhatIfTable);
  config.what_if.recipes = {ParseWhatIfRecipe("e4m3fn tensor")};
  EXPECT_EQ(TelemetryTables(config).size(), TelemetryTables().size());
}

TEST(Telemetry, RowsStayInOrderUntilTheyAreCleared) {
  Telemetry telemetry;
  telemetry.Add("valid", {"0", "5.5", "0", "nan"});
  telemetry.Add("valid", {"4", "5", "0.5", "nan"});
  ASSERT_EQ(telemetry.Of("valid").rows.size(), 2u);
  EXPECT_EQ(telemetry.Of("valid").Text(1, "loss"), "5");
  EXPECT_TRUE(telemetry.Of("train").rows.empty());
  telemetry.Clear();
  EXPECT_TRUE(telemetry.Of("valid").rows.empty());
  EXPECT_EQ(telemetry.Of("valid").columns.size(), 4u);
  EXPECT_EQ(ErrorOf([&] { telemetry.Add("valid", {"0"}); }),
            "Telemetry::Add: a row of 1 cells, and table valid has 4 columns");
  EXPECT_EQ(ErrorOf([&] { telemetry.Add("no", {"0"}); }), "Telemetry: there is no table no");
}

TEST(TensorObserver, RoundsEachRoleToItsFormat) {
  StorageConfig storage;
  storage.activations = ParseFormat("bf16");
  storage.gradients = ParseFormat("e5m2");
  TensorObserver observer(storage);
  EXPECT_TRUE(observer.ChangesTensors());
  std::vector<float> x = {1.00390625f, 1.01171875f, 70000.0f, -kInfinity};
  std::vector<float> g = {1.125f, 1.375f, 70000.0f, -kInfinity};
  observer.Tensor("p", TensorRole::kActivation, MatrixSpan<float>(x.data(), 1, 4));
  observer.Tensor("p", TensorRole::kGradient, MatrixSpan<float>(g.data(), 1, 4));
  EXPECT_EQ(x, (std::vector<float>{1.0f, 1.015625f, 70144.0f, -kInfinity}));  // ties to even
  EXPECT_EQ(g, (std::vector<float>{1.0f, 1.5f, kInfinity, -kInfinity}));
}

TEST(TensorObserver, InFp32ItChangesNothing) {
  TensorObserver observer{StorageConfig()};
  EXPECT_FALSE(observer.ChangesTensors());
  std::vector<float> x = {0.1f, -3e-41f};
  observer.Tensor("p", TensorRole::kActivation, MatrixSpan<float>(x.data(), 1, 2));
  EXPECT_EQ(x, (std::vector<float>{0.1f, -3e-41f}));
}

TEST(TensorObserver, MeasuresTensorsAsTheyAreStored) {
  StorageConfig storage;
  storage.activations = ParseFormat("e5m2");
  TensorObserver observer(storage);
  Telemetry telemetry;
  observer.Begin(3, &telemetry, nullptr);
  std::vector<float> x = {3.0f, -4.4f, 70000.0f, 0.0f};
  observer.Tensor("blocks.0", TensorRole::kActivation, MatrixSpan<float>(x.data(), 2, 2));
  observer.Begin(4, nullptr, nullptr);
  observer.Tensor("blocks.0", TensorRole::kActivation, MatrixSpan<float>(x.data(), 2, 2));
  const Table& table = telemetry.Of("tensors");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.Text(0, "step"), "3");
  EXPECT_EQ(table.Text(0, "point"), "blocks.0");
  EXPECT_EQ(table.Text(0, "role"), "activation");
  EXPECT_EQ(table.Number(0, "max_abs"), 4);
  EXPECT_DOUBLE_EQ(table.Number(0, "mean_abs"), 7.0 / 3);
  EXPECT_DOUBLE_EQ(table.Number(0, "rms"), std::sqrt(25.0 / 3));
  EXPECT_EQ(table.Text(0, "nonfinite"), "1");
}

TEST(TensorObserver, MeasuresQuantisedOperandsUnderTheScalesTheyHave) {
  TensorObserver observer{StorageConfig()};
  Telemetry telemetry;
  StepProfile profile;
  observer.Begin(9, &telemetry, &profile);
  // Scale 2 a row at first, then 1/2: 2000 and 300 are beyond 448 of those, 0.0001
  // below the least code.
  const std::vector<float> values = {2000.0f, 3.0f, 0.0001f, 0.5625f, 300.0f, -0.5f};
  const MatrixShape shape{2, 3};
  QuantizedMatrix matrix;
  matrix.format = ParseFormat("e4m3fn").spec;
  matrix.shape = shape;
  matrix.layout.granularity = Granularity::kRow;
  std::ranges::copy(std::vector<float>{2.0f, 0.5f}, matrix.scales.Resize(1, 2).data);
  // 448, 1.5, 0; 1.125, 448, -1
  const std::vector<uint8_t> codes = {0x7E, 0x3C, 0x00, 0x39, 0x7E, 0xB8};
  std::ranges::copy(codes, matrix.codes.Resize(1, 6).data);
  observer.Quantized(
      "head", LinearOperand::kForwardX, HostMatrix(std::span(values), shape), matrix);
  const Table& table = telemetry.Of("quantised");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.Text(0, "step"), "9");
  EXPECT_EQ(table.Text(0, "layer"), "head");
  EXPECT_EQ(table.Text(0, "operand"), "forward X");
  EXPECT_EQ(table.Text(0, "format"), "e4m3fn");
  EXPECT_EQ(table.Number(0, "amax"), 2000);
  EXPECT_DOUBLE_EQ(table.Number(0, "underflow"), 1.0 / 6);
  EXPECT_DOUBLE_EQ(table.Number(0, "overflow"), 2.0 / 6);
  const double small = static_cast<double>(0.0001f);
  const double error = 1104.0 * 1104 + small * small + 76.0 * 76;
  const double signal = 2000.0 * 2000 + 9 + small * small + 0.5625 * 0.5625 + 300.0 * 300 + 0.25;
  EXPECT_DOUBLE_EQ(table.Number(0, "mse"), error / 6);
  EXPECT_NEAR(table.Number(0, "sqnr_db"), 10 * std::log10(signal / error), 1e-9);
  // It is called within a timed part of the layer.
  EXPECT_GT(profile[StepPhase::kTelemetry], 0);
  EXPECT_DOUBLE_EQ(profile[StepPhase::kQuantize], -profile[StepPhase::kTelemetry]);
}

TEST(TensorObserver, OperandsOfNanAreRowsToo) {
  TensorObserver observer{StorageConfig()};
  Telemetry telemetry;
  observer.Begin(0, &telemetry, nullptr);
  const std::vector<float> values = {std::nanf(""), 1.0f};
  QuantizeOptions options;
  options.format = ParseFormat("bf16").spec;
  options.scale_rule = ScaleRule::kNone;
  observer.Quantized("head",
                     LinearOperand::kInputGradientG,
                     HostMatrix(std::span(values), {1, 2}),
                     Quantize(HostMatrix(values, {1, 2}), options));
  EXPECT_EQ(telemetry.Of("quantised").Text(0, "amax"), "nan");
  EXPECT_EQ(telemetry.Of("quantised").Text(0, "mse"), "0");
  EXPECT_EQ(telemetry.Of("quantised").Text(0, "sqnr_db"), "inf");
}

}  // namespace
}  // namespace numsim
