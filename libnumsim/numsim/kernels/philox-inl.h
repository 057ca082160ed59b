// Random words for consecutive elements, by vectors. Re-included per target.
#if defined(NUMSIM_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_KERNELS_PHILOX_INL_H_
#undef NUMSIM_KERNELS_PHILOX_INL_H_
#else
#define NUMSIM_KERNELS_PHILOX_INL_H_
#endif

#include "hwy/highway.h"
#include "numsim/random/streams.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
// One lane: no vector operations to gain from.
HWY_INLINE void PhiloxTile(RandomStream s, uint64_t first_block, uint32_t* HWY_RESTRICT words) {
  for (size_t l = 0; l < kRandomLanes; ++l) {
    const PhiloxCounter block = RandomBlock(s, first_block + l);
    for (size_t w = 0; w < 4; ++w) words[kRandomLanes * w + l] = block[w];
  }
}
#else
using PhiloxD64 = hn::CappedTag<uint64_t, kRandomLanes / 2>;
using PhiloxVec = hn::Vec<PhiloxD64>;

// Each 64-bit lane carries one block's word in its low half; the high half is never read, so
// products and exclusive ors need no masks.
struct PhiloxState {
  PhiloxVec c0, c1, c2, c3;
};

HWY_INLINE PhiloxState PhiloxRound(PhiloxState s, PhiloxVec key0, PhiloxVec key1) {
  const hn::Repartition<uint32_t, PhiloxD64> d32;
  const auto m0 = hn::Set(d32, kPhiloxMultiplier0);
  const auto m1 = hn::Set(d32, kPhiloxMultiplier1);
  const auto product0 = hn::MulEven(hn::BitCast(d32, s.c0), m0);
  const auto product1 = hn::MulEven(hn::BitCast(d32, s.c2), m1);
  return {hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), s.c1), key0),
          product1,
          hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), s.c3), key1),
          product0};
}

// Writes the four words of blocks first_block .. first_block + kRandomLanes - 1:
// words[16 w + l] is word w of block first_block + l.
HWY_INLINE void PhiloxTile(RandomStream s, uint64_t first_block, uint32_t* HWY_RESTRICT words) {
  const PhiloxD64 d64;
  const hn::Repartition<uint32_t, PhiloxD64> d32;
  const size_t lanes = hn::Lanes(d64);
  const auto low = hn::Set(d64, 0xFFFFFFFFu);
  const auto stream0 = hn::Set(d64, s.stream & 0xFFFFFFFFu);
  const auto stream1 = hn::Set(d64, s.stream >> 32);
  for (size_t l = 0; l < kRandomLanes; l += 2 * lanes) {
    const auto block_a = hn::Add(hn::Set(d64, first_block + l), hn::Iota(d64, 0));
    const auto block_b = hn::Add(block_a, hn::Set(d64, lanes));
    PhiloxState a{hn::And(block_a, low), hn::ShiftRight<32>(block_a), stream0, stream1};
    PhiloxState b{hn::And(block_b, low), hn::ShiftRight<32>(block_b), stream0, stream1};
    uint32_t key0 = static_cast<uint32_t>(s.seed);
    uint32_t key1 = static_cast<uint32_t>(s.seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const auto k0 = hn::Set(d64, key0);
      const auto k1 = hn::Set(d64, key1);
      a = PhiloxRound(a, k0, k1);
      b = PhiloxRound(b, k0, k1);
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
    const auto store = [&](int w, PhiloxVec va, PhiloxVec vb) HWY_ATTR {
      const auto packed = hn::ConcatEven(d32, hn::BitCast(d32, vb), hn::BitCast(d32, va));
      hn::StoreU(packed, d32, words + kRandomLanes * w + l);
    };
    store(0, a.c0, b.c0);
    store(1, a.c1, b.c1);
    store(2, a.c2, b.c2);
    store(3, a.c3, b.c3);
  }
}
#endif  // HWY_TARGET == HWY_SCALAR

// Writes the draws of elements first .. first + n - 1, R at the top of each 32-bit word (the bits
// below are whatever the field's neighbours hold). Requires `first` and n to be multiples of
// RandomTileElements(bits).
HWY_INLINE void RandomTopAligned(
    RandomStream s, uint64_t first, size_t n, int bits, uint32_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint32_t, kRandomLanes> d;
  const size_t lanes = hn::Lanes(d);
  const int field_bits = RandomFieldBits(bits);
  const size_t fields = 32 / static_cast<size_t>(field_bits);
  const size_t tile = 64 * fields;
  HWY_ALIGN uint32_t words[4 * kRandomLanes];
  for (size_t i = 0; i < n; i += tile) {
    const uint64_t first_block = (first + i) / tile * kRandomLanes;
    if (fields == 1) {
      PhiloxTile(s, first_block, out + i);
      continue;
    }
    PhiloxTile(s, first_block, words);
    for (size_t w = 0; w < 4; ++w) {
      for (size_t field = 0; field < fields; ++field) {
        const int left = 32 - field_bits * static_cast<int>(field + 1);
        uint32_t* to = out + i + kRandomLanes * (fields * w + field);
        for (size_t l = 0; l < kRandomLanes; l += lanes) {
          const auto word = hn::LoadU(d, words + kRandomLanes * w + l);
          hn::StoreU(hn::ShiftLeftSame(word, left), d, to + l);
        }
      }
    }
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
