// The experiment `update-convergence`: its problems against closed forms, its options, the
// rows of a run.
#include "experiments/update_convergence/update_convergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::update_convergence {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Overrides = std::map<std::string, std::string>;

Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(UpdateConvergence(), "quick", 0, seeds, overrides);
}

const Overrides kSmall = TinyRun("update-convergence");

Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

Trial TrialOf(const std::string& problem,
              const std::string& optimiser,
              const std::string& format,
              const std::string& rate) {
  return {.label = "trial",
          .seed = 3,
          .parameters = {
              {"problem", problem}, {"optimiser", optimiser}, {"format", format}, {"lr", rate}}};
}

Table RowsOf(const Overrides& overrides, const Trial& trial) {
  return experiments::RowsOf(UpdateConvergence(), SettingsWith(overrides), trial);
}

TEST(UpdateConvergence, HasARowForEachRuleAndRecordOnAnyNumberOfThreads) {
  const Settings settings = SettingsWith(kSmall);
  const RunOnThreads run(UpdateConvergence(), settings, "losses");
  EXPECT_THAT(run.Csv(),
              StartsWith("problem,optimiser,format,rule,lr,seed,step,loss,travel,moved_share,"
                         "norm_ratio,projection_ratio,step_status,status\n"));
  std::vector<std::string> expected, rows;
  for (const std::string problem : {"quadratic ", "logistic "}) {
    for (const std::string optimiser : {"momentum ", "adam "}) {
      std::vector<std::string> runs = {"fp32 naive"};
      for (const std::string format : {"e4m3fn", "bf16"}) {
        for (const UpdateRule& rule : RulesFor(settings, ParseFormat(format))) {
          runs.push_back(format + " " + ToString(rule));
        }
      }
      for (const std::string& trained : runs) {
        for (const char* const step : {"0", "2", "4", "6", "8"}) {
          expected.push_back(problem + optimiser + trained + " 0.001 0 " + step);
        }
      }
    }
  }
  const Table table = run.Read();
  for (size_t r = 0; r < table.rows.size(); ++r) {
    rows.push_back(
        CellsOf(table, r, {"problem", "optimiser", "format", "rule", "lr", "seed", "step"}));
  }
  EXPECT_EQ(rows, expected);
}

QuadraticOptions SmallQuadratic() {
  QuadraticOptions options;
  options.size = 4096;
  options.steps = 100;
  options.seed = 7;
  return options;
}

std::vector<float> GradientAt(TrainingProblem& problem, std::span<const float> weights) {
  std::vector<float> gradient(weights.size());
  problem.Gradient(weights, gradient);
  return gradient;
}

double MeanSquare(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum / static_cast<double>(x.size());
}

TEST(Quadratic, StartsAtLossOneWithAGradientOfMeanSquareOne) {
  QuadraticOptions options = SmallQuadratic();
  options.noise = 0;
  for (const double rate : {1e-5, 1e-2}) {
    options.learning_rate = rate;
    const auto problem = MakeQuadratic(options);
    problem->Prepare(0);
    EXPECT_NEAR(problem->Loss(problem->Start()), 1, 0.1);
    EXPECT_NEAR(MeanSquare(GradientAt(*problem, problem->Start())), 1, 0.15);
    EXPECT_NEAR(MeanSquare(problem->Start()), 4e-4, 4e-5);
  }
}

// Along the gradient itself: the loss is quadratic, so a central difference is exact.
TEST(Quadratic, GradientIsThatOfTheLossButForAFactor) {
  QuadraticOptions options = SmallQuadratic();
  options.noise = 0;
  options.size = 300;  // one row
  options.learning_rate = 0.01;
  const auto problem = MakeQuadratic(options);
  EXPECT_EQ(problem->Rows(), 1u);
  problem->Prepare(0);
  const std::vector<float> gradient = GradientAt(*problem, problem->Start());
  std::vector<double> factors;
  for (const size_t i : {size_t{0}, size_t{100}, size_t{299}}) {
    std::vector<float> up(problem->Start().begin(), problem->Start().end()), down = up;
    up[i] += 0.25f;
    down[i] -= 0.25f;
    const double slope = (problem->Loss(up) - problem->Loss(down)) /
                         (static_cast<double>(up[i]) - static_cast<double>(down[i]));
    factors.push_back(slope / static_cast<double>(gradient[i]));
  }
  EXPECT_NEAR(factors[1] / factors[0], 1, 1e-4);
  EXPECT_NEAR(factors[2] / factors[0], 1, 1e-2);
}

