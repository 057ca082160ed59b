// Which rules there are for which weights, and where.
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/formats/value_table.h"
#include "numsim/updates/internal/update_method.h"
#include "numsim/updates/internal/update_on_device.h"

namespace numsim {

namespace {

void CheckSymmetry(const UpdateRule& rule, const FormatSpec& format) {
  if (!MethodOf(rule.kind).traits.needs_symmetry || !format.full_range) return;
  throw Error::Format(
      "update rule {}: weights of format {}, whose lowest number has no opposite; expected {}:range=symmetric",
      ToString(rule.kind),
      ToString(format),
      ToString(format));
}

}  // namespace

void CheckUpdateRule(const UpdateRule& rule, const Format& format) {
  CheckSymmetry(rule, format.spec);
  const UpdateMethod& method = MethodOf(rule.kind);
  const FormatSpec* const only = method.traits.only_format;
  if (only != nullptr && format.spec != *only) {
    throw Error::Format("update rule {}: weights of format {}, expected {}",
                        ToString(rule.kind),
                        format.name,
                        ToString(*only));
  }
  method.CheckFormat(rule, format);
}

void CheckRule(const UpdateRule& rule, const FormatSpec& format) {
  RefuseTable(format, "a weight update");
  CheckSymmetry(rule, format);
  const UpdateMethod& method = MethodOf(rule.kind);
  const FormatSpec* const only = method.traits.only_format;
  NUMSIM_REQUIRE(!method.traits.has_scope || ElementGroups::Has(rule.scope),
                 "update rule {}: scope {}, expected tensor, row or block:N",
                 ToString(rule.kind),
                 ToString(rule.scope));
  NUMSIM_REQUIRE(only == nullptr || format == *only,
                 "update rule {}: weights of {}, expected {}",
                 ToString(rule.kind),
                 ToString(format),
                 ToString(*only));
  method.CheckOptions(rule);
}

bool Serves(const UpdateRule& rule, const Format& format) {
  try {
    CheckUpdateRule(rule, format);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool ServesOnDevice(const UpdateRule& rule, const FormatSpec& format) {
  return MethodOf(rule.kind).traits.on_device &&
         ScopeOf(rule).granularity == Granularity::kTensor && HasStepRule(WeightPlan(format)) &&
         HasStepRule(OwnPlan(rule, format));
}

void CheckOnDevice(const UpdateRule& rule, const FormatSpec& format) {
  if (ServesOnDevice(rule, format)) return;
  std::vector<std::string_view> kinds;
  for (const UpdateKind kind : UpdateKinds()) {
    if (MethodOf(kind).traits.on_device) kinds.push_back(ToString(kind));
  }
  throw Error::Format(
      "the device has no rule {} for weights of that format: it has {}, with one alpha per tensor, "
      "for signed formats with a zero whose values float32 holds as normal numbers",
      ToString(rule),
      fmt::join(kinds, ", "));
}

}  // namespace numsim
