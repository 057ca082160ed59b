#include "numsim/train/internal/run_spikes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <span>
#include <utility>

#include "numsim/stats/spikes.h"
#include "numsim/train/internal/curve.h"
#include "numsim/train/internal/loss_history.h"
#include "numsim/train/internal/run_summary.h"

namespace numsim {
namespace {

constexpr size_t kMostNamed = 10;  // steps that the summary names

SpikeRule RuleOf(const TrainConfig& config) {
  return {.window = LossHistory::kWindow, .ignored = config.schedule.warmup};
}

bool HasEveryStep(const TrainConfig& config) { return config.telemetry.every == 1; }

std::string StepsText(const std::vector<uint64_t>& steps) {
  if (steps.empty()) return "0";
  const std::span<const uint64_t> named =
      std::span(steps).first(std::min(steps.size(), kMostNamed));
  return fmt::format("{}, at step{} {}{}",
                     steps.size(),
                     steps.size() == 1 ? "" : "s",
                     fmt::join(named, ", "),
                     named.size() < steps.size() ? ", ..." : "");
}

// Returns the row with the largest RMS_t after the warm-up, or the number of rows.
size_t LargestRms(const Table& train, uint64_t ignored) {
  size_t largest = train.rows.size();
  for (size_t row = ignored; row < train.rows.size(); ++row) {
    const double rms = train.Number(row, "rms");
    if (largest == train.rows.size() ? rms > 0 : rms > train.Number(largest, "rms")) largest = row;
  }
  return largest;
}

}  // namespace

TrainingSpikes SpikesOf(const TrainConfig& config, const Table& train) {
  if (!HasEveryStep(config)) return {};
  const SpikeRule rule = RuleOf(config);
  return {DeviationSpikes(CurveOf(train, "loss_deviation").y, rule),
          RmsSpikes(CurveOf(train, "rms").y, rule)};
}

Series SpikeMarks(std::string label,
                  int style,
                  const std::vector<uint64_t>& steps,
                  const Table& train) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Series marks;
  marks.label = std::move(label);
  marks.style = style;
  for (const uint64_t step : steps) {
    // A point that is not finite keeps a line from joining two spikes.
    marks.x.insert(marks.x.end(), {static_cast<double>(step), kNone});
    marks.y.insert(marks.y.end(), {train.Number(step, "loss"), kNone});
  }
  return marks;
}

std::string SpikesText(const TrainConfig& config, const Table& train) {
  if (!HasEveryStep(config)) return "";
  const TrainingSpikes spikes = SpikesOf(config, train);
  std::string text = fmt::format("{:<28}{}\n", "loss spikes", StepsText(spikes.loss));
  const size_t row = LargestRms(train, config.schedule.warmup);
  if (row == train.rows.size()) return text;
  return text + fmt::format("{:<28}{}; largest RMS_t {:.3g} in {} at step {}\n",
                            "RMS spikes",
                            StepsText(spikes.rms),
                            train.Number(row, "rms"),
                            train.Text(row, "rms_tensor"),
                            train.Text(row, "step"));
}

}  // namespace numsim
