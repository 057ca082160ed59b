// Random words of consecutive elements, computed in vectors. Re-included per target.
#if defined(NUMSIM_CAST_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_PHILOX_INL_H_
#undef NUMSIM_CAST_PHILOX_INL_H_
#else
#define NUMSIM_CAST_PHILOX_INL_H_
#endif

#include "hwy/highway.h"
#include "numsim/cast/cast.h"
#include "numsim/random/streams.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
// With a single lane, vector operations gain nothing.
struct PhiloxKeys {
  explicit PhiloxKeys(RandomStream) {}
};

template <class Store>
HWY_INLINE void PhiloxTiles(
    RandomStream s, const PhiloxKeys&, uint64_t first_block, size_t tiles, const Store& store) {
  const hn::ScalableTag<uint32_t> d;
  for (size_t l = 0; l < tiles * kRandomLanes; ++l) {
    const PhiloxCounter block = RandomBlock(s, first_block + l);
    for (size_t w = 0; w < 4; ++w) store(w, l, hn::Set(d, block[w]));
  }
}
#else
using PhiloxD64 = hn::CappedTag<uint64_t, kRandomLanes / 2>;
using PhiloxVec = hn::Vec<PhiloxD64>;

// Each 64-bit lane carries a word of one block in its low half. The high half is never read, so
// products and exclusive ors need no masks.
struct PhiloxState {
  PhiloxVec c0, c1, c2, c3;
};

// The keys of all rounds. They are in memory, from where a broadcast needs no shuffle.
struct PhiloxKeys {
  explicit PhiloxKeys(RandomStream s) {
    uint32_t key0 = static_cast<uint32_t>(s.seed);
    uint32_t key1 = static_cast<uint32_t>(s.seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      keys[round][0] = key0;
      keys[round][1] = key1;
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
  }
  uint64_t keys[kPhiloxRounds][2];
};

HWY_INLINE PhiloxState PhiloxRound(PhiloxState s, PhiloxVec key0, PhiloxVec key1) {
  const hn::Repartition<uint32_t, PhiloxD64> d32;
  const auto m0 = hn::Set(d32, kPhiloxMultiplier0);
  const auto m1 = hn::Set(d32, kPhiloxMultiplier1);
  const auto product0 = hn::MulEven(hn::BitCast(d32, s.c0), m0);
  const auto product1 = hn::MulEven(hn::BitCast(d32, s.c2), m1);
  return {hn::Xor3(hn::ShiftRight<32>(product1), s.c1, key0),
          product1,
          hn::Xor3(hn::ShiftRight<32>(product0), s.c3, key1),
          product0};
}

// The vectors of blocks that are computed side by side, to hide the latency of products: as many as the
// registers hold.
#if HWY_TARGET <= HWY_AVX3
constexpr size_t kPhiloxVectors = 4;
#else
constexpr size_t kPhiloxVectors = 2;
#endif

// Does what PhiloxTiles does, for kVectors vectors of blocks from first_block + at on.
template <size_t kVectors, class Store>
HWY_INLINE void PhiloxBlocks(
    RandomStream s, const PhiloxKeys& keys, uint64_t first_block, size_t at, const Store& store) {
  const PhiloxD64 d64;
  const hn::Repartition<uint32_t, PhiloxD64> d32;
  const size_t lanes = hn::Lanes(d64);
  PhiloxState state[kVectors];
  HWY_UNROLL(4)
  for (size_t i = 0; i < kVectors; ++i) {
    const auto block = hn::Add(hn::Set(d64, first_block + at + i * lanes), hn::Iota(d64, 0));
    state[i] = {block,
                hn::ShiftRight<32>(block),
                hn::Set(d64, s.stream & 0xFFFFFFFFu),
                hn::Set(d64, s.stream >> 32)};
  }
  HWY_UNROLL(10)
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto k0 = hn::Set(d64, keys.keys[round][0]);
    const auto k1 = hn::Set(d64, keys.keys[round][1]);
    HWY_UNROLL(4)
    for (size_t i = 0; i < kVectors; ++i) state[i] = PhiloxRound(state[i], k0, k1);
  }
  const auto packed = [&](PhiloxVec a, PhiloxVec b) HWY_ATTR {
    return hn::ConcatEven(d32, hn::BitCast(d32, b), hn::BitCast(d32, a));
  };
  HWY_UNROLL(2)
  for (size_t i = 0; i < kVectors; i += 2) {
    const PhiloxState &a = state[i], &b = state[i + 1];
    store(size_t{0}, at + i * lanes, packed(a.c0, b.c0));
    store(size_t{1}, at + i * lanes, packed(a.c1, b.c1));
    store(size_t{2}, at + i * lanes, packed(a.c2, b.c2));
    store(size_t{3}, at + i * lanes, packed(a.c3, b.c3));
  }
}

