#include <algorithm>
#include <string>

#include "numsim/base/parallel.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/cases.h"

namespace numsim {

CaseRows::CaseRows(const Operation& operation, const CaseLevel& level, bool results)
    : operation_(operation), generator_(operation, level), results_(results) {
  columns_ = results ? ColumnsOf(operation).all : operation.inputs();
}

void CaseRows::Row(uint64_t i, std::span<uint64_t> row) const noexcept {
  generator_.Case(i, row.first(operation_.inputs().size()));
  if (results_) Complete(operation_, row);
}

void WriteCaseText(const CaseRows& rows, const std::function<void(std::string_view)>& write) {
  constexpr size_t kPieceBytes = size_t{1} << 18;
  constexpr size_t kPieces = 16;
  const RowText text(rows.columns());
  const uint64_t piece_rows = std::max<uint64_t>(1, kPieceBytes / text.bytes());
  std::vector<std::string> pieces(kPieces);
  for (uint64_t first = 0; first < rows.size(); first += kPieces * piece_rows) {
    ParallelTasks(kPieces, [&](size_t piece) {
      const uint64_t begin = std::min(rows.size(), first + piece * piece_rows);
      const uint64_t end = std::min(rows.size(), begin + piece_rows);
      pieces[piece].resize((end - begin) * text.bytes());
      std::vector<uint64_t> row(rows.columns().size());
      for (uint64_t i = begin; i < end; ++i) {
        rows.Row(i, row);
        text.Write(row, pieces[piece].data() + (i - begin) * text.bytes());
      }
    });
    for (const std::string& piece : pieces) {
      if (!piece.empty()) write(piece);
    }
  }
}

}  // namespace numsim
