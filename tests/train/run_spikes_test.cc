// The spikes of a training: in made-up rows of train.csv, and in those of a run.
#include "numsim/train/internal/run_spikes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "numsim/train/internal/run_summary.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using ::testing::Contains;

using AtSteps = std::map<size_t, double>;
using StepList = std::vector<uint64_t>;

// Rows of train.csv: RMS_t is 1 and the deviation 0 except at those steps; the loss is the step.
Table MadeUpRows(size_t steps, const AtSteps& deviations, const AtSteps& rms) {
  Table table{{"step", "loss", "rms", "rms_tensor", "loss_deviation"}, {}};
  const auto value = [](const AtSteps& at, size_t step, double otherwise) {
    const auto found = at.find(step);
    return found == at.end() ? otherwise : found->second;
  };
  for (size_t step = 0; step < steps; ++step) {
    table.rows.push_back({static_cast<uint64_t>(step),
                          static_cast<double>(step),
                          value(rms, step, 1),
                          "tensor" + std::to_string(step),
                          value(deviations, step, 0)});
  }
  return table;
}

TrainConfig WithWarmup(uint64_t warmup) {
  TrainConfig config = TinyConfig();
  config.schedule.warmup = warmup;
  return config;
}

StepList LossSpikesOf(const AtSteps& deviations, uint64_t warmup = 20) {
  return SpikesOf(WithWarmup(warmup), MadeUpRows(200, deviations, {})).loss;
}

StepList RmsSpikesOf(const AtSteps& rms, uint64_t warmup = 20) {
  return SpikesOf(WithWarmup(warmup), MadeUpRows(200, {}, rms)).rms;
}

TEST(SpikesOfRows, LossSpikeIsTwoDeviationsLessThanTenStepsApart) {
  EXPECT_EQ(LossSpikesOf({}), StepList());
  EXPECT_EQ(LossSpikesOf({{50, 9}}), StepList());
  EXPECT_EQ(LossSpikesOf({{50, 3.3}, {51, 3.3}}), StepList{50});
  EXPECT_EQ(LossSpikesOf({{50, 3.3}, {59, 3.3}}), StepList{50});
  EXPECT_EQ(LossSpikesOf({{50, 3.3}, {60, 3.3}}), StepList());
  EXPECT_EQ(LossSpikesOf({{50, 3.2}, {51, 3.2}}), StepList());  // above 3.2, not from it on
  EXPECT_EQ(LossSpikesOf({{50, HUGE_VAL}, {51, 4}, {100, std::nan("")}, {101, 4}}), StepList{50});
  EXPECT_EQ(LossSpikesOf({{50, -9}, {51, -9}}), StepList());
  // Those that follow the first of them closely are part of it.
  EXPECT_EQ(LossSpikesOf({{50, 4}, {55, 4}, {59, 4}, {60, 4}, {150, 4}, {151, 4}}),
            (StepList{50, 150}));
}

TEST(SpikesOfRows, RmsSpikeIsFrom23On) {
  EXPECT_EQ(RmsSpikesOf({}), StepList());
  EXPECT_EQ(RmsSpikesOf({{50, 2.3}}), StepList{50});
  EXPECT_EQ(RmsSpikesOf({{50, 2.2999}}), StepList());
  EXPECT_EQ(RmsSpikesOf({{50, 3}, {55, 5}, {59, 3}, {60, 3}}), (StepList{50, 60}));
  EXPECT_EQ(RmsSpikesOf({{50, std::nan("")}, {199, HUGE_VAL}}), StepList{199});
}

TEST(SpikesOfRows, WarmUpIsIgnored) {
  const AtSteps high = {{18, 4}, {19, 4}, {20, 4}, {21, 4}};
  EXPECT_EQ(LossSpikesOf(high), StepList{20});
  EXPECT_EQ(RmsSpikesOf(high), StepList{20});
  EXPECT_EQ(LossSpikesOf(high, 21), StepList());
  EXPECT_EQ(RmsSpikesOf(high, 22), StepList());
  EXPECT_EQ(LossSpikesOf(high, 0), StepList{18});
  EXPECT_EQ(RmsSpikesOf(high, 0), StepList{18});
  EXPECT_EQ(RmsSpikesOf(high, 1000), StepList());  // a training that ended before
}

TEST(SpikesOfRows, WithoutARowForEveryStepThereIsNone) {
  const Table rows = MadeUpRows(200, {{50, 4}, {51, 4}}, {{40, 4}});
  TrainConfig config = WithWarmup(20);
  EXPECT_EQ(SpikesOf(config, rows).loss, StepList{50});
  EXPECT_EQ(SpikesOf(config, rows).rms, StepList{40});
  config.telemetry.every = 2;
  EXPECT_TRUE(SpikesOf(config, rows).loss.empty());
  EXPECT_TRUE(SpikesOf(config, rows).rms.empty());
  EXPECT_TRUE(SpikesOf(WithWarmup(20), MadeUpRows(0, {}, {})).loss.empty());
}

