// The figures of `quantization-variance`.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/quantization_variance.h"

namespace numsim::experiments::quantization_variance {
namespace {

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

}  // namespace

std::vector<Figure> Figures(const Settings& settings, const Tables& tables) {
  const Table& table = tables.at(std::string(kVarianceTable));
  const FigureBuilder build{settings,
                            table,
                            Curves(table),
                            Name(ParseScaleLayout(settings.GetList("granularities").front()))};
  return {build.Variance(), build.Ratio(), build.Relative()};
}

}  // namespace numsim::experiments::quantization_variance
