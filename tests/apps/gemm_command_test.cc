// `numsim gemm`: by hand, and bit for bit against loops over decoded codes.
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Floats = std::vector<float>;

// Codes of rows x inner matrices; `stored` gives the file's order.
template <typename Code>
struct Matrix {
  size_t rows, inner;
  std::vector<Code> codes;

  std::vector<Code> Stored(bool transposed) const {
    if (!transposed) return codes;
    std::vector<Code> columns(codes.size());
    for (size_t i = 0; i < codes.size(); ++i) columns[i % inner * rows + i / inner] = codes[i];
    return columns;
  }
  std::vector<size_t> Shape(bool transposed) const {
    return transposed ? std::vector<size_t>{inner, rows} : std::vector<size_t>{rows, inner};
  }
};

// Finite codes of `format`, the same for the same seed.
template <typename Code>
Matrix<Code> Codes(const FormatSpec& format, size_t rows, size_t inner, uint32_t seed) {
  Matrix<Code> matrix{rows, inner, std::vector<Code>(rows * inner)};
  uint32_t state = seed;
  for (Code& code : matrix.codes) {
    do {
      state = state * 1664525 + 1013904223;
      code = static_cast<Code>(state >> 11 & format.CodeMask());
    } while (!std::isfinite(Decode(format, code)));
  }
  return matrix;
}

class GemmCommand : public ProgramTest {
 protected:
  static ElementType TypeOf(uint8_t) { return ElementType::kU8; }
  static ElementType TypeOf(uint16_t) { return ElementType::kU16; }

  template <typename Code>
  void Put(const std::string& name, const Matrix<Code>& matrix, bool transposed = false) const {
    PutNpy(name, TypeOf(Code{}), matrix.Stored(transposed), matrix.Shape(transposed));
  }

  void PutFloats(const std::string& name, const Floats& values, std::vector<size_t> shape) const {
    PutNpy(name, ElementType::kF32, values, std::move(shape));
  }

  // The start of the line on stdout.
  static std::string Results(size_t rows_a, size_t rows_b) {
    return fmt::format("{} x {} results of ", rows_a, rows_b);
  }

  // The product that `gemm a.npy b.npy out.npy OPTIONS` writes.
  Floats Product(const std::string& options, size_t rows_a, size_t rows_b) const {
    EXPECT_THAT(Output("gemm a.npy b.npy out.npy " + options), StartsWith(Results(rows_a, rows_b)));
    const Array out = GetNpy("out.npy");
    EXPECT_EQ(out.type, ElementType::kF32);
    EXPECT_EQ(out.shape, (std::vector<size_t>{rows_a, rows_b}));
    return Floats(out.Data<float>(), out.Data<float>() + out.Elements());
  }

  static void ExpectSameBits(const Floats& got, const Floats& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
          << "element " << i << ": " << got[i] << ", expected " << expected[i];
    }
  }
};

// [1 -2 3; -128 127 0] and [4 5 6; 1 1 1]: 1*4 - 2*5 + 3*6 = 12, and so on.
TEST_F(GemmCommand, MultipliesInt8ByHand) {
  PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>{1, 0xFE, 3, 0x80, 127, 0}, {2, 3});
  PutNpy("b.npy", ElementType::kU8, std::vector<uint8_t>{4, 5, 6, 1, 1, 1}, {2, 3});
  ExpectSameBits(Product("--format int8", 2, 2), {12, 2, 123, -1});
}

// Codes 0x38 1, 0x3C 1.5, 0xC0 -2, 0x01 2^-9, 0x7E 448.
TEST_F(GemmCommand, MultipliesE4M3fnByHand) {
  PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>{0x38, 0x3C, 0xC0, 0x01}, {2, 2});
  PutNpy("b.npy", ElementType::kU8, std::vector<uint8_t>{0x3C, 0x38, 0x7E, 0x01}, {2, 2});
  ExpectSameBits(Product("--format e4m3fn", 2, 2),
                 {3, 448 + 1.5f / 512, -3 + 1.0f / 512, -896 + 0x1p-18f});
}

