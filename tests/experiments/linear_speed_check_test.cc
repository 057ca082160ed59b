// The expected results of a device, compared with whole layers on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "experiments/linear_speed/check.h"
#include "experiments/linear_speed/timing.h"
#include "experiments/runner/settings.h"
#include "numsim/backend/backend.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr LinearShape kShape{.tokens = 24, .in = 40, .out = 16};
constexpr size_t kTile = 128;  // smaller than every tensor

// The layers of a run under backend cuda.
std::vector<TimedLayer> LayersOfADevice(const std::string& product) {
  return TimedLayers(MakeSettings(LinearSpeed(),
                                  "quick",
                                  0,
                                  1,
                                  {{"kinds",
                                    "standard,switchback,switchback-m,switchback-q,llm-int8,"
                                    "tensor-wise,row-wise-gw-hp,te-hybrid"},
                                   {"formats", "int8,e4m3fn"},
                                   {"high-precision", "bf16"},
                                   {"product", product},
                                   {"accumulate", "hopper-fp8-fast"}}));
}

TEST(TiledNormals, AreTheSameByElementAndByPieces) {
  for (const size_t tile : {size_t{1}, size_t{7}, size_t{60}, size_t{61}, size_t{1000}}) {
    const TiledNormals tensor({1, 2}, {12, 5}, tile);
    const std::vector<float> values = tensor.Values();
    std::set<size_t> written;
    tensor.ForEachPiece([&](size_t from, size_t to, size_t count) {
      ASSERT_GT(count, 0u);
      EXPECT_LE(from + count, tensor.tile().size());
      for (size_t i = to; i < to + count; ++i) EXPECT_TRUE(written.insert(i).second) << i;
    });
    EXPECT_EQ(written.size(), 60u);
    EXPECT_EQ(*written.rbegin(), 59u);
    float largest = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(tensor.At(i / 5, i % 5), values[i]) << tile << " " << i;
      largest = std::max(largest, std::abs(values[i]));
    }
    EXPECT_EQ(tensor.Absmax(), largest);
    EXPECT_EQ(tensor.tile(), Bf16Codes(std::span(values).first(tensor.tile().size())));
  }
}

TEST(TiledNormals, TilesAreRotatedAgainstEachOther) {
  const TiledNormals tensor({1, 2}, {8, 100}, 100);
  std::set<float> first_column;
  for (size_t r = 0; r < 8; ++r) first_column.insert(tensor.At(r, 0));
  EXPECT_EQ(first_column.size(), 8u);
}

TEST(SampleOnCpu, EqualsTheLayer) {
  const LayerTensors tensors(kShape, 5, kTile);
  const std::vector<float> x = tensors.x.Values(), w = tensors.w.Values(), g = tensors.g.Values();
  size_t sampled = 0;
  for (const TimedLayer& layer : LayersOfADevice("hopper-bf16")) {
    std::vector<float> y(g.size()), dx(x.size()), dw(w.size());
    Linear linear(layer.recipe);
    LinearSaved saved;
    linear.Forward(HostMatrix(x, kShape.X()), HostMatrix(w, kShape.W()), y, saved);
    linear.Backward(g, w, saved, dx, dw);
    for (const LinearGemm product : kProducts) {
      SCOPED_TRACE(layer.recipe.kind + " " + layer.format + " " + std::string(ToString(product)));
      const std::optional<SampledProduct> sample = SampleOnCpu(layer.recipe, product, tensors);
      if (!sample.has_value()) {
        EXPECT_EQ(layer.recipe.kind, "switchback-m");
        EXPECT_EQ(product, LinearGemm::kWeightGradient);
        continue;
      }
      ++sampled;
      const std::vector<float>& result = product == LinearGemm::kForward         ? y
                                         : product == LinearGemm::kInputGradient ? dx
                                                                                 : dw;
      const std::vector<uint16_t> codes = Bf16Codes(result);
      const MatrixShape shape = ResultShape(kShape, product);
      ASSERT_EQ(result.size(), shape.Elements());
      std::vector<uint16_t> expected;
      for (const size_t r : sample->rows) {
        for (const size_t c : sample->cols) expected.push_back(codes[r * shape.cols + c]);
      }
      EXPECT_EQ(sample->codes, expected);
      EXPECT_EQ(sample->tolerance, std::vector<float>(expected.size(), 0.0f));
      EXPECT_NO_THROW(CompareSample("", shape, *sample, expected));
      EXPECT_NE(std::find(sample->rows.begin(), sample->rows.end(), shape.rows - 1),
                sample->rows.end());
      EXPECT_NE(std::find(sample->cols.begin(), sample->cols.end(), shape.cols - 1),
                sample->cols.end());
    }
  }
  EXPECT_EQ(sampled, 15u * 3 - 2);
}

TEST(SampleOnCpu, ALibraryMayRoundOtherwiseButNotMuch) {
  const LayerTensors tensors(kShape, 5, kTile);
  const LinearRecipe recipe = LayersOfADevice("library").front().recipe;
  const SampledProduct sample = *SampleOnCpu(recipe, LinearGemm::kForward, tensors);
  const MatrixShape shape = ResultShape(kShape, LinearGemm::kForward);
  std::vector<uint16_t> codes = sample.codes;
  ++codes[5];  // one step of bf16
  EXPECT_NO_THROW(CompareSample("", shape, sample, codes));
  codes[5] ^= 0x8000;
  const std::string message = ErrorOf([&] { CompareSample("forward", shape, sample, codes); });
  EXPECT_TRUE(message.starts_with("forward: element (" + std::to_string(sample.rows[1]) + ", " +
                                  std::to_string(sample.cols[1]) + ") of 24 x 16 is "))
      << message;
}

