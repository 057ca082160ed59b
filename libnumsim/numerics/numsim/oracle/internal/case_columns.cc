#include "numsim/oracle/operation.h"

namespace numsim {

std::string CaseColumns::Names(size_t count) const {
  constexpr size_t kLongest = 12;
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    if (i == kLongest && count > kLongest + 1) {
      names += " ...";
      i = count - 1;
    }
    names += (i > 0 ? " " : "") + all[i].name;
  }
  return names;
}

CaseColumns ColumnsOf(const Operation& operation) {
  CaseColumns columns;
  columns.all = operation.inputs();
  columns.all.insert(columns.all.end(), operation.results().begin(), operation.results().end());
  columns.inputs = operation.inputs().size();
  columns.results = operation.results().size();
  columns.has_flags = operation.has_flags();
  if (columns.has_flags) {
    Column flags;
    flags.name = "flags";
    flags.bits = 8;
    flags.kind = ColumnKind::kInteger;
    columns.all.push_back(flags);
  }
  return columns;
}

CaseColumns InputColumnsOf(const Operation& operation) {
  CaseColumns columns;
  columns.all = operation.inputs();
  columns.inputs = columns.all.size();
  return columns;
}

void Complete(const Operation& operation, std::span<uint64_t> row) noexcept {
  const auto inputs = row.first(operation.inputs().size());
  const auto results = row.subspan(inputs.size(), operation.results().size());
  const Flags flags = operation.Evaluate(inputs, results);
  if (operation.has_flags()) row.back() = flags;
}

}  // namespace numsim