// 1.5 * 3 of e4m3fn (codes 0x3C, 0x44) by fp16's code of 0.25 (0x3400) and -2 (0xC000).
TEST_F(GemmCommand, TakesASecondFormat) {
  PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>{0x3C, 0x44}, {1, 2});
  PutNpy("b.npy", ElementType::kU16, std::vector<uint16_t>{0x3400, 0xC000}, {1, 2});
  ExpectSameBits(Product("--format e4m3fn --format-b fp16", 1, 1), {1.5f * 0.25f - 6});
}

TEST_F(GemmCommand, EqualsALoopOfFusedMultiplyAddsInEveryStorage) {
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec;
  const auto a = Codes<uint8_t>(e4m3fn, 7, 45, 1), b = Codes<uint8_t>(e4m3fn, 5, 45, 2);
  Floats expected;
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t j = 0; j < b.rows; ++j) {
      float sum = 0;
      for (size_t k = 0; k < a.inner; ++k) {
        sum = std::fma(Decode(e4m3fn, a.codes[i * a.inner + k]),
                       Decode(e4m3fn, b.codes[j * b.inner + k]),
                       sum);
      }
      expected.push_back(sum);
    }
  }
  for (const bool transposed_a : {false, true}) {
    for (const bool transposed_b : {false, true}) {
      Put("a.npy", a, transposed_a);
      Put("b.npy", b, transposed_b);
      const std::string options = std::string("--format e4m3fn") +
                                  (transposed_a ? " --transpose-a" : "") +
                                  (transposed_b ? " --transpose-b" : "");
      ExpectSameBits(Product(options, a.rows, b.rows), expected);
      ExpectSameBits(Product(options + " --accumulate fp32 --threads 2", a.rows, b.rows), expected);
    }
  }
}

// Sums of e2m3fn products are multiples of 2^-6 below 2^14: float64 holds them exactly.
TEST_F(GemmCommand, ExactIsTheExactSumRoundedOnce) {
  const FormatSpec format = ParseFormat("e2m3fn").spec;
  const auto a = Codes<uint8_t>(format, 3, 200, 5), b = Codes<uint8_t>(format, 4, 200, 6);
  Put("a.npy", a);
  Put("b.npy", b);
  Floats expected;
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t j = 0; j < b.rows; ++j) {
      double sum = 0;
      for (size_t k = 0; k < a.inner; ++k) {
        sum += static_cast<double>(Decode(format, a.codes[i * a.inner + k])) *
               Decode(format, b.codes[j * b.inner + k]);
      }
      expected.push_back(static_cast<float>(sum));
    }
  }
  ExpectSameBits(Product("--format e2m3fn --accumulate exact", 3, 4), expected);
}

// 2^12 + 1 - 2^12 in fp16, whose spacing at 2^12 is 4: 0. Exactly: 1.
TEST_F(GemmCommand, TheRuleIsTheOneNamed) {
  PutFloats("a.npy", {4096, 1, -4096}, {1, 3});
  PutFloats("b.npy", {1, 1, 1}, {1, 3});
  ExpectSameBits(Product("--format fp16", 1, 1), {1});
  ExpectSameBits(Product("--format fp16 --accumulate fp16", 1, 1), {0});
  ExpectSameBits(Product("--format fp16 --accumulation-mode exact", 1, 1), {1});
}

TEST_F(GemmCommand, Int8IsExactByDefaultAndOnlyAlone) {
  // 127^2 * 2000 + 1 needs 25 bits: float32 sums lose the 1 when it comes first.
  std::vector<uint8_t> a(2001, 127), b(2001, 127);
  a[0] = b[0] = 1;
  PutNpy("a.npy", ElementType::kU8, a, {1, 2001});
  PutNpy("b.npy", ElementType::kU8, b, {1, 2001});
  ExpectSameBits(Product("--format int8", 1, 1), {32258001.0f});
  Floats values(2001, 127);
  values[0] = 1;
  float sum = 0;
  for (const float x : values) sum = std::fma(x, x, sum);
  ASSERT_NE(sum, 32258001.0f);
  PutFloats("b.npy", values, {1, 2001});
  ExpectSameBits(Product("--format int8 --format-b fp32", 1, 1), {sum});
}

