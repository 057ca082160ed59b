#include "numsim/updates/internal/matched_search.h"

#include <algorithm>
#include <array>

#include "numsim/base/parallel.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

constexpr size_t kBlock = 2048;
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

// Adds one block to a Crossing.
void CrossBlock(const MatchedProblem& problem,
                const MatchedTerms& terms,
                AlphaKey low,
                AlphaKey high,
                size_t begin,
                size_t count,
                Crossing& crossing) {
  std::array<float, kBlock> at_low, at_high;
  std::array<uint32_t, kBlock> places;
  const auto w = problem.weights.subspan(begin, count);
  const auto u = problem.update.subspan(begin, count);
  RoundStepSerial(*problem.plan, w.data(), u.data(), AlphaOf(low), count, at_low.data());
  RoundStepSerial(*problem.plan, w.data(), u.data(), AlphaOf(high), count, at_high.data());
  const size_t found =
      FindDifferent(std::span(at_low).first(count), std::span(at_high).first(count), places);
  double sum = SumTerms(terms, w, u, std::span(at_low).first(count));
  crossing.sum_low += sum;
  for (const uint32_t i : std::span(places).first(found)) {
    sum += terms(w[i], u[i], at_high[i]) - terms(w[i], u[i], at_low[i]);
  }
  crossing.sum_high += sum;
  TieSet& members = crossing.members;
  const auto keep = [&, chosen = std::span(places).first(found)](const auto& from, auto& to) {
    std::array<float, kBlock> kept;
    for (size_t k = 0; k < chosen.size(); ++k) kept[k] = from[chosen[k]];
    to.insert(to.end(), kept.data(), kept.data() + chosen.size());
  };
  keep(w, members.weights);
  keep(u, members.update);
  keep(at_low, members.at_low);
  keep(at_high, members.at_high);
  for (const uint32_t i : std::span(places).first(found)) members.index.push_back(begin + i);
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
    size += part.members.index.size();
  }
  const auto join = [&](auto field) {
    auto& to = all.members.*field;
    to.resize(size);
    ParallelFor(parts.size(), 1, [&](size_t first, size_t last) {
      for (size_t p = first; p < last; ++p) {
        const auto& from = parts[p].members.*field;
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(begins[p]));
      }
    });
  };
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
                      AlphaKey high) {
  const size_t n = problem.weights.size();
  constexpr size_t kPart = size_t{1} << 16;
  std::vector<Crossing> parts((n + kPart - 1) / kPart);
  ParallelFor(parts.size(), 1, [&](size_t first, size_t last) {
    for (size_t part = first; part < last; ++part) {
      const size_t end = std::min(n, (part + 1) * kPart);
      for (size_t begin = part * kPart; begin < end; begin += kBlock) {
        CrossBlock(problem, terms, low, high, begin, std::min(kBlock, end - begin), parts[part]);
      }
    }
  });
  return Join(parts);
}

SearchResult SearchByBisection(const MatchedProblem& problem, const MatchedTerms& terms) {
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
  Crossing crossing = FindCrossing(problem, terms, low, high);
  crossing.members.key = high;
  crossing.members.sum_below = crossing.sum_low;
  result.group = std::move(crossing.members);
  return result;
}

}  // namespace numsim
