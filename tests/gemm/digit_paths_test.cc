// Exact sums by int8 digits: each way of adding them up against sums of 128-bit integers, and Gemm
// against its definition where it takes this path.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_digits_simd.h"
#include "numsim/gemm/internal/gemm_parts.h"
#include "numsim/gemm/internal/gemm_paths_digits.h"
#include "numsim/gemm/internal/gemm_tiles.h"
#include "tests/support/gemm_problem.h"

namespace numsim {
namespace {

__extension__ using Int128 = __int128;

// The largest and least numbers of so many digits. Eight digits hold numbers below those of int64: then
// the least is that of an operand, whose magnitudes are bounded.
int64_t Largest(int digits) { return INT64_C(0x7F7F7F7F7F7F7F7F) >> (8 * (kMostDigits - digits)); }
int64_t Least(int digits) {
  if (digits == kMostDigits) return -Largest(digits);
  int64_t least = 0;
  for (int i = 0; i < digits; ++i) least = least * 256 - 128;
  return least;
}

// Cuts numbers and expects digits that make them up again.
void ExpectDigits(const std::vector<int64_t>& numbers, int unit, int digits) {
  std::vector<float> x;
  for (const int64_t n : numbers) {
    x.push_back(static_cast<float>(std::ldexp(static_cast<double>(n), unit)));
  }
  const size_t stride = x.size() + 3;
  std::vector<uint8_t> cut(stride * static_cast<size_t>(digits), 0xEE);
  CutIntoDigits(x.data(), x.size(), unit, digits, cut.data(), stride);
  for (size_t k = 0; k < stride; ++k) {
    Int128 number = 0;
    for (int i = digits; i-- > 0;) {
      const uint8_t digit = cut[static_cast<size_t>(i) * stride + k];
      if (k >= x.size()) {
        ASSERT_EQ(digit, 0xEE) << "written behind the digits";
      }
      number = number * 256 + static_cast<int8_t>(digit);
    }
    if (k < x.size()) {
      ASSERT_EQ(static_cast<int64_t>(number), numbers[k]) << digits << " digits, unit " << unit;
    }
  }
}

// The number of 24 significant bits next to x toward zero.
int64_t AsFloat(int64_t x) {
  const uint64_t magnitude = static_cast<uint64_t>(std::abs(x));
  const int extra = std::max(0, static_cast<int>(std::bit_width(magnitude)) - 24);
  const auto kept = static_cast<int64_t>(magnitude >> extra << extra);
  return x < 0 ? -kept : kept;
}

// The loops are compiled for AVX-512 alone (gemm_digits_simd.h).
class Digits : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__x86_64__) && defined(__GNUC__)
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
      GTEST_SKIP() << "this processor has no AVX-512";
    }
#endif
  }
};

TEST_F(Digits, MakeUpEveryNumberOfOneAndTwoDigits) {
  for (const int digits : {1, 2}) {
    std::vector<int64_t> numbers;
    for (int64_t n = Least(digits); n <= Largest(digits); ++n) numbers.push_back(n);
    for (const int unit : {-149, -127, -126, -9, 0, 100}) ExpectDigits(numbers, unit, digits);
    ExpectDigits(numbers, 126 - 16, digits);
  }
}

TEST_F(Digits, MakeUpLongNumbers) {
  oracle::TestRandom random(1);
  for (int digits = 3; digits <= kMostDigits; ++digits) {
    std::vector<int64_t> numbers = {0, 1, -1, 127, 128, -128, -129, 0x7F7F, 0x7F80, 0x8000};
    numbers.push_back(AsFloat(Largest(digits)));
    numbers.push_back(AsFloat(Least(digits)));
    for (int i = 0; i < 2000; ++i) {
      const int64_t n =
          AsFloat(static_cast<int64_t>(random.Below(uint64_t{1} << 62)) >> random.Below(62));
      if (n <= Largest(digits)) numbers.push_back(random.Below(2) == 0 ? n : -n);
    }
    for (const int unit : {-149, -20, 0, 60}) ExpectDigits(numbers, unit, digits);
  }
}

TEST_F(Digits, OfInfinitiesAndNanAreZero) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 3};
  for (const int digits : {1, 5, 8}) {
    std::vector<uint8_t> cut(4 * static_cast<size_t>(digits), 0xEE);
    CutIntoDigits(x.data(), x.size(), 0, digits, cut.data(), 4);
    for (size_t i = 0; i < cut.size(); ++i) EXPECT_EQ(cut[i], i == 3 ? 3 : 0) << i;
  }
}

