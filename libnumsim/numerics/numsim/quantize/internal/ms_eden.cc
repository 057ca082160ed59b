#include "numsim/quantize/internal/ms_eden.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numsim/base/parallel.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/internal/joined_rows.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// The rows of the matrix, or its columns, in blocks.
struct Rows {
  size_t count, length, block;
  size_t next, step;              // from one row to the next, and along it, in elements
  size_t next_scale, scale_step;  // the same in scales

  Rows(MatrixShape shape, const ScaleLayout& layout) {
    const bool columns = layout.granularity == Granularity::kTile;
    count = columns ? shape.cols : shape.rows;
    length = columns ? shape.rows : shape.cols;
    block = columns ? layout.tile_rows : layout.block;
    next = columns ? 1 : shape.cols;
    step = columns ? shape.cols : 1;
    next_scale = columns ? 1 : (length + block - 1) / block;
    scale_step = columns ? shape.cols : 1;
  }
};

class Corrector {
 public:
  explicit Corrector(const QuantizeOptions& options)
      : run_(options.correction_run),
        stream_(options.random.stream),
        first_(options.random.first_index),
        plan_(MakeEncodePlan(kE2M1fn, {}, Overflow::kSaturate)),
        scale_plan_(MakeEncodePlan(kE4M3fn, {}, Overflow::kSaturate)),
        stochastic_plan_(
            MakeEncodePlan(kE4M3fn, {RoundingMode::kStochastic}, Overflow::kSaturate)) {}

  // Corrects the scales of the run that begins at element `begin` of row r.
  void Correct(const Rows& rows,
               size_t r,
               size_t begin,
               const float* in,
               float tensor,
               float* scales,
               const float* inv_scales) const {
    const size_t end = std::min(begin + run_, rows.length);
    const auto scale_of = [&](size_t i) {
      return r * rows.next_scale + i / rows.block * rows.scale_step;
    };
    double squares = 0, products = 0;
    for (size_t first = begin; first < end; first += kPiece) {
      const size_t n = std::min(kPiece, end - first);
      float scaled[kPiece], values[kPiece];
      for (size_t i = 0; i < n; ++i) {
        const float x = in[r * rows.next + (first + i) * rows.step];
        scaled[i] = std::isfinite(x) ? x * inv_scales[scale_of(first + i)] : 0;
      }
      FakeQuantizeSerial(plan_, scaled, n, values, {});
      for (size_t i = 0; i < n; ++i) {
        squares += static_cast<double>(scaled[i]) * static_cast<double>(scaled[i]);
        products += static_cast<double>(scaled[i]) * static_cast<double>(values[i]);
      }
    }
    const double correction = products == 0 ? 1 : squares / products;
    for (size_t i = begin; i < end; i += rows.block) {
      const size_t s = scale_of(i);
      const float share = Rounded(scale_plan_, scales[s] / tensor, 0);
      const auto corrected = static_cast<float>(share * correction);
      scales[s] =
          Rounded(stochastic_plan_, corrected, RandomBits(stream_, first_ + s, 32)) * tensor;
    }
  }

 private:
  static float Rounded(const EncodePlan& plan, float x, uint32_t random) {
    return Decode(kE4M3fn, EncodeF32(plan, std::bit_cast<uint32_t>(x), random));
  }

  size_t run_;
  RandomStream stream_;
  uint64_t first_;
  EncodePlan plan_, scale_plan_, stochastic_plan_;
};

}  // namespace

void CorrectScales(std::span<const float> in,
                   MatrixShape shape,
                   const QuantizeOptions& options,
                   float tensor,
                   std::span<float> scales,
                   std::span<const float> inv_scales) {
  const Rows rows(shape, options.layout);
  const Corrector corrector(options);
  const size_t runs = (rows.length + options.correction_run - 1) / options.correction_run;
  ParallelFor(rows.count * runs, 64, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      corrector.Correct(rows,
                        i / runs,
                        i % runs * options.correction_run,
                        in.data(),
                        tensor,
                        scales.data(),
                        inv_scales.data());
    }
  });
}

}  // namespace numsim
