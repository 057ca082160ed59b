// The choice of learning rates, and trainings at the rates that were chosen on other seeds.
#include "experiments/runner/arm_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "experiments/runner/journal.h"
#include "experiments/runner/seeds.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/runner/tuning.h"
#include "numsim/io/csv.h"
#include "tests/experiments/run_fixture.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Losses of an arm by rate, for two seeds.
void AddArm(const std::string& arm,
            const std::vector<std::pair<std::string, std::pair<double, double>>>& of_rates,
            std::vector<RateLoss>& losses) {
  for (const auto& [rate, of_seeds] : of_rates) {
    losses.push_back({arm, rate, kFirstTuningSeed, of_seeds.first});
    losses.push_back({arm, rate, kFirstTuningSeed + 1, of_seeds.second});
  }
}

std::vector<RateLoss> Losses() {
  std::vector<RateLoss> losses;
  // The least loss of a seed is at 1e-2, the least mean at 3e-3; the grid is in no order.
  AddArm("a / b", {{"1e-2", {1, 4}}, {"1e-3", {3, 3}}, {"3e-3", {2, 2}}}, losses);
  AddArm("tie", {{"1e-3", {5, 5}}, {"3e-3", {2, 2}}, {"5e-3", {1, 3}}, {"1e-2", {5, 5}}}, losses);
  AddArm("low", {{"1e-3", {1, 1}}, {"3e-3", {2, 2}}, {"1e-2", {3, 3}}}, losses);
  AddArm("high", {{"1e-3", {3, 3}}, {"3e-3", {2, 2}}, {"1e-2", {1, 1}}}, losses);
  AddArm("diverges", {{"1e-3", {3, 3}}, {"3e-3", {2, 2}}, {"1e-2", {0, kInfinite}}}, losses);
  AddArm("always",
         {{"1e-3", {3, kInfinite}}, {"3e-3", {kInfinite, 2}}, {"1e-2", {0, kInfinite}}},
         losses);
  return losses;
}

TEST(ArmRates, AreThoseOfTheLeastMeanLossAndOfEqualOnesTheSmaller) {
  const std::vector<ArmRate> rates = ChooseRates(Losses());
  EXPECT_EQ(
      RatesText(rates),
      "a / b: 3e-3; tie: 3e-3; low: 1e-3 at the end of the grid; "
      "high: 1e-2 at the end of the grid; diverges: 3e-3; always: 1e-3 at the end of the grid");
}

TEST(ArmRates, AreReadBackFromTheOptionAndFromTheFile) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.Path() / kRatesFile;
  WriteRates(file, Losses());
  const std::string text = RatesText(ReadRates(file));
  EXPECT_EQ(text, RatesText(ChooseRates(Losses())));
  Settings settings;
  settings.options[std::string(kRatesOption)] = text;
  EXPECT_EQ(RatesText(RatesOf(settings)), text);
  EXPECT_TRUE(RatesOf(Settings()).empty());
  const Table table = ReadCsv(file);
  EXPECT_EQ(table.Text(0, "chosen"), "no");
  EXPECT_EQ(table.Text(4, "chosen"), "yes");

  std::string changed = Bytes(file);
  changed.replace(changed.find("yes"), 3, "no");
  std::ofstream(file, std::ios::binary) << changed;
  EXPECT_THAT(ErrorOf([&] { ReadRates(file); }),
              HasSubstr("chosen is 'no', and its losses say 'yes'"));
  for (const char* const bad : {"a", "a: x", "a: 0", ": 1e-3"}) {
    settings.options[std::string(kRatesOption)] = bad;
    EXPECT_THAT(ErrorOf([&] { RatesOf(settings); }), HasSubstr("--rates: ")) << bad;
  }
}

constexpr const char* kName = "moment-formats";

std::map<std::string, std::string> TinyOptions() {
  std::map<std::string, std::string> options = TinyRun(kName);
  options["pairs"] = "none";
  options["m"] = "e5m2";
  options["v"] = "e5m2";
  return options;
}

