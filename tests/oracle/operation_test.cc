#include "numsim/oracle/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "numsim/arith/arith.h"
#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<uint64_t>;

std::string RequestError(const OperationRequest& request) {
  return ErrorOf([&] { MakeOperation(request); });
}

struct HandComputed {
  std::string op, format;
  Numbers inputs;
  uint64_t result;
  Flags flags;
};

// e4m3fn: 38 is 1, 3C 1.5, 40 2, 44 3, 48 4, 7E 448, 01 2^-9, 7F NaN. binary8p1uf: 80 is 1, 81 2.
const HandComputed kHandComputed[] = {
    {"convert", "fp32", {0x3F800000}, 0x38, 0},
    {"convert", "fp32", {0x43E80001}, 0x7F, kOverflow | kInexact},  // just above 464
    {"convert", "fp32", {0xFFC00000}, 0xFF, 0},
    {"convert", "fp32", {0x7F800001}, 0x7F, kInvalid},
    {"add", "e4m3fn", {0x38, 0x38}, 0x40, 0},
    {"add", "e4m3fn", {0x7E, 0x7E}, 0x7F, kOverflow | kInexact},
    {"sub", "e4m3fn", {0x40, 0x38}, 0x38, 0},
    {"sub", "e4m3fn", {0x38, 0x40}, 0xB8, 0},
    {"mul", "e4m3fn", {0x3C, 0x3C}, 0x41, 0},
    {"mul", "e4m3fn", {0x01, 0x81}, 0x80, kUnderflow | kInexact},
    {"div", "e4m3fn", {0x38, 0x44}, 0x2B, kInexact},
    {"div", "e4m3fn", {0x44, 0x40}, 0x3C, 0},
    {"div", "e5m2", {0x3C, 0x80}, 0xFC, kDivideByZero},
    {"div-p3109", "e5m2", {0x3C, 0x80}, 0x7E, kInvalid},
    {"fma", "e4m3fn", {0x3C, 0x3C, 0x38}, 0x45, 0},
    {"faa", "e4m3fn", {0x38, 0x38, 0xB8}, 0x38, 0},
    {"sqrt", "e4m3fn", {0x48}, 0x40, 0},
    {"sqrt", "e4m3fn", {0xB8}, 0x7F, kInvalid},
    {"rem", "e4m3fn", {0x44, 0x40}, 0xB8, 0},
    {"recip", "e4m3fn", {0x40}, 0x30, 0},
    {"exp", "e4m3fn", {0x38}, 0x43, kInexact},          // e = 2.718 -> 2.75
    {"exp2", "e4m3fn", {0x40}, 0x48, 0},                // 4
    {"log", "e4m3fn", {0x38}, 0x00, 0},                 // log 1
    {"log", "e5m2", {0x00}, 0xFC, kDivideByZero},       // -infinity
    {"log2", "e4m3fn", {0x50}, 0x44, 0},                // log2 8 = 3
    {"log2", "e4m3fn", {0xB8}, 0x7F, kInvalid},         // of -1
    {"tanh", "e4m3fn", {0xB8}, 0xB4, kInexact},         // -0.7616 -> -0.75
    {"expm1", "e4m3fn", {0x38}, 0x3E, kInexact},        // 1.718 -> 1.75
    {"log1p", "e5m2", {0xBC}, 0xFC, kDivideByZero},     // of -1
    {"softplus", "e4m3fn", {0x00}, 0x33, kInexact},     // ln 2 = 0.6931 -> 0.6875
    {"rsqrt", "e4m3fn", {0x48}, 0x30, 0},               // of 4: 1/2
    {"sin", "e4m3fn", {0x38}, 0x35, kInexact},          // 0.8415 -> 0.8125
    {"cos", "e4m3fn", {0x38}, 0x31, kInexact},          // 0.5403 -> 0.5625
    {"tan", "e4m3fn", {0x38}, 0x3C, kInexact},          // 1.557 -> 1.5
    {"asin", "e4m3fn", {0xB8}, 0xBD, kInexact},         // -pi / 2 = -1.571 -> -1.625
    {"acos", "e4m3fn", {0xB8}, 0x45, kInexact},         // pi = 3.1416 -> 3.25
    {"atan", "e4m3fn", {0x38}, 0x35, kInexact},         // 0.7854 -> 0.8125
    {"sinpi", "e4m3fn", {0x3C}, 0xB8, 0},               // of 1.5: -1
    {"cospi", "e4m3fn", {0x38}, 0xB8, 0},               // of 1: -1
    {"tanpi", "e5m2", {0x38}, 0x7C, kDivideByZero},     // of 1/2: infinity
    {"asinpi", "e4m3fn", {0x38}, 0x30, 0},              // of 1: 1/2
    {"acospi", "e4m3fn", {0xB8}, 0x38, 0},              // of -1: 1
    {"atanpi", "e4m3fn", {0xB8}, 0xA8, 0},              // of -1: -1/4
    {"sinh", "e4m3fn", {0x38}, 0x39, kInexact},         // 1.1752 -> 1.125
    {"cosh", "e4m3fn", {0x38}, 0x3C, kInexact},         // 1.543 -> 1.5
    {"asinh", "e4m3fn", {0x38}, 0x36, kInexact},        // 0.8814 -> 0.875
    {"acosh", "e4m3fn", {0x40}, 0x3B, kInexact},        // 1.317 -> 1.375
    {"atanh", "e4m3fn", {0x30}, 0x31, kInexact},        // 0.5493 -> 0.5625
    {"hypot", "e4m3fn", {0x44, 0xC8}, 0x4A, 0},         // 3, -4: 5
    {"atan2", "e4m3fn", {0x00, 0xB8}, 0x45, kInexact},  // pi
    {"atan2pi", "e4m3fn", {0xB8, 0xB8}, 0xB4, 0},       // -3/4
    {"sigmoid", "e4m3fn", {0x80}, 0x30, 0},             // 1/2
    {"gelu", "e4m3fn", {0x38}, 0x35, kInexact},         // 0.8413 -> 0.8125
    {"gelu-tanh", "e5m2", {0xFC}, 0x80, 0},             // of -infinity: -0
    {"recip", "e5m2", {0x00}, 0x7C, kDivideByZero},
    {"recip-p3109", "e5m2", {0x00}, 0x7E, kInvalid},
    {"scale", "e4m3fn", {0x38, 0xFFFFFFFF}, 0x30, 0},
    {"scale", "e4m3fn", {0x38, 2}, 0x48, 0},
    {"scaled-add", "e4m3fn", {0x38, 0x38, 0x81, 0x80}, 0x44, 0},
    {"scaled-sub", "e4m3fn", {0x38, 0x38, 0x81, 0x80}, 0x38, 0},
    {"scaled-mul", "e4m3fn", {0x38, 0x3C, 0x81, 0x80}, 0x44, 0},
    {"neg", "e4m3fn", {0x38}, 0xB8, 0},
    {"abs", "e4m3fn", {0xB8}, 0x38, 0},
    {"next-up", "e4m3fn", {0x38}, 0x39, 0},
    {"next-down", "e4m3fn", {0x38}, 0x37, 0},
    {"eq", "e4m3fn", {0x00, 0x80}, 1, 0},
    {"eq", "e4m3fn", {0x38, 0x7F}, 0, 0},
    {"lt", "e4m3fn", {0x38, 0x40}, 1, 0},
    {"lt", "e4m3fn", {0x38, 0x7F}, 0, kInvalid},
    {"le", "e4m3fn", {0x40, 0x40}, 1, 0},
    {"le", "e4m3fn", {0x40, 0x38}, 0, 0},
    {"eq-signaling", "e4m3fn", {0x7F, 0x38}, 0, kInvalid},
    {"lt-quiet", "e4m3fn", {0x7F, 0x38}, 0, 0},
    {"lt-quiet", "e4m3fn", {0xB8, 0x38}, 1, 0},
    {"le-quiet", "e4m3fn", {0x38, 0x38}, 1, 0},
    {"unordered", "e4m3fn", {0x7F, 0x38}, 1, 0},
    {"unordered", "e4m3fn", {0x38, 0x38}, 0, 0},
    {"minimum", "e4m3fn", {0x38, 0x40}, 0x38, 0},
    {"minimum", "e4m3fn", {0x38, 0x7F}, 0x7F, 0},
    {"maximum", "e4m3fn", {0x38, 0x40}, 0x40, 0},
    {"minimum-number", "e4m3fn", {0x38, 0x7F}, 0x38, 0},
    {"minimum-number", "e4m3fn", {0x38, 0x40}, 0x38, 0},
    {"maximum-number", "e4m3fn", {0x38, 0x40}, 0x40, 0},
    {"minimum-magnitude", "e4m3fn", {0x38, 0xC0}, 0x38, 0},
    {"maximum-magnitude", "e4m3fn", {0x38, 0xC0}, 0xC0, 0},
    {"minimum-magnitude-number", "e4m3fn", {0x7F, 0xC0}, 0xC0, 0},
    {"minimum-magnitude-number", "e4m3fn", {0x38, 0xC0}, 0x38, 0},
    {"maximum-magnitude-number", "e4m3fn", {0x38, 0xC0}, 0xC0, 0},
    {"minimum-finite", "e5m2", {0xFC, 0x3C}, 0x3C, 0},
    {"maximum-finite", "e5m2", {0x7C, 0x3C}, 0x3C, 0},
    {"round", "e4m3fn", {0x3C}, 0x40, kInexact},
    {"round", "e4m3fn", {0x44}, 0x44, 0},
    {"to-i8", "e4m3fn", {0xC4}, 0xFD, 0},
    {"to-i16", "e4m3fn", {0x7E}, 0x01C0, 0},
    {"to-i32", "e4m3fn", {0xC4}, 0xFFFFFFFD, 0},
    {"to-i64", "e4m3fn", {0xC4}, 0xFFFFFFFFFFFFFFFD, 0},
    {"to-u8", "e4m3fn", {0xB8}, 0, kInvalid},
    {"to-u16", "e4m3fn", {0x7F}, 0xFFFF, kInvalid},
    {"to-u32", "e4m3fn", {0x3C}, 2, kInexact},
    {"to-u64", "e4m3fn", {0x44}, 3, 0},
    {"from-i8", "e4m3fn", {0xFD}, 0xC4, 0},
    {"from-i16", "e4m3fn", {0xFFFF}, 0xB8, 0},
    {"from-i32", "e4m3fn", {0xFFFFFE40}, 0xFE, 0},  // -448
    {"from-i64", "e4m3fn", {0x8000000000000000}, 0xFF, kOverflow | kInexact},
    {"from-u8", "e4m3fn", {0xFD}, 0x78, kInexact},  // 253 to 256
    {"from-u16", "e4m3fn", {3}, 0x44, 0},
    {"from-u32", "e4m3fn", {0xFFFFFFFF}, 0x7F, kOverflow | kInexact},
    {"from-u64", "e4m3fn", {448}, 0x7E, 0},
    {"from-f64", "e4m3fn", {0x3FF1000000000001}, 0x39, kInexact},  // just above 1.0625, a tie
    {"to-f64", "e4m3fn", {0xB9}, 0xBFF2000000000000, 0},           // -1.125
    {"to-f64", "e5m2", {0xFC}, 0xFFF0000000000000, 0},
    {"to-f64", "fp16", {0xFD00}, 0xFFF8000000000000, kInvalid},
    {"to-f64", "fp32", {0x80000001}, 0xB6A0000000000000, 0},  // -2^-149
    {"dot", "e4m3fn", {0x38, 0x40, 0x44, 0x3C}, 0x4C, 0},     // 1 * 3 + 2 * 1.5
};