TEST_F(GemmCommand, TakesFloat32OnTheGridLikeItsCodes) {
  const FormatSpec format = ParseFormat("e5m2").spec;
  const auto a = Codes<uint8_t>(format, 3, 9, 3), b = Codes<uint8_t>(format, 2, 9, 4);
  Put("a.npy", a);
  Put("b.npy", b);
  const Floats expected = Product("--format e5m2 --accumulate hopper-fp8", 3, 2);
  Floats values;
  for (const uint8_t code : a.codes) values.push_back(Decode(format, code));
  PutFloats("a.npy", values, {3, 9});
  ExpectSameBits(Product("--format e5m2 --accumulate hopper-fp8", 3, 2), expected);
}

TEST_F(GemmCommand, TakesCodesOf32Bits) {
  const float x = 1.1f;
  PutNpy("a.npy", ElementType::kU32, std::vector<uint32_t>{std::bit_cast<uint32_t>(x)}, {1, 1});
  PutFloats("b.npy", {3}, {1, 1});
  ExpectSameBits(Product("--format fp32", 1, 1), {x * 3});
}

TEST_F(GemmCommand, NanAndInfinityAreValuesOfTheGridWhereTheFormatHasThem) {
  const float inf = std::numeric_limits<float>::infinity();
  PutFloats("a.npy", {inf, -1, NAN, 1}, {2, 2});
  PutFloats("b.npy", {2, 1}, {1, 2});
  const Floats out = Product("--format e5m2", 2, 1);
  EXPECT_EQ(out[0], inf);
  EXPECT_TRUE(std::isnan(out[1]));
}

TEST_F(GemmCommand, ScalesRowsByTensorOrByRow) {
  PutFloats("a.npy", {1, 2, 3, 4}, {2, 2});
  PutFloats("b.npy", {1, 1, 0, 1}, {2, 2});
  PutFloats("sa.npy", {0.5f, 10}, {2});
  PutFloats("one.npy", {3}, {});
  ExpectSameBits(Product("--format bf16 --scale-a sa.npy --scale-b one.npy", 2, 2),
                 {4.5f, 3, 210, 120});
  ExpectSameBits(Product("--format bf16 --scale-b sa.npy", 2, 2), {1.5f, 20, 3.5f, 40});
  PutFloats("sa.npy", {0.5f, 10}, {2, 1});
  ExpectSameBits(Product("--format bf16 --scale-a sa.npy", 2, 2), {1.5f, 1, 70, 40});
  PutFloats("one.npy", {3}, {1});
  ExpectSameBits(Product("--format bf16 --scale-a one.npy", 2, 2), {9, 6, 21, 12});
}

// Segments of 2 of an inner dimension of 5; the last is shorter.
TEST_F(GemmCommand, ScalesSegmentsAndAddsThemInOrder) {
  PutFloats("a.npy", {1, 1, 1, 1, 1}, {1, 5});
  PutFloats("b.npy", {1, 2, 3, 4, 5, -1, 0, 1, 0, 1}, {2, 5});
  PutFloats("sa.npy", {1, 10, 100}, {1, 3});
  PutFloats("sb.npy", {1, 2, 3, 4, 5, 0x1p25f}, {2, 3});
  ExpectSameBits(Product("--format bf16 --scale-a sa.npy --segment 2", 1, 2), {573, 109});
  ExpectSameBits(Product("--format bf16 --scale-a sa.npy --scale-b sb.npy --segment 2", 1, 2),
                 {3 + 140 + 1500, -4.0f + 50.0f + 100 * 0x1p25f});
  // One scale beside segments.
  PutFloats("sb.npy", {2}, {});
  ExpectSameBits(Product("--format bf16 --scale-a sa.npy --scale-b sb.npy --segment 2", 1, 2),
                 {1146, 218});
}

