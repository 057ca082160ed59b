// dot against integers and the processor's float arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/arith/arith.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"
#include "numsim/rounding/encode.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
      MakeOperation({.op = "dot", .format = "e5m2", .to = "fp32", .accumulation = "fp32"});
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
                                        .accumulation = "fp32:unfused"});
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
      MakeOperation({.op = "dot", .format = "e4m3fn", .to = "e4m3fn", .accumulation = "fp16"});
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
  OperationRequest request{.op = "dot", .format = "e4m3fn", .accumulation = "e4m3fn", .length = 2};
  const auto fused = MakeOperation(request);
  request.accumulation = "e4m3fn:unfused";
  const auto unfused = MakeOperation(request);
  request.accumulation = "exact";
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

// Computes as a tensor core does, in double: sums of a chunk of few e4m3fn products are exact.
float TruncatedSum(const Pairs& pairs, int fraction_bits) {
  const auto exponent = [](double x) {
    int e = 0;
    std::frexp(x, &e);
    return std::max(e - 1, kE4M3fn.MinExponent());
  };
  int largest = INT_MIN;
  for (size_t i = 0; i < pairs.a.size(); ++i) {
    if (pairs.a[i] * pairs.b[i] == 0) continue;
    largest = std::max(largest, exponent(pairs.a[i]) + exponent(pairs.b[i]));
  }
  if (largest == INT_MIN) return 0;
  double sum = 0;
  for (size_t i = 0; i < pairs.a.size(); ++i) {
    const double product = pairs.a[i] * pairs.b[i];
    sum += std::ldexp(std::trunc(std::ldexp(product, fraction_bits - largest)),
                      largest - fraction_bits);
  }
  if (sum == 0) return 0;
  int e = 0;
  std::frexp(sum, &e);
  const int unit = e - 1 - std::min(fraction_bits, 23);
  return static_cast<float>(std::ldexp(std::trunc(std::ldexp(sum, -unit)), unit));
}

TEST(DotModelled, TruncatesAsATensorCore) {
  for (const int fraction_bits : {3, 13, 25}) {
    const auto operation =
        MakeOperation({.op = "dot",
                       .format = "e4m3fn",
                       .to = "fp32",
                       .accumulation = "trunc:" + std::to_string(fraction_bits) + ",32"});
    ForEachFinite(*operation, [&](const Numbers& inputs, const Pairs& pairs) {
      ASSERT_EQ(ResultOf(*operation, inputs), F32Bits(TruncatedSum(pairs, fraction_bits)));
    });
  }
}

TEST(DotModelled, Float64AndChunksEqualTheProcessor) {
  const auto wide =
      MakeOperation({.op = "dot", .format = "bf16", .to = "fp32", .accumulation = "fp64"});
  ForEachFinite(*wide, [&](const Numbers& inputs, const Pairs& pairs) {
    double acc = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) acc += pairs.a[i] * pairs.b[i];
    ASSERT_EQ(ResultOf(*wide, inputs), F32Bits(static_cast<float>(acc)));
  });
  const auto chunked = MakeOperation(
      {.op = "dot", .format = "e5m2", .to = "fp32", .accumulation = "fp32-chunked:5"});
  ForEachFinite(*chunked, [&](const Numbers& inputs, const Pairs& pairs) {
    float total = 0, acc = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      if (i % 5 == 0) {
        total += acc;
        acc = 0;
      }
      acc = std::fma(static_cast<float>(pairs.a[i]), static_cast<float>(pairs.b[i]), acc);
    }
    ASSERT_EQ(ResultOf(*chunked, inputs), F32Bits(total + acc));
  });
}

TEST(DotModelled, EachOperandHasTheExponentsOfItsFormat) {
  // 2^-9 * 1 is subnormal in e4m3fn, so it is aligned under 2^-6: bits below 2^-19 are cut.
  OperationRequest request{.op = "dot",
                           .format = "e4m3fn",
                           .format_b = "e5m2",
                           .to = "fp32",
                           .accumulation = "hopper-fp8-fast",
                           .length = 2};
  const Numbers inputs = {0x01, 0x10, 0x3C, 0x02};  // 2^-9, 2^-5; 1, 2^-15
  EXPECT_EQ(ResultOf(*MakeOperation(request), inputs), F32Bits(0x1p-9f));
  request.accumulation = "trunc:14,32";
  EXPECT_EQ(ResultOf(*MakeOperation(request), inputs), F32Bits(0x1p-9f + 0x1p-20f));
  // The same products with the operands exchanged.
  const Numbers exchanged = {0x3C, 0x02, 0x01, 0x10};
  request.format = "e5m2";
  request.format_b = "e4m3fn";
  EXPECT_EQ(ResultOf(*MakeOperation(request), exchanged), F32Bits(0x1p-9f + 0x1p-20f));
  request.accumulation = "hopper-fp8-fast";
  EXPECT_EQ(ResultOf(*MakeOperation(request), exchanged), F32Bits(0x1p-9f));
}

