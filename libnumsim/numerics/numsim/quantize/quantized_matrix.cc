#include "numsim/quantize/quantized_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/formats/value_table.h"
#include "numsim/quantize/internal/four_over_six.h"
#include "numsim/quantize/internal/ms_eden.h"
#include "numsim/quantize/internal/quantized_device.h"
#include "numsim/quantize/internal/two_levels_simd.h"
#include "numsim/quantize/shared/quantize_simd.h"
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

bool IsOfColumns(const ScaleLayout& layout) { return layout.granularity == Granularity::kTile; }

// Replaces maxima of blocks by scales under the rule nvfp4-row, and writes the scale of each row.
void MakeRowScales(MatrixShape shape,
                   const QuantizeOptions& options,
                   std::span<float> scales,
                   std::span<float> inv_scales,
                   std::span<float> row_scales) {
  const ScaleFactory maker(options.format, options.scale_rule);
  const bool columns = IsOfColumns(options.layout);
  const size_t rows = columns ? shape.cols : shape.rows;
  const size_t blocks = rows == 0 ? 0 : scales.size() / rows;
  const size_t step = columns ? rows : 1, next = columns ? 1 : blocks;
  for (size_t row = 0; row < rows; ++row) {
    float most = 0;
    for (size_t i = 0; i < blocks; ++i) most = std::max(most, scales[row * next + i * step]);
    const ScaleFactory of_row = maker.ForTensor(most);
    if (!row_scales.empty()) row_scales[row] = of_row.TensorScale();
    if (step == 1) {
      float* const of_blocks = &scales[row * next];
      MakeTwoLevelScales(of_row, of_blocks, blocks, of_blocks, &inv_scales[row * next]);
      continue;
    }
    for (size_t i = 0; i < blocks; ++i) {
      const size_t at = row * next + i * step;
      const Scale made = of_row(scales[at]);
      scales[at] = made.scale;
      inv_scales[at] = made.inv_scale;
    }
  }
}

// Writes the scales of the layout and as many inverse scales.
void MakeScalesOf(std::span<const float> in,
                  MatrixShape shape,
                  const QuantizeOptions& options,
                  std::span<float> scales,
                  std::span<float> inv_scales,
                  std::span<float> tensor_scale = {}) {
  if (options.scale_rule != ScaleRule::kNone) {
    Absmax(HostMatrix(in, shape), options.layout, scales);
  }
  if (options.scale_rule == ScaleRule::kNvfp4Row) {
    return MakeRowScales(shape, options, scales, inv_scales, tensor_scale);
  }
  ScaleFactory maker(options.format, options.scale_rule);
  if (!TakesTensorMaximum(options.scale_rule)) return MakeScales(maker, scales, inv_scales);
  const float most = FiniteAbsmax(scales.data(), scales.size());
  maker = maker.ForTensor(most);
  if (!tensor_scale.empty()) tensor_scale[0] = maker.TensorScale();
  if (!ComparesElements(options.scale_rule)) {
    ParallelFor(scales.size(), kGrain, [&](size_t begin, size_t end) {
      float* const from = scales.data() + begin;
      MakeTwoLevelScales(maker, from, end - begin, from, inv_scales.data() + begin);
    });
    if (options.scale_rule == ScaleRule::kMsEden) {
      CorrectScales(in, shape, options, maker.TensorScale(), scales, inv_scales);
    }
    return;
  }
  ChooseFourOrSix(in, shape, options.layout, options.scale_rule, maker, most, scales, inv_scales);
}

// Throws Error if the format is not one that the rule is for.
void CheckRule(const QuantizeOptions& options, const char* function) {
  const ScaleRule rule = options.scale_rule;
  const bool rounds_maxima = rule == ScaleRule::kE8m0Even || rule == ScaleRule::kE8m0Ulp ||
                             rule == ScaleRule::kE8m0ThreeEighths;
  NUMSIM_REQUIRE(!rounds_maxima || !options.format.IsTable(),
                 "{}: the scale rule {} needs a format with mantissa bits, not {}",
                 function,
                 ToString(rule),
                 ToString(options.format));
  NUMSIM_REQUIRE(!ReadsElements(rule) || options.format == kE2M1fn,
                 "{}: the scale rule {} is for e2m1fn, not for {}",
                 function,
                 ToString(rule),
                 ToString(options.format));
  if (!DependsOnRow(rule)) return;
  const ScaleLayout& layout = options.layout;
  const bool blocks = layout.granularity == Granularity::kBlock ||
                      (layout.granularity == Granularity::kTile && layout.block == 1);
  NUMSIM_REQUIRE(blocks,
                 "{}: the scale rule {} is for blocks of rows or columns, not for the layout {}",
                 function,
                 ToString(rule),
                 ToString(layout));
  if (rule != ScaleRule::kMsEden) return;
  const size_t block = IsOfColumns(layout) ? layout.tile_rows : layout.block;
  NUMSIM_REQUIRE(options.correction_run != 0 && options.correction_run % block == 0,
                 "{}: a correction_run of {} elements under the scale rule ms-eden, expected a "
                 "multiple of the block of {}; a linear layer sets it to the size of its Hadamard "
                 "transform",
                 function,
                 options.correction_run,
                 block);
  NUMSIM_REQUIRE(options.rounding.mode == RoundingMode::kNearestEven,
                 "{}: the rounding {} under the scale rule ms-eden, expected rne",
                 function,
                 ToString(options.rounding.mode));
}