// An integer times 2^unit, rounded to odd.
double ToOdd(Int128 sum, int unit) {
  Int128 magnitude = sum < 0 ? -sum : sum;
  for (; magnitude >> 53 != 0; ++unit) magnitude = magnitude >> 1 | (magnitude & 1);
  const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(magnitude)), unit);
  return sum < 0 ? -value : value;
}

TEST_F(Digits, SumsAreRoundedToOdd) {
  oracle::TestRandom random(2);
  std::vector<int64_t> low, high;
  std::vector<double> one, two;
  for (int i = 0; i < 20000; ++i) {
    // Among them powers of two, plus or minus little, around the borders of float64.
    int64_t l = int64_t{1} << random.Below(61), h = int64_t{1} << random.Below(61);
    l += random.Below(3) == 0 ? static_cast<int64_t>(random.Below(5)) - 2 : 0;
    h += random.Below(3) == 0 ? static_cast<int64_t>(random.Below(5)) - 2 : 0;
    if (random.Below(2) == 0) l = static_cast<int64_t>(random.Below(uint64_t{1} << 61));
    if (random.Below(2) == 0) h = static_cast<int64_t>(random.Below(uint64_t{1} << 61));
    if (random.Below(4) == 0) l = 0;
    low.push_back(random.Below(2) == 0 ? l : -l);
    high.push_back((random.Below(2) == 0 ? h : -h) >> random.Below(61));
    one.push_back(ToOdd(low.back(), -7));
    two.push_back(ToOdd((Int128{high.back()} << 32) + low.back(), -7));
  }
  std::vector<double> out(low.size());
  RoundToOdd(low.data(), -7, low.size(), out.data());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], one[i]) << low[i];
  RoundToOdd(low.data(), high.data(), -7, low.size(), out.data());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], two[i]) << high[i] << ' ' << low[i];
}

// A factor of integers times 2^unit, stored as rows x inner or transposed.
struct IntegerFactor {
  IntegerFactor(size_t rows, size_t inner, int of_unit, bool transposed)
      : numbers(rows * inner), values(rows * inner), unit(of_unit) {
    operand = {.format = kFp32, .rows = rows, .inner = inner, .transposed = transposed};
    operand.values = values;
  }

  void Set(size_t row, size_t k, int64_t number) {
    const size_t at = operand.transposed ? k * operand.rows + row : row * operand.inner + k;
    numbers[row * operand.inner + k] = number;
    values[at] = static_cast<float>(std::ldexp(static_cast<double>(number), unit));
  }
  void SetRandom(int digits, oracle::TestRandom& random) {
    const int64_t special[] = {Largest(digits), -Largest(digits), -128, 0, 0x80, -0x8080};
    for (size_t row = 0; row < operand.rows; ++row) {
      for (size_t k = 0; k < operand.inner; ++k) {
        int64_t n = static_cast<int64_t>(random.Below(static_cast<uint64_t>(Largest(digits))));
        n = AsFloat(n >> (8 * random.Below(static_cast<uint64_t>(digits))));
        if (random.Below(4) == 0) n = AsFloat(special[random.Below(digits == 1 ? 4 : 6)]);
        if (std::abs(n) > Largest(digits) && n != -128) n = 1;
        Set(row, k, random.Below(2) == 0 || n == -128 ? n : -n);
      }
    }
  }

  std::vector<int64_t> numbers;
  std::vector<float> values;
  int unit;
  GemmOperand operand;
};

template <class Panels, int Limbs>
void ExpectSums(const IntegerFactor& a, const IntegerFactor& b, int digits_a, int digits_b) {
  const size_t rows = a.operand.rows, cols = b.operand.rows, inner = a.operand.inner;
  std::vector<double> sums(rows * cols, -1);
  const auto store = [&](const TilePlace& at, const double* tile) {
    for (size_t i = 0; i < at.rows * at.cols; ++i) {
      const size_t r = i / at.cols, c = i % at.cols;
      sums[(at.row + r) * cols + at.col + c] = tile[r * at.stride + c];
    }
  };
  DigitPath<Panels, Limbs> path(
      a.operand, b.operand, {{a.unit, digits_a}, {b.unit, digits_b}, Limbs});
  MultiplyTiles(path, rows, cols, {0, inner}, store);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) {
      Int128 sum = 0;
      for (size_t k = 0; k < inner; ++k) {
        sum += Int128{a.numbers[i * inner + k]} * b.numbers[j * inner + k];
      }
      ASSERT_EQ(sums[i * cols + j], ToOdd(sum, a.unit + b.unit))
          << rows << " x " << cols << " x " << inner << ", digits " << digits_a << " and "
          << digits_b << ", transposed " << a.operand.transposed << b.operand.transposed
          << ", element (" << i << ", " << j << "), threads " << ThreadCount();
    }
  }
}

