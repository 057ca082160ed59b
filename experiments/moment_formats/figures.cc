// The figures of `moment-formats`: losses by the format of v, their gap to fp32, and the share of v
// that is flushed to zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "numsim/moments/moment_format.h"

namespace numsim::experiments::moment_formats {
namespace {

// Smaller shares are drawn at this value.
constexpr double kLeastShare = 1e-6;

std::vector<MomentPair> PairsIn(const Frame& frame) {
  std::vector<MomentPair> pairs;
  for (const Frame& pair : frame.By({"m", "v"})) pairs.push_back(PairOf(pair));
  return pairs;
}

// Returns the rows of a pair. A seed that diverged is part of its curve as long as its values are
// finite.
Frame RowsOf(const Frame& frame, const MomentPair& pair) {
  return frame.Where("m", pair.m).Where("v", pair.v);
}

// Colours of the formats of m, the same in every panel.
using Styles = std::map<std::string, int>;

Styles StylesOf(const std::vector<MomentPair>& pairs) {
  Styles styles;
  for (const MomentPair& pair : pairs) {
    styles.emplace(FormatPart(pair.m), static_cast<int>(styles.size()));
  }
  return styles;
}

// Returns the scaling and rounding of a moment with defaults resolved: "tensor", "block:128+sr".
// Empty for a storage that is never scaled.
std::string ScalingOf(const std::string& storage) {
  const MomentFormat format = ParseMomentFormat(storage);
  if (format.IsExact() || format.scaling == MomentScaling::kDynamic) return "";
  std::string text(ToString(format.scaling));
  if (format.HasBlocks()) text += ":" + std::to_string(format.block);
  return text + storage.substr(std::min(storage.find('+'), storage.size()));
}

// The pairs of one panel: they share the storage of v and the scaling of m. A pair whose m is never
// scaled is in the first group of its v.
struct Group {
  std::string v, m_scaling;
  std::vector<MomentPair> pairs;
  std::string title;
};

// Sets the titles, which name the scaling of m only if several groups have the same v.
void AddTitles(std::vector<Group>& groups) {
  for (Group& group : groups) {
    const auto same = [&](const Group& other) { return other.v == group.v; };
    const bool told = std::count_if(groups.begin(), groups.end(), same) == 1;
    group.title = "v in " + group.v + (told ? "" : ", scaling of m: " + group.m_scaling);
  }
}

std::vector<Group> GroupsOf(const std::vector<MomentPair>& pairs) {
  std::vector<Group> groups;
  for (const MomentPair& pair : pairs) {
    if (pair == kBaseline) continue;
    const std::string scaling = ScalingOf(pair.m);
    const auto same = [&](const Group& group) {
      return group.v == pair.v &&
             (scaling.empty() || group.m_scaling.empty() || group.m_scaling == scaling);
    };
    auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) found = groups.insert(groups.end(), Group{pair.v, "", {}, ""});
    if (found->m_scaling.empty()) found->m_scaling = scaling;
    found->pairs.push_back(pair);
  }
  // If there is only the baseline, it still gets a panel.
  if (groups.empty()) groups.push_back({kBaseline.v, "", {}, ""});
  AddTitles(groups);
  return groups;
}

Panel LossPanel(
    const Frame& curves, const Group& group, const Styles& styles, double low, double high) {
  Panel panel;
  panel.title = group.title;
  panel.x = AxisOf(curves, "step", "step");
  panel.y = {.label = "training loss, nats per token", .low = low, .high = high};
  for (const MomentPair& pair : group.pairs) {
    Series series = Line(RowsOf(curves, pair), "step", "loss");
    series.style = styles.at(FormatPart(pair.m));
    series.label = "m in " + FormatPart(pair.m);
    panel.series.push_back(std::move(series));
  }
  Series baseline = Line(BaselineRows(curves), "step", "loss");
  baseline.style = styles.at(kBaseline.m);
  baseline.dashed = true;
  baseline.label = "m and v in fp32";
  panel.series.push_back(std::move(baseline));
  return panel;
}

Figure LossFigure(const Frame& curves) {
  const std::vector<MomentPair> pairs = PairsIn(curves);
  const Styles styles = StylesOf(pairs);
  Figure figure{
      "moment-loss", "Training loss by the storage of Adam's moments", 2, {}, "curves.csv"};
  const std::vector<double> losses = BaselineRows(curves).Numbers("loss");
  if (losses.empty()) return figure;
  const double low = *std::min_element(losses.begin(), losses.end());
  const double high = *std::max_element(losses.begin(), losses.end());
  const double room = 0.05 * (high - low);
  for (const Group& group : GroupsOf(pairs)) {
    figure.panels.push_back(LossPanel(curves, group, styles, low - room, high + room));
  }
  return figure;
}

// The number of lines that can be told apart in a panel.
constexpr size_t kMostLines = 8;

// Returns shared panels for the pairs that are alone in their group.
std::vector<Group> SinglePairs(const std::vector<Group>& groups) {
  std::vector<Group> mixed;
  for (const Group& group : groups) {
    if (group.pairs.size() != 1) continue;
    if (mixed.empty() || mixed.back().pairs.size() == kMostLines) {
      mixed.push_back({"", "", {}, "single pairs, m / v"});
    }
    mixed.back().pairs.push_back(group.pairs.front());
  }
  return mixed;
}

// Returns the loss that fp32 gained from the first record to the last.
double GainOf(const Frame& baseline) {
  const Series line = Line(baseline, "step", "loss");
  return line.y.empty() ? 0 : line.y.front() - line.y.back();
}

// The values that a panel of gaps should show.
struct GapRange {
  double low = 0, high = 0;
  bool above = false;  // all curves that reach the last step end above the cut
};

// Returns the range of the curves that reach the last step, with their bands, cut at `most` and
// -most. A panel whose curves all end above shows the lowest.
GapRange RangeOf(const Panel& panel, double most) {
  GapRange range;
  double lowest = std::numeric_limits<double>::infinity();
  for (const Series& series : panel.series) {
    if (series.x.empty() || series.x.back() != panel.x.high) continue;
    lowest = std::min(lowest, series.y.back());
    for (const std::vector<double>* const values : {&series.y, &series.low, &series.high}) {
      for (const double value : *values) {
        range.low = std::min(range.low, std::max(value, -most));
        range.high = std::max(range.high, std::min(value, most));
      }
    }
  }
  range.above = std::isfinite(lowest) && lowest > most;
  if (range.above) range.high = 1.2 * lowest;
  return range;
}

// Sets the range of y of the panels. They share it, except those whose curves are all above it.
void SetRanges(std::vector<Panel>& panels, double gain) {
  const double most = 0.15 * gain;
  GapRange all{.low = -0.005 * gain, .high = 0.005 * gain};  // not narrower than this
  for (const Panel& panel : panels) {
    const GapRange range = RangeOf(panel, most);
    if (range.above) continue;
    all.low = std::min(all.low, range.low);
    all.high = std::max(all.high, range.high);
  }
  for (Panel& panel : panels) {
    const GapRange own = RangeOf(panel, most);
    const GapRange& range = own.above ? own : all;
    const double room = own.above ? 0 : 0.04 * (range.high - range.low);
    panel.y.low = range.low - room;
    panel.y.high = range.high + room;
  }
}

Figure GapFigure(const char* name, const Frame& curves, const std::vector<Group>& groups) {
  Figure figure{name, "Training loss minus that of fp32 moments", 2, {}, "curves.csv"};
  const Frame baseline = BaselineRows(curves);
  if (!(GainOf(baseline) > 0)) return figure;
  std::map<std::string, int> styles;
  for (const Group& group : groups) {
    Panel panel;
    panel.title = group.title;
    panel.x = AxisOf(curves, "step", "step");
    panel.y.label = "gap, nats per token";
    for (const MomentPair& pair : group.pairs) {
      Series series = GapLine(RowsOf(curves, pair), baseline, "step", "loss");
      series.label = group.v.empty() ? pair.Text() : "m in " + FormatPart(pair.m);
      series.style = styles.emplace(series.label, static_cast<int>(styles.size())).first->second;
      panel.series.push_back(std::move(series));
    }
    figure.panels.push_back(std::move(panel));
  }
  SetRanges(figure.panels, GainOf(baseline));
  return figure;
}

// Returns the figure of the groups of several pairs.
Figure GapsOfGroups(const Frame& curves) {
  std::vector<Group> groups = GroupsOf(PairsIn(curves));
  std::erase_if(groups, [](const Group& group) { return group.pairs.size() < 2; });
  return GapFigure("moment-gap", curves, groups);
}

// Returns the figure of the single pairs, which have colours of their own.
Figure GapsOfPairs(const Frame& curves) {
  return GapFigure("moment-gap-pairs", curves, SinglePairs(GroupsOf(PairsIn(curves))));
}

// Returns the figure of flushed second moments; it shows each v with its first m in the table.
Figure FlushedFigure(const Frame& flushed) {
  Figure figure{.name = "moment-flushed",
                .title = "Second moments that are stored as zero",
                .source_csv = "flushed.csv"};
  Panel panel;
  panel.x = AxisOf(flushed, "step", "step");
  panel.y = {.label = "share of v's elements stored as zero",
             .log10 = true,
             .low = kLeastShare,
             .high = 1};
  std::vector<std::string> shown;
  for (const MomentPair& pair : PairsIn(flushed)) {
    const bool is_shown = std::find(shown.begin(), shown.end(), pair.v) != shown.end();
    if (pair.v == kBaseline.v || is_shown) continue;
    shown.push_back(pair.v);
    Series series = Line(RowsOf(flushed, pair), "step", "v_flushed");
    series.style = static_cast<int>(panel.series.size());
    series.label = "v in " + pair.v;
    panel.series.push_back(std::move(series));
  }
  if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  return figure;
}

// Returns a function that draws the rows of a table at the epsilon, update and rate that are shown, if
// there are any: trainings that were made elsewhere may have no curves.
std::function<Figure(const Results&)> Shown(const char* table, Figure (*draw)(const Frame&)) {
  return [=](const Results& results) {
    if (!results.tables.contains(table)) return Figure();
    const Frame all = results.Of("final");
    const std::string epsilon = ShownEpsilon(all), update = ShownUpdate(all);
    const std::string lr = BestRates(BaselineRows(all.Where("epsilon", epsilon))).Text("lr");
    const Frame rows = OfRegime(results.Of(table), epsilon, update).Where("lr", lr);
    if (rows.Empty()) return Figure();
    Figure figure = draw(rows);
    figure.title +=
        fmt::format(" (epsilon {}, updates from {} moments, lr {})", epsilon, update, lr);
    return figure;
  };
}

}  // namespace

study::Named<std::function<Figure(const Results&)>> Figures() {
  return {{"moment-loss", Shown("curves", LossFigure)},
          {"moment-gap", Shown("curves", GapsOfGroups)},
          {"moment-gap-pairs", Shown("curves", GapsOfPairs)},
          {"moment-flushed", Shown("flushed", FlushedFigure)},
          {"moment-epsilon", EpsilonFigure},
          {"moment-phases", PhaseFigure}};
}

}  // namespace numsim::experiments::moment_formats
