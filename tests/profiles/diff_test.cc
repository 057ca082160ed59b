// Diff against an evaluation of its own over a sixth of a thousandth of all patterns, and against
// totals worked out by hand.
#include "numsim/profiles/diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "tests/profiles/differences.h"
#include "tests/profiles/patterns.h"
#include "tests/reference/inputs.h"
#include "tests/support/error_of.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSign32 = 0x8000'0000;

const Pair kPairs[] = {
    {"cuda-13", "hip-host", "e4m3fn"},
    {"cuda-13", "hip-host", "e5m2"},
    {"ml-dtypes", "torch-2.11", "e8m0fnu"},
    {"cuda-13", "qpytorch", "e4m3fn"},
    {"cuda-13", "qpytorch", "e5m2"},
    {"cuda-13", "ml-dtypes", "e2m1fn"},
    {"cuda-13", "ml-dtypes", "e2m3fn"},
    {"cuda-13-rz", "ocp-saturate", "e3m2fn"},
    {"cuda-13", "cuda-13-rz-satfinite", "e8m0fnu"},
    {"torch-2.11", "torch-2.12", "e4m3fn"},
    {"onnx-cast-23", "onnx-cast-24", "e5m2fnuz"},
    {"hip-host-satfinite", "onnx-cast-23", "e4m3fnuz"},
    {"cpfloat", "qpytorch", "qpytorch-e4m3"},
    {"gaudi", "ocp-saturate", "e4m3fn"},
    {"bitsandbytes", "rule:rne,nonsaturate", "bnb-e4m3"},
    {"p3109-v4-satfinite", "p3109-v4-satnone", "binary8p3se"},
    {"p3109-v4-satpropagate", "p3109-v4-satnone", "binary8p4ue"},
    {"rule:rtz,saturate", "rule:rtp,saturate", "e3m2fn"},
    {"rule:rna,nonsaturate", "rule:odd,nonsaturate", "int8"},
    {"ptx-rs", "amd-sr", "e4m3fn", 0x9E37'79B9},
    {"amd-sr-host", "amd-sr", "e5m2", 0x1234'5678},
    {"p3109-a:5", "p3109-c:5", "binary8p4se", 0x1F},
    {"torch-bf16-sr", "ptx-rs", "bf16", 0x8000'7FFF},
};

bool IsNan32(uint64_t bits) { return (bits & 0x7FFF'FFFF) > 0x7F80'0000; }

// Two conversions as Diff sees them.
class Both {
 public:
  explicit Both(const Pair& pair)
      : a_(FromFloat32(pair.a, pair.target)),
        b_(FromFloat32(pair.b, pair.target)),
        random_a_(a_.RandomOfWord(pair.word)),
        random_b_(b_.RandomOfWord(pair.word)),
        difference_(Diff(a_, b_, pair.word)) {}

  uint32_t A(uint64_t bits) const { return a_.Encode(bits, random_a_); }
  uint32_t B(uint64_t bits) const { return b_.Encode(bits, random_b_); }
  const ProfileConversion& a() const { return a_; }
  const ProfileConversion& b() const { return b_; }
  const Difference& difference() const { return difference_; }

 private:
  ProfileConversion a_, b_;
  uint32_t random_a_, random_b_;
  Difference difference_;
};

class DiffPairs : public testing::TestWithParam<Pair> {};

TEST_P(DiffPairs, EqualsAnEvaluationOfItsOwn) {
  const Both both(GetParam());
  const std::vector<DifferingInterval>& intervals = both.difference().intervals;
  size_t next = 0;  // the interval at or after the current pattern
  for (uint64_t upper = 0; upper < 1 << 20; ++upper) {
    for (const uint32_t low : reference::kLowParts) {
      const uint64_t bits = upper << 12 | low;
      while (next < intervals.size() && intervals[next].last < bits) ++next;
      const bool listed = next < intervals.size() && intervals[next].first <= bits;
      const uint32_t a = both.A(bits), b = both.B(bits);
      ASSERT_EQ(listed, a != b) << fmt::format("0x{:08X}: 0x{:X} 0x{:X}", bits, a, b);
      if (!listed) continue;
      ASSERT_EQ(intervals[next].code_a, a) << fmt::format("0x{:08X}", bits);
      ASSERT_EQ(intervals[next].code_b, b) << fmt::format("0x{:08X}", bits);
    }
  }
}

TEST_P(DiffPairs, ListsDisjointAscendingIntervalsThatAddUp) {
  const Both both(GetParam());
  uint64_t after = 0, total = 0, nan_total = 0;
  for (const DifferingInterval& interval : both.difference().intervals) {
    ASSERT_LE(interval.first, interval.last);
    ASSERT_LE(interval.last, 0xFFFF'FFFFu);
    ASSERT_GE(interval.first, after);
    ASSERT_EQ(interval.first & kSign32, interval.last & kSign32) << "both signs in one";
    ASSERT_EQ(IsNan32(interval.first), IsNan32(interval.last)) << "NaN and others in one";
    ASSERT_NE(interval.code_a, interval.code_b);
    after = interval.last + 1;
    total += interval.Count();
    if (IsNan32(interval.first)) nan_total += interval.Count();
  }
  EXPECT_EQ(both.difference().differing, total);
  EXPECT_EQ(both.difference().differing_nan, nan_total);
}

// One code a side throughout, and another outcome beyond each end that could belong to it.
TEST_P(DiffPairs, ListsIntervalsThatAreUniformAndMaximal) {
  const Both both(GetParam());
  oracle::TestRandom random(9);
  for (const DifferingInterval& interval : both.difference().intervals) {
    std::vector<uint64_t> inside = {interval.first, interval.last};
    for (int i = 0; i < 50; ++i) {
      inside.push_back(interval.first + random.Below(interval.Count()));
    }
    for (const uint64_t bits : inside) {
      ASSERT_EQ(both.A(bits), interval.code_a) << fmt::format("0x{:08X}", bits);
      ASSERT_EQ(both.B(bits), interval.code_b) << fmt::format("0x{:08X}", bits);
    }
    for (const uint64_t beyond : {interval.first - 1, interval.last + 1}) {
      if (beyond > 0xFFFF'FFFF || ((beyond ^ interval.first) & kSign32) != 0) continue;
      if (IsNan32(beyond) != IsNan32(interval.first)) continue;
      ASSERT_FALSE(both.A(beyond) == interval.code_a && both.B(beyond) == interval.code_b)
          << fmt::format("goes on at 0x{:08X}", beyond);
    }
  }
}

TEST_P(DiffPairs, IsSymmetric) {
  const Both both(GetParam());
  Difference swapped = Diff(both.b(), both.a(), GetParam().word);
  for (DifferingInterval& interval : swapped.intervals) {
    std::swap(interval.code_a, interval.code_b);
  }
  EXPECT_EQ(swapped, both.difference());
}

INSTANTIATE_TEST_SUITE_P(All, DiffPairs, testing::ValuesIn(SampledCases(kPairs)), ParamName);

TEST(Diff, OfAConversionWithItselfIsEmpty) {
  for (const ProfileInfo& profile : ProfileTable()) {
    for (const std::string& target : ProfileTargets(profile.name, SourceType::kFloat32)) {
      const ProfileConversion conversion = FromFloat32(profile.name, target);
      if (conversion.format().Bits() > 20) continue;
      EXPECT_EQ(Diff(conversion, conversion, 0x5555'1234), Difference{}) << profile.name;
    }
  }
}

// (448, 464] is 2^19 patterns of each sign: NaN against 448. HIP's shifts bring back (2^-74,
// 2^-69), five binades except for one pattern. CUDA drops the sign of a NaN.
TEST(DiffTotals, CudaAndHipToE4m3) {
  const Difference difference =
      Diff(FromFloat32("cuda-13", "e4m3fn"), FromFloat32("hip-host", "e4m3fn"));
  const uint64_t overflow = uint64_t{1} << 19;
  const uint64_t brought_back = 5 * (uint64_t{1} << 23) - 1;
  EXPECT_EQ(difference.differing, 2 * (overflow + brought_back) + kNansOfOneSign);
  EXPECT_EQ(difference.differing, 93'323'261u);
  EXPECT_EQ(difference.differing_nan, kNansOfOneSign);
  const auto has = [&](float first, float last, uint32_t a, uint32_t b) {
    const DifferingInterval wanted{
        std::bit_cast<uint32_t>(first), std::bit_cast<uint32_t>(last), a, b};
    return std::count(difference.intervals.begin(), difference.intervals.end(), wanted) == 1;
  };
  EXPECT_TRUE(has(std::nextafter(448.0f, 1e9f), 464.0f, 0x7E, 0x7F));
  EXPECT_TRUE(has(-std::nextafter(448.0f, 1e9f), -464.0f, 0xFE, 0xFF));
}

// (57344, 61440) is 2^20 - 1 patterns; (2^-81, 2^-77) comes back: 67,108,862 patterns of both
// signs, as reported of hardware (ROCm/rocm-systems issue 10591).
TEST(DiffTotals, CudaAndHipToE5m2) {
  const Difference difference =
      Diff(FromFloat32("cuda-13", "e5m2"), FromFloat32("hip-host", "e5m2"));
  EXPECT_EQ(difference.differing, 2 * 1'048'575 + 67'108'862 + kNansOfOneSign);
}

// Zero, and every negative number but those that PyTorch makes NaN as well: 1.5 2^127 and beyond.
TEST(DiffTotals, MlDtypesAndTorchToE8m0) {
  const Difference difference =
      Diff(FromFloat32("ml-dtypes", "e8m0fnu"), FromFloat32("torch-2.11", "e8m0fnu"));
  EXPECT_EQ(difference.differing, 1 + uint64_t{0x7F40'0000});
  EXPECT_EQ(difference.differing_nan, 0u);
  ASSERT_EQ(difference.intervals.size(), 1 + 255u);
  EXPECT_EQ(difference.intervals.front(), (DifferingInterval{0, 0, 0xFF, 0x00}));
  EXPECT_EQ(difference.intervals.back(), (DifferingInterval{0xFEC0'0000, 0xFF3F'FFFF, 0xFF, 0xFE}));
}

TEST(DiffTotals, WhereOneRuleAloneDiffers) {
  const auto total = [](const char* a, const char* b, const char* target) {
    return Diff(FromFloat32(a, target), FromFloat32(b, target)).differing;
  };
  EXPECT_EQ(total("cuda-13", "torch-2.11", "e4m3fn"), kNansOfOneSign);
  EXPECT_EQ(total("torch-2.11", "ml-dtypes", "e4m3fn"), 0u);
  EXPECT_EQ(total("torch-2.11", "ml-dtypes", "e5m2"), 2 * kNansOfOneSign);
  EXPECT_EQ(total("torch-2.11", "ml-dtypes", "e4m3fnuz"), 0u);
  EXPECT_EQ(total("cuda-13", "ml-dtypes", "e2m1fn"), 2 * kNansOfOneSign);
  // Beyond 464 up to the largest float32.
  EXPECT_EQ(total("torch-2.11", "torch-2.12", "e4m3fn"), 2 * (uint64_t{0x7F7F'FFFF} - 0x43E8'0000));
  EXPECT_EQ(total("onnx-cast-23", "onnx-cast-24", "e4m3fnuz"), 2u);
  EXPECT_EQ(total("onnx-cast-23", "onnx-cast-24", "e4m3fn"), 0u);
  EXPECT_EQ(total("cuda-13-rz", "cuda-13-rz-satfinite", "e8m0fnu"), 2u);
  EXPECT_EQ(total("cuda-13", "cuda-13-satfinite", "e2m1fn"), 0u);
  // All but zeros, powers of two and the few that become 2^-127 both ways.
  EXPECT_EQ(total("cuda-13", "cuda-13-rz", "e8m0fnu"), 2 * (0x7F80'0000u - 0x40'0001u - 254));
}

// Ties of a float32 to nearest: away against even differ on every second one, 126 of each sign
// between codes 0 and 0x7E, where also overflow is a tie or not.
TEST(DiffTotals, TiesAwayAgainstTiesToEven) {
  const Difference difference =
      Diff(FromFloat32("rule:rne,saturate", "e4m3fn"), FromFloat32("rule:rna,saturate", "e4m3fn"));
  EXPECT_EQ(difference.differing, 2 * 63u);
  for (const DifferingInterval& interval : difference.intervals) {
    EXPECT_EQ(interval.Count(), 1u);
    EXPECT_EQ(interval.code_b, interval.code_a + 1);
    EXPECT_EQ(interval.code_a % 2, 0u);
  }
}

// By value, the signs of NaN and of zero do not count: HIP and CUDA differ in the two other causes.
TEST(DiffByValue, NansAndZerosHaveNoSign) {
  const auto cuda = FromFloat32("cuda-13", "e4m3fn"), hip = FromFloat32("hip-host", "e4m3fn");
  const Difference codes = Diff(cuda, hip), values = Diff(cuda, hip, 0, DiffBy::kValue);
  EXPECT_EQ(values.differing, codes.differing - kNansOfOneSign);
  EXPECT_EQ(values.differing_nan, 0u);
  const auto signed_zero = FromFloat32("rule:rne,saturate", "e4m3fn");
  const auto unsigned_zero = FromFloat32("qpytorch", "e4m3fn");
  for (const DifferingInterval& interval :
       Diff(signed_zero, unsigned_zero, 0, DiffBy::kValue).intervals) {
    EXPECT_FALSE(interval.code_a == 0x80 && interval.code_b == 0x00);
  }
}

// e4m3fn has 448 and steps of 2^-9 below 2^-6; e4m3fnuz has 240 and steps of 2^-10 below 2^-7.
TEST(DiffByValue, FormatsMayDiffer) {
  const auto fn = FromFloat32("rule:rne,saturate", "e4m3fn");
  const auto fnuz = FromFloat32("rule:rne,saturate", "e4m3fnuz");
  const Difference difference = Diff(fn, fnuz, 0, DiffBy::kValue);
  ASSERT_FALSE(difference.intervals.empty());
  uint64_t large = 0;
  for (const DifferingInterval& interval : difference.intervals) {
    const float first = std::fabs(std::bit_cast<float>(static_cast<uint32_t>(interval.first)));
    const float last = std::fabs(std::bit_cast<float>(static_cast<uint32_t>(interval.last)));
    EXPECT_TRUE(last < 0x1p-6f || first >= 248) << first;
    if (first >= 248) large += interval.Count();
  }
  // From 248, a tie that goes to the even 256, up to infinity, which saturates too.
  EXPECT_EQ(large, 2 * uint64_t{0x7F80'0000 - std::bit_cast<uint32_t>(248.0f) + 1});
  // 2^-10 is a value of e4m3fnuz alone; e4m3fn rounds it to even, to 0.
  const uint32_t bits = std::bit_cast<uint32_t>(0x1p-10f);
  const auto at = std::find_if(difference.intervals.begin(),
                               difference.intervals.end(),
                               [&](const DifferingInterval& interval) {
                                 return interval.first <= bits && bits <= interval.last;
                               });
  ASSERT_NE(at, difference.intervals.end());
  EXPECT_EQ(at->code_a, 0x00u);
  EXPECT_EQ(at->code_b, 0x01u);
}

TEST(DiffByValue, WidthsMayDiffer) {
  const auto narrow = FromFloat32("rule:rne,saturate", "e2m1fn");
  const auto wide = FromFloat32("rule:rne,saturate", "e3m2fn");
  EXPECT_GT(Diff(narrow, wide, 0, DiffBy::kValue).intervals.size(), 0u);
  EXPECT_THAT(ErrorOf([&] { Diff(narrow, wide); }), HasSubstr("4 and 6 bits"));
  const auto fp32 = FromFloat32("rule:rne,saturate", "fp32");
  EXPECT_THAT(ErrorOf([&] { Diff(narrow, fp32, 0, DiffBy::kValue); }), HasSubstr("20 bits"));
}

TEST(DiffFloat64, ListsTheNansThatKeepTheirSign) {
  const ProfileConversion cuda("cuda-13", SourceType::kFloat64, ParseFormat("e4m3fn"));
  const ProfileConversion ocp("rule:rne,nonsaturate", SourceType::kFloat64, ParseFormat("e4m3fn"));
  EXPECT_EQ(Diff(cuda, ocp), Difference{});
  const ProfileConversion e5m2("cuda-13", SourceType::kFloat64, ParseFormat("e5m2"));
  const ProfileConversion rule("rule:rne,nonsaturate", SourceType::kFloat64, ParseFormat("e5m2"));
  // 0x7F where bit 50 of the NaN is set: half of the 2^52 - 1 payloads, 2^51, of each sign.
  const Difference difference = Diff(e5m2, rule);
  EXPECT_EQ(difference.differing, uint64_t{1} << 52);
  EXPECT_EQ(difference.differing_nan, difference.differing);
  ASSERT_EQ(difference.intervals.size(), 4u);
  EXPECT_EQ(difference.intervals[0],
            (DifferingInterval{0x7FF4'0000'0000'0000, 0x7FF7'FFFF'FFFF'FFFF, 0x7F, 0x7E}));
}

TEST(DiffFloat64, EqualsAnEvaluationOfItsOwn) {
  const ProfileConversion cuda("cuda-13", SourceType::kFloat64, ParseFormat("e4m3fn"));
  for (const char* const other : {"hip-host", "ml-dtypes", "rule:rtz,saturate"}) {
    const ProfileConversion b(other, SourceType::kFloat64, ParseFormat("e4m3fn"));
    const Difference difference = Diff(cuda, b);
    for (const uint64_t bits : reference::Float64Patterns("e4m3fn", 100'000)) {
      const auto at = std::upper_bound(
          difference.intervals.begin(),
          difference.intervals.end(),
          bits,
          [](uint64_t x, const DifferingInterval& interval) { return x < interval.first; });
      const bool listed = at != difference.intervals.begin() && bits <= std::prev(at)->last;
      ASSERT_EQ(listed, cuda.Encode(bits) != b.Encode(bits))
          << fmt::format("{}: 0x{:016X}", other, bits);
    }
  }
}

TEST(DiffErrors, NameWhatDoesNotFit) {
  const ProfileConversion e4m3 = FromFloat32("cuda-13", "e4m3fn");
  const ProfileConversion fp4 = FromFloat32("cuda-13", "e2m1fn");
  const ProfileConversion f64("cuda-13", SourceType::kFloat64, ParseFormat("e4m3fn"));
  const ProfileConversion wide = FromFloat32("rule:rne,saturate", "fp32");
  for (const auto diff : {&Diff, &DiffByBruteForce}) {
    EXPECT_NE(ErrorOf([&] { diff(e4m3, fp4, 0, DiffBy::kCode); }), "no error");
    const std::string sources = ErrorOf([&] { diff(e4m3, f64, 0, DiffBy::kCode); });
    EXPECT_THAT(sources, HasSubstr("float64"));
    EXPECT_NE(ErrorOf([&] { diff(wide, wide, 0, DiffBy::kCode); }), "no error");
  }
  EXPECT_NE(ErrorOf([&] { DiffByBruteForce(f64, f64); }), "no error");
}

}  // namespace
}  // namespace numsim
