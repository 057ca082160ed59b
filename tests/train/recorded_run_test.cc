// A training that is computed elsewhere: here by a Trainer, whose losses and steps a RecordedRun
// gets. Its files must be those of RunTraining.
#include "numsim/train/recorded_run.h"

#include <cmath>
#include <string>

#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

// Without the tables that a RecordedRun has no rows for.
TrainConfig WithoutTensors(TrainConfig config) {
  config.telemetry.tensors_every = 0;
  config.checkpoint.every = 5;
  config.train.valid_every = 4;
  FitToData(config, OpenShared(config.data)->shape());
  return config;
}

StepNumbers LastNumbers(const Trainer& trainer) {
  const ParameterList<float>& parameters = trainer.model().parameters();
  if (std::isfinite(trainer.last_loss())) return NumbersOf(trainer.last_update(), parameters);
  return NumbersWithoutStep(parameters.size(), trainer.optimizer().LossScale());
}

class RecordedRunFiles : public IoTest {
 protected:
  // Trains in a folder of the test, at most to step `stop_at`.
  TrainRunResult Record(const TrainConfig& config,
                        std::string_view folder,
                        bool resume = false,
                        uint64_t stop_at = UINT64_MAX) {
    const auto data = OpenShared(config.data);
    Trainer trainer(config, data);
    RecordOptions options{.out = Path(folder), .resume = resume, .figures = false};
    options.parameters = trainer.model().parameters().Elements();
    options.versions = {{"another program", "1.2"}};
    RecordedRun run(config, data, options);
    if (run.TakeCheckpoint().has_value()) {
      trainer.Restore(ReadCheckpoint(Path(folder) / "checkpoint.safetensors"));
    }
    while (run.status() == TrainStatus::kRunning && run.steps_taken() < stop_at) {
      if (run.ValidationIsDue()) run.AddValidation(trainer.Validate());
      trainer.Step();
      run.AddStep(trainer.last_loss(), LastNumbers(trainer), 0.5);
      if (run.ValidationIsDue()) run.AddValidation(trainer.Validate());
    }
    run.Save(trainer.Save().tensors);
    return run.Finish(trainer.optimizer().StoredBytes());
  }

  void ExpectFilesOfRunTraining(const TrainConfig& config) {
    TrainRunOptions options{.out = Path("whole"), .figures = false};
    const TrainRunResult expected = RunTraining(config, options);
    const TrainRunResult result = Record(config, "recorded");
    EXPECT_EQ(result.status, expected.status);
    EXPECT_EQ(result.reason, expected.reason);
    EXPECT_EQ(result.files, expected.files);
    ExpectEqual("recorded");
  }

  void ExpectEqual(std::string_view folder) {
    EXPECT_EQ(ReproducibleFiles(Path(folder)), ReproducibleFiles(Path("whole")));
    EXPECT_EQ(Bytes(Path(folder) / "checkpoint.safetensors"),
              Bytes(Path("whole") / "checkpoint.safetensors"));
  }
};

TEST_F(RecordedRunFiles, ManifestHasTheVersionsOfOtherPrograms) {
  Record(WithoutTensors(StatefulConfig()), "recorded");
  EXPECT_THAT(Bytes(Path("recorded") / "manifest.json"),
              testing::ContainsRegex("\"another program\": *\"1.2\""));
}

TEST_F(RecordedRunFiles, AreThoseOfRunTraining) {
  ExpectFilesOfRunTraining(WithoutTensors(StatefulConfig()));
}

TEST_F(RecordedRunFiles, AreThoseOfRunTrainingIfTheTrainingDiverges) {
  TrainConfig config = WithoutTensors(TinyConfig());
  config.schedule.peak = 1e30;
  ExpectFilesOfRunTraining(config);
  EXPECT_THAT(Bytes(Path("whole") / "summary.txt"), HasSubstr("diverged: step"));
}

// The rates of the rows before the fork are the baseline's.
TEST_F(RecordedRunFiles, AreThoseOfRunTrainingIfItForks) {
  TrainConfig config = WithoutTensors(StatefulConfig());
  config.fork = {.steps = 5, .before = {"linear.kind=standard", "schedule.peak=0.07"}};
  ExpectFilesOfRunTraining(config);
  EXPECT_THAT(Bytes(Path("whole") / "train.csv"), HasSubstr("0.07"));
}

TEST_F(RecordedRunFiles, AreTheSameAfterInterruptions) {
  const TrainConfig config = WithoutTensors(StatefulConfig());
  RunTraining(config, {.out = Path("whole"), .figures = false});
  for (const uint64_t stop_at : {3, 4, 9}) Record(config, "parts", stop_at > 3, stop_at);
  EXPECT_EQ(Record(config, "parts", true).status, TrainStatus::kFinished);
  ExpectEqual("parts");
}

TEST_F(RecordedRunFiles, OfAnotherConfigurationAreRefused) {
  TrainConfig config = WithoutTensors(TinyConfig());
  Record(config, "run", false, 3);
  EXPECT_THAT(ErrorOf([&] { Record(config, "run"); }), HasSubstr("continue it with --resume"));
  config.optimizer.beta2 = 0.5;
  EXPECT_THAT(ErrorOf([&] { Record(config, "run", true); }), HasSubstr("optimizer.beta2"));
}

TEST_F(RecordedRunFiles, ATrainerContinuesThem) {
  const TrainConfig config = WithoutTensors(StatefulConfig());
  RunTraining(config, {.out = Path("whole"), .figures = false});
  Record(config, "begun", false, 6);
  RunTraining(config, {.out = Path("begun"), .resume = true, .figures = false});
  ExpectEqual("begun");
}

}  // namespace
}  // namespace numsim
