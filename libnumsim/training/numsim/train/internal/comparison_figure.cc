// The figure of a comparison of trainings, and its data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <system_error>

#include "numsim/base/error.h"
#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"
#include "numsim/train/comparison.h"
#include "numsim/train/internal/curve.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtensions[] = {".csv", ".gp", ".svg", ".pdf"};

// One curve per training.
using Curves = std::vector<Curve>;

Curves TrainCurves(const TrainComparison& comparison) {
  Curves curves;
  for (const ComparedTraining& training : comparison.trainings) {
    const uint64_t rows = comparison.mean_steps / training.rows_every;
    curves.push_back(RunningMean({training.train_steps, training.train_losses},
                                 static_cast<size_t>(std::max<uint64_t>(rows, 1))));
  }
  return curves;
}

Curves ValidCurves(const TrainComparison& comparison) {
  Curves curves;
  for (const ComparedTraining& training : comparison.trainings) {
    curves.push_back({training.valid_steps, training.valid_losses});
  }
  return curves;
}

// Returns each curve minus the first one, at the steps that both have.
Curves Differences(const Curves& curves) {
  std::map<double, double> first;
  for (size_t i = 0; i < curves[0].x.size(); ++i) first[curves[0].x[i]] = curves[0].y[i];
  Curves result;
  for (const Curve& curve : curves) {
    Curve difference;
    for (size_t i = 0; i < curve.x.size(); ++i) {
      const auto found = first.find(curve.x[i]);
      if (found == first.end()) continue;
      difference.x.push_back(curve.x[i]);
      difference.y.push_back(curve.y[i] - found->second);
    }
    result.push_back(std::move(difference));
  }
  return result;
}

// Returns the largest finite first value of the curves; infinity if there is none.
double LargestFirst(const Curves& curves) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const Curve& curve : curves) {
    if (!curve.y.empty() && std::isfinite(curve.y[0])) largest = std::max(largest, curve.y[0]);
  }
  return std::isfinite(largest) ? largest : std::numeric_limits<double>::infinity();
}

// Returns the largest magnitude of the finite values of the curves that do not exceed `most`
// anywhere; `most` if that is zero.
double LargestBelow(const Curves& losses, const Curves& differences, double most) {
  double largest = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const std::vector<double>& y = losses[i].y;
    if (std::any_of(y.begin(), y.end(), [&](double loss) { return !(loss <= most); })) continue;
    for (const double d : differences[i].y) largest = std::max(largest, std::abs(d));
  }
  return largest > 0 ? largest : most;
}

// Ends the axis at `most` on each side that has values beyond it, so that a training that diverges
// does not flatten all others, and says so in the title.
void CutAxis(Panel& panel, double most) {
  constexpr double kRoom = 0.04;  // beside the lowest and the highest value, as a fraction
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Series& series : panel.series) {
    for (const double y : series.y) {
      if (!std::isfinite(y)) continue;
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  if (!(high > most || low < -most)) return;
  const double shown_low = std::max(low, -most), shown_high = std::min(high, most);
  const double room = kRoom * (shown_high - shown_low);
  panel.y.low = shown_low - room;
  panel.y.high = shown_high + room;
  panel.title += fmt::format(", cut at {:.2g}", most);
}

// The look of a panel; `of` goes before the label of the axis of losses.
struct PanelLook {
  std::string title;
  std::string of;
  bool markers;
  bool labels;  // in one panel alone, for they are one legend
};

Panel PanelOf(const TrainComparison& comparison, const Curves& curves, const PanelLook& look) {
  Panel panel;
  panel.title = look.title;
  panel.x.label = "step";
  panel.y.label = look.of + LossLabel(comparison.kind);
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string label = look.labels ? comparison.trainings[i].label : "";
    panel.series.push_back(MakeSeries(label, static_cast<int>(i), curves[i], look.markers));
  }
  return panel;
}

// Returns a panel of losses and one of their differences. A training whose loss exceeds twice the
// first losses is cut off there, and by the largest of the other differences.
std::vector<Panel> LossPanels(const TrainComparison& comparison,
                              const Curves& curves,
                              const PanelLook& look,
                              const std::string& difference) {
  const Curves differences = Differences(curves);
  std::vector<Panel> panels = {
      PanelOf(comparison, curves, look),
      PanelOf(comparison, differences, {difference, "difference in ", look.markers, false})};
  const double most = 2 * LargestFirst(curves);
  CutAxis(panels[0], most);
  if (panels[0].y.low != panels[0].y.high) {
    CutAxis(panels[1], LargestBelow(curves, differences, most));
  }
  return panels;
}

Figure ComparisonFigure(const TrainComparison& comparison, const std::string& name) {
  const std::string mean = fmt::format("Training loss, mean of {} steps", comparison.mean_steps);
  const std::vector<Panel> train = LossPanels(comparison,
                                              TrainCurves(comparison),
                                              {mean, "", true, false},
                                              "Training loss minus the first");
  const std::vector<Panel> valid = LossPanels(comparison,
                                              ValidCurves(comparison),
                                              {"Validation loss", "", true, true},
                                              "Validation loss minus the first");
  Figure figure;
  figure.name = name;
  figure.columns = 2;
  figure.source_csv = name + ".csv";
  figure.panels = {train[0], valid[0], train[1], valid[1]};
  return figure;
}

void AppendRows(const ComparedTraining& training,
                const char* curve,
                const Curve& losses,
                const Curve& shown,
                Table& table) {
  for (size_t i = 0; i < losses.x.size(); ++i) {
    table.rows.push_back(
        {training.directory.string(), training.label, curve, losses.x[i], losses.y[i], shown.y[i]});
  }
}

Table DataOf(const TrainComparison& comparison) {
  const Curves train = TrainCurves(comparison), valid = ValidCurves(comparison);
  Table table = {{"directory", "label", "curve", "step", "loss", "shown"}, {}};
  for (size_t i = 0; i < comparison.trainings.size(); ++i) {
    const ComparedTraining& training = comparison.trainings[i];
    const Curve losses = {training.train_steps, training.train_losses};
    AppendRows(training, "training", losses, train[i], table);
    AppendRows(training, "validation", valid[i], valid[i], table);
  }
  return table;
}

// Returns the path without an extension that a figure or its data have.
fs::path Stem(const fs::path& out) {
  const bool known = std::find(std::begin(kExtensions), std::end(kExtensions), out.extension()) !=
                     std::end(kExtensions);
  return known ? out.parent_path() / out.stem() : out;
}

// Throws Error for an output that exists, or that has no name.
void CheckOutputs(const fs::path& stem) {
  if (stem.filename().empty()) {
    throw Error::Format("--out '{}': is not the name of a figure", stem.string());
  }
  for (const char* const extension : kExtensions) {
    const std::string path = stem.string() + extension;
    std::error_code ignored;
    if (fs::exists(path, ignored)) throw Error::Format("{}: exists; use another --out", path);
  }
}

}  // namespace

std::vector<fs::path> WriteComparison(const TrainComparison& comparison,
                                      const fs::path& out,
                                      const FigureStyle& style) {
  const fs::path stem = Stem(out), directory = stem.parent_path();
  CheckOutputs(stem);
  const Figure figure = ComparisonFigure(comparison, stem.filename().string());
  std::vector<fs::path> written = {directory / figure.source_csv};
  for (const std::string& file : DrawFigure(figure, directory, style)) {
    written.push_back(directory / file);
  }
  WriteCsv(directory / figure.source_csv, DataOf(comparison));
  return written;
}

}  // namespace numsim
