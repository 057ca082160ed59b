// Matrices under scales against a naive definition, element by element, on every backend.
#include "numsim/quantize/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"
#include "tests/support/sampling.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr ArrayRandom kRandom = {{.seed = 11, .stream = 22}, 333};

// Calls check under every backend and thread count, and puts both back.
template <typename Check>
void OnEveryBackendAndThreadCount(const Check& check) {
  WithEachBackend([&] {
    for (int threads : {1, 3}) {
      SCOPED_TRACE(fmt::format("{} threads", threads));
      SetThreadCount(threads);
      check();
    }
  });
}

std::vector<ScaleLayout> Layouts() {
  std::vector<ScaleLayout> layouts;
  for (const char* text : {"tensor",
                           "row",
                           "column",
                           "block:1",
                           "block:7",
                           "block:16",
                           "block:32",
                           "block:48",
                           "block:128",
                           "block:1000000",
                           "tile:1x40",
                           "tile:2x1",
                           "tile:64x1",
                           "tile:100x1",
                           "tile:5x7",
                           "tile:128x128",
                           "tile:70x1000000",
                           "tile:1000000x1000000"}) {
    layouts.push_back(ParseScaleLayout(text));
  }
  return layouts;
}

std::string Describe(MatrixShape shape, const ScaleLayout& layout) {
  return fmt::format("{} x {} {}", shape.rows, shape.cols, ToString(layout));
}

// The scale of each element, row by row, found by counting.
std::vector<size_t> ScaleIndices(const ScaleLayout& layout, MatrixShape shape) {
  std::vector<size_t> indices;
  size_t blocks = 0, in_block = 0;     // blocks begun so far; elements of the last one so far
  size_t band_begin = 0, in_band = 0;  // blocks above the band of tiles; its rows so far
  size_t row_begin = 0;                // blocks begun in the rows above
  for (size_t r = 0; r < shape.rows; ++r) {
    if (in_band == layout.tile_rows) {
      const size_t across = r == 0 ? 0 : blocks / r;
      band_begin += across;
      in_band = 0;
    }
    ++in_band;
    row_begin = blocks;
    for (size_t c = 0; c < shape.cols; ++c) {
      if (c == 0 || in_block == layout.block) {
        ++blocks;
        in_block = 0;
      }
      ++in_block;
      switch (layout.granularity) {
        case Granularity::kTensor:
          indices.push_back(0);
          break;
        case Granularity::kRow:
          indices.push_back(r);
          break;
        case Granularity::kColumn:
          indices.push_back(c);
          break;
        case Granularity::kBlock:
          indices.push_back(blocks - 1);
          break;
        case Granularity::kTile:
          indices.push_back(band_begin + (blocks - 1 - row_begin));
          break;
      }
    }
  }
  return indices;
}

// Numbers of many sizes, with zeros, subnormals, infinities and NaNs among them.
std::vector<float> Numbers(size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  std::vector<float> numbers(n);
  for (float& x : numbers) {
    const uint64_t kind = random.Below(64);
    x = std::ldexp(static_cast<float>(random.Next32() >> 8), -24 - static_cast<int>(kind % 12));
    if (kind == 0) x = 0;
    if (kind == 1) x = std::bit_cast<float>(random.Next32() & 0x7FFFFFu);
    if (kind == 2) x = kInfinity;
    if (kind == 3) x = std::bit_cast<float>(0x7F800001u | (random.Next32() >> 9));
    if (random.Below(2) == 1) x = -x;
  }
  return numbers;
}

// Factors about 2^exponent.
std::vector<float> Factors(size_t n, int exponent) {
  oracle::TestRandom random(n);
  std::vector<float> factors(n);
  for (float& x : factors) {
    x = std::ldexp(1 + static_cast<float>(random.Next32() >> 9) * 0x1p-23f, exponent);
  }
  return factors;
}

// Whether both hold the same bits.
bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

float NaiveMax(float so_far, float x) {
  if (!std::isfinite(x)) return so_far;
  return std::abs(x) > so_far ? std::abs(x) : so_far;
}

