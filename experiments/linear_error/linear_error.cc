// What the experiment `linear-error` is: options, tables, points.
#include "experiments/linear_error/linear_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "experiments/core/settings.h"
#include "experiments/linear_error/operands.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments {
namespace linear_error {
namespace {

constexpr int64_t kLongest = 1 << 20;
constexpr int64_t kWidest = 1 << 14;

constexpr std::string_view kDescription =
    "A linear layer is three products: Y = X W^T over the inputs, dX = G W over the outputs and\n"
    "dW = G^T X over the tokens b. Each layer kind computes them on operands of a named sort, and\n"
    "each product is compared with the same product of the unquantised float32 operands, added up\n"
    "in float64. Two sweeps: tokens b at one width n = m, and widths at one b.\n"
    "Claims under test: quantisation noise grows with the inner dimension (Eq. 12); for a long "
    "one\n"
    "it drowns the signal (D.2); this is why the weight gradient breaks in 8 bits and SwitchBack,\n"
    "which leaves it in high precision, does not (D.3). Measured besides the noise variance are\n"
    "the error relative to the product, and the same of the median row and column, which a few\n"
    "large rows or columns cannot hide. Operands: normal; student-t3 (X and G heavy-tailed);\n"
    "outlier-columns (features of X), outlier-tokens (rows of X and of G), coherent (X and G have\n"
    "a common part, so that dW adds up over tokens); or tensors of --input.";

bool IsPowerOfTwo(int64_t n) { return (n & (n - 1)) == 0; }

std::vector<size_t> TokenCounts(const Settings& settings) {
  const int64_t low = settings.GetInteger("tokens-low", 1, kLongest);
  const int64_t high = settings.GetInteger("tokens-high", 1, kLongest);
  if (!IsPowerOfTwo(low) || !IsPowerOfTwo(high) || low > high) {
    throw Error::Format(
        "--tokens-low {} and --tokens-high {} must be powers of two, low <= high", low, high);
  }
  std::vector<size_t> counts;
  for (int64_t b = low; b <= high; b *= 2) counts.push_back(static_cast<size_t>(b));
  return counts;
}

Trial MakeTrial(const std::string& operands,
                std::string_view sweep,
                const LinearShape& shape,
                uint64_t seed) {
  Trial trial;
  trial.label = fmt::format(
      "{} {} b={} n={} m={} seed={}", operands, sweep, shape.tokens, shape.in, shape.out, seed);
  trial.seed = seed;
  trial.parameters = {{"operands", operands},
                      {"sweep", std::string(sweep)},
                      {"tokens", std::to_string(shape.tokens)},
                      {"in", std::to_string(shape.in)},
                      {"out", std::to_string(shape.out)}};
  // Products, and a share for what is done to every element of a matrix.
  const auto b = static_cast<double>(shape.tokens), n = static_cast<double>(shape.in),
             m = static_cast<double>(shape.out);
  trial.cost = b * n * m + 100 * (b * n + b * m + n * m);
  return trial;
}

struct Swept {
  std::string_view sweep;
  LinearShape shape;
};

// The shapes of both sweeps; those of files have a width of their own and one sweep.
std::vector<Swept> Shapes(const Settings& settings) {
  const auto width = static_cast<size_t>(settings.GetInteger("width", 1, kWidest));
  const auto fixed = static_cast<size_t>(settings.GetInteger("tokens-fixed", 1, kLongest));
  const std::vector<int64_t> dims = settings.GetIntegers("dims", 1, kWidest);
  CheckDistinct("dims", settings.GetList("dims"));
  std::vector<Swept> shapes;
  if (!FromFiles(settings)) {
    for (const size_t b : TokenCounts(settings)) {
      shapes.push_back({kTokenSweep, {b, width, width}});
    }
    for (const int64_t dim : dims) {
      const auto d = static_cast<size_t>(dim);
      shapes.push_back({kWidthSweep, {fixed, d, d}});
    }
    return shapes;
  }
  const FileShape file = ShapeOfFiles(settings);
  const size_t in = file.in != 0 ? file.in : width, out = file.out != 0 ? file.out : width;
  for (const size_t b : TokenCounts(settings)) {
    if (file.rows == 0 || b <= file.rows) shapes.push_back({kTokenSweep, {b, in, out}});
  }
  if (shapes.empty()) {
    throw Error::Format(
        "--input: {} rows are fewer than --tokens-low {}", file.rows, settings.Get("tokens-low"));
  }
  return shapes;
}

std::vector<Trial> Trials(const Settings& settings) {
  CheckOperandOptions(settings);
  Treatments(settings);
  Thresholds(settings);
  const std::vector<std::string> names = OperandNames(settings);
  if (!FromFiles(settings)) CheckDistinct("operands", names);
  std::vector<Trial> trials;
  for (const std::string& operands : names) {
    for (const Swept& swept : Shapes(settings)) {
      for (int i = 0; i < settings.seeds; ++i) {
        const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
        trials.push_back(MakeTrial(operands, swept.sweep, swept.shape, seed));
      }
    }
  }
  return trials;
}

std::vector<Option> Options() {
  const std::string operands = "normal,student-t3,outlier-columns,outlier-tokens,coherent";
  return {
      {"operands",
       operands,
       operands,
       "what X and G are like, separated by commas: normal, student-t3, outlier-columns, "
       "outlier-tokens, coherent"},
      {"kinds",
       "standard,switchback,llm-int8,tensor-wise",
       "standard,switchback,switchback-m,switchback-q,llm-int8,tensor-wise,row-wise-gw-hp,"
       "te-hybrid,block,mx",
       "layer kinds, separated by commas"},
      {"formats",
       "int8,e4m3fn",
       "int8,e4m3fn,e5m2",
       "formats of quantised operands, separated by commas; each kind takes those it can"},
      {"tokens-low", "256", "256", "fewest tokens b of the sweep over b, a power of two"},
      {"tokens-high", "16384", "131072", "most tokens b, a power of two up to 1048576"},
      {"width", "128", "256", "n = m of the sweep over b: 1 to 16384"},
      {"dims",
       "128,256,512,1024",
       "128,256,512,1280,2560,5120",
       "n = m of the sweep over widths, separated by commas: 1 to 16384"},
      {"tokens-fixed", "2048", "2048", "tokens b of the sweep over widths: 1 to 1048576"},
      {"high-precision", "bf16", "bf16", "operands that are not quantised: fp32, bf16, fp16"},
      {"accumulate",
       "",
       "",
       "rule of accumulation of quantised products; empty: exact for int8, else fp32"},
      {"gradient-rounding", "rne", "rne", "rounding of quantised gradients: rne, sr, ..."},
      {"sr-bits", "16", "16", "random bits of stochastic rounding, 1 to 32"},
      {"outlier-columns", "0.004", "0.004", "outlier-columns: share of X's columns, at least one"},
      {"outlier-column-size", "60", "60", "outlier-columns: factor, 1 or more"},
      {"outlier-tokens", "0.001", "0.001", "outlier-tokens: share of the rows of X, and of G"},
      {"outlier-token-size", "60", "60", "outlier-tokens: factor, 1 or more"},
      {"coherence",
       "0.1",
       "0.1",
       "coherent: share of the variance of X, and of G, in the common part"},
      {"threshold",
       "5,2,10",
       "5,2,10",
       "relative error in percent whose crossing is looked for, separated by commas; a product "
       "above the first breaks"},
      {"input", "", "", ".npy and .safetensors files, separated by commas: tensors as operands"},
      {"tensor-x", "", "", "tensor of --input that is X: its rows are tokens"},
      {"tensor-w", "", "", "tensor of --input that is W: a row for each output"},
      {"tensor-g", "", "", "tensor of --input that is G: its rows are tokens"},
  };
}

TableSpec ErrorsSpec() {
  return {std::string(kErrorsTable),
          false,
          {{"operands", "how X and G are drawn, or the tensors of --input"},
           {"kind", "layer kind"},
           {"format",
            "of quantised operands (e4m3fn of tensor-wise and te-hybrid: gradients in e5m2); for "
            "standard of all operands"},
           {"product", "forward Y, input-gradient dX, weight-gradient dW"},
           {"sweep", "tokens: over b at one width; width: over n = m at one b"},
           {"tokens", "b"},
           {"in", "n"},
           {"out", "m"},
           {"inner", "inner dimension of the product: n, m or b"},
           {"seed", "of operands and of stochastic rounding"},
           {"error_variance", "variance of an element's error about the mean error"},
           {"signal_variance", "variance of an element of the reference about their mean"},
           {"relative_error", "Frobenius norm of the error over that of the reference"},
           {"row_error", "the same of one row, median over rows"},
           {"column_error", "the same of one column, median over columns"},
           {"bias", "mean error of an element"},
           {"gain", "<product, reference> / <reference, reference>; below 1: shrunk"},
           {"sqnr_db", "signal to quantisation noise, dB"},
           {"cosine", "between product and reference"}}};
}

TableSpec GrowthSpec() {
  return {
      std::string(kGrowthTable),
      true,
      {{"operands", "as in errors.csv"},
       {"kind", "as in errors.csv"},
       {"format", "as in errors.csv"},
       {"product", "as in errors.csv"},
       {"sweep", "as in errors.csv"},
       {"points", "lengths times seeds in the fit"},
       {"noise_growth", "d log error_variance / d log length; 1: Eq. 12 for the inner dimension"},
       {"noise_growth_low", "95 % interval"},
       {"noise_growth_high", "95 % interval"},
       {"signal_growth", "d log signal_variance / d log length"},
       {"signal_growth_low", "95 % interval"},
       {"signal_growth_high", "95 % interval"},
       {"relative_growth", "d log relative_error / d log length; 0.5: a signal that stays"},
       {"relative_growth_low", "95 % interval"},
       {"relative_growth_high", "95 % interval"}}};
}

TableSpec CrossingsSpec() {
  return {std::string(kCrossingsTable),
          true,
          {{"operands", "as in errors.csv"},
           {"kind", "as in errors.csv"},
           {"format", "as in errors.csv"},
           {"threshold", "relative error of dW, percent"},
           {"tokens", "least b at which it is exceeded, interpolated; inf: not reached"},
           {"tokens_low", "least over seeds"},
           {"tokens_high", "greatest over seeds; inf: a seed did not reach it"},
           {"status", "in words"}}};
}

TableSpec ProductsSpec() {
  return {std::string(kProductsTable),
          true,
          {{"operands", "as in errors.csv"},
           {"kind", "as in errors.csv"},
           {"format", "as in errors.csv"},
           {"product", "as in errors.csv"},
           {"noise_growth", "as in growth.csv, against the product's own inner dimension"},
           {"relative_growth", "as in growth.csv, against the product's own inner dimension"},
           {"sweep", "the sweep of the inner dimension; tokens where there is no such sweep"},
           {"length", "the longest of that sweep: where the errors are taken"},
           {"relative_error", "geometric mean over seeds"},
           {"relative_error_low", "least over seeds"},
           {"relative_error_high", "greatest over seeds"},
           {"row_error", "geometric mean over seeds"},
           {"column_error", "geometric mean over seeds"},
           {"cosine", "geometric mean over seeds"},
           {"breaks_under",
            "which measures: noise (its variance grows, slope above 0.5), growth (of the relative "
            "error, slope of 0.25 or more), relative, row, column (error above the first "
            "--threshold)"}}};
}

Rounding GradientRounding(const Settings& settings) {
  Rounding rounding;
  rounding.mode = ParseRoundingMode(settings.Get("gradient-rounding"));
  rounding.random_bits = static_cast<int>(settings.GetInteger("sr-bits", 1, 32));
  return rounding;
}

LinearOptions OptionsOf(const Settings& settings, const std::string& kind) {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = settings.Get("high-precision");
  if (kind == "standard") return options;
  options.gradient_rounding = GradientRounding(settings);
  options.accumulate = settings.Get("accumulate");
  return options;
}

std::vector<std::string> FormatNames(const Settings& settings) {
  std::vector<std::string> names;
  for (const Format& format : ParseFormatList(settings.Get("formats"))) {
    names.push_back(format.name);
  }
  CheckDistinct("formats", names);
  return names;
}

}  // namespace

std::vector<Treatment> Treatments(const Settings& settings) {
  const std::vector<std::string> kinds = settings.GetList("kinds");
  CheckDistinct("kinds", kinds);
  const std::vector<std::string> formats = FormatNames(settings);
  GradientRounding(settings);
  std::vector<Treatment> treatments;
  // What is used, and why something was not.
  std::set<std::string> used;
  std::map<std::string, Error> refused;
  const auto try_format = [&](LinearOptions options, const std::string& format) {
    try {
      treatments.push_back({options.kind, format, MakeLinearRecipe(options)});
      used.insert({"kind " + options.kind, "format " + format});
    } catch (const Error& error) {
      refused.emplace("kind " + options.kind, error);
      refused.emplace("format " + format, error);
    }
  };
  for (const std::string& kind : kinds) {
    LinearOptions options = OptionsOf(settings, kind);
    if (kind == "standard") {
      try_format(options, options.high_precision);
      continue;
    }
    for (const std::string& format : formats) {
      options.format = format;
      try_format(options, format);
    }
  }
  for (const auto& [what, error] : refused) {
    if (used.count(what) == 0) throw Error(error);
  }
  return treatments;
}

std::vector<double> Thresholds(const Settings& settings) {
  std::vector<double> shares;
  for (const std::string& text : settings.GetList("threshold")) {
    double percent = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, percent);
    if (read.ec != std::errc() || read.ptr != end || !(percent > 0 && percent <= 1000)) {
      throw Error::Format("--threshold \"{}\": expected percentages above 0, up to 1000", text);
    }
    shares.push_back(percent / 100);
  }
  CheckDistinct("threshold", settings.GetList("threshold"));
  return shares;
}

}  // namespace linear_error

Experiment LinearError() {
  using namespace linear_error;
  Experiment experiment;
  experiment.name = "linear-error";
  experiment.title = "error of a linear layer's three products, by kind, format and operands";
  experiment.reproduces = "SwitchBack (Wortsman et al. 2023), Appendix D: Eq. 12, D.2 and D.3";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.tables = {ErrorsSpec(), GrowthSpec(), CrossingsSpec(), ProductsSpec()};
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.summarise = Summarise;
  return experiment;
}

}  // namespace numsim::experiments
