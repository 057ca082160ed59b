// The texts of update rules, which formats they serve and their memory.
#include "numsim/updates/update_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/updates/internal/update_method.h"
#include "tests/support/error_of.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ParseError(const std::string& text) {
  return ErrorOf([&] { ParseUpdateRule(text); });
}

std::string ParseListError(const std::string& text) {
  return ErrorOf([&] { ParseUpdateRuleList(text); });
}

std::vector<std::string> NamesOf(const std::vector<UpdateRule>& rules) {
  std::vector<std::string> names;
  for (const UpdateRule& rule : rules) names.push_back(ToString(rule));
  return names;
}

TEST(ParseUpdateRule, KnowsEveryKindByItsName) {
  const std::vector<std::string> names = {"naive",
                                          "stochastic",
                                          "master-fp32",
                                          "master-fp16-scaled",
                                          "split-master",
                                          "kahan",
                                          "note-as-printed",
                                          "norm-matched",
                                          "projection-matched"};
  ASSERT_EQ(UpdateKinds().size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const UpdateKind kind = UpdateKinds()[i];
    EXPECT_EQ(static_cast<size_t>(kind), i);
    EXPECT_EQ(ToString(kind), names[i]);
    const UpdateRule rule = ParseUpdateRule(names[i]);
    EXPECT_EQ(rule.kind, kind);
    EXPECT_EQ(ToString(rule), names[i]);
    UpdateRule of_kind;
    of_kind.kind = kind;
    EXPECT_EQ(ToString(of_kind), names[i]);
  }
}

TEST(ParseUpdateRule, TextWithoutArgumentsMeansTheDefaults) {
  for (const UpdateKind kind : UpdateKinds()) {
    const UpdateRule rule = ParseUpdateRule(ToString(kind));
    EXPECT_EQ(rule.scope, ScaleLayout{});
    EXPECT_EQ(rule.random_bits, 32);
    EXPECT_FALSE(rule.compensation.has_value());
    EXPECT_EQ(rule.small_step, SmallStep::kOneAtRandom);
    EXPECT_EQ(rule.solver, MatchSolver::kSelection);
    EXPECT_EQ(rule.tolerance, 1e-2);
    EXPECT_EQ(rule.iterations, 32);
  }
}

TEST(ParseUpdateRule, ReadsArgumentsAndScopes) {
  EXPECT_EQ(ParseUpdateRule("stochastic:16").random_bits, 16);
  EXPECT_EQ(ParseUpdateRule("stochastic:1").random_bits, 1);
  const UpdateRule kahan = ParseUpdateRule("kahan:fp16");
  ASSERT_TRUE(kahan.compensation.has_value());
  EXPECT_EQ(kahan.compensation->name, "fp16");
  EXPECT_EQ(kahan.compensation->spec, kFp16);
  const UpdateRule custom = ParseUpdateRule("kahan:e4m3:bias=8,inf=none,nan=all-ones");
  ASSERT_TRUE(custom.compensation.has_value());
  EXPECT_EQ(custom.compensation->spec, ParseFormat("e4m3:bias=8,inf=none,nan=all-ones").spec);
  EXPECT_EQ(ParseUpdateRule("norm-matched:none").small_step, SmallStep::kNone);
  EXPECT_EQ(ParseUpdateRule("projection-matched:one").small_step, SmallStep::kOneAtRandom);
  for (const std::string kind :
       {"master-fp16-scaled", "note-as-printed", "norm-matched", "projection-matched:none"}) {
    EXPECT_EQ(ParseUpdateRule(kind + "@row").scope.granularity, Granularity::kRow) << kind;
    const ScaleLayout block = ParseUpdateRule(kind + "@block:128").scope;
    EXPECT_EQ(block.granularity, Granularity::kBlock) << kind;
    EXPECT_EQ(block.block, 128u) << kind;
  }
}

TEST(ParseUpdateRule, NamesReadBackWithDefaultsLeftOut) {
  for (const std::string text : {"stochastic:16",
                                 "kahan:bf16",
                                 "kahan:e4m3:bias=8",
                                 "norm-matched@row",
                                 "norm-matched:none",
                                 "projection-matched:none@block:128",
                                 "master-fp16-scaled@row",
                                 "note-as-printed@block:7"}) {
    const std::string name = ToString(ParseUpdateRule(text));
    EXPECT_EQ(name, text);
    EXPECT_EQ(ToString(ParseUpdateRule(name)), name);
  }
  EXPECT_EQ(ToString(ParseUpdateRule("stochastic:32")), "stochastic");
  EXPECT_EQ(ToString(ParseUpdateRule("norm-matched:one")), "norm-matched");
  EXPECT_EQ(ToString(ParseUpdateRule("projection-matched:one@row")), "projection-matched@row");
}

TEST(ParseUpdateRule, SolverToleranceAndIterationsHaveNoText) {
  UpdateRule rule = ParseUpdateRule("note-as-printed");
  rule.solver = MatchSolver::kBisection;
  rule.tolerance = 0;
  rule.iterations = 3;
  EXPECT_EQ(ToString(rule), "note-as-printed");
}

