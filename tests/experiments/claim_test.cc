// Claims as data: what every declaration must have, how evidence becomes verdicts, their report.
#include "experiments/claims/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "experiments/runner/claim_report.h"
#include "experiments/runner/experiment.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

// The quantity that the unit of a margin measures; it decides what the margin may be (docs/verdicts.md).
enum class Measures : uint8_t {
  kLoss,
  kAccuracy,
  kCost,   // a time or a memory, in percent
  kShare,  // of 1: at most half of it
  kCount,  // of events or steps
  kOther,
};

struct Unit {
  std::string_view name;
  Measures measures;
};
constexpr Unit kUnits[] = {
    {"nats", Measures::kLoss},
    {"nats per token", Measures::kLoss},
    {"percentage points", Measures::kAccuracy},
    {"%", Measures::kCost},
    {"% of the time", Measures::kCost},
    {"of fp32's distance", Measures::kShare},
    {"of fp32's progress", Measures::kShare},
    {"of fp32's steps", Measures::kShare},
    {"of the loss spikes", Measures::kShare},
    {"of the loss spikes, above chance", Measures::kShare},
    {"of the runs", Measures::kShare},
    {"of the skipped updates", Measures::kShare},
    {"ratio of bad steps", Measures::kCount},
    {"ratio of flushed steps", Measures::kCount},
    {"ratio of loss spikes", Measures::kCount},
    {"ratio of saturated steps", Measures::kCount},
    {"steps", Measures::kCount},
    {"as a ratio less 1", Measures::kOther},
    {"binades", Measures::kOther},
    {"dB", Measures::kOther},
    {"decades", Measures::kOther},
    {"doublings", Measures::kOther},
    {"log2 of a ratio", Measures::kOther},
    {"log2 of a ratio of relative errors", Measures::kOther},
    {"log2 of a variance ratio", Measures::kOther},
    {"of Eq. 12", Measures::kOther},
    {"of RMS_t", Measures::kOther},
    {"of sigma'", Measures::kOther},
    {"of the correlation", Measures::kOther},
    {"of the squares", Measures::kOther},
    {"of |cos|", Measures::kOther},
    {"orders of magnitude", Measures::kOther},
    {"percentage points of the tokens", Measures::kOther},
    {"ratio", Measures::kOther},
    {"relative", Measures::kOther},
    {"slope", Measures::kOther},
};

// The beginning of the reason of a number of events or steps that has no ratio.
constexpr std::string_view kAbsolute = "Absolute: ";

// Returns why the margin of a claim that is not exact is not one of the standard's; "" if it is.
std::string MarginProblem(const ClaimSpec& claim) {
  const Margin& margin = claim.margin;
  const auto unit = std::ranges::find(kUnits, margin.unit, &Unit::name);
  if (unit == std::end(kUnits)) return "'" + margin.unit + "' is a unit that kUnits lacks";
  const bool ratio = claim.kind == ClaimKind::kRatio;
  if (ratio && unit->measures != Measures::kCount) return "a ratio of something that is no number";
  const double size = std::abs(margin.value);
  switch (unit->measures) {
    case Measures::kLoss:
      if (margin.At(999e3) > 0.02 || margin.At(79e6) > 0.01) return "more than that of a loss";
      return margin.At(80e6) > 0.005 ? "more than that of a loss" : "";
    case Measures::kAccuracy:
      return size > 1 ? "more than a point of accuracy" : "";
    case Measures::kCost:
      return size > 5 ? "more than 5 %" : "";
    case Measures::kShare:
      return size > 0.5 ? "more than half of what is possible" : "";
    case Measures::kCount:
      if (ratio || margin.justification.starts_with(kAbsolute)) return "";
      return "a number is compared without a ratio, and no reason says why";
    case Measures::kOther:
      return "";
  }
  return "";
}