TEST(Quadratic, CurvaturesSpanTheCondition) {
  QuadraticOptions options = SmallQuadratic();
  options.noise = 0;
  options.condition = 1e4;
  const auto problem = MakeQuadratic(options);
  problem->Prepare(0);
  std::vector<float> moved(problem->Start().begin(), problem->Start().end());
  for (float& w : moved) w += 1;
  const std::vector<float> before = GradientAt(*problem, problem->Start());
  const std::vector<float> after = GradientAt(*problem, moved);
  EXPECT_NEAR((after.front() - before.front()) / (after.back() - before.back()), 1e4, 20);
}

TEST(Quadratic, NoiseIsAsLargeAsTheGradientAtTheStartAndNewInEachStep) {
  QuadraticOptions options = SmallQuadratic();
  const auto noisy = MakeQuadratic(options);
  options.noise = 0;
  const auto still = MakeQuadratic(options);
  still->Prepare(0);
  const std::vector<float> gradient = GradientAt(*still, still->Start());
  std::vector<std::vector<float>> noises;
  for (const uint64_t step : {0, 1, 0}) {
    noisy->Prepare(step);
    std::vector<float> noise = GradientAt(*noisy, noisy->Start());
    for (size_t i = 0; i < noise.size(); ++i) noise[i] -= gradient[i];
    EXPECT_NEAR(MeanSquare(noise), 1, 0.15);
    noises.push_back(std::move(noise));
  }
  EXPECT_EQ(noises[0], noises[2]);
  double product = 0;
  for (size_t i = 0; i < noises[0].size(); ++i) {
    product += static_cast<double>(noises[0][i]) * static_cast<double>(noises[1][i]);
  }
  EXPECT_NEAR(product / static_cast<double>(noises[0].size()), 0, 0.1);
}

// One image: every batch is all of them.
TEST(Logistic, GradientIsThatOfTheLossButForAFactor) {
  ImageSet images = GenerateImages({5, 0}, 1, 3, 4, 3);
  images.labels[0] = 2;
  const auto problem = MakeLogistic(images, {.batch = 4, .weight_scale = 0.5, .seed = 1});
  ASSERT_EQ(problem->Rows(), 3u);
  ASSERT_EQ(problem->Cols(), 13u);
  problem->Prepare(0);
  const std::vector<float> gradient = GradientAt(*problem, problem->Start());
  EXPECT_NEAR(MeanSquare(gradient), 1, 1e-5);
  double factor = 0;
  for (const size_t i : {12, 0, 5, 20, 38}) {
    std::vector<float> up(problem->Start().begin(), problem->Start().end()), down = up;
    up[i] += 0x1p-8f;
    down[i] -= 0x1p-8f;
    const double slope = (problem->Loss(up) - problem->Loss(down)) /
                         (static_cast<double>(up[i]) - static_cast<double>(down[i]));
    if (factor == 0) factor = static_cast<double>(gradient[i]) / slope;
    EXPECT_NEAR(static_cast<double>(gradient[i]), factor * slope, 2e-3) << i;
  }
}

TEST(Logistic, LossOfZeroWeightsIsTheLogOfTheClasses) {
  const ImageSet images = GenerateImages({5, 0}, 1000, 4, 4, 10);
  const auto problem = MakeLogistic(images, {});
  EXPECT_NEAR(problem->Loss(std::vector<float>(170)), std::log(10), 1e-6);
  std::vector<float> sure(170, 0.0f);
  sure[16] = 1e4f;  // the bias of class 0, which a tenth of the images is of
  EXPECT_NEAR(problem->Loss(sure), 9000, 1);
}

