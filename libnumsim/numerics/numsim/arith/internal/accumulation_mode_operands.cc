// The operands that named accumulation modes are for.
#include <fmt/format.h>

#include <algorithm>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"

namespace numsim {
namespace {

bool IsForBoth(const AccumulationModeRow& row, const FormatSpec& a, const FormatSpec& b) {
  return IsFor(row, a) && IsFor(row, b);
}

std::string ModesFor(const FormatSpec& a, const FormatSpec& b) {
  std::string names;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (!IsForBoth(row, a, b)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names.empty() ? "only those without a device's name, such as exact or fp32" : names;
}

}  // namespace

const AccumulationModeRow* FindAccumulationMode(std::string_view text) {
  const std::span<const AccumulationModeRow> table = AccumulationModeTable();
  const auto row = std::find_if(
      table.begin(), table.end(), [&](const AccumulationModeRow& r) { return r.name == text; });
  return row == table.end() ? nullptr : &*row;
}

bool IsFor(const AccumulationModeRow& row, const FormatSpec& format) {
  constexpr std::string_view kSeparator = ", ";
  for (std::string_view rest = row.operands; !rest.empty();) {
    const size_t end = std::min(rest.find(kSeparator), rest.size());
    const FormatEntry* const entry = FindFormat(rest.substr(0, end));
    if (entry != nullptr && entry->spec == format) return true;
    rest.remove_prefix(std::min(end + kSeparator.size(), rest.size()));
  }
  return false;
}

void CheckOperands(std::string_view text,
                   const FormatSpec& a,
                   const FormatSpec& b,
                   std::string_view permission) {
  const AccumulationModeRow* const row = FindAccumulationMode(text);
  if (row == nullptr || IsForBoth(*row, a, b)) return;
  const std::string formats = a == b ? ToString(a) : ToString(a) + " by " + ToString(b);
  throw Error::Format("accumulation mode {} is for {}, not for {}; {}; modes for {}: {}",
                      row->name,
                      row->operands,
                      formats,
                      permission,
                      formats,
                      ModesFor(a, b));
}

}  // namespace numsim
