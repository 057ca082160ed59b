#include "numsim/gemm/internal/gemm_of_parts.h"

#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"

namespace numsim {
namespace {

// Part of an operand along the inner dimension, without scales. A smaller part than the whole is
// copied, because its vectors are not contiguous.
class Part {
 public:
  Part(const GemmOperand& x, InnerRange range) : operand_(x) {
    operand_.scales = {};
    operand_.inner = range.Size();
    if (range.Size() == x.inner) return;  // the whole operand, as it lies
    Take(x, x.values, range, values_, operand_.values);
    Take(x, x.codes8, range, codes8_, operand_.codes8);
    Take(x, x.codes16, range, codes16_, operand_.codes16);
  }
  const GemmOperand& operand() const { return operand_; }

 private:
  template <typename T>
  static void Take(const GemmOperand& x,
                   MatrixSpan<const T> from,
                   InnerRange range,
                   std::vector<T>& copy,
                   MatrixSpan<const T>& to) {
    if (from.Empty()) return;
    const size_t runs = x.transposed ? range.Size() : x.rows;
    const size_t length = x.transposed ? x.rows : range.Size();
    copy.reserve(runs * length);
    for (size_t i = 0; i < runs; ++i) {
      const size_t at = x.transposed ? (range.begin + i) * x.rows : i * x.inner + range.begin;
      copy.insert(copy.end(), from.data + at, from.data + at + length);
    }
    to = copy;
  }

  GemmOperand operand_;
  std::vector<float> values_;
  std::vector<uint8_t> codes8_;
  std::vector<uint16_t> codes16_;
};

bool HasOneScale(const GemmOperand& x) {
  return x.scales.data.Empty() || (x.scales.row_stride == 0 && x.scales.segment == 0);
}

}  // namespace

void SumPart(const GemmOperand& a,
             const GemmOperand& b,
             InnerRange part,
             const AccumulationMode& mode,
             std::span<float> sums) {
  Gemm(Part(a, part).operand(), Part(b, part).operand(), mode, sums);
}

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

void StoreSums(std::span<const float> sums,
               const GemmOperand& a,
               const GemmOperand& b,
               size_t segment,
               Epilogue epilogue,
               float nan,
               std::span<float> out) {
  const bool one_scale = epilogue == Epilogue::kCublasLt && HasOneScale(a) && HasOneScale(b);
  const Epilogue used = one_scale ? Epilogue::kFloat32Product : epilogue;
  ParallelFor(a.rows, 16, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      for (size_t j = 0; j < b.rows; ++j) {
        const size_t at = i * b.rows + j;
        float t = Scaled(sums[at], a.scales.At(i, segment), b.scales.At(j, segment), used);
        if (one_scale) t += 0.0f;
        if (segment != 0) t += out[at];
        out[at] = std::isnan(t) ? nan : t;
      }
    }
  });
}

}  // namespace numsim
