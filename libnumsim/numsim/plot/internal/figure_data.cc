#include <algorithm>
#include <cmath>

#include "numsim/base/require.h"
#include "numsim/io/csv.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

constexpr double kFilled = 0.8;  // share of the height of a row that its bars take

bool IsDrawablePoint(const Panel& panel, const Series& series, size_t i) {
  return IsDrawable(panel.x, series.x[i]) && IsDrawable(panel.y, series.y[i]);
}

void CheckLengths(const Series& series) {
  const size_t n = series.x.size();
  NUMSIM_REQUIRE(series.y.size() == n && series.low.size() == series.high.size() &&
                     (series.low.empty() || series.low.size() == n),
                 "series '{}': {} of x, {} of y, {} of low and {} of high, expected equal numbers",
                 series.label,
                 n,
                 series.y.size(),
                 series.low.size(),
                 series.high.size());
}

// Returns one line for each i whose row(i) is not empty. A run of empty rows between others becomes
// one blank line.
template <typename Row>
std::string JoinRows(size_t n, Row row) {
  std::string text;
  bool gap = false;
  for (size_t i = 0; i < n; ++i) {
    const std::string line = row(i);
    if (!line.empty()) text += (gap && !text.empty() ? "\n" : "") + line + "\n";
    gap = line.empty();
  }
  return text;
}

}  // namespace

bool IsDrawable(const Axis& axis, double value) {
  return std::abs(value) <= 1e300 && (value >= 1e-300 || !(axis.log10 || axis.log2));
}

void Extent::Include(double value) {
  low = empty ? value : std::min(low, value);
  high = empty ? value : std::max(high, value);
  empty = false;
}

Extent ExtentOfX(const Panel& panel) {
  Extent extent;
  for (const Series& series : panel.series) {
    CheckLengths(series);
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!IsDrawablePoint(panel, series, i)) continue;
      extent.Include(series.x[i]);
      if (panel.rows.empty() || series.low.empty()) continue;
      for (const double end : {series.low[i], series.high[i]}) {
        if (IsDrawable(panel.x, end)) extent.Include(end);
      }
    }
  }
  if (!panel.rows.empty() && !extent.empty) extent.Include(0);
  return extent;
}

Extent ExtentOfY(const Panel& panel) {
  Extent extent;
  for (const Series& series : panel.series) {
    CheckLengths(series);
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!IsDrawablePoint(panel, series, i)) continue;
      extent.Include(series.y[i]);
      if (series.low.empty()) continue;
      for (const double end : {series.low[i], series.high[i]}) {
        if (IsDrawable(panel.y, end)) extent.Include(end);
      }
    }
  }
  return extent;
}

size_t DrawablePoints(const Panel& panel, const Series& series) {
  CheckLengths(series);
  size_t count = 0;
  for (size_t i = 0; i < series.x.size(); ++i) count += IsDrawablePoint(panel, series, i);
  return count;
}

std::string CurveRows(const Panel& panel, const Series& series) {
  CheckLengths(series);
  return JoinRows(series.x.size(), [&](size_t i) {
    return IsDrawablePoint(panel, series, i)
               ? FormatCell(series.x[i]) + " " + FormatCell(series.y[i])
               : "";
  });
}

std::string BarRows(const Panel& panel, size_t index) {
  const Series& series = panel.series[index];
  CheckLengths(series);
  const double height = kFilled / static_cast<double>(panel.series.size());
  const double above = static_cast<double>(index) * height - kFilled / 2;
  return JoinRows(series.x.size(), [&](size_t i) -> std::string {
    if (!IsDrawablePoint(panel, series, i)) return "";
    const double x = series.x[i], top = series.y[i] + above;
    return FormatCell(x) + " " + FormatCell(series.y[i]) + " " + FormatCell(std::min(x, 0.0)) +
           " " + FormatCell(std::max(x, 0.0)) + " " + FormatCell(top) + " " +
           FormatCell(top + height);
  });
}

std::string ErrorBarRows(const Panel& panel, size_t index) {
  const Series& series = panel.series[index];
  CheckLengths(series);
  if (series.low.empty()) return "";
  const auto count = static_cast<double>(panel.series.size());
  const double middle = kFilled * ((static_cast<double>(index) + 0.5) / count - 0.5);
  return JoinRows(series.x.size(), [&](size_t i) -> std::string {
    const bool drawable = IsDrawablePoint(panel, series, i) && IsDrawable(panel.x, series.low[i]) &&
                          IsDrawable(panel.x, series.high[i]);
    if (!drawable) return "";
    return FormatCell(series.x[i]) + " " + FormatCell(series.y[i] + middle) + " " +
           FormatCell(series.low[i]) + " " + FormatCell(series.high[i]);
  });
}

std::string BandRows(const Panel& panel, const Series& series) {
  CheckLengths(series);
  if (series.low.empty()) return "";
  const Extent extent = ExtentOfY(panel);
  const bool fixed = panel.y.low != panel.y.high;
  const double least = fixed ? std::min(panel.y.low, panel.y.high) : extent.low;
  const double greatest = fixed ? std::max(panel.y.low, panel.y.high) : extent.high;
  const auto shown = [&](double end) {
    if (IsDrawable(panel.y, end)) return end;
    return end > 0 ? greatest : least;
  };
  return JoinRows(series.x.size(), [&](size_t i) -> std::string {
    if (!IsDrawablePoint(panel, series, i)) return "";
    if (std::isnan(series.low[i]) || std::isnan(series.high[i])) return "";
    return FormatCell(series.x[i]) + " " + FormatCell(shown(series.low[i])) + " " +
           FormatCell(shown(series.high[i]));
  });
}

}  // namespace numsim
