#include "experiments/fp8_interventions/fp8_interventions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "experiments/shared/linear_variant.h"
#include "experiments/shared/special_values.h"
#include "experiments/study/lines.h"
#include "experiments/study/outcomes.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments {
namespace fp8_interventions {
namespace {

using namespace study;

constexpr const char* kDescription =
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

constexpr const char* kFixed = R"(
[linear]
high_precision = "bf16"
[optimizer]
clip_norm = 0
)";
constexpr const char* kQuick = R"(
[model]
layers = 6
text_layers = 2
width = 32
heads = 1
patch = 4
patch_dropout = 0.5
context = 64
[train]
batch = 32
steps = 300
valid_batches = 8
diverged_above = 2
[schedule]
peak = 3e-3
warmup = 60
final = 0
[optimizer]
kind = "stable-adamw"
epsilon = 1e-6
beta2 = 0.99
weight_decay = 0.2
[storage]
activations = "bf16"
[study]
interventions = "none,clip,qk-norm,layer-scale"
formats = "e4m3fn/e5m2,e3m2,e2m3"
clip-norm = 1
scaled-branches = "yes"
model = "clip"
captions = ""
shapes = 4096
image = 16
text = ""
text-size = 1048576
plant-point = ""
plant-channel = 3
plant-value = 500
input-tail = 0
stress-chosen-on = ""
records = 30
snapshots = 10
)";
constexpr const char* kSmall = R"(
[model]
layers = 12
text_layers = 4
width = 64
heads = 2
[train]
steps = 600
[schedule]
peak = 2e-3
warmup = 120
[study]
interventions = "none,clip,qk-norm,layer-scale,qk-norm+layer-scale"
formats = "e4m3fn/e5m2,bnb-e4m3/bnb-e5m2,e3m3:inf=none,nan=none,e4m2:inf=none,nan=none,e3m2,e2m3"
shapes = 8192
)";
constexpr const char* kPaper = R"(
[model]
layers = 24
text_layers = 12
width = 1024
heads = 16
patch = 8
context = 2048
[train]
batch = 4096
steps = 20000
[schedule]
peak = 2e-3
warmup = 5000
[study]
formats = "e4m3fn/e5m2,bnb-e4m3/bnb-e5m2,e3m3:inf=none,nan=none,e4m2:inf=none,nan=none,e3m2,e2m3"
shapes = 131072
image = 64
text-size = 67108864
plant-value = 0
records = 200
snapshots = 50
)";

constexpr double kLargest = std::numeric_limits<double>::max();

// ---- what differs

std::vector<Setting> OwnSettings() {
  return {
      ModelSetting({"clip", "vit", "llama"}),
      {.name = "clip-norm",
       .help = "largest norm of gradients under the intervention clip",
       .limits = Limits{1e-9, 1e9, false}},
      {.name = "plant-point",
       .help = "tensor names at which a massive activation is planted ('*' matches any characters; "
               "see docs/training.md); empty: none",
       .choices = {{""}},
       .keys = {"stress.point=$", "stress.channel=$plant-channel", "stress.value=$plant-value"}},
      {.name = "plant-channel",
       .help = "channel of the planted activation",
       .limits = Limits{0, 1 << 16}},
      {.name = "plant-value",
       .help = "value that is added to that channel",
       .limits = Limits{-kLargest, kLargest, false}},
      {.name = "input-tail",
       .help = "replace pixels x by sinh(tail x) / tail; 0: unchanged",
       .keys = {"stress.input_tail=$"},
       .limits = Limits{0, kLargest, false}},
      {.name = "stress-chosen-on",
       .help = "seeds on which planted value and tail were chosen, separated by commas; empty: not "
               "stated, so that the run is no evidence"}};
}

// Returns the name of a format in the tables: e3m2fn and e2m3fn have their shorter names of OCP.
std::string FormatName(const std::string& text) {
  const std::string name = ParseFormat(text).name;
  return name == "e3m2fn" || name == "e2m3fn" ? name.substr(0, 4) : name;
}

