// Definition of the experiment `switchback-accuracy`: options and tables.
#include "experiments/switchback_accuracy/switchback_accuracy.h"

#include <utility>

#include "experiments/runner/training_of_row.h"
#include "experiments/shared/paper_training.h"

namespace numsim::experiments {
namespace switchback_accuracy {
namespace {

constexpr std::string_view kDescription =
    "Trains models that differ only in their linear layers: for a seed, all start from the same\n"
    "weights and see the same batches. A variant is KIND[:FORMAT[/GRADIENT_FORMAT]][+all];\n"
    "`standard` computes all three GEMMs with bf16 operands and is the 16-bit baseline of all\n"
    "others.\n"
    "  switchback         weight gradient in 16 bits, the two other GEMMs in 8\n"
    "  switchback-m       switchback with dW from X as quantised for the forward GEMM\n"
    "  switchback-q       switchback with W scaled by rows and by columns\n"
    "  llm-int8           switchback-q with the weight gradient also in 8 bits\n"
    "  llm-int8-tensor-w  switchback with the weight gradient also in 8 bits\n"
    "  tensor-wise        everything in 8 bits, one scale per tensor\n"
    "Layers of the transformer's blocks alone are quantised, as in the paper; +all also quantises\n"
    "patches, projections and head. That is a confounded setting: a head in 8 bits changes the\n"
    "gradients of all layers below it.\n"
    "docs/linear.md lists more kinds. e4m3fn and e5m2 are the formats of OCP; bnb-e4m3 and\n"
    "bnb-e5m2 are the grids of bitsandbytes, and so of the paper's simulation.\n"
    "Models: clip, on images with captions, and llama, on bytes of text. The paper's claim is\n"
    "about the weight gradient's inner dimension, batch x sequence: --batches-clip and\n"
    "--batches-llama vary it, and the column `tokens` gives it (for CLIP, that of the image\n"
    "tower, with all patches and a class token). As in the paper, half of the patches are dropped\n"
    "in training (--patch-dropout) and the optimiser is StableAdamW.\n"
    "The gap of a variant is its validation loss minus that of `standard`, paired by seed, with\n"
    "Student's 95 % interval. Losses of CLIP are over batches of the training's size, so they are\n"
    "comparable only for the same number of tokens.\n"
    "For gradients.csv, at --shadow-steps steps after the warm-up the step is repeated three times\n"
    "from the same weights: in float64, which is the reference run of `error`; as trained; and with\n"
    "only the operands of the weight gradient in fp32, so that `own_error` shows the error that\n"
    "this one GEMM adds.";

constexpr const char* kQuickVariants =
    "switchback:int8,llm-int8:int8,tensor-wise:int8,switchback:e4m3fn/e5m2,"
    "tensor-wise:e4m3fn/e5m2";
constexpr const char* kVariants =
    "switchback:int8,switchback-m:int8,switchback-q:int8,llm-int8:int8,llm-int8-tensor-w:int8,"
    "tensor-wise:int8,switchback:int8+all,llm-int8:int8+all,switchback:e4m3fn,"
    "switchback:e4m3fn/e5m2,llm-int8:e4m3fn,tensor-wise:e4m3fn/e5m2,"
    "switchback:bnb-e4m3/bnb-e5m2,tensor-wise:bnb-e4m3/bnb-e5m2";

std::vector<Option> ModelOptions() {
  return {
      // clang-format off
      {.name = "models",          .quick = "clip,llama",   .paper = "clip,llama",     .help = "models to train, separated by commas: clip, llama"},
      {.name = "variants",        .quick = kQuickVariants, .paper = kVariants,        .help = "linear layers KIND[:FORMAT[/GRADIENT_FORMAT]][+all], separated by commas; standard is always included",
       .small = kVariants},
      {.name = "sizes-clip",      .quick = "2x64",         .paper = "12x768,24x1024,32x1280", .help = "sizes LAYERSxWIDTH of each tower of clip, separated by commas",
       .small = "2x64,4x128"},
      {.name = "sizes-llama",     .quick = "2x64",         .paper = "12x768,24x1024", .help = "sizes LAYERSxWIDTH of llama, separated by commas", .small = "2x64,4x128"},
      {.name = "batches-clip",    .quick = "64",           .paper = "256,4096",       .help = "images per step, separated by commas", .small = "32,256"},
      {.name = "batches-llama",   .quick = "32,256",       .paper = "256,2048",       .help = "sequences per step, separated by commas", .small = "32,256"},
      {.name = "patch",           .quick = "4",            .paper = "4",              .help = "width and height of a patch in pixels; must divide the image"},
      {.name = "context",         .quick = "64",           .paper = "256",            .help = "llama: bytes per sequence", .small = "64"},
      // clang-format on
  };
}

std::vector<Option> TrainingOptions() {
  return {
      // clang-format off
      {.name = "captions",      .quick = "",        .paper = "",         .help = "folder of images .npy and captions.txt; empty: generated shapes"},
      {.name = "shapes-size",   .quick = "8192",    .paper = "131072",   .help = "number of generated images, a tenth of them for validation", .small = "16384"},
      {.name = "image",         .quick = "32",      .paper = "64",       .help = "width and height of generated images in pixels, 16 to 64"},
      {.name = "text",          .quick = "",        .paper = "",
       .help = "UTF-8 file to train on; its last tenth is for validation; empty: generated text"},
      {.name = "text-size",     .quick = "1048576", .paper = "67108864", .help = "bytes of generated text", .small = "4194304"},
      {.name = "steps",         .quick = "40",      .paper = "20000",    .help = "training steps, 10 or more", .small = "400"},
      {.name = "lr-clip",       .quick = "1e-3",    .paper = "2e-3",     .help = "peak learning rate of clip", .small = "1e-3"},
      {.name = "lr-llama",      .quick = "3e-3",    .paper = "1e-3",     .help = "peak learning rate of llama", .small = "5e-3"},
      {.name = "warmup",        .quick = "6",       .paper = "5000",     .help = "steps of linear warm-up", .small = "40", .part_of = "steps"},
      {.name = "final-lr",      .quick = "0",       .paper = "0",        .help = "learning rate at the end, over the peak: 0 to 1", .before = "0.1"},
      {.name = "optimizer",     .quick = "stable-adamw", .paper = "stable-adamw", .help = "optimiser: stable-adamw, adamw or another of numsim train", .before = "adamw"},
      {.name = "epsilon",       .quick = "1e-6",    .paper = "1e-6",     .help = "epsilon of the optimiser", .before = "1e-8"},
      {.name = "beta2",         .quick = "0.99",    .paper = "0.99",     .help = "decay of the optimiser's v"},
      {.name = "weight-decay",  .quick = "0.1",     .paper = "0.2",      .help = "weight decay of matrices"},
      {.name = "clip",          .quick = "0",       .paper = "0",        .help = "largest norm of gradients; 0 disables clipping"},
      {.name = "patch-dropout", .quick = "0.5",     .paper = "0.5",      .help = "clip: share of the patches that a training step leaves out, 0 to below 1", .before = "0"},
      {.name = "storage",       .quick = "bf16",    .paper = "bf16",     .help = "format of activations and gradients between operations; fp32: not rounded", .before = "fp32"},
      {.name = "valid-batches", .quick = "4",       .paper = "8",        .help = "batches per validation", .small = "8"},
      {.name = "records",       .quick = "20",      .paper = "100",      .help = "minimum number of points per curve, 2 to --steps", .small = "40", .at_most = "steps"},
      {.name = "shadow-steps",  .quick = "1",       .paper = "3",
       .help = "number of steps, evenly spread after the warm-up, whose gradients are compared with a float64 reference run", .small = "3", .at_most = "steps"},
      {.name = "shadow-seeds",  .quick = "3",       .paper = "3",        .help = "number of seeds whose gradients are compared"},
      // clang-format on
  };
}

std::vector<Option> Options() {
  std::vector<Option> options = ModelOptions();
  for (Option& option : TrainingOptions()) options.push_back(std::move(option));
  options.push_back(KeysOption());
  return options;
}

// The columns that identify a training except for its seed.
const std::vector<Column>& Keys() {
  static const std::vector<Column> keys = {
      {"model", "clip or llama"},
      {"size", "layers x width"},
      {"tokens",
       "batch x sequence: inner dimension of the blocks' weight gradients (clip: image tower)"},
      {"kind", "kind of the linear layers"},
      {"format", "format of X and W where they are quantised"},
      {"gradient_format", "format of G where it is quantised"},
      {"layers",
       "blocks: only those of transformer blocks are of this kind; all: patches, projections and "
       "head as well"}};
  return keys;
}

std::vector<TableSpec> MeasuredTables() {
  const Column seed{"seed", "seed of weights and batches"};
  return {
      {.name = std::string(kCurvesTable),
       .columns = Joined(Keys(),
                         {seed,
                          {"step", "steps taken"},
                          {"loss",
                           "mean training loss since the last record, nats (llama: per byte); at "
                           "step 0 the validation loss"}})},
      {.name = std::string(kGradientsTable),
       .columns = Joined(
           Keys(),
           {seed,
            {"step", "steps taken before the one that was compared"},
            {"layer", "linear layer"},
            {"inner", "inner dimension of its weight gradient"},
            {"error",
             "relative error (Frobenius) of its weight gradient dW against the float64 reference "
             "run"},
            {"own_error",
             "relative error of dW against the dW of a run with only that GEMM's operands in fp32"},
            {"cosine", "cosine between dW and the float64 reference run"}})},
      {.name = std::string(kFinalTable),
       .columns = Joined(Keys(),
                         {seed,
                          {"parameters", "number of parameters of the model"},
                          {"status", "finished or diverged"},
                          {"steps", "steps taken"},
                          {"start_loss", "validation loss before training, nats"},
                          {"train_loss", "mean training loss of the last 10 steps"},
                          {"valid_loss", "validation loss at the end; inf when diverged"},
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
       .columns = Joined(
           Keys(),
           {{"parameters", "number of parameters of the model"},
            {"seeds", "number of seeds"},
            {"diverged", "number of seeds that diverged"},
            {"valid_loss", "mean over seeds, nats"},
            {"valid_loss_low", "95 % interval of valid_loss (Student's t); nan for one seed"},
            {"valid_loss_high", "95 % interval of valid_loss"},
            {"gap", "valid_loss minus that of standard, paired by seed"},
            {"gap_low", "95 % interval of gap"},
            {"gap_high", "95 % interval of gap"},
            {"gap_share", "gap over the loss that standard gained since the start"},
            {"zero_shot", "mean over seeds"},
            {"zero_shot_gap", "zero_shot minus that of standard, paired by seed"},
            {"zero_shot_gap_low", "95 % interval of zero_shot_gap"},
            {"zero_shot_gap_high", "95 % interval of zero_shot_gap"}})});
  tables.push_back(
      {.name = std::string(kErrorsTable),
       .derived = true,
       .columns = Joined(
           Keys(),
           {{"n",
             "number of gradients (layers, steps and seeds), without those that are zero or not "
             "finite"},
            {"error", "mean over these gradients"},
            {"own_error", "mean over these gradients"},
            {"cosine", "mean over these gradients"}})});
  return tables;
}

std::vector<PaperSetting> PaperSettings() {
  const std::string code = "the authors' code, bitsandbytes";
  const std::vector<PaperSetting> others = {
      {"weight-decay", "0.2", "Section 2.2.2", "Small models are regularised less."},
      {"clip",
       "0",
       "Section 3.2",
       "Clipping of gradients takes the place of the update clipping of StableAdamW."},
      {"",
       "The paper's fp8 values are those of bitsandbytes, and their products are float16",
       "Section 2.3",
       "Here the values are those of the format named, OCP's for e4m3fn and e5m2, and sums are "
       "float32."},
      {"",
       "The paper rounds fp8 gradients to E5M2",
       code,
       "switchback:e4m3fn rounds them to E4M3; switchback:e4m3fn/e5m2 is the paper's."},
  };
  return PaperTraining(Paper::kSwitchBack, Options(), others);
}

// Returns "clip 2x64, llama 2x64,4x128, 400 steps".
std::string Scale(const Settings& settings, const Tables&) {
  std::string text;
  for (const std::string& model : settings.GetList("models")) {
    text += model + " " + settings.Get("sizes-" + model) + ", ";
  }
  return text + settings.Get("steps") + " steps";
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
  experiment.presets = {{"quick", 3, 260}, {"small", 5}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.rows = {
      .table = std::string(kFinalTable),
      .key = {"model", "size", "tokens", "kind", "format", "gradient_format", "layers", "seed"},
      .texts = {"layer"},
      .trainings = TrainingsOf};
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = Scale;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
