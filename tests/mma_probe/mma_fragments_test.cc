// Where elements lie in fragments: against the formulas of [PTX], element by element, and that
// every place is taken once.
#include "numsim/mma_probe/internal/mma_fragments.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace numsim {
namespace {

constexpr int kLanes = 32;
using Place = std::pair<int, int>;  // row, column in elements

// Element i of lane `lane` of A, from the pictures of m16n8k16 with 16 bits, m16n8k32 with 8 bits
// and m16n8k8 with tf32, as the manual states them for each.
Place A16(int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  const bool upper = i < 2 || (i >= 4 && i < 6);
  return {upper ? group : group + 8, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place A8(int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  const bool upper = i < 4 || (i >= 8 && i < 12);
  return {upper ? group : group + 8, in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place A32(int lane, int i) {
  const int group = lane >> 2, in_group = lane % 4;
  return {i == 0 || i == 2 ? group : group + 8, i < 2 ? in_group : in_group + 4};
}
// Of B: (column of the manual, k).
Place B16(int lane, int i) { return {lane >> 2, lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0)}; }
Place B8(int lane, int i) { return {lane >> 2, lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0)}; }
Place B32(int lane, int i) { return {lane >> 2, i == 0 ? lane % 4 : lane % 4 + 4}; }

void ExpectWords(int bits, Place (*a)(int, int), Place (*b)(int, int)) {
  const int of_word = 32 / bits;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4 * of_word; ++i) {
      const MmaPlace word = MmaWordOfA(lane, i / of_word);
      EXPECT_EQ(a(lane, i), Place(word.row, word.column * of_word + i % of_word)) << bits;
    }
    for (int i = 0; i < 2 * of_word; ++i) {
      const MmaPlace word = MmaWordOfB(lane, i / of_word);
      EXPECT_EQ(b(lane, i), Place(word.row, word.column * of_word + i % of_word)) << bits;
    }
  }
}

TEST(MmaFragments, WordsHoldTheElementsThatTheManualStates) {
  ExpectWords(16, A16, B16);
  ExpectWords(8, A8, B8);
  ExpectWords(32, A32, B32);
}

template <class At>
void ExpectEachOnce(int registers, int rows, int columns, const At& at) {
  std::set<Place> places;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < registers; ++i) {
      const MmaPlace place = at(lane, i);
      EXPECT_TRUE(place.row >= 0 && place.row < rows && place.column >= 0 &&
                  place.column < columns);
      places.insert({place.row, place.column});
    }
  }
  EXPECT_EQ(places.size(), static_cast<size_t>(rows * columns));
}

TEST(MmaFragments, EveryPlaceIsTakenOnce) {
  ExpectEachOnce(4, 16, 8, MmaWordOfA);
  ExpectEachOnce(2, 8, 8, MmaWordOfB);
  ExpectEachOnce(4, 16, 8, MmaElementOfC);
}

TEST(MmaFragments, ResultsLieInPairsOfColumns) {
  // Lane 5: rows 1 and 9, columns 2 and 3.
  const Place expected[] = {{1, 2}, {1, 3}, {9, 2}, {9, 3}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Place(MmaElementOfC(5, i).row, MmaElementOfC(5, i).column), expected[i]);
  }
}

TEST(CoreMatrices, HoldEightRowsOfSixteenBytes) {
  std::set<int> offsets;
  for (int row = 0; row < 64; ++row) {
    for (int byte = 0; byte < kMmaRowBytes; ++byte) {
      const int offset = CoreOffset(row, byte);
      offsets.insert(offset);
      // A matrix of 8 x 16 bytes is contiguous, its rows one after another.
      const int core = CoreOffset(row / 8 * 8, byte / 16 * 16);
      EXPECT_EQ(offset - core, row % 8 * 16 + byte % 16);
      EXPECT_EQ(core, row / 8 * kCoreAlongRows + byte / 16 * kCoreAlongK);
    }
  }
  EXPECT_EQ(offsets.size(), 64u * kMmaRowBytes);
  EXPECT_EQ(*offsets.rbegin(), 64 * kMmaRowBytes - 1);
}

TEST(CoreMatrices, DescriptorHasAddressAndOffsetsInSixteens) {
  const uint64_t descriptor = CoreDescriptor(0x1230);
  EXPECT_EQ(descriptor & 0x3FFF, 0x123u);
  EXPECT_EQ(descriptor >> 16 & 0x3FFF, 128u / 16);
  EXPECT_EQ(descriptor >> 32 & 0x3FFF, 256u / 16);
  EXPECT_EQ(descriptor >> 46, 0u);  // no base offset, no swizzle
}

}  // namespace
}  // namespace numsim
