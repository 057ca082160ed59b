// Figures of `update-fidelity`: one a format; the note's two errors and the direction of the step,
// for both choices of the key.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include "experiments/distinct.h"
#include "experiments/update_fidelity.h"
#include "numsim/optim/weight_update.h"

namespace numsim::experiments::update_fidelity {
namespace {

struct Quantity {
  std::string_view column;
  std::string_view label;  // of the axis
  bool log;
};

constexpr Quantity kQuantities[] = {
    {"norm_error", "norm error  | ‖Δ‖ / (lr‖u‖) − 1 |", true},
    {"mean_error", "per-parameter error  | mean(Δ/u) / lr − 1 |", true},
    {"cosine", "cosine of Δ and u", false},
};

std::string_view Title(Keys keys) {
  return keys == Keys::kSame ? "Same key for both draws, as published" : "Independent keys";
}

Series SeriesOf(const Curve& curve, std::string label, int style, bool several_seeds) {
  Series series;
  series.label = std::move(label);
  series.style = style;
  series.x = curve.lr;
  series.y = curve.mean;
  if (several_seeds) {
    series.low = curve.low;
    series.high = curve.high;
  }
  return series;
}

// The error that the search itself sees, of its squared norm against lr ||u||^2; the worst seed.
Series OwnTargetSeries(const Table& table, CurveKey key, int style) {
  Curve curve = CurveOf(table, key, "own_target_ratio");
  for (size_t i = 0; i < curve.lr.size(); ++i) {
    curve.mean[i] = std::max(std::abs(curve.low[i] - 1), std::abs(curve.high[i] - 1));
  }
  Series series = SeriesOf(curve, "binary-search by its own target", style, false);
  series.dashed = true;
  series.markers = false;
  return series;
}

Panel PanelOf(const Table& table, const CurveKey& where, const Quantity& quantity, bool seeds) {
  Panel panel;
  panel.title = std::string(Title(ParseKeys(where.keys)));
  panel.x = {.label = "learning rate lr", .log10 = true};
  panel.y = {.label = std::string(quantity.label), .log10 = quantity.log};
  for (const std::string& method : Distinct(table, "method")) {
    const CurveKey key{where.format, where.keys, method};
    const UpdateRule rule = ParseUpdateRule(method);
    const int style = static_cast<int>(rule);
    panel.series.push_back(SeriesOf(CurveOf(table, key, quantity.column), method, style, seeds));
    if (rule == UpdateRule::kBinarySearch && quantity.column == "norm_error") {
      panel.series.push_back(OwnTargetSeries(table, key, style));
    }
  }
  return panel;
}

// Widens [low, high] to whole decades around the positive finite values.
void IncludeDecades(const std::vector<double>& values, double& low, double& high) {
  for (const double value : values) {
    if (!(value > 0) || std::isinf(value)) continue;
    low = std::min(low, std::pow(10, std::floor(std::log10(value))));
    high = std::max(high, std::pow(10, std::ceil(std::log10(value))));
  }
}

// One range for panels that are to be compared: x in all of them, y here in one row.
void ShareAxes(std::span<Panel> row) {
  double x_low = 1, x_high = 1, y_low = 1, y_high = 1;
  for (const Panel& panel : row) {
    for (const Series& series : panel.series) {
      IncludeDecades(series.x, x_low, x_high);
      IncludeDecades(series.y, y_low, y_high);
    }
  }
  constexpr double kRoom = 1.5;  // for markers
  for (Panel& panel : row) {
    panel.x.low = x_low / kRoom;
    panel.x.high = x_high * kRoom;
    panel.y.low = panel.y.log10 ? y_low : -0.05;  // a cosine
    panel.y.high = panel.y.log10 ? y_high * kRoom : 1.05;
  }
}

std::string FileName(const std::string& format) {
  std::string name = "update-fidelity-" + format;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return name;
}

}  // namespace

Curve CurveOf(const Table& table, const CurveKey& key, std::string_view column) {
  std::map<double, std::vector<double>> values;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.Text(i, "format") == key.format && table.Text(i, "keys") == key.keys &&
        table.Text(i, "method") == key.method) {
      values[table.Number(i, "lr")].push_back(table.Number(i, column));
    }
  }
  Curve curve;
  for (const auto& [lr, at] : values) {
    double sum = 0, low = at[0], high = at[0];
    for (const double value : at) {
      sum += value;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (std::isnan(sum)) low = high = sum;
    curve.lr.push_back(lr);
    curve.mean.push_back(sum / static_cast<double>(at.size()));
    curve.low.push_back(low);
    curve.high.push_back(high);
  }
  return curve;
}

std::vector<Figure> Figures(const Settings& settings, const Tables& tables) {
  const Table& table = tables.at(std::string(kTable));
  const std::vector<std::string> keys = Distinct(table, "keys");
  std::vector<Figure> figures;
  for (const std::string& format : Distinct(table, "format")) {
    Figure figure;
    figure.name = FileName(format);
    figure.title = "Step Δ that " + format + " parameters take for an update u at learning rate lr";
    figure.columns = static_cast<int>(keys.size());
    figure.source_csv = std::string(kTable) + ".csv";
    for (const Quantity& quantity : kQuantities) {
      for (const std::string& key : keys) {
        figure.panels.push_back(PanelOf(table, {format, key, {}}, quantity, settings.seeds > 1));
      }
      ShareAxes(std::span(figure.panels).last(keys.size()));
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace numsim::experiments::update_fidelity
