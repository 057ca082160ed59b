// The claims of `update-fidelity`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/panels.h"
#include "experiments/update_fidelity/update_fidelity.h"
#include "numsim/formats/format_table.h"
#include "tests/experiments/result_tables.h"

namespace numsim::experiments::update_fidelity {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using CellMap = std::map<std::string, Cell>;
using Three = std::array<double, 3>;  // a value for each seed

class FidelityClaims : public ::testing::Test {
 protected:
  // Adds a step of 10^6 bf16 parameters with the same key.
  void Step(const std::string& rule, double lr, CellMap cells, int seed = 0) {
    cells.merge(CellMap{{"format", "bf16"},
                        {"keys", "same"},
                        {"rule", rule},
                        {"lr", lr},
                        {"seed", seed},
                        {"elements", 1e6},
                        {"moved_share", 0.01}});
    results_.Add("fidelity", cells);
  }
  void Limit(double unmoved, double half_norm, int seed = 0, const char* keys = "same") {
    results_.Add("naive_limits",
                 {{"format", "e4m3fn"},
                  {"keys", keys},
                  {"seed", seed},
                  {"elements", 1e6},
                  {"unmoved_lr", unmoved},
                  {"least_threshold", 1 / 31.0},
                  {"half_norm_lr", half_norm}});
  }
  void Clear() { results_ = ResultTables(UpdateFidelity()); }
  std::string VerdictOf(const std::string& name) { return results_.OwnVerdictOf(name); }

  // Expects the three verdicts for the values that `add` puts into the tables, of three seeds each.
  void ExpectVerdicts(const std::string& claim,
                      const std::function<void(int seed, double value)>& add,
                      const Three& supported,
                      const Three& contradicted,
                      const Three& inconclusive) {
    const std::map<std::string, Three> cases = {
        {"supported", supported}, {"contradicted", contradicted}, {"inconclusive", inconclusive}};
    for (const auto& [verdict, values] : cases) {
      Clear();
      for (int seed = 0; seed < 3; ++seed) add(seed, values[static_cast<size_t>(seed)]);
      EXPECT_EQ(VerdictOf(claim), verdict) << claim;
    }
  }

