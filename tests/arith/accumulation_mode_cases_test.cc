// Inner products under accumulation modes, worked by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "tests/arith/judged_modes.h"

namespace numsim {
namespace {

TEST(AccumulateExact, ProductsBeyondFloat32MayCancel) {
  // 2^127 2^127 - 2^127 2^127 + 2^-100 2^-60
  const float huge = 0x1p127f;
  const Unrounded sum = Accumulate({},
                                   {kBf16, std::vector<float>{huge, -huge, 0x1p-100f}},
                                   {kBf16, std::vector<float>{huge, huge, 0x1p-60f}});
  EXPECT_EQ(ValueOf(sum), 0x1p-160);
}

double Sum8(const AccumulationMode& mode,
            const std::vector<float>& a,
            const std::vector<float>& b) {
  return ValueOf(Accumulate(mode, {kE4M3fn, a}, {kE4M3fn, b}));
}

TEST(AccumulateAligned, WhatLiesBelowTheFractionIsLost) {
  // E = 4 from 16 * 1. Grid 2^(4-13) = 2^-9: 2^-9 stays, and 1.5 2^-9 becomes 2^-9.
  EXPECT_EQ(Sum8(Trunc(13, 32), {16, 0x1p-9f}, {1, 1}), 16 + 0x1p-9);
  EXPECT_EQ(Sum8(Trunc(13, 32), {16, 0x1p-6f}, {1, 0x1.8p-3f}), 16 + 0x1p-9);
  // With 32 * 1 the grid is 2^-8: 31 products of 2^-9 are lost, each by itself.
  std::vector<float> a(32, 0x1p-9f), b(32, 1);
  a[0] = 32;
  EXPECT_EQ(Sum8(Trunc(13, 32), a, b), 32);
  // With 14 fraction bits nothing is cut before the sum: 32 + 31 2^-9. Of its exponent 5 it keeps
  // 14 bits: 2^-9. So all stay.
  EXPECT_EQ(Sum8(Trunc(14, 32), a, b), 32 + 31 * 0x1p-9);
}

TEST(AccumulateAligned, NegativeProductsAreTruncatedTowardZero) {
  // Grid 2^-9 as above; -1.5 2^-9 becomes -2^-9, not -2 2^-9. The sum 16 - 2^-9 has exponent 3 and
  // may keep 2^-10.
  EXPECT_EQ(Sum8(Trunc(13, 32), {16, -0x1p-6f}, {1, 0x1.8p-3f}), 16 - 0x1p-9);
  EXPECT_EQ(Sum8(Trunc(13, 32), {-16, -0x1p-6f}, {1, 0x1.8p-3f}), -16 - 0x1p-9);
  // -2^-10 becomes 0.
  EXPECT_EQ(Sum8(Trunc(13, 32), {16, -0x1p-6f}, {1, 0x1p-4f}), 16);
}

TEST(AccumulateAligned, TheSumIsTruncatedTowardZeroToItsOwnExponent) {
  // 15 * 2 + (2 + 2^-8): 30 has the exponents 3 + 1, so E = 4 and the grid is 2^-9. The sum
  // 32 + 2^-9 + ... has exponent 5 and keeps 2^-8: of 32 + 2^-9 nothing.
  EXPECT_EQ(Sum8(Trunc(13, 32), {15, 2, 0x1p-9f}, {2, 1, 1}), 32);
  EXPECT_EQ(Sum8(Trunc(13, 32), {-15, -2, -0x1p-9f}, {2, 1, 1}), -32);
  EXPECT_EQ(Sum8(Trunc(13, 32), {15, 2, 0x1p-8f}, {2, 1, 1}), 32 + 0x1p-8);
}

TEST(AccumulateAligned, AProductKeepsTheExponentsOfItsOperands) {
  // 1.875 * 1.875 = 3.515625 has exponent 0, not 1: the grid is 2^-13, and 2^-9 2^-4 stays.
  const std::vector<float> a = {1.875f, -1.875f, 0x1p-9f}, b = {1.875f, 1.875f, 0x1p-4f};
  EXPECT_EQ(Sum8(Trunc(13, 32), a, b), 0x1p-13);
  EXPECT_EQ(Sum8(Trunc(12, 32), a, b), 0);
}

TEST(AccumulateAligned, ASubnormalHasTheSmallestExponentOfItsFormat) {
  // 2^-9 * 16 has exponent -6 + 4 = -2. With F = 3 the grid is 2^-5, where 2^-9 2^4 = 2^-5 stays
  // and 2^-6 * 1 = 2^-6 does not.
  EXPECT_EQ(Sum8(Trunc(3, 32), {0x1p-9f, 0x1p-6f}, {16, 1}), 0x1p-5);
  // 2^-9 2^3 has exponent -3, grid 2^-5 with F = 2: below it, lost.
  EXPECT_EQ(Sum8(Trunc(2, 32), {0x1p-9f}, {8}), 0);
  // In bf16 2^-9 is normal: exponent -9 + 3, grid 2^-8.
  EXPECT_EQ(Sum(Trunc(2, 32), {0x1p-9f}, {8}), 0x1p-6);
  // Codes of int8 below 64 are subnormal, exponent 6: 1 * 1 is 2^-12 of 2^12, so F = 12 keeps it.
  const std::vector<float> one = {1};
  EXPECT_EQ(ValueOf(Accumulate(Trunc(12, 32), {kInt8, one}, {kInt8, one})), 1);
  EXPECT_EQ(ValueOf(Accumulate(Trunc(11, 32), {kInt8, one}, {kInt8, one})), 0);
}

TEST(AccumulateAligned, ZerosDoNotRaiseTheExponent) {
  // 448 * 0 does not count: E = -6, grid 2^-19.
  EXPECT_EQ(Sum8(Trunc(13, 32), {448, 0x1p-6f, 0x1p-9f}, {0, 1, 0x1p-9f}), 0x1p-6 + 0x1p-18);
}

TEST(AccumulateAligned, TheAccumulatorRaisesTheExponent) {
  // Chunks of one. 16 first: then 1.5 2^-9 is cut to 2^-9 in the next chunk, E = 4 from acc.
  EXPECT_EQ(Sum8(Trunc(13, 1), {16, 0x1p-6f}, {1, 0x1.8p-3f}), 16 + 0x1p-9);
  // The other way round acc = 1.5 2^-9 is cut by the product 16.
  EXPECT_EQ(Sum8(Trunc(13, 1), {0x1p-6f, 16}, {0x1.8p-3f, 1}), 16 + 0x1p-9);
  // acc = 1 and -2^-9 2^-9 = -2^-18: lost, nothing is borrowed for it.
  EXPECT_EQ(Sum8(Trunc(13, 1), {1, -0x1p-9f}, {1, 0x1p-9f}), 1);
}

TEST(AccumulateAligned, PromotionStartsFromZeroAndAddsInFloat32) {
  // Chunks of one, F = 3: 16 + 1 loses 1 (grid 2); promoted after every product nothing is lost.
  const std::vector<float> a = {16, 1, 1, 1}, b = {1, 1, 1, 1};
  EXPECT_EQ(Sum8(Trunc(3, 1), a, b), 16);
  EXPECT_EQ(Sum8(Trunc(3, 1, 1), a, b), 19);
  EXPECT_EQ(Sum8(Trunc(3, 1, 2), a, b), 18);
}

TEST(AccumulateAligned, BelowTheNormalRangeMultiplesOfTheSmallestNumberRemain) {
  // 2^-100 2^-40 (1 + 2^-7) = 2^-140 + 2^-147; 2^-75 2^-75 = 2^-150 is lost from a sum alone.
  EXPECT_EQ(Sum(Trunc(25, 16), {0x1.02p-100f}, {0x1p-40f}), 0x1.02p-140);
  EXPECT_EQ(Sum(Trunc(25, 16), {0x1p-75f}, {0x1p-75f}), 0);
  // Two of them make 2^-149.
  EXPECT_EQ(Sum(Trunc(25, 16), {0x1p-75f, 0x1p-75f}, {0x1p-75f, 0x1p-75f}), 0x1p-149);
}

TEST(AccumulateAligned, ANegativeSumThatIsTruncatedToZeroIsPositive) {
  EXPECT_TRUE(Same(Sum(Trunc(25, 16), {-0x1p-75f}, {0x1p-75f}), 0));
  EXPECT_TRUE(Same(Sum(Trunc(2, 16), {-0x1p-70f}, {0x1p-70f}), 0));
}

TEST(AccumulateAligned, TheGridIsNeverFinerThanThatOfTheExponentMinus133) {
  // 2^-140 alone: the grid is 2^(-133-F).
  EXPECT_EQ(Sum(Trunc(7, 16), {0x1p-70f}, {0x1p-70f}), 0x1p-140);
  EXPECT_EQ(Sum(Trunc(6, 16), {0x1p-70f}, {0x1p-70f}), 0);
  // Sixteen of 2^-159 with F = 25, grid 2^-158: nothing of them is left.
  const std::vector<float> tiny(16, 0x1p-80f);
  EXPECT_EQ(Sum(Trunc(25, 16), tiny, std::vector<float>(16, 0x1p-79f)), 0);
  EXPECT_EQ(
      Sum(Trunc(25, 512), std::vector<float>(512, 0x1p-79f), std::vector<float>(512, 0x1p-79f)),
      0x1p-149);
}

TEST(AccumulateAligned, ASubnormalAccumulatorHasTheExponentMinus126) {
  // acc = 2^-140, E = -126, grid 2^-139 with F = 13: the next chunk loses it.
  EXPECT_EQ(Sum(Trunc(13, 1), {0x1p-70f, 0x1p-75f}, {0x1p-70f, 0x1p-70f}), 0);
  EXPECT_EQ(Sum(Trunc(14, 1), {0x1p-70f, 0x1p-75f}, {0x1p-70f, 0x1p-70f}), 0x1p-140);
}

TEST(AccumulateAligned, OppositesBeyondTheRangeAreZero) {
  // E = 160: the unit of the sum is 2^135 and more, the sum zero.
  for (const int fraction_bits : {1, 13, 25}) {
    const double sum = Sum(Trunc(fraction_bits, 16), {0x1p120f, -0x1p120f}, {0x1p40f, 0x1p40f});
    EXPECT_TRUE(Same(sum, 0)) << fraction_bits;
  }
}

TEST(AccumulateAligned, BytePairsGoFirst) {
  // F = 3, chunks of 16 of 32: k = 0, 1, 4, 5 ... are one chunk. 16 at k = 0 and 1 at k = 2: the
  // ones of the second chunk are added to acc = 16 (grid 2) and lost. In the first chunk as well.
  AccumulationMode mode = Trunc(3, 16);
  mode.order = ProductOrder::kBytePairs;
  std::vector<float> a(32, 0), b(32, 1);
  a[2] = 1;   // second chunk
  a[3] = 1;   // second chunk
  a[16] = 1;  // first chunk (16 mod 4 = 0)
  a[17] = 1;
  EXPECT_EQ(Sum8(mode, a, b), 4);
  a[30] = 16;  // second chunk: acc = 2 stays on the grid of 2, the ones of that chunk are lost
  EXPECT_EQ(Sum8(mode, a, b), 18);
  a[30] = 0;
  a[29] = 16;  // first chunk: its ones are lost, and those of the second, each below the grid
  EXPECT_EQ(Sum8(mode, a, b), 16);
}

TEST(AccumulateFormat, FusedRoundsOnceAndUnfusedTwice) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kFormat;
  mode.format = kBf16;
  const float x = 1 + 0x1p-7f;
  // bf16, 8 bits. (1 + 2^-7)^2 = 1 + 2^-6 + 2^-14. acc = 2^-8 + ...: fused 1 + 2^-6 + 2^-8 + 2^-14
  // lies above the tie between 1 + 2^-6 and 1 + 2^-6 + 2^-7; unfused the product is 1 + 2^-6 and
  // the sum a tie that goes to the even 1 + 2^-6.
  EXPECT_EQ(Sum(mode, {0x1p-8f, x}, {1, x}), 1 + 0x1p-6 + 0x1p-7);
  mode.kind = AccumulationKind::kFormatUnfused;
  EXPECT_EQ(Sum(mode, {0x1p-8f, x}, {1, x}), 1 + 0x1p-6);
}

TEST(AccumulateFloat64, RoundsEverySum) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kFloat64;
  // 2^-53 is half of the spacing at 1: a tie, lost twice; exact keeps both.
  const std::vector<float> a = {1, 0x1p-53f, 0x1p-53f}, b = {1, 1, 1};
  EXPECT_EQ(Sum(mode, a, b), 1);
  EXPECT_EQ(Sum({}, a, b), 1 + 0x1p-52);
}

