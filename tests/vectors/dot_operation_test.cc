// dot against integers and the processor's float arithmetic.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/arith/arith.h"
#include "numsim/arith/exact.h"
#include "numsim/arith/exact_sum.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"
#include "numsim/vectors/cases.h"
#include "numsim/vectors/operation.h"

namespace numsim {
namespace {

using Numbers = std::vector<uint64_t>;

uint64_t ResultOf(const Operation& operation, const Numbers& inputs, Flags* flags = nullptr) {
  uint64_t result = 0;
  const Flags raised = operation.Evaluate(inputs, {&result, 1});
  if (flags != nullptr) *flags = raised;
  return result;
}

struct Pairs {
  std::vector<double> a, b;
  bool finite = true;
};

Pairs Decoded(const Operation& operation, const Numbers& inputs) {
  Pairs pairs;
  const size_t n = operation.length();
  for (size_t i = 0; i < 2 * n; ++i) {
    const double x = Decode(operation.inputs()[i].format->spec, static_cast<uint32_t>(inputs[i]));
    (i < n ? pairs.a : pairs.b).push_back(x);
    pairs.finite = pairs.finite && std::isfinite(x);
  }
  return pairs;
}

// Calls check(inputs, pairs) for finite edges and random cases; both kinds must occur often.
template <typename Check>
void ForEachFinite(const Operation& operation, const Check& check) {
  for (const char* level : {"edges", "random:20000"}) {
    const CaseGenerator cases(operation, ParseCaseLevel(level, 11));
    Numbers inputs(operation.inputs().size());
    size_t finite = 0;
    for (uint64_t i = 0; i < cases.size(); ++i) {
      cases.Case(i, inputs);
      const Pairs pairs = Decoded(operation, inputs);
      if (!pairs.finite) continue;
      ++finite;
      check(inputs, pairs);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(finite, 200u) << level;
  }
}

uint64_t F32Bits(float x) { return std::bit_cast<uint32_t>(x); }

TEST(DotExact, EqualsAnIntegerSum) {
  const auto operation = MakeOperation({.op = "dot", .format = "e4m3fn", .to = "fp32"});
  ASSERT_EQ(operation->length(), 16u);
  ForEachFinite(*operation, [&](const Numbers& inputs, const Pairs& pairs) {
    // Products are multiples of 2^-18 below 2^18.
    int64_t sum = 0;
    bool all_negative_zero = true;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      const double product = pairs.a[i] * pairs.b[i];
      sum += static_cast<int64_t>(std::ldexp(product, 18));
      all_negative_zero = all_negative_zero && product == 0 && std::signbit(product);
    }
    float expected = static_cast<float>(std::ldexp(static_cast<double>(sum), -18));
    if (all_negative_zero) expected = -0.0f;
    Flags flags = 0;
    ASSERT_EQ(ResultOf(*operation, inputs, &flags), F32Bits(expected));
    ASSERT_EQ(flags, std::ldexp(double{expected}, 18) == static_cast<double>(sum) ? 0 : kInexact);
  });
}

TEST(DotExact, EqualsExactSumInEveryMode) {
  for (const RoundingMode mode :
       {RoundingMode::kDown, RoundingMode::kToOdd, RoundingMode::kStochastic}) {
    const Rounding rounding{.mode = mode, .random_bits = 9};
    const auto operation = MakeOperation({.op = "dot",
                                          .format = "bf16",
                                          .format_b = "fp16",
                                          .to = "e4m3fn",
                                          .rounding = rounding,
                                          .length = 7});
    const EncodePlan to = MakeEncodePlan(kE4M3fn, rounding);
    ForEachFinite(*operation, [&](const Numbers& inputs, const Pairs&) {
      ExactSum sum;
      for (size_t i = 0; i < 7; ++i) {
        sum.Add(exact::Product(ExactValue(kBf16, static_cast<uint32_t>(inputs[i])),
                               ExactValue(kFp16, static_cast<uint32_t>(inputs[7 + i])))
                    .value);
      }
      const auto random = static_cast<uint32_t>(mode == RoundingMode::kStochastic ? inputs[14] : 0);
      const Rounded expected = EncodeUnrounded(to, sum.Result(mode == RoundingMode::kDown), random);
      Flags flags = 0;
      ASSERT_EQ(ResultOf(*operation, inputs, &flags), expected.code);
      ASSERT_EQ(flags, expected.flags);
    });
  }
}

TEST(DotSequential, FusedInFloat32EqualsTheProcessor) {
  const auto operation =
      MakeOperation({.op = "dot", .format = "e5m2", .to = "fp32", .accumulator = "fp32"});
  ForEachFinite(*operation, [&](const Numbers& inputs, const Pairs& pairs) {
    float acc = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      acc = std::fma(static_cast<float>(pairs.a[i]), static_cast<float>(pairs.b[i]), acc);
    }
    ASSERT_EQ(ResultOf(*operation, inputs), F32Bits(acc));
  });
}

TEST(DotSequential, UnfusedInFloat32EqualsTheProcessor) {
  const auto operation = MakeOperation({.op = "dot",
                                        .format = "fp16",
                                        .format_b = "bf16",
                                        .to = "fp32",
                                        .accumulator = "fp32:unfused"});
  ForEachFinite(*operation, [&](const Numbers& inputs, const Pairs& pairs) {
    float acc = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      const float product = static_cast<float>(pairs.a[i]) * static_cast<float>(pairs.b[i]);
      acc += product;
    }
    const uint64_t result = ResultOf(*operation, inputs);
    if (std::isnan(acc)) {
      ASSERT_EQ(result, kFp32.NanCode());
    } else {
      ASSERT_EQ(result, F32Bits(acc));
    }
  });
}

