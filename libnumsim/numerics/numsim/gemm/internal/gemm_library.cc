// Products in mode library: operands as a linear algebra library takes them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_parts.h"
#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {
namespace {

// Gives every NaN of the result the bits of NanResult.
void MakeNansEqual(std::span<float> out) {
  const float nan = std::bit_cast<float>(NanResult({.kind = AccumulationKind::kLibrary}));
  ParallelFor(out.size(), 65536, [&](size_t begin, size_t end) {
    Magnitudes found;
    AddMagnitudes(out.data() + begin, end - begin, found);
    if (found.finite) return;  // nearly always, and reading takes half as long as writing
    for (size_t i = begin; i < end; ++i) out[i] = std::isnan(out[i]) ? nan : out[i];
  });
}

// Returns an operand's values with its scales multiplied in, for a library that takes no scales.
std::vector<float> ScaledValues(const GemmOperand& x) {
  std::vector<float> values(x.rows * x.inner);
  const size_t segment = x.scales.segment == 0 ? std::max<size_t>(x.inner, 1) : x.scales.segment;
  ParallelFor(x.rows, 16, [&](size_t begin, size_t end) {
    PackFloatPanels(
        x, 1, begin, end - begin, {0, x.inner}, values.data() + begin * x.inner, x.inner);
    for (size_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < x.inner; ++k) values[i * x.inner + k] *= x.scales.At(i, k / segment);
    }
  });
  return values;
}

// True for bf16 and for formats of which every value is zero, a normal number of bf16, an infinity or
// NaN.
bool FitsBf16(const FormatSpec& format) {
  return format == kBf16 || (format.mantissa_bits <= kBf16.mantissa_bits &&
                             format.SubnormalExponent() >= kBf16.MinExponent() &&
                             format.MaxExponent() <= kBf16.MaxExponent());
}

bool HasBf16Codes(const GemmOperand& x) { return x.format == kBf16 && !x.codes16.Empty(); }

// True if an operand is multiplied as bf16: as it is, or narrowed where that is worth the time.
bool IsBf16Factor(const GemmOperand& x) {
  return x.scales.segment == 0 && (HasBf16Codes(x) || (MultipliesBf16() && FitsBf16(x.format)));
}

// Returns an operand without its scales as bf16 codes. `codes` is memory for them.
LibraryFactor<uint16_t> Bf16Factor(const GemmOperand& x, std::vector<uint16_t>& codes) {
  if (HasBf16Codes(x)) return {x.codes16.data, x.rows, x.inner, x.transposed};
  codes.resize(x.rows * x.inner);
  ParallelFor(codes.size(), 16384, [&](size_t begin, size_t end) {
    constexpr size_t kPiece = 1024;
    float buffer[kPiece];
    for (size_t at = begin; at < end; at += kPiece) {
      const size_t n = std::min(kPiece, end - at);
      const float* const values = StoredRun(x, at, n, buffer);
      // A NaN may have its bits in the lower half.
      for (size_t i = 0; i < n; ++i) {
        const auto bits = std::bit_cast<uint32_t>(values[i]) >> 16;
        codes[at + i] = static_cast<uint16_t>(values[i] == values[i] ? bits : bits | 0x40);
      }
    }
  });
  return {codes.data(), x.rows, x.inner, x.transposed};
}

// Multiplies each element of the result by the scales of its row and column.
void ScaleResult(const GemmScales& a, const GemmScales& b, size_t cols, std::span<float> out) {
  if (a.data.Empty() && b.data.Empty()) return;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scales_b(cols);
  for (size_t j = 0; j < cols; ++j) scales_b[j] = b.At(j, 0);
  ParallelFor(out.size() / cols, 1 + 16384 / cols, [&](size_t begin, size_t end) {
    std::vector<float> sums(cols);
    for (size_t i = begin; i < end; ++i) {
      const float scale_a = a.At(i, 0);
      const std::span<float> row = out.subspan(i * cols, cols);
      std::copy(row.begin(), row.end(), sums.begin());
      StoreScaled(sums.data(),
                  cols,
                  {&scale_a, scales_b.data(), 0, 1, false, false, kNan},
                  {row.data(), cols, 1, cols});
    }
  });
}

void RunLibrary(const GemmOperand& a, const GemmOperand& b, std::span<float> out) {
  if (IsBf16Factor(a) && IsBf16Factor(b)) {
    std::vector<uint16_t> codes_a, codes_b;
    LibraryProduct(Bf16Factor(a, codes_a), Bf16Factor(b, codes_b), out.data());
    return ScaleResult(a.scales, b.scales, b.rows, out);
  }
  const bool scaled = !a.scales.data.Empty() || !b.scales.data.Empty();
  std::vector<float> values_a, values_b;
  const auto factor = [scaled](const GemmOperand& x, std::vector<float>& values) {
    if (!scaled && !x.values.Empty()) {
      return LibraryFactor<float>{x.values.data, x.rows, x.inner, x.transposed};
    }
    values = ScaledValues(x);
    return LibraryFactor<float>{values.data(), x.rows, x.inner, false};
  };
  LibraryProduct(factor(a, values_a), factor(b, values_b), out.data());
}

}  // namespace

void WidenedProduct(const LibraryFactor<uint16_t>& a,
                    const LibraryFactor<uint16_t>& b,
                    float* out) {
  const size_t size_a = a.rows * a.inner, size_b = b.rows * b.inner;
  std::vector<float> values(size_a + size_b);
  const std::span<float> values_a = std::span(values).first(size_a);
  const std::span<float> values_b = std::span(values).subspan(size_a);
  Decode(kBf16, std::span(a.data, size_a), values_a);
  Decode(kBf16, std::span(b.data, size_b), values_b);
  LibraryProduct(LibraryFactor<float>{values_a.data(), a.rows, a.inner, a.transposed},
                 LibraryFactor<float>{values_b.data(), b.rows, b.inner, b.transposed},
                 out);
}

void GemmByLibrary(const GemmOperand& a, const GemmOperand& b, std::span<float> out) {
  RunLibrary(a, b, out);
  MakeNansEqual(out);
}

}  // namespace numsim
