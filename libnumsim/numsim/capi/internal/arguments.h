// From arguments of the C interface to the library's types. Everything that the library requires of
// its callers is checked here, so that no argument reaches a NUMSIM_CHECK.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "numsim/arith/arith.h"
#include "numsim/capi/numsim.h"
#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim::capi {

// The first that is not NUMSIM_OK, or NUMSIM_OK.
inline numsim_status_t FirstError(std::initializer_list<numsim_status_t> statuses) noexcept {
  const auto bad = std::find_if(
      statuses.begin(), statuses.end(), [](numsim_status_t status) { return status != NUMSIM_OK; });
  return bad == statuses.end() ? NUMSIM_OK : *bad;
}

inline numsim_status_t Require(bool condition,
                               numsim_status_t otherwise = NUMSIM_ERROR_BAD_ARGUMENT) noexcept {
  return condition ? NUMSIM_OK : otherwise;
}

// Each Read function writes *out if it returns NUMSIM_OK and leaves it alone otherwise.

// A format that the library takes: one that ParseFormat can make.
numsim_status_t ReadFormat(const numsim_format_t* format, FormatSpec* out) noexcept;
numsim_format_t ToC(const FormatSpec& spec) noexcept;

// The rounding mode alone, and the whole plan of a result. A null `rounding` is the default.
numsim_status_t ReadRounding(const numsim_rounding_t* rounding, Rounding* out) noexcept;
numsim_status_t ReadPlan(const numsim_format_t* to,
                         const numsim_rounding_t* rounding,
                         EncodePlan* out) noexcept;

// A code of a format.
numsim_status_t ReadOperand(const numsim_format_t* format, uint32_t code, Operand* out) noexcept;

// Writes a result. Requires code != nullptr.
inline numsim_status_t Deliver(const Rounded& result, uint32_t* code, uint8_t* flags) noexcept {
  *code = result.code;
  if (flags != nullptr) *flags = result.flags;
  return NUMSIM_OK;
}

}  // namespace numsim::capi
