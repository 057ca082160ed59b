#include "numsim/base/shared/uninitialized_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

namespace numsim {
namespace {

TEST(KeptMemory, IsUsedAgainForTheSameSize) {
  ReleaseKeptMemory();
  for (const std::size_t bytes : {1u, 63u, 64u, 65u, 1000u, 4097u, 100'000u, 5'000'000u}) {
    void* const memory = TakeMemory(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    std::memset(memory, 1, bytes);
    ReturnMemory(memory, bytes);
    void* const again = TakeMemory(bytes);
    EXPECT_EQ(again, memory) << bytes;
    ReturnMemory(again, bytes);
    EXPECT_GE(ReleaseKeptMemory(), bytes);
    EXPECT_EQ(ReleaseKeptMemory(), 0u);
  }
}

TEST(KeptMemory, IsKeptUpToALimit) {
  ReleaseKeptMemory();
  constexpr std::size_t kPart = kMostKeptMemory / 4;
  std::vector<void*> parts;
  for (int i = 0; i < 6; ++i) parts.push_back(TakeMemory(kPart));
  for (void* const part : parts) ReturnMemory(part, kPart);
  EXPECT_EQ(ReleaseKeptMemory(), kMostKeptMemory);
  void* const large = TakeMemory(kMostKeptMemory + 1);
  ReturnMemory(large, kMostKeptMemory + 1);
  EXPECT_EQ(ReleaseKeptMemory(), 0u);
  EXPECT_THROW(TakeMemory(SIZE_MAX), std::bad_alloc);
}

TEST(KeptMemory, IsSharedByThreads) {
  const auto work = [](uint8_t mark) {
    for (std::size_t bytes = 64; bytes < 100'000; bytes += 613) {
      UninitializedVector<uint8_t> bytes_of(bytes);
      std::fill(bytes_of.begin(), bytes_of.end(), mark);
      for (const uint8_t byte : bytes_of) ASSERT_EQ(byte, mark);
    }
  };
  std::thread first(work, 1), second(work, 2);
  first.join();
  second.join();
}

TEST(UninitializedVector, KeepsItsElementsWhenItGrowsAndMoves) {
  UninitializedVector<uint32_t> vector;
  EXPECT_TRUE(vector.empty());
  std::size_t size = 0;
  for (std::size_t more : {1, 2, 100, 3, 5000, 1}) {
    vector.resize(size + more);
    std::iota(vector.begin() + size, vector.end(), static_cast<uint32_t>(size));
    size += more;
    ASSERT_EQ(vector.size(), size);
    for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(vector[i], i);
  }
  vector.resize(50);
  vector.resize(size);  // within the capacity: the elements are still there
  EXPECT_EQ(vector[size - 1], size - 1);
  UninitializedVector<uint32_t> moved(std::move(vector));
  EXPECT_EQ(moved.size(), size);
  UninitializedVector<uint32_t> assigned(3);
  assigned = std::move(moved);
  EXPECT_EQ(std::span<const uint32_t>(assigned).size(), size);
  EXPECT_EQ(assigned[7], 7u);
  EXPECT_THROW(assigned.resize(SIZE_MAX / 2), std::bad_alloc);
  EXPECT_EQ(assigned.size(), size);
}

}  // namespace
}  // namespace numsim
