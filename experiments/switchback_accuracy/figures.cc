// The figures of `switchback-accuracy`: losses (Figure 9), gaps to 16 bits against the size of the
// model (Figure 1) and against batch x sequence, errors of weight gradients.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

// The colours of variants, the same in every panel of a figure.
using Styles = std::map<std::string, int>;

Styles StylesOf(const Frame& frame) {
  Styles styles;
  for (const Frame& rows : VariantsIn(frame)) {
    styles.emplace(VariantOf(rows).Text(), static_cast<int>(styles.size()));
  }
  return styles;
}

// Returns the precisions of the variants; that of the baseline only if there are no others.
std::vector<std::string> PrecisionsIn(const Frame& frame) {
  std::vector<std::string> precisions;
  for (const Frame& rows : VariantsIn(frame)) {
    const std::string precision = Precision(VariantOf(rows));
    const bool known =
        std::find(precisions.begin(), precisions.end(), precision) != precisions.end();
    if (!known && VariantOf(rows) != kBaseline) precisions.push_back(precision);
  }
  if (precisions.empty()) precisions.push_back(Precision(kBaseline));
  return precisions;
}

// Returns the variants of a precision and the baseline.
std::vector<Frame> LowerAndBaseline(const Frame& frame, const std::string& precision) {
  std::vector<Frame> variants = VariantsIn(frame);
  std::erase_if(variants, [&](const Frame& rows) {
    return VariantOf(rows) != kBaseline && Precision(VariantOf(rows)) != precision;
  });
  return variants;
}

// Returns the variants of a precision without the baseline.
std::vector<Frame> Lower(const Frame& frame, const std::string& precision) {
  std::vector<Frame> variants = LowerAndBaseline(frame, precision);
  std::erase_if(variants, [](const Frame& rows) { return VariantOf(rows) == kBaseline; });
  return variants;
}

// Returns a column of a variant's rows against another, in the variant's colour.
Series CurveOf(const Frame& rows, const char* x, const char* y, const Styles& styles) {
  Series series = Line(rows, x, y);
  series.label = VariantOf(rows).Text();
  series.style = styles.at(series.label);
  series.dashed = VariantOf(rows) == kBaseline;
  return series;
}

// ---- losses

// Makes the baseline set the range, so that curves that diverge leave the panel at its top.
void SetLossRange(const Series& baseline, Axis& axis) {
  if (baseline.y.empty()) return;
  const auto [low, high] = std::minmax_element(baseline.y.begin(), baseline.y.end());
  const double room = 0.05 * (*high - *low);
  if (room <= 0) return;
  axis.low = *low - 2 * room;
  axis.high = *high + 2 * room;
}

Figure LossFigure(const Frame& curves) {
  Figure figure{
      "switchback-loss", "Training loss by the kind of linear layer", 2, {}, "curves.csv"};
  const Styles styles = StylesOf(curves);
  for (const Frame& group : GroupsIn(curves)) {
    for (const std::string& precision : PrecisionsIn(curves)) {
      Panel& panel = figure.panels.emplace_back();
      panel.title = GroupText(group) + ", " + precision;
      panel.x = AxisOf(curves, "step", "step");
      panel.y.label = "training loss, nats";
      for (const Frame& rows : LowerAndBaseline(group, precision)) {
        panel.series.push_back(CurveOf(rows, "step", "loss", styles));
        if (VariantOf(rows) == kBaseline) SetLossRange(panel.series.back(), panel.y);
      }
    }
  }
  return figure;
}

// ---- gaps

// The quantity and the horizontal axis of the panels of a model.
struct Shown {
  std::string title;
  const char* x;  // column
  std::string x_label;
};

// Returns an axis that extends half a power of two beyond the values, so that it has a range even
// for a single value.
Axis DoublingAxis(const Frame& rows, const char* column, const std::string& label) {
  const std::vector<double> values = rows.Numbers(column);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {
      .label = label, .log2 = true, .low = *low * std::sqrt(0.5), .high = *high * std::sqrt(2.0)};
}

// Returns the factor of x that shifts markers of different variants apart: a share of the axis,
// which is larger if the axis is short.
double NudgeOf(const Axis& axis) {
  constexpr double kOfOne = 0.06, kOfMany = 0.012;
  const double span = Log(axis.high / axis.low);
  return Exp((axis.high < 3 * axis.low ? kOfOne : kOfMany) * span);
}

// Adds the mean gap of each variant, and a line from the low to the high end of its interval. The
// markers at one x are shifted apart, evenly to both sides of it.
void AddBars(const std::vector<Frame>& variants,
             const char* x,
             const Styles& styles,
             Panel& panel) {
  std::vector<Series> curves;
  const double nudge = NudgeOf(panel.x), steps = static_cast<double>(variants.size()) - 1;
  double shift = Exp(-0.5 * steps * Log(nudge));
  for (const Frame& rows : variants) {
    Series& curve = curves.emplace_back(CurveOf(rows, x, "gap", styles));
    curve.markers = true;
    for (double& place : curve.x) place *= shift;
    rows.ForEach([&](const Frame& row) {
      const double place = row.Number(x) * shift;
      Series& bar = panel.series.emplace_back();
      bar.style = curve.style;
      bar.markers = false;
      bar.x = {place, place};
      bar.y = {row.Number("gap_low"), row.Number("gap_high")};
    });
    shift *= nudge;
  }
  for (Series& curve : curves) panel.series.push_back(std::move(curve));
}

