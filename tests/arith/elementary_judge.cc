#include "tests/arith/elementary_judge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/unrounded.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

constexpr uint64_t kReportedInFull = 4;

}  // namespace

oracle::Function ToReference(ElementaryFunction function) {
  using F = ElementaryFunction;
  using R = oracle::Function;
  static const std::map<F, R> kReference = {
      {F::kExp, R::kExp},           {F::kExp2, R::kExp2},         {F::kLog, R::kLog},
      {F::kLog2, R::kLog2},         {F::kTanh, R::kTanh},         {F::kSigmoid, R::kSigmoid},
      {F::kGelu, R::kGelu},         {F::kGeluTanh, R::kGeluTanh}, {F::kSoftplus, R::kSoftplus},
      {F::kExpMinusOne, R::kExpm1}, {F::kLogOnePlus, R::kLog1p},  {F::kRsqrt, R::kRecSqrt},
      {F::kSin, R::kSin},           {F::kCos, R::kCos},           {F::kTan, R::kTan},
      {F::kArcSin, R::kAsin},       {F::kArcCos, R::kAcos},       {F::kArcTan, R::kAtan},
      {F::kSinPi, R::kSinpi},       {F::kCosPi, R::kCospi},       {F::kTanPi, R::kTanpi},
      {F::kArcSinPi, R::kAsinpi},   {F::kArcCosPi, R::kAcospi},   {F::kArcTanPi, R::kAtanpi},
      {F::kSinh, R::kSinh},         {F::kCosh, R::kCosh},         {F::kArcSinh, R::kAsinh},
      {F::kArcCosh, R::kAcosh},     {F::kArcTanh, R::kAtanh}};
  return kReference.at(function);
}

ElementaryJudge::ElementaryJudge(std::string_view source,
                                 const std::vector<std::string_view>& targets,
                                 const std::vector<oracle::Setting>& settings)
    : grid_(oracle::FindFormat(source)), source_{ParseFormat(source).spec, 0} {
  for (std::string_view name : targets) {
    Target target = {oracle::Grid(oracle::FindFormat(name)), {}};
    for (const oracle::Setting& setting : settings) {
      for (auto tininess : {oracle::Tininess::kAfterRounding, oracle::Tininess::kBeforeRounding}) {
        EncodePlan plan =
            MakeEncodePlan(ParseFormat(name).spec, RoundingOf(setting), ToLibrary(setting.policy));
        plan.tininess = tininess == oracle::Tininess::kAfterRounding ? Tininess::kAfterRounding
                                                                     : Tininess::kBeforeRounding;
        target.cases.push_back({setting, tininess, plan});
      }
    }
    targets_.push_back(std::move(target));
  }
}

ElementaryJudge::~ElementaryJudge() {
  EXPECT_GT(checked_, 0u);
  EXPECT_EQ(disagreements_, 0u) << "of " << checked_ << " results from "
                                << ToString(source_.format);
}

void ElementaryJudge::Compare(const Case& c,
                              ElementaryFunction function,
                              uint32_t code,
                              Rounded got,
                              oracle::Outcome expected) {
  ++checked_;
  if (got.code == expected.code && got.flags == expected.flags) return;
  if (++disagreements_ > kReportedInFull) return;
  ADD_FAILURE() << fmt::format("{} of {} {:#x} to {} {} {}: {:#x}, flags {:#x}, not {:#x}, {:#x}",
                               ToString(function),
                               ToString(source_.format),
                               code,
                               ToString(c.plan.format),
                               Describe(c.setting),
                               c.tininess == oracle::Tininess::kAfterRounding ? "after" : "before",
                               got.code,
                               got.flags,
                               expected.code,
                               expected.flags);
}

void ElementaryJudge::Check(ElementaryFunction function, uint32_t code) {
  source_.code = code;
  const oracle::ExactNumber value = ExactFunction(ToReference(function), grid_, code);
  const exact::Outcome unrounded =
      exact::Elementary(function, ExactValue(source_.format, source_.code));
  const Flags signaling = IsSignalingNan(source_) ? kInvalid : Flags{0};
  for (const Target& target : targets_) {
    const oracle::Placement place(target.grid, value, oracle::Modes::kDeterministic);
    for (const Case& c : target.cases) {
      Rounded got = EncodeUnrounded(c.plan, unrounded.value);
      got.flags |= unrounded.flags | signaling;
      Compare(c, function, code, got, place.Round(c.setting, c.tininess));
    }
    // The function for users is the same; it evaluates again, so it is asked for one setting.
    const Case& c = target.cases[(code + static_cast<uint32_t>(function)) % target.cases.size()];
    Compare(c,
            function,
            code,
            Elementary(function, source_, c.plan),
            place.Round(c.setting, c.tininess));
  }
}

void ElementaryJudge::CheckWords(ElementaryFunction function, uint32_t code) {
  source_.code = code;
  const oracle::ExactNumber value = ExactFunction(ToReference(function), grid_, code);
  const Unrounded unrounded = exact::Elementary(function, ExactValue(source_.format, code)).value;
  if (unrounded.kind != NumberKind::kFinite) return;
  for (const Target& target : targets_) {
    const oracle::Placement place(target.grid, value, oracle::Modes::kAll);
    for (const Case& c : target.cases) {
      const int bits = c.setting.random_bits;
      const uint64_t away = place.WordsAway(c.setting.variant, bits);
      // Results are monotone in the word: the last `away` words round away from zero.
      const uint64_t words = uint64_t{1} << bits;
      for (uint64_t word : {uint64_t{0}, words - away - 1, words - away, words - 1}) {
        if (word >= words) continue;
        const auto random = static_cast<uint32_t>(word);
        Compare(c,
                function,
                code,
                Elementary(function, source_, c.plan, random),
                place.Round(c.setting, c.tininess, random));
      }
    }
  }
}

void ElementaryJudge::CheckAll(ElementaryFunction function, uint32_t stride) {
  for (uint64_t code = 0; code < Codes(); code += stride) {
    Check(function, static_cast<uint32_t>(code));
  }
}

}  // namespace numsim
