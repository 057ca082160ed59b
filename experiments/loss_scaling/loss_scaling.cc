#include "experiments/loss_scaling/loss_scaling.h"

#include <utility>

#include "experiments/runner/settings.h"
#include "experiments/shared/block_name.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace loss_scaling {
namespace {

using namespace study;

// ---- arms

void CheckSettings(const Settings& settings) {
  CheckDistinct("scales", settings.GetList("scales"));
  CheckSpikeRule(RuleOf(settings));
  const int64_t steps = settings.GetInteger("steps", 10, kMostSteps);
  const int64_t burst = settings.GetInteger("burst-step", 0, 1 << 30);
  if (burst + settings.GetInteger("burst-steps", 1, 1 << 30) <= steps) return;
  throw Error::Format(
      "--burst-step {}: the burst ends after the {} steps of a training", burst, steps);
}

std::vector<Arm> ArmsOf(const Study&, const Settings& settings) {
  CheckSettings(settings);
  const std::vector<std::string> scales = settings.GetList("scales");
  std::vector<Arm> arms = {{kFp32, "1", kNatural}};
  for (const std::string& scale : scales) {
    for (const char* const scaler : {kDynamic, kTensor}) arms.push_back({scaler, scale, kNatural});
  }
  for (const char* const scaler : {kDynamic, kTensor}) {
    arms.push_back({scaler, scales.front(), kBurst});
  }
  return arms;
}

// The scale of fp32 is a name: it has no scaler.
Keys InitialScale(const Settings&, const Arm& arm) {
  if (arm[kScaler] == kFp32) return {};
  return {"loss_scaler.initial=" + arm[kScale]};
}

// ---- the scaler alone

std::vector<Row> Recovery(const Results&) {
  constexpr int kLongestBurst = 10;
  const LossScalerConfig pytorch{.kind = LossScaling::kDynamic};
  std::vector<Row> rows;
  for (int burst = 1; burst <= kLongestBurst; ++burst) {
    rows.push_back({burst, RecoverySteps(pytorch, burst)});
  }
  return rows;
}

// ---- figures

std::string LabelOf(const Results& results, const Frame& rows) {
  return ArmText(results.study,
                 {rows.Text("scaler"), rows.Text("scale"), rows.Text("event")},
                 results.study.label);
}

// The scale and the loss of one seed, step by step.
Figure Trace(const Results& results) {
  Figure figure{"scaling-trace", "Loss scale and training loss, one seed", 2, {}, "scale.csv"};
  Panel scales, losses;
  scales.x.label = losses.x.label = "step";
  scales.y = {.label = "loss scale", .log2 = true};
  losses.y.label = "training loss, nats";
  int style = 0;
  for (const Frame& arm : results.Of("scale").By({"scaler", "scale", "event"})) {
    Series line{.label = LabelOf(results, arm), .style = style++, .markers = false};
    line.x = arm.Numbers("step");
    line.y = arm.Numbers("loss_scale");
    if (arm.Text("scaler") != kFp32) scales.series.push_back(line);
    line.y = arm.Numbers("loss");
    losses.series.push_back(std::move(line));
  }
  figure.panels = {std::move(scales), std::move(losses)};
  return figure;
}

Figure Skipped(const Results& results) {
  Figure figure{.name = "scaling-skipped",
                .title = "Updates of tensors that were skipped",
                .source_csv = "arms.csv"};
  Panel& panel = figure.panels.emplace_back();
  panel.x.label = "share of all updates, %";
  Series bars;
  results.Of("arms").ForEach([&](const Frame& arm) {
    if (arm.Text("scaler") == kFp32) return;
    bars.x.push_back(100 * arm.Number("updates_skipped"));
    bars.y.push_back(static_cast<double>(panel.rows.size()));
    panel.rows.push_back(LabelOf(results, arm));
  });
  panel.series.push_back(std::move(bars));
  return figure;
}

Functions OwnFunctions() {
  Functions functions{.choices = {{"scale", [](const std::string& text) { return Choice{text}; }}},
                      .probes = {{"scaling", Scaling()}},
                      .tables = {{"recovery", Recovery}},
                      .figures = {{"trace", Trace}, {"skipped", Skipped}}};
  AddClaimFunctions(functions);
  return functions;
}

}  // namespace

SpikeRule RuleOf(const Settings& settings) {
  SpikeRule rule;
  rule.window = static_cast<size_t>(settings.GetInteger("window", 2, 1 << 20));
  rule.ignored = static_cast<uint64_t>(settings.GetInteger("warmup", 0, kMostSteps));
  return rule;
}

uint64_t RecoverySteps(const LossScalerConfig& config, int burst) {
  LossScaler scaler(config);
  const double initial = scaler.Scale();
  for (int step = 0; step < burst; ++step) scaler.Update(false);
  uint64_t steps = 0;
  while (scaler.Scale() < initial) {
    scaler.Update(true);
    ++steps;
  }
  return steps;
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

}  // namespace loss_scaling

study::Study LossScalingStudy() {
  using namespace loss_scaling;
  Study study = ReadStudy(StudyText("loss_scaling"), "loss_scaling/study.toml", OwnFunctions());
  study.computed = InitialScale;
  study.arms = ArmsOf;
  study.common.compare = Compare;
  return study;
}

Experiment LossScaling() { return study::MakeExperiment(LossScalingStudy()); }

}  // namespace numsim::experiments
