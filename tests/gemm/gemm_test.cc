// Products of matrices under every mode against their definition, an Accumulate for each element,
// on every backend and with several threads.
#include "numsim/gemm/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "tests/support/gemm_problem.h"

namespace numsim {
namespace {

constexpr const char* kModes[] = {"exact",
                                  "fp64",
                                  "fp32",
                                  "fp16",
                                  "bf16",
                                  "tf32",
                                  "e5m2",
                                  "bf16:unfused",
                                  "fp32:unfused",
                                  "e8m21",  // the most mantissa bits for which float32 serves
                                  "e8m22",
                                  "fp32-chunked:1",
                                  "fp32-chunked:7",
                                  "trunc:13,32",
                                  "fp32-chunked:128",
                                  "trunc:13,32,128",
                                  "trunc:25,16",
                                  "trunc:40,5",
                                  "trunc:1,3,6",
                                  "hopper-mma-fp8",
                                  "volta-fp16",
                                  "blackwell-fp8",
                                  "cdna1-fp16",
                                  "cdna1-bf16",
                                  "cdna2-fp16",
                                  "cdna2-bf16-2",
                                  "cdna3-bf16",
                                  "cdna3-fp8"};

struct FormatPair {
  FormatSpec a, b;
};
const FormatPair kPairs[] = {{kE4M3fn, kE5M2},
                             {kE4M3fn, kE4M3fn},
                             {kE5M2, kE5M2},
                             {kE4M3fnuz, kE5M2fnuz},
                             {kE2M1fn, kE2M3fn},
                             {kE8M0fnu, kE4M3fn},
                             {kInt8, kInt8},
                             {kBf16, kBf16},
                             {kFp16, kFp16},
                             {kFp32, kFp32},
                             {kTf32, kTf32},
                             {kBf16, kInt8},
                             {kFp16, kBf16},
                             {kFp32, kE4M3fn},
                             {kInt8, kE4M3fn}};

// Around the sizes of vectors and tiles.
constexpr size_t kRows[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12, 13,  15,  16,  17,  24,
                            25, 31, 32, 33, 48, 63, 64, 65, 95, 96, 97, 127, 128, 129, 192, 193};
constexpr size_t kInners[] = {1,   2,   3,   4,   5,   7,   8,   9,   15,  16,
                              17,  31,  32,  33,  47,  63,  64,  65,  96,  97,
                              127, 128, 129, 255, 256, 257, 511, 512, 513, 1025};

template <typename T, size_t N>
T Pick(const T (&list)[N], oracle::TestRandom& random) {
  return list[random.Below(N)];
}

float RandomScale(oracle::TestRandom& random) {
  if (random.Below(50) == 0) return 0;
  const double sign = random.Below(8) == 0 ? -1 : 1;
  const int range = random.Below(8) == 0 ? 100 : 10;  // some beyond or below float32 in the end
  const int exponent = static_cast<int>(random.Below(static_cast<uint64_t>(2 * range))) - range;
  return static_cast<float>(sign * std::ldexp(1 + UnitRandom(random), exponent));
}

// One of: no scales, one, one a row or group of rows, and any of these for each segment, in memory
// in any order and with gaps.
void SetRandomScales(Factor& factor, size_t segment, oracle::TestRandom& random) {
  constexpr size_t kGroups[] = {1, 1, 2, 7, 128};
  const bool segmented = segment != 0 && random.Below(3) != 0;
  if (!segmented && random.Below(3) == 0) return;
  const size_t segments = segmented ? factor.inner() / segment + 1 : 1;
  GemmScales scales;
  scales.segment = segmented ? segment : 0;
  size_t size = segments;
  scales.segment_stride = segmented ? 1 : 0;
  if (random.Below(4) != 0) {
    scales.row_group = Pick(kGroups, random);
    const size_t groups = factor.rows() / scales.row_group + 1;
    const size_t gap = random.Below(3);
    const bool by_segment = random.Below(2) != 0;
    scales.row_stride = by_segment ? 1 : segments + gap;
    scales.segment_stride = !segmented ? 0 : by_segment ? groups + gap : 1;
    size = groups * segments + gap * (groups + segments);
  }
  std::vector<float> data(size);
  for (float& x : data) x = RandomScale(random);
  factor.SetScales(data, scales);
}

void StoreRandomly(Factor& factor, oracle::TestRandom& random) {
  const bool codes = factor.format().Bits() <= 16 && random.Below(3) != 0;
  const size_t gap = random.Below(3) == 0 ? 1 + random.Below(9) : 0;
  factor.Store(codes ? Storage::kCodes : Storage::kValues, random.Below(2) != 0, gap);
}

struct Shape {
  size_t rows_a, rows_b, inner;
};

Shape RandomShape(size_t products, oracle::TestRandom& random) {
  for (;;) {
    const Shape shape = {Pick(kRows, random), Pick(kRows, random), Pick(kInners, random)};
    if (shape.rows_a * shape.rows_b * shape.inner <= products) return shape;
  }
}

Factor RandomFactor(const FormatSpec& format,
                    size_t rows,
                    size_t inner,
                    Spread spread,
                    Side side,
                    oracle::TestRandom& random) {
  Factor factor = Factor::Random(format, rows, inner, spread, side, random);
  StoreRandomly(factor, random);
  return factor;
}

class GemmUnderMode : public testing::TestWithParam<const char*> {
 protected:
  AccumulationMode mode() const { return ParseAccumulationMode(GetParam()); }
};

TEST_P(GemmUnderMode, EqualsItsDefinition) {
  oracle::TestRandom random(1);
  for (const FormatPair& pair : kPairs) {
    for (const Spread spread : kSpreads) {
      const auto [rows_a, rows_b, inner] = RandomShape(4000, random);
      const Factor a = RandomFactor(pair.a, rows_a, inner, spread, Side::kLeft, random);
      const Factor b = RandomFactor(pair.b, rows_b, inner, spread, Side::kRight, random);
      ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode()));
    }
  }
}