  ResultTables results_{UpdateFidelity()};
};

TEST_F(FidelityClaims, AreNotTestedByEmptyTables) {
  results_.Finish();
  for (const ClaimSpec& spec : results_.experiment().claims) {
    const std::string name = spec.id.substr(spec.id.find('/') + 1);
    EXPECT_EQ(VerdictOf(name), name == "worked-example" ? "exact: holds" : "not tested") << name;
  }
}

// Only searches that met their own target count, and not at lr = 1, where both targets are one.
TEST_F(FidelityClaims, SearchesRunAtTheRootOfTheLearningRate) {
  const auto search = [&](double lr, double own, double ratio) {
    Step("note-as-printed",
         lr,
         {{"own_target_ratio", own}, {"norm_ratio", ratio}, {"norm_error", std::abs(ratio - 1)}});
  };
  search(0.25, 0.98, 7);
  search(1, 1, 7);
  EXPECT_EQ(VerdictOf("root-learning-rate"), "not tested");
  EXPECT_EQ(VerdictOf("target-norm"), "not tested");
  search(0.25, 1.009, 2.009);
  EXPECT_EQ(VerdictOf("root-learning-rate"), "exact: holds");
  EXPECT_EQ(VerdictOf("target-norm"), "exact: refuted");
  Clear();
  search(0.5, 1.009, 1.09);
  EXPECT_EQ(VerdictOf("target-norm"), "exact: holds");
  EXPECT_EQ(VerdictOf("root-learning-rate"), "exact: refuted");
}

// At 1e-9 and below: the norm to 10 %, and an error that is no larger than that of standing still.
TEST_F(FidelityClaims, SmallRatesNeedTheNormAndTheMean) {
  for (const auto& [rule, claim] :
       std::map<std::string, std::string>{{"note-as-printed", "small-rates-as-printed"},
                                          {"norm-matched", "small-rates-as-intended"}}) {
    const auto search = [&, name = rule](double lr, double norm_error, double mean_error) {
      Step(name, lr, {{"norm_error", norm_error}, {"mean_error", mean_error}});
    };
    Clear();
    search(2e-9, 9, 9);
    EXPECT_EQ(VerdictOf(claim), "not tested") << claim;
    search(1e-9, 0.1, 1);
    EXPECT_EQ(VerdictOf(claim), "exact: holds") << claim;
    search(1e-10, 0.1, 1.001);
    EXPECT_EQ(VerdictOf(claim), "exact: refuted") << claim;
    Clear();
    search(1e-9, 0.101, 1);
    EXPECT_EQ(VerdictOf(claim), "exact: refuted") << claim;
  }
}

// Where nothing moves, a^2 - 2 b + 1 >= 1 for each step; where rounding loses little, both can be 1.
TEST_F(FidelityClaims, NoStepHasNormAndProjectionWhereRoundingLosesIt) {
  const auto step = [&](const char* rule, double lr, double error, double norm, double along) {
    Step(rule, lr, {{"relative_error", error}, {"norm_ratio", norm}, {"projection_ratio", along}});
  };
  step("naive", 0.1, 0.1, 1, 0.995);
  step("kahan", 0.1, 0.1, 1, 0.995);
  EXPECT_EQ(VerdictOf("norm-or-projection"), "not tested");
  step("naive", 1e-6, 1, 0, 0);
  step("norm-matched", 1e-6, 1, 1, 0.5);
  step("projection-matched", 1e-6, 1.01, std::sqrt(2.0), 1);
  step("note-as-printed", 1e-6, 9, kInfinity, kNaN);
  EXPECT_EQ(VerdictOf("norm-or-projection"), "exact: holds");
  EXPECT_THAT(results_.ClaimOf("norm-or-projection").evidence.measured, HasSubstr("In 3 of them"));
  step("stochastic", 1e-6, 0.9, 1, 0.6);
  EXPECT_EQ(VerdictOf("norm-or-projection"), "exact: refuted");
}

TEST_F(FidelityClaims, ThresholdsHoldUpToTheRoundingOfTheSum) {
  for (const auto& [off, verdict] : std::map<double, std::string>{{-1.01, "exact: refuted"},
                                                                  {-0.99, "exact: holds"},
                                                                  {0.99, "exact: holds"},
                                                                  {1.01, "exact: refuted"}}) {
    Clear();
    Limit(1 / 31.0 * (1 + off * 0x1p-18), 0.05);  // 2^(m - 21), m = 3
    EXPECT_EQ(VerdictOf("naive-threshold"), verdict) << off;
  }
}

// 1/31 to 2/31 with 3 mantissa bits, with the published key alone.
TEST_F(FidelityClaims, TheCliffOfTheSameKeyIsAFactorOfTwoWide) {
  Limit(1e-3, 0.5, 0, "independent");
  EXPECT_EQ(VerdictOf("same-key-cliff"), "not tested");
  Limit(1 / 31.0, 2 / 31.0);
  EXPECT_EQ(VerdictOf("same-key-cliff"), "exact: holds");
  Limit(1 / 31.0, 2.001 / 31.0, 1);
  EXPECT_EQ(VerdictOf("same-key-cliff"), "exact: refuted");
  Clear();
  Limit(0.999 / 31.0, 2 / 31.0);
  EXPECT_EQ(VerdictOf("same-key-cliff"), "exact: refuted");
}

TEST_F(FidelityClaims, NotesSayDownToWhichRateStateKeepsTheStep) {
  const auto notes = [&] {
    return results_.experiment().notes(results_.settings(), results_.Finish());
  };
  Step("naive", 1e-6, {{"effective_relative_error", 1}});
  EXPECT_THAT(notes(), Not(HasSubstr("Rules with state")));
  Step("kahan", 1e-6, {{"effective_relative_error", 0.01}});
  EXPECT_THAT(notes(), HasSubstr("kahan               2 B  from lr 1e-06"));
  Step("kahan", 1e-5, {{"effective_relative_error", 0.0101}});
  EXPECT_THAT(notes(), HasSubstr("from lr none"));
}

// Decades between half of the norm and nothing; the margin is one.
TEST_F(FidelityClaims, NaiveZeroesOutWithinADecade) {
  for (const auto& [keys, claim] : std::map<const char*, std::string>{
           {"same", "naive-zeroes-out"}, {"independent", "naive-zeroes-out-independent"}}) {
    const auto limit = [&, key = keys](int seed, double decades) {
      Limit(1e-3, 1e-3 * std::pow(10, decades), seed, key);
    };
    ExpectVerdicts(claim, limit, {0.5, 0.6, 0.4}, {3, 3.1, 2.9}, {0.2, 1.8, 1});
    const bool same = claim == "naive-zeroes-out";
    EXPECT_EQ(VerdictOf(same ? "naive-zeroes-out-independent" : "naive-zeroes-out"), "not tested");
    EXPECT_EQ(results_.ClaimOf(claim).spec->primary, same);
  }
}

// Naive keeps the mean down to 0.1, stochastic rounding down to 10^-value.
TEST_F(FidelityClaims, StochasticWorksLongerByItsMeanStep) {
  const auto steps = [&](int seed, double decades) {
    for (int i = 0; i <= 10; ++i) {
      const double lr = std::pow(10, -0.5 * i);
      Step("naive", lr, {{"mean_ratio", i <= 2 ? 0.95 : 0}}, seed);
      Step("stochastic",
           lr,
           {{"expected_mean_ratio", 0.5 * i <= decades ? 1.05 : 1.2}, {"mean_ratio", 5}},
           seed);
    }
  };
  ExpectVerdicts("stochastic-works-longer", steps, {4, 4, 4.5}, {1, 1, 1}, {1, 4, 2});
  // It never keeps the mean: not longer.
  Clear();
  for (int seed = 0; seed < 3; ++seed) steps(seed, -1);
  EXPECT_EQ(VerdictOf("stochastic-works-longer"), "contradicted");
}

// Rates from 10^0 down to 10^-5, where a rule keeps the mean down to 10^-decades: -1 for none, 9 for
// all.
TEST_F(FidelityClaims, RatesThatWereNotTriedDecideOnlyWhatTheyCan) {
  const auto verdict_of = [&](double naive, double stochastic) {
    Clear();
    for (int seed = 0; seed < 3; ++seed) {
      for (int i = 0; i <= 10; ++i) {
        const double lr = std::pow(10, -0.5 * i);
        Step("naive", lr, {{"mean_ratio", 0.5 * i <= naive ? 1 : 0}}, seed);
        Step("stochastic", lr, {{"expected_mean_ratio", 0.5 * i <= stochastic ? 1 : 2}}, seed);
      }
    }
    return VerdictOf("stochastic-works-longer");
  };
  EXPECT_EQ(verdict_of(1, 3), "supported");
  EXPECT_EQ(verdict_of(3, 1), "contradicted");
  // Naive keeps it at no rate: stochastic does for longer by more than the rates it is kept for.
  EXPECT_EQ(verdict_of(-1, 3), "supported");
  EXPECT_EQ(verdict_of(-1, 9), "supported");
  EXPECT_EQ(verdict_of(-1, 0.5), "not tested") << "half a decade or more";
  EXPECT_EQ(verdict_of(3, -1), "contradicted");
  EXPECT_EQ(verdict_of(3, 9), "supported") << "at least two decades";
  EXPECT_EQ(verdict_of(4.5, 9), "not tested") << "at least half a decade";
  EXPECT_EQ(verdict_of(9, 3), "contradicted");
  for (const double both : {-1.0, 9.0}) EXPECT_EQ(verdict_of(both, both), "not tested");
  EXPECT_THAT(results_.ClaimOf("stochastic-works-longer").result.reason, HasSubstr("--lr-low"));
}

TEST_F(FidelityClaims, SaysWhichRuleWasNotRun) {
  Step("stochastic", 1e-3, {{"expected_mean_ratio", 1}});
  EXPECT_EQ(results_.ClaimOf("stochastic-works-longer").result.reason,
            "the rule naive was not run (--rules)");
  EXPECT_EQ(results_.ClaimOf("naive-zeroes-out").result.reason,
            "the rule naive was not run with keys same (--rules, --keys)");
}

// Half of the norm may be gone at no rate, or already at rate 1.
TEST_F(FidelityClaims, ALimitThatDoesNotExistIsNotTested) {
  for (int seed = 0; seed < 3; ++seed) Limit(1e-3, kNaN, seed);
  EXPECT_EQ(VerdictOf("naive-zeroes-out"), "not tested");
  EXPECT_EQ(VerdictOf("same-key-cliff"), "not tested");
  EXPECT_EQ(VerdictOf("half-norm-predicted"), "not tested") << "predicted and not measured";
  EXPECT_THAT(results_.ClaimOf("naive-zeroes-out").result.reason, HasSubstr("half of the step"));
}

// Nothing moves up to a rate of 10^6: right if no threshold is below it.
TEST_F(FidelityClaims, ThresholdsBeyondTheGreatestRateAgree) {
  const auto limit = [&](double unmoved, double least) {
    Clear();
    results_.Add("naive_limits",
                 {{"format", "e4m3fn"},
                  {"keys", "independent"},
                  {"seed", 0},
                  {"elements", 1},
                  {"unmoved_lr", unmoved},
                  {"least_threshold", least}});
    return VerdictOf("naive-threshold");
  };
  EXPECT_EQ(limit(kNaN, kInfinity), "exact: holds");
  EXPECT_EQ(limit(kNaN, 1e7), "exact: holds");
  EXPECT_EQ(limit(kNaN, 1e5), "exact: refuted");
  EXPECT_EQ(limit(1, kInfinity), "exact: refuted");
}

TEST_F(FidelityClaims, StochasticNormGrowsLikeTheInverseRoot) {
  const auto steps = [&](int seed, double slope) {
    for (const double lr : {1e-4, 1e-3, 1e-2}) {
      Step("stochastic", lr, {{"norm_ratio", std::pow(lr, slope)}}, seed);
    }
    Step("stochastic", 1e-6, {{"norm_ratio", 3}, {"moved_share", 99e-6}}, seed);  // chance
    Step("stochastic", 1, {{"norm_ratio", 2.9}}, seed);                           // no growth yet
  };
  ExpectVerdicts("stochastic-norm-grows",
                 steps,
                 {-0.501, -0.499, -0.5},
                 {-0.6, -0.6, -0.601},
                 {-0.5, -0.53, -0.51});
}

TEST_F(FidelityClaims, TheClosedFormPredictsHalfOfTheNorm) {
  const double predicted = HalfNormExpected(FindFormat("e4m3fn")->spec, true);
  const auto limit = [&](int seed, double factor) { Limit(1e-3, factor * predicted, seed); };
  ExpectVerdicts(
      "half-norm-predicted", limit, {1.01, 0.99, 1.02}, {1.2, 0.8, 1.21}, {1.02, 1.08, 1});
}

// Rates at which the projection is missed, stochastic rounding has no noise, or its noise is
// chance, do not count.
TEST_F(FidelityClaims, ProjectionMatchingIsLessNoisyThanStochasticRounding) {
  const auto steps = [&](int seed, double ratio) {
    const auto pair = [&](double lr, double met, double norm, double other, double moved) {
      Step("projection-matched", lr, {{"norm_ratio", norm}, {"projection_ratio", met}}, seed);
      Step("stochastic", lr, {{"norm_ratio", other}, {"moved_share", moved}}, seed);
    };
    pair(1e-3, 1.009, 4 * ratio, 4, 0.1);
    pair(1e-4, 1.009, 2 * ratio, 4, 0.1);
    pair(1e-5, 1.011, 40, 4, 0.1);
    pair(1e-6, 1, 40, 4, 0.99e-3);
    pair(1e-2, 1, 40, 1.9, 0.1);
  };
  ExpectVerdicts("projection-less-noisy", steps, {0.8, 0.81, 0.8}, {1.1, 1.2, 1.1}, {0.8, 1, 0.9});
}

TEST_F(FidelityClaims, CosineFollowsTheFormula) {
  const auto steps = [&](int seed, double factor) {
    const auto step = [&](double share, double ratio) {
      Step("norm-matched",
           share,
           {{"moved_share", share}, {"moved_update", 2}, {"cosine", ratio * std::sqrt(share) * 2}},
           seed);
    };
    step(0.01, factor);
    step(0.09, 1);
    step(0.11, 9);
    step(99e-6, 9);
  };
  ExpectVerdicts("norm-cosine", steps, {1.01, 0.99, 1}, {1.4, 0.6, 1.4}, {1.1, 1.4, 1.2});
}

// The format in which a claim fails decides, not the average of the formats.
TEST_F(FidelityClaims, TheWorstPanelDecides) {
  for (int seed = 0; seed < 3; ++seed) {
    for (const auto& [format, slope] :
         std::map<std::string, double>{{"bf16", -0.5}, {"e4m3fn", -0.6 - 0.001 * seed}}) {
      for (const double lr : {1e-4, 1e-3, 1e-2}) {
        Step("stochastic", lr, {{"format", format}, {"norm_ratio", std::pow(lr, slope)}}, seed);
      }
    }
  }
  EXPECT_EQ(VerdictOf("stochastic-norm-grows"), "contradicted");
  EXPECT_NEAR(results_.ClaimOf("stochastic-norm-grows").result.contrasts.at(0).value, 0.101, 1e-6);
}

TEST_F(FidelityClaims, NotesNameTheRulesThatAreLeftOut) {
  EXPECT_THAT(results_.experiment().notes(results_.settings(), results_.Finish()),
              HasSubstr("split-master in e4m3fn, split-master in fp16"));
}

// ---- what claims say

TEST(FidelityPanels, ARangeIsTextFromTheLeastToTheGreatestNumber) {
  const double nan = std::nan("");
  EXPECT_EQ(RangeText({}), "none");
  EXPECT_EQ(RangeText({nan, nan}), "none");
  EXPECT_EQ(RangeText({nan, 2, nan}), "2");
  EXPECT_EQ(RangeText({2, 2.00001}), "2");  // four digits
  EXPECT_EQ(RangeText({2, nan, -0.5, 3}), "-0.5 .. 3");
  EXPECT_EQ(RangeText({3, 2, 1}), "1 .. 3");
}

// Rates in no order; good at 2 and from 8 on.
TEST(FidelityPanels, TheLeastRateIsGoodAtItselfAndAboveIt) {
  Table table;
  table.columns = {"lr", "good"};
  table.rows = {{8, 1}, {16, 1}, {4, 0}, {2, 1}, {1, 0}};
  const auto is_good = [](const Frame& row) { return row.Number("good") == 1; };
  EXPECT_EQ(LeastRate(table, is_good), 8);
  EXPECT_EQ(LeastRate(table, [](const Frame&) { return true; }), 1);
  EXPECT_TRUE(std::isnan(LeastRate(table, [](const Frame&) { return false; })));
  EXPECT_TRUE(std::isnan(LeastRate(table, [](const Frame& row) { return row.Number("lr") < 16; })));
}

}  // namespace
}  // namespace numsim::experiments::update_fidelity
