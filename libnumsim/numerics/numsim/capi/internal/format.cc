// Formats in the C interface: lookup by name, conversion to text, widths and special codes.
#include <bit>
#include <string>

#include "numsim/capi/internal/arguments.h"
#include "numsim/capi/internal/text.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/value_table.h"
#include "numsim/io/table_file.h"

namespace {

// Returns the float32 bits of the smallest normal value, or 0 if all codes with a nonzero exponent
// field are infinities and NaNs.
uint32_t MinNormalBits(const numsim::FormatSpec& spec) {
  if (spec.IsTable()) return 0;
  const bool has_normals =
      spec.zero == numsim::Zero::kNone || spec.MaxFiniteCode() >> spec.mantissa_bits != 0;
  return has_normals ? std::bit_cast<uint32_t>(numsim::MinNormal(spec)) : 0;
}

}  // namespace

using numsim::FormatSpec;
using numsim::FormatTable;
using numsim::capi::CatchAll;
using numsim::capi::TextBuffer;

numsim_status_t numsim_format_by_name(const char* name,
                                      numsim_format_t* format,
                                      char* message,
                                      size_t message_size) noexcept {
  const TextBuffer text = {message, message_size};
  if (name == nullptr || format == nullptr) {
    text.Write("name and format must not be null");
    return NUMSIM_ERROR_BAD_ARGUMENT;
  }
  return CatchAll(text, NUMSIM_ERROR_UNKNOWN_FORMAT, [name, format, text] {
    *format = numsim::capi::ToC(numsim::ParseCastFormat(name).spec);
    text.Write(numsim::FormatNote(name));
    return NUMSIM_OK;
  });
}

numsim_status_t numsim_format_note(const char* name, char* text, size_t text_size) noexcept {
  if (name == nullptr || text == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
  return CatchAll({nullptr, 0}, NUMSIM_ERROR_UNKNOWN_FORMAT, [&] {
    numsim::ParseCastFormat(name);
    const std::string note = numsim::FormatNote(name);
    if (note.size() >= text_size) return NUMSIM_ERROR_BAD_ARGUMENT;
    TextBuffer{text, text_size}.Write(note);
    return NUMSIM_OK;
  });
}

size_t numsim_format_count(void) noexcept { return FormatTable().size(); }

// Names in the table are string literals, so their data ends with a 0.
const char* numsim_format_name(size_t index) noexcept {
  return index < FormatTable().size() ? FormatTable()[index].name.data() : nullptr;
}

numsim_status_t numsim_format_text(const numsim_format_t* format,
                                   char* text,
                                   size_t text_size) noexcept {
  if (text == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
  FormatSpec spec;
  const numsim_status_t status = numsim::capi::ReadFormatOrTable(format, &spec);
  if (status != NUMSIM_OK) return status;
  return CatchAll({nullptr, 0}, NUMSIM_ERROR_INTERNAL, [&] {
    const std::string name = numsim::ToString(spec);
    if (name.size() >= text_size) return NUMSIM_ERROR_BAD_ARGUMENT;
    TextBuffer{text, text_size}.Write(name);
    return NUMSIM_OK;
  });
}

numsim_status_t numsim_format_info(const numsim_format_t* format,
                                   numsim_format_info_t* info) noexcept {
  if (info == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
  FormatSpec spec;
  const numsim_status_t status = numsim::capi::ReadFormatOrTable(format, &spec);
  if (status != NUMSIM_OK) return status;
  const bool is_table = spec.IsTable();
  *info = {.bits = spec.Bits(),
           .storage_bytes = spec.StorageBytes(),
           .is_signed = is_table ? numsim::TableOf(spec).values.front() < 0 : spec.IsSigned(),
           .has_infinity = spec.HasInfinity(),
           .has_nan = spec.HasNan(),
           .max_finite_code = is_table ? numsim::TableOf(spec).codes.back() : spec.MaxFiniteCode(),
           .infinity_code = spec.HasInfinity() ? spec.InfinityCode() : 0,
           .nan_code = spec.HasNan() ? spec.NanCode() : 0,
           .max_finite_bits = std::bit_cast<uint32_t>(numsim::MaxFinite(spec)),
           .min_normal_bits = MinNormalBits(spec),
           .min_positive_bits = std::bit_cast<uint32_t>(numsim::MinPositive(spec)),
           .reserved = 0};
  return NUMSIM_OK;
}
