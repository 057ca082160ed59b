// The derived tables of `quantization-variance`: fitted slopes and D.3's ratios.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "experiments/quantization_variance/quantization_variance.h"
#include "numsim/base/elementary.h"
#include "numsim/stats/line_fit.h"

namespace numsim::experiments::quantization_variance {
namespace {

constexpr double kZ95 = 1.959963984540054;

// Returns the standard error of log(variance) that belongs to the interval
// variance * exp(+-1.96 error) in the table.
double LogError(const Table& table, size_t row) {
  const double low = table.Number(row, "var_error_low");
  const double high = table.Number(row, "var_error_high");
  return Log(high / low) / (2 * kZ95);
}

// Fits the slope of log(column) against log(k) over the rows of `curve`, which are weighted by
// `log_error`, the standard errors of log(column). A constant log_error weights all rows equally.
LineFit FitSlope(const Table& table,
                 const Curve& curve,
                 std::string_view column,
                 const std::function<double(size_t)>& log_error) {
  std::vector<double> x, y, errors;
  for (const size_t r : curve.rows) {
    const double value = table.Number(r, column);
    if (!(value > 0)) continue;
    x.push_back(Log(table.Number(r, "k")));
    y.push_back(Log(value));
    errors.push_back(std::max(log_error(r), 1e-9));
  }
  if (x.size() < 3 || x.front() == x.back()) {
    const double nan = std::nan("");
    return {nan, {nan, nan, nan}};
  }
  return FitLine(x, y, errors);
}

std::vector<std::string> SlopeRow(const Table& table, const Curve& curve) {
  const auto log_error = [&](size_t r) { return LogError(table, r); };
  const LineFit growth = FitSlope(table, curve, "var_error", log_error);
  // A root mean square of n values has about half the relative error of their variance.
  const LineFit relative =
      FitSlope(table, curve, "relative_error", [&](size_t r) { return 0.5 * LogError(table, r); });
  const LineFit sigma = FitSlope(table, curve, "sigma_q2", [](size_t) { return 1.0; });
  double low = INFINITY, high = 0;
  size_t covered = 0;
  std::set<std::string> lengths;
  for (const size_t r : curve.rows) {
    const double ratio = table.Number(r, "ratio");
    low = std::min(low, ratio);
    high = std::max(high, ratio);
    covered += table.Number(r, "ratio_low") <= 1 && 1 <= table.Number(r, "ratio_high");
    lengths.insert(table.Text(r, "k"));
  }
  return {curve.source,
          curve.format,
          curve.granularity,
          curve.rounding,
          FormatCell(uint64_t{lengths.size()}),
          FormatCell(growth.slope.value),
          FormatCell(growth.slope.low),
          FormatCell(growth.slope.high),
          FormatCell(relative.slope.value),
          FormatCell(relative.slope.low),
          FormatCell(relative.slope.high),
          FormatCell(sigma.slope.value),
          FormatCell(low),
          FormatCell(high),
          FormatCell(static_cast<double>(covered) / static_cast<double>(curve.rows.size()))};
}

// Variance of the error and relative error at one length, as geometric means over seeds; log_error2
// is the squared standard error of log_variance.
struct LengthError {
  double log_variance = 0, log_error2 = 0, log_relative = 0;
  int seeds = 0;
};

LengthError ErrorAt(const Table& table,
                    const std::string& format,
                    const std::string& granularity,
                    size_t k) {
  LengthError sum;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.Text(r, "source") != "normal" || table.Text(r, "format") != format ||
        table.Text(r, "granularity") != granularity || table.Text(r, "rounding") != "rne" ||
        table.Text(r, "k") != std::to_string(k) || !(table.Number(r, "var_error") > 0)) {
      continue;
    }
    const double log_error = LogError(table, r);
    sum.log_variance += Log(table.Number(r, "var_error"));
    sum.log_relative += Log(table.Number(r, "relative_error"));
    sum.log_error2 += log_error * log_error;
    ++sum.seeds;
  }
  if (sum.seeds > 0) {
    sum.log_variance /= sum.seeds;
    sum.log_relative /= sum.seeds;
    sum.log_error2 /= sum.seeds * sum.seeds;
  }
  return sum;
}

void AddRatioRows(const Settings& settings, const Table& variance, Table& ratios) {
  const std::string granularity =
      ToString(ParseScaleLayout(settings.GetList("granularities").front()));
  for (const DimensionRatio& ratio : DimensionRatios()) {
    for (const Format& format : ParseFormatList(settings.Get("formats"))) {
      const LengthError noisy = ErrorAt(variance, format.name, granularity, ratio.noisy.length);
      const LengthError quiet = ErrorAt(variance, format.name, granularity, ratio.quiet.length);
      if (noisy.seeds == 0 || quiet.seeds == 0) continue;
      const double log_ratio = noisy.log_variance - quiet.log_variance;
      const double half = kZ95 * std::sqrt(noisy.log_error2 + quiet.log_error2);
      ratios.rows.push_back({std::string(ratio.noisy.model),
                             std::string(ratio.noisy.operation),
                             FormatCell(uint64_t{ratio.noisy.length}),
                             fmt::format("{} {}", ratio.quiet.model, ratio.quiet.operation),
                             FormatCell(uint64_t{ratio.quiet.length}),
                             FormatCell(ratio.claimed),
                             FormatCell(static_cast<double>(ratio.noisy.length) /
                                        static_cast<double>(ratio.quiet.length)),
                             format.name,
                             FormatCell(Exp(log_ratio)),
                             FormatCell(Exp(log_ratio - half)),
                             FormatCell(Exp(log_ratio + half)),
                             FormatCell(Exp(noisy.log_relative - quiet.log_relative)),
                             std::string(ratio.note)});
    }
  }
}

}  // namespace

std::vector<Curve> Curves(const Table& table) {
  std::vector<Curve> curves;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.Text(r, "sweep") != "yes") continue;
    const Curve key{table.Text(r, "source"),
                    table.Text(r, "format"),
                    table.Text(r, "granularity"),
                    table.Text(r, "rounding"),
                    {}};
    const auto same = [&](const Curve& c) {
      return std::tie(c.source, c.format, c.granularity, c.rounding) ==
             std::tie(key.source, key.format, key.granularity, key.rounding);
    };
    auto found = std::find_if(curves.begin(), curves.end(), same);
    if (found == curves.end()) found = curves.insert(curves.end(), key);
    found->rows.push_back(r);
  }
  return curves;
}

Estimate SigmaSlope(const Table& variance, const Curve& curve) {
  // With errors this small the interval is that of the scatter about the line.
  return FitSlope(variance, curve, "sigma_q2", [](size_t) { return 0.0; }).slope;
}

void Derive(const Settings& settings, Tables& tables) {
  const Table& variance = tables.at(std::string(kVarianceTable));
  Table& slopes = tables.at(std::string(kSlopesTable));
  for (const Curve& curve : Curves(variance)) slopes.rows.push_back(SlopeRow(variance, curve));
  AddRatioRows(settings, variance, tables.at(std::string(kRatiosTable)));
}

}  // namespace numsim::experiments::quantization_variance
