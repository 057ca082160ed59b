// One operand of `numsim gemm`: a matrix in a .npy file, and its scales in another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/code_array.h"
#include "numsim/gemm/gemm.h"

namespace numsim::apps {

class GemmFactor {
 public:
  // Reads codes of `format` or float32 values of `format`: rows x inner, or inner x rows if
  // transposed. Throws Error that names the file and, if one is at fault, the element.
  GemmFactor(const std::string& file, const Format& format, bool transposed);

  // Reads scales: one, one per row (of shape (rows,), (rows, 1) or, if transposed, (1, rows)), or
  // rows x segments. A segment has `segment` elements (0: all elements of the inner dimension).
  // Throws Error that names the file.
  void ReadScales(const std::string& file, size_t segment);

  size_t rows() const { return operand_.rows; }
  size_t inner() const { return operand_.inner; }
  bool has_segments() const { return operand_.scales.segment != 0; }
  // Returns a text for messages, such as "a.npy of shape (2, 3)".
  std::string Description() const;
  // The operand refers to this object.
  const GemmOperand& operand() const { return operand_; }

  GemmFactor(const GemmFactor&) = delete;
  GemmFactor& operator=(const GemmFactor&) = delete;

 private:
  void TakeElements(const Format& format);

  std::string file_;
  Array array_;
  std::vector<float> scales_;
  GemmOperand operand_;
};

}  // namespace numsim::apps
