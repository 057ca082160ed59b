#include "experiments/study/read_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/study/assemble.h"

namespace numsim::experiments::study {
namespace {

std::optional<Diverged> ReadDiverged(Node& node) {
  const std::string text = node.Text("diverged", "");
  if (text.empty()) return std::nullopt;
  if (text == "missing") return Diverged::kMissing;
  if (text == "as-value") return Diverged::kAsValue;
  throw node.About("diverged", NotOneOf("the rule", text, "missing, as-value").what());
}

class ClaimReader {
 public:
  // All arguments must outlive this.
  ClaimReader(const Functions& functions,
              const NamedOutcomes& outcomes,
              const Words& words,
              const Study& study)
      : functions_(functions),
        outcomes_(outcomes),
        words_(words),
        study_(study),
        tables_(ColumnsOfTables(study)) {}

  // Takes tables with keys that several claims share.
  void Share(const std::vector<Node>& templates) {
    for (const Node& one : templates) templates_.emplace(one.key(), one);
  }

  // Returns the claims of a table: one for each row of `each`, in whose texts {KEY} is the row's value, and
  // of each of these one for each of `templates`.
  std::vector<ClaimRow> Read(Node& node) const {
    std::vector<std::string> kinds = node.Texts("templates");
    if (kinds.empty()) kinds.emplace_back();
    std::vector<Node> rows = Completed(node, "").Tables("each");
    if (rows.empty()) rows.emplace_back();
    std::vector<ClaimRow> claims;
    for (Node& row : rows) {
      const Texts texts = OptionTexts(row);
      for (const std::string& kind : kinds) {
        claims.push_back(ReadOne(Completed(node, kind), {texts.begin(), texts.end()}));
      }
    }
    return claims;
  }

  Claims ReadCommon(Node common) {
    common.Replace(words_);
    Claims claims{.items = common.Texts("items"), .scale = common.Text("scale", "")};
    if (common.Has("margin")) claims.margin = ReadMargin(common.Table("margin"));
    claims.diverged = ReadDiverged(common).value_or(Diverged::kMissing);
    if (common.Has("outcome")) {
      const NamedOutcome& outcome = Find(outcomes_, common, "outcome");
      claims.outcome = outcome.of;
      common_outcome_ = common.Text("outcome");
      if (!common.Has("margin")) claims.margin = outcome.margin.value_or(Margin());
    }
    common.CheckTaken();
    return claims;
  }

 private:
  // Returns a table with the keys of a template, "": of none, and then of those under its key `of`.
  Node Completed(const Node& node, const std::string& kind) const {
    Node whole = node;
    const std::vector<std::string> others = whole.Texts("of");
    if (!kind.empty()) Inherit(kind, "templates", {}, whole);
    for (const std::string& name : others) Inherit(name, "of", {}, whole);
    return whole;
  }

  // Adds the keys of a template, and of those that it names itself. `path` led to it.
  void Inherit(const std::string& name,
               const char* key,
               std::vector<std::string> path,
               Node& node) const {
    if (std::ranges::count(path, name) > 0) {
      throw node.About(key, fmt::format("the template '{}' is part of itself", name));
    }
    Node added = FindNamed(templates_, name, "the template", node, key);
    node.AddMissing(added, "where");
    path.push_back(name);
    for (const std::string& other : added.Texts("of")) Inherit(other, "of", path, node);
  }

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
    claim.possible = ReadPossible(node);
    if (node.Has("reference")) claim.reference = node.Number("reference", 0);
    ReadArms(node, claim);
    if (!Trains(study_)) {
      if (!claim.evidence) ReadRows(node, row, claim);
    } else {
      if (claim.reference && claim.arms.empty()) claim.arms.emplace_back(Picks(), 1);  // the centre
      if (claim.arms.empty() && !claim.evidence) throw node.About("arms", "is missing");
    }
    for (const char* const key : {"of", "templates"}) node.Texts(key);
    node.Table("each").Values();
    node.CheckTaken();
    return claim;
  }

  // Returns the control of an equivalence: { text, arms } or { none }.
  ControlRow ReadControl(Node table) const {
    ControlRow control{.text = table.Text("text", ""), .none = table.Text("none", "")};
    for (const std::string& text : table.Texts("arms")) {
      control.arms.push_back(ReadPicks(table, "arms", text, functions_));
    }
    if (!Trains(study_)) control.where = ReadConditions(table.Table("where"), functions_);
    table.CheckTaken();
    if (!control.arms.empty() && control.arms.size() != 2) {
      throw table.About("arms", "expected two: the one that is known to fail, and the other");
    }
    if (control.text.empty() == control.none.empty()) {
      throw table.About("text", "expected either this, the control in words, or 'none', why not");
    }
    return control;
  }

  // Returns the two arms between which the largest possible effect lies, or none.
  std::vector<Picks> ReadPossible(Node& node) const {
    std::vector<Picks> arms;
    for (const std::string& text : node.Texts("possible")) {
      arms.push_back(ReadPicks(node, "possible", text, functions_));
    }
    if (!arms.empty() && arms.size() != 2) {
      throw node.About("possible", "expected two arms, the one with the largest outcome first");
    }
    return arms;
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
      claim.arms.emplace_back(ReadPicks(node, "arms", texts[i], functions_), weights[i]);
    }
  }