Choice TensorWise(const std::string& text) {
  try {
    const VariantFormats formats = SplitFormats(text);
    const std::string forward = FormatName(formats.format);
    const std::string gradient =
        formats.gradient_format.empty() ? forward : FormatName(formats.gradient_format);
    if (forward == kBf16 && gradient == kBf16) return {kBf16};
    const LinearOptions options{.kind = "tensor-wise",
                                .format = ParseFormat(forward).name,
                                .gradient_format = ParseFormat(gradient).name,
                                .high_precision = kBf16};
    MakeLinearRecipe(options);
    return {forward == gradient ? forward : forward + "/" + gradient,
            {"linear.kind=tensor-wise",
             "linear.format=" + options.format,
             "linear.gradient_format=" + options.gradient_format}};
  } catch (const Error& error) {
    throw Error::Format("is not FORWARD[/GRADIENT]: {}", error.what());
  }
}

std::vector<study::Axis> Axes() {
  return {
      {.name = "intervention",
       .meaning = "none, or parts joined by '+'; unstressed: none, and no stress",
       .choices = {{kNone, {}, true},
                   {kClip, {"optimizer.clip_norm=$clip-norm"}},
                   {kQkNorm, {"model.qk_norm=true"}},
                   {kScale, {"model.layer_scale=0"}},
                   {kUnstressed,
                    {"stress.point=", "stress.channel=0", "stress.value=0", "stress.input_tail=0"},
                    true,
                    true}},
       .joined = true,
       .options = {"interventions"},
       .help =
           "interventions, separated by commas: clip, qk-norm, layer-scale, or several joined by "
           "'+'; none is always included",
       .baseline = kNone},
      {.name = "format",
       .meaning = "FORWARD[/GRADIENT] of tensor-wise layers; bf16: the baseline",
       .other = TensorWise,
       .options = {"formats"},
       .help =
           "formats FORWARD[/GRADIENT] of tensor-wise layers, separated by commas; bf16 is always "
           "included",
       .baseline = kBf16,
       .split = SplitFormatList}};
}

// Adds the control that shows whether a stress harms bf16 itself.
std::vector<Arm> ArmsWithControl(const Study& study, const Settings& settings) {
  const std::string& seeds = settings.Get("stress-chosen-on");
  if (!seeds.empty()) {
    settings.GetIntegers("stress-chosen-on", 0, std::numeric_limits<int64_t>::max());
  }
  std::vector<Arm> arms = AllArms(study, settings);
  if (!StressOf(settings).empty()) arms.insert(arms.begin(), {kUnstressed, kBf16});
  return arms;
}

Keys TensorsEvery(const Settings& settings, const Arm&) {
  const int64_t steps = settings.GetInteger("steps", 1, kMostSteps);
  const int64_t every = steps / settings.GetInteger("snapshots", 1, kMostSteps);
  return {fmt::format("telemetry.tensors_every={}", std::max<int64_t>(1, every))};
}

// Until November 2026, e3m3 and e4m2 were formats without infinity and NaN in this experiment alone;
// e3m2 and e2m3 were those of OCP.
std::string FromFormerName(std::string_view word, bool has_keys) {
  if (has_keys) return numsim::FromFormerNames(word);
  if (word == "e3m3" || word == "e4m2") return std::string(word) + ":inf=none,nan=none";
  return word == "e3m2" || word == "e2m3" ? std::string(word) : numsim::FromFormerNames(word);
}

// ---- figures

// Returns lines of E|x_k| over blocks, of the rows of one moment.
Lines FeatureLines(const char* moment, std::function<Frame(const Results&, const Frame&)> rows) {
  return {.name = "fp8-features",
          .title = "Mean magnitude of the residual stream after each block, tower of the {tower}s",
          .table = "features",
          .panel = "format",
          .line = "intervention",
          .x = "block",
          .y = "mean_abs",
          .x_label = "block k",
          .y_label = "E|x_k|",
          .log10 = true,
          .markers = true,
          .panel_title =
              [=](const std::string& format) { return format + ", " + moment + " of training"; },
          .rows = std::move(rows)};
}

std::vector<std::string> LowFormats(const Frame& frame) {
  std::vector<std::string> formats = frame.Distinct("format");
  std::erase(formats, kBf16);
  return formats;
}

Figure Underflow(const Results& results) {
  const Frame table = results.Of("quantised");
  Figure figure{
      "fp8-underflow", "Elements that underflow to zero, mean over layers", 2, {}, "quantised.csv"};
  for (const std::string& format : LowFormats(table)) {
    Panel& panel = figure.panels.emplace_back();
    panel.title = format;
    panel.x = AxisOf(table, "step", "step");
    panel.y = {.label = "share of elements stored as zero", .log10 = true, .low = 1e-6, .high = 1};
    for (const char* const intervention : {kNone, kScale}) {
      int style = 0;
      for (const std::string& operand : table.Distinct("operand")) {
        Series series =
            Line(OfArm(table, intervention, format).Where("operand", operand), "step", "underflow");
        series.style = style++;
        series.dashed = intervention == std::string_view(kScale);
        series.label = operand + ", " + intervention;
        if (!series.x.empty()) panel.series.push_back(std::move(series));
      }
    }
  }
  return figure;
}

