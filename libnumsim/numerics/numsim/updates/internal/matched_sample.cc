#include "numsim/updates/internal/matched_sample.h"

#include <algorithm>
#include <array>

#include "numsim/base/parallel.h"
#include "numsim/cast/shared/round_step.h"

namespace numsim {
namespace {

constexpr size_t kBlock = 2048;

struct Sample {
  std::vector<float> weights, update;
};

Sample TakeSample(RandomStream random,
                  std::span<const float> weights,
                  std::span<const float> update) {
  const size_t runs = SampleRuns(weights.size());
  const size_t part = weights.size() / runs;
  Sample sample;
  for (size_t r = 0; r < runs; ++r) {
    const size_t begin = SampleRunBegin(RandomWord(random, r), r, part);
    const size_t end = std::min(begin + kSampleRun, weights.size());
    for (size_t i = begin; i < end; ++i) {
      sample.weights.push_back(weights[i]);
      sample.update.push_back(update[i]);
    }
  }
  return sample;
}

// The sums of c_i and c_i^2 over a sample, at one alpha.
struct Deviation {
  double sum = 0, squares = 0;

  double Margin() const { return kStandardErrors * std::sqrt(squares); }
};

Deviation DeviationAt(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      const Sample& sample,
                      double share,
                      AlphaKey alpha) {
  const size_t n = sample.weights.size();
  std::vector<Deviation> blocks((n + kBlock - 1) / kBlock);
  ParallelFor(blocks.size(), 2, [&](size_t first, size_t last) {
    std::array<float, kBlock> values;
    for (size_t b = first; b < last; ++b) {
      const size_t begin = b * kBlock, count = std::min(kBlock, n - begin);
      const float* const w = sample.weights.data() + begin;
      const float* const u = sample.update.data() + begin;
      RoundStepSerial(*problem.plan, w, u, AlphaOf(alpha), count, values.data());
      for (size_t i = 0; i < count; ++i) {
        const double ui = static_cast<double>(u[i]);
        const double c = terms(w[i], u[i], values[i]) - share * (ui * ui);
        blocks[b].sum += c;
        blocks[b].squares += c * c;
      }
    }
  });
  Deviation total;
  for (const Deviation& block : blocks) {
    total.sum += block.sum;
    total.squares += block.squares;
  }
  return total;
}

// Returns the least key in (within.low, within.high] from which on `holds` is true, or within.high.
template <typename Predicate>
AlphaKey FirstKey(AlphaBracket within, const Predicate& holds) {
  while (within.high - within.low > 1) {
    const AlphaKey middle = within.low + (within.high - within.low) / 2;
    (holds(middle) ? within.high : within.low) = middle;
  }
  return within.high;
}

}  // namespace

// n^(3/4) / 8 weights are few compared with n, and yet the estimate leaves few survivors.
// [FloydRivest] use the order n^(2/3); numsim uses square roots because their bits are the same
// everywhere.
size_t SampleRuns(size_t n) {
  const double root = std::sqrt(static_cast<double>(n));
  const auto size = static_cast<size_t>(root * std::sqrt(root) / 8);
  return std::max<size_t>(size / kSampleRun, 1);
}

AlphaBracket GuessBracket(const MatchedProblem& problem,
                          const MatchedTerms& terms,
                          const MatchedPopulation& population,
                          AlphaBracket within) {
  const Sample sample = TakeSample(problem.random, population.weights, population.update);
  const auto at = [&](AlphaKey key) {
    return DeviationAt(problem, terms, sample, population.share, key);
  };
  const auto surely_above = [](const Deviation& x) { return x.sum > x.Margin(); };
  const auto maybe_above = [](const Deviation& x) { return x.sum > -x.Margin(); };
  AlphaBracket guess;
  guess.high = FirstKey(within, [&](AlphaKey key) { return surely_above(at(key)); });
  guess.low =
      FirstKey({within.low, guess.high}, [&](AlphaKey key) { return maybe_above(at(key)); }) - 1;
  return guess;
}

}  // namespace numsim