// The limits of the standard: docs/verdicts.md.
TEST(ClaimSpec, EveryClaimHasASourceAContrastAndAMarginWithinTheLimits) {
  std::set<std::string> ids, units;
  for (const Experiment& experiment : AllExperiments()) {
    for (const ClaimSpec& claim : experiment.claims) {
      SCOPED_TRACE(claim.id);
      EXPECT_TRUE(claim.id.starts_with(experiment.name + "/"));
      EXPECT_TRUE(ids.insert(claim.id).second);
      EXPECT_FALSE(claim.items.empty());
      EXPECT_FALSE(claim.statement.empty());
      EXPECT_FALSE(claim.contrast.empty());
      EXPECT_TRUE(claim.evidence);
      if (claim.kind == ClaimKind::kExact) continue;
      // An equivalence names its control, or why it has none: then it is never supported.
      const bool named = !claim.control.empty(), none = !claim.no_control.empty();
      EXPECT_EQ(named || none, claim.kind == ClaimKind::kEquivalence);
      EXPECT_FALSE(named && none);
      const Margin& margin = claim.margin;
      EXPECT_FALSE(margin.justification.empty());
      EXPECT_NE(margin.value, 0);
      EXPECT_TRUE(margin.value > 0 || claim.kind == ClaimKind::kDifference) << claim.id;
      if (claim.kind == ClaimKind::kRatio) {
        EXPECT_TRUE(claim.side > 0 ? margin.value >= 1 : margin.value <= 1);
        EXPECT_GE(margin.value, 0.5) << "at most half of the possible effect";
      }
      EXPECT_NO_THROW(CheckMargin(claim));
      EXPECT_EQ(MarginProblem(claim), "");
      units.insert(margin.unit);
    }
  }
  EXPECT_FALSE(ids.empty());
  // A unit that no claim has would be a limit that is never looked at.
  for (const Unit& unit : kUnits) EXPECT_TRUE(units.contains(std::string(unit.name))) << unit.name;
}

TEST(ClaimSpec, AMarginBeyondTheLimitsIsFound) {
  const auto problem = [](ClaimKind kind, Margin margin) {
    ClaimSpec claim;
    claim.kind = kind;
    claim.margin = std::move(margin);
    return MarginProblem(claim);
  };
  constexpr ClaimKind kDifference = ClaimKind::kDifference, kRatio = ClaimKind::kRatio;
  EXPECT_EQ(problem(kDifference, LossMargin("nats")), "");
  EXPECT_EQ(problem(kDifference, {0.02, "nats", "-"}), "more than that of a loss");
  EXPECT_EQ(problem(kDifference, {0.02, "nats", "-", {{1e6, 0.01}}}), "more than that of a loss");
  EXPECT_EQ(problem(kDifference, {1, "percentage points", "-"}), "");
  EXPECT_EQ(problem(kDifference, {2, "percentage points", "-"}), "more than a point of accuracy");
  EXPECT_EQ(problem(kDifference, {-2, "percentage points", "-"}), "more than a point of accuracy");
  EXPECT_EQ(problem(kDifference, {6, "% of the time", "-"}), "more than 5 %");
  EXPECT_EQ(problem(kDifference, {0.6, "of the runs", "-"}), "more than half of what is possible");
  EXPECT_EQ(problem(kDifference, {1, "points", "-"}), "'points' is a unit that kUnits lacks");
  const std::string no_ratio = "a number is compared without a ratio, and no reason says why";
  EXPECT_EQ(problem(kDifference, {0.5, "steps", "One step in every other run."}), no_ratio);
  EXPECT_EQ(problem(kDifference, {0.5, "ratio of bad steps", "-"}), no_ratio);
  EXPECT_EQ(problem(kDifference, {1, "steps", "Absolute: a length."}), "");
  EXPECT_EQ(problem(kRatio, {1, "ratio of bad steps", "-"}), "");
  EXPECT_EQ(problem(kRatio, {1, "nats", "-"}), "a ratio of something that is no number");
}

