// Quantised matrices on the device against those of the CPU, bit for bit.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantized_matrix.h"
#include "tests/reference/inputs.h"
#include "tests/support/device_test.h"
#include "tests/support/quantized_codes.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr MatrixShape kShapes[] = {{1, 1},
                                   {1, 777},
                                   {777, 1},
                                   {3, 5},
                                   {17, 33},
                                   {5, 64},
                                   {64, 1024},
                                   {129, 4097},
                                   {7, 20000},
                                   {3, 40000},
                                   {304, 2048}};
constexpr const char* kLayouts[] = {"tensor",
                                    "row",
                                    "column",
                                    "block:5",
                                    "block:16",
                                    "block:32",
                                    "tile:3x24",
                                    "tile:16x1",
                                    "tile:128x128"};
constexpr ScaleRule kRules[] = {ScaleRule::kAbsmax,
                                ScaleRule::kPow2Floor,
                                ScaleRule::kPow2Ceil,
                                ScaleRule::kE8m0,
                                ScaleRule::kNone,
                                ScaleRule::kNvfp4,
                                ScaleRule::kNvfp4Inverse,
                                ScaleRule::kE8m0Even,
                                ScaleRule::kE8m0Ulp,
                                ScaleRule::kE8m0ThreeEighths,
                                ScaleRule::kE8m0Ceil,
                                ScaleRule::kE4m3};

// A matrix whose rows differ: numbers about 2^(row mod 9), rows of zeros, of subnormals, of huge
// numbers, of infinities and NaN alone; and single infinities and NaN.
std::vector<float> Numbers(MatrixShape shape, Element element) {
  oracle::TestRandom random(shape.Elements());
  std::vector<float> values(shape.Elements());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / shape.cols;
    const uint32_t word = random.Next32();
    float x = std::ldexp(static_cast<float>(word >> 8), static_cast<int>(row % 9) - 24);
    if (row % 16 == 3) x = 0;
    if (row % 16 == 5) x = std::bit_cast<float>(word & 0x7FFFFFu);
    if (row % 16 == 7) x = std::bit_cast<float>(0x7E000000u | (word & 0x17FFFFFu));
    if (row % 16 == 9) x = (word & 1) != 0 ? kInfinity : std::bit_cast<float>(0x7FC12345u);
    if (word % 1000 == 1) x = kInfinity;
    if (word % 1000 == 2) x = std::bit_cast<float>(0x7FA00001u);
    if (random.Below(2) == 1) x = -x;
    values[i] = x;
  }
  // In a loop of its own: in the one above g++ 12 drops the shifts.
  if (element == Element::kBfloat16) {
    for (float& x : values) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) >> 16 << 16);
  }
  return values;
}

// Values as elements on the device, behind `offset` elements.
class Uploaded {
 public:
  Uploaded(const std::vector<float>& values, Element element, MatrixShape shape, size_t offset)
      : memory_(ThreadPlace()) {
    const size_t size = BytesOf(element, memory_.place());
    std::vector<uint8_t> bytes((offset + values.size()) * size);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
      for (size_t b = 0; b < size; ++b) {
        bytes[(offset + i) * size + b] = static_cast<uint8_t>(bits >> 8 * (4 - size + b));
      }
    }
    memory_ = CopyAt(bytes, memory_.place());
    matrix_ = {memory_.View().data + offset * size, shape, memory_.place(), element};
  }
  ConstFloatSpan matrix() const { return matrix_; }

 private:
  Buffer<uint8_t> memory_;
  ConstFloatSpan matrix_;
};

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// True if the codes of both matrices, each in the one order that it stores, are the same.
bool SameCodes(const QuantizedMatrix& a, const QuantizedMatrix& b) {
  return Codes8Of(a) == Codes8Of(b) && Codes16Of(a) == Codes16Of(b);
}

constexpr CodeOrder kOrders[] = {CodeOrder::kInput, CodeOrder::kTransposed, CodeOrder::kBoth};

