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
  EXPECT_EQ(Comparison(outcome.out),
            "equal             5 of 6 elements (83.33 %), 1 differ\n"
            "first difference  (1, 1): expected 6 (0x40C00000), got 6.000001 (0x40C00002)\n"
            "worst difference  2 float32 ulps at (1, 1); relative 1.59e-07 at (1, 1)\n");
  outcome = Compare({1, 2, 4, 3, near, 24});
  EXPECT_THAT(outcome.out, HasSubstr("first difference  (1, 1)"));
  EXPECT_THAT(outcome.out, HasSubstr("8388608 float32 ulps at (1, 2); relative 1 at (1, 2)"));
}

// Around zero: 2^-149 is one ulp from 0 but infinitely far in relative terms, and so the worst
// relative difference is elsewhere than the worst one in ulps.
TEST_F(GemmCompare, UlpsAndRelativeErrorHaveTheirOwnPlaces) {
  PutFactors(0, 1);
  const Outcome outcome = Compare({0, 0x1p-149f, 0, 1, 2.5f, 4});
  EXPECT_THAT(outcome.out, HasSubstr("2097152 float32 ulps at (1, 1); relative inf at (0, 1)"));
}

TEST_F(GemmCompare, SignsOfZeroDifferByNoUlp) {
  PutFactors(0, 1);
  const Outcome outcome = Compare({0, 0, -0.0f, 1, 2, 4});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("first difference  (0, 2): expected 0 (0x00000000), got -0 (0x80000000)"));
  EXPECT_THAT(outcome.out, HasSubstr("worst difference  0 float32 ulps at (0, 2); relative 0 at"));
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
  EXPECT_THAT(exact.out, Not(HasSubstr("worst difference")));
}

TEST_F(GemmCompare, NumbersAndNansAreNotComparable) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  PutFactors(NAN, 1);
  const Outcome outcome = Compare({NAN, 7, NAN, kInf, 2, NAN});
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
  EXPECT_THAT(outcome.out, HasSubstr("1 float32 ulps at (1, 1)"));
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
  PutNpy("wide.npy", ElementType::kF64, std::vector<double>(6, 1), {2, 3});
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
