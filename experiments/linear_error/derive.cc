// The derived tables of `linear-error`: growth exponents, crossings, and which GEMM breaks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "experiments/linear_error/linear_error.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/stats/line_fit.h"

namespace numsim::experiments::linear_error {
namespace {

// Returns true for the range of values that enters logarithms.
bool Usable(double value) { return value >= 1e-300 && value <= 1e300; }

double SweptLength(const Table& errors, const Curve& curve, size_t row) {
  return errors.Number(row, curve.sweep == kTokenSweep ? "tokens" : "in");
}

// Returns the log-log slope of a column against the swept length. The values of all seeds are
// points of one line; the interval results from their scatter about the line.
Estimate Growth(const Table& errors, const Curve& curve, std::string_view column) {
  std::vector<double> x, y;
  for (const size_t r : curve.rows) {
    const double value = errors.Number(r, column);
    if (!Usable(value)) continue;
    x.push_back(Log(SweptLength(errors, curve, r)));
    y.push_back(Log(value));
  }
  if (x.size() < 3 || std::equal(x.begin() + 1, x.end(), x.begin())) return {kNaN, kNaN, kNaN};
  const std::vector<double> same_weight(x.size(), 1e-9);
  return FitLine(x, y, same_weight).slope;
}

void AddGrowth(const Table& errors, const Curve& curve, Table& growth) {
  std::vector<std::string> cells = {curve.operands,
                                    curve.kind,
                                    curve.format,
                                    curve.product,
                                    curve.sweep,
                                    FormatCell(uint64_t{curve.rows.size()})};
  for (const char* const column : {"error_variance", "signal_variance", "relative_error"}) {
    const Estimate slope = Growth(errors, curve, column);
    for (const double value : {slope.value, slope.low, slope.high})
      cells.push_back(FormatCell(value));
  }
  growth.rows.push_back(std::move(cells));
}

// Returns the length at which the curve, interpolated between its points on log-log axes, first
// exceeds `level`: the first length if it does so from the start, infinity if it never does.
double CrossingOf(const std::vector<double>& x, const std::vector<double>& y, double level) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(y[i] > level)) continue;
    if (i == 0) return x[0];
    const double share = Log(level / y[i - 1]) / Log(y[i] / y[i - 1]);
    return x[i - 1] * Exp(share * Log(x[i] / x[i - 1]));
  }
  return kInfinity;
}

// Returns the crossing of each seed by itself.
std::vector<double> SeedCrossings(const Table& errors, const Curve& curve, double level) {
  std::map<std::string, std::map<double, double>> by_seed;
  for (const size_t r : curve.rows) {
    const double value = errors.Number(r, "relative_error");
    if (Usable(value)) by_seed[errors.Text(r, "seed")][errors.Number(r, "tokens")] = value;
  }
  std::vector<double> crossings;
  for (const auto& [seed, points] : by_seed) {
    std::vector<double> x, y;
    for (const auto& [tokens, value] : points) {
      x.push_back(tokens);
      y.push_back(value);
    }
    crossings.push_back(CrossingOf(x, y, level));
  }
  return crossings;
}

std::string CrossingStatus(const SweptValues& values, double level, double crossing) {
  if (crossing == kInfinity) return fmt::format("not reached up to {:.0f}", values.x.back());
  const char* const end = values.mean.back() > level ? "" : ", below again at the end";
  if (crossing == values.x.front()) {
    return fmt::format("above from the start, {:.0f}{}", values.x.front(), end);
  }
  return fmt::format("reached{}", end);
}

void AddCrossings(const Settings& settings, const Table& errors, const Curve& curve, Table& table) {
  const SweptValues values = ValuesOf(errors, curve, "relative_error");
  if (values.x.empty()) return;
  for (const double level : Thresholds(settings)) {
    const double crossing = CrossingOf(values.x, values.mean, level);
    const std::vector<double> seeds = SeedCrossings(errors, curve, level);
    table.rows.push_back({curve.operands,
                          curve.kind,
                          curve.format,
                          FormatCell(100 * level),
                          FormatCell(crossing),
                          FormatCell(*std::min_element(seeds.begin(), seeds.end())),
                          FormatCell(*std::max_element(seeds.begin(), seeds.end())),
                          CrossingStatus(values, level, crossing)});
  }
}

// The value of a column at the longest length; NaN if there is none.
struct LastValue {
  double x = kNaN, mean = kNaN, low = kNaN, high = kNaN;
};
LastValue LastOf(const Table& errors, const Curve& curve, std::string_view column) {
  const SweptValues values = ValuesOf(errors, curve, column);
  if (values.x.empty()) return {};
  return {values.x.back(), values.mean.back(), values.low.back(), values.high.back()};
}

