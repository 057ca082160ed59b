// Products of matrices against integers and error bounds: int8 sums beyond 2^31, rule library,
// sizes around tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "tests/support/gemm_problem.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

const AccumulationMode kExact{};

// A factor of int8 codes in plain memory; value(row, k) is an integer from -128 to 127.
struct Int8Factor {
  std::vector<uint8_t> codes;
  GemmOperand operand;

  template <typename Value>
  Int8Factor(size_t rows, size_t inner, bool transposed, const Value& value) : codes(rows * inner) {
    for (size_t row = 0; row < rows; ++row) {
      for (size_t k = 0; k < inner; ++k) {
        codes[transposed ? k * rows + row : row * inner + k] =
            static_cast<uint8_t>(static_cast<int8_t>(value(row, k)));
      }
    }
    operand.format = kInt8;
    operand.codes8 = codes;
    operand.rows = rows;
    operand.inner = inner;
    operand.transposed = transposed;
  }
  Int8Factor(const Int8Factor&) = delete;
  Int8Factor& operator=(const Int8Factor&) = delete;

  int64_t At(size_t row, size_t k) const {
    const size_t i = operand.transposed ? k * operand.rows + row : row * operand.inner + k;
    return static_cast<int8_t>(codes[i]);
  }
};

std::vector<int64_t> IntegerProduct(const Int8Factor& a, const Int8Factor& b) {
  std::vector<int64_t> sums;
  for (size_t i = 0; i < a.operand.rows; ++i) {
    for (size_t j = 0; j < b.operand.rows; ++j) {
      int64_t sum = 0;
      for (size_t k = 0; k < a.operand.inner; ++k) sum += a.At(i, k) * b.At(j, k);
      sums.push_back(sum);
    }
  }
  return sums;
}

// Gemm and GemmInt32 give the integer sums on every backend; GemmInt32 the nearest int32 and false
// where one does not fit.
void ExpectIntegerSums(const Int8Factor& a, const Int8Factor& b) {
  const std::vector<int64_t> sums = IntegerProduct(a, b);
  std::vector<float> want(sums.size());
  std::vector<int32_t> want32(sums.size());
  bool fit = true;
  for (size_t i = 0; i < sums.size(); ++i) {
    want[i] = static_cast<float>(sums[i]);
    want32[i] = static_cast<int32_t>(std::clamp<int64_t>(sums[i], INT32_MIN, INT32_MAX));
    fit = fit && want32[i] == sums[i];
  }
  WithEachBackend([&, &fits = fit] {
    for (const int threads : {1, 3}) {
      SetThreadCount(threads);
      std::vector<float> out(sums.size(), -1);
      Gemm(a.operand, b.operand, kExact, out);
      ASSERT_EQ(out, want) << a.operand.rows << " x " << b.operand.rows << " x " << a.operand.inner;
      std::vector<int32_t> out32(sums.size(), -1);
      EXPECT_EQ(GemmInt32(a.operand, b.operand, out32), fits);
      ASSERT_EQ(out32, want32) << a.operand.rows << " x " << b.operand.rows << " x "
                               << a.operand.inner;
    }
  });
}

int RandomInt8(oracle::TestRandom& random) { return static_cast<int>(random.Below(256)) - 128; }

TEST(GemmInt8, EqualsIntegerSums) {
  oracle::TestRandom random(1);
  for (const size_t inner : {1, 2, 3, 4, 5, 7, 8, 31, 63, 64, 65, 127, 129, 255, 257, 513}) {
    for (const bool transposed : {false, true}) {
      const size_t rows_a = 1 + random.Below(20), rows_b = 1 + random.Below(40);
      const auto any = [&random](size_t, size_t) { return RandomInt8(random); };
      const Int8Factor a(rows_a, inner, transposed, any);
      const Int8Factor b(rows_b, inner, random.Below(2) != 0, any);
      ASSERT_NO_FATAL_FAILURE(ExpectIntegerSums(a, b));
    }
  }
}

TEST(GemmInt8, SumsOfNothingAreZero) {
  const auto none = [](size_t, size_t) { return 0; };
  const Int8Factor a(2, 0, false, none), b(3, 0, true, none), no_rows(0, 0, false, none);
  ASSERT_NO_FATAL_FAILURE(ExpectIntegerSums(a, b));
  ASSERT_NO_FATAL_FAILURE(ExpectIntegerSums(a, no_rows));
}

