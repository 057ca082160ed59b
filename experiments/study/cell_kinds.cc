#include "experiments/study/cell_kinds.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"

namespace numsim::experiments::study {
namespace {

bool Fits(const Cell& cell, CellKind kind) {
  if (kind == CellKind::kAny || kind == CellKind::kText) return true;
  try {
    const double number = cell.Number();
    return kind == CellKind::kNumber || std::isnan(number) || number == std::floor(number);
  } catch (const Error&) {  // a text
    return false;
  }
}

}  // namespace

void CheckCells(const std::string& table,
                const std::vector<Column>& columns,
                const std::vector<Row>& rows) {
  const auto is_any = [](const Column& column) { return column.kind == CellKind::kAny; };
  if (std::ranges::all_of(columns, is_any)) return;
  for (const Row& row : rows) {
    if (row.size() != columns.size()) {
      throw Error::Format("{}: a row has {} cells, expected {}", table, row.size(), columns.size());
    }
    for (size_t i = 0; i < row.size(); ++i) {
      const auto& [name, meaning, kind] = columns[i];
      if (Fits(row[i], kind)) continue;
      throw Error::Format("{}: {} '{}': expected a {}number",
                          table,
                          name,
                          Printable(row[i].Text()),
                          kind == CellKind::kWhole ? "whole " : "");
    }
  }
}

void CheckCells(const std::vector<MeasuredTable>& tables, const Rows& rows) {
  for (const MeasuredTable& table : tables) {
    const auto found = rows.find(table.name);
    if (found != rows.end()) CheckCells(table.name, table.columns, found->second);
  }
}

}  // namespace numsim::experiments::study
