// Figures of `linear-speed`, after Figures 6, 7 and 10 of [SwitchBack].
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {
namespace {

Series SeriesOf(Curve curve, std::string label, int style) {
  Series series;
  series.label = std::move(label);
  series.style = style;
  series.x = std::move(curve.dim);
  series.y = std::move(curve.value);
  return series;
}

// Returns a horizontal line for comparison over the range of the panel; empty if the panel is.
Series Level(double value, std::string label, const Panel& panel) {
  Curve curve;
  for (const Series& series : panel.series) {
    for (const double dim : series.x) curve.dim.push_back(dim);
  }
  std::sort(curve.dim.begin(), curve.dim.end());
  curve.value.assign(curve.dim.size(), value);
  Series level = SeriesOf(std::move(curve), std::move(label), 7);
  level.dashed = true;
  level.markers = false;
  return level;
}

Panel EmptyPanel(std::string title, std::string y_label, bool log) {
  Panel panel;
  panel.title = std::move(title);
  panel.x = {.label = "dim", .log2 = true};
  panel.y = {.label = std::move(y_label), .log10 = log};
  return panel;
}

// Returns the curve without values that a logarithmic axis cannot show (`other` may be 0 or less).
Curve PositivePart(const Curve& curve) {
  Curve positive;
  for (size_t i = 0; i < curve.dim.size(); ++i) {
    if (!(curve.value[i] > 0)) continue;
    positive.dim.push_back(curve.dim[i]);
    positive.value.push_back(curve.value[i]);
  }
  return positive;
}

// Returns the time of one operation against dim, in milliseconds.
Series OperationSeries(const Frame& operations,
                       const LayerKey& key,
                       const std::string& tokens,
                       std::string_view operation,
                       int style) {
  Curve curve = PositivePart(OperationCurve(operations, key, tokens, operation));
  for (double& seconds : curve.value) seconds *= 1e3;
  return SeriesOf(std::move(curve), fmt::format("{}: {}", key.kind, operation), style);
}

// Gives both panels a common range of y.
void ShareRange(Panel& a, Panel& b) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Panel* panel : {&a, &b}) {
    for (const Series& series : panel->series) {
      for (const double y : series.y) {
        if (y > 0) low = std::min(low, y);
        high = std::max(high, y);
      }
    }
  }
  if (!(low <= high)) return;
  constexpr double kRoom = 1.5;  // leaves room for markers
  for (Panel* panel : {&a, &b}) {
    panel->y.low = low / kRoom;
    panel->y.high = high * kRoom;
  }
}

// Returns the panels of the operations of `key`. The GEMMs of its standard layer are shown too.
std::vector<Panel> OperationPanels(const Frame& operations,
                                   const LayerKey& key,
                                   const std::string& tokens,
                                   const std::string& suffix) {
  Panel products = EmptyPanel("GEMMs" + suffix, "time, ms", true);
  Panel others = EmptyPanel("Other operations" + suffix, "time, ms", true);
  int style = 0;
  const auto add = [&](Panel& panel, std::string_view operation) {
    Series series = OperationSeries(operations, key, tokens, operation, style);
    if (series.x.empty()) return;
    panel.series.push_back(std::move(series));
    if (&panel == &products && key.Standard() != key) {
      series = OperationSeries(operations, key.Standard(), tokens, operation, style);
      series.dashed = true;
      panel.series.push_back(std::move(series));
    }
    ++style;
  };
  for (const Part part : kParts) {
    for (size_t i = 0; i < kSteps; ++i) {
      const LinearOp step = static_cast<LinearOp>(i);
      if (PartOf(step) != part) continue;
      add(part == Part::kProduct ? products : others, numsim::ToString(step));
    }
  }
  add(others, ToString(Part::kOther));
  ShareRange(products, others);
  return {std::move(products), std::move(others)};
}

// Returns the figure of operations, with one row of panels per key.
Figure OperationsFigure(const Settings& settings,
                        const Frame& operations,
                        const std::vector<LayerKey>& keys) {
  const std::string tokens = FigureTokens(settings);
  Figure figure;
  figure.name = "linear-speed-operations";
  figure.title = fmt::format(
      "Operations of a linear layer ({}{}, {} tokens), mean of dim to 4 dim "
      "and 4 dim to dim",
      keys.front().kind,
      keys.size() == 1 ? " " + keys.front().format : "",
      tokens);
  for (const LayerKey& key : keys) {
    const std::string suffix = keys.size() == 1 ? "" : ", " + key.format;
    for (Panel& panel : OperationPanels(operations, key, tokens, suffix)) {
      figure.panels.push_back(std::move(panel));
    }
  }
  figure.columns = 2;
  figure.source_csv = "operations.csv";
  return figure;
}

// The quantity that a figure of whole layers shows, in percent.
struct Quantity {
  std::string name, title, label;
  std::vector<std::string> columns;  // whose values are added
  double factor;
  double level;
  std::string level_label;
};

Curve QuantityCurve(const Frame& layers,
                    const LayerKey& key,
                    const std::string& tokens,
                    const Quantity& quantity) {
  Curve sum;
  for (const std::string& column : quantity.columns) {
    Curve curve = CurveOf(layers, key, tokens, column);
    for (size_t i = 0; i < curve.value.size(); ++i) {
      curve.value[i] *= quantity.factor;
      if (!sum.value.empty()) curve.value[i] += sum.value[i];
    }
    sum = std::move(curve);
  }
  return sum;
}