TEST_P(GemmUnderMode, EqualsItsDefinitionWithScales) {
  constexpr size_t kSegments[] = {0, 0, 1, 5, 32, 128, 100000};
  oracle::TestRandom random(2);
  for (const FormatPair& pair : kPairs) {
    for (int i = 0; i < 4; ++i) {
      const auto [rows_a, rows_b, inner] = RandomShape(3000, random);
      const Spread spread = Pick(kFiniteSpreads, random);
      Factor a = RandomFactor(pair.a, rows_a, inner, spread, Side::kLeft, random);
      Factor b = RandomFactor(pair.b, rows_b, inner, spread, Side::kRight, random);
      const size_t segment = Pick(kSegments, random);
      SetRandomScales(a, segment, random);
      SetRandomScales(b, segment, random);
      ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode()));
    }
  }
}

TEST_P(GemmUnderMode, EqualsItsDefinitionForEveryStorage) {
  oracle::TestRandom random(3);
  for (const FormatPair& pair : {kPairs[0], FormatPair{kInt8, kInt8}, FormatPair{kBf16, kBf16}}) {
    Factor a = Factor::Random(pair.a, 5, 21, Spread::kNormal, Side::kLeft, random);
    Factor b = Factor::Random(pair.b, 9, 21, Spread::kNormal, Side::kRight, random);
    const std::vector<float> want = DefinedProduct(a, b, mode());
    for (int way = 0; way < 16; ++way) {
      a.Store(way % 2 != 0 ? Storage::kCodes : Storage::kValues, way / 2 % 2 != 0);
      b.Store(way / 4 % 2 != 0 ? Storage::kCodes : Storage::kValues, way / 8 % 2 != 0);
      WithEachBackend([&, &p = pair] {
        SetThreadCount(1);
        ASSERT_TRUE(SameMatrix(GemmResult(a, b, mode()), want, b.rows()))
            << ToString(p.a) << " way " << way;
      });
    }
  }
}

TEST_P(GemmUnderMode, EqualsItsDefinitionForLongAndWideOperandsOnSeveralThreads) {
  oracle::TestRandom random(4);
  constexpr Shape kShapes[] = {
      {1, 1, 2047}, {2, 3, 2049}, {1, 7, 4097}, {7, 13, 65}, {13, 35, 130}};
  for (const Shape& shape : kShapes) {
    const FormatPair pair = Pick(kPairs, random);
    const Spread spread = Pick(kFiniteSpreads, random);
    const Factor a = RandomFactor(pair.a, shape.rows_a, shape.inner, spread, Side::kLeft, random);
    const Factor b = RandomFactor(pair.b, shape.rows_b, shape.inner, spread, Side::kRight, random);
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode(), {2, 5}));
  }
}

