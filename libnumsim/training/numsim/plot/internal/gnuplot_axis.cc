#include <fmt/format.h>
#include <fmt/ranges.h>

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

// Returns the distance of about four to eight tics within [low, high]: 1, 2 or 5 times a power of
// ten. Returns 0 if tics are not so many doubles apart that they could be listed.
double EvenStep(double low, double high) {
  const double rough = (high - low) / 5;
  if (!(rough > 1e-12 * std::max(std::abs(low), std::abs(high)) && rough < 1e300)) return 0;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double ratio = rough / decade;
  return decade * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
}

// Returns the multiples of EvenStep within [low, high].
std::vector<double> EvenTics(double low, double high) {
  const double step = EvenStep(low, high);
  std::vector<double> tics;
  if (step == 0) return tics;
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

bool IsLog(const Axis& axis) { return axis.log10 || axis.log2; }

// Returns true for a logarithmic axis that would contain hardly any powers of its base.
bool IsNarrow(const Axis& axis, const Extent& shown) {
  const double narrow = axis.log2 ? kNarrowLog2 : kNarrowLog10;
  return IsLog(axis) && shown.low < shown.high && shown.high / shown.low < narrow;
}

// Returns the tics of a narrow logarithmic axis: powers of two on an axis of base 2 that contains at
// least two of them, otherwise round numbers.
std::vector<double> NarrowLogTics(const Axis& axis, const Extent& shown) {
  std::vector<double> tics =
      axis.log2 ? PowersOfTwo(shown.low, shown.high) : LogTics(shown.low, shown.high);
  if (tics.size() >= (axis.log2 ? 2 : 4)) return tics;
  return ThinnedLogTics(EvenTics(shown.low, shown.high), shown);
}

std::string TicText(double tic) { return fmt::format("{:.10g}", tic); }

std::string NarrowLogCommands(char name, const Axis& axis, const Extent& shown) {
  std::string list;
  for (const double tic : NarrowLogTics(axis, shown)) {
    list += fmt::format("{}'{}' {}", list.empty() ? "" : ", ", TicText(tic), FormatCell(tic));
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
  if (axis.low == axis.high) return Padded(extent, IsLog(axis));
  return {std::min(axis.low, axis.high), std::max(axis.low, axis.high), false};
}

double TicCharacters(const Axis& axis, const Extent& extent) {
  constexpr double kRaised = 0.75;  // width of a raised character
  constexpr double kLongest = 10;   // of gnuplot's own labels
  constexpr double kNoZero = 1e-9;  // a tic that is smaller, relative to the range, is zero
  const Extent shown = ShownRange(axis, extent);
  std::vector<double> tics;
  if (IsNarrow(axis, shown)) {
    tics = NarrowLogTics(axis, shown);
  } else if (IsLog(axis)) {
    const double base = axis.log2 ? 2 : 10;
    double widest = 0;
    for (const double end : {shown.low, shown.high}) {
      const double exponent = std::trunc(std::log(end) / std::log(base));
      widest = std::max(widest, static_cast<double>(TicText(exponent).size()));
    }
    return (axis.log2 ? 1 : 2) + kRaised * widest;
  } else {
    tics = EvenTics(shown.low, shown.high);
    if (tics.empty()) return kLongest;
  }
  size_t widest = 1;
  for (const double tic : tics) {
    const bool zero = std::abs(tic) < kNoZero * (shown.high - shown.low);
    widest = std::max(widest, fmt::format("{:.6g}", zero ? 0 : tic).size());
  }
  return static_cast<double>(widest);
}

std::string AxisCommands(char name, const Axis& axis, const Extent& extent) {
  const bool log = IsLog(axis);
  const bool fixed = axis.low != axis.high;
  NUMSIM_REQUIRE(!(axis.log10 && axis.log2), "figure: axis '{}' has two scales", axis.label);
  NUMSIM_REQUIRE(!fixed || !log || (axis.low > 0 && axis.high > 0),
                 "figure: log axis '{}' from {} to {}, expected both > 0",
                 axis.label,
                 axis.low,
                 axis.high);
  std::string text = log ? fmt::format("set logscale {} {}\n", name, axis.log2 ? 2 : 10)
                         : fmt::format("unset logscale {}\n", name);
  const char* const format = !log ? "%h" : axis.log2 ? "2^{%L}" : "10^{%L}";
  text += fmt::format("set format {} '{}'\n", name, format);
  const Extent shown = fixed ? Extent{axis.low, axis.high, false} : ShownRange(axis, extent);
  text += fmt::format("set {}range [{}:{}]\n", name, FormatCell(shown.low), FormatCell(shown.high));
  if (IsNarrow(axis, shown)) return text + NarrowLogCommands(name, axis, shown);
  // The layout has to know the labels of the y axis; along x gnuplot knows best how many fit.
  if (const double step = log || name == 'x' ? 0 : EvenStep(shown.low, shown.high); step > 0) {
    return text + fmt::format("set ytics {}\nset mytics 1\n", FormatCell(step));
  }
  const bool every_decade = axis.log10 && shown.high / shown.low < kWideRatio;
  const char* const minor = every_decade ? "default" : "1";
  return text + fmt::format("set {0}tics autofreq\nset m{0}tics {1}\n", name, minor);
}

std::string RowAxisCommands(const Panel& panel, const std::vector<TextLines>& names) {
  NUMSIM_REQUIRE(!panel.rows.empty() && (panel.dots || !IsLog(panel.x)),
                 "figure: panel '{}', expected rows and a linear x axis",
                 panel.title);
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = fmt::format("{}", fmt::join(names[i], "\n"));
    list += fmt::format("{}{} {}", i == 0 ? "" : ", ", GnuplotText(name), i);
  }
  return fmt::format(
      "unset logscale y\nset yrange [{}:-0.5]\n"
      "set ytics ({}) noenhanced\nset mytics 1\n",
      FormatCell(static_cast<double>(panel.rows.size()) - 0.5),
      list);
}

}  // namespace numsim