// Sets the range of y from the smallest to the largest gap. If the gaps of tensor-wise are far
// above all others, the range ends below them, and the title names the variants that are above it.
void SetGapAxis(const std::vector<Frame>& variants, Panel& panel) {
  constexpr double kFar = 3;
  double low = 0, high = 0, far = 0;
  for (const Frame& rows : variants) {
    for (const char* const column : {"gap", "gap_low", "gap_high"}) {
      for (const double value : rows.Numbers(column)) {
        if (!std::isfinite(value)) continue;
        far = std::max(far, value);
        if (rows.Text("kind") == "tensor-wise") continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  if (high <= 0 || far <= kFar * high) high = far;
  const double room = 0.08 * (high - low);
  panel.y = {.label = "loss minus that of standard, nats", .low = low - room, .high = high + room};
  const char* separator = "; above: ";
  for (const Frame& rows : variants) {
    const std::vector<double> gaps = rows.Numbers("gap");
    if (std::none_of(gaps.begin(), gaps.end(), [&](double gap) { return gap > high; })) continue;
    panel.title += separator + VariantOf(rows).Text();
    separator = ", ";
  }
}

Panel PanelOf(const Frame& rows, const Shown& shown, const std::string& precision) {
  Panel panel;
  panel.title = shown.title + ", " + precision;
  panel.x = DoublingAxis(rows, shown.x, shown.x_label);
  return panel;
}

// Adds a panel of gaps for each precision, then panels of accuracies if there are any.
void AddPanels(const Frame& rows, const Shown& shown, const Styles& styles, Figure& figure) {
  const Frame with_accuracy =
      rows.Where([](const Frame& row) { return std::isfinite(row.Number("zero_shot")); });
  std::vector<Panel> accuracies;
  for (const std::string& precision : PrecisionsIn(rows)) {
    const std::vector<Frame> variants = Lower(rows, precision);
    if (variants.empty()) continue;
    Panel& panel = figure.panels.emplace_back(PanelOf(rows, shown, precision));
    SetGapAxis(variants, panel);
    AddBars(variants, shown.x, styles, panel);
    if (with_accuracy.Empty()) continue;
    Panel& accuracy = accuracies.emplace_back(PanelOf(rows, shown, precision));
    accuracy.y.label = "zero-shot accuracy";
    for (const Frame& variant : LowerAndBaseline(with_accuracy, precision)) {
      accuracy.series.push_back(CurveOf(variant, shown.x, "zero_shot", styles));
      accuracy.series.back().markers = true;
    }
  }
  for (Panel& panel : accuracies) figure.panels.push_back(std::move(panel));
}

Figure SizeFigure(const Frame& gaps) {
  Figure figure{
      "switchback-gap-size", "Loss against 16 bits by the size of the model", 2, {}, "gaps.csv"};
  for (const Frame& model : gaps.By({"model"})) {
    const std::vector<double> tokens = model.Numbers("tokens");
    const Cell most = *std::max_element(tokens.begin(), tokens.end());
    const Frame rows = model.Where("tokens", most);
    if (rows.Distinct("size").size() == 1) continue;
    const std::string title = model.Text("model") + ", " + most.Text() + " tokens";
    AddPanels(rows, {title, "parameters", "parameters"}, StylesOf(gaps), figure);
  }
  return figure;
}

Figure TokensFigure(const Frame& gaps) {
  Figure figure{
      "switchback-gap-tokens", "Loss against 16 bits by batch x sequence", 2, {}, "gaps.csv"};
  for (const Frame& rows : gaps.By({"model", "size"})) {
    const std::string title = rows.Text("model") + " " + rows.Text("size");
    AddPanels(rows, {title, "tokens", "batch x sequence"}, StylesOf(gaps), figure);
  }
  return figure;
}

// ---- gradients

Figure ErrorFigure(const Frame& errors) {
  Figure figure{"switchback-gradient",
                "Relative error of weight gradients (dotted: of their own GEMM)",
                2,
                {},
                "gradient_errors.csv"};
  const Styles styles = StylesOf(errors);
  for (const Frame& rows : errors.By({"model", "size"})) {
    for (const std::string& precision : PrecisionsIn(errors)) {
      Panel panel;
      panel.title = rows.Text("model") + " " + rows.Text("size") + ", " + precision;
      panel.x = DoublingAxis(rows, "tokens", "batch x sequence");
      panel.y = {.label = "relative error of dW", .log10 = true};
      for (const bool own : {false, true}) {
        for (const Frame& variant : LowerAndBaseline(rows, precision)) {
          Series curve = CurveOf(variant, "tokens", own ? "own_error" : "error", styles);
          if (own) curve.label += ", own";
          curve.dashed = own;
          curve.markers = true;
          panel.series.push_back(std::move(curve));
        }
      }
      if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
    }
  }
  return figure;
}

}  // namespace

study::Named<std::function<Figure(const Results&)>> Figures() {
  const auto of = [](const char* table, Figure (*draw)(const Frame&)) {
    return [=](const Results& results) { return draw(results.Of(table)); };
  };
  return {{"loss", of("curves", LossFigure)},
          {"gap-size", of("gaps", SizeFigure)},
          {"gap-tokens", of("gaps", TokensFigure)},
          {"gradient", of("gradient_errors", ErrorFigure)}};
}

}  // namespace numsim::experiments::switchback_accuracy