TEST_P(GemmUnderMode, SpecialOperandsSpoilTheirRowAndColumnAlone) {
  oracle::TestRandom random(5);
  for (const FormatSpec& format : {kE5M2, kBf16, kFp16}) {
    Factor a = RandomFactor(format, 9, 40, Spread::kNormal, Side::kLeft, random);
    Factor b = RandomFactor(format, 18, 40, Spread::kNormal, Side::kRight, random);
    a.SetCode(3, 39, format.NanCode());
    a.SetCode(5, 0, format.InfinityCode());
    a.SetCode(7, 33, format.InfinityCode() | format.SignBit());
    b.SetCode(4, 0, 0);  // infinity times zero for row 5
    b.SetCode(17, 35, format.NanCode() | format.SignBit());
    b.SetCode(11, 33, format.InfinityCode());
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode()));
    const std::vector<float> out = GemmResult(a, b, mode());
    size_t nans = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      nans += std::isnan(out[i]) ? 1 : 0;
      if (i / 18 == 3 || i % 18 == 17) {
        EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), NanResult(mode()));
      }
    }
    EXPECT_LT(nans, 18u + 9u + 8u);
  }
}

TEST_P(GemmUnderMode, SpecialScalesGiveTheNanOfTheMode) {
  oracle::TestRandom random(6);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const FormatSpec& format : {kE4M3fn, kInt8}) {
    SCOPED_TRACE(format == kInt8 ? "int8" : "e4m3fn");
    Factor a = RandomFactor(format, 9, 40, Spread::kNormal, Side::kLeft, random);
    Factor b = RandomFactor(format, 18, 40, Spread::kNormal, Side::kRight, random);
    if (format == kInt8) {  // sums of codes are integers
      a.Store(Storage::kCodes, false);
      b.Store(Storage::kCodes, false);
    }
    GemmScales per_row;
    per_row.row_stride = 1;
    std::vector<float> scales(9, 1);
    scales[2] = std::numeric_limits<float>::quiet_NaN();
    scales[3] = -std::numeric_limits<float>::quiet_NaN();
    scales[4] = kInf;
    scales[5] = 0;
    a.SetScales(scales, per_row);
    scales.assign(18, 1);
    scales[7] = -kInf;
    scales[8] = -0.0f;
    b.SetScales(scales, per_row);
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode()));
    // Infinities of both signs meet in the sum of two segments.
    GemmScales per_segment;
    per_segment.segment = 20;
    per_segment.segment_stride = 1;
    a.SetScales({kInf, -kInf}, per_segment);
    b.SetScales({}, {});
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode()));
  }
}

