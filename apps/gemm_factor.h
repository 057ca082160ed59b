// One operand of `numsim gemm`: a matrix in a file, and its scales there or in another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/code_array.h"
#include "apps/given_tensor.h"
#include "numsim/gemm/gemm.h"

namespace numsim::apps {

// An operand as the user describes it.
struct GemmFactorOptions {
  std::string matrix;  // FILE.npy, FILE.safetensors or FILE.safetensors:NAME
  std::string format;  // empty: the element type tells
  std::string scales;  // a file or tensor; empty: those that belong to a tensor of .safetensors
  std::string tensor_scale;  // file of one number that multiplies every scale; empty: 1
  std::string
      granularity;  // of the scales, referring to the matrix as it is stored; empty: their shape
  bool transposed = false;
};

class GemmFactor {
 public:
  // Reads codes or float32 values of the format: rows x inner, or inner x rows if transposed. Codes
  // in a .safetensors file with a tensor NAME_scale or NAME_scale_inv get these scales, unless the
  // options name others. Throws Error that names the file and, if one is at fault, the element;
  // `option` is the name of the option of the format, for messages.
  GemmFactor(const GemmFactorOptions& options, const char* option);

  // Reads the scales that the options name. Without a granularity: one, one per row (of shape
  // (rows,), (rows, 1) or, if transposed, (1, rows)), or rows x segments. A segment has `segment`
  // elements (0: all elements of the inner dimension). The scale of the tensor, if there is one,
  // multiplies them. Throws Error that names the file.
  void ReadScales(size_t segment);

  const Format& format() const { return format_; }
  size_t rows() const { return operand_.rows; }
  size_t inner() const { return operand_.inner; }
  bool has_scales() const { return !operand_.scales.data.Empty(); }
  bool has_segments() const { return operand_.scales.segment != 0; }
  // Returns a text for messages, such as "a.npy of shape (2, 3)".
  std::string Description() const;
  // Returns a line on scales that were found in the file of the matrix, or "".
  const std::string& FoundScales() const { return found_scales_; }
  // The operand refers to this object.
  const GemmOperand& operand() const { return operand_; }

  GemmFactor(const GemmFactor&) = delete;
  GemmFactor& operator=(const GemmFactor&) = delete;

 private:
  void TakeGiven(GivenTensor tensor);
  void TakeElements();
  void TakeScales(const ScaleLayout& layout);
  void PlaceGivenScales(size_t segment);
  void TakeTensorScale();

  GemmFactorOptions options_;
  Format format_;
  Array array_;
  std::vector<float> scales_;
  float tensor_scale_ = 1;
  std::string found_scales_;
  GemmOperand operand_;
};

}  // namespace numsim::apps
