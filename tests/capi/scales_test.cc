// Scales from absolute maxima.
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "numsim/quantize/scale.h"
#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct NamedRule {
  int c;
  const char* name;
};
constexpr NamedRule kScaleRules[] = {{NUMSIM_SCALE_RULE_ABSMAX, "absmax"},
                                     {NUMSIM_SCALE_RULE_POW2_FLOOR, "pow2-floor"},
                                     {NUMSIM_SCALE_RULE_POW2_CEIL, "pow2-ceil"},
                                     {NUMSIM_SCALE_RULE_E8M0, "e8m0"},
                                     {NUMSIM_SCALE_RULE_NONE, "none"}};

// Zero, the smallest and largest numbers, and three numbers of every binade.
std::vector<float> Maxima() {
  std::vector<float> maxima = {0.0f, -0.0f, std::numeric_limits<float>::denorm_min()};
  for (int exponent = -149; exponent <= 127; ++exponent) {
    const float power = std::ldexp(1.0f, exponent);
    maxima.insert(maxima.end(), {power, std::nextafterf(power, kInfinity), power * 1.75f});
  }
  maxima.push_back(std::numeric_limits<float>::max());
  return maxima;
}

TEST(CMakeScales, AreThoseOfTheLibraryForEveryRuleAndFormat) {
  const std::vector<float> maxima = Maxima();
  std::vector<float> scales(maxima.size()), inv_scales(maxima.size());
  for (const NamedFormat& format : Formats()) {
    for (const NamedRule& rule : kScaleRules) {
      ASSERT_EQ(
          numsim_make_scales(
              &format.c, maxima.data(), maxima.size(), rule.c, scales.data(), inv_scales.data()),
          NUMSIM_OK);
      for (size_t i = 0; i < maxima.size(); ++i) {
        const Scale expected = MakeScale(format.spec, maxima[i], ParseScaleRule(rule.name));
        ASSERT_EQ(std::bit_cast<uint32_t>(scales[i]), std::bit_cast<uint32_t>(expected.scale))
            << format.name << " " << rule.name << " " << maxima[i];
        ASSERT_EQ(std::bit_cast<uint32_t>(inv_scales[i]),
                  std::bit_cast<uint32_t>(expected.inv_scale))
            << format.name << " " << rule.name << " " << maxima[i];
      }
    }
  }
}

// By hand, with M = 448 of e4m3fn: 14 / 448 = 2^-5; 15 / 448 lies between 2^-5 and 2^-4; the
// exponents of 15 and 448 are 3 and 8.
TEST(CMakeScales, ByHand) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const float absmax[2] = {14.0f, 15.0f};
  const auto scale = [&](int rule, size_t i) {
    float scales[2] = {}, inv_scales[2] = {};
    EXPECT_EQ(numsim_make_scales(&e4m3fn, absmax, 2, rule, scales, inv_scales), NUMSIM_OK);
    return std::pair(scales[i], inv_scales[i]);
  };
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_ABSMAX, 0), std::pair(0x1p-5f, 32.0f));
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_ABSMAX, 1), std::pair(15.0f / 448.0f, 448.0f / 15.0f));
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_POW2_FLOOR, 1), std::pair(0x1p-5f, 32.0f));
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_POW2_CEIL, 0), std::pair(0x1p-5f, 32.0f));
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_POW2_CEIL, 1), std::pair(0x1p-4f, 16.0f));
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_E8M0, 1), std::pair(0x1p-5f, 32.0f));
  EXPECT_EQ(scale(NUMSIM_SCALE_RULE_NONE, 1), std::pair(1.0f, 1.0f));
}

// Without the rule for zero the scale of the second row would be 448 / 0, and its codes NaN.
TEST(CMakeScales, ARowOfZerosBecomesZeroCodes) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const numsim_scale_layout_t rows = {NUMSIM_SCALE_ROW, 0, 0};
  const float in[6] = {1, -2, 7, 0, -0.0f, 0};
  for (const NamedRule& rule : kScaleRules) {
    float absmax[2], scales[2], inv_scales[2], out[6];
    uint8_t codes[6];
    ASSERT_EQ(numsim_absmax(in, 2, 3, &rows, absmax), NUMSIM_OK);
    ASSERT_EQ(numsim_make_scales(&e4m3fn, absmax, 2, rule.c, scales, inv_scales), NUMSIM_OK);
    EXPECT_EQ(scales[1], 1.0f) << rule.name;
    EXPECT_EQ(inv_scales[1], 1.0f) << rule.name;
    ASSERT_EQ(numsim_quantize(in, 2, 3, &rows, inv_scales, &e4m3fn, nullptr, nullptr, 0, codes, 1),
              NUMSIM_OK);
    EXPECT_EQ(codes[3], 0x00) << rule.name;
    EXPECT_EQ(codes[4], 0x80) << rule.name;
    EXPECT_EQ(codes[5], 0x00) << rule.name;
    ASSERT_EQ(numsim_dequantize(&e4m3fn, codes, 1, 2, 3, &rows, scales, out), NUMSIM_OK);
    EXPECT_EQ(out[2], 7.0f) << rule.name;
  }
}

