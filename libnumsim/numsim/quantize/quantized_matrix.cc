#include "numsim/quantize/quantized_matrix.h"

#include <algorithm>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantized_device.h"
#include "numsim/quantize/shared/require_scales.h"

namespace numsim {
namespace {

// About the number of elements of a band of whole rows. The absolute maxima of a band are computed,
// and the band is then quantised while it is still in the first-level cache.
constexpr size_t kBand = 4096;
// The largest band, in elements, that pays off: it fits the second-level cache.
constexpr size_t kMaxBand = size_t{1} << 18;
// The number of elements worth starting a thread for.
constexpr size_t kGrain = size_t{1} << 14;

// Returns memory for the inverse scales of one call. Each thread has its own, which later calls
// reuse.
std::span<float> InvScaleScratch(size_t n) {
  thread_local std::vector<float> memory;
  if (memory.size() < n) memory.resize(n);
  return std::span(memory).first(n);
}

// Replaces maxima by their scales and writes the inverse scales.
void MakeScales(const ScaleFactory& maker, std::span<float> absmax, std::span<float> inv_scales) {
  for (size_t i = 0; i < absmax.size(); ++i) {
    const Scale made = maker(absmax[i]);
    absmax[i] = made.scale;
    inv_scales[i] = made.inv_scale;
  }
}

// Writes the scales of the layout and as many inverse scales.
void MakeScalesOf(std::span<const float> in,
                  MatrixShape shape,
                  const QuantizeOptions& options,
                  std::span<float> scales,
                  std::span<float> inv_scales) {
  if (options.scale_rule != ScaleRule::kNone) Absmax(in, shape, options.layout, scales);
  MakeScales(ScaleFactory(options.format, options.scale_rule), scales, inv_scales);
}

// Checks the arguments of a call that writes codes.
void CheckCall(std::span<const float> in,
               MatrixShape shape,
               const QuantizeOptions& options,
               const char* function) {
  RequireSize(in.size(), shape, function, "in");
  RequireLayout(options.layout, function);
  NUMSIM_REQUIRE(options.format.Bits() <= 16,
                 "{}: the format {} has {} bits, expected at most 16",
                 function,
                 ToString(options.format),
                 options.format.Bits());
}

// Prepares the matrix for new codes and scales, whatever it contained before.
void Prepare(MatrixShape shape, const QuantizeOptions& options, QuantizedMatrix& result) {
  result.format = options.format;
  result.shape = shape;
  result.layout = options.layout;
  result.transposed = options.transpose;
  const bool bytes = options.format.StorageBytes() == 1;
  result.codes8.resize(bytes ? shape.Elements() : 0);
  result.codes16.resize(bytes ? 0 : shape.Elements());
  result.scales.resize(options.layout.Count(shape.rows, shape.cols));
}

// Calls act(codes) with the array of codes that the matrix uses, codes8 or codes16.
template <typename Act>
void WithCodes(QuantizedMatrix& matrix, const Act& act) {
  if (matrix.format.StorageBytes() == 1) {
    act(std::span(matrix.codes8));
  } else {
    act(std::span(matrix.codes16));
  }
}

// Writes the codes of the matrix under the given inverse scales.
void QuantizeWith(std::span<const float> inv_scales,
                  std::span<const float> in,
                  MatrixShape shape,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result) {
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  WithCodes(result, [&](auto codes) {
    Quantize(plan, in, shape, options.layout, inv_scales, codes, options.random, options.transpose);
  });
}

// Returns the number of rows to be quantised together as a band in one pass over memory. A band
// contains all elements of its scales. Returns 0 if the matrix needs two passes.
size_t BandRows(MatrixShape shape, const QuantizeOptions& options) {
  const bool tiles = options.layout.granularity == Granularity::kTile;
  const bool rows = options.layout.granularity == Granularity::kRow ||
                    options.layout.granularity == Granularity::kBlock;
  if (options.transpose || options.scale_rule == ScaleRule::kNone || !(tiles || rows)) return 0;
  const size_t of_scale = tiles ? options.layout.tile_rows : 1;
  if (of_scale >= shape.rows || shape.cols == 0) return 0;
  const size_t elements = of_scale * shape.cols;
  if (elements > kMaxBand) return 0;
  return std::max<size_t>(kBand / elements, 1) * of_scale;
}

// Computes scales and codes of `rows` rows at a time. The result equals that of computing all
// scales first and then all codes.
void QuantizeBands(size_t rows,
                   std::span<const float> in,
                   MatrixShape shape,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  const ScaleFactory maker(options.format, options.scale_rule);
  const ScaleLayout& layout = options.layout;
  const std::span<float> scales = result.scales;
  const std::span<float> all_inv_scales = InvScaleScratch(scales.size());
  const size_t bands = (shape.rows + rows - 1) / rows;
  const size_t scales_of_band = layout.Count(rows, shape.cols);
  WithCodes(result, [&](auto codes) {
    ParallelFor(bands, 1 + kGrain / (rows * shape.cols), [&](size_t first, size_t last) {
      for (size_t b = first; b < last; ++b) {
        const MatrixShape band{std::min(rows, shape.rows - b * rows), shape.cols};
        const size_t at = b * rows * shape.cols;
        const size_t count = layout.Count(band.rows, band.cols);
        const auto values = in.subspan(at, band.Elements());
        const auto absmax = scales.subspan(b * scales_of_band, count);
        const auto inv_scales = all_inv_scales.subspan(b * scales_of_band, count);
        Absmax(values, band, layout, absmax);
        MakeScales(maker, absmax, inv_scales);
        Quantize(plan,
                 values,
                 band,
                 layout,
                 inv_scales,
                 codes.subspan(at, band.Elements()),
                 {options.random.stream, options.random.first_index + at});
      }
    });
  });
}

}  // namespace

QuantizedMatrix Quantize(std::span<const float> in,
                         MatrixShape shape,
                         const QuantizeOptions& options) {
  QuantizedMatrix result;
  QuantizeInto(in, shape, options, result);
  return result;
}

void QuantizeInto(std::span<const float> in,
                  MatrixShape shape,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result) {
  CheckCall(in, shape, options, "Quantize");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice()) {
      result = QuantizeOnDevice(in, shape, options);
      return;
    }
  }
  Prepare(shape, options, result);
  const size_t rows = BandRows(shape, options);
  if (rows != 0) return QuantizeBands(rows, in, shape, options, result);
  const std::span<float> inv_scales = InvScaleScratch(result.scales.size());
  MakeScalesOf(in, shape, options, result.scales, inv_scales);
  QuantizeWith(inv_scales, in, shape, options, result);
}