OperationRequest RequestOf(const HandComputed& c) {
  OperationRequest request{.op = c.op, .format = c.format};
  if (c.op == "convert") request.to = "e4m3fn";
  if (c.op == "dot") request.length = 2;
  return request;
}

TEST(OperationTable, NamesAreUniqueAndMakeTheirOperation) {
  std::set<std::string_view> names;
  for (const OperationInfo& info : OperationTable()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.summary.empty()) << info.name;
    OperationRequest request{.op = std::string(info.name), .format = "fp16"};
    if (info.options.to) request.to = "e4m3fn";
    const auto operation = MakeOperation(request);
    EXPECT_EQ(operation->info().name, info.name);
    EXPECT_EQ(operation->has_flags(), info.has_flags);
    EXPECT_FALSE(operation->results().empty());
    EXPECT_EQ(operation->operands(), operation->inputs().size());
  }
}

TEST(Operation, GivesHandComputedAnswers) {
  for (const HandComputed& c : kHandComputed) {
    const auto operation = MakeOperation(RequestOf(c));
    ASSERT_EQ(operation->inputs().size(), c.inputs.size()) << c.op;
    uint64_t result = 0;
    const Flags flags = operation->Evaluate(c.inputs, {&result, 1});
    EXPECT_EQ(result, c.result) << c.op << " " << std::hex << c.inputs[0] << " gives " << result;
    EXPECT_EQ(flags, c.flags) << c.op << " " << std::hex << c.inputs[0];
  }
}

