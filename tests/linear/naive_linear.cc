#include "tests/linear/naive_linear.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"

namespace numsim::naive {
namespace {

bool IsInt8(const FormatSpec& format) { return format == ParseFormat("int8").spec; }

// The largest e with m 2^e <= a.
int FloorExponent(double a, double m) {
  int e = 0;
  while (std::ldexp(m, e) > a) --e;
  while (std::ldexp(m, e + 1) <= a) ++e;
  return e;
}

// The scale of elements whose largest finite magnitude is a > 0, as numsim/quantize/scale.h defines
// the rules; of magnitudes that need no clamping.
Scale ScaleOf(float a, const FormatSpec& format, ScaleRule rule) {
  if (rule == ScaleRule::kNone) return {};
  const float m = MaxFinite(format);
  if (rule == ScaleRule::kAbsmax) return {a / m, m / a};
  int e = FloorExponent(a, m);
  if (rule == ScaleRule::kPow2Ceil && std::ldexp(static_cast<double>(m), e) < a) ++e;
  if (rule == ScaleRule::kE8m0) e = FloorExponent(a, 1) - FloorExponent(m, 1);
  return {std::ldexp(1.0f, e), std::ldexp(1.0f, -e)};
}

double FromUnrounded(const Unrounded& u) {
  if (u.kind == NumberKind::kNan) return std::numeric_limits<double>::quiet_NaN();
  double magnitude = std::numeric_limits<double>::infinity();
  if (u.kind == NumberKind::kFinite) {
    magnitude = std::ldexp(static_cast<double>(u.significand), u.exponent);
  }
  return u.negative ? -magnitude : magnitude;
}

enum class Way { kIntegers, kFloat64, kFloat32, kDefinition };

Way WayOf(const AccumulationMode& rule, const FormatSpec& a, const FormatSpec& b) {
  if (rule == ParseAccumulationMode("fp32")) return Way::kFloat32;
  if (rule.kind != AccumulationKind::kExact) return Way::kDefinition;
  return IsInt8(a) && IsInt8(b) ? Way::kIntegers : Way::kFloat64;
}

// The sum of the products of two rows of values.
double Sum(Way way, const AccumulationMode& rule, const DotOperand& a, const DotOperand& b) {
  const size_t n = a.values.size();
  int64_t integer = 0;
  double wide = 0;
  float narrow = 0;
  switch (way) {
    case Way::kIntegers:
      for (size_t k = 0; k < n; ++k) {
        integer += static_cast<int64_t>(a.values[k]) * static_cast<int64_t>(b.values[k]);
      }
      return static_cast<double>(integer);
    case Way::kFloat64:
      for (size_t k = 0; k < n; ++k) wide += static_cast<double>(a.values[k]) * b.values[k];
      return wide;
    case Way::kFloat32:
      for (size_t k = 0; k < n; ++k) narrow = std::fma(a.values[k], b.values[k], narrow);
      return narrow;
    case Way::kDefinition:
      break;
  }
  return FromUnrounded(Accumulate(rule, a, b));
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
  Operand out{q.format, in, in};
  const EncodePlan plan = MakeEncodePlan(q.format, q.rounding, Overflow::kSaturate);
  for (size_t r = 0; r < in.rows; ++r) {
    for (size_t c = 0; c < in.cols; ++c) {
      const size_t i = r * in.cols + c;
      const float a = absmax[q.group(r, c)];
      const Scale scale = q.given ? *q.given : a == 0 ? Scale{} : ScaleOf(a, q.format, q.rule);
      const bool draws = q.rounding.mode == RoundingMode::kStochastic;
      const uint32_t random = draws ? RandomBits(q.stream, i, q.rounding.random_bits) : 0;
      const float scaled = in.data[i] * scale.inv_scale;
      const uint32_t code = EncodeF32(plan, std::bit_cast<uint32_t>(scaled), random);
      out.values.data[i] = Decode(q.format, code);
      out.scales.data[i] = scale.scale;
    }
  }
  return out;
}

Operand Cast(const Matrix& in, const FormatSpec& format) {
  Operand out{format, in, in};
  std::ranges::fill(out.scales.data, 1.0f);
  if (format == ParseFormat("fp32").spec) return out;
  for (float& x : out.values.data) {
    x = Decode(format, Encode(format, x, Rounding{}, Overflow::kNonsaturate));
  }
  return out;
}

Operand Transposed(const Operand& in) {
  return {in.format, Transposed(in.values), Transposed(in.scales)};
}

Matrix Dequantised(const Operand& in) {
  Matrix out = in.values;
  for (size_t i = 0; i < out.data.size(); ++i) out.data[i] *= in.scales.data[i];
  return out;
}

Matrix Product(const Operand& a, const Operand& b, const AccumulationMode& rule, size_t segment) {
  const size_t inner = a.values.cols;
  const Way way = WayOf(rule, a.format, b.format);
  const std::span<const float> va(a.values.data), vb(b.values.data);
  Matrix out{a.values.rows, b.values.rows, {}};
  for (size_t i = 0; i < out.rows; ++i) {
    for (size_t j = 0; j < out.cols; ++j) {
      float total = 0;
      for (size_t from = 0; from < inner;) {
        const size_t to = segment == 0 ? inner : std::min(from + segment, inner);
        const double scale = static_cast<double>(a.scales.At(i, from)) * b.scales.At(j, from);
        const double sum = Sum(way,
                               rule,
                               {a.format, va.subspan(i * inner + from, to - from)},
                               {b.format, vb.subspan(j * inner + from, to - from)});
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
