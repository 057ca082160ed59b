#include "numsim/gemm/split_k.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "numsim/base/keyword.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/cast.h"
#include "numsim/gemm/internal/gemm_of_parts.h"
#include "numsim/gemm/internal/gemm_packed.h"
#include "numsim/quantize/shared/scale_grid.h"

namespace numsim {
namespace {

constexpr Keyword<SplitPartition> kPartitions[] = {{"contiguous", SplitPartition::kContiguous},
                                                   {"cublaslt", SplitPartition::kCublasLt}};

void CheckSplit(const SplitK& split, size_t inner) {
  NUMSIM_REQUIRE(split.parts >= 1 && split.parts <= SplitK::kMost,
                 "split-K: {} parts, expected 1 to {}",
                 split.parts,
                 SplitK::kMost);
  NUMSIM_REQUIRE(split.tile >= 1 && split.tile <= SplitK::kMost,
                 "split-K: a k-tile of {} products, expected 1 to {}",
                 split.tile,
                 SplitK::kMost);
  NUMSIM_REQUIRE(split.partition != SplitPartition::kCublasLt || split.parts <= inner || inner == 0,
                 "split-K: {} parts of {} products, expected at most one part per product under "
                 "partition cublaslt",
                 split.parts,
                 inner);
}

// Returns the products of every part but the last ones.
size_t PartLength(const SplitK& split, size_t inner) {
  if (split.partition == SplitPartition::kCublasLt) {
    return CeilDiv(inner / split.parts, split.tile) * split.tile;
  }
  return CeilDiv(CeilDiv(inner, split.tile), split.parts) * split.tile;
}

// Adds the sums of a part to the total, or sets it to those of the first part.
void AddPart(std::span<const float> sums, bool first, std::span<float> total) {
  ParallelFor(sums.size(), size_t{1} << 14, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) total[i] = first ? sums[i] : total[i] + sums[i];
  });
}

void CheckSplitOperands(const GemmOperand& a, const GemmOperand& b, const AccumulationMode& mode) {
  RequireHost("Gemm with split-K", {a.place(), b.place()});
  NUMSIM_REQUIRE(
      a.scales.segment == 0 && b.scales.segment == 0,
      "split-K: the operands have scales along the inner dimension, expected one scale per "
      "operand or row");
  NUMSIM_REQUIRE(!IsBlockScaled(mode), "split-K: mode {} has no split", ToString(mode));
}

}  // namespace

std::string_view ToString(SplitPartition partition) {
  return KeywordToString(kPartitions, partition);
}

SplitPartition ParseSplitPartition(std::string_view text) {
  return ParseKeyword(kPartitions, "split partition", text);
}

size_t CublasLtTile(const FormatSpec& a, const FormatSpec& b) {
  return std::max(a.Bits(), b.Bits()) <= 8 ? 128 : 64;
}

InnerRange PartOf(const SplitK& split, size_t inner, size_t index) {
  CheckSplit(split, inner);
  NUMSIM_REQUIRE(index < split.parts, "split-K: part {} of {}", index, split.parts);
  const size_t length = PartLength(split, inner);
  if (length == 0) return {};
  // The part lies behind the end if index * length does; the quotient cannot overflow.
  const size_t begin = index > inner / length ? inner : index * length;
  return {begin, begin + std::min(length, inner - begin)};
}

size_t ProductsLeftOut(const SplitK& split, size_t inner) {
  return inner - PartOf(split, inner, split.parts - 1).end;
}

void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          const SplitK& split,
          Epilogue epilogue,
          std::span<float> out) {
  CheckSplitOperands(a, b, mode);
  CheckProduct(a, b, out.size());
  CheckSplit(split, a.inner);
  if (out.empty()) return;
  PackedOperand packed_a, packed_b;
  const GemmOperand left = packed_a.Of(a), right = packed_b.Of(b);
  const EncodePlan partials = MakeEncodePlan(split.partials);
  std::vector<float> total(out.size()), sums(out.size());
  for (size_t i = 0; i < split.parts; ++i) {
    const InnerRange part = PartOf(split, a.inner, i);
    SumPart(left, right, part, mode, sums);
    if (split.partials != kFp32) FakeQuantize(partials, sums, sums);
    AddPart(sums, i == 0, total);
    if (part.Size() == 0) break;  // the others are empty, too, and more zeros change nothing
  }
  StoreSums(total, left, right, 0, epilogue, std::bit_cast<float>(NanResult(mode)), out);
}

}  // namespace numsim