// Two segments of 32: the second, 2^-24 of the first, is cut to float32 once and not added to it.
TEST_F(GemmCommand, TakesTheScalesIntoTheUnit) {
  Floats a(64, 0), b(64, 1);
  a[0] = a[32] = 1;
  a[33] = 0.5f;
  PutFloats("a.npy", a, {1, 64});
  PutFloats("b.npy", b, {1, 64});
  PutFloats("sa.npy", {1, 0x1p-24f}, {1, 2});
  const std::string options = "--format e4m3fn --scale-a sa.npy --segment 32 --accumulation-mode ";
  ExpectSameBits(Product(options + "fp32", 1, 1), {1 + 0x1p-23f});
  ExpectSameBits(Product(options + "mxf8f6f4", 1, 1), {1});
  EXPECT_EQ(
      Output("gemm a.npy b.npy out.npy " + options + "mxf8f6f4"),
      "1 x 1 results of 64 products, e4m3fn by e4m3fn, accumulation mode mxf8f6f4 "
      "(trunc:25,32, scales e8m0fnu), reported [MMA-Sim]\n"
      "epilogue          float64: fl32(fl64(S * (sa * sb))), sa and sb of the tensors; others "
      "entered the sum\n");
  PutFloats("sa.npy", {1, 0.75f}, {1, 2});
  EXPECT_THAT(Numsim("gemm a.npy b.npy out.npy " + options + "mxf8f6f4").err,
              HasSubstr("scale 1 of vector 0 of 'a' is 0.75, which is not a number of e8m0fnu"));
}

// NVFP4 as `numsim cast` writes it with two levels of scales.
TEST_F(GemmCommand, MultipliesNvfp4WithItsTwoLevelsOfScales) {
  Floats x(2 * 40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) - 4.3f;
  PutFloats("x.npy", x, {2, 40});
  const std::string cast =
      "cast x.npy q.npy --format e2m1fn --granularity block:16 --scale nvfp4 --scales-out s.npy";
  EXPECT_EQ(Numsim(cast).exit_code, 0);
  const Array both = GetNpy("s.npy");
  EXPECT_EQ(Numsim(cast + " --tensor-scale-out t.npy").exit_code, 0);
  const Array alone = GetNpy("s.npy"), tensor = GetNpy("t.npy");
  ASSERT_EQ(alone.shape, (std::vector<size_t>{2, 3}));
  ASSERT_TRUE(tensor.shape.empty());
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(alone.Data<float>()[i] * tensor.Data<float>()[0], both.Data<float>()[i]);
  }
  const std::string mode =
      "gemm q.npy q.npy out.npy --format e2m1fn --accumulation-mode mxf4nvf4 "
      "--scale-a s.npy --scale-b s.npy --segment 16";
  EXPECT_EQ(Numsim(mode + " --tensor-scale-a t.npy --tensor-scale-b t.npy").exit_code, 0);
  const Array out = GetNpy("out.npy");
  // Sums so small in range are exact: T^2 times the sum of the scaled codes.
  const Array codes = GetNpy("q.npy");
  double sum = 0;
  for (size_t k = 0; k < 40; ++k) {
    const double value = Decode(ParseFormat("e2m1fn").spec, codes.Data<uint8_t>()[k]) *
                         double{alone.Data<float>()[k / 16]};
    sum += value * value;
  }
  const double t = tensor.Data<float>()[0];
  EXPECT_EQ(out.Data<float>()[0], static_cast<float>(sum * (t * t)));
  // The product of both levels is not what the unit takes.
  PutFloats("s.npy", {both.Data<float>(), both.Data<float>() + 6}, {2, 3});
  EXPECT_THAT(Numsim(mode).err, HasSubstr("not a number of ue4m3fn"));
  EXPECT_THAT(
      Numsim("cast x.npy q.npy --format e2m1fn --scales-out s.npy --tensor-scale-out t.npy").err,
      HasSubstr("--tensor-scale-out: the rule absmax has no scale of the tensor"));
  EXPECT_THAT(Numsim("gemm q.npy q.npy out.npy --format e2m1fn --tensor-scale-a t.npy").err,
              HasSubstr("t.npy: the scale of a tensor without scales of its groups"));
}

