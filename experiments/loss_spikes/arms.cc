// The arms of `loss-spikes`, one axis at a time around a centre, and their trials.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "experiments/core/settings.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"

namespace numsim::experiments::loss_spikes {
namespace {

// The fields of an arm, in the order of kArmKey.
const std::vector<std::pair<std::string, std::string Arm::*>> kFields = {
    {"model", &Arm::model},
    {"size", &Arm::size},
    {"batch", &Arm::batch},
    {"lr", &Arm::lr},
    {"warmup", &Arm::warmup},
    {"data", &Arm::data},
    {"beta2", &Arm::beta2},
    {"optimizer", &Arm::optimizer}};

std::map<std::string, std::string> ParametersOf(const Arm& arm) {
  std::map<std::string, std::string> parameters;
  for (const auto& [name, field] : kFields) parameters[name] = arm.*field;
  return parameters;
}

// Adds each arm once.
class ArmList {
 public:
  void Add(const Arm& arm) {
    if (std::find(arms_.begin(), arms_.end(), arm) == arms_.end()) arms_.push_back(arm);
  }
  // Adds the arms in which a field takes each of the values of an option.
  void AddAxis(const Settings& settings,
               const char* option,
               std::string Arm::*field,
               const Arm& centre) {
    for (const std::string& value : settings.GetListOrNone(option)) Add(With(centre, field, value));
  }
  std::vector<Arm> Take() { return std::move(arms_); }

