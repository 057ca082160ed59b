// Definition of the experiment `fp8-outliers`: options, trials, tables.
#include "experiments/fp8_outliers/fp8_outliers.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/shared/paper_training.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace fp8_outliers {
namespace {

constexpr std::string_view kDescription =
    "Trains llamas on text under FP8 recipes, with and without outliers of SwiGLU. The paper meets\n"
    "outliers after 200 billion tokens; here they are planted. Each seed trains --steps steps in bf16;\n"
    "from that checkpoint every recipe goes on for --after steps and meets the outlier after --lead of\n"
    "them, time for delayed scales to settle. Plants, in channel 0 of --blocks:\n"
    "  none          no outlier\n"
    "  once:SIZE     in one step, a constant is added to the gate and the linear branch of one token, so\n"
    "                that SwiGLU is SIZE times as large as its largest in the clean model\n"
    "  every:SIZE    the same every --period steps\n"
    "  weights:SIZE  w1 = w2, whose norm grows until SwiGLU is SIZE times as large, for many tokens; the\n"
    "                column of w3 shrinks with it, so that the function stays\n"
    "Plants are chosen on other seeds than those of the run, such that bf16 is not harmed. `scratch`\n"
    "trains --scratch recipes from the first step, and --scratch-bf16 at each of --scratch-lr.\n"
    "A step is bad for a recipe if the quantiser of the input of w3 in any planted block saturates so\n"
    "that signal over noise falls below 20 dB, or turns more than half of the nonzero elements into\n"
    "zeros. With three or more sizes of `once`, a figure shows which recipe survives which size.";

// The studies of the presets other than quick.
constexpr const char* kAllPlants = "none,once:1e6,every:1e6,weights:100";
constexpr const char* kAllRecipes =
    "bf16,te-max,te-recent,te-current,row,block,w3-bf16,smooth,smooth-token,clamp,fishman,fishman-smooth";
constexpr const char* kAllScratch =
    "bf16,bf16-smooth,te-max,smooth,fishman,fishman-smooth,bf16-gelu,te-max-gelu";

std::vector<Option> Options() {
  return {
      // clang-format off
      {.name = "plants",       .quick = "none,once:1e6,weights:100", .paper = "none", .help = "plants: none, once:SIZE, every:SIZE, weights:SIZE", .small = kAllPlants, .others = {{"10m", kAllPlants}, {"100m", kAllPlants}}},
      {.name = "recipes",      .quick = "bf16,te-max,te-recent,te-current,w3-bf16,smooth,smooth-token", .paper = "bf16,fishman,fishman-smooth", .help = "recipes of planted trainings, bf16 first", .small = kAllRecipes, .others = {{"10m", kAllRecipes}, {"100m", kAllRecipes}}},
      {.name = "scratch",      .quick = "bf16,bf16-smooth,te-max,fishman-smooth", .paper = "bf16,fishman,fishman-smooth", .help = "recipes of trainings from scratch at --lr; empty: none", .small = kAllScratch, .others = {{"10m", kAllScratch}, {"100m", kAllScratch}}},
      {.name = "scratch-bf16", .quick = "",        .paper = "bf16,bf16-smooth-token", .help = "recipes that are also trained from scratch at each of --scratch-lr (Figures 10 and 11); empty: none", .small = "bf16,bf16-smooth-token"},
      {.name = "scratch-lr",   .quick = "1e-3",    .paper = "2.5e-4,5e-4,1e-3", .help = "their learning rates", .small = "1e-3,4e-3,1.6e-2", .others = {{"10m", "2.5e-4,1e-3,4e-3"}, {"100m", "2.5e-4,1e-3,2e-3"}}},
      {.name = "period",       .quick = "10",      .paper = "100",     .help = "every: steps from one outlier to the next", .others = {{"10m", "100"}, {"100m", "100"}}},
      {.name = "blocks",       .quick = "all",     .paper = "all",     .help = "blocks with a planted channel, separated by commas; all: every block"},
      {.name = "history",      .quick = "1024",    .paper = "1024",    .help = "steps of the history of te-max and of what is built on it"},
      {.name = "lead",         .quick = "30",      .paper = "1000",    .help = "steps from the checkpoint to the outlier", .small = "20", .others = {{"10m", "50"}, {"100m", "100"}}, .part_of = "after"},
      {.name = "after",        .quick = "100",     .paper = "200000",  .help = "steps from the checkpoint to the end", .small = "100", .others = {{"10m", "200"}, {"100m", "1000"}}},
      {.name = "layers",       .quick = "2",       .paper = "32",      .help = "number of blocks", .small = "4", .others = {{"10m", "6"}, {"100m", "12"}}},
      {.name = "width",        .quick = "64",      .paper = "4096",    .help = "width of the residual stream", .small = "128", .others = {{"10m", "384"}, {"100m", "768"}}},
      {.name = "heads",        .quick = "2",       .paper = "32",      .help = "attention heads; must divide the width", .small = "4", .others = {{"10m", "6"}, {"100m", "12"}}},
      {.name = "context",      .quick = "64",      .paper = "4096",    .help = "tokens per sequence", .others = {{"10m", "256"}, {"100m", "1024"}}},
      {.name = "batch",        .quick = "4",       .paper = "1024",    .help = "sequences per step", .others = {{"10m", "64"}, {"100m", "256"}}},
      {.name = "steps",        .quick = "100",     .paper = "500000",  .help = "steps in bf16 before the checkpoint", .small = "200", .others = {{"10m", "2000"}, {"100m", "10000"}}},
      {.name = "lr",           .quick = "4e-3",    .paper = "3e-4",    .help = "peak learning rate", .others = {{"10m", "2e-3"}, {"100m", "6e-4"}}},
      {.name = "warmup",       .quick = "20",      .paper = "2000",    .help = "steps of linear warm-up", .small = "40", .others = {{"10m", "200"}, {"100m", "2000"}}, .part_of = "steps"},
      {.name = "final-lr",     .quick = "0.1",     .paper = "0.1",     .help = "learning rate at the end, over the peak: 0 to 1"},
      {.name = "optimizer",    .quick = "adamw",   .paper = "adamw",   .help = "optimiser: adamw, stable-adamw or another of numsim train"},
      {.name = "epsilon",      .quick = "1e-5",    .paper = "1e-5",    .help = "epsilon of the optimiser"},
      {.name = "beta2",        .quick = "0.95",    .paper = "0.95",    .help = "decay of the second moment"},
      {.name = "weight-decay", .quick = "0.1",     .paper = "0.1",     .help = "weight decay of matrices"},
      {.name = "clip",         .quick = "1",       .paper = "1",       .help = "largest norm of the gradients; 0: any"},
      {.name = "text",         .quick = "",        .paper = "",        .help = "UTF-8 file to train on; empty: generated text"},
      {.name = "text-size",    .quick = "262144",  .paper = "4194304", .help = "bytes of generated text", .small = "1048576", .others = {{"10m", "16777216"}, {"100m", "67108864"}}},
      {.name = "valid-batches",.quick = "64",      .paper = "64",      .help = "largest number of batches per validation"},
      // clang-format on
      KeysOption(),
  };
}

std::vector<TableSpec> TableSpecs() {
  const std::vector<Column> arm = {
      {"plant", "scratch, none, once:SIZE, every:SIZE or weights:SIZE"},
      {"recipe", "recipe of the linear layers and the MLP"},
      {"lr", "peak learning rate"}};
  return {
      {.name = std::string(kRunsTable),
       .columns = Joined(
           arm,
           {{"seed", "seed of weights and batches"},
            {"parameters", "parameters of the model"},
            {"status", "finished or diverged"},
            {"steps", "steps"},
            {"start_loss", "validation loss before training, nats"},
            {"valid_loss", "validation loss at the end; inf when diverged"},
            {"saturated_steps", "steps from the outlier on that saturate it, to below 20 dB"},
            {"flushed_steps", "steps in which more than half of its elements become zero"},
            {"bad_steps", "steps with either"},
            {"first_bad", "first bad step, counted from that of the outlier; nan: none"},
            {"last_bad", "last bad step; nan: none"},
            {"worst_excess", "largest training loss of a step minus that of bf16, nats"}})},
      {.name = std::string(kTraceTable),
       .columns = {{"plant", "as in runs.csv; first seed alone"},
                   {"recipe", "recipe"},
                   {"seed", "seed"},
                   {"step", "step, counted from that of the outlier"},
                   {"loss", "loss of the batch, nats"},
                   {"absmax", "largest magnitude of the input of w3; nan in bf16"},
                   {"overflow", "share of its elements that saturate"},
                   {"underflow", "share of its nonzero elements that become zero"},
                   {"sqnr", "ratio of signal to quantisation noise, dB; nan in bf16"}}},
      {.name = std::string(kArmsTable),
       .derived = true,
       .columns = Joined(
           arm,
           {{"seeds", "number of seeds"},
            {"diverged", "number of seeds that diverged"},
            {"valid_loss", "mean over the seeds that finished, nats"},
            {"valid_loss_low", "95 % interval of the mean (Student's t)"},
            {"valid_loss_high", "95 % interval"},
            {"gap", "valid_loss minus that of bf16 of the same plant and rate"},
            {"gap_low", "95 % interval over the seeds (Student's t)"},
            {"gap_high", "95 % interval"},
            {"outcome",
             "survives: gap_high is below the margin of a final loss; fails: gap_low is above "
             "it, or a seed diverged; undecided"},
            {"saturated_steps", "mean"},
            {"flushed_steps", "mean"},
            {"bad_steps", "mean"},
            {"bad_seeds", "number of seeds with a bad step"},
            {"last_bad", "mean over these seeds"},
            {"worst_excess", "mean"}})},
  };
}

std::vector<PaperSetting> PaperSettings() {
  const std::vector<PaperSetting> others = {
      {"steps",
       "500000",
       "Section 6.1: 2 trillion tokens",
       "Out of reach; --after says for how many steps the recipes differ."},
      {"", "Tokens of 32,000 kinds", "Llama 2", "Bytes here, or those of the file of --text."},
      {"",
       "Delayed scaling with the window of the authors' code",
       "the paper's code",
       "That is the recipe fishman; te-max, whose history has --history steps, is Transformer "
       "Engine's."},
      {"", "Outliers that grow by themselves over 2e11 tokens", "Figures 1 and 2", "Planted here."},
      {"", "Moments in FP8", "Section 5", "float32 here; moment-formats has them."},
      {"",
       "A window of delayed scaling is a batch of micro-batches",
       "the paper's code",
       "A batch has one part here, so that the window is one step."},
  };
  return PaperTraining(Paper::kFishman, Options(), others);
}

Trial TrialOf(std::string_view plant, std::string_view recipe, std::string_view lr, uint64_t seed) {
  return {
      .label = fmt::format("{} {} {} seed={}", plant, recipe, lr, seed),
      .seed = seed,
      .parameters = {
          {"plant", std::string(plant)}, {"recipe", std::string(recipe)}, {"lr", std::string(lr)}}};
}

void CheckOptions(const Settings& settings) {
  ScheduleOf(settings);
  const std::vector<std::string> plants = settings.GetList("plants");
  CheckDistinct("plants", plants);
  for (const std::string& plant : plants) ParsePlant(plant);
  settings.GetInteger("period", 1, kMostSteps);
  const std::vector<std::string> recipes = settings.GetList("recipes");
  CheckDistinct("recipes", recipes);
  if (recipes.front() != "bf16") {
    throw Error::Format("--recipes: '{}' comes first, expected bf16", recipes.front());
  }
  for (const std::string& recipe : recipes) {
    if (recipe.ends_with("gelu")) {
      throw Error::Format("--recipes: '{}' has no SwiGLU; --scratch takes it", recipe);
    }
  }
  BlocksOf(settings);
}

// Returns the recipes from scratch with their rates, each once.
std::vector<Arm> ScratchArms(const Settings& settings) {
  std::vector<Arm> arms;
  const auto add = [&](const char* option, const std::string& recipe, const std::string& lr) {
    FindRecipe(option, recipe);
    const Arm arm{std::string(kScratch), recipe, lr};
    if (std::ranges::find(arms, arm) == arms.end()) arms.push_back(arm);
  };
  for (const std::string& recipe : settings.GetListOrNone("scratch")) {
    add("scratch", recipe, settings.Get("lr"));
  }
  for (const std::string& recipe : settings.GetListOrNone("scratch-bf16")) {
    for (const std::string& lr : settings.GetList("scratch-lr")) add("scratch-bf16", recipe, lr);
  }
  return arms;
}

}  // namespace

