// The configuration and the spike rule of an arm of `loss-spikes`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "experiments/core/settings.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments::loss_spikes {
namespace {

// Returns the number that ends `text` after `prefix`; nullopt if it does not have that form.
std::optional<double> NumberAfter(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void SetBeta2(const std::string& text, OptimizerConfig& optimizer) {
  if (const auto lambda = NumberAfter(kSchedule, text)) {
    optimizer.beta2_decay = *lambda;
    return;
  }
  const auto beta2 = NumberAfter("", text);
  if (!beta2 || !(*beta2 >= 0 && *beta2 < 1)) {
    throw Error::Format("--beta2: '{}' is not a number from 0 to below 1", text);
  }
  optimizer.beta2 = *beta2;
}

void SetData(const Settings& settings, const Arm& arm, TrainConfig& config) {
  if (arm.data == kSteady || arm.data == kNewData) return;
  StressConfig& stress = config.stress;
  if (const auto factor = NumberAfter("jump:", arm.data)) {
    stress.jump_step = ChangeStep(settings);
    stress.jump_loss = *factor;
  } else if (const auto constant = NumberAfter("constant:", arm.data)) {
    stress.jump_loss = *constant;
  } else if (const auto contrast = NumberAfter("contrast:", arm.data)) {
    stress.jump_step = ChangeStep(settings);
    stress.jump_contrast = *contrast;
  } else {
    throw Error::Format("--changes: '{}' is not new, jump:F, constant:F or contrast:F", arm.data);
  }
}

void SetOptimizer(const std::string& name, TrainConfig& config) {
  std::vector<std::string_view> names;
  for (const OptimizerArm& arm : OptimizerArms()) {
    if (arm.name == name) return arm.set(config);
    names.push_back(arm.name);
  }
  throw NotOneOf("--optimizers:", name, fmt::format("{}", fmt::join(names, ", ")));
}

constexpr size_t kStudentFeatures = 16;

// A student that sees all its data in every step, so that its loss has no noise: the rival predictor's
// own setting.
void SetStudent(TrainConfig& config) {
  config.data.kind = DataKind::kGaussian;
  config.data.size = 2 * config.train.batch;
  config.data.valid_share = 0.5;
  config.data.features = kStudentFeatures;
  if (config.model.width == kStudentFeatures) {
    throw Error::Format("--sizes: a student of width {} has no input layer; take another width",
                        config.model.width);
  }
  config.schedule.kind = ScheduleKind::kConstant;
  config.optimizer.epsilon = 1e-8;
  config.optimizer.weight_decay = 0;
}

ModelKind KindOf(const std::string& model) {
  for (const ModelKind kind :
       {ModelKind::kClip, ModelKind::kVit, ModelKind::kLlama, ModelKind::kMlp}) {
    if (model == ToString(kind)) return kind;
  }
  throw NotOneOf("--models:", model, "clip, vit, llama, mlp");
}

void SetModel(const Settings& settings, const Arm& arm, TrainConfig& config) {
  config.model.kind = KindOf(arm.model);
  SetSize(ParseSize("sizes", arm.size), config.model);
  config.model.patch = static_cast<size_t>(settings.GetInteger("patch", 1, 1 << 16));
  ReadPatchDropout(settings, config.model);
  DataConfig& data = config.data;
  switch (config.model.kind) {
    case ModelKind::kClip:
      ReadCaptions(settings, data);
      break;
    case ModelKind::kVit:
      data.kind = DataKind::kGeneratedImages;
      data.size = static_cast<size_t>(settings.GetInteger("images", 64, 1 << 24));
      config.model.patch_dropout = settings.GetDouble("patch-dropout", 0, 1);
      break;
    case ModelKind::kLlama:
      ReadText(settings, data);
      break;
    default:  // kMlp
      SetStudent(config);
  }
}

}  // namespace

TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  Settings single = settings;
  single.options["batch"] = arm.batch;
  single.options["lr"] = arm.lr;
  single.options["warmup"] = arm.warmup;
  single.options.erase("beta2");
  single.options.erase("size");
  TrainConfig config;
  config.linear.all.high_precision = "fp32";
  ReadTraining(single, seed, config);
  SetModel(settings, arm, config);
  SetBeta2(arm.beta2, config.optimizer);
  SetOptimizer(arm.optimizer, config);
  SetData(settings, arm, config);
  // Frequencies of spikes are those of whole trainings: a loss that is high does not end them.
  config.train.diverged_above = 0;
  config.telemetry.every = ~uint64_t{0};
  config.telemetry.tensors_every = 0;
  return config;
}

SpikeRule RuleOf(const Settings& settings, const Arm& arm) {
  Settings single = settings;
  single.options["warmup"] = arm.warmup;
  SpikeRule rule;
  rule.rms = settings.GetDouble("spike-rms", 1e-3, 1e6);
  rule.deviations = settings.GetDouble("spike-deviations", 1e-3, 1e6);
  rule.window = static_cast<size_t>(settings.GetInteger("window", 2, 1 << 20));
  const char* const ignored = settings.Get("ignored") == "warm-up" ? "warmup" : "ignored";
  rule.ignored = static_cast<uint64_t>(single.GetInteger(ignored, 0, kMostSteps));
  CheckSpikeRule(rule);
  return rule;
}

}  // namespace numsim::experiments::loss_spikes
