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
  // Reads the codes of `format`, or float32 values on its grid: rows x inner, or inner x rows when
  // transposed. Throws Error naming the file, and the element where one is at fault.
  GemmFactor(const std::string& file, const Format& format, bool transposed);

  // Reads scales: one, one a row, or rows x segments, where a segment is `segment` elements (0: not
  // given). Throws Error naming the file.
  void ReadScales(const std::string& file, size_t segment);

  size_t rows() const { return operand_.rows; }
  size_t inner() const { return operand_.inner; }
  bool has_segments() const { return operand_.scales.segment != 0; }
  // "a.npy of shape (2, 3)", for messages.
  std::string Description() const;
  // Holds as long as this object.
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
