#include "experiments/loss_spikes/loss_spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "experiments/core/settings.h"
#include "experiments/study/outcomes.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments {
namespace loss_spikes {
namespace {

using namespace study;

constexpr const char* kDescription =
    "Counts loss spikes, and measures what they cost and what comes before them. Every training\n"
    "departs from a centre (--size, --batch, --lr, --warmup) in one respect:\n"
    "  --beta2, --lambdas   every beta2, and the schedules 1 - t^-lambda, at the centre\n"
    "  --sizes --batches --lrs --warmups --changes --models\n"
    "                       the paper's accelerations, changes of the data and other models, at "
    "each of\n"
    "                       --axis-beta2\n"
    "  --optimizers         update clipping, gradient clipping, Lion, at each of "
    "--optimizer-beta2\n"
    "Spikes are those of the paper's Appendix E: a loss more than 3.2 running standard deviations\n"
    "above the running mean, twice within 10 steps; an RMS_t of 2.3 or more. The paper ignores the "
    "first\n"
    "1000 of 20,000 iterations; here it is the warm-up. It does not say over how many losses mean "
    "and\n"
    "deviation run: --window. RMS_t <= 1 / sqrt(1 - beta2), so below beta2 = 0.81 there is no RMS "
    "spike.\n"
    "A training has collapsed if it diverged or ends above 95 % of the loss of a guess.\n"
    "Changes of --changes: `new` shows all batches from --change-step on, and before it the first\n"
    "--old-batches again and again, so that the loss jumps with the data; spikes count once the "
    "running\n"
    "mean has only seen the new ones. The others are planted, show a mechanism and\n"
    "support no claim about frequency: jump:F and contrast:F multiply gradients or pixels by F "
    "from\n"
    "--change-step on; constant:F multiplies gradients by F from the start, which Adam is "
    "invariant to.\n"
    "prediction.csv says how well RMS spikes of every tensor predict loss spikes 1 to 8 steps "
    "later:\n"
    "recall, precision, and recall by chance, over all shifts of the events along the training. "
    "The rival\n"
    "is the curvature of the loss along its gradient under Adam's preconditioner, above 2 over "
    "the\n"
    "learning rate [AdamSpikes]: three float64 passes per step, so it is measured for a small "
    "student\n"
    "(--student-lrs), a residual MLP that sees all its data in every step, at a constant rate, "
    "with\n"
    "epsilon 1e-8 and no weight decay. Its loss has no noise, so that its spikes are spikes.\n"
    "In trainings this small the paper's own schedule brings no loss spikes; the preset "
    "constant-rate does.\n"
    "numsim train writes RMS_t and the deviation of the loss at every step, and marks spikes in "
    "its\n"
    "figure; docs/results/stability.md has the results.\n"
    "Optimisers:";

constexpr const char* kFixed = R"(
[linear]
high_precision = "fp32"
[train]
diverged_above = 0
[telemetry]
tensors_every = 0
)";
constexpr const char* kQuick = R"(
[model]
context = 64
patch = 4
[train]
valid_batches = 64
[schedule]
final = 0
[optimizer]
epsilon = 1e-6
beta1 = 0.9
weight_decay = 0.2
[study]
models = "clip"
size = "2x32"
batch = 32
lr = 4e-3
warmup = 150
beta2 = "0.8,0.95,0.99,0.999"
lambdas = ""
axis-beta2 = "0.999,0.95"
sizes = ""
batches = ""
lrs = ""
warmups = ""
changes = ""
optimizers = "stable-adamw,clip-1"
optimizer-beta2 = "0.99"
change-step = 300
old-batches = 8
student-lrs = ""
student-batch = 128
curvature = "yes"
steps = 600
window = 64
ignored = "warm-up"
spike-deviations = 3.2
spike-rms = 2.3
captions = ""
shapes = 4096
image = 16
images = 8192
text = ""
text-size = 1048576
patch-dropout = 0.5
)";
constexpr const char* kSmall = R"(
[study]
models = "clip,vit,llama"
beta2 = "0.8,0.9,0.95,0.98,0.99,0.999"
lambdas = "0.45,0.5,0.65"
sizes = "1x16,4x32"
batches = "8,64"
lrs = "1e-3,2e-3,8e-3,1.6e-2"
warmups = "25"
changes = "new,jump:100,constant:100,contrast:10"
optimizers = "stable-adamw,stable-adamw:decay,stable-adamw:added,stable-adamw:previous,stable-adamw:update,stable-adamw:moment,stable-adamw:global,clip-1,clip-2,stable-clip-1,lion:3,lion:10,adafactor-style"
student-lrs = "3e-3,1e-2,3e-2"
)";
// Loss spikes occur in small models: at a constant rate a short training stays where one of 20,000
// steps is for most of its time, and without patch dropout its loss has less noise.
constexpr const char* kConstantRate = R"(
[schedule]
final = 1
[study]
warmup = 100
steps = 1000
patch-dropout = 0
sizes = "1x16,4x32"
batches = "8,64"
lrs = "1e-3,1e-2"
changes = "new"
change-step = 500
optimizers = "stable-adamw,clip-1,clip-2"
)";
constexpr const char* kPaper = R"(
[model]
context = 256
patch = 8
[study]
size = "32x1280"
batch = 16384
lr = 2e-3
warmup = 5000
beta2 = "0.5,0.8,0.9,0.95,0.98,0.99,0.995,0.999"
lambdas = "0.45,0.5,0.65"
sizes = "12x768,24x1024,32x1280"
batches = "4096,8192,16384"
lrs = "5e-4,1e-3,2e-3"
warmups = "1000"
changes = "new"
optimizers = "stable-adamw,stable-adamw:decay,stable-adamw:added,stable-adamw:previous,stable-adamw:update,stable-adamw:moment,stable-adamw:global,clip-1,clip-2,stable-clip-1,lion:3,lion:10,adafactor-style"
optimizer-beta2 = "0.99,0.999"
change-step = 12500
old-batches = 64
steps = 20000
window = 128
ignored = 1000
shapes = 262144
image = 64
images = 131072
text-size = 67108864
)";
// The paper's towers: the centre alone, with the paper's contrasts.
constexpr const char* kTower = R"(
[study]
sizes = ""
batches = ""
lrs = ""
warmups = ""
changes = ""
optimizers = "stable-adamw,clip-1,clip-2,lion:3,lion:10"
)";