// Exponents below -133 align as -133 does: with F = 25 everything is cut to multiples of 2^-158.
TEST(DotModelled, TinyProductsAreAlignedAsOnAnH200) {
  const auto operation = MakeOperation(
      {.op = "dot", .format = "bf16", .to = "fp32", .accumulation = "hopper-bf16", .length = 3});
  const auto result = [&](const std::vector<float>& a) {  // of the sum of a[i] * 2^-80
    Numbers inputs;
    for (const float x : a) inputs.push_back(Encode(kBf16, x));
    inputs.insert(inputs.end(), 3, Encode(kBf16, 0x1p-80f));
    return ResultOf(*operation, inputs);
  };
  const float below = 0x1p-69f - 0x1p-77f;  // 2^-149 - 2^-157 as a product
  EXPECT_EQ(result({below, 0x1p-77f, 0}), 1u);
  EXPECT_EQ(result({below, 0x1p-78f, 0x1p-78f}), 1u);
  EXPECT_EQ(result({below, 0x1.8p-78f, 0x1p-79f}), 0u);  // 2^-149 if nothing were cut
  EXPECT_EQ(result({-below, -0x1p-78f, 0}), 0u);         // not -0
  EXPECT_EQ(result({-below, -0x1p-77f, 0}), 0x80000001u);
}

TEST(DotModelled, OnlyTheResultIsRoundedAsRequested) {
  // 18 * 16 + 2^-6 * 2^-6: the unit cuts to 13 bits, whatever the mode.
  const Numbers inputs = {0x59, 0x08, 0x58, 0x08};  // 18, 2^-6; 16, 2^-6
  for (const RoundingMode mode : {RoundingMode::kUp, RoundingMode::kDown}) {
    OperationRequest request{.op = "dot",
                             .format = "e4m3fn",
                             .to = "fp32",
                             .accumulation = "hopper-fp8-fast",
                             .rounding = Rounding{.mode = mode},
                             .length = 2};
    Flags flags = 0xFF;
    EXPECT_EQ(ResultOf(*MakeOperation(request), inputs, &flags), F32Bits(288));
    EXPECT_EQ(flags, 0);
    request.to = "e5m2";  // 288 lies between 256 and 320
    EXPECT_EQ(ResultOf(*MakeOperation(request), inputs, &flags),
              mode == RoundingMode::kUp ? 0x5Du : 0x5Cu);
    EXPECT_EQ(flags, kInexact);
  }
  const Rounding stochastic{.mode = RoundingMode::kStochastic, .random_bits = 4};
  const auto operation = MakeOperation({.op = "dot",
                                        .format = "e4m3fn",
                                        .to = "e5m2",
                                        .accumulation = "hopper-fp8",
                                        .rounding = stochastic,
                                        .length = 2});
  ASSERT_EQ(operation->inputs().size(), 5u);
  for (uint64_t random = 0; random < 16; ++random) {
    const Numbers drawn = {0x59, 0x08, 0x58, 0x08, random};
    EXPECT_EQ(ResultOf(*operation, drawn), random >= 8 ? 0x5Du : 0x5Cu) << random;
  }
}

TEST(DotModelled, NanIsThatOfTheDeviceInFloat32) {
  OperationRequest request{
      .op = "dot", .format = "e5m2", .to = "fp32", .any_operands = true, .length = 2};
  struct Case {
    const char* accumulation;
    uint64_t nan;
  };
  for (const Case& c : {Case{"hopper-fp8", 0x7FFFFFFF},
                        Case{"cdna3-fp8", 0x7FC00000},
                        Case{"fp64", 0x7FC00000},
                        Case{"fp32-chunked:2", 0x7FC00000}}) {
    request.accumulation = c.accumulation;
    request.to = "fp32";
    const auto operation = MakeOperation(request);
    EXPECT_EQ(ResultOf(*operation, Numbers{0x7C, 0xFC, 0x3C, 0x3C}), c.nan);  // inf - inf
    EXPECT_EQ(ResultOf(*operation, Numbers{0x7C, 0x3C, 0x00, 0x3C}), c.nan);  // inf * 0
    EXPECT_EQ(ResultOf(*operation, Numbers{0xFE, 0x3C, 0x3C, 0x3C}), c.nan);
    EXPECT_EQ(ResultOf(*operation, Numbers{0x3C, 0xFC, 0x3C, 0x3C}), 0xFF800000u);  // 1 - inf
    request.to = "fp16";
    EXPECT_EQ(ResultOf(*MakeOperation(request), Numbers{0x7E, 0x3C, 0x3C, 0x3C}), 0x7E00u);
  }
}

