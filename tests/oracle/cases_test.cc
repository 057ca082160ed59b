#include "numsim/oracle/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "tests/oracle/case_lists.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

std::string ParseError(std::string_view level) {
  return ErrorOf([&] { ParseCaseLevel(level); });
}

// Requests of every operation, for one format of operands and one of the result.
std::vector<OperationRequest> AllRequests(const std::string& format, const std::string& to) {
  std::vector<OperationRequest> requests;
  for (const OperationInfo& info : OperationTable()) {
    OperationRequest request{.op = std::string(info.name), .format = format};
    if (info.options.to) request.to = to;
    requests.push_back(request);
    if (!info.options.rounding) continue;
    request.rounding = Rounding{.mode = RoundingMode::kStochastic, .random_bits = 11};
    requests.push_back(request);
  }
  return requests;
}

TEST(ParseCaseLevel, ReadsWhatNameWrites) {
  for (const char* text : {"edges", "full", "random:1", "random:123456789012", "uniform:7"}) {
    EXPECT_EQ(ToString(ParseCaseLevel(text)), text);
  }
  const CaseLevel level = ParseCaseLevel("random:5", 99);
  EXPECT_EQ(level.kind, CaseLevel::Kind::kRandom);
  EXPECT_EQ(level.count, 5u);
  EXPECT_EQ(level.seed, 99u);
  EXPECT_EQ(ParseCaseLevel("uniform:5", 99),
            (CaseLevel{.kind = CaseLevel::Kind::kUniform, .count = 5, .seed = 99}));
}

TEST(ParseCaseLevel, RejectsAnythingElse) {
  for (const char* text : {"",
                           "edge",
                           "random",
                           "random:",
                           "random:0",
                           "random:-1",
                           "random:5x",
                           "uniform:0",
                           "uniform",
                           "random:99999999999999999999"}) {
    EXPECT_THAT(ParseError(text), HasSubstr("--level '" + std::string(text) + "'"));
  }
}

TEST(CasesFull, CountsEveryCombination) {
  EXPECT_EQ(SizeOf({.op = "sqrt", .format = "e2m1fn"}, "full"), 16u);
  EXPECT_EQ(SizeOf({.op = "add", .format = "e4m3fn"}, "full"), 65536u);
  EXPECT_EQ(SizeOf({.op = "fma", .format = "e4m3fn"}, "full"), uint64_t{1} << 24);
  EXPECT_EQ(SizeOf({.op = "mul", .format = "fp16"}, "full"), uint64_t{1} << 32);
  EXPECT_EQ(SizeOf({.op = "convert", .to = "e4m3fn"}, "full"), uint64_t{1} << 32);
  const Rounding stochastic{.mode = RoundingMode::kStochastic, .random_bits = 8};
  EXPECT_EQ(SizeOf({.op = "add", .format = "e4m3fn", .rounding = stochastic}, "full"),
            uint64_t{1} << 24);
}

TEST(CasesFull, LastColumnRunsFastest) {
  const auto operation = MakeOperation({.op = "fma", .format = "e2m1fn", .to = "e4m3fn"});
  EXPECT_EQ(CaseOf(*operation, "full", 0), (Numbers{0, 0, 0}));
  EXPECT_EQ(CaseOf(*operation, "full", 255), (Numbers{0, 0, 255}));
  EXPECT_EQ(CaseOf(*operation, "full", 256), (Numbers{0, 1, 0}));
  EXPECT_EQ(CaseOf(*operation, "full", 0xABCD), (Numbers{0xA, 0xB, 0xCD}));
}

TEST(CasesFull, RefusesMoreThan32Bits) {
  const auto message = [](const OperationRequest& request) {
    return ErrorOf([&] { CaseGenerator(*MakeOperation(request), ParseCaseLevel("full")); });
  };
  EXPECT_EQ(message({.op = "fma", .format = "fp16"}),
            "--level full: 2^48 cases exceed the maximum of 2^32; use random:N");
  EXPECT_THAT(message({.op = "quantize-mx", .to = "e4m3fn"}), HasSubstr("2^1024 cases"));
}

TEST(CasesOfEveryLevel, FitTheirColumnsAndDoNotDependOnOrder) {
  for (const char* format : {"e4m3fn", "fp32", "int8", "e8m0fnu", "binary8p3se", "bnb-e4m3"}) {
    for (const OperationRequest& request : AllRequests(format, "e2m3fn")) {
      const auto operation = MakeOperation(request);
      for (const char* level : {"edges", "random:200", "uniform:200"}) {
        const CaseGenerator cases(*operation, ParseCaseLevel(level, 3));
        const uint64_t step = std::max<uint64_t>(cases.size() / 300, 1);
        std::vector<Numbers> forwards;
        for (uint64_t i = 0; i < cases.size(); i += step) {
          forwards.push_back(CaseOf(cases, i, operation->inputs().size()));
          for (size_t c = 0; c < forwards.back().size(); ++c) {
            const int bits = operation->inputs()[c].bits;
            ASSERT_LE(forwards.back()[c], ~uint64_t{0} >> (64 - bits))
                << request.op << " " << format << " " << level << " " << i;
          }
        }
        const CaseGenerator again(*operation, ParseCaseLevel(level, 3));
        for (size_t k = forwards.size(); k-- > 0;) {
          ASSERT_EQ(CaseOf(again, k * step, operation->inputs().size()), forwards[k])
              << request.op << " " << format << " " << level;
        }
      }
    }
  }
}

