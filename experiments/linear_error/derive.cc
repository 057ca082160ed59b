// The derived tables of `linear-error`: growth exponents, crossings, and the errors of each GEMM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/linear_error/linear_error.h"
#include "experiments/shared/log_slope.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::linear_error {
namespace {

// Returns the cells that name a curve in every derived table.
Row NamesOf(const Frame& curve) {
  return {curve.Text("operands"), curve.Text("kind"), curve.Text("format"), curve.Text("product")};
}

Row GrowthRow(const Frame& curve) {
  Row cells = NamesOf(curve);
  cells.emplace_back(curve.Text("sweep"));
  cells.emplace_back(curve.Size());
  for (const char* const column : {"error_variance", "signal_variance", "relative_error"}) {
    const Estimate slope = LogSlope(curve, LengthOf(curve), column);
    for (const double value : {slope.value, slope.low, slope.high}) cells.push_back(value);
  }
  return cells;
}

// Returns the length at which the curve, interpolated between its points on log-log axes, first
// exceeds `level`: the first length if it does so from the start, infinity if it never does.
double CrossingOf(const Series& curve, double level) {
  const std::vector<double>&x = curve.x, &y = curve.y;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(y[i] > level)) continue;
    if (i == 0) return x[0];
    const double share = Log(level / y[i - 1]) / Log(y[i] / y[i - 1]);
    return x[i - 1] * Exp(share * Log(x[i] / x[i - 1]));
  }
  return kInfinity;
}

std::string CrossingStatus(const Series& values, double level, double crossing) {
  if (crossing == kInfinity) return fmt::format("not reached up to {:.0f}", values.x.back());
  const char* const end = values.y.back() > level ? "" : ", below again at the end";
  if (crossing == values.x.front()) {
    return fmt::format("above from the start, {:.0f}{}", values.x.front(), end);
  }
  return fmt::format("reached{}", end);
}

void AddCrossings(const Settings& settings, const Frame& curve, std::vector<Row>& rows) {
  const Series values = ValuesOf(curve, "relative_error");
  if (values.x.empty()) return;
  for (const double level : Thresholds(settings)) {
    const double crossing = CrossingOf(values, level);
    double low = kInfinity, high = 0;
    for (const Frame& seed : curve.By({"seed"})) {
      const double of_seed = CrossingOf(ValuesOf(seed, "relative_error"), level);
      low = std::min(low, of_seed);
      high = std::max(high, of_seed);
    }
    rows.push_back({curve.Text("operands"),
                    curve.Text("kind"),
                    curve.Text("format"),
                    100 * level,
                    crossing,
                    low,
                    high,
                    CrossingStatus(values, level, crossing)});
  }
}

// Returns the row of one GEMM, with its errors at the longest length of its inner sweep.
Row ProductRow(const Frame& errors, const Frame& names) {
  const std::string operands = names.Text("operands"), kind = names.Text("kind"),
                    format = names.Text("format"), product = names.Text("product");
  const std::string_view sweep = InnerSweep(errors, operands, product);
  const Frame curve = CurveOf(errors, operands, kind, format, product, sweep);
  // Growth is only defined for a sweep over the GEMM's own inner dimension.
  const bool swept = (product == kWeightGradient) == (sweep == kTokenSweep);
  const auto growth = [&](std::string_view column) {
    return swept ? LogSlope(curve, LengthOf(curve), column).value : kNaN;
  };
  const Frame longest = LongestOf(errors, operands, kind, format, product);
  const auto last = [&](std::string_view column) {
    const Series values = ValuesOf(longest, column);
    return values.x.empty() ? Estimate{kNaN, kNaN, kNaN}
                            : Estimate{values.y[0], values.low[0], values.high[0]};
  };
  const Estimate error = last("relative_error");
  Row cells = NamesOf(names);
  for (const Cell& cell : Row{growth("error_variance"),
                              growth("relative_error"),
                              sweep,
                              longest.Number(LengthOf(longest)),
                              error.value,
                              error.low,
                              error.high,
                              last("row_error").value,
                              last("column_error").value,
                              last("cosine").value}) {
    cells.push_back(cell);
  }
  return cells;
}

// Returns the rows of errors.csv as curves, whose rows agree in everything except the swept length
// and the seed.
std::vector<Frame> CurvesOf(const Frame& errors) {
  return errors.By({"operands", "kind", "format", "product", "sweep"});
}

}  // namespace

Frame CurveOf(const Frame& errors,
              std::string_view operands,
              std::string_view kind,
              std::string_view format,
              std::string_view product,
              std::string_view sweep) {
  return errors.Where("operands", operands)
      .Where("kind", kind)
      .Where("format", format)
      .Where("product", product)
      .Where("sweep", sweep);
}

std::string_view LengthOf(const Frame& curve) {
  return !curve.Empty() && curve.Text("sweep") == kWidthSweep ? "in" : "tokens";
}

Series ValuesOf(const Frame& curve, std::string_view column) {
  std::map<double, std::vector<double>> by_length;
  curve.ForEach([&](const Frame& row) {
    const double value = row.Number(column);
    if (value >= 1e-300 && value <= 1e300) by_length[row.Number(LengthOf(curve))].push_back(value);
  });
  Series series;
  for (const auto& [length, values] : by_length) {
    double log_sum = 0;
    for (const double value : values) log_sum += Log(value);
    series.x.push_back(length);
    series.y.push_back(values.size() == 1 ? values[0]
                                          : Exp(log_sum / static_cast<double>(values.size())));
    series.low.push_back(*std::min_element(values.begin(), values.end()));
    series.high.push_back(*std::max_element(values.begin(), values.end()));
  }
  return series;
}

std::string_view InnerSweep(const Frame& errors,
                            std::string_view operands,
                            std::string_view product) {
  if (product == kWeightGradient) return kTokenSweep;
  const Frame widths = errors.Where("operands", operands).Where("sweep", kWidthSweep);
  return widths.Empty() ? kTokenSweep : kWidthSweep;
}

Frame LongestOf(const Frame& errors,
                std::string_view operands,
                std::string_view kind,
                std::string_view format,
                std::string_view product) {
  const Frame curve =
      CurveOf(errors, operands, kind, format, product, InnerSweep(errors, operands, product));
  double longest = 0;
  for (const double length : curve.Numbers(LengthOf(curve))) longest = std::max(longest, length);
  return curve.Where(LengthOf(curve), static_cast<uint64_t>(longest));
}

std::vector<Row> GrowthRows(const study::Results& results) {
  std::vector<Row> rows;
  for (const Frame& curve : CurvesOf(results.Of("errors"))) rows.push_back(GrowthRow(curve));
  return rows;
}

std::vector<Row> CrossingRows(const study::Results& results) {
  std::vector<Row> rows;
  const Frame swept = results.Of("errors").Where("sweep", kTokenSweep);
  for (const Frame& curve : CurvesOf(swept.Where("product", kWeightGradient))) {
    AddCrossings(results.settings, curve, rows);
  }
  return rows;
}

std::vector<Row> ProductRows(const study::Results& results) {
  std::vector<Row> rows;
  const Frame errors = results.Of("errors");
  for (const Frame& curve : CurvesOf(errors.Where("sweep", kTokenSweep))) {
    rows.push_back(ProductRow(errors, curve));
  }
  return rows;
}

}  // namespace numsim::experiments::linear_error
