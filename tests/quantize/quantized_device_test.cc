// quantized_device.h against the CPU's Quantize (quantized_matrix.h), bit for bit.
#include "numsim/quantize/quantized_device.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_quantized_device.h"
#include "tests/reference/inputs.h"
#include "tests/support/device_test.h"
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
constexpr const char* kLayouts[] = {
    "tensor", "row", "column", "block:5", "block:32", "tile:3x24", "tile:16x1", "tile:128x128"};
constexpr ScaleRule kRules[] = {ScaleRule::kAbsmax,
                                ScaleRule::kPow2Floor,
                                ScaleRule::kPow2Ceil,
                                ScaleRule::kE8m0,
                                ScaleRule::kNone};

// A matrix whose rows differ: numbers about 2^(row mod 9), rows of zeros, of subnormals, of huge
// numbers, of infinities and NaN alone; and single infinities and NaN.
std::vector<float> Numbers(MatrixShape shape, DeviceElement element) {
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
  if (element == DeviceElement::kBfloat16) {
    for (float& x : values) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) >> 16 << 16);
  }
  return values;
}

// Values as elements on the device, behind `offset` elements.
class Uploaded {
 public:
  Uploaded(const std::vector<float>& values,
           DeviceElement element,
           MatrixShape shape,
           size_t offset,
           DeviceStream& stream)
      : memory_((offset + values.size()) * BytesOf(element)) {
    std::vector<uint8_t> bytes(memory_.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
      for (size_t b = 0; b < BytesOf(element); ++b) {
        const size_t shift = 8 * (4 - BytesOf(element) + b);
        bytes[(offset + i) * BytesOf(element) + b] = static_cast<uint8_t>(bits >> shift);
      }
    }
    CopyToDevice(std::span<const uint8_t>(bytes), memory_.span(), stream);
    stream.Wait();
    matrix_ = {memory_.data() + offset * BytesOf(element), element, shape};
  }
  const DeviceMatrix& matrix() const { return matrix_; }

 private:
  DeviceArray<uint8_t> memory_;
  DeviceMatrix matrix_;
};

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

bool SameCodes(const QuantizedMatrix& a, const QuantizedMatrix& b) {
  return a.codes8 == b.codes8 && a.codes16 == b.codes16;
}

DeviceQuantizeOptions OnDeviceOptions(const QuantizeOptions& options, bool codes, bool transposed) {
  return {.format = options.format,
          .rounding = options.rounding,
          .overflow = options.overflow,
          .layout = options.layout,
          .scale_rule = options.scale_rule,
          .random = options.random,
          .codes = codes,
          .transposed = transposed};
}

class QuantizedDevice : public DeviceTest {
 protected:
  // Scales and codes of every stored order equal the CPU's.
  void ExpectEqual(const std::vector<float>& values,
                   const DeviceMatrix& in,
                   QuantizeOptions options) {
    const QuantizedMatrix expected = numsim::Quantize(values, in.shape, options);
    options.transpose = true;
    const QuantizedMatrix expected_transposed = numsim::Quantize(values, in.shape, options);
    for (const int wanted : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("orders {}", wanted));
      const bool codes = (wanted & 1) != 0, transposed = (wanted & 2) != 0;
      numsim::Quantize(
          in, OnDeviceOptions(options, codes, transposed), matrix_, scratch_, stream());
      const QuantizedMatrix got = ToHost(matrix_, stream());
      EXPECT_EQ(got.transposed, !codes);
      EXPECT_TRUE(SameCodes(got, codes ? expected : expected_transposed));
      EXPECT_TRUE(BitsOf(got.scales) == BitsOf(expected.scales));
      if (wanted == 3) {
        matrix_.has_codes = false;  // the other one of the two
        EXPECT_TRUE(SameCodes(ToHost(matrix_, stream()), expected_transposed));
      }
    }
  }

  DeviceQuantizedMatrix matrix_;
  DeviceQuantizeScratch scratch_;
};

