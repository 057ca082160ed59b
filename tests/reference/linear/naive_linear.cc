#include "tests/reference/linear/naive_linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

#include "tests/reference/accumulate.h"
#include "tests/reference/oracle.h"

namespace numsim::naive {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

oracle::Mode OracleMode(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::kNearestEven:
      return oracle::Mode::kNearestEven;
    case RoundingMode::kNearestAway:
      return oracle::Mode::kNearestAway;
    case RoundingMode::kTowardZero:
      return oracle::Mode::kTowardZero;
    case RoundingMode::kUp:
      return oracle::Mode::kUp;
    case RoundingMode::kDown:
      return oracle::Mode::kDown;
    case RoundingMode::kToOdd:
      return oracle::Mode::kToOdd;
    case RoundingMode::kStochastic:
      break;
  }
  return oracle::Mode::kStochastic;
}

oracle::Variant OracleVariant(StochasticVariant variant) {
  switch (variant) {
    case StochasticVariant::kA:
      return oracle::Variant::kA;
    case StochasticVariant::kB:
      return oracle::Variant::kB;
    case StochasticVariant::kC:
      break;
  }
  return oracle::Variant::kC;
}

oracle::Setting Saturating(const Rounding& rounding) {
  return {OracleMode(rounding.mode),
          oracle::Policy::kSaturate,
          OracleVariant(rounding.variant),
          rounding.random_bits};
}

// The largest e with m 2^e <= a.
int FloorExponent(double a, double m) {
  int e = 0;
  while (std::ldexp(m, e) > a) --e;
  while (std::ldexp(m, e + 1) <= a) ++e;
  return e;
}

// A scale of e4m3fn under a scale of the tensor [NVFP4].
Scale TwoLevelScale(float a, float tensor, float m) {
  const float encode = tensor == 0 ? 1 : std::min(448 * m / tensor, kLargest);
  const float decode = 1 / encode;
  const float of_group =
      oracle::RoundFloat32(oracle::GridOf("e4m3fn"), a / m * encode, Saturating({}), 0);
  const float scale = of_group * decode;
  return {scale, scale == 0 ? 0 : std::min(1 / scale, kLargest)};
}

float TensorScale(float tensor, float m) {
  return tensor == 0 ? 1 : 1 / std::min(448 * m / tensor, kLargest);
}

// The scale of elements whose largest finite magnitude is a, for a format whose largest value is m,
// as numsim/quantize/scale.h defines the rules; of magnitudes that need no clamping. `tensor` is
// the largest finite magnitude of the tensor.
Scale ScaleOf(float a, float tensor, float m, int mantissa_bits, ScaleRule rule) {
  if (rule == ScaleRule::kNvfp4) return TwoLevelScale(a, tensor, m);
  if (rule == ScaleRule::kE4m3) {
    const float s = oracle::RoundFloat32(oracle::GridOf("e4m3fn"), a / m, Saturating({}), 0);
    return {s, s == 0 ? 0 : 1 / s};
  }
  if (a == 0 || rule == ScaleRule::kNone) return {};
  if (rule == ScaleRule::kAbsmax) return {a / m, m / a};
  int e = FloorExponent(a, m);
  if (rule == ScaleRule::kPow2Ceil && std::ldexp(static_cast<double>(m), e) < a) ++e;
  if (rule >= ScaleRule::kE8m0 && rule != ScaleRule::kPow2Ceil) {
    // Part of an ulp by which the rule increases a.
    const double part = rule == ScaleRule::kE8m0Even           ? 0.5
                        : rule == ScaleRule::kE8m0Ulp          ? 1
                        : rule == ScaleRule::kE8m0ThreeEighths ? 0.375
                                                               : 0;
    const double ulp = std::ldexp(1.0, FloorExponent(a, 1) - mantissa_bits);
    e = FloorExponent(a + part * ulp, 1) - FloorExponent(m, 1);
    const bool power = std::ldexp(1.0, FloorExponent(a, 1)) == a;
    if (rule == ScaleRule::kE8m0Ceil && !power) ++e;
  }
  return {std::ldexp(1.0f, e), std::ldexp(1.0f, -e)};
}

using oracle::DotSide;
// The sum of the products of two rows of values.
using Dot = std::function<double(const DotSide& a, const DotSide& b)>;

double IntegerDot(const DotSide& a, const DotSide& b) {
  int64_t sum = 0;
  for (size_t k = 0; k < a.values.size(); ++k) {
    sum += static_cast<int64_t>(a.values[k]) * static_cast<int64_t>(b.values[k]);
  }
  return static_cast<double>(sum);
}

