// The selection algorithm of [FloydRivest], applied to a staircase: a sample tells roughly where
// the threshold is, and one pass over all weights verifies that and keeps the weights that change
// near it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "numsim/base/parallel.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/internal/matched_sample.h"
#include "numsim/updates/internal/matched_search.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

constexpr AlphaKey kDouble = AlphaKey{1} << 23;  // difference of keys that doubles alpha
constexpr size_t kSampledFrom = 1 << 15;         // weights; fewer fit the caches

// The weights that may still be in the tie set, and the bracket of keys:
// S(low) < T <= S(high).
class Survivors {
 public:
  // Starts with all weights, each with its value at alpha = 0 and an unknown value at `high`.
  Survivors(const MatchedProblem& problem, const MatchedTerms& terms, std::span<float> new_weights)
      : problem_(problem), terms_(terms), new_weights_(new_weights) {
    const size_t n = problem.weights.size();
    group_.Resize(n);
    std::copy_n(problem.weights.begin(), n, group_.weights.begin());
    std::copy_n(problem.update.begin(), n, group_.update.begin());
    std::copy_n(problem.weights.begin(), n, group_.at_low.begin());
    std::fill_n(group_.at_high.begin(), n, std::numeric_limits<float>::quiet_NaN());
    std::iota(group_.index.begin(), group_.index.end(), uint64_t{0});
  }

  Survivors(const MatchedProblem& problem,
            const MatchedTerms& terms,
            std::span<float> new_weights,
            AlphaBracket bracket,
            Crossing crossing)
      : problem_(problem),
        terms_(terms),
        new_weights_(new_weights),
        bracket_(bracket),
        group_(std::move(crossing.members)) {
    group_.sum_below = crossing.sum_low;
    Settle();
  }

  size_t size() const { return group_.index.size(); }
  const AlphaBracket& bracket() const { return bracket_; }

  // Moves one end of the bracket to `key`, which is within it. If many weights then have the same
  // value at both ends, which is their new value, drops them. Returns true if S(key) >= T.
  bool Narrow(AlphaKey key) {
    values_.resize(size());
    RoundStepOnHost(*problem_.plan, group_.weights, group_.update, AlphaOf(key), values_);
    const double sum = settled_ + SumTerms(terms_, group_.weights, group_.update, values_);
    const bool reached = sum >= terms_.target;
    if (reached) {
      bracket_.high = key;
      group_.at_high.swap(values_);
    } else {
      bracket_.low = key;
      group_.sum_below = sum;
      group_.at_low.swap(values_);
    }
    if (bracket_.high - bracket_.low > 1) DropSettled();
    return reached;
  }

  // Narrows the bracket at both ends, using a sample of the survivors.
  void NarrowByGuess() {
    const double share = (terms_.target - settled_) / SquaredSum(group_.update);
    const AlphaBracket guess =
        GuessBracket(problem_, terms_, {group_.weights, group_.update, share}, bracket_);
    for (const AlphaKey key : {guess.high, guess.low}) {
      if (key > bracket_.low && key < bracket_.high) Narrow(key);
    }
  }

  TieSet TakeGroup() {
    group_.key = bracket_.high;
    return std::move(group_);
  }

 private:
  // Computes settled_. Sums below T are exact, so subtracting loses nothing.
  void Settle() {
    settled_ = group_.sum_below - SumTerms(terms_, group_.weights, group_.update, group_.at_low);
  }

  void DropSettled() {
    places_.resize(size());
    places_.resize(FindDifferent(group_.at_low, group_.at_high, places_));
    if (places_.size() > size() / 8 * 7) return;
    WriteDropped();
    Keep(group_.index);
    for (auto* const values : {&group_.weights, &group_.update, &group_.at_low, &group_.at_high}) {
      Keep(*values);
    }
    Settle();
  }

  // Writes the values of the weights that are not in places_.
  void WriteDropped() const {
    size_t i = 0;
    const auto write_before = [&](size_t place) {
      for (; i < place; ++i) new_weights_[group_.index[i]] = group_.at_low[i];
      ++i;
    };
    for (const uint32_t place : places_) write_before(place);
    write_before(size());
  }

