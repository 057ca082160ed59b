#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {
namespace {

// A copy of some vectors of an operand, with their scales, as a new operand.
class Selection {
 public:
  Selection(const GemmOperand& from, const std::vector<size_t>& rows, size_t segment)
      : segments_((from.inner + segment - 1) / segment),
        values_(rows.size() * from.inner),
        scales_(rows.size() * segments_) {
    for (size_t i = 0; i < rows.size(); ++i) {
      float* values = values_.data() + i * from.inner;
      PackFloatPanels(from, 1, rows[i], 1, {0, from.inner}, values, from.inner);
      for (size_t s = 0; s < segments_; ++s) {
        scales_[i * segments_ + s] = from.scales.At(rows[i], s);
      }
    }
    operand_ = {.format = kFp32, .values = values_, .rows = rows.size(), .inner = from.inner};
    operand_.scales = {.data = scales_, .row_stride = segments_};
    if (segments_ > 1) {
      operand_.scales.segment = segment;
      operand_.scales.segment_stride = 1;
    }
  }

  const GemmOperand& Operand() const { return operand_; }

 private:
  size_t segments_;
  std::vector<float> values_, scales_;
  GemmOperand operand_;
};

// Returns element (i, j) of the result by the definition of the accumulation mode.
float DefinedElement(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     size_t segment,
                     size_t i,
                     size_t j) {
  float total = 0;
  for (size_t s = 0; s * segment < a.inner; ++s) {
    const InnerRange range{s * segment, std::min((s + 1) * segment, a.inner)};
    const double scale = static_cast<double>(a.scales.At(i, s)) * b.scales.At(j, s);
    const float part = static_cast<float>(ReferenceSum(a, b, mode, range, i, j) * scale);
    total = s == 0 ? part : total + part;
  }
  return total;
}

}  // namespace

void PutSpecials(const GemmOperand& a,
                 const OperandRange& range_a,
                 const GemmOperand& b,
                 const OperandRange& range_b,
                 const AccumulationMode& mode,
                 size_t segment,
                 std::span<float> out) {
  const float nan = std::bit_cast<float>(NanResult(mode));
  // In float64 no sum of finite products overflows, so an infinity or NaN there results from the
  // special values.
  const auto put = [&](float special, size_t i, size_t j) {
    float& x = out[i * b.rows + j];
    // If the finite products alone overflow an accumulator, only the definition can decide.
    if (!std::isfinite(x)) special = DefinedElement(a, b, mode, segment, i, j);
    x = std::isnan(special) ? nan : special;
  };
  const AccumulationMode float64{.kind = AccumulationKind::kFloat64};
  std::vector<float> specials;
  std::vector<bool> row_done(a.rows);
  if (const std::vector<size_t>& rows = range_a.nonfinite; !rows.empty()) {
    for (const size_t i : rows) row_done[i] = true;
    const Selection selection(a, rows, segment);
    specials.resize(rows.size() * b.rows);
    Gemm(selection.Operand(), b, float64, specials);
    ParallelFor(specials.size(), 4096, [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) put(specials[t], rows[t / b.rows], t % b.rows);
    });
  }
  if (const std::vector<size_t>& cols = range_b.nonfinite; !cols.empty()) {
    const Selection selection(b, cols, segment);
    specials.resize(a.rows * cols.size());
    Gemm(a, selection.Operand(), float64, specials);
    ParallelFor(specials.size(), 4096, [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        const size_t i = t / cols.size();
        if (!row_done[i]) put(specials[t], i, cols[t % cols.size()]);
      }
    });
  }
}

}  // namespace numsim
