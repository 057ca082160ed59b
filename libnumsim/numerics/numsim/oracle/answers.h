// Answers the cases of an input: completes every row of inputs with the right results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/case_text.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// Reads rows of InputColumnsOf(operation) and writes rows of ColumnsOf(operation) as text
// (case_text.h), in the order of the input.
class AnswerText : public CaseTally {
 public:
  using Write = std::function<void(std::string_view)>;

  // Keeps a reference to the operation. Append() passes the text of a part to `write`.
  AnswerText(const Operation& operation, Write write);

  std::unique_ptr<CaseTally> Fresh() const override;
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override;
  void Append(const CaseTally& later) override;

 private:
  const Operation& operation_;
  Write write_;
  RowText format_;
  std::vector<uint64_t> row_;
  std::string text_;  // of the cases of this part
};

}  // namespace numsim