// Calls store(w, l, vector) for the words w = 0..3 of `tiles` tiles of kRandomLanes blocks, which begin
// at first_block. Lane j of the vector is word w of block first_block + l + j.
template <class Store>
HWY_INLINE void PhiloxTiles(RandomStream s,
                            const PhiloxKeys& keys,
                            uint64_t first_block,
                            size_t tiles,
                            const Store& store) {
  const size_t lanes = hn::Lanes(PhiloxD64());
  const size_t step = kPhiloxVectors * lanes, blocks = tiles * kRandomLanes;
  size_t at = 0;
  for (; at + step <= blocks; at += step) {
    PhiloxBlocks<kPhiloxVectors>(s, keys, first_block, at, store);
  }
  for (; at < blocks; at += 2 * lanes) PhiloxBlocks<2>(s, keys, first_block, at, store);
}
#endif  // HWY_TARGET == HWY_SCALAR

// RandomTopAligned (below) for random bits that take fields of kFieldBits bits.
template <int kFieldBits>
HWY_INLINE void RandomFields(RandomStream s, uint64_t first, size_t n, uint32_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint32_t, kRandomLanes> d;
  constexpr size_t kFields = 32 / kFieldBits;
  constexpr size_t kTile = 64 * kFields;
  const PhiloxKeys keys(s);
  PhiloxTiles(s,
              keys,
              first / kTile * kRandomLanes,
              n / kTile,
              [&](size_t w, size_t l, hn::Vec<decltype(d)> word) HWY_ATTR {
                uint32_t* to =
                    out + l / kRandomLanes * kTile + kRandomLanes * kFields * w + l % kRandomLanes;
                if constexpr (kFields == 4) {
                  hn::StoreU(hn::ShiftLeft<24>(word), d, to);
                  hn::StoreU(hn::ShiftLeft<16>(word), d, to + kRandomLanes);
                  hn::StoreU(hn::ShiftLeft<8>(word), d, to + 2 * kRandomLanes);
                } else if constexpr (kFields == 2) {
                  hn::StoreU(hn::ShiftLeft<16>(word), d, to);
                }
                hn::StoreU(word, d, to + (kFields - 1) * kRandomLanes);
              });
}

// Writes the random bits of elements first .. first + n - 1, one 32-bit word per element, with R at
// the top. The bits below R are arbitrary. Requires `first` and n to be multiples of
// RandomTileElements(bits).
HWY_INLINE void RandomTopAligned(
    RandomStream s, uint64_t first, size_t n, int bits, uint32_t* HWY_RESTRICT out) {
  switch (RandomFieldBits(bits)) {
    case 8:
      return RandomFields<8>(s, first, n, out);
    case 16:
      return RandomFields<16>(s, first, n, out);
    default:
      return RandomFields<32>(s, first, n, out);
  }
}

// The number of elements whose random words are generated at a time, so that they stay in the
// first-level cache, and the room for these words: a block is drawn in whole tiles, of up to 256.
constexpr size_t kDrawnBlock = 1024;
constexpr size_t kDrawnWords = kDrawnBlock + 256;

// Draws the random bits of elements begin .. begin + n - 1 of a call, as RandomTopAligned. Returns
// the place of the first of them in `words`, which has room for kDrawnWords. Requires
// n <= kDrawnBlock.
HWY_INLINE const uint32_t* DrawBlock(
    const ArrayRandom& random, int bits, size_t begin, size_t n, uint32_t* HWY_RESTRICT words) {
  const uint64_t tile = RandomTileElements(bits);
  const uint64_t first = random.first_index + begin;
  const size_t skip = static_cast<size_t>(first % tile);
  RandomTopAligned(random.stream, first - skip, (skip + n + tile - 1) / tile * tile, bits, words);
  return words + skip;
}

// Loads random words of 32 bits, R at the top, as words of the lanes' width.
template <class DU>
HWY_INLINE hn::Vec<DU> LoadRandom(DU du, const uint32_t* HWY_RESTRICT random) {
  if constexpr (sizeof(hn::TFromD<DU>) == 4) {
    return hn::LoadU(du, random);
  } else {
    const hn::Rebind<uint32_t, DU> d32;
    return hn::ShiftLeft<32>(hn::PromoteTo(du, hn::LoadU(d32, random)));
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
