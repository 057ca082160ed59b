// The kernels of tokens, positions and patches, run on the host: their results are those of the host's
// operations, bit for bit.
#include "numsim/ops/internal/sequence_kernels.h"

#include <gtest/gtest.h>

#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/sequence.h"
#include "tests/ops/kernel_checks.h"

namespace numsim {
namespace {

using Out = MatrixSpan<float>;

// Few ids are much more frequent than others, and some do not occur.
std::vector<int32_t> Ids(size_t count, size_t limit) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>(i % 3 == 0 ? 0 : (i * i + i / 5) % limit);
  }
  return ids;
}

TEST(SequenceKernels, GatherAndAddUpRowsOfATable) {
  for (const size_t count : {1, 31, 100, 1023, 1025, 2100}) {
    for (const size_t cols : {1, 255, 257}) {
      if (count * cols > 130000) continue;
      SCOPED_TRACE(std::to_string(count) + " x " + std::to_string(cols));
      const std::vector<int32_t> ids = Ids(count, 7);
      const Grid<float> table(7, cols, 1), g(count, cols, 2);
      const In<float> tables = table.View(), gs = g.View();
      const KernelOperation gather = {
          count,
          cols,
          [&](Out y) { GatherRows<float>(tables, Indices(ids), y); },
          [&](const auto& launch, Out y) { GatherRowsBy(launch, tables, Indices(ids), y); }};
      gather.ExpectSame();
      const KernelOperation gradient = {
          7,
          cols,
          [&](Out y) { GatherRowsGradient<float>(gs, Indices(ids), y); },
          [&](const auto& launch, Out y) { GatherRowsGradientBy(launch, gs, Indices(ids), y); }};
      gradient.ExpectSame();
    }
  }
}

// As for large tables, whose threads have several columns each.
TEST(SequenceKernels, AddUpRowsInSeveralColumnsPerThread) {
  using Kernel = GatherGradientKernel;
  const std::vector<int32_t> ids = Ids(40, 3);
  for (const size_t cols : {1, 256, 257, 1023, 1025, 1400}) {
    const Grid<float> g(ids.size(), cols, 2);
    Grid<float> expected(3, cols), result(3, cols);
    GatherRowsGradient<float>(g.View(), Indices(ids), expected.View());
    const Kernel kernel{g.View(), ids.data(), ids.size(), result.View(), cols, 4};
    RunBlocks(kernel, 3 * BlocksOf(cols, 4 * Kernel::kThreads));
    EXPECT_TRUE(Same({result}, {expected})) << cols;
  }
}

TEST(SequenceKernels, IndicesOutOfRangeGiveNaN) {
  const std::vector<int32_t> ids = {0, 3, -1, 2, 2147483647};
  const Grid<float> table(3, 5, 1);
  Grid<float> y(5, 5), taken(2, 5);
  GatherRowsBy(FiberLauncher{}, table.View(), Indices(ids), y.View());
  TakeRowsBy(FiberLauncher{}, y.View().Rows(0, 4), 2, Indices({1, 2}), taken.View());
  for (size_t c = 0; c < 5; ++c) {
    EXPECT_EQ(y(0, c), table(0, c));
    EXPECT_TRUE(std::isnan(y(1, c)) && std::isnan(y(2, c)) && std::isnan(y(4, c)));
    EXPECT_TRUE(std::isnan(taken(1, c)));
  }
}

