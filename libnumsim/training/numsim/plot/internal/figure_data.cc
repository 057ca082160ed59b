#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/base/require.h"
#include "numsim/io/csv.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

constexpr double kFilled = 0.8;  // share of the height of a row that its bars take

// Returns true if the series has a number at a place that the panel of curves can show.
bool IsData(const Panel& panel, const Series& series, size_t i) {
  return IsDrawable(panel.x, series.x[i]) && !std::isnan(series.y[i]);
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// Numbers that an axis does not show, by why it does not.
struct Tally {
  size_t above = 0, below = 0, not_positive = 0, infinite = 0;
  double most = -kNever;           // of those above
  double least = kNever;           // of those below
  double least_negative = kNever;  // of those that are not positive, on a logarithmic axis

  void Count(double value, bool log, const Extent& shown) {
    if (std::isinf(value)) {
      ++infinite;
    } else if (log && value <= 0) {
      ++not_positive;
      least_negative = std::min(least_negative, value);
    } else if (value > shown.high) {
      ++above;
      most = std::max(most, value);
    } else if (value < shown.low) {
      ++below;
      least = std::min(least, value);
    }
  }
};

std::string PointsText(size_t count) {
  return fmt::format("{} point{}", count, count == 1 ? "" : "s");
}

std::vector<std::string> PartsOf(const Tally& points, const Tally& ends) {
  std::vector<std::string> parts;
  const auto add = [&](size_t count, const std::string& what) {
    if (count > 0) parts.push_back(PointsText(count) + what);
  };
  add(points.above, fmt::format(" above, to {:.3g}", points.most));
  add(points.below, fmt::format(" below, to {:.3g}", points.least));
  add(points.not_positive,
      points.least_negative == 0 ? " at 0"
                                 : fmt::format(" at or below 0, to {:.3g}", points.least_negative));
  add(points.infinite, points.infinite == 1 ? " that is infinite" : " that are infinite");
  // Only what the points do not say already.
  const double low = std::min(ends.least, ends.least_negative);
  const bool lower = low < std::min(points.least, points.least_negative);
  const bool higher = ends.most > points.most;
  if (lower && higher) {
    parts.push_back(fmt::format("interval ends from {:.3g} to {:.3g}", low, ends.most));
  } else if (lower || higher) {
    parts.push_back(fmt::format("interval ends to {:.3g}", lower ? low : ends.most));
  }
  if (ends.infinite > 0) parts.emplace_back("infinite interval ends");
  return parts;
}

std::string Joined(const std::vector<std::string>& parts) {
  return parts.empty() ? "" : fmt::format("not shown: {}", fmt::join(parts, "; "));
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

// Returns the middle of the bars of a series, from that of their rows.
double MiddleOf(const Panel& panel, size_t index) {
  const auto count = static_cast<double>(panel.series.size());
  return kFilled * ((static_cast<double>(index) + 0.5) / count - 0.5);
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

bool IsDrawablePoint(const Panel& panel, const Series& series, size_t i) {
  return IsDrawable(panel.x, series.x[i]) && IsDrawable(panel.y, series.y[i]);
}

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
  if (!panel.rows.empty() && !panel.dots && !extent.empty) extent.Include(0);
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
    return IsData(panel, series, i) ? FormatCell(series.x[i]) + " " + FormatCell(series.y[i]) : "";
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

std::string DotRows(const Panel& panel, size_t index) {
  const Series& series = panel.series[index];
  CheckLengths(series);
  return JoinRows(series.x.size(), [&](size_t i) -> std::string {
    if (std::isnan(series.x[i]) || !IsDrawable(panel.y, series.y[i])) return "";
    return FormatCell(series.x[i]) + " " + FormatCell(series.y[i] + MiddleOf(panel, index));
  });
}

std::string ErrorBarRows(const Panel& panel, size_t index) {
  const Series& series = panel.series[index];
  CheckLengths(series);
  if (series.low.empty()) return "";
  const double middle = MiddleOf(panel, index);
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
  return JoinRows(series.x.size(), [&](size_t i) -> std::string {
    if (!IsData(panel, series, i)) return "";
    if (std::isnan(series.low[i]) || std::isnan(series.high[i])) return "";
    return FormatCell(series.x[i]) + " " + FormatCell(series.low[i]) + " " +
           FormatCell(series.high[i]);
  });
}

std::string BeyondText(const Panel& panel) {
  const bool bars = !panel.rows.empty();
  const Axis& axis = bars ? panel.x : panel.y;
  const Extent shown = ShownRange(axis, bars ? ExtentOfX(panel) : ExtentOfY(panel));
  Tally points, ends;
  const auto count = [&](double value, Tally& tally) {
    tally.Count(value, axis.log10 || axis.log2, shown);
  };
  for (const Series& series : panel.series) {
    CheckLengths(series);
    const std::vector<double>& values = bars ? series.x : series.y;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!bars && !IsData(panel, series, i)) continue;
      count(values[i], points);
      if (series.low.empty()) continue;
      count(series.low[i], ends);
      count(series.high[i], ends);
    }
  }
  return Joined(PartsOf(points, ends));
}

}  // namespace numsim