class QuantizedDevice : public DeviceTest {
 protected:
  // Scales and codes of every stored order equal the CPU's.
  void ExpectEqual(const std::vector<float>& values, ConstFloatSpan in, QuantizeOptions options) {
    options.order = CodeOrder::kInput;
    const QuantizedMatrix expected = numsim::Quantize(HostMatrix(values, in.Shape()), options);
    options.order = CodeOrder::kTransposed;
    const QuantizedMatrix expected_transposed =
        numsim::Quantize(HostMatrix(values, in.Shape()), options);
    for (const CodeOrder order : kOrders) {
      SCOPED_TRACE(fmt::format("order {}", static_cast<int>(order)));
      options.order = order;
      QuantizeInto(in, options, matrix_);
      QuantizedMatrix got = OnHost(matrix_);
      EXPECT_EQ(got.order, order);
      EXPECT_TRUE(SameCodes(got, got.HasCodes() ? expected : expected_transposed));
      EXPECT_TRUE(BitsOf(ScalesOf(got)) == BitsOf(ScalesOf(expected)));
      if (order != CodeOrder::kBoth) continue;
      got.order = CodeOrder::kTransposed;
      EXPECT_TRUE(SameCodes(got, expected_transposed));
    }
  }

  QuantizedMatrix matrix_;
};

TEST_F(QuantizedDevice, EqualsTheCpuForEveryShapeAndLayout) {
  for (const MatrixShape shape : kShapes) {
    for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
      const std::vector<float> values = Numbers(shape, element);
      for (const size_t offset : {size_t{0}, size_t{3}}) {
        const Uploaded in(values, element, shape, offset);
        for (const char* format : {"int8", "e4m3fn", "e5m2"}) {
          for (const char* layout : kLayouts) {
            SCOPED_TRACE(fmt::format("{} x {} {} {} bytes {} offset {}",
                                     shape.rows,
                                     shape.cols,
                                     format,
                                     BytesOf(element, place()),
                                     layout,
                                     offset));
            QuantizeOptions options;
            options.format = ParseFormat(format).spec;
            options.layout = ParseScaleLayout(layout);
            ExpectEqual(values, in.matrix(), options);
          }
        }
      }
    }
  }
}

TEST_F(QuantizedDevice, EqualsTheCpuForEveryScaleRuleAndFormat) {
  const MatrixShape shape{48, 264};
  const std::vector<float> values = Numbers(shape, Element::kFloat32);
  const Uploaded in(values, Element::kFloat32, shape, 0);
  for (const char* format :
       {"int8", "e4m3fn", "e5m2", "e2m1fn", "fp16", "bf16", "bnb-e4m3", "e8m0fnu"}) {
    for (const ScaleRule rule : kRules) {
      for (const char* layout : {"tensor", "row", "column", "block:32"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", format, ToString(rule), layout));
        QuantizeOptions options;
        options.format = ParseFormat(format).spec;
        options.layout = ParseScaleLayout(layout);
        options.scale_rule = rule;
        ExpectEqual(values, in.matrix(), options);
      }
    }
  }
}

// The kernels that read a row once, a tile once and a matrix once, for every narrow format.
TEST_F(QuantizedDevice, EveryNarrowFormatEqualsTheCpuInTheFastKernels) {
  const MatrixShape shape{80, 1040};
  for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
    const std::vector<float> values = Numbers(shape, element);
    const Uploaded in(values, element, shape, 0);
    for (const FormatEntry& entry : FormatTable()) {
      if (entry.spec.Bits() > 8) continue;
      for (const char* layout : {"tensor", "row", "column", "block:16"}) {
        for (const Overflow overflow : {Overflow::kSaturate, Overflow::kNonsaturate}) {
          SCOPED_TRACE(fmt::format("{} {} {}", entry.name, layout, BytesOf(element, place())));
          QuantizeOptions options;
          options.format = entry.spec;
          options.layout = ParseScaleLayout(layout);
          options.overflow = overflow;
          if (std::string_view(layout) == "block:16") options.scale_rule = ScaleRule::kPow2Floor;
          ExpectEqual(values, in.matrix(), options);
        }
      }
    }
  }
}

