// How cuBLASLt 13.1.0 was recorded to split products on an NVIDIA H200 (docs/results/library-products.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"

namespace numsim {

// The results of A B^T are m x n, with sums of k products.
struct ProductShape {
  size_t m = 0;
  size_t n = 0;
  size_t k = 0;

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

// A kind of products whose plans were recorded: operands of one format, row-major A (m x k) and
// B (n x k), a format of results, and the memory that the library may use.
struct RecordedPlans {
  FormatSpec operands;
  FormatSpec results;
  bool fast_accumulation = false;  // of fp8
  size_t workspace_mib = 32;
};

// Throws Error that says what is recorded, unless `plans` is: e4m3fn to bf16 or fp32, bf16 to bf16 or
// fp32, fp16 to fp16 or fp32; fast accumulation for e4m3fn alone; a workspace of 1 or 32 MiB.
void CheckRecorded(const RecordedPlans& plans);

// Returns the name of the accumulation mode of one part. Requires a recorded kind.
std::string_view AccumulationModeOf(const RecordedPlans& plans);

// Returns the number of parts into which the inner dimension of a product is cut, 1 for one sum, or
// nothing if no plan is recorded for the shape. Throws what CheckRecorded does.
std::optional<size_t> RecordedParts(const RecordedPlans& plans, const ProductShape& shape);

// A shape of a product and the number of parts that was recorded for it.
struct RecordedShape {
  ProductShape shape;
  size_t parts = 1;
};

// Returns up to `count` shapes with a recorded plan, the nearest first: that with the least
// |log m / m'| + |log n / n'| + |log k / k'|, of equal ones the one with the least m, n, k. Throws what
// CheckRecorded does, and Error for a shape with a zero.
std::vector<RecordedShape> NearestRecorded(const RecordedPlans& plans,
                                           const ProductShape& shape,
                                           size_t count);

}  // namespace numsim
