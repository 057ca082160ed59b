#include "numsim/optim/critical_group.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/kernels/cast.h"

namespace numsim {
namespace {

constexpr size_t kPart = size_t{1} << 15;  // members worth a thread's while

// The word that gives each member its turn, from the tiles in which words are made where those are
// full of members.
std::vector<uint32_t> WordsOf(const MatchedProblem& problem, const CriticalGroup& group) {
  constexpr uint64_t kTile = 1024;
  const auto& index = group.index;
  std::vector<uint32_t> words(index.size());
  ParallelFor(words.size(), kPart, [&](size_t begin, size_t end) {
    std::array<uint32_t, kTile> tile;
    while (begin < end) {
      const uint64_t first = index[begin];
      size_t stop = begin;
      while (stop < end && index[stop] - first < kTile) ++stop;
      if (stop - begin > kTile / 16) {
        RandomBitsArray({problem.random, problem.first_index + first}, 32, tile);
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

// What a member adds to S, in quanta.
double AddedBy(const MatchedTerms& terms, const CriticalGroup& group, size_t place) {
  const float w = group.weights[place], u = group.update[place];
  return terms(w, u, group.at_high[place]) - terms(w, u, group.at_low[place]);
}

// Members whose words share their upper bits.
constexpr int kBucketBits = 10;
uint32_t BucketOf(uint32_t word) { return word >> (32 - kBucketBits); }

struct BucketSums {
  std::vector<double> added;

  BucketSums& operator+=(const BucketSums& other) {
    added.resize(size_t{1} << kBucketBits);
    for (size_t b = 0; b < other.added.size(); ++b) added[b] += other.added[b];
    return *this;
  }
};

// What the members of each bucket add to S: exact below T, in whatever order.
std::vector<double> SumBuckets(const MatchedTerms& terms,
                               const CriticalGroup& group,
                               const std::vector<uint32_t>& words) {
  std::vector<BucketSums> parts((words.size() + kPart - 1) / kPart);
  ParallelFor(parts.size(), 1, [&](size_t first, size_t last) {
    for (size_t part = first; part < last; ++part) {
      std::vector<double>& added = parts[part].added;
      added.resize(size_t{1} << kBucketBits);
      const size_t end = std::min(words.size(), (part + 1) * kPart);
      for (size_t i = part * kPart; i < end; ++i) {
        added[BucketOf(words[i])] += AddedBy(terms, group, i);
      }
    }
  });
  BucketSums all;
  for (const BucketSums& part : parts) all += part;
  return all.added;
}

// How far S is from T in what the rule compares.
double Distance(const MatchedTerms& terms, double sum) {
  return std::abs(terms.Size(sum) - terms.Size(terms.target));
}

// The members that change, but for the last decision: all of the buckets before `bucket`, and of it
// those at `places`, in their order. With all of them S >= T, without the last one S < T.
struct Prefix {
  uint32_t bucket = 0;
  std::vector<uint32_t> places;
  double sum_before = 0;  // S without the last one
  double sum = 0;
};

Prefix FindPrefix(const MatchedTerms& terms,
                  const CriticalGroup& group,
                  const std::vector<uint32_t>& words) {
  const std::vector<double> added = SumBuckets(terms, group, words);
  Prefix prefix;
  double sum = group.sum_below;
  while (prefix.bucket + 1 < added.size() && sum + added[prefix.bucket] < terms.target) {
    sum += added[prefix.bucket++];
  }
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < words.size(); ++i) {
    if (BucketOf(words[i]) == prefix.bucket) places.push_back(i);
  }
  std::stable_sort(
      places.begin(), places.end(), [&](uint32_t a, uint32_t b) { return words[a] < words[b]; });
  for (const uint32_t place : places) {
    prefix.places.push_back(place);
    prefix.sum_before = sum;
    sum += AddedBy(terms, group, place);
    prefix.sum = sum;
    if (sum >= terms.target) return prefix;
  }
  NUMSIM_CHECK(false, "a critical group of {} does not reach the target", words.size());
  return prefix;
}

// Whether the one weight of SmallStep moves, which is the member at `place`.
bool MovesAtRandom(const MatchedProblem& problem,
                   const MatchedTerms& terms,
                   const CriticalGroup& group,
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

CriticalChoice MoveMembers(const MatchedProblem& problem,
                           const MatchedTerms& terms,
                           const CriticalGroup& group,
                           std::span<float> new_weights) {
  const std::vector<uint32_t> words = WordsOf(problem, group);
  const Prefix prefix = FindPrefix(terms, group, words);
  CriticalChoice choice;
  choice.below_min_step = prefix.sum_before == 0 && prefix.sum > terms.target;
  const bool last_moves = choice.below_min_step
                              ? MovesAtRandom(problem, terms, group, prefix.places.back())
                              : Distance(terms, prefix.sum) < Distance(terms, prefix.sum_before);
  choice.sum = last_moves ? prefix.sum : prefix.sum_before;
  ParallelFor(words.size(), kPart, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (BucketOf(words[i]) < prefix.bucket) new_weights[group.index[i]] = group.at_high[i];
    }
  });
  for (size_t k = 0; k + (last_moves ? 0 : 1) < prefix.places.size(); ++k) {
    const uint32_t place = prefix.places[k];
    new_weights[group.index[place]] = group.at_high[place];
  }
  return choice;
}

}  // namespace numsim