std::vector<Trial> Trials(const Settings& settings) {
  CheckOptions(settings);
  std::vector<Arm> scratch = ScratchArms(settings);
  std::vector<TrainConfig> configs;
  for (const std::string& recipe : settings.GetList("recipes")) {
    configs.push_back(
        ConfigOf(settings, {std::string(kNone), recipe, settings.Get("lr")}, settings.seed));
  }
  for (const Arm& arm : scratch) configs.push_back(ConfigOf(settings, arm, settings.seed));
  CheckTrainings(settings, configs, {});
  std::vector<Trial> trials;
  for (int i = 0; i < settings.seeds; ++i) {
    const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
    for (const std::string& plant : settings.GetList("plants")) {
      trials.push_back(TrialOf(plant, "all", settings.Get("lr"), seed));
    }
    for (const Arm& arm : scratch) trials.push_back(TrialOf(arm.plant, arm.recipe, arm.lr, seed));
  }
  return trials;
}

namespace {

std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial) {
  std::vector<TrainingOfRow> trainings;
  for (const Arm& arm : ArmsOf(settings, trial)) {
    trainings.push_back(
        {{arm.plant, arm.recipe, arm.lr, trial.seed}, ConfigOf(settings, arm, trial.seed)});
  }
  return trainings;
}

}  // namespace
}  // namespace fp8_outliers

Experiment Fp8Outliers() {
  using namespace fp8_outliers;
  Experiment experiment;
  experiment.name = "fp8-outliers";
  experiment.title = "outliers of SwiGLU under FP8 recipes, and Smooth-SwiGLU";
  experiment.reproduces = "Figures 1, 3, 4, 6, 10 to 12, Equation 3 of [Fishman]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {
      {"quick", 2, 60}, {"small", 10, 2400}, {"10m", 3}, {"100m", 3}, {"paper", 1}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.rows = {.table = std::string(kRunsTable),
                     .key = {"plant", "recipe", "lr", "seed"},
                     .texts = {},
                     .trainings = TrainingsOf};
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = TrainingScaleText;
  return experiment;
}

}  // namespace numsim::experiments