void QuantizeUnder(const Scale& scale,
                   std::span<const float> in,
                   MatrixShape shape,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  CheckCall(in, shape, options, "QuantizeUnder");
  NUMSIM_REQUIRE(options.layout.granularity == Granularity::kTensor,
                 "QuantizeUnder: one scale for the layout {}, expected tensor",
                 ToString(options.layout));
  Prepare(shape, options, result);
  result.scales[0] = scale.scale;
  QuantizeWith(std::span(&scale.inv_scale, 1), in, shape, options, result);
}

void Dequantize(const QuantizedMatrix& matrix, std::span<float> out) {
  NUMSIM_REQUIRE(!matrix.transposed, "Dequantize: the codes are transposed, expected in order");
  if (matrix.format.StorageBytes() == 1) {
    Dequantize(
        matrix.format, std::span(matrix.codes8), matrix.shape, matrix.layout, matrix.scales, out);
  } else {
    Dequantize(
        matrix.format, std::span(matrix.codes16), matrix.shape, matrix.layout, matrix.scales, out);
  }
}

std::vector<float> FakeQuantize(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<float> out) {
  RequireSize(in.size(), shape, "FakeQuantize", "in");
  RequireSize(out.size(), shape, "FakeQuantize", "out");
  RequireLayout(options.layout, "FakeQuantize");
  std::vector<float> scales(options.layout.Count(shape.rows, shape.cols));
  const std::span<float> inv_scales = InvScaleScratch(scales.size());
  MakeScalesOf(in, shape, options, scales, inv_scales);
  FakeQuantize(MakeEncodePlan(options.format, options.rounding, options.overflow),
               in,
               shape,
               options.layout,
               inv_scales,
               scales,
               out,
               options.random);
  return scales;
}

}  // namespace numsim
