// Definition of the experiment `linear-error`: what study.toml does not say, layers and trials.
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

// Rows of --input may be fewer than --tokens-high.
std::string ShapesText(const study::Results& results) {
  double most = 0;
  for (const double tokens : results.Of("errors").Numbers("tokens")) most = std::max(most, tokens);
  const Settings& settings = results.settings;
  return fmt::format("b up to {}, {}",
                     most,
                     HasTensors(settings) ? "shapes of --input" : "widths " + settings.Get("dims"));
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
  study::Functions functions{
      .tables = {{"growth", GrowthRows}, {"crossings", CrossingRows}, {"products", ProductRows}},
      .several_figures = {{"weight-gradient", WeightGradientFigure},
                          {"products-and-noise", ProductFigures}},
      .scales = {{"shapes", ShapesText}},
      .measurements = {{"gemms", {Trials, Measure}}}};
  AddClaimFunctions(functions);
  study::Study study =
      study::ReadStudy(study::StudyText("linear_error"), "linear_error/study.toml", functions);
  study.unused_options = [](const Settings& settings) {
    return HasTensors(settings) ? std::vector<std::string>{"dims", "tokens-fixed"}
                                : std::vector<std::string>();
  };
  study.notes = Notes;
  return study::MakeExperiment(std::move(study));
}

}  // namespace numsim::experiments
