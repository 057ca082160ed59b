// Cases of a level as rows of columns, with or without the right answers, as text or as an array.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "numsim/vectors/case_columns.h"
#include "numsim/vectors/cases.h"

namespace numsim {

class CaseRows {
 public:
  // Inputs alone, or with results and flags. Throws Error as CaseGenerator. Keeps a reference to
  // the operation.
  CaseRows(const Operation& operation, const CaseLevel& level, bool results);

  const std::vector<Column>& columns() const { return columns_; }
  uint64_t size() const { return generator_.size(); }

  // Fills `row` (size columns().size()) with row i < size(). Safe from several threads.
  void Row(uint64_t i, std::span<uint64_t> row) const noexcept;

 private:
  const Operation& operation_;
  CaseGenerator generator_;
  std::vector<Column> columns_;
  bool results_;
};

// Hands the rows as text (see case_text.h) to `write`, in order, some MiB at a time. They are made
// on all threads.
void WriteCaseText(const CaseRows& rows, const std::function<void(std::string_view)>& write);

}  // namespace numsim
