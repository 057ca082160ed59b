// Operations of P3109 that are no fractions, on scaled values, against MPFR, and the functions of two
// operands of IEEE 754. All other operations are compared with fractions in tests/python/test_p3109.py.
#include "numsim/arith/p3109.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <utility>
#include <vector>

#include "numsim/arith/elementary.h"
#include "numsim/arith/p3109_blocks.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/shared/lanes_scalar.h"
#include "tests/reference/arithmetic.h"
#include "tests/reference/elementary.h"
#include "tests/reference/inputs.h"
#include "tests/support/sampling.h"
#include "tests/support/vocabulary.h"

namespace numsim::p3109 {
namespace {

using oracle::ExactNumber;
using oracle::Function2;

constexpr const char* kNoMpfr = "MPFR was not found when this was built (libmpfr-dev)";

std::vector<std::pair<Op, oracle::Function>> OpsOfOne() {
  using R = oracle::Function;
  return {{Op::kExp, R::kExp},           {Op::kLog, R::kLog},         {Op::kExpMinusOne, R::kExpm1},
          {Op::kLogOnePlus, R::kLog1p},  {Op::kExp2, R::kExp2},       {Op::kLog2, R::kLog2},
          {Op::kSin, R::kSin},           {Op::kCos, R::kCos},         {Op::kTan, R::kTan},
          {Op::kArcSin, R::kAsin},       {Op::kArcCos, R::kAcos},     {Op::kArcTan, R::kAtan},
          {Op::kSinh, R::kSinh},         {Op::kCosh, R::kCosh},       {Op::kTanh, R::kTanh},
          {Op::kArcSinh, R::kAsinh},     {Op::kArcCosh, R::kAcosh},   {Op::kArcTanh, R::kAtanh},
          {Op::kSinPi, R::kSinpi},       {Op::kCosPi, R::kCospi},     {Op::kTanPi, R::kTanpi},
          {Op::kArcSinPi, R::kAsinpi},   {Op::kArcCosPi, R::kAcospi}, {Op::kArcTanPi, R::kAtanpi},
          {Op::kSoftplus, R::kSoftplus}, {Op::kRSqrt, R::kRecSqrt}};
}

// The modes that numsim's own rule and the draft's treat alike in a signed extended format.
std::vector<oracle::Setting> Settings() {
  std::vector<oracle::Setting> settings;
  for (const oracle::Setting& setting : oracle::DeterministicSettings()) {
    if (setting.mode != oracle::Mode::kToOdd) settings.push_back(setting);
  }
  return settings;
}

// Codes of operands, whose value is scale times element, and of the scale of the result.
struct Scaled {
  std::string_view element, scale;
  ScaledOperand Library(uint32_t scale_code, uint32_t code) const {
    return {{ParseFormat(scale).spec, scale_code}, {ParseFormat(element).spec, code}};
  }
  ExactNumber Reference(uint32_t scale_code, uint32_t code) const {
    return ExactProduct(ExactOf(oracle::GridOf(scale), scale_code),
                        ExactOf(oracle::GridOf(element), code));
  }
};

// The result of the draft divided by the scale of a block; of a zero or an infinite scale, nothing.
bool Divided(ExactNumber& x, const ExactNumber& scale) {
  if (scale.IsNan() || scale.IsZero() || scale.IsInfinite()) return false;
  if (x.IsInfinite() || x.IsZero() || x.IsNan()) {
    x.negative = x.negative != scale.negative && x.IsInfinite();
    return true;
  }
  x = ExactQuotient(x, scale);
  return true;
}

class ScaledJudge {
 public:
  explicit ScaledJudge(std::string_view target) : grid_(oracle::GridOf(target)) {
    for (const oracle::Setting& setting : Settings()) {
      plans_.push_back(
          {setting,
           MakeEncodePlan(
               ParseFormat(target).spec, RoundingOf(setting), ToLibrary(setting.policy))});
    }
  }

  void Check(Op op,
             std::span<const ScaledOperand> operands,
             const Operand& scale,
             const ExactNumber& expected) {
    const oracle::Placement place(grid_, expected, oracle::Modes::kDeterministic);
    for (const auto& [setting, plan] : plans_) {
      ++checked_;
      const uint32_t got = Compute(op, operands, scale, plan);
      const uint32_t want = place.Round(setting, oracle::Tininess::kAfterRounding).code;
      ASSERT_EQ(got, want) << kOps[static_cast<size_t>(op)].name << " of "
                           << operands[0].element.code << " scaled by " << operands[0].scale.code
                           << " over " << scale.code << " " << Describe(setting);
    }
  }
  uint64_t checked() const { return checked_; }

