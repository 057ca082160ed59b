// Definition of the experiment `fp8-interventions`: description, trials.
#include "experiments/fp8_interventions/fp8_interventions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/core/training_of_row.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments {
namespace fp8_interventions {
namespace {

constexpr std::string_view kDescription =
    "Trains a CLIP with all its linear layers tensor-wise: in all three GEMMs, inputs, weights\n"
    "and gradients are quantised to the given formats with one scale per tensor. Interventions,\n"
    "alone or joined by '+', are compared with no intervention and with bf16:\n"
    "  clip         gradients of a norm above --clip-norm are scaled down to it\n"
    "  qk-norm      queries and keys are normalised\n"
    "  layer-scale  a learnt gain of each branch, zero at first\n"
    "bf16 is also trained with each intervention, which shows what the intervention itself costs.\n"
    "Formats are FORWARD[/GRADIENT] (X and W / G); without GRADIENT both are FORWARD. Below E4M3\n"
    "there is a ladder of formats, all of whose codes are numbers:\n"
    "  e3m3:inf=none,nan=none  30 down to 1/32     e3m2  28 down to 1/16\n"
    "  e4m2:inf=none,nan=none  448 down to 1/256   e2m3  7.5 down to 1/8\n"
    "The paper's models fail with hundreds of millions of parameters. Here smaller models are\n"
    "made to fail by poorer formats, depth, learning rate, heavy-tailed inputs (--input-tail) and\n"
    "a planted massive activation: --plant-value is added to one channel of the tensor\n"
    "--plant-point, e.g. *blocks.0.mlp.down, the output of the MLP in the first block of each\n"
    "tower, before layer-scale, which can scale it away while clipping and norms cannot. bf16 has\n"
    "the same perturbations, and a format is judged only where bf16 learns. A run with\n"
    "perturbations also trains bf16 without them (unstressed), and it is evidence only if they\n"
    "take at most a tenth of what bf16 learns and were chosen on other seeds than those of the\n"
    "run (--stress-chosen-on).\n"
    "A seed has failed if it diverged (--diverged-above) or collapsed: its validation loss is less\n"
    "than 5 % below that of a model that guesses at random (for CLIP the log of the batch).\n"
    "features.csv lists E|x_k| after each block at --snapshots steps, with the validation loss\n"
    "there; mean_abs_rest leaves out the planted channel. Trainings that learn at different rates\n"
    "are compared at the loss that both reach. quantised.csv lists the quantisation errors of the\n"
    "formats.\n"
    "Planted activations and stretched inputs are not as in the paper: what a run finds with\n"
    "them is exploratory.";

// Names the option in an error about a configuration key `stress.*`, which option --plant-* sets.
KeyError OfStress(const KeyError& error) {
  constexpr std::string_view kSection = "stress.";
  if (!error.key().starts_with(kSection)) return error;
  return {"--plant-" + error.key().substr(kSection.size()), error.text()};
}

void CheckOptions(const Settings& settings) {
  const int64_t steps = settings.GetInteger("steps", 10, kMostSteps);
  settings.GetInteger("records", 2, steps);
  settings.GetInteger("snapshots", 1, steps);
  settings.GetInteger("warmup", 0, steps);
  if (!settings.Get("stress-chosen-on").empty()) {
    settings.GetIntegers("stress-chosen-on", 0, std::numeric_limits<int64_t>::max());
  }
  const TrainConfig config = ConfigOf(settings, {}, kBaseline, settings.seed);
  try {
    CheckTraining(settings, config);
    // The constructor checks that the tensor of --plant-point exists.
    if (!config.stress.point.empty()) Trainer(config, OpenData(config.data));
  } catch (const KeyError& error) {
    throw OfStress(error);
  }
}

std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial) {
  const Intervention intervention = ParseIntervention(trial.parameters.at("intervention"));
  const Precision precision = ParsePrecision(trial.parameters.at("format"));
  return {{{intervention.Text(), precision.Text(), trial.seed},
           ConfigOf(settings, intervention, precision, trial.seed)}};
}

// Returns "clip, 6 layers, width 32, 300 steps".
std::string Scale(const Settings& settings, const Tables&) {
  return fmt::format("{}, {} layers, width {}, {} steps",
                     settings.Get("model"),
                     settings.Get("layers"),
                     settings.Get("width"),
                     settings.Get("steps"));
}

}  // namespace

std::vector<Trial> Trials(const Settings& settings) {
  const std::vector<Intervention> interventions = InterventionsOf(settings);
  const std::vector<Precision> precisions = PrecisionsOf(settings);
  CheckOptions(settings);
  std::vector<Trial> trials;
  const auto add = [&](const Intervention& intervention, const Precision& precision) {
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back(
          {.label = fmt::format("{} {} seed={}", precision.Text(), intervention.Text(), seed),
           .seed = seed,
           .parameters = {{"intervention", intervention.Text()}, {"format", precision.Text()}}});
    }
  };
  if (!StressOf(settings).empty()) add(kUnstressed, kBaseline);
  for (const Precision& precision : precisions) {
    for (const Intervention& intervention : interventions) add(intervention, precision);
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
  experiment.presets = {{"quick", 3, 145}, {"small", 3}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.rows = {.table = std::string(kFinalTable),
                     .key = {"intervention", "format", "seed"},
                     .texts = {"tower", "operand"},
                     .trainings = TrainingsOf};
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = Scale;
  experiment.notes = Notes;
  experiment.from_former_names = FromFormerNames;
  return experiment;
}

}  // namespace numsim::experiments
