// Tokens of a large vocabulary with Zipf frequencies and a known entropy.
//
// Token k of a vocabulary of V has the frequency z_k = 1 / (k + 1) / (1 + 1/2 + ... + 1/V). Each
// token has kSuccessors successors, drawn with the frequencies z once per seed. The next token is
// one of the successors of the token before, each equally likely, with probability kBound, and a new
// draw from z otherwise. So a model can learn the frequencies and, for frequent tokens, which token
// follows which.
//
// After token t, the next token is k with the probability
//   q_t(k) = (1 - kBound) z_k + kBound s_t(k) / kSuccessors,
// where s_t(k) counts how often k is among the successors of t. As for generated text, no predictor
// has a smaller expected loss on a sequence than the mean of -ln q.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace numsim {

inline constexpr size_t kMostTokens = size_t{1} << 16;  // largest vocabulary

struct ZipfTokens {
  std::vector<uint16_t> tokens;
  double nats = 0;  // sum of -ln q over all tokens but the first
};

class ZipfModel {
 public:
  static constexpr size_t kSuccessors = 4;
  static constexpr double kBound = 0.5;

  // Requires 2 <= vocabulary <= kMostTokens.
  ZipfModel(uint64_t seed, size_t vocabulary);

  size_t Vocabulary() const { return cumulative_.size(); }
  // Returns q_t(k): the probability that token k follows token t.
  double Probability(size_t t, size_t k) const;
  // Returns the first `count` tokens of sequence number `part`. Requires count >= 1.
  ZipfTokens Generate(uint64_t part, size_t count) const;

 private:
  double Frequency(size_t k) const;
  // Returns the token whose share of [0, 1) contains u.
  uint16_t TokenAt(double u) const;

  uint64_t seed_;
  std::vector<double> cumulative_;    // sums of z_0 .. z_k
  std::vector<uint16_t> successors_;  // Vocabulary() x kSuccessors
};

}  // namespace numsim