// Products of float32 numbers are exact.
double Float64Dot(const DotSide& a, const DotSide& b) {
  double sum = 0;
  for (size_t k = 0; k < a.values.size(); ++k) {
    sum += static_cast<double>(a.values[k]) * b.values[k];
  }
  return sum;
}

// Sums of `chunk` products, added up.
double Float32Dot(const DotSide& a, const DotSide& b, size_t chunk) {
  float total = 0;
  for (size_t from = 0; from < a.values.size(); from += chunk) {
    float sum = 0;
    for (size_t k = from; k < std::min(from + chunk, a.values.size()); ++k) {
      sum = std::fma(a.values[k], b.values[k], sum);
    }
    total += sum;
  }
  return total;
}

Dot SequentialDot(const oracle::FloatGrid& grid) {
  return [grid](const DotSide& a, const DotSide& b) {
    return oracle::SequentialDot(a, b, grid, true);
  };
}

Dot AlignedDot(const oracle::AlignedUnit& unit) {
  return [unit](const DotSide& a, const DotSide& b) { return oracle::AlignedDot(a, b, unit); };
}

Dot ChunkedDot(size_t chunk) {
  return [chunk](const DotSide& a, const DotSide& b) { return Float32Dot(a, b, chunk); };
}

Dot DotOf(const std::string& mode, bool integers) {
  const std::string chunked = "fp32-chunked:", in_parts = "trunc:25,16,";
  if (mode == "exact" && integers) return IntegerDot;
  if (mode == "exact" || mode == "fp64") return Float64Dot;
  if (mode == "fp32") return ChunkedDot(SIZE_MAX / 2);
  if (mode == "fp16") return SequentialDot({11, -14, 15});
  if (mode == "bf16") return SequentialDot({8, -126, 127});
  if (mode == "hopper-fp8") return AlignedDot({.fraction_bits = 13, .chunk = 32, .promote = 128});
  if (mode == "hopper-bf16") return AlignedDot({.fraction_bits = 25, .chunk = 16});
  if (mode.starts_with(in_parts)) {
    const auto part = static_cast<size_t>(std::stoul(mode.substr(in_parts.size())));
    return AlignedDot({.fraction_bits = 25, .chunk = 16, .promote = part});
  }
  if (mode.starts_with(chunked)) return ChunkedDot(std::stoul(mode.substr(chunked.size())));
  throw std::invalid_argument("naive::Product knows no accumulation mode " + mode);
}

// Exponent of the smallest normal number.
int MinExponent(const std::string& format) {
  const oracle::Format& f = oracle::FindFormat(format);
  return (f.has_zero ? 1 : 0) - f.bias;
}

std::optional<oracle::ScaledUnit> UnitOf(const std::string& mode) {
  constexpr int kE8m0 = -127, kE4m3 = -6;
  if (mode == "mxf8f6f4") return oracle::ScaledUnit{25, 32, 0, kE8m0};
  if (mode == "mxf4") return oracle::ScaledUnit{35, 64, 16, kE8m0};
  if (mode == "mxf4nvf4") return oracle::ScaledUnit{35, 64, 16, kE4m3};
  return std::nullopt;
}

// The scales of the elements without that of the tensor, which is a factor of each.
std::vector<float> ScalesWithoutTensor(const Operand& x) {
  std::vector<float> scales = x.scales.data;
  if (x.tensor == 1) return scales;
  for (float& s : scales) {
    s = oracle::RoundFloat32(oracle::GridOf("e4m3fn"), s / x.tensor, Saturating({}), 0);
  }
  return scales;
}

Matrix ProductOfUnit(const Operand& a, const Operand& b, const oracle::ScaledUnit& unit) {
  const size_t inner = a.values.cols;
  const std::vector<float> sa = ScalesWithoutTensor(a), sb = ScalesWithoutTensor(b);
  const auto side = [&](const Operand& x, const std::vector<float>& scales, size_t row) {
    return oracle::ScaledSide{
        {std::span(x.values.data).subspan(row * inner, inner), MinExponent(x.format)},
        std::span(scales).subspan(row * inner, inner),
        1};
  };
  Matrix out{a.values.rows, b.values.rows, {}};
  for (size_t i = 0; i < out.rows; ++i) {
    for (size_t j = 0; j < out.cols; ++j) {
      const double sum = oracle::BlockScaledDot(side(a, sa, i), side(b, sb, j), unit);
      const double scale = static_cast<double>(a.tensor) * b.tensor;
      out.data.push_back(static_cast<float>(sum * scale));
    }
  }
  return out;
}

}  // namespace

