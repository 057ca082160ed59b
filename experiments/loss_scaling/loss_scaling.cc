// Definition of the experiment `loss-scaling`: options, arms, tables.
#include "experiments/loss_scaling/loss_scaling.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/shared/block_name.h"
#include "experiments/shared/paper_training.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/optim/loss_scaler.h"

namespace numsim::experiments {
namespace loss_scaling {
namespace {

constexpr std::string_view kDescription =
    "Trains CLIP in fp16 mixed precision: operands of the GEMMs, activations and gradients between\n"
    "operations are fp16, weights and moments are float32. Gradients are multiplied by a loss scale so that\n"
    "small ones do not become zero; large ones become infinite. Two scalers:\n"
    "  dynamic  PyTorch's GradScaler: a NaN or infinity anywhere skips the step of the whole network and\n"
    "           halves the scale, which doubles again after 2000 steps in a row without one\n"
    "  tensor   the paper's: the scale stays at its initial value, and a tensor whose gradient is not\n"
    "           finite is skipped alone\n"
    "fp32 is the training without either. Events: `natural` is whatever overflows at each of --scales;\n"
    "`burst` makes the gradient of --burst-tensor infinite in --burst-steps steps, at the first scale.\n"
    "recovery.csv has the number of steps until the dynamic scale is back after a burst, without a\n"
    "training.";

std::vector<Option> Options() {
  return {
      // clang-format off
      {.name = "scales",        .quick = "65536,1048576", .paper = "65536", .help = "initial loss scales, separated by commas"},
      {.name = "burst-tensor",  .quick = "image.patches.weight", .paper = "image.patches.weight", .help = "parameter whose gradient becomes infinite in a burst"},
      {.name = "burst-step",    .quick = "200",     .paper = "10000",   .help = "first step of the burst", .part_of = "steps"},
      {.name = "burst-steps",   .quick = "5",       .paper = "5",       .help = "steps of the burst"},
      {.name = "layers",        .quick = "2",       .paper = "32",      .help = "blocks of each tower"},
      {.name = "width",         .quick = "32",      .paper = "1280",    .help = "width of each tower"},
      {.name = "heads",         .quick = "1",       .paper = "16",      .help = "attention heads; must divide the width"},
      {.name = "batch",         .quick = "32",      .paper = "16384",   .help = "images per step"},
      {.name = "steps",         .quick = "400",     .paper = "20000",   .help = "training steps, 10 or more", .small = "1000"},
      {.name = "lr",            .quick = "4e-3",    .paper = "2e-3",    .help = "peak learning rate"},
      {.name = "warmup",        .quick = "100",     .paper = "5000",    .help = "steps of linear warm-up", .small = "250", .part_of = "steps"},
      {.name = "final-lr",      .quick = "0",       .paper = "0",       .help = "learning rate at the end, over the peak: 0 to 1"},
      {.name = "optimizer",     .quick = "adamw",   .paper = "adamw",   .help = "optimiser: adamw, stable-adamw or another of numsim train"},
      {.name = "epsilon",       .quick = "1e-6",    .paper = "1e-6",    .help = "epsilon of the optimiser"},
      {.name = "beta2",         .quick = "0.99",    .paper = "0.99",    .help = "decay of the second moment"},
      {.name = "weight-decay",  .quick = "0.2",     .paper = "0.2",     .help = "weight decay of matrices"},
      {.name = "patch-dropout", .quick = "0.5",     .paper = "0.5",     .help = "share of the patches that a training step leaves out, 0 to below 1"},
      {.name = "patch",         .quick = "4",       .paper = "8",       .help = "width and height of a patch in pixels"},
      {.name = "captions",      .quick = "",        .paper = "",        .help = "folder of images .npy and captions.txt; empty: generated shapes"},
      {.name = "shapes",        .quick = "4096",    .paper = "262144",  .help = "number of generated images, a tenth of them for validation"},
      {.name = "image",         .quick = "16",      .paper = "64",      .help = "width and height of generated images in pixels, 16 to 64"},
      {.name = "window",        .quick = "64",      .paper = "128",     .help = "losses over which the running mean and deviation run"},
      {.name = "valid-batches", .quick = "64",      .paper = "64",      .help = "largest number of batches per validation"},
      // clang-format on
      KeysOption(),
  };
}

std::vector<TableSpec> TableSpecs() {
  const std::vector<Column> arm = {{"scaler", "fp32: no fp16 and no scaler; dynamic; tensor"},
                                   {"scale", "initial loss scale"},
                                   {"event", "natural or burst"}};
  const std::vector<Column> run = Joined(arm, {{"seed", "seed of weights and batches"}});
  return {
      {.name = std::string(kRunsTable),
       .columns = Joined(
           run,
           {{"parameters", "parameters of the model"},
            {"status", "finished or diverged"},
            {"steps", "steps, skipped ones included"},
            {"start_loss", "validation loss before training, nats"},
            {"valid_loss", "validation loss at the end; inf when diverged"},
            {"accuracy", "zero-shot accuracy on held-out captions, 0 to 1"},
            {"steps_skipped", "steps in which no tensor was updated"},
            {"updates_skipped", "share of all updates of tensors that were skipped, 0 to 1"},
            {"early",
             "share of those of blocks and of what is before them that are before block 1; nan: none"},
            {"burst_skipped",
             "share of the updates skipped in the steps of the burst; nan: no burst"},
            {"scale_min", "smallest loss scale"},
            {"scale_end", "loss scale of the last step"},
            {"recovery",
             "steps from the scale's first fall until it is back; inf: not in this run"},
            {"loss_spikes", "number of loss spikes after the warm-up"},
            {"with_gradient", "of these: with a spike of the gradient norm at most 2 steps away"},
            {"near_gradient",
             "share of all steps that are as near to one: with_gradient by chance"},
            {"with_activation", "loss spikes with a spike of the largest activation as near"},
            {"near_activation", "share of all steps that are as near to one"}})},
      {.name = std::string(kTensorsTable),
       .columns = Joined(run,
                         {{"tensor", "parameter with skipped updates"},
                          {"early", "1 if it is before the first block or in block 0"},
                          {"skipped", "steps in which it was not updated"}})},
      {.name = std::string(kScaleTable),
       .columns = Joined(run,
                         {{"step", "steps before this one; first seed alone"},
                          {"loss_scale", "scale of this step"},
                          {"loss", "loss of the batch"}})},
      {.name = std::string(kArmsTable),
       .derived = true,
       .columns = Joined(arm,
                         {{"seeds", "number of seeds"},
                          {"diverged", "number of seeds that diverged"},
                          {"valid_loss", "mean over the seeds that finished"},
                          {"valid_loss_low", "95 % interval of the mean (Student's t)"},
                          {"valid_loss_high", "95 % interval"},
                          {"steps_skipped", "mean per run"},
                          {"updates_skipped", "mean share"}})},
      {.name = std::string(kRecoveryTable),
       .derived = true,
       .columns = {{"burst", "steps in a row with gradients that are not finite"},
                   {"steps", "steps after them until PyTorch's default scale is back"}}},
  };
}

std::vector<PaperSetting> PaperSettings() {
  const std::vector<PaperSetting> others = {
      {"",
       "Overflow that happens by itself in CLIP ViT-Huge",
       "Appendix G",
       "Here it is brought about by a larger loss scale, or planted."},
      {"",
       "PyTorch's scaler skips a step whose loss is not finite",
       "PyTorch",
       "Here such a loss ends the training, as diverged."},
      {"",
       "The first 1000 iterations are ignored when spikes are counted, over an unstated window",
       "Appendix E",
       "Here it is the whole warm-up, and --window says over how many losses mean and deviation run."},
  };
  return PaperTraining(Paper::kSwitchBack, Options(), others);
}

}  // namespace

Arm ArmOf(const Frame& row) { return {row.Text("scaler"), row.Text("scale"), row.Text("event")}; }

Arm ArmOf(const Trial& trial) {
  const auto at = [&](const char* name) { return trial.parameters.at(name); };
  return {at("scaler"), at("scale"), at("event")};
}

bool IsLate(std::string_view parameter) {
  const std::optional<BlockName> name = ParseBlockName(parameter);
  return name && name->block > 0;
}

bool IsEarly(std::string_view parameter) {
  if (ParseBlockName(parameter)) return !IsLate(parameter);
  return parameter.find("patches") != parameter.npos ||
         parameter.find("embedding") != parameter.npos ||
         parameter.find("positions") != parameter.npos ||
         parameter.find("pre_norm") != parameter.npos ||
         parameter.find("class_token") != parameter.npos;
}

SpikeRule RuleOf(const Settings& settings) {
  SpikeRule rule;
  rule.window = static_cast<size_t>(settings.GetInteger("window", 2, 1 << 20));
  rule.ignored = static_cast<uint64_t>(settings.GetInteger("warmup", 0, kMostSteps));
  CheckSpikeRule(rule);
  return rule;
}

std::vector<Arm> ArmsOf(const Settings& settings) {
  const std::vector<std::string> scales = settings.GetList("scales");
  CheckDistinct("scales", scales);
  std::vector<Arm> arms = {{std::string(kFp32), "1", std::string(kNatural)}};
  for (const std::string& scale : scales) {
    for (const std::string_view scaler : {kDynamic, kTensor}) {
      arms.push_back({std::string(scaler), scale, std::string(kNatural)});
    }
  }
  for (const std::string_view scaler : {kDynamic, kTensor}) {
    arms.push_back({std::string(scaler), scales.front(), std::string(kBurst)});
  }
  return arms;
}

TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  TrainConfig config;
  config.model.kind = ModelKind::kClip;
  ReadTraining(settings, seed, config);
  ReadCaptions(settings, config.data);
  ReadPatchDropout(settings, config.model);
  config.model.patch = static_cast<size_t>(settings.GetInteger("patch", 1, 1 << 16));
  const bool fp16 = arm.scaler != kFp32;
  config.linear.all.high_precision = fp16 ? "fp16" : "fp32";
  config.storage.activations = config.storage.gradients = ParseFormat(fp16 ? "fp16" : "fp32");
  if (fp16) {
    config.loss_scaler.kind = ParseLossScaling(arm.scaler);
    Settings single = settings;
    single.options["scales"] = arm.scale;
    config.loss_scaler.initial = single.GetDouble("scales", 1e-30, 1e30);
  }
  if (arm.event == kBurst) {
    config.stress.burst_tensor = settings.Get("burst-tensor");
    config.stress.burst_step = static_cast<uint64_t>(settings.GetInteger("burst-step", 0, 1 << 30));
    config.stress.burst_steps =
        static_cast<uint64_t>(settings.GetInteger("burst-steps", 1, 1 << 30));
  }
  config.train.diverged_above = 0;
  config.telemetry.tensors_every = 1;
  return config;
}

std::vector<Trial> Trials(const Settings& settings) {
  const int64_t steps = settings.GetInteger("steps", 10, kMostSteps);
  const int64_t burst = settings.GetInteger("burst-step", 0, 1 << 30);
  if (burst + settings.GetInteger("burst-steps", 1, 1 << 30) > steps) {
    throw Error::Format(
        "--burst-step {}: the burst ends after the {} steps of a training", burst, steps);
  }
  RuleOf(settings);
  std::vector<Trial> trials;
  for (const Arm& arm : ArmsOf(settings)) {
    const TrainConfig config = ConfigOf(settings, arm, settings.seed);
    CheckTrainings(settings,
                   {&config, 1},
                   {{"loss_scaler.initial", "scales"}, {"stress.burst_tensor", "burst-tensor"}});
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back(
          {.label = fmt::format("{} seed={}", arm.Text(), seed),
           .seed = seed,
           .parameters = {{"scaler", arm.scaler}, {"scale", arm.scale}, {"event", arm.event}}});
    }
  }
  return trials;
}

namespace {

std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  return {{{arm.scaler, arm.scale, arm.event, trial.seed}, ConfigOf(settings, arm, trial.seed)}};
}

}  // namespace
}  // namespace loss_scaling

Experiment LossScaling() {
  using namespace loss_scaling;
  Experiment experiment;
  experiment.name = "loss-scaling";
  experiment.title = "fp16 training under PyTorch's and the tensor-level loss scaler";
  experiment.reproduces = "Figure 21, Appendix G of [SwitchBack]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {{"quick", 4, 120}, {"small", 10, 600}, {"paper", 1}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.rows = {.table = std::string(kRunsTable),
                     .key = {"scaler", "scale", "event", "seed"},
                     .texts = {"tensor"},
                     .trainings = TrainingsOf};
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = TrainingScaleText;
  return experiment;
}

}  // namespace numsim::experiments