TEST(Logistic, MeanOverMinibatchesIsTheGradientOfAllImages) {
  const ImageSet images = GenerateImages({5, 0}, 20, 2, 2, 2);
  const auto problem = MakeLogistic(images, {.batch = 16, .weight_scale = 0.02, .seed = 9});
  std::vector<double> mean(10);
  for (uint64_t step = 0; step < 2000; ++step) {
    problem->Prepare(step);
    const std::vector<float> gradient = GradientAt(*problem, problem->Start());
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(gradient[i]) / 2000;
  }
  double square = 0;
  for (const double m : mean) square += m * m / static_cast<double>(mean.size());
  EXPECT_NEAR(square, 1, 0.2);
}

TEST(Logistic, ImagesThatTeachNothingAreAnError) {
  ImageSet images = GenerateImages({5, 0}, 4, 2, 2, 1);
  EXPECT_THAT(ErrorOf([&] { MakeLogistic(images, {}); }), HasSubstr("class"));
}

// The same training by hand, in float64.
TEST(UpdateConvergence, BaselineDescendsTheGradient) {
  const Overrides overrides = With(With(kSmall, "beta1", "0"), "steps", "40");
  const Trial trial = TrialOf("quadratic", "momentum", "fp32", "0.01");
  const Table table = RowsOf(overrides, trial);
  ASSERT_EQ(table.rows.size(), 5u);
  const auto problem = MakeProblem(SettingsWith(overrides), trial);
  std::vector<double> w(problem->Start().begin(), problem->Start().end());
  std::vector<float> rounded(w.size()), gradient(w.size());
  const auto round = [&] {
    for (size_t i = 0; i < w.size(); ++i) rounded[i] = static_cast<float>(w[i]);
  };
  for (uint64_t step = 0; step <= 40; ++step) {
    round();
    if (step % 10 == 0) {
      EXPECT_NEAR(table.Number(step / 10, "loss") / problem->Loss(rounded), 1, 1e-4) << step;
    }
    problem->Prepare(step);
    problem->Gradient(rounded, gradient);
    for (size_t i = 0; i < w.size(); ++i) w[i] -= 0.01 * static_cast<double>(gradient[i]);
  }
  EXPECT_LT(table.Number(4, "loss"), 0.5 * table.Number(0, "loss"));
  EXPECT_EQ(table.Text(4, "travel"), "1");
}

TEST(UpdateConvergence, RowsDoNotDependOnTheOtherRules) {
  const Trial trial = TrialOf("quadratic", "adam", "bf16", "0.0001");
  const Table all = RowsOf(kSmall, trial);
  const Table one = RowsOf(With(kSmall, "rules", "stochastic"), trial);
  ASSERT_EQ(one.rows.size(), 5u);
  for (size_t r = 0; r < 5; ++r) EXPECT_EQ(one.rows[r], all.rows[5 + r]);
}

TEST(UpdateConvergence, RulesThatDoNotServeAFormatAreLeftOut) {
  const Settings settings = SettingsWith({});
  // Every kind and kahan:bf16, which is kahan in bf16; split-master is for bf16 alone.
  EXPECT_EQ(RulesFor(settings, ParseFormat("bf16")).size(), UpdateKinds().size());
  EXPECT_EQ(RulesFor(settings, ParseFormat("fp16")).size(), UpdateKinds().size());
  for (const UpdateRule& rule : RulesFor(settings, ParseFormat("bf16"))) {
    EXPECT_NE(ToString(rule), "kahan:bf16");
  }
  for (const UpdateRule& rule : RulesFor(settings, ParseFormat("fp16"))) {
    EXPECT_NE(rule.kind, UpdateKind::kSplitMaster);
  }
}

TEST(UpdateConvergence, BytesAreOfTheFormatAndTheState) {
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec, bf16 = ParseFormat("bf16").spec;
  EXPECT_EQ(BytesPerWeight(ParseUpdateRule("naive"), e4m3fn), 1);
  EXPECT_EQ(BytesPerWeight(ParseUpdateRule("master-fp32"), e4m3fn), 5);
  EXPECT_EQ(BytesPerWeight(ParseUpdateRule("split-master"), bf16), 4);
  EXPECT_EQ(BytesPerWeight(ParseUpdateRule("kahan"), bf16), 4);
}

