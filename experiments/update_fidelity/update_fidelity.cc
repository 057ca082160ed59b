// Definition of the experiment `update-fidelity`: what study.toml does not say, and trials.
#include "experiments/update_fidelity/update_fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "experiments/runner/settings.h"
#include "experiments/study/node.h"
#include "experiments/study/study_file.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments {
namespace update_fidelity {
namespace {

constexpr const char* kFolder = "update_fidelity";

constexpr Keyword<Keys> kKeys[] = {{"same", Keys::kSame}, {"independent", Keys::kIndependent}};

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

// Returns the default of --rules.
const std::string& DefaultRules() {
  static const std::string rules = [] {
    study::Node root = study::Node::Read(study::StudyText(kFolder), kFolder);
    return root.Table("presets").Table("quick").Table("study").Text("rules");
  }();
  return rules;
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
  if (settings.Get("rules") == DefaultRules()) {
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
  study::Functions functions{
      .values = {{"size",
                  [](const Settings& settings) { return fmt::format("{}", Side(settings)); }}},
      .tables = {{"cliffs", CliffRows}},
      .figures = {{"times", TimesFigure}},
      .several_figures = {{"formats", FormatFigures}},
      .measurements = {{"steps", {Trials, Measure}}}};
  AddClaimFunctions(functions);
  study::Study study =
      study::ReadStudy(study::StudyText(kFolder), "update_fidelity/study.toml", functions);
  study.notes = Notes;
  return study::MakeExperiment(std::move(study));
}

}  // namespace numsim::experiments
