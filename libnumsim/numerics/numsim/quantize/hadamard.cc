#include "numsim/quantize/hadamard.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/quantize/internal/hadamard_simd.h"

namespace numsim {
namespace {

// The number of elements worth starting a thread for.
constexpr size_t kHadamardGrain = size_t{1} << 14;
// The number of columns that one piece of work transforms.
constexpr size_t kBandCols = 256;

HadamardPlan PlanOf(size_t size, const HadamardSigns& signs) {
  HadamardPlan plan;
  plan.size = size;
  for (size_t i = 0; i < size; ++i) plan.signs[i] = signs.Negates(i) ? 0x80000000u : 0;
  plan.factor = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  return plan;
}

}  // namespace

HadamardSigns RepeatedSigns(uint16_t mask) {
  const uint64_t word = mask * uint64_t{0x0001000100010001};
  return {{word, word}};
}

HadamardSigns DrawSigns(RandomStream stream) {
  HadamardSigns signs;
  for (size_t i = 0; i < 128; ++i) {
    signs.words[i / 64] |= uint64_t{RandomBits(stream, i, 1)} << (i % 64);
  }
  return signs;
}

void HadamardTransform(std::span<const float> in,
                       MatrixShape shape,
                       size_t size,
                       const HadamardSigns& signs,
                       HadamardAxis axis,
                       std::span<float> out) {
  RequireSize(in.size(), shape, "HadamardTransform", "in");
  RequireSize(out.size(), shape, "HadamardTransform", "out");
  NUMSIM_REQUIRE(IsHadamardSize(size),
                 "HadamardTransform: blocks of {} elements, expected 16, 32, 64 or 128",
                 size);
  const bool rows = axis == HadamardAxis::kRows;
  const size_t along = rows ? shape.cols : shape.rows;
  NUMSIM_REQUIRE(along % size == 0,
                 "HadamardTransform: {} of {} elements, expected a multiple of {}",
                 rows ? "rows" : "columns",
                 along,
                 size);
  const HadamardPlan plan = PlanOf(size, signs);
  if (rows) {
    ParallelFor(in.size() / size, kHadamardGrain / size, [&](size_t begin, size_t end) {
      HadamardBlocks(plan, in.data() + begin * size, end - begin, out.data() + begin * size);
    });
    return;
  }
  const size_t across = (shape.cols + kBandCols - 1) / kBandCols;
  const size_t pieces = shape.rows / size * across;
  ParallelFor(pieces, 1 + kHadamardGrain / (size * kBandCols), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t c = i % across * kBandCols;
      const size_t at = i / across * size * shape.cols + c;
      const size_t cols = std::min(kBandCols, shape.cols - c);
      HadamardBand(plan, in.data() + at, shape.cols, cols, out.data() + at);
    }
  });
}

}  // namespace numsim
