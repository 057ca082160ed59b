#include <charconv>
#include <string_view>

#include "numsim/base/build_info.h"
#include "numsim/capi/numsim.h"

int numsim_abi_version(void) noexcept { return NUMSIM_ABI_VERSION; }

// BuildVersion() is a complete string literal, so its data ends with a 0.
const char* numsim_version(void) noexcept { return numsim::BuildVersion().data(); }

int numsim_version_number(void) noexcept {
  const std::string_view text = numsim::BuildVersion();
  const char* at = text.data();
  const char* end = at + text.size();
  int number = 0;
  for (const int weight : {10000, 100, 1}) {
    int part = 0;
    at = std::from_chars(at, end, part).ptr;
    number += weight * part;
    if (at != end) ++at;  // the dot
  }
  return number;
}

const char* numsim_status_text(numsim_status_t status) noexcept {
  switch (status) {
    case NUMSIM_OK:
      return "success";
    case NUMSIM_ERROR_BAD_ARGUMENT:
      return "bad argument: null or misaligned pointer, size, count or enumerator";
    case NUMSIM_ERROR_UNKNOWN_FORMAT:
      return "the text is not a valid format";
    case NUMSIM_ERROR_BAD_FORMAT:
      return "the fields of a format are not valid; fill it with numsim_format_by_name";
    case NUMSIM_ERROR_BAD_ROUNDING:
      return "a field of numsim_rounding_t is out of range";
    case NUMSIM_ERROR_BAD_CODE:
      return "the code has bits above the width of its format";
    case NUMSIM_ERROR_OVERLAP:
      return "an output array overlaps another array";
    case NUMSIM_ERROR_UNKNOWN_PROFILE:
      return "no profile has that name";
    case NUMSIM_ERROR_UNSUPPORTED:
      return "the profile does not define this conversion";
    case NUMSIM_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case NUMSIM_ERROR_INTERNAL:
      return "internal error of numsim";
    case NUMSIM_ERROR_UNKNOWN_ACCUMULATOR:
      return "the text is not an accumulation mode";
    case NUMSIM_ERROR_ACCUMULATOR_OPERANDS:
      return "the accumulation mode is not for operands of these formats";
    default:
      return "unknown status";
  }
}
