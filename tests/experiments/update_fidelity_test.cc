// The experiment `update-fidelity`: its measures against closed forms and enumeration, its options,
// and a golden CSV.
#include "experiments/update_fidelity/update_fidelity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::update_fidelity {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(UpdateFidelity(), "quick", 0, seeds, overrides);
}

// The rows of one trial, as a table.
Table RowsOf(const Settings& settings,
             const std::string& format,
             const std::string& keys,
             const std::string& rule) {
  const Trial trial{.label = "trial",
                    .seed = 0,
                    .parameters = {{"format", format}, {"keys", keys}, {"rule", rule}}};
  return experiments::RowsOf(UpdateFidelity(), settings, trial);
}

void RunInto(const fs::path& out, const Settings& settings) {
  RunWithoutFigures(UpdateFidelity(), settings, out);
}

const Overrides kSmall = {
    {"size", "32"}, {"per-decade", "1"}, {"lr-low", "1e-3"}, {"lr-high", "0.1"}};

TEST(UpdateFidelity, EqualsTheGoldenCsvOnAnyNumberOfThreads) {
  Overrides overrides = kSmall;
  overrides["formats"] = "e4m3fn,bf16";
  overrides["lr-high"] = "1e-2";
  ExpectGoldenCsv(UpdateFidelity(), SettingsWith(overrides), "fidelity");
}

TEST(UpdateFidelity, OneTrialDoesNotDependOnThreads) {
  const int before = ThreadCount();
  const Settings settings =
      SettingsWith({{"size", "200"}, {"lr-low", "1e-3"}, {"lr-high", "1e-2"}, {"per-decade", "1"}});
  for (const char* const rule :
       {"naive", "stochastic", "note-as-printed", "norm-matched", "kahan"}) {
    SetThreadCount(1);
    const Table one = RowsOf(settings, "e4m3fn", "independent", rule);
    SetThreadCount(3);
    const Table three = RowsOf(settings, "e4m3fn", "independent", rule);
    EXPECT_EQ(one.rows, three.rows) << rule;
  }
  SetThreadCount(before);
}

TEST(MeasureStep, HasTheClosedForm) {
  const std::vector<float> params = {1, 2, 3, 4}, update = {1, -2, 0, 4};
  const std::vector<float> after = {1.5, 2, 3, 6};
  const StepMeasures m = MeasureStep(params, update, after, 0.5);
  EXPECT_EQ(m.elements, 4u);
  EXPECT_EQ(m.moved, 2u);
  EXPECT_EQ(m.zero_updates, 1u);
  EXPECT_DOUBLE_EQ(m.MovedShare(), 0.5);
  EXPECT_DOUBLE_EQ(m.NormRatio(0.5), std::sqrt(4.25) / (0.5 * std::sqrt(21)));
  EXPECT_DOUBLE_EQ(m.MeanRatio(0.5), (0.5 + 0 + 0.5) / 3 / 0.5);
  EXPECT_DOUBLE_EQ(m.RelativeError(0.5), 1 / (0.5 * std::sqrt(21)));
  EXPECT_DOUBLE_EQ(m.Cosine(), 8.5 / std::sqrt(4.25 * 21));
  EXPECT_DOUBLE_EQ(m.ProjectionRatio(0.5), 8.5 / (0.5 * 21));
  EXPECT_DOUBLE_EQ(m.MovedUpdate(), (1 + 4) / 2.0 / std::sqrt(21.0 / 4));
}

TEST(MeasureStep, HasNoRatioWithoutADenominator) {
  const std::vector<float> params = {1, 2}, zero = {0, 0}, update = {1, 1};
  const StepMeasures still = MeasureStep(params, update, params, 0.5);
  EXPECT_EQ(still.NormRatio(0.5), 0);
  EXPECT_EQ(still.RelativeError(0.5), 1);
  EXPECT_TRUE(std::isnan(still.Cosine()));
  const StepMeasures nothing = MeasureStep(params, zero, params, 0.5);
  EXPECT_EQ(nothing.zero_updates, 2u);
  EXPECT_TRUE(std::isnan(nothing.NormRatio(0.5)));
  EXPECT_TRUE(std::isnan(nothing.MeanRatio(0.5)));
  EXPECT_TRUE(std::isnan(still.NormRatio(0)));
}