TEST(Margin, DependsOnTheSizeOfTheModel) {
  const Margin margin = LossMargin("nats per token");
  EXPECT_EQ(margin.At(0), 0.02);
  EXPECT_EQ(margin.At(1e6), 0.01);
  EXPECT_EQ(margin.At(2e9), 0.005);
  EXPECT_EQ(margin.Text(),
            "0.02 nats per token, 0.01 from 1 million parameters on, 0.005 from 80 million "
            "parameters on");
}

// Outcomes of three seeds of a baseline and of arms above it.
Table Outcomes() {
  Table table{{"arm", "seed", "loss"}, {}};
  const double noise[] = {0.001, -0.002, 0.001};
  for (int seed = 0; seed < 3; ++seed) {
    const double base = 1 + 0.1 * seed;
    table.rows.push_back({"fp32", seed, base});
    table.rows.push_back({"far", seed, base + 0.1 + noise[seed]});
    table.rows.push_back({"near", seed, base + noise[(seed + 1) % 3]});
    table.rows.push_back({"noisy", seed, base + 100 * noise[seed]});
  }
  return table;
}

ClaimSpec LossClaim(const std::string& id, ClaimKind kind, const std::string& arm) {
  ClaimSpec claim;
  claim.id = id;
  claim.kind = kind;
  claim.margin = LossMargin("nats per token");
  claim.evidence = [arm, kind](const Settings&, const Tables& tables) {
    Evidence evidence;
    const Frame rows = tables.at("t");
    evidence.outcomes =
        OutcomesOf(rows, {"arm"}, [](const Frame& row) { return row.Number("loss"); });
    evidence.contrasts = {Gap(arm, "fp32")};
    if (kind == ClaimKind::kEquivalence) evidence.control = Gap("far", "fp32");
    return evidence;
  };
  return claim;
}

std::string VerdictOf(const JudgedClaim& claim) {
  return std::string(ToString(claim.result.verdict));
}

TEST(Judge, GivesEachOfTheVerdicts) {
  ClaimSpec untested = LossClaim("x/untested", ClaimKind::kDifference, "far");
  untested.evidence = [](const Settings&, const Tables&) {
    return NotTestedBecause("out of reach: 7 billion parameters");
  };
  ClaimSpec exact;
  exact.id = "x/exact";
  exact.kind = ClaimKind::kExact;
  exact.evidence = [](const Settings&, const Tables&) { return Evidence{.exact = false}; };
  const std::vector<ClaimSpec> claims = {LossClaim("x/far", ClaimKind::kDifference, "far"),
                                         LossClaim("x/near", ClaimKind::kDifference, "near"),
                                         LossClaim("x/same", ClaimKind::kEquivalence, "near"),
                                         LossClaim("x/noisy", ClaimKind::kEquivalence, "noisy"),
                                         untested,
                                         exact};
  const std::vector<JudgedClaim> judged = Judge(claims, {}, {{"t", Outcomes()}});
  ASSERT_EQ(judged.size(), 6u);
  EXPECT_EQ(VerdictOf(judged[0]), "supported");
  EXPECT_EQ(VerdictOf(judged[1]), "contradicted");
  EXPECT_EQ(VerdictOf(judged[2]), "supported");
  EXPECT_EQ(VerdictOf(judged[3]), "inconclusive");
  EXPECT_EQ(VerdictOf(judged[4]), "not tested");
  EXPECT_EQ(VerdictOf(judged[5]), "exact: refuted");
  EXPECT_FALSE(AllDecided(judged));
  EXPECT_TRUE(AllDecided({judged[0], judged[4], judged[5]}));
  EXPECT_THAT(VerdictText(judged[3], {.words = "2 layers"}),
              HasSubstr("inconclusive (mechanism; 2 layers; 3 seeds; "));
  EXPECT_THAT(VerdictText(judged[3], {.words = "2 layers"}), HasSubstr(" seeds would decide it"));
  EXPECT_EQ(VerdictText(judged[4], {.words = "2 layers"}),
            "not tested: out of reach: 7 billion parameters");
  EXPECT_THAT(MeasuredText(judged[0]), HasSubstr("far - fp32: 0.1 nats per token, [0."));
}

