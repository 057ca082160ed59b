#include "numsim/formats/format_table.h"

#include "numsim/formats/format_list.h"

namespace numsim {

std::span<const FormatEntry> FormatTable() { return format_list::kTable; }

const FormatEntry* FindFormat(std::string_view name) {
  for (const FormatEntry& entry : format_list::kTable) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace numsim