std::vector<Setting> OwnSettings() {
  return {
      // clang-format off
      {.name = "models", .help = "models, separated by commas: clip, vit, llama; the first has all axes"},
      {.name = "size", .help = "LAYERSxWIDTH of the centre, for CLIP of each tower"},
      {.name = "batch", .help = "examples per step of the centre", .limits = Limits{1, 1 << 20}},
      {.name = "lr", .help = "peak learning rate of the centre", .limits = Limits{1e-12, 100, false}},
      {.name = "warmup", .help = "steps of linear warm-up of the centre", .limits = Limits{0, kMostSteps}, .part_of = "steps"},
      {.name = "beta2", .help = "values of beta2 at the centre, separated by commas"},
      {.name = "lambdas", .help = "values of L for beta2 = 1 - t^-L, separated by commas; empty: none"},
      {.name = "axis-beta2", .help = "two values of beta2 along the axes: the default to blame, then the lower one"},
      {.name = "sizes", .help = "other sizes, separated by commas; empty: none"},
      {.name = "batches", .help = "other batches, separated by commas; empty: none"},
      {.name = "lrs", .help = "other peak learning rates, separated by commas; empty: none"},
      {.name = "warmups", .help = "other lengths of the warm-up, separated by commas; empty: none"},
      {.name = "changes", .help = "changes of the data: new, jump:F, constant:F, contrast:F, separated by commas; empty: none"},
      {.name = "optimizers", .help = "other optimisers, separated by commas; empty: none"},
      {.name = "optimizer-beta2", .help = "values of beta2 with other optimisers, separated by commas"},
      {.name = "change-step", .help = "step at which data or gradients change", .limits = Limits{1, kMostSteps}, .part_of = "steps"},
      {.name = "old-batches", .help = "number of batches before new data", .limits = Limits{1, 1 << 20}},
      {.name = "student-lrs", .help = "learning rates of a residual MLP of --size that sees all its data in every step; empty: none"},
      {.name = "student-batch", .help = "the student's number of examples", .limits = Limits{1, 1 << 20}},
      {.name = "curvature", .help = "yes: measure the curvature of every step of the student with AdamW and a constant beta2; no: do not", .choices = {{"yes"}, {"no"}}, .only_choices = true},
      {.name = "steps", .help = "training steps, 5 or more", .keys = {"train.steps=$"}, .limits = Limits{5, kMostSteps}},
      {.name = "window", .help = "losses over which the running mean and deviation run", .limits = Limits{2, 1 << 20}},
      {.name = "ignored", .help = "steps at the start in which nothing counts; warm-up: as many as it takes", .choices = {{"warm-up"}}, .limits = Limits{0, kMostSteps}, .part_of = "steps", .before = "warm-up"},
      {.name = "spike-deviations", .help = "a loss that is higher than the mean by this many deviations spikes", .limits = Limits{1e-3, 1e6, false}},
      {.name = "spike-rms", .help = "an RMS_t from this on spikes", .limits = Limits{1e-3, 1e6, false}},
      {.name = "captions", .help = "clip: folder of images .npy and captions.txt; empty: generated shapes"},
      {.name = "images", .help = "vit: number of generated images", .limits = Limits{64, 1 << 24}},
      {.name = "text", .help = "llama: UTF-8 file to train on; empty: generated text"},
      {.name = "patch-dropout", .help = "clip, vit: share of the patches that a training step leaves out, 0 to below 1"},
      // clang-format on
  };
}