TEST(Operation, EveryOneHasAHandComputedAnswer) {
  std::set<std::string> tested = {"quantize-mx", "quantize-nvfp4"};  // block_operations_test.cc
  for (const HandComputed& c : kHandComputed) tested.insert(c.op);
  for (const OperationInfo& info : OperationTable()) {
    if (info.name.starts_with("p3109.")) continue;  // tests/python/test_p3109.py
    EXPECT_TRUE(tested.contains(std::string(info.name))) << info.name;
  }
}

using Direct = std::function<Rounded(uint32_t a, uint32_t b, uint32_t random)>;

// All pairs of codes of two 8-bit formats.
void ExpectEqualsOnAllPairs(const OperationRequest& request, const Direct& direct) {
  const auto operation = MakeOperation(request);
  const bool stochastic = request.rounding->mode == RoundingMode::kStochastic;
  ASSERT_EQ(operation->inputs().size(), stochastic ? 3u : 2u);
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint32_t a = i >> 8, b = i & 0xFF, random = (i * 0x9E3779B9u) >> 24;
    const uint64_t inputs[] = {a, b, random};
    uint64_t result = 0;
    const Flags flags =
        operation->Evaluate(std::span(inputs).first(operation->inputs().size()), {&result, 1});
    const Rounded expected = direct(a, b, random);
    ASSERT_EQ(result, expected.code) << request.op << std::hex << " " << a << " " << b;
    ASSERT_EQ(flags, expected.flags) << request.op << std::hex << " " << a << " " << b;
  }
}

