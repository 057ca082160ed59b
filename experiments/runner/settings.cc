#include "experiments/runner/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "experiments/claims/family.h"
#include "experiments/claims/parse.h"
#include "experiments/runner/json_error.h"
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_names.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"

namespace numsim::experiments {
namespace {

using Json = nlohmann::ordered_json;

// The key that says what names of formats mean. Files of older versions do not have it.
constexpr const char* kNames = "names";
constexpr int kTodaysNames = 2;

std::string OptionNames(const Experiment& experiment) {
  if (experiment.options.empty()) return "it has no options of its own";
  std::string names = "its options are";
  for (const Option& option : experiment.options) {
    names += fmt::format("{} --{}", &option == &experiment.options.front() ? "" : ",", option.name);
  }
  return names;
}

// Returns the settings as a list of names and values, in the order in which FirstDifference
// compares them.
std::vector<std::pair<std::string, std::string>> Fields(const StoredSettings& stored) {
  const Settings& settings = stored.settings;
  std::vector<std::pair<std::string, std::string>> fields = {
      {"experiment", stored.experiment},
      {"--preset", settings.preset},
      {"--seed", fmt::format("{}", settings.seed)},
      {"--seeds", fmt::format("{}", settings.seeds)},
  };
  if (settings.max_seeds > 0) {
    fields.emplace_back("--max-seeds", fmt::format("{}", settings.max_seeds));
  }
  if (!settings.rows.files.empty()) fields.emplace_back("--rows", settings.rows.Text());
  for (const auto& [name, value] : settings.options) fields.emplace_back("--" + name, value);
  return fields;
}

// Throws Error naming the file of the settings if they lack an option of the experiment, or have one
// that it does not have.
void CheckOptions(const Experiment& experiment,
                  const Settings& settings,
                  const std::filesystem::path& path) {
  constexpr const char* kVersion = "was it made by another version of numsim?";
  for (const Option& option : experiment.options) {
    if (option.optional || settings.options.contains(option.name)) continue;
    throw Error::Format("{}: has no value of option --{}, which {} has; {}",
                        path.string(),
                        option.name,
                        experiment.name,
                        kVersion);
  }
  for (const auto& [name, value] : settings.options) {
    const auto is_named = [&name = name](const Option& option) { return option.name == name; };
    if (std::any_of(experiment.options.begin(), experiment.options.end(), is_named)) continue;
    throw Error::Format("{}: has option --{}, which {} does not have; {}",
                        path.string(),
                        name,
                        experiment.name,
                        kVersion);
  }
}

// Returns the default that follows the value `given` of another option, whose own default is
// `whole`; both defaults and the value are positive.
int64_t Following(const Option& option, int64_t own, int64_t whole, int64_t given) {
  if (!option.at_most.empty()) return std::min(own, given);
  const bool most = 5 * static_cast<double>(own) >= 4 * static_cast<double>(given);
  if (!most || given >= whole) return own;
  return static_cast<int64_t>(static_cast<double>(own) * static_cast<double>(given) /
                              static_cast<double>(whole));
}

// Changes the defaults that do not fit the given values (Option::part_of, at_most). Values that are
// not positive integers stay: Experiment::trials has the right message.
void FollowOverrides(const Experiment& experiment,
                     const std::map<std::string, std::string>& overrides,
                     Settings& settings) {
  for (const Option& option : experiment.options) {
    const std::string& other = option.part_of.empty() ? option.at_most : option.part_of;
    if (other.empty() || overrides.contains(option.name) || !overrides.contains(other)) continue;
    const auto named = std::find_if(experiment.options.begin(),
                                    experiment.options.end(),
                                    [&](const Option& o) { return o.name == other; });
    NUMSIM_CHECK(named != experiment.options.end(), "the experiment has no option {}", other);
    const std::string& normal = DefaultOf(*named, settings.preset, UsesDevice());
    std::string& value = settings.options.at(option.name);
    int64_t own = 0, whole = 0, given = 0;
    if (!Parse(value, own) || !Parse(normal, whole) || !Parse(overrides.at(other), given)) continue;
    if (own > 0 && whole > 0 && given > 0) {
      value = fmt::format("{}", Following(option, own, whole, given));
    }
  }
}

// Returns a number of seeds. Throws Error naming the file if it is none, or below `least`.
int CountIn(const Json& json, int least, const std::filesystem::path& path) {
  constexpr int kMost = 1 << 20;
  const bool whole = json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t{kMost};
  if (whole && json.get<int>() >= least) return json.get<int>();
  throw Error::Format("{}: expected a number of seeds from {} to {}, found {}",
                      path.string(),
                      least,
                      kMost,
                      json.dump());
}

constexpr const char* kSettingsDigest = "sha256";
constexpr const char* kRows = "rows";

Json JsonOf(const GivenRows& rows) {
  Json files = Json::array();
  for (const RowsFile& file : rows.files) {
    files.push_back({{"table", file.table}, {"file", file.name}, {kSettingsDigest, file.sha256}});
  }
  return {{"files", std::move(files)}, {"scale", rows.scale}, {"note", rows.note}};
}

GivenRows RowsIn(const Json& json) {
  GivenRows rows{.scale = json.at("scale"), .note = json.at("note")};
  for (const Json& file : json.at("files")) {
    rows.files.push_back({file.at("table"), file.at("file"), file.at(kSettingsDigest)});
  }
  return rows;
}

// Returns the text of a settings file: these fields, and the digest of the text without it.
std::string TextOf(Json json) {
  json[kSettingsDigest] = Sha256OfText(json.dump(2) + "\n");
  return json.dump(2) + "\n";
}

// Throws Error unless the fields have the names of settings, and the text is that of WriteSettings.
// Files of older versions have no digest.
void CheckUnchanged(Json json, const std::string& text, const std::filesystem::path& path) {
  const std::vector<std::string> known = {"experiment",
                                          "preset",
                                          "seed",
                                          "seeds",
                                          "max_seeds",
                                          "options",
                                          kRows,
                                          kNames,
                                          kSettingsDigest};
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string list = fmt::format("{}", fmt::join(known, ", "));
    throw Error::Format("{}: {}", path.string(), NotOneOf("field", name, list).what());
  }
  if (json.erase(kSettingsDigest) == 0 || TextOf(std::move(json)) == text) return;
  throw Error::Format(
      "{}: has been changed since it was written: its SHA-256 is another; restore it from a copy",
      path.string());
}

}  // namespace

