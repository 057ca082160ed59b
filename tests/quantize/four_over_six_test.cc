// Four over six: the choice between two scales of a block, against a loop and by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"
#include "tests/support/quantized_codes.h"

namespace numsim {
namespace {

QuantizeOptions Options(const char* layout, ScaleRule rule) {
  return {
      .format = ParseFormat("e2m1fn").spec, .layout = ParseScaleLayout(layout), .scale_rule = rule};
}

// The example of the paper: 10, 20, 30, 40 are exact under a scale of 10, and not under 40 / 6. The
// second block makes the scale of the tensor 1.
TEST(FourOverSix, TakesFourWhereThatIsBetter) {
  std::vector<float> x(32, 0);
  x[0] = 10, x[1] = 20, x[2] = 30, x[3] = 40;
  x[16] = 1536, x[17] = 256;
  for (const ScaleRule rule : {ScaleRule::kFourOverSixMae, ScaleRule::kFourOverSixMse}) {
    const QuantizedMatrix matrix =
        Quantize(HostMatrix(std::span(x), MatrixShape{1, 32}), Options("block:16", rule));
    EXPECT_EQ(matrix.tensor_scale.Span()[0], 1);
    EXPECT_EQ(matrix.Scales()[0], 10);
    EXPECT_EQ(matrix.Scales()[1], 256);  // 1 and 6: exact, where 384 would give 0.5 and 4
    std::vector<float> values(32);
    Dequantize(matrix, HostMatrix(std::span(values), MatrixShape{1, 32}));
    EXPECT_EQ(values, x);
  }
}

// Absolute and squared errors differ: 4 has one large error, 6 many small ones.
TEST(FourOverSix, TheCriteriaDiffer) {
  size_t different = 0;
  std::vector<float> x(64 * 16);
  FillNormal({.seed = 9, .stream = 3}, 0, x);
  const MatrixShape shape{64, 16};
  const auto scales = [&](ScaleRule rule) {
    const QuantizedMatrix m = Quantize(HostMatrix(std::span(x), shape), Options("block:16", rule));
    return std::vector<float>(m.Scales().begin(), m.Scales().end());
  };
  const auto mae = scales(ScaleRule::kFourOverSixMae), mse = scales(ScaleRule::kFourOverSixMse);
  for (size_t i = 0; i < mae.size(); ++i) different += mae[i] != mse[i] ? 1 : 0;
  EXPECT_GT(different, 0u);
  EXPECT_LT(different, mae.size() / 2);
}

float RoundedToE4m3(float x) {
  const FormatSpec e4m3 = ParseFormat("e4m3fn").spec;
  return Decode(e4m3, Encode(e4m3, x, {}, Overflow::kSaturate));
}

// [TransformerEngine] for rows of blocks, as its reference computes it.
TEST(FourOverSix, ScalesAreThoseOfALoop) {
  const FormatSpec e2m1 = ParseFormat("e2m1fn").spec;
  const MatrixShape shape{40, 70};
  std::vector<float> x(shape.Elements());
  FillNormal({.seed = 9, .stream = 4}, 0, x);
  for (size_t i = 0; i < x.size(); i += 7) x[i] *= std::exp2(static_cast<float>(i % 40) - 20);
  for (size_t i = 350; i < 420; ++i) x[i] = 0;
  const float most = std::fabs(
      *std::ranges::max_element(x, [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  const float encode = 256.0f * 6 / most, decode = 1 / encode;
  size_t fours = 0;
  for (const bool squares : {false, true}) {
    const ScaleRule rule = squares ? ScaleRule::kFourOverSixMse : ScaleRule::kFourOverSixMae;
    const QuantizedMatrix matrix =
        Quantize(HostMatrix(std::span(x), shape), Options("block:16", rule));
    EXPECT_EQ(matrix.tensor_scale.Span()[0], decode);
    for (size_t b = 0; b < 40 * 5; ++b) {
      const size_t begin = b / 5 * 70 + b % 5 * 16, end = std::min(begin + 16, (b / 5 + 1) * 70);
      float a = 0;
      for (size_t i = begin; i < end; ++i) a = std::max(a, std::fabs(x[i]));
      const float shares[2] = {RoundedToE4m3(a / 6 * encode), RoundedToE4m3(a / 6 * encode * 1.5f)};
      float errors[2] = {0, 0};
      for (const int four : {0, 1}) {
        const float scale = shares[four] * decode;
        const float inverse =
            scale == 0 ? 0 : std::min(1 / scale, std::numeric_limits<float>::max());
        for (size_t i = begin; i < end; ++i) {
          const uint32_t code = Encode(e2m1, x[i] * inverse, {}, Overflow::kSaturate);
          const float value = Decode(e2m1, code) * shares[four] * most / (6 * 256.0f);
          const float difference = value - x[i];
          errors[four] += squares ? difference * difference : std::fabs(difference);
        }
      }
      const bool four = errors[1] < errors[0];
      fours += four ? 1 : 0;
      ASSERT_EQ(matrix.Scales()[b], shares[four ? 1 : 0] * decode) << b;
    }
  }
  EXPECT_GT(fours, 50u);
  EXPECT_LT(fours, 350u);
}

// A tile of rows has the sum of its rows by halves; where each row is a block it is that of blocks.
TEST(FourOverSix, TilesAndTransposedBlocks) {
  const MatrixShape shape{48, 64}, turned{64, 48};
  std::vector<float> x(shape.Elements()), t(shape.Elements());
  FillNormal({.seed = 9, .stream = 5}, 0, x);
  for (size_t i = 0; i < x.size(); ++i) t[i % 64 * 48 + i / 64] = x[i];
  const ScaleRule rule = ScaleRule::kFourOverSixMae;
  const QuantizedMatrix rows = Quantize(HostMatrix(std::span(x), shape), Options("block:16", rule));
  const QuantizedMatrix columns =
      Quantize(HostMatrix(std::span(t), turned), Options("tile:16x1", rule));
  for (size_t r = 0; r < 48; ++r) {
    for (size_t b = 0; b < 4; ++b) {
      ASSERT_EQ(rows.Scales()[r * 4 + b], columns.Scales()[b * 48 + r]);
    }
  }
  // Tiles, columns, rows and the whole tensor have one of their two scales, and errors no larger than
  // those of the larger choice for all.
  for (const char* layout : {"tile:16x16", "tile:5x7", "row", "column", "tensor"}) {
    const QuantizeOptions options = Options(layout, rule);
    const QuantizedMatrix matrix = Quantize(HostMatrix(std::span(x), shape), options);
    std::vector<float> maxima(matrix.Scales().size());
    Absmax(HostMatrix(std::span<const float>(x), shape), options.layout, std::span(maxima));
    const float most = *std::ranges::max_element(maxima);
    const ScaleFactory maker = ScaleFactory(options.format, rule).ForTensor(most);
    std::vector<double> errors[2];
    for (auto& e : errors) e.resize(maxima.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t g = options.layout.Index(i / 64, i % 64, 64);
      for (const int four : {0, 1}) {
        const Scale s = four == 1 ? maker.MapToFour(maxima[g]) : maker(maxima[g]);
        const uint32_t code = Encode(options.format, x[i] * s.inv_scale, {}, Overflow::kSaturate);
        errors[four][g] += std::fabs(double{Decode(options.format, code)} * s.scale - x[i]);
      }
    }
    for (size_t g = 0; g < maxima.size(); ++g) {
      const bool four = matrix.Scales()[g] == maker.MapToFour(maxima[g]).scale;
      ASSERT_TRUE(four || matrix.Scales()[g] == maker(maxima[g]).scale);
      const double chosen = errors[four ? 1 : 0][g], other = errors[four ? 0 : 1][g];
      ASSERT_LE(chosen, other * (1 + 1e-5)) << layout << " " << g;
    }
  }
}

// The sum of the errors of the elements of group `g` under a scale, in the order of the header.
float SumOfErrors(const std::vector<float>& x,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  size_t g,
                  const Scale& scale,
                  float tensor,
                  float most,
                  bool squares) {
  const FormatSpec e2m1 = ParseFormat("e2m1fn").spec;
  const float share = RoundedToE4m3(scale.scale / tensor);
  std::vector<float> sums;
  size_t last_row = shape.rows, width = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t r = i / shape.cols, c = i % shape.cols;
    if (layout.Index(r, c, shape.cols) != g) continue;
    if (r != last_row) sums.push_back(0);
    last_row = r;
    width += sums.size() == 1 ? 1 : 0;
    if (!std::isfinite(x[i])) continue;
    const uint32_t code = Encode(e2m1, x[i] * scale.inv_scale, {}, Overflow::kSaturate);
    const float difference = Decode(e2m1, code) * share * most / (6 * 256.0f) - x[i];
    sums.back() += squares ? difference * difference : std::fabs(difference);
  }
  const bool halves = width > 1 && std::has_single_bit(sums.size());
  while (halves && sums.size() > 1) {
    const size_t half = sums.size() / 2;
    for (size_t r = 0; r < half; ++r) sums[r] += sums[r + half];
    sums.resize(half);
  }
  float sum = 0;
  for (const float of_row : sums) sum += of_row;
  return sum;
}

// Groups narrower and wider than a vector and than a piece of work, with infinities and NaN.
TEST(FourOverSix, EachGroupHasTheSmallerSumOnEveryBackend) {
  for (const MatrixShape shape : {MatrixShape{5, 70}, MatrixShape{2, 1100}, MatrixShape{33, 19}}) {
    std::vector<float> x(shape.Elements());
    FillNormal({.seed = 9, .stream = 6}, 0, x);
    for (size_t i = 0; i < x.size(); i += 5) x[i] *= std::exp2(static_cast<float>(i % 20) - 10);
    x[3] = std::numeric_limits<float>::infinity();
    x[17] = -x[3];
    x[x.size() - 2] = std::numeric_limits<float>::quiet_NaN();
    for (const char* layout : {"block:16",
                               "block:5",
                               "block:1050",
                               "tile:16x16",
                               "tile:3x7",
                               "tile:16x1",
                               "tile:4x18",
                               "row",
                               "column",
                               "tensor"}) {
      for (const bool squares : {false, true}) {
        const ScaleRule rule = squares ? ScaleRule::kFourOverSixMse : ScaleRule::kFourOverSixMae;
        const QuantizeOptions options = Options(layout, rule);
        std::vector<float> expected(options.layout.Count(shape.rows, shape.cols));
        Absmax(HostMatrix(std::span<const float>(x), shape), options.layout, std::span(expected));
        const float most = *std::ranges::max_element(expected);
        const ScaleFactory maker = ScaleFactory(options.format, rule).ForTensor(most);
        for (size_t g = 0; g < expected.size(); ++g) {
          const Scale six = maker(expected[g]), four = maker.MapToFour(expected[g]);
          const auto sum = [&](const Scale& scale) {
            return SumOfErrors(
                x, shape, options.layout, g, scale, maker.TensorScale(), most, squares);
          };
          expected[g] = sum(four) < sum(six) ? four.scale : six.scale;
        }
        WithEachBackend([&] {
          SetThreadCount(3);
          const QuantizedMatrix matrix = Quantize(HostMatrix(std::span(x), shape), options);
          ASSERT_EQ(ScalesOf(matrix), expected) << layout << " " << shape.cols;
        });
      }
    }
  }
}

TEST(FourOverSix, IsForE2m1fnAndFloat32) {
  const std::vector<float> x(16, 1);
  QuantizeOptions options = Options("block:16", ScaleRule::kFourOverSixMae);
  options.format = ParseFormat("e4m3fn").spec;
  EXPECT_EQ(ErrorOf([&] {
              Quantize(HostMatrix(std::span(x), MatrixShape{1, 16}), options);
            }),
            "Quantize: the scale rule 4over6-mae is for e2m1fn, not for e4m3fn");
  options.format = ParseFormat("e2m1fn").spec;
  const std::vector<double> wide(16, 1);
  EXPECT_NE(ErrorOf([&] {
              Quantize(HostMatrix(std::span<const double>(wide), MatrixShape{1, 16}), options);
            }),
            kNoError);
}

}  // namespace
}  // namespace numsim