// Checks the arguments of a call that writes codes.
void CheckCall(ConstFloatSpan in, const QuantizeOptions& options, const char* function) {
  RequireContiguous(in, function);
  RequireLayout(options.layout, function);
  NUMSIM_REQUIRE(options.format.Bits() <= 16,
                 "{}: the format {} has {} bits, expected at most 16",
                 function,
                 ToString(options.format),
                 options.format.Bits());
  if (!in.place.IsHost()) RefuseTable(options.format, "a device");
  CheckRule(options, function);
  MakeEncodePlan(options.format, options.rounding, options.overflow);  // checks the rounding
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

// Copies codes and scales, perhaps to another place.
void CopyParts(const QuantizedMatrix& from, QuantizedMatrix& to) {
  const auto copy = []<typename T>(const Buffer<T>& part, Buffer<T>& result) {
    CopyMatrix<T>(part.View(), result.Renew(part.View().rows, part.View().cols));
  };
  copy(from.codes, to.codes);
  copy(from.transposed, to.transposed);
  copy(from.scales, to.scales);
  copy(from.tensor_scale, to.tensor_scale);
}

// Writes the codes of the matrix under the given inverse scales.
void QuantizeWith(std::span<const float> inv_scales,
                  ConstFloatSpan in,
                  const QuantizeOptions& options,
                  QuantizedMatrix& result) {
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  const auto write = [&](Buffer<uint8_t>& to, bool transpose) {
    WithCodes(options.format, to.View(), [&](auto codes) {
      Quantize(plan, in, options.layout, inv_scales, codes, options.random, transpose);
    });
  };
  if (result.HasCodes()) write(result.codes, false);
  if (result.HasTransposed()) write(result.transposed, true);
}

// Returns the scaled elements of options that are not the usual ones, and makes the scales of groups with
// a NaN NaN if they say so.
std::vector<float> ScaledElements(std::span<const float> in,
                                  MatrixShape shape,
                                  const QuantizeOptions& options,
                                  std::span<float> scales,
                                  std::span<const float> inv_scales) {
  const auto scale_of = [&](size_t i) {
    return options.layout.Index(i / shape.cols, i % shape.cols, shape.cols);
  };
  if (options.nan_scales) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (std::isnan(in[i])) scales[scale_of(i)] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  std::vector<float> scaled(in.size());
  ParallelFor(in.size(), kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t s = scale_of(i);
      if (std::isnan(scales[s])) {
        scaled[i] = scales[s];
      } else if (!options.divide) {
        scaled[i] = in[i] * inv_scales[s];
      } else {
        scaled[i] = scales[s] == 0 ? std::copysign(0.0f, in[i]) : in[i] / scales[s];
      }
    }
  });
  return scaled;
}

// Returns the options for elements that are scaled already.
QuantizeOptions WithoutScales(const QuantizeOptions& options) {
  QuantizeOptions result = options;
  result.layout = {};
  result.scale_rule = ScaleRule::kNone;
  return result;
}

void RequireUsual(const QuantizeOptions& options, const char* what) {
  NUMSIM_REQUIRE(options.IsUsual(), "Quantize: division and NaN scales {}", what);
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
        const auto matrix = HostMatrix(values, band);
        Absmax(matrix, layout, absmax);
        MakeScales(maker, absmax, inv_scales);
        Quantize(plan,
                 matrix,
                 layout,
                 inv_scales,
                 codes.subspan(at, band.Elements()),
                 {options.random.stream, options.random.first_index + at});
      }
    });
  });
}

void PrepareUnder(ConstFloatSpan in, const QuantizeOptions& options, QuantizedMatrix& result) {
  CheckCall(in, options, "QuantizeUnder");
  RequireUsual(options, "are not for a given scale");
  NUMSIM_REQUIRE(options.layout.granularity == Granularity::kTensor,
                 "QuantizeUnder: one scale for the layout {}, expected tensor",
                 ToString(options.layout));
  QuantizeOptions given = options;
  given.scale_rule = ScaleRule::kNone;
  Prepare(in.place, in.Shape(), given, result);
}