// Habits of other projects: division, and NaN that makes scales NaN.
TEST_F(GemmCommand, CastDividesAndMakesScalesNan) {
  PutFloats("x.npy", {1.1423687934875488f, 7.470498530892655e-06f}, {1, 2});
  const std::string cast = "cast x.npy q.npy --format e4m3fn --scales-out s.npy";
  EXPECT_EQ(Numsim(cast).exit_code, 0);
  EXPECT_EQ(GetNpy("q.npy").Data<uint8_t>()[1], 1);
  EXPECT_EQ(Numsim(cast + " --divide").exit_code, 0);
  EXPECT_EQ(GetNpy("q.npy").Data<uint8_t>()[1], 2);
  PutFloats("x.npy", {std::numeric_limits<float>::quiet_NaN(), 3, 0, 0}, {1, 4});
  const std::string mx = "cast x.npy q.npy --format mxfp4 --scales-out s.npy";
  EXPECT_EQ(Numsim(mx).exit_code, 0);
  EXPECT_EQ(GetNpy("s.npy").Data<float>()[0], 0.5f);
  EXPECT_EQ(Numsim(mx + " --nan-scales").exit_code, 0);
  EXPECT_TRUE(std::isnan(GetNpy("s.npy").Data<float>()[0]));
  EXPECT_THAT(Numsim("cast x.npy q.npy --format e4m3fn --divide").err, HasSubstr("--scales-out"));
}

// A word for a format with scales stands for its elements, block and rule.
TEST_F(GemmCommand, WordsStandForFormatsWithScales) {
  Floats x(3 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 5.7f;
  PutFloats("x.npy", x, {3, 64});
  const auto files = [&](const std::string& format) {
    EXPECT_EQ(Numsim("cast x.npy q.npy --scales-out s.npy --format " + format).exit_code, 0);
    return Bytes(Path("q.npy")) + Bytes(Path("s.npy"));
  };
  EXPECT_EQ(files("mxfp4"), files("e2m1fn --granularity block:32 --scale e8m0"));
  EXPECT_EQ(files("NVFP4"), files("e2m1fn --granularity block:16 --scale nvfp4"));
  EXPECT_EQ(files("mxfp8 --scale e8m0"), files("e4m3fn --granularity block:32 --scale e8m0"));
  const std::string scales = " --scale-a s.npy --scale-b s.npy --accumulation-mode mxf8f6f4";
  EXPECT_EQ(Numsim("gemm q.npy q.npy out.npy --format mxfp8" + scales).exit_code, 0);
  const Array words = GetNpy("out.npy");
  EXPECT_EQ(Numsim("gemm q.npy q.npy out.npy --format e4m3fn --segment 32" + scales).exit_code, 0);
  EXPECT_EQ(GetNpy("out.npy").bytes, words.bytes);
  EXPECT_THAT(Numsim("cast x.npy q.npy --format mxfp4").err,
              HasSubstr("--format mxfp4: a format with scales; --scales-out FILE is missing"));
  EXPECT_THAT(Numsim("cast x.npy q.npy --format mxfp4 --scales-out s.npy --scale absmax").err,
              HasSubstr("--scale absmax: mxfp4 is e8m0"));
  EXPECT_THAT(
      Numsim("gemm q.npy q.npy out.npy --format mxfp4 --format-b nvfp4 --scale-a s.npy").err,
      HasSubstr("--format-b nvfp4: its blocks are not those of --format"));
}

TEST_F(GemmCommand, SaysWhatItComputed) {
  PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>(6, 0x38), {2, 3});
  PutNpy("b.npy", ElementType::kU8, std::vector<uint8_t>(12, 0x38), {3, 4});
  EXPECT_EQ(Output("gemm a.npy b.npy out.npy --format e4m3fn --format-b e5m2 --transpose-b "
                   "--accumulation-mode hopper-fp8"),
            "2 x 4 results of 3 products, e4m3fn by e5m2, accumulation mode hopper-fp8 "
            "(trunc:13,32,128)\n");
  EXPECT_EQ(Output("gemm a.npy b.npy out.npy --format int8 --transpose-b"),
            "2 x 4 results of 3 products, int8 by int8, accumulation mode exact\n");
}

TEST_F(GemmCommand, AnEmptyInnerDimensionGivesZeros) {
  PutFloats("a.npy", {}, {2, 0});
  PutFloats("b.npy", {}, {3, 0});
  ExpectSameBits(Product("--format bf16", 2, 3), Floats(6, 0.0f));
  PutFloats("a.npy", {}, {0, 4});
  PutFloats("b.npy", {1, 2, 3, 4}, {1, 4});
  ExpectSameBits(Product("--format bf16", 0, 1), {});
}