// ---- axes

// Returns the number that ends `text` after `prefix`; nullopt if it does not have that form.
std::optional<double> NumberAfter(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Choice DataChoice(const std::string& text) {
  const std::string factor = text.substr(std::min(text.find(':') + 1, text.size()));
  if (NumberAfter("jump:", text)) {
    return {text, {"stress.jump_step=$change-step", "stress.jump_loss=" + factor}};
  }
  if (NumberAfter("constant:", text)) return {text, {"stress.jump_loss=" + factor}};
  if (NumberAfter("contrast:", text)) {
    return {text, {"stress.jump_step=$change-step", "stress.jump_contrast=" + factor}};
  }
  throw Error("expected new, jump:F, constant:F or contrast:F");
}

Choice SizeChoice(const std::string& text) {
  ModelConfig model;
  SetSize(ParseSize("sizes", text), model);
  return {text,
          {fmt::format("model.layers={}", model.layers),
           fmt::format("model.width={}", model.width),
           fmt::format("model.heads={}", model.heads)}};
}

Choice Beta2Choice(const std::string& text) {
  if (NumberAfter(kSchedule, text)) {
    return {text, {"optimizer.beta2_decay=" + text.substr(std::string_view(kSchedule).size())}};
  }
  const auto beta2 = NumberAfter("", text);
  if (beta2 && *beta2 >= 0 && *beta2 < 1) return {text, {"optimizer.beta2=$"}};
  throw Error("expected a number from 0 to below 1");
}

// Returns the maker of choices that set one key.
std::function<Choice(const std::string&)> Number(const char* key) {
  return [=](const std::string& text) { return Choice{text, {fmt::format("{}=$", key)}}; };
}

struct Described {
  Choice choice;
  const char* meaning;
};
// Returns the optimisers of the comparison. Lion takes smaller steps and more weight decay, so that
// their product stays [Lion].
const std::vector<Described>& Optimizers() {
  constexpr const char* kIsStable = "optimizer.kind=stable-adamw";
  static const std::vector<Described> optimizers = {
      // clang-format off
      {{kAdamW, {"optimizer.kind=adamw"}}, "AdamW"},
      {{kStable, {kIsStable}}, "StableAdamW, Algorithm 2"},
      {{"stable-adamw:decay", {kIsStable, "optimizer.stable.clipped_decay=false"}}, "weight decay by the unclipped rate, as in the author's code"},
      {{"stable-adamw:added", {kIsStable, "optimizer.stable.epsilon_added=true", "optimizer.stable.clipped_decay=false"}},
       "RMS of g / (sqrt(u) + epsilon), decay unclipped, as in Dinomaly"},
      {{"stable-adamw:previous", {kIsStable, "optimizer.stable.previous_u=true"}}, "RMS with the u of the step before, as in pytorch_optimizer's foreach path"},
      {{"stable-adamw:update", {kIsStable, "optimizer.stable.of_update=true"}}, "RMS of the whole update, as in levanter"},
      {{"stable-adamw:moment", {kIsStable, "optimizer.stable.of_moment=true"}}, "RMS with v_t^2 in place of g_t^2 (Appendix F.1)"},
      {{"stable-adamw:global", {kIsStable, "optimizer.stable.global=true"}}, "one RMS for all tensors, as in AdaFactor's description"},
      {{"clip-1", {"optimizer.kind=adamw", "optimizer.clip_norm=1"}}, "AdamW with gradients clipped at norm 1"},
      {{"clip-2", {"optimizer.kind=adamw", "optimizer.clip_norm=2"}}, "AdamW with gradients clipped at norm 2"},
      {{"stable-clip-1", {kIsStable, "optimizer.clip_norm=1"}}, "StableAdamW with gradients clipped at norm 1"},
      {{"lion:3", {"optimizer.kind=lion", "optimizer.beta2=0.99"}}, "Lion at a third of the rate and three times the decay"},
      {{"lion:10", {"optimizer.kind=lion", "optimizer.beta2=0.99"}}, "Lion at a tenth of the rate and ten times the decay"},
      {{"adafactor-style", {kIsStable, "optimizer.beta1=0", "optimizer.beta2_decay=0.8"}}, "StableAdamW without a first moment, beta2 = 1 - t^-0.8; v is not factored"},
      // clang-format on
  };
  return optimizers;
}

std::vector<Choice> Models() {
  return {
      // clang-format off
      {"clip", {"model.kind=clip", "data.kind=generated-shapes", "data.size=$shapes", "data.image=$image", "model.patch_dropout=$patch-dropout"}},
      {"vit", {"model.kind=vit", "data.kind=generated-images", "data.size=$images", "model.patch_dropout=$patch-dropout"}},
      {"llama", {"model.kind=llama", "data.kind=generated-text", "data.size=$text-size"}},
      // A student that sees all its data in every step, so that its loss has no noise: the rival
      // predictor's own setting.
      {kStudent, {"model.kind=mlp", "data.kind=gaussian", "data.valid_share=0.5", "data.features=16", "schedule.kind=constant",
                  "optimizer.epsilon=1e-8", "optimizer.weight_decay=0"}},
      // clang-format on
  };
}

std::vector<study::Axis> Axes() {
  std::vector<Choice> optimizers;
  for (const Described& optimizer : Optimizers()) optimizers.push_back(optimizer.choice);
  return {
      // clang-format off
      {.name = "model", .meaning = "clip, vit, llama or mlp, the student", .choices = Models(), .options = {"models"}},
      {.name = "size", .meaning = "layers x width", .other = SizeChoice, .options = {"size", "sizes"}},
      {.name = "batch", .meaning = "examples per step", .other = Number("train.batch"), .options = {"batch", "batches"}},
      {.name = "lr", .meaning = "peak learning rate, of Lion before it is divided", .other = Number("schedule.peak"), .options = {"lr", "lrs"}},
      {.name = "warmup", .meaning = "steps of linear warm-up", .other = Number("schedule.warmup"), .options = {"warmup", "warmups"}},
      {.name = "data", .meaning = "steady; new: from --change-step on all batches in place of the first few; jump:F, contrast:F: gradients or pixels times F from then on; constant:F: gradients times F from the start",
       .choices = {{kSteady}, {kNewData, {"stress.old_steps=$change-step", "stress.old_batches=$old-batches"}}}, .other = DataChoice, .options = {"changes"}},
      {.name = "beta2", .meaning = "decay of the second moment; 1-t^-L: that schedule", .other = Beta2Choice, .options = {"beta2", "lambdas"}},
      {.name = "optimizer", .meaning = "optimiser (describe loss-spikes lists them)", .choices = std::move(optimizers), .options = {"optimizers"}},
      // clang-format on
  };
}

Keys Computed(const Settings& settings, const Arm& arm) {
  Keys keys;
  const std::string &model = arm[kModel], &captions = settings.Get("captions");
  if (model == "clip" && !captions.empty()) {
    keys = {"data.kind=captions", "data.path=$captions"};
  } else if (model == "llama" && !settings.Get("text").empty()) {
    keys = {"data.kind=text", "data.path=$text"};
  } else if (model == kStudent) {
    keys = {fmt::format("data.size={}", 2 * std::stoul(arm[kBatch]))};
    if (ParseSize("sizes", arm[kSize]).width == 16) {
      throw Error("--sizes: a student of width 16 has no input layer; take another width");
    }
  }
  if (const auto divisor = NumberAfter("lion:", arm[kOptimizer])) {
    keys.push_back(fmt::format("schedule.peak={}", std::stod(arm[kLr]) / *divisor));
    keys.push_back(fmt::format("optimizer.weight_decay={}",
                               settings.GetDouble("weight-decay", 0, 100) * *divisor));
  }
  return keys;
}

// ---- arms

// Checks each number of a list, so that an error names the list and not an option of the centre.
void CheckNumbers(const Settings& settings, const char* option, double low, double high) {
  Settings single = settings;
  for (const std::string& value : settings.GetListOrNone(option)) {
    single.options[option] = value;
    single.GetDouble(option, low, high);
  }
}

void CheckLists(const Study& study, const Settings& settings) {
  for (const char* const option : {"beta2", "axis-beta2", "models"}) {
    CheckDistinct(option, settings.GetList(option));
  }
  ParseSize("size", settings.Get("size"));
  for (const char* const option : {"beta2", "axis-beta2", "optimizer-beta2"}) {
    CheckNumbers(settings, option, 0, 1 - 1e-12);
  }
  const std::vector<std::string> axis = settings.GetList("axis-beta2");
  if (axis.size() != 2 || std::stod(axis[0]) <= std::stod(axis[1])) {
    throw Error::Format("--axis-beta2 {}: expected two values, the larger one first",
                        settings.Get("axis-beta2"));
  }
  for (const char* const option : {"lrs", "student-lrs"})
    CheckNumbers(settings, option, 1e-12, 100);
  CheckNumbers(settings, "lambdas", 1e-12, 1);
  CheckNumbers(settings, "batches", 1, 1 << 20);
  CheckNumbers(settings, "warmups", 0, kMostSteps);
  if (!settings.Get("sizes").empty()) ReadSizes(settings, "sizes");
  for (const auto& [place, option] :
       {std::pair{kModel, "models"}, {kData, "changes"}, {kOptimizer, "optimizers"}}) {
    for (const std::string& value : settings.GetListOrNone(option)) {
      try {
        ChoiceOf(study.axes[place], value);
      } catch (const Error& error) {
        throw Error::Format("--{} '{}': {}", option, value, error.what());
      }
    }
  }
}

}  // namespace

