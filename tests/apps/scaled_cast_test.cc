// `numsim cast --scales-out`: scaled codes and their scales, by themselves and as operands of
// `numsim gemm`.
#include <bit>
#include <cmath>
#include <limits>

#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantized_matrix.h"
#include "tests/apps/bad_input.h"
#include "tests/support/quantized_codes.h"

namespace numsim::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Floats = std::vector<float>;
using Shape = std::vector<size_t>;

// Numbers of many magnitudes, the same for the same seed.
Floats MixedNumbers(size_t n, uint32_t seed) {
  Floats numbers(n);
  uint32_t state = seed;
  for (float& x : numbers) {
    state = state * 1664525 + 1013904223;
    const auto magnitude = static_cast<float>(state >> 8 & 0xFFFF);
    x = std::ldexp(magnitude - 0x7FFF, -static_cast<int>(state >> 28));
  }
  return numbers;
}

class ScaledCast : public BadInputTest {
 protected:
  void PutFloats(const std::string& name, const Floats& values, Shape shape) const {
    PutNpy(name, ElementType::kF32, values, std::move(shape));
  }
  Floats GetFloats(const std::string& name, const Shape& shape) const {
    const Array array = GetNpy(name);
    EXPECT_EQ(array.type, ElementType::kF32);
    EXPECT_EQ(array.shape, shape);
    return Floats(array.Data<float>(), array.Data<float>() + array.Elements());
  }
  std::vector<uint8_t> GetCodes(const std::string& name, const Shape& shape) const {
    const Array array = GetNpy(name);
    EXPECT_EQ(array.type, ElementType::kU8);
    EXPECT_EQ(array.shape, shape);
    return {array.Data<uint8_t>(), array.Data<uint8_t>() + array.Elements()};
  }
  // Casts in.npy to codes.npy and s.npy.
  void Cast(const std::string& options) const {
    EXPECT_EQ(Output("cast in.npy codes.npy --scales-out s.npy " + options), "");
  }
};

// e4m3fn ends at 448 = 0x7E: the largest magnitude of a row gets this code.
TEST_F(ScaledCast, RowsByHand) {
  PutFloats("in.npy", {14, -7, 0, -896, 448, 2, 0, -0.0f, 0}, {3, 3});
  Cast("--format e4m3fn --granularity row");
  EXPECT_THAT(GetFloats("s.npy", {3, 1}), ElementsAre(0x1p-5f, 2, 1));
  EXPECT_THAT(GetCodes("codes.npy", {3, 3}),
              ElementsAre(0x7E, 0xF6, 0x00, 0xFE, 0x76, 0x38, 0x00, 0x80, 0x00));
}

TEST_F(ScaledCast, ShapesOfScalesBroadcastToTheMatrix) {
  PutFloats("in.npy", {4, 2, 1, 8, 2, 16}, {2, 3});
  Cast("--format e4m3fn --scale pow2-floor");  // 2^floor(log2(A / 448))
  EXPECT_THAT(GetFloats("s.npy", {}), ElementsAre(0x1p-5f));
  Cast("--format e4m3fn --scale pow2-floor --granularity row");
  EXPECT_THAT(GetFloats("s.npy", {2, 1}), ElementsAre(0x1p-7f, 0x1p-5f));
  Cast("--format e4m3fn --scale pow2-floor --granularity column");
  EXPECT_THAT(GetFloats("s.npy", {1, 3}), ElementsAre(0x1p-6f, 0x1p-8f, 0x1p-5f));
  Cast("--format e4m3fn --scale pow2-floor --granularity block:2");
  EXPECT_THAT(GetFloats("s.npy", {2, 2}), ElementsAre(0x1p-7f, 0x1p-9f, 0x1p-6f, 0x1p-5f));
  Cast("--format e4m3fn --scale pow2-floor --granularity tile:2x2");
  EXPECT_THAT(GetFloats("s.npy", {1, 2}), ElementsAre(0x1p-6f, 0x1p-5f));
}

