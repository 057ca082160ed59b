// Dot products with block scales: against Gemm() with segments, and their cases.
// tests/apps/exact_numbers.py compares exact sums with fractions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm.h"
#include "numsim/oracle/case_output.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {
namespace {

OperationRequest Request(const char* format, const char* scale, int length, const char* mode) {
  return {.op = "dot",
          .format = format,
          .to = "fp32",
          .scale_format = scale,
          .accumulation = mode,
          .length = length};
}

std::vector<std::vector<uint64_t>> Rows(const Operation& operation, const char* level) {
  const CaseRows rows(operation, ParseCaseLevel(level, 4), true);
  std::vector<std::vector<uint64_t>> result(rows.size());
  for (uint64_t i = 0; i < rows.size(); ++i) {
    result[i].resize(rows.columns().size());
    rows.Row(i, result[i]);
  }
  return result;
}

// The product of one row of A and one of B by Gemm(), with a scale per segment.
float ByGemm(const Operation& operation,
             const std::vector<uint64_t>& row,
             const char* format,
             const char* scale,
             const char* mode) {
  const size_t n = operation.length(), blocks = operation.scales() / 2;
  const FormatSpec spec = ParseFormat(format).spec, of_scale = ParseFormat(scale).spec;
  std::vector<float> values(2 * n), scales(2 * blocks);
  for (size_t i = 0; i < 2 * n; ++i) values[i] = Decode(spec, static_cast<uint32_t>(row[i]));
  for (size_t i = 0; i < 2 * blocks; ++i) {
    scales[i] = Decode(of_scale, static_cast<uint32_t>(row[2 * n + i]));
  }
  const size_t segment = blocks == 1 ? 0 : (of_scale.mantissa_bits == 0 ? 32 : 16);
  const auto operand = [&](size_t side) {
    GemmOperand x{.format = spec, .rows = 1, .inner = n};
    x.values = std::span(values).subspan(side * n, n);
    x.scales = {.data = std::span(scales).subspan(side * blocks, blocks),
                .row_stride = blocks,
                .segment = segment,
                .segment_stride = 1};
    return x;
  };
  float out = 0;
  Gemm(operand(0), operand(1), ParseAccumulationMode(mode), {&out, 1});
  return out;
}

TEST(ScaledDot, OrderedModesEqualGemmWithSegments) {
  for (const char* const mode :
       {"fp32", "fp64", "trunc:13,32", "bf16", "bf16:unfused", "fp32-chunked:4"}) {
    for (const auto& [format, scale] : {std::pair("e2m1fn", "e8m0fnu"),
                                        std::pair("e2m1fn", "e4m3fn"),
                                        std::pair("e4m3fn", "e8m0fnu")}) {
      const auto operation = MakeOperation(Request(format, scale, 72, mode));
      for (const auto& row : Rows(*operation, "random:300")) {
        const auto result = std::bit_cast<float>(static_cast<uint32_t>(row[row.size() - 2]));
        const float expected = ByGemm(*operation, row, format, scale, mode);
        ASSERT_EQ(std::bit_cast<uint32_t>(result), std::bit_cast<uint32_t>(expected))
            << mode << " " << format << " " << scale << ": " << result << ", " << expected;
      }
    }
  }
}

// Under block-scaled modes the scales enter the unit.
TEST(ScaledDot, BlockScaledModesEqualGemm) {
  for (const auto& [mode, format, scale] : {std::tuple("mxf8f6f4", "e4m3fn", "e8m0fnu"),
                                            {"mxf8f6f4", "e5m2", "e8m0fnu"},
                                            {"mxf8f6f4", "e2m1fn", "e8m0fnu"},
                                            {"mxf4", "e2m1fn", "e8m0fnu"},
                                            {"mxf4nvf4", "e2m1fn", "ue4m3fn"}}) {
    size_t unlike = 0;  // sums that differ from those of scaled blocks
    for (const int length : {72, 192}) {
      const auto operation = MakeOperation(Request(format, scale, length, mode));
      const auto blocks = MakeOperation(Request(format, scale, length, "trunc:25,32"));
      for (const auto& row : Rows(*operation, "random:300")) {
        const uint64_t result = row[row.size() - 2];
        const float expected = ByGemm(*operation, row, format, scale, mode);
        ASSERT_EQ(static_cast<uint32_t>(result), std::bit_cast<uint32_t>(expected))
            << mode << " " << format << " " << length;
        std::vector<uint64_t> other = row;
        Complete(*blocks, other);
        unlike += other[row.size() - 2] != result ? 1 : 0;
      }
    }
    EXPECT_GT(unlike, 10u) << mode << " " << format;
  }
}

// Units that differ in one number give other results in some of the cases.
TEST(ScaledDot, RandomCasesTellUnitsApart) {
  struct Unlike {
    const char* mode;
    const char* format;
    const char* scale;
    void (*change)(AccumulationMode&);
    size_t least;  // of 2000 cases
  };
  constexpr auto kLessBits = [](AccumulationMode& m) { --m.fraction_bits; };
  constexpr auto kHalfChunk = [](AccumulationMode& m) { m.chunk /= 2; };
  constexpr auto kMuchLess = [](AccumulationMode& m) { m.fraction_bits = 25; };
  for (const Unlike& unlike : {Unlike{"mxf8f6f4", "e4m3fn", "e8m0fnu", kLessBits, 100},
                               Unlike{"mxf8f6f4", "e4m3fn", "e8m0fnu", kHalfChunk, 100},
                               Unlike{"mxf4", "e2m1fn", "e8m0fnu", kHalfChunk, 20},
                               Unlike{"mxf4", "e2m1fn", "e8m0fnu", kMuchLess, 50},
                               Unlike{"mxf4nvf4", "e2m1fn", "ue4m3fn", kMuchLess, 5},
                               Unlike{"mxf4nvf4", "e2m1fn", "ue4m3fn", kHalfChunk, 20}}) {
    const auto operation = MakeOperation(Request(unlike.format, unlike.scale, 192, unlike.mode));
    AccumulationMode other = ParseAccumulationMode(unlike.mode);
    unlike.change(other);
    const FormatSpec spec = ParseFormat(unlike.format).spec;
    const size_t n = 192, blocks = operation->scales() / 2;
    size_t different = 0;
    for (const auto& row : Rows(*operation, "random:2000")) {
      std::vector<float> values, scales;
      for (size_t i = 0; i < 2 * n; ++i) {
        values.push_back(Decode(spec, static_cast<uint32_t>(row[i])));
      }
      for (size_t i = 0; i < 2 * blocks; ++i) {
        scales.push_back(Decode(other.format, static_cast<uint32_t>(row[2 * n + i])));
      }
      const auto side = [&](size_t i) {
        return DotOperand{spec,
                          std::span(values).subspan(i * n, n),
                          {std::span(scales).subspan(i * blocks, blocks), n / blocks}};
      };
      const Unrounded sum = Accumulate(other, side(0), side(1));
      const uint32_t code = EncodeUnrounded(MakeEncodePlan(kFp32), sum).code;
      if (sum.kind != NumberKind::kNan && code != row[row.size() - 2]) ++different;
    }
    EXPECT_GE(different, unlike.least) << unlike.mode << " " << ToString(other);
  }
}

// Codes of e4m3fn are scales of NVFP4, too; the unit does not look at their sign.
TEST(ScaledDot, UnitsIgnoreTheSignOfE4m3Scales) {
  const auto with_sign = MakeOperation(Request("e2m1fn", "e4m3fn", 64, "mxf4nvf4"));
  const auto without = MakeOperation(Request("e2m1fn", "ue4m3fn", 64, "mxf4nvf4"));
  for (auto row : Rows(*with_sign, "random:200")) {
    std::vector<uint64_t> flipped = row;
    for (size_t i = 128; i < 136; ++i) {
      flipped[i] = row[i] ^ (i % 3 != 0 ? 0x80 : 0);
      row[i] &= 0x7F;
    }
    Complete(*without, row);
    Complete(*with_sign, flipped);
    ASSERT_EQ(row[row.size() - 2], flipped[row.size() - 2]);
  }
}

TEST(ScaledDot, TensorScalesMultiplyTheSumOfTheUnit) {
  OperationRequest request = Request("e2m1fn", "ue4m3fn", 32, "mxf4nvf4");
  request.tensor_scale = true;
  const auto operation = MakeOperation(request);
  std::vector<uint64_t> row(operation->inputs().size() + 2, 2);  // 1 in e2m1fn
  for (size_t i = 64; i < 68; ++i) row[i] = 0x39;                // 1.125
  const float a = 0.1f, b = 1.0f / 3;
  row[68] = std::bit_cast<uint32_t>(a);
  row[69] = std::bit_cast<uint32_t>(b);
  Complete(*operation, row);
  const double scale = static_cast<double>(a) * static_cast<double>(b);
  EXPECT_EQ(row[70], std::bit_cast<uint32_t>(static_cast<float>(32 * 1.125 * 1.125 * scale)));
  row[64] = 0x7F;
  Complete(*operation, row);
  EXPECT_EQ(row[70], 0x7FFFFFFFu);
}

TEST(ScaledDot, ColumnsFollowTheBlocks) {
  const auto mx = MakeOperation(Request("e2m1fn", "e8m0fnu", 0, ""));
  EXPECT_EQ(mx->length(), 32u);
  EXPECT_EQ(mx->inputs().size(), 66u);
  EXPECT_EQ(mx->inputs()[64].name, "scale-a[0]");
  EXPECT_EQ(mx->inputs()[65].name, "scale-b[0]");
  OperationRequest request = Request("e2m1fn", "e4m3fn", 40, "");
  request.tensor_scale = true;
  const auto nv = MakeOperation(request);
  EXPECT_EQ(nv->scales(), 6u);  // blocks of 16, 16 and 8
  EXPECT_EQ(nv->inputs().size(), 88u);
  EXPECT_EQ(nv->inputs()[86].name, "tensor-a");
  request.block = 8;
  EXPECT_EQ(MakeOperation(request)->scales(), 10u);
}

// Sums of ones: 16 products per block of scales 2 and 3, and tensor scales of 5 and 7.
TEST(ScaledDot, EveryScaleEntersOnce) {
  OperationRequest request = Request("e2m1fn", "e4m3fn", 32, "");
  request.tensor_scale = true;
  for (const char* const mode : {"exact", "fp32"}) {
    request.accumulation = mode;
    const auto operation = MakeOperation(request);
    std::vector<uint64_t> row(operation->inputs().size() + 2, 2);  // 1 in e2m1fn
    const uint64_t scales[] = {0x40, 0x44, 0x44, 0x40};            // 2, 3 of a; 3, 2 of b
    std::copy(std::begin(scales), std::end(scales), row.begin() + 64);
    row[68] = std::bit_cast<uint32_t>(5.0f);
    row[69] = std::bit_cast<uint32_t>(7.0f);
    Complete(*operation, row);
    EXPECT_EQ(row[70], std::bit_cast<uint32_t>(32 * 6 * 35.0f)) << mode;
    row[64] = 0x7F;  // NaN
    Complete(*operation, row);
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(static_cast<uint32_t>(row[70])))) << mode;
  }
}

