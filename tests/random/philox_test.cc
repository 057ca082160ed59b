#include "numsim/random/philox.h"

#include <gtest/gtest.h>

namespace numsim {
namespace {

// Known answers of Random123's kat_vectors, philox4x32 with 10 rounds [Philox].
TEST(Philox4x32, EqualsThePublishedAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi.
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox4x32, IsAvailableAtCompileTime) {
  static_assert(Philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}

TEST(Philox4x32, EveryBitOfCounterAndKeyChangesAllFourWords) {
  const PhiloxCounter base = Philox4x32({1, 2, 3, 4}, {5, 6});
  for (int bit = 0; bit < 192; ++bit) {
    PhiloxCounter counter = {1, 2, 3, 4};
    PhiloxKey key = {5, 6};
    (bit < 128 ? counter[bit / 32] : key[(bit - 128) / 32]) ^= uint32_t{1} << bit % 32;
    const PhiloxCounter changed = Philox4x32(counter, key);
    for (int w = 0; w < 4; ++w) EXPECT_NE(changed[w], base[w]) << "bit " << bit << " word " << w;
  }
}

}  // namespace
}  // namespace numsim