TEST_F(ScaledCast, RulesAreThoseOfTheirNames) {
  PutFloats("in.npy", {15, 1}, {1, 2});  // 15 / 448 is between 2^-5 and 2^-4
  const auto scale = [this](const std::string& rule) {
    Cast("--format e4m3fn --scale " + rule);
    return GetFloats("s.npy", {}).at(0);
  };
  EXPECT_EQ(scale("absmax"), 15.0f / 448);
  EXPECT_EQ(scale("pow2-floor"), 0x1p-5f);
  EXPECT_EQ(scale("pow2-ceil"), 0x1p-4f);
  EXPECT_EQ(scale("e8m0"), 0x1p-5f);
  EXPECT_EQ(scale("none"), 1);
}

// 15 * 2^5 = 480 is beyond 448: saturation unless the user asks for something else.
TEST_F(ScaledCast, SaturatesByDefault) {
  PutFloats("in.npy", {15, std::numeric_limits<float>::infinity()}, {1, 2});
  Cast("--format e4m3fn --scale pow2-floor");
  EXPECT_THAT(GetCodes("codes.npy", {1, 2}), ElementsAre(0x7E, 0x7E));
  Cast("--format e4m3fn --scale pow2-floor --overflow nonsaturate");
  EXPECT_THAT(GetCodes("codes.npy", {1, 2}), ElementsAre(0x7F, 0x7F));
}

// Every layout, rounding and width, against the library.
TEST_F(ScaledCast, EqualsTheLibrary) {
  const Floats values = MixedNumbers(21 * 10, 1);
  PutFloats("in.npy", values, {21, 10});
  for (const char* const granularity : {"tensor", "row", "column", "block:4", "tile:2x3"}) {
    for (const char* const format : {"int8", "e5m2", "fp16"}) {
      Cast(fmt::format(
          "--format {} --granularity {} --rounding sr --sr-bits 9 --seed 5", format, granularity));
      QuantizeOptions options;
      options.format = ParseFormat(format).spec;
      options.rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 9};
      options.layout = ParseScaleLayout(granularity);
      options.random = {{5, 0}, 0};
      const QuantizedMatrix expected = Quantize(HostMatrix(values, {21, 10}), options);
      const Array codes = GetNpy("codes.npy"), scales = GetNpy("s.npy");
      EXPECT_EQ(Floats(scales.Data<float>(), scales.Data<float>() + scales.Elements()),
                ScalesOf(expected));
      for (size_t i = 0; i < values.size(); ++i) {
        const uint32_t code =
            codes.type == ElementType::kU8 ? codes.Data<uint8_t>()[i] : codes.Data<uint16_t>()[i];
        ASSERT_EQ(code, Codes8Of(expected).empty() ? Codes16Of(expected)[i] : Codes8Of(expected)[i])
            << granularity << " " << format << " " << i;
      }
    }
  }
}

TEST_F(ScaledCast, Float64IsRoundedToFloat32First) {
  PutNpy("in.npy", ElementType::kF64, std::vector<double>{0.1, 14}, {1, 2});
  Cast("--format e4m3fn");
  const std::vector<uint8_t> wide = GetCodes("codes.npy", {1, 2});
  PutFloats("in.npy", {0.1f, 14}, {1, 2});
  Cast("--format e4m3fn");
  EXPECT_EQ(GetCodes("codes.npy", {1, 2}), wide);
}

TEST_F(ScaledCast, OneScaleServesAnyShape) {
  PutFloats("in.npy", {14, 7, 1, 0}, {4});
  Cast("--format e4m3fn");
  EXPECT_THAT(GetCodes("codes.npy", {4}), ElementsAre(0x7E, 0x76, 0x60, 0x00));
  PutFloats("in.npy", {}, {0, 3});
  Cast("--format e4m3fn --granularity row");
  EXPECT_TRUE(GetFloats("s.npy", {0, 1}).empty());
}

// The whole way: A and B to scaled codes, then the product of the codes with their scales.
class ScaledCastAndGemm : public ScaledCast {
 protected:
  static constexpr size_t kRowsA = 7, kRowsB = 5, kInner = 24;

