// Shared by the tests of the laws of arithmetic: the format of a test, its codes and
// the ways of rounding.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/codes.h"
#include "tests/support/sampling.h"

namespace numsim {

inline constexpr uint32_t kDraw = 0x9E3779B9u;
inline constexpr Rounding kStochastic8 = {RoundingMode::kStochastic, StochasticVariant::kA, 8};

inline RoundingMode Mirrored(RoundingMode mode) {
  if (mode == RoundingMode::kUp) return RoundingMode::kDown;
  if (mode == RoundingMode::kDown) return RoundingMode::kUp;
  return mode;
}

// The code of -x. Requires a sign-magnitude format.
inline Operand Negative(Operand x) {
  const FormatSpec& format = x.format;
  const bool keeps = !HoldsNegativeZero(format) && (x.code & ~format.SignBit()) == 0;
  if (!keeps) x.code ^= format.SignBit();
  return x;
}

inline Operand Magnitude(const Operand& x) { return std::signbit(Value(x)) ? Negative(x) : x; }

// A format by its name; all its codes, or random ones where there are too many for all pairs.
class FormatLaws : public testing::TestWithParam<const char*> {
 protected:
  const FormatSpec format = Spec(GetParam());
  const Operand zero = {format, 0};
  const Operand one = {format, CodeOf(format, 1.0)};

  double ValueOf(const Rounded& r) const { return Value(format, r.code); }
  EncodePlan Plan(RoundingMode mode, Overflow overflow = Overflow::kNonsaturate) const {
    return MakeEncodePlan(format, {.mode = mode}, overflow);
  }
  // Every deterministic mode and a stochastic one, under a policy each.
  std::vector<EncodePlan> Plans() const {
    std::vector<EncodePlan> plans;
    for (RoundingMode mode : kDeterministicModes) {
      plans.push_back(Plan(mode, kPolicies[plans.size() % 3]));
    }
    plans.push_back(MakeEncodePlan(format, kStochastic8));
    return plans;
  }
  // The same under the policy that makes no NaN of a large number.
  std::vector<EncodePlan> OrderedPlans() const {
    std::vector<EncodePlan> plans;
    const Overflow overflow = format.HasInfinity() ? Overflow::kNonsaturate : Overflow::kSaturate;
    for (RoundingMode mode : kDeterministicModes) plans.push_back(Plan(mode, overflow));
    plans.push_back(MakeEncodePlan(format, kStochastic8, overflow));
    return plans;
  }
  std::vector<Operand> Codes() const {
    return format.Bits() <= 8 ? AllCodes(format) : RandomCodes(format, 150, 11);
  }
  std::vector<Operand> FiniteCodes() const {
    std::vector<Operand> codes;
    for (const Operand& a : Codes()) {
      if (std::isfinite(Value(a))) codes.push_back(a);
    }
    return codes;
  }
  // Calls check(a, b) for all pairs; stops after the first row with a failure.
  template <typename Check>
  void ForPairs(const std::vector<Operand>& codes, const Check& check) const {
    for (size_t i = 0; i < codes.size(); i += SampleEvery(11)) {
      for (const Operand& b : codes) check(codes[i], b);
      if (testing::Test::HasFailure()) return;
    }
  }
  std::vector<Operand> AscendingFiniteCodes() const {
    std::vector<Operand> codes = FiniteCodes();
    std::stable_sort(codes.begin(), codes.end(), [](const Operand& a, const Operand& b) {
      return Value(a) < Value(b);
    });
    return codes;
  }
};

inline constexpr const char* kLawFormats[] = {
    "e4m3fn", "e5m2", "e4m3fnuz", "binary8p4se", "e2m3fn", "fp16", "bf16", "fp32"};

inline std::string LawFormatName(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace numsim