void QuantizeUnderOne(const Scale& scale,
                      ConstFloatSpan in,
                      const QuantizeOptions& options,
                      QuantizedMatrix& result) {
  PrepareUnder(in, options, result);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!in.place.IsHost()) return cuda::QuantizeUnder(scale, in, options, result);
  }
  result.scales.Span()[0] = scale.scale;
  QuantizeWith(std::span(&scale.inv_scale, 1), in, options, result);
}

// Checks the arguments of a call that decodes. Returns `out` with the shape of the matrix.
FloatSpan CheckDecode(const char* function, const QuantizedSpan& matrix, FloatSpan out) {
  RequireContiguous(out, function);
  RequireSize(out.Elements(), matrix.shape, function, "out");
  const auto bytes = static_cast<size_t>(matrix.format.StorageBytes());
  RequireSize(matrix.codes.Elements() / bytes, matrix.shape, function, "codes");
  RequireScales(matrix.scales.Elements(), matrix.layout, matrix.shape, function, "scales");
  const Place place = OnePlace(function, {matrix.codes.place, matrix.scales.place, out.place});
  if (!place.IsHost()) RefuseTable(matrix.format, "a device");
  return {out.data, matrix.shape, out.place, out.element};
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

QuantizedSpan::QuantizedSpan(const QuantizedMatrix& matrix)
    : QuantizedSpan(matrix.format,
                    matrix.shape,
                    matrix.layout,
                    matrix.codes.View(),
                    matrix.scales.View(),
                    matrix.tensor_scale.View()) {
  NUMSIM_REQUIRE(matrix.HasCodes(), "QuantizedSpan: the codes are transposed, expected in order");
}

size_t TensorScaleCount(ScaleRule rule, const ScaleLayout& layout, MatrixShape shape) {
  if (rule == ScaleRule::kNvfp4Row) return IsOfColumns(layout) ? shape.cols : shape.rows;
  return TakesTensorMaximum(rule) ? 1 : 0;
}

void Prepare(Place place,
             MatrixShape shape,
             const QuantizeOptions& options,
             QuantizedMatrix& result) {
  if (result.place() != place) result = QuantizedMatrix(place);
  result.format = options.format;
  result.shape = shape;
  result.layout = options.layout;
  result.order = options.order;
  const size_t bytes = shape.Elements() * static_cast<size_t>(options.format.StorageBytes());
  result.codes.Renew(result.HasCodes() ? bytes : 0);
  result.transposed.Renew(result.HasTransposed() ? bytes : 0);
  result.scales.Renew(options.layout.Count(shape.rows, shape.cols));
  result.tensor_scale.Renew(TensorScaleCount(options.scale_rule, options.layout, shape));
}

QuantizedMatrix Quantize(ConstFloatSpan in, const QuantizeOptions& options) {
  QuantizedMatrix result;
  QuantizeInto(in, options, result);
  return result;
}

void QuantizeInto(ConstFloatSpan in, const QuantizeOptions& options, QuantizedMatrix& result) {
  CheckCall(in, options, "Quantize");
  if (!in.place.IsHost()) {
    RequireUsual(options, "have no device path");
    NUMSIM_REQUIRE(!IsOnlyForHost(options.scale_rule),
                   "Quantize: the scale rule {} has no device path",
                   ToString(options.scale_rule));
  }
  if constexpr (NUMSIM_HAVE_CUDA) {
    const bool on_device =
        options.IsUsual() && !IsOnlyForHost(options.scale_rule) && !options.format.IsTable();
    if (on_device && Offloads(in.place)) {
      OffloadedCall call;
      QuantizedMatrix there(call.place());
      QuantizeInto(call.In(in.Float32()), options, there);
      Prepare(in.place, in.Shape(), options, result);
      return CopyParts(there, result);
    }
  }
  Prepare(in.place, in.Shape(), options, result);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!in.place.IsHost()) return cuda::QuantizeInto(in, options, result);
  }
  const size_t rows = options.IsUsual() ? BandRows(in.Shape(), options) : 0;
  const std::span<const float> values = in.Float32().Span();
  if (rows != 0) return QuantizeBands(rows, values, in.Shape(), options, result);
  const std::span<float> scales = result.scales.Span();
  const std::span<float> inv_scales = InvScaleScratch(scales.size());
  const std::span<float> tensor_scale = result.tensor_scale.Span();
  MakeScalesOf(values, in.Shape(), options, scales, inv_scales, tensor_scale);
  if (options.IsUsual()) return QuantizeWith(inv_scales, in, options, result);
  const std::vector<float> scaled = ScaledElements(values, in.Shape(), options, scales, inv_scales);
  constexpr float kOne = 1;
  QuantizeWith(std::span(&kOne, 1),
               HostMatrix(std::span<const float>(scaled), in.Shape()),
               WithoutScales(options),
               result);
}

