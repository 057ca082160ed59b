// MS-EDEN (ScaleRule::kMsEden) against its definition, and that it is unbiased.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "tests/reference/oracle.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

QuantizeOptions Options(const char* layout = "block:16",
                        size_t run = 32,
                        RandomStream stream = {}) {
  QuantizeOptions options;
  options.format = kE2M1fn;
  options.layout = ParseScaleLayout(layout);
  options.scale_rule = ScaleRule::kMsEden;
  options.correction_run = run;
  options.random.stream = stream;
  return options;
}

std::vector<float> Uneven(MatrixShape shape) {
  std::vector<float> x(shape.Elements());
  FillNormal({.seed = 14, .stream = 2}, 0, x);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], -static_cast<int>(i / 16 * 7 % 15));
  return x;
}

float Round(const char* format, float x) {
  const oracle::Setting saturating{.policy = oracle::Policy::kSaturate};
  return oracle::RoundFloat32(oracle::GridOf(format), x, saturating, 0);
}

// Rounds x > 0 away from zero if its share of the gap, of 32 bits, and the random word carry.
float RoundByWord(float x, uint32_t word) {
  if (x >= 448) return 448;
  float lower = 0, upper = 448;
  for (int e = -6; e <= 8; ++e) {
    for (int m = 0; m < 8; ++m) {
      for (const float v : {std::ldexp(1.0f + static_cast<float>(m) / 8, e),
                            std::ldexp(static_cast<float>(m), -9)}) {
        if (v <= x) lower = std::max(lower, v);
        if (v > x && v <= 448) upper = std::min(upper, v);
      }
    }
  }
  const double share = (static_cast<double>(x) - lower) / (static_cast<double>(upper) - lower);
  return std::floor(share * 0x1p32) + word >= 0x1p32 ? upper : lower;
}

struct Expected {
  std::vector<float> codes, scales;
};

// The definition, row by row.
Expected ByDefinition(const std::vector<float>& x,
                      MatrixShape shape,
                      size_t run,
                      RandomStream stream) {
  const auto v = static_cast<float>(6 / (17.0 / 16 * 0.93));
  float most = 0;
  for (const float value : x) {
    if (std::isfinite(value)) most = std::max(most, std::fabs(value));
  }
  const float encode = 256 * v / most, tensor = 1 / encode;
  const size_t blocks = (shape.cols + 15) / 16;
  Expected result{std::vector<float>(x.size()), std::vector<float>(shape.rows * blocks)};
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t begin = 0; begin < shape.cols; begin += run) {
      const size_t end = std::min(begin + run, shape.cols);
      double squares = 0, products = 0;
      std::vector<float> shares;
      for (size_t b = begin; b < end; b += 16) {
        float group = 0;
        const size_t stop = std::min(b + 16, end);
        for (size_t c = b; c < stop; ++c) {
          const float value = std::fabs(x[r * shape.cols + c]);
          if (std::isfinite(value)) group = std::max(group, value);
        }
        const float share = Round("e4m3fn", group / v * encode);
        shares.push_back(share);
        const float scale = share * tensor;
        const float inverse = scale == 0 ? 0 : 1 / scale;
        for (size_t c = b; c < stop; ++c) {
          const float value = x[r * shape.cols + c], y = value * inverse;
          const float q = Round("e2m1fn", y);
          result.codes[r * shape.cols + c] = q;
          if (!std::isfinite(value)) continue;
          squares += static_cast<double>(y) * y;
          products += static_cast<double>(y) * q;
        }
      }
      const double correction = products == 0 ? 1 : squares / products;
      for (size_t i = 0; i < shares.size(); ++i) {
        const size_t at = r * blocks + begin / 16 + i;
        result.scales[at] =
            RoundByWord(static_cast<float>(shares[i] * correction), RandomWord(stream, at)) *
            tensor;
      }
    }
  }
  return result;
}

void ExpectDefinition(const std::vector<float>& x,
                      MatrixShape shape,
                      size_t run,
                      RandomStream stream) {
  const QuantizedMatrix made =
      Quantize(HostMatrix(std::span(x), shape), Options("block:16", run, stream));
  const Expected expected = ByDefinition(x, shape, run, stream);
  std::vector<float> codes(x.size());
  DecodeCodes(made, FloatSpan(HostMatrix(std::span(codes), shape)));
  EXPECT_EQ(codes, expected.codes);
  const auto scales = made.Scales();
  EXPECT_EQ(std::vector<float>(scales.begin(), scales.end()), expected.scales);
}

