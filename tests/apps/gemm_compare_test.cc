// `numsim gemm --compare`: how a result from elsewhere differs from the product.
#include <bit>
#include <cmath>
#include <limits>

#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Floats = std::vector<float>;

// The first line says what was computed; the others are the comparison.
std::string Comparison(const std::string& out) { return out.substr(out.find('\n') + 1); }

class GemmCompare : public BadInputTest {
 protected:
  // The values of a 2 x 1 matrix times (1, 2, 4): the product is 2 x 3.
  void PutFactors(float first, float second) const {
    PutFloats("a.npy", {first, second}, {2, 1});
    PutFloats("b.npy", {1, 2, 4}, {3, 1});
  }
  void PutFloats(const std::string& name, const Floats& values, std::vector<size_t> shape) const {
    PutNpy(name, ElementType::kF32, values, std::move(shape));
  }
  Outcome Compare(const Floats& mine, const std::string& options = "") const {
    PutFloats("mine.npy", mine, {2, 3});
    return Numsim("gemm a.npy b.npy --format fp32 --compare mine.npy " + options);
  }
};

TEST_F(GemmCompare, EqualResultsGiveExitCodeZeroAndNoFile) {
  PutFactors(1, 3);
  const Outcome outcome = Compare({1, 2, 4, 3, 6, 12});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Comparison(outcome.out), "equal             6 of 6 elements (100 %), 0 differ\n");
  EXPECT_EQ(Names(), (std::vector<std::string>{"a.npy", "b.npy", "mine.npy"}));
}

// 6 and its second neighbour above differ by 2^-20, relative 2^-20 / 6; 2 and 1 by 2^23 ulps.
TEST_F(GemmCompare, NamesTheFirstAndTheWorstDifference) {
  PutFactors(1, 3);
  const float near = std::nextafterf(std::nextafterf(6, 7), 7);
  Outcome outcome = Compare({1, 2, 4, 3, near, 12});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(
      Comparison(outcome.out),
      "equal             5 of 6 elements (83.33 %), 1 differ\n"
      "first difference  (1, 1): expected 6 (0x40C00000), got 6.000001 (0x40C00002)\n"
      "largest           (1, 1): expected 6 (0x40C00000), got 6.000001 (0x40C00002)\n"
      "                  9.54e-07, that is 1.61e-07 of the root mean square of the expected "
      "elements\n"
      "in ulps           at most 2 float32 ulps, at (1, 1)\n"
      "relative norm     6.58e-08 (||got - expected|| / ||expected||), gain 1\n"
      "worst rows        1 (6.94e-08), 0 (0); the median is 0\n"
      "worst columns     1 (1.51e-07), 0 (0), 2 (0); the median is 0\n"
      "looks like        rounding, such as sums in another order or width: differences are at "
      "most 1.59e-07 (2^-22.6) of the sum of the |products|\n");
  outcome = Compare({1, 2, 4, 3, near, 24});
  EXPECT_THAT(outcome.out, HasSubstr("first difference  (1, 1)"));
  EXPECT_THAT(outcome.out, HasSubstr("largest           (1, 2): expected 12 (0x41400000), got 24"));
  EXPECT_THAT(outcome.out, HasSubstr("at most 8388608 float32 ulps, at (1, 2)"));
}

// Around zero a small difference is many ulps.
TEST_F(GemmCompare, UlpsAndTheLargestDifferenceHaveTheirOwnPlaces) {
  PutFactors(0, 1);
  const Outcome outcome = Compare({0, 0x1p-10f, 0, 1, 2.5f, 4});
  EXPECT_THAT(outcome.out, HasSubstr("largest           (1, 1)"));
  EXPECT_THAT(outcome.out, HasSubstr("at most 981467136 float32 ulps, at (0, 1)"));
}

// Elements of opposite signs have no distance in ulps; they are counted.
TEST_F(GemmCompare, OppositeSignsAreCounted) {
  PutFactors(1, 3);
  const Outcome outcome = Compare({1, -2, 4, -3, std::nextafterf(6, 7), 12});
  EXPECT_THAT(outcome.out,
              HasSubstr("at most 1 float32 ulps, at (1, 1), among elements of one sign"));
  EXPECT_THAT(outcome.out, HasSubstr("other sign        2 elements"));
  EXPECT_THAT(outcome.out, HasSubstr("largest           (1, 0)"));
}

// Scales in float32, as devices have them: the results are equal under that epilogue, and without
// it a line names it.
TEST_F(GemmCompare, EpiloguesOfDevicesAreOptions) {
  const float a = 0x1.6a09e6p0f, b = 0x1.c71c72p-3f;
  PutFactors(1.1f, 3.3f);
  PutFloats("sa.npy", {a, a * 3}, {2});
  PutFloats("sb.npy", {b, b * 5, b * 7}, {3});
  Floats mine;
  for (const float row : {1.1f * a, 3.3f * (a * 3)}) mine.push_back(row);
  const auto product = [&](int i, int j, bool right_first) {
    const volatile float sum = (i == 0 ? 1.1f : 3.3f) * (j == 0 ? 1.0f : j == 1 ? 2.0f : 4.0f);
    const volatile float left = i == 0 ? a : a * 3;
    const volatile float right = j == 0 ? b : j == 1 ? b * 5 : b * 7;
    const volatile float first = sum * (right_first ? right : left);
    return first * (right_first ? left : right);
  };
  mine.clear();
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) mine.push_back(product(i, j, true));
  }
  const std::string scales = "--scale-a sa.npy --scale-b sb.npy ";
  const Outcome right = Compare(mine, scales + "--epilogue float32:b,a");
  EXPECT_EQ(right.exit_code, 0) << right.out;
  EXPECT_THAT(right.out, HasSubstr("epilogue          float32:b,a: fl32(fl32(S * sb) * sa)"));
  EXPECT_EQ(Compare(mine, scales + "--epilogue cublaslt").exit_code, 0);
  const Outcome plain = Compare(mine, scales);
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.out, HasSubstr("better            --epilogue float32:b,a: 6 of 6 elements"));
}

