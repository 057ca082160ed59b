// The level random:N of cases.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/random/streams.h"
#include "tests/oracle/case_lists.h"

namespace numsim {
namespace {

TEST(CasesRandom, DependOnSeedAndIndexAlone) {
  const auto operation = MakeOperation({.op = "fma", .format = "fp16"});
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(CaseOf(*operation, "random:100", i, 1), CaseOf(*operation, "random:1000", i, 1));
    EXPECT_NE(CaseOf(*operation, "random:100", i, 1), CaseOf(*operation, "random:100", i, 2));
    EXPECT_NE(CaseOf(*operation, "random:101", i, 1), CaseOf(*operation, "random:101", i + 1, 1));
  }
}

TEST(CasesRandom, AreSafeFromSeveralThreads) {
  const auto operation = MakeOperation({.op = "dot", .format = "e5m2", .length = 8});
  const CaseGenerator cases(*operation, ParseCaseLevel("random:512", 5));
  std::vector<Numbers> rows(512, Numbers(16));
  ParallelFor(512, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) cases.Case(i, rows[i]);
  });
  for (uint64_t i = 0; i < 512; ++i) EXPECT_EQ(rows[i], CaseOf(cases, i, 16)) << i;
}

TEST(CasesRandom, StayAsTheyAre) {
  const auto fma = MakeOperation({.op = "fma", .format = "fp16", .to = "fp32"});
  // Even cases: the low bits of Philox block i of stream (0x7EC7 << 32) + column.
  EXPECT_EQ(CaseOf(*fma, "random:9", 0, 42), (Numbers{0x59DE, 0x15A5, 0x917D8794}));
  EXPECT_EQ(CaseOf(*fma, "random:9", 8, 42), (Numbers{0x06A6, 0xE16E, 0xC6A59F5E}));
  EXPECT_EQ(CaseOf(*fma, "random:9", 1, 42), (Numbers{0x8140, 0x7A87, 0x3F828C00}));
  EXPECT_EQ(CaseOf(*fma, "random:9", 7, 42), (Numbers{0xFA5A, 0xB488, 0xC6663E81}));
  const auto scale = MakeOperation({.op = "scale", .format = "e4m3fn"});
  EXPECT_EQ(CaseOf(*scale, "random:9", 5, 0), (Numbers{0x61, 0x14FECA38}));
}

// The dot products of `edges` end with random rows that packs contain.
TEST(CasesRandom, EdgesOfDotProductsStayAsTheyAre) {
  const auto dot = MakeOperation({.op = "dot", .format = "e4m3fn", .to = "fp32", .length = 2});
  const CaseGenerator cases(*dot, ParseCaseLevel("edges"));
  const uint64_t last = cases.size() - 1;
  // Uniform bits in even cases: the low byte of Philox block i of stream (0x7EC7 << 32) + column.
  const uint64_t even = last % 2 == 0 ? last : last - 1;
  Numbers expected;
  for (uint64_t column = 0; column < 4; ++column) {
    expected.push_back(RandomBlock({0, (uint64_t{0x7EC7} << 32) + column}, even)[0] & 0xFF);
  }
  EXPECT_EQ(CaseOf(cases, even, 4), expected);
}

TEST(CasesUniform, EveryCaseHasUniformBits) {
  const auto dot = MakeOperation({.op = "dot", .format = "e4m3fn", .to = "fp32", .length = 2});
  const CaseGenerator cases(*dot, ParseCaseLevel("uniform:100", 42));
  for (uint64_t i = 0; i < 100; ++i) {
    Numbers expected;
    for (uint64_t column = 0; column < 4; ++column) {
      expected.push_back(RandomBlock({42, (uint64_t{0x7EC7} << 32) + column}, i)[0] & 0xFF);
    }
    EXPECT_EQ(CaseOf(cases, i, 4), expected);
  }
}

TEST(CasesRandom, EvenCasesReachEveryCode) {
  EXPECT_EQ(ColumnOf({.op = "add", .format = "e4m3fn"}, "random:8000", 1).size(), 256u);
}

TEST(CasesRandom, OddCasesAreFinite) {
  for (const char* format : {"e4m3fn", "e5m2", "fp32", "int8", "e4m3fnuz", "binary8p1ue"}) {
    const auto operation = MakeOperation({.op = "add", .format = format});
    const CaseGenerator cases(*operation, ParseCaseLevel("random:2000"));
    for (uint64_t i = 1; i < cases.size(); i += 2) {
      const Numbers inputs = CaseOf(cases, i, 2);
      for (const uint64_t code : inputs) {
        const FormatSpec& spec = operation->inputs()[0].format->spec;
        ASSERT_LE(Classify(spec, static_cast<uint32_t>(code)), ValueClass::kNormal) << format;
      }
    }
  }
}

// The share of odd cases whose result is closer to zero than a quarter of its largest term.
double ShareOfCancellation(const OperationRequest& request, size_t terms) {
  const auto operation = MakeOperation(request);
  const CaseGenerator cases(*operation, ParseCaseLevel("random:4000"));
  size_t cancelled = 0;
  for (uint64_t i = 1; i < cases.size(); i += 2) {
    const Numbers inputs = CaseOf(cases, i, operation->inputs().size());
    std::vector<double> x;
    for (const uint64_t code : inputs) {
      x.push_back(Decode(operation->inputs()[0].format->spec, static_cast<uint32_t>(code)));
    }
    std::vector<double> summands;
    if (request.op == "add") summands = x;
    if (request.op == "fma") summands = {x[0] * x[1], x[2]};
    for (size_t k = 0; k < terms && request.op == "dot"; ++k) {
      summands.push_back(x[k] * x[terms + k]);
    }
    double sum = 0, largest = 0;
    for (const double summand : summands) {
      sum += summand;
      largest = std::max(largest, std::fabs(summand));
    }
    if (std::fabs(sum) < largest / 4) ++cancelled;
  }
  return static_cast<double>(cancelled) / 2000;
}

TEST(CasesRandom, OddCasesCancel) {
  EXPECT_GT(ShareOfCancellation({.op = "add", .format = "fp32"}, 2), 0.2);
  EXPECT_GT(ShareOfCancellation({.op = "fma", .format = "fp32"}, 2), 0.3);
  EXPECT_GT(ShareOfCancellation({.op = "fma", .format = "e4m3fn"}, 2), 0.2);
  EXPECT_GT(ShareOfCancellation({.op = "dot", .format = "fp16"}, 16), 0.05);
}

}  // namespace
}  // namespace numsim
