#include "numsim/quantize/internal/four_over_six.h"

#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

constexpr float kDenominator = 6 * 256;

// The rows and columns of a group.
struct Extent {
  size_t row, rows, col, cols;
};

Extent ExtentOf(const ScaleLayout& layout, MatrixShape shape, size_t group) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return {0, shape.rows, 0, shape.cols};
    case Granularity::kRow:
      return {group, 1, 0, shape.cols};
    case Granularity::kColumn:
      return {0, shape.rows, group, 1};
    case Granularity::kBlock:
    case Granularity::kTile:
      break;
  }
  const size_t height = layout.granularity == Granularity::kTile ? layout.tile_rows : 1;
  const size_t along = layout.BlocksPerRow(shape.cols);
  const size_t row = group / along * height, col = group % along * layout.block;
  return {row, std::min(height, shape.rows - row), col, std::min(layout.block, shape.cols - col)};
}

class Errors {
 public:
  Errors(std::span<const float> in, MatrixShape shape, ScaleRule rule, float absmax, float tensor)
      : in_(in),
        cols_(shape.cols),
        squares_(rule == ScaleRule::kFourOverSixMse),
        absmax_(absmax),
        tensor_(tensor),
        plan_(MakeEncodePlan(kE2M1fn, {}, Overflow::kSaturate)),
        scale_plan_(MakeEncodePlan(kE4M3fn, {}, Overflow::kSaturate)) {}

  // Returns the sum of the errors of a group under a scale.
  float Of(const Extent& group, const Scale& scale) const {
    const float share =
        Decode(kE4M3fn, EncodeF32(scale_plan_, std::bit_cast<uint32_t>(scale.scale / tensor_), 0));
    std::vector<float> rows(group.rows, 0.0f);
    for (size_t r = 0; r < group.rows; ++r) {
      const float* const x = in_.data() + (group.row + r) * cols_ + group.col;
      for (size_t c = 0; c < group.cols; ++c) rows[r] += Error(x[c], share, scale.inv_scale);
    }
    if (group.cols > 1 && std::has_single_bit(group.rows)) {
      for (size_t half = group.rows / 2; half > 0; half /= 2) {
        for (size_t r = 0; r < half; ++r) rows[r] += rows[r + half];
      }
      return rows[0];
    }
    float sum = 0;
    for (const float row : rows) sum += row;
    return sum;
  }

 private:
  float Error(float x, float share, float inv_scale) const {
    if (!std::isfinite(x)) return 0;
    const uint32_t code = EncodeF32(plan_, std::bit_cast<uint32_t>(x * inv_scale), 0);
    const float value = Decode(kE2M1fn, code) * share * absmax_ / kDenominator;
    const float difference = value - x;
    return squares_ ? difference * difference : std::fabs(difference);
  }

  std::span<const float> in_;
  size_t cols_;
  bool squares_;
  float absmax_, tensor_;
  EncodePlan plan_, scale_plan_;
};

}  // namespace

void ChooseFourOrSix(std::span<const float> in,
                     MatrixShape shape,
                     const ScaleLayout& layout,
                     ScaleRule rule,
                     const ScaleFactory& maker,
                     float absmax,
                     std::span<float> maxima,
                     std::span<float> inv_scales) {
  const Errors errors(in, shape, rule, absmax, maker.TensorScale());
  ParallelFor(maxima.size(), 64, [&](size_t begin, size_t end) {
    for (size_t g = begin; g < end; ++g) {
      const Extent group = ExtentOf(layout, shape, g);
      const Scale six = maker(maxima[g]), four = maker.MapToFour(maxima[g]);
      const Scale& chosen = errors.Of(group, four) < errors.Of(group, six) ? four : six;
      maxima[g] = chosen.scale;
      inv_scales[g] = chosen.inv_scale;
    }
  });
}

}  // namespace numsim
