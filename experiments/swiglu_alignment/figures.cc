// The figures of `swiglu-alignment`: Figures 2, 7 and 9 of [Fishman], the axes, and the single neuron.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/claims/frame.h"
#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

Series LabelledLine(const Frame& frame, const char* column, std::string label, int style) {
  Series series = Line(frame, "step", column);
  series.label = std::move(label);
  series.style = style;
  return series;
}

// Figure 2 (b): cosines and norms of the outlier channel over the training.
Figure AlignmentFigure(const Results& results) {
  Figure figure{"swiglu-alignment", "Outlier channel through training", 2, {}, "points.csv"};
  const Frame points = OfCentre(results, "points");
  if (points.Empty()) return figure;
  const Axis steps = AxisOf(points, "step", "step");
  Panel cosines{"cosine of w1 and w2", steps, {.label = "|cos|", .low = 0, .high = 1}};
  cosines.series = {LabelledLine(points, "abs_cos", "outlier channel", 0),
                    LabelledLine(points, "abs_cos_50", "median of all channels", 1),
                    LabelledLine(points, "abs_cos_95", "95 % of all channels", 2)};
  Panel norms{"norms", steps, AxisOf(points, "w2", "norm")};
  norms.y.low = norms.y.high = 0;
  norms.series = {LabelledLine(points, "w1", "|w1|, linear branch", 3),
                  LabelledLine(points, "w2", "|w2|, gate", 4)};
  Panel largest{"activations", steps, {.label = "largest magnitude", .log10 = true}};
  largest.series = {LabelledLine(points, "largest", "of all MLPs", 5)};
  Panel kurtosis{"kurtosis over channels", steps, {.label = "kurtosis", .log10 = true}};
  kurtosis.series = {LabelledLine(points, "kurtosis", "block of the outlier channel", 6)};
  figure.panels = {cosines, norms, largest, kurtosis};
  return figure;
}

// Figures thin the markers of a series that has more than this, with the gaps between them.
constexpr size_t kCloudPart = 16;

// Returns points without a line between them: a line is interrupted where a point is not finite.
std::vector<Series> Cloud(const Frame& elements) {
  std::vector<Series> parts;
  size_t count = 0;
  elements.ForEach([&](const Frame& row) {
    if (count++ % kCloudPart == 0) parts.emplace_back();
    Series& part = parts.back();
    part.x.insert(part.x.end(), {row.Number("w1"), kNaN});
    part.y.insert(part.y.end(), {row.Number("w2"), kNaN});
  });
  return parts;
}

// Figures 2 (c) and 7: the elements of w1 and w2, early and late.
Figure ElementsFigure(const Results& results) {
  Figure figure{"swiglu-elements",
                "Elements of w1 and w2 in the outlier channel (one seed)",
                2,
                {},
                "elements.csv"};
  const Frame elements = OfCentre(results, "elements");
  for (const Frame& at : elements.By({"step"})) {
    Panel panel{fmt::format("after {} steps", at.Text("step")),
                {.label = "element of w1"},
                {.label = "element of w2"}};
    panel.series = Cloud(at);
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

// Figure 9: the histogram of |w2.x|.
Figure GatesFigure(const Results& results) {
  Figure figure{.name = "swiglu-gates",
                .title = "|w2.x| over tokens in the outlier channel, at the end",
                .source_csv = "gates.csv"};
  const Frame gates = OfCentre(results, "gates");
  if (gates.Empty()) return figure;
  Panel panel{"", {.label = "ln |w_2·x|"}, {.label = "share of the tokens", .log10 = true}};
  for (const Frame& seed : gates.By({"seed"})) {
    Series series;
    series.x = seed.Numbers("log_gate");
    series.y = seed.Numbers("share");
    if (panel.series.empty()) series.label = "one line per seed";
    series.markers = false;
    panel.series.push_back(std::move(series));
  }
  figure.panels = {std::move(panel)};
  return figure;
}

struct ShownAxis {
  const char *name, *title;
};
constexpr ShownAxis kShownAxes[] = {
    {"weight_decay", "weight decay"}, {"lr", "learning rate"}, {"steps", "steps"}};

// Returns |cos| of the outlier channel through the trainings that differ from the centre along one axis.
Panel AxisPanel(const Results& results, const Frame& points, const ShownAxis& axis) {
  Panel panel{axis.title,
              AxisOf(points, "step", "step"),
              {.label = "|cos| of the outlier channel", .low = 0, .high = 1}};
  for (const std::string& value : points.Distinct(axis.name)) {
    const Frame arm = results.OfArm(points, results.ArmOf({{axis.name, value}}));
    if (arm.Empty()) continue;
    const int style = static_cast<int>(panel.series.size());
    panel.series.push_back(
        LabelledLine(arm, "abs_cos", fmt::format("{} {}", axis.title, value), style));
  }
  return panel;
}

Figure AxesFigure(const Results& results) {
  Figure figure{
      "swiglu-axes", "Alignment of the outlier channel along the axes", 2, {}, "points.csv"};
  const Frame points = results.Of("points");
  for (const ShownAxis& axis : kShownAxes) {
    Panel panel = AxisPanel(results, points, axis);
    if (panel.series.size() > 1) figure.panels.push_back(std::move(panel));
  }
  return figure;
}

constexpr double kDegree = 0.017453292519943295;

// The single neuron: the angle of its weights follows that of the teacher's factors.
Figure NeuronFigure(const Results& results) {
  Figure figure{.name = "swiglu-neuron",
                .title = "A single neuron at a stationary point with a saturated gate",
                .source_csv = "stationary.csv"};
  const Frame points = results.Of("stationary")
                           .Where("design", "corners")
                           .Where("gate", ToString(Gate::kSaturated))
                           .Where("mu", 0.1)
                           .Where([](const Frame& row) { return row.Text("teacher") != "square"; });
  if (points.Empty()) return figure;
  std::vector<std::pair<double, double>> sorted;
  points.ForEach(
      [&](const Frame& row) { sorted.emplace_back(row.Number("degrees"), row.Number("cos")); });
  std::sort(sorted.begin(), sorted.end());
  Series measured, teacher;
  measured.label = "w1 and w2";
  teacher.label = "the teacher's factors";
  teacher.dashed = true;
  teacher.markers = false;
  teacher.style = 1;
  for (const auto& [degrees, cos] : sorted) {
    measured.x.push_back(degrees);
    measured.y.push_back(cos);
    teacher.x.push_back(degrees);
    teacher.y.push_back(std::cos(degrees * kDegree));
  }
  figure.panels = {{"",
                    {.label = "angle between the teacher's factors, degrees"},
                    {.label = "cosine", .low = -1, .high = 1},
                    {measured, teacher}}};
  return figure;
}

}  // namespace

Frame OfCentre(const Results& results, const char* table) {
  return results.OfArm(results.Of(table), results.ArmOf({}));
}

study::Named<std::function<Figure(const Results&)>> Figures() {
  // The title of a figure of all seeds says so if there is one.
  const auto of_seeds = [](Figure (*draw)(const Results&)) {
    return [=](const Results& results) {
      Figure figure = draw(results);
      if (results.settings.seeds == 1) figure.title += " (one seed)";
      return figure;
    };
  };
  return {{"neuron", NeuronFigure},
          {"alignment", of_seeds(AlignmentFigure)},
          {"elements", ElementsFigure},
          {"gates", of_seeds(GatesFigure)},
          {"axes", of_seeds(AxesFigure)}};
}

}  // namespace numsim::experiments::swiglu_alignment