// Rows that begin at a tile of the random stream and rows that do not, of one to several blocks.
TEST_F(QuantizedDevice, RowsDrawnInOnePassEqualTheCpu) {
  for (const MatrixShape shape :
       {MatrixShape{19, 512}, {5, 4096}, {7, 1536}, {3, 520}, {2, 12288}}) {
    for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
      const std::vector<float> values = Numbers(shape, element);
      const Uploaded in(values, element, shape, 0);
      for (const char* format : {"e4m3fn", "e3m4", "e2m1fn", "e2m3fn", "e4m3fnuz", "binary8p3se"}) {
        for (const int bits : {3, 8, 13, 16, 32}) {
          for (const uint64_t first : {uint64_t{0}, uint64_t{1} << 34, uint64_t{64}}) {
            SCOPED_TRACE(fmt::format("{} x {} {} {}", shape.rows, shape.cols, format, bits));
            QuantizeOptions options;
            options.format = ParseFormat(format).spec;
            options.layout = ParseScaleLayout("row");
            options.rounding = {RoundingMode::kStochastic, StochasticVariant::kA, bits};
            options.random = {{.seed = 5, .stream = 6}, first};
            ExpectEqual(values, in.matrix(), options);
          }
        }
      }
    }
  }
}

TEST_F(QuantizedDevice, StochasticDrawsAreThoseOfTheCpu) {
  const MatrixShape shape{33, 200};
  const std::vector<float> values = Numbers(shape, Element::kBfloat16);
  const Uploaded in(values, Element::kBfloat16, shape, 0);
  for (const char* layout : {"tensor", "row", "column", "tile:8x16"}) {
    QuantizeOptions options;
    options.format = ParseFormat("e4m3fn").spec;
    options.layout = ParseScaleLayout(layout);
    options.rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
    options.random = {{.seed = 5, .stream = 6}, uint64_t{1} << 33};
    ExpectEqual(values, in.matrix(), options);
  }
}

TEST_F(QuantizedDevice, UnderAGivenScaleEqualsTheCpu) {
  const MatrixShape shape{32, 136};
  const std::vector<float> values = Numbers(shape, Element::kFloat32);
  const Uploaded in(values, Element::kFloat32, shape, 0);
  QuantizeOptions options;
  options.format = ParseFormat("e5m2").spec;
  const Scale scale = {0.37f, 1 / 0.37f};
  QuantizedMatrix expected;
  QuantizeUnder(scale, HostMatrix(values, shape), options, expected);
  options.order = CodeOrder::kBoth;
  QuantizeUnder(scale, in.matrix(), options, matrix_);
  QuantizedMatrix got = OnHost(matrix_);
  EXPECT_TRUE(SameCodes(got, expected));
  EXPECT_EQ(ScalesOf(got), ScalesOf(expected));
  QuantizedMatrix turned;
  options.order = CodeOrder::kTransposed;
  QuantizeUnder(scale, HostMatrix(values, shape), options, turned);
  got.order = CodeOrder::kTransposed;
  EXPECT_TRUE(SameCodes(got, turned));
}

// Step by step: maxima that grow, shrink, are zero, infinite and NaN, under every algorithm and
// rule.
TEST_F(QuantizedDevice, DelayedScalesEqualThoseOfTheCpu) {
  const MatrixShape shape{5, 48};
  for (const size_t history : {size_t{1}, size_t{3}, size_t{300}, size_t{1024}}) {
    for (const auto algorithm :
         {AmaxAlgorithm::kMax, AmaxAlgorithm::kMostRecent, AmaxAlgorithm::kWindow}) {
      for (const ScaleRule rule :
           {ScaleRule::kAbsmax, ScaleRule::kPow2Floor, ScaleRule::kPow2Ceil}) {
        const DelayedScalingOptions delayed = {history, algorithm, 1, rule};
        QuantizeOptions options;
        options.format = ParseFormat("e4m3fn").spec;
        DelayedScale here(options.format, delayed), there(options.format, delayed, place());
        QuantizedMatrix expected;
        for (int step = 0; step < 12; ++step) {
          SCOPED_TRACE(fmt::format("{} {} {}", history, ToString(algorithm), step));
          std::vector<float> values = Numbers(shape, Element::kFloat32);
          const float factor = std::ldexp(1.0f, 7 * step % 31 - 15);
          for (float& x : values) x = std::isfinite(x) ? std::fmod(x, 8.0f) * factor : 0;
          if (step == 4) std::ranges::fill(values, 0.0f);
          if (step == 5) values[7] = kInfinity;
          if (step == 6) values[9] = kNaN;
          if (step == 8) values[2] = 0x1p127f;
          const Uploaded in(values, Element::kFloat32, shape, 0);
          QuantizeUnder(here, HostMatrix(values, shape), options, expected);
          QuantizeUnder(there, in.matrix(), options, matrix_);
          EXPECT_TRUE(SameCodes(OnHost(matrix_), expected));
          EXPECT_EQ(ScalesOf(OnHost(matrix_)), ScalesOf(expected));
          here.Update();
          there.Update();
          EXPECT_EQ(BitsOf(there.Save()), BitsOf(here.Save()));
          EXPECT_EQ(there.Current().scale, here.Current().scale);
        }
        DelayedScale restored(options.format, delayed, place());
        restored.Restore(here.Save());
        EXPECT_EQ(BitsOf(restored.Save()), BitsOf(here.Save()));
      }
    }
  }
}

