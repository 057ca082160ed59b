// The figures of `loss-spikes`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/claims/frame.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::loss_spikes {
namespace {

Frame ArmRow(const Tables& tables, const Arm& arm) {
  return Frame(tables.at("arms")).Where([&](const Frame& row) { return ArmOfRow(row) == arm; });
}

// The quantity of a panel: a mean over seeds with its interval.
struct Shown {
  const char* column;
  const char* label;
  double factor;
};
constexpr Shown kLossShown{"valid_loss", "final loss, nats", 1};
constexpr Shown kAccuracyShown{"accuracy", "zero-shot accuracy, %", 100};
constexpr Shown kRmsShown{"max_rms", "largest RMS, input layer", 1};
constexpr Shown kSpikesShown{"loss_spikes", "loss spikes per run", 1};

// Adds the mean of an arm at x, with its interval if there are several seeds.
void AddPoint(const Frame& arm, const Shown& shown, double x, Series& series) {
  if (arm.Empty()) return;
  const std::string column = shown.column;
  series.x.push_back(x);
  series.y.push_back(shown.factor * arm.Number(column));
  if (arm.Number("seeds") < 2) return;
  series.low.push_back(shown.factor * arm.Number(column + "_low"));
  series.high.push_back(shown.factor * arm.Number(column + "_high"));
}

Panel PanelOf(std::string title, const Shown& shown, Axis x) {
  Panel panel;
  panel.title = std::move(title);
  panel.x = std::move(x);
  panel.y.label = shown.label;
  return panel;
}

// ---- beta2

Panel Beta2Panel(const Settings& settings, const Tables& tables, const Shown& shown, bool bound) {
  Panel panel = PanelOf("", shown, {.label = "1 - β_{2}", .log10 = true});
  std::vector<std::string> values = settings.GetList("beta2");
  std::sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
    return std::stod(a) > std::stod(b);
  });
  int style = 0;
  for (const char* const optimizer : {kAdamW, kStable}) {
    Series series;
    series.label = style == 0 ? "AdamW" : "StableAdamW";
    series.style = style++;
    for (const std::string& beta2 : values) {
      const Arm arm = With(Centre(settings, beta2), kOptimizer, optimizer);
      AddPoint(ArmRow(tables, arm), shown, 1 - std::stod(beta2), series);
    }
    if (!series.x.empty()) panel.series.push_back(std::move(series));
  }
  if (!bound) return panel;
  Series limit;
  limit.label = "largest RMS possible";
  limit.style = 7;
  limit.dashed = true;
  limit.markers = false;
  for (const std::string& beta2 : values) {
    limit.x.push_back(1 - std::stod(beta2));
    limit.y.push_back(1 / std::sqrt(1 - std::stod(beta2)));
  }
  panel.series.push_back(std::move(limit));
  panel.y.log10 = true;
  return panel;
}

Figure Beta2Figure(const Settings& settings, const Tables& tables) {
  Figure figure{"spikes-beta2",
                fmt::format("{} {}, lr {}: mean and 95 % interval over seeds",
                            settings.GetList("models").front(),
                            settings.Get("size"),
                            settings.Get("lr")),
                2,
                {},
                "arms.csv"};
  figure.panels = {Beta2Panel(settings, tables, kLossShown, false),
                   Beta2Panel(settings, tables, kRmsShown, true),
                   Beta2Panel(settings, tables, kSpikesShown, false),
                   Beta2Panel(settings, tables, kAccuracyShown, false)};
  return figure;
}

// ---- accelerations

struct FigureAxis {
  const char* option;
  Place place;
  const char* label;
};
constexpr FigureAxis kFigureAxes[] = {{"lrs", kLr, "peak learning rate"},
                                      {"batches", kBatch, "batch"},
                                      {"sizes", kSize, "layers x width^{2}"},
                                      {"warmups", kWarmup, "warm-up, steps"}};

