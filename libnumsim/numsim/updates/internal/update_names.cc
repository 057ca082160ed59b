// The text form of update rules.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "numsim/base/keyword.h"
#include "numsim/base/split_list.h"
#include "numsim/updates/update_rule.h"

namespace numsim {
namespace {

constexpr Keyword<UpdateKind> kKinds[] = {
    {"naive", UpdateKind::kNaive},
    {"stochastic", UpdateKind::kStochastic},
    {"master-fp32", UpdateKind::kMasterFp32},
    {"master-fp16-scaled", UpdateKind::kMasterFp16Scaled},
    {"split-master", UpdateKind::kSplitMaster},
    {"kahan", UpdateKind::kKahan},
    {"note-as-printed", UpdateKind::kNoteAsPrinted},
    {"norm-matched", UpdateKind::kNormMatched},
    {"projection-matched", UpdateKind::kProjectionMatched},
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

constexpr Keyword<SmallStep> kSmallSteps[] = {
    {"one", SmallStep::kOneAtRandom},
    {"none", SmallStep::kNone},
};

bool IsMatched(UpdateKind kind) {
  return kind == UpdateKind::kNormMatched || kind == UpdateKind::kProjectionMatched;
}

int ParseRandomBits(std::string_view text, std::string_view whole) {
  int bits = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, bits);
  if (status != std::errc() || stop != end || bits < 1 || bits > 32) {
    throw Error::Format(
        "update rule '{}': '{}' is not a number of random bits from 1 to 32", whole, text);
  }
  return bits;
}

void SetArgument(UpdateRule& rule, std::string_view argument, std::string_view whole) {
  if (rule.kind == UpdateKind::kStochastic) {
    rule.random_bits = ParseRandomBits(argument, whole);
  } else if (rule.kind == UpdateKind::kKahan) {
    rule.compensation = ParseFormat(argument);
  } else if (IsMatched(rule.kind)) {
    rule.small_step =
        ParseKeyword(kSmallSteps, fmt::format("update rule '{}': small step", whole), argument);
  } else {
    throw Error::Format("update rule '{}': {} takes no argument", whole, ToString(rule.kind));
  }
}

bool IsScope(const ScaleLayout& layout) {
  return layout.granularity == Granularity::kTensor || layout.granularity == Granularity::kRow ||
         layout.granularity == Granularity::kBlock;
}

void SetScope(UpdateRule& rule, std::string_view scope, std::string_view whole) {
  if (!HasScope(rule.kind)) {
    throw Error::Format("update rule '{}': {} has no scope", whole, ToString(rule.kind));
  }
  try {
    rule.scope = ParseScaleLayout(scope);
    if (IsScope(rule.scope)) return;
  } catch (const Error&) {
    // The error below lists the scopes that are allowed here.
  }
  throw Error::Format(
      "update rule '{}': scope '{}' is not one of tensor, row, block:N with N >= 1", whole, scope);
}

std::string ArgumentText(const UpdateRule& rule) {
  if (rule.kind == UpdateKind::kStochastic && rule.random_bits != 32) {
    return fmt::format(":{}", rule.random_bits);
  }
  if (rule.kind == UpdateKind::kKahan && rule.compensation) return ":" + rule.compensation->name;
  if (IsMatched(rule.kind) && rule.small_step != SmallStep::kOneAtRandom) {
    return fmt::format(":{}", KeywordToString(kSmallSteps, rule.small_step));
  }
  return "";
}

}  // namespace

bool HasScope(UpdateKind kind) {
  return kind == UpdateKind::kMasterFp16Scaled || kind == UpdateKind::kNoteAsPrinted ||
         IsMatched(kind);
}

bool HasState(UpdateKind kind) {
  return kind == UpdateKind::kMasterFp32 || kind == UpdateKind::kMasterFp16Scaled ||
         kind == UpdateKind::kSplitMaster || kind == UpdateKind::kKahan;
}

bool Searches(UpdateKind kind) { return kind == UpdateKind::kNoteAsPrinted || IsMatched(kind); }

UpdateRule ParseUpdateRule(std::string_view text) {
  const size_t at = text.rfind('@');
  const std::string_view head = text.substr(0, at);
  const size_t colon = head.find(':');
  UpdateRule rule;
  rule.kind = ParseKeyword(kKinds, "update rule", head.substr(0, colon));
  if (colon != head.npos) SetArgument(rule, head.substr(colon + 1), text);
  if (at != text.npos) SetScope(rule, text.substr(at + 1), text);
  return rule;
}

std::vector<UpdateRule> ParseUpdateRuleList(std::string_view text) {
  std::vector<UpdateRule> rules;
  for (const std::string& piece : SplitFormatList(text)) rules.push_back(ParseUpdateRule(piece));
  return rules;
}

std::string ToString(const UpdateRule& rule) {
  std::string text = std::string(ToString(rule.kind)) + ArgumentText(rule);
  if (HasScope(rule.kind) && rule.scope.granularity != Granularity::kTensor) {
    text += "@" + ToString(rule.scope);
  }
  return text;
}

std::string_view ToString(UpdateKind kind) { return KeywordToString(kKinds, kind); }

std::string_view ToString(UpdateStatus status) { return KeywordToString(kStatuses, status); }

std::span<const UpdateKind> UpdateKinds() { return kKindList; }

}  // namespace numsim
