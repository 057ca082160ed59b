// Converts arguments of the C interface to the library's types. Checks everything that the library
// requires of its callers, so that no argument makes a NUMSIM_CHECK fail.
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

// Returns the first status that is not NUMSIM_OK, or NUMSIM_OK.
inline numsim_status_t FirstError(std::initializer_list<numsim_status_t> statuses) noexcept {
  const auto bad = std::find_if(
      statuses.begin(), statuses.end(), [](numsim_status_t status) { return status != NUMSIM_OK; });
  return bad == statuses.end() ? NUMSIM_OK : *bad;
}

// Returns NUMSIM_OK if the condition is true, else `otherwise`.
inline numsim_status_t Require(bool condition,
                               numsim_status_t otherwise = NUMSIM_ERROR_BAD_ARGUMENT) noexcept {
  return condition ? NUMSIM_OK : otherwise;
}

// Each Read function writes *out only if it returns NUMSIM_OK.

// Reads a format. Accepts only formats that ParseFormat() can return, and with OrTable also tables of
// values.
numsim_status_t ReadFormat(const numsim_format_t* format, FormatSpec* out) noexcept;
numsim_status_t ReadFormatOrTable(const numsim_format_t* format, FormatSpec* out) noexcept;
numsim_format_t ToC(const FormatSpec& spec) noexcept;

// Read the rounding mode, and the complete encode plan of a result. A null `rounding` stands for
// the default.
numsim_status_t ReadRounding(const numsim_rounding_t* rounding, Rounding* out) noexcept;
numsim_status_t ReadPlan(const numsim_format_t* to,
                         const numsim_rounding_t* rounding,
                         EncodePlan* out) noexcept;

// Reads a code of a format.
numsim_status_t ReadOperand(const numsim_format_t* format, uint32_t code, Operand* out) noexcept;
numsim_status_t ReadOperandOrTable(const numsim_format_t* format,
                                   uint32_t code,
                                   Operand* out) noexcept;

// Writes a result. Requires code != nullptr.
inline numsim_status_t Deliver(const Rounded& result, uint32_t* code, uint8_t* flags) noexcept {
  *code = result.code;
  if (flags != nullptr) *flags = result.flags;
  return NUMSIM_OK;
}

}  // namespace numsim::capi
