// The experiment `update-fidelity`: its measures against closed forms and enumeration, its options,
// and a golden CSV.
#include "experiments/update_fidelity.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner.h"
#include "experiments/settings.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"
#include "tests/experiments/error_message.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/run_fixture.h"
#include "tests/experiments/temporary_directory.h"

namespace numsim::experiments::update_fidelity {
namespace {

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(UpdateFidelity(), "quick", 0, seeds, overrides);
}

// The rows of one point, as a table.
Table RowsOf(const Settings& settings,
             const std::string& format,
             const std::string& keys,
             const std::string& method) {
  const Point point{.label = "point",
                    .seed = 0,
                    .parameters = {{"format", format}, {"keys", keys}, {"method", method}}};
  return experiments::RowsOf(UpdateFidelity(), settings, point);
}

void RunInto(const fs::path& out, const Settings& settings) {
  RunWithoutFigures(UpdateFidelity(), settings, out);
}

const Overrides kSmall = {
    {"size", "32"}, {"per-decade", "1"}, {"lr-low", "1e-3"}, {"lr-high", "0.1"}};

TEST(UpdateFidelity, EqualsTheGoldenCsvOnAnyNumberOfThreads) {
  ExpectGoldenCsv(UpdateFidelity(), SettingsWith(kSmall), "fidelity");
}

TEST(UpdateFidelity, OnePointDoesNotDependOnThreads) {
  const int before = ThreadCount();
  const Settings settings =
      SettingsWith({{"size", "200"}, {"lr-low", "1e-3"}, {"lr-high", "1e-2"}, {"per-decade", "1"}});
  for (const char* const method : {"naive", "stochastic", "binary-search"}) {
    SetThreadCount(1);
    const Table one = RowsOf(settings, "e4m3fn", "independent", method);
    SetThreadCount(3);
    const Table three = RowsOf(settings, "e4m3fn", "independent", method);
    EXPECT_EQ(one.rows, three.rows) << method;
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
    const Table table = RowsOf(settings, "bf16", keys, "binary-search");
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
  const double lr = 0.01;
  const Settings settings = SettingsWith({{"size", "16"},
                                          {"lr-low", "0.01"},
                                          {"lr-high", "0.01"},
                                          {"sr-bits", std::to_string(kBits)}});
  const Table table = RowsOf(settings, "e4m3fn", "independent", "stochastic");
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
      const uint32_t code = Encode(format, param + lr * u, rounding, Overflow::kNonsaturate, word);
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

TEST(UpdateFidelity, LearningRatesAreRoundDecimals) {
  const Settings settings =
      SettingsWith({{"lr-low", "1e-10"}, {"lr-high", "1"}, {"per-decade", "2"}});
  const std::vector<double> rates = LearningRates(settings);
  ASSERT_EQ(rates.size(), 21u);
  EXPECT_EQ(rates[0], 1e-10);
  EXPECT_EQ(rates[1], 3.162e-10);
  EXPECT_EQ(rates[2], 1e-9);
  EXPECT_EQ(rates[20], 1);
}

TEST(UpdateFidelity, BadOptionsAreNamed) {
  const Experiment experiment = UpdateFidelity();
  const auto message = [&](const Overrides& overrides) {
    return MessageOf([&] { experiment.points(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  EXPECT_NE(message({{"formats", "e9m9"}}).find("e9m9"), std::string::npos);
  EXPECT_NE(message({{"formats", "e8m0fnu"}}).find("--formats"), std::string::npos);
  EXPECT_NE(message({{"formats", "bf16,bf16"}}).find("--formats"), std::string::npos);
  EXPECT_NE(message({{"methods", "magic"}}).find("magic"), std::string::npos);
  EXPECT_NE(message({{"methods", "naive,naive"}}).find("--methods"), std::string::npos);
  EXPECT_NE(message({{"keys", "both"}}).find("both"), std::string::npos);
  for (const char* const option :
       {"size", "rtol", "iterations", "sr-bits", "per-decade", "lr-low"}) {
    EXPECT_NE(message({{option, "-1"}}).find("--" + std::string(option)), std::string::npos);
  }
  EXPECT_NE(message({{"lr-low", "1e-3"}, {"lr-high", "1e-4"}}).find("--lr-high"),
            std::string::npos);
}

TEST(UpdateFidelity, CustomFormatsAreMeasured) {
  Overrides overrides = kSmall;
  overrides["formats"] = "e3m4:bias=4,inf=none,nan=none,e2m1fn";
  EXPECT_EQ(UpdateFidelity().points(SettingsWith(overrides)).size(), 12u);
  const TemporaryDirectory directory;
  RunInto(directory.Path() / "out", SettingsWith(overrides));
  EXPECT_EQ(ReadCsv(directory.Path() / "out" / "fidelity.csv").rows.size(), 36u);
}

TEST(UpdateFidelity, SummaryAndFiguresComeFromTheTable) {
  const TemporaryDirectory directory;
  Overrides overrides = kSmall;
  overrides["lr-low"] = "1e-10";
  overrides["lr-high"] = "1";
  const Settings settings = SettingsWith(overrides, 2);
  RunInto(directory.Path() / "out", settings);
  const Tables tables = {{"fidelity", ReadCsv(directory.Path() / "out" / "fidelity.csv")}};
  const Summary summary = Summarise(settings, tables);
  ASSERT_EQ(summary.claims.size(), 5u);
  EXPECT_EQ(summary.claims[0].verdict, "does not hold");  // works below 1e-9
  EXPECT_EQ(summary.claims[1].verdict, "does not hold");  // norm of the step
  EXPECT_EQ(summary.claims[4].verdict, "holds");          // the worked example
  const std::vector<Figure> figures = Figures(settings, tables);
  ASSERT_EQ(figures.size(), 3u);
  for (const Figure& figure : figures) {
    ASSERT_EQ(figure.panels.size(), 6u);
    EXPECT_EQ(figure.panels[0].series.size(), 4u);
    EXPECT_EQ(figure.panels[0].series[0].low.size(), 11u);
    EXPECT_EQ(figure.panels[0].y.low, figure.panels[1].y.low);
  }
}

TEST(UpdateFidelity, SummaryOfOneMethodSaysWhatIsNotMeasured) {
  const TemporaryDirectory directory;
  Overrides overrides = kSmall;
  overrides["methods"] = "naive";
  const Settings settings = SettingsWith(overrides);
  RunInto(directory.Path() / "out", settings);
  const Tables tables = {{"fidelity", ReadCsv(directory.Path() / "out" / "fidelity.csv")}};
  const Summary summary = Summarise(settings, tables);
  EXPECT_EQ(summary.claims[0].verdict, "not measured");
  EXPECT_EQ(summary.claims[1].verdict, "not measured");
  EXPECT_EQ(summary.claims[3].verdict, "not measured");
}

}  // namespace
}  // namespace numsim::experiments::update_fidelity