  // Reads the rows that a claim of a study without trainings is about.
  void ReadRows(Node& node, const Words& row, ClaimRow& claim) const {
    const Named<Column>& columns = Find(tables_, node, "table");
    for (const auto& [key, text] : row) {  // it would stand in texts for the column's own values
      if (!columns.contains(key)) continue;
      throw node.About("each", fmt::format("'{}' is a column: expected another name", key));
    }
    RowsOfClaim& on = claim.on.emplace();
    on.table = node.Text("table");
    on.where = ReadConditions(node.Table("where"), functions_);
    on.each_of = node.Texts("each_of");
    on.arms_alone = node.Flag("arms_alone", false);
    on.missing = node.Text("missing");
    on.absent = node.Text("absent", "");
    on.unfit = FindIfAny(functions_.unfit, node, "unfit");
    on.rows = FindIfAny(functions_.rows, node, "rows");
    on.judge = FindIfAny(functions_.judges, node, "judge");
    on.bound = FindIfAny(functions_.bounds, node, "bound");
    on.reference = FindIfAny(functions_.values, node, "reference_of");
    RequireColumns(node, "where", on.where, columns);
    for (const auto& [picks, weight] : claim.arms) RequireColumns(node, "arms", picks, columns);
    for (const Picks& picks : claim.control.arms) {
      RequireColumns(node, "control", picks, columns);
    }
    RequireColumns(node, "control", claim.control.where, columns);
    RequireReason(node, "missing", on.missing, {on.where});
    RequireReason(node, "absent", on.absent, ConditionsOfArms(claim));
    for (const std::string& name : on.each_of) {
      FindNamed(columns, name, "the column", node, "each_of");
    }
    if (!on.judge) ReadComparison(node, columns, claim);
  }

  // Returns the conditions under which each arm of a claim and of its control is looked for.
  static std::vector<Picks> ConditionsOfArms(const ClaimRow& claim) {
    std::vector<Picks> conditions;
    for (const auto& [picks, weight] : claim.arms) conditions.push_back(picks);
    for (const Picks& picks : claim.control.arms) conditions.push_back(picks);
    const Picks& where = claim.on->where;
    for (Picks& picks : conditions) picks.insert(picks.end(), where.begin(), where.end());
    return conditions;
  }

  // Throws Error unless each name in braces of a reason is an option, {--NAME}, or a column of all of these
  // conditions.
  void RequireReason(const Node& node,
                     const char* key,
                     const std::string& reason,
                     const std::vector<Picks>& conditions) const {
    Fill(reason, [&](const std::string& name) {
      if (name.starts_with("--")) {
        RequireOption(node, key, name.substr(2), study_);
        return name;
      }
      for (const Picks& picks : conditions) {
        if (std::ranges::count(picks, name, &Pick::axis) > 0) continue;
        throw node.About(key, NotOneOf("the condition", name, NameList(picks, &Pick::axis)).what());
      }
      return name;
    });
  }

  // Reads what is compared: the outcome of arms, or of each seed with a number.
  void ReadComparison(Node& node, const Named<Column>& columns, ClaimRow& claim) const {
    claim.on->arm = node.Text("arm");
    Fill(claim.on->arm, [&](const std::string& name) {
      return FindNamed(columns, name, "the column", node, "arm").name;
    });
    if (!claim.outcome) claim.outcome = study_.common.outcome;
    if (!claim.outcome) throw node.About("outcome", "is missing");
    const std::string& column = OutcomeColumn(node);
    if (!column.empty()) {
      RequireNumbers(node, "outcome", FindNamed(columns, column, "the column", node, "outcome"));
    }
    const bool number = claim.reference || claim.on->reference;
    if (claim.arms.empty() != number) {
      throw node.About("arms", "expected either these or a reference");
    }
    if (!claim.arms.empty() && claim.on->absent.empty()) {
      throw node.About("absent", "is missing");
    }
  }

  // Returns the column that is the outcome of a claim; "" if it is a function.
  const std::string& OutcomeColumn(Node& node) const {
    const std::string name = node.Text("outcome", common_outcome_);
    return outcomes_.find(name)->second.column;
  }

  const Functions& functions_;
  const NamedOutcomes& outcomes_;
  const Words& words_;
  const Study& study_;
  const TableColumns tables_;
  Named<Node> templates_;
  std::string common_outcome_;
};

}  // namespace

NamedOutcomes ReadOutcomes(Node& root, const Functions& functions, const Words& words) {
  NamedOutcomes outcomes;
  for (const auto& [name, function] : functions.outcomes) outcomes[name].of = function;
  for (Node& node : root.Tables("outcomes")) {
    node.Replace(words);
    NamedOutcome& outcome = outcomes[node.key()];
    const std::string column = outcome.column = node.Text("column", "");
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

void ReadClaims(Node& root,
                const Functions& functions,
                const NamedOutcomes& outcomes,
                const Words& words,
                Study& study) {
  ClaimReader reader(functions, outcomes, words, study);
  reader.Share(root.Tables("templates"));
  study.common = reader.ReadCommon(root.Table("every_claim"));
  for (Node& node : root.Tables("claims")) {
    for (ClaimRow& claim : reader.Read(node)) study.claims.push_back(std::move(claim));
  }
}

}  // namespace numsim::experiments::study