// The same p of 0.03 decides a claim alone and not beside nine others.
TEST(Judge, CorrectsPrimaryClaimsForTheirNumberAndNoOthers) {
  std::vector<ClaimSpec> claims(1, LossClaim("x/0", ClaimKind::kDifference, "noisy"));
  Table table{{"arm", "seed", "loss"}, {}};
  const double gaps[] = {0.09, 0.15, 0.18};
  for (int seed = 0; seed < 3; ++seed) {
    table.rows.push_back({"fp32", seed, 1.0});
    table.rows.push_back({"noisy", seed, 1 + gaps[seed]});
  }
  const Tables tables = {{"t", table}};
  const JudgedClaim alone = Judge(claims, {}, tables).at(0);
  EXPECT_EQ(VerdictOf(alone), "supported");
  claims.resize(10, claims[0]);
  const JudgedClaim beside = Judge(claims, {}, tables).at(0);
  EXPECT_EQ(VerdictOf(beside), "inconclusive");
  EXPECT_NEAR(beside.result.p, 10 * alone.result.p, 1e-9);
  for (ClaimSpec& claim : claims) claim.primary = false;
  EXPECT_EQ(VerdictOf(Judge(claims, {}, tables).at(0)), "supported");
  Settings looks;
  looks.looks = 10;
  claims.resize(1);
  EXPECT_EQ(VerdictOf(Judge(claims, looks, tables).at(0)), "inconclusive");
}

// A claim that outcomes leave out stays in the family; one whose arms were not trained never was in it.
TEST(Judge, CountsWhatOutcomesLeaveOut) {
  const auto with = [](Evidence other) {
    ClaimSpec second = LossClaim("x/other", ClaimKind::kDifference, "far");
    second.evidence = [other](const Settings&, const Tables&) { return other; };
    return Judge(
        {LossClaim("x/noisy", ClaimKind::kDifference, "noisy"), second}, {}, {{"t", Outcomes()}});
  };
  const double alone = with(NotTestedBecause("not trained")).at(0).result.p;
  const std::vector<JudgedClaim> left_out = with(LeftOutBecause("no spikes"));
  EXPECT_DOUBLE_EQ(left_out.at(0).result.p, std::min(1.0, 2 * alone));
  EXPECT_LT(alone, 1);
  EXPECT_EQ(VerdictOf(left_out.at(1)), "not tested");
  EXPECT_EQ(left_out.at(1).result.reason, "out of reach: no spikes");
}

// A difference of 0.1 in either direction, known as a bound.
TEST(Judge, BoundsCarryOnlyTheVerdictsThatHoldBeyondThem) {
  const auto verdict = [](ClaimKind kind, int side, double value, int bound) {
    ClaimSpec claim;
    claim.id = "x/bound";
    claim.kind = kind;
    claim.side = side;
    claim.margin = {0.05, "nats", "made up"};
    claim.evidence = [=](const Settings&, const Tables&) {
      const SeedValues values = {{"0", value}, {"1", value + 1e-3}, {"2", value - 1e-3}};
      Evidence evidence = AgainstReference("arm", values, 0);
      if (kind == ClaimKind::kEquivalence) {
        AddControl(AgainstReference("bad", {{"0", 9}, {"1", 8}, {"2", 9}}, 0), evidence);
      }
      evidence.bound = bound;
      evidence.bound_reason = "out of range";
      return evidence;
    };
    const JudgedClaim judged = Judge({claim}, {}, {}).at(0);
    if (judged.result.verdict == Verdict::kNotTested) {
      EXPECT_EQ(judged.result.reason, "out of range");
    }
    return VerdictOf(judged);
  };
  constexpr ClaimKind kDifference = ClaimKind::kDifference, kSame = ClaimKind::kEquivalence;
  EXPECT_EQ(verdict(kDifference, 1, 0.1, 0), "supported");
  EXPECT_EQ(verdict(kDifference, 1, 0.1, 1), "supported");
  EXPECT_EQ(verdict(kDifference, 1, 0.1, -1), "not tested");
  EXPECT_EQ(verdict(kDifference, 1, 0, 0), "contradicted");
  EXPECT_EQ(verdict(kDifference, 1, 0, -1), "contradicted");
  EXPECT_EQ(verdict(kDifference, 1, 0, 1), "not tested");
  EXPECT_EQ(verdict(kDifference, -1, -0.1, -1), "supported");
  EXPECT_EQ(verdict(kDifference, -1, -0.1, 1), "not tested");
  EXPECT_EQ(verdict(kSame, 1, 0, 0), "supported");
  for (const int bound : {-1, 1}) EXPECT_EQ(verdict(kSame, 1, 0, bound), "not tested");
  EXPECT_EQ(verdict(kSame, 1, 0.1, 1), "contradicted");
  EXPECT_EQ(verdict(kSame, 1, 0.1, -1), "not tested");
  EXPECT_EQ(verdict(kSame, 1, -0.1, -1), "contradicted");
}