// Adds the row of one GEMM, with its errors at the longest inner dimension that was measured.
void AddProduct(const Settings& settings,
                const Table& errors,
                const Curve& curve,
                Table& products) {
  // Growth is only defined for a sweep over the GEMM's own inner dimension.
  const bool weight_gradient = curve.product == ToString(LinearGemm::kWeightGradient);
  const bool swept = weight_gradient == (curve.sweep == kTokenSweep);
  const Estimate none{kNaN, kNaN, kNaN};
  const Estimate noise = swept ? Growth(errors, curve, "error_variance") : none;
  const Estimate relative = swept ? Growth(errors, curve, "relative_error") : none;
  const LastValue error = LastOf(errors, curve, "relative_error");
  const LastValue row = LastOf(errors, curve, "row_error");
  const LastValue column = LastOf(errors, curve, "column_error");
  const double level = Thresholds(settings).front();
  std::string breaks;
  const auto add = [&](bool broken, const char* measure) {
    if (broken) breaks += (breaks.empty() ? "" : " ") + std::string(measure);
  };
  add(noise.value > kVarianceGrowth, "noise");
  add(relative.value >= kRelativeGrowth, "growth");
  add(error.mean > level, "relative");
  add(row.mean > level, "row");
  add(column.mean > level, "column");
  products.rows.push_back({curve.operands,
                           curve.kind,
                           curve.format,
                           curve.product,
                           FormatCell(noise.value),
                           FormatCell(relative.value),
                           curve.sweep,
                           FormatCell(error.x),
                           FormatCell(error.mean),
                           FormatCell(error.low),
                           FormatCell(error.high),
                           FormatCell(row.mean),
                           FormatCell(column.mean),
                           FormatCell(LastOf(errors, curve, "cosine").mean),
                           breaks.empty() ? "none" : breaks});
}

}  // namespace

std::vector<Curve> Curves(const Table& errors) {
  std::vector<Curve> curves;
  std::map<std::vector<std::string>, size_t> index;
  for (size_t r = 0; r < errors.rows.size(); ++r) {
    std::vector<std::string> key;
    for (const char* const column : {"operands", "kind", "format", "product", "sweep"}) {
      key.push_back(errors.Text(r, column));
    }
    const auto [at, added] = index.emplace(key, curves.size());
    if (added) curves.push_back({key[0], key[1], key[2], key[3], key[4], {}});
    curves[at->second].rows.push_back(r);
  }
  return curves;
}

const Curve* FindCurve(const std::vector<Curve>& curves,
                       std::string_view operands,
                       std::string_view kind,
                       std::string_view format,
                       LinearGemm product,
                       std::string_view sweep) {
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const Curve& c) {
    return std::tie(c.operands, c.kind, c.format, c.sweep) ==
               std::tie(operands, kind, format, sweep) &&
           c.product == ToString(product);
  });
  return found == curves.end() ? nullptr : &*found;
}

SweptValues ValuesOf(const Table& errors, const Curve& curve, std::string_view column) {
  std::map<double, std::vector<double>> by_length;
  for (const size_t r : curve.rows) {
    const double value = errors.Number(r, column);
    if (Usable(value)) by_length[SweptLength(errors, curve, r)].push_back(value);
  }
  SweptValues values;
  for (const auto& [length, at] : by_length) {
    double log_sum = 0;
    for (const double value : at) log_sum += Log(value);
    values.x.push_back(length);
    const double mean = at.size() == 1 ? at[0] : Exp(log_sum / static_cast<double>(at.size()));
    values.mean.push_back(mean);
    values.low.push_back(*std::min_element(at.begin(), at.end()));
    values.high.push_back(*std::max_element(at.begin(), at.end()));
  }
  return values;
}

LinearGemm ProductNamed(std::string_view name) {
  const auto found = std::find_if(std::begin(kProducts), std::end(kProducts), [&](LinearGemm p) {
    return ToString(p) == name;
  });
  if (found == std::end(kProducts)) throw Error::Format("product '{}' is unknown", name);
  return *found;
}

std::string_view InnerSweep(const std::vector<Curve>& curves,
                            std::string_view operands,
                            LinearGemm product) {
  if (product == LinearGemm::kWeightGradient) return kTokenSweep;
  const bool widths = std::any_of(curves.begin(), curves.end(), [&](const Curve& c) {
    return c.operands == operands && c.sweep == kWidthSweep;
  });
  return widths ? kWidthSweep : kTokenSweep;
}

void Derive(const Settings& settings, Tables& tables) {
  const Table& errors = tables.at(std::string(kErrorsTable));
  const std::vector<Curve> curves = Curves(errors);
  for (const Curve& curve : curves) {
    AddGrowth(errors, curve, tables.at(std::string(kGrowthTable)));
    if (curve.sweep != kTokenSweep) continue;
    const LinearGemm product = ProductNamed(curve.product);
    const Curve* inner = FindCurve(curves,
                                   curve.operands,
                                   curve.kind,
                                   curve.format,
                                   product,
                                   InnerSweep(curves, curve.operands, product));
    AddProduct(settings,
               errors,
               inner != nullptr ? *inner : curve,
               tables.at(std::string(kProductsTable)));
    if (product != LinearGemm::kWeightGradient) continue;
    AddCrossings(settings, errors, curve, tables.at(std::string(kCrossingsTable)));
  }
}

}  // namespace numsim::experiments::linear_error