TEST(Operation, EqualsDirectCallsInMixedFormatsAndModes) {
  for (const RoundingMode mode :
       {RoundingMode::kNearestEven, RoundingMode::kDown, RoundingMode::kStochastic}) {
    const Rounding rounding{.mode = mode, .random_bits = 8};
    EncodePlan to = MakeEncodePlan(kE3M2fn, rounding, Overflow::kPropagate);
    to.tininess = Tininess::kBeforeRounding;
    const auto a = [](uint32_t code) { return Operand{kE4M3fn, code}; };
    const auto b = [](uint32_t code) { return Operand{kE5M2, code}; };
    const std::pair<std::string, Direct> cases[] = {
        {"add", [&](auto x, auto y, auto r) { return Add(a(x), b(y), to, r); }},
        {"sub", [&](auto x, auto y, auto r) { return Subtract(a(x), b(y), to, r); }},
        {"mul", [&](auto x, auto y, auto r) { return Multiply(a(x), b(y), to, r); }},
        {"div", [&](auto x, auto y, auto r) { return Divide(a(x), b(y), to, r); }},
        {"rem", [&](auto x, auto y, auto r) { return Remainder(a(x), b(y), to, r); }},
        {"maximum-number",
         [&](auto x, auto y, auto r) {
           return Choose(Extremum::kMaximumNumber, a(x), b(y), to, r);
         }},
    };
    for (const auto& [op, direct] : cases) {
      ExpectEqualsOnAllPairs({.op = op,
                              .format = "e4m3fn",
                              .format_b = "e5m2",
                              .to = "e3m2fn",
                              .rounding = rounding,
                              .overflow = Overflow::kPropagate,
                              .tininess = Tininess::kBeforeRounding},
                             direct);
    }
  }
}

