#include "experiments/shared/block_name.h"

#include <charconv>
#include <system_error>

namespace numsim::experiments {

std::optional<BlockName> ParseBlockName(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.";
  const size_t at = name.find(kBlocks);
  if (at == name.npos) return std::nullopt;
  BlockName result;
  result.tower = name.substr(0, at);
  const std::string_view number = name.substr(at + kBlocks.size());
  const char* const end = number.data() + number.size();
  const auto [stop, status] = std::from_chars(number.data(), end, result.block);
  if (status != std::errc()) return std::nullopt;
  result.rest = number.substr(static_cast<size_t>(stop - number.data()));
  return result;
}

}  // namespace numsim::experiments
