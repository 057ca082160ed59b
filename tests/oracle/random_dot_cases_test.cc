// The dot products of random:N (cases.h): finite, and sensitive to every rounding of the sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "numsim/formats/decode.h"
#include "tests/oracle/case_lists.h"

namespace numsim {
namespace {

constexpr uint64_t kCases = 320;

struct DotRequest {
  const char* format;
  const char* to;
  const char* mode;
  int length;
};

OperationRequest RequestOf(const DotRequest& dot, const char* mode = nullptr) {
  return {.op = "dot",
          .format = dot.format,
          .to = dot.to,
          .accumulation = mode ? mode : dot.mode,
          .length = dot.length};
}

ValueClass ClassOf(const Column& column, uint64_t code) {
  return Classify(column.format->spec, static_cast<uint32_t>(code));
}

bool IsNotFinite(ValueClass c) { return c == ValueClass::kNan || c == ValueClass::kInfinity; }

uint64_t ResultOf(const Operation& operation, const Numbers& inputs) {
  Numbers results(1);
  operation.Evaluate(inputs, results);
  return results[0];
}

constexpr DotRequest kDots[] = {{"e4m3fn", "fp32", "exact", 64},
                                {"e4m3fn", "fp32", "hopper-fp8-fast", 64},
                                {"e4m3fn", "fp32", "hopper-fp8", 512},
                                {"e4m3fn", "e4m3fn", "exact", 512},
                                {"bf16", "fp32", "hopper-bf16", 512},
                                {"bf16", "bf16", "fp32", 512},
                                {"fp16", "fp16", "fp16", 512},
                                {"fp32", "fp32", "fp32", 33},
                                {"e5m2", "fp32", "hopper-fp8-fast", 512},
                                {"e5m2", "fp32", "fp16", 512},
                                {"e5m2", "fp16", "exact", 1000},
                                {"e5m2", "e5m2", "e5m2:unfused", 64},
                                {"e4m3fnuz", "fp32", "cdna3-fp8", 64},
                                {"binary8p3se", "binary8p3se", "exact", 64},
                                {"e4m3fn", "fp32", "fp64", 1}};

// One case of 32 has special operands, one a sum around the largest value: at most 2 of 32 results
// are NaN or infinite. Uniform codes give 324 of 1000 and more.
TEST(CasesRandomDot, AtMostASixteenthOfTheResultsIsNanOrInfinite) {
  for (const DotRequest& dot : kDots) {
    const auto operation = MakeOperation(RequestOf(dot));
    const CaseGenerator cases(*operation, ParseCaseLevel("random:320", 7));
    for (uint64_t i = 0; i < kCases; ++i) {
      if (i % 32 == 15 || i % 32 == 31) continue;
      const Numbers inputs = CaseOf(cases, i, operation->inputs().size());
      for (size_t c = 0; c < inputs.size(); ++c) {
        ASSERT_FALSE(IsNotFinite(ClassOf(operation->inputs()[c], inputs[c])))
            << dot.format << " case " << i << " column " << c;
      }
      ASSERT_FALSE(IsNotFinite(ClassOf(operation->results()[0], ResultOf(*operation, inputs))))
          << dot.format << " to " << dot.to << " " << dot.mode << " case " << i;
    }
  }
}

TEST(CasesRandomDot, SpecialOperandsAndOverflowOccur) {
  const auto operation = MakeOperation(RequestOf({"e5m2", "e5m2", "exact", 64}));
  const CaseGenerator cases(*operation, ParseCaseLevel("random:3200"));
  std::set<ValueClass> operands, results;
  size_t overflows = 0;
  for (uint64_t i = 15; i < 3200; i += 16) {
    const Numbers inputs = CaseOf(cases, i, 128);
    const ValueClass result = ClassOf(operation->results()[0], ResultOf(*operation, inputs));
    if (i % 32 == 31) {
      for (const uint64_t code : inputs) operands.insert(ClassOf(operation->inputs()[0], code));
      results.insert(result);
    } else if (result == ValueClass::kInfinity) {
      ++overflows;
    }
  }
  EXPECT_EQ(operands,
            (std::set<ValueClass>{ValueClass::kZero,
                                  ValueClass::kSubnormal,
                                  ValueClass::kNormal,
                                  ValueClass::kInfinity,
                                  ValueClass::kNan}));
  EXPECT_TRUE(results.contains(ValueClass::kNan));
  EXPECT_TRUE(results.contains(ValueClass::kInfinity));
  EXPECT_GT(overflows, 20u);  // of 100
  EXPECT_LT(overflows, 90u);
}

// The number of cases in which a program with a fault gives another result than the right one.
size_t Caught(const OperationRequest& right, const OperationRequest& wrong, const char* level) {
  const auto expected = MakeOperation(right), got = MakeOperation(wrong);
  const CaseGenerator cases(*expected, ParseCaseLevel(level, 1));
  size_t caught = 0;
  for (uint64_t i = 0; i < cases.size(); ++i) {
    const Numbers inputs = CaseOf(cases, i, expected->inputs().size());
    if (ResultOf(*expected, inputs) != ResultOf(*got, inputs)) ++caught;
  }
  return caught;
}

// Each fault is a mistake that a unit may have. 320 cases find it many times over.
TEST(CasesRandomDot, FaultsOfAnAccumulationAreCaught) {
  struct Fault {
    DotRequest dot;
    const char* wrong;  // the accumulation mode of the wrong unit
    size_t least;       // cases that must catch it, of 320
  };
  for (const Fault& fault : {
           Fault{{"e4m3fn", "fp32", "trunc:13,32", 64}, "trunc:12,32", 80},       // a bit too few
           Fault{{"e4m3fn", "fp32", "trunc:13,32", 64}, "trunc:14,32", 80},       // a bit too many
           Fault{{"e4m3fn", "fp32", "trunc:13,32", 512}, "exact", 160},           // no truncation
           Fault{{"e4m3fn", "fp32", "trunc:13,32", 64}, "trunc:13,16", 60},       // half the chunk
           Fault{{"e4m3fn", "fp32", "trunc:13,32,128", 512}, "trunc:13,32", 60},  // not promoted
           Fault{{"bf16", "fp32", "trunc:25,16", 512}, "trunc:24,16", 100},
           Fault{{"bf16", "fp32", "fp32", 512}, "exact", 100},
           Fault{{"bf16", "fp32", "fp32-chunked:128", 512}, "fp32", 80},
           Fault{{"fp16", "fp16", "fp32", 64}, "fp16", 160},
           Fault{{"e5m2", "fp32", "trunc:13,32", 512}, "trunc:12,32", 100},
           Fault{{"fp16", "bf16", "bf16", 64}, "bf16:unfused", 60},
       }) {
    EXPECT_GE(Caught(RequestOf(fault.dot), RequestOf(fault.dot, fault.wrong), "random:320"),
              fault.least)
        << fault.dot.format << " " << fault.dot.mode << " as " << fault.wrong;
  }
}

// Truncation in place of rounding to nearest.
TEST(CasesRandomDot, TruncatedSumsAreCaught) {
  for (const DotRequest& dot : {DotRequest{"bf16", "fp32", "fp32", 512},
                                DotRequest{"e4m3fn", "bf16", "exact", 64},
                                DotRequest{"e4m3fn", "e4m3fn", "exact", 512},
                                DotRequest{"e5m2", "e5m2", "exact", 64},
                                DotRequest{"e5m2", "fp16", "fp16", 512}}) {
    OperationRequest wrong = RequestOf(dot);
    wrong.rounding = Rounding{.mode = RoundingMode::kTowardZero};
    EXPECT_GE(Caught(RequestOf(dot), wrong, "random:320"), 100u)
        << dot.format << " to " << dot.to << " " << dot.mode;
  }
}

// Why uniform codes are not the default: they do not see the same fault.
TEST(CasesRandomDot, UniformCodesMissFaultsOfLongSums) {
  const DotRequest dot{"e4m3fn", "fp32", "trunc:13,32", 512};
  EXPECT_GE(Caught(RequestOf(dot), RequestOf(dot, "trunc:12,32"), "random:320"), 100u);
  EXPECT_LE(Caught(RequestOf(dot), RequestOf(dot, "trunc:12,32"), "uniform:320"), 3u);
}

// A sum that loses more than half of its bits against its largest product, in a quarter of the
// cases, both with neighbours and with products that are far apart as partners.
TEST(CasesRandomDot, EveryFourthCaseCancels) {
  constexpr size_t kLength = 64;
  const auto operation = MakeOperation(RequestOf({"e4m3fn", "fp32", "exact", kLength}));
  const CaseGenerator cases(*operation, ParseCaseLevel("random:320"));
  size_t neighbours = 0, halves = 0;
  for (uint64_t i = 1; i < kCases; i += 4) {
    const Numbers inputs = CaseOf(cases, i, 2 * kLength);
    std::vector<double> products;
    for (size_t k = 0; k < kLength; ++k) {
      const FormatSpec& format = operation->inputs()[0].format->spec;
      products.push_back(double{Decode(format, static_cast<uint32_t>(inputs[k]))} *
                         Decode(format, static_cast<uint32_t>(inputs[kLength + k])));
    }
    size_t near = 0, far = 0;
    for (size_t k = 0; k < kLength; k += 2) near += products[k] == -products[k + 1];
    for (size_t k = 0; k < kLength / 2; ++k) far += products[k] == -products[k + kLength / 2];
    if (near >= kLength / 8) ++neighbours;
    if (far >= kLength / 8) ++halves;
  }
  EXPECT_GE(neighbours, 25u);  // of 80
  EXPECT_GE(halves, 25u);
}

TEST(CasesRandomDot, DependOnSeedAndIndexAlone) {
  const auto operation = MakeOperation(RequestOf({"bf16", "fp32", "exact", 8}));
  for (uint64_t i = 0; i < 96; ++i) {
    EXPECT_EQ(CaseOf(*operation, "random:100", i, 1), CaseOf(*operation, "random:1000", i, 1));
    EXPECT_NE(CaseOf(*operation, "random:100", i, 1), CaseOf(*operation, "random:100", i, 2));
    EXPECT_NE(CaseOf(*operation, "random:101", i, 1), CaseOf(*operation, "random:101", i + 1, 1));
  }
}

TEST(CasesRandomDot, RandomBitsAreUniform) {
  OperationRequest request = RequestOf({"e4m3fn", "bf16", "exact", 4});
  request.rounding = Rounding{.mode = RoundingMode::kStochastic, .random_bits = 4};
  EXPECT_EQ(ColumnOf(request, "random:320", 8).size(), 16u);
}

}  // namespace
}  // namespace numsim
