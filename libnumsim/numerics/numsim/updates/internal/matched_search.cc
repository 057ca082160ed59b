#include "numsim/updates/internal/matched_search.h"

#include <algorithm>
#include <array>

#include "numsim/base/parallel.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

constexpr size_t kBlock = 4096;
constexpr AlphaKey kDouble = AlphaKey{1} << 23;  // difference of keys that doubles alpha

// Returns S(alpha).
double SumAt(const MatchedProblem& problem, const MatchedTerms& terms, AlphaKey alpha) {
  return SumOverBlocks<double>(problem.weights.size(), [&](size_t begin, size_t count) {
    std::array<float, kSumBlock> values;
    const auto w = problem.weights.subspan(begin, count);
    const auto u = problem.update.subspan(begin, count);
    RoundStepSerial(*problem.plan, w.data(), u.data(), AlphaOf(alpha), count, values.data());
    return SumTerms(terms, w, u, std::span(values).first(count));
  });
}

// Adds the block from weight `begin` on to a Crossing. Writes its values at `low` to at_low.
void CrossBlock(const MatchedProblem& problem,
                const MatchedTerms& terms,
                AlphaKey low,
                AlphaKey high,
                size_t begin,
                std::span<float> at_low,
                Crossing& crossing) {
  std::array<float, kBlock> at_high;
  const size_t count = at_low.size();
  const auto w = problem.weights.subspan(begin, count);
  const auto u = problem.update.subspan(begin, count);
  RoundStepSerial(*problem.plan, w.data(), u.data(), AlphaOf(low), count, at_low.data());
  RoundStepSerial(*problem.plan, w.data(), u.data(), AlphaOf(high), count, at_high.data());
  TieSet& members = crossing.members;
  const size_t before = members.size();
  members.Resize(before + count);
  const size_t found = CopyDifferent(
      {w.data(), u.data(), at_low.data(), at_high.data(), count}, begin, members.From(before));
  members.Resize(before + found);
  const double sum = SumTerms(terms, w, u, at_low);
  const auto of_members = [&](const UninitializedVector<float>& values) {
    const auto last = [&](const auto& all) { return std::span(all).last(found); };
    return SumTerms(terms, last(members.weights), last(members.update), last(values));
  };
  crossing.sum_low += sum;
  // Sums below T are exact, so subtracting loses nothing.
  crossing.sum_high += sum - of_members(members.at_low) + of_members(members.at_high);
}

// Joins the parts in their order.
Crossing Join(std::vector<Crossing>& parts) {
  Crossing all;
  std::vector<size_t> begins;
  size_t size = 0;
  for (const Crossing& part : parts) {
    all.sum_low += part.sum_low;
    all.sum_high += part.sum_high;
    begins.push_back(size);
    size += part.members.size();
  }
  const auto join = [&](auto field) {
    auto& to = all.members.*field;
    ParallelFor(parts.size(), 1, [&](size_t first, size_t last) {
      for (size_t p = first; p < last; ++p) {
        const auto& from = parts[p].members.*field;
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(begins[p]));
      }
    });
  };
  all.members.Resize(size);
  join(&TieSet::index);
  join(&TieSet::weights);
  join(&TieSet::update);
  join(&TieSet::at_low);
  join(&TieSet::at_high);
  return all;
}

}  // namespace

Crossing FindCrossing(const MatchedProblem& problem,
                      const MatchedTerms& terms,
                      AlphaKey low,
                      AlphaKey high,
                      std::span<float> new_weights) {
  const size_t n = problem.weights.size();
  constexpr size_t kPart = size_t{1} << 16;
  std::vector<Crossing> parts((n + kPart - 1) / kPart);
  ParallelFor(parts.size(), 1, [&](size_t first, size_t last) {
    for (size_t part = first; part < last; ++part) {
      const size_t end = std::min(n, (part + 1) * kPart);
      for (size_t begin = part * kPart; begin < end; begin += kBlock) {
        const auto at_low = new_weights.subspan(begin, std::min(kBlock, end - begin));
        CrossBlock(problem, terms, low, high, begin, at_low, parts[part]);
      }
    }
  });
  return Join(parts);
}

SearchResult SearchByBisection(const MatchedProblem& problem,
                               const MatchedTerms& terms,
                               std::span<float> new_weights) {
  SearchResult result;
  const auto reaches = [&](AlphaKey key) {
    ++result.passes;
    return SumAt(problem, terms, key) >= terms.target;
  };
  // After these two loops, S(low) < T <= S(high).
  AlphaKey low = KeyOf(problem.learning_rate), high = low;
  while (low > 0 && reaches(low)) {
    high = low;
    low = low > kDouble ? low - kDouble : 0;
  }
  while (high == low || !reaches(high)) {
    if (high == kGreatestAlpha) return result;
    low = high;
    high = kGreatestAlpha - high > kDouble ? high + kDouble : kGreatestAlpha;
  }
  while (high - low > 1) {
    const AlphaKey middle = low + (high - low) / 2;
    (reaches(middle) ? high : low) = middle;
  }
  ++result.passes;
  Crossing crossing = FindCrossing(problem, terms, low, high, new_weights);
  crossing.members.key = high;
  crossing.members.sum_below = crossing.sum_low;
  result.group = std::move(crossing.members);
  return result;
}

}  // namespace numsim
