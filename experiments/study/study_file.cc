#include "experiments/study/study_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "experiments/study/assemble.h"
#include "experiments/study/dots.h"
#include "experiments/study/fork.h"
#include "experiments/study/lines.h"
#include "experiments/study/name_list.h"
#include "experiments/study/node.h"
#include "experiments/study/outcomes.h"
#include "experiments/study/study_texts.h"
#include "numsim/base/nearest_name.h"
#include "numsim/formats/format_names.h"

namespace numsim::experiments::study {
namespace {

using Words = std::map<std::string, std::string>;

// Returns what a table has for a name that stands under a key. Throws Error with the nearest name.
template <typename T>
const T& FindNamed(const Named<T>& table,
                   const std::string& name,
                   const char* what,
                   const Node& node,
                   std::string_view key) {
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  const std::string list = NameList(table, &Named<T>::value_type::first);
  throw node.About(key, NotOneOf(what, name, list.empty() ? "nothing" : list).what());
}
// Returns what a table of functions has for the name under a key.
template <typename T>
const T& Find(const Named<T>& table, Node& node, std::string_view key) {
  return FindNamed(table, node.Text(key), "the name", node, key);
}
// Returns the same, or an empty function if there is no such key.
template <typename T>
T FindIfAny(const Named<T>& table, Node& node, std::string_view key) {
  return node.Has(key) ? Find(table, node, key) : T();
}

Texts OptionTexts(Node table) {
  Texts texts;
  for (const Node& value : table.Values()) texts.emplace_back(value.key(), value.OptionText());
  return texts;
}

// ---- options and axes

std::vector<Choice> ReadChoices(Node& node) {
  std::vector<Choice> choices;
  for (Node& table : node.Tables("choices")) {
    choices.push_back({.name = table.Text("name"),
                       .keys = table.Texts("keys"),
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
          .most = node.Text("most", "")};
}

std::vector<Column> ReadColumns(Node& node) {
  std::vector<Column> columns;
  for (Node& column : node.Tables("columns")) {
    columns.push_back({column.Text("name"), column.Text("meaning")});
    column.CheckTaken();
  }
  return columns;
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

// ---- claims

Margin ReadMargin(Node table) {
  if (table.Has("loss")) return LossMargin(table.Text("loss"));
  return {table.Number("value", 0), table.Text("unit"), table.Text("reason")};
}

// An outcome of a run: a column, or a function of that name.
struct NamedOutcome {
  std::function<double(const Frame& run)> of = {};
  std::optional<Margin> margin = {};  // of claims that have none
  std::string note = {};              // ends their contrasts
};

using NamedOutcomes = Named<NamedOutcome>;

NamedOutcomes ReadOutcomes(Node& root, const Functions& functions, const Words& words) {
  NamedOutcomes outcomes;
  for (Node& node : root.Tables("outcomes")) {
    node.Replace(words);
    NamedOutcome& outcome = outcomes[node.key()];
    const std::string column = node.Text("column", "");
    outcome.of = [=](const Frame& run) { return run.Number(column); };
    if (column.empty()) {
      const auto found = functions.outcomes.find(node.key());
      if (found == functions.outcomes.end()) throw node.About("column", "is missing");
      outcome.of = found->second;
    }
    if (node.Has("margin")) outcome.margin = ReadMargin(node.Table("margin"));
    outcome.note = node.Text("note", "");
    node.CheckTaken();
  }
  return outcomes;
}

class ClaimReader {
 public:
  ClaimReader(const Functions& functions, const NamedOutcomes& outcomes, const Words& words)
      : functions_(functions), outcomes_(outcomes), words_(words) {}

  // Returns the claim, or one for each row of `each`, in whose texts {KEY} is the row's value.
  std::vector<ClaimRow> Read(Node& node) const {
    std::vector<Node> rows = node.Tables("each");
    if (rows.empty()) return {ReadOne(node, {})};
    std::vector<ClaimRow> claims;
    for (Node& row : rows) {
      const Texts texts = OptionTexts(row);
      claims.push_back(ReadOne(node, {texts.begin(), texts.end()}));
    }
    return claims;
  }

  Claims ReadCommon(Node common) const {
    common.Replace(words_);
    Claims claims{.items = common.Texts("items"), .scale = common.Text("scale", "")};
    if (common.Has("margin")) claims.margin = ReadMargin(common.Table("margin"));
    claims.diverged = ReadDiverged(common).value_or(Diverged::kMissing);
    if (common.Has("outcome")) {
      const NamedOutcome& outcome = Find(outcomes_, common, "outcome");
      claims.outcome = outcome.of;
      if (!common.Has("margin")) claims.margin = outcome.margin.value_or(Margin());
    }
    common.CheckTaken();
    return claims;
  }

 private:
  ClaimRow ReadOne(Node node, const Words& row) const {
    node.Replace(row);
    node.Replace(words_);
    ClaimRow claim{.name = node.Text("name"),
                   .items = node.Texts("items"),
                   .statement = node.Text("statement"),
                   .contrast = node.Text("contrast"),
                   .side = node.Whole("side", 1),
                   .primary = node.Flag("primary", true),
                   .papers_effect = node.Number("papers_effect", 0),
                   .scale = node.Text("scale", ""),
                   .diverged = ReadDiverged(node),
                   .evidence = FindIfAny(functions_.evidence, node, "evidence"),
                   .obstacle = FindIfAny(functions_.obstacles, node, "obstacle")};
    try {
      claim.kind = ParseClaimKind(node.Text("kind", "difference"));
    } catch (const Error& error) {
      throw node.About("kind", error.what());
    }
    if (node.Has("outcome")) {
      const NamedOutcome& outcome = Find(outcomes_, node, "outcome");
      claim.outcome = outcome.of;
      claim.margin = outcome.margin;
      claim.contrast += outcome.note;
    }
    if (node.Has("margin")) claim.margin = ReadMargin(node.Table("margin"));
    if (node.Has("control")) claim.control = ReadControl(node.Table("control"));
    if (node.Has("reference")) claim.reference = node.Number("reference", 0);
    ReadArms(node, claim);
    if (claim.reference && claim.arms.empty()) claim.arms.emplace_back(Picks(), 1);  // the centre
    if (claim.arms.empty() && !claim.evidence) throw node.About("arms", "is missing");
    node.Table("each").Values();
    node.CheckTaken();
    return claim;
  }

  // Returns the control of an equivalence: { text, arms } or { none }.
  ControlRow ReadControl(Node table) const {
    ControlRow control{.text = table.Text("text", ""), .none = table.Text("none", "")};
    for (const std::string& text : table.Texts("arms")) {
      control.arms.push_back(ReadPicks(table, text));
    }
    table.CheckTaken();
    if (!control.arms.empty() && control.arms.size() != 2) {
      throw table.About("arms", "expected two: the one that is known to fail, and the other");
    }
    if (control.text.empty() == control.none.empty()) {
      throw table.About("text", "expected either this, the control in words, or 'none', why not");
    }
    return control;
  }

  // Arms without weights are differences, the first minus the second and so on.
  void ReadArms(Node& node, ClaimRow& claim) const {
    const std::vector<std::string> texts = node.Texts("arms");
    std::vector<double> weights;
    if (node.Has("weights")) {
      weights = node.Numbers("weights").first;
    } else {
      claim.arms_of_each = 2;
      const bool alone = claim.reference || claim.kind == ClaimKind::kDivergence;
      if (texts.size() % 2 != 0 && !alone) {
        throw node.About("arms", "expected an even number of them, or weights");
      }
      while (weights.size() < texts.size()) weights.insert(weights.end(), {1, -1});
    }
    if (texts.size() > weights.size()) throw node.About("weights", "expected one for each arm");
    for (size_t i = 0; i < texts.size(); ++i) {
      claim.arms.emplace_back(ReadPicks(node, texts[i]), weights[i]);
    }
  }

  // Reads "AXIS=VALUE AXIS=VALUE".
  Picks ReadPicks(const Node& node, const std::string& text) const {
    Picks picks;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == word.npos) {
        throw node.About("arms", fmt::format("'{}' is not AXIS=VALUE", word));
      }
      picks.push_back(ReadPick(node, word.substr(0, equals), word.substr(equals + 1)));
    }
    return picks;
  }

  Pick ReadPick(const Node& node, const std::string& axis, const std::string& value) const {
    if (!value.starts_with('$')) return {axis, value};
    const auto found = functions_.values.find(value.substr(1));
    if (found != functions_.values.end()) return {.axis = axis, .of = found->second};
    throw node.About("arms", fmt::format("there is no function '{}'", value));
  }

  static std::optional<Diverged> ReadDiverged(Node& node) {
    const std::string text = node.Text("diverged", "");
    if (text.empty()) return std::nullopt;
    if (text == "missing") return Diverged::kMissing;
    if (text == "as-value") return Diverged::kAsValue;
    throw node.About("diverged", NotOneOf("the rule", text, "missing, as-value").what());
  }

  const Functions& functions_;
  const NamedOutcomes& outcomes_;
  const Words& words_;
};

// ---- tables and figures

// Returns the columns that a study may have: its own, and those of all.
Named<EndColumn> EndColumnsOf(const Functions& functions) {
  Named<EndColumn> columns;
  for (const EndColumn& column : functions.columns) columns.emplace(column.column.name, column);
  for (const auto& make : {StatusColumn,
                           StepsColumn,
                           ParametersColumn,
                           StartLossColumn,
                           TrainLossColumn,
                           ValidLossColumn,
                           ZeroShotColumn,
                           EarlyLossColumn,
                           ChanceLossColumn}) {
    EndColumn column = make();
    columns.emplace(column.column.name, std::move(column));
  }
  return columns;
}

std::vector<EndColumn> ReadEndColumns(Node& node, const Functions& functions) {
  const Named<EndColumn> all = EndColumnsOf(functions);
  std::vector<EndColumn> columns;
  for (const std::string& name : node.Texts("columns")) {
    columns.push_back(FindNamed(all, name, "the column", node, "columns"));
  }
  return columns;
}

MeasuredTable ReadTable(Node& node) {
  MeasuredTable table{node.Text("name"), ReadColumns(node)};
  node.CheckTaken();
  return table;
}

ProbeSpec ReadProbe(Node& node, const Functions& functions) {
  Named<ProbeSpec> probes = functions.probes;
  const std::string measure = node.Text("measure");
  const bool losses = measure == "curves" || measure == "validations";
  const std::string unit = losses ? node.Text("unit", "nats") : "";
  probes.emplace("curves", Curves(unit));
  probes.emplace("validations", Validations(unit));
  probes.emplace("residual-stream", ResidualStream());
  probes.emplace("quantized-operands", QuantizedOperands());
  const bool end = measure == "end-of-training";
  probes.emplace(
      "end-of-training",
      end ? EndOfTraining(node.Text("table"), ReadEndColumns(node, functions)) : ProbeSpec());
  ProbeSpec probe = Find(probes, node, "measure");
  if (node.Has("tables") && !probe.tables.empty()) {
    throw node.About("tables", "what is measured has its own tables");
  }
  for (Node& table : node.Tables("tables")) probe.tables.push_back(ReadTable(table));
  return probe;
}

// Throws Error unless an axis has the name under a key, or each of the names.
void RequireAxes(Node& node, std::string_view key, const std::vector<Axis>& axes) {
  for (const std::string& name : node.Texts(key)) {
    if (std::ranges::count(axes, name, &Axis::name) > 0) continue;
    throw node.About(key, NotOneOf("the axis", name, NameList(axes, &Axis::name)).what());
  }
}

DerivedTable ReadOutcomeTable(Node& node, const std::vector<Axis>& axes) {
  std::vector<GapColumn> gaps;
  for (Node& gap : node.Tables("gaps")) {
    RequireAxes(gap, "baseline_of", axes);
    gaps.push_back({gap.Text("name"), gap.Text("meaning"), gap.Texts("baseline_of")});
    gap.CheckTaken();
  }
  return Outcomes(gaps);
}

DerivedTable ReadMeans(Node& node, const NamedOutcomes& outcomes) {
  std::vector<MeanColumn> columns;
  for (Node& column : node.Tables("columns")) {
    columns.push_back({column.Text("name"),
                       column.Text("meaning"),
                       column.Flag("interval", false),
                       column.Flag("finished", false),
                       column.Flag("diverged", false)});
    if (column.Has("outcome")) columns.back().outcome = Find(outcomes, column, "outcome").of;
    column.CheckTaken();
  }
  return ArmMeans(node.Text("name"), columns);
}

DerivedTable ReadDerived(Node& node,
                         const Study& study,
                         const Functions& functions,
                         const NamedOutcomes& outcomes) {
  const std::string rows = node.Text("rows");
  if (rows == "outcomes") return ReadOutcomeTable(node, study.axes);
  if (rows == "means") return ReadMeans(node, outcomes);
  Named<int> known = {{"outcomes", 0}, {"means", 0}};
  for (const auto& [name, function] : functions.tables) known.emplace(name, 0);
  Find(known, node, "rows");
  return {.name = node.Text("name"),
          .columns = ReadColumns(node),
          .of_arms = node.Flag("of_arms", false),
          .rows = Find(functions.tables, node, "rows")};
}

// Returns a function that puts the value of a panel into a text, in place of {}.
std::function<std::string(const std::string&)> PanelTitle(const std::string& pattern) {
  if (pattern.empty()) return {};
  const size_t at = pattern.find("{}");
  if (at == pattern.npos) return [=](const std::string&) { return pattern; };
  return [=](const std::string& value) {
    return pattern.substr(0, at) + value + pattern.substr(at + 2);
  };
}

// Throws Error unless a table of the study has the columns under these keys.
void RequireColumns(Node& node, const Study& study, std::initializer_list<const char*> keys) {
  Named<Named<Column>> tables;
  for (const TableSpec& table : TablesOf(study)) {
    Named<Column>& columns = tables[table.name];
    for (const Column& column : table.columns) columns.emplace(column.name, column);
  }
  const Named<Column>& columns = Find(tables, node, "table");
  for (const char* const key : keys) {
    const std::string name = node.Text(key, "");
    if (!name.empty()) FindNamed(columns, name, "the column", node, key);
  }
}

// Throws Error if dots of several arms would lie in one row.
void RequireOneArm(Node& node, const Study& study) {
  if (study.centre) return;
  const std::string table = node.Text("table");
  const std::vector<TableSpec> tables = TablesOf(study);
  const auto spec = std::ranges::find(tables, table, &TableSpec::name);
  for (const Axis& axis : study.axes) {
    const bool differs = std::ranges::count(spec->columns, axis.name, &Column::name) > 0;
    const auto shows = [&](const char* key) { return node.Text(key, "") == axis.name; };
    if (!differs || shows("along") || shows("line") || shows("panel")) continue;
    throw node.About(
        "along",
        fmt::format("{} also has rows for each {}: name it as line or panel", table, axis.name));
  }
}

std::function<Figure(const Results&)> ReadDots(Node& node, const Study& study) {
  RequireColumns(node, study, {"along", "line", "panel", "x"});
  RequireOneArm(node, study);
  return Draw(Dots{.name = node.Text("name"),
                   .title = node.Text("title"),
                   .table = node.Text("table"),
                   .along = node.Text("along"),
                   .line = node.Text("line", ""),
                   .panel = node.Text("panel", ""),
                   .x = node.Text("x"),
                   .x_label = node.Text("x_label"),
                   .y_label = node.Text("y_label"),
                   .log10 = node.Flag("log10", false),
                   .columns = node.Whole("columns", 2),
                   .panel_title = PanelTitle(node.Text("panel_title", ""))});
}

std::function<Figure(const Results&)> ReadLines(Node& node,
                                                const Study& study,
                                                const Functions& functions) {
  RequireColumns(node, study, {"panel", "line", "x", "y", "by"});
  return Draw(Lines{.name = node.Text("name"),
                    .title = node.Text("title"),
                    .table = node.Text("table"),
                    .panel = node.Text("panel"),
                    .line = node.Text("line"),
                    .x = node.Text("x"),
                    .y = node.Text("y"),
                    .x_label = node.Text("x_label"),
                    .y_label = node.Text("y_label"),
                    .log10 = node.Flag("log10", false),
                    .to_last = node.Flag("to_last", false),
                    .markers = node.Flag("markers", false),
                    .columns = node.Whole("columns", 2),
                    .by = node.Text("by", ""),
                    .panel_title = PanelTitle(node.Text("panel_title", "")),
                    .rows = FindIfAny(functions.rows, node, "rows")});
}

std::function<Figure(const Results&)> ReadLosses(Node& node, const Study& study) {
  for (const char* const key : {"panel", "line"}) RequireAxes(node, key, study.axes);
  return LossFigure(node.Text("name"),
                    node.Text("title"),
                    node.Text("panel"),
                    node.Text("line"),
                    PanelTitle(node.Text("panel_title", "")));
}

std::function<Figure(const Results&)> ReadGaps(Node& node, const Study& study) {
  for (const char* const key : {"along", "line"}) RequireAxes(node, key, study.axes);
  return GapFigure(node.Text("name"), node.Text("title"), node.Text("along"), node.Text("line"));
}

std::function<Figure(const Results&)> ReadFigure(Node& node,
                                                 const Study& study,
                                                 const Functions& functions) {
  const std::string draw = node.Text("draw");
  if (draw == "lines") return ReadLines(node, study, functions);
  if (draw == "dots") return ReadDots(node, study);
  if (draw == "losses") return ReadLosses(node, study);
  if (draw == "gaps") return ReadGaps(node, study);
  auto figures = functions.figures;
  for (const char* const name : {"lines", "dots", "losses", "gaps"}) figures.emplace(name, nullptr);
  return Find(figures, node, "draw");
}

// ---- words about the run

// Returns the function that fills a text with values of options, {NAME}, and of functions, {$NAME}.
std::function<std::string(const Settings&)> ReadScale(Node& root,
                                                      const Study& study,
                                                      const Functions& functions) {
  const std::string pattern = root.Text("scale");
  const std::vector<OptionRow> options = OptionsOf(study);
  Fill(pattern, [&](const std::string& name) {
    if (name.starts_with('$')) {
      if (functions.values.contains(name.substr(1))) return name;
      throw root.About("scale", fmt::format("there is no function '{}'", name));
    }
    if (std::ranges::count(options, name, &OptionRow::name) > 0) return name;
    const std::string list = NameList(options, &OptionRow::name);
    throw root.About("scale", NotOneOf("the option", name, list).what());
  });
  return [pattern, values = functions.values](const Settings& settings) {
    return Fill(pattern, [&](const std::string& name) {
      return name.starts_with('$') ? values.at(name.substr(1))(settings) : settings.Get(name);
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
  if (paper != "SwitchBack" && paper != "Fishman") {
    throw root.About("paper", NotOneOf("the paper", paper, "SwitchBack, Fishman").what());
  }
  const PaperTraining training{paper == "Fishman" ? Paper::kFishman : Paper::kSwitchBack, figure};
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

// Reads each table of an array, whose keys must all be known.
template <typename T, typename Function>
std::vector<T> ReadEach(Node& root, std::string_view key, Function read) {
  std::vector<T> results;
  for (Node& table : root.Tables(key)) {
    results.push_back(read(table));
    table.CheckTaken();
  }
  return results;
}

}  // namespace

Study ReadStudy(std::string_view text, std::string_view name, const Functions& functions) {
  Node root = Node::Read(text, name);
  Study study;
  study.name = root.Text("name");
  study.title = root.Text("title");
  study.reproduces = root.Text("reproduces");
  study.description = root.Text("description");
  study.fixed = OptionTexts(root.Table("fixed"));
  study.defaults = OptionTexts(root.Table("defaults"));
  study.help = OptionTexts(root.Table("help"));
  study.presets = ReadPresets(root);
  study.settings = ReadEach<Setting>(root, "settings", ReadSetting);
  study.before = OptionTexts(root.Table("before"));
  const ChoiceMakers makers = WithSizes(functions.choices);
  study.axes =
      ReadEach<Axis>(root, "axes", [&](Node& node) { return ReadAxis(node, makers, functions); });
  ReadArmsOf(root, study);
  study.forks_from = ForksFrom(study.axes, ReadForksFrom(root, study.axes));
  study.rates = ReadRates(root);
  study.label = root.Text("label");
  study.arm_text = root.Text("arm");
  study.scale = ReadScale(root, study, functions);
  study.others.tables = ReadEach<MeasuredTable>(root, "tables", ReadTable);
  study.probes =
      ReadEach<ProbeSpec>(root, "probes", [&](Node& node) { return ReadProbe(node, functions); });
  study.runs = root.Text("runs");
  study.takes_rows = root.Flag("takes_rows", true);
  study.texts = root.Texts("texts");
  study.seeds_first = root.Flag("seeds_first", false);
  const Texts texts = OptionTexts(root.Table("words"));
  const Words words(texts.begin(), texts.end());
  const NamedOutcomes outcomes = ReadOutcomes(root, functions, words);
  study.derived = ReadEach<DerivedTable>(
      root, "derived", [&](Node& node) { return ReadDerived(node, study, functions, outcomes); });
  const ClaimReader claims(functions, outcomes, words);
  study.common = claims.ReadCommon(root.Table("every_claim"));
  for (Node& node : root.Tables("claims")) {
    for (ClaimRow& claim : claims.Read(node)) study.claims.push_back(std::move(claim));
  }
  study.figures = ReadEach<std::function<Figure(const Results&)>>(
      root, "figures", [&](Node& node) { return ReadFigure(node, study, functions); });
  study.advice = ReadEach<Advice>(root, "advice", ReadAdvice);
  study.paper = ReadPaper(root);
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
