// Inner products under accumulation modes against exact numbers (tests/reference/accumulate.h), and
// what special operands give.
#include "numsim/arith/accumulation_mode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "tests/arith/judged_modes.h"
#include "tests/support/dot_operands.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct FormatPair {
  FormatSpec a, b;
};
const FormatPair kPairs[] = {{kE4M3fn, kE5M2},
                             {kE4M3fn, kE4M3fn},
                             {kE5M2, kE5M2},
                             {kE4M3fnuz, kE5M2fnuz},
                             {kInt8, kInt8},
                             {kBf16, kBf16},
                             {kFp16, kFp16},
                             {kTf32, kTf32},
                             {kFp32, kFp32},
                             {kBf16, kInt8},
                             {kFp32, kE4M3fn}};

constexpr size_t kLengths[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 300};

DotSide SideOf(const FormatSpec& format, const std::vector<float>& values) {
  return {values, format.MinExponent()};
}

std::string Listing(const std::vector<float>& a, const std::vector<float>& b) {
  std::string text;
  for (size_t k = 0; k < std::min<size_t>(a.size(), 40); ++k) {
    text += fmt::format("{:a} * {:a}\n", a[k], b[k]);
  }
  return text;
}

// Calls check(fa, a, fb, b) for random operands of each pair of formats, distribution and length.
template <typename Check>
void ForRandomOperands(int repetitions, const Check& check) {
  oracle::TestRandom random(20261121);
  for (const FormatPair& pair : kPairs) {
    for (const Spread spread : kSpreads) {
      for (const size_t length : kLengths) {
        for (int i = 0; i < repetitions; ++i) {
          const auto a = SpreadCodes(pair.a, spread, Side::kLeft, length, random);
          const auto b = SpreadCodes(pair.b, spread, Side::kRight, length, random);
          check(pair.a, ValuesOf(pair.a, a), pair.b, ValuesOf(pair.b, b));
          if (testing::Test::HasFailure()) {
            ADD_FAILURE() << ToString(pair.a) << " " << ToString(pair.b) << " "
                          << testing::PrintToString(spread) << " length " << length;
            return;
          }
        }
      }
    }
  }
}

class RandomOperands : public testing::TestWithParam<JudgedMode> {};

TEST_P(RandomOperands, SumAsExactNumbersSay) {
  const JudgedMode& judged = GetParam();
  ForRandomOperands(2,
                    [&](const FormatSpec& fa,
                        const std::vector<float>& a,
                        const FormatSpec& fb,
                        const std::vector<float>& b) {
                      const double got = ValueOf(Accumulate(judged.mode, {fa, a}, {fb, b}));
                      const double want = judged.judge(SideOf(fa, a), SideOf(fb, b));
                      ASSERT_TRUE(Same(got, want))
                          << fmt::format("{:a}, not {:a}\n", got, want) << Listing(a, b);
                    });
}

