#include "experiments/loss_spikes/loss_spikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "experiments/runner/settings.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments {
namespace loss_spikes {
namespace {

using namespace study;

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

Choice Beta2Choice(const std::string& text) {
  if (NumberAfter(kSchedule, text)) {
    return {text, {"optimizer.beta2_decay=" + text.substr(std::string_view(kSchedule).size())}};
  }
  const auto beta2 = NumberAfter("", text);
  if (beta2 && *beta2 >= 0 && *beta2 < 1) return {text, {"optimizer.beta2=$"}};
  throw Error("expected a number from 0 to below 1");
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

// ---- the study

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
  return CostPerToken(config.model) * static_cast<double>(config.train.batch);
}

Functions OwnFunctions() {
  Functions functions{.choices = {{"change", DataChoice}, {"beta2", Beta2Choice}},
                      .probes = {{"spikes", Spikes()}},
                      .tables = {{"predictions", Predictions}},
                      .figures = Figures()};
  AddClaimFunctions(functions);
  return functions;
}

}  // namespace
}  // namespace loss_spikes

study::Study LossSpikesStudy() {
  using namespace loss_spikes;
  Study study = ReadStudy(StudyText("loss_spikes"), "loss_spikes/study.toml", OwnFunctions());
  study.computed = Computed;
  study.arms = ArmsOf;
  study.centre = [](const Settings& settings) { return Centre(settings, ""); };
  study.cost = Cost;
  study.common.compare = Compare;
  study.notes = Notes;
  return study;
}

Experiment LossSpikes() { return study::MakeExperiment(LossSpikesStudy()); }

}  // namespace numsim::experiments