 private:
  std::vector<Arm> arms_;
};

// Checks each number of a list, so that an error names the list and not an option of the centre.
void CheckNumbers(const Settings& settings, const char* option, double low, double high) {
  Settings single = settings;
  for (const std::string& value : settings.GetListOrNone(option)) {
    single.options[option] = value;
    single.GetDouble(option, low, high);
  }
}

void CheckIntegers(const Settings& settings, const char* option, int64_t low, int64_t high) {
  if (!settings.Get(option).empty()) settings.GetIntegers(option, low, high);
}

void CheckLists(const Settings& settings) {
  for (const char* const option : {"beta2", "axis-beta2", "models"}) {
    CheckDistinct(option, settings.GetList(option));
  }
  ParseSize("size", settings.Get("size"));
  if (settings.GetList("axis-beta2").size() != 2) {
    throw Error::Format("--axis-beta2 {}: expected two values", settings.Get("axis-beta2"));
  }
  for (const char* const option : {"beta2", "axis-beta2", "optimizer-beta2"}) {
    CheckNumbers(settings, option, 0, 1 - 1e-12);
  }
  const std::vector<std::string> axis = settings.GetList("axis-beta2");
  if (std::stod(axis.front()) <= std::stod(axis.back())) {
    throw Error::Format("--axis-beta2 {}: expected the larger value first",
                        settings.Get("axis-beta2"));
  }
  for (const char* const option : {"lrs", "student-lrs"})
    CheckNumbers(settings, option, 1e-12, 100);
  CheckNumbers(settings, "lambdas", 1e-12, 1);
  CheckIntegers(settings, "batches", 1, 1 << 20);
  CheckIntegers(settings, "warmups", 0, kMostSteps);
}

bool HasNewData(const Settings& settings) {
  const std::vector<std::string> changes = settings.GetListOrNone("changes");
  return std::find(changes.begin(), changes.end(), kNewData) != changes.end();
}

bool ChangesAtAStep(const std::string& data) {
  return data != kSteady && !data.starts_with("constant:");
}

}  // namespace

std::string Arm::Text() const {
  return fmt::format("{} {} batch {} lr {} warmup {} {} beta2 {} {}",
                     model,
                     size,
                     batch,
                     lr,
                     warmup,
                     data,
                     beta2,
                     optimizer);
}

const std::vector<Column>& ArmColumns() {
  static const std::vector<Column> columns = {
      {"model", "clip, vit, llama or mlp, the student"},
      {"size", "layers x width"},
      {"batch", "examples per step"},
      {"lr", "peak learning rate, of Lion before it is divided"},
      {"warmup", "steps of linear warm-up"},
      {"data",
       "steady; new: from --change-step on all batches in place of the first few; jump:F, contrast:F: "
       "gradients or pixels times F from then on; constant:F: gradients times F from the start"},
      {"beta2", "decay of the second moment; 1-t^-L: that schedule"},
      {"optimizer", "optimiser (describe loss-spikes lists them)"}};
  return columns;
}

Arm ArmOf(const Frame& row) {
  Arm arm;
  for (const auto& [name, field] : kFields) arm.*field = row.Text(name);
  return arm;
}

Arm ArmOf(const Trial& trial) {
  Arm arm;
  for (const auto& [name, field] : kFields) arm.*field = trial.parameters.at(name);
  return arm;
}

Row CellsOf(const Arm& arm) {
  Row cells;
  for (const auto& [name, field] : kFields) cells.emplace_back(arm.*field);
  return cells;
}

Arm With(Arm arm, std::string Arm::*field, std::string_view value) {
  arm.*field = value;
  return arm;
}

std::string InputParameter(std::string_view model) {
  if (model == "clip") return "image.patches.weight";
  if (model == kStudent) return "input.weight";
  return model == "vit" ? "patches.weight" : "embedding.tokens";
}

Arm Centre(const Settings& settings, const std::string& beta2) {
  return {settings.GetList("models").front(),
          settings.Get("size"),
          settings.Get("batch"),
          settings.Get("lr"),
          settings.Get("warmup"),
          std::string(kSteady),
          beta2,
          std::string(kAdamW)};
}

Arm Student(const Settings& settings, const std::string& beta2) {
  Arm arm = Centre(settings, beta2);
  arm.model = kStudent;
  arm.batch = settings.Get("student-batch");
  return arm;
}

std::vector<std::string> SchedulesOf(const Settings& settings) {
  std::vector<std::string> schedules;
  for (const std::string& lambda : settings.GetListOrNone("lambdas")) {
    schedules.push_back(std::string(kSchedule) + lambda);
  }
  return schedules;
}

uint64_t ChangeStep(const Settings& settings) {
  return static_cast<uint64_t>(settings.GetInteger("change-step", 1, kMostSteps));
}

double PlaceOf(std::string Arm::*field, const std::string& value) {
  if (field != &Arm::size) return std::stod(value);
  const ModelSize size = ParseSize("sizes", value);
  return static_cast<double>(size.layers * size.width * size.width);
}

std::vector<Arm> ArmsOf(const Settings& settings) {
  CheckLists(settings);
  ArmList arms;
  for (const std::string& beta2 : settings.GetList("beta2")) arms.Add(Centre(settings, beta2));
  for (const std::string& schedule : SchedulesOf(settings)) arms.Add(Centre(settings, schedule));
  const std::vector<std::string> models = settings.GetList("models");
  for (const std::string& beta2 : settings.GetList("axis-beta2")) {
    const Arm centre = Centre(settings, beta2);
    arms.Add(centre);
    arms.AddAxis(settings, "sizes", &Arm::size, centre);
    arms.AddAxis(settings, "batches", &Arm::batch, centre);
    arms.AddAxis(settings, "lrs", &Arm::lr, centre);
    arms.AddAxis(settings, "warmups", &Arm::warmup, centre);
    arms.AddAxis(settings, "changes", &Arm::data, centre);
    for (const std::string_view optimizer : {kAdamW, kStable}) {
      const Arm arm = With(centre, &Arm::optimizer, optimizer);
      for (const std::string& model : std::span(models).subspan(1)) {
        arms.Add(With(arm, &Arm::model, model));
      }
      if (HasNewData(settings)) arms.Add(With(arm, &Arm::data, kNewData));
    }
  }
  for (const std::string& beta2 : settings.GetList("axis-beta2")) {
    for (const std::string_view optimizer : {kAdamW, kStable}) {
      arms.AddAxis(settings,
                   "student-lrs",
                   &Arm::lr,
                   With(Student(settings, beta2), &Arm::optimizer, optimizer));
    }
  }
  for (const std::string& beta2 : settings.GetListOrNone("optimizer-beta2")) {
    if (!settings.Get("optimizers").empty()) arms.Add(Centre(settings, beta2));
    arms.AddAxis(settings, "optimizers", &Arm::optimizer, Centre(settings, beta2));
  }
  return arms.Take();
}

std::vector<Trial> Trials(const Settings& settings) {
  const auto steps = static_cast<uint64_t>(settings.GetInteger("steps", 5, kMostSteps));
  const uint64_t change = ChangeStep(settings);
  settings.GetInteger("old-batches", 1, 1 << 20);
  settings.GetInteger("student-batch", 1, 1 << 20);
  settings.GetYes("curvature");
  std::vector<Trial> trials;
  for (const Arm& arm : ArmsOf(settings)) {
    const TrainConfig config = ConfigOf(settings, arm, settings.seed);
    CheckTrainings(settings,
                   {&config, 1},
                   {{"train.batch", arm.batch == settings.Get("batch") ? "batch" : "batches"},
                    {"schedule.peak", arm.lr == settings.Get("lr") ? "lr" : "lrs"},
                    {"model.layers", "sizes"},
                    {"model.width", "sizes"},
                    {"model.heads", "sizes"},
                    {"stress.jump_loss", "changes"},
                    {"stress.jump_contrast", "changes"},
                    {"optimizer.beta2_decay", "lambdas"}});
    RuleOf(settings, arm);
    if (ChangesAtAStep(arm.data) && change >= steps) {
      throw Error::Format("--change-step {}: the trainings have {} steps", change, steps);
    }
    const auto layers = static_cast<double>(config.model.layers);
    const auto width = static_cast<double>(config.model.width);
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back(
          {.label = fmt::format("{} seed={}", arm.Text(), seed),
           .seed = seed,
           .parameters = ParametersOf(arm),
           .cost = layers * width * (width + 64) * static_cast<double>(config.train.batch)});
    }
  }
  return trials;
}

}  // namespace numsim::experiments::loss_spikes
