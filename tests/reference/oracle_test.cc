// The oracle itself, against hand-worked numbers, a plain scan of all values and the processor.
#include "tests/reference/oracle.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/inputs.h"
#include "tests/reference/intervals.h"

namespace oracle {
namespace {

using Rest = ScaledFraction::Rest;

TEST(Grid, ListsTheValuesOfE2m1) {
  const Grid grid(FindFormat("e2m1fn"));
  const double expected[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 8};  // 8 is beyond the largest
  ASSERT_EQ(grid.end(), 8);
  for (int64_t p = 0; p <= 8; ++p) EXPECT_EQ(grid.Value(p), expected[p]);
}

TEST(Grid, LeavesTheSubnormalGapOfBitsandbytes) {
  const Grid grid(FindFormat("bnb-e4m3"));
  EXPECT_EQ(grid.Value(7), 7 * 0x1p-11);
  EXPECT_EQ(grid.Value(8), 0x1p-6);
  EXPECT_EQ(grid.Value(9), 1.125 * 0x1p-6);
  EXPECT_EQ(grid.Value(0x7F), 480);
}

TEST(Grid, BeginsE8m0WithoutZero) {
  const Grid grid(FindFormat("e8m0fnu"));
  EXPECT_EQ(grid.Value(0), 0x1p-127);
  EXPECT_EQ(grid.Value(0xFE), 0x1p127);
  const Place below = grid.Locate(0x1p-128);
  EXPECT_EQ(below.position, -1);
  EXPECT_EQ(below.gap, 0x1p-127);
}

TEST(Grid, ValuesAscendInEveryFormat) {
  for (const Format& format : AllFormats()) {
    const Grid grid(format);
    const int64_t step = 1 + grid.end() / 100000;
    for (int64_t p = step; p <= grid.end(); p += step) {
      ASSERT_LT(grid.Value(p - 1), grid.Value(p)) << format.name << " position " << p;
    }
  }
}

// The largest value not above x, found by looking at all of them.
int64_t ScanFor(const Grid& grid, double x) {
  int64_t found = grid.format().has_zero ? 0 : -1;
  for (int64_t p = 0; p <= grid.end(true); ++p) {
    if (grid.Value(p) <= x) found = p;
  }
  return found;
}

TEST(Grid, LocateAgreesWithAPlainScan) {
  for (const Format& format : AllFormats()) {
    if (format.bits > 8) continue;
    const Grid grid(format);
    for (double landmark : Landmarks(grid, 3)) {
      for (uint64_t bits : NearF64(landmark)) {
        const Real x = FromFloat64(bits);
        if (x.kind != Real::Kind::kFinite) continue;
        const Place place = grid.Locate(x.magnitude);
        ASSERT_EQ(place.position, ScanFor(grid, x.magnitude)) << format.name << " " << x.magnitude;
        if (place.position == grid.end(true)) continue;
        ASSERT_EQ(grid.Value(place.position) + place.distance, x.magnitude);
        ASSERT_EQ(grid.Value(place.position) + place.gap, grid.Value(place.position + 1));
      }
    }
  }
}

TEST(ScaleFraction, IsExact) {
  const auto expect = [](double distance, double gap, int bits, uint64_t floor, Rest rest) {
    const ScaledFraction got = ScaleFraction(distance, gap, bits);
    EXPECT_EQ(got.floor, floor);
    EXPECT_EQ(got.rest, rest);
  };
  expect(0, 1, 8, 0, Rest::kZero);
  expect(0.75, 1, 2, 3, Rest::kZero);
  expect(0.75, 1, 1, 1, Rest::kHalf);
  expect(0.625, 1, 1, 1, Rest::kBelowHalf);
  expect(0.875, 1, 1, 1, Rest::kAboveHalf);
  expect(10, 25, 8, 102, Rest::kBelowHalf);  // 102.4
  expect(3, 25, 3, 0, Rest::kAboveHalf);     // 0.96
  expect(1 - 0x1p-53, 1, 33, (uint64_t{1} << 33) - 1, Rest::kAboveHalf);
  expect(0x1p-1074, 0x1p-9, 32, 0, Rest::kBelowHalf);
  expect(0x1p-9 - 0x1p-60, 0x1p-9, 32, 0xFFFFFFFF, Rest::kAboveHalf);
}

// The definitions of numsim/rounding/rounding.h, written once more as they stand there.
bool AwayByDefinition(Variant variant, int numerator, int denominator, int bits, int64_t r) {
  const int64_t n = int64_t{1} << bits;
  const auto floor = [&](int64_t scale) { return numerator * scale / denominator; };
  if (variant == Variant::kA) return floor(n) + r >= n;
  if (variant == Variant::kB) return floor(2 * n) + 2 * r + 1 >= 2 * n;
  const double exact = static_cast<double>(numerator) * n / denominator;
  return static_cast<int64_t>(std::nearbyint(exact)) + r >= n;
}

TEST(RoundsAway, FollowsTheDefinitionForEveryWord) {
  for (int denominator : {1, 25, 64}) {
    for (int numerator = 0; numerator < denominator; ++numerator) {
      const Place place = {0, static_cast<double>(numerator), static_cast<double>(denominator)};
      for (Variant variant : {Variant::kA, Variant::kB, Variant::kC}) {
        for (int bits = 1; bits <= 8; ++bits) {
          const Setting setting = {Mode::kStochastic, Policy::kNonsaturate, variant, bits};
          for (int64_t r = 0; r < int64_t{1} << bits; ++r) {
            ASSERT_EQ(RoundsAway(place, false, setting, static_cast<uint32_t>(r)),
                      AwayByDefinition(variant, numerator, denominator, bits, r))
                << numerator << "/" << denominator << " " << Describe(setting) << " " << r;
          }
        }
      }
    }
  }
}

// Rounds x to float32 as the processor does it in the given mode.
uint32_t ByProcessor(double x, int mode) {
  const int before = std::fegetround();
  std::fesetround(mode);
  volatile double input = x;
  volatile float output = static_cast<float>(input);
  std::fesetround(before);
  return std::bit_cast<uint32_t>(static_cast<float>(output));
}

TEST(Encode, Fp32EqualsTheProcessorInFourModes) {
  const Grid grid(FindFormat("fp32"));
  const std::pair<Mode, int> modes[] = {{Mode::kNearestEven, FE_TONEAREST},
                                        {Mode::kTowardZero, FE_TOWARDZERO},
                                        {Mode::kUp, FE_UPWARD},
                                        {Mode::kDown, FE_DOWNWARD}};
  TestRandom random(1);
  for (int i = 0; i < 100000; ++i) {
    const float near = std::bit_cast<float>(random.Next32());
    const uint64_t noise = random.Below(4) == 0 ? 0 : random.Next() & 0x3FFFFFFF;
    const uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(near)) ^ noise;
    const Real x = FromFloat64(bits);
    if (x.kind == Real::Kind::kNan) continue;
    for (const auto& [mode, processor_mode] : modes) {
      ASSERT_EQ(Encode(grid, x, {.mode = mode}),
                ByProcessor(std::bit_cast<double>(bits), processor_mode))
          << std::hex << bits << " " << Describe({.mode = mode});
    }
  }
}

TEST(Encode, ListedAndScaledSearchAgree) {
  // tf32 is listed; the same format with 13 more mantissa bits is fp32, which is searched by
  // scaling. Rounding toward zero to fp32 and then to tf32 is rounding toward zero once.
  const Grid listed(FindFormat("tf32"));
  const Grid scaled(FindFormat("fp32"));
  TestRandom random(2);
  for (int i = 0; i < 100000; ++i) {
    const Real x = FromFloat64(
        random.Below(2) ? random.Next() >> 1 : uint64_t{0x3800000000000000} + (random.Next() >> 5));
    if (x.kind == Real::Kind::kNan) continue;
    const Setting toward_zero = {.mode = Mode::kTowardZero};
    ASSERT_EQ(Encode(listed, x, toward_zero), Encode(scaled, x, toward_zero) >> 13);
  }
}

TEST(Encode, BrainFloatIsTheTopHalfOfAFloatRoundedToEven) {
  const Grid grid(FindFormat("bf16"));
  TestRandom random(3);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t bits = random.Next32();
    if ((bits & 0x7F800000) == 0x7F800000) continue;
    const uint32_t expected = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    ASSERT_EQ(Encode(grid, FromFloat32(bits), {}), expected) << std::hex << bits;
  }
}

TEST(Float32Intervals, CoverEveryPatternOnceAndAgreeWithEncode) {
  for (const char* name : {"e4m3fn", "fp16", "e8m0fnu"}) {
    const Grid grid(FindFormat(name));
    const Setting setting = {Mode::kStochastic, Policy::kNonsaturate, Variant::kA, 32};
    const std::vector<Interval> runs = Float32Intervals(grid, setting, 0x9E3779B9, true);
    uint64_t next = 0x80000000;
    for (const Interval& run : runs) {
      ASSERT_EQ(run.first, next);
      next = uint64_t{run.last} + 1;
      for (uint32_t bits : {run.first, run.last, run.first + (run.last - run.first) / 3}) {
        ASSERT_EQ(Encode(grid, FromFloat32(bits), setting, 0x9E3779B9), run.code) << name;
      }
    }
    EXPECT_EQ(next, uint64_t{1} << 32);
  }
}

TEST(Formats, NamesAreUnique) {
  std::set<std::string> names;
  for (const Format& format : AllFormats()) names.insert(format.name);
  EXPECT_EQ(names.size(), AllFormats().size());
}

}  // namespace
}  // namespace oracle
