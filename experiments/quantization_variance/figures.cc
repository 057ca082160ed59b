// The figures of `quantization-variance`.
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/quantization_variance/quantization_variance.h"

namespace numsim::experiments::quantization_variance {
namespace {

// Granularities with the same errors, in the order of the settings: a block that is as long as the
// vectors, for example, is the whole row.
using EqualGranularities = std::vector<std::string>;

std::string Joined(const EqualGranularities& group, const char* separator) {
  return fmt::format("{}", fmt::join(group, separator));
}

// Returns the nearest-even rows of the sweep.
Frame ShownRows(const Table& variance) {
  return Frame(variance).Where("sweep", "yes").Where("rounding", "rne");
}

// Returns the texts of all errors and of what they belong to.
std::vector<std::string> ErrorsOf(const Frame& rows, const std::string& granularity) {
  std::vector<std::string> errors;
  rows.Where("granularity", granularity).ForEach([&](const Frame& row) {
    for (const char* const column :
         {"source", "format", "k", "seed", "var_error", "relative_error"}) {
      errors.push_back(row.Text(column));
    }
  });
  return errors;
}

std::vector<EqualGranularities> GroupsOf(const Settings& settings, const Frame& rows) {
  std::vector<EqualGranularities> groups;
  if (rows.Empty()) return groups;
  for (const std::string& text : settings.GetList("granularities")) {
    const std::string granularity = ToString(ParseScaleLayout(text));
    const auto errors = ErrorsOf(rows, granularity);
    const auto same = [&](const EqualGranularities& group) {
      return ErrorsOf(rows, group.front()) == errors;
    };
    auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) found = groups.insert(groups.end(), EqualGranularities{});
    found->push_back(granularity);
  }
  return groups;
}

enum class Band : uint8_t { kNone, kOverSeeds, kOfIntervals };

// Returns the mean of a column over seeds against k. Its band is the range over seeds, or runs from
// the smallest COLUMN_low to the largest COLUMN_high.
Series CurveSeries(const Frame& curve, int style, const std::string& column, Band band) {
  Series series = Line(curve, "k", column);
  series.label = curve.Text("format");
  series.style = style;
  series.markers = true;
  if (band == Band::kOverSeeds) return series;
  series.low.clear();
  series.high.clear();
  if (band == Band::kNone) return series;
  const Series low = Line(curve, "k", column + "_low"), high = Line(curve, "k", column + "_high");
  if (low.x != series.x || high.x != series.x) return series;  // an interval is not known
  series.low = low.low.empty() ? low.y : low.low;
  series.high = high.high.empty() ? high.y : high.high;
  return series;
}

// Returns a panel of one column for one source and granularity, with a line per format.
Panel PanelOf(const Frame& rows, std::string title, std::string y, const char* column, Band band) {
  Panel panel;
  panel.title = std::move(title);
  panel.x = {.label = "inner dimension k", .log2 = true};
  panel.y = {.label = std::move(y), .log10 = true};
  for (const Frame& curve : rows.By({"format"})) {
    panel.series.push_back(CurveSeries(curve, static_cast<int>(panel.series.size()), column, band));
  }
  return panel;
}

// Adds Eq. 12 to each series, in its colour. Only the first gets a legend entry, which stands for
// all colours.
void AddPredictions(const Frame& rows, Panel& panel) {
  std::vector<Series> all;
  for (const Frame& curve : rows.By({"format"})) {
    const Series& measured = panel.series.at(all.size() / 2);
    Series predicted = CurveSeries(curve, measured.style, "prediction", Band::kNone);
    predicted.label = all.empty() ? "Eq. 12" : "";
    predicted.dashed = true;
    predicted.markers = false;
    all.push_back(measured);
    all.push_back(std::move(predicted));
  }
  panel.series = std::move(all);
}

// Returns the figures of the variance and of its ratio to Eq. 12, with one panel per source.
std::vector<Figure> VarianceFigures(const Settings& settings, const Frame& rows) {
  const std::string granularity = FirstGranularity(settings);
  Figure variance{
      "error-variance", "Variance of the quantised inner product's error", 2, {}, "variance.csv"};
  Figure ratio{"eq12-ratio", "Measured variance over Eq. 12", 2, {}, "variance.csv"};
  variance.same_y = ratio.same_y = true;
  for (const Frame& source : rows.Where("granularity", granularity).By({"source"})) {
    const std::string title = source.Text("source") + ", " + granularity + "-wise, nearest-even";
    variance.panels.push_back(
        PanelOf(source, title, "Var(error)", "var_error", Band::kOfIntervals));
    AddPredictions(source, variance.panels.back());
    ratio.panels.push_back(
        PanelOf(source, title, "Var(error) / Eq. 12", "ratio", Band::kOfIntervals));
  }
  return {variance, ratio};
}

// Returns the figure of relative errors: of the first and the last source, by granularity.
Figure RelativeFigure(const Settings& settings, const Frame& rows) {
  std::vector<std::string> sources = rows.Distinct("source");
  if (sources.size() > 2) sources.erase(sources.begin() + 1, sources.end() - 1);
  Figure figure{"relative-error",
                "Error relative to the product",
                static_cast<int>(sources.size()),
                {},
                "variance.csv"};
  figure.same_y = true;
  for (const EqualGranularities& group : GroupsOf(settings, rows)) {
    const Frame of_group = rows.Where("granularity", group.front());
    for (const std::string& source : sources) {
      figure.panels.push_back(PanelOf(of_group.Where("source", source),
                                      source + ", " + Joined(group, " and ") + ", nearest-even",
                                      "rms(error) / rms(product)",
                                      "relative_error",
                                      Band::kOverSeeds));
    }
  }
  return figure;
}

}  // namespace

std::string EqualPanelsNote(const Settings& settings, const Table& variance) {
  std::string text;
  for (const EqualGranularities& group : GroupsOf(settings, ShownRows(variance))) {
    if (group.size() < 2) continue;
    text +=
        fmt::format(" At these lengths {} are the same; relative-error shows them in one panel.",
                    Joined(group, " and "));
  }
  return text;
}

std::vector<Figure> Figures(const Settings& settings, const Tables& tables) {
  const Frame rows = ShownRows(tables.at(std::string(kVarianceTable)));
  if (rows.Empty()) return {};
  std::vector<Figure> figures = VarianceFigures(settings, rows);
  figures.push_back(RelativeFigure(settings, rows));
  return figures;
}

}  // namespace numsim::experiments::quantization_variance