TEST(CasesEdges, StayBelowTheirLimit) {
  for (const char* format : {"e4m3fn", "e2m1fn", "fp32", "e3m2fn"}) {
    for (const OperationRequest& request : AllRequests(format, "e4m3fn")) {
      const auto operation = MakeOperation(request);
      const uint64_t size = CaseGenerator(*operation, ParseCaseLevel("edges")).size();
      EXPECT_LE(size, kEdgeProduct) << request.op << " " << format;
      EXPECT_GE(size, 16u) << request.op << " " << format;
    }
  }
}

TEST(CasesEdges, ContainTheAwkwardCodesOfEachFormat) {
  struct Awkward {
    const char* format;
    std::vector<uint64_t> codes;
  };
  const Awkward all[] = {
      {"e4m3fn",
       {0x00, 0x80, 0x01, 0x81, 0x07, 0x08, 0x37, 0x38, 0x39, 0xB8, 0x7D, 0x7E, 0xFE, 0x7F, 0xFF}},
      {"e5m2", {0x00, 0x80, 0x01, 0x03, 0x04, 0x3C, 0x7B, 0xFB, 0x7C, 0xFC, 0x7D, 0x7E, 0x7F}},
      {"e4m3fnuz", {0x00, 0x80, 0x01, 0x7F, 0xFF, 0x40}},
      {"e8m0fnu", {0x00, 0x01, 0x7E, 0x7F, 0x80, 0xFE, 0xFF}},
      {"binary8p3se", {0x00, 0x80, 0x01, 0x7E, 0x7F, 0xFE, 0xFF, 0x40}},
      {"int8", {0x00, 0x01, 0xFF, 0x7F, 0x81, 0x80}},
      {"fp16",
       {0x0000,
        0x8000,
        0x0001,
        0x03FF,
        0x0400,
        0x0401,
        0x3BFF,
        0x3C00,
        0x3C01,
        0x7BFF,
        0xFBFF,
        0x7C00,
        0xFC00,
        0x7C01,
        0x7DFF,
        0x7E00,
        0x7FFF,
        0x6800}},
      {"fp32",
       {0x00000000,
        0x80000000,
        0x00000001,
        0x007FFFFF,
        0x00800000,
        0x3F7FFFFF,
        0x3F800000,
        0x3F800001,
        0x7F7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7F800001,
        0x7FC00000,
        0x4B800000,
        0x33800000}},
  };
  for (const Awkward& awkward : all) {
    for (const char* op : {"sqrt", "add"}) {
      const auto codes = ColumnOf({.op = op, .format = awkward.format}, "edges", 0);
      for (const uint64_t code : awkward.codes) {
        EXPECT_TRUE(codes.contains(code)) << op << " " << awkward.format << std::hex << " " << code;
      }
    }
  }
  // Lists of three operands are cut, but not before these.
  const auto addends = ColumnOf({.op = "fma", .format = "fp32"}, "edges", 2);
  for (const uint64_t code : all[7].codes) {
    EXPECT_TRUE(addends.contains(code)) << std::hex << code;
  }
}

TEST(CasesEdges, HaveAllCodesOfSmallFormats) {
  EXPECT_EQ(SizeOf({.op = "fma", .format = "e2m1fn"}, "edges"), 4096u);
  EXPECT_EQ(SizeOf({.op = "add", .format = "e3m2fn"}, "edges"), 4096u);
  EXPECT_EQ(SizeOf({.op = "sqrt", .format = "e4m3fn"}, "edges"), 256u);
}

TEST(CasesEdges, OfAConversionHaveEveryValueAndMidpointAndTheirNeighbours) {
  const auto codes = ColumnOf({.op = "convert", .to = "e4m3fn"}, "edges", 0);
  const auto expect = [&codes](float x) {
    for (const float y : {std::nextafter(x, -1000.0f), x, std::nextafter(x, 1000.0f)}) {
      EXPECT_TRUE(codes.contains(std::bit_cast<uint32_t>(y))) << y;
      EXPECT_TRUE(codes.contains(std::bit_cast<uint32_t>(-y))) << -y;
    }
  };
  for (uint32_t code = 0; code < 0x7E; ++code) {
    const float value = Decode(kE4M3fn, code), next = Decode(kE4M3fn, code + 1);
    if (value != 0) expect(value);
    expect((value + next) / 2);
  }
  expect(448);
  expect(464);  // the midpoint beyond which it overflows
  // And those of float32 itself.
  for (const uint64_t bits : {0x00000001, 0x007FFFFF, 0x7F7FFFFF, 0x7F800001}) {
    EXPECT_TRUE(codes.contains(bits)) << bits;
  }
}

