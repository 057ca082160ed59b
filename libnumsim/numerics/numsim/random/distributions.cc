#include "numsim/random/distributions.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<Distribution> kDistributions[] = {{"normal", Distribution::kNormal},
                                                    {"uniform", Distribution::kUniform},
                                                    {"laplace", Distribution::kLaplace},
                                                    {"student-t3", Distribution::kStudent3}};

constexpr double kSqrt3 = 1.7320508075688772;
constexpr double kInverseSqrt2 = 0.7071067811865476;
constexpr size_t kTile = 64;  // elements per tile of 32-bit words: 16 Philox blocks

// Sets words[j] = RandomWord(s, first + j) for a whole tile. Requires first % kTile == 0.
void TileWords(RandomStream s, uint64_t first, uint32_t (&words)[kTile]) {
  for (size_t lane = 0; lane < kRandomLanes; ++lane) {
    const PhiloxCounter block = RandomBlock(s, first / kTile * kRandomLanes + lane);
    for (size_t w = 0; w < 4; ++w) words[kRandomLanes * w + lane] = block[w];
  }
}

// Maps a word to the middle of its interval of (0, 1). The result is never 0 or 1.
double Unit(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

struct Pair {
  double first, second;
};

Pair NormalPair(uint32_t word0, uint32_t word1) {
  const double radius = std::sqrt(-2 * Log(Unit(word0)));
  const SinCos angle = SinCos2Pi(Unit(word1));
  return {radius * angle.cos, radius * angle.sin};
}

double Laplace(uint32_t word) {
  const double v = (static_cast<double>(word & 0x7FFFFFFFu) + 0.5) * 0x1p-31;
  const double magnitude = -Log(v) * kInverseSqrt2;
  return (word >> 31) != 0 ? -magnitude : magnitude;
}

double Student3(const uint32_t* words) {
  const Pair z = NormalPair(words[0], words[1]);
  return z.first / std::sqrt(z.second * z.second - 2 * Log(Unit(words[2])));
}

// Returns the number of samples from one tile of words: kTile, or kTile / 4 for Student's t.
size_t DrawsPerTile(Distribution distribution) {
  return distribution == Distribution::kStudent3 ? kTile / 4 : kTile;
}

void FillTile(Distribution distribution, const uint32_t (&words)[kTile], float (&draws)[kTile]) {
  switch (distribution) {
    case Distribution::kNormal:
      for (size_t i = 0; i < kTile; i += 2) {
        const Pair z = NormalPair(words[i], words[i + 1]);
        draws[i] = static_cast<float>(z.first);
        draws[i + 1] = static_cast<float>(z.second);
      }
      return;
    case Distribution::kUniform:
      for (size_t i = 0; i < kTile; ++i) {
        draws[i] = static_cast<float>(kSqrt3 * (2 * Unit(words[i]) - 1));
      }
      return;
    case Distribution::kLaplace:
      for (size_t i = 0; i < kTile; ++i) draws[i] = static_cast<float>(Laplace(words[i]));
      return;
    case Distribution::kStudent3:
      for (size_t i = 0; i < kTile / 4; ++i) {
        draws[i] = static_cast<float>(Student3(words + 4 * i));
      }
      return;
  }
}

}  // namespace

std::string_view ToString(Distribution distribution) {
  return KeywordToString(kDistributions, distribution);
}

Distribution ParseDistribution(std::string_view text) {
  return ParseKeyword(kDistributions, "distribution", text);
}

void Fill(Distribution distribution,
          RandomStream s,
          uint64_t first,
          std::span<float> out) noexcept {
  const size_t per_tile = DrawsPerTile(distribution);
  uint32_t words[kTile];
  float draws[kTile];
  for (size_t i = 0; i < out.size();) {
    const uint64_t tile = (first + i) / per_tile;
    const size_t skip = static_cast<size_t>((first + i) % per_tile);
    TileWords(s, tile * kTile, words);
    FillTile(distribution, words, draws);
    const size_t n = std::min(per_tile - skip, out.size() - i);
    std::copy_n(draws + skip, n, out.data() + i);
    i += n;
  }
}

}  // namespace numsim
