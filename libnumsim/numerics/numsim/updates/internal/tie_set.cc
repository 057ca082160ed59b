#include "numsim/updates/internal/tie_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/shared/cast_simd.h"

namespace numsim {
namespace {

constexpr size_t kPart = size_t{1} << 15;  // members that are worth a thread

// Returns the random word of each member, which decides its turn. Where members are dense, words
// are generated a tile at a time.
UninitializedVector<uint32_t> WordsOf(const MatchedProblem& problem, const TieSet& group) {
  constexpr uint64_t kTile = 1024;
  const auto& index = group.index;
  UninitializedVector<uint32_t> words(index.size());
  ParallelFor(words.size(), kPart, [&](size_t begin, size_t end) {
    std::array<uint32_t, kTile> tile;
    while (begin < end) {
      const uint64_t first = index[begin];
      size_t stop = begin;
      while (stop < end && index[stop] - first < kTile) ++stop;
      if (stop - begin > kTile / 32 && !UsesScalarReference()) {
        RandomBitsSimd({problem.random, problem.first_index + first}, 32, kTile, tile.data());
        for (; begin < stop; ++begin) words[begin] = tile[index[begin] - first];
      } else {
        for (; begin < stop; ++begin) {
          words[begin] = RandomWord(problem.random, problem.first_index + index[begin]);
        }
      }
    }
  });
  return words;
}

// Returns what a member adds to S when it moves, in quanta.
double AddedBy(const MatchedTerms& terms, const TieSet& group, size_t place) {
  const float w = group.weights[place], u = group.update[place];
  return terms(w, u, group.at_high[place]) - terms(w, u, group.at_low[place]);
}

struct BucketSums {
  std::vector<double> added;

  BucketSums& operator+=(const BucketSums& other) {
    added.resize(size_t{1} << kTieBucketBits);
    for (size_t b = 0; b < other.added.size(); ++b) added[b] += other.added[b];
    return *this;
  }
};

// Returns what the members of each bucket add to S: exact below T, whatever the order.
std::vector<double> SumBuckets(const MatchedTerms& terms,
                               const TieSet& group,
                               std::span<const uint32_t> words) {
  std::vector<BucketSums> parts((words.size() + kPart - 1) / kPart);
  ParallelFor(parts.size(), 1, [&](size_t first, size_t last) {
    for (size_t part = first; part < last; ++part) {
      std::vector<double>& added = parts[part].added;
      added.resize(size_t{1} << kTieBucketBits);
      const size_t end = std::min(words.size(), (part + 1) * kPart);
      for (size_t i = part * kPart; i < end; ++i) {
        added[TieBucket(words[i])] += AddedBy(terms, group, i);
      }
    }
  });
  BucketSums all;
  for (const BucketSums& part : parts) all += part;
  return all.added;
}

// Returns the distance of S from T in the quantity that the rule compares (MatchedTerms::Size).
double Distance(const MatchedTerms& terms, double sum) {
  return std::abs(terms.Size(sum) - terms.Size(terms.target));
}

// The members, in their order, up to the last one that may move: S >= T with all of them, and S < T
// without the last one.
struct Prefix {
  uint32_t last = 0;      // place of the last one
  double sum_before = 0;  // S without it
  double sum = 0;
};

Prefix FindPrefix(const MatchedTerms& terms, const TieSet& group, std::span<const uint32_t> words) {
  const std::vector<double> added = SumBuckets(terms, group, words);
  double sum = group.sum_below;
  const uint32_t bucket = LastTieBucket(terms, added, sum);
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < words.size(); ++i) {
    if (TieBucket(words[i]) == bucket) places.push_back(i);
  }
  std::sort(places.begin(), places.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(words[a], group.index[a]) < std::pair(words[b], group.index[b]);
  });
  for (const uint32_t place : places) {
    const double before = sum;
    sum += AddedBy(terms, group, place);
    if (sum >= terms.target) return {place, before, sum};
  }
  NUMSIM_CHECK(false, "a tie set of {} does not reach the target", words.size());
  return {};
}

// Decides for SmallStep whether its weight moves, which is the member at `place`.
bool MovesAtRandom(const MatchedProblem& problem,
                   const MatchedTerms& terms,
                   const TieSet& group,
                   uint32_t place) {
  if (problem.small_step == SmallStep::kNone) return false;
  const double d =
      static_cast<double>(group.at_high[place]) - static_cast<double>(group.weights[place]);
  const double target = terms.Size(terms.target);
  const double p = problem.quantity == MatchedQuantity::kNorm
                       ? target / std::abs(d)
                       : target / (d * static_cast<double>(group.update[place]));
  const RandomStream stream{problem.random.seed, problem.random.stream + (uint64_t{1} << 63)};
  const double r = static_cast<double>(RandomWord(stream, problem.first_index));
  return (r + 0.5) * 0x1p-32 < p;
}

}  // namespace

uint32_t LastTieBucket(const MatchedTerms& terms, const std::vector<double>& added, double& sum) {
  uint32_t bucket = 0;
  while (bucket + 1 < added.size() && sum + added[bucket] < terms.target) sum += added[bucket++];
  return bucket;
}

TieDecision DecideMembers(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const TieSet& group,
                          std::span<const uint32_t> words) {
  const Prefix prefix = FindPrefix(terms, group, words);
  TieDecision decision;
  TieChoice& choice = decision.choice;
  choice.below_min_step = prefix.sum_before == 0 && prefix.sum > terms.target;
  decision.last_moves = choice.below_min_step
                            ? MovesAtRandom(problem, terms, group, prefix.last)
                            : Distance(terms, prefix.sum) < Distance(terms, prefix.sum_before);
  choice.sum = decision.last_moves ? prefix.sum : prefix.sum_before;
  decision.last_word = words[prefix.last];
  decision.last_index = group.index[prefix.last];
  return decision;
}

TieChoice MoveMembers(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      const TieSet& group,
                      std::span<float> new_weights) {
  const UninitializedVector<uint32_t> words = WordsOf(problem, group);
  const TieDecision decision = DecideMembers(problem, terms, group, words);
  ParallelFor(words.size(), kPart, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const bool moves =
          group.at_low[i] != group.at_high[i] &&  // unless they are zeros of both signs
          decision.Moves(words[i], group.index[i]);
      new_weights[group.index[i]] = moves ? group.at_high[i] : group.at_low[i];
    }
  });
  return decision.choice;
}

}  // namespace numsim
