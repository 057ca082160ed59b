#include "numsim/formats/format_table.h"

#include "numsim/formats/format_list.h"

namespace numsim {

std::span<const FormatEntry> FormatTable() { return format_list::kTable; }

const FormatEntry* FindFormat(std::string_view name) { return format_list::Find(name); }

}  // namespace numsim
