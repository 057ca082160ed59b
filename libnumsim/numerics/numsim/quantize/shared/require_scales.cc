#include "numsim/quantize/shared/require_scales.h"

#include "numsim/base/require.h"

namespace numsim {
namespace {

bool HasElements(const ScaleLayout& layout) {
  switch (layout.granularity) {
    case Granularity::kBlock:
      return layout.block >= 1;
    case Granularity::kTile:
      return layout.block >= 1 && layout.tile_rows >= 1;
    case Granularity::kTensor:
    case Granularity::kRow:
    case Granularity::kColumn:
      break;
  }
  return true;
}

}  // namespace

void RequireLayout(const ScaleLayout& layout, const char* function) {
  NUMSIM_REQUIRE(HasElements(layout),
                 "{}: the layout {} has blocks without elements, expected at least one",
                 function,
                 ToString(layout));
}

void RequireScales(size_t given,
                   const ScaleLayout& layout,
                   MatrixShape shape,
                   const char* function,
                   const char* argument) {
  RequireLayout(layout, function);
  const size_t expected = layout.Count(shape.rows, shape.cols);
  NUMSIM_REQUIRE(given == expected,
                 "{}: '{}' has {} elements, expected {} (layout {} of {} x {})",
                 function,
                 argument,
                 given,
                 expected,
                 ToString(layout),
                 shape.rows,
                 shape.cols);
}

}  // namespace numsim
