// Numbers of any length against their bits in hexadecimal texts, and against the C library's
// conversion of decimal texts. tests/apps/exact_numbers.py compares whole roundings with fractions.
#include "numsim/rounding/exact_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "numsim/base/error.h"
#include "numsim/rounding/internal/natural.h"

namespace numsim {
namespace {

ExactNumber Parse(const std::string& text) { return ParseExactSum(text, "VALUE"); }

TEST(ExactNumber, ShortTextsAreExact) {
  const Unrounded x = Parse("0x1.8p-1").Rounded();
  EXPECT_EQ(std::ldexp(static_cast<double>(x.significand), x.exponent), 0.75);
  EXPECT_TRUE(Parse("0.75").IsFloat32());
  EXPECT_TRUE(Parse("1e22").IsFloat64());
  EXPECT_FALSE(Parse("1e23").IsFloat64());
  EXPECT_FALSE(Parse("0.1").IsFloat64());
  EXPECT_TRUE(Parse("16777216").IsFloat32());
  EXPECT_FALSE(Parse("16777217").IsFloat32());
}

TEST(ExactNumber, BitsThatAreCutSetTheLowestOne) {
  const Unrounded tie = Parse("1." + std::string(500, '0') + "1").Rounded();
  EXPECT_EQ(tie.significand & 1, 1u);
  EXPECT_GE(tie.significand, uint64_t{1} << 61);
  const Unrounded below = Parse("1-1e-500").Rounded();
  EXPECT_EQ(std::ldexp(static_cast<double>(below.significand), below.exponent), 1);  // nearest
  EXPECT_EQ(below.significand & 1, 1u);
}

TEST(ExactNumber, NearestFloat64EqualsTheCLibrary) {
  std::mt19937_64 draw(47);
  for (int i = 0; i < 2000; ++i) {
    std::string text = draw() % 2 != 0 ? "-" : "";
    const size_t digits = 1 + draw() % 40;
    for (size_t d = 0; d < digits; ++d) text += static_cast<char>('0' + draw() % 10);
    text += "e" + std::to_string(static_cast<int>(draw() % 700) - 360);
    ASSERT_EQ(Parse(text).ToFloat64(), std::strtod(text.c_str(), nullptr)) << text;
    ASSERT_EQ(Parse(text).ToFloat32(), std::strtof(text.c_str(), nullptr)) << text;
  }
  // The middle between 0 and the smallest float64, and a digit beyond it.
  const std::string half = "2.4703282292062327208299439614022117155205205211741108205860309e-324";
  EXPECT_EQ(Parse(half).ToFloat64(), 0);
  EXPECT_EQ(Parse("2.4703282292062328e-324").ToFloat64(),
            std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Parse("1.7976931348623159e308").ToFloat64(), std::numeric_limits<double>::infinity());
}

TEST(ExactNumber, SumsAreExact) {
  EXPECT_EQ(Parse("0.1+0.2").ToFloat64(), 0.3);  // 0.1 + 0.2 in float64 is another number
  EXPECT_TRUE(Parse("1e100000-1e100000").IsZero());
  EXPECT_FALSE(Parse("1e100000-1e100000").negative());
  EXPECT_TRUE((Parse("1+1e-90000") - Parse("1e-90000") - Parse("1")).IsZero());
  EXPECT_TRUE(Parse("-0-0").negative());
  EXPECT_FALSE(Parse("-0+0").negative());
  EXPECT_EQ(Parse("inf-inf").kind(), NumberKind::kNan);
  EXPECT_EQ(Parse("1-inf").kind(), NumberKind::kInfinity);
  EXPECT_TRUE(Parse("1-inf").negative());
  // Too far apart to expand: only the side counts.
  EXPECT_FALSE((Parse("1+1e-4000000") - Parse("1")).negative());
  EXPECT_TRUE((Parse("1-1e-4000000") - Parse("1")).negative());
}

TEST(ExactNumber, ExtremeExponentsStayExtreme) {
  EXPECT_EQ(Parse("1e999999999999999999999").ToFloat64(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(Parse("-1e-999999999999999999999").ToFloat64(), 0);
  EXPECT_NE(Parse("1e-999999999999999999999").Rounded().significand, 0u);
  EXPECT_TRUE(Parse("0e999999999999999999999").IsZero());
}

TEST(ExactNumber, OtherTextsAreErrors) {
  for (const char* const text :
       {"",   "e5", "1e",   "1e+", "0x",   "0x.", "1..", "1.2.3", "--1", "1+",  "1++",  "1 +2",
        " 1", "1 ", "nane", "in",  "0x1p", "1f",  ".",   "+",     "-",   "1,5", "1+2+3"}) {
    EXPECT_THROW(ParseExactSum(text, "VALUE"), Error) << text;
  }
  EXPECT_THROW(ParseExactNumber("1+2", "VALUE"), Error);
  EXPECT_THROW(ParseExactNumber(std::string(100001, '1'), "VALUE"), Error);
  EXPECT_FALSE(ParseExactNumber(std::string(100000, '1'), "VALUE").IsZero());
}

TEST(Natural, ArithmeticOfManyLimbsAgreesWithItself) {
  Natural five = PowerOfFive(200), product(1);
  for (int i = 0; i < 200; ++i) product.MultiplyAdd(5, 0);
  EXPECT_EQ(Compare(five, product), 0);
  product.Multiply(product);
  EXPECT_EQ(Compare(product, PowerOfFive(400)), 0);
  Natural shifted(3);
  shifted.ShiftLeft(100);
  EXPECT_EQ(shifted.BitLength(), 102);
  bool rest = true;
  EXPECT_EQ(shifted.HighBits(2, &rest), 3u);
  EXPECT_FALSE(rest);
  shifted.Add(Natural(1));
  EXPECT_EQ(shifted.HighBits(64, &rest), uint64_t{3} << 62);
  EXPECT_TRUE(rest);
  shifted.Subtract(Natural(2));
  EXPECT_EQ(shifted.BitLength(), 102);
  EXPECT_EQ(shifted.HighBits(64, &rest), (uint64_t{3} << 62) - 1);
}

}  // namespace
}  // namespace numsim
