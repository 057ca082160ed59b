// Products under block-scaled modes: each element against the sum of the unit (arith), on every
// backend, with scales in every layout, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/gemm/epilogue.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantized_matrix.h"
#include "tests/support/error_of.h"
#include "tests/support/gemm_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

AccumulationMode Mode(const char* name) { return ParseAccumulationMode(name); }

float ScaleOfCode(const FormatSpec& format, bool any, oracle::TestRandom& random) {
  if (!any) {
    const double x = std::ldexp(1 + UnitRandom(random), static_cast<int>(random.Below(12)) - 6);
    return Decode(format, Encode(format, x, {}, Overflow::kSaturate));
  }
  const uint32_t code = random.Next32() & format.CodeMask();
  return Decode(format, IsFiniteCode(format, code) || random.Below(20) == 0 ? code : 1);
}

struct Shape {
  size_t rows_a, rows_b, inner;
};
constexpr Shape kShapes[] = {
    {1, 1, 1}, {3, 5, 33}, {13, 33, 64}, {2, 70, 100}, {25, 17, 130}, {7, 9, 600}, {1, 2, 2049}};

// Scales of one vector or of blocks, in groups of rows, in either order of memory.
void SetUnitScales(Factor& factor,
                   const AccumulationMode& mode,
                   size_t segment,
                   bool any,
                   oracle::TestRandom& random) {
  GemmScales scales;
  scales.segment = segment;
  const size_t segments = segment == 0 ? 1 : factor.inner() / segment + 1;
  scales.row_group = random.Below(2) == 0 ? 1 : 4;
  const size_t groups = factor.rows() / scales.row_group + 1;
  const bool by_segment = random.Below(2) != 0;
  scales.row_stride = by_segment ? 1 : segments;
  scales.segment_stride = segment == 0 ? 0 : by_segment ? groups : 1;
  std::vector<float> data(groups * segments);
  for (float& x : data) x = ScaleOfCode(mode.format, any, random);
  factor.SetScales(data, scales);
}

std::vector<float> UnitScalesOf(const Factor& x, size_t row) {
  const size_t segment = x.scales().segment;
  const size_t n = segment == 0 ? 1 : (x.inner() + segment - 1) / segment;
  const GemmOperand operand = x.Get();
  std::vector<float> scales(n);
  for (size_t s = 0; s < n; ++s) scales[s] = operand.scales.At(row, s);
  return scales;
}

std::vector<float> SumsOfUnit(const Factor& a, const Factor& b, const AccumulationMode& mode) {
  std::vector<float> out;
  for (size_t i = 0; i < a.rows(); ++i) {
    const std::vector<float> sa = UnitScalesOf(a, i);
    for (size_t j = 0; j < b.rows(); ++j) {
      const std::vector<float> sb = UnitScalesOf(b, j);
      const Unrounded sum = Accumulate(mode,
                                       {a.format(), a.Row(i), {sa, a.scales().segment}},
                                       {b.format(), b.Row(j), {sb, b.scales().segment}});
      out.push_back(sum.kind == NumberKind::kNan ? std::bit_cast<float>(NanResult(mode))
                                                 : static_cast<float>(OddFloat64(sum)));
    }
  }
  return out;
}

struct UnitOfFormats {
  const char* mode;
  std::vector<FormatSpec> formats;
};

void PrintTo(const UnitOfFormats& unit, std::ostream* os) { *os << unit.mode; }

class BlockScaledGemm : public testing::TestWithParam<UnitOfFormats> {
 protected:
  AccumulationMode mode() const { return Mode(GetParam().mode); }
};

