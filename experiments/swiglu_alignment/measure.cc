// Measures a training of `swiglu-alignment`.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/channels.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/elementary.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

using study::Measurement;

// Returns the step of the early record of a training.
uint64_t EarlyStep(uint64_t steps) { return std::max<uint64_t>(1, steps / kEarlyPart); }

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
  rows.Add("points",
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
    rows.Add("channels",
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
    rows.Add("elements", {step, i, mlp.Linear(channel)[i], mlp.Gate(channel)[i]});
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
    rows.Add("gates",
             {bin * kBinWidth, static_cast<double>(count) / static_cast<double>(mlp.inner.rows)});
  }
}

// Records the state of all MLPs; the outlier channel is known at the end. Weights and activations are
// kept of the early and of the last record.
class ChannelProbe final : public study::Probe {
 public:
  explicit ChannelProbe(const Measurement& training)
      : steps_(RecordSteps(training.settings, training.trainer.config().train.steps)),
        early_step_(EarlyStep(training.trainer.config().train.steps)) {}

  void Begin(Measurement& training) override { RecordIfDue(training.trainer); }
  void After(Measurement& training) override { RecordIfDue(training.trainer); }

  void End(Measurement& training) override {
    const Place outlier = LeadingChannel(records_.back());
    TrainingRows& rows = training.rows;
    for (const Record& record : records_) {
      AddPoint(record, outlier, training.trainer.tokens_per_step(), rows);
    }
    for (const Record* const record : {&records_[early_], &records_.back()}) {
      AddChannels(*record, outlier.block, rows);
    }
    AddGates(last_mlps_[outlier.block], outlier.channel, rows);
    if (training.seed == training.settings.seed) {
      AddElements(records_[early_].step, early_mlps_[outlier.block], outlier.channel, rows);
      AddElements(records_.back().step, last_mlps_[outlier.block], outlier.channel, rows);
    }
    AddRun(training, outlier);
  }

  void Keep(StateArchive& archive) override { archive(records_, early_mlps_, last_mlps_, early_); }

 private:
  void RecordIfDue(Trainer& trainer) {
    if (records_.size() == steps_.size()) return;
    const uint64_t step = steps_[records_.size()];
    if (trainer.steps_taken() < step) return;
    last_mlps_ = SnapshotOf(trainer);
    records_.push_back(RecordOf(trainer, last_mlps_));
    if (step > early_step_) return;
    early_mlps_ = last_mlps_;
    early_ = records_.size() - 1;
  }

  void AddRun(Measurement& training, const Place& outlier) const {
    const Record& first = records_[early_];
    const Record& last = records_.back();
    const ChannelState& early = At(first, outlier);
    const ChannelState& late = At(last, outlier);
    training.rows.Add("runs",
                      {training.trainer.model().parameters().Elements(),
                       ToString(training.trainer.status()),
                       training.trainer.steps_taken(),
                       training.start_loss,
                       training.FinalLoss(),
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

  std::vector<uint64_t> steps_;  // of the records
  uint64_t early_step_;
  std::vector<Record> records_;
  std::vector<MlpSnapshot> early_mlps_, last_mlps_;
  size_t early_ = 0;  // the early record, or the last one if the training ended before
};

}  // namespace

std::vector<uint64_t> RecordSteps(const Settings& settings, uint64_t steps) {
  const auto points = static_cast<uint64_t>(settings.GetInteger("points", 1, 10'000));
  std::vector<uint64_t> at = {0, EarlyStep(steps)};
  for (uint64_t i = 1; i <= points; ++i) at.push_back(i * steps / points);
  std::ranges::sort(at);
  at.erase(std::unique(at.begin(), at.end()), at.end());
  return at;
}

study::ProbeSpec Channels() {
  return {
      .make = [](const Measurement& training) { return std::make_unique<ChannelProbe>(training); }};
}

}  // namespace numsim::experiments::swiglu_alignment