class GemmErrors : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>{1, 2, 3, 4, 5, 0x1F}, {2, 3});
    PutNpy("b.npy", ElementType::kU8, std::vector<uint8_t>(12, 1), {3, 4});
    PutNpy("u16.npy", ElementType::kU16, std::vector<uint16_t>(6, 1), {2, 3});
    PutNpy("vector.npy", ElementType::kU8, std::vector<uint8_t>(3, 1), {3});
    PutNpy("values.npy", ElementType::kF32, std::vector<float>{1, 2, 3, 1, 1.03f, 5}, {2, 3});
    PutNpy("nan.npy", ElementType::kF32, std::vector<float>{1, 2, NAN, 1, 1, 5}, {2, 3});
    PutNpy("wide.npy", ElementType::kF64, std::vector<double>(6, 0.1), {2, 3});
    PutNpy("scales.npy", ElementType::kF32, std::vector<float>(3, 1), {3});
    PutNpy("blocks.npy", ElementType::kF32, std::vector<float>(4, 1), {2, 2});
    PutNpy("row.npy", ElementType::kU8, std::vector<uint8_t>{}, {size_t{1} << 31, 0});
    PutNpy("out.npy", ElementType::kF32, std::vector<float>{42});
    std::filesystem::create_directory(Path("directory"));
  }
  static std::vector<std::string> Gemm(const std::string& words) {
    return Words("gemm " + words + " --format e4m3fn");
  }
};

TEST_F(GemmErrors, Arguments) {
  Expect(std::vector<BadCase>{
      {Gemm("a.npy a.npy"), {"OUT is missing", "--compare"}},
      {{"gemm", "a.npy", "a.npy", "out.npy"}, {"--format"}},
      {{"gemm", "a.npy", "", "out.npy", "--format", "e4m3fn"}, {"B"}},
      {{"gemm", "a.npy", "a.npy", "out.npy", "--format", "nope"}, {"'nope'"}},
      {Gemm("a.npy a.npy out.npy --format-b nope"), {"'nope'"}},
      {Gemm("a.npy a.npy out.npy --accumulate nope"), {"'nope'", "exact", "trunc"}},
      {Gemm("a.npy a.npy out.npy --accumulate trunc:14"), {"trunc:14"}},
      {Gemm("a.npy a.npy out.npy --segment 0"), {"--segment", "0"}},
      {Gemm("a.npy a.npy out.npy --segment 2"), {"--segment", "--scale-a"}},
  });
}

TEST_F(GemmErrors, FilesAndElements) {
  Expect(std::vector<BadCase>{
      {Gemm("missing.npy a.npy out.npy"), {"missing.npy"}},
      {Gemm("a.npy missing.npy out.npy"), {"missing.npy"}},
      {Gemm("a.npy a.npy directory"), {"directory"}},
      {Gemm("a.npy a.npy missing/out.npy"), {"missing/out.npy"}},
      {Gemm("u16.npy a.npy out.npy"), {"u16.npy", "uint16", "uint8", "float32", "e4m3fn"}},
      {Gemm("a.npy wide.npy out.npy"), {"wide.npy", "float64", "float32"}},
      {Gemm("a.npy a.npy out.npy --format-b bf16"), {"a.npy", "uint8", "uint16", "bf16"}},
      {Gemm("a.npy a.npy out.npy --format-b e2m1fn"), {"a.npy", "element 5", "0x1f", "4 bits"}},
      {Gemm("values.npy a.npy out.npy"), {"values.npy", "element 4", "1.03", "e4m3fn"}},
      {Gemm("a.npy nan.npy out.npy --format-b int8"), {"nan.npy", "element 2", "nan", "int8"}},
  });
}

TEST_F(GemmErrors, Shapes) {
  Expect(std::vector<BadCase>{
      {Gemm("a.npy vector.npy out.npy"), {"vector.npy", "(3,)", "matrix"}},
      {Gemm("a.npy b.npy out.npy"), {"a.npy", "(2, 3)", "b.npy", "(3, 4)", "3 and 4"}},
      {Gemm("a.npy b.npy out.npy --transpose-a"), {"a.npy", "(2, 3)", "transposed", "2 and 4"}},
      {Gemm("row.npy row.npy out.npy"), {"row.npy", "(2147483648, 2147483648)", "too large"}},
  });
}