TEST(GemmInt8, ExtremeCodesOfEitherSignEqualIntegerSums) {
  // An unsigned or 16-bit step on the way would overflow on pairs of -128 and -127.
  constexpr int kExtremes[] = {-128, -127, 127, 126, 0};
  for (const int x : kExtremes) {
    for (const int y : kExtremes) {
      const Int8Factor a(3, 260, false, [x](size_t, size_t) { return x; });
      const Int8Factor b(18, 260, false, [y](size_t row, size_t k) {
        return row == 7 && k % 2 != 0 && y != -128 ? -y : y;
      });
      ASSERT_NO_FATAL_FAILURE(ExpectIntegerSums(a, b));
    }
  }
}

TEST(GemmInt8, SumsBeyondInt32AreExactAndReported) {
  struct Case {
    size_t inner;
    int a, b;
  };
  // 131071 * 16384 = 2^31 - 16384 fits, 131072 * 16384 = 2^31 does not, -131072 * 128 * 127 does.
  constexpr Case kCases[] = {{131071, -128, -128},
                             {131072, -128, -128},
                             {131073, -128, -128},
                             {131072, -128, 127},
                             {132105, -128, 127},
                             {70000, 127, 127},
                             {140000, 127, 127},
                             {140000, -128, 127},
                             {140000, -128, -128},
                             {70000, -128, -128}};
  for (size_t i = 0; i < std::size(kCases); i += SampleEvery(5)) {
    const Case& c = kCases[i];
    const Int8Factor a(
        2, c.inner, false, [&](size_t row, size_t k) { return row == 1 && k % 3 == 0 ? 1 : c.a; });
    const Int8Factor b(2, c.inner, false, [&](size_t row, size_t) { return row == 0 ? c.b : 0; });
    ASSERT_NO_FATAL_FAILURE(ExpectIntegerSums(a, b)) << c.inner << " " << c.a << " " << c.b;
  }
}

TEST(GemmInt8, SumsThatReturnIntoInt32Fit) {
  // 140,000 products of 2^14, then as many of -2^14 and three of one: partial sums overflow.
  const Int8Factor a(
      1, 280003, false, [](size_t, size_t k) { return k < 140000 || k >= 280000 ? -128 : 127; });
  const Int8Factor b(1, 280003, false, [](size_t, size_t k) { return k < 280000 ? -128 : 1; });
  ASSERT_NO_FATAL_FAILURE(ExpectIntegerSums(a, b));
}

TEST(GemmInt8, IsExactUnderScales) {
  // One segment each: t = fl32(fl64(S (sa sb))), S of 26 bits.
  oracle::TestRandom random(3);
  Factor a = Factor::Random(kInt8, 5, 4099, Spread::kFiniteCodes, Side::kLeft, random);
  Factor b = Factor::Random(kInt8, 3, 4099, Spread::kFiniteCodes, Side::kRight, random);
  a.Store(Storage::kCodes, false);
  b.Store(Storage::kCodes, false);
  GemmScales per_row;
  per_row.row_stride = 1;
  a.SetScales({0.1f, 0x1.fffffep-3f, 3, 1e-30f, 1e30f}, per_row);
  b.SetScales({0.3f, 0x1.000002p0f, 1e-20f}, per_row);
  ExpectDefinedProduct(a, b, kExact, {1, 2});
}

TEST(GemmInt8, UnusedCodeIsMinus128UnderEveryRule) {
  for (const char* text :
       {"exact", "fp64", "fp32", "fp32-chunked:7", "trunc:25,16", "cdna1-fp16"}) {
    Factor a(kInt8, 1, 3, {0x80, 0x80, 1}), b(kInt8, 1, 3, {0x80, 3, 0x80});
    a.Store(Storage::kCodes, false);
    b.Store(Storage::kCodes, false);
    WithEachBackend([&] {
      EXPECT_EQ(GemmResult(a, b, ParseAccumulationMode(text)),
                std::vector<float>(1, 128 * 128 - 3 * 128 - 128))
          << text;
    });
  }
}