TEST_P(GemmUnderMode, EmptySumsAreZeroAndEmptyMatricesAreFine) {
  for (const FormatSpec& format : {kE4M3fn, kInt8, kFp32}) {
    Factor a(format, 5, 0, {}), b(format, 3, 0, {});
    ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, mode()));
    EXPECT_EQ(GemmResult(a, b, mode()), std::vector<float>(15, 0));
    GemmScales per_row;
    per_row.row_stride = 1;
    a.SetScales({-1, -2, std::numeric_limits<float>::quiet_NaN(), -0.0f, 1}, per_row);
    for (const float x : GemmResult(a, b, mode())) EXPECT_EQ(std::bit_cast<uint32_t>(x), 0u);
    const Factor none(format, 0, 4, {}), some(format, 2, 4, std::vector<uint32_t>(8, 1));
    EXPECT_TRUE(GemmResult(none, some, mode()).empty());
    EXPECT_TRUE(GemmResult(some, none, mode()).empty());
    EXPECT_TRUE(GemmResult(none, none, mode()).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Gemm,
                         GemmUnderMode,
                         testing::ValuesIn(kModes),
                         [](const testing::TestParamInfo<const char*>& param) {
                           std::string name = param.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

// Rows of a and b, one product each.
struct Sum {
  const char* mode;
  std::vector<float> a, b;
};

TEST(Gemm, SumsBeyondTheRangeOfFloat32EqualTheirDefinition) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Sum sums[] = {
      {"fp32", {-0x1p-100f}, {0x1p-100f}},  // -0
      {"fp32", {-0x1p-100f, 0}, {0x1p-100f, 1}},
      {"fp32", {0x1p-75f, 0x1p-75f}, {0x1p-74f, 0x1p-75f}},   // 2^-149 + 2^-150: a tie
      {"fp32", {0x1p100f, -0x1p100f}, {0x1p100f, 0x1p100f}},  // infinity, not its opposite
      {"exact", {0x1p100f, -0x1p100f, 1}, {0x1p100f, 0x1p100f, 1}},
      {"trunc:13,32", {kInf, -0x1p100f}, {1, 0x1p100f}},  // finite beyond float32 and infinity
      {"trunc:13,32", {0x1p100f, -0x1p100f}, {0x1p100f, 0x1p100f}},
      {"trunc:1,3", {-0x1p90f, 0, 0, 1}, {0x1p90f, 1, 1, 1}},  // an infinite accumulator stays
      {"trunc:13,3", {-0x1p90f, 0, 0, 1}, {0x1p90f, 1, 1, 1}},
      {"trunc:13,3", {-0x1p90f, 0, 0, kInf}, {0x1p90f, 1, 1, 1}},  // and becomes NaN
      {"trunc:25,3,3", {-0x1p90f, 0, 0, 0x1p90f}, {0x1p90f, 1, 1, 0x1p90f}}};
  for (const Sum& sum : sums) {
    for (const FormatSpec& format : {kBf16, kFp32}) {
      std::vector<uint32_t> a, b;
      for (const float x : sum.a) a.push_back(Encode(format, x));
      for (const float x : sum.b) b.push_back(Encode(format, x));
      const Factor row(format, 1, a.size(), a), column(format, 1, b.size(), b);
      ExpectDefinedProduct(row, column, ParseAccumulationMode(sum.mode));
    }
  }
}

TEST(Gemm, ABf16ResultIsRoundedOnceWhenItIsStored) {
  oracle::TestRandom random(10);
  const EncodePlan to_bf16 = MakeEncodePlan(kBf16);
  for (const char* mode : {"exact", "fp32", "hopper-fp8-fast", "fp16"}) {
    Factor a = RandomFactor(kE4M3fn, 7, 65, Spread::kNormal, Side::kLeft, random);
    Factor b = RandomFactor(kE5M2, 33, 65, Spread::kNormal, Side::kRight, random);
    a.SetCode(3, 5, kE4M3fn.NanCode());
    b.SetScales({3e38f}, {});  // beyond bf16: rounds to infinity
    std::vector<float> want = GemmResult(a, b, ParseAccumulationMode(mode));
    for (float& x : want) {
      x = Decode(kBf16, EncodeF32(to_bf16, std::bit_cast<uint32_t>(x), 0));
    }
    std::vector<float> out(want.size());
    WithEachBackend([&] {
      Gemm(a.Get(),
           b.Get(),
           ParseAccumulationMode(mode),
           FloatSpan(out.data(), {7, 33}, Place(), Element::kBfloat16));
      EXPECT_TRUE(SameMatrix(out, want, 33)) << mode;
    });
  }
}

TEST(Gemm, ColumnsOfAWiderMatrixAreAnOperand) {
  const std::vector<int8_t> wide = {1, 2, 99, 99, 3, 4, 99, 99, 5, 6, 99, 99};
  const MatrixSpan<const uint8_t> codes(reinterpret_cast<const uint8_t*>(wide.data()), 3, 4);
  const GemmOperand x{.format = kInt8, .codes8 = codes.Columns(0, 2), .rows = 3, .inner = 2};
  std::vector<float> out(9);
  Gemm(x, x, {}, out);
  EXPECT_EQ(out, (std::vector<float>{5, 11, 17, 11, 25, 39, 17, 39, 61}));
  std::vector<int32_t> sums(9);
  EXPECT_TRUE(GemmInt32(x, x, sums));
  EXPECT_EQ(sums, (std::vector<int32_t>{5, 11, 17, 11, 25, 39, 17, 39, 61}));
  const GemmOperand turned{
      .format = kInt8, .codes8 = codes.Columns(0, 2), .rows = 2, .inner = 3, .transposed = true};
  out.resize(4);
  Gemm(turned, turned, {}, out);
  EXPECT_EQ(out, (std::vector<float>{35, 44, 44, 56}));
}

TEST(Gemm, AStrideOfSegmentsIsNotReadWithoutSegments) {
  oracle::TestRandom random(9);
  Factor a = RandomFactor(kE4M3fn, 2, 4, Spread::kNormal, Side::kLeft, random);
  Factor b = RandomFactor(kE4M3fn, 2, 4, Spread::kNormal, Side::kRight, random);
  GemmScales scales;
  scales.segment_stride = 1;
  a.SetScales({2, 1000, 1000, 1000}, scales);
  scales.segment = 1;
  b.SetScales({1, 2, 3, 4}, scales);
  ExpectDefinedProduct(a, b, {});
}

TEST(Gemm, NamesOfTheTableEqualTheirDefinition) {
  oracle::TestRandom random(8);
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    std::string names(row.operands);
    std::erase(names, ' ');
    const std::vector<Format> formats = ParseFormatList(names);
    for (const Format& format : formats) {
      const Factor a = RandomFactor(format.spec, 3, 143, Spread::kFiniteCodes, Side::kLeft, random);
      const Factor b =
          RandomFactor(formats.back().spec, 19, 143, Spread::kFiniteCodes, Side::kRight, random);
      ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, row.mode));
    }
  }
}

}  // namespace
}  // namespace numsim