TEST(AgainstReference, OfRangesIsABoundWhereAnEndIsNotKnown) {
  using Ranges = std::map<std::string, Range>;
  const double inf = std::numeric_limits<double>::infinity();
  const auto evidence = [](const Ranges& ranges) {
    return AgainstReference("arm", ranges, 0, "why");
  };
  EXPECT_EQ(evidence({{"0", {1, 1}}, {"1", {2, 2}}}).bound, 0);
  const Evidence most = evidence({{"0", {1, 1}}, {"1", {-inf, 2}}});
  EXPECT_EQ(most.bound, -1);
  EXPECT_EQ(most.outcomes.arms.at(0), "arm (at most)");
  EXPECT_EQ(most.outcomes.values.at(1), 2);
  const Evidence least = evidence({{"0", {1, inf}}, {"1", {2, 2}}});
  EXPECT_EQ(least.bound, 1);
  EXPECT_EQ(least.outcomes.values.at(0), 1);
  EXPECT_EQ(evidence({{"0", {1, inf}}, {"1", {-inf, 2}}}).not_tested, "why");
  EXPECT_EQ(evidence({{"0", {1, 3}}}).outcomes.values.at(0), 3) << "a range with two ends";
}

TEST(Tables, NameATableThatIsMissing) {
  Tables tables = {{"t", Outcomes()}};
  EXPECT_FALSE(tables.at("t").rows.empty());
  EXPECT_EQ(ErrorOf([&] { tables.at("naive_limits"); }), "table naive_limits.csv is missing");
  tables.directory = "results/x";
  EXPECT_EQ(ErrorOf([&] { tables.at("u"); }), "table u.csv is missing in results/x");
}

TEST(Outcomes, RefuseTwoOutcomesOfASeed) {
  const Table table{{"arm", "seed", "loss"}, {{"a", 0, 1.0}, {"a", 0, 2.0}}};
  const auto loss = [](const Frame& row) { return row.Number("loss"); };
  EXPECT_EQ(ErrorOf([&] { OutcomesOf(table, {"arm"}, loss); }), "arm a: seed 0 has two outcomes");
}

// A slope of 1.00, 1.02, 0.98 is 1 to within 0.06 with two degrees of freedom.
TEST(AgainstReference, IsATTestOfOneValuePerSeed) {
  const SeedValues slopes = {{"0", 1.00}, {"1", 1.02}, {"2", 0.98}};
  ClaimSpec claim = LossClaim("x/slope", ClaimKind::kEquivalence, "");
  claim.margin = {.value = 0.06, .unit = "slope", .justification = "-"};
  double reference = 1;
  claim.evidence = [&](const Settings&, const Tables&) {
    Evidence evidence = AgainstReference("slope", slopes, reference);
    AddControl(AgainstReference("slope", {{"0", 2}, {"1", 2.01}, {"2", 1.99}}, reference),
               evidence);
    return evidence;
  };
  const JudgedClaim near = Judge({claim}, {}, {}).at(0);
  EXPECT_EQ(VerdictOf(near), "supported");
  EXPECT_NEAR(near.result.control->contrast.value, 1, 1e-12);
  EXPECT_EQ(near.evidence.control.at(0).arm, "slope of the control");
  EXPECT_EQ(near.result.contrasts.at(0).freedom, 2);
  EXPECT_NEAR(near.result.contrasts.at(0).standard_error, 0.02 / std::sqrt(3.0), 1e-12);
  reference = 1.2;
  EXPECT_EQ(VerdictOf(Judge({claim}, {}, {}).at(0)), "contradicted");
}

