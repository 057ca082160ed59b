// quantize-mx and quantize-nvfp4 against a second computation: comparisons with midpoints, all of
// which are exact in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"
#include "numsim/rounding/encode.h"
#include "tests/oracle/case_lists.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

Numbers BitsOf(const std::vector<float>& values) {
  Numbers bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

Numbers Evaluate(const Operation& operation, const Numbers& inputs) {
  Numbers results(operation.results().size());
  EXPECT_EQ(operation.Evaluate(inputs, results), 0);
  return results;
}

// A block that begins with `values` and goes on with zeros.
Numbers Quantized(const Operation& operation, std::vector<float> values) {
  values.resize(operation.inputs().size());
  return Evaluate(operation, BitsOf(values));
}

// The magnitude code nearest to numerator / denominator, ties to even, saturating.
uint64_t NearestMagnitude(const FormatSpec& format, double numerator, double denominator) {
  uint32_t code = 0;
  while (code < format.MaxFiniteCode()) {
    const double twice_midpoint = double{Decode(format, code)} + double{Decode(format, code + 1)};
    const double left = 2 * numerator, right = twice_midpoint * denominator;
    if (left < right || (left == right && code % 2 == 0)) break;
    ++code;
  }
  return code;
}

// A code of a sign-magnitude format.
uint64_t NearestCode(const FormatSpec& format, double x, double scale) {
  if (std::isnan(x)) {
    if (!format.HasNan()) return format.MaxFiniteCode();
    return format.NanCode() | (std::signbit(x) && format.NanHasSign() ? format.SignBit() : 0);
  }
  const uint64_t sign = std::signbit(x) ? format.SignBit() : 0;
  if (std::isinf(x)) return sign | format.MaxFiniteCode();
  if (scale == 0) return sign;
  return sign | NearestMagnitude(format, std::fabs(x), scale);
}

std::vector<double> ValuesOf(const Operation& operation, const Numbers& inputs) {
  std::vector<double> values;
  for (size_t i = 0; i < operation.length(); ++i) {
    values.push_back(Decode(operation.inputs()[i].format->spec, static_cast<uint32_t>(inputs[i])));
  }
  return values;
}

double FiniteMaximum(const std::vector<double>& values) {
  double maximum = 0;
  for (const double x : values) {
    if (std::isfinite(x)) maximum = std::max(maximum, std::fabs(x));
  }
  return maximum;
}

Numbers ExpectedMx(const Operation& operation, const Numbers& inputs) {
  const FormatSpec& element = operation.results()[1].format->spec;
  const std::vector<double> values = ValuesOf(operation, inputs);
  const double maximum = FiniteMaximum(values);
  int exponent = 0;
  if (maximum > 0) {
    std::frexp(maximum, &exponent);
    int emax = 0;
    std::frexp(double{MaxFinite(element)}, &emax);
    exponent = std::min(std::max(exponent - emax, -127), 127);
  }
  Numbers results = {static_cast<uint64_t>(exponent + 127)};
  for (const double x : values) {
    results.push_back(NearestCode(element, x, std::ldexp(1.0, exponent)));
  }
  return results;
}

Numbers ExpectedNvfp4(const Operation& operation, const Numbers& inputs) {
  const std::vector<double> values = ValuesOf(operation, inputs);
  double tensor = 1;
  if (inputs.size() > operation.length()) {
    tensor = std::bit_cast<float>(static_cast<uint32_t>(inputs[operation.length()]));
    if (!(tensor > 0 && std::isfinite(tensor))) {
      Numbers results(1 + operation.length(), 7);
      results[0] = 0x7F;
      return results;
    }
  }
  const uint64_t scale = NearestMagnitude(kE4M3fn, FiniteMaximum(values), 6 * tensor);
  Numbers results = {scale};
  for (const double x : values) {
    const double decoded = Decode(kE4M3fn, static_cast<uint32_t>(scale));
    results.push_back(NearestCode(kE2M1fn, x, decoded * tensor));
  }
  return results;
}

using Expected = Numbers (*)(const Operation&, const Numbers&);

void ExpectSame(const OperationRequest& request, Expected expected) {
  const auto operation = MakeOperation(request);
  for (const char* level : {"edges", "random:3000"}) {
    const CaseGenerator cases(*operation, ParseCaseLevel(level, 7));
    ASSERT_GT(cases.size(), 300u);
    Numbers inputs(operation->inputs().size());
    for (uint64_t i = 0; i < cases.size(); ++i) {
      cases.Case(i, inputs);
      ASSERT_EQ(Evaluate(*operation, inputs), expected(*operation, inputs))
          << request.op << " " << request.format << " to " << request.to << ", " << level << " "
          << i;
    }
  }
}

TEST(QuantizeMx, EqualsASecondComputation) {
  for (const char* to : {"e4m3fn", "e5m2", "e3m2fn", "e2m3fn", "e2m1fn"}) {
    ExpectSame({.op = "quantize-mx", .to = to}, &ExpectedMx);
  }
  ExpectSame({.op = "quantize-mx", .format = "bf16", .to = "e2m1fn", .length = 8}, &ExpectedMx);
  ExpectSame({.op = "quantize-mx", .format = "e5m2", .to = "e4m3fn"}, &ExpectedMx);
}

// Comparisons of the maximum, in doubles, with the numbers at which the scales of a rule step.
int ExponentUnder(const std::string& rule, double maximum, const FormatSpec& element) {
  if (maximum == 0) return 0;
  const double largest = MaxFinite(element);
  int emax = 0;
  std::frexp(largest, &emax);
  --emax;
  const double ulp = std::ldexp(1.0, -element.mantissa_bits);  // of numbers from 1 to 2
  int e = std::max(std::ilogb(maximum) - emax - 2, -127);
  const auto is_at_least = [&](double significand) {  // significand * 2^(e + 1)
    return maximum >= std::ldexp(significand, e + 1);
  };
  const auto steps = [&] {  // whether the scale is at least 2^(e + 1)
    const double one = std::ldexp(1.0, emax);
    if (rule == "e8m0") return is_at_least(one);
    if (rule == "e8m0-even") return is_at_least(one * (1 - ulp / 4));
    if (rule == "e8m0-ulp") return is_at_least(one * (1 - ulp / 2));
    if (rule == "e8m0-three-eighths") return is_at_least(one * (1 - ulp * 3 / 16));
    if (rule == "e8m0-ceil") return maximum > std::ldexp(one, e);
    if (rule == "pow2-floor") return is_at_least(largest);
    return maximum > std::ldexp(largest, e);  // pow2-ceil
  };
  while (e < 127 && steps()) ++e;
  return e;
}

TEST(QuantizeMx, EveryRuleOfPowersOfTwoEqualsASecondComputation) {
  for (const char* rule : {"e8m0",
                           "e8m0-even",
                           "e8m0-ulp",
                           "e8m0-three-eighths",
                           "e8m0-ceil",
                           "pow2-floor",
                           "pow2-ceil"}) {
    for (const auto& [format, to] :
         {std::pair("fp32", "e4m3fn"), {"fp32", "e2m1fn"}, {"bf16", "e2m3fn"}, {"bf16", "e5m2"}}) {
      SCOPED_TRACE(std::string(rule) + " " + format + " to " + to);
      const auto operation = MakeOperation(
          {.op = "quantize-mx", .format = format, .to = to, .length = 4, .scale_rule = rule});
      for (const char* level : {"edges", "random:3000"}) {
        const CaseGenerator cases(*operation, ParseCaseLevel(level, 7));
        Numbers inputs(operation->inputs().size());
        for (uint64_t i = 0; i < cases.size(); ++i) {
          cases.Case(i, inputs);
          const std::vector<double> values = ValuesOf(*operation, inputs);
          const FormatSpec& element = operation->results()[1].format->spec;
          const int exponent = ExponentUnder(rule, FiniteMaximum(values), element);
          Numbers expected = {static_cast<uint64_t>(exponent + 127)};
          for (const double x : values) {
            expected.push_back(NearestCode(element, x, std::ldexp(1.0, exponent)));
          }
          ASSERT_EQ(Evaluate(*operation, inputs), expected) << level << " " << i;
        }
      }
    }
  }
}

TEST(QuantizeMx, RulesThatAreOfOtherScalesAreRefused) {
  for (const char* rule : {"absmax", "none", "nvfp4", "e4m3", "4over6-mae"}) {
    EXPECT_EQ(
        ErrorOf([&] { MakeOperation({.op = "quantize-mx", .to = "e2m1fn", .scale_rule = rule}); }),
        std::string("--scale-rule ") + rule + ": scales of quantize-mx are powers of two");
  }
  EXPECT_NE(ErrorOf([] { MakeOperation({.op = "quantize-nvfp4", .scale_rule = "e8m0"}); }),
            kNoError);
  EXPECT_NE(
      ErrorOf([] { MakeOperation({.op = "quantize-mx", .to = "e2m1fn", .scale_rule = "even"}); }),
      kNoError);
}

TEST(QuantizeMx, ScaleIsThePowerOfTwoOfTheMaximum) {
  const auto operation = MakeOperation({.op = "quantize-mx", .to = "e4m3fn"});
  ASSERT_EQ(operation->inputs().size(), 32u);
  ASSERT_EQ(operation->results().size(), 33u);
  EXPECT_EQ(operation->results()[0].name, "scale");
  EXPECT_EQ(operation->results()[0].format->name, "e8m0fnu");
  EXPECT_EQ(operation->results()[32].name, "q[31]");
  // 256 is 2^emax: scale 1. Just below it, scale 1/2 and elements that saturate at 448.
  EXPECT_EQ(Quantized(*operation, {256, -1})[0], 127u);
  EXPECT_EQ(Quantized(*operation, {256, -1})[1], 0x78u);
  EXPECT_EQ(Quantized(*operation, {256, -1})[2], 0xB8u);
  EXPECT_EQ(Quantized(*operation, {std::nextafter(256.0f, 0.0f)})[0], 126u);
  EXPECT_EQ(Quantized(*operation, {std::nextafter(256.0f, 0.0f)})[1], 0x7Eu);
}

TEST(QuantizeMx, ScaleIsClampedToItsFormat) {
  const auto operation = MakeOperation({.op = "quantize-mx", .to = "e4m3fn"});
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Quantized(*operation, {smallest})[0], 0u);
  EXPECT_EQ(Quantized(*operation, {smallest})[1], 0u);  // 2^-149 / 2^-127 is 2^-22
  EXPECT_EQ(Quantized(*operation, {std::numeric_limits<float>::max()})[0], 127u + 127 - 8);
}

