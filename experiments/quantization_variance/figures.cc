// The figures of `quantization-variance`.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/shared/distinct.h"

namespace numsim::experiments::quantization_variance {
namespace {

int StyleOf(const Settings& settings, const std::string& format) {
  const std::vector<Format> formats = ParseFormatList(settings.Get("formats"));
  for (size_t i = 0; i < formats.size(); ++i) {
    if (formats[i].name == format) return static_cast<int>(i);
  }
  return 0;
}

// Returns a column of a curve against k, as the mean over seeds. If the columns `low` and `high`
// are given, the band runs from the smallest `low` to the largest `high` over seeds; otherwise it
// is the range over seeds, if there are several.
Series CurveSeries(const Settings& settings,
                   const Table& table,
                   const Curve& curve,
                   std::string_view column,
                   std::string_view low,
                   std::string_view high) {
  std::map<double, std::vector<size_t>> by_length;
  for (const size_t r : curve.rows) by_length[table.Number(r, "k")].push_back(r);
  Series series;
  series.label = curve.format;
  series.style = StyleOf(settings, curve.format);
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
  if (low.empty() && settings.seeds == 1) {
    series.low.clear();
    series.high.clear();
  }
  return series;
}

// Returns the prediction of Eq. 12, in the colour of the measured series.
Series PredictionSeries(const Settings& settings, const Table& table, const Curve& curve) {
  Series series = CurveSeries(settings, table, curve, "prediction", "", "");
  series.label = "Eq. 12";
  series.dashed = true;
  series.markers = false;
  series.low.clear();
  series.high.clear();
  return series;
}

// The granularities of the settings that have the same errors, the first of them in front.
using EqualGranularities = std::vector<std::string>;

// Returns true if the curves of two granularities have the same errors in all rows.
bool HaveEqualErrors(const Table& table,
                     const std::vector<Curve>& curves,
                     const std::string& a,
                     const std::string& b) {
  const auto errors_of = [&](const std::string& granularity) {
    std::vector<std::vector<std::string>> errors;
    for (const Curve& curve : curves) {
      if (curve.granularity != granularity || curve.rounding != "rne") continue;
      for (const size_t r : curve.rows) {
        errors.push_back({curve.source,
                          curve.format,
                          table.Text(r, "k"),
                          table.Text(r, "seed"),
                          table.Text(r, "var_error"),
                          table.Text(r, "relative_error")});
      }
    }
    return errors;
  };
  return errors_of(a) == errors_of(b);
}

// Returns the granularities of the settings in groups with equal errors: a block that is as long as
// the vectors, for example, is the whole row.
std::vector<EqualGranularities> GroupsOf(const Settings& settings,
                                         const Table& table,
                                         const std::vector<Curve>& curves) {
  std::vector<EqualGranularities> groups;
  for (const std::string& text : settings.GetList("granularities")) {
    const std::string granularity = ToString(ParseScaleLayout(text));
    const auto same = [&](const EqualGranularities& group) {
      return HaveEqualErrors(table, curves, group.front(), granularity);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.push_back({granularity});
    } else {
      found->push_back(granularity);
    }
  }
  return groups;
}

std::string Joined(const EqualGranularities& group, const char* separator) {
  return fmt::format("{}", fmt::join(group, separator));
}

struct FigureBuilder {
  const Settings& settings;
  const Table& table;
  std::vector<Curve> curves;
  std::string first_granularity;
  std::vector<std::string> sources;
  std::vector<EqualGranularities> groups;

  // Returns the curves that a panel shows: nearest-even only, in the order of the table.
  std::vector<const Curve*> CurvesOf(const std::string& source,
                                     const std::string& granularity) const {
    std::vector<const Curve*> found;
    for (const Curve& curve : curves) {
      if (curve.source == source && curve.granularity == granularity && curve.rounding == "rne") {
        found.push_back(&curve);
      }
    }
    return found;
  }

  Panel EmptyPanel(const std::string& title, const std::string& y_label) const {
    Panel panel;
    panel.title = title;
    panel.x.label = "inner dimension k";
    panel.x.log2 = true;
    panel.y.label = y_label;
    panel.y.log10 = true;
    return panel;
  }

  std::string FirstTitle(const std::string& source) const {
    return source + ", " + first_granularity + "-wise, nearest-even";
  }

  Figure Variance() const {
    Figure figure{
        "error-variance", "Variance of the quantised inner product's error", 2, {}, "variance.csv"};
    for (const std::string& source : sources) {
      Panel panel = EmptyPanel(FirstTitle(source), "Var(error)");
      for (const Curve* curve : CurvesOf(source, first_granularity)) {
        Series predicted = PredictionSeries(settings, table, *curve);
        // Only the first prediction gets a legend entry, which stands for all colours.
        if (!panel.series.empty()) predicted.label.clear();
        panel.series.push_back(
            CurveSeries(settings, table, *curve, "var_error", "var_error_low", "var_error_high"));
        panel.series.push_back(std::move(predicted));
      }
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  }

  Figure Ratio() const {
    Figure figure{"eq12-ratio", "Measured variance over Eq. 12", 2, {}, "variance.csv"};
    for (const std::string& source : sources) {
      Panel panel = EmptyPanel(FirstTitle(source), "Var(error) / Eq. 12");
      for (const Curve* curve : CurvesOf(source, first_granularity)) {
        panel.series.push_back(
            CurveSeries(settings, table, *curve, "ratio", "ratio_low", "ratio_high"));
      }
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  }

  Figure Relative() const {
    std::vector<std::string> shown = {sources.front()};
    if (sources.size() > 1) shown.push_back(sources.back());
    Figure figure{"relative-error",
                  "Error relative to the product",
                  static_cast<int>(shown.size()),
                  {},
                  "variance.csv"};
    for (const EqualGranularities& group : groups) {
      for (const std::string& source : shown) {
        Panel panel = EmptyPanel(source + ", " + Joined(group, " and ") + ", nearest-even",
                                 "rms(error) / rms(product)");
        for (const Curve* curve : CurvesOf(source, group.front())) {
          panel.series.push_back(CurveSeries(settings, table, *curve, "relative_error", "", ""));
        }
        figure.panels.push_back(std::move(panel));
      }
    }
    return figure;
  }
};

}  // namespace

std::string EqualPanelsNote(const Settings& settings, const Table& variance) {
  std::string text;
  for (const EqualGranularities& group : GroupsOf(settings, variance, Curves(variance))) {
    if (group.size() < 2) continue;
    text +=
        fmt::format(" At these lengths {} are the same; relative-error shows them in one panel.",
                    Joined(group, " and "));
  }
  return text;
}

std::vector<Figure> Figures(const Settings& settings, const Tables& tables) {
  const Table& table = tables.at(std::string(kVarianceTable));
  const std::vector<Curve> curves = Curves(table);
  const FigureBuilder build{settings,
                            table,
                            curves,
                            ToString(ParseScaleLayout(settings.GetList("granularities").front())),
                            Distinct(table, "source"),
                            GroupsOf(settings, table, curves)};
  return {build.Variance(), build.Ratio(), build.Relative()};
}

}  // namespace numsim::experiments::quantization_variance