// Two tensor scales of 24 bits, whose product has 48: an exact sum keeps them all.
TEST(ScaledDot, TensorScalesAreExact) {
  OperationRequest request = Request("e2m1fn", "e4m3fn", 2, "");
  request.tensor_scale = true;
  const auto operation = MakeOperation(request);
  std::vector<uint64_t> row(operation->inputs().size() + 2);
  row[0] = row[1] = row[2] = 2;  // 1 * 1
  row[3] = 0;
  row[4] = row[5] = 0x38;
  const float a = 0x1.000002p0f, b = 0x1.fffffep0f;
  row[6] = std::bit_cast<uint32_t>(a);
  row[7] = std::bit_cast<uint32_t>(b);
  Complete(*operation, row);
  const double exact = static_cast<double>(a) * static_cast<double>(b);
  EXPECT_EQ(row[8], std::bit_cast<uint32_t>(static_cast<float>(exact)));
  EXPECT_EQ(row[9], 1u);  // inexact
}

TEST(ScaledDot, RandomCasesAreMostlyFinite) {
  for (const char* const scale : {"e8m0fnu", "e4m3fn", "e5m3"}) {
    for (const char* const to : {"fp32", "bf16", "fp16"}) {
      OperationRequest request = Request("e2m1fn", scale, 64, "");
      request.to = to;
      const auto operation = MakeOperation(request);
      const FormatSpec result = ParseFormat(to).spec;
      size_t finite = 0;
      std::set<uint64_t> results;
      const auto rows = Rows(*operation, "random:320");
      for (const auto& row : rows) {
        const uint64_t code = row[row.size() - 2];
        finite += std::isfinite(Decode(result, static_cast<uint32_t>(code))) ? 1 : 0;
        results.insert(code);
      }
      EXPECT_GE(finite, 290u) << scale << " " << to;
      EXPECT_GE(results.size(), 200u) << scale << " " << to;
    }
  }
}