std::vector<std::function<Figure(const Results&)>> Figures() {
  return {
      LossFigure("fp8-loss",
                 "Training loss by intervention",
                 "format",
                 "intervention",
                 [](const std::string& format) {
                   return format == kBf16 ? format : "tensor-wise " + format;
                 }),
      Draw(FeatureLines("start",
                        [](const Results&, const Frame& rows) {
                          return OfTower(rows).Where("step", 0).Where("format", kBf16);
                        })),
      Draw(FeatureLines("end",
                        [](const Results& results, const Frame& rows) {
                          return LastSteps(results, OfTower(rows));
                        })),
      Draw({.name = "fp8-progress",
            .title = "Mean magnitude after the last block as the loss falls (from right to left), "
                     "tower of the {tower}s",
            .table = "features",
            .panel = "format",
            .line = "intervention",
            .x = "valid_loss",
            .y = "mean_abs_rest",
            .x_label = "validation loss, nats",
            .y_label = "E|x_k|",
            .log10 = true,
            .markers = true,
            .columns = 1,
            .by = "step",
            .rows =
                [](const Results&, const Frame& rows) {
                  return AfterLastBlock(OfTower(rows)).Where("format", kBf16);
                }}),
      GapFigure("fp8-ladder",
                "Validation loss minus that of bf16 with the same intervention; infinite: diverged",
                "format",
                "intervention"),
      Underflow};
}

}  // namespace
}  // namespace fp8_interventions

study::Study Fp8InterventionsStudy() {
  using namespace fp8_interventions;
  return {
      .name = "fp8-interventions",
      .title = "what keeps tensor-wise low precision from failing",
      .reproduces = "Figure 2, Section 2.3 of [SwitchBack]",
      .description = kDescription,
      .fixed = kFixed,
      .presets = {{"quick", kQuick, 3, 145}, {"small", kSmall, 3}, {"paper", kPaper, 3}},
      .settings = OwnSettings(),
      .axes = Axes(),
      .computed = TensorsEvery,
      .arms = ArmsWithControl,
      .label = "{format} {intervention}",
      .arm_text = "{intervention} / {format}",
      .scale = "{model}, {layers} layers, width {width}, {steps} steps",
      .probes = {Curves(),
                 EndOfTraining("final",
                               {StatusColumn(),
                                StepsColumn(),
                                ChanceLossColumn(),
                                StartLossColumn(),
                                TrainLossColumn(),
                                ValidLossColumn(),
                                ZeroShotColumn()}),
                 ResidualStream(),
                 QuantizedOperands()},
      .texts = {"tower", "operand"},
      .derived = {Outcomes({{"gap",
                             "valid_loss minus that of bf16 with this intervention, paired by seed",
                             {"format"}},
                            {"gap_none",
                             "valid_loss minus that of bf16 without intervention, paired by seed",
                             {"format", "intervention"}}})},
      .claims = ClaimRows(),
      .common = {.items = {"switchback/figure-2", "switchback/section-2.3"},
                 .scale =
                     "The paper: CLIP ViT-Large, 20,000 steps of 16,384 images. A run states its "
                     "own size.",
                 .margin = LossMargin("nats"),
                 .diverged = Diverged::kAsValue,
                 .compare = Compare},
      .figures = Figures(),
      .paper_settings =
          {{"plant-point",
            "",
            "no such thing in the paper",
            "It makes small models fail; what is found with it is exploratory."},
           {"input-tail", "0", "no such thing in the paper", "As for --plant-point."},
           {"",
            "The paper's products are computed in float16 from fp8 values of bitsandbytes",
            "Section 2.3",
            "Here operands are OCP's E4M3 and E5M2, unless --formats has others, and activations are "
            "stored as --storage says."}},
      .notes = Notes,
      .from_former_names = [](const std::string& text) {
        return ReplaceFormatNames(text, FromFormerName);
      }};
}

Experiment Fp8Interventions() { return study::MakeExperiment(Fp8InterventionsStudy()); }

}  // namespace numsim::experiments
