// Figures of `update-fidelity`, for both choices of the key. Each format has two figures: one of
// the rules without state, with the note's two errors, and one of the rules with state, with the
// stored parameters next to parameters and state together. One more figure shows times.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "experiments/shared/distinct.h"
#include "experiments/update_fidelity/update_fidelity.h"

namespace numsim::experiments::update_fidelity {
namespace {

struct Quantity {
  std::string_view column;
  std::string_view label;  // of the axis
  bool log;
  double least = 0;              // lower limit of a logarithmic axis
  std::string_view stored = {};  // a second column, drawn dotted
};

constexpr Quantity kStatelessQuantities[] = {
    {"norm_error", "norm error  | ‖Δ‖ / (lr‖u‖) − 1 |", true, 1e-4},
    {"mean_error", "per-parameter error  | mean(Δ/u) / lr − 1 |", true, 1e-4},
    {"cosine", "cosine of Δ and u", false},
    {"moved_share", "share of parameters that move", true, 1e-6},
};

constexpr Quantity kStateQuantities[] = {
    {"effective_relative_error",
     "‖Δ − lr u‖ / (lr‖u‖)  (dotted: stored alone)",
     true,
     1e-8,
     "relative_error"},
    {"norm_error", "stored: | ‖Δ‖ / (lr‖u‖) − 1 |", true, 1e-4},
    {"cosine", "stored: cosine of Δ and u", false},
    {"moved_share", "stored: share that moves", true, 1e-6},
};

// Returns the style of a rule. Rules of one figure have different colours; the rules with state
// reuse colours of the rules without state, which are in the other figure.
int StyleOf(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kNaive:
      return 0;
    case UpdateKind::kStochastic:
      return 1;
    case UpdateKind::kNormMatched:
      return 2;
    case UpdateKind::kProjectionMatched:
      return 3;
    case UpdateKind::kNoteAsPrinted:
      return 4;
    case UpdateKind::kKahan:
      return 5;
    case UpdateKind::kMasterFp32:
      return 1;
    case UpdateKind::kMasterFp16Scaled:
      return 2;
    case UpdateKind::kSplitMaster:
      return 3;
  }
  return 0;
}

constexpr int kLimitStyle = 6;  // black, used for nothing else
constexpr int kHalfStyle = 7;   // grey

struct StyledRule {
  std::string name;
  UpdateKind kind;
  int style;
};

// Returns the rules of a format with or without state. Further rules of the same kind get styles of
// their own.
std::vector<StyledRule> RulesOf(const Table& table, const std::string& format, bool with_state) {
  std::vector<StyledRule> rules;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.Text(i, "format") != format) continue;
    const std::string& name = table.Text(i, "rule");
    const UpdateKind kind = ParseUpdateRule(name).kind;
    if (HasState(kind) != with_state) continue;
    const auto is = [&](const StyledRule& rule) { return rule.name == name; };
    if (std::any_of(rules.begin(), rules.end(), is)) continue;
    const auto same_kind = [&](const StyledRule& rule) { return rule.kind == kind; };
    const bool first = std::none_of(rules.begin(), rules.end(), same_kind);
    rules.push_back({name, kind, first ? StyleOf(kind) : 8 + static_cast<int>(rules.size())});
  }
  return rules;
}

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

Series Dotted(Series series) {
  series.dashed = true;
  series.markers = false;
  return series;
}

// Returns the error that the note's search itself sees, of its squared norm against lr ||u||^2, for
// the worst seed.
Series OwnTargetSeries(const Table& table, const CurveKey& key, int style) {
  Curve curve = CurveOf(table, key, "own_target_ratio");
  for (size_t i = 0; i < curve.lr.size(); ++i) {
    curve.mean[i] = std::max(std::abs(curve.low[i] - 1), std::abs(curve.high[i] - 1));
  }
  return Dotted(SeriesOf(curve, key.rule + " by its own target", style, false));
}

