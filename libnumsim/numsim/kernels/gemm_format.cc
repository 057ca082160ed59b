#include "numsim/kernels/gemm_format.h"

#include <algorithm>
#include <cstddef>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/kernels/arithmetic.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// Sums that one step works on: they stay in the cache.
constexpr size_t kColumns = 1024;

// A format for the operand's values. Two's complement grids have a code without a value of the
// grid (-128 of int8), which counts here.
FormatSpec CarrierOf(const FormatSpec& format) {
  return format.sign == Sign::kTwosComplement ? kFp32 : format;
}

// Vectors [first, first + count) as codes of the carrier, 32 bits each: element [k][v].
std::vector<uint32_t> CodesByInner(const GemmOperand& x,
                                   size_t first,
                                   size_t count,
                                   InnerRange range) {
  std::vector<float> values(count * range.Size());
  PackFloatPanels(x, 1, first, count, range, values.data(), range.Size());
  std::vector<float> by_inner(values.size());
  for (size_t v = 0; v < count; ++v) {
    for (size_t k = 0; k < range.Size(); ++k) {
      by_inner[k * count + v] = values[v * range.Size() + k];
    }
  }
  std::vector<uint32_t> codes(values.size());
  Encode(MakeEncodePlan(CarrierOf(x.format)), by_inner, codes);
  return codes;
}

struct Columns {
  FormatSpec format;
  size_t count;
  std::vector<uint32_t> codes;  // [k][column]

  ArrayOperand At(size_t k) const {
    return {format, ConstCodes(std::span(codes).subspan(k * count, count))};
  }
};

// The accumulators of one row beside all columns.
std::vector<uint32_t> RowSums(const ArrayOperand& row,
                              const Columns& columns,
                              const Accumulator& rule) {
  const EncodePlan plan = MakeEncodePlan(rule.format);
  const ArrayOperand none{};
  std::vector<uint32_t> acc(columns.count), factor(columns.count), product(columns.count);
  std::fill(acc.begin(), acc.end(), EncodeF32(plan, 0, 0));
  const ArrayOperand sum{rule.format, ConstCodes(std::span<const uint32_t>(acc))};
  const ArrayOperand rounded{rule.format, ConstCodes(std::span<const uint32_t>(product))};
  const ArrayOperand left{row.format, ConstCodes(std::span<const uint32_t>(factor))};
  for (size_t k = 0; k < row.codes.size(); ++k) {
    std::fill(factor.begin(), factor.end(), row.codes[k]);
    if (rule.kind == AccumulatorKind::kFormat) {
      Arithmetic(ArithmeticOp::kFma, left, columns.At(k), sum, plan, Codes(std::span(acc)));
    } else {
      Arithmetic(
          ArithmeticOp::kMultiply, left, columns.At(k), none, plan, Codes(std::span(product)));
      Arithmetic(ArithmeticOp::kAdd, sum, rounded, none, plan, Codes(std::span(acc)));
    }
  }
  return acc;
}

}  // namespace

void FormatSums(const GemmOperand& a,
                const GemmOperand& b,
                const Accumulator& rule,
                InnerRange segment,
                std::vector<double>& sums) {
  sums.resize(a.rows * b.rows);
  const size_t depth = segment.Size();
  for (size_t j = 0; j < b.rows; j += kColumns) {
    const size_t count = std::min(kColumns, b.rows - j);
    const Columns columns{CarrierOf(b.format), count, CodesByInner(b, j, count, segment)};
    ParallelFor(a.rows, 1, [&](size_t begin, size_t end) {
      std::vector<float> values(count);
      for (size_t i = begin; i < end; ++i) {
        const std::vector<uint32_t> row = CodesByInner(a, i, 1, segment);
        const ArrayOperand left{CarrierOf(a.format), ConstCodes(std::span(row).first(depth))};
        const std::vector<uint32_t> acc = RowSums(left, columns, rule);
        Decode(rule.format, acc, values);
        std::copy(
            values.begin(), values.end(), sums.begin() + static_cast<ptrdiff_t>(i * b.rows + j));
      }
    });
  }
}

}  // namespace numsim
