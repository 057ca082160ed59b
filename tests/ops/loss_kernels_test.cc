// The kernels of losses, run on the host: losses and gradients are those of the host's operations, bit
// for bit.
#include "numsim/ops/internal/loss_kernels.h"

#include <gtest/gtest.h>

#include "numsim/ops/loss.h"
#include "tests/ops/kernel_checks.h"

namespace numsim {
namespace {

constexpr double kFactor = 0.75;

// The halves of a number's bits, as elements that compare by bits.
void Keep(double x, Grid<float>& to, size_t row) {
  const auto bits = std::bit_cast<uint64_t>(std::isnan(x) ? std::nan("") : x);
  to(row, 0) = static_cast<float>(bits >> 48);
  to(row, 1) = static_cast<float>(bits >> 24 & 0xFFFFFF);
  to(row, 2) = static_cast<float>(bits & 0xFFFFFF);
}
Grid<float> Kept(double sum, double counted, double correct, double wrong = 0) {
  Grid<float> kept(4, 3);
  Keep(sum, kept, 0);
  Keep(counted, kept, 1);
  Keep(correct, kept, 2);
  Keep(wrong, kept, 3);
  return kept;
}
Grid<float> Kept(const LossSum& loss) {
  return Kept(loss.sum, static_cast<double>(loss.counted), static_cast<double>(loss.correct));
}
Grid<float> Kept(const LossTotal& loss) {
  return Kept(loss.sum,
              static_cast<double>(loss.counted),
              static_cast<double>(loss.correct),
              static_cast<double>(loss.wrong_targets));
}

std::vector<int32_t> TargetsFor(size_t rows, size_t classes) {
  std::vector<int32_t> targets(rows);
  for (size_t i = 0; i < rows; ++i) targets[i] = static_cast<int32_t>(i * 7 % (classes + 1)) - 1;
  return targets;
}

Grids OnHost(const Grid<float>& x, const std::vector<int32_t>& targets) {
  Grid<float> gradient(x.rows(), x.cols());
  const LossSum loss = CrossEntropy<float>(x.View(), Indices(targets), kFactor, gradient.View());
  return {gradient, Kept(loss)};
}
Grids ByKernels(const Grid<float>& x,
                const std::vector<int32_t>& targets,
                const FiberLauncher& launch) {
  Grid<float> gradient(x.rows(), x.cols());
  std::vector<RowLoss> results(x.rows());
  LossTotal total = {};
  CrossEntropyBy(
      launch, x.View(), Indices(targets), kFactor, results.data(), gradient.View(), &total);
  return {gradient, Kept(total)};
}

TEST(LossKernels, CrossEntropyGivesTheBitsOfTheHost) {
  for (const size_t rows : {0, 1, 16, 17, 255, 256, 257}) {
    for (const size_t classes : {1, 2, 15, 16, 17, 40, 257}) {
      if (rows * classes > 20000) continue;
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(classes));
      Grid<float> x(rows, classes, 1);
      for (size_t r = 0; r < rows; r += 3) x(r, r % classes) = 3;        // some are right
      for (size_t r = 0; r < rows; r += 6) x(r, (r + 1) % classes) = 3;  // some twice
      const std::vector<int32_t> targets = TargetsFor(rows, classes);
      ExpectSame(
          OnHost(x, targets), [&](const auto& launch) { return ByKernels(x, targets, launch); }, 2);
    }
  }
}

TEST(LossKernels, CrossEntropyGivesTheBitsOfTheHostForSpecialValues) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const Grid<float> x = WithSpecials(40, 20, seed);
    const std::vector<int32_t> targets = TargetsFor(40, 20);
    ExpectSame(OnHost(x, targets),
               [&](const auto& launch) { return ByKernels(x, targets, launch); });
  }
}

TEST(LossKernels, CrossEntropyMayWriteOverTheLogits) {
  const Grid<float> x(20, 37, 1);
  const std::vector<int32_t> targets = TargetsFor(20, 37);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Grid<float> y = x;
    std::vector<RowLoss> results(20);
    LossTotal total = {};
    CrossEntropyBy(FiberLauncher{{.seed = seed}},
                   y.View(),
                   Indices(targets),
                   kFactor,
                   results.data(),
                   y.View(),
                   &total);
    EXPECT_TRUE(Same({y, Kept(total)}, OnHost(x, targets))) << seed;
  }
}

TEST(LossKernels, CrossEntropyNeedsNoGradient) {
  const Grid<float> x(20, 37, 1);
  const std::vector<int32_t> targets = TargetsFor(20, 37);
  std::vector<RowLoss> results(20);
  LossTotal total = {};
  CrossEntropyBy(FiberLauncher{}, x.View(), Indices(targets), 1, results.data(), {}, &total);
  EXPECT_TRUE(Same({Kept(total)}, {OnHost(x, targets)[1]}));
}

TEST(LossKernels, CrossEntropyCountsTargetsThatAreNoClasses) {
  const Grid<float> x(5, 3, 1);
  Grid<float> gradient(5, 3);
  std::vector<RowLoss> results(5);
  LossTotal total = {};
  const std::vector<int32_t> targets = {3, 1, -2, -1, 2147483647};
  CrossEntropyBy(
      FiberLauncher{}, x.View(), Indices(targets), 1, results.data(), gradient.View(), &total);
  EXPECT_EQ(total.wrong_targets, 3u);
  EXPECT_EQ(total.counted, 1u);
  EXPECT_EQ(gradient(0, 0), 0);
}

TEST(LossKernels, SquaredErrorGivesTheBitsOfTheHost) {
  for (const size_t rows : {1, 20, 300}) {
    for (const size_t cols : {1, 15, 17, 64}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      const Grid<float> y = WithSpecials(rows, cols, 1), target(rows, cols, 2);
      Grid<float> expected(rows, cols), gradient(rows, cols);
      const LossSum loss = SquaredError<float>(y.View(), target.View(), kFactor, expected.View());
      std::vector<RowLoss> results(rows);
      LossTotal total = {};
      const float weight = static_cast<float>(2 * kFactor / static_cast<double>(rows * cols));
      SquaredErrorBy(FiberLauncher{{.seed = 1}},
                     y.View(),
                     target.View(),
                     weight,
                     results.data(),
                     gradient.View(),
                     &total);
      EXPECT_TRUE(Same({gradient, Kept(total.sum, 0, 0)}, {expected, Kept(loss.sum, 0, 0)}));
    }
  }
}

TEST(LossKernels, FaultsAreFound) {
  const Grid<float> x(300, 20, 1);
  const std::vector<int32_t> targets = TargetsFor(300, 20);
  ExpectFaultsFound(
      OnHost(x, targets), [&](const auto& launch) { return ByKernels(x, targets, launch); }, 3);
}

}  // namespace
}  // namespace numsim