 private:
  const oracle::Grid& grid_;
  std::vector<std::pair<oracle::Setting, EncodePlan>> plans_;
  uint64_t checked_ = 0;
};

TEST(P3109, ScaledFunctionsEqualMpfr) {
  if (!oracle::HasMpfr()) GTEST_SKIP() << kNoMpfr;
  for (const Scaled& format : {Scaled{"binary8p4se", "binary8p1uf"},
                               Scaled{"binary8p3se", "binary8p4se"},
                               Scaled{"bf16", "fp16"},
                               Scaled{"fp32", "fp32"}}) {
    ScaledJudge judge("binary8p4se");
    oracle::TestRandom random(7);
    const FormatSpec scale = ParseFormat(format.scale).spec;
    const FormatSpec element = ParseFormat(format.element).spec;
    for (const auto& [op, function] : OpsOfOne()) {
      for (int i = 0; i < 300 / static_cast<int>(SampleEvery(10)); ++i) {
        // Every second scale is near one.
        const uint32_t any = random.Next32() & scale.CodeMask();
        const uint32_t one = (scale.CodeMask() >> (scale.IsSigned() ? 2 : 1)) + 1;
        const uint32_t near = (one + random.Next32() % 8) & scale.CodeMask();
        const uint32_t s = i % 2 == 0 ? near : any;
        const uint32_t code = random.Next32() & element.CodeMask();
        const uint32_t result_scale = random.Next32() & scale.CodeMask();
        ExactNumber expected = ExactFunction(function, format.Reference(s, code));
        if (!Divided(expected, ExactOf(oracle::GridOf(format.scale), result_scale))) continue;
        const bool finite = !format.Reference(s, code).IsInfinite();
        const bool pole = op == Op::kTanPi || op == Op::kRSqrt;
        if (pole && finite && expected.IsInfinite()) expected.kind = oracle::Real::Kind::kNan;
        if (expected.IsNan() || expected.IsZero()) expected.negative = false;
        const ScaledOperand operand = format.Library(s, code);
        judge.Check(op, {&operand, 1}, {scale, result_scale}, expected);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(judge.checked(), 1000u);
  }
}

TEST(P3109, ScaledFunctionsOfTwoEqualMpfr) {
  if (!oracle::HasMpfr()) GTEST_SKIP() << kNoMpfr;
  const Scaled format = {"binary8p3se", "fp32"};
  ScaledJudge judge("binary8p4se");
  oracle::TestRandom random(8);
  for (const auto& [op, function] : {std::pair{Op::kHypot, Function2::kHypot},
                                     std::pair{Op::kArcTan2, Function2::kAtan2},
                                     std::pair{Op::kArcTan2Pi, Function2::kAtan2pi}}) {
    for (int i = 0; i < 4000 / static_cast<int>(SampleEvery(10)); ++i) {
      const uint32_t near = 0x3F800000 + (random.Next32() % 512 << 15);
      const uint32_t s[] = {near, i % 2 == 0 ? near : random.Next32()};
      const uint32_t code[] = {random.Next32() & 0xFF, random.Next32() & 0xFF};
      const ExactNumber x = format.Reference(s[0], code[0]), y = format.Reference(s[1], code[1]);
      if (x.IsNan() || y.IsNan() || x.IsInfinite() || y.IsInfinite()) continue;
      if (x.IsZero() || y.IsZero()) continue;  // signs of zeros, tested in fractions
      const uint32_t result_scale = random.Next32();
      ExactNumber expected = ExactFunction(function, x, y);
      if (!Divided(expected, ExactOf(oracle::GridOf("fp32"), result_scale))) continue;
      const ScaledOperand operands[] = {format.Library(s[0], code[0]),
                                        format.Library(s[1], code[1])};
      judge.Check(op, operands, {kFp32, result_scale}, expected);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(judge.checked(), 10000u);
}

using OfTwo = Rounded (*)(const Operand&, const Operand&, const EncodePlan&, uint32_t);

// Every pair of codes of small formats, with flags, and random pairs of bf16.
TEST(ElementaryOfTwo, EqualsMpfr) {
  if (!oracle::HasMpfr()) GTEST_SKIP() << kNoMpfr;
  const std::pair<OfTwo, Function2> functions[] = {{&numsim::Hypotenuse, Function2::kHypot},
                                                   {&numsim::Angle, Function2::kAtan2},
                                                   {&numsim::AngleOverPi, Function2::kAtan2pi}};
  const oracle::Setting settings[] = {{oracle::Mode::kNearestEven, oracle::Policy::kNonsaturate},
                                      {oracle::Mode::kUp, oracle::Policy::kNonsaturate},
                                      {oracle::Mode::kToOdd, oracle::Policy::kSaturate}};
  for (const char* name : {"e5m2", "e4m3", "e3m2fn", "bf16"}) {
    const oracle::Grid& grid = oracle::GridOf(name);
    const FormatSpec format = ParseFormat(name).spec;
    oracle::TestRandom random(9);
    const bool small = format.Bits() <= 8;
    for (const auto& [function, reference] : functions) {
      for (uint32_t i = 0; i < 65536; i += small ? SampleEvery(7) : 8 * SampleEvery(7)) {
        const uint32_t a = (small ? i >> 8 : random.Next32()) & format.CodeMask();
        const uint32_t b = (small ? i : random.Next32()) & format.CodeMask();
        const ExactNumber exact = ExactFunction(reference, ExactOf(grid, a), ExactOf(grid, b));
        const oracle::Placement place(grid, exact, oracle::Modes::kDeterministic);
        for (const oracle::Setting& setting : settings) {
          const EncodePlan plan =
              MakeEncodePlan(format, RoundingOf(setting), ToLibrary(setting.policy));
          const Rounded got = function({format, a}, {format, b}, plan, 0);
          const oracle::Outcome want = place.Round(setting, oracle::Tininess::kAfterRounding);
          ASSERT_EQ(got.code, want.code) << name << " " << a << " " << b << Describe(setting);
          ASSERT_EQ(got.flags & ~kInvalid, want.flags & ~oracle::kInvalidFlag) << a << " " << b;
        }
      }
    }
  }
}

// 17 (2^70 + 15) 2^-74 is just above the tie 17/16: its first 62 bits are those of the tie.
TEST(P3109, BlockReduceMultiplySeesTheLastBitOfAProduct) {
  ASSERT_TRUE(scalar::Int128{211} * 59387 * 6693061 * 14076707 == (scalar::Int128{1} << 70) + 15);
  std::vector<uint32_t> elements;
  for (const float x : {0x11p-74f, 211.0f, 59387.0f, 6693061.0f, 14076707.0f}) {
    elements.push_back(std::bit_cast<uint32_t>(x));
  }
  const Operand one = {kFp32, 0x3F800000};
  const EncodePlan to = MakeEncodePlan(kBinary8p4se);
  EXPECT_EQ(BlockReduceMultiply({one, kFp32, elements}, to), 0x41u);
  const std::vector<uint32_t> tie = {std::bit_cast<uint32_t>(17.0f / 16)};
  EXPECT_EQ(BlockReduceMultiply({one, kFp32, tie}, to), 0x40u);
}

TEST(P3109, PropertiesAreThoseOfTheDraftsTable) {
  const FormatProperties p = PropertiesOf(kBinary8p3se);
  EXPECT_EQ(p.bitwidth, 8);
  EXPECT_EQ(p.precision, 3);
  EXPECT_TRUE(p.is_signed && p.is_extended);
  EXPECT_EQ(p.exponent_bitwidth, 5);
  EXPECT_EQ(p.trailing_significand_bitwidth, 2);
  EXPECT_EQ(p.exponent_bias, 16);
  EXPECT_EQ(p.max_finite, 0x7Eu);
  EXPECT_EQ(p.min_finite, 0xFEu);
  EXPECT_EQ(p.min_positive, 1u);
  EXPECT_EQ(p.max_subnormal, 3u);
  EXPECT_EQ(p.min_normal, 4u);
  const FormatProperties u = PropertiesOf(kBinary8p1uf);
  EXPECT_EQ(u.exponent_bitwidth, 8);
  EXPECT_EQ(u.exponent_bias, 128);
  EXPECT_FALSE(u.is_signed || u.is_extended);
  EXPECT_EQ(u.max_finite, 0xFEu);
  EXPECT_EQ(u.min_finite, 0u);
  EXPECT_EQ(u.max_subnormal, 0xFFu);  // NaN
  EXPECT_EQ(u.min_normal, 1u);
  const FormatProperties w = PropertiesOf(kFp32);
  EXPECT_EQ(w.precision, 24);
  EXPECT_EQ(w.exponent_bias, 127);
  EXPECT_EQ(w.max_finite, 0x7F7FFFFFu);
}

}  // namespace
}  // namespace numsim::p3109