TEST_F(GemmErrors, Scales) {
  const std::string product = "a.npy a.npy out.npy ";
  Expect(std::vector<BadCase>{
      {Gemm(product + "--scale-a missing.npy"), {"missing.npy"}},
      {Gemm(product + "--scale-a a.npy"), {"a.npy", "uint8"}},
      {Gemm(product + "--scale-a scales.npy"), {"scales.npy", "(3,)", "a.npy", "(2,)"}},
      {Gemm(product + "--scale-b blocks.npy"), {"blocks.npy", "(2, 2)", "(2, 1)", "--segment"}},
      {Gemm(product + "--scale-b blocks.npy --segment 1"), {"blocks.npy", "(2, 2)", "(2, 3)"}},
  });
}

// A is 1 in the last eight places of 11528: the sum is 8, or 0 if cuBLASLt leaves these out.
TEST_F(GemmCommand, SplitsTheInnerDimensionAsCublasLtDoes) {
  std::vector<uint16_t> a(11528), b(2 * 11528, 0x3F80);
  std::fill(a.end() - 8, a.end(), uint16_t{0x3F80});
  PutNpy("a.npy", ElementType::kU16, a, {1, 11528});
  PutNpy("b.npy", ElementType::kU16, b, {2, 11528});
  const std::string split = "--format bf16 --accumulation-mode hopper-bf16 --split-k 9 ";
  ExpectSameBits(Product(split, 1, 2), {8, 8});
  ExpectSameBits(Product(split + "--split-partition cublaslt", 1, 2), {0, 0});
  const Outcome outcome =
      Numsim("gemm a.npy b.npy out.npy " + split + "--split-partition cublaslt");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(
      outcome.out,
      "1 x 2 results of 11528 products, bf16 by bf16, accumulation mode hopper-bf16 "
      "(trunc:25,16)\n"
      "split             9 parts of 1280 products, cublaslt with k-tiles of 64; sums added in "
      "float32\n"
      "left out          the last 8 of 11528 products are not summed, as cuBLASLt does\n");
}

// 257 * 1 + 255 * 1 in parts of 257 and 255 products: in bf16 the first part is 256.
TEST_F(GemmCommand, RoundsSumsOfPartsAndTakesTheirTile) {
  PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>(512, 0x38), {1, 512});
  PutNpy("b.npy", ElementType::kU8, std::vector<uint8_t>(512, 0x38), {1, 512});
  const std::string split = "--format e4m3fn --split-k 2 --split-tile 257";
  ExpectSameBits(Product(split, 1, 1), {512});
  ExpectSameBits(Product(split + " --split-partials bf16", 1, 1), {511});
  EXPECT_THAT(
      Output("gemm a.npy b.npy out.npy --split-partials bf16 " + split),
      HasSubstr("split             2 parts of 257 products, contiguous with k-tiles of 257; "
                "sums rounded to bf16 and added in float32\n"));
  EXPECT_THAT(Output("gemm a.npy b.npy out.npy --format e4m3fn --split-k 3"),
              HasSubstr("3 parts of 256 products, contiguous with k-tiles of 128;"));
}

TEST_F(GemmCommand, ASplitThatDoesNotExistIsRefused) {
  PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>(8, 0x38), {1, 8});
  const std::string gemm = "gemm a.npy a.npy out.npy --format e4m3fn ";
  const std::pair<const char*, const char*> cases[] = {
      {"--split-k 0", "--split-k"},
      {"--split-tile 64", "--split-tile requires --split-k"},
      {"--split-k 2 --split-partition cublas", "did you mean cublaslt?"},
      {"--split-k 2 --split-partials bf61", "bf61"},
      {"--split-k 9 --split-partition cublaslt", "9 parts of 8 products"}};
  for (const auto& [options, text] : cases) {
    const Outcome outcome = Numsim(gemm + options);
    EXPECT_EQ(outcome.exit_code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(text));
    EXPECT_FALSE(std::filesystem::exists(Path("out.npy"))) << options;
  }
}

}  // namespace
}  // namespace numsim::apps
