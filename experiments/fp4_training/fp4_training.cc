// Definition of the experiment `fp4-training`: what study.toml does not say.
#include "experiments/fp4_training/fp4_training.h"

#include <utility>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/shared/training.h"
#include "experiments/study/outcomes.h"
#include "experiments/study/study_file.h"

namespace numsim::experiments {
namespace {

// Returns the rows of the table `gaps`: an arm each.
std::vector<Row> GapRows(const study::Results& results) {
  const Frame runs = results.Of("final");
  const Frame bf16 = runs.Where("recipe", "bf16");
  std::vector<Row> rows;
  for (const Frame& arm : runs.By({"recipe"})) {
    const SeedValues losses = arm.OverSeeds("valid_loss");
    Row row = {arm.Text("recipe"),
               arm.Size(),
               arm.Size() - arm.Where("status", "finished").Size(),
               MeanOf(losses).value};
    Append({PairedGap(losses, bf16.OverSeeds("valid_loss"))}, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Returns the cost of a training relative to others: the time of its products.
double Cost(const TrainConfig& config) {
  return CostPerToken(config.model) * static_cast<double>(config.train.steps);
}

}  // namespace

study::Study Fp4TrainingStudy() {
  study::Study study =
      study::ReadStudy(study::StudyText("fp4_training"),
                       "fp4_training/study.toml",
                       {.outcomes = {{"loss", study::LossOrStart}}, .tables = {{"gaps", GapRows}}});
  study.cost = Cost;
  return study;
}

Experiment Fp4Training() { return study::MakeExperiment(Fp4TrainingStudy()); }

}  // namespace numsim::experiments
