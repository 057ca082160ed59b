// The figures of `switchback-accuracy`: losses (Figure 9), gaps to 16 bits against the size of the
// model (Figure 1) and against batch x sequence, errors of weight gradients.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "experiments/shared/distinct.h"
#include "experiments/shared/special_values.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

// The colours of variants, the same in every panel of a figure.
using Styles = std::map<std::string, int>;

Styles StylesOf(const Table& table) {
  Styles styles;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    styles.emplace(VariantOf(table, r).Text(), static_cast<int>(styles.size()));
  }
  return styles;
}

// Returns the precisions of the variants; that of the baseline only if there are no others.
std::vector<std::string> PrecisionsIn(const Table& table) {
  std::vector<std::string> precisions;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Variant variant = VariantOf(table, r);
    const std::string precision = Precision(variant);
    const bool known =
        std::find(precisions.begin(), precisions.end(), precision) != precisions.end();
    if (!known && variant != kBaseline) precisions.push_back(precision);
  }
  if (precisions.empty()) precisions.push_back(Precision(kBaseline));
  return precisions;
}

// Returns the curve of that label, which is created if it does not exist.
Series& CurveOf(std::vector<Series>& curves, const std::string& label, int style, bool dashed) {
  for (Series& curve : curves) {
    if (curve.label == label) return curve;
  }
  Series& curve = curves.emplace_back();
  curve.label = label;
  curve.style = style;
  curve.dashed = dashed;
  return curve;
}

// Returns true if a panel of that precision shows the variant; the baseline belongs to all of them.
bool IsShown(const Variant& variant, const std::string& precision) {
  return variant == kBaseline || Precision(variant) == precision;
}

// ---- losses

