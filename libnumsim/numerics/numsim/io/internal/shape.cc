#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "numsim/io/array.h"

namespace numsim {

std::optional<size_t> CheckedElements(std::span<const size_t> shape, size_t element_bits) {
  constexpr uint64_t kLimit = INT64_MAX;
  uint64_t bits = element_bits;
  uint64_t elements = 1;
  for (const size_t extent : shape) {
    elements *= extent;  // can wrap only if the test below returns, or if already zero
    if (extent == 0) continue;
    if (bits > kLimit / extent) return std::nullopt;
    bits *= extent;
  }
  return static_cast<size_t>(elements);
}

std::string ShapeToString(std::span<const size_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

}  // namespace numsim
