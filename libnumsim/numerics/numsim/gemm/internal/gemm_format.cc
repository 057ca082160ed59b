#include <algorithm>
#include <cstddef>

#include "numsim/base/parallel.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {
namespace {

// Elements beyond the end of an array that the vector kernels may touch.
constexpr size_t kPadding = kPaddedBlock - kArithmeticBlock;

// Returns the values [k][vector] of up to kArithmeticBlock vectors, with padding at the end.
std::vector<float> ValuesByInner(const GemmOperand& x,
                                 size_t first,
                                 size_t count,
                                 InnerRange range) {
  std::vector<float> values(count * range.Size());
  PackFloatPanels(x, 1, first, count, range, values.data(), range.Size());
  std::vector<float> by_inner(values.size() + kPadding);
  for (size_t v = 0; v < count; ++v) {
    for (size_t k = 0; k < range.Size(); ++k) {
      by_inner[k * count + v] = values[v * range.Size() + k];
    }
  }
  return by_inner;
}

// The accumulators of one row of the result, for `count` columns.
class RowOfSums {
 public:
  RowOfSums(const AccumulationMode& mode, size_t count)
      : plan_(MakeEncodePlan(mode.format)),
        fused_(mode.kind == AccumulationKind::kFormat),
        count_(count),
        acc_(kPaddedBlock),
        factor_(kPaddedBlock),
        exact_(kPaddedBlock) {
    Round(acc_.data(), acc_.data());
  }

  // Does acc[i] = round(acc[i] + x column[i]); if not fused, the product is rounded first.
  void Add(float x, const float* column) {
    std::fill_n(factor_.data(), count_, x);
    if (fused_) {
      Step(ArithmeticOp::kFma, factor_.data(), column, acc_.data());
    } else {
      Step(ArithmeticOp::kMultiply, factor_.data(), column, nullptr);
      Round(exact_.data(), factor_.data());
      Step(ArithmeticOp::kAdd, acc_.data(), factor_.data(), nullptr);
    }
    Round(exact_.data(), acc_.data());
  }

  const std::vector<float>& Values() const { return acc_; }

 private:
  void Step(ArithmeticOp op, const float* a, const float* b, const float* c) {
    OddResults({op, false, false}, a, b, c, count_, exact_.data(), nullptr);
  }
  void Round(const float* in, float* out) { FakeQuantizeSerial(plan_, in, count_, out, {}); }

  EncodePlan plan_;
  bool fused_;
  size_t count_;
  std::vector<float> acc_, factor_, exact_;
};

}  // namespace

void FormatSums(const GemmOperand& a,
                const GemmOperand& b,
                const AccumulationMode& mode,
                InnerRange segment,
                std::vector<double>& sums) {
  sums.resize(a.rows * b.rows);
  for (size_t j = 0; j < b.rows; j += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, b.rows - j);
    const std::vector<float> columns = ValuesByInner(b, j, count, segment);
    ParallelFor(a.rows, 1, [&](size_t begin, size_t end) {
      const DefaultFloatEnvironment environment;
      for (size_t i = begin; i < end; ++i) {
        RowOfSums row(mode, count);
        const std::vector<float> factors = ValuesByInner(a, i, 1, segment);
        for (size_t k = 0; k < segment.Size(); ++k) {
          row.Add(factors[k], columns.data() + k * count);
        }
        std::copy_n(
            row.Values().begin(), count, sums.begin() + static_cast<ptrdiff_t>(i * b.rows + j));
      }
    });
  }
}

}  // namespace numsim
