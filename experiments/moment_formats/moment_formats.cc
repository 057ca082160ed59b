// Definition of the experiment `moment-formats`: options, tables, trials.
#include "experiments/moment_formats/moment_formats.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/shared/paper_training.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/moments/moment_format.h"

namespace numsim::experiments {
namespace moment_formats {
namespace {

constexpr std::string_view kDescription =
    "Trains a small Llama with AdamW whose moments m and v are really stored in the given\n"
    "formats: as codes and scales, which are read back before the next step. Everything else is\n"
    "float32, so that only the moments differ: for a seed, all pairs start from the same weights\n"
    "and see the same batches. Measured are a grid of formats for m and for v under each of\n"
    "--scalings, then the single --pairs. Scalings:\n"
    "  none      a cast that saturates\n"
    "  tensor    scales the absmax of the tensor to the largest value of the format (the paper)\n"
    "  block:N   does so for each block of N consecutive elements\n"
    "  coat:N    COAT's dynamic range expansion in blocks, for formats of up to 8 bits\n"
    "  dynamic   bitsandbytes' 8-bit map, in blocks of 256 (a format and scaling in one)\n"
    "fp32 is never scaled. Moments of vectors (norms) stay in fp32, as in the authors' code.\n"
    "Each pair is trained at every --epsilon, --update-from and --lr, and judged at its best lr.\n"
    "The gap of a pair is its validation loss minus that of fp32 at the same epsilon.\n"
    "flushed.csv shows the mechanism: the share of nonzero elements that are stored as zero. The\n"
    "next v of such an element is (1 - beta2) g^2, so its step is m over a small multiple of |g|,\n"
    "however small |g| is compared with m; from stored moments (--update-from) the step is m over\n"
    "epsilon. phases.csv compares the epsilon below which that fails with its prediction from the\n"
    "fp32 run (docs/moments.md).\n"
    "memory.csv lists the bytes per parameter as stored, and the memory of a model of --billions\n"
    "parameters, with optimiser states and master weights spread over 1 to 8 devices.";

constexpr const char* kPairsQuick = "e4m3fn@block:128/e4m3fn@block:128";
constexpr const char* kPairsSmall =
    "e4m3@tensor/e5m2@tensor,e4m3fn@tensor/fp16@tensor,"
    "e4m3fn@none/e5m2@none,e5m2@none/e5m2@none,bf16/bf16,fp16/fp16,"
    "e4m3fn@block:128/e4m3fn@block:128,e4m3fn@block:128/e5m2@block:128,"
    "e4m3fn@coat:128/e4m3fn@coat:128,e4m3fn@coat:128/e5m2@coat:128,"
    "e4m3fn@tensor+sr/e5m2@tensor+sr,e4m3fn@tensor+sr/e4m3fn@tensor+sr";

std::vector<Option> Options() {
  return {
      // clang-format off
      {.name = "m",             .quick = "fp32,e4m3fn,e5m2", .paper = "fp32,bf16,fp16,e4m3fn,e4m3,e5m2,dynamic",
       .help = "formats of the first moment in the grid, separated by commas", .small = "fp32,e4m3fn,e5m2", .others = {{"100m", "fp32,e4m3fn,e5m2"}}},
      {.name = "v",             .quick = "fp32,e4m3fn,e5m2", .paper = "fp32,bf16,fp16,e4m3fn,e4m3,e5m2,dynamic",
       .help = "formats of the second moment in the grid, separated by commas", .small = "fp32,e4m3fn,e5m2", .demo = "e4m3fn,e5m2", .others = {{"100m", "e4m3fn,e5m2"}}},
      {.name = "scalings",      .quick = "tensor",    .paper = "none,tensor,block:128,coat:128", .help = "scalings of the grid, separated by commas: none, tensor, block:N, coat:N", .others = {{"100m", "tensor"}}},
      {.name = "pairs",         .quick = kPairsQuick, .paper = "none",     .help = "further pairs M/V, separated by commas, e.g. e4m3fn@block:128/e5m2@tensor+sr; or none",
       .small = kPairsSmall, .demo = "none", .others = {{"100m", kPairsQuick}}},
      {.name = "text",          .quick = "",          .paper = "",
       .help = "UTF-8 file to train on; its last tenth is for validation; empty: generated text"},
      {.name = "text-size",     .quick = "1048576",   .paper = "67108864", .help = "bytes of generated text", .small = "4194304"},
      {.name = "layers",        .quick = "2",         .paper = "12",       .help = "blocks of the model, 1 to 128", .small = "4"},
      {.name = "width",         .quick = "64",        .paper = "768",      .help = "width of the model", .small = "128"},
      {.name = "heads",         .quick = "2",         .paper = "12",       .help = "attention heads; must divide the width", .small = "4"},
      {.name = "context",       .quick = "64",        .paper = "2048",     .help = "bytes per sequence", .small = "128", .others = {{"100m", "1024"}}},
      {.name = "batch",         .quick = "8",         .paper = "128",      .help = "sequences per step", .small = "16", .others = {{"100m", "64"}}},
      {.name = "steps",         .quick = "300",       .paper = "20000",    .help = "training steps, 10 or more", .small = "600", .others = {{"100m", "1000"}}},
      {.name = "vocabulary",    .quick = "256",       .paper = "256",
       .help = "256: text, one token per byte; 2 to 65536: that many tokens with Zipf frequencies, or with --text entries of its tokenizer", .before = "256"},
      {.name = "lr",            .quick = "3e-3",      .paper = "3e-4",
       .help = "peak learning rates, separated by commas; each pair is judged at its best", .small = "2e-3", .others = {{"100m", "6e-4"}}},
      {.name = "warmup",        .quick = "30",        .paper = "2000",     .help = "steps of linear warm-up", .small = "60", .others = {{"100m", "100"}}, .part_of = "steps"},
      {.name = "epsilon",       .quick = "1e-8,1e-5", .paper = "1e-8,1e-6,1e-5",
       .help = "epsilons of AdamW, separated by commas; Llama 2 has 1e-5", .others = {{"100m", "1e-5"}}},
      {.name = "beta1",         .quick = "0.9",       .paper = "0.9",      .help = "decay of m"},
      {.name = "beta2",         .quick = "0.95",      .paper = "0.95",     .help = "decay of v"},
      {.name = "weight-decay",  .quick = "0.1",       .paper = "0.1",      .help = "weight decay of matrices"},
      {.name = "clip",          .quick = "1",         .paper = "1",        .help = "largest norm of gradients; 0 disables clipping"},
      {.name = "update-from",   .quick = "fresh,stored", .paper = "fresh,stored",
       .help = "moments from which updates are computed, separated by commas: fresh, or stored (as read back from storage)", .small = "fresh", .demo = "fresh", .others = {{"100m", "fresh"}}},
      {.name = "records",       .quick = "30",        .paper = "100",      .help = "minimum number of points per curve, 2 to --steps", .at_most = "steps"},
      {.name = "valid-batches", .quick = "16",        .paper = "16",       .help = "batches per validation"},
      {.name = "billions",      .quick = "6.74",      .paper = "6.74",     .help = "parameters of the model in memory.csv, in 10^9"},
      // clang-format on
      KeysOption(),
  };
}

std::vector<TableSpec> TableSpecs() {
  const Column m{"m", "storage of the first moment"}, v{"v", "storage of the second moment"};
  const Column epsilon{"epsilon", "epsilon of AdamW"};
  const Column from{"update_from", "fresh or stored; of fp32 moments the first of --update-from"};
  const Column lr{"lr", "peak learning rate"};
  const std::vector<Column> arm = {m, v, epsilon, from, lr};
  const std::vector<Column> training = Joined(arm, {{"seed", "seed of weights and batches"}});
  return {
      {.name = std::string(kCurvesTable),
       .columns =
           Joined(training,
                  {{"step", "steps taken"},
                   {"loss",
                    "mean training loss since the last record, nats per token; at step 0 the "
                    "validation loss"}})},
      {.name = std::string(kFlushedTable),
       .columns = Joined(
           training,
           {{"step", "steps taken"},
            {"m_flushed",
             "share of nonzero elements of m that are stored as zero; mean over matrices, "
             "weighted by their sizes"},
            {"v_flushed", "share of nonzero elements of v that are stored as zero, as for m"},
            {"m_error", "relative error of the stored m, root mean square over tensors"},
            {"v_error", "relative error of the stored v, root mean square over tensors"},
            {"update_max", "largest magnitude in the direction of a step"}})},
      {.name = std::string(kFinalTable),
       .columns = Joined(training,
                         {{"status", "finished or diverged"},
                          {"steps", "steps taken"},
                          {"start_loss", "validation loss before training, nats per token"},
                          {"train_loss", "mean training loss of the last 10 steps"},
                          {"valid_loss", "validation loss at the end; inf when diverged"},
                          {"entropy_bound", "known lower bound of the loss; nan: none is known"},
                          {"m_bytes", "bytes per parameter that m takes, over the whole model"},
                          {"v_bytes", "bytes per parameter that v takes, over the whole model"}})},
      {.name = std::string(kSpreadTable),
       .columns =
           Joined(training,
                  {{"step",
                    "steps taken at the record with the largest step_lr sqrt_v_max / weight_rms; "
                    "trainings with fp32 moments only"},
                   {"step_lr", "learning rate of that step"},
                   {"tensor", "name of the matrix"},
                   {"role", "matrix or embedding"},
                   {"sqrt_v_max", "square root of the largest second moment"},
                   {"weight_rms", "root mean square of the weights"}})},
      {.name = std::string(kPhasesTable),
       .derived = true,
       .columns = Joined(
           arm,
           {{"seeds", "number of seeds"},
            {"diverged", "number of seeds that diverged"},
            {"gap", "valid_loss minus that of fp32 at the same epsilon and rate"},
            {"gap_low",
             "95 % interval of gap, by the residual pooled over the arms at that epsilon, update "
             "and rate"},
            {"gap_high", "95 % interval of gap"},
            {"predicted_epsilon",
             "epsilon below which a v with one scale per tensor fails, from the fp32 run; "
             "nan: no prediction"}})},
      {.name = std::string(kPairsTable),
       .derived = true,
       .columns =
           {m,
            v,
            epsilon,
            from,
            {"lr", "best peak learning rate: of the least mean valid_loss"},
            {"seeds", "number of seeds"},
            {"diverged", "number of seeds that diverged"},
            {"valid_loss", "mean over seeds, nats per token"},
            {"valid_loss_low", "95 % interval of valid_loss (Student's t); nan for one seed"},
            {"valid_loss_high", "95 % interval of valid_loss"},
            {"gap", "valid_loss minus that of fp32 at its best rate, nats per token"},
            {"gap_low",
             "95 % interval of gap, by the residual pooled over the pairs at that epsilon and "
             "update"},
            {"gap_high", "95 % interval of gap"},
            {"v_flushed", "mean of v_flushed over the training"},
            {"bytes", "bytes of m and v per parameter"}}},
      {.name = std::string(kMemoryTable),
       .derived = true,
       .columns = {m,
                   v,
                   {"master", "format of the master weights"},
                   {"m_bytes", "bytes of m per parameter, for a large tensor"},
                   {"v_bytes", "bytes of v per parameter, for a large tensor"},
                   {"master_bytes", "bytes of the master weight per parameter"},
                   {"devices", "number of devices that share m, v and master (ZeRO-1)"},
                   {"gigabytes",
                    "memory of one device, 10^9 bytes: its share of m, v and master, and bf16 "
                    "weights and gradients"},
                   {"saving", "1 - gigabytes over those of fp32 moments and fp32 masters"}}},
  };
}

std::vector<PaperSetting> PaperSettings() {
  const std::string size =
      "Figure 5 names 100 million parameters; numsim assumes this shape of them";
  const std::vector<PaperSetting> others = {
      {"layers", "12", size, "Out of reach of a run of minutes."},
      {"width", "768", size, "Out of reach of a run of minutes."},
      {"steps",
       "500000",
       "Section 6.1: 2 trillion tokens; Figure 5 does not say for how many it trains",
       "Out of reach of a run of minutes."},
      {"epsilon",
       "1e-5",
       "Section 6.1: as Llama 2",
       "The authors' code defaults to 1e-6; v in E4M3 depends on it."},
      {"vocabulary",
       "32000",
       "Section 6.1",
       "With --vocabulary, generated tokens have Zipf frequencies; 256 are bytes, which vary less."},
      {"",
       "The paper's moments have a scale per shard of a tensor (ZeRO)",
       "the paper's code",
       "Here a tensor has one scale, unless its storage says @block or @coat."},
      {"",
       "The paper trains in FP8 with bf16",
       "Section 6.1",
       "Here all but the moments is float32, so that only the moments differ."},
  };
  return PaperTraining(Paper::kFishman, Options(), others);
}

void CheckOptions(const Settings& settings) {
  const int64_t steps = settings.GetInteger("steps", 10, kMostSteps);
  settings.GetInteger("records", 2, steps);
  settings.GetInteger("warmup", 0, steps);
  settings.GetDouble("billions", 1e-6, 1e6);
}

std::vector<Trial> Trials(const Settings& settings) {
  CheckOptions(settings);
  const std::vector<Arm> arms = ArmsOf(settings);
  std::vector<Trial> trials;
  for (const Arm& arm : arms) {
    if (arm.pair == kBaseline) CheckTraining(settings, ConfigOf(settings, arm, settings.seed));
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      const Regime& regime = arm.regime;
      trials.push_back({.label = fmt::format("{} epsilon={} {} lr={} seed={}",
                                             arm.pair.Text(),
                                             regime.epsilon,
                                             regime.update_from,
                                             regime.lr,
                                             seed),
                        .seed = seed,
                        .parameters = {{"m", arm.pair.m},
                                       {"v", arm.pair.v},
                                       {"epsilon", regime.epsilon},
                                       {"update_from", regime.update_from},
                                       {"lr", regime.lr}}});
    }
  }
  return trials;
}

std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  const Regime& regime = arm.regime;
  return {{{arm.pair.m, arm.pair.v, regime.epsilon, regime.update_from, regime.lr, trial.seed},
           ConfigOf(settings, arm, trial.seed)}};
}

// Returns the storage of a format under a scaling. fp32 and the dynamic map take no other scaling.
std::string Storage(const std::string& format, const std::string& scaling) {
  if (format == "fp32" || format.starts_with("dynamic")) return format;
  return format + "@" + scaling;
}

MomentFormat Parse(std::string_view option, const std::string& text) {
  try {
    return ParseMomentFormat(text);
  } catch (const Error& error) {
    throw Error::Format("--{}: {}", option, error.what());
  }
}

// Returns the storages of the option's formats under a scaling, without formats that it does not
// support: COAT is for formats of up to 8 bits.
std::vector<std::string> StoragesOf(const Settings& settings,
                                    const char* option,
                                    const std::string& scaling) {
  const bool coat = Parse("scalings", "e4m3fn@" + scaling).scaling == MomentScaling::kCoat;
  std::vector<std::string> storages;
  for (const std::string& format : settings.GetList(option)) {
    if (format.find_first_of("@+") != std::string::npos) {
      throw Error::Format(
          "--{}: '{}' is more than a format; use --scalings for the scaling of the grid and "
          "--pairs for single pairs",
          option,
          format);
    }
    const MomentFormat moment = Parse(option, format);
    const FormatSpec& spec = moment.format.spec;
    if (coat && spec != kFp32 && spec.Bits() > 8) continue;
    const bool is_dynamic = moment.scaling == MomentScaling::kDynamic;
    storages.push_back(Storage(is_dynamic ? format : moment.format.name, scaling));
  }
  return storages;
}

}  // namespace

