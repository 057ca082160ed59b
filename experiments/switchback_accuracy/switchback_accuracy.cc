// What the experiment `switchback-accuracy` is: options and tables.
#include "experiments/switchback_accuracy/switchback_accuracy.h"

#include <utility>

namespace numsim::experiments {
namespace switchback_accuracy {
namespace {

constexpr std::string_view kDescription =
    "Models are trained that differ in their linear layers alone: same weights at the start and\n"
    "same batches for a seed. A variant is KIND[:FORMAT[/GRADIENT_FORMAT]]; `standard` computes\n"
    "all three products with bf16 operands and is the 16-bit baseline of every other.\n"
    "  switchback     weight gradient in 16 bits, the two other products in 8\n"
    "  switchback-m   the same, from X as it was quantised for the forward product\n"
    "  switchback-q   the same, W by rows and by columns\n"
    "  llm-int8       switchback-q with the weight gradient in 8 bits too\n"
    "  tensor-wise    everything in 8 bits, one scale a tensor\n"
    "docs/linear.md has more kinds. e4m3fn and e5m2 are the formats of OCP; bnb-e4m3 and bnb-e5m2\n"
    "are the grids that bitsandbytes has, and with it the paper's simulation.\n"
    "Models: clip, on images with captions, and llama, on bytes of text. The paper's claim is\n"
    "about the weight gradient's inner dimension, batch x sequence: --batches-clip and\n"
    "--batches-llama vary it, column `tokens` has it (of CLIP: of the tower of images, a class\n"
    "token beside the patches). The paper drops half of the patches and trains with StableAdamW;\n"
    "here all patches are there, and the optimiser is AdamW. It leaves patches and projections in\n"
    "16 bits: --first-last-high yes. A head of llama in int8 spoils the gradients of all layers\n"
    "below it, since rows of its G are one large element and hundreds of small ones.\n"
    "The gap of a variant is its validation loss minus that of `standard`, paired by seed, with\n"
    "Student's 95 % interval. Losses of CLIP are over batches of the training's size, so they are\n"
    "comparable for one number of tokens alone.\n"
    "gradients.csv: --shadow-every steps, the step at hand is done three times more from the same\n"
    "weights: in float64, the shadow that `error` refers to; as trained; and with the operands of\n"
    "the weight gradient in fp32 and every other product as it is, which leaves in `own_error`\n"
    "what that one product adds.";

constexpr const char* kQuickVariants =
    "switchback:int8,llm-int8:int8,tensor-wise:int8,switchback:e4m3fn,tensor-wise:e4m3fn/e5m2";
constexpr const char* kVariants =
    "switchback:int8,switchback-m:int8,switchback-q:int8,llm-int8:int8,tensor-wise:int8,"
    "switchback:e4m3fn,switchback:e4m3fn/e5m2,llm-int8:e4m3fn,tensor-wise:e4m3fn/e5m2,"
    "switchback:bnb-e4m3/bnb-e5m2,tensor-wise:bnb-e4m3/bnb-e5m2";

std::vector<Option> ModelOptions() {
  return {
      // clang-format off
      {.name = "models",          .quick = "clip,llama",   .paper = "clip,llama",     .help = "clip, llama"},
      {.name = "variants",        .quick = kQuickVariants, .paper = kVariants,        .help = "linear layers KIND[:FORMAT[/GRADIENT_FORMAT]] beside standard",
       .small = kVariants},
      {.name = "sizes-clip",      .quick = "2x64",         .paper = "12x768,24x1024,32x1280", .help = "LAYERSxWIDTH of both towers of CLIP",
       .small = "2x64,4x128"},
      {.name = "sizes-llama",     .quick = "2x64",         .paper = "12x768,24x1024", .help = "LAYERSxWIDTH of llama", .small = "2x64,4x128"},
      {.name = "batches-clip",    .quick = "64",           .paper = "256,4096",       .help = "images of a step", .small = "32,256"},
      {.name = "batches-llama",   .quick = "32,256",       .paper = "256,2048",       .help = "sequences of a step", .small = "32,256"},
      {.name = "patch",           .quick = "4",            .paper = "4",              .help = "pixels of a patch's side; divides the image"},
      {.name = "context",         .quick = "64",           .paper = "256",            .help = "bytes of a sequence of llama", .small = "64"},
      {.name = "first-last-high", .quick = "no",           .paper = "yes",
       .help = "yes: patches, projections, head are standard in every variant, as in the paper"},
      // clang-format on
  };
}

std::vector<Option> TrainingOptions() {
  return {
      // clang-format off
      {.name = "captions",      .quick = "",        .paper = "",         .help = "folder of images .npy and captions.txt; empty: generated shapes"},
      {.name = "shapes-size",   .quick = "8192",    .paper = "131072",   .help = "generated images, a tenth of them for validation", .small = "16384"},
      {.name = "image",         .quick = "32",      .paper = "64",       .help = "side of generated images, 16 to 64"},
      {.name = "text",          .quick = "",        .paper = "",
       .help = "UTF-8 file to train on, its last tenth for validation; empty: generated text"},
      {.name = "text-size",     .quick = "1048576", .paper = "67108864", .help = "bytes of generated text", .small = "4194304"},
      {.name = "steps",         .quick = "40",      .paper = "20000",    .help = "steps of training, 10 at least", .small = "400"},
      {.name = "lr-clip",       .quick = "1e-3",    .paper = "2e-3",     .help = "peak learning rate of clip", .small = "1e-3"},
      {.name = "lr-llama",      .quick = "3e-3",    .paper = "1e-3",     .help = "peak learning rate of llama", .small = "5e-3"},
      {.name = "warmup",        .quick = "6",       .paper = "5000",     .help = "steps of linear warm-up", .small = "40"},
      {.name = "beta2",         .quick = "0.95",    .paper = "0.95",     .help = "decay of AdamW's v"},
      {.name = "weight-decay",  .quick = "0.1",     .paper = "0.2",      .help = "of matrices"},
      {.name = "clip",          .quick = "1",       .paper = "1",        .help = "largest norm of gradients; 0: any"},
      {.name = "valid-batches", .quick = "4",       .paper = "8",        .help = "batches of a validation", .small = "8"},
      {.name = "records",       .quick = "20",      .paper = "100",      .help = "points of a curve at least, 2 to --steps", .small = "40"},
      {.name = "shadow-every",  .quick = "30",      .paper = "2000",
       .help = "steps between comparisons of gradients with float64, from the first on; 0: none", .small = "100"},
      {.name = "shadow-seeds",  .quick = "1",       .paper = "1",        .help = "seeds whose gradients are compared"},
      // clang-format on
  };
}

std::vector<Option> Options() {
  std::vector<Option> options = ModelOptions();
  for (Option& option : TrainingOptions()) options.push_back(std::move(option));
  return options;
}

std::vector<Column> With(std::vector<Column> columns, const std::vector<Column>& more) {
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

// What names a training but for its seed.
const std::vector<Column>& Keys() {
  static const std::vector<Column> keys = {
      {"model", "clip or llama"},
      {"size", "layers x width"},
      {"tokens",
       "batch x sequence: rows of the blocks' weight gradients in a step (clip: tower of images)"},
      {"kind", "of all linear layers"},
      {"format", "of X and W where they are quantised"},
      {"gradient_format", "of G where it is"}};
  return keys;
}

std::vector<TableSpec> MeasuredTables() {
  const Column seed{"seed", "of weights and batches"};
  return {
      {.name = std::string(kCurvesTable),
       .columns = With(Keys(),
                       {seed,
                        {"step", "steps taken"},
                        {"loss",
                         "mean training loss since the last record, nats (llama: a byte); at step "
                         "0 the validation loss"}})},
      {.name = std::string(kGradientsTable),
       .columns = With(
           Keys(),
           {seed,
            {"step", "steps taken before the one that was compared"},
            {"layer", "linear layer"},
            {"inner", "inner dimension of its weight gradient"},
            {"error", "of its weight gradient: ||dW - shadow|| / ||shadow||, Frobenius"},
            {"own_error", "the same against the gradient with that product's operands in fp32"},
            {"cosine", "of dW and the shadow"}})},
      {.name = std::string(kFinalTable),
       .columns = With(Keys(),
                       {seed,
                        {"parameters", "of the model"},
                        {"status", "finished or diverged"},
                        {"steps", "steps taken"},
                        {"start_loss", "validation loss before training, nats"},
                        {"train_loss", "mean of the last 10 steps"},
                        {"valid_loss", "at the end; inf when diverged"},
                        {"zero_shot",
                         "clip: share of validation images whose nearest caption is of their "
                         "concept; nan when diverged"}})},
  };
}

std::vector<TableSpec> TableSpecs() {
  std::vector<TableSpec> tables = MeasuredTables();
  tables.push_back(
      {.name = std::string(kGapsTable),
       .derived = true,
       .columns = With(Keys(),
                       {{"parameters", "of the model"},
                        {"seeds", ""},
                        {"diverged", "seeds that diverged"},
                        {"valid_loss", "mean over seeds, nats"},
                        {"valid_loss_low", "95 % interval (Student's t); nan for one seed"},
                        {"valid_loss_high", ""},
                        {"gap", "valid_loss minus that of standard, paired by seed"},
                        {"gap_low", "95 % interval"},
                        {"gap_high", ""},
                        {"gap_share", "gap over what standard gained since the start"},
                        {"zero_shot", "mean over seeds"},
                        {"zero_shot_gap", "zero_shot minus that of standard, paired by seed"},
                        {"zero_shot_gap_low", "95 % interval"},
                        {"zero_shot_gap_high", ""},
                        {"verdict",
                         "diverged: a seed did; behind: gap_low is above 0; within noise: it is "
                         "not; none: standard did not learn, or there is one seed"}})});
  tables.push_back(
      {.name = std::string(kErrorsTable),
       .derived = true,
       .columns = With(
           Keys(),
           {{"n",
             "gradients: layers, steps and seeds; those that are zero or not finite are left out"},
            {"error", "mean over them"},
            {"own_error", "mean over them"},
            {"cosine", "mean over them"}})});
  return tables;
}

}  // namespace
}  // namespace switchback_accuracy

Experiment SwitchbackAccuracy() {
  using namespace switchback_accuracy;
  Experiment experiment;
  experiment.name = "switchback-accuracy";
  experiment.title = "training with 8-bit linear layers against 16 bits";
  experiment.reproduces = "Figures 1 and 9, section 2.2 and appendix D of [SwitchBack]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {{"quick", 3}, {"small", 5}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.summarise = Summarise;
  return experiment;
}

}  // namespace numsim::experiments
