#include "numsim/quantize/quantize_float64.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/arith/shared/exact.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/internal/float64_scale.h"
#include "numsim/quantize/internal/overflow_threshold.h"
#include "numsim/quantize/shared/require_scales.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/shared/float64_bits.h"

namespace numsim {
namespace {

constexpr size_t kGrain = 1024;

struct Scales {
  std::vector<float> scales, inv_scales;
  float tensor = 1;
};

Scales MakeScales(std::span<const double> in, MatrixShape shape, const QuantizeOptions& options) {
  std::vector<double> absmax(options.layout.Count(shape.rows, shape.cols));
  if (options.scale_rule != ScaleRule::kNone) Absmax(HostMatrix(in, shape), options.layout, absmax);
  const double most = absmax.empty() ? 0 : *std::ranges::max_element(absmax);
  Scales result;
  for (const double group : absmax) {
    const Scale made = ScaleOfFloat64(options.format, options.scale_rule, {group, most});
    result.scales.push_back(made.scale);
    result.inv_scales.push_back(made.inv_scale);
  }
  if (TakesTensorMaximum(options.scale_rule)) {
    result.tensor = TensorScaleOfFloat64(options.format, options.scale_rule, most);
  }
  for (size_t i = 0; options.nan_scales && i < in.size(); ++i) {
    if (!std::isnan(in[i])) continue;
    result.scales[options.layout.Index(i / shape.cols, i % shape.cols, shape.cols)] =
        std::numeric_limits<float>::quiet_NaN();
  }
  return result;
}

Unrounded Exact(double x) noexcept { return ExactFloat64(std::bit_cast<uint64_t>(x)); }

// Rounds the exact product of an element and its inverse scale, or the exact quotient of the element and
// the scale.
class Rounder {
 public:
  explicit Rounder(const QuantizeOptions& options)
      : plan_(MakeEncodePlan(options.format, options.rounding, options.overflow)),
        random_(options.random),
        divides_(options.divide),
        random_bits_(
            options.rounding.mode == RoundingMode::kStochastic ? options.rounding.random_bits : 0) {
  }

  uint32_t Code(double x, float scale, float inv_scale, size_t i) const noexcept {
    const uint32_t random =
        random_bits_ == 0 ? 0 : RandomBits(random_.stream, random_.first_index + i, random_bits_);
    if (std::isnan(scale)) x = scale;
    if (inv_scale == 1 || std::isnan(x))
      return EncodeF64(plan_, std::bit_cast<uint64_t>(x), random);
    if (divides_ && scale != 0) {
      const Unrounded quotient = exact::Quotient(Exact(x), Exact(static_cast<double>(scale))).value;
      return EncodeUnrounded(plan_, quotient, random).code;
    }
    // The product of 53 and 24 bits is rounded to odd, and from there once.
    const Unrounded product = exact::Product(Exact(x), Exact(static_cast<double>(inv_scale))).value;
    return EncodeUnrounded(plan_, product, random).code;
  }

 private:
  EncodePlan plan_;
  ArrayRandom random_;
  bool divides_;
  int random_bits_;
};

// Calls put(i, s, code) for each element i, which has scale s, on all threads.
template <typename Put>
void ForEachCode(std::span<const double> in,
                 MatrixShape shape,
                 const QuantizeOptions& options,
                 const Scales& scales,
                 const Put& put) {
  const Rounder rounder(options);
  ParallelFor(in.size(), kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t s = options.layout.Index(i / shape.cols, i % shape.cols, shape.cols);
      put(i, s, rounder.Code(in[i], scales.scales[s], scales.inv_scales[s], i));
    }
  });
}

void CheckCall(std::span<const double> in,
               MatrixShape shape,
               const QuantizeOptions& options,
               const char* function) {
  RequireSize(in.size(), shape, function, "in");
  RequireLayout(options.layout, function);
}

}  // namespace

void Absmax(MatrixSpan<const double> matrix, const ScaleLayout& layout, std::span<double> absmax) {
  const std::span<const double> in = matrix.Span();
  const MatrixShape shape = matrix.Shape();
  RequireScales(absmax.size(), layout, shape, "Absmax", "absmax");
  std::ranges::fill(absmax, 0);
  for (size_t r = 0, i = 0; r < shape.rows; ++r) {
    for (size_t c = 0; c < shape.cols; ++c, ++i) {
      if (!std::isfinite(in[i])) continue;
      double& most = absmax[layout.Index(r, c, shape.cols)];
      most = std::max(most, std::abs(in[i]));
    }
  }
}

QuantizedMatrix Quantize(MatrixSpan<const double> matrix, const QuantizeOptions& options) {
  const std::span<const double> in = matrix.Span();
  const MatrixShape shape = matrix.Shape();
  CheckCall(in, shape, options, "Quantize");
  NUMSIM_REQUIRE(options.format.Bits() <= 16 && options.order == CodeOrder::kInput,
                 "Quantize: {} of {} bits in order {}, expected at most 16 bits in input order",
                 ToString(options.format),
                 options.format.Bits(),
                 static_cast<int>(options.order));
  const Scales scales = MakeScales(in, shape, options);
  QuantizedMatrix result;
  result.format = options.format;
  result.shape = shape;
  result.layout = options.layout;
  const auto bytes = static_cast<size_t>(options.format.StorageBytes());
  result.codes.Resize(1, bytes * in.size());
  result.scales.Resize(1, scales.scales.size());
  std::ranges::copy(scales.scales, result.scales.Span().begin());
  if (TakesTensorMaximum(options.scale_rule)) {
    result.tensor_scale.Resize(1, 1);
    result.tensor_scale.Span()[0] = scales.tensor;
  }
  uint8_t* const codes = result.codes.Span().data();
  ForEachCode(in, shape, options, scales, [&](size_t i, size_t, uint32_t code) {
    if (bytes == 1) {
      codes[i] = static_cast<uint8_t>(code);
    } else {
      reinterpret_cast<uint16_t*>(codes)[i] = static_cast<uint16_t>(code);
    }
  });
  return result;
}

std::vector<float> FakeQuantize(std::span<const double> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<double> out) {
  CheckCall(in, shape, options, "FakeQuantize");
  RequireSize(out.size(), shape, "FakeQuantize", "out");
  Scales scales = MakeScales(in, shape, options);
  ForEachCode(in, shape, options, scales, [&](size_t i, size_t s, uint32_t code) {
    // Exact: two factors of 24 bits.
    out[i] =
        static_cast<double>(Decode(options.format, code)) * static_cast<double>(scales.scales[s]);
  });
  return std::move(scales.scales);
}

Float64ErrorMeasures QuantizationError(std::span<const double> in,
                                       MatrixShape shape,
                                       const QuantizeOptions& options) {
  std::vector<double> out(in.size());
  const std::vector<float> scales = FakeQuantize(in, shape, options, out);
  const double threshold = OverflowThreshold(options.format);
  std::vector<double> limits;
  for (const float scale : scales) {  // under a scale of 0 elements underflow, and none overflows
    limits.push_back(scale == 0 ? std::numeric_limits<double>::infinity()
                                : threshold * static_cast<double>(scale));
  }
  return MeasureError(in, out, limits, [&](size_t i) {
    return options.layout.Index(i / shape.cols, i % shape.cols, shape.cols);
  });
}

}  // namespace numsim
