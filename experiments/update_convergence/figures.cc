// The figures of `update-convergence`: losses during training, and gaps at the end.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "experiments/claims/frame.h"
#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

// Smaller gaps are drawn at this share.
constexpr double kLeastGap = 1e-4;
constexpr double kGreatestGap = 10;
// Losses above this multiple of the loss at the start are not shown.
constexpr double kShownLoss = 3;

struct Measured {
  const Settings& settings;
  std::vector<Run> runs;
  const Table& final_table;
  std::vector<std::string> problems, optimisers, formats, rates;
  std::vector<std::string> rules;
  std::map<std::string, int> styles;  // of rules
};

std::string FileName(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return name;
}

// Returns the mean loss over the seeds of one configuration, with their range as a band if there
// are several.
Series SeriesOf(const std::vector<const Run*>& seeds) {
  Series series;
  series.x = seeds.front()->step;
  for (size_t i = 0; i < series.x.size(); ++i) {
    double sum = 0, low = seeds.front()->loss[i], high = low;
    for (const Run* run : seeds) {
      sum += run->loss[i];
      low = std::min(low, run->loss[i]);
      high = std::max(high, run->loss[i]);
    }
    series.y.push_back(sum / static_cast<double>(seeds.size()));
    series.low.push_back(low);
    series.high.push_back(high);
  }
  if (seeds.size() == 1) {
    series.low.clear();
    series.high.clear();
  }
  return series;
}

// Returns the runs of each rule, in the order of the table.
std::vector<std::vector<const Run*>> ByRule(const Measured& in,
                                            const std::string& problem,
                                            const std::string& optimiser,
                                            const std::string& format,
                                            const std::string& rate) {
  std::vector<std::vector<const Run*>> rules;
  for (const Run& run : in.runs) {
    if (run.problem != problem || run.optimiser != optimiser || run.format != format) continue;
    if (run.lr != rate) continue;
    const auto same = std::find_if(rules.begin(), rules.end(), [&](const auto& runs) {
      return runs.front()->rule == run.rule;
    });
    if (same == rules.end()) {
      rules.push_back({&run});
    } else {
      same->push_back(&run);
    }
  }
  return rules;
}

Panel LossPanel(const Measured& in,
                const std::string& problem,
                const std::string& optimiser,
                const std::string& format,
                const std::string& rate) {
  Panel panel;
  panel.title = "lr " + rate;
  panel.x = {.label = "step"};
  panel.y = {.label = problem == ToString(ProblemKind::kQuadratic) ? "loss / loss at the start"
                                                                   : "cross-entropy, nats",
             .log10 = true};
  double least = 1e300, start = 0;
  // Draw the baseline last, on top of the other curves.
  for (const std::string& shown : {format, std::string(kBaselineFormat)}) {
    for (const auto& seeds : ByRule(in, problem, optimiser, shown, rate)) {
      Series series = SeriesOf(seeds);
      const bool baseline = shown == kBaselineFormat;
      series.label = baseline ? "fp32" : seeds.front()->rule;
      series.style = baseline ? 6 : in.styles.at(seeds.front()->rule);
      series.dashed = baseline;
      series.markers = !baseline;
      for (const double y : series.y) least = std::min(least, y);
      start = std::max(start, series.y.front());
      panel.series.push_back(std::move(series));
    }
  }
  if (start > 0 && least > 0 && least < start) {
    panel.y.low = least / 1.3;
    panel.y.high = kShownLoss * start;
  }
  return panel;
}

Figure LossFigure(const Measured& in,
                  const std::string& problem,
                  const std::string& optimiser,
                  const std::string& format) {
  Figure figure{FileName("loss-" + problem + "-" + optimiser + "-" + format),
                fmt::format("Loss, {}, {}, weights in {}", problem, optimiser, format),
                2,
                {},
                "losses.csv"};
  for (const std::string& rate : in.rates) {
    figure.panels.push_back(LossPanel(in, problem, optimiser, format, rate));
  }
  return figure;
}

Series WithinLine(double low, double high) {
  Series line;
  line.style = 7;
  line.dashed = true;
  line.markers = false;
  line.x = {low, high};
  line.y = {100 * kWithin, 100 * kWithin};
  return line;
}

// Returns the panel of one format: gap at the end against the learning rate.
Panel GapPanel(const Measured& in,
               const std::string& problem,
               const std::string& optimiser,
               const std::string& format) {
  Panel panel;
  panel.title = format;
  panel.x = {.label = "learning rate", .log10 = true};
  panel.y = {.label = "gap to fp32, % of its progress",
             .log10 = true,
             .low = 100 * kLeastGap / 1.5,
             .high = 100 * kGreatestGap};
  std::map<std::string, Series> by_rule;
  const Table& table = in.final_table;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.Text(r, "problem") != problem || table.Text(r, "optimiser") != optimiser) continue;
    if (table.Text(r, "format") != format || table.Text(r, "within_fp32") == "none") continue;
    Series& series = by_rule[table.Text(r, "rule")];
    series.x.push_back(table.Number(r, "lr"));
    series.y.push_back(100 * table.Number(r, "gap"));
    if (in.settings.seeds == 1) continue;
    series.low.push_back(100 * table.Number(r, "gap_low"));
    series.high.push_back(100 * table.Number(r, "gap_high"));
  }
  double low = 1e300, high = 0;
  for (const std::string& rule : in.rules) {
    if (by_rule.count(rule) == 0) continue;
    Series& series = by_rule.at(rule);
    series.label = rule;
    series.style = in.styles.at(rule);
    low = std::min(low, *std::min_element(series.x.begin(), series.x.end()));
    high = std::max(high, *std::max_element(series.x.begin(), series.x.end()));
    panel.series.push_back(std::move(series));
  }
  if (low < high) panel.series.push_back(WithinLine(low, high));
  return panel;
}

Figure GapFigure(const Measured& in, const std::string& problem, const std::string& optimiser) {
  Figure figure{FileName("gap-" + problem + "-" + optimiser),
                fmt::format("Gap at the end, {}, {} (dotted: 1 %)", problem, optimiser),
                2,
                {},
                "final.csv"};
  for (const std::string& format : in.formats) {
    Panel panel = GapPanel(in, problem, optimiser, format);
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace

std::vector<Figure> Figures(const study::Results& results) {
  const Table& losses = results.tables.at("losses");
  Measured in{results.settings,
              RunsOf(losses),
              results.tables.at("final"),
              Frame(losses).Distinct("problem"),
              Frame(losses).Distinct("optimiser"),
              Frame(losses).Distinct("format"),
              Frame(losses).Distinct("lr"),
              {},
              {}};
  in.formats.erase(std::remove(in.formats.begin(), in.formats.end(), kBaselineFormat),
                   in.formats.end());
  const std::vector<UpdateRule> rules = ParseUpdateRuleList(results.settings.Get("rules"));
  for (size_t k = 0; k < rules.size(); ++k) {
    in.rules.push_back(ToString(rules[k]));
    in.styles[in.rules.back()] = static_cast<int>(k);
  }
  std::vector<Figure> figures;
  for (const std::string& problem : in.problems) {
    for (const std::string& optimiser : in.optimisers) {
      Figure gap = GapFigure(in, problem, optimiser);
      if (!gap.panels.empty()) figures.push_back(std::move(gap));
      for (const std::string& format : in.formats) {
        figures.push_back(LossFigure(in, problem, optimiser, format));
      }
    }
  }
  return figures;
}

}  // namespace numsim::experiments::update_convergence