TEST(Operation, FmaTakesItsAddendInTheFormatOfTheResult) {
  const auto operation = MakeOperation({.op = "fma", .format = "e4m3fn", .to = "fp32"});
  EXPECT_EQ(operation->inputs()[2].format->name, "fp32");
  const EncodePlan to = MakeEncodePlan(kFp32);
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint32_t c = i * 0x9E3779B1u;
    const uint64_t inputs[] = {i >> 8, i & 0xFF, c};
    uint64_t result = 0;
    const Flags flags = operation->Evaluate(inputs, {&result, 1});
    const Rounded expected =
        FusedMultiplyAdd({kE4M3fn, i >> 8}, {kE4M3fn, i & 0xFF}, {kFp32, c}, to);
    ASSERT_EQ(result, expected.code) << std::hex << i << " " << c;
    ASSERT_EQ(flags, expected.flags) << std::hex << i << " " << c;
  }
}

TEST(Operation, IntegersAreRoundedInTheModeOfTheRequest) {
  const Rounding up{.mode = RoundingMode::kUp};
  const auto to_integer = MakeOperation({.op = "to-i8", .format = "e5m2", .rounding = up});
  const auto round = MakeOperation({.op = "round", .format = "e5m2", .rounding = up});
  for (uint64_t code = 0; code < 256; ++code) {
    const Operand a{kE5M2, static_cast<uint32_t>(code)};
    uint64_t result = 0;
    Flags flags = to_integer->Evaluate({&code, 1}, {&result, 1});
    const RoundedInteger integer = ToInteger(a, {8, true}, up);
    EXPECT_EQ(result, integer.bits) << code;
    EXPECT_EQ(flags, integer.flags) << code;
    flags = round->Evaluate({&code, 1}, {&result, 1});
    EXPECT_EQ((Rounded{static_cast<uint32_t>(result), flags}),
              RoundToIntegral(a, up, MakeEncodePlan(kE5M2, up)))
        << code;
  }
}

TEST(Operation, ColumnsStateWidthKindAndDigits) {
  const Rounding stochastic{.mode = RoundingMode::kStochastic, .random_bits = 13};
  const auto add = MakeOperation(
      {.op = "add", .format = "e2m1fn", .format_b = "fp16", .to = "tf32", .rounding = stochastic});
  ASSERT_EQ(add->inputs().size(), 3u);
  EXPECT_EQ(add->operands(), 2u);
  EXPECT_EQ(add->inputs()[0].Digits(), 1);
  EXPECT_EQ(add->inputs()[1].Digits(), 4);
  EXPECT_EQ(add->inputs()[2].name, "random");
  EXPECT_EQ(add->inputs()[2].kind, ColumnKind::kRandom);
  EXPECT_EQ(add->inputs()[2].bits, 13);
  EXPECT_EQ(add->inputs()[2].Digits(), 4);
  EXPECT_EQ(add->results()[0].Digits(), 5);
  EXPECT_EQ(add->results()[0].format->name, "tf32");

  const auto less = MakeOperation({.op = "lt", .format = "fp16"});
  EXPECT_EQ(less->results()[0].kind, ColumnKind::kTruth);
  EXPECT_EQ(less->results()[0].Digits(), 1);

  const auto from = MakeOperation({.op = "from-u64", .format = "fp16"});
  EXPECT_EQ(from->inputs()[0].kind, ColumnKind::kInteger);
  EXPECT_EQ(from->inputs()[0].Digits(), 16);
  EXPECT_FALSE(from->inputs()[0].is_signed);
  EXPECT_EQ(from->results()[0].format->name, "fp16");

  const auto scaled = MakeOperation({.op = "scaled-add", .format = "e4m3fn"});
  ASSERT_EQ(scaled->inputs().size(), 4u);
  EXPECT_EQ(scaled->inputs()[2].name, "scale-a");
  EXPECT_EQ(scaled->inputs()[3].format->name, "binary8p1uf");
}