constexpr MatrixShape kShapes[] = {{1, 1}, {3, 5}, {65, 129}, {130, 300}, {2, 2100}};

TEST(Absmax, IsTheLargestFiniteMagnitudeOfEachScale) {
  for (const MatrixShape shape : kShapes) {
    const std::vector<float> in = Numbers(shape.Elements(), 1);
    for (const ScaleLayout& layout : Layouts()) {
      SCOPED_TRACE(Describe(shape, layout));
      const std::vector<size_t> scale = ScaleIndices(layout, shape);
      std::vector<float> want(scale.back() + 1, 0.0f);
      for (size_t i = 0; i < in.size(); ++i) want[scale[i]] = NaiveMax(want[scale[i]], in[i]);
      OnEveryBackendAndThreadCount([&] {
        std::vector<float> absmax(layout.Count(shape.rows, shape.cols), kNaN);
        Absmax(HostMatrix(in, shape), layout, absmax);
        EXPECT_TRUE(Same(absmax, want));
      });
    }
  }
}

TEST(Absmax, OfNoFiniteElementsIsPlusZero) {
  for (const MatrixShape shape : {MatrixShape{1, 1}, MatrixShape{3, 37}}) {
    for (float x : {kNaN, -kNaN, kInfinity, -kInfinity, -0.0f}) {
      const std::vector<float> in(shape.Elements(), x);
      for (const ScaleLayout& layout : Layouts()) {
        OnEveryBackendAndThreadCount([&] {
          std::vector<float> absmax(layout.Count(shape.rows, shape.cols), kNaN);
          Absmax(HostMatrix(in, shape), layout, absmax);
          EXPECT_TRUE(Same(absmax, std::vector<float>(absmax.size(), 0.0f))) << x;
        });
      }
    }
  }
}

TEST(Absmax, OneNanOrInfinityAnywhereChangesNothingElse) {
  constexpr size_t kLength = 37;
  for (size_t at = 0; at < kLength; ++at) {
    for (float bad : {kNaN, kInfinity, -kInfinity}) {
      std::vector<float> in(kLength, -0.5f);
      in[at] = bad;
      OnEveryBackendAndThreadCount([&] {
        for (const char* layout : {"tensor", "row", "block:64"}) {
          float absmax = kNaN;
          Absmax(HostMatrix(in, {1, kLength}), ParseScaleLayout(layout), std::span(&absmax, 1));
          EXPECT_EQ(absmax, 0.5f) << layout << ", " << bad << " at " << at;
        }
      });
    }
  }
}

TEST(AbsmaxOfAll, CountsInfinitiesAndNan) {
  EXPECT_EQ(AbsmaxOfAll({}), 0.0f);
  EXPECT_EQ(AbsmaxOfAll(std::vector<float>{0.0f, -0.0f}), 0.0f);
  EXPECT_FALSE(std::signbit(AbsmaxOfAll(std::vector<float>{-0.0f})));
  EXPECT_EQ(AbsmaxOfAll(std::vector<float>{1.0f, -3.0f, 2.0f}), 3.0f);
  EXPECT_EQ(AbsmaxOfAll(std::vector<float>{1.0f, -kInfinity, 2.0f}), kInfinity);
  EXPECT_EQ(AbsmaxOfAll(std::vector<float>{0x1p-149f}), 0x1p-149f);
  EXPECT_TRUE(std::isnan(AbsmaxOfAll(std::vector<float>{kNaN, kInfinity})));
  EXPECT_TRUE(std::isnan(AbsmaxOfAll(std::vector<float>{kInfinity, -kNaN, 1.0f})));
  // Whatever the place, in a long array too.
  for (size_t n : {1000, 100000}) {
    std::vector<float> long_array(n, 0.5f);
    for (size_t at : {size_t{0}, n / 2 + 1, n - 1}) {
      long_array[at] = -2.5f;
      EXPECT_EQ(AbsmaxOfAll(long_array), 2.5f) << at;
      long_array[at] = kNaN;
      EXPECT_TRUE(std::isnan(AbsmaxOfAll(long_array))) << at;
      long_array[at] = 0.5f;
    }
  }
}

