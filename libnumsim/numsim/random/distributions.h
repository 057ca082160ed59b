// Real-valued draws as pure functions of (seed, stream, index), with the same bits on every
// processor: built on base/elementary.h and IEEE 754 arithmetic alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "numsim/random/streams.h"

namespace numsim {

// All have mean 0 and variance 1.
enum class Distribution : uint8_t {
  kNormal,
  kUniform,   // on (-sqrt 3, sqrt 3)
  kLaplace,   // double exponential, scale 1/sqrt 2
  kStudent3,  // Student's t with 3 degrees of freedom over sqrt 3: heavy tails, infinite kurtosis
};

// normal, uniform, laplace, student-t3. Throws Error listing them.
std::string_view ToString(Distribution distribution);
Distribution ParseDistribution(std::string_view text);

// out[i] = draw `first + i` of the stream, made in float64 and rounded to float32. The same draw
// whatever range it is part of. With word(j) = RandomWord(s, j) and u(j) = (word(j) + 1/2) / 2^32:
//   normal   draws 2p and 2p + 1 are r cos(2 pi u(2p + 1)) and r sin(2 pi u(2p + 1)),
//            r = sqrt(-2 ln u(2p)) [BoxMuller]
//   uniform  sqrt(3) (2 u(i) - 1)
//   laplace  +-ln(v) / sqrt(2), v = (low 31 bits of word(i) + 1/2) / 2^31, minus for the top bit
//   student  z / sqrt(z'^2 - 2 ln u(4i + 2)), z and z' a normal pair of words 4i and 4i + 1: the
//            sum under the root is chi-square with 3 degrees of freedom
// Runs on the calling thread.
void Fill(Distribution distribution, RandomStream s, uint64_t first, std::span<float> out) noexcept;

inline void FillNormal(RandomStream s, uint64_t first, std::span<float> out) noexcept {
  Fill(Distribution::kNormal, s, first, out);
}

}  // namespace numsim
