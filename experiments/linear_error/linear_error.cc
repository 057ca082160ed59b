// Definition of the experiment `linear-error`: options, tables, trials.
#include "experiments/linear_error/linear_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "experiments/linear_error/operands.h"
#include "experiments/runner/settings.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments {
namespace linear_error {
namespace {

constexpr int64_t kLongest = 1 << 20;
constexpr int64_t kWidest = 1 << 14;

constexpr std::string_view kDescription =
    "A linear layer computes three GEMMs: Y = X W^T over the inputs, dX = G W over the outputs\n"
    "and dW = G^T X over the tokens b. Each layer kind computes them on several sorts of\n"
    "operands, and each GEMM is compared with the same GEMM of the unquantised float32 operands,\n"
    "accumulated in float64. There are two sweeps: over tokens b at one width n = m, and over\n"
    "widths at one b.\n"
    "Claims under test: quantisation noise grows with the inner dimension (Eq. 12); if that is\n"
    "long, noise drowns the signal (D.2); this is why the weight gradient breaks in 8 bits and\n"
    "SwitchBack, which computes it in high precision, does not (D.3). Measured are the noise\n"
    "variance, the error relative to the result, and the relative error of the median row and\n"
    "column, in which a few large rows or columns cannot hide the error of the others.\n"
    "Operands: normal; student-t3 (X and G heavy-tailed); outlier-columns (large features of X);\n"
    "outlier-tokens (large rows of X and of G); coherent (X and G have a common part that adds up\n"
    "over tokens in dW). With --input, real tensors are measured beside operands of the same\n"
    "shape that are drawn (--operands tensors: alone). `numsim train --save-tensors` saves X, W\n"
    "and G of a training's linear layers.";

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
  // The GEMMs, plus a share for the work per matrix element.
  const auto b = static_cast<double>(shape.tokens), n = static_cast<double>(shape.in),
             m = static_cast<double>(shape.out);
  trial.cost = b * n * m + 100 * (b * n + b * m + n * m);
  return trial;
}

struct Swept {
  std::string_view sweep;
  LinearShape shape;
};

// Returns the shapes of both sweeps. Tensors of --input fix the width, also of the operands that are
// drawn beside them: there is no width sweep.
std::vector<Swept> Shapes(const Settings& settings) {
  const auto width = static_cast<size_t>(settings.GetInteger("width", 1, kWidest));
  const auto fixed = static_cast<size_t>(settings.GetInteger("tokens-fixed", 1, kLongest));
  const std::vector<int64_t> dims = settings.GetIntegers("dims", 1, kWidest);
  CheckDistinct("dims", settings.GetList("dims"));
  std::vector<Swept> shapes;
  if (!HasTensors(settings)) {
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
        "--input: has {} rows, fewer than --tokens-low {}", file.rows, settings.Get("tokens-low"));
  }
  return shapes;
}

std::vector<Trial> Trials(const Settings& settings) {
  CheckOperandOptions(settings);
  Treatments(settings);
  Thresholds(settings);
  const std::vector<std::string> names = OperandNames(settings);
  CheckDistinct("operands", settings.GetList("operands"));
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
       "how X and G are drawn, separated by commas: normal, student-t3, outlier-columns, "
       "outlier-tokens, coherent; or tensors, those of --input, which are always included"},
      {"kinds",
       "standard,switchback,llm-int8,tensor-wise",
       "standard,switchback,switchback-m,switchback-q,llm-int8,tensor-wise,row-wise-gw-hp,"
       "te-hybrid,block,mx",
       "layer kinds, separated by commas"},
      {"formats",
       "int8,e4m3fn",
       "int8,e4m3fn,e5m2",
       "formats of quantised operands, separated by commas; each kind uses those it supports"},
      {"tokens-low", "256", "256", "smallest b (tokens) of the sweep over b, a power of two"},
      {"tokens-high", "16384", "131072", "largest b of that sweep, a power of two up to 1048576"},
      {"width", "128", "256", "n = m of the sweep over b: 1 to 16384"},
      {"dims",
       "128,256,512,1024",
       "128,256,512,1280,2560,5120",
       "n = m of the sweep over widths, separated by commas: 1 to 16384"},
      {"tokens-fixed", "2048", "2048", "tokens b of the sweep over widths: 1 to 1048576"},
      {"high-precision",
       "bf16",
       "bf16",
       "format of operands that are not quantised: fp32, bf16, fp16"},
      {"accumulate",
       "",
       "",
       "accumulation mode of quantised GEMMs; empty: exact for int8, else fp32"},
      {"gradient-rounding", "rne", "rne", "rounding mode of quantised gradients: rne, sr, ..."},
      {"sr-bits", "16", "16", "random bits of stochastic rounding, 1 to 32"},
      {"outlier-columns",
       "0.004",
       "0.004",
       "for outlier-columns: share of the columns of X that are outliers, at least one"},
      {"outlier-column-size",
       "60",
       "60",
       "for outlier-columns: factor by which they are larger, 1 or more"},
      {"outlier-tokens",
       "0.001",
       "0.001",
       "for outlier-tokens: share of the rows of X, and of G, that are outliers"},
      {"outlier-token-size",
       "60",
       "60",
       "for outlier-tokens: factor by which they are larger, 1 or more"},
      {"coherence",
       "0.1",
       "0.1",
       "for coherent: share of the variance of X, and of G, in the common part, 0 to 1"},
      {"threshold",
       "5,2,10",
       "5,2,10",
       "relative errors in percent, separated by commas, for which crossings.csv gives the number "
       "of tokens; a GEMM above the first one breaks"},
      {"input",
       "",
       "",
       ".npy and .safetensors files, separated by commas, that hold operands; {seed} in a path stands "
       "for the seed"},
      {"tensor-x", "", "", "name of the tensor in --input to use as X: one row per token"},
      {"tensor-w", "", "", "name of the tensor in --input to use as W: one row per output"},
      {"tensor-g", "", "", "name of the tensor in --input to use as G: one row per token"},
  };
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
  // The kinds and formats of at least one treatment, and the first error of every other.
  std::set<std::string> used;
  std::map<std::string, Error> refused;
  const auto try_format = [&](const LinearOptions& options, const std::string& format) {
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
  experiment.title = "error of a linear layer's three GEMMs, by kind, format and operands";
  experiment.reproduces = "Appendix D of [SwitchBack]: Eq. 12, D.2 and D.3";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.presets = {{"quick", 5, 30}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = {
      {"",
       "CLIP ViT-Huge has b = 65536 and widths of 1280 and 5120",
       "D.3",
       "Only --preset paper includes them; operands are drawn or read, not those of CLIP."}};
  // Rows of --input may be fewer than --tokens-high.
  experiment.scale = [](const Settings& settings, const Tables& tables) {
    double most = 0;
    for (const double tokens : Frame(tables.at(std::string(kErrorsTable))).Numbers("tokens")) {
      most = std::max(most, tokens);
    }
    return fmt::format(
        "b up to {}, {}",
        most,
        HasTensors(settings) ? "shapes of --input" : "widths " + settings.Get("dims"));
  };
  experiment.unused_options = [](const Settings& settings) {
    return HasTensors(settings) ? std::vector<std::string>{"dims", "tokens-fixed"}
                                : std::vector<std::string>();
  };
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