Panel PanelOf(const Table& table,
              const CurveKey& where,
              const Quantity& quantity,
              const std::vector<StyledRule>& rules,
              bool seeds) {
  Panel panel;
  panel.title = std::string(Title(ParseKeys(where.keys)));
  panel.x = {.label = "learning rate lr", .log10 = true};
  panel.y = {.label = std::string(quantity.label), .log10 = quantity.log};
  for (const StyledRule& rule : rules) {
    const CurveKey key{where.format, where.keys, rule.name};
    panel.series.push_back(
        SeriesOf(CurveOf(table, key, quantity.column), rule.name, rule.style, seeds));
    if (!quantity.stored.empty()) {
      const Curve stored = CurveOf(table, key, quantity.stored);
      panel.series.push_back(Dotted(SeriesOf(stored, "", rule.style, false)));
    }
    if (rule.kind == UpdateKind::kNoteAsPrinted && quantity.column == "norm_error") {
      panel.series.push_back(OwnTargetSeries(table, key, rule.style));
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

// Gives the panels of a row common ranges of x and y, so that they can be compared.
void ShareAxes(std::span<Panel> row, double least) {
  double x_low = 1, x_high = 1, y_low = 1, y_high = 1;
  for (const Panel& panel : row) {
    for (const Series& series : panel.series) {
      IncludeDecades(series.x, x_low, x_high);
      IncludeDecades(series.y, y_low, y_high);
    }
  }
  constexpr double kRoom = 1.5;  // leaves room for markers
  for (Panel& panel : row) {
    panel.x.low = x_low / kRoom;
    panel.x.high = x_high * kRoom;
    panel.y.low = panel.y.log10 ? std::max(y_low, least) / kRoom : -0.05;  // a cosine
    panel.y.high = panel.y.log10 ? y_high * kRoom : 1.05;
  }
}

// Returns the mean over seeds of a column of `cliffs`; nothing if it is not finite or not measured.
std::optional<double> LimitOf(const Table& cliffs,
                              const CurveKey& where,
                              std::string_view limit,
                              std::string_view column) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < cliffs.rows.size(); ++i) {
    if (cliffs.Text(i, "format") != where.format || cliffs.Text(i, "keys") != where.keys ||
        cliffs.Text(i, "limit") != limit || cliffs.Text(i, "predicted_from") != "distribution") {
      continue;
    }
    sum += cliffs.Number(i, column);
    ++count;
  }
  const double mean = sum / count;
  if (!std::isfinite(mean)) return std::nullopt;
  return mean;
}

// Draws a vertical line at the measured limit of naive rounding, and a marker at the limit
// predicted from the distribution. Requires that the panel's range of y is set.
void MarkLimit(const Table& cliffs,
               const CurveKey& where,
               std::string_view limit,
               const std::string& label,
               int style,
               Panel& panel) {
  const auto measured = LimitOf(cliffs, where, limit, "measured");
  const auto predicted = LimitOf(cliffs, where, limit, "predicted");
  if (!measured || !predicted) return;
  Series line;
  line.label = label;
  line.style = style;
  line.markers = false;
  line.x = {*measured, *measured};
  line.y = {panel.y.low, panel.y.high};
  panel.series.push_back(line);
  Series mark;
  mark.label = "closed form";
  mark.style = kLimitStyle;
  mark.x = {*predicted};
  constexpr double kHeight = 0.93;
  mark.y = {panel.y.log10 ? std::pow(panel.y.low, 1 - kHeight) * std::pow(panel.y.high, kHeight)
                          : panel.y.low + kHeight * (panel.y.high - panel.y.low)};
  panel.series.push_back(mark);
}

void MarkLimits(const Table& cliffs, const CurveKey& where, Panel& panel) {
  MarkLimit(cliffs, where, "unmoved", "naive: nothing moves left of it", kLimitStyle, panel);
  MarkLimit(
      cliffs, where, "half-norm", "naive: half the norm is gone left of it", kHalfStyle, panel);
}

std::string FileName(const std::string& name) {
  std::string file = "update-fidelity-" + name;
  for (char& c : file) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return file;
}

// Adds the panels of one format, with one row per quantity and one column per choice of keys.
void AddPanels(const Settings& settings,
               const Tables& tables,
               const std::string& format,
               std::span<const Quantity> quantities,
               const std::vector<StyledRule>& rules,
               Figure& figure) {
  const Table& table = tables.at(std::string(kTable));
  const Table& cliffs = tables.at(std::string(kCliffs));
  const std::vector<std::string> keys = Distinct(table, "keys");
  figure.columns = static_cast<int>(keys.size());
  figure.source_csv = std::string(kTable) + ".csv";
  for (const Quantity& quantity : quantities) {
    for (const std::string& key : keys) {
      figure.panels.push_back(
          PanelOf(table, {format, key, {}}, quantity, rules, settings.seeds > 1));
    }
    const auto row = std::span(figure.panels).last(keys.size());
    ShareAxes(row, quantity.least);
    for (size_t k = 0; k < keys.size(); ++k) MarkLimits(cliffs, {format, keys[k], {}}, row[k]);
  }
}

// Returns the figure of times, with one panel per format: all rules, for the last choice of keys.
Figure TimesFigure(const Settings& settings, const Tables& tables) {
  const Table& times = tables.at(std::string(kTimes));
  const std::string keys = Distinct(times, "keys").back();
  Figure figure;
  figure.name = "update-fidelity-times";
  figure.title = "CPU time of a step, one thread; keys " + keys;
  figure.columns = 2;
  figure.source_csv = std::string(kTimes) + ".csv";
  for (const std::string& format : Distinct(times, "format")) {
    Panel panel;
    panel.title = format;
    panel.x = {.label = "learning rate lr", .log10 = true};
    panel.y = {.label = "time, ns per parameter", .log10 = true};
    for (const bool with_state : {false, true}) {
      for (const StyledRule& rule : RulesOf(times, format, with_state)) {
        const Curve curve = CurveOf(times, {format, keys, rule.name}, "ns_per_element");
        const int style = with_state ? rule.style + 6 : rule.style;
        panel.series.push_back(SeriesOf(curve, rule.name, style, settings.seeds > 1));
      }
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace

Curve CurveOf(const Table& table, const CurveKey& key, std::string_view column) {
  std::map<double, std::vector<double>> values;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.Text(i, "format") == key.format && table.Text(i, "keys") == key.keys &&
        table.Text(i, "rule") == key.rule) {
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
  std::vector<Figure> figures;
  for (const std::string& format : Distinct(table, "format")) {
    for (const bool with_state : {false, true}) {
      const std::vector<StyledRule> rules = RulesOf(table, format, with_state);
      if (rules.empty()) continue;
      Figure figure;
      figure.name = FileName(with_state ? format + "-state" : format);
      figure.title = "Step Δ that " + format +
                     " parameters take for an update u at learning rate lr" +
                     (with_state ? ": rules that keep state" : "");
      const std::span<const Quantity> quantities =
          with_state ? std::span<const Quantity>(kStateQuantities) : kStatelessQuantities;
      AddPanels(settings, tables, format, quantities, rules, figure);
      figures.push_back(std::move(figure));
    }
  }
  figures.push_back(TimesFigure(settings, tables));
  return figures;
}

}  // namespace numsim::experiments::update_fidelity
