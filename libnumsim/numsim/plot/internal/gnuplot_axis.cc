#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/io/csv.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

// If the ratio of its ends is below these limits, a logarithmic axis is labelled with numbers
// instead of powers, because it would contain hardly any powers.
constexpr double kNarrowLog10 = 100;
constexpr double kNarrowLog2 = 8;
// Above this ratio, gnuplot omits the labels of some decades, and minor tics would appear in
// groups.
constexpr double kWideRatio = 1e8;

// Returns about four to eight tics within [low, high]: multiples of 1, 2 or 5 times a power of ten.
std::vector<double> EvenTics(double low, double high) {
  const double rough = (high - low) / 5;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double ratio = rough / decade;
  const double step = decade * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
  std::vector<double> tics;
  for (double multiple = std::ceil(low / step); multiple * step <= high; ++multiple) {
    tics.push_back(multiple * step);
  }
  return tics;
}

// Returns the tics within [low, high] that are 1, 2 or 5 times a power of ten.
std::vector<double> LogTics(double low, double high) {
  std::vector<double> tics;
  for (double e = std::floor(std::log10(low)); e <= std::log10(high); ++e) {
    for (const int digit : {1, 2, 5}) {
      const double tic = digit * std::pow(10, e);
      if (tic >= low && tic <= high) tics.push_back(tic);
    }
  }
  return tics;
}

// Returns the powers of two within [low, high].
std::vector<double> PowersOfTwo(double low, double high) {
  std::vector<double> tics;
  for (double e = std::ceil(std::log2(low)); e <= std::log2(high); ++e) {
    tics.push_back(std::exp2(e));
  }
  return tics;
}

// Selects from ascending tics those that are far enough apart on a logarithmic axis for their
// labels.
std::vector<double> ThinnedLogTics(const std::vector<double>& tics, const Extent& shown) {
  constexpr double kLeast = 0.12;  // least distance, as a fraction of the axis
  const double least = std::pow(shown.high / shown.low, kLeast);
  std::vector<double> kept;
  for (const double tic : tics) {
    if (kept.empty() || tic >= kept.back() * least) kept.push_back(tic);
  }
  return kept;
}

// Returns the commands for the tics of a logarithmic axis with a narrow range: powers of two on an
// axis of base 2 that contains at least two of them, otherwise round numbers.
std::string NarrowLogTics(char name, const Axis& axis, const Extent& shown) {
  std::vector<double> tics =
      axis.log2 ? PowersOfTwo(shown.low, shown.high) : LogTics(shown.low, shown.high);
  if (tics.size() < (axis.log2 ? 2 : 4))
    tics = ThinnedLogTics(EvenTics(shown.low, shown.high), shown);
  std::string list;
  for (const double tic : tics) {
    list += fmt::format("{}'{:.10g}' {}", list.empty() ? "" : ", ", tic, FormatCell(tic));
  }
  return fmt::format("set {0}tics ({1})\nset m{0}tics 1\n", name, list);
}

// Returns the range of the data with room for lines and markers at both ends; never an empty range.
// gnuplot's own choice, the next tics outwards, would waste up to a decade at each end.
Extent Padded(const Extent& data, bool log) {
  constexpr double kRoom = 0.04;  // fraction of the range
  if (data.empty) return {1, 10, false};
  const double size = std::max(std::abs(data.low), std::abs(data.high));
  const bool flat = data.high - data.low <= 1e-9 * size;
  if (log) {
    const double ratio = data.high / data.low;  // may be infinite
    const double factor = flat ? 2 : std::min(std::pow(ratio, kRoom), 1e4);
    return {data.low / factor, data.high * factor, false};
  }
  const double room = !flat ? kRoom * (data.high - data.low) : size > 0 ? 0.05 * size : 1;
  return {data.low - room, data.high + room, false};
}

}  // namespace

Extent ShownRange(const Axis& axis, const Extent& extent) {
  if (axis.low == axis.high) return Padded(extent, axis.log10 || axis.log2);
  return {std::min(axis.low, axis.high), std::max(axis.low, axis.high), false};
}

std::string AxisCommands(char name, const Axis& axis, const Extent& extent) {
  const bool log = axis.log10 || axis.log2;
  const bool fixed = axis.low != axis.high;
  NUMSIM_REQUIRE(!(axis.log10 && axis.log2), "figure: axis '{}' has two scales", axis.label);
  NUMSIM_REQUIRE(!fixed || !log || (axis.low > 0 && axis.high > 0),
                 "figure: log axis '{}' from {} to {}, expected both > 0",
                 axis.label,
                 axis.low,
                 axis.high);
  std::string text = fmt::format("set {}label {} enhanced\n", name, GnuplotText(axis.label));
  text += log ? fmt::format("set logscale {} {}\n", name, axis.log2 ? 2 : 10)
              : fmt::format("unset logscale {}\n", name);
  const char* const format = !log ? "%h" : axis.log2 ? "2^{%L}" : "10^{%L}";
  text += fmt::format("set format {} '{}'\n", name, format);
  const Extent shown = fixed ? Extent{axis.low, axis.high, false} : ShownRange(axis, extent);
  text += fmt::format("set {}range [{}:{}]\n", name, FormatCell(shown.low), FormatCell(shown.high));
  const double narrow = axis.log2 ? kNarrowLog2 : kNarrowLog10;
  if (log && shown.low < shown.high && shown.high / shown.low < narrow) {
    return text + NarrowLogTics(name, axis, shown);
  }
  const bool every_decade = axis.log10 && shown.high / shown.low < kWideRatio;
  const char* const minor = every_decade ? "default" : "1";
  return text + fmt::format("set {0}tics autofreq\nset m{0}tics {1}\n", name, minor);
}

std::string RowAxisCommands(const Panel& panel) {
  NUMSIM_REQUIRE(!panel.rows.empty() && !panel.x.log10 && !panel.x.log2,
                 "figure: panel '{}', expected rows and a linear x axis",
                 panel.title);
  std::string names;
  for (size_t i = 0; i < panel.rows.size(); ++i) {
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", GnuplotText(panel.rows[i]), i);
  }
  return fmt::format(
      "set ylabel {} enhanced\nunset logscale y\nset yrange [{}:-0.5]\n"
      "set ytics ({}) noenhanced\nset mytics 1\n",
      GnuplotText(panel.y.label),
      FormatCell(static_cast<double>(panel.rows.size()) - 0.5),
      names);
}

}  // namespace numsim
