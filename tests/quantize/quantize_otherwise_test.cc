// Quantising by division, and NaN that makes scales NaN: what other projects do otherwise.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr MatrixShape kShape{7, 45};

QuantizeOptions Options(const char* format, const char* layout, ScaleRule rule) {
  return {
      .format = ParseFormat(format).spec, .layout = ParseScaleLayout(layout), .scale_rule = rule};
}

// Normal numbers, and midpoints of the format times scales that are no powers of two.
std::vector<float> Elements(const FormatSpec& format) {
  std::vector<float> x(kShape.Elements());
  FillNormal({.seed = 8, .stream = 1}, 0, x);
  for (size_t i = 0; i < x.size(); i += 2) {
    const auto code = static_cast<uint32_t>(i / 2) % format.MaxFiniteCode();
    const float middle = (Decode(format, code) + Decode(format, code + 1)) / 2;
    x[i] = middle * (0.001f + 0.0007f * static_cast<float>(i % 5));
  }
  return x;
}

TEST(QuantizeByDivision, CodesAreThoseOfTheQuotient) {
  size_t different = 0;
  for (const char* format : {"e4m3fn", "e5m2", "e2m1fn", "int8", "bf16"}) {
    const FormatSpec spec = ParseFormat(format).spec;
    const std::vector<float> x = Elements(spec);
    for (const char* layout : {"tensor", "row", "column", "block:16", "tile:3x8"}) {
      for (const ScaleRule rule : {ScaleRule::kAbsmax, ScaleRule::kNvfp4, ScaleRule::kE8m0}) {
        QuantizeOptions options = Options(format, layout, rule);
        const QuantizedMatrix by_inverse = Quantize(HostMatrix(std::span(x), kShape), options);
        options.divide = true;
        const QuantizedMatrix matrix = Quantize(HostMatrix(std::span(x), kShape), options);
        ASSERT_TRUE(std::ranges::equal(matrix.Scales(), by_inverse.Scales()));
        std::vector<float> fake(x.size());
        FakeQuantize(x, kShape, options, fake);
        for (size_t i = 0; i < x.size(); ++i) {
          const float scale =
              matrix.Scales()[options.layout.Index(i / kShape.cols, i % kShape.cols, kShape.cols)];
          const float quotient = scale == 0 ? std::copysign(0.0f, x[i]) : x[i] / scale;
          const uint32_t want = Encode(spec, quotient, {}, Overflow::kSaturate);
          const bool bytes = spec.StorageBytes() == 1;
          const uint32_t got = bytes ? matrix.Codes8()[i] : matrix.Codes16()[i];
          ASSERT_EQ(got, want) << format << " " << layout << " " << ToString(rule) << " " << x[i];
          ASSERT_EQ(fake[i], Decode(spec, want) * scale);
          different += got != (bytes ? by_inverse.Codes8()[i] : by_inverse.Codes16()[i]) ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(different, 20u);
}

// ROCm/aiter 5259: a kernel that divides has the code 2 here, the inverse gives 1.
TEST(QuantizeByDivision, TheReportedElementHasTheReportedCode) {
  const std::vector<float> x = {1.1423687934875488f, 7.470498530892655e-06f};
  QuantizeOptions options = Options("e4m3fn", "tensor", ScaleRule::kAbsmax);
  const auto codes = [&] {
    return Quantize(HostMatrix(std::span(x), MatrixShape{1, 2}), options).Codes8()[1];
  };
  EXPECT_EQ(codes(), 1);
  options.divide = true;
  EXPECT_EQ(codes(), 2);
}

TEST(QuantizeByDivision, Float64IsRoundedOnceFromTheExactQuotient) {
  QuantizeOptions options = Options("e4m3fn", "tensor", ScaleRule::kAbsmax);
  options.divide = true;
  // The scale is 3: 3.1875 / 3 is the middle of 1 and 1.125.
  const std::vector<double> in = {3.1875 + 0x1p-45, 3.1875, 3.1875 - 0x1p-45, 1344};
  std::vector<double> out(4);
  FakeQuantize(in, {1, 4}, options, out);
  EXPECT_EQ(out, (std::vector<double>{3.375, 3, 3, 1344}));
}

TEST(QuantizeByDivision, RandomBitsAreThoseOfTheElement) {
  QuantizeOptions options = Options("e4m3fn", "block:16", ScaleRule::kE8m0);
  options.rounding = {RoundingMode::kStochastic, StochasticVariant::kB, 9};
  options.random = {{12, 3}, 5};
  const std::vector<float> x = Elements(options.format);
  const QuantizedMatrix usual = Quantize(HostMatrix(std::span(x), kShape), options);
  options.divide = true;  // by powers of two: the same numbers
  options.order = CodeOrder::kBoth;
  const QuantizedMatrix divided = Quantize(HostMatrix(std::span(x), kShape), options);
  EXPECT_TRUE(std::ranges::equal(usual.Codes8(), divided.codes.Span()));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t transposed = i % kShape.cols * kShape.rows + i / kShape.cols;
    ASSERT_EQ(divided.transposed.Span()[transposed], divided.codes.Span()[i]);
  }
}

TEST(NanScales, ANanMakesItsGroupNan) {
  for (const char* layout : {"tensor", "row", "column", "block:16", "tile:3x8"}) {
    for (const ScaleRule rule : {ScaleRule::kE8m0, ScaleRule::kAbsmax, ScaleRule::kNvfp4}) {
      for (const bool divide : {false, true}) {
        QuantizeOptions options = Options("e2m1fn", layout, rule);
        options.divide = divide;
        std::vector<float> x = Elements(options.format);
        const QuantizedMatrix before = Quantize(HostMatrix(std::span(x), kShape), options);
        x[100] = kNan;
        x[101] = std::numeric_limits<float>::infinity();
        const QuantizedMatrix ignored = Quantize(HostMatrix(std::span(x), kShape), options);
        options.nan_scales = true;
        const QuantizedMatrix matrix = Quantize(HostMatrix(std::span(x), kShape), options);
        const auto group = [&](size_t i) {
          return options.layout.Index(i / kShape.cols, i % kShape.cols, kShape.cols);
        };
        std::vector<float> values(x.size());
        Dequantize(matrix, HostMatrix(std::span(values), kShape));
        const std::vector<double> wide(x.begin(), x.end());
        const QuantizedMatrix of_wide =
            Quantize(HostMatrix(std::span<const double>(wide), kShape), options);
        for (size_t i = 0; i < x.size(); ++i) {
          const bool nan = group(i) == group(100);
          ASSERT_EQ(std::isnan(values[i]), nan) << layout << " " << i;
          ASSERT_EQ(std::isnan(matrix.Scales()[group(i)]), nan);
          ASSERT_EQ(std::isnan(of_wide.Scales()[group(i)]), nan);
          if (nan) {
            ASSERT_EQ(matrix.Codes8()[i], 7);
            ASSERT_EQ(of_wide.Codes8()[i], 7);
          } else {
            ASSERT_EQ(matrix.Codes8()[i], ignored.Codes8()[i]);
          }
        }
        EXPECT_FALSE(std::isnan(ignored.Scales()[group(100)]));
      }
    }
  }
}

TEST(QuantizeOtherwise, IsNotForAGivenScale) {
  const std::vector<float> x = {1, 2};
  QuantizeOptions options = Options("e4m3fn", "tensor", ScaleRule::kNone);
  options.divide = true;
  QuantizedMatrix result;
  EXPECT_EQ(
      ErrorOf([&] {
        QuantizeUnder(Scale{2, 0.5f}, HostMatrix(std::span(x), MatrixShape{1, 2}), options, result);
      }),
      "Quantize: division and NaN scales are not for a given scale");
}

}  // namespace
}  // namespace numsim