TEST(DotModelled, TakesEveryNamedRuleAndTheLongestVector) {
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (IsBlockScaled(row.mode)) continue;  // scaled_dot_operation_test.cc has these
    const auto operation = MakeOperation({.op = "dot",
                                          .format = "e4m3fn",
                                          .to = "fp32",
                                          .accumulation = std::string(row.name),
                                          .any_operands = true,
                                          .length = 4096});
    const Numbers ones(2 * 4096, 0x38);
    EXPECT_EQ(ResultOf(*operation, ones), F32Bits(4096)) << row.name;
  }
}

TEST(DotModelled, ProductsBeyondFloat32MayCancel) {
  const Numbers inputs = {0x7F7F, 0xFF7F, 0x3F80, 0x7F7F, 0x7F7F, 0x3F80};  // max^2 - max^2 + 1
  for (const char* const rule : {"hopper-bf16", "trunc:23,2", "trunc:7,3"}) {
    const auto operation = MakeOperation(
        {.op = "dot", .format = "bf16", .to = "fp32", .accumulation = rule, .length = 3});
    // In one chunk the 1 is cut off; in the next one it is not.
    const float expected = std::string(rule) == "trunc:23,2" ? 1 : 0;
    EXPECT_EQ(ResultOf(*operation, inputs), F32Bits(expected)) << rule;
  }
}

TEST(DotModelled, AModeOfADeviceRefusesOtherOperands) {
  OperationRequest request{.op = "dot", .format = "e4m3fn", .accumulation = "hopper-bf16"};
  const std::string error = ErrorOf([&] { MakeOperation(request); });
  EXPECT_THAT(error,
              StartsWith("--accumulation-mode: accumulation mode hopper-bf16 is for bf16, "));
  EXPECT_THAT(error, HasSubstr("not for e4m3fn; --any-operands allows it; modes for e4m3fn: "));
  request.format_b = "bf16";
  EXPECT_THAT(ErrorOf([&] { MakeOperation(request); }), HasSubstr("e4m3fn by bf16"));
  request.any_operands = true;
  EXPECT_EQ(ErrorOf([&] { MakeOperation(request); }), kNoError);
  const OperationRequest add{.op = "add", .format = "e4m3fn", .any_operands = true};
  EXPECT_EQ(ErrorOf([&] { MakeOperation(add); }), "--op add does not use --any-operands");
}

TEST(DotModelled, LibraryIsRefused) {
  const OperationRequest request{.op = "dot", .format = "e4m3fn", .accumulation = "library"};
  EXPECT_THAT(ErrorOf([&] { MakeOperation(request); }), StartsWith("--accumulation-mode library "));
}

TEST(Dot, SpecialValues) {
  const auto exact = MakeOperation({.op = "dot", .format = "e5m2", .length = 2});
  const auto fused =
      MakeOperation({.op = "dot", .format = "e5m2", .accumulation = "fp32", .length = 2});
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
  request.accumulation = "fp16";
  EXPECT_EQ(MakeOperation(request)->inputs().size(), 6u + 4);
  request.accumulation = "fp16:unfused";
  EXPECT_EQ(MakeOperation(request)->inputs().size(), 6u + 7);

  // 1 + 2^-11: half an ulp of float16. R >= 8 of 16 rounds up, in the step that R belongs to.
  request.accumulation = "fp16";
  const auto operation = MakeOperation(request);
  for (uint64_t random = 0; random < 16; ++random) {
    const Numbers inputs = {0x3C00, 0x3C00, 0, 0x3C00, 0x1000, 0, 0, random, 0, 0};
    EXPECT_EQ(ResultOf(*operation, inputs), random >= 8 ? 0x3C01u : 0x3C00u) << random;
  }

  // A wider accumulator holds the sum; the conversion to the result has the last column.
  request.accumulation = "fp32:unfused";
  const auto wide = MakeOperation(request);
  for (uint64_t random = 0; random < 16; ++random) {
    const Numbers inputs = {0x3C00, 0x3C00, 0, 0x3C00, 0x1000, 0, 9, 9, 9, 9, 9, 9, random};
    EXPECT_EQ(ResultOf(*wide, inputs), random >= 8 ? 0x3C01u : 0x3C00u) << random;
  }
}

}  // namespace
}  // namespace numsim
