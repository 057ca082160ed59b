// The figure of relative errors of `quantization-variance`.
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/study/lines.h"

namespace numsim::experiments::quantization_variance {
namespace {

// Granularities with the same errors, in the order of the settings: a block that is as long as the
// vectors, for example, is the whole row.
using EqualGranularities = std::vector<std::string>;

std::string Joined(const EqualGranularities& group, const char* separator) {
  return fmt::format("{}", fmt::join(group, separator));
}

// Returns the nearest-even rows of the sweep.
Frame ShownRows(const study::Results& results) {
  return results.Of("variance").Where("sweep", "yes").Where("rounding", "rne");
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

// Returns a panel with a line per format.
Panel PanelOf(const Frame& rows, std::string title) {
  Panel panel;
  panel.title = std::move(title);
  panel.x = {.label = "inner dimension k", .log2 = true};
  panel.y = {.label = "rms(error) / rms(product)", .log10 = true};
  for (const Frame& curve : rows.By({"format"})) {
    Series series = Line(curve, "k", "relative_error");
    series.markers = true;
    study::AddSeries(std::move(series), curve.Text("format"), panel);
  }
  return panel;
}

}  // namespace

// It shows the first and the last source, by granularity.
Figure RelativeFigure(const study::Results& results) {
  const Frame rows = ShownRows(results);
  std::vector<std::string> sources = rows.Distinct("source");
  if (sources.size() > 2) sources.erase(sources.begin() + 1, sources.end() - 1);
  Figure figure{"relative-error",
                "Error relative to the product",
                static_cast<int>(sources.size()),
                {},
                "variance.csv"};
  figure.same_y = true;
  for (const EqualGranularities& group : GroupsOf(results.settings, rows)) {
    const Frame of_group = rows.Where("granularity", group.front());
    for (const std::string& source : sources) {
      figure.panels.push_back(PanelOf(of_group.Where("source", source),
                                      source + ", " + Joined(group, " and ") + ", nearest-even"));
    }
  }
  return figure;
}

std::string EqualPanelsNote(const study::Results& results) {
  std::string text;
  for (const EqualGranularities& group : GroupsOf(results.settings, ShownRows(results))) {
    if (group.size() < 2) continue;
    text +=
        fmt::format(" At these lengths {} are the same; relative-error shows them in one panel.",
                    Joined(group, " and "));
  }
  return text;
}

}  // namespace numsim::experiments::quantization_variance
