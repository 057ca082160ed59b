// Definition of the experiment `loss-spikes`: options and tables.
#include "experiments/loss_spikes/loss_spikes.h"

#include <fmt/format.h>

#include <utility>

#include "experiments/core/training_of_row.h"
#include "experiments/shared/paper_training.h"
#include "experiments/shared/training.h"

namespace numsim::experiments {
namespace loss_spikes {
namespace {

constexpr std::string_view kDescription =
    "Counts loss spikes, and measures what they cost and what comes before them. Every training\n"
    "departs from a centre (--size, --batch, --lr, --warmup) in one respect:\n"
    "  --beta2, --lambdas   every beta2, and the schedules 1 - t^-lambda, at the centre\n"
    "  --sizes --batches --lrs --warmups --changes --models\n"
    "                       the paper's accelerations, changes of the data and other models, at each of\n"
    "                       --axis-beta2\n"
    "  --optimizers         update clipping, gradient clipping, Lion, at each of --optimizer-beta2\n"
    "Spikes are those of the paper's Appendix E: a loss more than 3.2 running standard deviations\n"
    "above the running mean, twice within 10 steps; an RMS_t of 2.3 or more. The paper ignores the first\n"
    "1000 of 20,000 iterations; here it is the warm-up. It does not say over how many losses mean and\n"
    "deviation run: --window. RMS_t <= 1 / sqrt(1 - beta2), so below beta2 = 0.81 there is no RMS spike.\n"
    "A training has collapsed if it diverged or ends above 95 % of the loss of a guess.\n"
    "Changes of --changes: `new` shows all batches from --change-step on, and before it the first\n"
    "--old-batches again and again, so that the loss jumps with the data; spikes count once the running\n"
    "mean has only seen the new ones. The others are planted, show a mechanism and\n"
    "support no claim about frequency: jump:F and contrast:F multiply gradients or pixels by F from\n"
    "--change-step on; constant:F multiplies gradients by F from the start, which Adam is invariant to.\n"
    "prediction.csv says how well RMS spikes of every tensor predict loss spikes 1 to 8 steps later:\n"
    "recall, precision, and recall by chance, over all shifts of the events along the training. The rival\n"
    "is the curvature of the loss along its gradient under Adam's preconditioner, above 2 over the\n"
    "learning rate [AdamSpikes]: three float64 passes per step, so it is measured for a small student\n"
    "(--student-lrs), a residual MLP that sees all its data in every step, at a constant rate, with\n"
    "epsilon 1e-8 and no weight decay. Its loss has no noise, so that its spikes are spikes.\n"
    "In trainings this small the paper's own schedule brings no loss spikes; the preset constant-rate does.\n"
    "numsim train writes RMS_t and the deviation of the loss at every step, and marks spikes in its\n"
    "figure; docs/results/stability.md has the results.\n"
    "Optimisers:";

std::string Description() {
  std::string text(kDescription);
  for (const OptimizerArm& arm : OptimizerArms()) {
    text += fmt::format("\n  {:<22} {}", arm.name, arm.meaning);
  }
  return text;
}

constexpr const char* kAllOptimizers =
    "stable-adamw,stable-adamw:decay,stable-adamw:added,stable-adamw:previous,stable-adamw:update,"
    "stable-adamw:moment,stable-adamw:global,clip-1,clip-2,stable-clip-1,lion:3,lion:10,"
    "adafactor-style";

// Presets of the paper's towers: the centre alone, with the paper's contrasts.
std::map<std::string, std::string, std::less<>> Towers(std::string s, std::string b) {
  return {{"vit-s", std::move(s)}, {"vit-b", std::move(b)}};
}

std::vector<Option> ArmOptions() {
  return {
      // clang-format off
      {.name = "models",          .quick = "clip",    .paper = "clip",    .help = "models, separated by commas: clip, vit, llama; the first has all axes", .small = "clip,vit,llama"},
      {.name = "size",            .quick = "2x32",    .paper = "32x1280", .help = "LAYERSxWIDTH of the centre, for CLIP of each tower", .others = Towers("12x384", "12x768")},
      {.name = "batch",           .quick = "32",      .paper = "16384",   .help = "examples per step of the centre", .others = Towers("1024", "4096")},
      {.name = "lr",              .quick = "4e-3",    .paper = "2e-3",    .help = "peak learning rate of the centre"},
      {.name = "warmup",          .quick = "150",     .paper = "5000",    .help = "steps of linear warm-up of the centre", .part_of = "steps"},
      {.name = "beta2",           .quick = "0.8,0.95,0.99,0.999", .paper = "0.5,0.8,0.9,0.95,0.98,0.99,0.995,0.999",
       .help = "values of beta2 at the centre, separated by commas", .small = "0.8,0.9,0.95,0.98,0.99,0.999"},
      {.name = "lambdas",         .quick = "",        .paper = "0.45,0.5,0.65", .help = "values of L for beta2 = 1 - t^-L, separated by commas; empty: none", .small = "0.45,0.5,0.65"},
      {.name = "axis-beta2",      .quick = "0.999,0.95", .paper = "0.999,0.95", .help = "two values of beta2 along the axes: the default to blame, then the lower one"},
      {.name = "sizes",           .quick = "",        .paper = "12x768,24x1024,32x1280", .help = "other sizes, separated by commas; empty: none", .small = "1x16,4x32", .others = Towers("", "")},
      {.name = "batches",         .quick = "",        .paper = "4096,8192,16384", .help = "other batches, separated by commas; empty: none", .small = "8,64", .others = Towers("", "")},
      {.name = "lrs",             .quick = "",        .paper = "5e-4,1e-3,2e-3", .help = "other peak learning rates, separated by commas; empty: none", .small = "1e-3,2e-3,8e-3,1.6e-2", .others = Towers("", "")},
      {.name = "warmups",         .quick = "",        .paper = "1000",    .help = "other lengths of the warm-up, separated by commas; empty: none", .small = "25", .others = Towers("", "")},
      {.name = "changes",         .quick = "",        .paper = "new",     .help = "changes of the data: new, jump:F, constant:F, contrast:F, separated by commas; empty: none",
       .small = "new,jump:100,constant:100,contrast:10", .others = Towers("", "")},
      {.name = "optimizers",      .quick = "stable-adamw,clip-1", .paper = kAllOptimizers, .help = "other optimisers, separated by commas; empty: none", .small = kAllOptimizers,
       .others = Towers("stable-adamw,clip-1,clip-2,lion:3,lion:10", "stable-adamw,clip-1,clip-2,lion:3,lion:10")},
      {.name = "optimizer-beta2", .quick = "0.99",    .paper = "0.99,0.999", .help = "values of beta2 with other optimisers, separated by commas"},
      {.name = "change-step",     .quick = "300",     .paper = "12500",   .help = "step at which data or gradients change", .part_of = "steps"},
      {.name = "old-batches",     .quick = "8",       .paper = "64",      .help = "number of batches before new data"},
      {.name = "student-lrs",     .quick = "",        .paper = "",        .help = "learning rates of a residual MLP of --size that sees all its data in every step; empty: none", .small = "3e-3,1e-2,3e-2"},
      {.name = "student-batch",   .quick = "128",     .paper = "128",     .help = "the student's number of examples"},
      {.name = "curvature",       .quick = "yes",     .paper = "yes",     .help = "yes: measure the curvature of every step of the student with AdamW and a constant beta2; no: do not"},
      // clang-format on
  };
}

std::vector<Option> TrainingOptions() {
  return {
      // clang-format off
      {.name = "steps",            .quick = "600",     .paper = "20000",   .help = "training steps, 5 or more"},
      {.name = "window",           .quick = "64",      .paper = "128",     .help = "losses over which the running mean and deviation run"},
      {.name = "ignored",          .quick = "warm-up", .paper = "1000",    .help = "steps at the start in which nothing counts; warm-up: as many as it takes", .before = "warm-up", .part_of = "steps"},
      {.name = "spike-deviations", .quick = "3.2",     .paper = "3.2",     .help = "a loss that is higher than the mean by this many deviations spikes"},
      {.name = "spike-rms",        .quick = "2.3",     .paper = "2.3",     .help = "an RMS_t from this on spikes"},
      {.name = "captions",         .quick = "",        .paper = "",        .help = "clip: folder of images .npy and captions.txt; empty: generated shapes"},
      {.name = "shapes",           .quick = "4096",    .paper = "262144",  .help = "clip: number of generated images, a tenth of them for validation"},
      {.name = "image",            .quick = "16",      .paper = "64",      .help = "clip: width and height of generated images in pixels, 16 to 64"},
      {.name = "images",           .quick = "8192",    .paper = "131072",  .help = "vit: number of generated images"},
      {.name = "text",             .quick = "",        .paper = "",        .help = "llama: UTF-8 file to train on; empty: generated text"},
      {.name = "text-size",        .quick = "1048576", .paper = "67108864", .help = "llama: bytes of generated text"},
      {.name = "context",          .quick = "64",      .paper = "256",     .help = "llama: bytes per sequence"},
      {.name = "patch",            .quick = "4",       .paper = "8",       .help = "clip, vit: width and height of a patch in pixels"},
      {.name = "patch-dropout",    .quick = "0.5",     .paper = "0.5",     .help = "clip, vit: share of the patches that a training step leaves out, 0 to below 1"},
      {.name = "epsilon",          .quick = "1e-6",    .paper = "1e-6",    .help = "epsilon of the optimiser"},
      {.name = "beta1",            .quick = "0.9",     .paper = "0.9",     .help = "decay of the first moment"},
      {.name = "weight-decay",     .quick = "0.2",     .paper = "0.2",     .help = "weight decay of matrices"},
      {.name = "final-lr",         .quick = "0",       .paper = "0",       .help = "learning rate at the end, over the peak: 0 to 1"},
      {.name = "valid-batches",    .quick = "64",      .paper = "64",       .help = "largest number of batches per validation"},
      // clang-format on
  };
}

// A preset in which loss spikes occur in small models: at a constant rate a short training stays where
// one of 20,000 steps is for most of its time, and without patch dropout its loss has less noise.
constexpr const char* kConstantRate = "constant-rate";

// Values of constant-rate; of options that are not here, those of quick.
const std::map<std::string, std::string, std::less<>>& ConstantRate() {
  static const std::map<std::string, std::string, std::less<>> values = {
      {"warmup", "100"},
      {"steps", "1000"},
      {"final-lr", "1"},
      {"patch-dropout", "0"},
      {"sizes", "1x16,4x32"},
      {"batches", "8,64"},
      {"lrs", "1e-3,1e-2"},
      {"changes", "new"},
      {"change-step", "500"},
      {"optimizers", "stable-adamw,clip-1,clip-2"}};
  return values;
}

std::vector<Advice> AdviceForSpikes() {
  const auto claims = [](std::vector<std::string> names) {
    for (std::string& name : names) name.insert(0, "loss-spikes/");
    return names;
  };
  return {
      {"Lower beta2, e.g. --set optimizer.beta2=0.95: the paper's first remedy.",
       claims({"size-beta2-mitigates",
               "batch-beta2-mitigates",
               "lr-beta2-mitigates",
               "high-beta2-costs",
               "high-beta2-costs-at-large-lr",
               "rms-lower-at-low-beta2",
               "rms-bound"})},
      {"But not far below 0.95.", claims({"low-beta2-slows"})},
      {"Clip updates: --set optimizer.kind=stable-adamw with epsilon 1e-6, the paper's own remedy. Its "
       "published variants are compared with it.",
       claims({"update-clipping-mitigates",
               "update-clipping-lowers-loss",
               "variant-decay-matches",
               "variant-added-matches",
               "variant-previous-matches",
               "variant-update-matches",
               "variant-global-matches",
               "rms-of-moment-is-worse"})},
      {"Clip gradients at norm 1: --set optimizer.clip_norm=1.",
       claims({"update-clipping-beats-gradient-clipping", "clip-2-spikes-more"})},
      {"Lower the learning rate. The paper also names a smaller batch and a smaller model.",
       claims({"lr-brings-spikes", "batch-brings-spikes", "size-brings-spikes"})},
      {"Do not expect help from a schedule of beta2.", claims({"schedule-does-not-help"})},
      {"The paper's warning is an RMS_t of 2.3 or more in the patch embedding (optimizer.csv). The columns "
       "rms, of any parameter, and loss_deviation of train.csv have every step.",
       claims({"rms-precedes-loss",
               "rms-precedes-loss-on-new-data",
               "patches-predict-better",
               "curvature-predicts-better"})},
  };
}

std::string Scale(const Settings& settings, const Tables&) {
  return fmt::format("{} {}, batch {}, {} steps",
                     settings.Get("models"),
                     settings.Get("size"),
                     settings.Get("batch"),
                     settings.Get("steps"));
}

}  // namespace

std::vector<Option> Options() {
  std::vector<Option> options = ArmOptions();
  for (Option& option : TrainingOptions()) options.push_back(std::move(option));
  for (Option& option : options) {
    const auto value = ConstantRate().find(option.name);
    option.others[kConstantRate] = value == ConstantRate().end() ? option.quick : value->second;
  }
  options.push_back(KeysOption());
  return options;
}

std::vector<PaperSetting> PaperSettings() {
  const std::vector<PaperSetting> others = {
      {"beta2",
       "0.5,0.8,0.9,0.95,0.98,0.99,0.995,0.999",
       "Figures 3, 12 and 13",
       "Fewer values take less time."},
      {"sizes", "12x768,24x1024,32x1280", "Figure 3", "Smaller sizes, or none."},
      {"patch-dropout", "0.5", "Section 3.2", "Its noise hides the spikes of a small batch."},
      {"final-lr",
       "0",
       "Section 3.2",
       "At a constant rate a short training stays where a long one is for most of its time."},
      {"lr", "2e-3", "Section 3.2", "Smaller models take larger rates; --lrs has others."},
      {"batch", "16384", "Section 3.2", "Out of reach; --batches has others."},
      {"warmup",
       "5000",
       "Section 3.2",
       "A quarter of the paper's steps, and of those of the presets with the paper's schedule."},
      {"",
       "The paper trains in 16 bits, in bfloat16",
       "Section 2.2.3",
       "Here products and storage are float32, so that spikes are the optimiser's."},
      {"",
       "The first 1000 of 20,000 iterations are ignored",
       "Appendix E",
       "--ignored says how many steps are; in short runs it is the warm-up."},
      {"",
       "Running mean and deviation of the loss over an unstated number of iterations",
       "Appendix E",
       "--window says over how many losses they run."},
      {"",
       "ImageNet zero-shot accuracy of CLIP, with a layer-norm after the patch embedding",
       "Section 3.2",
       "Here it is the zero-shot accuracy on held-out captions of generated images."},
      {"",
       "The paper has no student that learns from a teacher",
       "Section 3",
       "The model mlp trains with an epsilon of 1e-8, without decay, at a constant rate."},
  };
  return PaperTraining(Paper::kSwitchBack, Options(), others);
}

namespace {

std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  Row key = CellsOf(arm);
  key.emplace_back(trial.seed);
  return {{std::move(key), ConfigOf(settings, arm, trial.seed)}};
}

}  // namespace
}  // namespace loss_spikes

Experiment LossSpikes() {
  using namespace loss_spikes;
  Experiment experiment;
  experiment.name = "loss-spikes";
  experiment.title = "loss spikes, RMS_t, beta2 and update clipping";
  experiment.reproduces = "Figures 3 to 5, 12 to 20, Appendices E and F of [SwitchBack]";
  experiment.description = Description();
  experiment.options = Options();
  experiment.presets = {{"quick", 10, 170},
                        {"small", 10, 2400},
                        {kConstantRate, 10, 1500},
                        {"vit-s"},
                        {"vit-b"},
                        {"paper", 1}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.rows = {.table = std::string(kRunsTable),
                     .key = {kArmKey.begin(), kArmKey.end()},
                     .texts = {"event", "tensor", "at", "lost"},
                     .trainings = TrainingsOf};
  experiment.rows.key.emplace_back("seed");
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.advice = AdviceForSpikes();
  experiment.paper_settings = PaperSettings();
  experiment.scale = Scale;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