Matrix Transposed(const Matrix& in) {
  Matrix out{in.cols, in.rows, std::vector<float>(in.data.size())};
  for (size_t r = 0; r < in.rows; ++r) {
    for (size_t c = 0; c < in.cols; ++c) out.data[c * in.rows + r] = in.At(r, c);
  }
  return out;
}

Group WholeTensor() {
  return [](size_t, size_t) { return std::pair<size_t, size_t>(0, 0); };
}
Group EachRow() {
  return [](size_t r, size_t) { return std::pair<size_t, size_t>(r, 0); };
}
Group EachColumn() {
  return [](size_t, size_t c) { return std::pair<size_t, size_t>(0, c); };
}
Group Tiles(size_t rows, size_t cols) {
  return [=](size_t r, size_t c) { return std::pair<size_t, size_t>(r / rows, c / cols); };
}

Operand Quantised(const Matrix& in, const Quantiser& q) {
  std::map<std::pair<size_t, size_t>, float> absmax;
  for (size_t r = 0; r < in.rows; ++r) {
    for (size_t c = 0; c < in.cols; ++c) {
      float& a = absmax[q.group(r, c)];
      if (std::isfinite(in.At(r, c))) a = std::max(a, std::abs(in.At(r, c)));
    }
  }
  const oracle::Grid& grid = oracle::GridOf(q.format);
  const auto largest = static_cast<float>(grid.Value(grid.end() - 1));
  float tensor = 0;
  for (const auto& [group, a] : absmax) tensor = std::max(tensor, a);
  std::map<std::pair<size_t, size_t>, Scale> scales;
  for (const auto& [group, a] : absmax) {
    const int bits = oracle::FindFormat(q.format).mantissa_bits;
    scales[group] = q.given ? *q.given : ScaleOf(a, tensor, largest, bits, q.rule);
  }
  Operand out{q.format, in, in};
  if (q.rule == ScaleRule::kNvfp4) out.tensor = TensorScale(tensor, largest);
  const oracle::Setting setting = Saturating(q.rounding);
  const bool draws = q.rounding.mode == RoundingMode::kStochastic;
  for (size_t r = 0; r < in.rows; ++r) {
    for (size_t c = 0; c < in.cols; ++c) {
      const size_t i = r * in.cols + c;
      const Scale& scale = scales[q.group(r, c)];
      const uint32_t random = draws ? RandomBits(q.stream, i, q.rounding.random_bits) : 0;
      out.values.data[i] =
          oracle::RoundFloat32(grid, in.data[i] * scale.inv_scale, setting, random);
      out.scales.data[i] = scale.scale;
    }
  }
  return out;
}

Operand Cast(const Matrix& in, const std::string& format) {
  Operand out{format, in, in};
  std::ranges::fill(out.scales.data, 1.0f);
  if (format == "fp32") return out;
  for (float& x : out.values.data) x = oracle::RoundFloat32(oracle::GridOf(format), x, {});
  return out;
}

Operand Transposed(const Operand& in) {
  return {in.format, Transposed(in.values), Transposed(in.scales), in.tensor};
}

Matrix Dequantised(const Operand& in) {
  Matrix out = in.values;
  for (size_t i = 0; i < out.data.size(); ++i) out.data[i] *= in.scales.data[i];
  return out;
}

Matrix Product(const Operand& a, const Operand& b, const std::string& mode, size_t segment) {
  if (const auto unit = UnitOf(mode)) return ProductOfUnit(a, b, *unit);
  const size_t inner = a.values.cols;
  const Dot dot = DotOf(mode, a.format == "int8" && b.format == "int8");
  const int min_a = MinExponent(a.format), min_b = MinExponent(b.format);
  const std::span<const float> va(a.values.data), vb(b.values.data);
  Matrix out{a.values.rows, b.values.rows, {}};
  for (size_t i = 0; i < out.rows; ++i) {
    for (size_t j = 0; j < out.cols; ++j) {
      float total = 0;
      for (size_t from = 0; from < inner;) {
        const size_t to = segment == 0 ? inner : std::min(from + segment, inner);
        const double scale = static_cast<double>(a.scales.At(i, from)) * b.scales.At(j, from);
        const double sum = dot({va.subspan(i * inner + from, to - from), min_a},
                               {vb.subspan(j * inner + from, to - from), min_b});
        const float t = static_cast<float>(sum * scale);
        total = from == 0 ? t : total + t;
        from = to;
      }
      out.data.push_back(total);
    }
  }
  return out;
}

}  // namespace numsim::naive
