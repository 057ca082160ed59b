#include "experiments/study/study_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "experiments/runner/settings.h"
#include "experiments/study/assemble.h"
#include "experiments/study/fork.h"
#include "experiments/study/read_claims.h"
#include "experiments/study/read_figures.h"
#include "experiments/study/read_parts.h"
#include "experiments/study/read_tables.h"
#include "experiments/study/study_texts.h"
#include "numsim/base/nearest_name.h"
#include "numsim/formats/format_names.h"

namespace numsim::experiments::study {
namespace {

// ---- options and axes

std::string_view NameOfKey(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Returns the assignments of the keys that a recipe of `numsim train` sets, and then `keys`, which replace
// those of the recipe.
Keys WithRecipe(const Node& node, const std::string& recipe, const Keys& keys) {
  if (recipe.empty()) return keys;
  TrainConfig config;
  try {
    ApplyTrainRecipe(recipe, config);
  } catch (const Error& error) {
    throw node.About("recipe", error.what());
  }
  std::map<std::string, std::string> before;
  for (const ConfigKey& key : ConfigKeys({})) before[key.name] = key.value;
  Keys all;
  for (const ConfigKey& key : ConfigKeys(config)) {
    const bool replaced = std::ranges::count(keys, key.name, NameOfKey) > 0;
    if (!replaced && before[key.name] != key.value) all.push_back(key.name + "=" + key.value);
  }
  all.insert(all.end(), keys.begin(), keys.end());
  return all;
}

std::vector<Choice> ReadChoices(Node& node) {
  std::vector<Choice> choices;
  for (Node& table : node.Tables("choices")) {
    choices.push_back({.name = table.Text("name"),
                       .keys = WithRecipe(table, table.Text("recipe", ""), table.Texts("keys")),
                       .meaning = table.Text("meaning", ""),
                       .alone = table.Flag("alone", false),
                       .hidden = table.Flag("hidden", false)});
    table.CheckTaken();
  }
  return choices;
}

std::optional<Limits> ReadLimits(Node& node) {
  if (!node.Has("limits")) return std::nullopt;
  const auto [numbers, whole] = node.Numbers("limits");
  if (numbers.size() != 2) throw node.About("limits", "expected two numbers, the lower one first");
  return Limits{numbers[0], numbers[1], whole};
}

Setting ReadSetting(Node& node) {
  if (node.Has("models")) return ModelSetting(node.Texts("models"));
  return {.name = node.Text("name"),
          .help = node.Text("help"),
          .choices = ReadChoices(node),
          .keys = node.Texts("keys"),
          .only_choices = node.Flag("only_choices", false),
          .limits = ReadLimits(node),
          .part_of = node.Text("part_of", ""),
          .at_most = node.Text("at_most", ""),
          .before = node.Text("before", ""),
          .most = node.Text("most", ""),
          .cuda = node.Text("cuda", "")};
}

// Returns the maker of choices that set one key of `numsim train`.
std::function<Choice(const std::string&)> OfKey(Node& node) {
  const std::string key = node.Text("key");
  const std::vector<ConfigKey> keys = ConfigKeys({});
  if (std::ranges::count(keys, key, &ConfigKey::name) == 0) {
    const std::string near = DidYouMean(key, NameList(keys, &ConfigKey::name));
    throw node.About("key", fmt::format("'{}' is no key of numsim train{}", key, near));
  }
  return [=](const std::string& text) { return Choice{text, {key + "=$"}}; };
}

using ChoiceMakers = Named<std::function<Choice(const std::string&)>>;
ChoiceMakers WithSizes(ChoiceMakers makers) {
  makers.emplace("size", SizeChoice);
  return makers;
}

Axis ReadAxis(Node& node, const ChoiceMakers& makers, const Functions& functions) {
  Axis axis{.name = node.Text("name"),
            .meaning = node.Has("columns") ? "" : node.Text("meaning"),
            .choices = ReadChoices(node),
            .joined = node.Flag("joined", false),
            .other = FindIfAny(makers, node, "other"),
            .options = node.Texts("options"),
            .help = node.Text("help", ""),
            .baseline = node.Text("baseline", ""),
            .limits = ReadLimits(node),
            .option_by = node.Text("option_by", ""),
            .columns = ReadColumns(node)};
  if (!axis.columns.empty()) axis.cells = Find(functions.cells, node, "cells");
  if (node.Has("key")) axis.other = OfKey(node);
  const std::string lists = node.Text("lists", "values");
  if (lists == "formats") axis.split = SplitFormatList;
  if (lists != "formats" && lists != "values") {
    throw node.About("lists", NotOneOf("the kind of list", lists, "formats, values").what());
  }
  return axis;
}

std::vector<StudyPreset> ReadPresets(Node& root) {
  std::vector<StudyPreset> presets;
  for (Node& node : root.Tables("presets")) {
    StudyPreset& preset = presets.emplace_back();
    preset.name = node.key();
    preset.seeds = node.Whole("seeds", 1);
    preset.seconds = node.Number("seconds", 0);
    preset.on = node.Text("on", "");
    for (const Node& value : node.Values()) {
      if (value.key().find('.') == std::string::npos) continue;  // one of those above
      preset.values.emplace_back(value.key(), value.OptionText());
    }
  }
  if (presets.empty()) throw root.About("presets", "is missing");
  return presets;
}

// ---- words about the run

// Returns the function that fills a text with values of options, {NAME}, and of functions, {$NAME}.
std::function<std::string(const Results&)> ReadScale(Node& root,
                                                     const Study& study,
                                                     const Functions& functions) {
  const std::string pattern = root.Text("scale");
  Fill(pattern, [&](const std::string& name) {
    if (name.starts_with('$')) {
      const std::string function = name.substr(1);
      if (functions.values.contains(function) || functions.scales.contains(function)) return name;
      throw root.About("scale", fmt::format("there is no function '{}'", name));
    }
    RequireOption(root, "scale", name, study);
    return name;
  });
  return [pattern, values = functions.values, scales = functions.scales](const Results& results) {
    return Fill(pattern, [&](const std::string& name) {
      if (!name.starts_with('$')) return results.settings.Get(name);
      const auto scale = scales.find(name.substr(1));
      return scale == scales.end() ? values.at(name.substr(1))(results.settings)
                                   : scale->second(results);
    });
  };
}

Advice ReadAdvice(Node& node) { return {node.Text("text"), node.Texts("claims")}; }

PaperSetting ReadPaperSetting(Node& node) {
  return {node.Text("option", ""), node.Text("paper"), node.Text("source"), node.Text("reason")};
}

std::optional<PaperTraining> ReadPaper(Node& root) {
  const std::string paper = root.Text("paper", ""), figure = root.Text("figure", "");
  if (paper.empty()) {
    if (!figure.empty()) throw root.About("figure", "is of a paper, and there is no key paper");
    return std::nullopt;
  }
  PaperTraining training{.figure = figure};
  try {
    training.paper = ParsePaper(paper);
  } catch (const Error& error) {
    throw root.About("paper", error.what());
  }
  const std::vector<std::string> figures = FiguresOf(training.paper);
  if (!figure.empty() && std::ranges::count(figures, figure) == 0) {
    const std::string names = fmt::format("{}", fmt::join(figures, ", "));
    throw root.About("figure", NotOneOf("the figure", figure, names).what());
  }
  return training;
}

// Reads which arms a study has.
void ReadArmsOf(Node& root, Study& study) {
  const std::string arms = root.Text("arms", "all");
  if (arms == "all") return;
  if (arms != "around-centre") {
    throw root.About("arms", NotOneOf("the kind of arms", arms, "all, around-centre").what());
  }
  for (const Axis& axis : study.axes) {
    if (axis.options.empty()) {
      throw root.About("arms", fmt::format("the axis {} has no option", axis.name));
    }
  }
  study.centre = CentreOf(study.axes);
  study.arms = ArmsAroundCentre;
}

// Reads the arm from whose state the others go on: "AXIS=VALUE AXIS", where an axis alone has the value
// of the centre.
Picks ReadForksFrom(Node& root, const std::vector<Axis>& axes) {
  constexpr const char* kKey = "forks_from";
  Picks picks;
  std::istringstream words(root.Text(kKey, ""));
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const auto axis = std::ranges::find(axes, name, &Axis::name);
    if (axis == axes.end()) {
      throw root.About(kKey, NotOneOf("the axis", name, NameList(axes, &Axis::name)).what());
    }
    if (equals < word.size()) {
      picks.push_back({name, ChoiceOf(*axis, word.substr(equals + 1)).name});
      continue;
    }
    if (axis->options.empty()) {
      throw root.About(kKey,
                       fmt::format("the axis {} has no option: expected {}=VALUE", name, name));
    }
    picks.push_back({.axis = name, .of = [axis = *axis](const Settings& settings) {
                       return ValuesOf(axis, settings).front();
                     }});
  }
  return picks;
}

std::optional<RateRule> ReadRates(Node& root) {
  if (!root.Has("rates")) return std::nullopt;
  Node node = root.Table("rates");
  RateRule rule{.options = node.Texts("options"), .axis = node.Text("axis", "")};
  if (rule.options.empty()) throw node.About("options", "is missing");
  node.CheckTaken();
  return rule;
}

// Reads what trials are if they are trainings.
void ReadTrainings(Node& root, const Functions& functions, Study& study) {
  study.fixed = OptionTexts(root.Table("fixed"));
  study.defaults = OptionTexts(root.Table("defaults"));
  const ChoiceMakers makers = WithSizes(functions.choices);
  study.axes =
      ReadEach<Axis>(root, "axes", [&](Node& node) { return ReadAxis(node, makers, functions); });
  if (study.axes.empty()) {
    throw root.About("axes", "is missing; or 'measure', if nothing is trained");
  }
  ReadArmsOf(root, study);
  study.forks_from = ForksFrom(study.axes, ReadForksFrom(root, study.axes));
  study.rates = ReadRates(root);
  study.label = root.Text("label");
  study.arm_text = root.Text("arm");
  study.runs = root.Text("runs");
  study.takes_rows = root.Flag("takes_rows", true);
  study.texts = root.Texts("texts");
  study.seeds_first = root.Flag("seeds_first", false);
  study.paper = ReadPaper(root);
}

// Reads what trials are if they train nothing.
void ReadMeasurements(Node& root, const Functions& functions, Study& study) {
  const Measurements& measurements = Find(functions.measurements, root, "measure");
  study.others.list = measurements.trials;
  study.others.run = measurements.measure;
  study.timed = root.Flag("timed", false);
}

// Reads the tables, those that come first before those that name them.
void ReadTables(Node& root,
                const Functions& functions,
                const NamedOutcomes& outcomes,
                Study& study) {
  for (Node& node : root.Tables("tables")) study.others.tables.push_back(ReadTable(node, study));
  if (Trains(study)) {
    study.probes = ReadEach<ProbeSpec>(
        root, "probes", [&](Node& node) { return ReadProbe(node, study, functions); });
  }
  for (Node& node : root.Tables("derived")) {
    study.derived.push_back(ReadDerived(node, study, functions, outcomes));
    node.CheckTaken();
  }
}

}  // namespace

Study ReadStudy(std::string_view text, std::string_view name, const Functions& functions) {
  Node root = Node::Read(text, name);
  Study study;
  study.name = root.Text("name");
  study.title = root.Text("title");
  study.reproduces = root.Text("reproduces");
  study.description = root.Text("description");
  study.help = OptionTexts(root.Table("help"));
  study.presets = ReadPresets(root);
  study.settings = ReadEach<Setting>(root, "settings", ReadSetting);
  study.before = OptionTexts(root.Table("before"));
  if (root.Has("measure")) {
    ReadMeasurements(root, functions, study);
  } else {
    ReadTrainings(root, functions, study);
  }
  study.scale = ReadScale(root, study, functions);
  const Texts texts = OptionTexts(root.Table("words"));
  const Words words(texts.begin(), texts.end());
  const NamedOutcomes outcomes = ReadOutcomes(root, functions, words);
  ReadTables(root, functions, outcomes, study);
  ReadClaims(root, functions, outcomes, words, study);
  study.figures = ReadFigures(root, study, functions);
  study.advice = ReadEach<Advice>(root, "advice", ReadAdvice);
  study.paper_settings = ReadEach<PaperSetting>(root, "paper_settings", ReadPaperSetting);
  root.CheckTaken();
  for (const Axis& axis : study.axes) {
    for (const Choice& choice : axis.choices) {
      if (choice.meaning.empty()) continue;
      study.description += fmt::format("\n  {:<22} {}", choice.name, choice.meaning);
    }
  }
  return study;
}

std::string_view StudyText(std::string_view folder) {
  for (const auto& [name, text] : kStudyTexts) {
    if (name == folder) return text;
  }
  throw Error::Format("the program was built without experiments/{}/study.toml", folder);
}

}  // namespace numsim::experiments::study
