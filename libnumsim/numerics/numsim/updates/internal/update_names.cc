// The kinds of update rules by name, and the text form of rules.
#include <fmt/format.h>

#include <array>

#include "numsim/base/keyword.h"
#include "numsim/base/split_list.h"
#include "numsim/updates/internal/update_method.h"
#include "numsim/updates/update_rule.h"

namespace numsim {
namespace {

constexpr Keyword<UpdateKind> kKinds[] = {
#define NUMSIM_UPDATE_KIND(kind, name) {name, UpdateKind::k##kind},
#include "numsim/updates/update_kinds.inc"
#undef NUMSIM_UPDATE_KIND
};

constexpr auto kKindList = [] {
  std::array<UpdateKind, std::size(kKinds)> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = kKinds[i].value;
  return kinds;
}();

constexpr Keyword<UpdateStatus> kStatuses[] = {
    {"ok", UpdateStatus::kOk},
    {"below-min-step", UpdateStatus::kBelowMinStep},
    {"not-converged", UpdateStatus::kNotConverged},
    {"saturated", UpdateStatus::kSaturated},
    {"nonfinite", UpdateStatus::kNonfinite},
    {"zero-update", UpdateStatus::kZeroUpdate},
};

void SetScope(UpdateRule& rule, std::string_view scope, std::string_view whole) {
  if (!HasScope(rule.kind)) {
    throw Error::Format("update rule '{}': {} has no scope", whole, ToString(rule.kind));
  }
  try {
    rule.scope = ParseScaleLayout(scope);
    if (ElementGroups::Has(rule.scope)) return;
  } catch (const Error&) {
    // The error below lists the scopes that are allowed here.
  }
  throw Error::Format(
      "update rule '{}': scope '{}' is not one of tensor, row, block:N with N >= 1", whole, scope);
}

}  // namespace

const UpdateMethod& MethodOf(UpdateKind rule) {
  switch (rule) {
#define NUMSIM_UPDATE_KIND(kind, name) \
  case UpdateKind::k##kind:            \
    return kind##Method();
#include "numsim/updates/update_kinds.inc"
#undef NUMSIM_UPDATE_KIND
  }
  NUMSIM_CHECK(false, "kind {}", static_cast<int>(rule));
  return NaiveMethod();
}

bool HasScope(UpdateKind kind) { return MethodOf(kind).traits.has_scope; }

bool HasState(UpdateKind kind) { return MethodOf(kind).traits.state != RuleState::kNone; }

bool Searches(UpdateKind kind) { return MethodOf(kind).traits.searches; }

UpdateRule ParseUpdateRule(std::string_view text) {
  const size_t at = text.rfind('@');
  const std::string_view head = text.substr(0, at);
  const size_t colon = head.find(':');
  UpdateRule rule;
  rule.kind = ParseKeyword(kKinds, "update rule", head.substr(0, colon));
  if (colon != head.npos) {
    MethodOf(rule.kind).SetArgument(rule, head.substr(colon + 1), text);
  }
  if (at != text.npos) SetScope(rule, text.substr(at + 1), text);
  return rule;
}

std::vector<UpdateRule> ParseUpdateRuleList(std::string_view text) {
  std::vector<UpdateRule> rules;
  for (const std::string& piece : SplitFormatList(text)) rules.push_back(ParseUpdateRule(piece));
  return rules;
}

std::string ToString(const UpdateRule& rule) {
  std::string text(ToString(rule.kind));
  const std::string argument = MethodOf(rule.kind).ArgumentText(rule);
  if (!argument.empty()) text += fmt::format(":{}", argument);
  if (HasScope(rule.kind) && rule.scope.granularity != Granularity::kTensor) {
    text += fmt::format("@{}", ToString(rule.scope));
  }
  return text;
}

std::string_view ToString(UpdateKind kind) { return KeywordToString(kKinds, kind); }

std::string_view ToString(UpdateStatus status) { return KeywordToString(kStatuses, status); }

std::span<const UpdateKind> UpdateKinds() { return kKindList; }

}  // namespace numsim
