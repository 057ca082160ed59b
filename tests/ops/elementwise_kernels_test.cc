// The kernels of sums and scalings, run on the host: their results are those of the host's operations,
// bit for bit.
#include "numsim/ops/internal/elementwise_kernels.h"

#include <gtest/gtest.h>

#include "numsim/ops/elementwise.h"
#include "tests/ops/kernel_checks.h"

namespace numsim {
namespace {

using Out = MatrixSpan<float>;

void CopyInto(const Grid<float>& from, Out to) { Copy<float>(from.View(), to); }

TEST(ElementwiseKernels, GiveTheBitsOfTheHost) {
  for (const size_t rows : {1, 8, 9, 33}) {
    for (const size_t cols : {1, 31, 32, 33, 127, 128, 129, 1024, 1030}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      const Grid<float> a = WithSpecials(rows, cols, 1), b = WithSpecials(rows, cols, 2),
                        row = WithSpecials(1, cols, 3);
      const In<float> as = a.View(), bs = b.View(), gain = row.View();
      const std::vector<KernelOperation> operations = {
          {rows,
           cols,
           [=](Out y) { Copy<float>(as, y); },
           [=](const auto& launch, Out y) { CopyBy(launch, as, y); }},
          {rows,
           cols,
           [=](Out y) { Fill<float>(-0.0f, y); },
           [=](const auto& launch, Out y) { FillBy(launch, -0.0f, y); }},
          {rows,
           cols,
           [=](Out y) { Add<float>(as, bs, y); },
           [=](const auto& launch, Out y) { AddBy(launch, as, bs, y); }},
          {rows,
           cols,
           [&](Out y) {
             CopyInto(a, y);
             ScaleBy<float>(1.7f, y);
           },
           [&](const auto& launch, Out y) {
             CopyInto(a, y);
             ScaleElementsBy(launch, 1.7f, y);
           }},
          {rows,
           cols,
           [&](Out y) {
             CopyInto(a, y);
             AddBias<float>(gain, y);
           },
           [&](const auto& launch, Out y) {
             CopyInto(a, y);
             AddBiasBy(launch, gain, y);
           }},
          {rows,
           cols,
           [=](Out y) { AddScaledBranch<float>(as, bs, gain, y); },
           [=](const auto& launch, Out y) { AddScaledBranchBy(launch, as, bs, gain, y); }},
          {cols,
           rows,
           [=](Out y) { CopyTransposed<float>(as, y); },
           [=](const auto& launch, Out y) { CopyTransposedBy(launch, as, y); }},
      };
      for (const KernelOperation& operation : operations) operation.ExpectSame();
    }
  }
}

KernelOperation SumsOf(const Grid<float>& x) {
  const In<float> view = x.View();
  return {1,
          x.cols(),
          [=](Out y) { ColumnSums<float>(view, y); },
          [=](const auto& launch, Out y) {
            std::vector<float> sums = Scratch(BlockSums<1>(view.rows, {y}));
            ColumnSumsBy(launch, view, sums.data(), y);
          }};
}

// Around the numbers of rows and columns of a block of threads.
TEST(ElementwiseKernels, AddRowsInTheOrderOfTheHost) {
  for (const size_t rows : {0, 1, 127, 128, 129, 300}) {
    for (const size_t cols : {1, 127, 128, 129, 300}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      SumsOf(Grid<float>(rows, cols, 1)).ExpectSame();
    }
  }
  SumsOf(WithSpecials(140, 20, 1)).ExpectSame();
}

TEST(ElementwiseKernels, GiveBothGradientsOfLayerScale) {
  for (const size_t rows : {1, 128, 150}) {
    const Grid<float> g = WithSpecials(rows, 150, 1), branch(rows, 150, 2), gain(1, 150, 3);
    Grid<float> expected(rows, 150), expected_gain(1, 150), result = g, gain_gradient(1, 150);
    AddScaledBranchGradient<float>(
        g.View(), branch.View(), gain.View(), expected.View(), expected_gain.View());
    std::vector<float> sums = Scratch(BlockSums<1>(rows, {gain_gradient.View()}));
    AddScaledBranchGradientBy(FiberLauncher{{.seed = 5}},
                              result.View(),
                              branch.View(),
                              gain.View(),
                              sums.data(),
                              result.View(),
                              gain_gradient.View());
    EXPECT_TRUE(Same({result, gain_gradient}, {expected, expected_gain})) << rows;
  }
}

TEST(ElementwiseKernels, FaultsAreFound) {
  const Grid<float> x(70, 50, 1);
  const In<float> view = x.View();
  const KernelOperation transpose = {
      50,
      70,
      [=](Out y) { CopyTransposed<float>(view, y); },
      [=](const auto& launch, Out y) { CopyTransposedBy(launch, view, y); }};
  ExpectFaultsFound(transpose.OnHost(), transpose.ByKernelsOf(), 1, false);
}

}  // namespace
}  // namespace numsim