TEST(MsEden, IsItsDefinitionOnEveryBackendAndThreadCount) {
  WithEachBackend([] {
    for (const int threads : {1, 3}) {
      SetThreadCount(threads);
      for (const size_t run : {16, 32, 128}) {
        ExpectDefinition(Uneven({37, 256}), {37, 256}, run, {.seed = 3, .stream = run});
        ExpectDefinition(Uneven({5, 88}), {5, 88}, run, {.seed = 3, .stream = run});
      }
    }
  });
}

TEST(MsEden, LeavesOutWhatIsNotFinite) {
  std::vector<float> x = Uneven({4, 64});
  x[3] = std::numeric_limits<float>::infinity();
  x[70] = -std::numeric_limits<float>::infinity();
  std::fill(x.begin() + 128, x.begin() + 192, 0.0f);
  ExpectDefinition(x, {4, 64}, 64, {.seed = 1, .stream = 1});
}

TEST(MsEden, BlocksOfColumnsAreTheTransposes) {
  const MatrixShape shape{6, 64}, turned{64, 6};
  const std::vector<float> x = Uneven(shape);
  std::vector<float> t(x.size());
  for (size_t i = 0; i < x.size(); ++i) t[i % 64 * 6 + i / 64] = x[i];
  const QuantizedMatrix rows = Quantize(HostMatrix(std::span(x), shape), Options());
  const QuantizedMatrix columns = Quantize(HostMatrix(std::span(t), turned), Options("tile:16x1"));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(rows.Codes8()[i], columns.Codes8()[i % 64 * 6 + i / 64]) << i;
  }
  // The corrections are the same, the random bits are those of another index: at most one step apart.
  for (size_t r = 0; r < 6; ++r) {
    for (size_t b = 0; b < 4; ++b) {
      const float one = rows.Scales()[r * 4 + b], other = columns.Scales()[b * 6 + r];
      EXPECT_NEAR(one / other, 1, 0.126);
    }
  }
}

// <x, Q(x)> / <x, x> over many draws of the scales.
double MeanProjection(const std::vector<float>& x, MatrixShape shape, QuantizeOptions options) {
  double product = 0, square = 0;
  std::vector<float> q(x.size());
  constexpr uint64_t kDraws = 400;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    options.random.stream = {.seed = 9, .stream = draw};
    Dequantize(Quantize(HostMatrix(std::span(x), shape), options),
               FloatSpan(HostMatrix(std::span(q), shape)));
    for (size_t i = 0; i < x.size(); ++i) {
      product += static_cast<double>(x[i]) * q[i];
      square += static_cast<double>(x[i]) * x[i];
    }
  }
  return product / square;
}

// The scale of a block varies by up to 6 %, so the mean of 400 draws of 512 blocks by about 1e-4. A run of
// one block has one scale, and the projection is exact. A longer one adds the scaled elements of its
// blocks, as the code of [Quartet-II] does, where exactness would take those of x: 0.05 % are missing.
TEST(MsEden, KeepsTheProjectionOnXWhereNearestRoundingDoesNot) {
  const MatrixShape shape{64, 128};
  std::vector<float> x(shape.Elements());
  FillNormal({.seed = 21, .stream = 1}, 0, x);
  EXPECT_NEAR(MeanProjection(x, shape, Options("block:16", 16)), 1, 3e-4);
  EXPECT_NEAR(MeanProjection(x, shape, Options("block:16", 128)), 0.9995, 3e-4);
  QuantizeOptions plain = Options();
  plain.scale_rule = ScaleRule::kNvfp4;
  EXPECT_GT(std::fabs(MeanProjection(x, shape, plain) - 1), 2e-3);
}

TEST(MsEden, ErrorsNameWhatItNeeds) {
  const std::vector<float> x(64, 1.0f);
  const auto error = [&](const QuantizeOptions& options) {
    return ErrorOf([&] { Quantize(HostMatrix(std::span(x), {2, 32}), options); });
  };
  EXPECT_THAT(error(Options("block:16", 0)), HasSubstr("correction_run of 0 elements"));
  EXPECT_THAT(error(Options("block:16", 24)), HasSubstr("a multiple of the block of 16"));
  EXPECT_THAT(error(Options("row")), HasSubstr("ms-eden is for blocks of rows or columns"));
  QuantizeOptions options = Options();
  options.format = kE4M3fn;
  EXPECT_THAT(error(options), HasSubstr("ms-eden is for e2m1fn, not for e4m3fn"));
  options = Options();
  options.rounding.mode = RoundingMode::kStochastic;
  EXPECT_THAT(error(options), HasSubstr("expected rne"));
}

}  // namespace
}  // namespace numsim
