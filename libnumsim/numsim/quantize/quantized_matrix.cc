#include "numsim/quantize/quantized_matrix.h"

#include <algorithm>
#include <cmath>

#include "numsim/backend/backend.h"
#include "numsim/backend/device_context.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/internal/quantized_device.h"
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
                  std::span<float> inv_scales,
                  std::span<float> tensor_scale = {}) {
  if (options.scale_rule != ScaleRule::kNone) Absmax(in, shape, options.layout, scales);
  ScaleFactory maker(options.format, options.scale_rule);
  if (TakesTensorMaximum(options.scale_rule)) {
    maker = maker.ForTensor(scales.empty() ? 0 : *std::ranges::max_element(scales));
    if (!tensor_scale.empty()) tensor_scale[0] = maker.TensorScale();
  }
  MakeScales(maker, scales, inv_scales);
}

// Checks the arguments of a call that writes codes.
void CheckCall(In<float> in, const QuantizeOptions& options, const char* function) {
  NUMSIM_REQUIRE(in.Contiguous(), "{}: stride {}, expected {}", function, in.stride, in.cols);
  RequireLayout(options.layout, function);
  NUMSIM_REQUIRE(options.format.Bits() <= 16,
                 "{}: the format {} has {} bits, expected at most 16",
                 function,
                 ToString(options.format),
                 options.format.Bits());
  MakeEncodePlan(options.format, options.rounding, options.overflow);  // checks the rounding
}

// Prepares the matrix for new codes and scales at a place, whatever it contained before.
void Prepare(Place place,
             MatrixShape shape,
             const QuantizeOptions& options,
             bool two_levels,
             QuantizedMatrix& result) {
  if (result.place() != place) result = QuantizedMatrix(place);
  result.format = options.format;
  result.shape = shape;
  result.layout = options.layout;
  result.order = options.order;
  const size_t bytes = shape.Elements() * static_cast<size_t>(options.format.StorageBytes());
  result.codes.Resize(1, result.HasCodes() ? bytes : 0);
  result.transposed.Resize(1, result.HasTransposed() ? bytes : 0);
  result.scales.Resize(1, options.layout.Count(shape.rows, shape.cols));
  result.tensor_scale.Resize(1, two_levels ? 1 : 0);
}

// Calls act(codes) with an array of bytes as codes of the format.
template <typename Bytes, typename Act>
void WithCodes(const FormatSpec& format, MatrixSpan<Bytes> bytes, const Act& act) {
  using Wide = std::conditional_t<std::is_const_v<Bytes>, const uint16_t, uint16_t>;
  if (format.StorageBytes() == 1) {
    act(bytes.Span());
  } else {
    act(std::span(reinterpret_cast<Wide*>(bytes.data), bytes.Elements() / 2));
  }
}

// Writes the codes of the matrix under the given inverse scales.
void QuantizeWith(std::span<const float> inv_scales,
                  In<float> in,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result) {
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  const auto write = [&](Buffer<uint8_t>& to, bool transpose) {
    WithCodes(options.format, to.View(), [&](auto codes) {
      Quantize(plan,
               in.Span(),
               in.Shape(),
               options.layout,
               inv_scales,
               codes,
               options.random,
               transpose);
    });
  };
  if (result.HasCodes()) write(result.codes, false);
  if (result.HasTransposed()) write(result.transposed, true);
}

// Returns the number of rows to be quantised together as a band in one pass over memory. A band
// contains all elements of its scales. Returns 0 if the matrix needs two passes.
size_t BandRows(MatrixShape shape, const QuantizeOptions& options) {
  const bool tiles = options.layout.granularity == Granularity::kTile;
  const bool rows = options.layout.granularity == Granularity::kRow ||
                    options.layout.granularity == Granularity::kBlock;
  if (options.order != CodeOrder::kInput || options.scale_rule == ScaleRule::kNone ||
      TakesTensorMaximum(options.scale_rule) || !(tiles || rows)) {
    return 0;
  }
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
  const std::span<float> scales = result.scales.Span();
  const std::span<float> all_inv_scales = InvScaleScratch(scales.size());
  const size_t bands = (shape.rows + rows - 1) / rows;
  const size_t scales_of_band = layout.Count(rows, shape.cols);
  WithCodes(options.format, result.codes.View(), [&](auto codes) {
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

void PrepareUnder(In<float> in, const QuantizeOptions& options, QuantizedMatrix& result) {
  CheckCall(in, options, "QuantizeUnder");
  NUMSIM_REQUIRE(options.layout.granularity == Granularity::kTensor,
                 "QuantizeUnder: one scale for the layout {}, expected tensor",
                 ToString(options.layout));
  Prepare(in.place, in.Shape(), options, false, result);
}

void QuantizeUnderOne(const Scale& scale,
                      In<float> in,
                      const QuantizeOptions& options,
                      QuantizedMatrix& result) {
  PrepareUnder(in, options, result);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!in.place.IsHost()) return QuantizeUnderOnDevice(scale, in, options, result);
  }
  result.scales.Span()[0] = scale.scale;
  QuantizeWith(std::span(&scale.inv_scale, 1), in, options, result);
}

void CheckDecode(const char* function, const QuantizedMatrix& matrix, In<float> out) {
  NUMSIM_REQUIRE(matrix.HasCodes(), "{}: the codes are transposed, expected in order", function);
  NUMSIM_REQUIRE(matrix.place() == out.place && out.Contiguous() && out.rows == matrix.shape.rows &&
                     out.cols == matrix.shape.cols,
                 "{}: {} x {} codes on the {} to {} x {} values on the {}",
                 function,
                 matrix.shape.rows,
                 matrix.shape.cols,
                 ToString(matrix.place()),
                 out.rows,
                 out.cols,
                 ToString(out.place));
}

}  // namespace

