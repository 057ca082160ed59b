// What the rows of `quantization-variance` say: fitted slopes, D.3's ratios, figures, verdicts.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "experiments/quantization_variance.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/stats/line_fit.h"

namespace numsim::experiments::quantization_variance {
namespace {

constexpr double kZ95 = 1.959963984540054;

// The rows of variance.csv that share everything but k and seed.
struct Curve {
  std::string source, format, granularity, rounding;
  std::vector<size_t> rows;  // of the sweep
};

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

// The standard error of log(variance) that an interval variance * exp(+-1.96 error) came from.
double LogError(const Table& table, size_t row) {
  const double low = table.Number(row, "var_error_low");
  const double high = table.Number(row, "var_error_high");
  return Log(high / low) / (2 * kZ95);
}

// The slope of log(column) against log(k); without errors of its own every point weighs the same.
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
          Cell(uint64_t{lengths.size()}),
          Cell(growth.slope.value),
          Cell(growth.slope.low),
          Cell(growth.slope.high),
          Cell(relative.slope.value),
          Cell(relative.slope.low),
          Cell(relative.slope.high),
          Cell(sigma.slope.value),
          Cell(low),
          Cell(high),
          Cell(static_cast<double>(covered) / static_cast<double>(curve.rows.size()))};
}

// The variance of the error at one length: a geometric mean over seeds.
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
  const std::string granularity = Name(ParseScaleLayout(settings.GetList("granularities").front()));
  for (const DimensionRatio& ratio : DimensionRatios()) {
    for (const Format& format : ParseFormatList(settings.Get("formats"))) {
      const LengthError noisy = ErrorAt(variance, format.name, granularity, ratio.noisy.length);
      const LengthError quiet = ErrorAt(variance, format.name, granularity, ratio.quiet.length);
      if (noisy.seeds == 0 || quiet.seeds == 0) continue;
      const double log_ratio = noisy.log_variance - quiet.log_variance;
      const double half = kZ95 * std::sqrt(noisy.log_error2 + quiet.log_error2);
      ratios.rows.push_back(
          {std::string(ratio.noisy.model),
           std::string(ratio.noisy.operation),
           Cell(uint64_t{ratio.noisy.length}),
           fmt::format("{} {}", ratio.quiet.model, ratio.quiet.operation),
           Cell(uint64_t{ratio.quiet.length}),
           Cell(ratio.claimed),
           Cell(static_cast<double>(ratio.noisy.length) / static_cast<double>(ratio.quiet.length)),
           format.name,
           Cell(Exp(log_ratio)),
           Cell(Exp(log_ratio - half)),
           Cell(Exp(log_ratio + half)),
           Cell(Exp(noisy.log_relative - quiet.log_relative)),
           std::string(ratio.note)});
    }
  }
}

// --- Figures ---

int StyleOf(const Settings& settings, const std::string& format) {
  const std::vector<Format> formats = ParseFormatList(settings.Get("formats"));
  for (size_t i = 0; i < formats.size(); ++i) {
    if (formats[i].name == format) return static_cast<int>(i);
  }
  return 0;
}

// A curve's column against k: mean over seeds, with a band between `low` and `high` columns if
// named (the widest over seeds).
Series CurveSeries(const Table& table,
                   const Curve& curve,
                   std::string_view column,
                   std::string_view low,
                   std::string_view high) {
  std::map<double, std::vector<size_t>> by_length;
  for (const size_t r : curve.rows) by_length[table.Number(r, "k")].push_back(r);
  Series series;
  for (const auto& [k, rows] : by_length) {
    double sum = 0, lowest = INFINITY, highest = -INFINITY;
    for (const size_t r : rows) {
      const double value = table.Number(r, column);
      sum += value;
      lowest = std::min(lowest, low.empty() ? value : table.Number(r, low));
      highest = std::max(highest, high.empty() ? value : table.Number(r, high));
    }
    series.x.push_back(k);
    series.y.push_back(sum / static_cast<double>(rows.size()));
    series.low.push_back(lowest);
    series.high.push_back(highest);
  }
  if (low.empty() && table.rows.size() == curve.rows.size())
    series.low.clear(), series.high.clear();
  return series;
}

struct FigureBuilder {
  const Settings& settings;
  const Table& table;
  std::vector<Curve> curves;
  std::string first_granularity;

  Axis LengthAxis() const {
    Axis axis;
    axis.label = "inner dimension k";
    axis.log2 = true;
    return axis;
  }

