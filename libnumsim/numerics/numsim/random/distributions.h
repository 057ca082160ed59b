// Random samples of real distributions as pure functions of (seed, stream, index). They have the
// same bits on every processor because they use only base/elementary.h and IEEE 754 arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "numsim/random/streams.h"

namespace numsim {

// All distributions have mean 0 and variance 1.
enum class Distribution : uint8_t {
  kNormal,
  kUniform,   // on (-sqrt 3, sqrt 3)
  kLaplace,   // double exponential, scale 1/sqrt 2
  kStudent3,  // Student's t with 3 degrees of freedom / sqrt 3: heavy tails, infinite kurtosis
};

// Names of distributions: normal, uniform, laplace, student-t3. ParseDistribution throws Error that
// lists them if `text` is none of them.
std::string_view ToString(Distribution distribution);
Distribution ParseDistribution(std::string_view text);

// Sets out[i] to sample number `first + i` of the stream, computed in float64 and rounded to
// float32. A sample does not depend on the range that it is requested in. With word(j) =
// RandomWord(s, j) and u(j) = (word(j) + 1/2) / 2^32, sample i is
//   normal   r cos(2 pi u(2p + 1)) for i = 2p, r sin(2 pi u(2p + 1)) for i = 2p + 1,
//            with r = sqrt(-2 ln u(2p)) [BoxMuller]
//   uniform  sqrt(3) (2 u(i) - 1)
//   laplace  -ln(v) / sqrt(2) with v = (low 31 bits of word(i) + 1/2) / 2^31, negated if the top
//            bit of word(i) is set
//   student  z / sqrt(z'^2 - 2 ln u(4i + 2)) with z, z' the normal pair of words 4i and 4i + 1;
//            the sum under the root is chi-square with 3 degrees of freedom
// Runs on the calling thread.
void Fill(Distribution distribution, RandomStream s, uint64_t first, std::span<float> out) noexcept;

// Does the same for the normal distribution.
inline void FillNormal(RandomStream s, uint64_t first, std::span<float> out) noexcept {
  Fill(Distribution::kNormal, s, first, out);
}

}  // namespace numsim