Arm With(Arm arm, Place place, std::string value) {
  arm[place] = std::move(value);
  return arm;
}

Arm Centre(const Settings& settings, const std::string& beta2) {
  return {settings.GetList("models").front(),
          settings.Get("size"),
          settings.Get("batch"),
          settings.Get("lr"),
          settings.Get("warmup"),
          kSteady,
          beta2,
          kAdamW};
}

std::string High(const Settings& settings) { return settings.GetList("axis-beta2").front(); }
std::string Low(const Settings& settings) { return settings.GetList("axis-beta2").back(); }
std::string RemedyBeta2(const Settings& settings) {
  return settings.Get("optimizer-beta2").empty() ? "" : settings.GetList("optimizer-beta2").front();
}

std::vector<std::string> SchedulesOf(const Settings& settings) {
  std::vector<std::string> schedules = settings.GetListOrNone("lambdas");
  for (std::string& schedule : schedules) schedule.insert(0, kSchedule);
  return schedules;
}

uint64_t ChangeStep(const Settings& settings) {
  return static_cast<uint64_t>(settings.GetInteger("change-step", 1, kMostSteps));
}

double PlaceOf(Place place, const std::string& value) {
  if (place != kSize) return std::stod(value);
  const ModelSize size = ParseSize("sizes", value);
  return static_cast<double>(size.layers * size.width * size.width);
}

