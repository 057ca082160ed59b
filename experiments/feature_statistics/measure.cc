// Measures a training of `feature-statistics`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "experiments/feature_statistics/feature_statistics.h"
#include "numsim/quantize/quantize.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::feature_statistics {
namespace {

using study::Measurement;

constexpr BlockTensor kBlockTensors[] = {
    {"output", "", "", "activation", false},
    {"mlp-first-weight-gradient",
     ".mlp.up.weight",
     ".mlp.gate_up.weight",
     "weight-gradient",
     false},
    {"mlp-second-weight-gradient",
     ".mlp.down.weight",
     ".mlp.down.weight",
     "weight-gradient",
     false},
    {"output-gradient", "", "", "gradient", false},
    {"mlp-first-x", ".mlp.norm", ".mlp.norm", "activation", true},
    {"mlp-second-x", ".mlp.hidden", ".mlp.hidden", "activation", true},
    {"mlp-first-w", ".mlp.up.weight", ".mlp.gate_up.weight", "weight", true},
    {"mlp-second-w", ".mlp.down.weight", ".mlp.down.weight", "weight", true},
    {"mlp-first-g", ".mlp.up", ".mlp.gate_up", "gradient", true},
    {"mlp-second-g", ".mlp.down", ".mlp.down", "gradient", true},
};

// The signal over noise of an operand in E4M3, in dB, summed over steps, by the maximum that its scale has.
struct ScaledSums {
  uint64_t compared = 0;  // steps
  double current = 0;     // the step's own
  double average = 0;     // the mean of earlier ones
  double half = 0;        // half of that mean
};

// A tensor of the model and its maximum at each step so far.
struct Watched {
  std::string tower;
  size_t block;
  const BlockTensor* tensor;
  std::vector<double> maxima;
  ScaledSums scaled;

  // Scales an operand by its own maximum and by those of earlier steps. Leaves out what has no scale.
  void Scale(std::span<const float> values, size_t history) {
    const double own = AbsmaxOfAll(values), foretold = MeanOfLast(maxima, history);
    if (!(own > 0 && foretold > 0 && std::isfinite(own) && std::isfinite(foretold))) return;
    ++scaled.compared;
    scaled.current += ScaledSqnr(values, own);
    scaled.average += ScaledSqnr(values, foretold);
    scaled.half += ScaledSqnr(values, foretold / 2);
  }
};

// A tower of transformer blocks; the block "image.blocks.3" is in the tower "image".
struct Tower {
  std::string name, prefix;
  size_t layers;
};

std::vector<Tower> TowersOf(const ModelConfig& model) {
  switch (model.kind) {
    case ModelKind::kClip:
      return {{"image", "image.", model.layers},
              {"text", "text.", model.text_layers != 0 ? model.text_layers : model.layers}};
    case ModelKind::kVit:
      return {{"image", "", model.layers}};
    default:
      return {{"text", "", model.layers}};
  }
}

// Collects the measured tensors of all blocks.
class Watch final : public PassObserver<float> {
 public:
  explicit Watch(const ModelConfig& model) {
    const bool swiglu = model.kind == ModelKind::kLlama;
    for (const Tower& tower : TowersOf(model)) {
      for (size_t block = 0; block < tower.layers; ++block) {
        const std::string name = fmt::format("{}blocks.{}", tower.prefix, block);
        for (const BlockTensor& tensor : BlockTensors()) {
          const std::string_view behind = swiglu ? tensor.swiglu : tensor.gelu;
          places_[{name + std::string(behind), std::string(tensor.role)}] = watched_.size();
          watched_.push_back({tower.name, block, &tensor, {}, {}});
        }
      }
    }
  }

  // Reads the maxima of a step from telemetry's table `tensors`. Returns rows of `features` without
  // the key of the training.
  std::vector<Row> Take(const Table& tensors) {
    std::vector<Row> rows;
    for (size_t r = 0; r < tensors.rows.size(); ++r) {
      const auto found = places_.find({tensors.Text(r, "point"), tensors.Text(r, "role")});
      if (found == places_.end()) continue;
      Watched& watched = watched_[found->second];
      const bool finite = tensors.Number(r, "nonfinite") == 0;
      const double max =
          finite ? tensors.Number(r, "max_abs") : std::numeric_limits<double>::infinity();
      watched.maxima.push_back(max);
      const auto cell = [&](const char* column) { return tensors.rows[r][tensors.Column(column)]; };
      rows.push_back({cell("step"),
                      watched.tower,
                      watched.block,
                      std::string(watched.tensor->name),
                      cell("mean_abs"),
                      max,
                      cell("rms")});
    }
    return rows;
  }

  // Begins a step. With a history above 0 its operands are scaled: weights at once, the others when the pass has
  // them, before they are rounded for storage.
  void Begin(Trainer& trainer, size_t history) {
    history_ = history;
    trainer.Observe(history > 0 ? this : nullptr);
    if (history == 0) return;
    ParameterList<float>& parameters = trainer.model().parameters();
    for (const auto& [place, index] : places_) {
      const auto& [point, role] = place;
      if (role == "weight")
        watched_[index].Scale(parameters.Find(point)->value.View().Span(), history);
    }
  }
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    const char* const name = role == TensorRole::kActivation ? "activation" : "gradient";
    const auto found = places_.find({std::string(point), name});
    if (found == places_.end() || !watched_[found->second].tensor->operand) return;
    watched_[found->second].Scale(values.Span(), history_);
  }

  const std::vector<Watched>& watched() const { return watched_; }
  void Keep(StateArchive& archive) {
    for (Watched& watched : watched_) {
      ScaledSums& scaled = watched.scaled;
      archive(watched.maxima, scaled.compared, scaled.current, scaled.average, scaled.half);
    }
  }