TEST_F(QuantizedDevice, EqualsTheCpuForEveryShapeAndLayout) {
  for (const MatrixShape shape : kShapes) {
    for (const DeviceElement element : {DeviceElement::kBfloat16, DeviceElement::kFloat32}) {
      const std::vector<float> values = Numbers(shape, element);
      for (const size_t offset : {size_t{0}, size_t{3}}) {
        const Uploaded in(values, element, shape, offset, stream());
        for (const char* format : {"int8", "e4m3fn", "e5m2"}) {
          for (const char* layout : kLayouts) {
            SCOPED_TRACE(fmt::format("{} x {} {} {} bytes {} offset {}",
                                     shape.rows,
                                     shape.cols,
                                     format,
                                     BytesOf(element),
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
  const std::vector<float> values = Numbers(shape, DeviceElement::kFloat32);
  const Uploaded in(values, DeviceElement::kFloat32, shape, 0, stream());
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

TEST_F(QuantizedDevice, StochasticDrawsAreThoseOfTheCpu) {
  const MatrixShape shape{33, 200};
  const std::vector<float> values = Numbers(shape, DeviceElement::kBfloat16);
  const Uploaded in(values, DeviceElement::kBfloat16, shape, 0, stream());
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
  const std::vector<float> values = Numbers(shape, DeviceElement::kFloat32);
  const Uploaded in(values, DeviceElement::kFloat32, shape, 0, stream());
  QuantizeOptions options;
  options.format = ParseFormat("e5m2").spec;
  const Scale scale = {0.37f, 1 / 0.37f};
  QuantizedMatrix expected;
  QuantizeUnder(scale, values, shape, options, expected);
  QuantizeUnder(
      scale, in.matrix(), OnDeviceOptions(options, true, true), matrix_, scratch_, stream());
  const QuantizedMatrix got = ToHost(matrix_, stream());
  EXPECT_TRUE(SameCodes(got, expected));
  EXPECT_EQ(got.scales, expected.scales);
}

TEST_F(QuantizedDevice, EmptyMatricesHaveScalesOne) {
  const DeviceMatrix in = {nullptr, DeviceElement::kFloat32, {5, 0}};
  QuantizeOptions options;
  options.format = ParseFormat("int8").spec;
  for (const char* layout : {"tensor", "row", "column"}) {
    options.layout = ParseScaleLayout(layout);
    ExpectEqual({}, in, options);
  }
}

TEST_F(QuantizedDevice, TheSecondUseAllocatesNothing) {
  const MatrixShape shape{16, 64};
  const std::vector<float> values = Numbers(shape, DeviceElement::kFloat32);
  const Uploaded in(values, DeviceElement::kFloat32, shape, 0, stream());
  QuantizeOptions options;
  options.format = ParseFormat("int8").spec;
  ExpectEqual(values, in.matrix(), options);
  const void* codes = matrix_.codes.data();
  const void* scales = matrix_.scales.data();
  const Uploaded smaller(values, DeviceElement::kFloat32, {8, 64}, 0, stream());
  numsim::Quantize(
      smaller.matrix(), OnDeviceOptions(options, true, true), matrix_, scratch_, stream());
  EXPECT_EQ(matrix_.codes.data(), codes);
  EXPECT_EQ(matrix_.scales.data(), scales);
  EXPECT_EQ(matrix_.shape.rows, 8u);
}

TEST_F(QuantizedDevice, OperandsTakeTheOrderInWhichVectorsAreContiguous) {
  const MatrixShape shape{16, 64};
  const std::vector<float> values = Numbers(shape, DeviceElement::kFloat32);
  const Uploaded in(values, DeviceElement::kFloat32, shape, 0, stream());
  QuantizeOptions options;
  options.format = ParseFormat("int8").spec;
  numsim::Quantize(in.matrix(), OnDeviceOptions(options, true, true), matrix_, scratch_, stream());
  const DeviceGemmOperand rows = AsOperand(matrix_, false), columns = AsOperand(matrix_, true);
  EXPECT_EQ(rows.codes, matrix_.codes.data());
  EXPECT_EQ(columns.codes, matrix_.transposed.data());
  EXPECT_FALSE(rows.transposed || columns.transposed);
  EXPECT_EQ(rows.rows, 16u);
  EXPECT_EQ(rows.inner, 64u);
  EXPECT_EQ(columns.rows, 64u);
  EXPECT_EQ(columns.inner, 16u);
  EXPECT_EQ(rows.scales.size(), 1u);
  matrix_.has_codes = false;
  EXPECT_EQ(AsOperand(matrix_, false).codes, matrix_.transposed.data());
  EXPECT_TRUE(AsOperand(matrix_, false).transposed);
  matrix_.has_codes = true;
  matrix_.has_transposed = false;
  EXPECT_EQ(AsOperand(matrix_, true).codes, matrix_.codes.data());
  EXPECT_TRUE(AsOperand(matrix_, true).transposed);
}

}  // namespace
}  // namespace numsim