TEST(Tuning, TrainsEveryArmAtEveryRateOnItsOwnSeeds) {
  const TemporaryDirectory directory;
  RunOptions options;
  const Experiment& experiment = *FindExperiment(kName);
  options.settings = MakeSettings(experiment, "quick", 0, 2, TinyOptions());
  options.out = directory.Path() / "tuning";
  const std::vector<std::string> grid = {"1e-3", "3e-2", "1e-2"};
  const TuningReport report = Tune(experiment, options, grid);
  const Table table = ReadCsv(options.out / kRatesFile);
  EXPECT_EQ(table.rows.size(), 2u * 3 * 2);
  for (size_t i = 0; i < table.rows.size(); ++i)
    EXPECT_GE(table.Number(i, "seed"), kFirstTuningSeed);
  ASSERT_EQ(report.rates.size(), 2u);
  EXPECT_EQ(report.rates.front().arm, "fp32 / fp32 / 1e-8 / fresh");
  EXPECT_THAT(ErrorOf([&] { Tune(experiment, options, grid); }), HasSubstr("use --resume"));
  options.resume = true;
  EXPECT_EQ(Tune(experiment, options, grid).run.trials_run, 0u);
  EXPECT_THAT(ErrorOf([&] {
                Tune(experiment, options, {"1e-3", "1e-2"});
              }),
              HasSubstr("expected at least 3"));
  EXPECT_THAT(ErrorOf([&] { Tune(*FindExperiment("linear-error"), options, grid); }),
              HasSubstr("does not choose learning rates"));
}

// The rate of an arm replaces that of the options; an arm at an end of the grid is not judged.
TEST(Tuning, ArmsAreTrainedAndJudgedAtTheirOwnRates) {
  const Experiment& experiment = *FindExperiment(kName);
  auto options = TinyOptions();
  const auto rates = [&](const std::string& of_pair) {
    options["rates"] = "fp32 / fp32 / 1e-8 / fresh: 3e-3; e5m2 / e5m2 / 1e-8 / fresh: " + of_pair;
    return MakeSettings(experiment, "quick", 0, 2, options);
  };
  const Settings settings = rates("2e-2");
  std::map<std::string, double> peaks;
  for (const Trial& trial : experiment.trials(settings)) {
    peaks[trial.parameters.at("m")] =
        experiment.rows.trainings(settings, trial).front().config.schedule.peak;
  }
  EXPECT_EQ(peaks, (std::map<std::string, double>{{"fp32", 3e-3}, {"e5m2", 2e-2}}));
  const TemporaryDirectory directory;
  const auto reason_of = [&](const Settings& of_run, const char* folder) {
    Experiment plain = experiment;
    plain.figures = nullptr;
    RunOptions run;
    run.settings = of_run;
    run.out = directory.Path() / folder;
    for (const JudgedClaim& claim : experiments::Run(plain, run).judged) {
      if (claim.spec->id == "moment-formats/both-e5m2-fails") return claim.evidence.not_tested;
    }
    return std::string("no such claim");
  };
  EXPECT_EQ(reason_of(settings, "inside"), "");
  EXPECT_EQ(reason_of(rates("2e-2 at the end of the grid"), "end"),
            "the rate of e5m2 / e5m2 / 1e-8 / fresh, 2e-2, is at the end of the grid");

  options["rates"] = "fp32 / fp32 / 1e-8 / fresh: 3e-3";
  EXPECT_THAT(ErrorOf([&] { experiment.trials(MakeSettings(experiment, "quick", 0, 1, options)); }),
              HasSubstr("has no rate of the arm 'e5m2 / e5m2 / 1e-8 / fresh'"));
  options["lr"] = "1e-3,1e-2";
  EXPECT_THAT(ErrorOf([&] { experiment.trials(MakeSettings(experiment, "quick", 0, 1, options)); }),
              HasSubstr("--lr lists several"));
}

}  // namespace
}  // namespace numsim::experiments
