// What the experiment `fp8-interventions` is: options, points.
#include "experiments/fp8_interventions/fp8_interventions.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments {
namespace fp8_interventions {
namespace {

constexpr std::string_view kDescription =
    "A CLIP is trained with all its linear layers tensor-wise: inputs, weights and gradients with\n"
    "one scale a tensor in the formats named, all three products. Interventions, alone or joined "
    "by\n"
    "'+', against nothing and against bf16:\n"
    "  clip         gradients of a norm above --clip-norm are scaled down to it\n"
    "  qk-norm      norm of queries and keys\n"
    "  layer-scale  a learnt gain of each branch, zero at first\n"
    "bf16 is trained with each of them too: only that tells what an intervention itself costs.\n"
    "Formats are FORWARD[/GRADIENT] (X and W / G); without GRADIENT both are one. Below E4M3 "
    "there\n"
    "is a ladder of formats all of whose codes are numbers:\n"
    "  e3m3  30 down to 1/32      e4m2  448 down to 1/256\n"
    "  e3m2  28 down to 1/16      e2m3  7.5 down to 1/8\n"
    "The paper's models fail with hundreds of millions of parameters. Here the cliff is brought "
    "into\n"
    "reach by poorer formats, depth, learning rate, heavy-tailed inputs (--input-tail) and a "
    "planted\n"
    "massive activation: --plant-value is added to one channel at --plant-point, by default to "
    "what\n"
    "the MLP of the first block of each tower puts out, before layer-scale. bf16 has the same "
    "stress,\n"
    "and a format is judged only where bf16 learns.\n"
    "A seed has failed when it diverged (--diverged-above) or collapsed: its validation loss is "
    "less\n"
    "than 5 % below that of a model that tells nothing apart (for CLIP the log of the batch).\n"
    "features.csv has E|x_k| behind each block before and after training;\n"
    "mean_abs_rest leaves the planted channel out. quantised.csv has what the formats lose.\n"
    "Claims under test (Section 2.3, Figure 2): nothing, clipping and KQ layernorm diverge,\n"
    "layer-scale trains; it keeps features small; what it lags behind bf16 is due to itself.";

// Keys of the configuration whose options have another name.
Error OfStress(const std::string& message) {
  constexpr std::string_view kSection = "stress.";
  if (!message.starts_with(kSection)) return Error(message);
  return Error("--plant-" + message.substr(kSection.size()));
}

void CheckOptions(const Settings& settings) {
  const int64_t steps = settings.GetInteger("steps", 10, 100'000'000);
  settings.GetInteger("records", 2, steps);
  settings.GetInteger("snapshots", 1, steps);
  settings.GetInteger("warmup", 0, steps);
  const TrainConfig config = ConfigOf(settings, {}, kBaseline, settings.seed);
  try {
    CheckTraining(settings, config);
    // It looks whether the planted point is there.
    if (!config.stress.point.empty()) Trainer(config, OpenData(config.data));
  } catch (const Error& error) {
    throw OfStress(error.what());
  }
}

}  // namespace

std::vector<Trial> Trials(const Settings& settings) {
  const std::vector<Intervention> interventions = InterventionsOf(settings);
  const std::vector<Precision> precisions = PrecisionsOf(settings);
  CheckOptions(settings);
  std::vector<Trial> trials;
  for (const Precision& precision : precisions) {
    for (const Intervention& intervention : interventions) {
      for (int i = 0; i < settings.seeds; ++i) {
        const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
        trials.push_back(
            {.label = fmt::format("{} {} seed={}", precision.Text(), intervention.Text(), seed),
             .seed = seed,
             .parameters = {{"intervention", intervention.Text()}, {"format", precision.Text()}}});
      }
    }
  }
  return trials;
}

}  // namespace fp8_interventions

Experiment Fp8Interventions() {
  using namespace fp8_interventions;
  Experiment experiment;
  experiment.name = "fp8-interventions";
  experiment.title = "what keeps tensor-wise low precision from failing";
  experiment.reproduces = "Figure 2, Section 2.3 of [SwitchBack]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {{"quick", 3}, {"small", 3}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.summarise = Summarise;
  return experiment;
}

}  // namespace numsim::experiments