TEST_F(GemmCompare, ResultsCanHaveAnotherFormat) {
  PutFactors(1.1f, 3.3f);
  const Floats rounded = {1.1015625f, 2.203125f, 4.40625f, 3.296875f, 6.59375f, 13.1875f};
  EXPECT_EQ(Compare(rounded, "--out-format bf16").exit_code, 0);
  const Outcome plain = Compare(rounded);
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.out, HasSubstr("--out-format bf16: 6 of 6 elements are equal"));
  PutNpy("codes.npy",
         ElementType::kU16,
         std::vector<uint16_t>{0x3F8D, 0x400D, 0x408D, 0x4053, 0x40D3, 0x4153},
         {2, 3});
  EXPECT_EQ(
      Numsim("gemm a.npy b.npy --format fp32 --compare codes.npy --out-format bf16").exit_code, 0);
}

TEST_F(GemmCompare, SignsOfZeroDifferByNoUlp) {
  PutFactors(0, 1);
  const Outcome outcome = Compare({0, 0, -0.0f, 1, 2, 4});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("first difference  (0, 2): expected 0 (0x00000000), got -0 (0x80000000)"));
  EXPECT_THAT(outcome.out, HasSubstr("at most 0 float32 ulps, at (0, 2)"));
}

TEST_F(GemmCompare, NansAreEqualUnlessTheirBitsAreAskedFor) {
  PutFactors(NAN, 1);
  const auto nan = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  const Floats mine = {nan(0x7FC00000), nan(0xFFFFFFFF), nan(0x7F800001), 1, 2, 4};
  EXPECT_EQ(Compare(mine).exit_code, 0);
  EXPECT_EQ(Compare(mine, "--nan any").exit_code, 0);
  const Outcome exact = Compare(mine, "--nan exact");  // fp32 gives 0x7FC00000
  EXPECT_EQ(exact.exit_code, 1);
  EXPECT_THAT(exact.out, HasSubstr("4 of 6 elements"));
  EXPECT_THAT(exact.out, HasSubstr("not comparable    2 differing elements"));
  EXPECT_THAT(exact.out, Not(HasSubstr("ulps")));
}

TEST_F(GemmCompare, NumbersAndNansAreNotComparable) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  PutFactors(NAN, 1);
  const Outcome outcome = Compare({NAN, 7, NAN, kInfinity, 2, NAN});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("first difference  (0, 1): expected nan"));
  EXPECT_THAT(outcome.out, HasSubstr("not comparable    3 differing elements"));
}

TEST_F(GemmCompare, TakesTheBitsOfFloat32AsUint32) {
  PutFactors(1, 3);
  std::vector<uint32_t> bits;
  for (const float x : {1.0f, 2.0f, 4.0f, 3.0f, 6.0f, 12.0f}) {
    bits.push_back(std::bit_cast<uint32_t>(x));
  }
  PutNpy("mine.npy", ElementType::kU32, bits, {2, 3});
  EXPECT_EQ(Numsim("gemm a.npy b.npy --format fp32 --compare mine.npy").exit_code, 0);
  bits[4] ^= 1;
  PutNpy("mine.npy", ElementType::kU32, bits, {2, 3});
  const Outcome outcome = Numsim("gemm a.npy b.npy --format fp32 --compare mine.npy");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("at most 1 float32 ulps, at (1, 1)"));
}

TEST_F(GemmCompare, AlsoWritesTheResultIfAFileIsNamed) {
  PutFactors(1, 3);
  PutFloats("mine.npy", {1, 2, 4, 3, 6, 13}, {2, 3});
  EXPECT_EQ(Numsim("gemm a.npy b.npy out.npy --format fp32 --compare mine.npy").exit_code, 1);
  EXPECT_EQ(GetNpy("out.npy").Data<float>()[5], 12);
}

TEST_F(GemmCompare, EmptyResultsAreEqual) {
  PutFloats("a.npy", {}, {0, 4});
  PutFloats("b.npy", {1, 2, 3, 4}, {1, 4});
  PutFloats("mine.npy", {}, {0, 1});
  const Outcome outcome = Numsim("gemm a.npy b.npy --format fp32 --compare mine.npy");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("0 of 0 elements (100 %), 0 differ"));
}

TEST_F(GemmCompare, BadInput) {
  PutFactors(1, 3);
  PutFloats("column.npy", {1, 2, 3, 4, 5, 6}, {3, 2});
  PutNpy("wide.npy", ElementType::kF64, std::vector<double>(6, 0.1), {2, 3});
  PutNpy("codes.npy", ElementType::kU16, std::vector<uint16_t>(6, 1), {2, 3});
  const auto gemm = [](const std::string& options) {
    return Words("gemm a.npy b.npy --format fp32 " + options);
  };
  Expect(std::vector<BadCase>{
      {gemm(""), {"OUT", "--compare"}},
      {gemm("--compare missing.npy"), {"missing.npy"}},
      {gemm("--compare column.npy"), {"column.npy", "(3, 2)", "(2, 3)"}},
      {gemm("--compare wide.npy"), {"wide.npy", "float64", "float32"}},
      {gemm("--compare codes.npy"), {"codes.npy", "uint16", "float32", "--decode"}},
      {gemm("--compare column.npy --nan all"), {"--nan", "all"}},
      {Words("gemm a.npy b.npy out.npy --format fp32 --nan any"), {"--nan", "--compare"}},
  });
}

}  // namespace
}  // namespace numsim::apps
