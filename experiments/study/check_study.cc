#include "experiments/study/check_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "experiments/study/assemble.h"
#include "experiments/study/name_list.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments::study {
namespace {

Error About(const Study& study, const std::string& part, const std::string& message) {
  return Error::Format("{}: {}: {}", study.name, part, message);
}

// Throws Error for the first of these names that an earlier one has.
class Distinct {
 public:
  Distinct(const Study& study, std::string part) : study_(study), part_(std::move(part)) {}
  void Add(const std::string& name) {
    if (!names_.insert(name).second) {
      throw About(study_, part_, fmt::format("'{}' is there twice", name));
    }
  }

 private:
  const Study& study_;
  std::string part_;
  std::set<std::string> names_;
};

// Throws Error unless all names of [help] and [before] are options.
void CheckNames(const Study& study) {
  const std::vector<OptionRow> options = OptionsOf(study);
  for (const auto& [table, texts] : {std::pair{"help", &study.help}, {"before", &study.before}}) {
    for (const auto& [name, text] : *texts) {
      if (std::ranges::count(options, name, &OptionRow::name) > 0) continue;
      const std::string list = NameList(options, &OptionRow::name);
      throw About(study, table, NotOneOf("option", name, list).what());
    }
  }
}

// Throws Error for a key that `numsim train` does not have, and for a value that names no option.
class KeyChecker {
 public:
  explicit KeyChecker(const Study& study) : study_(study) {
    TrainConfig config;
    config.linear.overrides.emplace_back();
    for (const ConfigKey& key : ConfigKeys(config)) keys_.insert(key.name);
    for (const OptionRow& row : OptionsOf(study)) options_.insert(row.name);
  }

  void Check(const std::string& owner, const Keys& assignments) const {
    for (const std::string& assignment : assignments) {
      const size_t equals = std::min(assignment.find('='), assignment.size());
      const std::string key = assignment.substr(0, equals);
      const std::string value = assignment.substr(std::min(equals + 1, assignment.size()));
      const bool option = value.size() < 2 || value[0] != '$' || options_.contains(value.substr(1));
      if (keys_.contains(key) && option) continue;
      throw About(
          study_,
          owner,
          fmt::format(
              "'{}' {}", assignment, option ? "sets no key of numsim train" : "names no option"));
    }
  }
  void Check(const std::string& owner, const std::vector<Choice>& choices) const {
    for (const Choice& choice : choices) Check(owner + " " + choice.name, choice.keys);
  }

