// Definition of the experiment `update-fidelity`: options, columns, trials.
#include "experiments/update_fidelity/update_fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "experiments/runner/settings.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments {
namespace update_fidelity {
namespace {

constexpr Keyword<Keys> kKeys[] = {{"same", Keys::kSame}, {"independent", Keys::kIndependent}};

constexpr std::string_view kDescription =
    "Rounds parameters from a standard normal distribution to a format and adds a float32 update\n"
    "of the same size, at learning rates from far too small for the format up to 1. Measures the\n"
    "resulting step: its norm, its mean per parameter, its direction, and how many parameters\n"
    "move. Rules with state take one step from the state that belongs to the parameters before\n"
    "rounding; the step of the stored parameters and the effective step, of parameters and state\n"
    "together, are measured separately.\n"
    "With keys `same` the update is the array that the parameters were rounded from, as in the\n"
    "source; with `independent` it is another draw. For the rules see\n"
    "numsim/updates/update_rule.h, which defines every rounding; a rule may have an argument and\n"
    "a scope (stochastic:16, norm-matched@row). A rule is left out for formats that it does not\n"
    "serve: split-master only serves bf16.\n"
    "The learning rate at which naive rounding stops is found to the last bit and compared with\n"
    "its closed form. Trials run in parallel; times are CPU times of a trial's single thread.";

std::vector<Format> Formats(const Settings& settings) {
  std::vector<Format> formats = ParseFormatList(settings.Get("formats"));
  std::vector<std::string> names;
  for (const Format& format : formats) {
    if (!format.spec.IsSigned()) {
      throw Error::Format("--formats: {} is unsigned, parameters need a sign", format.name);
    }
    names.push_back(format.name);
  }
  CheckDistinct("formats", names);
  return formats;
}

void CheckOptions(const Settings& settings) {
  Side(settings);
  CheckDistinct("keys", settings.GetList("keys"));
  for (const std::string& keys : settings.GetList("keys")) ParseKeys(keys);
  LearningRates(settings);
}

// Returns the measured cost of one learning rate, relative to naive addition.
double Cost(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kNaive:
      return 1;
    case UpdateKind::kNoteAsPrinted:
      return 5;
    default:
      return HasState(kind) ? 3 : 4;
  }
}

// Returns the trials. Each measures every learning rate with one set of arrays, because drawing the
// arrays costs more than using them once.
std::vector<Trial> Trials(const Settings& settings) {
  CheckOptions(settings);
  std::vector<Trial> trials;
  const std::vector<UpdateRule> rules = Rules(settings);
  for (const Format& format : Formats(settings)) {
    for (const std::string& keys : settings.GetList("keys")) {
      for (const UpdateRule& rule : rules) {
        if (!Serves(rule, format)) continue;
        for (int i = 0; i < settings.seeds; ++i) {
          const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
          const std::string name = ToString(rule);
          trials.push_back({.label = fmt::format("{} {} {} seed={}", format.name, keys, name, seed),
                            .seed = seed,
                            .parameters = {{"format", format.name}, {"keys", keys}, {"rule", name}},
                            .cost = Cost(rule.kind)});
        }
      }
    }
  }
  return trials;
}

constexpr const char* kAllRules =
    "naive,stochastic,master-fp32,master-fp16-scaled,split-master,kahan,note-as-printed,"
    "norm-matched,projection-matched";

std::vector<Option> Options() {
  return {
      // clang-format off
      {.name = "formats",    .quick = "e4m3fn,fp16,bf16", .paper = "e4m3fn,fp16,bf16",
       .help = "formats of the parameters, named or custom, separated by commas"},
      {.name = "size",       .quick = "1024",    .paper = "1024",    .help = "number of rows, and of columns, of the parameter matrix: 1 to 16384"},
      {.name = "per-decade", .quick = "2",       .paper = "6",       .help = "learning rates per factor of 10: 1 to 100"},
      {.name = "lr-low",     .quick = "1e-10",   .paper = "1e-10",   .help = "smallest learning rate, 1e-30 to 1e6"},
      {.name = "lr-high",    .quick = "1",       .paper = "1",       .help = "greatest learning rate, --lr-low to 1e6"},
      {.name = "rules",      .quick = kAllRules, .paper = kAllRules, .help = "update rules, separated by commas: KIND[:ARGUMENT][@SCOPE]"},
      {.name = "keys",       .quick = "same,independent", .paper = "same,independent", .help = "same: the update is drawn with the key of the parameters; independent: with another"},
      {.name = "rtol",       .quick = "1e-2",    .paper = "1e-2",    .help = "relative tolerance of note-as-printed, 0 to 1"},
      {.name = "iterations", .quick = "32",      .paper = "32",      .help = "maximum number of candidates that note-as-printed tries, 1 to 1000"},
      // clang-format on
  };
}

// Returns the columns of a measured table: the common ones, then `columns`.
std::vector<Column> WithHead(const std::vector<Column>& columns) {
  const std::vector<Column> head = {
      {"format", "format of the parameters"},
      {"keys", "same: update = parameters before rounding; independent: another draw"},
      {"rule", "update rule"},
      {"lr", "learning rate, a float32"},
      {"seed", "seed of the arrays and of stochastic rounding"},
      {"elements", "number of parameters"},
  };
  return Joined(head, columns);
}

std::vector<Column> FidelityColumns() {
  return WithHead({
      {"zero_updates", "number of elements with u = 0, which mean_ratio leaves out"},
      {"moved_share", "share of parameters that changed"},
      {"norm_ratio", "||step|| / (lr ||u||), step = new - old parameters as stored"},
      {"norm_error", "|norm_ratio - 1|"},
      {"projection_ratio", "<step, u> / (lr ||u||^2)"},
      {"mean_ratio", "mean(step / u) / lr"},
      {"mean_error", "|mean_ratio - 1|"},
      {"expected_mean_ratio",
       "stochastic: expectation of mean_ratio over the random bits; nan for other rules"},
      {"relative_error", "||step - lr u|| / (lr ||u||)"},
      {"cosine", "cosine between step and u; nan if nothing moved"},
      {"moved_update", "mean |u| of the parameters that moved / rms(u); nan if nothing moved"},
      {"effective_norm_ratio",
       "rules with state: norm_ratio of parameters and state together; nan for other rules"},
      {"effective_relative_error",
       "rules with state: relative_error of parameters and state together; nan for other rules"},
      {"effective_cosine",
       "rules with state: cosine of parameters and state together; nan for other rules"},
      {"own_target_ratio",
       "rules that search: the quantity that they match over its target (note-as-printed: squares, "
       "against lr ||u||^2); nan for other rules"},
      {"alpha", "rules that search: factor of the update that was applied; nan for other rules"},
      {"passes", "rules that search: passes over the parameters; 0 for other rules"},
      {"status", "ok, below-min-step, not-converged, saturated, nonfinite or zero-update"},
  });
}

std::vector<TableSpec> TableSpecs() {
  return {
      {.name = std::string(kTable), .columns = FidelityColumns()},
      {.name = std::string(kTimes),
       .columns =
           WithHead({{"ns_per_element",
                      "CPU time of the step in one thread, nanoseconds per parameter; trials "
                      "run in parallel"}}),
       .timed = true},
      {.name = std::string(kLimits),
       .columns = {{"format", "format of the parameters"},
                   {"keys", "as in fidelity.csv"},
                   {"seed", "as in fidelity.csv"},
                   {"elements", "number of parameters"},
                   {"unmoved_lr", "greatest float32 rate at which naive moves nothing"},
                   {"least_threshold",
                    "minimum of h / |u|, where h is the distance to the rounding boundary"},
                   {"half_norm_lr",
                    "rate below which the norm of naive's step is less than half of lr ||u||"}}},
      {.name = std::string(kCliffs),
       .derived = true,
       .columns =
           {{"format", "format of the parameters"},
            {"keys", "as in fidelity.csv"},
            {"seed", "as in fidelity.csv"},
            {"limit", "unmoved: naive moves nothing; half-norm: half of its step's norm is gone"},
            {"predicted_from",
             "arrays: least_threshold; distribution: the distribution of weights and updates "
             "(unmoved: the rate at which one weight is expected to move)"},
            {"measured", "measured learning rate of the limit"},
            {"predicted", "predicted learning rate of the limit"},
            {"expected_movers",
             "unmoved, from the distribution: number of weights expected to move at the measured "
             "rate; nan otherwise"}}},
  };
}

std::vector<PaperSetting> PaperSettings() {
  const std::string code = "Empirics, Precision", chosen = "Chosen for this run.";
  return {
      {"size", "1024", code, chosen},
      {"formats", "e4m3fn,fp16,bf16", code, chosen},
      {"keys", "same", code, "Independent keys show what is due to the published choice."},
      {"rtol", "1e-2", "Algorithm", chosen},
      {"iterations", "32", "Algorithm", chosen},
      {"",
       "The source does not define its stochastic_update",
       code,
       "Here the exact sum is rounded once, under variant A, with 32 random bits."},
      {"",
       "The source compares the norm of the update with that of the new parameters",
       code,
       "Here the step is compared with lr u throughout."},
      {"",
       "The source sums in float32 and draws with JAX's generator",
       code,
       "Here sums are float64 in fixed blocks, and numbers come from Philox."},
  };
}

std::string ScaleText(const Settings& settings, const Tables&) {
  return fmt::format("{0} x {0} parameters, lr {1} to {2}",
                     Side(settings),
                     settings.Get("lr-low"),
                     settings.Get("lr-high"));
}

}  // namespace

