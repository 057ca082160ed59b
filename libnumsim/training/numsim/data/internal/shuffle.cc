#include "numsim/data/internal/shuffle.h"

#include <cmath>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr uint32_t kRounds = 8;
constexpr uint32_t kDrawPurpose = ~0u;  // outside the range of round numbers

// Returns 64 random bits of the epoch, distinguished by `block` and `purpose`.
uint64_t EpochBits(uint64_t derived_seed, uint64_t epoch, uint32_t block, uint32_t purpose) {
  const PhiloxCounter words =
      RandomBlock({derived_seed, epoch}, uint64_t{purpose} << 32 | uint64_t{block});
  return uint64_t{words[1]} << 32 | words[0];
}

// Returns the least b with b * b >= n.
uint64_t CeilSqrt(uint64_t n) {
  auto base = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (base * base >= n && base > 1) --base;
  while (base * base < n) ++base;
  return base;
}

}  // namespace

EpochShuffle::EpochShuffle(uint64_t seed, uint64_t epoch, uint64_t n)
    : seed_(DeriveSeed(seed, RandomPurpose::kShuffle)), epoch_(epoch), n_(n) {
  NUMSIM_CHECK(n >= 1 && n <= uint64_t{1} << 62, "a permutation of {}", n);
  base_ = CeilSqrt(n);
}

uint64_t EpochShuffle::operator()(uint64_t place) const {
  NUMSIM_CHECK(place < n_, "place {} of {}", place, n_);
  uint64_t left = place % base_;
  uint64_t right = place / base_;
  do {
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t bits = EpochBits(seed_, epoch_, static_cast<uint32_t>(right), round);
      const uint64_t sum = (left + bits % base_) % base_;
      left = right;
      right = sum;
    }
  } while (left + base_ * right >= n_);
  return left + base_ * right;
}

uint64_t EpochDraw(uint64_t seed, uint64_t epoch, uint32_t use, uint64_t n) {
  NUMSIM_CHECK(n >= 1, "a draw from nothing");
  return EpochBits(DeriveSeed(seed, RandomPurpose::kShuffle), epoch, use, kDrawPurpose) % n;
}

}  // namespace numsim