Panel AxisPanel(const Settings& settings,
                const Tables& tables,
                const FigureAxis& axis,
                const Shown& shown) {
  Panel panel = PanelOf("", shown, {.label = axis.label, .log10 = true});
  const std::vector<std::string> values = ValuesAlong(settings, axis.place, axis.option);
  int style = 0;
  for (const std::string& beta2 : settings.GetList("axis-beta2")) {
    Series series;
    series.label = "AdamW, β2 = " + beta2;
    series.style = style++;
    for (const std::string& value : values) {
      const Arm arm = With(Centre(settings, beta2), axis.place, value);
      AddPoint(ArmRow(tables, arm), shown, PlaceOf(axis.place, value), series);
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

Figure AxesFigure(const Settings& settings, const Tables& tables) {
  Figure figure{
      "spikes-axes", "Accelerations: mean and 95 % interval over seeds", 2, {}, "arms.csv"};
  for (const FigureAxis& axis : kFigureAxes) {
    if (settings.Get(axis.option).empty()) continue;
    figure.panels.push_back(AxisPanel(settings, tables, axis, kRmsShown));
    figure.panels.push_back(AxisPanel(settings, tables, axis, kSpikesShown));
  }
  return figure;
}

// ---- optimisers

Figure OptimizerFigure(const Settings& settings, const Tables& tables) {
  const std::string beta2 = RemedyBeta2(settings);
  Figure figure{.name = "spikes-optimizers",
                .title = fmt::format("β2 = {}: mean and 95 % interval", beta2),
                .source_csv = "runs.csv"};
  if (beta2.empty() || settings.Get("optimizers").empty()) return figure;
  const Arm centre = Centre(settings, beta2);
  const Frame runs = Frame(tables.at("runs")).Where([&](const Frame& row) {
    return With(ArmOfRow(row), kOptimizer, kAdamW) == centre;
  });
  const OutcomeTable losses = OutcomesOf(runs, {"optimizer"}, Loss);
  Panel panel;
  panel.x.label = "final loss minus that of AdamW, nats";
  Series bars;
  for (const std::string& optimizer : settings.GetList("optimizers")) {
    if (runs.Where("optimizer", optimizer).Empty()) continue;
    const Estimate gap = GapOf(losses, optimizer, kAdamW);
    bars.x.push_back(gap.value);
    bars.low.push_back(gap.low);
    bars.high.push_back(gap.high);
    bars.y.push_back(static_cast<double>(panel.rows.size()));
    panel.rows.push_back(optimizer);
  }
  if (panel.rows.empty()) return figure;
  panel.series.push_back(std::move(bars));
  figure.panels.push_back(std::move(panel));
  return figure;
}

// ---- one training, step by step

// Returns a line of a column of a trace.
Series TraceLine(const Frame& trace, const char* column, std::string label, int style) {
  Series line;
  line.label = std::move(label);
  line.style = style;
  line.markers = false;
  trace.ForEach([&](const Frame& row) {
    line.x.push_back(row.Number("step"));
    line.y.push_back(row.Number(column));
  });
  return line;
}

Figure TraceFigure(const Settings& settings, const Tables& tables) {
  Figure figure{"spikes-trace", "One seed, step by step", 2, {}, "trace.csv"};
  const Frame trace = tables.at("trace");
  int style = 0;
  Panel loss, rms;
  loss.x.label = rms.x.label = "step";
  loss.y.label = "training loss, nats";
  rms.y = {.label = "RMS, input layer", .log10 = true};
  for (const std::string& beta2 : settings.GetList("axis-beta2")) {
    const Arm arm = Centre(settings, beta2);
    const Frame rows = trace.Where([&](const Frame& row) { return ArmOfRow(row) == arm; });
    if (rows.Empty()) continue;
    loss.series.push_back(TraceLine(rows, "loss", "AdamW, β2 = " + beta2, style));
    rms.series.push_back(TraceLine(rows, "rms", "AdamW, β2 = " + beta2, style));
    ++style;
  }
  if (loss.series.empty()) return figure;
  Series threshold;
  threshold.label = "RMS spike: " + settings.Get("spike-rms");
  threshold.style = 7;
  threshold.dashed = true;
  threshold.markers = false;
  threshold.x = {0, loss.series.front().x.back()};
  threshold.y = {std::stod(settings.Get("spike-rms")), std::stod(settings.Get("spike-rms"))};
  rms.series.push_back(std::move(threshold));
  figure.panels = {std::move(loss), std::move(rms)};
  return figure;
}

// ---- prediction

constexpr size_t kMostPredictors = 16;

Figure PredictionFigure(const Tables& tables, const std::string& scope, const char* title) {
  Figure figure{
      .name = "spikes-prediction-" + scope, .title = title, .source_csv = "prediction.csv"};
  const Frame rows = Frame(tables.at("prediction")).Where("scope", scope);
  if (rows.Empty() || rows.Number("spikes") < 1) return figure;
  std::vector<std::pair<double, size_t>> order;  // minus recall, row
  for (size_t i = 0; i < rows.Size(); ++i) order.emplace_back(-rows.Number(i, "recall"), i);
  std::sort(order.begin(), order.end());
  if (order.size() > kMostPredictors) order.resize(kMostPredictors);
  Panel panel;
  panel.x = {.label = "share", .low = 0, .high = 1};
  Series recall, chance, precision;
  recall.label = "recall: loss spikes that follow an RMS spike";
  chance.label = "recall by chance";
  precision.label = "precision: RMS spikes that a loss spike follows";
  recall.style = 0;
  chance.style = 7;
  precision.style = 1;
  for (const auto& [ignored, i] : order) {
    const auto y = static_cast<double>(panel.rows.size());
    panel.rows.push_back(rows.Text(i, "predictor"));
    const double values[] = {rows.Number(i, "recall"),
                             rows.Number(i, "expected") / rows.Number(i, "spikes"),
                             rows.Number(i, "precision")};
    size_t next = 0;
    for (Series* const series : {&recall, &chance, &precision}) {
      series->x.push_back(values[next++]);
      series->y.push_back(y);
    }
  }
  panel.series = {std::move(recall), std::move(chance), std::move(precision)};
  figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace

study::Named<std::function<Figure(const Results&)>> Figures() {
  const auto of = [](Figure (*draw)(const Settings&, const Tables&)) {
    return [=](const Results& results) { return draw(results.settings, results.tables); };
  };
  const auto prediction = [](const char* scope, const char* title) {
    return [=](const Results& results) { return PredictionFigure(results.tables, scope, title); };
  };
  return {
      {"beta2", of(Beta2Figure)},
      {"axes", of(AxesFigure)},
      {"trace", of(TraceFigure)},
      {"optimizers", of(OptimizerFigure)},
      {"prediction-steady",
       prediction(kSteadyScope, "Prediction of loss spikes, data without a change")},
      {"prediction-new", prediction(kNewScope, "Prediction of loss spikes, new data")},
      {"prediction-student",
       prediction(kStudentScope, "Prediction of loss spikes of a student that sees all its data")}};
}

}  // namespace numsim::experiments::loss_spikes
