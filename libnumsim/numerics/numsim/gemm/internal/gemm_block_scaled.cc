#include "numsim/gemm/internal/gemm_block_scaled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_panel.h"
#include "numsim/gemm/internal/gemm_paths_scaled.h"
#include "numsim/gemm/internal/gemm_tiles.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// --- The scales of the operands.

// Returns the number of the mode's scale format that is meant by a stored scale. The stored one is the
// product of that number and `tensor`, rounded to float32, if there are two levels.
float UnitScale(float stored, float tensor, const EncodePlan& plan) {
  if (std::isnan(stored) && plan.format.HasNan()) return stored;
  return Decode(plan.format, EncodeF32(plan, std::bit_cast<uint32_t>(stored / tensor), 0));
}

UnitScales UnitScalesOf(const GemmOperand& x, const char* name, const AccumulationMode& mode) {
  UnitScales result{.rows = x.rows, .block = x.scales.segment, .values = {}};
  const auto least = static_cast<size_t>(LeastBlock(mode));
  NUMSIM_REQUIRE(
      result.block % least == 0,
      "Gemm: '{}' has a scale for each {} elements, but mode {} takes one for each {}, or "
      "for a multiple of that",
      name,
      result.block,
      ToString(mode),
      least);
  if (result.block != 0) result.blocks = (x.inner + result.block - 1) / result.block;
  result.values.resize(x.rows * result.blocks);
  const EncodePlan plan = MakeEncodePlan(mode.format, {}, Overflow::kSaturate);
  NUMSIM_REQUIRE(
      x.scales.tensor.Elements() <= 1 || x.scales.tensor.Elements() == x.rows,
      "Gemm: {} scales of the second level of '{}', expected 1 or one for each of {} rows",
      x.scales.tensor.Elements(),
      name,
      x.rows);
  for (size_t row = 0; row < x.rows; ++row) {
    const float tensor = TensorScaleOf(x, row);
    for (size_t s = 0; s < result.blocks; ++s) {
      const float stored = x.scales.At(row, s);
      const float scale = UnitScale(stored, tensor, plan);
      const bool nan = std::isnan(stored) && std::isnan(scale);
      NUMSIM_REQUIRE(nan || scale * tensor == stored,
                     "Gemm: scale {} of vector {} of '{}' is {}{}, which is not a number of {}, as "
                     "mode {} takes them",
                     s,
                     row,
                     name,
                     stored,
                     tensor == 1 ? "" : " under a tensor's scale",
                     ToString(mode.format),
                     ToString(mode));
      result.values[row * result.blocks + s] = scale;
    }
  }
  return result;
}

// The exponents of the scales that are neither zero nor NaN.
struct ScaleRange {
  int low = 0, high = 0;
  std::vector<size_t> nan;  // vectors with a NaN, ascending
};

ScaleRange RangeOf(const UnitScales& scales) {
  ScaleRange range{.low = INT32_MAX, .high = INT32_MIN, .nan = {}};
  for (size_t i = 0; i < scales.values.size(); ++i) {
    const float scale = scales.values[i];
    const size_t row = i / scales.blocks;
    if (std::isnan(scale) && (range.nan.empty() || range.nan.back() != row))
      range.nan.push_back(row);
    if (std::isnan(scale) || scale == 0) continue;
    const int exponent = std::ilogb(scale);
    range.low = std::min(range.low, exponent);
    range.high = std::max(range.high, exponent);
  }
  if (range.low > range.high) range.low = range.high = 0;
  return range;
}

// --- A product.

// An operand and what is known about it.
struct Side {
  const GemmOperand& operand;
  const UnitScales scales;
  OperandRange range = {};
  ScaleRange scale_range = {};

  Side(const GemmOperand& x, const char* name, const AccumulationMode& mode)
      : operand(x), scales(UnitScalesOf(x, name, mode)) {}
  void FindRanges() {
    range = numsim::RangeOf(operand);
    scale_range = RangeOf(scales);
  }
};

struct ScaledProblem {
  Side a, b;
  const AccumulationMode& mode;
  std::span<float> out;

  size_t Columns() const { return b.operand.rows; }
};

// Returns vectors [first, first + count) of an operand, one after another.
std::vector<float> VectorsOf(const GemmOperand& x, size_t first, size_t count) {
  std::vector<float> values(count * x.inner);
  ParallelFor(count, 1, [&](size_t begin, size_t end) {
    PackFloatPanels(
        x, 1, first + begin, end - begin, {0, x.inner}, values.data() + begin * x.inner, x.inner);
  });
  return values;
}

// Writes the results of rows [row, row + rows) and columns [column, column + columns) by the
// definition of the mode.
void ByDefinition(const ScaledProblem& p, size_t row, size_t rows, size_t column, size_t columns) {
  const size_t n = p.a.operand.inner;
  const std::vector<float> va = VectorsOf(p.a.operand, row, rows);
  const std::vector<float> vb = VectorsOf(p.b.operand, column, columns);
  const auto nan = std::bit_cast<float>(NanResult(p.mode));
  const EncodePlan plan = MakeEncodePlan(kFp32);  // the sum is a float32
  ParallelFor(rows * columns, 1, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / columns, j = t % columns;
      const DotOperand x{
          p.a.operand.format, std::span(va).subspan(i * n, n), p.a.scales.Of(row + i)};
      const DotOperand y{
          p.b.operand.format, std::span(vb).subspan(j * n, n), p.b.scales.Of(column + j)};
      const Unrounded sum = Accumulate(p.mode, x, y);
      p.out[(row + i) * p.Columns() + column + j] =
          sum.kind == NumberKind::kNan ? nan
                                       : std::bit_cast<float>(EncodeUnrounded(plan, sum).code);
    }
  });
}