// Returns a panel of the layers that are compared with `standard`.
Panel KindsPanel(const Frame& layers,
                 const LayerKey& standard,
                 const std::string& tokens,
                 const Quantity& quantity) {
  std::vector<LayerKey> keys;
  for (const LayerKey& key : LayerKeys(layers)) {
    if (key.Standard() == standard && key != standard) keys.push_back(key);
  }
  const bool library = standard.product == "library";
  Panel panel = EmptyPanel(fmt::format("{} tokens; threads: {} ({}); {} GEMMs by {}",
                                       tokens,
                                       standard.threads,
                                       standard.backend,
                                       standard.high_precision,
                                       library ? standard.library : "mode " + standard.product),
                           quantity.label,
                           false);
  for (size_t i = 0; i < keys.size(); ++i) {
    Curve curve = QuantityCurve(layers, keys[i], tokens, quantity);
    if (curve.dim.empty()) continue;  // not timed with this number of tokens
    panel.series.push_back(SeriesOf(std::move(curve), Label(keys[i], keys), static_cast<int>(i)));
  }
  panel.series.push_back(Level(quantity.level, quantity.level_label, panel));
  return panel;
}

// Returns a panel of one layer by number of tokens, in styles that KindsPanel does not use.
Panel TokensPanel(const Settings& settings,
                  const Frame& layers,
                  const LayerKey& key,
                  const Quantity& quantity) {
  Panel panel = EmptyPanel(fmt::format("{} {}", key.kind, key.format), quantity.label, false);
  int style = static_cast<int>(settings.GetList("kinds").size()) - 1;
  for (const std::string& tokens : TokenTexts(settings)) {
    panel.series.push_back(
        SeriesOf(QuantityCurve(layers, key, tokens, quantity), tokens + " tokens", style++));
  }
  panel.series.push_back(Level(quantity.level, quantity.level_label, panel));
  return panel;
}

// Returns the subject and the layers that differ from it only in the format of quantised operands.
std::vector<LayerKey> SubjectInEachFormat(const Frame& layers) {
  std::vector<LayerKey> keys;
  const LayerKey subject = Subject(layers);
  for (const LayerKey& key : LayerKeys(layers)) {
    LayerKey same = key;
    same.format = subject.format;
    if (same == subject) keys.push_back(key);
  }
  return keys;
}

// Returns the figure of every kind that is compared with the subject's standard, with one panel per
// number of tokens.
Figure KindsFigure(const Settings& settings, const Frame& layers, const Quantity& quantity) {
  Figure figure;
  figure.name = quantity.name + "-by-tokens";
  figure.title = quantity.title;
  figure.source_csv = "layers.csv";
  for (const std::string& tokens : TokenTexts(settings)) {
    figure.panels.push_back(KindsPanel(layers, Subject(layers).Standard(), tokens, quantity));
  }
  figure.columns = 2;
  return figure;
}

Figure LayersFigure(const Settings& settings, const Frame& layers, const Quantity& quantity) {
  Figure figure;
  figure.name = quantity.name;
  figure.title = quantity.title;
  figure.source_csv = "layers.csv";
  std::vector<LayerKey> standards;
  const std::vector<LayerKey> keys = LayerKeys(layers);
  for (const LayerKey& key : keys) {
    const bool is_new =
        std::find(standards.begin(), standards.end(), key.Standard()) == standards.end();
    if (!is_new) continue;
    standards.push_back(key.Standard());
    figure.panels.push_back(KindsPanel(layers, key.Standard(), FigureTokens(settings), quantity));
  }
  if (TokenTexts(settings).size() > 1) {
    for (const LayerKey& key : SubjectInEachFormat(layers)) {
      figure.panels.push_back(TokensPanel(settings, layers, key, quantity));
    }
  }
  figure.columns = std::min<int>(static_cast<int>(figure.panels.size()), 2);
  return figure;
}

const Quantity kSaved = {.name = "linear-speed-saved",
                         .title = "Time that each kind of linear layer saves over standard",
                         .label = "time saved over standard, %",
                         .columns = {"saved_percent"},
                         .factor = 1,
                         .level = 0,
                         .level_label = ""};
const Quantity kQuantize = {.name = "linear-speed-quantize-share",
                            .title = "Share of quantisation in the time of a linear layer",
                            .label = "quantising and converting, %",
                            .columns = {"quantize_share", "convert_share"},
                            .factor = 100,
                            .level = 25,
                            .level_label = "25 %: the maximum in the paper"};

}  // namespace

study::Named<std::function<Figure(const study::Results&)>> Figures() {
  const auto of_layers = [](const Quantity& quantity) {
    return [&quantity](const study::Results& results) {
      return LayersFigure(results.settings, results.Of("layers"), quantity);
    };
  };
  return {{"operations",
           [](const study::Results& results) {
             return OperationsFigure(results.settings,
                                     results.Of("operations"),
                                     SubjectInEachFormat(results.Of("layers")));
           }},
          {"saved", of_layers(kSaved)},
          {"quantize-share", of_layers(kQuantize)},
          {"saved-by-tokens", [](const study::Results& results) {
             if (TokenTexts(results.settings).size() < 2) return Figure();
             return KindsFigure(results.settings, results.Of("layers"), kSaved);
           }}};
}

}  // namespace numsim::experiments::linear_speed
