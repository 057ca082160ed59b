// Figures of a training, drawn from its CSV files, which also contain the rows before a resumption.
#include <algorithm>
#include <cmath>
#include <map>

#include "numsim/plot/figure.h"
#include "numsim/train/internal/run_summary.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

// Largest number of points per curve; more cannot be distinguished in a figure of one paper column.
constexpr size_t kMostPoints = 1000;

struct Curve {
  std::vector<double> x, y;
};

Curve Column(const Table& table, std::string_view column) {
  Curve curve;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    curve.x.push_back(table.Number(row, "step"));
    curve.y.push_back(table.Number(row, column));
  }
  return curve;
}

// Returns every n-th point, including the last one, so that at most kMostPoints remain.
Curve Thinned(const Curve& curve) {
  const size_t every = (curve.x.size() + kMostPoints - 1) / kMostPoints;
  Curve result;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if ((curve.x.size() - 1 - i) % every != 0) continue;
    result.x.push_back(curve.x[i]);
    result.y.push_back(curve.y[i]);
  }
  return result;
}

// Returns for each point the mean of it and of up to `window` - 1 points before it.
Curve RunningMean(const Curve& curve, size_t window) {
  Curve result{curve.x, {}};
  for (size_t i = 0; i < curve.y.size(); ++i) {
    const size_t begin = i + 1 < window ? 0 : i + 1 - window;
    double sum = 0;
    for (size_t j = begin; j <= i; ++j) sum += curve.y[j];
    result.y.push_back(sum / static_cast<double>(i + 1 - begin));
  }
  return result;
}

// Mean and maximum over the tensors at each step.
struct OverTensors {
  Curve mean, max;
};
OverTensors Aggregate(const Table& table, std::string_view column) {
  std::map<double, std::pair<std::vector<double>, double>> steps;
  OverTensors result;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    steps[table.Number(row, "step")].first.push_back(table.Number(row, column));
  }
  for (const auto& [step, values] : steps) {
    double sum = 0;
    for (const double value : values.first) sum += value;
    result.mean.x.push_back(step);
    result.mean.y.push_back(sum / static_cast<double>(values.first.size()));
    result.max.x.push_back(step);
    result.max.y.push_back(*std::max_element(values.first.begin(), values.first.end()));
  }
  return result;
}

Series MakeSeries(std::string label, int style, const Curve& curve, bool markers = false) {
  Curve shown = Thinned(curve);
  Series series;
  series.label = std::move(label);
  series.style = style;
  series.markers = markers;
  series.x = std::move(shown.x);
  series.y = std::move(shown.y);
  return series;
}

bool CountsNats(const Trainer& trainer) { return trainer.config().model.kind != ModelKind::kMlp; }

Figure LossFigure(const Trainer& trainer, const std::filesystem::path& directory) {
  const Curve train = Column(ReadCsv(directory / CsvFile("train")), "loss");
  const Table valid = ReadCsv(directory / CsvFile("valid"));
  Panel panel;
  panel.x.label = "step";
  panel.y.label = CountsNats(trainer) ? "loss, nats" : "loss, mean square";
  const size_t window = std::max<size_t>(10, train.x.size() / 50);
  panel.series.push_back(MakeSeries("training", 1, train));
  panel.series.push_back(
      MakeSeries(fmt::format("training, mean of {} rows", window), 0, RunningMean(train, window)));
  if (!valid.rows.empty()) {
    panel.series.push_back(MakeSeries("validation", 2, Column(valid, "loss"), true));
  }
  if (const auto bound = trainer.data().EntropyBound(); bound && !train.x.empty()) {
    Series series =
        MakeSeries("entropy bound", 3, {{train.x.front(), train.x.back()}, {*bound, *bound}});
    series.dashed = true;
    panel.series.push_back(std::move(series));
  }
  Figure figure;
  figure.name = "loss";
  figure.title = fmt::format("Loss of {}", ToString(trainer.config().model.kind));
  figure.panels.push_back(std::move(panel));
  figure.source_csv = CsvFile("train");
  return figure;
}

Panel PanelOf(std::string title, std::string label) {
  Panel panel;
  panel.title = std::move(title);
  panel.x.label = "step";
  panel.y.label = std::move(label);
  return panel;
}

// Draws RMS_t if the optimiser has a second moment, and the fraction of flushed elements of each
// quantised moment.
Figure OptimizerFigure(const Trainer& trainer, const std::filesystem::path& directory) {
  const OptimizerConfig& config = trainer.config().optimizer;
  Figure figure;
  figure.name = "optimizer";
  figure.title = fmt::format("State of {}", ToString(config.kind));
  figure.source_csv = CsvFile("optimizer");
  const Table table = ReadCsv(directory / figure.source_csv);
  if (table.rows.empty()) return figure;
  const bool has_v = trainer.optimizer().StoredBytes().v > 0;
  if (has_v) {
    Panel panel = PanelOf("Update size before clipping", "RMS_t");
    panel.y.label = "RMS_{t}";
    const OverTensors rms = Aggregate(table, "rms");
    panel.series.push_back(MakeSeries("mean over tensors", 0, rms.mean));
    panel.series.push_back(MakeSeries("largest over tensors", 1, rms.max));
    figure.panels.push_back(std::move(panel));
  }
  const auto add_flushed = [&](const MomentFormat& format, const char* title, const char* column) {
    if (format.IsExact()) return;
    Panel panel =
        PanelOf(fmt::format("{} in {}", title, ToString(format)), "fraction stored as zero");
    const OverTensors flushed = Aggregate(table, column);
    panel.series.push_back(MakeSeries("mean over tensors", 0, flushed.mean));
    panel.series.push_back(MakeSeries("largest over tensors", 1, flushed.max));
    figure.panels.push_back(std::move(panel));
  };
  add_flushed(config.m, "First moment", "m_flushed");
  if (has_v) add_flushed(config.v, "Second moment", "v_flushed");
  return figure;
}

}  // namespace

std::vector<std::string> DrawCurves(const Trainer& trainer,
                                    const std::filesystem::path& directory) {
  std::vector<std::string> files = DrawFigure(LossFigure(trainer, directory), directory);
  const Figure optimizer = OptimizerFigure(trainer, directory);
  if (optimizer.panels.empty()) return files;
  for (std::string& file : DrawFigure(optimizer, directory)) files.push_back(std::move(file));
  return files;
}

}  // namespace numsim