std::string_view ToString(Keys keys) { return KeywordToString(kKeys, keys); }

Keys ParseKeys(std::string_view text) { return ParseKeyword(kKeys, "keys", text); }

std::vector<float> LearningRates(const Settings& settings) {
  const double low = settings.GetDouble("lr-low", 1e-30, 1e6);
  const double high = settings.GetDouble("lr-high", low, 1e6);
  const auto per_decade = static_cast<double>(settings.GetInteger("per-decade", 1, 100));
  const double step = Log(10) / per_decade;
  std::vector<float> rates;
  for (int i = 0;; ++i) {
    const std::string text = fmt::format("{:.3e}", low * Exp(step * i));
    const char* const end = text.data() + text.size();
    double rate = 0;
    float rounded = 0;
    std::from_chars(text.data(), end, rate);
    std::from_chars(text.data(), end, rounded);
    if (rate > high) return rates;
    rates.push_back(rounded);
  }
}

std::string RateText(float lr) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), lr);
  return std::string(buffer, result.ptr);
}

std::vector<UpdateRule> Rules(const Settings& settings) {
  std::vector<UpdateRule> rules = ParseUpdateRuleList(settings.Get("rules"));
  const std::vector<Format> formats = Formats(settings);
  // The default holds rules that not every format has; a rule that the user names has to serve one.
  if (settings.Get("rules") == kAllRules) {
    std::erase_if(rules, [&](const UpdateRule& rule) {
      return std::none_of(formats.begin(), formats.end(), [&](const Format& format) {
        return Serves(rule, format);
      });
    });
  }
  std::vector<std::string> names;
  for (UpdateRule& rule : rules) {
    rule.tolerance = settings.GetDouble("rtol", 0, 1);
    rule.iterations = static_cast<int>(settings.GetInteger("iterations", 1, 1000));
    names.push_back(ToString(rule));
    const auto serves = [&](const Format& format) { return Serves(rule, format); };
    if (std::none_of(formats.begin(), formats.end(), serves)) {
      throw Error::Format("--rules: {} serves none of --formats", names.back());
    }
  }
  CheckDistinct("rules", names);
  return rules;
}

size_t Side(const Settings& settings) {
  return static_cast<size_t>(settings.GetInteger("size", 1, 1 << 14));
}

}  // namespace update_fidelity

Experiment UpdateFidelity() {
  using namespace update_fidelity;
  Experiment experiment;
  experiment.name = "update-fidelity";
  experiment.title =
      "how much of a small weight update survives rounding, by rule and learning rate";
  experiment.reproduces = "[Seed003] Empirics, Precision: the figures for fp8, fp16 and bf16";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.presets = {{"quick", 3, 45}, {"paper", 5, 150}, {"demo", 3, 45}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = ScaleText;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