TEST(ParseUpdateRule, WrongTextsAreErrors) {
  for (const std::string text : {"",
                                 "nothing",
                                 "naiv",
                                 "naive ",
                                 " naive",
                                 "binary-search",
                                 ":",
                                 "@",
                                 "@row",
                                 ":16",
                                 // no argument
                                 "naive:1",
                                 "naive:",
                                 "master-fp32:fp32",
                                 "master-fp16-scaled:2",
                                 "split-master:16",
                                 "note-as-printed:one",
                                 // wrong arguments
                                 "stochastic:",
                                 "stochastic:0",
                                 "stochastic:33",
                                 "stochastic:-1",
                                 "stochastic:8x",
                                 "stochastic:x",
                                 "stochastic:1.5",
                                 "stochastic:99999999999999999999",
                                 "kahan:",
                                 "kahan:nothing",
                                 "kahan:e4m3:bias=",
                                 "norm-matched:",
                                 "norm-matched:two",
                                 "projection-matched:all",
                                 "norm-matched:one:none",
                                 // no scope
                                 "naive@row",
                                 "stochastic@row",
                                 "stochastic:8@row",
                                 "master-fp32@row",
                                 "split-master@block:16",
                                 "kahan@row",
                                 "kahan:bf16@row",
                                 // wrong scopes
                                 "norm-matched@",
                                 "norm-matched@column",
                                 "norm-matched@tile:2x2",
                                 "norm-matched@block",
                                 "norm-matched@block:",
                                 "norm-matched@block:0",
                                 "norm-matched@block:-4",
                                 "norm-matched@block:x",
                                 "norm-matched@rows",
                                 "norm-matched@row@row",
                                 "master-fp16-scaled@column",
                                 "note-as-printed@tile:1x4"}) {
    const std::string message = ParseError(text);
    EXPECT_NE(message, kNoError) << "'" << text << "' was accepted";
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(ParseUpdateRule, ErrorsSayWhatWasExpected) {
  const auto says = [](const std::string& text, const std::string& part) {
    return ParseError(text).find(part) != std::string::npos;
  };
  for (const UpdateKind kind : UpdateKinds()) {
    EXPECT_TRUE(says("nothing", std::string(ToString(kind)))) << ParseError("nothing");
  }
  EXPECT_TRUE(says("nothing", "'nothing'")) << ParseError("nothing");
  EXPECT_TRUE(says("stochastic:33", "32")) << ParseError("stochastic:33");
  EXPECT_TRUE(says("norm-matched:two", "none")) << ParseError("norm-matched:two");
  EXPECT_TRUE(says("norm-matched@column", "block:N")) << ParseError("norm-matched@column");
  EXPECT_TRUE(says("norm-matched@column", "row")) << ParseError("norm-matched@column");
  EXPECT_TRUE(says("kahan:nothing", "nothing")) << ParseError("kahan:nothing");
  EXPECT_TRUE(says("naive@row", "naive")) << ParseError("naive@row");
}

TEST(ParseUpdateRuleList, SplitsAtCommas) {
  EXPECT_EQ(NamesOf(ParseUpdateRuleList("naive")), std::vector<std::string>{"naive"});
  EXPECT_EQ(
      NamesOf(ParseUpdateRuleList("naive,stochastic:8,norm-matched:none@block:16,kahan")),
      (std::vector<std::string>{"naive", "stochastic:8", "norm-matched:none@block:16", "kahan"}));
}

TEST(ParseUpdateRuleList, CustomFormatsKeepTheirCommas) {
  const auto rules =
      ParseUpdateRuleList("kahan:e4m3:bias=8,inf=none,nan=all-ones,naive,kahan:e5m2:overflow=max");
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].compensation->spec, ParseFormat("e4m3:bias=8,inf=none,nan=all-ones").spec);
  EXPECT_EQ(rules[1].kind, UpdateKind::kNaive);
  EXPECT_EQ(rules[2].compensation->spec, ParseFormat("e5m2:overflow=max").spec);
}

TEST(ParseUpdateRuleList, WrongListsAreErrors) {
  for (const std::string text :
       {"", ",", "naive,", ",naive", "naive,,kahan", "naive,nothing", "naive,bias=8", "bias=8"}) {
    EXPECT_NE(ParseListError(text), kNoError) << "'" << text << "' was accepted";
  }
}

TEST(UpdateStatusName, IsTheHeadersList) {
  EXPECT_EQ(ToString(UpdateStatus::kOk), "ok");
  EXPECT_EQ(ToString(UpdateStatus::kBelowMinStep), "below-min-step");
  EXPECT_EQ(ToString(UpdateStatus::kNotConverged), "not-converged");
  EXPECT_EQ(ToString(UpdateStatus::kSaturated), "saturated");
  EXPECT_EQ(ToString(UpdateStatus::kNonfinite), "nonfinite");
  EXPECT_EQ(ToString(UpdateStatus::kZeroUpdate), "zero-update");
}