// Sizes one below, at and above those of tiles and blocks; chunks that divide them and do not.
TEST(Gemm, EqualsItsDefinitionAroundSizesOfTiles) {
  oracle::TestRandom random(4);
  for (const char* text : {"exact",
                           "fp32",
                           "fp32-chunked:7",
                           "fp32-chunked:128",
                           "trunc:13,5",
                           "trunc:13,3,96",
                           "trunc:13,32,128"}) {
    for (const FormatSpec& format : {kE4M3fn, kInt8, kBf16}) {
      for (const size_t size : {6, 12, 16, 32, 64, 96, 128}) {
        for (size_t rows = size - (kSanitized ? 0 : 1); rows <= size + 1; ++rows) {
          const bool left = random.Below(2) != 0;
          Factor a =
              Factor::Random(format, left ? rows : 2, 7, Spread::kNormal, Side::kLeft, random);
          Factor b =
              Factor::Random(format, left ? 2 : rows, 7, Spread::kNormal, Side::kRight, random);
          a.Store(Storage::kCodes, random.Below(2) != 0);
          b.Store(Storage::kCodes, random.Below(2) != 0);
          ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, ParseAccumulationMode(text)));
        }
      }
      for (const size_t size : {512, 1024, 2048, 4096}) {
        for (size_t inner = size - (kSanitized ? 0 : 1); inner <= size + 1; ++inner) {
          Factor a = Factor::Random(format, 1, inner, Spread::kNormal, Side::kLeft, random);
          Factor b = Factor::Random(format, 2, inner, Spread::kNormal, Side::kRight, random);
          a.Store(Storage::kCodes, false);
          b.Store(Storage::kCodes, false);
          ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, ParseAccumulationMode(text)));
        }
      }
    }
  }
}

TEST(Gemm, ExactSumsBesideATieAreRoundedOnce) {
  // 2^(24 + n) + 2^n +- 1 in bf16: 2^n is a tie, which the 1 decides whatever n is.
  for (int n = 1; n < 80; ++n) {
    for (const float one : {1.0f, -1.0f}) {
      const float terms[] = {std::ldexp(1.0f, n / 2 + 12), std::ldexp(1.0f, n / 2), one};
      const float factors[] = {std::ldexp(1.0f, n - n / 2 + 12), std::ldexp(1.0f, n - n / 2), 1};
      std::vector<uint32_t> a, b;
      for (const float x : terms) a.push_back(Encode(kBf16, x));
      for (const float x : factors) b.push_back(Encode(kBf16, x));
      const Factor row(kBf16, 1, 3, a), column(kBf16, 1, 3, b);
      const float low = std::ldexp(1.0f, n + 24);
      const float want = one > 0 ? low + std::ldexp(2.0f, n) : low;
      WithEachBackend([&, &nearest = want] {
        ASSERT_EQ(GemmResult(row, column, kExact), std::vector<float>(1, nearest)) << n;
      });
    }
  }
}

TEST(Gemm, AlignedSumsBeyondTheBitsOfFloat64AreExact) {
  // 4095 1.75^2 - 2^-40: with F = 40 the sum has 54 bits; the last decides what truncation leaves.
  std::vector<uint32_t> a(4096, Encode(kBf16, 1.75f));
  std::vector<uint32_t> b = a;
  a.back() = Encode(kBf16, -0x1p-20f);
  b.back() = Encode(kBf16, 0x1p-20f);
  const Factor row(kBf16, 1, 4096, a), column(kBf16, 1, 4096, b);
  ExpectDefinedProduct(row, column, ParseAccumulationMode("trunc:40,8192"));
  EXPECT_EQ(DefinedElement(row, column, ParseAccumulationMode("trunc:40,8192"), 0, 0),
            std::nextafter(4095 * 1.75f * 1.75f, 0.0f));
}

// Two factors with the same rows each, whose products are those of the pairs in their order.
struct ProductList {
  FormatSpec format;
  std::vector<uint32_t> a = {}, b = {};

  void Add(size_t count, float x, float y) {
    a.insert(a.end(), count, Encode(format, x));
    b.insert(b.end(), count, Encode(format, y));
  }
  Factor Rows(const std::vector<uint32_t>& codes, size_t rows) const {
    std::vector<uint32_t> all;
    for (size_t row = 0; row < rows; ++row) all.insert(all.end(), codes.begin(), codes.end());
    return {format, rows, codes.size(), all};
  }
  void Expect(const std::string& rule, float sum) const {
    const Factor left = Rows(a, 3), right = Rows(b, 17);
    EXPECT_EQ(DefinedElement(left, right, ParseAccumulationMode(rule), 0, 0), sum) << rule;
    ExpectDefinedProduct(left, right, ParseAccumulationMode(rule));
  }
};

