// The arms of `swiglu-alignment`, one axis at a time around a centre, their configurations and the
// trials.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/runner/settings.h"
#include "experiments/shared/linear_variant.h"
#include "experiments/shared/training.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/error.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

// The fields of an arm, in the order of kArmKey.
const std::vector<std::pair<std::string, std::string Arm::*>>& ArmFields() {
  static const std::vector<std::pair<std::string, std::string Arm::*>> fields = {
      {"size", &Arm::size},
      {"lr", &Arm::lr},
      {"weight_decay", &Arm::weight_decay},
      {"steps", &Arm::steps}};
  return fields;
}

// An axis: a list option, the field that it varies, and the option of the centre's value.
struct Axis {
  const char* list;
  std::string Arm::*field;
  const char* centre;
};
constexpr Axis kAxes[] = {{"lrs", &Arm::lr, "lr"},
                          {"weight-decays", &Arm::weight_decay, "weight-decay"},
                          {"lengths", &Arm::steps, "steps"}};

std::vector<std::string> ValuesOf(const Settings& settings, const Axis& axis) {
  if (settings.Get(axis.list).empty()) return {};
  std::vector<std::string> values = settings.GetList(axis.list);
  CheckDistinct(axis.list, values);
  return values;
}

void CheckRange(const Settings& settings, const char* option, double low, double high) {
  Settings single = settings;
  for (const std::string& value : settings.GetList(option)) {
    single.options[option] = value;
    single.GetDouble(option, low, high);
  }
}

void CheckAxes(const Settings& settings) {
  ParseSize("size", settings.Get("size"));
  if (!settings.Get("lrs").empty()) CheckRange(settings, "lrs", 1e-12, 100);
  if (!settings.Get("weight-decays").empty()) CheckRange(settings, "weight-decays", 0, 100);
  if (!settings.Get("lengths").empty()) settings.GetIntegers("lengths", 1, kMostSteps);
}

LinearOptions ProductsOf(const Settings& settings) {
  const std::string& products = settings.Get("products");
  if (products != "fp32") return ParseLinearVariant("products", products);
  LinearOptions options;
  options.high_precision = "fp32";
  return options;
}

std::map<std::string, std::string> ParametersOf(const Arm& arm) {
  std::map<std::string, std::string> parameters = {{"part", "training"}};
  for (const auto& [name, field] : ArmFields()) parameters[name] = arm.*field;
  return parameters;
}

std::vector<Trial> ExactTrials(const Settings& settings) {
  settings.GetInteger("neuron-steps", 1, 10'000'000);
  std::vector<Trial> trials;
  for (const char* const part : {"stationary", "growth"}) {
    trials.push_back(
        {.label = part, .seed = settings.seed, .parameters = {{"part", part}}, .cost = 1});
  }
  const int64_t starts = settings.GetInteger("starts", 1, 10'000);
  for (int64_t i = 0; i < starts; ++i) {
    trials.push_back({.label = fmt::format("neuron start={}", i),
                      .seed = settings.seed,
                      .parameters = {{"part", "starts"}, {"start", fmt::format("{}", i)}},
                      .cost = 1});
  }
  return trials;
}

}  // namespace

std::string Arm::Text() const {
  return fmt::format("{} lr {} weight decay {} steps {}", size, lr, weight_decay, steps);
}

std::vector<Column> ArmColumns() {
  return {{"size", "layers x width"},
          {"lr", "peak learning rate"},
          {"weight_decay", "decoupled weight decay of matrices"},
          {"steps", "length of the training, over which the learning rate falls"}};
}

Arm ArmOf(const Frame& row) {
  Arm arm;
  for (const auto& [name, field] : ArmFields()) arm.*field = row.Text(name);
  return arm;
}

Arm ArmOf(const Trial& trial) {
  Arm arm;
  for (const auto& [name, field] : ArmFields()) arm.*field = trial.parameters.at(name);
  return arm;
}

Row CellsOf(const Arm& arm) {
  Row cells;
  for (const auto& [name, field] : ArmFields()) cells.emplace_back(arm.*field);
  return cells;
}

Arm Centre(const Settings& settings) {
  return {settings.Get("size"),
          settings.Get("lr"),
          settings.Get("weight-decay"),
          settings.Get("steps")};
}

std::vector<Arm> ArmsOf(const Settings& settings) {
  CheckAxes(settings);
  const Arm centre = Centre(settings);
  std::vector<Arm> arms = {centre};
  for (const Axis& axis : kAxes) {
    for (const std::string& value : ValuesOf(settings, axis)) {
      Arm arm = centre;
      arm.*axis.field = value;
      if (std::find(arms.begin(), arms.end(), arm) == arms.end()) arms.push_back(arm);
    }
  }
  return arms;
}

TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  Settings single = settings;
  single.options["lr"] = arm.lr;
  single.options["weight-decay"] = arm.weight_decay;
  single.options["steps"] = arm.steps;
  single.options.erase("size");
  TrainConfig config;
  config.model.kind = ModelKind::kLlama;
  config.linear.all = ProductsOf(settings);
  SetSize(ParseSize("size", arm.size), config.model);
  ReadTextData(settings, config.data);
  ReadTraining(single, seed, config);
  // A shorter training has a warm-up that is shorter in proportion.
  const auto centre = static_cast<uint64_t>(settings.GetInteger("steps", 1, kMostSteps));
  config.schedule.warmup = config.schedule.warmup * config.train.steps / centre;
  config.telemetry.every = ~uint64_t{0};
  config.telemetry.tensors_every = 0;
  return config;
}

uint64_t EarlyStep(uint64_t steps) { return std::max<uint64_t>(1, steps / kEarlyPart); }

std::vector<uint64_t> RecordSteps(const Settings& settings, uint64_t steps) {
  const auto points = static_cast<uint64_t>(settings.GetInteger("points", 1, 10'000));
  std::vector<uint64_t> at = {0, EarlyStep(steps)};
  for (uint64_t i = 1; i <= points; ++i) at.push_back(i * steps / points);
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  return at;
}

std::vector<Trial> Trials(const Settings& settings) {
  settings.GetInteger("points", 1, 10'000);
  std::vector<Trial> trials = ExactTrials(settings);
  for (const Arm& arm : ArmsOf(settings)) {
    const TrainConfig config = ConfigOf(settings, arm, settings.seed);
    CheckTrainings(settings,
                   {&config, 1},
                   {{"train.steps", arm.steps == settings.Get("steps") ? "steps" : "lengths"},
                    {"schedule.peak", arm.lr == settings.Get("lr") ? "lr" : "lrs"},
                    {"model.layers", "size"},
                    {"model.width", "size"},
                    {"model.heads", "size"}});
    const auto layers = static_cast<double>(config.model.layers);
    const auto width = static_cast<double>(config.model.width);
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back(
          {.label = fmt::format("{} seed={}", arm.Text(), seed),
           .seed = seed,
           .parameters = ParametersOf(arm),
           .cost = 10 + layers * width * (width + 64) * static_cast<double>(config.train.steps)});
    }
  }
  return trials;
}

}  // namespace numsim::experiments::swiglu_alignment