std::vector<std::string> ValuesAlong(const Settings& settings, Place place, const char* option) {
  std::vector<std::string> values = settings.GetListOrNone(option);
  values.push_back(Centre(settings, "")[place]);
  const auto less = [&](const auto& a, const auto& b) {
    return PlaceOf(place, a) < PlaceOf(place, b);
  };
  std::ranges::sort(values, less);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  CheckLists(study, settings);
  std::vector<Arm> arms;
  const auto add = [&](const Arm& arm) {
    if (std::ranges::count(arms, arm) == 0) arms.push_back(arm);
  };
  const auto along = [&](const char* option, Place place, const Arm& from) {
    for (const std::string& value : settings.GetListOrNone(option)) add(With(from, place, value));
  };
  const std::vector<std::string> models = settings.GetList("models");
  const std::vector<std::string> changes = settings.GetListOrNone("changes");
  for (const std::string& beta2 : settings.GetList("beta2")) add(Centre(settings, beta2));
  for (const std::string& schedule : SchedulesOf(settings)) add(Centre(settings, schedule));
  for (const std::string& beta2 : settings.GetList("axis-beta2")) {
    const Arm centre = Centre(settings, beta2);
    add(centre);
    along("sizes", kSize, centre);
    along("batches", kBatch, centre);
    along("lrs", kLr, centre);
    along("warmups", kWarmup, centre);
    along("changes", kData, centre);
    for (const char* const optimizer : {kAdamW, kStable}) {
      const Arm arm = With(centre, kOptimizer, optimizer);
      for (const std::string& model : std::span(models).subspan(1)) add(With(arm, kModel, model));
      if (std::ranges::count(changes, kNewData) > 0) add(With(arm, kData, kNewData));
    }
  }
  for (const std::string& beta2 : settings.GetList("axis-beta2")) {
    for (const char* const optimizer : {kAdamW, kStable}) {
      const Arm arm = With(Centre(settings, beta2), kOptimizer, optimizer);
      along("student-lrs",
            kLr,
            With(With(arm, kModel, kStudent), kBatch, settings.Get("student-batch")));
    }
  }
  for (const std::string& beta2 : settings.GetListOrNone("optimizer-beta2")) {
    if (!settings.Get("optimizers").empty()) add(Centre(settings, beta2));
    along("optimizers", kOptimizer, Centre(settings, beta2));
  }
  const int64_t steps = settings.GetInteger("steps", 5, kMostSteps);
  for (const Arm& arm : arms) {
    CheckSpikeRule(RuleOf(settings, arm));
    const std::string& data = arm[kData];
    if (data == kSteady || data.starts_with("constant:")) continue;
    if (ChangeStep(settings) < static_cast<uint64_t>(steps)) continue;
    throw Error::Format(
        "--change-step {}: the trainings have {} steps", ChangeStep(settings), steps);
  }
  return arms;
}