void CheckDistinct(std::string_view option, const std::vector<std::string>& values) {
  std::set<std::string> seen;
  for (const std::string& value : values) {
    if (!seen.insert(value).second) throw Error::Format("--{}: {} is listed twice", option, value);
  }
}

const std::string& DefaultOf(const Option& option, std::string_view preset, bool device) {
  if (device && !option.cuda.empty()) return option.cuda;
  if (preset == "small" && !option.small.empty()) return option.small;
  if (preset == "demo" && !option.demo.empty()) return option.demo;
  if (preset == "quick" || preset == "small" || preset == "demo") return option.quick;
  const auto other = option.others.find(preset);
  return other == option.others.end() ? option.paper : other->second;
}

const Preset& FindPreset(const Experiment& experiment, std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : experiment.presets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  const std::string near = NearestName(name, names);
  throw Error::Format("--preset \"{}\": expected {}{}",
                      name,
                      fmt::join(names, " or "),
                      near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

Settings MakeSettings(const Experiment& experiment,
                      std::string_view preset,
                      uint64_t seed,
                      int seeds,
                      const std::map<std::string, std::string>& overrides,
                      int max_seeds) {
  FindPreset(experiment, preset);
  if (seeds < 1) throw Error::Format("--seeds {}: expected at least 1", seeds);
  if (max_seeds != 0 && seeds < 2) {
    throw Error::Format(
        "--seeds {}: --until-decided needs at least 2, since one seed decides nothing", seeds);
  }
  if (max_seeds != 0 && max_seeds < seeds) {
    throw Error::Format("--max-seeds {}: expected at least the {} of --seeds", max_seeds, seeds);
  }
  if (seed > std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(seeds - 1)) {
    throw Error::Format("--seed {}: with --seeds {} the last seed is above 2^64 - 1", seed, seeds);
  }
  Settings settings{.preset = std::string(preset),
                    .seed = seed,
                    .seeds = seeds,
                    .max_seeds = max_seeds,
                    .options = {}};
  for (const Option& option : experiment.options) {
    if (!option.optional) settings.options[option.name] = DefaultOf(option, preset, UsesDevice());
  }
  for (const auto& [name, value] : overrides) {
    const auto found = std::ranges::find(experiment.options, name, &Option::name);
    if (found == experiment.options.end()) {
      throw Error::Format(
          "--{}: {} has no such option; {}", name, experiment.name, OptionNames(experiment));
    }
    if (!found->optional || value != found->quick) settings.options[name] = value;
  }
  FollowOverrides(experiment, overrides, settings);
  return settings;
}

Settings WithAllSeeds(Settings settings) {
  settings.seeds = std::max(settings.seeds, settings.max_seeds);
  return settings;
}

std::vector<int> LooksOf(const Settings& settings) {
  if (settings.max_seeds == 0) return {settings.seeds};
  return DefaultLooks(settings.seeds, settings.max_seeds).seeds;
}

std::string FromFormerNames(const Experiment* experiment, const std::string& text) {
  if (experiment != nullptr && experiment->from_former_names) {
    return experiment->from_former_names(text);
  }
  return numsim::FromFormerNames(text);
}

void WriteSettings(const std::filesystem::path& path, const StoredSettings& stored) {
  const Settings& settings = stored.settings;
  Json json;
  json["experiment"] = stored.experiment;
  json[kNames] = kTodaysNames;
  json["preset"] = settings.preset;
  json["seed"] = settings.seed;
  json["seeds"] = settings.seeds;
  if (settings.max_seeds > 0) json["max_seeds"] = settings.max_seeds;
  json["options"] = settings.options;
  if (!settings.rows.files.empty()) json[kRows] = JsonOf(settings.rows);
  std::string text;
  try {
    text = TextOf(std::move(json));
  } catch (const Json::exception&) {  // Invalid UTF-8 is the only thing that dump rejects.
    throw Error::Format("{}: an option's value is not valid UTF-8", path.string());
  }
  WriteFileAtomically(path, text);
}

StoredSettings ReadSettings(const std::filesystem::path& path) {
  const std::string text = ReadText(path);
  try {
    const Json json = Json::parse(text);
    StoredSettings stored;
    json.at("experiment").get_to(stored.experiment);
    json.at("preset").get_to(stored.settings.preset);
    if (!json.at("seed").is_number_unsigned()) {
      throw Error::Format("{}: expected a whole number as seed", path.string());
    }
    json.at("seed").get_to(stored.settings.seed);
    stored.settings.seeds = CountIn(json.at("seeds"), 1, path);
    stored.settings.max_seeds = CountIn(json.value("max_seeds", Json(0u)), 0, path);
    json.at("options").get_to(stored.settings.options);
    if (json.contains(kRows)) stored.settings.rows = RowsIn(json.at(kRows));
    for (const char* const name : {"experiment", "preset", "seed", "seeds", "max-seeds"}) {
      if (stored.settings.options.contains(name)) {
        throw Error::Format("{}: {} is no option of an experiment", path.string(), name);
      }
    }
    CheckUnchanged(json, text, path);
    stored.former_names = !json.contains(kNames);
    if (!stored.former_names && json[kNames] != kTodaysNames) {
      throw Error::Format(
          "{}: {}: expected {}, found {}; was it made by another version of numsim?",
          path.string(),
          kNames,
          kTodaysNames,
          json[kNames].dump());
    }
    if (stored.former_names) {
      const Experiment* const experiment = FindExperiment(stored.experiment);
      for (auto& [name, value] : stored.settings.options) {
        value = FromFormerNames(experiment, value);
      }
    }
    return stored;
  } catch (const Json::exception& error) {
    throw Error::Format("{}: expected the settings of a numsim run, found: {}",
                        path.string(),
                        PlainJsonMessage(error.what()));
  }
}

void AddNewOptions(const Experiment& experiment, Settings& settings) {
  for (const Option& option : experiment.options) {
    if (option.optional) continue;
    const bool empty = DefaultOf(option, settings.preset, /*device=*/false).empty();
    if (empty || !option.before.empty()) settings.options.emplace(option.name, option.before);
  }
}

StoredSettings ReadSettingsOf(const Experiment& experiment, const std::filesystem::path& path) {
  StoredSettings stored = ReadSettings(path);
  if (stored.experiment != experiment.name) {
    throw Error::Format("{}: holds results of {}, expected {}",
                        path.parent_path().string(),
                        stored.experiment,
                        experiment.name);
  }
  AddNewOptions(experiment, stored.settings);
  CheckOptions(experiment, stored.settings, path);
  stored.settings.looks = static_cast<int>(LooksOf(stored.settings).size());
  return stored;
}

std::string FirstDifference(const StoredSettings& a,
                            std::string_view a_place,
                            const StoredSettings& b,
                            std::string_view b_place) {
  const auto in_a = Fields(a);
  const auto in_b = Fields(b);
  for (const auto& [name, value] : in_a) {
    const auto same = [&name = name](const auto& field) { return field.first == name; };
    const auto found = std::find_if(in_b.begin(), in_b.end(), same);
    if (found == in_b.end()) return fmt::format("{} is absent in {}", name, b_place);
    if (found->second != value) {
      return fmt::format(
          "{} is \"{}\" in {} and \"{}\" in {}", name, value, a_place, found->second, b_place);
    }
  }
  // Every field of a is in b; b may have further fields.
  for (const auto& [name, value] : in_b) {
    const auto same = [&name = name](const auto& field) { return field.first == name; };
    if (std::none_of(in_a.begin(), in_a.end(), same)) {
      return fmt::format("{} is absent in {}", name, a_place);
    }
  }
  return "";
}

}  // namespace numsim::experiments
