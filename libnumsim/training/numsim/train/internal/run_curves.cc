// Figures of a training, drawn from its CSV files, which also contain the rows before a resumption.
#include <algorithm>
#include <cmath>
#include <map>

#include "numsim/plot/figure.h"
#include "numsim/train/internal/curve.h"
#include "numsim/train/internal/run_spikes.h"
#include "numsim/train/internal/run_summary.h"
#include "numsim/train/internal/what_if_report.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

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

Figure LossFigure(const RunFacts& facts,
                  const Table& rows,
                  const std::filesystem::path& directory) {
  const Curve train = CurveOf(rows, "loss");
  const Table valid = ReadCsv(directory / CsvFile("valid"));
  Panel panel;
  panel.x.label = "step";
  panel.y.label = LossLabel(facts.config.model.kind);
  const size_t window = std::max<size_t>(10, train.x.size() / 50);
  panel.series.push_back(MakeSeries("training", 1, train));
  panel.series.push_back(
      MakeSeries(fmt::format("training, mean of {} rows", window), 0, RunningMean(train, window)));
  if (!valid.rows.empty()) {
    panel.series.push_back(MakeSeries("validation", 2, CurveOf(valid, "loss"), true));
  }
  if (const auto bound = facts.data.EntropyBound(); bound && !train.x.empty()) {
    Series series =
        MakeSeries("entropy bound", 3, {{train.x.front(), train.x.back()}, {*bound, *bound}});
    series.dashed = true;
    panel.series.push_back(std::move(series));
  }
  const TrainingSpikes spikes = SpikesOf(facts.config, rows);
  for (const Series& marks : {SpikeMarks("RMS spike of any parameter", 4, spikes.rms, rows),
                              SpikeMarks("loss spike", 5, spikes.loss, rows)}) {
    if (!marks.x.empty()) panel.series.push_back(marks);
  }
  Figure figure;
  figure.name = "loss";
  figure.title = fmt::format("Loss of {}", ToString(facts.config.model.kind));
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
Figure OptimizerFigure(const RunFacts& facts, const std::filesystem::path& directory) {
  const OptimizerConfig& config = facts.config.optimizer;
  Figure figure;
  figure.name = "optimizer";
  figure.title = fmt::format("State of {}", ToString(config.kind));
  figure.source_csv = CsvFile("optimizer");
  const Table table = ReadCsv(directory / figure.source_csv);
  if (table.rows.empty()) return figure;
  const bool has_v = facts.bytes.v > 0;
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

std::vector<std::string> DrawCurves(const RunFacts& facts,
                                    const Table& train,
                                    const std::filesystem::path& directory) {
  std::vector<std::string> files = DrawFigure(LossFigure(facts, train, directory), directory);
  for (const Figure& figure :
       {OptimizerFigure(facts, directory), WhatIfFigure(facts.config, directory)}) {
    if (figure.panels.empty()) continue;
    for (std::string& file : DrawFigure(figure, directory)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace numsim