TEST_F(QuantizedDevice, EmptyMatricesHaveScalesOne) {
  const ConstFloatSpan in(nullptr, {5, 0}, place(), Element::kFloat32);
  QuantizeOptions options;
  options.format = ParseFormat("int8").spec;
  for (const char* layout : {"tensor", "row", "column"}) {
    options.layout = ParseScaleLayout(layout);
    ExpectEqual({}, in, options);
  }
}

TEST_F(QuantizedDevice, TheSecondUseAllocatesNothing) {
  const MatrixShape shape{16, 64};
  const std::vector<float> values = Numbers(shape, Element::kFloat32);
  const Uploaded in(values, Element::kFloat32, shape, 0);
  QuantizeOptions options;
  options.format = ParseFormat("int8").spec;
  ExpectEqual(values, in.matrix(), options);
  const void* codes = matrix_.codes.View().data;
  const void* scales = matrix_.scales.View().data;
  const Uploaded smaller(values, Element::kFloat32, {8, 64}, 0);
  options.order = CodeOrder::kBoth;
  QuantizeInto(smaller.matrix(), options, matrix_);
  EXPECT_EQ(matrix_.codes.View().data, codes);
  EXPECT_EQ(matrix_.scales.View().data, scales);
  EXPECT_EQ(matrix_.shape.rows, 8u);
}

TEST_F(QuantizedDevice, OperandsTakeTheOrderInWhichVectorsAreContiguous) {
  const MatrixShape shape{16, 64};
  const std::vector<float> values = Numbers(shape, Element::kFloat32);
  const Uploaded in(values, Element::kFloat32, shape, 0);
  QuantizeOptions options;
  options.format = ParseFormat("int8").spec;
  options.order = CodeOrder::kBoth;
  QuantizeInto(in.matrix(), options, matrix_);
  const uint8_t *codes = matrix_.codes.View().data, *turned = matrix_.transposed.View().data;
  const GemmOperand rows = AsOperand(matrix_, false), columns = AsOperand(matrix_, true);
  EXPECT_EQ(rows.codes8.data, codes);
  EXPECT_EQ(columns.codes8.data, turned);
  EXPECT_FALSE(rows.transposed || columns.transposed);
  EXPECT_EQ(rows.rows, 16u);
  EXPECT_EQ(rows.inner, 64u);
  EXPECT_EQ(columns.rows, 64u);
  EXPECT_EQ(columns.inner, 16u);
  EXPECT_EQ(rows.scales.data.Elements(), 1u);
  EXPECT_EQ(rows.place(), place());
  matrix_.order = CodeOrder::kTransposed;
  EXPECT_EQ(AsOperand(matrix_, false).codes8.data, turned);
  EXPECT_TRUE(AsOperand(matrix_, false).transposed);
  matrix_.order = CodeOrder::kInput;
  EXPECT_EQ(AsOperand(matrix_, true).codes8.data, codes);
  EXPECT_TRUE(AsOperand(matrix_, true).transposed);
}

}  // namespace
}  // namespace numsim
