// Names of parameters and of tensors, which begin with the block that they are in.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace numsim::experiments {

// "image.blocks.3.mlp.up.weight", in parts.
struct BlockName {
  std::string_view tower;  // "image."; empty in models with one tower
  size_t block;            // 3; the first block is 0
  std::string_view rest;   // ".mlp.up.weight"; empty for the output of the block
};
// Returns the parts of a name; nullopt if it is not in a block.
std::optional<BlockName> ParseBlockName(std::string_view name);

}  // namespace numsim::experiments
