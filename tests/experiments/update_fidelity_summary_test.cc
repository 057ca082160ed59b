// The verdicts, the table `cliffs` and the figures of `update-fidelity`, from hand-made tables: on
// both sides of each criterion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "experiments/core/settings.h"
#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/update_fidelity.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::update_fidelity {
namespace {

using ::testing::HasSubstr;

// A row of `fidelity`; cells that are not given are nan.
struct MadeStep {
  std::string format, keys, rule;
  double lr;
  std::map<std::string, double> cells;
  std::string status = "ok";
  int seed = 0;
};

// A row of `cliffs`.
struct MadeCliff {
  std::string format, keys, limit, from;
  double measured, predicted, movers = kNaN;
};

Table EmptyTable(std::string_view name) {
  Table table;
  for (const TableSpec& spec : UpdateFidelity().tables) {
    if (spec.name != name) continue;
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
  }
  return table;
}

Table MadeFidelity(const std::vector<MadeStep>& steps) {
  Table table = EmptyTable(kTable);
  for (const MadeStep& step : steps) {
    std::vector<std::string> row(table.columns.size(), "nan");
    row[table.Column("format")] = step.format;
    row[table.Column("keys")] = step.keys;
    row[table.Column("rule")] = step.rule;
    row[table.Column("lr")] = FormatCell(step.lr);
    row[table.Column("seed")] = FormatCell(step.seed);
    row[table.Column("status")] = step.status;
    for (const auto& [column, value] : step.cells) row[table.Column(column)] = FormatCell(value);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table MadeCliffs(const std::vector<MadeCliff>& cliffs) {
  Table table = EmptyTable(kCliffs);
  for (const MadeCliff& cliff : cliffs) {
    table.rows.push_back({cliff.format,
                          cliff.keys,
                          "0",
                          cliff.limit,
                          cliff.from,
                          FormatCell(cliff.measured),
                          FormatCell(cliff.predicted),
                          FormatCell(cliff.movers)});
  }
  return table;
}

Settings QuickSettings(int seeds = 1) {
  return MakeSettings(UpdateFidelity(), "quick", 0, seeds, {});
}

Tables TablesWith(const std::vector<MadeStep>& steps, const std::vector<MadeCliff>& cliffs) {
  return {{std::string(kTable), MadeFidelity(steps)},
          {std::string(kTimes), EmptyTable(kTimes)},
          {std::string(kLimits), EmptyTable(kLimits)},
          {std::string(kCliffs), MadeCliffs(cliffs)}};
}

// In the order of the summary.
enum ClaimIndex : size_t {
  kSmallRates,
  kTarget,
  kNaiveStops,
  kStochasticNorm,
  kWorkedExample,
  kCliffPredicted,
  kNaiveDeclines,
  kNormFloor,
  kCosineFormula,
  kProjectionNoise,
  kStateKeeps,
};

Claim ClaimOf(ClaimIndex index, const std::vector<MadeStep>& steps) {
  return Summarise(QuickSettings(), TablesWith(steps, {})).claims.at(index);
}
std::string VerdictOf(ClaimIndex index, const std::vector<MadeStep>& steps) {
  return ClaimOf(index, steps).verdict;
}
std::string VerdictOf(ClaimIndex index, const std::vector<MadeCliff>& cliffs) {
  return Summarise(QuickSettings(), TablesWith({}, cliffs)).claims.at(index).verdict;
}

TEST(UpdateFidelitySummary, OfEmptyTablesSaysThatNothingIsMeasured) {
  const Summary summary = Summarise(QuickSettings(), TablesWith({}, {}));
  ASSERT_EQ(summary.claims.size(), size_t{kStateKeeps} + 1);
  for (size_t i = 0; i < summary.claims.size(); ++i) {
    EXPECT_EQ(summary.claims[i].verdict, i == kWorkedExample ? "holds" : "not measured") << i;
  }
  EXPECT_THAT(summary.notes, HasSubstr("split-master in e4m3fn"));
}

// Below 1e-9: the norm to 10 %, and an error that is no larger than that of standing still.
TEST(UpdateFidelitySummary, SmallRatesNeedTheNormAndAnErrorOfAtMostOne) {
  const auto note = [](double lr, double norm_error, double relative_error) {
    return MadeStep{"bf16",
                    "same",
                    "note-as-printed",
                    lr,
                    {{"norm_error", norm_error}, {"relative_error", relative_error}}};
  };
  EXPECT_EQ(VerdictOf(kSmallRates, {note(1e-9, 0.1, 1), note(1e-10, 0, 0.5), note(1e-8, 9, 9)}),
            "holds");
  EXPECT_EQ(VerdictOf(kSmallRates, {note(1e-9, 0.1, 1), note(1e-10, 0.1, 1.001)}), "holds in part");
  EXPECT_EQ(VerdictOf(kSmallRates, {note(1e-9, 0.101, 1)}), "does not hold");
  EXPECT_EQ(VerdictOf(kSmallRates, {note(2e-9, 0, 0)}), "not measured");
}

// Only searches that met their own target count, and not at lr = 1, where both targets are one.
TEST(UpdateFidelitySummary, TargetIsJudgedWhereTheSearchConverged) {
  const auto note = [](double lr, double own, double ratio) {
    return MadeStep{
        "bf16",
        "same",
        "note-as-printed",
        lr,
        {{"own_target_ratio", own}, {"norm_ratio", ratio}, {"norm_error", std::abs(ratio - 1)}}};
  };
  EXPECT_EQ(VerdictOf(kTarget, {note(0.5, 1.009, 1.09), note(0.25, 0.5, 2)}), "holds");
  EXPECT_EQ(VerdictOf(kTarget, {note(0.5, 1, 1.09), note(0.25, 1, 2)}), "holds in part");
  EXPECT_EQ(VerdictOf(kTarget, {note(0.25, 1, 2), note(1, 1, 1)}), "does not hold");
  EXPECT_EQ(VerdictOf(kTarget, {note(0.25, 1.011, 1), note(1, 1, 1)}), "not measured");
}

// Rapidly: nothing moves at a tenth of the rate at which half of the norm is gone.
TEST(UpdateFidelitySummary, NaiveStopsWithinADecade) {
  const auto naive = [](double lr, double ratio, double share) {
    return MadeStep{"bf16", "same", "naive", lr, {{"norm_ratio", ratio}, {"moved_share", share}}};
  };
  EXPECT_EQ(
      VerdictOf(kNaiveStops, {naive(1e-4, 0, 0), naive(1e-3, 0.49, 0.1), naive(1e-2, 0.5, 0.2)}),
      "holds");
  EXPECT_EQ(
      VerdictOf(kNaiveStops, {naive(0.9e-4, 0, 0), naive(1e-3, 0.49, 0.1), naive(1e-2, 0.5, 0.2)}),
      "holds in part");
  EXPECT_EQ(VerdictOf(kNaiveStops, {naive(1e-3, 0.5, 0.1), naive(1e-2, 1, 0.2)}), "does not hold");
}

TEST(UpdateFidelitySummary, StochasticNormGrowsLikeTheInverseRoot) {
  const auto stochastic = [](double slope, size_t rates) {
    std::vector<MadeStep> steps;
    for (const double lr : {1e-4, 1e-3, 1e-2}) {
      if (steps.size() == rates) break;
      steps.push_back({"bf16",
                       "same",
                       "stochastic",
                       lr,
                       {{"norm_ratio", std::pow(lr, slope)},
                        {"moved_share", 0.1},
                        {"elements", 1e6},
                        {"expected_mean_ratio", 1}}});
    }
    return steps;
  };
  EXPECT_EQ(VerdictOf(kStochasticNorm, stochastic(-0.5, 3)), "holds");
  EXPECT_THAT(ClaimOf(kStochasticNorm, stochastic(-0.5, 3)).measured, HasSubstr("-0.5000"));
  EXPECT_EQ(VerdictOf(kStochasticNorm, stochastic(-0.519, 3)), "holds");
  EXPECT_EQ(VerdictOf(kStochasticNorm, stochastic(-0.521, 3)), "does not hold");
  EXPECT_EQ(VerdictOf(kStochasticNorm, stochastic(-0.5, 2)), "not measured");
}

// Slopes of -0.5 on average, from points that scatter: the interval contains -0.48.
TEST(UpdateFidelitySummary, AStochasticSlopeThatExcludesNothingIsNotMeasured) {
  std::vector<MadeStep> steps;
  for (const auto& [lr, factor] : std::map<double, double>{{1e-4, 1.0}, {1e-3, 1.5}, {1e-2, 1.0}}) {
    steps.push_back({"bf16",
                     "same",
                     "stochastic",
                     lr,
                     {{"norm_ratio", factor / std::sqrt(lr)},
                      {"moved_share", 0.1},
                      {"elements", 1e6},
                      {"expected_mean_ratio", 1}}});
  }
  const Claim claim = ClaimOf(kStochasticNorm, steps);
  EXPECT_EQ(claim.verdict, "not measured");
  EXPECT_EQ(claim.basis, "1 of 1 undecided");
}

TEST(UpdateFidelitySummary, ACliffThatWasNotFoundIsNotMeasured) {
  const Claim claim =
      Summarise(QuickSettings(),
                TablesWith({}, {{"e4m3fn", "same", "unmoved", "arrays", NAN, 0.03}}))
          .claims.at(kCliffPredicted);
  EXPECT_EQ(claim.verdict, "not measured");
  EXPECT_EQ(claim.basis, "1 of 1 undecided");
}

TEST(UpdateFidelitySummary, CliffsFollowFromArraysUpToTheRoundingOfTheSum) {
  const auto verdict = [](double factor) {
    return VerdictOf(
        kCliffPredicted,
        std::vector<MadeCliff>{{"e4m3fn", "same", "unmoved", "arrays", 0.03 * factor, 0.03}});
  };
  EXPECT_EQ(verdict(1 + 0.99 * 0x1p-18), "holds");  // 2^(m - 21), m = 3
  EXPECT_EQ(verdict(1 - 0.99 * 0x1p-18), "holds");
  EXPECT_EQ(verdict(1 + 1.01 * 0x1p-18), "does not hold");
  EXPECT_EQ(verdict(1 - 1.01 * 0x1p-18), "does not hold");
}

TEST(UpdateFidelitySummary, CliffsFollowFromTheDistribution) {
  const auto half_norm = [](double factor) {
    return VerdictOf(
        kCliffPredicted,
        std::vector<MadeCliff>{{"bf16", "same", "half-norm", "distribution", 1e-3 * factor, 1e-3}});
  };
  EXPECT_EQ(half_norm(1.049), "holds");
  EXPECT_EQ(half_norm(0.951), "holds");
  EXPECT_EQ(half_norm(1.051), "does not hold");
  EXPECT_EQ(half_norm(0.949), "does not hold");
  const auto unmoved = [](double movers) {
    return VerdictOf(
        kCliffPredicted,
        std::vector<MadeCliff>{{"bf16", "same", "unmoved", "distribution", 1e-3, 2e-3, movers}});
  };
  EXPECT_EQ(unmoved(10), "holds");
  EXPECT_EQ(unmoved(0.001), "holds");
  EXPECT_EQ(unmoved(10.1), "does not hold");
  EXPECT_EQ(unmoved(0.00099), "does not hold");
}

// "About" is half a decade up or down.
TEST(UpdateFidelitySummary, NaiveDeclinesWithinHalfADecadeOfTheClaim) {
  const auto verdict = [](const std::string& format, const std::string& keys, double rate) {
    return VerdictOf(
        kNaiveDeclines,
        std::vector<MadeCliff>{{format, keys, "half-norm", "distribution", rate, rate}});
  };
  const double half = std::sqrt(10.0), least = 1e-6;
  for (const auto& [format, said] :
       std::map<std::string, double>{{"e4m3fn", 1e-2}, {"bf16", 1e-3}, {"fp16", 1e-4}}) {
    SCOPED_TRACE(format);
    EXPECT_EQ(verdict(format, "independent", said * half * (1 - least)), "holds");
    EXPECT_EQ(verdict(format, "independent", said * half * (1 + least)), "does not hold");
    EXPECT_EQ(verdict(format, "independent", said / half * (1 + least)), "holds");
    EXPECT_EQ(verdict(format, "independent", said / half * (1 - least)), "does not hold");
  }
  EXPECT_EQ(verdict("bf16", "same", 1e-3), "not measured");
  EXPECT_EQ(verdict("e5m2", "independent", 1e-2), "not measured");
}

std::vector<MadeStep> NormSteps(const std::string& format,
                                const std::string& keys,
                                double floor,
                                int failing_seed = -1) {
  std::vector<MadeStep> steps;
  for (const int seed : {0, 1}) {
    for (const double factor : {0.5, 1.0, 100.0}) {
      const bool met = factor > 0.5 && !(factor == 1 && seed == failing_seed);
      steps.push_back({format,
                       keys,
                       "norm-matched",
                       factor * floor,
                       {{"norm_error", met ? 0.01 : 0.0101}},
                       "ok",
                       seed});
    }
  }
  return steps;
}

TEST(UpdateFidelitySummary, NormMatchingEndsWithinHalfADecadeOfTheClaim) {
  const auto verdict = [](const std::string& format, const std::string& keys, double floor) {
    return VerdictOf(kNormFloor, NormSteps(format, keys, floor));
  };
  EXPECT_EQ(verdict("e4m3fn", "same", 3.16e-4), "holds");
  EXPECT_EQ(verdict("e4m3fn", "same", 3.17e-4), "does not hold");
  EXPECT_EQ(verdict("e4m3fn", "independent", 3.16e-5), "holds");
  EXPECT_EQ(verdict("e4m3fn", "independent", 3.17e-5), "does not hold");
  EXPECT_EQ(verdict("e4m3fn", "independent", 3.17e-7), "holds");
  EXPECT_EQ(verdict("e4m3fn", "independent", 3.16e-7), "does not hold");
  for (const std::string format : {"bf16", "fp16"}) {
    EXPECT_EQ(verdict(format, "independent", 3.16e-9), "holds");
    EXPECT_EQ(verdict(format, "independent", 3.17e-11), "holds");
    EXPECT_EQ(verdict(format, "independent", 3.17e-9), "does not hold");
    EXPECT_EQ(verdict(format, "same", 1e-9), "not measured");
  }
  // The worst seed decides.
  EXPECT_EQ(VerdictOf(kNormFloor, NormSteps("e4m3fn", "same", 1e-4, 1)), "does not hold");
}

// cosine = sqrt(share) * moved_update, to 25 %, where many parameters but not all of them move.
TEST(UpdateFidelitySummary, CosineFollowsTheFormula) {
  const auto step = [](double share, double factor, double elements = 1e6) {
    return MadeStep{"bf16",
                    "independent",
                    "norm-matched",
                    1e-3,
                    {{"moved_share", share},
                     {"elements", elements},
                     {"moved_update", 2},
                     {"cosine", factor * std::sqrt(share) * 2},
                     {"norm_error", 0}}};
  };
  EXPECT_EQ(VerdictOf(kCosineFormula, {step(0.01, 0.81), step(0.09, 1.24)}), "holds");
  EXPECT_EQ(VerdictOf(kCosineFormula, {step(0.01, 1), step(0.01, 1), step(0.01, 0.79)}),
            "holds in part");
  EXPECT_EQ(VerdictOf(kCosineFormula, {step(0.01, 1), step(0.01, 1.26)}), "does not hold");
  EXPECT_EQ(VerdictOf(kCosineFormula, {step(0.11, 1), step(0.01, 1, 9900)}), "not measured");
}

// With the same projection, no longer a step than stochastic rounding, up to 1 %.
TEST(UpdateFidelitySummary, ProjectionMatchingIsLessNoisyThanStochasticRounding) {
  const auto steps = [](std::vector<double> norms, double projection = 1.009) {
    std::vector<MadeStep> made;
    double lr = 1e-3;
    for (const double norm : norms) {
      const std::map<std::string, double> cells = {
          {"elements", 1e6}, {"moved_share", 0.1}, {"projection_ratio", projection}};
      made.push_back({"bf16", "same", "projection-matched", lr, cells});
      made.back().cells["norm_ratio"] = norm;
      made.push_back({"bf16", "same", "stochastic", lr, cells});
      made.back().cells["norm_ratio"] = 2;
      lr *= 10;
    }
    return made;
  };
  EXPECT_EQ(VerdictOf(kProjectionNoise, steps({2.01, 1})), "holds");
  EXPECT_EQ(VerdictOf(kProjectionNoise, steps({2.03, 1})), "holds in part");
  EXPECT_EQ(VerdictOf(kProjectionNoise, steps({2.03, 3})), "does not hold");
  EXPECT_EQ(VerdictOf(kProjectionNoise, steps({1, 1}, 1.011)), "not measured");
}

TEST(UpdateFidelitySummary, StateKeepsTheStepAtEveryRate) {
  const auto kahan = [](std::vector<double> errors) {
    std::vector<MadeStep> made;
    double lr = 1e-6;
    for (const double error : errors) {
      made.push_back({"bf16",
                      "same",
                      "kahan",
                      lr,
                      {{"effective_relative_error", error},
                       {"effective_norm_ratio", 1},
                       {"moved_share", 0.1}}});
      lr *= 10;
    }
    return made;
  };
  EXPECT_EQ(VerdictOf(kStateKeeps, kahan({0.01, 0})), "holds");
  EXPECT_EQ(VerdictOf(kStateKeeps, kahan({0.0101, 0})), "holds in part");
  EXPECT_EQ(VerdictOf(kStateKeeps, kahan({0, 0.0101})), "does not hold");
}

// The predictions of a row are those of its format, keys and number of elements. With the same key
// every normal number of e4m3fn has its threshold between 1/31 and 2/31; independent keys pair
// small weights with large updates, which move long before.
TEST(UpdateFidelityCliffs, ArePredictedForTheKeysOfTheirRow) {
  constexpr double kElements = 1 << 20;
  Tables tables = TablesWith({}, {});
  for (const char* const keys : {"same", "independent"}) {
    for (const char* const seed : {"0", "1"}) {
      tables.at(std::string(kLimits))
          .rows.push_back({"e4m3fn", keys, seed, FormatCell(kElements), "0.04", "0.033", "0.05"});
    }
  }
  Derive(QuickSettings(2), tables);
  const Table& cliffs = tables.at(std::string(kCliffs));
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  ASSERT_EQ(cliffs.rows.size(), 3u * 4);
  for (size_t i = 0; i < cliffs.rows.size(); ++i) {
    const bool same = cliffs.Text(i, "keys") == "same";
    EXPECT_EQ(same, i < 6);
    const double predicted = cliffs.Number(i, "predicted");
    if (cliffs.Text(i, "predicted_from") == "arrays") {
      EXPECT_EQ(predicted, 0.033);
      EXPECT_EQ(cliffs.Number(i, "measured"), 0.04);
      EXPECT_TRUE(std::isnan(cliffs.Number(i, "expected_movers")));
    } else if (cliffs.Text(i, "limit") == "unmoved") {
      EXPECT_EQ(predicted, UnmovedExpected(format, same, kElements));
      EXPECT_EQ(predicted >= 1 / 31.0, same);
      EXPECT_LE(predicted, 2 / 31.0);
      EXPECT_EQ(cliffs.Number(i, "measured"), 0.04);
      EXPECT_EQ(cliffs.Number(i, "expected_movers"),
                kElements * MovedShareExpected(format, same, 0.04));
    } else {
      EXPECT_EQ(cliffs.Text(i, "limit"), "half-norm");
      EXPECT_EQ(predicted, HalfNormExpected(format, same));
      EXPECT_EQ(cliffs.Number(i, "measured"), 0.05);
    }
  }
  EXPECT_NE(HalfNormExpected(format, true), HalfNormExpected(format, false));
}

// One format, two seeds: the curve is their mean, the band from the least to the greatest.
TEST(UpdateFidelityFigures, ShowMeanAndRangeOfTheSeeds) {
  std::vector<MadeStep> steps;
  for (const char* const rule : {"naive", "note-as-printed", "kahan"}) {
    for (const int seed : {0, 1}) {
      for (const double lr : {1e-3, 1e-2}) {
        const double error = lr * (seed == 0 ? 8 : 24);
        steps.push_back({"bf16",
                         "same",
                         rule,
                         lr,
                         {{"norm_error", error},
                          {"mean_error", 1},
                          {"cosine", 0.5},
                          {"moved_share", 0.25},
                          {"relative_error", 0.125},
                          {"effective_relative_error", 2 * error},
                          {"own_target_ratio", seed == 0 ? 0.5 : 1.25}},
                         "ok",
                         seed});
      }
    }
  }
  Tables tables = TablesWith(steps,
                             {{"bf16", "same", "unmoved", "distribution", 1e-3, 2e-3},
                              {"bf16", "same", "half-norm", "distribution", 4e-3, 4e-3}});
  Table& times = tables.at(std::string(kTimes));
  for (const char* const seed : {"0", "1"}) {
    times.rows.push_back(
        {"bf16", "same", "naive", "0.001", seed, "64", seed == std::string("0") ? "1" : "4"});
  }
  const std::vector<Figure> figures = Figures(QuickSettings(2), tables);
  ASSERT_EQ(figures.size(), 3u);
  ASSERT_EQ(figures[0].panels.size(), 4u);
  const std::vector<Series>& series = figures[0].panels[0].series;
  ASSERT_EQ(series.size(), 7u);  // two rules, the note's own target, two limits with a mark each
  EXPECT_EQ(series[0].label, "naive");
  EXPECT_EQ(series[0].x, (std::vector<double>{1e-3, 1e-2}));
  EXPECT_EQ(series[0].low, (std::vector<double>{1e-3 * 8, 1e-2 * 8}));
  EXPECT_EQ(series[0].high, (std::vector<double>{1e-3 * 24, 1e-2 * 24}));
  EXPECT_DOUBLE_EQ(series[0].y[0], 16e-3);
  EXPECT_DOUBLE_EQ(series[0].y[1], 16e-2);
  EXPECT_EQ(series[2].y, (std::vector<double>{0.5, 0.5})) << "the worst seed's own target";
  EXPECT_EQ(series[3].x, (std::vector<double>{1e-3, 1e-3})) << "as measured";
  EXPECT_EQ(series[4].x, std::vector<double>{2e-3}) << "as predicted";
  ASSERT_EQ(figures[1].panels.size(), 4u);
  EXPECT_EQ(figures[1].panels[0].series[0].label, "kahan");
  EXPECT_DOUBLE_EQ(figures[1].panels[0].series[0].y[0], 32e-3);
  EXPECT_EQ(figures[1].panels[0].series[1].y, (std::vector<double>{0.125, 0.125})) << "stored";
  EXPECT_EQ(figures[2].source_csv, "times.csv");
  ASSERT_EQ(figures[2].panels.size(), 1u);
  EXPECT_EQ(figures[2].panels[0].series[0].y, std::vector<double>{2.5});
}

// The panels of a row, one for each choice of the key, can be compared.
TEST(UpdateFidelityFigures, PanelsOfARowShareTheirAxes) {
  std::vector<MadeStep> steps;
  for (const char* const keys : {"same", "independent"}) {
    const double error = keys == std::string("same") ? 0.002 : 0.2;
    steps.push_back({"bf16", keys, "naive", 1e-3, {{"norm_error", error}, {"moved_share", 0.5}}});
  }
  Tables tables = TablesWith(steps, {});
  tables.at(std::string(kTimes)).rows.push_back({"bf16", "same", "naive", "0.001", "0", "64", "1"});
  const std::vector<Figure> figures = Figures(QuickSettings(), tables);
  ASSERT_EQ(figures[0].panels.size(), 8u);
  const Panel& same = figures[0].panels[0];
  const Panel& independent = figures[0].panels[1];
  EXPECT_EQ(same.y.low, independent.y.low);
  EXPECT_EQ(same.y.high, independent.y.high);
  EXPECT_LT(same.y.low, 0.002);
  EXPECT_GT(same.y.high, 0.2);
  EXPECT_TRUE(same.series[0].low.empty()) << "one seed has no range";
}

}  // namespace
}  // namespace numsim::experiments::update_fidelity
