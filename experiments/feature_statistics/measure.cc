// Measures one trial of `feature-statistics`: a training.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::feature_statistics {
namespace {

// A tensor of the model and its maximum at each step so far.
struct Watched {
  std::string tower;
  size_t block;
  const BlockTensor* tensor;
  std::vector<double> maxima;
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
class Watch {
 public:
  explicit Watch(const ModelConfig& model) {
    const bool swiglu = model.kind == ModelKind::kLlama;
    for (const Tower& tower : TowersOf(model)) {
      for (size_t block = 0; block < tower.layers; ++block) {
        const std::string name = fmt::format("{}blocks.{}", tower.prefix, block);
        for (const BlockTensor& tensor : BlockTensors()) {
          const std::string_view behind = swiglu ? tensor.swiglu : tensor.gelu;
          places_[{name + std::string(behind), std::string(tensor.role)}] = watched_.size();
          watched_.push_back({tower.name, block, &tensor, {}});
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

  const std::vector<Watched>& watched() const { return watched_; }
  void Keep(StateArchive& archive) {
    for (Watched& watched : watched_) archive(watched.maxima);
  }

 private:
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

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const std::string& size = trial.parameters.at("size");
  const std::string& scale = trial.parameters.at("layer_scale");
  const TrainConfig config = ConfigOf(settings, {ParseSize("sizes", size), scale}, trial.seed);
  const auto every =
      static_cast<uint64_t>(settings.GetInteger("every", 1, std::numeric_limits<int32_t>::max()));
  Trainer trainer(config, OpenData(config.data));
  Watch watch(trainer.config().model);
  TrainingRows rows({size, scale, trial.seed});
  uint64_t step = 0;
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) { archive(rows, watch, step); });
  for (; loop.Next(); ++step) {
    trainer.Step();
    const std::vector<Row> features = watch.Take(trainer.telemetry().Of("tensors"));
    trainer.telemetry().Clear();
    if (step % every != 0 && trainer.status() == TrainStatus::kRunning) continue;
    for (const Row& cells : features) rows.Add(kFeaturesTable, cells);
  }
  for (const Watched& watched : watch.watched()) {
    for (const auto& [steps, first] :
         {std::pair{kAllSteps, uint64_t{0}}, std::pair{kAfterWarmup, config.schedule.warmup}}) {
      for (const Forecast forecast : kForecasts) {
        for (const size_t history : HistoriesOf(settings)) {
          rows.Add(kMaximaTable, MaximaRow(watched, steps, forecast, history, first));
        }
      }
    }
  }
  rows.Add(kFinalTable,
           {ToString(trainer.status()),
            trainer.steps_taken(),
            trainer.recent_loss(),
            FinalLoss(trainer)});
  return rows.Take();
}

}  // namespace numsim::experiments::feature_statistics
