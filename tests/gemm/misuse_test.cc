// Operands of a GEMM that do not fit each other throw Error.
#include "tests/support/misuse.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "tests/support/elsewhere.h"

namespace numsim {
namespace {

// A GEMM of 2 x 8 and 3 x 8 codes of e4m3fn, with one scale per row and block of 4. A test changes
// one of its parts.
struct Problem {
  std::vector<uint8_t> codes_a = std::vector<uint8_t>(16), codes_b = std::vector<uint8_t>(24);
  std::vector<uint16_t> wide = std::vector<uint16_t>(16);
  std::vector<float> scales_a = std::vector<float>(4, 1.0f), scales_b = std::vector<float>(6, 1.0f);
  std::vector<float> out = std::vector<float>(6);
  GemmOperand a{.format = ParseFormat("e4m3fn").spec, .rows = 2, .inner = 8};
  GemmOperand b{.format = ParseFormat("e4m3fn").spec, .rows = 3, .inner = 8};

  Problem() {
    a.codes8 = codes_a;
    b.codes8 = codes_b;
    a.scales = {.data = scales_a, .row_stride = 2, .segment = 4, .segment_stride = 1};
    b.scales = {.data = scales_b, .row_stride = 2, .segment = 4, .segment_stride = 1};
  }
};

// Returns the Error of the GEMM after `change`, which must not depend on the function called.
std::string Change(const std::function<void(Problem&)>& change) {
  Problem p;
  change(p);
  const AccumulationMode fp32 = ParseAccumulationMode("fp32");
  const std::string error = ErrorOf([&] { Gemm(p.a, p.b, fp32, p.out); });
  EXPECT_EQ(ErrorOf([&] { Gemm(p.a, p.b, ParseAccumulationMode("library"), p.out); }), error);
  return error;
}

TEST(GemmMisuse, OperandsThatFitDoNotThrow) {
  EXPECT_EQ(Change([](Problem&) {}), kNoError);
}

TEST(GemmMisuse, SizesThatDoNotFitThrow) {
  EXPECT_EQ(Change([](Problem& p) { p.a.codes8 = p.a.codes8.Columns(0, 15); }),
            "Gemm: 'a' has 15 elements, expected 16 (2 x 8)");
  EXPECT_EQ(Change([](Problem& p) { p.b.rows = 4; }),
            "Gemm: 'b' has 24 elements, expected 32 (4 x 8)");
  EXPECT_EQ(Change([](Problem& p) {
              p.b.inner = 12;
              p.b.rows = 2;
            }),
            "Gemm: 'a' has inner = 8 and 'b' has inner = 12, expected equal");
  EXPECT_EQ(Change([](Problem& p) { p.out.resize(5); }),
            "Gemm: 'out' has 5 elements, expected 6 (2 x 3)");
}

TEST(GemmMisuse, RowsWithGapsHaveTheShapeOfTheOperand) {
  EXPECT_EQ(Change([](Problem& p) {
              p.a.codes8 = {p.a.codes8.data, 4, 4, 6};
            }),
            "Gemm: 'a' is a 4 x 4 matrix with stride 6, expected 2 x 8 or contiguous rows");
}

TEST(GemmMisuse, OperandsAndResultAreAtOnePlace) {
  EXPECT_EQ(Change([](Problem& p) { p.b.codes8.place = Elsewhere(); }),
            "Gemm: arguments on the device and on the host, expected one place");
  EXPECT_EQ(Change([](Problem& p) { p.b.scales.data.place = Elsewhere(); }),
            "Gemm: arguments on the host and on the device, expected one place");
}

TEST(GemmMisuse, AnOperandHasOneArrayOfCodesThatAreWideEnough) {
  EXPECT_EQ(Change([](Problem& p) { p.a.codes16 = p.wide; }),
            "Gemm: 'a' has 2 of values, codes8 and codes16, expected one");
  EXPECT_EQ(Change([](Problem& p) { p.b.format = ParseFormat("bf16").spec; }),
            "Gemm: 'b' has codes of 8 bits, and the format has 16");
}

TEST(GemmMisuse, EveryRowAndSegmentHasAScale) {
  EXPECT_EQ(Change([](Problem& p) { p.a.scales.data = p.a.scales.data.Columns(0, 3); }),
            "Gemm: 'a' has 3 scales, expected at least 4 for 2 rows of 8 elements");
  EXPECT_EQ(Change([](Problem& p) { p.b.scales.segment_stride = 2; }),
            "Gemm: 'b' has 6 scales, expected at least 7 for 3 rows of 8 elements");
  EXPECT_EQ(Change([](Problem& p) { p.a.scales.row_group = 0; }),
            "Gemm: row_group of a is 0, expected at least 1");
}

TEST(GemmMisuse, SegmentsAreEqual) {
  Problem p;
  p.b.scales.segment = 8;
  EXPECT_EQ(ErrorOf([&] { Gemm(p.a, p.b, ParseAccumulationMode("fp32"), p.out); }),
            "Gemm: scales in segments of 4 in a and of 8 in b, expected equal segments");
}

TEST(GemmMisuse, ModesAndFormatsOfTheOtherFunctionsAreChecked) {
  Problem p;
  std::vector<int32_t> sums(6), few(5);
  p.a.scales = p.b.scales = {};
  ExpectErrors({
      {[&] { (void)GemmInt32(p.a, p.b, sums); },
       "GemmInt32: operands of e4m3fn and e4m3fn, expected codes of int8"},
      {[&] { (void)GemmInt32(p.a, p.b, few); }, "Gemm: 'out' has 5 elements, expected 6 (2 x 3)"},
  });
}

TEST(AsOperandMisuse, AMatrixWhosePartsDoNotFitThrows) {
  const std::vector<float> in(6, 1.0f);
  const QuantizeOptions options{.format = ParseFormat("e4m3fn").spec,
                                .layout = ParseScaleLayout("row")};
  const QuantizedMatrix matrix = Quantize(HostMatrix(in, {2, 3}), options);
  QuantizedMatrix codes = matrix, scales = matrix;
  codes.codes.Resize(1, 5);
  scales.scales.Resize(1, 3);
  ExpectErrors({
      {[&] { AsOperand(codes, false); }, "AsOperand: 'codes' has 5 elements, expected 6 (2 x 3)"},
      {[&] { AsOperand(scales, false); },
       "AsOperand: 'scales' has 3 elements, expected 2 (layout row of 2 x 3)"},
  });
}

}  // namespace
}  // namespace numsim