// In units of 2^(E - F) the sum of a chunk may pass 2^24, beyond which a float32 has even integers
// alone. Ones in all the bits that truncation drops then tell whether it was rounded before.
TEST(Gemm, AlignedSumsBeyondTheBitsOfFloat32AreTruncatedAndNotRounded) {
  // 120 448^2 + 255, in units of 1: 17 of 25 bits stay.
  ProductList list{kE4M3fn};
  list.Add(120, 448, 448);
  list.Add(1, 15, 16);
  list.Add(1, 15, 1);
  list.Expect("trunc:16,127", 120 * 448 * 448);
  list.Expect("trunc:16,126", 120 * 448 * 448);
  // 240 448^2 + 2 511, in units of 2: 16 of 25 bits.
  list = {kE4M3fn};
  list.Add(240, 448, 448);
  list.Add(1, 30, 32);
  list.Add(1, 30, 2);
  list.Add(1, 2, 1);
  list.Expect("trunc:15,255", 240 * 448 * 448);
}

// The shortest chunk that passes 2^24: 64 510^2 and an accumulator of 2^17 - 1 make 2^24 + 255.
TEST(Gemm, TheShortestChunkBeyondFloat32IsTruncatedAndNotRounded) {
  for (const size_t chunk : {63, 64}) {
    ProductList list{kBf16};
    list.Add(1, 256, 510);
    list.Add(1, 255, 2);
    list.Add(1, 1, 1);
    list.Add(chunk - 3, 0, 0);
    list.Add(chunk, 510, 510);
    const double sum = 0x1p17 - 1 + static_cast<double>(chunk) * 510 * 510;
    const double unit = chunk == 63 ? 128 : 256;  // the 17th bit of a sum below or above 2^24
    list.Expect(fmt::format("trunc:16,{}", chunk),
                static_cast<float>(std::floor(sum / unit) * unit));
  }
}

// Fused lanes hold sums of less than 2^22 units of 2^(E - F). Here they pass it by 168 products of
// 25088 units each, a multiple of the 512 units to which the result is truncated.
TEST(Gemm, AlignedSumsThatLeaveTheRangeOfFloat32LanesAreTruncated) {
  constexpr float kLarge = 168.0f * 448 * 448;
  ProductList up{kE4M3fn};
  up.Add(168, 448, 448);
  up.Add(1, 240, 15);  // 450 units
  up.Add(1, 240, 2);   // 60
  up.Add(2, 8, 1);     // units that complete the 512
  up.Expect("trunc:13,172", kLarge + 512 * 8);
  ProductList down{kE4M3fn};
  down.Add(168, 448, -448);
  down.Add(4, 4, -1);  // halves of a unit
  down.Expect("trunc:13,172", -kLarge);
}

// The same for float64 lanes and 2^51 units.
TEST(Gemm, AlignedSumsThatLeaveTheRangeOfFloat64LanesAreTruncated) {
  ProductList list{kBf16};
  list.Add(1, 0x1p-60f, 0x1p-60f);  // beyond the exponents of float32 lanes
  list.Add(670, 1.75f, 1.75f);
  list.Add(1, 255 * 0x1p-10f, 0x1p-10f);  // 2^-12 - 2^-39 in four products
  list.Add(1, 255 * 0x1p-14f, 0x1p-14f);
  list.Add(1, 255 * 0x1p-18f, 0x1p-18f);
  list.Add(1, 7 * 0x1p-19f, 0x1p-20f);
  list.Add(2, 0x1p-20f, 0x1p-20f);
  list.Expect("trunc:40,700", 670 * 1.75f * 1.75f + 0x1p-12f);
}

