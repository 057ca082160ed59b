#include "numsim/oracle/answers.h"

#include <algorithm>
#include <utility>

namespace numsim {

AnswerText::AnswerText(const Operation& operation, Write write)
    : operation_(operation),
      write_(std::move(write)),
      format_(ColumnsOf(operation).all),
      row_(ColumnsOf(operation).all.size()) {}

std::unique_ptr<CaseTally> AnswerText::Fresh() const {
  return std::make_unique<AnswerText>(operation_, write_);
}

void AnswerText::Add(uint64_t, std::span<const uint64_t> row) noexcept {
  std::copy(row.begin(), row.end(), row_.begin());
  Complete(operation_, row_);
  const size_t used = text_.size();
  text_.resize(used + format_.bytes());
  format_.Write(row_, text_.data() + used);
}

void AnswerText::Append(const CaseTally& later) {
  write_(static_cast<const AnswerText&>(later).text_);
}

}  // namespace numsim