TEST(CompareSample, FindsEveryDifference) {
  const SampledProduct sample{
      .rows = {0, 3}, .cols = {2}, .codes = {0x0000, 0x7FC0}, .tolerance = {0, 0}};
  const auto message = [&](std::vector<uint16_t> codes) {
    return ErrorOf([&] { CompareSample("y", {4, 3}, sample, codes); });
  };
  EXPECT_EQ(message({0x0000, 0x7FC0}), "no error");
  EXPECT_EQ(message({0x0000, 0x7FFF}), "no error") << "another NaN";
  EXPECT_EQ(message({0x0001, 0x7FC0}),
            "y: element (0, 2) of 4 x 3 is 9.18355e-41 on the device and 0 on the CPU");
  EXPECT_NE(message({0x8000, 0x7FC0}), "no error") << "the sign of zero";
  EXPECT_EQ(message({0x0000, 0x3F80}),
            "y: element (3, 2) of 4 x 3 is 1 on the device and nan on the CPU");
}

TEST(CompareSample, ANaNIsOutsideOfAnyTolerance) {
  const SampledProduct sample{.rows = {0},
                              .cols = {0},
                              .codes = {0x3F80},
                              .tolerance = {std::numeric_limits<float>::infinity()}};
  EXPECT_NE(ErrorOf([&] {
              CompareSample("y", {1, 1}, sample, std::vector<uint16_t>{0x7FC0});
            }),
            "no error");
}

TEST(WithoutDevice, LeavesABackendOfTheProcessor) {
  const std::string before(BackendName());
  ForceBackend("scalar");
  {
    const WithoutDevice host;
    EXPECT_EQ(BackendName(), "scalar");
    ForceBackend(before);
  }
  EXPECT_EQ(BackendName(), "scalar");
  ForceBackend(before);
}

// X of 60, W of 35 and G of 84 elements.
TEST(DeviceBytes, CountCodesInBothOrdersAndSumsOfInt8Gemms) {
  const LinearShape shape{.tokens = 12, .in = 5, .out = 7};
  const std::vector<TimedLayer> layers = LayersOfADevice("library");
  const size_t always = DeviceBytes(layers[0].recipe, shape);  // standard
  for (const TimedLayer& layer : std::span(layers).subspan(1)) {
    const bool int8 = layer.format == "int8";
    EXPECT_EQ(DeviceBytes(layer.recipe, shape) - always,
              3u * 60 + 2 * 35 + 2 * 84 + (int8 ? 4 * 84 : 0))
        << layer.recipe.kind;
  }
}

TEST(DeviceGroups, HoldEveryLayerOnceAndStandardAlways) {
  const std::vector<TimedLayer> layers = LayersOfADevice("library");
  ASSERT_EQ(layers.size(), 15u);
  const LinearShape shape{.tokens = 65536, .in = 4096, .out = 16384};
  const size_t all = size_t{1} << 50;
  const std::vector<std::vector<size_t>> one = DeviceGroups(layers, shape, all);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].size(), 15u);
  const size_t room = size_t{30} << 30;
  std::set<size_t> seen;
  const std::vector<std::vector<size_t>> groups = DeviceGroups(layers, shape, room);
  EXPECT_GT(groups.size(), 1u);
  for (const std::vector<size_t>& group : groups) {
    EXPECT_EQ(group.front(), 0u);  // standard
    size_t bytes = 0;
    for (const size_t i : group) {
      bytes += DeviceBytes(layers[i].recipe, shape);
      if (i != 0) {
        EXPECT_TRUE(seen.insert(i).second) << i;
      }
    }
    EXPECT_LE(bytes, room);
  }
  EXPECT_EQ(seen.size(), 14u);
  EXPECT_EQ(DeviceGroups(layers, shape, 0).size(), 14u) << "one by one, whether it fits or not";
  EXPECT_EQ(DeviceGroups(std::span(layers).first(1), shape, 0).size(), 1u);
}

TEST(DeviceGroups, LeaveOutInt8SumsThatAreTooLong) {
  const std::vector<TimedLayer> layers = LayersOfADevice("library");
  const LinearShape longest{.tokens = kMostProductsOfAnyInt8, .in = 64, .out = 64};
  const LinearShape longer{.tokens = kMostProductsOfAnyInt8 + 1, .in = 64, .out = 64};
  for (const TimedLayer& layer : layers) {
    EXPECT_TRUE(FitsDevice(layer.recipe, longest)) << layer.recipe.kind;
    const std::string& kind = layer.recipe.kind;
    const bool sums_tokens = kind == "llm-int8" || kind == "tensor-wise" || kind == "te-hybrid";
    EXPECT_EQ(FitsDevice(layer.recipe, longer), !(sums_tokens && layer.format == "int8"))
        << kind << " " << layer.format;
  }
  EXPECT_EQ(DeviceGroups(layers, longer, size_t{1} << 50).front().size(), 12u);
}

TEST(DefaultOf, UnderCudaIsTheValueForIt) {
  const Option option{.name = "a", .quick = "q", .paper = "p", .help = "", .cuda = "c"};
  EXPECT_EQ(DefaultOf(option, "quick", false), "q");
  EXPECT_EQ(DefaultOf(option, "paper", false), "p");
  EXPECT_EQ(DefaultOf(option, "quick", true), "c");
  EXPECT_EQ(DefaultOf(option, "paper", true), "c");
  const Option plain{.name = "a", .quick = "q", .paper = "p", .help = ""};
  EXPECT_EQ(DefaultOf(plain, "paper", true), "p");
}

}  // namespace
}  // namespace numsim::experiments::linear_speed
