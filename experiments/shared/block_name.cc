#include "experiments/shared/block_name.h"

#include <charconv>
#include <system_error>

namespace numsim::experiments {

std::optional<BlockName> ParseBlockName(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.";
  const size_t at = name.find(kBlocks);
  if (at == name.npos) return std::nullopt;
  const std::string_view number = name.substr(at + kBlocks.size());
  const char* const end = number.data() + number.size();
  size_t block;
  const auto [stop, status] = std::from_chars(number.data(), end, block);
  if (status != std::errc()) return std::nullopt;
  return BlockName{name.substr(0, at), block, std::string_view(stop, end)};
}

}  // namespace numsim::experiments