// --- By vectors.

constexpr int kBitsBelow = 25;  // fraction bits of the modes without groups

// True if no number of a product leaves the normal range of float32 (`normal`), or is beyond it.
// Requires operands with values other than zero.
bool StaysInRange(const ScaledProblem& p, bool normal) {
  constexpr int kMost = 126, kLeast = -126;
  const OperandRange &a = p.a.range, &b = p.b.range;
  const ScaleRange &sa = p.a.scale_range, &sb = p.b.scale_range;
  const int growth = static_cast<int>(std::bit_width(p.a.operand.inner)) + 4;
  const int high = a.high_exponent + b.high_exponent + growth;
  const int most = sa.high + sb.high, least = sa.low + sb.low;
  if (high + most > kMost) return false;
  if (!normal) return true;
  const int spread = most - least, low = a.low_exponent + b.low_exponent - kBitsBelow;
  return low + least >= kLeast && low - spread >= kLeast && high + spread <= kMost &&
         std::max(std::abs(most), std::abs(least)) <= kMost;
}

// True if accumulators that are divided by the scales of any chunk are zero or at least
// 2^kLeastInWindow.
bool StaysInWindow(const ScaledProblem& p) {
  const ScaleRange &sa = p.a.scale_range, &sb = p.b.scale_range;
  const int spread = sa.high + sb.high - sa.low - sb.low;
  return p.a.range.low_exponent + p.b.range.low_exponent - kBitsBelow - spread >= kLeastInWindow;
}

// Computes all results except those with a special operand. Returns false if no kernel does.
bool InVectors(const ScaledProblem& p) {
  if (p.a.range.zero || p.b.range.zero) {
    std::ranges::fill(p.out, 0.0f);
    return true;
  }
  if (Float64Tile().rows == 0 || !StaysInRange(p, p.mode.group == 0)) return false;
  const InnerRange range{0, p.a.operand.inner};
  const size_t columns = p.Columns();
  const auto store = [&](const TilePlace& at, const float* sums) {
    for (size_t i = 0; i < at.rows; ++i) {
      std::copy_n(sums + i * at.stride, at.cols, p.out.data() + (at.row + i) * columns + at.col);
    }
  };
  const size_t rows = p.a.operand.rows;
  if (p.mode.group != 0) {
    ScaledGroupsPath path(p.a.operand, p.a.scales, p.b.operand, p.b.scales, p.mode);
    MultiplyTiles(path, rows, columns, range, store);
    return true;
  }
  const AccumulationMode aligned{.kind = AccumulationKind::kAligned,
                                 .chunk = p.mode.chunk,
                                 .fraction_bits = p.mode.fraction_bits};
  AlignedFactor fa = FactorOf(p.a.operand, p.a.range), fb = FactorOf(p.b.operand, p.b.range);
  fa.in_window = fa.in_window && StaysInWindow(p);
  const auto lanes = DoubleLanesForAligned(aligned, fa, fb);
  if (!lanes) return false;
  ScaledAlignedPath path(
      p.a.operand, p.a.range, p.a.scales, p.b.operand, p.b.range, p.b.scales, aligned, *lanes);
  MultiplyTiles(path, rows, columns, range, store);
  return true;
}

std::vector<size_t> Union(const std::vector<size_t>& x, const std::vector<size_t>& y) {
  std::vector<size_t> all;
  std::ranges::set_union(x, y, std::back_inserter(all));
  return all;
}

void RequireFormat(const GemmOperand& x, const char* name, const AccumulationMode& mode) {
  NUMSIM_REQUIRE(mode.group == 0 || x.format == kE2M1fn,
                 "Gemm: '{}' has the format {}, but mode {} takes e2m1fn alone",
                 name,
                 ToString(x.format),
                 ToString(mode));
}

}  // namespace

float TensorScaleOf(const GemmOperand& x, size_t row) {
  if (x.scales.tensor.Empty()) return 1;
  return x.scales.tensor.data[x.scales.tensor.Elements() == 1 ? 0 : row];
}

void BlockScaledSums(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     std::span<float> out) {
  RequireFormat(a, "a", mode);
  RequireFormat(b, "b", mode);
  ScaledProblem p{Side(a, "a", mode), Side(b, "b", mode), mode, out};
  if (UsesScalarReference()) return ByDefinition(p, 0, a.rows, 0, b.rows);
  p.a.FindRanges();
  p.b.FindRanges();
  if (!InVectors(p)) return ByDefinition(p, 0, a.rows, 0, b.rows);
  for (const size_t row : Union(p.a.range.nonfinite, p.a.scale_range.nan)) {
    ByDefinition(p, row, 1, 0, b.rows);
  }
  for (const size_t column : Union(p.b.range.nonfinite, p.b.scale_range.nan)) {
    ByDefinition(p, 0, a.rows, column, 1);
  }
}

void GemmBlockScaled(const GemmOperand& a,
                     const GemmOperand& b,
                     const AccumulationMode& mode,
                     std::span<float> out) {
  BlockScaledSums(a, b, mode, out);
  if (a.scales.tensor.Empty() && b.scales.tensor.Empty()) return;
  const auto nan = std::bit_cast<float>(NanResult(mode));
  ParallelFor(out.size(), 4096, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const double ta = TensorScaleOf(a, t / b.rows), tb = TensorScaleOf(b, t % b.rows);
      const auto x = static_cast<float>(out[t] * (ta * tb));
      out[t] = std::isnan(x) ? nan : x;
    }
  });
}

}  // namespace numsim