SpikeRule RuleOf(const Settings& settings, const Arm& arm) {
  SpikeRule rule;
  rule.rms = settings.GetDouble("spike-rms", 1e-3, 1e6);
  rule.deviations = settings.GetDouble("spike-deviations", 1e-3, 1e6);
  rule.window = static_cast<size_t>(settings.GetInteger("window", 2, 1 << 20));
  const bool warmup = settings.Get("ignored") == "warm-up";
  rule.ignored = warmup ? std::stoull(arm[kWarmup])
                        : static_cast<uint64_t>(settings.GetInteger("ignored", 0, kMostSteps));
  return rule;
}

Arm ArmOfRow(const Frame& row) {
  Arm arm;
  for (const char* const axis :
       {"model", "size", "batch", "lr", "warmup", "data", "beta2", "optimizer"}) {
    arm.push_back(row.Text(axis));
  }
  return arm;
}

namespace {

// ---- texts

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
      {"Clip updates: --set optimizer.kind=stable-adamw with epsilon 1e-6, the paper's own remedy. "
       "Its published variants are compared with it.",
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
      {"The paper's warning is an RMS_t of 2.3 or more in the patch embedding (optimizer.csv). The "
       "columns rms, of any parameter, and loss_deviation of train.csv have every step.",
       claims({"rms-precedes-loss",
               "rms-precedes-loss-on-new-data",
               "patches-predict-better",
               "curvature-predicts-better"})},
  };
}