// Calls expect_one() or expect_two() by the number of limbs that hold sums of `inner` products.
template <class Panels>
void ExpectSums(const IntegerFactor& a, const IntegerFactor& b, int digits_a, int digits_b) {
  const int carries = std::bit_width(a.operand.inner);
  if (8 * (digits_a + digits_b) - 2 + carries <= 62) {
    ExpectSums<Panels, 1>(a, b, digits_a, digits_b);
  }
  ExpectSums<Panels, 2>(a, b, digits_a, digits_b);
}

class ThreadsPutBack {
 public:
  ~ThreadsPutBack() { SetThreadCount(before_); }

 private:
  int before_ = ThreadCount();
};

struct DigitShape {
  size_t rows, cols, inner;
};

// Around the sizes of tiles, steps and blocks.
template <class Panels>
void ExpectSumsOfEveryShape() {
  constexpr DigitShape kShapes[] = {{1, 1, 1},
                                    {31, 33, 63},
                                    {33, 65, 65},
                                    {70, 12, 130},
                                    {300, 270, 9},
                                    {13, 37, 1024},
                                    {33, 34, 1025},
                                    {5, 40, 2100}};
  const ThreadsPutBack put_back;
  oracle::TestRandom random(3);
  int number = 0;
  for (const DigitShape& shape : kShapes) {
    for (int way = 0; way < 8; ++way, ++number) {
      SetThreadCount(way < 4 ? 1 : 3);
      const int digits_a = 1 + number % 5, digits_b = 1 + number / 5 % 5;
      IntegerFactor a(shape.rows, shape.inner, -30, (way & 1) != 0);
      IntegerFactor b(shape.cols, shape.inner, 17, (way & 2) != 0);
      a.SetRandom(digits_a, random);
      b.SetRandom(digits_b, random);
      ASSERT_NO_FATAL_FAILURE(ExpectSums<Panels>(a, b, digits_a, digits_b));
    }
  }
}

// Every product has the largest magnitude that the digits allow, all of the same sign.
template <class Panels>
void ExpectExtremeSums() {
  for (const int digits_a : {1, 3, 7}) {
    for (const int digits_b : {1, 2, 3}) {
      for (const int64_t sign : {1, -1}) {
        IntegerFactor a(2, 3000, 0, false), b(3, 3000, 0, false);
        for (size_t k = 0; k < 3000; ++k) {
          for (size_t i = 0; i < 2; ++i) a.Set(i, k, sign * AsFloat(Largest(digits_a)));
          for (size_t j = 0; j < 3; ++j) b.Set(j, k, AsFloat(Largest(digits_b)));
          a.Set(1, k, -128);
          b.Set(2, k, -128);
        }
        ASSERT_NO_FATAL_FAILURE(ExpectSums<Panels>(a, b, digits_a, digits_b));
      }
    }
  }
}

// All products of two codes.
template <class Panels>
void ExpectProductsOfAllCodes() {
  for (const FormatSpec& format : {kE2M1fn, kE2M3fn, kE3M2fn, kE4M3fn, kE5M2, kE4M3fnuz, kInt8}) {
    std::vector<uint8_t> codes(format.CodeMask() + 1);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
    GemmOperand x{.format = format, .codes8 = codes, .rows = codes.size(), .inner = 1};
    const OperandRange range = RangeOf(x);
    const auto plan = PlanDigits(x, range, x, range, 1, 1000);
    EXPECT_FALSE(plan && 2 * (range.high_exponent + 1 - range.unit) + 1 <= 53)
        << "digits for a single product";
    const auto longer = PlanDigits(x, range, x, range, 1000, 1000);
    ASSERT_TRUE(longer.has_value());
    std::vector<double> sums(codes.size() * codes.size(), -1);
    const auto store = [&](const TilePlace& at, const double* tile) {
      for (size_t i = 0; i < at.rows * at.cols; ++i) {
        const size_t r = i / at.cols, c = i % at.cols;
        sums[(at.row + r) * codes.size() + at.col + c] = tile[r * at.stride + c];
      }
    };
    DigitPath<Panels, 2> path(x, x, *longer);
    MultiplyTiles(path, codes.size(), codes.size(), {0, 1}, store);
    const auto value = [&](size_t code) {
      const float v = Decode(format, static_cast<uint32_t>(code));
      return std::isfinite(v) ? static_cast<double>(v) : 0.0;
    };
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i], value(i / codes.size()) * value(i % codes.size()))
          << ToString(format) << " codes " << i / codes.size() << ", " << i % codes.size();
    }
  }
}