TEST(QuantizeKernels, EmptyMatricesAreFine) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("int8").spec);
  for (const MatrixShape shape : {MatrixShape{0, 5}, MatrixShape{5, 0}, MatrixShape{0, 0}}) {
    for (const ScaleLayout& layout : Layouts()) {
      SCOPED_TRACE(Describe(shape, layout));
      std::vector<float> scales(layout.Count(shape.rows, shape.cols), 7.0f);
      const MatrixSpan<float> none(nullptr, shape);
      Absmax(none, layout, scales);
      EXPECT_EQ(scales, std::vector<float>(scales.size(), 0.0f));
      for (bool transpose : {false, true}) {
        Quantize(plan, none, layout, scales, std::span<uint8_t>(), {}, transpose);
        Quantize(plan, none, layout, scales, std::span<uint16_t>(), {}, transpose);
      }
      Dequantize(plan.format, std::span<const uint8_t>(), layout, scales, none);
      FakeQuantize(plan, {}, shape, layout, scales, scales, {});
    }
  }
}

// One matrix under one layout and conversion, and what the definition makes of it.
struct Example {
  EncodePlan plan;
  MatrixShape shape;
  ScaleLayout layout;
  std::vector<float> in, inv_scales, scales;
  std::vector<uint32_t> codes, transposed;
  std::vector<float> values;  // dequantised
};

Example MakeExample(const EncodePlan& plan, MatrixShape shape, const ScaleLayout& layout) {
  Example e{plan, shape, layout, Numbers(shape.Elements(), 2), {}, {}, {}, {}, {}};
  const std::vector<size_t> scale = ScaleIndices(layout, shape);
  e.inv_scales = Factors(scale.back() + 1, 3);
  e.scales = Factors(scale.back() + 1, -3);
  e.transposed.resize(e.in.size());
  const Rounding& rounding = plan.rounding;
  for (size_t i = 0; i < e.in.size(); ++i) {
    const float product = e.in[i] * e.inv_scales[scale[i]];
    const uint32_t draw =
        rounding.mode == RoundingMode::kStochastic
            ? RandomBits(kRandom.stream, kRandom.first_index + i, rounding.random_bits)
            : 0;
    const uint32_t code = EncodeF32(plan, std::bit_cast<uint32_t>(product), draw);
    e.codes.push_back(code);
    e.transposed[i % shape.cols * shape.rows + i / shape.cols] = code;
    e.values.push_back(Decode(plan.format, code) * e.scales[scale[i]]);
  }
  return e;
}

template <typename Code>
void CheckExample(const Example& e) {
  const auto quantize = [&](bool transpose) {
    std::vector<Code> codes(e.in.size(), Code{0x55});
    Quantize(e.plan,
             HostMatrix(e.in, e.shape),
             e.layout,
             e.inv_scales,
             std::span(codes),
             kRandom,
             transpose);
    return codes;
  };
  const std::vector<Code> codes = quantize(false);
  EXPECT_TRUE(std::equal(codes.begin(), codes.end(), e.codes.begin())) << "quantized";
  const std::vector<Code> transposed = quantize(true);
  EXPECT_TRUE(std::equal(transposed.begin(), transposed.end(), e.transposed.begin()))
      << "transposed";

  std::vector<float> out(e.in.size(), -7.0f);
  Dequantize(
      e.plan.format, std::span<const Code>(codes), e.layout, e.scales, HostMatrix(out, e.shape));
  EXPECT_TRUE(Same(out, e.values)) << "dequantized";
  FakeQuantize(e.plan, e.in, e.shape, e.layout, e.inv_scales, e.scales, out, kRandom);
  EXPECT_TRUE(Same(out, e.values)) << "fake-quantized";
  out = e.in;
  FakeQuantize(e.plan, out, e.shape, e.layout, e.inv_scales, e.scales, out, kRandom);
  EXPECT_TRUE(Same(out, e.values)) << "fake-quantized in place";
}