std::vector<PaperSetting> PaperRows() {
  return {
      // clang-format off
      {"beta2", "0.5,0.8,0.9,0.95,0.98,0.99,0.995,0.999", "Figures 3, 12 and 13", "Fewer values take less time."},
      {"sizes", "12x768,24x1024,32x1280", "Figure 3", "Smaller sizes, or none."},
      {"patch-dropout", "0.5", "Section 3.2", "Its noise hides the spikes of a small batch."},
      {"final-lr", "0", "Section 3.2", "At a constant rate a short training stays where a long one is for most of its time."},
      {"lr", "2e-3", "Section 3.2", "Smaller models take larger rates; --lrs has others."},
      {"batch", "16384", "Section 3.2", "Out of reach; --batches has others."},
      {"warmup", "5000", "Section 3.2", "A quarter of the paper's steps, and of those of the presets with the paper's schedule."},
      {"", "The paper trains in 16 bits, in bfloat16", "Section 2.2.3", "Here products and storage are float32, so that spikes are the optimiser's."},
      {"", "The first 1000 of 20,000 iterations are ignored", "Appendix E", "--ignored says how many steps are; in short runs it is the warm-up."},
      {"", "Running mean and deviation of the loss over an unstated number of iterations", "Appendix E", "--window says over how many losses they run."},
      {"", "ImageNet zero-shot accuracy of CLIP, with a layer-norm after the patch embedding", "Section 3.2", "Here it is the zero-shot accuracy on held-out captions of generated images."},
      {"", "The paper has no student that learns from a teacher", "Section 3", "The model mlp trains with an epsilon of 1e-8, without decay, at a constant rate."},
      // clang-format on
  };
}

std::string Notes(const Results& results) {
  double collapsed = 0;
  results.Of("arms").ForEach(
      [&](const Frame& arm) { collapsed += arm.Number("collapsed") * arm.Number("seeds"); });
  std::string text = fmt::format(
      "{} trainings, {:.0f} of them collapsed.\n", results.Of("runs").Size(), collapsed);
  if (results.settings.Get("changes").find("jump:") != std::string::npos) {
    text +=
        "A jump of all gradients by F at once: the closed form for gradients that were constant is "
        "RMS_t = F / sqrt(beta2 + (1 - beta2) F^2), below 1 / sqrt(1 - beta2), and steps that grow "
        "at most by the maximum over k of (beta1^k + (1 - beta1^k) F) / sqrt(beta2^k + (1 - "
        "beta2^k) F^2).\n";
  }
  return text + "Losses of CLIP are comparable only for the same batch.";
}

