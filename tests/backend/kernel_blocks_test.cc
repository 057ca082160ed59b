// Blocks of threads as fibers: the meaning of barriers and shuffles is that of CUDA, and what is
// wrong with them is found.
#include "numsim/backend/shared/kernel_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/fiber_block.h"

namespace numsim {
namespace {

constexpr unsigned kSeeds = 12;

// Every number of a block goes to the next thread, twice, through memory that all share.
struct RotateKernel {
  static constexpr unsigned kThreads = 64;
  struct Shared {
    float values[kThreads];
  };
  const float* x;
  float* y;

  template <class Env>
  void Run(Env& env, Shared& shared) const {
    const unsigned thread = env.Thread(), next = (thread + 1) % kThreads;
    const size_t at = env.Block() * kThreads + thread;
    shared.values[thread] = x[at];
    env.Sync();
    const float value = shared.values[next];
    env.Sync();
    shared.values[thread] = value;
    env.Sync();
    y[at] = shared.values[next];
  }
};

std::vector<float> Rotated(const FiberOptions& options, size_t* barriers = nullptr) {
  constexpr size_t kBlocks = 3, kCount = kBlocks * RotateKernel::kThreads;
  std::vector<float> x(kCount), y(kCount, -1.0f);
  std::iota(x.begin(), x.end(), 0.0f);
  const FiberLauncher launch{options};
  launch(RotateKernel{x.data(), y.data()}, kBlocks);
  if (barriers != nullptr) *barriers = *launch.barriers;
  return y;
}

std::vector<float> RotatedByHand() {
  std::vector<float> y(3 * RotateKernel::kThreads);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<float>(i / 64 * 64 + (i + 2) % 64);
  }
  return y;
}

TEST(FiberBlock, BarriersMakeWritesSeenInEveryOrderOfThreads) {
  size_t barriers = 0;
  EXPECT_EQ(Rotated({}, &barriers), RotatedByHand());
  EXPECT_EQ(barriers, 3u);
  for (uint64_t seed = 1; seed < kSeeds; ++seed) {
    EXPECT_EQ(Rotated({.seed = seed}), RotatedByHand()) << seed;
  }
}

TEST(FiberBlock, FindsEveryMissingBarrier) {
  for (int barrier = 0; barrier < 3; ++barrier) {
    unsigned found = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      if (Rotated({.seed = seed, .lost_barrier = barrier}) != RotatedByHand()) ++found;
    }
    EXPECT_GT(found, kSeeds / 2) << "barrier " << barrier;
  }
}

TEST(FiberBlock, RepeatsTheOrderOfASeed) {
  for (const uint64_t seed : {0u, 1u, 2u}) {
    const FiberOptions options{.seed = seed, .lost_barrier = 1};
    const std::vector<float> first = Rotated(options), second = Rotated(options);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(first[i] == second[i] || (std::isnan(first[i]) && std::isnan(second[i])));
    }
  }
}

// The four shuffles with one argument, in groups of kLanes.
template <unsigned kLanes>
struct ShuffleKernel {
  static constexpr unsigned kThreads = 64;
  using Shared = NothingShared;
  unsigned argument;
  std::array<double, 4>* y;  // of each thread

  template <class Env>
  void Run(Env& env, Shared&) const {
    const double x = env.Thread() + 0.5;
    std::array<double, 4>& results = y[env.Thread()];
    results[0] = env.template Shuffle<kLanes>(x, argument);
    results[1] = env.template ShuffleXor<kLanes>(x, argument % kLanes);
    results[2] = env.template ShuffleUp<kLanes>(x, argument);
    results[3] = env.template ShuffleDown<kLanes>(x, argument);
  }
};

// Checks the lanes that the CUDA C++ Programming Guide states for __shfl_sync and its kin with a
// width.
template <unsigned kLanes>
void ExpectShuffles() {
  for (unsigned argument = 0; argument <= kLanes + 1; ++argument) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::vector<std::array<double, 4>> y(64);
      RunBlocks(ShuffleKernel<kLanes>{argument, y.data()}, 1, {.seed = seed});
      for (int t = 0; t < 64; ++t) {
        constexpr int kWidth = kLanes;
        const int first = t - t % kWidth, distance = static_cast<int>(argument);
        const int up = t - distance < first ? t : t - distance;
        const int down = t + distance >= first + kWidth ? t : t + distance;
        const int across = first + ((t - first) ^ (distance % kWidth));
        const std::array<double, 4> expected = {
            first + distance % kWidth + 0.5, across + 0.5, up + 0.5, down + 0.5};
        EXPECT_EQ(y[static_cast<size_t>(t)], expected) << kLanes << " " << argument << " " << t;
      }
    }
  }
}