TEST(DotSequential, AccumulatesInFloat16StepByStep) {
  // In float16 every sum of e4m3fn products is exact in double before it is rounded.
  const auto fused =
      MakeOperation({.op = "dot", .format = "e4m3fn", .to = "e4m3fn", .accumulator = "fp16"});
  ForEachFinite(*fused, [&](const Numbers& inputs, const Pairs& pairs) {
    uint32_t acc = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      acc = Encode(kFp16, double{Decode(kFp16, acc)} + pairs.a[i] * pairs.b[i]);
    }
    if (Classify(kFp16, acc) == ValueClass::kNan) acc = kFp16.NanCode();
    ASSERT_EQ(ResultOf(*fused, inputs), Encode(kE4M3fn, Decode(kFp16, acc)));
  });
}

TEST(DotSequential, FusedAndUnfusedDiffer) {
  // 0.3125 * 0.3125 = 0.09765625 takes 25 * 2^-8: five bits, one more than e4m3fn holds.
  const Numbers inputs = {0x2A, 0x38, 0x2A, 0xA0};  // 0.3125^2 - 0.125
  OperationRequest request{.op = "dot", .format = "e4m3fn", .accumulator = "e4m3fn", .length = 2};
  const auto fused = MakeOperation(request);
  request.accumulator = "e4m3fn:unfused";
  const auto unfused = MakeOperation(request);
  request.accumulator = "exact";
  const auto exact = MakeOperation(request);
  // Each accumulator rounds the first product to 0.09375; only the exact sum keeps it.
  EXPECT_EQ(Decode(kE4M3fn, static_cast<uint32_t>(ResultOf(*fused, inputs))), -0.03125f);
  EXPECT_EQ(Decode(kE4M3fn, static_cast<uint32_t>(ResultOf(*unfused, inputs))), -0.03125f);
  EXPECT_EQ(Decode(kE4M3fn, static_cast<uint32_t>(ResultOf(*exact, inputs))), -0.02734375f);
  // The other way round the fused step does not round the product.
  const Numbers swapped = {0x38, 0x2A, 0xA0, 0x2A};
  EXPECT_EQ(Decode(kE4M3fn, static_cast<uint32_t>(ResultOf(*fused, swapped))), -0.02734375f);
  EXPECT_EQ(Decode(kE4M3fn, static_cast<uint32_t>(ResultOf(*unfused, swapped))), -0.03125f);
}

TEST(Dot, SpecialValues) {
  const auto exact = MakeOperation({.op = "dot", .format = "e5m2", .length = 2});
  const auto fused =
      MakeOperation({.op = "dot", .format = "e5m2", .accumulator = "fp32", .length = 2});
  struct Case {
    Numbers inputs;
    uint64_t result;
    Flags flags;
  };
  const Case cases[] = {
      {{0x7C, 0x3C, 0x3C, 0x3C}, 0x7C, 0},         // inf + 1
      {{0x7C, 0xFC, 0x3C, 0x3C}, 0x7E, kInvalid},  // inf - inf
      {{0x7C, 0x3C, 0x00, 0x3C}, 0x7E, kInvalid},  // inf * 0
      {{0x7E, 0x3C, 0x3C, 0x3C}, 0x7E, 0},         // a quiet NaN
      {{0x7D, 0x3C, 0x3C, 0x3C}, 0x7E, kInvalid},  // a signalling one
      {{0x7B, 0x7B, 0x3C, 0x3C}, 0x7C, kOverflow | kInexact},
  };
  for (const Case& c : cases) {
    for (const Operation* operation : {exact.get(), fused.get()}) {
      Flags flags = 0;
      EXPECT_EQ(ResultOf(*operation, c.inputs, &flags), c.result) << std::hex << c.inputs[0];
      EXPECT_EQ(flags, c.flags) << std::hex << c.inputs[0];
    }
  }
}

TEST(Dot, EveryRoundingHasItsRandomBits) {
  const Rounding stochastic{.mode = RoundingMode::kStochastic, .random_bits = 4};
  OperationRequest request{.op = "dot", .format = "fp16", .rounding = stochastic, .length = 3};
  EXPECT_EQ(MakeOperation(request)->inputs().size(), 6u + 1);
  EXPECT_EQ(MakeOperation(request)->inputs()[6].name, "random");
  request.accumulator = "fp16";
  EXPECT_EQ(MakeOperation(request)->inputs().size(), 6u + 4);
  request.accumulator = "fp16:unfused";
  EXPECT_EQ(MakeOperation(request)->inputs().size(), 6u + 7);

  // 1 + 2^-11: half an ulp of float16. R >= 8 of 16 rounds up, in the step that R belongs to.
  request.accumulator = "fp16";
  const auto operation = MakeOperation(request);
  for (uint64_t random = 0; random < 16; ++random) {
    const Numbers inputs = {0x3C00, 0x3C00, 0, 0x3C00, 0x1000, 0, 0, random, 0, 0};
    EXPECT_EQ(ResultOf(*operation, inputs), random >= 8 ? 0x3C01u : 0x3C00u) << random;
  }

  // A wider accumulator holds the sum; the conversion to the result has the last column.
  request.accumulator = "fp32:unfused";
  const auto wide = MakeOperation(request);
  for (uint64_t random = 0; random < 16; ++random) {
    const Numbers inputs = {0x3C00, 0x3C00, 0, 0x3C00, 0x1000, 0, 9, 9, 9, 9, 9, 9, random};
    EXPECT_EQ(ResultOf(*wide, inputs), random >= 8 ? 0x3C01u : 0x3C00u) << random;
  }
}

}  // namespace
}  // namespace numsim