TEST(SpikesOfRows, MarksAreSinglePointsAtTheLosses) {
  const Series marks = SpikeMarks("a spike", 4, {7, 30}, MadeUpRows(40, {}, {}));
  EXPECT_EQ(marks.label, "a spike");
  EXPECT_EQ(marks.style, 4);
  EXPECT_TRUE(marks.markers);
  ASSERT_EQ(marks.x.size(), 4u);
  ASSERT_EQ(marks.y.size(), 4u);
  for (const size_t point : {0, 2}) {
    EXPECT_EQ(marks.x[point], point == 0 ? 7 : 30);
    EXPECT_EQ(marks.y[point], point == 0 ? 7 : 30);
    EXPECT_TRUE(std::isnan(marks.y[point + 1]));  // no line to the next
  }
  EXPECT_TRUE(SpikeMarks("none", 4, {}, MadeUpRows(40, {}, {})).x.empty());
}

class RunSpikes : public IoTest {
 protected:
  // The lines about rows that are written to a train.csv.
  std::string TextOf(const TrainConfig& config, const Table& rows) {
    WriteCsv(Path("train.csv"), rows);
    return SpikesText(config, ReadCsv(Path("train.csv")));
  }

  TrainRunResult Run(const TrainConfig& config, std::string_view folder, bool figures = false) {
    TrainRunOptions options;
    options.out = Path(folder);
    options.figures = figures;
    return RunTraining(config, options);
  }
};

TEST_F(RunSpikes, TextNamesTheStepsAndTheLargestRms) {
  const TrainConfig config = WithWarmup(20);
  EXPECT_EQ(TextOf(config, MadeUpRows(200, {}, {{3, 9}, {44, 1.2345}, {45, 1.2345}})),
            "loss spikes                 0\n"
            "RMS spikes                  0; largest RMS_t 1.23 in tensor44 at step 44\n");
  EXPECT_EQ(
      TextOf(config, MadeUpRows(200, {{50, 4}, {52, 4}}, {{49, 2.5}})),
      "loss spikes                 1, at step 50\n"
      "RMS spikes                  1, at step 49; largest RMS_t 2.5 in tensor49 at step 49\n");
  EXPECT_EQ(
      TextOf(config, MadeUpRows(200, {{50, 4}, {52, 4}, {80, 4}, {81, 4}}, {{49, 2.5}, {79, 4}})),
      "loss spikes                 2, at steps 50, 80\n"
      "RMS spikes                  2, at steps 49, 79; largest RMS_t 4 in tensor79 at step 79\n");
  // The first and the last row that count.
  EXPECT_EQ(TextOf(config, MadeUpRows(30, {}, {{19, 5}, {20, 4}, {29, 3}})),
            "loss spikes                 0\n"
            "RMS spikes                  1, at step 20; largest RMS_t 4 in tensor20 at step 20\n");
  EXPECT_EQ(TextOf(config, MadeUpRows(30, {}, {{20, std::nan("")}, {29, 1.5}})),
            "loss spikes                 0\n"
            "RMS spikes                  0; largest RMS_t 1.5 in tensor29 at step 29\n");
  // Also one below 1, which no step has to exceed.
  Table low = MadeUpRows(30, {}, {{29, 0.5}});
  for (size_t row = 0; row < 29; ++row) low.rows[row][low.Column("rms")] = 0.25;
  EXPECT_EQ(TextOf(config, low),
            "loss spikes                 0\n"
            "RMS spikes                  0; largest RMS_t 0.5 in tensor29 at step 29\n");
}

TEST_F(RunSpikes, TextNamesTenStepsAtMost) {
  AtSteps ten, eleven;
  for (size_t i = 0; i < 11; ++i) {
    if (i < 10) ten[30 + 12 * i] = 3;
    eleven[30 + 12 * i] = 3;
  }
  const TrainConfig config = WithWarmup(20);
  const std::string all = ", at steps 30, 42, 54, 66, 78, 90, 102, 114, 126, 138";
  const std::string largest = "; largest RMS_t 3 in tensor30 at step 30\n";
  EXPECT_EQ(TextOf(config, MadeUpRows(200, {}, ten)),
            "loss spikes                 0\nRMS spikes                  10" + all + largest);
  EXPECT_EQ(
      TextOf(config, MadeUpRows(200, {}, eleven)),
      "loss spikes                 0\nRMS spikes                  11" + all + ", ..." + largest);
}

TEST_F(RunSpikes, TextHasNoRmsWhereThereIsNone) {
  AtSteps zeros, unknown;
  for (size_t step = 0; step < 60; ++step) {
    zeros[step] = 0;
    unknown[step] = std::nan("");
  }
  const AtSteps deviations = {{50, 4}, {51, 4}};
  const TrainConfig config = WithWarmup(20);
  for (const AtSteps& rms : {zeros, unknown}) {  // optimisers without RMS_t; no step was taken
    EXPECT_EQ(TextOf(config, MadeUpRows(60, deviations, rms)),
              "loss spikes                 1, at step 50\n");
  }
  // A training that ended in its warm-up.
  EXPECT_EQ(TextOf(config, MadeUpRows(15, {}, {})), "loss spikes                 0\n");
  EXPECT_EQ(TextOf(config, MadeUpRows(0, {}, {})), "loss spikes                 0\n");
}

