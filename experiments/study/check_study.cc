#include "experiments/study/check_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "experiments/study/assemble.h"
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

void CheckText(const Study& study, const std::string& part, const std::string& pattern) {
  Fill(pattern, [&](const std::string& name) {
    std::string axes;
    for (const Axis& axis : study.axes) {
      if (axis.name == name) return name;
      axes += (axes.empty() ? "" : ", ") + axis.name;
    }
    throw About(study, part, NotOneOf("axis", name, axes).what());
  });
}

void CheckAxes(const Study& study) {
  std::set<std::string> options;
  for (const OptionRow& row : OptionsOf(study)) options.insert(row.name);
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

// Requires Margin, the claim's own or that of all claims.
void CheckClaim(const Study& study, const ClaimRow& claim) {
  const std::string part = "claim " + claim.name;
  const bool compares = !claim.evidence && !study.common.compare;
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
  const auto same = [](const Picks& a, const Picks& b) {
    return std::ranges::equal(a, b, [](const Pick& x, const Pick& y) {
      return x.axis == y.axis && x.name == y.name && !x.of && !y.of;
    });
  };
  if (claim.arms.size() == 2 && same(claim.arms[0].first, claim.arms[1].first)) {
    throw About(study, part, "arms: both are the same");
  }
}

}  // namespace

void CheckStudy(const Study& study) {
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