TEST(SequenceKernels, AddPositionsAndRotate) {
  for (const size_t length : {1, 5, 8}) {
    for (const size_t head_dim : {2, 30, 32, 64}) {
      SCOPED_TRACE(std::to_string(length) + " tokens, heads of " + std::to_string(head_dim));
      const size_t rows = 3 * length, cols = 2 * head_dim;
      const Grid<float> x = WithSpecials(rows, cols, 1), table(length, cols, 2);
      const In<float> xs = x.View(), tables = table.View();
      Grid<float> cosines(length, head_dim / 2), sines(cosines);
      RotaryTables<float>(1e4, head_dim, cosines.View(), sines.View());
      const auto from_x = [xs](const auto& change) {
        return [xs, change](Out y) {
          Copy<float>(xs, y);
          change(y);
        };
      };
      const auto kernels_from_x = [xs](const auto& change) {
        return [xs, change](const FiberLauncher& launch, Out y) {
          Copy<float>(xs, y);
          change(launch, y);
        };
      };
      std::vector<KernelOperation> operations = {
          {rows,
           cols,
           from_x([=](Out y) { AddPositions<float>(tables, y); }),
           kernels_from_x([=](const auto& launch, Out y) { AddPositionsBy(launch, tables, y); })},
          {length,
           cols,
           [=](Out y) { AddPositionsGradient<float>(xs, y); },
           [=](const auto& launch, Out y) { AddPositionsGradientBy(launch, xs, y); }}};
      for (const bool inverse : {false, true}) {
        const In<float> c = cosines.View(), s = sines.View();
        operations.push_back(
            {rows,
             cols,
             from_x([=](Out y) { RotatePositions<float>(c, s, head_dim, inverse, y); }),
             kernels_from_x([=](const auto& launch, Out y) {
               RotatePositionsBy(launch, c, s, head_dim, inverse, y);
             })});
      }
      for (const KernelOperation& operation : operations) operation.ExpectSame();
    }
  }
}

TEST(SequenceKernels, MoveRows) {
  constexpr size_t kLength = 4, kBatch = 5, kCols = 35;
  const Grid<float> x(kBatch * kLength, kCols, 1), token(1, kCols, 2), g(kBatch, kCols, 3),
      longer(kBatch * (kLength + 1), kCols, 4);
  const In<float> xs = x.View(), tokens = token.View(), gs = g.View(), longers = longer.View();
  const std::vector<int32_t> at = {3, 0, 1, 2, 3};
  std::vector<KernelOperation> operations = {
      {longer.rows(),
       kCols,
       [=](Out y) { PrependToken<float>(xs, kLength, tokens, y); },
       [=](const auto& launch, Out y) { PrependTokenBy(launch, xs, kLength, tokens, y); }},
      {x.rows() + 1,  // the token's gradient, then that of x
       kCols,
       [=](Out y) {
         PrependTokenGradient<float>(longers, kLength, y.Rows(0, 1), y.Rows(1, y.rows - 1));
       },
       [=](const auto& launch, Out y) {
         PrependTokenGradientBy(launch, longers, kLength, y.Rows(0, 1), y.Rows(1, y.rows - 1));
       }}};
  for (const IndexRef& rows : {Indices(at), IndexRef()}) {
    operations.push_back(
        {kBatch,
         kCols,
         [=](Out y) { TakeRows<float>(xs, kLength, rows, y); },
         [=](const auto& launch, Out y) { TakeRowsBy(launch, xs, kLength, rows, y); }});
    operations.push_back(
        {x.rows(),
         kCols,
         [=](Out y) { TakeRowsGradient<float>(gs, kLength, rows, y); },
         [=](const auto& launch, Out y) { TakeRowsGradientBy(launch, gs, kLength, rows, y); }});
  }
  for (const KernelOperation& operation : operations) operation.ExpectSame();
}

TEST(SequenceKernels, CutPatches) {
  for (const size_t patch : {1, 2, 4}) {
    const Grid<float> images(3, 8 * 12 * 3, 1);
    const In<float> view = images.View();
    const KernelOperation cut = {
        3 * (8 / patch) * (12 / patch),
        patch * patch * 3,
        [=](Out y) { CutPatches<float>(view, 8, 12, 3, patch, y); },
        [=](const auto& launch, Out y) { CutPatchesBy(launch, view, 8, 12, 3, patch, y); }};
    cut.ExpectSame();
  }
}

TEST(SequenceKernels, FaultsAreFound) {
  // Without a barrier a thread may read an index that nobody has written, or an old one: zeros in
  // shared memory, and whole chunks of ids, keep these in range.
  constexpr size_t kCount = 2 * GatherGradientKernel::kChunk;
  const std::vector<int32_t> ids = Ids(kCount, 5);
  const Grid<float> g(kCount, 20, 2);
  const In<float> gs = g.View();
  const KernelOperation gradient = {
      5,
      20,
      [&](Out y) { GatherRowsGradient<float>(gs, Indices(ids), y); },
      [&](const auto& launch, Out y) { GatherRowsGradientBy(launch, gs, Indices(ids), y); }};
  ExpectFaultsFound(gradient.OnHost(), gradient.ByKernelsOf(), 2, true, {.unwritten = 0});
}

}  // namespace
}  // namespace numsim