TEST(CasesEdges, OfIntegerConversionsHaveEndsOfRangesAndTies) {
  const auto codes = ColumnOf({.op = "to-i32", .format = "fp32"}, "edges", 0);
  for (const float x : {0.5f,
                        1.5f,
                        2.5f,
                        -0.5f,
                        0x1p31f,
                        -0x1p31f,
                        0x1p32f,
                        0x1.fffffep30f,
                        -0x1.000002p31f,
                        127.5f}) {
    EXPECT_TRUE(codes.contains(std::bit_cast<uint32_t>(x))) << x;
  }
  const auto integers = ColumnOf({.op = "from-i32", .format = "fp16"}, "edges", 0);
  for (const uint64_t n :
       {0u, 1u, 0xFFFFFFFFu, 0x7FFFFFFFu, 0x80000000u, 2049u, 2051u, 65519u, 65520u, 65521u}) {
    EXPECT_TRUE(integers.contains(n)) << n;
  }
}

TEST(CasesEdges, RandomBitsAreTheEndsAndTheMiddle) {
  const Rounding stochastic{.mode = RoundingMode::kStochastic, .random_bits = 5};
  EXPECT_EQ(ColumnOf({.op = "add", .format = "e2m1fn", .rounding = stochastic}, "edges", 2),
            (std::set<uint64_t>{0, 15, 16, 31}));
}

TEST(CasesEdges, AscendWithTheLastColumnFastest) {
  const auto operation = MakeOperation({.op = "add", .format = "e4m3fn"});
  const CaseGenerator cases(*operation, ParseCaseLevel("edges"));
  for (uint64_t i = 1; i < cases.size(); ++i) {
    ASSERT_LT(CaseOf(cases, i - 1, 2), CaseOf(cases, i, 2));
  }
}

// Whether some row satisfies the predicate.
template <typename Predicate>
bool AnyRow(const OperationRequest& request, const Predicate& predicate) {
  const auto operation = MakeOperation(request);
  const CaseGenerator cases(*operation, ParseCaseLevel("edges"));
  for (uint64_t i = 0; i + kRandomEdgeRows < cases.size(); ++i) {
    if (predicate(CaseOf(cases, i, operation->inputs().size()))) return true;
  }
  return false;
}

TEST(CasesEdges, OfBlocksHaveZerosSpecialsAndMaximaAroundPowersOfTwo) {
  const OperationRequest mx{.op = "quantize-mx", .to = "e4m3fn"};
  const auto all = [](const Numbers& row, uint64_t code) {
    return std::all_of(row.begin(), row.end(), [code](uint64_t x) { return x == code; });
  };
  for (const uint64_t code :
       {0x00000000u, 0x80000000u, 0x7F7FFFFFu, 0x00000001u, 0x7F800000u, 0x7FC00000u}) {
    EXPECT_TRUE(AnyRow(mx, [&](const Numbers& row) { return all(row, code); })) << code;
    EXPECT_TRUE(AnyRow(mx, [&](const Numbers& row) {
      return row[31] == code && row[0] == 0x3F800000 && row[30] == 0x3F800000;
    })) << code;
  }
  for (const uint64_t maximum : {0x437FFFFFu, 0x43800000u, 0x43800001u, 0x3F7FFFFFu}) {
    EXPECT_TRUE(AnyRow(mx, [&](const Numbers& row) { return row[0] == maximum; })) << maximum;
  }
}

TEST(CasesEdges, OfBlocksHaveTiesOfTheElementFormat) {
  // 1.0625 lies between 1 and 1.125; 448 makes the scale 1.
  for (const uint64_t bits : {0x3F87FFFFu, 0x3F880000u, 0x3F880001u, 0xBF880000u}) {
    EXPECT_TRUE(AnyRow({.op = "quantize-mx", .to = "e4m3fn"},
                       [&](const Numbers& row) {
                         return row[0] == 0x43E00000 &&
                                std::find(row.begin(), row.end(), bits) != row.end();
                       }))
        << std::hex << bits;
  }
}

TEST(CasesEdges, OfDotsHaveCancellationAndTies) {
  const OperationRequest dot{.op = "dot", .format = "e4m3fn", .to = "bf16", .length = 4};
  EXPECT_TRUE(AnyRow(dot, [](const Numbers& row) {  // 448^2 - 448^2 and something
    return row[0] == 0x7E && row[1] == 0xFE && row[4] == 0x7E && row[5] == 0x7E && row[2] == 0x01;
  }));
  EXPECT_TRUE(AnyRow(dot, [](const Numbers& row) {  // 1 + 2^-8 + 2^-18: just above a tie of bf16
    return row[0] == 0x38 && row[4] == 0x38 && row[1] == 0x18 && row[5] == 0x18 && row[2] == 0x01 &&
           row[6] == 0x01;
  }));
}

}  // namespace
}  // namespace numsim