TEST(QuantizeMx, ZeroBlockHasScaleOne) {
  const auto operation = MakeOperation({.op = "quantize-mx", .to = "e2m1fn"});
  const Numbers results = Quantized(*operation, {0.0f, -0.0f});
  EXPECT_EQ(results[0], 127u);
  EXPECT_EQ(results[1], 0u);
  EXPECT_EQ(results[2], 8u);
}

TEST(QuantizeMx, NanAndInfinityLeaveTheScaleAlone) {
  const auto operation = MakeOperation({.op = "quantize-mx", .to = "e4m3fn"});
  const Numbers results = Quantized(*operation, {kNaN, kInfinite, -kInfinite, 1.0f});
  EXPECT_EQ(results[0], 127u - 8);
  EXPECT_EQ(results[1], 0x7Fu);
  EXPECT_EQ(results[2], 0x7Eu);
  EXPECT_EQ(results[3], 0xFEu);
  EXPECT_EQ(results[4], 0x78u);
  const auto fp4 = MakeOperation({.op = "quantize-mx", .to = "e2m1fn"});
  EXPECT_EQ(Quantized(*fp4, {kNaN, 1.0f})[1], 7u);
}

TEST(QuantizeMx, OverflowPolicyCanBeGiven) {
  const auto operation =
      MakeOperation({.op = "quantize-mx", .to = "e4m3fn", .overflow = Overflow::kNonsaturate});
  EXPECT_EQ(Quantized(*operation, {511.0f})[1], 0x7Fu);
}