struct Conversion {
  const char* name;
  const char* format;
  Rounding rounding;
};

class QuantizeEveryLayout : public testing::TestWithParam<Conversion> {};

constexpr Rounding kStochastic8 = {RoundingMode::kStochastic, StochasticVariant::kA, 8};
constexpr Rounding kStochastic16 = {RoundingMode::kStochastic, StochasticVariant::kB, 16};
constexpr Rounding kStochastic32 = {RoundingMode::kStochastic, StochasticVariant::kC, 32};
constexpr Rounding kStochasticWord = {RoundingMode::kStochastic, StochasticVariant::kA, 32};
INSTANTIATE_TEST_SUITE_P(,
                         QuantizeEveryLayout,
                         testing::Values(Conversion{"Int8Nearest", "int8", {}},
                                         Conversion{"Int8Stochastic", "int8", kStochastic8},
                                         Conversion{"E4m3Nearest", "e4m3fn", {}},
                                         Conversion{"E4m3Stochastic", "e4m3fn", kStochastic16},
                                         Conversion{"E2m1Nearest", "e2m1fn", {}},
                                         Conversion{"E2m1Stochastic", "e2m1fn", kStochastic8},
                                         Conversion{"E2m1WholeWords", "e2m1fn", kStochasticWord},
                                         Conversion{"Bf16Nearest", "bf16", {}},
                                         Conversion{"Bf16Stochastic", "bf16", kStochastic32}),
                         [](const auto& test) { return test.param.name; });

TEST_P(QuantizeEveryLayout, EqualsTheDefinitionAlsoTransposed) {
  const EncodePlan plan =
      MakeEncodePlan(ParseFormat(GetParam().format).spec, GetParam().rounding, Overflow::kSaturate);
  const std::vector<ScaleLayout> layouts = Layouts();
  size_t first = 0;
  for (const MatrixShape shape : kShapes) {
    // A sample has every layout with some of the shapes.
    first = (first + 1) % SampleEvery(3);
    for (size_t i = first; i < layouts.size(); i += SampleEvery(3)) {
      const ScaleLayout& layout = layouts[i];
      // Short blocks are slow: not in the large matrices.
      const bool blocks = layout.granularity == Granularity::kBlock;
      const bool slow = blocks && layout.block < 8 && shape.rows > (layout.block == 1 ? 3 : 65);
      if (slow) continue;
      SCOPED_TRACE(Describe(shape, layout));
      const Example example = MakeExample(plan, shape, layout);
      OnEveryBackendAndThreadCount([&] {
        plan.format.StorageBytes() == 1 ? CheckExample<uint8_t>(example)
                                        : CheckExample<uint16_t>(example);
      });
    }
  }
}

TEST(QuantizeKernels, ABlockOfAnyLengthBeyondTheRowIsTheRow) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("int8").spec);
  const ScaleLayout longest = {Granularity::kBlock, std::numeric_limits<size_t>::max()};
  const Example example = MakeExample(plan, {3, 77}, longest);
  CheckExample<uint8_t>(example);
  EXPECT_EQ(example.codes, MakeExample(plan, {3, 77}, ParseScaleLayout("row")).codes);
}

TEST(QuantizeKernels, FakeQuantizeServesFormatsOfMoreThanSixteenBits) {
  for (const char* format : {"tf32", "fp32"}) {
    const EncodePlan plan = MakeEncodePlan(ParseFormat(format).spec);
    const Example e = MakeExample(plan, {3, 1500}, ParseScaleLayout("block:7"));
    OnEveryBackendAndThreadCount([&] {
      std::vector<float> out(e.in.size());
      FakeQuantize(plan, e.in, e.shape, e.layout, e.inv_scales, e.scales, out);
      EXPECT_TRUE(Same(out, e.values)) << format;
    });
  }
}

}  // namespace
}  // namespace numsim
