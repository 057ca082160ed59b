// Figures of `update-fidelity`, for both choices of the key. Each format has two figures: one of
// the rules without state, with the note's two errors, and one of the rules with state, with the
// stored parameters next to parameters and state together. One more figure shows times.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

#include "experiments/claims/frame.h"
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

// Returns the rules of these rows with or without state. Further rules of the same kind get styles
// of their own.
std::vector<StyledRule> RulesOf(const Frame& frame, bool with_state) {
  std::vector<StyledRule> rules;
  for (const std::string& name : frame.Distinct("rule")) {
    const UpdateKind kind = ParseUpdateRule(name).kind;
    if (HasState(kind) != with_state) continue;
    const auto same_kind = [&](const StyledRule& rule) { return rule.kind == kind; };
    const bool first = std::none_of(rules.begin(), rules.end(), same_kind);
    rules.push_back({name, kind, first ? StyleOf(kind) : 8 + static_cast<int>(rules.size())});
  }
  return rules;
}

std::string_view Title(Keys keys) {
  return keys == Keys::kSame ? "Same key for both draws, as published" : "Independent keys";
}

// Returns a column of one rule against the learning rate, over seeds.
Series SeriesOf(const Frame& of_rule, std::string_view column, std::string label, int style) {
  Series series = Line(of_rule, "lr", column);
  series.label = std::move(label);
  series.style = style;
  series.markers = true;
  return series;
}

// Returns the series dotted, without its band.
Series Dotted(Series series) {
  series.dashed = true;
  series.markers = false;
  series.low.clear();
  series.high.clear();
  return series;
}

// Returns the error that the note's search itself sees, of its squared norm against lr ||u||^2, for
// the worst seed.
Series OwnTargetSeries(const Frame& of_rule, const StyledRule& rule) {
  Series series =
      SeriesOf(of_rule, "own_target_ratio", rule.name + " by its own target", rule.style);
  for (size_t i = 0; i < series.x.size(); ++i) {
    const double low = series.low.empty() ? series.y[i] : series.low[i];
    const double high = series.high.empty() ? series.y[i] : series.high[i];
    series.y[i] = std::max(std::abs(low - 1), std::abs(high - 1));
  }
  return Dotted(std::move(series));
}

// Returns the panel of a format and a choice of keys, whose rows are `frame`.
Panel PanelOf(const Frame& frame, const Quantity& quantity, const std::vector<StyledRule>& rules) {
  Panel panel;
  panel.x = {.label = "learning rate lr", .log10 = true};
  panel.y = {.label = std::string(quantity.label), .log10 = quantity.log};
  for (const StyledRule& rule : rules) {
    const Frame of_rule = frame.Where("rule", rule.name);
    panel.series.push_back(SeriesOf(of_rule, quantity.column, rule.name, rule.style));
    if (!quantity.stored.empty()) {
      panel.series.push_back(Dotted(SeriesOf(of_rule, quantity.stored, "", rule.style)));
    }
    if (rule.kind == UpdateKind::kNoteAsPrinted && quantity.column == "norm_error") {
      panel.series.push_back(OwnTargetSeries(of_rule, rule));
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

// Draws a vertical line at the measured limit of naive rounding, and a marker at the limit
// predicted from the distribution; nothing if they are not known. `cliffs` are the rows of the
// panel. Requires that the panel's range of y is set.
void MarkLimit(const Frame& cliffs,
               std::string_view limit,
               const std::string& label,
               int style,
               Panel& panel) {
  const Frame known = cliffs.Where("limit", limit).Where("predicted_from", "distribution");
  const double measured = known.Mean("measured"), predicted = known.Mean("predicted");
  if (!std::isfinite(measured) || !std::isfinite(predicted)) return;
  panel.series.push_back({.label = label,
                          .style = style,
                          .markers = false,
                          .x = {measured, measured},
                          .y = {panel.y.low, panel.y.high}});
  constexpr double kHeight = 0.93;
  const double height = panel.y.log10
                            ? std::pow(panel.y.low, 1 - kHeight) * std::pow(panel.y.high, kHeight)
                            : panel.y.low + kHeight * (panel.y.high - panel.y.low);
  panel.series.push_back(
      {.label = "closed form", .style = kLimitStyle, .x = {predicted}, .y = {height}});
}

void MarkLimits(const Frame& cliffs, Panel& panel) {
  MarkLimit(cliffs, "unmoved", "naive: nothing moves left of it", kLimitStyle, panel);
  MarkLimit(cliffs, "half-norm", "naive: half the norm is gone left of it", kHalfStyle, panel);
}

std::string FileName(const std::string& name) {
  std::string file = "update-fidelity-" + name;
  for (char& c : file) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return file;
}

// Returns the figure of one format, with one row per quantity and one column per choice of keys.
Figure FormatFigure(const study::Results& results, const std::string& format, bool with_state) {
  const Frame rows = results.Of("fidelity").Where("format", format);
  const Frame cliffs = results.Of("cliffs").Where("format", format);
  const std::vector<StyledRule> rules = RulesOf(rows, with_state);
  Figure figure{FileName(with_state ? format + "-state" : format),
                "Step Δ that " + format + " parameters take for an update u at learning rate lr" +
                    (with_state ? ": rules that keep state" : ""),
                0,
                {},
                "fidelity.csv"};
  if (rules.empty()) return figure;
  const std::vector<std::string> keys = rows.Distinct("keys");
  figure.columns = static_cast<int>(keys.size());
  for (const Quantity& quantity :
       with_state ? std::span<const Quantity>(kStateQuantities) : kStatelessQuantities) {
    for (const std::string& key : keys) {
      figure.panels.push_back(PanelOf(rows.Where("keys", key), quantity, rules));
      figure.panels.back().title = Title(ParseKeys(key));
    }
    const auto row = std::span(figure.panels).last(keys.size());
    ShareAxes(row, quantity.least);
    for (size_t k = 0; k < keys.size(); ++k) MarkLimits(cliffs.Where("keys", keys[k]), row[k]);
  }
  return figure;
}

}  // namespace

std::vector<Figure> FormatFigures(const study::Results& results) {
  std::vector<Figure> figures;
  for (const std::string& format : results.Of("fidelity").Distinct("format")) {
    for (const bool with_state : {false, true}) {
      figures.push_back(FormatFigure(results, format, with_state));
    }
  }
  return figures;
}

// It has one panel per format: all rules, for the last choice of keys.
Figure TimesFigure(const study::Results& results) {
  const Frame times = results.Of("times");
  if (times.Empty()) return {};  // a published run has none: they are those of a machine
  const std::string keys = times.Distinct("keys").back();
  Figure figure{
      "update-fidelity-times", "CPU time of a step, one thread; keys " + keys, 2, {}, "times.csv"};
  for (const Frame& rows : times.Where("keys", keys).By({"format"})) {
    Panel panel;
    panel.title = rows.Text("format");
    panel.x = {.label = "learning rate lr", .log10 = true};
    panel.y = {.label = "time, ns per parameter", .log10 = true};
    for (const bool with_state : {false, true}) {
      for (const StyledRule& rule : RulesOf(rows, with_state)) {
        const int style = with_state ? rule.style + 6 : rule.style;
        panel.series.push_back(
            SeriesOf(rows.Where("rule", rule.name), "ns_per_element", rule.name, style));
      }
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace numsim::experiments::update_fidelity
