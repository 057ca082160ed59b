// The figures of `linear-error`.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "experiments/linear_error/linear_error.h"

namespace numsim::experiments::linear_error {
namespace {

// The layer kinds in the figure of dW.
constexpr std::string_view kShownKinds[] = {"switchback", "llm-int8", "tensor-wise"};

constexpr int kThresholdStyle = 7;

struct ShownProduct {
  LinearGemm product;
  std::string_view label;
};
constexpr ShownProduct kShownProducts[] = {
    {LinearGemm::kForward, "Y (k = n)"},
    {LinearGemm::kInputGradient, "dX (k = m)"},
    {LinearGemm::kWeightGradient, "dW (k = b)"},
};

struct Measured {
  const Settings& settings;
  Frame errors;
  std::vector<std::string> formats;  // formats of quantised operands, in the order of the table
};

Series SeriesOf(const Measured& in, const Frame& curve, std::string_view column, double unit) {
  Series series = ValuesOf(curve, column);
  if (in.settings.seeds == 1) {
    series.low.clear();
    series.high.clear();
  }
  for (std::vector<double>* values : {&series.y, &series.low, &series.high}) {
    for (double& y : *values) y *= unit;
  }
  return series;
}

Panel EmptyPanel(const std::string& title, const char* x, const char* y) {
  Panel panel;
  panel.title = title;
  panel.x = {.label = x, .log2 = true};
  panel.y = {.label = y, .log10 = true};
  return panel;
}

struct Range {
  double low = 1e300, high = 0;
  void Add(const std::vector<double>& values) {
    for (const double value : values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

// Gives the panels from `first` on a common range of y, so that they can be compared.
void ShareRange(Figure& figure, size_t first) {
  Range range;
  for (size_t p = first; p < figure.panels.size(); ++p) {
    for (const Series& series : figure.panels[p].series) {
      for (const auto* values : {&series.y, &series.low, &series.high}) range.Add(*values);
    }
  }
  if (range.high <= 0) return;
  for (size_t p = first; p < figure.panels.size(); ++p) {
    figure.panels[p].y.low = range.low / 1.5;
    figure.panels[p].y.high = range.high * 1.5;
  }
}

// Draws the error above which a GEMM breaks as a line in the panels from `first` on.
void AddThreshold(const Measured& in, Figure& figure, size_t first) {
  const double percent = 100 * Thresholds(in.settings).front();
  for (size_t p = first; p < figure.panels.size(); ++p) {
    Panel& panel = figure.panels[p];
    Range range;
    for (const Series& series : panel.series) range.Add(series.x);
    Series line;
    line.label = fmt::format("{:g} %", percent);
    line.style = kThresholdStyle;
    line.dashed = true;
    line.markers = false;
    line.x = {range.low, range.high};
    line.y = {percent, percent};
    if (range.low < range.high) panel.series.push_back(std::move(line));
  }
}

// Returns the figure of dW's relative error against b, with one panel per sort of operands.
Figure WeightGradient(const Measured& in) {
  Figure figure{
      "weight-gradient-error", "Relative error of dW against tokens b", 2, {}, "errors.csv"};
  for (const std::string& operands : in.errors.Distinct("operands")) {
    Panel panel = EmptyPanel(operands, "tokens b", "relative error of dW, %");
    for (size_t k = 0; k < std::size(kShownKinds); ++k) {
      for (size_t f = 0; f < in.formats.size(); ++f) {
        // SwitchBack does not quantise dW: its error is the same for every format.
        const bool plain = kShownKinds[k] == "switchback";
        if (plain && f > 0) continue;
        const Frame curve = CurveOf(
            in.errors, operands, kShownKinds[k], in.formats[f], kWeightGradient, kTokenSweep);
        if (curve.Empty()) continue;
        Series series = SeriesOf(in, curve, "relative_error", 100);
        series.label =
            std::string(kShownKinds[k]) +
            (plain ? " (" + in.settings.Get("high-precision") + ")" : " " + in.formats[f]);
        series.style = static_cast<int>(plain ? 0 : 1 + 2 * f + (k - 1));
        series.dashed = f > 0;
        panel.series.push_back(std::move(series));
      }
    }
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  ShareRange(figure, 0);
  AddThreshold(in, figure, 0);
  return figure;
}

void AddProducts(const Measured& in,
                 const std::string& operands,
                 std::string_view kind,
                 const std::string& format,
                 std::string_view column,
                 double unit,
                 Panel& panel) {
  const bool tensor_wise = kind == "tensor-wise";
  for (const ShownProduct& shown : kShownProducts) {
    const std::string_view product = ToString(shown.product);
    const Frame curve = CurveOf(
        in.errors, operands, kind, format, product, InnerSweep(in.errors, operands, product));
    if (curve.Empty()) continue;
    Series series = SeriesOf(in, curve, column, unit);
    series.label = std::string(shown.label) + ", " + std::string(kind);
    series.style = static_cast<int>(shown.product) + 1;
    series.dashed = tensor_wise;
    panel.series.push_back(std::move(series));
  }
}

std::string FileName(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return name;
}

// Returns a panel of one column for one sort of operands; it has no series if nothing was measured.
Panel ProductsPanel(const Measured& in,
                    const std::string& operands,
                    const std::string& format,
                    std::string_view column) {
  const bool relative = column == "relative_error";
  const bool widths = InnerSweep(in.errors, operands, kForward) == kWidthSweep;
  Panel panel = EmptyPanel(operands + (relative ? ": relative error" : ": noise variance"),
                           widths ? "inner dimension k" : "tokens b",
                           relative ? "relative error, %" : "noise variance");
  for (const char* const kind : {"llm-int8", "tensor-wise"}) {
    AddProducts(in, operands, kind, format, column, relative ? 100 : 1, panel);
  }
  return panel;
}

Figure NamedFigure(const std::string& name, const std::string& title, const std::string& format) {
  return {
      FileName(name + "-" + format), title + " of Y, dX and dW in " + format, 2, {}, "errors.csv"};
}

// Returns the figure that shows which GEMM breaks under which measure and operands: the noise
// variance, which Appendix D reasons about, for the first sort of operands, and the relative error
// for all sorts.
Figure ProductsOf(const Measured& in, const std::string& format) {
  Figure figure = NamedFigure("products", "Noise variance and relative error", format);
  const std::vector<std::string> names = in.errors.Distinct("operands");
  Panel noise = ProductsPanel(in, names.front(), format, "error_variance");
  if (!noise.series.empty()) figure.panels.push_back(std::move(noise));
  for (const std::string& operands : names) {
    Panel panel = ProductsPanel(in, operands, format, "relative_error");
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  ShareRange(figure, 1);
  AddThreshold(in, figure, 1);
  return figure;
}

// Returns the figure of the noise variance for all sorts of operands.
Figure NoiseOf(const Measured& in, const std::string& format) {
  Figure figure = NamedFigure("noise", "Noise variance", format);
  for (const std::string& operands : in.errors.Distinct("operands")) {
    Panel panel = ProductsPanel(in, operands, format, "error_variance");
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  ShareRange(figure, 0);
  return figure;
}

Measured MeasuredIn(const study::Results& results) {
  const Frame errors = results.Of("errors");
  const Frame quantized =
      errors.Where([](const Frame& row) { return row.Text("kind") != "standard"; });
  return {results.settings, errors, quantized.Distinct("format")};
}

}  // namespace

std::vector<Figure> WeightGradientFigure(const study::Results& results) {
  return {WeightGradient(MeasuredIn(results))};
}

std::vector<Figure> ProductFigures(const study::Results& results) {
  const Measured in = MeasuredIn(results);
  std::vector<Figure> figures;
  for (const std::string& format : in.formats) {
    figures.push_back(ProductsOf(in, format));
    figures.push_back(NoiseOf(in, format));
  }
  return figures;
}

}  // namespace numsim::experiments::linear_error