std::string FormatPart(std::string_view storage) {
  return std::string(storage.substr(0, storage.find_first_of("@:+")));
}

std::string StoragePart(std::string_view storage) {
  const size_t at = storage.find_first_of("@:+");
  return at == std::string_view::npos ? "" : std::string(storage.substr(at));
}

std::vector<MomentPair> PairsOf(const Settings& settings) {
  std::vector<MomentPair> pairs = {kBaseline};
  const auto add =
      [&](const char* m_option, const std::string& m, const char* v_option, const std::string& v) {
        const MomentPair pair{ToString(Parse(m_option, m)), ToString(Parse(v_option, v))};
        if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
      };
  for (const std::string& scaling : settings.GetList("scalings")) {
    for (const std::string& v : StoragesOf(settings, "v", scaling)) {
      for (const std::string& m : StoragesOf(settings, "m", scaling)) add("m", m, "v", v);
    }
  }
  if (settings.Get("pairs") == "none") return pairs;
  for (const std::string& text : settings.GetList("pairs")) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos) {
      throw Error::Format("--pairs: '{}' is not M/V, e.g. e4m3fn@tensor/e5m2@tensor", text);
    }
    add("pairs", text.substr(0, slash), "pairs", text.substr(slash + 1));
  }
  return pairs;
}