TEST(MeasureStep, PassesNaNOn) {
  const std::vector<float> params = {1, 2}, update = {1, 1};
  const StepMeasures m = MeasureStep(params, update, std::vector<float>{1, std::nanf("")}, 0.5);
  EXPECT_EQ(m.moved, 1u);
  EXPECT_TRUE(std::isnan(m.NormRatio(0.5)));
  EXPECT_TRUE(std::isnan(m.MeanRatio(0.5)));
  EXPECT_TRUE(std::isnan(m.RelativeError(0.5)));
}

// Every normal number moves first at lr in [1, 2] / (2^(m+2) - 1) when the update is the parameter
// before rounding.
TEST(UpdateFidelity, NaiveDiesAtOneCliffWithTheSameKey) {
  for (const char* const format : {"e4m3fn", "bf16", "fp16"}) {
    const double least = 1 / (std::ldexp(1, FindFormat(format)->spec.mantissa_bits + 2) - 1);
    const auto moved_share = [&](double lr) {
      const Settings settings = SettingsWith({{"size", "256"},
                                              {"lr-low", fmt::format("{}", lr)},
                                              {"lr-high", fmt::format("{}", 1.01 * lr)}});
      const Table table = RowsOf(settings, format, "same", "naive");
      return table.Number(0, "moved_share");
    };
    EXPECT_EQ(moved_share(0.99 * least), 0) << format;
    EXPECT_GT(moved_share(1.2 * least), 0.05) << format;
    EXPECT_LT(moved_share(1.2 * least), 0.8) << format;
    // All but the subnormal ones.
    EXPECT_GT(moved_share(2.02 * least), 0.98) << format;
  }
}

TEST(UpdateFidelity, SearchThatConvergesRunsAtTheRootOfTheLearningRate) {
  const Settings settings = SettingsWith({{"size", "256"}, {"lr-low", "1e-4"}, {"lr-high", "0.1"}});
  for (const char* const keys : {"same", "independent"}) {
    const Table table = RowsOf(settings, "bf16", keys, "note-as-printed");
    for (size_t i = 0; i < table.rows.size(); ++i) {
      ASSERT_EQ(table.Text(i, "status"), "ok");
      const double root = std::sqrt(table.Number(i, "lr"));
      EXPECT_NEAR(table.Number(i, "norm_ratio") * root, 1, 0.01);
      EXPECT_NEAR(table.Number(i, "own_target_ratio"), 1, 0.01);
    }
  }
}

// The expectation over the random bits, by trying every word.
TEST(UpdateFidelity, ExpectedMeanRatioIsTheMeanOverAllWords) {
  constexpr int kBits = 5;
  const double lr = static_cast<double>(0.01f);
  const Settings settings = SettingsWith(
      {{"size", "16"}, {"lr-low", "0.01"}, {"lr-high", "0.01"}, {"rules", "stochastic:5"}});
  const Table table = RowsOf(settings, "e4m3fn", "independent", "stochastic:5");
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  std::vector<float> params(256), update(256);
  FillNormal({0, 0}, 0, params);
  FillNormal({0, 1}, 0, update);
  double sum = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const double param = Decode(format, Encode(format, params[i]));
    const double u = update[i];
    const Rounding rounding{RoundingMode::kStochastic, StochasticVariant::kA, kBits};
    for (uint32_t word = 0; word < 1u << kBits; ++word) {
      const uint32_t code = Encode(format, param + lr * u, rounding, Overflow::kSaturate, word);
      sum += (static_cast<double>(Decode(format, code)) - param) / u / (1 << kBits);
    }
  }
  const double expected = sum / static_cast<double>(params.size()) / lr;
  EXPECT_NEAR(table.Number(0, "expected_mean_ratio"), expected, 1e-9 * std::abs(expected));
}

