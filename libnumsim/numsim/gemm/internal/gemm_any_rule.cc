// GEMM under any accumulation mode: the file that needs a linear algebra library.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_parts.h"
#include "numsim/gemm/internal/gemm_place_device.h"

namespace numsim {
namespace {

void MakeNansEqual(const AccumulationMode& rule, std::span<float> out) {
  const float nan = std::bit_cast<float>(NanResult(rule));
  ParallelFor(out.size(), 65536, [&](size_t begin, size_t end) {
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

void RunLibrary(const GemmOperand& a, const GemmOperand& b, std::span<float> out) {
  const bool scaled = !a.scales.data.empty() || !b.scales.data.empty();
  const bool bf16 =
      a.format == kBf16 && b.format == kBf16 && !a.codes16.empty() && !b.codes16.empty();
  if (!scaled && bf16) {
    return LibraryProduct(LibraryFactor<uint16_t>{a.codes16.data(), a.rows, a.inner, a.transposed},
                          LibraryFactor<uint16_t>{b.codes16.data(), b.rows, b.inner, b.transposed},
                          out.data());
  }
  std::vector<float> values_a, values_b;
  const auto factor = [scaled](const GemmOperand& x, std::vector<float>& values) {
    if (!scaled && !x.values.empty()) {
      return LibraryFactor<float>{x.values.data(), x.rows, x.inner, x.transposed};
    }
    values = ScaledValues(x);
    return LibraryFactor<float>{values.data(), x.rows, x.inner, false};
  };
  LibraryProduct(factor(a, values_a), factor(b, values_b), out.data());
}

}  // namespace

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& rule,
          std::span<float> out) {
  RequireHost("Gemm with a result on the host", {a.place, b.place});
  if (rule.kind != AccumulationKind::kLibrary) return GemmByRule(a, b, rule, out);
  CheckProduct(a, b, out.size());
  if (out.empty()) return;
  if (a.inner == 0) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  RunLibrary(a, b, out);
  MakeNansEqual(rule, out);
}

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& rule,
          MatrixSpan<float> out) {
  NUMSIM_REQUIRE(a.place == out.place && b.place == out.place,
                 "Gemm: operands on the {} and the {}, the result on the {}, expected one place",
                 ToString(a.place),
                 ToString(b.place),
                 ToString(out.place));
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!out.place.IsHost()) return GemmAtPlace(a, b, rule, out);
  }
  Gemm(a, b, rule, out.Span());
}

}  // namespace numsim