std::span<const uint8_t> QuantizedMatrix::Codes8() const {
  return format.StorageBytes() == 1 ? CodeBytes().Span() : std::span<const uint8_t>();
}

std::span<const uint16_t> QuantizedMatrix::Codes16() const {
  if (format.StorageBytes() == 1) return {};
  const std::span<const uint8_t> bytes = CodeBytes().Span();
  return {reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / 2};
}

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
  RequireSize(in.size(), shape, "Quantize", "in");
  QuantizeInto(HostMatrix(in, shape), options, result);
}

void QuantizeInto(In<float> in, const QuantizeOptions& options, QuantizedMatrix& result) {
  CheckCall(in, options, "Quantize");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (in.place.IsHost() && UsesDevice()) {
      Buffer<float> copy(ThreadPlace());
      CopyMatrix<float>(in, copy.Resize(in.rows, in.cols));
      QuantizedMatrix there(copy.place());
      QuantizeInto(copy.View(), options, there);
      result = OnHost(there);
      return;
    }
  }
  Prepare(in.place, in.Shape(), options, TakesTensorMaximum(options.scale_rule), result);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!in.place.IsHost()) return QuantizeOnDevice(in, options, result);
  }
  const size_t rows = BandRows(in.Shape(), options);
  if (rows != 0) return QuantizeBands(rows, in.Span(), in.Shape(), options, result);
  const std::span<float> scales = result.scales.Span();
  const std::span<float> inv_scales = InvScaleScratch(scales.size());
  const std::span<float> tensor_scale = result.tensor_scale.Span();
  MakeScalesOf(in.Span(), in.Shape(), options, scales, inv_scales, tensor_scale);
  QuantizeWith(inv_scales, in, options, result);
}

void QuantizeUnder(const Scale& scale,
                   In<float> in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  NUMSIM_REQUIRE(std::isfinite(scale.scale) && std::isfinite(scale.inv_scale),
                 "QuantizeUnder: scale {} with inverse {}, expected finite float32 numbers",
                 scale.scale,
                 scale.inv_scale);
  QuantizeUnderOne(scale, in, options, result);
}

void QuantizeUnder(DelayedScale& delayed,
                   In<float> in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  NUMSIM_REQUIRE(delayed.place() == in.place,
                 "QuantizeUnder: the scale is on the {}, the matrix on the {}",
                 ToString(delayed.place()),
                 ToString(in.place));
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!in.place.IsHost()) {
      PrepareUnder(in, options, result);
      return QuantizeUnderOnDevice(delayed, in, options, result);
    }
  }
  QuantizeUnderOne(delayed.Current(), in, options, result);
  delayed.Record(AbsmaxOfAll(in.Span()));
}

void Dequantize(const QuantizedMatrix& matrix, std::span<float> out) {
  RequireSize(out.size(), matrix.shape, "Dequantize", "out");
  Dequantize(matrix, HostMatrix(out, matrix.shape));
}

void Dequantize(const QuantizedMatrix& matrix, MatrixSpan<float> out) {
  CheckDecode("Dequantize", matrix, out);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!out.place.IsHost()) return DequantizeOnDevice(matrix, true, out);
  }
  WithCodes(matrix.format, matrix.codes.View(), [&](auto codes) {
    Dequantize(matrix.format, codes, matrix.shape, matrix.layout, matrix.Scales(), out.Span());
  });
}

void DecodeCodes(const QuantizedMatrix& matrix, MatrixSpan<float> out) {
  CheckDecode("DecodeCodes", matrix, out);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!out.place.IsHost()) return DequantizeOnDevice(matrix, false, out);
  }
  WithCodes(matrix.format, matrix.codes.View(), [&](auto codes) {
    Decode(matrix.format, codes, out.Span());
  });
}

std::vector<uint8_t> GroupScaleCodes(const QuantizedMatrix& matrix) {
  NUMSIM_REQUIRE(matrix.tensor_scale.View().Elements() == 1,
                 "GroupScaleCodes: {} scales of the tensor, expected 1 of a rule with two levels",
                 matrix.tensor_scale.View().Elements());
  // The quotient is so near the number of e4m3fn that no other one is nearer: the product has at
  // least 12 significant bits even where it is subnormal, because T is at least 2^-128.
  const float tensor_scale = matrix.tensor_scale.Span()[0];
  std::vector<float> groups(matrix.Scales().begin(), matrix.Scales().end());
  for (float& scale : groups) scale /= tensor_scale;
  std::vector<uint8_t> codes(groups.size());
  Encode(MakeEncodePlan(kE4M3fn), std::span<const float>(groups), std::span(codes));
  return codes;
}

QuantizedMatrix OnHost(const QuantizedMatrix& matrix) {
  QuantizedMatrix result;
  result.format = matrix.format;
  result.shape = matrix.shape;
  result.layout = matrix.layout;
  result.order = matrix.order;
  const auto copy = [](const auto& from, auto& to) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(from.View().data)>>;
    CopyMatrix<T>(from.View(), to.Resize(from.View().rows, from.View().cols));
  };
  copy(matrix.codes, result.codes);
  copy(matrix.transposed, result.transposed);
  copy(matrix.scales, result.scales);
  copy(matrix.tensor_scale, result.tensor_scale);
  return result;
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