void QuantizeUnder(const Scale& scale,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  NUMSIM_REQUIRE(std::isfinite(scale.scale) && std::isfinite(scale.inv_scale),
                 "QuantizeUnder: scale {} with inverse {}, expected finite float32 numbers",
                 scale.scale,
                 scale.inv_scale);
  QuantizeUnderOne(scale, in, options, result);
}

void QuantizeUnder(DelayedScale& delayed,
                   ConstFloatSpan in,
                   const QuantizeOptions& options,
                   QuantizedMatrix& result) {
  NUMSIM_REQUIRE(delayed.place() == in.place,
                 "QuantizeUnder: the scale is on the {}, the matrix on the {}",
                 ToString(delayed.place()),
                 ToString(in.place));
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!in.place.IsHost()) {
      PrepareUnder(in, options, result);
      return cuda::QuantizeUnder(delayed, in, options, result);
    }
  }
  QuantizeUnderOne(delayed.Current(), in, options, result);
  delayed.Record(AbsmaxOfAll(in.Float32().Span()));
}

void Dequantize(const QuantizedSpan& matrix, FloatSpan out) {
  const FloatSpan to = CheckDecode("Dequantize", matrix, out);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!out.place.IsHost()) return cuda::Dequantize(matrix, true, to);
  }
  WithCodes(matrix.format, matrix.codes, [&](auto codes) {
    Dequantize(matrix.format, codes, matrix.layout, matrix.scales, to);
  });
}

void DecodeCodes(const QuantizedSpan& matrix, FloatSpan out) {
  const FloatSpan to = CheckDecode("DecodeCodes", matrix, out);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!out.place.IsHost()) return cuda::Dequantize(matrix, false, to);
  }
  if (out.element == Element::kFloat32) {
    WithCodes(matrix.format, matrix.codes, [&](auto codes) {
      Decode(matrix.format, codes, to.Float32());
    });
    return;
  }
  constexpr float kOne = 1;
  WithCodes(matrix.format, matrix.codes, [&](auto codes) {
    Dequantize(matrix.format, codes, ScaleLayout{}, std::span(&kOne, 1), to);
  });
}

std::vector<uint8_t> GroupScaleCodes(const QuantizedMatrix& matrix) {
  const std::span<const float> second = matrix.tensor_scale.Span();
  const std::span<const float> scales = matrix.Scales();
  const bool columns = IsOfColumns(matrix.layout);
  const size_t rows = columns ? matrix.shape.cols : matrix.shape.rows;
  NUMSIM_REQUIRE(second.size() == 1 || (!second.empty() && second.size() == rows),
                 "GroupScaleCodes: {} scales of the second level, expected 1 or one for each row",
                 second.size());
  // The quotient is so near the number of e4m3fn that no other one is nearer: the product has at
  // least 12 significant bits even where it is subnormal, because T is at least 2^-128.
  std::vector<float> groups(scales.begin(), scales.end());
  const size_t blocks = rows == 0 ? 0 : groups.size() / rows;
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i] /= second.size() == 1 ? second[0] : second[columns ? i % rows : i / blocks];
  }
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
  CopyParts(matrix, result);
  return result;
}

std::vector<float> FakeQuantize(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<float> out) {
  RequireSize(in.size(), shape, "FakeQuantize", "in");
  RequireSize(out.size(), shape, "FakeQuantize", "out");
  RequireLayout(options.layout, "FakeQuantize");
  CheckRule(options, "FakeQuantize");
  std::vector<float> scales(options.layout.Count(shape.rows, shape.cols));
  const std::span<float> inv_scales = InvScaleScratch(scales.size());
  MakeScalesOf(in, shape, options, scales, inv_scales);
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  if (!options.IsUsual()) {
    const std::vector<float> scaled = ScaledElements(in, shape, options, scales, inv_scales);
    constexpr float kOne = 1;
    const std::span<const float> one(&kOne, 1);
    FakeQuantize(plan, scaled, shape, ScaleLayout{}, one, one, out, options.random);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] *= scales[options.layout.Index(i / shape.cols, i % shape.cols, shape.cols)];
    }
    return scales;
  }
  FakeQuantize(plan, in, shape, options.layout, inv_scales, scales, out, options.random);
  return scales;
}

}  // namespace numsim
