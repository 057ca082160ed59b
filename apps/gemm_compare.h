// Comparison of a GEMM with a result from elsewhere, for `numsim gemm --compare`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/gemm/product_difference.h"
#include "numsim/io/array.h"

namespace numsim::apps {

// Reads the matrix to compare with, as float32. Takes float32, its bits as uint32, float16, float64
// that float32 holds exactly and, if results have a format of 16 bits or less, its codes. Throws
// Error that names `file` unless it is a .npy file of the given shape that holds one of these.
Array ReadMine(const std::string& file,
               const std::vector<size_t>& shape,
               const std::optional<Format>& format);

// Returns some lines: how many elements are equal, the norm of the difference, the first and the
// largest difference, the worst rows and columns, and what the difference looks like.
std::string DifferenceText(const ProductDifference& difference,
                           const Likeness& likeness,
                           const Array& mine,
                           const Array& expected);

}  // namespace numsim::apps