TEST(QuantizeMx, EachElementHasItsRandomBits) {
  const Rounding stochastic{.mode = RoundingMode::kStochastic, .random_bits = 8};
  const auto operation =
      MakeOperation({.op = "quantize-mx", .to = "e2m1fn", .rounding = stochastic});
  ASSERT_EQ(operation->inputs().size(), 64u);
  EXPECT_EQ(operation->operands(), 32u);
  EXPECT_EQ(operation->inputs()[33].name, "random[1]");
  // Maximum 4: scale 1. 1.125 lies a quarter of the way from 1 (code 2) to 1.5.
  std::vector<float> values(32, 1.125f);
  values[0] = 4;
  Numbers inputs = BitsOf(values);
  for (uint64_t i = 0; i < 32; ++i) inputs.push_back(i * 8);
  const Numbers results = Evaluate(*operation, inputs);
  EXPECT_EQ(results[1], 6u);
  for (uint64_t i = 1; i < 32; ++i) EXPECT_EQ(results[1 + i], i * 8 >= 192 ? 3u : 2u) << i;
}

TEST(QuantizeNvfp4, EqualsASecondComputation) {
  ExpectSame({.op = "quantize-nvfp4"}, &ExpectedNvfp4);
  ExpectSame({.op = "quantize-nvfp4", .format = "bf16"}, &ExpectedNvfp4);
  ExpectSame({.op = "quantize-nvfp4", .tensor_scale = true}, &ExpectedNvfp4);
  ExpectSame({.op = "quantize-nvfp4", .format = "fp16", .length = 5, .tensor_scale = true},
             &ExpectedNvfp4);
}

