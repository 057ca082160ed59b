// Computes scales from absolute maxima.
#include <algorithm>
#include <cmath>
#include <span>

#include "numsim/capi/internal/arrays.h"
#include "numsim/quantize/scale.h"

using numsim::FormatSpec;
using numsim::Scale;
using numsim::ScaleFactory;
using numsim::ScaleRule;
using numsim::capi::CheckDisjoint;
using numsim::capi::FirstError;
using numsim::capi::Memory;
using numsim::capi::Require;

namespace numsim::capi {
namespace {

static_assert(static_cast<int>(ScaleRule::kAbsmax) == NUMSIM_SCALE_RULE_ABSMAX);
static_assert(static_cast<int>(ScaleRule::kPow2Floor) == NUMSIM_SCALE_RULE_POW2_FLOOR);
static_assert(static_cast<int>(ScaleRule::kPow2Ceil) == NUMSIM_SCALE_RULE_POW2_CEIL);
static_assert(static_cast<int>(ScaleRule::kE8m0) == NUMSIM_SCALE_RULE_E8M0);
static_assert(static_cast<int>(ScaleRule::kNone) == NUMSIM_SCALE_RULE_NONE);

bool IsRule(int rule) { return rule >= 0 && rule <= NUMSIM_SCALE_RULE_NONE; }

bool IsMaximum(float absmax) { return std::isfinite(absmax) && absmax >= 0; }

}  // namespace
}  // namespace numsim::capi

numsim_status_t numsim_make_scales(const numsim_format_t* format,
                                   const float* absmax,
                                   size_t n,
                                   int rule,
                                   float* scales,
                                   float* inv_scales) noexcept {
  FormatSpec spec;
  const Memory from = {absmax, n, sizeof(float)};
  const Memory forward = {scales, n, sizeof(float)};
  const Memory inverse = {inv_scales, n, sizeof(float)};
  numsim_status_t status = FirstError({numsim::capi::ReadFormatOrTable(format, &spec),
                                       Require(numsim::capi::IsRule(rule)),
                                       from.Check(),
                                       forward.Check(),
                                       inverse.Check()});
  if (status != NUMSIM_OK) return status;
  status = FirstError({CheckDisjoint(forward, {from, inverse}), CheckDisjoint(inverse, {from})});
  if (status != NUMSIM_OK) return status;
  const std::span maxima(absmax, n);
  if (!std::all_of(maxima.begin(), maxima.end(), numsim::capi::IsMaximum)) {
    return NUMSIM_ERROR_BAD_ARGUMENT;
  }
  const ScaleFactory scale_of(spec, static_cast<ScaleRule>(rule));
  for (size_t i = 0; i < n; ++i) {
    const Scale scale = scale_of(absmax[i]);
    scales[i] = scale.scale;
    inv_scales[i] = scale.inv_scale;
  }
  return NUMSIM_OK;
}
