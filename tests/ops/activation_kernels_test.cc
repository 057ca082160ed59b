// The kernels of activations, run on the host: their results are those of the host's operations, bit
// for bit.
#include "numsim/ops/internal/activation_kernels.h"

#include <gtest/gtest.h>

#include "numsim/ops/shared/activation.h"
#include "tests/ops/kernel_checks.h"

namespace numsim {
namespace {

using Out = MatrixSpan<float>;

// All activations of elements like x, and of its columns as gates beside others.
std::vector<KernelOperation> Activations(const Grid<float>& g,
                                         const Grid<float>& x,
                                         const Grid<float>& pairs) {
  const In<float> gs = g.View(), xs = x.View(), ps = pairs.View();
  const size_t rows = x.rows(), cols = x.cols();
  return {
      {rows,
       cols,
       [=](Out y) { Gelu<float>(xs, y); },
       [=](const auto& launch, Out y) { GeluBy(launch, xs, y); }},
      {rows,
       cols,
       [=](Out y) { GeluGradient<float>(gs, xs, y); },
       [=](const auto& launch, Out y) { GeluGradientBy(launch, gs, xs, y); }},
      {rows,
       cols,
       [=](Out y) { Relu<float>(xs, y); },
       [=](const auto& launch, Out y) { ReluBy(launch, xs, y); }},
      {rows,
       cols,
       [=](Out y) { ReluGradient<float>(gs, xs, y); },
       [=](const auto& launch, Out y) { ReluGradientBy(launch, gs, xs, y); }},
      {rows,
       cols,
       [=](Out y) { Swiglu<float>(ps, y); },
       [=](const auto& launch, Out y) { SwigluBy(launch, ps, y); }},
      {rows,
       2 * cols,
       [=](Out y) { SwigluGradient<float>(gs, ps, y); },
       [=](const auto& launch, Out y) { SwigluGradientBy(launch, gs, ps, y); }},
  };
}

// Around the numbers of lanes, and of elements of a piece of a row.
TEST(ActivationKernels, GiveTheBitsOfTheHost) {
  for (const size_t rows : {1, 7, 9}) {
    for (const size_t cols : {1, 15, 31, 32, 33, 130, 1023, 1024, 1025}) {
      const Grid<float> g = WithSpecials(rows, cols, 1), x = WithSpecials(rows, cols, 2),
                        pairs = WithSpecials(rows, 2 * cols, 3);
      int number = 0;
      for (const KernelOperation& operation : Activations(g, x, pairs)) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + ", activation " +
                     std::to_string(number++));
        operation.ExpectSame();
      }
    }
  }
}

TEST(ActivationKernels, GiveTheBitsOfTheHostAtEveryExponent) {
  Grid<float> g(512, 24, 1), x(512, 24), pairs(512, 48, 2);
  for (uint32_t r = 0; r < 512; ++r) {
    for (uint32_t c = 0; c < 24; ++c) {
      x(r, c) = std::bit_cast<float>(r << 23 | (c * 349525u & 0x7FFFFFu));
      pairs(r, c) = x(r, c);
    }
  }
  for (const KernelOperation& operation : Activations(g, x, pairs)) operation.ExpectSame(1);
}

TEST(ActivationKernels, MayWriteTheirResultsOverTheirInputs) {
  const Grid<float> g(5, 70, 1), x(5, 70, 2);
  Grid<float> expected(5, 70), dx = g;
  GeluGradient<float>(g.View(), x.View(), expected.View());
  GeluGradientBy(FiberLauncher{}, dx.View(), x.View(), dx.View());
  EXPECT_TRUE(Same({dx}, {expected}));
}

}  // namespace
}  // namespace numsim
