#include "numsim/data/internal/zipf_tokens.h"

#include <algorithm>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/data/internal/draws.h"

namespace numsim {
namespace {

constexpr uint64_t kSuccessorStream = 0;
constexpr uint64_t kFirstStream = 1;  // of the sequences

DrawStream Draws(uint64_t seed, uint64_t stream) {
  return DrawStream({DeriveSeed(seed, RandomPurpose::kTokens), stream});
}

}  // namespace

ZipfModel::ZipfModel(uint64_t seed, size_t vocabulary) : seed_(seed) {
  NUMSIM_CHECK(vocabulary >= 2 && vocabulary <= kMostTokens, "vocabulary {}", vocabulary);
  double sum = 0;
  for (size_t k = 0; k < vocabulary; ++k) {
    sum += 1 / static_cast<double>(k + 1);
    cumulative_.push_back(sum);
  }
  for (double& share : cumulative_) share /= sum;
  DrawStream draws = Draws(seed, kSuccessorStream);
  successors_.resize(vocabulary * kSuccessors);
  for (uint16_t& successor : successors_) successor = TokenAt(draws.Unit());
}

double ZipfModel::Frequency(size_t k) const {
  return cumulative_[k] - (k == 0 ? 0 : cumulative_[k - 1]);
}

uint16_t ZipfModel::TokenAt(double u) const {
  // The last share is a sum over itself: 1, which is above every u.
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
  return static_cast<uint16_t>(found - cumulative_.begin());
}

double ZipfModel::Probability(size_t t, size_t k) const {
  const auto first = successors_.begin() + static_cast<ptrdiff_t>(t * kSuccessors);
  const auto times = std::count(first, first + kSuccessors, static_cast<uint16_t>(k));
  return (1 - kBound) * Frequency(k) + kBound * static_cast<double>(times) / kSuccessors;
}

ZipfTokens ZipfModel::Generate(uint64_t part, size_t count) const {
  DrawStream draws = Draws(seed_, kFirstStream + part);
  ZipfTokens result;
  result.tokens.reserve(count);
  result.tokens.push_back(TokenAt(draws.Unit()));
  while (result.tokens.size() < count) {
    const size_t before = result.tokens.back();
    const bool bound = draws.Unit() < kBound;
    const uint16_t next = bound ? successors_[before * kSuccessors + draws.Below(kSuccessors)]
                                : TokenAt(draws.Unit());
    result.nats -= Log(Probability(before, next));
    result.tokens.push_back(next);
  }
  return result;
}

}  // namespace numsim