TEST(AccumulateChunked, PartialSumsStartFromZero) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kChunked;
  mode.chunk = 2;
  // 2^24 + 1 is a tie and stays 2^24 in one chunk; 1 + 1 in the next arrive as 2.
  EXPECT_EQ(Sum(mode, {0x1p24f, 1, 1, 1}, {1, 1, 1, 1}), 0x1p24 + 2);
  mode.chunk = 4;
  EXPECT_EQ(Sum(mode, {0x1p24f, 1, 1, 1}, {1, 1, 1, 1}), 0x1p24);
}

TEST(AccumulateAlignedDown, AnAccumulatorOfZeroHasTheExponentMinus126) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kAlignedDown;
  mode.chunk = 4;
  mode.fraction_bits = 24;
  // 2^-150 + 2^-158 + ... is rounded down to a multiple of 2^(-126-31): a tie, which goes to 0.
  const std::vector<float> a(4, 0x1p-75f);
  EXPECT_EQ(Sum(mode, a, {0x1p-75f, 0x1p-83f, 0x1p-90f, 0x1p-90f}), 0);
  EXPECT_EQ(Sum(mode, a, {0x1p-75f, 0x1p-82f, 0x1p-90f, 0x1p-90f}), 0x1p-149);
}

TEST(AccumulateAlignedDown, NegativeRestsGoDown) {
  AccumulationMode mode;
  mode.kind = AccumulationKind::kAlignedDown;
  mode.chunk = 8;
  mode.fraction_bits = 24;
  // Second chunk: acc = -2^-30 beside the product 1, E = 0: acc goes down to -2^-24, and
  // 1 - 2^-24 is a float32 number.
  std::vector<float> a(9, 0), b(9, 1);
  a[0] = -0x1p-30f;
  a[8] = 1;
  EXPECT_EQ(Sum(mode, a, b), 1 - 0x1p-24);
  // The fp8 units leave such an accumulator out: its exponent is below -25.
  mode.order = ProductOrder::kEvenOdd;
  EXPECT_EQ(Sum(mode, a, b), 1);
  a[0] = -0x1p-25f;
  EXPECT_EQ(Sum(mode, a, b), 1 - 0x1p-24);
}

}  // namespace
}  // namespace numsim