// 2^-149 / 448 would have an infinite inverse. The bound is A = 448 * 2^-126; E8M0 ends at 2^-127.
TEST(CMakeScales, InversesAreFinite) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const float absmax[1] = {0x1p-149f};
  for (const NamedRule& rule : kScaleRules) {
    float scale = 0, inv_scale = 0;
    ASSERT_EQ(numsim_make_scales(&e4m3fn, absmax, 1, rule.c, &scale, &inv_scale), NUMSIM_OK);
    const int least = rule.c == NUMSIM_SCALE_RULE_NONE     ? 0
                      : rule.c == NUMSIM_SCALE_RULE_ABSMAX ? -126
                                                           : -127;
    EXPECT_EQ(scale, std::ldexp(1.0f, least)) << rule.name;
    EXPECT_EQ(inv_scale, std::ldexp(1.0f, -least)) << rule.name;
  }
}

class CMakeScalesArguments : public ::testing::Test {
 protected:
  // The status of two maxima. Outputs change only if it is NUMSIM_OK.
  numsim_status_t Make(const numsim_format_t* format,
                       const float* absmax,
                       int rule,
                       bool to_scales = true,
                       bool to_inv_scales = true) {
    float scales[2] = {7, 7}, inv_scales[2] = {7, 7};
    const numsim_status_t status = numsim_make_scales(format,
                                                      absmax,
                                                      2,
                                                      rule,
                                                      to_scales ? scales : nullptr,
                                                      to_inv_scales ? inv_scales : nullptr);
    for (const float x : {scales[0], scales[1], inv_scales[0], inv_scales[1]}) {
      if (status != NUMSIM_OK) {
        EXPECT_EQ(x, 7);
      } else {
        EXPECT_NE(x, 7);
      }
    }
    return status;
  }

  static constexpr numsim_status_t kBad = NUMSIM_ERROR_BAD_ARGUMENT;
  numsim_format_t int8_ = CFormat("int8");
  float absmax_[2] = {1, 2};
};

TEST_F(CMakeScalesArguments, PointersAndRules) {
  EXPECT_EQ(Make(&int8_, absmax_, 0), NUMSIM_OK);
  EXPECT_EQ(Make(nullptr, absmax_, 0), kBad);
  EXPECT_EQ(Make(&int8_, nullptr, 0), kBad);
  EXPECT_EQ(Make(&int8_, absmax_, 0, false, true), kBad);
  EXPECT_EQ(Make(&int8_, absmax_, 0, true, false), kBad);
  for (const int rule : {-1, NUMSIM_SCALE_RULE_NONE + 1, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(Make(&int8_, absmax_, rule), kBad) << rule;
  }
  int8_.reserved[0] = 1;
  EXPECT_EQ(Make(&int8_, absmax_, 0), NUMSIM_ERROR_BAD_FORMAT);
}

TEST_F(CMakeScalesArguments, MaximaAreFiniteAndNotNegative) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -1.0f, -1e-45f}) {
    for (const NamedRule& rule : kScaleRules) {
      absmax_[1] = bad;
      EXPECT_EQ(Make(&int8_, absmax_, rule.c), kBad) << bad << " " << rule.name;
    }
  }
}

TEST_F(CMakeScalesArguments, MemoryAndSizes) {
  float memory[4] = {1, 1, 1, 1};
  const auto status = [&](const float* absmax, float* scales, float* inv_scales) {
    return numsim_make_scales(&int8_, absmax, 2, 0, scales, inv_scales);
  };
  EXPECT_EQ(status(memory, memory + 1, memory + 3), NUMSIM_ERROR_OVERLAP);
  EXPECT_EQ(status(absmax_, memory, memory + 1), NUMSIM_ERROR_OVERLAP);
  EXPECT_EQ(status(memory, absmax_, memory + 1), NUMSIM_ERROR_OVERLAP);
  EXPECT_EQ(status(absmax_, memory, memory + 2), NUMSIM_OK);
  EXPECT_EQ(numsim_make_scales(&int8_, nullptr, 0, 0, nullptr, nullptr), NUMSIM_OK);
  EXPECT_EQ(numsim_make_scales(&int8_, absmax_, SIZE_MAX, 0, memory, memory + 2), kBad);
  const auto* odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(absmax_) + 1);
  EXPECT_EQ(status(odd, memory, memory + 2), kBad);
}

}  // namespace
}  // namespace numsim::capi_test
