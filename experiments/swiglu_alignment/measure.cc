// Measures one trial of `swiglu-alignment`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "experiments/swiglu_alignment/channels.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/elementary.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

// The state of all MLPs at one point of a training.
struct Record {
  uint64_t step = 0;
  double loss = kNaN;                               // mean training loss of the last 10 steps
  std::vector<std::vector<ChannelState>> channels;  // by block
  std::vector<double> kurtosis, colinearity;        // by block

  void Keep(StateArchive& archive) { archive(step, loss, channels, kurtosis, colinearity); }
};

// A channel of a block.
struct Place {
  size_t block = 0, channel = 0;
};

// Returns the channel with the largest activation.
Place LeadingChannel(const Record& record) {
  Place leading;
  double largest = -1;
  for (size_t block = 0; block < record.channels.size(); ++block) {
    for (size_t channel = 0; channel < record.channels[block].size(); ++channel) {
      const double one = record.channels[block][channel].largest;
      if (one <= largest) continue;
      largest = one;
      leading = {block, channel};
      if (std::isnan(one)) return leading;
    }
  }
  return leading;
}

const ChannelState& At(const Record& record, const Place& place) {
  return record.channels[place.block][place.channel];
}

// A training with its records. Weights and activations are kept of the early and of the last record.
struct History {
  std::vector<Record> records;
  std::vector<MlpSnapshot> early_mlps, last_mlps;
  size_t early = 0;  // index of the early record, or of the last one if the training ended before

  void Keep(StateArchive& archive) { archive(records, early_mlps, last_mlps, early); }
};

Record RecordOf(const Trainer& trainer, const std::vector<MlpSnapshot>& mlps) {
  Record record;
  record.step = trainer.steps_taken();
  record.loss = trainer.recent_loss();
  for (const MlpSnapshot& mlp : mlps) {
    record.channels.push_back(ChannelsOf(mlp));
    record.kurtosis.push_back(KurtosisOf(mlp.hidden));
    record.colinearity.push_back(ColinearityOf(mlp));
  }
  return record;
}

History TrainAndRecord(const Settings& settings, const Trial& trial, Trainer& trainer) {
  const uint64_t steps = trainer.config().train.steps;
  History history;
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) { archive(history); });
  const std::vector<uint64_t> record_steps = RecordSteps(settings, steps);
  while (history.records.size() < record_steps.size()) {
    const uint64_t at = record_steps[history.records.size()];
    while (trainer.steps_taken() < at && loop.Next()) {
      trainer.Step();
      trainer.telemetry().Clear();
    }
    if (trainer.steps_taken() < at) break;  // it diverged
    history.last_mlps = SnapshotOf(trainer);
    history.records.push_back(RecordOf(trainer, history.last_mlps));
    if (at > EarlyStep(steps)) continue;
    history.early_mlps = history.last_mlps;
    history.early = history.records.size() - 1;
  }
  return history;
}

// Returns |cos| of all channels, without one of them.
std::vector<double> AbsoluteCosines(const Record& record, const std::optional<Place>& without) {
  std::vector<double> cosines;
  for (size_t block = 0; block < record.channels.size(); ++block) {
    for (size_t channel = 0; channel < record.channels[block].size(); ++channel) {
      if (without && without->block == block && without->channel == channel) continue;
      cosines.push_back(std::fabs(record.channels[block][channel].cos));
    }
  }
  return cosines;
}

double MeanOfOthers(const Record& record, const Place& outlier) {
  const std::vector<double> others = AbsoluteCosines(record, outlier);
  double sum = 0;
  for (const double one : others) sum += one;
  return others.empty() ? 0 : sum / static_cast<double>(others.size());
}

// Returns the correlation of |cos| with the logarithm of the largest activation over the channels of a
// block.
double CorrelationWithOutliers(const std::vector<ChannelState>& channels) {
  Comoments comoments;
  for (const ChannelState& state : channels) {
    if (!(state.largest > 0) || !std::isfinite(state.largest)) continue;
    comoments.Add(std::fabs(state.cos), Log(state.largest));
  }
  return comoments.Correlation();
}

double LargestActivation(const Record& record) {
  return At(record, LeadingChannel(record)).largest;
}

void AddPoint(const Record& record, const Place& outlier, uint64_t tokens, TrainingRows& rows) {
  const ChannelState& state = At(record, outlier);
  const Place leading = LeadingChannel(record);
  const std::vector<double> cosines = AbsoluteCosines(record, std::nullopt);
  rows.Add(kPointsTable,
           {record.step,
            record.step * tokens,
            record.loss,
            state.cos,
            std::fabs(state.cos),
            Quantile(cosines, 0.05),
            Quantile(cosines, 0.5),
            Quantile(cosines, 0.95),
            state.linear_norm,
            state.gate_norm,
            state.gate_norm / state.linear_norm,
            state.above_one,
            state.above_e,
            state.slope,
            state.largest,
            record.kurtosis[outlier.block],
            record.colinearity[outlier.block],
            LargestActivation(record),
            leading.block,
            leading.channel,
            At(record, leading).cos});
}