template <class Panels>
void ExpectEverything() {
  ASSERT_NO_FATAL_FAILURE(ExpectSumsOfEveryShape<Panels>());
  ASSERT_NO_FATAL_FAILURE(ExpectExtremeSums<Panels>());
  ASSERT_NO_FATAL_FAILURE(ExpectProductsOfAllCodes<Panels>());
}

TEST(DigitPath, ByVnni) {
  if (!HasVnniTile()) GTEST_SKIP() << "this processor has no AVX-512 VNNI";
  ExpectEverything<VnniPanels>();
}

TEST(DigitPath, ByAmx) {
  if (!HasAmxTile()) GTEST_SKIP() << "this processor has no AMX";
  ExpectEverything<AmxPanels>();
}

// The plan for long sums of products of all finite codes of a format.
DigitPlan PlanOf(const FormatSpec& format) {
  std::vector<float> values;
  for (uint32_t code = 0; code <= format.CodeMask(); ++code) values.push_back(Decode(format, code));
  const GemmOperand x{.format = format, .values = values, .rows = 1, .inner = values.size()};
  const auto plan = PlanDigits(x, RangeOf(x), x, RangeOf(x), 1024, 100);
  return plan.value_or(DigitPlan{});
}

TEST(DigitPlan, TakesAsManyDigitsAsTheFormatNeeds) {
  struct Need {
    FormatSpec format;
    int digits;
  };
  for (const Need& need :
       {Need{kE2M1fn, 1}, {kE2M3fn, 1}, {kE3M2fn, 2}, {kE4M3fn, 3}, {kE5M2, 5}, {kFp16, 6}}) {
    EXPECT_EQ(PlanOf(need.format).a.digits, need.digits) << ToString(need.format);
  }
  EXPECT_EQ(PlanOf(kBf16).limbs, 0);  // sums too long
}

TEST(DigitPlan, TakesFewerDigitsWhereTheValuesNeedFewer) {
  const std::vector<float> values = {1, 2, -15, 0};
  const GemmOperand x{.format = kE4M3fn, .values = values, .rows = 1, .inner = 4};
  const OperandRange range = RangeOf(x);
  EXPECT_EQ(PlanDigits(x, range, x, range, 1024, 8)->a.digits, 1);
  EXPECT_FALSE(PlanDigits(x, range, x, range, 40, 8));               // short sums
  EXPECT_FALSE(PlanDigits(x, range, x, range, size_t{1} << 21, 8));  // too long
}

// 255 * 128 has 15 bits, but is larger than two digits hold.
TEST(ExactGemm, TakesThreeDigitsWhereTwoAreTooFew) {
  Factor a(kBf16, 1, 200, std::vector<uint32_t>(200, Encode(kBf16, 255.0f * 128)));
  a.SetCode(0, 0, Encode(kBf16, 128.0f));
  const GemmOperand x = a.Get();
  const OperandRange range = RangeOf(x);
  EXPECT_EQ(PlanDigits(x, range, x, range, 200, 100)->a.digits, 3);
  ExpectDefinedProduct(a, a, {});
}

// Gemm takes digits for these on a processor that has the instructions.
TEST(ExactGemm, OfLongSumsEqualsItsDefinition) {
  oracle::TestRandom random(4);
  for (const FormatSpec& format : {kE4M3fn, kE5M2, kE2M1fn, kE3M2fn, kFp16, kBf16}) {
    Factor a = Factor::Random(format, 35, 300, Spread::kNormal, Side::kLeft, random);
    Factor b = Factor::Random(format, 33, 300, Spread::kNormal, Side::kRight, random);
    a.Store(Storage::kCodes, false);
    b.Store(Storage::kCodes, true);
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, {}, {1, 3}));
    const GemmScales segments{.row_stride = 3, .segment = 128, .segment_stride = 1};
    std::vector<float> scales(3 * 35);
    for (float& x : scales) x = static_cast<float>(UnitRandom(random)) - 0.25f;
    a.SetScales(scales, segments);
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, {}));
    if (format.infinity == Infinity::kNone) continue;
    a.SetCode(3, 299, format.NanCode());
    a.SetCode(5, 0, format.InfinityCode());
    b.SetCode(4, 0, 0);  // infinity times zero
    b.SetCode(32, 200, format.InfinityCode() | format.SignBit());
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, {}));
  }
}

}  // namespace
}  // namespace numsim
