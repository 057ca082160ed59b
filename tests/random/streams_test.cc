// The mapping from (seed, stream, element) to random bits, against a naive restatement.
#include "numsim/random/streams.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace numsim {
namespace {

constexpr RandomStream kStream = {.seed = 0x0123456789ABCDEF, .stream = 0xFEDCBA9876543210};

// Where the bits of an element lie.
using Slot = std::tuple<uint64_t /*block*/, int /*word*/, int /*field*/>;

int FieldsOfAWord(int bits) {
  if (bits <= 8) return 4;
  return bits <= 16 ? 2 : 1;
}

// The slots of one tile in the order of its elements: words outermost, then fields from the low
// end, then the sixteen lanes.
std::vector<Slot> SlotsOfTile(uint64_t tile, int bits) {
  std::vector<Slot> slots;
  for (int word = 0; word < 4; ++word) {
    for (int field = 0; field < FieldsOfAWord(bits); ++field) {
      for (uint64_t lane = 0; lane < 16; ++lane) slots.push_back({16 * tile + lane, word, field});
    }
  }
  return slots;
}

uint32_t Word(RandomStream s, uint64_t block, int word) {
  const PhiloxCounter counter = {static_cast<uint32_t>(block & 0xFFFFFFFF),
                                 static_cast<uint32_t>(block >> 32),
                                 static_cast<uint32_t>(s.stream & 0xFFFFFFFF),
                                 static_cast<uint32_t>(s.stream >> 32)};
  const PhiloxKey key = {static_cast<uint32_t>(s.seed & 0xFFFFFFFF),
                         static_cast<uint32_t>(s.seed >> 32)};
  return Philox4x32(counter, key)[word];
}

// The top `bits` bits of the slot's field, picked one by one.
uint32_t BitsInSlot(RandomStream s, const Slot& slot, int bits) {
  const auto [block, word, field] = slot;
  const int width = 32 / FieldsOfAWord(bits);
  const uint32_t whole = Word(s, block, word);
  uint32_t result = 0;
  for (int k = 0; k < bits; ++k) {
    const int position = width * (field + 1) - 1 - k;
    result = 2 * result + (whole >> position & 1);
  }
  return result;
}

TEST(RandomBits, FollowTheDocumentedMapping) {
  for (int bits = 1; bits <= 32; ++bits) {
    // Also a tile whose blocks need the high word of the counter.
    for (uint64_t tile : {uint64_t{0}, uint64_t{1}, uint64_t{12345}, uint64_t{1} << 29}) {
      const std::vector<Slot> slots = SlotsOfTile(tile, bits);
      ASSERT_EQ(slots.size(), RandomTileElements(bits));
      for (size_t j = 0; j < slots.size(); ++j) {
        ASSERT_EQ(RandomBits(kStream, tile * slots.size() + j, bits),
                  BitsInSlot(kStream, slots[j], bits))
            << bits << " bits, tile " << tile << ", element " << j;
      }
    }
  }
}

TEST(RandomBits, UseEveryFieldOfEveryWordOnce) {
  for (int bits : {8, 16, 32}) {
    const uint64_t elements = 3 * RandomTileElements(bits);
    std::multiset<uint32_t> drawn;
    for (uint64_t i = 0; i < elements; ++i) drawn.insert(RandomBits(kStream, i, bits));
    std::multiset<uint32_t> produced;
    for (uint64_t block = 0; block < 3 * 16; ++block) {
      for (int word = 0; word < 4; ++word) {
        for (int field = 0; field < 32 / bits; ++field) {
          const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
          produced.insert(Word(kStream, block, word) >> (bits * field) & mask);
        }
      }
    }
    EXPECT_EQ(drawn, produced) << bits;
  }
}

TEST(RandomBits, FewerBitsAreTheTopOfMoreBitsOfTheSameField) {
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(RandomBits(kStream, i, 3), RandomBits(kStream, i, 8) >> 5);
    EXPECT_EQ(RandomBits(kStream, i, 13), RandomBits(kStream, i, 16) >> 3);
    EXPECT_EQ(RandomBits(kStream, i, 17), RandomBits(kStream, i, 32) >> 15);
    EXPECT_EQ(RandomWord(kStream, i), RandomBits(kStream, i, 32));
  }
}

TEST(RandomBits, StayBelowTwoToTheirNumber) {
  for (int bits = 1; bits < 32; ++bits) {
    for (uint64_t i = 0; i < 300; ++i) EXPECT_EQ(RandomBits(kStream, i, bits) >> bits, 0u);
  }
}

TEST(RandomBits, DependOnAllOfSeedAndStream) {
  std::set<std::vector<uint32_t>> sequences;
  for (RandomStream s : {RandomStream{0, 0},
                         RandomStream{1, 0},
                         RandomStream{uint64_t{1} << 32, 0},
                         RandomStream{0, 1},
                         RandomStream{0, uint64_t{1} << 32},
                         RandomStream{1, 1}}) {
    std::vector<uint32_t> sequence;
    for (uint64_t i = 0; i < 64; ++i) sequence.push_back(RandomWord(s, i));
    sequences.insert(sequence);
  }
  EXPECT_EQ(sequences.size(), 6u);
}

TEST(RandomTile, HasSixtyFourWordsAndSoManyFields) {
  EXPECT_EQ(RandomTileElements(1), 256u);
  EXPECT_EQ(RandomTileElements(8), 256u);
  EXPECT_EQ(RandomTileElements(9), 128u);
  EXPECT_EQ(RandomTileElements(16), 128u);
  EXPECT_EQ(RandomTileElements(17), 64u);
  EXPECT_EQ(RandomTileElements(32), 64u);
  EXPECT_EQ(RandomFieldBits(8), 8);
  EXPECT_EQ(RandomFieldBits(9), 16);
  EXPECT_EQ(RandomFieldBits(17), 32);
}

}  // namespace
}  // namespace numsim