TEST(Judge, TestsNothingWhereTheBaselineAllowsLessThanTwiceTheMargin) {
  ClaimSpec claim = LossClaim("x/far", ClaimKind::kDifference, "far");
  const auto verdict = [&](double possible) {
    ClaimSpec bounded = claim;
    bounded.evidence = [=](const Settings& settings, const Tables& tables) {
      Evidence evidence = claim.evidence(settings, tables);
      evidence.possible = possible;
      return evidence;
    };
    return VerdictText(Judge({bounded}, {}, {{"t", Outcomes()}}).at(0), {});
  };
  EXPECT_THAT(verdict(0), HasSubstr("supported"));
  EXPECT_THAT(verdict(0.041), HasSubstr("supported"));
  EXPECT_EQ(verdict(0.039),
            "not tested: out of reach: the baseline allows an effect of 0.039 nats per token, and "
            "the margin is 0.02");
}

TEST(Judge, RefusesAMarginOfMoreThanHalfOfThePapersEffect) {
  ClaimSpec claim = LossClaim("x/far", ClaimKind::kDifference, "far");
  claim.papers_effect = -0.04;
  EXPECT_EQ(Judge({claim}, {}, {{"t", Outcomes()}}).size(), 1u);
  claim.papers_effect = 0.03;
  EXPECT_EQ(ErrorOf([&] {
              Judge({claim}, {}, {{"t", Outcomes()}});
            }),
            "x/far: the margin of 0.02 is more than half of the paper's effect of 0.03");
}

TEST(AddControl, SaysWhyThereIsNone) {
  Evidence evidence = AgainstReference("slope", {{"0", 1}, {"1", 1}}, 1);
  AddControl(NotTestedBecause("no such rows"), evidence);
  EXPECT_TRUE(evidence.control.empty());
  EXPECT_EQ(evidence.no_control, "the control: no such rows");
}

TEST(GapOf, HasTheIntervalOfThePairedGaps) {
  const OutcomeTable outcomes =
      OutcomesOf(Outcomes(), {"arm"}, [](const Frame& row) { return row.Number("loss"); });
  const Estimate gap = GapOf(outcomes, "far", "fp32");
  EXPECT_NEAR(gap.value, 0.1, 1e-12);
  // Gaps of 0.101, 0.098, 0.101; Student's t for two degrees of freedom at 97.5 % is 4.302653.
  EXPECT_NEAR(gap.low, 0.1 - 4.302653 * 0.001, 1e-8);
  EXPECT_EQ(GapOf(outcomes, "far", "far").high, 0);
}

TEST(VerdictTable, HasARowPerContrast) {
  const std::vector<ClaimSpec> claims = {LossClaim("x/far", ClaimKind::kDifference, "far")};
  Settings settings;
  settings.preset = "quick";
  const Table table = VerdictTable(Judge(claims, settings, {{"t", Outcomes()}}),
                                   settings,
                                   {"2 layers", {139584, 1.6e6, 6.7e9, 2e12}});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.Text(0, "claim"), "x/far");
  EXPECT_EQ(table.Text(0, "verdict"), "supported");
  EXPECT_EQ(table.Text(0, "role"), "contrast");
  EXPECT_EQ(table.Text(0, "contrast"), "far - fp32");
  EXPECT_NEAR(table.Number(0, "estimate"), 0.1, 1e-12);
  EXPECT_EQ(table.Text(0, "seeds"), "3");
  EXPECT_EQ(table.Text(0, "scale"), "2 layers");
  EXPECT_EQ(table.Text(0, "parameters"), "139584");
  EXPECT_EQ(table.Text(0, "tokens"), "1600000");
  EXPECT_EQ(table.Text(0, "word"), "toy");
  EXPECT_EQ(table.Text(0, "preset"), "quick");
}

