// Split-K of `numsim gemm`: the inner dimension cut into parts that are summed apart.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "numsim/gemm/split_k.h"

namespace numsim::apps {

struct SplitOptions {
  size_t parts = 0;  // 0: no split
  size_t tile = 0;   // 0: that of cuBLASLt
  std::string partition = "contiguous", partials = "fp32";
};

void AddSplitOptions(CLI::App* sub, SplitOptions& options);

// Returns the split of operands of the formats, or nothing if the options ask for none. Throws Error
// for a name that does not exist.
std::optional<SplitK> ParseSplit(const SplitOptions& options,
                                 const FormatSpec& a,
                                 const FormatSpec& b);

// Returns a line on the parts of `inner` products, and one on products that are in none.
std::string SplitText(const SplitK& split, size_t inner);

}  // namespace numsim::apps