  Figure Variance() const {
    Figure figure{
        "error-variance", "Variance of the quantised inner product's error", 2, {}, "variance.csv"};
    for (const std::string& source : Sources(settings)) {
      Panel panel{source + ", " + first_granularity + "-wise, nearest-even",
                  LengthAxis(),
                  Axis{"Var(error)", true, false, 0, 0},
                  {}};
      for (const Curve& curve : curves) {
        if (curve.source != source || curve.granularity != first_granularity ||
            curve.rounding != "rne") {
          continue;
        }
        Series measured = CurveSeries(table, curve, "var_error", "var_error_low", "var_error_high");
        measured.label = curve.format;
        measured.style = StyleOf(settings, curve.format);
        Series predicted = CurveSeries(table, curve, "prediction", "", "");
        predicted.label = "Eq. 12";
        predicted.style = measured.style;
        predicted.dashed = true;
        predicted.markers = false;
        predicted.low.clear();
        predicted.high.clear();
        // One legend entry for the prediction, whatever its colour.
        const bool first = panel.series.empty();
        panel.series.push_back(std::move(measured));
        if (!first) predicted.label.clear();
        panel.series.push_back(std::move(predicted));
      }
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  }

  Figure Ratio() const {
    Figure figure{"eq12-ratio", "Measured variance over Eq. 12", 2, {}, "variance.csv"};
    for (const std::string& source : Sources(settings)) {
      Panel panel{source + ", " + first_granularity + "-wise, nearest-even",
                  LengthAxis(),
                  Axis{"Var(error) / Eq. 12", true, false, 0, 0},
                  {}};
      for (const Curve& curve : curves) {
        if (curve.source != source || curve.granularity != first_granularity ||
            curve.rounding != "rne") {
          continue;
        }
        Series series = CurveSeries(table, curve, "ratio", "ratio_low", "ratio_high");
        series.label = curve.format;
        series.style = StyleOf(settings, curve.format);
        panel.series.push_back(std::move(series));
      }
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  }

  Figure Relative() const {
    const std::vector<std::string> sources = Sources(settings);
    std::vector<std::string> shown = {sources.front()};
    if (sources.size() > 1) shown.push_back(sources.back());
    Figure figure{"relative-error",
                  "Error relative to the product",
                  static_cast<int>(shown.size()),
                  {},
                  "variance.csv"};
    for (const std::string& text : settings.GetList("granularities")) {
      const std::string granularity = Name(ParseScaleLayout(text));
      for (const std::string& source : shown) {
        Panel panel{source + ", " + granularity + ", nearest-even",
                    LengthAxis(),
                    Axis{"rms(error) / rms(product)", true, false, 0, 0},
                    {}};
        for (const Curve& curve : curves) {
          if (curve.source != source || curve.granularity != granularity ||
              curve.rounding != "rne") {
            continue;
          }
          Series series = CurveSeries(table, curve, "relative_error", "", "");
          if (settings.seeds == 1) series.low.clear(), series.high.clear();
          series.label = curve.format;
          series.style = StyleOf(settings, curve.format);
          panel.series.push_back(std::move(series));
        }
        figure.panels.push_back(std::move(panel));
      }
    }
    return figure;
  }
};

// --- Summary ---

struct SlopeRange {
  double low = INFINITY, high = -INFINITY;
  std::string text;
};

// The smallest and largest of a column of slopes.csv over rows that `include` accepts.
SlopeRange RangeOf(const Table& slopes,
                   std::string_view column,
                   const std::function<bool(size_t)>& include) {
  SlopeRange range;
  for (size_t r = 0; r < slopes.rows.size(); ++r) {
    if (!include(r)) continue;
    const double value = slopes.Number(r, column);
    if (std::isnan(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  range.text = range.low > range.high ? "not measured"
                                      : fmt::format("{:.3f} to {:.3f}", range.low, range.high);
  return range;
}

bool Light(const std::string& source) { return source != "student-t3"; }

std::string SlopeOf(const Table& slopes, size_t r) {
  return fmt::format("{} {} {:.3f} [{:.3f}, {:.3f}]",
                     slopes.Text(r, "source"),
                     slopes.Text(r, "format"),
                     slopes.Number(r, "slope"),
                     slopes.Number(r, "slope_low"),
                     slopes.Number(r, "slope_high"));
}

Claim GrowthClaim(const Table& slopes, const std::string& granularity) {
  std::string list;
  bool all_grow = true, all_linear = true;
  for (size_t r = 0; r < slopes.rows.size(); ++r) {
    if (slopes.Text(r, "granularity") != granularity || slopes.Text(r, "rounding") != "rne") {
      continue;
    }
    list += (list.empty() ? "" : "; ") + SlopeOf(slopes, r);
    all_grow &= slopes.Number(r, "slope_low") > 0.5;
    all_linear &= slopes.Number(r, "slope_low") <= 1 && 1 <= slopes.Number(r, "slope_high");
  }
  return {
      "The variance due to quantisation increases with the inner dimension k, linearly for a "
      "constant sigma_q (Eq. 12, D.2).",
      fmt::format("Log-log slope of Var(error) with its 95 % interval, {}-wise, nearest-even: "
                  "{}.",
                  granularity,
                  list),
      list.empty() ? "not measured"
      : all_linear ? "holds"
      : all_grow   ? "holds in part"
                   : "does not hold"};
}

Claim ValueClaim(const Table& slopes, const std::string& granularity) {
  const auto rows_of = [&](const char* rounding) {
    return [&slopes, granularity, rounding](size_t r) {
      return slopes.Text(r, "granularity") == granularity &&
             slopes.Text(r, "rounding") == rounding && Light(slopes.Text(r, "source"));
    };
  };
  const SlopeRange low = RangeOf(slopes, "ratio_min", rows_of("rne"));
  const SlopeRange high = RangeOf(slopes, "ratio_max", rows_of("rne"));
  const SlopeRange covered = RangeOf(slopes, "covered_share", rows_of("rne"));
  const SlopeRange sr_covered = RangeOf(slopes, "covered_share", rows_of("sr"));
  const bool measured = low.low <= low.high;
  const bool holds = measured && low.low > 0.5 && high.high < 2 && covered.low >= 0.75;
  return {"The added variance is k sigma_q^2 (sigma_u^2 + sigma_v^2 + sigma_q^2) (Eq. 12).",
          fmt::format("With the measured sigma_q^2, Var(error) over Eq. 12 lies between {:.3f} and "
                      "{:.3f} over all k (normal, uniform, Laplace; {}-wise, nearest-even); the "
                      "95 % interval contains 1 at {:.0f} % of the lengths for the worst format "
                      "and source, and at {:.0f} % under stochastic rounding.",
                      low.low,
                      high.high,
                      granularity,
                      100 * covered.low,
                      100 * sr_covered.low),
          !measured ? "not measured"
          : holds   ? "holds"
                    : "holds in part"};
}

Claim SigmaClaim(const Table& slopes, const std::string& granularity) {
  const auto of = [&](bool integer) {
    return RangeOf(slopes, "sigma_q2_slope", [&slopes, granularity, integer](size_t r) {
      return slopes.Text(r, "granularity") == granularity && slopes.Text(r, "rounding") == "rne" &&
             (slopes.Text(r, "format") == "int8") == integer;
    });
  };
  const SlopeRange integer = of(true), floating = of(false);
  const bool measured = integer.low <= integer.high;
  return {
      "The analysis is conservative: in practice sigma_q^2 would grow with k, as the absmax of "
      "u and v does (D.1).",
      fmt::format("Log-log slope of sigma_q^2 against k, {}-wise: int8 {}; floating-point "
                  "formats {}, whose steps scale with the element and not with absmax.",
                  granularity,
                  integer.text,
                  floating.text),
      !measured            ? "not measured"
      : integer.low > 0.01 ? "holds in part"
                           : "does not hold"};
}

Claim RelativeClaim(const Table& slopes, const std::string& granularity) {
  const auto of = [&](bool light) {
    return RangeOf(slopes, "relative_slope", [&slopes, granularity, light](size_t r) {
      return slopes.Text(r, "granularity") == granularity && slopes.Text(r, "rounding") == "rne" &&
             Light(slopes.Text(r, "source")) == light;
    });
  };
  const SlopeRange light = of(true), heavy = of(false);
  const bool measured = light.low <= light.high;
  return {
      "For large k the noise drowns the signal: features or gradients no longer lead to "
      "effective learning (D.2).",
      fmt::format("For independent operands of mean zero the product's variance grows with k "
                  "as well: the log-log slope of the relative error against k is {} for light "
                  "tails and {} for Student's t, where 0.5 would be a noise variance that grows "
                  "against a fixed signal. A growing variance alone does not drown the signal; "
                  "what grows is absmax, with int8 and heavy tails.",
                  light.text,
                  heavy.text),
      !measured           ? "not measured"
      : light.high < 0.25 ? "does not hold"
                          : "holds in part"};
}

Claim RatioClaim(const Table& ratios, std::string_view model, const std::string& text) {
  std::string list;
  bool covered = true;
  for (size_t r = 0; r < ratios.rows.size(); ++r) {
    if (ratios.Text(r, "model") != model || ratios.Number(r, "claimed") <= 2) continue;
    list += fmt::format("{}{} {} against {}: claimed {:g}, measured {:.1f} [{:.1f}, {:.1f}]",
                        list.empty() ? "" : "; ",
                        ratios.Text(r, "format"),
                        ratios.Text(r, "noisy_k"),
                        ratios.Text(r, "quiet_k"),
                        ratios.Number(r, "claimed"),
                        ratios.Number(r, "measured"),
                        ratios.Number(r, "measured_low"),
                        ratios.Number(r, "measured_high"));
    covered &= ratios.Number(r, "measured_low") <= ratios.Number(r, "claimed") &&
               ratios.Number(r, "claimed") <= ratios.Number(r, "measured_high");
  }
  return {text,
          list.empty() ? "The lengths are beyond --k-high, or no normal operands." : list + ".",
          list.empty() ? "not measured"
          : covered    ? "holds"
                       : "holds in part"};
}

std::string AssumptionNotes(const Table& variance) {
  double correlation = 0, underflow = 0;
  std::string correlation_at = "none", underflow_at = "none";
  for (size_t r = 0; r < variance.rows.size(); ++r) {
    const auto at = [&] {
      return fmt::format("{}, {}, {}, {}, k = {}",
                         variance.Text(r, "source"),
                         variance.Text(r, "format"),
                         variance.Text(r, "granularity"),
                         variance.Text(r, "rounding"),
                         variance.Text(r, "k"));
    };
    const double c = variance.Number(r, "correlation_element");
    if (variance.Text(r, "rounding") == "rne" && std::abs(c) > std::abs(correlation)) {
      correlation = c;
      correlation_at = at();
    }
    if (variance.Number(r, "underflow_share") > underflow) {
      underflow = variance.Number(r, "underflow_share");
      underflow_at = at();
    }
  }
  return fmt::format(
      "Where the assumptions of Eq. 12 fail. Its errors are independent of the signal; the largest "
      "correlation of a nearest-even error with its own element is {:.3f} ({}). The largest share "
      "of nonzero elements that became zero is {:.2f} % ({}). Slopes, ratios and intervals for "
      "every source, format and granularity are in slopes.csv; D.3's table, with the model's own "
      "22016 beside the paper's 32768 and the relative errors, is in dimension_ratios.csv. Under "
      "Student's t, whose fourth moment is infinite, single elements dominate the pooled mean "
      "squares, so Eq. 12 can exceed the measured variance several times. Eq. 12 "
      "leaves the factor of D.3 to the lengths alone, so the claim that CLIP's weight gradient is "
      "twice as noisy as LLaMA's noisiest product is the row 65536 against 32768.",
      correlation,
      correlation_at,
      100 * underflow,
      underflow_at);
}

}  // namespace

void Derive(const Settings& settings, Tables& tables) {
  const Table& variance = tables.at(std::string(kVarianceTable));
  Table& slopes = tables.at(std::string(kSlopesTable));
  for (const Curve& curve : Curves(variance)) slopes.rows.push_back(SlopeRow(variance, curve));
  AddRatioRows(settings, variance, tables.at(std::string(kRatiosTable)));
}

std::vector<Figure> Figures(const Settings& settings, const Tables& tables) {
  const Table& table = tables.at(std::string(kVarianceTable));
  const FigureBuilder build{settings,
                            table,
                            Curves(table),
                            Name(ParseScaleLayout(settings.GetList("granularities").front()))};
  return {build.Variance(), build.Ratio(), build.Relative()};
}

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Table& slopes = tables.at(std::string(kSlopesTable));
  const Table& ratios = tables.at(std::string(kRatiosTable));
  const std::string granularity = Name(ParseScaleLayout(settings.GetList("granularities").front()));
  Summary summary;
  summary.claims = {
      GrowthClaim(slopes, granularity),
      ValueClaim(slopes, granularity),
      SigmaClaim(slopes, granularity),
      RelativeClaim(slopes, granularity),
      RatioClaim(ratios,
                 "CLIP ViT-Huge",
                 "CLIP ViT-Huge's weight gradient is 12.8 to 51.2 times as noisy as its other "
                 "products (D.3)."),
      RatioClaim(ratios,
                 "LLaMA 65B",
                 "LLaMA 65B's weight gradient is 4 to 16 times less noisy than its other products "
                 "(D.3).")};
  summary.notes = AssumptionNotes(tables.at(std::string(kVarianceTable)));
  return summary;
}

}  // namespace numsim::experiments::quantization_variance
