// The kernels of norms, run on the host: their results are those of the host's operations, bit for
// bit.
#include "numsim/ops/internal/norm_kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <limits>

#include "tests/ops/kernel_checks.h"
#include "tests/ops/norm_problem.h"

namespace numsim {
namespace {

using Problem = NormProblem<float>;
using Room = NormResult<float>;

// Puts special values into some rows.
void AddSpecials(Problem& p) {
  const float specials[] = {0.0f,
                            -0.0f,
                            1e-42f,
                            1e30f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < std::size(specials); ++i) {
    const size_t row = i * p.x.rows() / std::size(specials);
    p.x(row, i % p.x.cols()) = specials[i];
    p.g(row, (i + 1) % p.x.cols()) = specials[(i + 2) % std::size(specials)];
  }
  for (size_t c = 0; c < p.x.cols(); ++c) p.x(p.x.rows() - 1, c) = 0;
}

Grids RmsNormByKernels(const Problem& p, const FiberLauncher& launch) {
  Room r(p);
  RmsNormBy(launch, p.x.View(), p.gain.View(), kNormEpsilon, r.inverse.View(), r.y.View());
  std::vector<float> sums = Scratch(BlockSums<1>(p.x.rows(), {r.gain_gradient.View()}));
  RmsNormGradientBy(launch,
                    p.g.View(),
                    p.x.View(),
                    p.gain.View(),
                    r.inverse.View(),
                    sums.data(),
                    r.gain_gradient.View(),
                    r.dx.View());
  return r.All();
}

Grids LayerNormByKernels(const Problem& p, const FiberLauncher& launch) {
  Room r(p);
  LayerNormBy(launch,
              p.x.View(),
              p.gain.View(),
              p.bias.View(),
              kNormEpsilon,
              r.mean.View(),
              r.inverse.View(),
              r.y.View());
  std::vector<float> sums =
      Scratch(BlockSums<2>(p.x.rows(), {r.gain_gradient.View(), r.bias_gradient.View()}));
  LayerNormGradientBy(launch,
                      p.g.View(),
                      p.x.View(),
                      p.gain.View(),
                      r.mean.View(),
                      r.inverse.View(),
                      sums.data(),
                      r.gain_gradient.View(),
                      r.bias_gradient.View(),
                      r.dx.View());
  return r.All();
}

Grids UnitNormByKernels(const Problem& p, const FiberLauncher& launch) {
  Room r(p);
  UnitNormBy(launch, p.x.View(), r.inverse.View(), r.y.View());
  UnitNormGradientBy(launch, p.g.View(), r.y.View(), r.inverse.View(), r.dx.View());
  return r.All();
}

void ExpectSameNorms(const Problem& p, uint64_t seeds) {
  ExpectSame(
      WithRmsNorm(p).All(), [&](const auto& launch) { return RmsNormByKernels(p, launch); }, seeds);
  ExpectSame(
      WithLayerNorm(p).All(),
      [&](const auto& launch) { return LayerNormByKernels(p, launch); },
      seeds);
  if (p.vectors() == 1) {
    ExpectSame(
        WithUnitNorm(p).All(),
        [&](const auto& launch) { return UnitNormByKernels(p, launch); },
        seeds);
  }
}

// Around the numbers of lanes, of columns of a tile, of vectors of a round and of rows of a block.
TEST(NormKernels, GiveTheBitsOfTheHostAtEveryShape) {
  for (const size_t rows : {1, 2, 16, 17, 127, 129, 300}) {
    for (const size_t vectors : {1, 3}) {
      for (const size_t n : {1, 2, 15, 16, 17, 33, 255, 257, 600}) {
        if (rows * n * vectors > 9000) continue;
        SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(vectors) + " x " +
                     std::to_string(n));
        ExpectSameNorms(Problem(rows, vectors, n), 2);
      }
    }
  }
}

TEST(NormKernels, GiveTheBitsOfTheHostForSpecialValues) {
  for (const size_t n : {1, 5, 16, 40}) {
    Problem p(30, 1, n);
    AddSpecials(p);
    ExpectSameNorms(p, 2);
  }
}

TEST(NormKernels, MayWriteTheirResultsOverTheirInputs) {
  const Problem p(35, 2, 37);
  const Grids rms = WithRmsNorm(p).All();
  Room r(p);
  Grid<float> x = p.x, g = p.g;
  const FiberLauncher launch{{.seed = 3}};
  RmsNormBy(launch, x.View(), p.gain.View(), kNormEpsilon, r.inverse.View(), x.View());
  std::vector<float> sums = Scratch(BlockSums<1>(35, {r.gain_gradient.View()}));
  RmsNormGradientBy(launch,
                    g.View(),
                    p.x.View(),
                    p.gain.View(),
                    r.inverse.View(),
                    sums.data(),
                    r.gain_gradient.View(),
                    g.View());
  EXPECT_TRUE(Same({x, r.gain_gradient, g}, {rms[2], rms[3], rms[5]}));
}

// Memory that ends where pages do: nothing behind it can be read.
class LastPage {
 public:
  explicit LastPage(size_t n) : n_(n) {
    base_ = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + kPage, kPage, PROT_NONE);
  }
  ~LastPage() { munmap(base_, 2 * kPage); }
  LastPage(const LastPage&) = delete;
  LastPage& operator=(const LastPage&) = delete;

  MatrixSpan<float> View() const { return {reinterpret_cast<float*>(base_ + kPage) - n_, n_}; }

 private:
  static constexpr size_t kPage = 65536;
  size_t n_;
  char* base_;
};

TEST(NormKernels, ReadNothingBehindARow) {
  for (size_t n = 1; n < 40; ++n) {
    const Problem p(1, 1, n);
    const Grids rms = WithRmsNorm(p).All();
    const LastPage x(n), gain(n), y(n);
    std::copy_n(p.x.View().data, n, x.View().data);
    std::copy_n(p.gain.View().data, n, gain.View().data);
    float inverse;
    RmsNormBy(FiberLauncher{}, x.View(), gain.View(), kNormEpsilon, {&inverse, 1}, y.View());
    EXPECT_EQ(inverse, rms[0](0, 0));
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(y.View().data[i], rms[2](0, i)) << n;
  }
}

TEST(NormKernels, WriteZeroSumsForNoRows) {
  const Problem none(0, 1, 20);
  const Grids by_kernels = LayerNormByKernels(none, {});
  EXPECT_TRUE(Same(by_kernels, WithLayerNorm(none).All()));
  EXPECT_EQ(by_kernels[4](0, 19), 0);
}

TEST(NormKernels, FaultsAreFound) {
  const Problem p(40, 1, 300);
  ExpectFaultsFound(
      WithRmsNorm(p).All(), [&](const auto& launch) { return RmsNormByKernels(p, launch); }, 2);
  ExpectFaultsFound(
      WithLayerNorm(p).All(), [&](const auto& launch) { return LayerNormByKernels(p, launch); }, 2);
  ExpectFaultsFound(
      WithUnitNorm(p).All(), [&](const auto& launch) { return UnitNormByKernels(p, launch); }, 0);
}

}  // namespace
}  // namespace numsim
