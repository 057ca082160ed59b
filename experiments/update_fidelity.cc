// What the experiment `update-fidelity` is: options, columns, points.
#include "experiments/update_fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "experiments/settings.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/format_table.h"
#include "numsim/optim/weight_update.h"

namespace numsim::experiments {
namespace update_fidelity {
namespace {

constexpr Keyword<Keys> kKeys[] = {{"same", Keys::kSame}, {"independent", Keys::kIndependent}};

constexpr std::string_view kDescription =
    "Parameters drawn from a standard normal distribution are rounded to a format, and a float32\n"
    "update of the same size is added at learning rates from far too small for the format up to "
    "1.\n"
    "Measured is what becomes of the step: its norm, its mean per parameter, its direction.\n"
    "Keys `same`: the update is the draw that the parameters were rounded from, as in the source;\n"
    "`independent`: another draw. Rounding is to nearest even and does not saturate. Methods: "
    "naive\n"
    "(float32 sum, rounded), stochastic (exact sum, rounded stochastically), binary-search (as\n"
    "printed in the source, with its target, iterations and tolerance); the header\n"
    "numsim/optim/weight_update.h states every rounding.\n"
    "Claims under test: the binary search works below a learning rate of 1e-9 without a larger "
    "error\n"
    "a parameter; it takes a step of the norm that the learning rate asks for; naive addition "
    "zeros\n"
    "out rapidly; stochastic rounding works for longer, then its norm goes astray; 0.75 + 0.03\n"
    "rounds to 0.75 in E4M3.";

std::vector<std::string> FormatNames(const Settings& settings) {
  std::vector<std::string> names;
  for (const Format& format : ParseFormatList(settings.Get("formats"))) {
    if (!format.spec.IsSigned()) {
      throw Error::Format("--formats: {} has no sign, parameters need one", format.name);
    }
    names.push_back(format.name);
  }
  CheckDistinct("formats", names);
  return names;
}

void CheckOptions(const Settings& settings) {
  settings.GetInteger("size", 1, 1 << 14);
  settings.GetDouble("rtol", 0, 1);
  settings.GetInteger("iterations", 1, 1000);
  settings.GetInteger("sr-bits", 1, 32);
  CheckDistinct("keys", settings.GetList("keys"));
  CheckDistinct("methods", settings.GetList("methods"));
  for (const std::string& keys : settings.GetList("keys")) ParseKeys(keys);
  for (const std::string& method : settings.GetList("methods")) ParseUpdateRule(method);
  LearningRates(settings);
}

// Measured costs of one learning rate, relative to naive addition.
double Cost(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::kNaive:
      return 1;
    case UpdateRule::kStochastic:
      return 7;
    case UpdateRule::kBinarySearch:
      return 5;
  }
  return 1;
}

// A point measures every learning rate of one set of arrays, which cost more to draw than to use
// once.
std::vector<Point> Points(const Settings& settings) {
  CheckOptions(settings);
  std::vector<Point> points;
  for (const std::string& format : FormatNames(settings)) {
    for (const std::string& keys : settings.GetList("keys")) {
      for (const std::string& method : settings.GetList("methods")) {
        for (int i = 0; i < settings.seeds; ++i) {
          const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
          points.push_back({.label = fmt::format("{} {} {} seed={}", format, keys, method, seed),
                            .seed = seed,
                            .parameters = {{"format", format}, {"keys", keys}, {"method", method}},
                            .cost = Cost(ParseUpdateRule(method))});
        }
      }
    }
  }
  return points;
}

std::vector<Option> Options() {
  return {
      {.name = "formats",
       .quick = "e4m3fn,fp16,bf16",
       .paper = "e4m3fn,fp16,bf16",
       .help = "formats of the parameters, separated by commas; custom ones too"},
      {.name = "size",
       .quick = "1024",
       .paper = "1024",
       .help = "rows, and columns, of the parameter matrix: 1 to 16384"},
      {.name = "per-decade",
       .quick = "2",
       .paper = "6",
       .help = "learning rates in a factor of 10: 1 to 100"},
      {.name = "lr-low",
       .quick = "1e-10",
       .paper = "1e-10",
       .help = "least learning rate, 1e-30 to 1e6"},
      {.name = "lr-high",
       .quick = "1",
       .paper = "1",
       .help = "greatest learning rate, --lr-low to 1e6"},
      {.name = "methods",
       .quick = "naive,stochastic,binary-search",
       .paper = "naive,stochastic,binary-search",
       .help = "update rules, separated by commas"},
      {.name = "keys",
       .quick = "same,independent",
       .paper = "same,independent",
       .help = "update drawn with the key of the parameters, or independently"},
      {.name = "rtol",
       .quick = "1e-2",
       .paper = "1e-2",
       .help = "relative tolerance of the binary search, 0 to 1"},
      {.name = "iterations",
       .quick = "32",
       .paper = "32",
       .help = "most candidates of the binary search, 1 to 1000"},
      {.name = "sr-bits",
       .quick = "32",
       .paper = "32",
       .help = "random bits of stochastic rounding, 1 to 32 (variant A)"},
  };
}

std::vector<Column> Columns() {
  return {
      {"format", "of the parameters"},
      {"keys", "same: update = parameters before rounding; independent: another draw"},
      {"method", "update rule"},
      {"lr", "learning rate"},
      {"seed", ""},
      {"elements", "number of parameters"},
      {"zero_updates", "elements with u = 0, left out of mean_ratio"},
      {"moved_share", "share of parameters that changed"},
      {"norm_ratio", "||step|| / (lr ||u||), step = new - old, exact"},
      {"norm_error", "|norm_ratio - 1|"},
      {"mean_ratio", "mean(step / u) / lr"},
      {"mean_error", "|mean_ratio - 1|"},
      {"expected_mean_ratio",
       "stochastic: expectation of mean_ratio over the random bits; nan for the others"},
      {"relative_error", "||step - lr u|| / (lr ||u||)"},
      {"cosine", "between step and u; nan when nothing moved"},
      {"own_target_ratio",
       "binary-search: ||step||^2 as the search sees it over its target lr ||u||^2; nan otherwise"},
      {"alpha", "binary-search: factor of the returned candidate; nan otherwise"},
      {"iterations", "binary-search: candidates tried; 0 otherwise"},
      {"status", "ok, unchanged, not-converged, zero-update or nonfinite"},
  };
}

}  // namespace

std::string_view Name(Keys keys) { return KeywordText(kKeys, keys); }

Keys ParseKeys(std::string_view text) { return ParseKeyword(kKeys, "keys", text); }

std::vector<double> LearningRates(const Settings& settings) {
  const double low = settings.GetDouble("lr-low", 1e-30, 1e6);
  const double high = settings.GetDouble("lr-high", low, 1e6);
  const auto per_decade = static_cast<double>(settings.GetInteger("per-decade", 1, 100));
  const double step = Log(10) / per_decade;
  std::vector<double> rates;
  for (int i = 0;; ++i) {
    const std::string text = fmt::format("{:.3e}", low * Exp(step * i));
    double rate = 0;
    std::from_chars(text.data(), text.data() + text.size(), rate);
    if (rate > high) return rates;
    rates.push_back(rate);
  }
}

}  // namespace update_fidelity

Experiment UpdateFidelity() {
  using namespace update_fidelity;
  Experiment experiment;
  experiment.name = "update-fidelity";
  experiment.title = "what rounding leaves of a small weight update, by rule and learning rate";
  experiment.reproduces = "[Seed003] Empirics, Precision: the figures for fp8, fp16 and bf16";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.tables = {{.name = std::string(kTable), .columns = Columns()}};
  experiment.points = Points;
  experiment.run = Measure;
  experiment.figures = Figures;
  experiment.summarise = Summarise;
  return experiment;
}

}  // namespace numsim::experiments
