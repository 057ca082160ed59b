#include "numsim/gemm/epilogue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/keyword.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/gemm/internal/gemm_block_scaled.h"
#include "numsim/gemm/internal/gemm_packed.h"
#include "numsim/gemm/internal/gemm_panel.h"

namespace numsim {
namespace {

constexpr Keyword<Epilogue> kNames[] = {{"float64", Epilogue::kFloat64},
                                        {"float32:ab", Epilogue::kFloat32Product},
                                        {"float32:a,b", Epilogue::kFloat32LeftFirst},
                                        {"float32:b,a", Epilogue::kFloat32RightFirst},
                                        {"cublaslt", Epilogue::kCublasLt}};

// Part of an operand along the inner dimension, without scales. A smaller part than the whole is
// copied, because its vectors are not contiguous.
class Part {
 public:
  Part(const GemmOperand& x, size_t begin, size_t end) : operand_(x) {
    operand_.scales = {};
    operand_.inner = end - begin;
    if (begin == 0 && end == x.inner) return;  // the whole operand, as it lies
    Take(x, x.values, begin, end, values_, operand_.values);
    Take(x, x.codes8, begin, end, codes8_, operand_.codes8);
    Take(x, x.codes16, begin, end, codes16_, operand_.codes16);
  }
  const GemmOperand& operand() const { return operand_; }

 private:
  template <typename T>
  static void Take(const GemmOperand& x,
                   MatrixSpan<const T> from,
                   size_t begin,
                   size_t end,
                   std::vector<T>& copy,
                   MatrixSpan<const T>& to) {
    if (from.Empty()) return;
    const size_t runs = x.transposed ? end - begin : x.rows;
    const size_t length = x.transposed ? x.rows : end - begin;
    for (size_t i = 0; i < runs; ++i) {
      const T* run = from.data + (x.transposed ? (begin + i) * x.rows : i * x.inner + begin);
      copy.insert(copy.end(), run, run + length);
    }
    to = copy;
  }

  GemmOperand operand_;
  std::vector<float> values_;
  std::vector<uint8_t> codes8_;
  std::vector<uint16_t> codes16_;
};

float Scaled(float sum, float a, float b, Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kFloat64:
      return static_cast<float>(static_cast<double>(sum) *
                                (static_cast<double>(a) * static_cast<double>(b)));
    case Epilogue::kFloat32Product:
      return sum * (a * b);
    case Epilogue::kFloat32LeftFirst:
      return sum * a * b;
    case Epilogue::kFloat32RightFirst:
    case Epilogue::kCublasLt:
      return sum * b * a;
  }
  return sum;
}

// Does what Gemm does under a block-scaled mode. The scales of the tensors are those of the epilogue.
void GemmOfBlocks(const GemmOperand& a,
                  const GemmOperand& b,
                  const AccumulationMode& mode,
                  Epilogue epilogue,
                  std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  if (a.inner != 0) BlockScaledSums(a, b, mode, out);
  const bool cublas = epilogue == Epilogue::kCublasLt;
  const Epilogue used = cublas ? Epilogue::kFloat32Product : epilogue;
  for (size_t i = 0; i < out.size(); ++i) {
    const float ta = TensorScaleOf(a, i / b.rows), tb = TensorScaleOf(b, i % b.rows);
    float& x = out[i];
    x = Scaled(x, ta, tb, used) + (cublas ? 0.0f : -0.0f);
    if (std::isnan(x)) x = std::bit_cast<float>(NanResult(mode));
  }
}

bool HasOneScale(const GemmOperand& x) {
  return x.scales.data.Empty() || (x.scales.row_stride == 0 && x.scales.segment == 0);
}

}  // namespace

std::string_view ToString(Epilogue epilogue) { return KeywordToString(kNames, epilogue); }

Epilogue ParseEpilogue(std::string_view text) { return ParseKeyword(kNames, "epilogue", text); }

std::string_view DefinitionText(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kFloat64:
      return "fl32(fl64(S * (sa * sb)))";
    case Epilogue::kFloat32Product:
      return "fl32(S * fl32(sa * sb))";
    case Epilogue::kFloat32LeftFirst:
      return "fl32(fl32(S * sa) * sb)";
    case Epilogue::kFloat32RightFirst:
      return "fl32(fl32(S * sb) * sa)";
    case Epilogue::kCublasLt:
      return "one scale per operand: fl32(S * fl32(sa * sb)) + 0; else fl32(fl32(S * sb) * sa)";
  }
  return "";
}

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          Epilogue epilogue,
          std::span<float> out) {
  if (epilogue == Epilogue::kFloat64) return Gemm(a, b, mode, out);
  RequireHost("Gemm with an epilogue", {a.place(), b.place()});
  CheckProduct(a, b, out.size());
  if (out.empty()) return;
  PackedOperand packed_a, packed_b;
  const GemmOperand left = packed_a.Of(a), right = packed_b.Of(b);
  if (IsBlockScaled(mode)) return GemmOfBlocks(left, right, mode, epilogue, out);
  const bool cublas = epilogue == Epilogue::kCublasLt;
  const bool one_scale = cublas && HasOneScale(left) && HasOneScale(right);
  const Epilogue used = one_scale ? Epilogue::kFloat32Product : epilogue;
  const float nan = std::bit_cast<float>(NanResult(mode));
  const size_t length = SegmentLength(left, right);
  std::vector<float> sums(out.size());
  for (size_t s = 0; s == 0 || s * length < left.inner; ++s) {
    const size_t begin = s * length, end = std::min(begin + length, left.inner);
    Gemm(
        Part(left, begin, end).operand(), Part(right, begin, end).operand(), mode, std::span(sums));
    ParallelFor(left.rows, 16, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        for (size_t j = 0; j < right.rows; ++j) {
          const size_t at = i * right.rows + j;
          float t = Scaled(sums[at], left.scales.At(i, s), right.scales.At(j, s), used);
          if (one_scale) t += 0.0f;
          if (s != 0) t += out[at];
          out[at] = std::isnan(t) ? nan : t;
        }
      }
    });
  }
}

}  // namespace numsim