TEST(VerdictTable, OfAnExactClaimHasNoSize) {
  ClaimSpec claim;
  claim.id = "x/exact";
  claim.kind = ClaimKind::kExact;
  claim.evidence = [](const Settings&, const Tables&) { return Evidence{.exact = true}; };
  const std::vector<ClaimSpec> claims = {claim};
  const Table table = VerdictTable(Judge(claims, {}, {}), {}, {"2 layers", {1e6, 1e6, 1e9, 1e9}});
  EXPECT_EQ(table.Text(0, "parameters"), "");
  EXPECT_EQ(table.Text(0, "tokens"), "");
  EXPECT_EQ(table.Text(0, "word"), "mechanism");
}

TEST(VerdictText, BeginsWithTheScale) {
  const std::vector<ClaimSpec> claims = {LossClaim("x/far", ClaimKind::kDifference, "far")};
  const std::vector<JudgedClaim> judged = Judge(claims, {}, {{"t", Outcomes()}});
  EXPECT_EQ(VerdictText(judged.at(0), {"2 layers", {139584, 1.6e6, 6.7e9, 2e12}}),
            "supported (toy, 0.14 M / 1.6 M tokens; 2 layers; 3 seeds)");
}

TEST(VerdictTable, HasTheControlLast) {
  const std::vector<ClaimSpec> claims = {LossClaim("x/same", ClaimKind::kEquivalence, "near")};
  const std::vector<JudgedClaim> judged = Judge(claims, {}, {{"t", Outcomes()}});
  const Table table = VerdictTable(judged, {}, {});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.Text(1, "role"), "control");
  EXPECT_EQ(table.Text(1, "contrast"), "far - fp32");
  EXPECT_EQ(table.Text(1, "verdict"), "supported");
  EXPECT_THAT(MeasuredText(judged[0]),
              HasSubstr("\ncontrol: far - fp32 is seen to fail: 0.1 nats per token, [0.09"));
}

TEST(Deviations, AreTheSettingsThatDifferFromThePaper) {
  Settings settings;
  settings.options = {{"epsilon", "1e-8"}, {"beta1", "0.9"}};
  const std::vector<PaperSetting> paper = {{"epsilon", "1e-5", "Llama 2", "It matters."},
                                           {"beta1", "0.9", "Llama 2", "-"},
                                           {"", "Patch dropout is left out.", "Appendix A", "-"}};
  Experiment experiment;
  experiment.paper_settings = paper;
  EXPECT_EQ(DeviationsText(experiment, settings),
            "--epsilon is 1e-8; the paper has 1e-5 (Llama 2). It matters.\n"
            "Patch dropout is left out. (Appendix A). -\n");
}

TEST(Deviations, OfTheSharedListAreATable) {
  Experiment experiment;
  experiment.deviations = [](const Settings&) {
    return std::vector<Deviation>{
        {"depth", "32", "2"},
        {"data", "Red Pajama", "generated text of several words, longer than its cell"},
        {"hardware", "256 Gaudi2", "simulated by numsim"}};
  };
  Settings settings;
  EXPECT_EQ(DeviationsText(experiment, settings),
            " setting               | paper                   | this run\n"
            " depth                 | 32                      | 2\n"
            " data                  | Red Pajama              | generated text of\n"
            "                       |                         | several words, longer\n"
            "                       |                         | than its cell\n"
            " hardware              | 256 Gaudi2              | simulated by numsim\n");
  settings.rows.files = {{"runs", "rows.csv", ""}};
  EXPECT_NE(DeviationsText(experiment, settings).find("trained elsewhere"), std::string::npos);
}

}  // namespace
}  // namespace numsim::experiments