TEST(ScaledDot, EdgesTryEveryScale) {
  const auto operation = MakeOperation(Request("e2m1fn", "e8m0fnu", 64, ""));
  std::set<uint64_t> first, last;
  for (const auto& row : Rows(*operation, "edges")) {
    first.insert(row[128]);
    last.insert(row[131]);
  }
  EXPECT_EQ(first.size(), 256u);
  EXPECT_EQ(last.size(), 256u);
}

TEST(ScaledDot, BadRequestsNameTheOption) {
  const auto error = [](const OperationRequest& request) {
    try {
      MakeOperation(request);
    } catch (const Error& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  OperationRequest request{.op = "dot", .format = "e2m1fn", .block = 4};
  EXPECT_EQ(error(request), "--block needs --scale-format");
  request = {.op = "dot", .format = "e2m1fn", .tensor_scale = true};
  EXPECT_EQ(error(request), "--tensor-scale needs --scale-format");
  request = Request("fp32", "e4m3fn", 16, "");
  EXPECT_EQ(error(request), "");
  request.tensor_scale = true;  // more bits than an exact sum takes
  EXPECT_NE(error(request).find("--scale-format e4m3fn"), std::string::npos);
  EXPECT_NE(error(Request("e2m1fn", "e4m3fn", 4097, "")).find("--length 4097"), std::string::npos);
  EXPECT_NE(error({.op = "add", .format = "e2m1fn", .block = 4}).find("--block"),
            std::string::npos);
  EXPECT_NE(error(Request("e2m1fn", "e8m0fnu", 0, "library")).find("library"), std::string::npos);
  EXPECT_EQ(error(Request("e2m1fn", "e4m3fn", 0, "mxf4")),
            "--scale-format e4m3fn: accumulation mode mxf4 takes scales of e8m0fnu");
  EXPECT_EQ(error(Request("e2m1fn", "e8m0fnu", 0, "mxf4nvf4")),
            "--scale-format e8m0fnu: accumulation mode mxf4nvf4 takes scales of ue4m3fn");
  request = Request("e4m3fn", "e8m0fnu", 32, "mxf8f6f4");
  request.block = 16;
  EXPECT_EQ(error(request), "--block 16: accumulation mode mxf8f6f4 takes multiples of 32");
  request = Request("e4m3fn", "e8m0fnu", 32, "mxf4");
  request.any_operands = true;
  EXPECT_EQ(error(request), "--accumulation-mode mxf4: takes e2m1fn alone");
  EXPECT_NE(error(Request("bf16", "e8m0fnu", 32, "mxf8f6f4")).find("mxf8f6f4 is for e4m3fn"),
            std::string::npos);
  EXPECT_EQ(error({.op = "dot", .format = "e4m3fn", .to = "fp32", .accumulation = "mxf8f6f4"}),
            "--accumulation-mode mxf8f6f4: needs --scale-format e8m0fnu, whose scales enter the "
            "unit");
}

TEST(CaseOutput, TextsHaveTheColumnsOfTheCases) {
  const auto operation =
      MakeOperation({.op = "add", .format = "e2m1fn", .overflow = Overflow::kSaturate});
  const CaseRows rows(*operation, ParseCaseLevel("full"), true);
  const auto text = [&](const char* output) {
    std::string all;
    WriteCases(rows, "add", ParseCaseOutput(output), [&](std::string_view part) { all += part; });
    return all;
  };
  const auto starts = [](const std::string& all, const std::string& head) {
    return all.substr(0, head.size()) == head;
  };
  EXPECT_TRUE(starts(text("csv"), "a,b,result,flags\n0x0,0x0,0x0,0x00\n0x0,0x1,0x1,0x00\n"));
  EXPECT_TRUE(starts(text("readmemh"),
                     "// add: 256 words of 20 bits\n// [19:16] a e2m1fn\n// [15:12] b e2m1fn\n"
                     "// [11:8] result e2m1fn\n// [7:0] flags\n0_0_0_00\n0_1_1_00\n"));
  EXPECT_TRUE(
      starts(text("json"), "{\"op\": \"add\",\n \"columns\": [\n  {\"name\": \"a\", \"bits\": 4"));
  EXPECT_NE(text("json").find("\n  [0, 1, 1, 0],"), std::string::npos);
  EXPECT_EQ(text("json").substr(text("json").size() - 4), "]]}\n");
  EXPECT_TRUE(starts(text("hex"), "0 0 0 00\n"));
  EXPECT_THROW(ParseCaseOutput("xml"), Error);
}

}  // namespace
}  // namespace numsim
