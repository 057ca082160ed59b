#include "numsim/quantize/internal/four_over_six.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/internal/joined_rows.h"
#include "numsim/quantize/internal/two_levels_simd.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/quantize/shared/scale_grid.h"

namespace numsim {
namespace {

constexpr float kDenominator = 6 * 256;
// The number of elements worth starting a thread for.
constexpr size_t kElementsPerThread = 2048;

// Neighbouring groups whose errors are computed side by side, at most kPiece.
struct GroupRun {
  size_t row, rows;     // of the matrix
  size_t first, count;  // groups, in the order of their columns
};

// One of the two scales of each group of a run, and the sums of the errors under them.
struct Choice {
  float scales[kPiece], inv_scales[kPiece], sums[kPiece];
};

class Errors {
 public:
  Errors(std::span<const float> in,
         MatrixShape shape,
         const ScaleGrid& grid,
         ScaleRule rule,
         float absmax,
         float tensor)
      : in_(in),
        cols_(shape.cols),
        width_(grid.tile_cols),
        squares_(rule == ScaleRule::kFourOverSixMse),
        absmax_(absmax),
        tensor_(tensor),
        plan_(MakeEncodePlan(kE2M1fn, {}, Overflow::kSaturate)),
        scale_plan_(MakeEncodePlan(kE4M3fn, {}, Overflow::kSaturate)) {}

  // Writes the sums of the errors of the groups under their scales. `rows` is memory for the call.
  void SumUp(const GroupRun& run, Choice& choice, std::vector<float>& rows) const {
    float shares[kPiece];
    for (size_t g = 0; g < run.count; ++g) shares[g] = choice.scales[g] / tensor_;
    FakeQuantizeSerial(scale_plan_, shares, run.count, shares, {});
    rows.assign(run.rows * run.count, 0.0f);
    for (size_t r = 0; r < run.rows; ++r) AddRow(run, r, choice, shares, &rows[r * run.count]);
    for (size_t g = 0; g < run.count; ++g) {
      const bool halves = Width(run, g) > 1 && std::has_single_bit(run.rows);
      choice.sums[g] = halves ? ByHalves(run, g, rows) : FromTop(run, g, rows);
    }
  }

 private:
  size_t Begin(const GroupRun& run, size_t g) const { return (run.first + g) * width_; }
  // Returns the columns of a group.
  size_t Width(const GroupRun& run, size_t g) const {
    return std::min(width_, cols_ - Begin(run, g));
  }

  // Adds the errors of the elements of row r of the run to the sums of their groups.
  void AddRow(
      const GroupRun& run, size_t r, const Choice& choice, const float* shares, float* sums) const {
    const size_t begin = Begin(run, 0), end = std::min(Begin(run, run.count), cols_);
    const float* const row = in_.data() + (run.row + r) * cols_;
    for (size_t c = begin; c < end; c += kPiece) {
      const size_t n = std::min(kPiece, end - c), g = (c - begin) / width_;
      const size_t to_edge = width_ - (c - begin) % width_;
      float factors[kPiece + kSpreadPadding], values[kPiece];
      Spread(choice.inv_scales + g, to_edge, width_, n, factors);
      MultiplyEach(row + c, n, factors, values);
      FakeQuantizeSerial(plan_, values, n, values, {});
      Spread(shares + g, to_edge, width_, n, factors);
      for (size_t i = 0; i < n; ++i) values[i] = Error(row[c + i], values[i], factors[i]);
      for (size_t i = 0, of = g; i < n; ++of) {
        const size_t stop = std::min(n, i == 0 ? to_edge : i + width_);
        for (; i < stop; ++i) sums[of] += values[i];
      }
    }
  }

  float Error(float x, float value, float share) const {
    const float difference = value * share * absmax_ / kDenominator - x;
    const float error = squares_ ? difference * difference : std::fabs(difference);
    return std::isfinite(x) ? error : 0;
  }

  static float ByHalves(const GroupRun& run, size_t g, std::vector<float>& rows) {
    for (size_t half = run.rows / 2; half > 0; half /= 2) {
      for (size_t r = 0; r < half; ++r) {
        rows[r * run.count + g] += rows[(r + half) * run.count + g];
      }
    }
    return rows[g];
  }

  static float FromTop(const GroupRun& run, size_t g, const std::vector<float>& rows) {
    float sum = 0;
    for (size_t r = 0; r < run.rows; ++r) sum += rows[r * run.count + g];
    return sum;
  }

  std::span<const float> in_;
  size_t cols_, width_;
  bool squares_;
  float absmax_, tensor_;
  EncodePlan plan_, scale_plan_;
};

// Replaces the maxima of the groups of a run by the scales with the smaller errors.
void ChooseInRun(const Errors& errors,
                 const GroupRun& run,
                 const ScaleFactory& maker,
                 float* maxima,
                 float* inv_scales,
                 std::vector<float>& memory) {
  Choice six, four;
  MakeTwoLevelScales(maker, maxima, run.count, six.scales, six.inv_scales);
  for (size_t g = 0; g < run.count; ++g) {
    const Scale made = maker.MapToFour(maxima[g]);
    four.scales[g] = made.scale;
    four.inv_scales[g] = made.inv_scale;
  }
  errors.SumUp(run, six, memory);
  errors.SumUp(run, four, memory);
  for (size_t g = 0; g < run.count; ++g) {
    const Choice& chosen = four.sums[g] < six.sums[g] ? four : six;
    maxima[g] = chosen.scales[g];
    inv_scales[g] = chosen.inv_scales[g];
  }
}

}  // namespace

void ChooseFourOrSix(std::span<const float> in,
                     MatrixShape shape,
                     const ScaleLayout& layout,
                     ScaleRule rule,
                     const ScaleFactory& maker,
                     float absmax,
                     std::span<float> maxima,
                     std::span<float> inv_scales) {
  if (in.empty()) return;
  const ScaleGrid grid(shape, layout);
  const Errors errors(in, shape, grid, rule, absmax, maker.TensorScale());
  const size_t most = std::max<size_t>(kPiece / grid.tile_cols, 1);
  const size_t runs = CeilDiv(grid.across, most), bands = CeilDiv(shape.rows, grid.tile_rows);
  const size_t elements = grid.tile_rows * std::min(most * grid.tile_cols, shape.cols);
  ParallelFor(bands * runs, CeilDiv(kElementsPerThread, elements), [&](size_t begin, size_t end) {
    std::vector<float> memory;
    for (size_t i = begin; i < end; ++i) {
      const size_t row = i / runs * grid.tile_rows, first = i % runs * most;
      const GroupRun run{row,
                         std::min(grid.tile_rows, shape.rows - row),
                         first,
                         std::min(most, grid.across - first)};
      const size_t at = i / runs * grid.across + first;
      ChooseInRun(errors, run, maker, &maxima[at], &inv_scales[at], memory);
    }
  });
}

}  // namespace numsim
