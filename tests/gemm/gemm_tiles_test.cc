// The loops over tiles, with a path simple enough to see what they ask of it: which thread packs
// which strip must change no sum.
#include "numsim/gemm/internal/gemm_tiles.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/gemm/internal/gemm_scratch.h"

namespace numsim {
namespace {

// Products of integers, in tiles of 2 x 3. Panels are so large that a thread keeps three of A, and
// that those of 13 strips of B fit its cache only if a block is short.
class CountingPath {
 public:
  using Packed = int32_t;
  using Result = int64_t;
  struct State {
    int64_t sums[6];
  };
  using Environment = DefaultFloatEnvironment;

  CountingPath(size_t rows, size_t cols, size_t inner)
      : packs_a(Strips(rows, 2)), packs_b(Strips(cols, 3)), rows_(rows), cols_(cols) {
    for (size_t i = 0; i < rows * inner; ++i) a_.push_back(static_cast<int32_t>(i * 37 % 101) - 50);
    for (size_t i = 0; i < cols * inner; ++i) b_.push_back(static_cast<int32_t>(i * 53 % 89) - 44);
  }

  const TileShape shape{2, 3};
  const size_t block = 4;
  const bool copies = true;
  std::vector<std::atomic<int>> packs_a, packs_b;  // how often each strip was packed

  static size_t PanelSize(size_t, size_t depth) {
    return kPanelBytes / sizeof(Packed) / 3 * depth / 4;
  }
  void PackA(size_t first, size_t count, InnerRange range, int32_t* panels) {
    Pack(a_, rows_, 2, first, count, range, panels, packs_a);
  }
  void PackB(size_t first, size_t count, InnerRange range, int32_t* panels) {
    Pack(b_, cols_, 3, first, count, range, panels, packs_b);
  }
  void Clear(State& state) const { state = {}; }
  void Multiply(
      const int32_t* a, const int32_t* b, size_t strip, size_t depth, size_t, State& state) const {
    EXPECT_EQ(a[2 * depth], static_cast<int32_t>(strip)) << "not the panel of this strip";
    for (size_t k = 0; k < depth; ++k) {
      for (size_t i = 0; i < 6; ++i) state.sums[i] += int64_t{a[2 * k + i / 3]} * b[3 * k + i % 3];
    }
  }
  static const int64_t* Finish(State& state) { return state.sums; }

  int64_t Sum(size_t row, size_t col, InnerRange range) const {
    int64_t sum = 0;
    for (size_t k = range.begin; k < range.end; ++k) {
      sum += int64_t{a_[k * rows_ + row]} * b_[k * cols_ + col];
    }
    return sum;
  }

 private:
  // The panel ends with the number of its strip.
  static void Pack(const std::vector<int32_t>& from,
                   size_t vectors,
                   size_t width,
                   size_t first,
                   size_t count,
                   InnerRange range,
                   int32_t* panels,
                   std::vector<std::atomic<int>>& packs) {
    for (size_t s = first; s < first + count; ++s, panels += PanelSize(width, range.Size())) {
      ++packs[s];
      for (size_t k = 0; k < range.Size(); ++k) {
        for (size_t v = 0; v < width; ++v) {
          const size_t vector = s * width + v;
          panels[k * width + v] = vector < vectors ? from[(range.begin + k) * vectors + vector] : 0;
        }
      }
      panels[range.Size() * width] = static_cast<int32_t>(s);
    }
  }

  size_t rows_, cols_;
  std::vector<int32_t> a_, b_;  // [k][vector]
};

class Tiles : public testing::Test {
 protected:
  ~Tiles() override { SetThreadCount(before_); }

 private:
  int before_ = ThreadCount();
};

TEST_F(Tiles, SumsAreThoseOfTheOperandsWhicheverThreadPacks) {
  struct Shape {
    size_t rows, cols, inner;
    int packs_b = 0;  // of two threads, if not once per block
  };
  for (const Shape& shape : {Shape{1, 1, 1},
                             Shape{5, 20, 3},
                             Shape{37, 7, 9},
                             Shape{200, 4, 8},
                             Shape{1100, 4, 8, 4},
                             Shape{1100, 39, 9, 3}}) {
    for (const int threads : {1, 2, 5}) {
      SetThreadCount(threads);
      const InnerRange segment{shape.inner / 3, shape.inner};
      CountingPath path(shape.rows, shape.cols, shape.inner);
      std::vector<int64_t> sums(shape.rows * shape.cols);
      std::vector<std::atomic<int>> stores(sums.size());
      MultiplyTiles(path, shape.rows, shape.cols, segment, [&](TilePlace at, const int64_t* tile) {
        for (size_t i = 0; i < at.rows; ++i) {
          for (size_t j = 0; j < at.cols; ++j) {
            const size_t place = (at.row + i) * shape.cols + at.col + j;
            sums[place] = tile[i * at.stride + j];
            ++stores[place];
          }
        }
      });
      const std::string what =
          std::to_string(shape.rows) + " rows, " + std::to_string(threads) + " threads";
      for (size_t i = 0; i < sums.size(); ++i) {
        ASSERT_EQ(sums[i], path.Sum(i / shape.cols, i % shape.cols, segment))
            << i << " of " << what;
        ASSERT_EQ(stores[i], 1) << i << " of " << what;
      }
      const int blocks = static_cast<int>(Strips(segment.Size(), path.block));
      for (const std::atomic<int>& packs : path.packs_a) EXPECT_EQ(packs, blocks) << what;
      const int packs_b = threads == 2 && shape.packs_b != 0 ? shape.packs_b : blocks;
      for (const std::atomic<int>& packs : path.packs_b) EXPECT_EQ(packs, packs_b) << what;
    }
  }
}

TEST_F(Tiles, ThreadsPackTheirOwnStripsOnlyIfEachHasEnough) {
  SetThreadCount(1);
  EXPECT_TRUE(ThreadsPackTheirOwn(1));
  SetThreadCount(3);
  EXPECT_FALSE(ThreadsPackTheirOwn(23));
  EXPECT_TRUE(ThreadsPackTheirOwn(24));
}

TEST_F(Tiles, ThreadsPackAllOfBIfManyRowsAreMultipliedByIt) {
  SetThreadCount(3);
  EXPECT_TRUE(ThreadsPackAllOfB(true, 1536, kReusedBytes));
  EXPECT_FALSE(ThreadsPackAllOfB(true, 1535, kReusedBytes));
  EXPECT_FALSE(ThreadsPackAllOfB(true, 1536, kReusedBytes + 1));
  EXPECT_FALSE(ThreadsPackAllOfB(false, 1536, kReusedBytes));
  SetThreadCount(1);
  EXPECT_FALSE(ThreadsPackAllOfB(true, 1536, kReusedBytes));
}

}  // namespace
}  // namespace numsim