TEST(UpdateFidelity, ExpectedMeanRatioIsOneWithManyBits) {
  const Settings settings =
      SettingsWith({{"size", "128"}, {"lr-low", "1e-5"}, {"lr-high", "1"}, {"per-decade", "1"}});
  for (const char* const keys : {"same", "independent"}) {
    const Table table = RowsOf(settings, "e4m3fn", keys, "stochastic");
    for (size_t i = 0; i < table.rows.size(); ++i) {
      EXPECT_NEAR(table.Number(i, "expected_mean_ratio"), 1, 1e-3) << table.Text(i, "lr");
    }
  }
}

TEST(UpdateFidelity, LearningRatesAreFloatsWhoseTextIsShort) {
  const Settings settings =
      SettingsWith({{"lr-low", "1e-10"}, {"lr-high", "1"}, {"per-decade", "2"}});
  const std::vector<float> rates = LearningRates(settings);
  ASSERT_EQ(rates.size(), 21u);
  EXPECT_EQ(rates[0], 1e-10f);
  EXPECT_EQ(rates[1], 3.162e-10f);
  EXPECT_EQ(rates[2], 1e-9f);
  EXPECT_EQ(rates[20], 1);
  EXPECT_EQ(RateText(rates[1]), "3.162e-10");
  for (const float rate : rates) EXPECT_EQ(std::stof(RateText(rate)), rate);
}

