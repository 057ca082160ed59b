#include "numsim/kernels/scale_layout.h"

#include <charconv>

#include "numsim/base/error.h"

namespace numsim {

ScaleLayout ParseScaleLayout(std::string_view text) {
  if (text == "tensor") return {Granularity::kTensor, 0};
  if (text == "row") return {Granularity::kRow, 0};
  if (text == "column") return {Granularity::kColumn, 0};
  if (text.starts_with("block:")) {
    const std::string_view number = text.substr(6);
    size_t block = 0;
    const char* end = number.data() + number.size();
    const auto [stop, status] = std::from_chars(number.data(), end, block);
    if (status == std::errc() && stop == end && block >= 1) return {Granularity::kBlock, block};
  }
  throw Error::Format("granularity '{}' is not one of tensor, row, column, block:N with N >= 1",
                      text);
}

std::string Name(const ScaleLayout& layout) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return "tensor";
    case Granularity::kRow:
      return "row";
    case Granularity::kColumn:
      return "column";
    case Granularity::kBlock:
      return fmt::format("block:{}", layout.block);
  }
  return "?";
}

}  // namespace numsim
