// Random bits of tiles against those of single elements.
#include "numsim/random/shared/tile_draws.h"

#include <gtest/gtest.h>

namespace numsim {
namespace {

constexpr RandomStream kTileStream = {.seed = 0x0123456789ABCDEF, .stream = 0xFEDCBA9876543210};
constexpr size_t kFirsts[] = {0, 64, 128, 192, 64 * 1001, (size_t{1} << 36) + 64 * 7};

template <class Draws>
void CheckTile(unsigned lanes, unsigned steps) {
  for (int bits = 1; bits <= 32; ++bits) {
    for (const size_t first : kFirsts) {
      for (unsigned lane = 0; lane < lanes; ++lane) {
        const Draws draws(kTileStream, bits, first, lane);
        for (unsigned k = 0; k < steps; ++k) {
          ASSERT_EQ(draws.At(k), RandomBits(kTileStream, first + lane + lanes * k, bits))
              << bits << " bits, element " << first << " + " << lane << " + " << lanes << " * "
              << k;
        }
      }
    }
  }
}

TEST(TileDraws, AreTheRandomBitsOfTheirElements) { CheckTile<TileDraws>(8, 8); }

TEST(QuarterDraws, AreTheRandomBitsOfTheirElements) {
  CheckTile<QuarterDraws<false>>(16, 4);
  for (const size_t first : kFirsts) {
    for (unsigned lane = 0; lane < 16; ++lane) {
      const QuarterDraws<true> draws(kTileStream, 32, first, lane);
      for (unsigned k = 0; k < 4; ++k) {
        ASSERT_EQ(draws.At(k), RandomWord(kTileStream, first + lane + 16 * k));
      }
    }
  }
}

}  // namespace
}  // namespace numsim