TEST(UpdateFidelity, BadOptionsAreNamed) {
  const Experiment experiment = UpdateFidelity();
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { experiment.trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  EXPECT_THAT(message({{"formats", "e9m9"}}), HasSubstr("e9m9"));
  EXPECT_THAT(message({{"formats", "e8m0fnu"}}), HasSubstr("--formats"));
  EXPECT_THAT(message({{"formats", "bf16,bf16"}}), HasSubstr("--formats"));
  EXPECT_THAT(message({{"rules", "magic"}}), HasSubstr("magic"));
  EXPECT_THAT(message({{"rules", "naive,naive"}}), HasSubstr("--rules"));
  EXPECT_THAT(message({{"keys", "both"}}), HasSubstr("both"));
  for (const char* const option : {"size", "rtol", "iterations", "per-decade", "lr-low"}) {
    EXPECT_THAT(message({{option, "-1"}}), HasSubstr("--" + std::string(option)));
  }
  EXPECT_THAT(message({{"rules", "stochastic,stochastic:32"}}), HasSubstr("--rules"));
  const std::string useless = message({{"formats", "fp16"}, {"rules", "naive,split-master"}});
  EXPECT_THAT(useless, HasSubstr("--rules"));
  EXPECT_THAT(useless, HasSubstr("split-master"));
  EXPECT_THAT(message({{"lr-low", "1e-3"}, {"lr-high", "1e-4"}}), HasSubstr("--lr-high"));
}

// Of 3 formats, 2 choices of keys: bf16 alone has split-master.
TEST(UpdateFidelity, RulesAreLeftOutOfFormatsThatTheyDoNotServe) {
  const std::vector<Trial> trials = UpdateFidelity().trials(SettingsWith({}));
  EXPECT_EQ(trials.size(), 2u * (8 + 8 + 9));
  for (const Trial& trial : trials) {
    if (trial.parameters.at("rule") != "split-master") continue;
    EXPECT_EQ(trial.parameters.at("format"), "bf16");
  }
}

TEST(UpdateFidelity, CustomFormatsAreMeasured) {
  Overrides overrides = kSmall;
  overrides["formats"] = "e3m4:bias=4,inf=none,nan=none,e2m1fn";
  overrides["rules"] = "naive,norm-matched@row,kahan:bf16";
  EXPECT_EQ(UpdateFidelity().trials(SettingsWith(overrides)).size(), 12u);
  const TemporaryDirectory directory;
  RunInto(directory.Path() / "out", SettingsWith(overrides));
  EXPECT_EQ(ReadCsv(directory.Path() / "out" / "fidelity.csv").rows.size(), 36u);
}

// Times have a table of their own, a row a step; no other table differs between two runs.
TEST(UpdateFidelity, TimesAreInTheTimedTableAlone) {
  Overrides overrides = kSmall;
  overrides["formats"] = "bf16";
  overrides["rules"] = "naive,kahan";
  const TemporaryDirectory directory;
  for (const char* const out : {"a", "b"}) RunInto(directory.Path() / out, SettingsWith(overrides));
  size_t timed = 0;
  for (const TableSpec& table : UpdateFidelity().tables) {
    const std::string file = table.name + ".csv";
    timed += table.timed;
    if (table.timed) continue;
    EXPECT_EQ(Bytes(directory.Path() / "a" / file), Bytes(directory.Path() / "b" / file)) << file;
  }
  EXPECT_EQ(timed, 1u);
  EXPECT_EQ(Bytes(directory.Path() / "a" / "summary.txt"),
            Bytes(directory.Path() / "b" / "summary.txt"));
  const Table times = ReadCsv(directory.Path() / "a" / "times.csv");
  EXPECT_EQ(times.rows.size(), 12u);
  for (size_t i = 0; i < times.rows.size(); ++i) {
    EXPECT_GT(times.Number(i, "ns_per_element"), 0);
    EXPECT_LT(times.Number(i, "ns_per_element"), 1e6);
  }
}

// A step that every master can hold moves weight and state together by lr u, whatever the stored
// weight does.
TEST(EffectiveWeights, MoveByTheWholeStep) {
  const FormatSpec bf16 = FindFormat("bf16")->spec;
  const std::vector<float> initial = {1, -3, 0.5f, 128}, update = {1, 1, -1, 256};
  for (const char* const text :
       {"master-fp32", "master-fp16-scaled@row", "split-master", "kahan"}) {
    const UpdateRule rule = ParseUpdateRule(text);
    std::vector<float> weights(4), after(4);
    const MatrixShape shape{2, 2};
    UpdateState state =
        StartUpdates(rule, bf16, HostMatrix(initial, shape), HostMatrix(weights, shape));
    const std::vector<double> before = KnownWeights(rule, HostMatrix(weights, shape), state);
    EXPECT_EQ(before, std::vector<double>({1, -3, 0.5, 128})) << text;
    const WeightUpdate step{.format = bf16,
                            .weights = HostMatrix(weights, shape),
                            .update = HostMatrix(update, shape),
                            .learning_rate = 0x1p-9f};
    ApplyUpdate(rule, step, {}, state, HostMatrix(after, shape));
    const double d = 0x1p-9;
    EXPECT_EQ(KnownWeights(rule, HostMatrix(after, shape), state),
              std::vector<double>({1 + d, -3 + d, 0.5 - d, 128.5}))
        << text;
    EXPECT_EQ(after[0], 1) << text << ": half a gap, to even";
  }
}

TEST(UpdateFidelity, RulesWithoutStateHaveNoEffectiveStep) {
  const Settings settings = SettingsWith(kSmall);
  const Table naive = RowsOf(settings, "bf16", "independent", "naive");
  const Table master = RowsOf(settings, "bf16", "independent", "master-fp32");
  for (size_t i = 0; i < naive.rows.size(); ++i) {
    EXPECT_TRUE(std::isnan(naive.Number(i, "effective_relative_error")));
    EXPECT_LT(master.Number(i, "effective_relative_error"), 1e-4);
    EXPECT_GT(master.Number(i, "relative_error"), master.Number(i, "effective_relative_error"));
  }
}

TEST(UpdateFidelity, MatchedRulesMeetTheirOwnTargets) {
  const Settings settings = SettingsWith({{"size", "256"}, {"lr-low", "1e-2"}, {"lr-high", "0.1"}});
  const Table norm = RowsOf(settings, "e4m3fn", "independent", "norm-matched");
  const Table projection = RowsOf(settings, "e4m3fn", "independent", "projection-matched");
  for (size_t i = 0; i < norm.rows.size(); ++i) {
    EXPECT_NEAR(norm.Number(i, "norm_ratio"), 1, 1e-3);
    EXPECT_NEAR(norm.Number(i, "own_target_ratio"), norm.Number(i, "norm_ratio"), 1e-9);
    EXPECT_NEAR(projection.Number(i, "projection_ratio"), 1, 1e-3);
    EXPECT_GT(projection.Number(i, "norm_ratio"), 1.01);
    EXPECT_LT(norm.Number(i, "projection_ratio"), 0.99);
  }
}

Overrides SummaryOverrides() {
  Overrides overrides = kSmall;
  overrides["lr-low"] = "1e-10";
  overrides["lr-high"] = "1";
  return overrides;
}

Tables TablesOf(const fs::path& directory) {
  Tables tables;
  for (const TableSpec& table : UpdateFidelity().tables) {
    tables[table.name] = ReadCsv(directory / (table.name + ".csv"));
  }
  return tables;
}

TEST(UpdateFidelity, FiguresMarkTheMeasuredLimitOverTheWholePanel) {
  const TemporaryDirectory directory;
  Overrides overrides = SummaryOverrides();
  overrides["formats"] = "e4m3fn";
  overrides["rules"] = "naive";
  const Settings settings = SettingsWith(overrides);
  RunInto(directory.Path() / "out", settings);
  const Tables tables = TablesOf(directory.Path() / "out");
  const Panel panel = UpdateFidelity().figures(settings, tables)[0].panels[0];
  const auto is_limit = [](const Series& series) {
    return series.label == "naive: nothing moves left of it";
  };
  const auto line = std::find_if(panel.series.begin(), panel.series.end(), is_limit);
  ASSERT_NE(line, panel.series.end());
  const double unmoved = tables.at("naive_limits").Number(0, "unmoved_lr");
  EXPECT_EQ(line->x, std::vector<double>({unmoved, unmoved}));
  EXPECT_EQ(line->y, std::vector<double>({panel.y.low, panel.y.high}));
}

// A small run reaches the exact verdicts; without a rule its claims are not tested.
TEST(UpdateFidelity, AClaimIsTestedIfItsRulesAreRun) {
  const Experiment experiment = UpdateFidelity();
  const auto verdicts = [&](const std::string& rules) {
    const TemporaryDirectory directory;
    Overrides overrides = SummaryOverrides();
    overrides["rules"] = rules;
    overrides["formats"] = "e4m3fn";
    const Settings settings = SettingsWith(overrides);
    RunInto(directory.Path() / "out", settings);
    std::map<std::string, std::string> names;
    for (const JudgedClaim& claim :
         Judge(experiment.claims, settings, TablesOf(directory.Path() / "out"))) {
      names[claim.spec->id.substr(claim.spec->id.find('/') + 1)] = ToString(claim.result.verdict);
    }
    return names;
  };
  auto naive = verdicts("naive,note-as-printed");
  EXPECT_EQ(naive.at("root-learning-rate"), "exact: holds");
  EXPECT_EQ(naive.at("target-norm"), "exact: refuted");
  EXPECT_EQ(naive.at("naive-threshold"), "exact: holds");
  EXPECT_EQ(naive.at("same-key-cliff"), "exact: holds");
  EXPECT_EQ(naive.at("norm-or-projection"), "exact: holds");
  EXPECT_EQ(naive.at("naive-zeroes-out"), "not tested") << "one seed shows no control to fail";
  auto kahan = verdicts("kahan");
  for (const char* const claim : {"root-learning-rate", "naive-threshold", "norm-or-projection"}) {
    EXPECT_EQ(kahan.at(claim), "not tested") << claim;
  }
}

}  // namespace
}  // namespace numsim::experiments::update_fidelity