double Cost(const TrainConfig& config) {
  const auto width = static_cast<double>(config.model.width);
  return static_cast<double>(config.model.layers) * width * (width + 64) *
         static_cast<double>(config.train.batch);
}

}  // namespace
}  // namespace loss_spikes

study::Study LossSpikesStudy() {
  using namespace loss_spikes;
  Study study{
      .name = "loss-spikes",
      .title = "loss spikes, RMS_t, beta2 and update clipping",
      .reproduces = "Figures 3 to 5, 12 to 20, Appendices E and F of [SwitchBack]",
      .description = kDescription,
      .fixed = kFixed,
      .presets = {{"quick", kQuick, 10, 170},
                  {"small", kSmall, 10, 2400},
                  {"constant-rate", kConstantRate, 10, 1500},
                  {.name = "vit-s",
                   .toml = std::string(kTower) + "size = \"12x384\"\nbatch = 1024",
                   .on = "paper"},
                  {.name = "vit-b",
                   .toml = std::string(kTower) + "size = \"12x768\"\nbatch = 4096",
                   .on = "paper"},
                  {"paper", kPaper, 1}},
      .settings = OwnSettings(),
      .axes = Axes(),
      .computed = Computed,
      .arms = ArmsOf,
      .centre = [](const Settings& settings) { return Centre(settings, ""); },
      .label =
          "{model} {size} batch {batch} lr {lr} warmup {warmup} {data} beta2 {beta2} {optimizer}",
      .arm_text =
          "{model} {size} batch {batch} lr {lr} warmup {warmup} {data} beta2 {beta2} {optimizer}",
      .scale = "{models} {size}, batch {batch}, {steps} steps",
      .cost = Cost,
      .probes = {Spikes()},
      .runs = "runs",
      .texts = {"event", "tensor", "at", "lost"},
      .derived =
          {ArmMeans("arms",
                    {{"collapsed", "share of runs that collapsed"},
                     {"valid_loss", "mean over seeds of the runs that finished", true, true},
                     {"accuracy", "mean over seeds", true},
                     {"loss_spikes", "mean number per run", true},
                     {"steps_lost", "mean number per run"},
                     {"rms_spikes", "mean number per run"},
                     {"max_rms", "mean over seeds", true}}),
           {.name = "prediction",
            .columns = {{"scope",
                         "AdamW runs: steady, without a change of the data; new, from --window "
                         "steps after new data on; student"},
                        {"predictor", "parameter whose RMS spikes are the events; any; curvature"},
                        {"runs", "number of runs that have it"},
                        {"events", "number of events"},
                        {"spikes", "number of loss spikes"},
                        {"predicted", "loss spikes that follow an event by 1 to 8 steps"},
                        {"recall", "predicted over spikes"},
                        {"precision",
                         "share of the events that a loss spike follows by 1 to 8 steps"},
                        {"expected", "mean of predicted if the events of each run are shifted"},
                        {"p", "probability of at least `predicted` under these shifts"},
                        {"p_holm", "p corrected by Holm for the predictors of the scope"},
                        {"lead", "mean steps from the first such event to its spike"}},
            .rows = Predictions}},
      .claims = ClaimRows(),
      .common = CommonClaims(),
      .figures = Figures(),
      .advice = AdviceForSpikes(),
      .paper_settings = PaperRows(),
      .notes = Notes};
  for (const Described& optimizer : Optimizers()) {
    study.description += fmt::format("\n  {:<22} {}", optimizer.choice.name, optimizer.meaning);
  }
  return study;
}

Experiment LossSpikes() { return study::MakeExperiment(LossSpikesStudy()); }

}  // namespace numsim::experiments