TEST_P(BlockScaledGemm, EqualsTheSumsOfTheUnitOnEveryBackend) {
  oracle::TestRandom random(52);
  const auto least = static_cast<size_t>(LeastBlock(mode()));
  for (const FormatSpec& fa : GetParam().formats) {
    for (const FormatSpec& fb : GetParam().formats) {
      for (const Spread spread : kSpreads) {
        for (int i = 0; i < 2; ++i) {
          const Shape& shape = kShapes[random.Below(std::size(kShapes))];
          const bool any = random.Below(3) == 0;
          const size_t segment = least * random.Below(3);
          Factor a = Factor::Random(fa, shape.rows_a, shape.inner, spread, Side::kLeft, random);
          Factor b = Factor::Random(fb, shape.rows_b, shape.inner, spread, Side::kRight, random);
          for (Factor* const x : {&a, &b}) {
            x->Store(random.Below(2) != 0 ? Storage::kCodes : Storage::kValues,
                     random.Below(2) != 0,
                     random.Below(3));
          }
          SetUnitScales(a, mode(), segment, any, random);
          SetUnitScales(b, mode(), random.Below(4) == 0 ? 0 : segment, any, random);
          const std::vector<float> want = SumsOfUnit(a, b, mode());
          WithEachBackend([&] {
            SetThreadCount(2);
            ASSERT_TRUE(SameMatrix(GemmResult(a, b, mode()), want, b.rows()))
                << a.Describe() << "\n"
                << b.Describe();
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gemm,
                         BlockScaledGemm,
                         testing::Values(UnitOfFormats{"mxf8f6f4",
                                                       {kE4M3fn, kE5M2, kE2M1fn, kE3M2fn}},
                                         UnitOfFormats{"mxf4", {kE2M1fn, kE2M1fn}},
                                         UnitOfFormats{"mxf4nvf4", {kE2M1fn, kE2M1fn}}),
                         [](const testing::TestParamInfo<UnitOfFormats>& param) {
                           return std::string(param.param.mode);
                         });

std::vector<float> Normals(size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  std::vector<float> x(n);
  for (float& value : x) {
    value = static_cast<float>(SpreadValue(Spread::kNormal, Side::kLeft, 0, 0, random));
  }
  return x;
}

QuantizeOptions Options(const FormatSpec& format, const char* layout, ScaleRule rule) {
  return {.format = format, .layout = ParseScaleLayout(layout), .scale_rule = rule};
}

// A matrix in MX or NVFP4 brings its scales in the way in which the unit takes them.
TEST(GemmOfBlocks, TakesQuantizedMatrices) {
  const MatrixShape shape{6, 96};
  const std::vector<float> x = Normals(shape.Elements(), 1), y = Normals(shape.Elements(), 2);
  struct Way {
    const char* mode;
    QuantizeOptions options;
    size_t block;
  };
  const Way ways[] = {
      {"mxf8f6f4", Options(kE4M3fn, "block:32", ScaleRule::kE8m0), 32},
      {"mxf8f6f4", Options(kE2M3fn, "block:32", ScaleRule::kPow2Ceil), 32},
      {"mxf4", Options(kE2M1fn, "block:32", ScaleRule::kE8m0), 32},
      {"mxf4nvf4", Options(kE2M1fn, "block:16", ScaleRule::kNvfp4), 16},
      {"mxf4nvf4", Options(kE2M1fn, "tile:2x16", ScaleRule::kNvfp4), 16},
  };
  for (const Way& way : ways) {
    const QuantizedMatrix a = Quantize(HostMatrix(x, shape), way.options);
    const QuantizedMatrix b = Quantize(HostMatrix(y, shape), way.options);
    const float ta = a.tensor_scale.View().Empty() ? 1 : a.tensor_scale.Span()[0];
    const float tb = b.tensor_scale.View().Empty() ? 1 : b.tensor_scale.Span()[0];
    std::vector<float> out(36);
    const AccumulationMode mode = Mode(way.mode);
    Gemm(AsOperand(a, false), AsOperand(b, false), mode, std::span(out));
    const auto row = [&](const QuantizedMatrix& m, size_t i, std::vector<float>& values) {
      std::vector<float> scales;
      for (size_t k = 0; k < shape.cols; ++k) {
        values.push_back(Decode(m.format, m.Codes8()[i * shape.cols + k]));
        const float stored = m.Scales()[m.layout.Index(i, k, shape.cols)];
        if (k % way.block != 0) continue;
        const FormatSpec& format = mode.format;
        const float t = &m == &a ? ta : tb;
        scales.push_back(
            Decode(format, Encode(format, double{stored} / t, {}, Overflow::kSaturate)));
        EXPECT_EQ(scales.back() * t, stored);
      }
      return scales;
    };
    for (size_t i = 0; i < 6; ++i) {
      for (size_t j = 0; j < 6; ++j) {
        std::vector<float> va, vb;
        const std::vector<float> sa = row(a, i, va), sb = row(b, j, vb);
        const double sum = OddFloat64(
            Accumulate(mode, {a.format, va, {sa, way.block}}, {b.format, vb, {sb, way.block}}));
        const auto want = static_cast<float>(sum * (double{ta} * double{tb}));
        EXPECT_EQ(out[i * 6 + j], want) << way.mode << " " << i << " " << j;
      }
    }
  }
}

// The scale of a tensor multiplies the finished sum in the way of the epilogue.
TEST(GemmOfBlocks, TensorScalesAreThoseOfTheEpilogue) {
  const std::vector<float> ones(32, 1), scales(2, 1.125f);
  const float ta = 0.1f, tb = 1.0f / 3;
  std::vector<float> stored_a(scales), stored_b(scales);
  for (float& s : stored_a) s *= ta;
  for (float& s : stored_b) s *= tb;
  GemmOperand a{.format = kE2M1fn, .values = ones, .rows = 1, .inner = 32}, b = a;
  a.scales = {.data = stored_a, .row_stride = 2, .segment = 16, .segment_stride = 1};
  a.scales.tensor = std::span(&ta, 1);
  b.scales = a.scales;
  b.scales.data = stored_b;
  b.scales.tensor = std::span(&tb, 1);
  const float sum = 32 * 1.125f * 1.125f;
  const auto under = [&](Epilogue epilogue) {
    float out = 0;
    Gemm(a, b, Mode("mxf4nvf4"), epilogue, std::span(&out, 1));
    return out;
  };
  EXPECT_EQ(under(Epilogue::kFloat64), static_cast<float>(sum * (double{ta} * double{tb})));
  EXPECT_EQ(under(Epilogue::kFloat32Product), sum * (ta * tb));
  EXPECT_EQ(under(Epilogue::kFloat32LeftFirst), sum * ta * tb);
  EXPECT_EQ(under(Epilogue::kFloat32RightFirst), sum * tb * ta);
  EXPECT_EQ(under(Epilogue::kCublasLt), sum * (ta * tb) + 0.0f);
}

TEST(GemmOfBlocks, WithoutProductsIsZeroAndNanIsThatOfTheUnit) {
  std::vector<float> out(4, 7);
  const GemmOperand none{.format = kE2M1fn, .rows = 2, .inner = 0};
  Gemm(none, none, Mode("mxf4"), std::span(out));
  EXPECT_EQ(out, std::vector<float>(4, 0));
  Gemm(none, none, Mode("mxf4"), Epilogue::kFloat32Product, std::span(out));
  EXPECT_EQ(out, std::vector<float>(4, 0));
  const std::vector<float> ones(4, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  GemmOperand a{.format = kE2M1fn, .values = ones, .rows = 1, .inner = 4};
  a.scales.data = std::span(&nan, 1);
  GemmOperand b{.format = kE2M1fn, .values = ones, .rows = 1, .inner = 4};
  for (const char* const mode : {"mxf8f6f4", "mxf4", "mxf4nvf4"}) {
    Gemm(a, b, Mode(mode), std::span(out).first(1));
    EXPECT_EQ(std::bit_cast<uint32_t>(out[0]), 0x7FFFFFFFu) << mode;
  }
}

// Returns the message with which the mode refuses this scale of block 1 of row 0 of a.
std::string RefusalOf(const char* mode,
                      float scale,
                      const FormatSpec& format = kE2M1fn,
                      size_t block = 32) {
  const std::vector<float> ones(64, 1);
  std::vector<float> scales(64 / block, 1);
  scales[1] = scale;
  GemmOperand a{.format = format, .values = ones, .rows = 1, .inner = 64};
  GemmOperand b = a;
  a.scales = {.data = scales, .row_stride = 64 / block, .segment = block, .segment_stride = 1};
  float out = 0;
  return ErrorOf([&] { Gemm(a, b, Mode(mode), std::span(&out, 1)); });
}

TEST(GemmOfBlocks, RefusesScalesAndFormatsThatTheUnitLacks) {
  EXPECT_EQ(RefusalOf("mxf8f6f4", 0.3f),
            "Gemm: scale 1 of vector 0 of 'a' is 0.3, which is not a number of e8m0fnu, as mode "
            "mxf8f6f4 takes them");
  const float inf = std::numeric_limits<float>::infinity();
  for (const float scale : {0.0f, -1.0f, 3.0f, 0x1p-128f, inf}) {
    EXPECT_THAT(RefusalOf("mxf8f6f4", scale), HasSubstr("number of e8m0fnu")) << scale;
    EXPECT_THAT(RefusalOf("mxf4", scale), HasSubstr("number of e8m0fnu")) << scale;
  }
  for (const float scale : {-1.0f, 480.0f, 1.0625f, 0x1p-10f, inf}) {
    EXPECT_THAT(RefusalOf("mxf4nvf4", scale), HasSubstr("number of ue4m3fn")) << scale;
  }
  for (const float scale : {0x1p-127f, 0x1p127f, 1.0f}) {
    EXPECT_EQ(RefusalOf("mxf8f6f4", scale), kNoError);
    EXPECT_EQ(RefusalOf("mxf4", scale), kNoError);
  }
  for (const float scale : {0.0f, 448.0f, 1.125f, 0x1p-9f}) {
    EXPECT_EQ(RefusalOf("mxf4nvf4", scale), kNoError) << scale;
  }
  EXPECT_EQ(RefusalOf("mxf4", 1, kE4M3fn),
            "Gemm: 'a' has the format e4m3fn, but mode mxf4 takes e2m1fn alone");
  EXPECT_EQ(
      RefusalOf("mxf8f6f4", 1, kE4M3fn, 16),
      "Gemm: 'a' has a scale for each 16 elements, but mode mxf8f6f4 takes one for each 32, or "
      "for a multiple of that");
  EXPECT_EQ(RefusalOf("mxf4nvf4", 1, kE2M1fn, 16), kNoError);
  EXPECT_THAT(RefusalOf("mxf4nvf4", 1, kE2M1fn, 8), HasSubstr("one for each 16"));
}

}  // namespace
}  // namespace numsim
