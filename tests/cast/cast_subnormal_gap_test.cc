// The vector conversions of formats with a subnormal gap (bnb-e4m3, bnb-e5m2) about that gap, on
// every backend against the scalar rule and numbers worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantize.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr ArrayRandom kRandom = {{.seed = 21, .stream = 3}, 77};

class CastWithSubnormalGap : public testing::TestWithParam<std::string> {
 protected:
  const FormatSpec format = ParseFormat(GetParam()).spec;
  const uint32_t low_code = (uint32_t{1} << format.mantissa_bits) - 1;
  const double low = static_cast<double>(Decode(format, low_code));
  const double high = static_cast<double>(Decode(format, low_code + 1));
};

INSTANTIATE_TEST_SUITE_P(,
                         CastWithSubnormalGap,
                         testing::Values("bnb-e4m3", "bnb-e5m2"),
                         [](auto& test) { return test.param == "bnb-e4m3" ? "E4M3" : "E5M2"; });

EncodePlan StochasticPlan(const FormatSpec& format, StochasticVariant variant, int bits) {
  return MakeEncodePlan(format, {RoundingMode::kStochastic, variant, bits}, Overflow::kSaturate);
}

std::vector<uint8_t> RuleCodes(const EncodePlan& plan, const std::vector<float>& in) {
  std::vector<uint8_t> codes;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]);
    codes.push_back(static_cast<uint8_t>(EncodeF32(plan, bits, Draw(plan, kRandom, i))));
  }
  return codes;
}

// Fails with the first element that differs.
template <typename T>
void ExpectSame(const std::vector<T>& got,
                const std::vector<T>& want,
                const std::vector<float>& in) {
  const size_t i =
      static_cast<size_t>(std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin());
  if (i == got.size()) return;
  ADD_FAILURE() << "element " << i << ", " << std::hexfloat << in[i] << ": " << +got[i] << ", not "
                << +want[i];
}

void ExpectRuleOnEachBackend(const EncodePlan& plan, const std::vector<float>& in) {
  const std::vector<uint8_t> codes = RuleCodes(plan, in);
  std::vector<uint32_t> values;
  for (uint8_t code : codes) values.push_back(std::bit_cast<uint32_t>(Decode(plan.format, code)));
  WithEachBackend([&] {
    std::vector<uint8_t> got(in.size());
    Encode(plan, in, std::span(got), kRandom);
    ExpectSame(got, codes, in);
    std::vector<float> rounded(in.size());
    FakeQuantize(plan, in, rounded, kRandom);
    std::vector<uint32_t> words;
    for (float x : rounded) words.push_back(std::bit_cast<uint32_t>(x));
    ExpectSame(words, values, in);
  });
}

// Neighbours of a positive number, on both sides of zero.
void AppendAround(double x, int neighbours, std::vector<float>& out) {
  const int32_t centre = std::bit_cast<int32_t>(static_cast<float>(x));
  for (int32_t bits = centre - neighbours; bits <= centre + neighbours; ++bits) {
    if (bits < 0) continue;
    out.push_back(std::bit_cast<float>(bits));
    out.push_back(-out.back());
  }
}

TEST_P(CastWithSubnormalGap, RunsInVectors) {
  EXPECT_TRUE(DecodesInVectors(format));
  for (const RoundingModeRow& row : kRoundingModes) {
    EXPECT_TRUE(EncodesInVectors(MakeEncodePlan(format, {row.mode})));
  }
}

TEST_P(CastWithSubnormalGap, EveryDeterministicModeIsTheRuleAboutTheEdges) {
  std::vector<float> in;
  for (double x : {0.0, 0x1p-126, low / 7, low / 2, low, (low + high) / 2, high, 1.5 * high}) {
    AppendAround(x, 300, in);
  }
  AppendAround(static_cast<double>(INFINITY), 40, in);
  for (RoundingMode mode : kDeterministicModes) {
    SCOPED_TRACE(ToString(mode));
    ExpectRuleOnEachBackend(MakeEncodePlan(format, {mode}), in);
  }
}

// Each input is the number at which its own draw begins to round it away, or a neighbour.
TEST_P(CastWithSubnormalGap, StochasticRoundingTurnsWhereTheDrawSays) {
  for (int v = 0; v < 3; ++v) {
    for (int bits = 1; bits <= 32; ++bits) {
      SCOPED_TRACE(testing::Message() << "variant " << v << ", " << bits << " bits");
      const EncodePlan plan = StochasticPlan(format, static_cast<StochasticVariant>(v), bits);
      const double half = v == 0 ? 0 : 0.5;
      // Half of a unit of 32 bits decides seldom.
      const size_t n = bits == 32 ? 10000 : 400;
      std::vector<float> in;
      for (size_t i = 0; i < n; ++i) {
        const double away = std::ldexp(Draw(plan, kRandom, i) + half, -bits);
        const float turn = static_cast<float>(low + (high - low) * (1 - away));
        const int32_t near = static_cast<int32_t>(i % 5) - 2;
        const float x = std::bit_cast<float>(std::bit_cast<int32_t>(turn) + near);
        in.push_back(i % 3 == 0 ? -x : x);
      }
      ExpectRuleOnEachBackend(plan, in);
    }
  }
}

TEST_P(CastWithSubnormalGap, ScaledCodesAreThoseOfTheProducts) {
  constexpr MatrixShape kShape{9, 150};
  const std::vector<float> factors = {1, 0.7f, 3, 0x1p-3f, 1.1f, 0.9f, 5, 2, 0.3f};
  std::vector<float> in, products;
  for (size_t i = 0; i < kShape.Elements(); ++i) {
    const float x = static_cast<float>(high * static_cast<double>(i % 601) / 400);
    in.push_back(i % 2 == 0 ? x : -x);
    products.push_back(in.back() * factors[i / kShape.cols]);
  }
  const EncodePlan plan = MakeEncodePlan(format, {}, Overflow::kSaturate);
  const std::vector<uint8_t> want = RuleCodes(plan, products);
  WithEachBackend([&] {
    std::vector<uint8_t> got(in.size());
    Quantize(plan, HostMatrix(in, kShape), ParseScaleLayout("row"), factors, std::span(got));
    EXPECT_EQ(got, want);
  });
}

// bnb-e4m3 in units of its subnormals, 2^-11: they end at 7, the normals begin at 32, and the
// middle of the subnormal gap is 19.5.
TEST(CastAboutTheSubnormalGap, NearestEvenByHand) {
  struct Case {
    float units;
    uint8_t code;
  };
  const Case cases[] = {{0, 0},
                        {0.5f, 0},
                        {0.51f, 1},
                        {1.5f, 2},
                        {6.5f, 6},
                        {6.6f, 7},
                        {7.5f, 7},
                        {12, 7},
                        {19.499f, 7},
                        {19.5f, 8},
                        {31, 8},
                        {32, 8},
                        {34, 8},
                        {34.1f, 9},
                        {INFINITY, 0x7F}};
  const EncodePlan plan = MakeEncodePlan(FindFormat("bnb-e4m3")->spec);
  for (const Case& c : cases) {
    WithEachBackend([&] {
      for (const float sign : {1.0f, -1.0f}) {
        const std::vector<float> in(67, sign * c.units * 0x1p-11f);
        std::vector<uint8_t> got(in.size());
        Encode(plan, in, std::span(got), {});
        const int code = c.code | (sign < 0 ? 0x80 : 0);
        EXPECT_EQ(got, std::vector<uint8_t>(in.size(), static_cast<uint8_t>(code))) << c.units;
      }
    });
  }
}

}  // namespace
}  // namespace numsim