TEST(QuantizeNvfp4, ScaleIsASixthOfTheMaximum) {
  const auto operation = MakeOperation({.op = "quantize-nvfp4"});
  ASSERT_EQ(operation->inputs().size(), 16u);
  ASSERT_EQ(operation->results().size(), 17u);
  const Numbers results = Quantized(*operation, {6, -3, 0.25f, 0.75f});
  EXPECT_EQ(results[0], 0x38u);  // 1
  EXPECT_EQ(results[1], 7u);
  EXPECT_EQ(results[2], 0xDu);
  EXPECT_EQ(results[3], 0u);  // ties to even
  EXPECT_EQ(results[4], 2u);
  EXPECT_EQ(Quantized(*operation, {1e30f})[0], 0x7Eu);
}

TEST(QuantizeNvfp4, ScaleThatRoundsToZeroGivesZeros) {
  const auto operation = MakeOperation({.op = "quantize-nvfp4"});
  const Numbers results = Quantized(*operation, {0x1p-20f, -0x1p-20f, kInfinite, kNaN});
  EXPECT_EQ(results[0], 0u);
  EXPECT_EQ(results[1], 0u);
  EXPECT_EQ(results[2], 8u);
  EXPECT_EQ(results[3], 7u);
  EXPECT_EQ(results[4], 7u);
}

TEST(QuantizeNvfp4, TensorScaleDividesTheMaximumAndTheElements) {
  const auto operation = MakeOperation({.op = "quantize-nvfp4", .tensor_scale = true});
  ASSERT_EQ(operation->inputs().size(), 17u);
  EXPECT_EQ(operation->inputs()[16].name, "tensor-scale");
  std::vector<float> values(17, 3.0f);
  values[0] = 12;
  values[16] = 0.5f;
  const Numbers results = Evaluate(*operation, BitsOf(values));
  EXPECT_EQ(results[0], 0x48u);  // 12 / (6 * 0.5) = 4
  EXPECT_EQ(results[1], 7u);     // 12 / (4 * 0.5) = 6
  EXPECT_EQ(results[2], 3u);     // 1.5
}

TEST(QuantizeNvfp4, TensorScaleThatIsNotFiniteAndPositiveGivesNan) {
  const auto operation = MakeOperation({.op = "quantize-nvfp4", .tensor_scale = true});
  for (const float tensor : {0.0f, -0.0f, -1.0f, kInfinite, -kInfinite, kNaN}) {
    std::vector<float> values(17, 1.0f);
    values[16] = tensor;
    const Numbers results = Evaluate(*operation, BitsOf(values));
    EXPECT_EQ(results[0], 0x7Fu) << tensor;
    EXPECT_EQ(results[1], 7u) << tensor;
  }
}

}  // namespace
}  // namespace numsim