  void SetUp() override {
    ScaledCast::SetUp();
    PutFloats("a.npy", a_, {kRowsA, kInner});
    PutFloats("b.npy", b_, {kRowsB, kInner});
  }
  void CastBoth(const std::string& options) const {
    Output("cast a.npy ac.npy --scales-out sa.npy " + options);
    Output("cast b.npy bc.npy --scales-out sb.npy " + options);
  }
  Floats Product(const std::string& options) const {
    Output("gemm ac.npy bc.npy out.npy --scale-a sa.npy --scale-b sb.npy " + options);
    return GetFloats("out.npy", {kRowsA, kRowsB});
  }
  static Floats LibraryProduct(const Floats& a, const Floats& b, const QuantizeOptions& options) {
    const QuantizedMatrix left = Quantize(HostMatrix(a, {kRowsA, kInner}), options);
    const QuantizedMatrix right = Quantize(HostMatrix(b, {kRowsB, kInner}), options);
    Floats out(kRowsA * kRowsB);
    Gemm(AsOperand(left, false), AsOperand(right, false), ParseAccumulationMode("hopper-fp8"), out);
    return out;
  }

  const Floats a_ = MixedNumbers(kRowsA * kInner, 2), b_ = MixedNumbers(kRowsB * kInner, 3);
};

// Powers of two keep every product of values and scales exact in float64.
TEST_F(ScaledCastAndGemm, IsTheProductOfTheDequantisedMatrices) {
  const std::string format = "--format e4m3fn ";
  CastBoth(format + "--granularity row --scale pow2-ceil");
  const auto dequantised = [&](const std::string& codes, const std::string& scales, size_t rows) {
    const std::vector<uint8_t> all = GetCodes(codes, {rows, kInner});
    const Floats scale = GetFloats(scales, {rows, 1});
    std::vector<double> values;
    for (size_t i = 0; i < all.size(); ++i) {
      values.push_back(static_cast<double>(Decode(ParseFormat("e4m3fn").spec, all[i])) *
                       scale[i / kInner]);
    }
    return values;
  };
  const std::vector<double> x = dequantised("ac.npy", "sa.npy", kRowsA);
  const std::vector<double> y = dequantised("bc.npy", "sb.npy", kRowsB);
  const Floats out = Product(format + "--accumulate exact");
  for (size_t i = 0; i < kRowsA; ++i) {
    for (size_t j = 0; j < kRowsB; ++j) {
      double sum = 0;
      for (size_t k = 0; k < kInner; ++k) sum += x[i * kInner + k] * y[j * kInner + k];
      EXPECT_EQ(out[i * kRowsB + j], static_cast<float>(sum)) << i << " " << j;
    }
  }
}

TEST_F(ScaledCastAndGemm, EqualsTheLibraryInEveryLayoutThatGemmReads) {
  for (const char* const granularity : {"tensor", "row", "block:8"}) {
    const std::string format = "--format e4m3fn ";
    CastBoth(format + "--granularity " + granularity);
    const std::string segment = std::string(granularity) == "block:8" ? " --segment 8" : "";
    QuantizeOptions options;
    options.format = ParseFormat("e4m3fn").spec;
    options.layout = ParseScaleLayout(granularity);
    EXPECT_EQ(Product(format + "--accumulate hopper-fp8" + segment),
              LibraryProduct(a_, b_, options))
        << granularity;
  }
}

// One operand in blocks, one with a scale per row.
TEST_F(ScaledCastAndGemm, RowsBesideBlocks) {
  Output("cast a.npy ac.npy --scales-out sa.npy --format e4m3fn --granularity block:8");
  Output("cast b.npy bc.npy --scales-out sb.npy --format e4m3fn --granularity row");
  const Floats out = Product("--format e4m3fn --segment 8");
  QuantizeOptions options;
  options.format = ParseFormat("e4m3fn").spec;
  options.layout = ParseScaleLayout("block:8");
  const QuantizedMatrix left = Quantize(HostMatrix(a_, {kRowsA, kInner}), options);
  options.layout = ParseScaleLayout("row");
  const QuantizedMatrix right = Quantize(HostMatrix(b_, {kRowsB, kInner}), options);
  Floats expected(kRowsA * kRowsB);
  Gemm(AsOperand(left, false), AsOperand(right, false), ParseAccumulationMode("fp32"), expected);
  EXPECT_EQ(out, expected);
}

