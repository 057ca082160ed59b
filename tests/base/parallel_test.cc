#include "numsim/base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/error_of.h"

namespace numsim {
namespace {

// Puts back the number of threads after each test.
class Parallel : public testing::Test {
 protected:
  ~Parallel() override { SetThreadCount(before_); }

 private:
  int before_ = ThreadCount();
};

struct Chunk {
  size_t begin, end;
};

// The chunks of a loop in ascending order.
std::vector<Chunk> ChunksOf(size_t n, size_t grain) {
  std::mutex mutex;
  std::vector<Chunk> chunks;
  ParallelFor(n, grain, [&](size_t begin, size_t end) {
    const std::lock_guard lock(mutex);
    chunks.push_back({begin, end});
  });
  std::sort(chunks.begin(), chunks.end(), [](Chunk a, Chunk b) { return a.begin < b.begin; });
  return chunks;
}

TEST_F(Parallel, ThereIsAtLeastOneThreadAndTheCountIsWhatWasSet) {
  EXPECT_GE(ThreadCount(), 1);
  for (int threads : {1, 2, 7}) {
    SetThreadCount(threads);
    EXPECT_EQ(ThreadCount(), threads);
  }
}

TEST_F(Parallel, ChunksCoverTheRangeOnceFromAlignedStartsInEqualLengths) {
  for (int threads : {1, 2, 3, 8}) {
    SetThreadCount(threads);
    for (size_t grain : {1, 3, 16, 1000}) {
      for (size_t n : {1, 2, 15, 16, 17, 100, 999, 1000, 1001, 4099}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << n << " by " << grain);
        const std::vector<Chunk> chunks = ChunksOf(n, grain);
        ASSERT_FALSE(chunks.empty());
        EXPECT_LE(chunks.size(), static_cast<size_t>(threads));
        size_t covered = 0;
        for (const Chunk& chunk : chunks) {
          EXPECT_EQ(chunk.begin, covered);
          EXPECT_LT(chunk.begin, chunk.end);
          EXPECT_EQ(chunk.begin % grain, 0u);
          const bool last = chunk.end == n;
          EXPECT_TRUE(last || chunk.end - chunk.begin == chunks[0].end) << chunk.begin;
          covered = chunk.end;
        }
        EXPECT_EQ(covered, n);
      }
    }
  }
}

TEST_F(Parallel, AnEmptyRangeCallsNothing) {
  SetThreadCount(3);
  EXPECT_TRUE(ChunksOf(0, 1).empty());
  ParallelTasks(0, [](size_t) { ADD_FAILURE(); });
}

TEST_F(Parallel, AsMuchAsAGrainIsOneChunk) {
  SetThreadCount(4);
  EXPECT_EQ(ChunksOf(100, 100).size(), 1u);
  EXPECT_EQ(ChunksOf(101, 100).size(), 2u);
}

TEST_F(Parallel, ChunksRunOnSeveralThreads) {
  SetThreadCount(3);
  std::mutex mutex;
  std::vector<std::thread::id> ids;
  ParallelFor(3, 1, [&](size_t, size_t) {
    const std::lock_guard lock(mutex);
    ids.push_back(std::this_thread::get_id());
  });
  ASSERT_EQ(ids.size(), 3u);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST_F(Parallel, AnInnerLoopIsOneChunkOnTheSameThread) {
  SetThreadCount(3);
  std::atomic<size_t> chunks = 0, elements = 0;
  ParallelFor(6, 1, [&](size_t begin, size_t end) {
    const std::thread::id outer = std::this_thread::get_id();
    for (size_t i = begin; i < end; ++i) {
      ParallelFor(1000, 1, [&](size_t inner_begin, size_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        ++chunks;
        elements += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(chunks, 6u);
  EXPECT_EQ(elements, 6000u);
}

TEST_F(Parallel, ALoopInsideATaskIsOneChunkOnTheSameThread) {
  SetThreadCount(3);
  std::atomic<size_t> chunks = 0, inner_tasks = 0;
  ParallelTasks(5, [&](size_t) {
    const std::thread::id outer = std::this_thread::get_id();
    ParallelFor(1000, 1, [&](size_t, size_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      ++chunks;
    });
    ParallelTasks(4, [&](size_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      ++inner_tasks;
    });
  });
  EXPECT_EQ(chunks, 5u);
  EXPECT_EQ(inner_tasks, 20u);
}

TEST_F(Parallel, EachTaskRunsOnce) {
  for (int threads : {1, 2, 3, 8}) {
    SetThreadCount(threads);
    for (size_t n : {1, 2, 7, 500}) {
      std::vector<std::atomic<int>> runs(n);
      ParallelTasks(n, [&](size_t i) { ++runs[i]; });
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(runs[i], 1) << i << " of " << n;
    }
  }
}

TEST_F(Parallel, OneThreadRunsTasksInOrder) {
  SetThreadCount(1);
  std::vector<size_t> order;
  ParallelTasks(100, [&](size_t i) { order.push_back(i); });
  EXPECT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Parallel, AnotherLibraryGetsTheThreadsThatWereSet) {
  for (const int threads : {1, 2, 7}) {
    SetThreadCount(threads);
    int given = 0;
    CallLibrary([&](int n) { given = n; });
    EXPECT_EQ(given, threads);
  }
}

TEST_F(Parallel, AnotherLibraryGetsOneThreadInAChunkOrTask) {
  SetThreadCount(3);
  std::atomic<int> calls = 0;
  const auto call = [&] {
    CallLibrary([&](int n) {
      EXPECT_EQ(n, 1);
      ++calls;
    });
  };
  ParallelFor(3, 1, [&](size_t, size_t) { call(); });
  ParallelTasks(4, [&](size_t) { call(); });
  EXPECT_EQ(calls, 7);
}

TEST_F(Parallel, ThreadsOutsideTheLimitsThrow) {
  EXPECT_EQ(ErrorOf([&] { SetThreadCount(0); }), "SetThreadCount: threads = 0, expected 1 to 4096");
  EXPECT_EQ(ErrorOf([&] { SetThreadCount(4097); }),
            "SetThreadCount: threads = 4097, expected 1 to 4096");
  SetThreadCount(4096);
  EXPECT_EQ(ThreadCount(), 4096);
}

// Work that throws in a region would end the process. Chunks 1 and 3 of 4 throw, and tasks 5 and 7.
TEST_F(Parallel, TheFirstExceptionOfAllChunksComesOut) {
  for (const int threads : {1, 4}) {
    SetThreadCount(threads);
    std::atomic<int> chunks = 0;
    const std::string message = ErrorOf([&] {
      ParallelFor(400, 100, [&](size_t begin, size_t end) {
        ++chunks;
        if (end > 100) {
          if (begin == 0 || begin % 200 == 100) throw Error::Format("chunk at {}", begin);
        }
      });
    });
    EXPECT_EQ(message, threads == 1 ? "chunk at 0" : "chunk at 100");
    EXPECT_EQ(chunks, threads);
    EXPECT_EQ(ErrorOf([&] {
                ParallelTasks(9, [](size_t i) {
                  if (i == 5 || i == 7) throw Error::Format("task {}", i);
                });
              }),
              "task 5");
  }
}

}  // namespace
}  // namespace numsim