TEST(UpdateConvergence, ARunThatDivergesEndsWithInfiniteLoss) {
  // A tiny reach makes curvatures far too large for the learning rate.
  const Overrides overrides = With(With(kSmall, "reach", "1e-4"), "rules", "naive");
  const Table table = RowsOf(overrides, TrialOf("quadratic", "momentum", "bf16", "0.01"));
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(table.Text(0, "status"), "ok");
  EXPECT_EQ(table.Text(4, "status"), "diverged");
  EXPECT_EQ(table.Text(4, "loss"), "inf");
  EXPECT_EQ(table.Text(4, "travel"), "nan");
}

// Curvatures as above, and no loss recorded before float32 overflows.
TEST(UpdateConvergence, ARunThatOverflowsEndsAsNonfinite) {
  Overrides overrides = With(With(kSmall, "reach", "1e-5"), "weight-scale", "1");
  overrides["steps"] = "40";
  overrides["records"] = "2";
  const Table table = RowsOf(overrides, TrialOf("quadratic", "momentum", "fp32", "1"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.Text(0, "status"), "ok");
  EXPECT_EQ(table.Text(1, "status"), "nonfinite");
  EXPECT_EQ(table.Text(2, "status"), "nonfinite");
  EXPECT_EQ(table.Text(2, "loss"), "inf");
}

TEST(UpdateConvergence, RecordsTheStartHalfTimeAndTheEnd) {
  const auto recorded = [](const char* steps, const char* records) {
    return RecordedSteps(SettingsWith({{"steps", steps}, {"records", records}}));
  };
  EXPECT_EQ(recorded("8", "4"), (std::vector<uint64_t>{0, 2, 4, 6, 8}));
  EXPECT_EQ(recorded("9", "3"), (std::vector<uint64_t>{0, 3, 4, 6, 9}));
  EXPECT_EQ(recorded("2", "2"), (std::vector<uint64_t>{0, 1, 2}));
}

TEST(UpdateConvergence, BadOptionsAreNamed) {
  const Experiment experiment = UpdateConvergence();
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { experiment.trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  for (const char* const option : {"steps",
                                   "records",
                                   "size",
                                   "condition",
                                   "noise",
                                   "reach",
                                   "weight-scale",
                                   "beta1",
                                   "beta2",
                                   "epsilon",
                                   "batch",
                                   "images",
                                   "image-size",
                                   "lr"}) {
    EXPECT_THAT(message({{option, "-1"}}), HasSubstr("--" + std::string(option)));
  }
  for (const char* const option : {"problems", "optimisers", "formats", "rules"}) {
    EXPECT_THAT(message({{option, "e9m9"}}), HasSubstr("e9m9")) << option;
    const std::string first = SettingsWith({}).GetList(option).front();
    EXPECT_THAT(message({{option, first + "," + first}}), HasSubstr("twice")) << option;
  }
  EXPECT_THAT(message({{"lr", "0.01,1e-2"}}), HasSubstr("twice"));
  EXPECT_THAT(message({{"formats", "fp32"}}), HasSubstr("fp32"));
  EXPECT_THAT(message({{"formats", "e8m0fnu"}}), HasSubstr("sign"));
  EXPECT_THAT(message({{"formats", "fp16"}, {"rules", "split-master"}}), HasSubstr("--rules"));
  EXPECT_THAT(message({{"records", "300"}}), HasSubstr("--records"));
  EXPECT_THAT(message({{"input", "no-such-folder"}}), HasSubstr("no-such-folder"));
  // An optimum that float32 cannot tell from the start.
  EXPECT_THAT(message({{"reach", "1e-6"}, {"lr", "1e-9"}}), HasSubstr("--reach"));
  // Without a problem that reads it the folder is not looked at.
  EXPECT_EQ(message({{"input", "no-such-folder"}, {"problems", "quadratic"}}), "no error");
}

}  // namespace
}  // namespace numsim::experiments::update_convergence