void AddChannels(const Record& record, size_t block, TrainingRows& rows) {
  for (size_t channel = 0; channel < record.channels[block].size(); ++channel) {
    const ChannelState& state = record.channels[block][channel];
    rows.Add(kChannelsTable,
             {record.step,
              block,
              channel,
              state.cos,
              state.linear_norm,
              state.gate_norm,
              state.cos_down,
              state.above_one,
              state.above_e,
              state.slope,
              state.largest});
  }
}

void AddElements(uint64_t step, const MlpSnapshot& mlp, size_t channel, TrainingRows& rows) {
  for (size_t i = 0; i < mlp.gate_up.cols; ++i) {
    rows.Add(kElementsTable, {step, i, mlp.Linear(channel)[i], mlp.Gate(channel)[i]});
  }
}

constexpr double kBinWidth = 0.25;  // of ln |w2.x|
constexpr double kLeastGate = 1e-6;

// Adds the histogram of ln |w2.x| over tokens.
void AddGates(const MlpSnapshot& mlp, size_t channel, TrainingRows& rows) {
  std::map<int, size_t> bins;
  for (const double gate : ColumnOf(mlp.inner, channel)) {
    if (!std::isfinite(gate)) continue;
    ++bins[static_cast<int>(std::floor(Log(std::max(std::fabs(gate), kLeastGate)) / kBinWidth))];
  }
  for (const auto& [bin, count] : bins) {
    rows.Add(kGatesTable,
             {bin * kBinWidth, static_cast<double>(count) / static_cast<double>(mlp.inner.rows)});
  }
}

void AddRun(const Trainer& trainer,
            double start,
            double valid,
            const History& history,
            const Place& outlier,
            TrainingRows& rows) {
  const Record& first = history.records[history.early];
  const Record& last = history.records.back();
  const ChannelState& early = At(first, outlier);
  const ChannelState& late = At(last, outlier);
  rows.Add(kRunsTable,
           {trainer.model().parameters().Elements(),
            ToString(trainer.status()),
            trainer.steps_taken(),
            start,
            valid,
            outlier.block,
            outlier.channel,
            first.step,
            early.cos,
            late.cos,
            MeanOfOthers(first, outlier),
            MeanOfOthers(last, outlier),
            early.linear_norm,
            late.linear_norm,
            early.gate_norm,
            late.gate_norm,
            late.above_one,
            late.above_e,
            late.slope,
            LargestActivation(first),
            LargestActivation(last),
            first.kurtosis[outlier.block],
            last.kurtosis[outlier.block],
            first.colinearity[outlier.block],
            last.colinearity[outlier.block],
            CorrelationWithOutliers(last.channels[outlier.block])});
}

}  // namespace

Rows MeasureTraining(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  const TrainConfig config = ConfigOf(settings, arm, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  const double start = trainer.Validate().Mean();
  const History history = TrainAndRecord(settings, trial, trainer);
  const Place outlier = LeadingChannel(history.records.back());

  Row key = CellsOf(arm);
  key.emplace_back(trial.seed);
  TrainingRows rows(key);
  for (const Record& record : history.records) {
    AddPoint(record, outlier, trainer.tokens_per_step(), rows);
  }
  for (const size_t record : {history.early, history.records.size() - 1}) {
    AddChannels(history.records[record], outlier.block, rows);
  }
  AddGates(history.last_mlps[outlier.block], outlier.channel, rows);
  if (trial.seed == settings.seed) {
    AddElements(history.records[history.early].step,
                history.early_mlps[outlier.block],
                outlier.channel,
                rows);
    AddElements(
        history.records.back().step, history.last_mlps[outlier.block], outlier.channel, rows);
  }
  AddRun(trainer, start, FinalLoss(trainer), history, outlier, rows);
  return rows.Take();
}

Rows Measure(const Settings& settings, const Trial& trial) {
  const std::string& part = trial.parameters.at("part");
  if (part == "stationary") return {{std::string(kStationaryTable), StationaryRows()}};
  if (part == "growth") return {{std::string(kGrowthTable), GrowthRows()}};
  if (part == "starts")
    return {{std::string(kStartsTable),
             StartRows(settings, std::stoull(trial.parameters.at("start")))}};
  return MeasureTraining(settings, trial);
}

}  // namespace numsim::experiments::swiglu_alignment