TEST_F(RunSpikes, TextIsEmptyWithoutARowForEveryStep) {
  TrainConfig config = WithWarmup(20);
  config.telemetry.every = 2;
  EXPECT_EQ(TextOf(config, MadeUpRows(200, {{50, 4}, {51, 4}}, {{40, 4}})), "");
}

// A student whose inputs and gradients grow at step 30.
TrainConfig JumpingStudent() {
  TrainConfig config = TinyConfig();
  config.model.kind = ModelKind::kMlp;
  config.data.kind = DataKind::kGaussian;
  config.data.size = 4096;
  config.data.features = 16;
  config.train.steps = 60;
  config.train.valid_every = 0;
  config.train.diverged_above = 0;
  config.stress.jump_step = 30;
  config.stress.jump_loss = 1000;
  config.stress.jump_contrast = 30;
  return config;
}

std::string LineOf(const std::string& text, const std::string& name) {
  const size_t begin = text.find(name + " ");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST_F(RunSpikes, SummaryOfARunHasTheLines) {
  const TrainConfig config = JumpingStudent();
  const TrainRunResult result = Run(config, "a");
  EXPECT_EQ(result.status, TrainStatus::kFinished);
  const std::string summary = Bytes(Path("a/summary.txt"));
  EXPECT_EQ(summary, result.summary);
  // The largest RMS_t, and the steps that deviate, from the rows.
  const Table train = ReadCsv(Path("a/train.csv"));
  ASSERT_EQ(train.rows.size(), 60u);
  size_t largest = 3;
  std::vector<size_t> deviating;
  for (size_t row = 3; row < 60; ++row) {  // after the warm-up
    if (train.Number(row, "rms") > train.Number(largest, "rms")) largest = row;
    if (train.Number(row, "loss_deviation") > 3.2) deviating.push_back(row);
  }
  EXPECT_EQ(LineOf(summary, "RMS spikes"),
            fmt::format("RMS spikes                  1, at step 30; largest RMS_t {:.3g} in {} at "
                        "step {}",
                        train.Number(largest, "rms"),
                        train.Text(largest, "rms_tensor"),
                        largest));
  // A jump of g by far: RMS_t is the root of (1 - 0.95^31) / 0.05.
  EXPECT_EQ(largest, 30u);
  EXPECT_NEAR(train.Number(30, "rms"), std::sqrt((1 - std::pow(0.95, 31)) / 0.05), 0.05);
  ASSERT_GE(deviating.size(), 2u);
  EXPECT_EQ(deviating[0], 30u);
  EXPECT_LT(deviating[1], 40u);
  EXPECT_EQ(LineOf(summary, "loss spikes"), "loss spikes                 1, at step 30");
}

TEST_F(RunSpikes, SummaryHasNoSuchLinesWithoutARowForEveryStepOrWithoutRms) {
  TrainConfig config = JumpingStudent();
  config.telemetry.every = 2;
  const std::string seldom = Run(config, "a").summary;
  EXPECT_EQ(LineOf(seldom, "loss spikes"), "");
  EXPECT_EQ(LineOf(seldom, "RMS spikes"), "");
  config.telemetry.every = 1;
  config.optimizer.kind = OptimizerKind::kSgd;
  const std::string sgd = Run(config, "b").summary;
  EXPECT_NE(LineOf(sgd, "loss spikes"), "");
  EXPECT_EQ(LineOf(sgd, "RMS spikes"), "");
}

TEST_F(RunSpikes, FigureOfTheLossMarksThem) {
  const std::string rms = "# RMS spike of any parameter\n", loss = "# loss spike\n";
  TrainConfig config = JumpingStudent();
  EXPECT_THAT(Run(config, "a", true).files, Contains("loss.gp"));
  const std::string script = Bytes(Path("a/loss.gp"));
  for (const std::string& label : {rms, loss}) {
    ASSERT_THAT(script, HasSubstr(label));
    // The label, "$NAME << EOD", the points, "EOD".
    std::istringstream points(script.substr(script.find(label) + label.size()));
    std::string line;
    std::getline(points, line);
    std::getline(points, line);
    const size_t blank = line.find(' ');
    EXPECT_EQ(line.substr(0, blank), "30") << label;
    EXPECT_EQ(std::stod(line.substr(blank)), ReadCsv(Path("a/train.csv")).Number(30, "loss"));
  }
  config.stress = {};
  Run(config, "b", true);
  const std::string calm = Bytes(Path("b/loss.gp"));
  EXPECT_THAT(calm, Not(HasSubstr(rms)));
  EXPECT_THAT(calm, Not(HasSubstr(loss)));
}

}  // namespace
}  // namespace numsim
