// Probabilities of numbered outcomes as multiples of 2^-24.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace numsim {

class TextTable {
 public:
  static constexpr uint32_t kTotal = 1u << 24;

  // Outcome i about in proportion to weights[i] > 0, and possible in any case. Requires 1 <=
  // weights.size() <= 2^16.
  explicit TextTable(std::span<const double> weights);

  size_t size() const { return ends_.size(); }
  // Of kTotal, > 0; they add up to kTotal.
  uint32_t Weight(size_t i) const { return ends_[i] - (i == 0 ? 0 : ends_[i - 1]); }
  // The outcome of a random word: outcome i for exactly Weight(i) * 2^8 of all words.
  size_t Outcome(uint32_t word) const;

 private:
  std::vector<uint32_t> ends_;  // sums of the weights up to each outcome
};

// Weights of Zipf's law with Mandelbrot's offset: 1 / (rank + 2.7), rank from 0.
std::vector<double> ZipfWeights(size_t count);

}  // namespace numsim