TEST(FiberBlock, ShufflesHaveTheLanesOfCuda) {
  ExpectShuffles<2>();
  ExpectShuffles<4>();
  ExpectShuffles<8>();
  ExpectShuffles<16>();
  ExpectShuffles<32>();
}

// Groups of 16 go their own ways: group g adds up its lanes g times.
struct UnevenKernel {
  static constexpr unsigned kThreads = 64;
  using Shared = NothingShared;
  uint32_t* y;

  template <class Env>
  void Run(Env& env, Shared&) const {
    uint32_t x = env.Thread() % 16;
    for (unsigned i = 0; i < env.Thread() / 16; ++i) {
      for (unsigned half = 8; half > 0; half /= 2) x += env.template ShuffleXor<16>(x, half);
    }
    y[env.Thread()] = x;
  }
};

TEST(FiberBlock, GroupsOfAWarpNeedNotTakeTheSamePath) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::vector<uint32_t> y(64);
    RunBlocks(UnevenKernel{y.data()}, 1, {.seed = seed});
    for (uint32_t t = 0; t < 64; ++t) {
      const std::array<uint32_t, 4> expected = {t % 16, 120, 120 * 16, 120 * 256};
      EXPECT_EQ(y[t], expected[t / 16]) << t;
    }
  }
}

// A kernel with one fault.
enum class Fault { kBarrierOfSome, kTwoBarriers, kEarlyEnd, kShuffleOfSome, kBarrierInGroup };
struct FaultyKernel {
  static constexpr unsigned kThreads = 32;
  using Shared = NothingShared;
  Fault fault;

  template <class Env>
  void Run(Env& env, Shared&) const {
    const bool odd = env.Thread() % 2 != 0;
    switch (fault) {
      case Fault::kBarrierOfSome:
        if (!odd) env.Sync();
        return;
      case Fault::kTwoBarriers:
        if (odd) {
          env.Sync();
        } else {
          env.Sync();
        }
        return;
      case Fault::kEarlyEnd:
        if (env.Thread() == 9) return;
        env.Sync();
        return;
      case Fault::kShuffleOfSome:
        if (odd) env.template ShuffleXor<16>(1.0f, 2);
        return;
      case Fault::kBarrierInGroup:
        if (env.Thread() == 20) env.Sync();
        env.template ShuffleXor<16>(1.0f, 2);
        if (env.Thread() != 20) env.Sync();
        return;
    }
  }
};

TEST(FiberBlock, NamesTheThreadsOfACallThatNotAllReach) {
  const auto error = [](Fault fault) {
    std::string text = ErrorOf([&] { RunBlocks(FaultyKernel{fault}, 2, {.seed = 1}); });
    for (size_t i = 0; i + 1 < text.size(); ++i) {  // numbers of lines
      if (text[i] == ':' && std::isdigit(text[i + 1]) != 0) {
        text.erase(i, text.find_first_not_of("0123456789", i + 1) - i);
      }
    }
    return text;
  };
  const std::string here = " at kernel_blocks_test.cc";
  EXPECT_EQ(error(Fault::kBarrierOfSome),
            "block 1: thread 0 waits for its block" + here + ", but thread 1 has ended");
  EXPECT_EQ(
      error(Fault::kTwoBarriers),
      "block 1: thread 0 waits for its block" + here + ", but thread 1 waits for its block" + here);
  EXPECT_EQ(error(Fault::kEarlyEnd),
            "block 1: thread 0 waits for its block" + here + ", but thread 9 has ended");
  EXPECT_EQ(error(Fault::kShuffleOfSome),
            "block 1: thread 1 waits for its group of 16" + here + ", but thread 0 has ended");
  EXPECT_EQ(error(Fault::kBarrierInGroup),
            "block 1: thread 16 waits for its group of 16" + here +
                ", but thread 20 waits for its block" + here);
}

TEST(FiberBlock, RunsBlocksOfAnyNumber) {
  EXPECT_EQ(RunBlocks(FaultyKernel{Fault::kBarrierOfSome}, 0), 0u);
}

}  // namespace
}  // namespace numsim