Arm ArmOf(const Trial& trial) {
  const auto at = [&](const char* name) { return trial.parameters.at(name); };
  return {{at("m"), at("v")}, {at("epsilon"), at("update_from"), at("lr")}};
}

std::vector<Arm> ArmsOf(const Settings& settings) {
  const std::vector<MomentPair> pairs = PairsOf(settings);
  const std::vector<std::string> updates = settings.GetList("update-from");
  for (const char* const option : {"epsilon", "lr", "update-from"}) {
    CheckDistinct(option, settings.GetList(option));
  }
  std::vector<Arm> arms;
  for (const std::string& epsilon : settings.GetList("epsilon")) {
    for (const std::string& lr : settings.GetList("lr")) {
      for (const std::string& update : updates) {
        for (const MomentPair& pair : pairs) {
          if (pair == kBaseline && update != updates.front()) continue;
          arms.push_back({pair, {epsilon, update, lr}});
        }
      }
    }
  }
  return arms;
}

TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  Settings single = settings;
  single.options["epsilon"] = arm.regime.epsilon;
  single.options["lr"] = arm.regime.lr;
  TrainConfig config;
  config.model.kind = ModelKind::kLlama;
  config.linear.all.high_precision = "fp32";
  ReadTraining(single, seed, config);
  ReadTextData(settings, config.data);
  config.optimizer.m = ParseMomentFormat(arm.pair.m);
  config.optimizer.v = ParseMomentFormat(arm.pair.v);
  const std::string& from = arm.regime.update_from;
  if (from != "fresh" && from != "stored") {
    throw Error::Format("--update-from '{}': expected fresh or stored", from);
  }
  config.optimizer.update_from_stored = from == "stored";
  const auto records = static_cast<uint64_t>(settings.GetInteger("records", 2, kMostSteps));
  config.telemetry.tensors_every = std::max<uint64_t>(1, config.train.steps / records);
  return config;
}

}  // namespace moment_formats

Experiment MomentFormats() {
  using namespace moment_formats;
  Experiment experiment;
  experiment.name = "moment-formats";
  experiment.title = "training with Adam's moments in small formats";
  experiment.reproduces = "Figure 5, Tables 1 and 4 of [Fishman]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {
      {"quick", 4, 180}, {"small", 3, 960}, {"100m", 3}, {"paper", 3}, {"demo", 3, 55}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.rows = {.table = std::string(kFinalTable),
                     .key = {"m", "v", "epsilon", "update_from", "lr", "seed"},
                     .texts = {"tensor", "role"},
                     .trainings = TrainingsOf};
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = TrainingScaleText;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