 private:
  size_t history_ = 0;
  std::vector<Watched> watched_;
  std::map<std::pair<std::string, std::string>, size_t> places_;  // by tensor name and role
};

// Returns a row of `maxima` without the key of the training.
Row MaximaRow(const Watched& watched,
              std::string_view steps,
              Forecast forecast,
              size_t history,
              size_t first) {
  const ForecastQuality quality = JudgeForecast(watched.maxima, forecast, history, first);
  return {watched.tower,
          watched.block,
          std::string(watched.tensor->name),
          steps,
          ToString(forecast),
          uint64_t{history},
          uint64_t{quality.compared},
          uint64_t{quality.overruns},
          uint64_t{quality.clipped},
          uint64_t{quality.within_2},
          quality.largest_excess,
          quality.change_median,
          quality.change_95};
}

// Returns the longest of the histories that are at most kJudgedHistory.
size_t JudgedHistory(const Settings& settings) {
  size_t judged = 1;
  for (const size_t history : HistoriesOf(settings)) {
    if (history <= kJudgedHistory) judged = history;
  }
  return judged;
}

class BlockProbe final : public study::Probe {
 public:
  explicit BlockProbe(const Measurement& training)
      : watch_(training.trainer.config().model),
        every_(static_cast<uint64_t>(
            training.settings.GetInteger("every", 1, std::numeric_limits<int32_t>::max()))),
        history_(JudgedHistory(training.settings)) {}

  void Before(Measurement& training) override {
    Trainer& trainer = training.trainer;
    const bool judged = step_ >= trainer.config().schedule.warmup && step_ % every_ == 0;
    watch_.Begin(trainer, judged ? history_ : 0);
  }

  void After(Measurement& training) override {
    Trainer& trainer = training.trainer;
    const std::vector<Row> features = watch_.Take(trainer.telemetry().Of("tensors"));
    const uint64_t step = step_++;
    if (step % every_ != 0 && trainer.status() == TrainStatus::kRunning) return;
    for (const Row& cells : features) training.rows.Add("features", cells);
  }

  void End(Measurement& training) override {
    const std::vector<size_t> histories = HistoriesOf(training.settings);
    const uint64_t warmup = training.trainer.config().schedule.warmup;
    for (const Watched& watched : watch_.watched()) {
      for (const auto& [steps, first] :
           {std::pair{kAllSteps, uint64_t{0}}, std::pair{kAfterWarmup, warmup}}) {
        for (const Forecast forecast : kForecasts) {
          for (const size_t history : histories) {
            training.rows.Add("maxima", MaximaRow(watched, steps, forecast, history, first));
          }
        }
      }
    }
    for (const Watched& watched : watch_.watched()) {
      if (watched.tensor->operand) training.rows.Add("scaled", ScaledRow(watched));
    }
    const Trainer& trainer = training.trainer;
    training.rows.Add("final",
                      {ToString(trainer.status()),
                       trainer.steps_taken(),
                       trainer.recent_loss(),
                       training.FinalLoss()});
  }

  void Keep(StateArchive& archive) override { archive(watch_, step_); }

 private:
  // Returns a row of `scaled` without the key of the training.
  Row ScaledRow(const Watched& watched) const {
    const ScaledSums& sums = watched.scaled;
    const auto steps = static_cast<double>(sums.compared);
    return {watched.tower,
            watched.block,
            std::string(watched.tensor->name),
            uint64_t{history_},
            sums.compared,
            sums.current / steps,
            sums.average / steps,
            sums.half / steps};
  }

  Watch watch_;
  uint64_t every_ = 1, step_ = 0;
  size_t history_ = 1;
};

}  // namespace

std::span<const BlockTensor> BlockTensors() { return kBlockTensors; }

study::ProbeSpec Blocks() {
  const Column tower{"tower", "image or text"};
  const Column block{"block", "number of the block, from 0"};
  const Column tensor{"tensor", "tensor of the block"};
  return {
      .tables = {{"features",
                  {{"step", "steps taken before this one"},
                   tower,
                   block,
                   tensor,
                   {"mean_abs", "mean magnitude of the finite elements"},
                   {"max_abs", "largest magnitude; inf if an element is not finite"},
                   {"rms", "root mean square of the finite elements"}}},
                 {"maxima",
                  {tower,
                   block,
                   tensor,
                   {"steps", "steps that are judged: all, or after-warmup"},
                   {"forecast", "prediction of a maximum: max or mean of the history"},
                   {"history", "number of previous steps in the history"},
                   {"compared", "number of steps with a maximum and a forecast above 0"},
                   {"overruns", "number of those steps whose maximum is above the forecast"},
                   {"clipped", "number of those above 16/15 of the forecast"},
                   {"within_2", "number of those within a factor of 2 of the forecast"},
                   {"largest_excess", "largest ratio of a maximum to its forecast"},
                   {"change_median", "median of |log2(maximum / forecast)|"},
                   {"change_95", "95 % quantile of |log2(maximum / forecast)|"}}},
                 {"scaled",
                  {tower,
                   block,
                   tensor,
                   {"history", "number of previous steps in the history"},
                   {"compared", "number of records after the warm-up that have a scale"},
                   {"current",
                    "mean signal over noise of the operand in E4M3, in dB, scaled by its maximum"},
                   {"average", "the same, scaled by the mean of the history's maxima"},
                   {"half", "the same, scaled by half of that mean"}}},
                 {"final",
                  {{"status", "finished or diverged"},
                   {"steps", "steps taken"},
                   {"train_loss", "mean training loss of the last 10 steps, nats"},
                   {"valid_loss", "validation loss at the end; inf when diverged"}}}},
      .make = [](const Measurement& training) { return std::make_unique<BlockProbe>(training); }};
}

}  // namespace numsim::experiments::feature_statistics