TEST(MakeOperation, UnknownOperationListsTheNames) {
  const std::string message = RequestError({.op = "plus", .format = "e4m3fn"});
  for (const char* part : {"--op 'plus'", "convert", "fma", "quantize-mx", "dot"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(MakeOperation, NamesTheOptionThatIsNotUsed) {
  const auto message = [](const OperationRequest& request) { return RequestError(request); };
  OperationRequest add{.op = "add", .format = "e4m3fn"};
  add.format_c = "fp32";
  EXPECT_EQ(message(add), "--op add does not use --format-c");
  EXPECT_EQ(message({.op = "sqrt", .format = "fp16", .format_b = "fp16"}),
            "--op sqrt does not use --format-b");
  EXPECT_EQ(message({.op = "eq", .format = "fp16", .to = "fp16"}), "--op eq does not use --to");
  EXPECT_EQ(message({.op = "add", .format = "fp16", .scale_format = "e8m0fnu"}),
            "--op add does not use --scale-format");
  EXPECT_EQ(message({.op = "add", .format = "fp16", .accumulation = "fp32"}),
            "--op add does not use --accumulation-mode");
  EXPECT_EQ(message({.op = "neg", .format = "fp16", .rounding = Rounding{}}),
            "--op neg does not use --rounding");
  EXPECT_EQ(message({.op = "to-i8", .format = "fp16", .overflow = Overflow::kSaturate}),
            "--op to-i8 does not use --overflow");
  EXPECT_EQ(message({.op = "lt", .format = "fp16", .tininess = Tininess::kBeforeRounding}),
            "--op lt does not use --tininess");
  EXPECT_EQ(message({.op = "add", .format = "fp16", .invalid_integer = InvalidInteger::kArm}),
            "--op add does not use --invalid-integer");
  EXPECT_EQ(message({.op = "add", .format = "fp16", .length = 4}),
            "--op add does not use --length");
  EXPECT_EQ(message({.op = "dot", .format = "fp16", .tensor_scale = true}),
            "--tensor-scale needs --scale-format");
}

TEST(MakeOperation, NamesTheOptionThatIsMissingOrWrong) {
  EXPECT_EQ(RequestError({.op = "add"}), "--op add needs --format");
  EXPECT_EQ(RequestError({.op = "convert"}), "--op convert needs --to");
  EXPECT_EQ(RequestError({.op = "quantize-mx"}), "--op quantize-mx needs --to");
  EXPECT_THAT(RequestError({.op = "add", .format = "e4m4n"}),
              HasSubstr("--format: format 'e4m4n'"));
  EXPECT_THAT(RequestError({.op = "add", .format = "fp16", .format_b = "x"}),
              HasSubstr("--format-b: "));
  EXPECT_THAT(RequestError({.op = "dot", .format = "fp16", .accumulation = "fp99"}),
              HasSubstr("--accumulation-mode: accumulator 'fp99' is neither exact nor FORMAT nor "
                        "FORMAT:unfused"));
  EXPECT_THAT(RequestError({.op = "dot", .format = "fp16", .length = 5000}),
              HasSubstr("--length 5000"));
  EXPECT_THAT(RequestError({.op = "dot", .format = "fp16", .length = -1}),
              HasSubstr("--length -1"));
  EXPECT_THAT(
      RequestError({.op = "add",
                    .format = "fp16",
                    .rounding = Rounding{.mode = RoundingMode::kStochastic, .random_bits = 33}}),
      HasSubstr("33 random bits"));
}

}  // namespace
}  // namespace numsim