// A stored as inner x rows, with one scale per column: the same codes and scales as by rows.
TEST_F(ScaledCastAndGemm, ColumnsOfATransposedOperandAreItsVectors) {
  CastBoth("--format e4m3fn --granularity row");
  const Floats expected = Product("--format e4m3fn");
  Floats columns(a_.size());
  for (size_t i = 0; i < a_.size(); ++i) columns[i % kInner * kRowsA + i / kInner] = a_[i];
  PutFloats("at.npy", columns, {kInner, kRowsA});
  Output("cast at.npy ac.npy --scales-out sa.npy --format e4m3fn --granularity column");
  EXPECT_EQ(Product("--format e4m3fn --transpose-a"), expected);
}

// A square matrix: scales of columns are not taken for those of rows.
TEST_F(ScaledCast, GemmRefusesScalesOfColumnsForRows) {
  PutFloats("in.npy", MixedNumbers(9, 4), {3, 3});
  Cast("--format e4m3fn --granularity column");
  Expect(BadCase{Words("gemm codes.npy codes.npy out.npy --format e4m3fn --scale-a s.npy"),
                 {"s.npy", "(1, 3)", "(3, 1)"}});
}

TEST_F(ScaledCast, BadInput) {
  PutFloats("in.npy", {1, 2, 3, 4}, {2, 2});
  PutFloats("vector.npy", {1, 2, 3, 4}, {4});
  PutNpy("codes.npy", ElementType::kU8, std::vector<uint8_t>(4, 1), {2, 2});
  std::filesystem::create_directory(Path("directory"));
  const auto cast = [](const std::string& words) {
    return Words("cast " + words + " --format e4m3fn");
  };
  const std::string scaled = "in.npy out.npy --scales-out s.npy ";
  Expect(std::vector<BadCase>{
      {cast("in.npy out.npy --granularity row"), {"--granularity", "--scales-out"}},
      {cast("in.npy out.npy --scale absmax"), {"--scale", "--scales-out"}},
      {cast(scaled + "--granularity rows"), {"'rows'", "row", "block:N"}},
      {cast(scaled + "--granularity block:0"), {"'block:0'"}},
      {cast(scaled + "--scale max"), {"'max'", "absmax", "pow2-ceil"}},
      {cast(scaled + "--profile cuda-13"), {"--profile", "--scales-out"}},
      {cast("codes.npy out.npy --scales-out s.npy --decode"), {"--decode", "--scales-out"}},
      {cast("codes.npy out.npy --scales-out s.npy"), {"codes.npy", "uint8"}},
      {cast("vector.npy out.npy --scales-out s.npy --granularity row"),
       {"vector.npy", "(4,)", "matrix"}},
      {cast("in.npy s.npy --scales-out ./s.npy"), {"--scales-out", "OUT"}},
      {cast("in.npy out.npy --scales-out directory"), {"directory"}},
      {cast("in.npy out.npy --scales-out missing/s.npy"), {"missing/s.npy"}},
      {cast("in.npy directory --scales-out s.npy"), {"directory"}},  // and no scales either
      {Words("cast in.npy out.npy --scales-out s.npy --format fp32"), {"fp32", "16 bits"}},
  });
}

TEST_F(ScaledCast, TellsE4M3FromTheFormatOfPapers) {
  PutFloats("in.npy", {1}, {1});
  const Outcome e4m3 = Numsim("cast in.npy out.npy --format e4m3");
  EXPECT_EQ(e4m3.exit_code, 0);
  EXPECT_EQ(e4m3.out, "");
  EXPECT_EQ(e4m3.err, "numsim: note: e4m3 ends at 240; OCP E4M3 of papers is e4m3fn\n");
  EXPECT_EQ(Numsim("cast in.npy out.npy --format e4m3fn").err, "");
  EXPECT_EQ(Numsim("cast in.npy out.npy --format e4m3b11fnuz").err, "");
  EXPECT_THAT(Output("cast --help"), HasSubstr("OCP E4M3 of papers is e4m3fn"));
}

}  // namespace
}  // namespace numsim::apps
