// Operands from the tensors of --input and --input-b: segments of rows, cut at the same columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/base/matrix_shape.h"

namespace numsim::experiments::quantization_variance {

// Returns true if the operands are rows of tensors, not random numbers.
bool HasInput(const Settings& settings);

// Throws Error if an option about tensors is given without the one that it belongs to.
void CheckInputOptions(const Settings& settings);

// Returns the number of columns of the tensors, without reading their elements. Throws Error naming
// the file and the tensor if one of them cannot be used: fewer than two dimensions, or rows of
// different lengths.
size_t InputColumns(const Settings& settings);

// Returns the name of the source: "tensor A", or "tensor A x B" if v comes from a second tensor.
std::string InputSource(const Settings& settings);

// Returns the options that have no effect with these settings.
std::vector<std::string> UnusedOptions(const Settings& settings);

// The rows of the tensors and the pairs of segments that are cut from them.
//
// For each pair a window of `longest` adjacent columns is drawn and divided into longest / k
// segments of k columns, one of which is drawn. u and v are this segment of two rows: of two
// different rows of one tensor, or of any row of either tensor. Rows and window do not depend on k,
// and the segment of a pair at k contains that at k / 2. So at every k the same columns of the same
// rows are equally likely, and lengths differ in nothing else.
class InputRows {
 public:
  // Reads the tensors. Throws Error if an element is not finite, or if a single tensor has one row.
  // Requires a power of two `longest` of at most InputColumns().
  InputRows(const Settings& settings, uint64_t seed, size_t longest);

  // Copies the segments of a pair to u and v. Requires a power of two k of at most `longest`.
  void FillPair(size_t pair, size_t k, float* u, float* v) const;

 private:
  struct Matrix {
    MatrixShape shape;
    std::vector<float> values;
  };
  static Matrix Read(const std::string& path, const std::string& tensor);

  uint64_t seed_;
  size_t longest_;
  Matrix a_;
  Matrix b_;  // empty: v is a row of a_ too
};

}  // namespace numsim::experiments::quantization_variance