TEST(CheckUpdateRule, SplitMasterIsForBf16Alone) {
  const UpdateRule rule = ParseUpdateRule("split-master");
  EXPECT_NO_THROW(CheckUpdateRule(rule, ParseFormat("bf16")));
  for (const std::string format : {"fp16", "fp32", "e4m3fn", "e8m7:overflow=max"}) {
    EXPECT_THAT(ErrorOf([&] { CheckUpdateRule(rule, ParseFormat(format)); }),
                AllOf(HasSubstr("split-master"), HasSubstr("bf16"), HasSubstr(format)));
  }
}

TEST(CheckUpdateRule, EveryOtherRuleServesEverySignedFormat) {
  for (const std::string& format : update_cases::SignedFormats()) {
    for (const UpdateKind kind : UpdateKinds()) {
      if (kind == UpdateKind::kSplitMaster) continue;
      EXPECT_NO_THROW(CheckUpdateRule(ParseUpdateRule(ToString(kind)), ParseFormat(format)))
          << ToString(kind) << " " << format;
    }
  }
}

TEST(CheckUpdateRule, ACompensationNeedsASignAndAZero) {
  for (const std::string format : {"e8m0fnu", "ue5m3:zero=unsigned", "binary8p3uf"}) {
    EXPECT_THROW(CheckUpdateRule(ParseUpdateRule("kahan"), ParseFormat(format)), Error) << format;
    EXPECT_THROW(CheckUpdateRule(ParseUpdateRule("kahan:" + format), ParseFormat("bf16")), Error);
    EXPECT_NO_THROW(CheckUpdateRule(ParseUpdateRule("kahan:bf16"), ParseFormat(format)));
    EXPECT_NO_THROW(CheckUpdateRule(ParseUpdateRule("stochastic"), ParseFormat(format)));
  }
}

// ApplyUpdate and the device rely on this.
TEST(UpdateMethods, HaveTraitsThatGoTogether) {
  for (const UpdateKind kind : UpdateKinds()) {
    SCOPED_TRACE(ToString(kind));
    const UpdateMethod& method = MethodOf(kind);
    const UpdateTraits& traits = method.traits;
    const FormatSpec format = traits.only_format != nullptr ? *traits.only_format : kBf16;
    const double bytes = StateBytesPerWeight({.kind = kind}, format);
    EXPECT_EQ(bytes > 0, traits.state != RuleState::kNone);
    if (method.Elementwise() != nullptr) {
      EXPECT_FALSE(traits.has_scope || traits.searches);
    }
    if (traits.has_scales) {
      EXPECT_TRUE(traits.has_scope);
    }
    if (traits.compensates) {
      EXPECT_EQ(traits.state, RuleState::kValues);
    }
    EXPECT_EQ(traits.draws,
              OwnPlan({.kind = kind}, format).rounding.mode == RoundingMode::kStochastic);
  }
}

TEST(HasScope, OfRulesThatShareSomething) {
  for (const UpdateKind kind : UpdateKinds()) {
    const std::string name(ToString(kind));
    EXPECT_EQ(HasScope(kind), (ParseError(name + "@row") == kNoError)) << name;
    EXPECT_EQ(HasScope(kind), (ParseError(name + "@block:4") == kNoError)) << name;
  }
  EXPECT_TRUE(HasScope(UpdateKind::kNoteAsPrinted));
  EXPECT_FALSE(HasScope(UpdateKind::kKahan));
}

TEST(StateBytesPerWeight, CountsMastersRemaindersAndCompensations) {
  const auto bytes = [](const char* rule, const FormatSpec& format) {
    return StateBytesPerWeight(ParseUpdateRule(rule), format);
  };
  for (const char* rule :
       {"naive", "stochastic:8", "note-as-printed", "norm-matched@row", "projection-matched"}) {
    EXPECT_EQ(bytes(rule, kBf16), 0) << rule;
  }
  EXPECT_EQ(bytes("master-fp32", kBf16), 4);
  EXPECT_EQ(bytes("master-fp32", kE4M3fn), 4);
  EXPECT_EQ(bytes("master-fp16-scaled", kE4M3fn), 2);
  EXPECT_EQ(bytes("master-fp16-scaled@block:32", kE4M3fn), 2);
  EXPECT_EQ(bytes("split-master", kBf16), 2);
  EXPECT_EQ(bytes("kahan", kBf16), 2);
  EXPECT_EQ(bytes("kahan", kE4M3fn), 1);
  EXPECT_EQ(bytes("kahan:bf16", kE4M3fn), 2);
  EXPECT_EQ(bytes("kahan:fp32", kBf16), 4);
  EXPECT_EQ(bytes("kahan:e4m3fn", kFp32), 1);
  EXPECT_EQ(bytes("kahan", kE2M1fn), 0.5);
}

}  // namespace
}  // namespace numsim