// Negative products below the last bit of the sum are counted, in fields of 8 and of 16 bits.
TEST(Gemm, AsManyTruncatedProductsAsAChunkHoldsAddNothing) {
  for (const size_t chunk : {1019, 1020, 1021, 1024, 1025, 1100}) {
    ProductList list{kE4M3fn};
    list.Add(1, 448, 448);
    list.Add(chunk - 1, 1, -1);
    list.Expect(fmt::format("trunc:9,{}", chunk), 448 * 448);
  }
  for (const size_t chunk : {65535, 65536}) {
    ProductList list{kBf16};
    list.Add(chunk, 0x1p-60f, -0x1p-60f);
    list.a.front() = Encode(kBf16, 1.0f);
    list.b.front() = list.a.front();
    list.Expect(fmt::format("trunc:5,{}", chunk), 1);
  }
}

// The lowest bits of fp16 products lie up to 78 places apart, more than a field of 8 bits holds.
TEST(Gemm, ProductsWithDistantLowestBitsAreTruncated) {
  ProductList list{kFp16};
  list.Add(1, 0x1p15f, 0x1p15f);
  list.Add(1, 0x1p12f, -0x1.8p11f);  // lowest bit 2^22 of a sum in units of 2^25
  list.Add(1, 0x1p-24f, 0x1p-24f);
  list.Expect("trunc:5,8", 0x1p30f);
}

// Where the exponents of both factors span at most 30, the largest is found from sums of powers, which
// then just fit float32. Here 32 products have it, and half of them have a bit 2^-14 below it.
TEST(Gemm, ProductsThatAllHaveTheLargestExponentAreTruncated) {
  for (const auto& [left, right] : {std::pair{15, 15},
                                    {15, 16},
                                    {16, 15},
                                    {16, 16},
                                    {22, 8},
                                    {22, 9},
                                    {23, 6},
                                    {23, 7},
                                    {24, 6},
                                    {7, 23},
                                    {8, 23},
                                    {6, 24},
                                    {5, 25},
                                    {28, 28}}) {
    const int low = -13;  // normal fp16
    const float a = std::ldexp(1.0f, low + left), b = std::ldexp(1.0f, low + right);
    ProductList list{kFp16};
    list.Add(16, a * 0x1.02p0f, b * 0x1.02p0f);
    list.Add(16, a, -b);
    list.Add(1, std::ldexp(1.0f, low), std::ldexp(1.0f, low));
    list.Expect("trunc:13,32", a * b / 4);
  }
}

// An accumulator above all products gives the highest threshold of places. Zero is not below it.
TEST(Gemm, ZerosBesideALargeAccumulatorAddNothing) {
  ProductList list{kE5M2};
  list.Add(8, 0x1.cp15f, 0x1.cp15f);
  list.Add(7, 0, -0x1p-16f);
  list.Add(1, 0x1p-16f, 0x1p-16f);
  list.Expect("trunc:1,8", 0x1.8p34f);
}

// |result - exact| <= (k + 3) u / (1 - (k + 3) u) sum |a b| for sums in any order; the 3
// are the scaling and the rounding of the exact sum to compare with.
TEST(GemmLibraryRule, LiesWithinTheErrorBoundOfAnyOrder) {
  oracle::TestRandom random(5);
  for (const FormatSpec& format : {kFp32, kFp16, kBf16, kE4M3fn, kE5M2, kE2M1fn}) {
    for (const size_t inner : {1, 5, 64, 257, 1000}) {
      Factor a = Factor::Random(format, 9, inner, Spread::kNormal, Side::kLeft, random);
      Factor b = Factor::Random(format, 21, inner, Spread::kCancelling, Side::kRight, random);
      const bool codes = format.Bits() <= 16;
      a.Store(codes ? Storage::kCodes : Storage::kValues, random.Below(2) != 0);
      b.Store(codes ? Storage::kCodes : Storage::kValues, random.Below(2) != 0);
      GemmScales per_row;
      per_row.row_stride = 1;
      std::vector<float> scales, scales_b;
      for (int i = 0; i < 9; ++i) scales.push_back(0.25f + static_cast<float>(i) / 7);
      for (int j = 0; j < 21; ++j) scales_b.push_back(inner == 5 ? 1 : 3 - static_cast<float>(j));
      a.SetScales(scales, per_row);
      if (inner != 5) b.SetScales(scales_b, per_row);
      const std::vector<float> out = GemmResult(a, b, ParseAccumulationMode("library"));
      const double unit = 0x1p-24 * static_cast<double>(inner + 3);
      for (size_t i = 0; i < a.rows(); ++i) {
        for (size_t j = 0; j < b.rows(); ++j) {
          double sum = 0, magnitude = 0;
          for (size_t k = 0; k < inner; ++k) {
            const double product =
                static_cast<double>(a.Row(i)[k]) * b.Row(j)[k] * scales[i] * scales_b[j];
            sum += product;
            magnitude += std::fabs(product);
          }
          ASSERT_NEAR(out[i * b.rows() + j], sum, unit / (1 - unit) * magnitude)
              << ToString(format) << " " << inner << " (" << i << ", " << j << ")";
        }
      }
    }
  }
}

