// Which rules there are for which weights, and where.
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/formats/named_formats.h"
#include "numsim/updates/internal/update_kinds.h"
#include "numsim/updates/internal/update_on_device.h"

namespace numsim {

void CheckUpdateRule(const UpdateRule& rule, const Format& format) {
  if (rule.kind == UpdateKind::kSplitMaster && format.spec != kBf16) {
    throw Error::Format(
        "update rule {}: weights of format {}, expected bf16", ToString(rule.kind), format.name);
  }
  if (rule.kind == UpdateKind::kKahan) {
    const Format& compensation = rule.compensation ? *rule.compensation : format;
    if (!compensation.spec.IsSigned() || compensation.spec.zero == Zero::kNone) {
      throw Error::Format(
          "update rule {}: a compensation in {}, expected a format with a sign and "
          "a zero",
          ToString(rule),
          compensation.name);
    }
  }
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
  switch (rule.kind) {
    case UpdateKind::kNaive:
    case UpdateKind::kStochastic:
    case UpdateKind::kMasterFp32:
    case UpdateKind::kSplitMaster:
    case UpdateKind::kKahan:
      break;
    case UpdateKind::kNormMatched:
    case UpdateKind::kProjectionMatched:
      if (rule.scope.granularity != Granularity::kTensor) return false;
      break;
    default:
      return false;
  }
  return HasStepRule(WeightPlan(format)) && HasStepRule(OwnPlan(rule, format));
}

void CheckOnDevice(const UpdateRule& rule, const FormatSpec& format) {
  if (ServesOnDevice(rule, format)) return;
  throw Error::Format(
      "the device has no rule {} for weights of that format: it has naive, stochastic, master-fp32, "
      "split-master, kahan, norm-matched and projection-matched, with one alpha per tensor, for "
      "signed formats with a zero whose values float32 holds as normal numbers",
      ToString(rule));
}

}  // namespace numsim