  template <typename T>
  void Keep(UninitializedVector<T>& values) const {
    size_t kept = 0;
    for (const uint32_t place : places_) values[kept++] = values[place];
    values.resize(kept);
  }

  const MatchedProblem& problem_;
  const MatchedTerms& terms_;
  std::span<float> new_weights_;
  AlphaBracket bracket_;
  double settled_ = 0;  // what the dropped weights add to S, anywhere in the bracket
  TieSet group_;        // sum_below is S(low)
  UninitializedVector<float> values_;
  UninitializedVector<uint32_t> places_;
};

// Moves up or down from the learning rate until the bracket contains T. Returns false if no alpha
// reaches T.
bool BracketFromRate(Survivors& survivors, AlphaKey rate, int& passes) {
  ++passes;
  uint64_t stride = kDouble;
  if (survivors.Narrow(rate)) {
    for (AlphaKey key = rate; key > stride;) {
      key -= static_cast<AlphaKey>(stride);
      ++passes;
      if (!survivors.Narrow(key)) return true;
      stride *= 2;
    }
    return true;
  }
  for (uint64_t key = rate; key < kGreatestAlpha;) {
    key = std::min<uint64_t>(key + stride, kGreatestAlpha);
    ++passes;
    if (survivors.Narrow(static_cast<AlphaKey>(key))) return true;
    stride *= 2;
  }
  return false;
}

// Narrows the bracket to two neighbouring keys.
void NarrowToGroup(Survivors& survivors) {
  bool guess = true;
  while (survivors.bracket().high - survivors.bracket().low > 1) {
    const AlphaBracket bracket = survivors.bracket();
    const size_t before = survivors.size();
    if (guess && before > kSampledFrom) {
      survivors.NarrowByGuess();
      guess = survivors.size() < before / 2;  // if not, the sample is of little use
    } else {
      survivors.Narrow(bracket.low + (bracket.high - bracket.low) / 2);
      guess = true;
    }
  }
}

// Estimates a bracket from a sample of all weights and verifies it. Returns its survivors, or
// nothing if no alpha reaches T.
std::optional<Survivors> SurvivorsOfAll(const MatchedProblem& problem,
                                        const MatchedTerms& terms,
                                        std::span<float> new_weights,
                                        int& passes) {
  const double share = terms.target / problem.update_square;
  AlphaBracket bracket = GuessBracket(problem, terms, {problem.weights, problem.update, share}, {});
  AlphaBracket known;  // S(known.low) < T, and S(known.high) >= T unless nothing reaches it
  uint64_t stride = std::max<uint64_t>(kDouble / 16, bracket.high - bracket.low);
  for (;;) {
    ++passes;
    Crossing crossing = FindCrossing(problem, terms, bracket.low, bracket.high, new_weights);
    if (crossing.sum_low >= terms.target) {
      known.high = bracket.low;
      const AlphaKey low = known.high > stride ? known.high - static_cast<AlphaKey>(stride) : 0;
      bracket = {std::max(low, known.low), known.high};
    } else if (crossing.sum_high < terms.target) {
      if (bracket.high == kGreatestAlpha) return std::nullopt;
      known.low = bracket.high;
      const uint64_t high = known.low + stride;
      bracket = {known.low, static_cast<AlphaKey>(std::min<uint64_t>(high, known.high))};
    } else {
      return Survivors(problem, terms, new_weights, bracket, std::move(crossing));
    }
    stride *= 4;
  }
}

SearchResult Finish(Survivors& survivors, int passes) {
  NarrowToGroup(survivors);
  return {survivors.TakeGroup(), passes};
}

}  // namespace

SearchResult SearchBySelection(const MatchedProblem& problem,
                               const MatchedTerms& terms,
                               std::span<float> new_weights) {
  int passes = 0;
  if (problem.weights.size() < kSampledFrom) {
    Survivors survivors(problem, terms, new_weights);
    if (!BracketFromRate(survivors, KeyOf(problem.learning_rate), passes)) return {{}, passes};
    return Finish(survivors, passes);
  }
  std::optional<Survivors> survivors = SurvivorsOfAll(problem, terms, new_weights, passes);
  if (!survivors) return {{}, passes};
  return Finish(*survivors, passes);
}

}  // namespace numsim