 private:
  const Study& study_;
  std::set<std::string> keys_, options_;
};

// Throws Error unless an axis has an option for each choice of the axis that Axis::option_by names.
void CheckOptionBy(const Study& study, const Axis& axis) {
  const auto by = std::ranges::find(study.axes, axis.option_by, &Axis::name);
  if (by != study.axes.end() && by->choices.size() == axis.options.size()) return;
  throw About(study,
              "axis " + axis.name,
              fmt::format("option_by: expected an axis with as many choices as there are options, "
                          "found '{}'",
                          axis.option_by));
}

void CheckKeys(const Study& study) {
  const KeyChecker checker(study);
  for (const Setting& setting : study.settings) {
    if (!Trains(study) && !(setting.keys.empty() && setting.choices.empty())) {
      throw About(study, setting.name, "keys: the study trains nothing");
    }
    checker.Check(setting.name, setting.keys);
    checker.Check(setting.name, setting.choices);
  }
  for (const Axis& axis : study.axes) {
    checker.Check(axis.name, axis.choices);
    if (!axis.option_by.empty()) CheckOptionBy(study, axis);
  }
}

// Throws Error unless the names in braces are axes.
void CheckText(const Study& study, const std::string& part, const std::string& pattern) {
  try {
    Fill(pattern, [&](const std::string& name) {
      NumberOf(study, name);
      return name;
    });
  } catch (const Error& error) {
    throw About(study, part, error.what());
  }
}

void CheckAxes(const Study& study) {
  std::set<std::string> options;
  for (const OptionRow& row : OptionsOf(study)) options.insert(row.name);
  if (study.rates) {
    for (const std::string& option : study.rates->options) {
      if (options.contains(option)) continue;
      throw About(study, "rates", fmt::format("options: there is no option {}", option));
    }
    if (!study.rates->axis.empty()) NumberOf(study, study.rates->axis);
  }
  Distinct axes(study, "axes");
  axes.Add("seed");  // a column of every table
  for (const Axis& axis : study.axes) {
    axes.Add(axis.name);
    Distinct choices(study, "axis " + axis.name);
    for (const Choice& choice : axis.choices) choices.Add(choice.name);
    for (const std::string& option : axis.options) {
      if (options.contains(option)) continue;
      throw About(study,
                  "axis " + axis.name,
                  fmt::format("the first preset has no value for its option: study.{}", option));
    }
  }
}

// Throws Error unless the axes can make an arm.
void CheckArm(const Study& study, const Picks& picks) {
  for (const Pick& pick : picks) {
    const Axis& axis = study.axes[NumberOf(study, pick.axis)];
    if (!pick.of) ChoiceOf(axis, pick.name);
  }
}

// Throws Error unless the axes can make the arms of a claim, and its kind takes their weights.
void CheckArms(const Study& study, const ClaimRow& claim, const std::string& part) {
  double sum = 0;
  for (const auto& [picks, weight] : claim.arms) {
    sum += weight;
    try {
      CheckArm(study, picks);
    } catch (const Error& error) {
      std::string arm;
      for (const Pick& pick : picks) arm += (arm.empty() ? "" : " / ") + pick.name;
      throw About(study, part, fmt::format("arm '{}': {}", arm, error.what()));
    }
  }
  if (claim.reference && claim.arms.size() != 1) {
    throw About(study, part, "reference: expected one arm");
  }
  if (claim.reference || claim.kind == ClaimKind::kDivergence || sum == 0) return;
  throw About(study, part, fmt::format("the weights of its arms add up to {}, expected 0", sum));
}

// A claim that a ratio is smaller names at most half of the possible effect: no rate is below 0.
void CheckRatio(const Study& study, const ClaimRow& claim, const std::string& part, double margin) {
  if (claim.kind != ClaimKind::kRatio) return;
  if (claim.side < 0 && !(margin >= 0.5 && margin <= 1)) {
    throw About(study, part, "margin: a ratio of side -1 needs one from 0.5 to 1");
  }
  if (claim.side > 0 && !(margin >= 1)) {
    throw About(study, part, "margin: a ratio of side 1 needs one of at least 1");
  }
  if (claim.arms_of_each != 2) throw About(study, part, "a ratio has no reference and no weights");
}

void CheckControl(const Study& study, const ClaimRow& claim, const std::string& part) {
  const ControlRow& control = claim.control;
  const bool named = !control.text.empty() || !control.none.empty();
  if (claim.kind != ClaimKind::kEquivalence && named) {
    throw About(study, part, "control: only an equivalence has one");
  }
  if (claim.on) {
    if (!control.text.empty() && control.arms.empty() && control.where.empty()) {
      throw About(study, part, "control: expected where or arms");
    }
    return;
  }
  if (!control.text.empty() && control.arms.empty() && !claim.evidence) {
    throw About(study, part, "control.arms: is missing");
  }
  for (const Picks& picks : control.arms) {
    try {
      CheckArm(study, picks);
    } catch (const Error& error) {
      throw About(study, part, fmt::format("control: {}", error.what()));
    }
  }
}

void CheckPossible(const Study& study, const ClaimRow& claim, const std::string& part) {
  if (claim.possible.empty()) return;
  if (claim.on || claim.kind != ClaimKind::kDifference) {
    throw About(study, part, "possible: only a difference of trainings has it");
  }
  for (const Picks& picks : claim.possible) {
    try {
      CheckArm(study, picks);
    } catch (const Error& error) {
      throw About(study, part, fmt::format("possible: {}", error.what()));
    }
  }
}

void CheckClaim(const Study& study, const ClaimRow& claim) {
  const std::string part = "claim " + claim.name;
  const bool compares = !claim.evidence && !claim.on && !study.common.compare;
  if (compares && !claim.outcome && !study.common.outcome) {
    throw About(study, part, "outcome: is missing");
  }
  if (claim.side != 1 && claim.side != -1) {
    throw About(study, part, fmt::format("side: expected 1 or -1, found {}", claim.side));
  }
  const double margin = claim.margin.value_or(study.common.margin).value;
  if (claim.kind == ClaimKind::kEquivalence && !(margin > 0)) {
    throw About(study, part, "margin: an equivalence needs one above 0");
  }
  CheckRatio(study, claim, part, margin);
  CheckControl(study, claim, part);
  CheckPossible(study, claim, part);
  if (claim.on) return;  // its columns are those of a table, which the reader knows
  const auto same = [](const Picks& a, const Picks& b) {
    return std::ranges::equal(a, b, [](const Pick& x, const Pick& y) {
      return x.axis == y.axis && x.name == y.name && !x.of && !y.of;
    });
  };
  if (claim.arms.size() == 2 && same(claim.arms[0].first, claim.arms[1].first)) {
    throw About(study, part, "arms: both are the same");
  }
  CheckArms(study, claim, part);
}

}  // namespace

void CheckStudy(const Study& study) {
  CheckNames(study);
  CheckKeys(study);
  CheckAxes(study);
  CheckText(study, "label", study.label);
  CheckText(study, "arm", study.arm_text);
  Distinct claims(study, "claims");
  for (const ClaimRow& claim : study.claims) {
    claims.Add(claim.name);
    CheckClaim(study, claim);
  }
}

}  // namespace numsim::experiments::study