// Operands of different formats, values and codes, one scale for all and scales along the inner
// dimension. All results are small integers, exact in any order.
TEST(GemmLibraryRule, MultipliesOperandsOfAnyTwoFormats) {
  const FormatSpec formats[] = {kBf16, kE4M3fn, kE5M2, kFp32, kFp16, kInt8};
  for (const FormatSpec& of_a : formats) {
    for (const FormatSpec& of_b : formats) {
      for (int way = 0; way < 16; ++way) {
        std::vector<uint32_t> codes_a, codes_b;
        for (int i = 0; i < 5 * 40; ++i) {
          codes_a.push_back(Encode(of_a, static_cast<float>(i * 7 % 9 - 4)));
          codes_b.push_back(Encode(of_b, static_cast<float>(i * 5 % 9 - 4)));
        }
        Factor a(of_a, 5, 40, codes_a), b(of_b, 5, 40, codes_b);
        a.Store(of_a.Bits() <= 16 && way % 2 != 0 ? Storage::kCodes : Storage::kValues, way >= 8);
        b.Store(of_b.Bits() <= 16 && way / 2 % 2 != 0 ? Storage::kCodes : Storage::kValues, false);
        if (way / 4 % 2 != 0) {
          GemmScales scales{.segment = 20, .segment_stride = 1};
          a.SetScales({2, -4}, scales);
        } else {
          a.SetScales({-2}, {});
        }
        EXPECT_EQ(GemmResult(a, b, ParseAccumulationMode("library")), DefinedProduct(a, b, {}))
            << a.Describe() << "\n"
            << b.Describe();
      }
    }
  }
}

TEST(GemmLibraryRule, KeepsEveryBitOfFloat32) {
  const float x = 1 + 0x1p-23f;
  const std::vector<float> values(64, x);
  const GemmOperand a{.format = kFp32, .values = values, .rows = 1, .inner = 64};
  float out = 0;
  Gemm(a, a, ParseAccumulationMode("library"), std::span(&out, 1));
  EXPECT_NEAR(out, 64 * static_cast<double>(x) * x, 64 * 64 * 0x1p-24);
}

TEST(GemmLibraryRule, KeepsANanWithBitsInTheLowerHalfAlone) {
  const std::vector<float> values = {1, std::bit_cast<float>(0x7F800001u), 2, 3};
  const GemmOperand a{.format = kBf16, .values = values, .rows = 4, .inner = 1};
  std::vector<float> out(16);
  Gemm(a, a, ParseAccumulationMode("library"), out);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(out[i]), i / 4 == 1 || i % 4 == 1) << i;
}

TEST(GemmLibraryRule, GivesTheNanOfTheRuleAndZeroForNothing) {
  const AccumulationMode library = ParseAccumulationMode("library");
  oracle::TestRandom random(6);
  for (const FormatSpec& format : {kBf16, kFp32, kE5M2, kE4M3fn}) {
    Factor a = Factor::Random(format, 3, 20, Spread::kNormal, Side::kLeft, random);
    Factor b = Factor::Random(format, 5, 20, Spread::kNormal, Side::kRight, random);
    a.SetCode(1, 7, format.NanCode() | format.SignBit() | 1);
    if (format.Bits() == 8) a.Store(Storage::kCodes, true);
    const std::vector<float> out = GemmResult(a, b, library);
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(out[i]) == NanResult(library), i / 5 == 1) << i;
    }
    const Factor none(format, 3, 0, {});
    EXPECT_EQ(GemmResult(none, none, library), std::vector<float>(9, 0));
  }
}

}  // namespace
}  // namespace numsim