INSTANTIATE_TEST_SUITE_P(Accumulate,
                         RandomOperands,
                         testing::ValuesIn(JudgedModes()),
                         [](const testing::TestParamInfo<JudgedMode>& param) {
                           std::string name =
                               fmt::format("{}_{}",
                                           param.index,
                                           param.param.text.empty() ? "unnamed" : param.param.text);
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

TEST(AccumulateExact, IsTheSumRoundedToOdd) {
  ForRandomOperands(
      4,
      [](const FormatSpec& fa,
         const std::vector<float>& a,
         const FormatSpec& fb,
         const std::vector<float>& b) {
        const Unrounded got = Accumulate({}, {fa, a}, {fb, b});
        const oracle::ExactNumber want = oracle::ExactDot(SideOf(fa, a), SideOf(fb, b));
        ASSERT_EQ(got.negative, want.negative) << Listing(a, b);
        ASSERT_EQ(got.kind == NumberKind::kNan, want.IsNan()) << Listing(a, b);
        ASSERT_EQ(got.kind == NumberKind::kInfinity, want.IsInfinite()) << Listing(a, b);
        if (got.kind != NumberKind::kFinite) return;
        ASSERT_TRUE(
            oracle::IsRoundedToOdd(want, got.significand, got.exponent, Unrounded::kKeptBits))
            << fmt::format("{} 2^{}\n", got.significand, got.exponent) << Listing(a, b);
      });
}

TEST(Accumulate, IsExactWhereNothingIsRounded) {
  // Sums of products of small integers: below 2^11, so every mode but narrow ones is exact.
  oracle::TestRandom random(7);
  for (const JudgedMode& judged : JudgedModes()) {
    if (judged.mode.kind == AccumulationKind::kFormat && judged.mode.format != kFp32) continue;
    if (judged.mode.kind == AccumulationKind::kFormatUnfused && judged.mode.format != kFp32)
      continue;
    if (judged.mode.kind == AccumulationKind::kAligned && judged.mode.fraction_bits < 13) continue;
    for (size_t n = 0; n < 200; n += 13) {
      std::vector<float> a, b;
      int sum = 0;
      for (size_t k = 0; k < n; ++k) {
        const int x = static_cast<int>(random.Below(7)) - 3;
        const int y = static_cast<int>(random.Below(7)) - 3;
        a.push_back(static_cast<float>(x));
        b.push_back(static_cast<float>(y));
        sum += x * y;
      }
      EXPECT_EQ(ValueOf(Accumulate(judged.mode, {kE4M3fn, a}, {kE4M3fn, b})), sum)
          << judged.text << " " << n;
    }
  }
}

TEST(Accumulate, NanOrInfinityTimesZeroOrOppositeInfinitiesGiveAPositiveNan) {
  for (const AccumulationMode& mode : RulesOfEveryKind()) {
    SCOPED_TRACE(ToString(mode));
    // At each place of 40, so in a first, a later and a last chunk.
    for (const size_t place : {0, 1, 17, 39}) {
      std::vector<float> a(40, 1), b(40, 1);
      a[place] = -kNaN;
      EXPECT_TRUE(Same(Sum(mode, a, b), kNaN));
      b[20] = kInf;
      EXPECT_TRUE(Same(Sum(mode, a, b), kNaN)) << "NaN before infinity";
      a[place] = kInf;
      b[place] = -0.0f;
      EXPECT_TRUE(Same(Sum(mode, a, b), kNaN)) << "infinity times zero";
      a[place] = -0.0f;
      b[place] = -kInf;
      EXPECT_TRUE(Same(Sum(mode, a, b), kNaN)) << "zero times infinity";
      a[place] = kInf;
      EXPECT_TRUE(Same(Sum(mode, a, b), kNaN)) << "infinities of both signs";
    }
  }
}

TEST(Accumulate, AnInfiniteProductGivesInfinityOfItsSign) {
  for (const AccumulationMode& mode : RulesOfEveryKind()) {
    SCOPED_TRACE(ToString(mode));
    for (const size_t place : {0, 1, 17, 39}) {
      std::vector<float> a(40, 1), b(40, -1);
      a[place] = kInf;
      EXPECT_EQ(Sum(mode, a, b), -kInf);
      a[place] = -kInf;
      EXPECT_EQ(Sum(mode, a, b), kInf);
      a[(place + 5) % 40] = -kInf;
      EXPECT_EQ(Sum(mode, a, b), kInf);
    }
  }
}

TEST(Accumulate, AnInfiniteAccumulatorAndAnOppositeInfinityGiveANan) {
  // Three products of 2^200 overflow, whatever the chunk; an infinity follows in a later chunk.
  for (const AccumulationMode& mode : RulesOfEveryKind()) {
    if (mode.kind == AccumulationKind::kExact || mode.kind == AccumulationKind::kFloat64) continue;
    SCOPED_TRACE(ToString(mode));
    std::vector<float> a(300, 0), b(300, 0x1p100f);
    a[0] = a[1] = a[2] = -0x1p100f;
    EXPECT_EQ(Sum(mode, a, b), -kInf);
    a[299] = kInf;
    EXPECT_TRUE(Same(Sum(mode, a, b), kNaN));
    a[299] = -kInf;
    EXPECT_EQ(Sum(mode, a, b), -kInf);
  }
}

TEST(Accumulate, SumsOfZerosAndEmptySumsArePositive) {
  for (const AccumulationMode& mode : RulesOfEveryKind()) {
    SCOPED_TRACE(ToString(mode));
    EXPECT_TRUE(Same(Sum(mode, {}, {}), 0.0));
    for (const size_t n : {1, 5, 33}) {
      EXPECT_TRUE(Same(Sum(mode, std::vector<float>(n, -0.0f), std::vector<float>(n, 3)), 0.0));
      EXPECT_TRUE(Same(Sum(mode, std::vector<float>(n, -2.0f), std::vector<float>(n, 0)), 0.0));
    }
    EXPECT_TRUE(Same(Sum(mode, {3, 3}, {-1, 1}), 0.0)) << "opposites";
  }
}

TEST(Accumulate, BeyondTheRangeOfFloat32IsInfinity) {
  const float huge = 0x1p127f;
  for (const AccumulationMode& mode : RulesOfEveryKind()) {
    if (mode.kind == AccumulationKind::kExact || mode.kind == AccumulationKind::kFloat64) continue;
    SCOPED_TRACE(ToString(mode));
    EXPECT_EQ(Sum(mode, {huge, huge}, {1, 1}), kInf);
    EXPECT_EQ(Sum(mode, {-huge, -huge}, {1, 1}), -kInf);
    EXPECT_EQ(Sum(mode, std::vector<float>(40, -huge), std::vector<float>(40, 1)), -kInf);
  }
}

}  // namespace
}  // namespace numsim