Panel LossPanel(const Table& curves,
                const Group& group,
                const std::string& precision,
                const Styles& styles) {
  Panel panel;
  panel.title = group.Text() + ", " + precision;
  panel.x = StepAxis(curves);
  panel.y.label = "training loss, nats";
  for (const Variant& variant : VariantsIn(curves, group)) {
    if (!IsShown(variant, precision)) continue;
    const auto selects = [&](size_t r) {
      return GroupOf(curves, r) == group && VariantOf(curves, r) == variant;
    };
    Series series = SeriesOverSeeds(curves, "loss", selects, 0);
    series.style = styles.at(variant.Text());
    series.label = variant.Text();
    series.dashed = variant == kBaseline;
    if (variant == kBaseline && !series.y.empty()) {
      // The baseline sets the range, so that curves that diverge leave the panel at its top.
      const auto [low, high] = std::minmax_element(series.y.begin(), series.y.end());
      const double room = 0.05 * (*high - *low);
      if (room > 0) {
        panel.y.low = *low - 2 * room;
        panel.y.high = *high + 2 * room;
      }
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

Figure LossFigure(const Table& curves) {
  Figure figure{
      "switchback-loss", "Training loss by the kind of linear layer", 2, {}, "curves.csv"};
  const Styles styles = StylesOf(curves);
  for (const Group& group : GroupsIn(curves)) {
    for (const std::string& precision : PrecisionsIn(curves)) {
      figure.panels.push_back(LossPanel(curves, group, precision, styles));
    }
  }
  return figure;
}

// ---- gaps

// The rows of gaps.csv that a panel shows, and the column against which it shows them.
struct Shown {
  std::string title, precision;
  const char* x;  // column
  std::string x_label;
  std::vector<size_t> rows;
};

// Returns an axis that extends half a power of two beyond the values, so that it has a range even
// for a single value.
Axis DoublingAxis(const Table& table,
                  const std::vector<size_t>& rows,
                  const char* column,
                  const std::string& label) {
  Axis axis{.label = label, .log2 = true};
  for (const size_t r : rows) {
    const double value = table.Number(r, column);
    axis.low = axis.low == 0 ? value : std::min(axis.low, value);
    axis.high = std::max(axis.high, value);
  }
  axis.low *= std::sqrt(0.5);
  axis.high *= std::sqrt(2.0);
  return axis;
}

// Returns the factor of x that shifts markers of different variants apart: a share of the axis,
// which is larger if the axis is short.
double NudgeOf(const Axis& axis) {
  constexpr double kOfOne = 0.06, kOfMany = 0.012;
  const double span = Log(axis.high / axis.low);
  return Exp((axis.high < 3 * axis.low ? kOfOne : kOfMany) * span);
}

// Adds the mean of each variant and a line from the low to the high end of its interval.
void AddBars(const Table& table, const Shown& shown, const Styles& styles, Panel& panel) {
  std::vector<Series> curves;
  const double nudge = NudgeOf(panel.x);
  for (const size_t r : shown.rows) {
    const Variant variant = VariantOf(table, r);
    if (variant == kBaseline || Precision(variant) != shown.precision) continue;
    Series& curve = CurveOf(curves, variant.Text(), styles.at(variant.Text()), false);
    double x = table.Number(r, shown.x);
    for (const Series* before = curves.data(); before != &curve; ++before) x *= nudge;
    curve.x.push_back(x);
    curve.y.push_back(table.Number(r, "gap"));
    Series& bar = panel.series.emplace_back();
    bar.style = curve.style;
    bar.markers = false;
    bar.x = {x, x};
    bar.y = {table.Number(r, "gap_low"), table.Number(r, "gap_high")};
  }
  for (Series& curve : curves) panel.series.push_back(std::move(curve));
}

// Sets the range of y from the smallest to the largest gap. If the gaps of tensor-wise are far
// above all others, the range ends below them, and the title names the variants that are above it.
void SetGapAxis(const Table& table, const Shown& shown, Panel& panel) {
  constexpr double kFar = 3;
  double low = 0, high = 0, far = 0;
  for (const size_t r : shown.rows) {
    const Variant variant = VariantOf(table, r);
    if (Precision(variant) != shown.precision) continue;
    for (const char* const column : {"gap", "gap_low", "gap_high"}) {
      const double value = table.Number(r, column);
      if (!std::isfinite(value)) continue;
      far = std::max(far, value);
      if (variant.kind == "tensor-wise") continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (high <= 0 || far <= kFar * high) high = far;
  const double room = 0.08 * (high - low);
  panel.y = {.label = "loss minus that of standard, nats"};
  if (room > 0) {
    panel.y.low = low - room;
    panel.y.high = high + room;
  }
  std::vector<Variant> beyond;
  for (const size_t r : shown.rows) {
    const Variant variant = VariantOf(table, r);
    if (Precision(variant) != shown.precision || table.Number(r, "gap") <= high) continue;
    if (std::find(beyond.begin(), beyond.end(), variant) != beyond.end()) continue;
    panel.title += (beyond.empty() ? "; above: " : ", ") + variant.Text();
    beyond.push_back(variant);
  }
}

Panel GapPanel(const Table& gaps, const Shown& shown, const Styles& styles) {
  Panel panel;
  panel.title = shown.title + ", " + shown.precision;
  panel.x = DoublingAxis(gaps, shown.rows, shown.x, shown.x_label);
  SetGapAxis(gaps, shown, panel);
  AddBars(gaps, shown, styles, panel);
  return panel;
}

Panel ZeroShotPanel(const Table& gaps, const Shown& shown, const Styles& styles) {
  Panel panel;
  panel.title = shown.title + ", " + shown.precision;
  panel.x = DoublingAxis(gaps, shown.rows, shown.x, shown.x_label);
  panel.y.label = "zero-shot accuracy";
  for (const size_t r : shown.rows) {
    const Variant variant = VariantOf(gaps, r);
    if (!IsShown(variant, shown.precision)) continue;
    const std::string label = variant.Text();
    Series& curve = CurveOf(panel.series, label, styles.at(label), variant == kBaseline);
    curve.x.push_back(gaps.Number(r, shown.x));
    curve.y.push_back(gaps.Number(r, "zero_shot"));
  }
  return panel;
}

// Returns the rows of a model for which takes(row) is true, in ascending order of a column.
template <typename Takes>
std::vector<size_t> RowsOf(const Table& gaps,
                           const std::string& model,
                           const char* order,
                           const Takes& takes) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < gaps.rows.size(); ++r) {
    if (gaps.Text(r, "model") == model && takes(r)) rows.push_back(r);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
    return gaps.Number(a, order) < gaps.Number(b, order);
  });
  return rows;
}

// Adds the panels of `shown` for each precision, then panels of accuracies if there are any.
void AddPanels(const Table& gaps, Shown shown, const Styles& styles, Figure& figure) {
  std::vector<Panel> accuracies;
  for (const std::string& precision : PrecisionsIn(gaps)) {
    shown.precision = precision;
    Panel panel = GapPanel(gaps, shown, styles);
    if (panel.series.empty()) continue;
    figure.panels.push_back(std::move(panel));
    const bool any = std::any_of(shown.rows.begin(), shown.rows.end(), [&](size_t r) {
      return std::isfinite(gaps.Number(r, "zero_shot"));
    });
    if (any) accuracies.push_back(ZeroShotPanel(gaps, shown, styles));
  }
  for (Panel& panel : accuracies) figure.panels.push_back(std::move(panel));
}

double Largest(const Table& gaps, const std::string& model, const char* column) {
  double largest = -kInfinity;
  for (size_t r = 0; r < gaps.rows.size(); ++r) {
    if (gaps.Text(r, "model") == model) largest = std::max(largest, gaps.Number(r, column));
  }
  return largest;
}

Figure SizeFigure(const Table& gaps) {
  Figure figure{
      "switchback-gap-size", "Loss against 16 bits by the size of the model", 2, {}, "gaps.csv"};
  const Styles styles = StylesOf(gaps);
  for (const std::string& model : Distinct(gaps, "model")) {
    const double tokens = Largest(gaps, model, "tokens");
    const auto rows = RowsOf(
        gaps, model, "parameters", [&](size_t r) { return gaps.Number(r, "tokens") == tokens; });
    const bool one = std::all_of(rows.begin(), rows.end(), [&](size_t r) {
      return gaps.Text(r, "size") == gaps.Text(rows.front(), "size");
    });
    if (one) continue;
    AddPanels(gaps,
              {model + ", " + FormatCell(tokens) + " tokens", "", "parameters", "parameters", rows},
              styles,
              figure);
  }
  return figure;
}

Figure TokensFigure(const Table& gaps) {
  Figure figure{
      "switchback-gap-tokens", "Loss against 16 bits by batch x sequence", 2, {}, "gaps.csv"};
  const Styles styles = StylesOf(gaps);
  for (const std::string& model : Distinct(gaps, "model")) {
    for (const std::string& size : Distinct(gaps, "size")) {
      const auto rows =
          RowsOf(gaps, model, "tokens", [&](size_t r) { return gaps.Text(r, "size") == size; });
      if (rows.empty()) continue;
      AddPanels(gaps, {model + " " + size, "", "tokens", "batch x sequence", rows}, styles, figure);
    }
  }
  return figure;
}

// ---- gradients

void AddErrors(const Table& errors,
               const std::vector<size_t>& rows,
               const char* column,
               const Styles& styles,
               Panel& panel) {
  const bool own = std::string_view(column) == "own_error";
  for (const size_t r : rows) {
    const std::string text = VariantOf(errors, r).Text();
    Series& curve = CurveOf(panel.series, own ? text + ", own" : text, styles.at(text), own);
    curve.x.push_back(errors.Number(r, "tokens"));
    curve.y.push_back(errors.Number(r, column));
  }
}

Figure ErrorFigure(const Table& errors) {
  Figure figure{"switchback-gradient",
                "Relative error of weight gradients (dotted: of their own GEMM)",
                2,
                {},
                "gradient_errors.csv"};
  const Styles styles = StylesOf(errors);
  for (const std::string& model : Distinct(errors, "model")) {
    for (const std::string& size : Distinct(errors, "size")) {
      for (const std::string& precision : PrecisionsIn(errors)) {
        const auto rows = RowsOf(errors, model, "tokens", [&](size_t r) {
          return errors.Text(r, "size") == size && IsShown(VariantOf(errors, r), precision);
        });
        if (rows.empty()) continue;
        Panel panel;
        panel.title = model + " " + size + ", " + precision;
        panel.x = DoublingAxis(errors, rows, "tokens", "batch x sequence");
        panel.y = {.label = "relative error of dW", .log10 = true};
        AddErrors(errors, rows, "error", styles, panel);
        AddErrors(errors, rows, "own_error", styles, panel);
        figure.panels.push_back(std::move(panel));
      }
    }
  }
  return figure;
}

}  // namespace

std::vector<Figure> Figures(const Settings&, const Tables& tables) {
  const Table& gaps = tables.at(std::string(kGapsTable));
  std::vector<Figure> figures = {LossFigure(tables.at(std::string(kCurvesTable)))};
  for (Figure& figure : std::vector<Figure>{SizeFigure(gaps),
                                            TokensFigure(gaps),
                                            ErrorFigure(tables.at(std::string(kErrorsTable)))}) {
    if (!figure.panels.empty()) figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace numsim::experiments::switchback_accuracy
