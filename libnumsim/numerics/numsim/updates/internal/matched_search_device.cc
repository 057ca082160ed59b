#include "numsim/updates/internal/matched_search_device.h"

#include <algorithm>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/cast/shared/round_step.h"

namespace numsim {
namespace {

constexpr AlphaKey kDouble = AlphaKey{1} << 23;  // difference of keys that doubles alpha
constexpr size_t kSampledFrom = size_t{1} << 16;
constexpr size_t kWorthDropping = size_t{1} << 16;  // weights; dropping fewer saves no time
constexpr size_t kAtOnce = 32;                      // candidates per round

// Returns `count` ascending keys that divide (low, high] about evenly. The last one is `high`; some
// may be equal.
std::vector<AlphaKey> PartKeys(AlphaBracket bracket, size_t count) {
  const uint64_t width = bracket.high - bracket.low;
  std::vector<AlphaKey> keys(count);
  for (size_t j = 0; j < count; ++j) {
    const uint64_t up = std::max<uint64_t>(width * (j + 1) / count, 1);
    keys[j] = bracket.low + static_cast<AlphaKey>(up);
  }
  return keys;
}

// Searches for one end of an estimated bracket: the least key of (low, high] from which on a
// condition holds, or `high` if it holds nowhere.
struct GuessEnd {
  AlphaBracket bracket;

  bool Done() const { return bracket.high - bracket.low <= 1; }
  // holds[j] says whether the condition holds at keys[j]; the keys divide the bracket (PartKeys).
  void Narrow(const std::vector<AlphaKey>& keys, const std::vector<bool>& holds) {
    size_t j = 0;
    while (j + 1 < keys.size() && !holds[j]) ++j;
    if (j > 0) bracket.low = std::min(keys[j - 1], keys[j] - 1);
    bracket.high = keys[j];
  }
};

class Search {
 public:
  Search(const MatchedProblem& problem,
         const MatchedTerms& terms,
         const DeviceElements& all,
         const MatchedMemory& memory,
         MatchedPasses& passes,
         DeviceStream& stream)
      : problem_(problem),
        terms_(terms),
        all_(all),
        memory_(memory),
        device_(passes),
        stream_(stream),
        elements_(all) {}

  DeviceSearchResult Result() {
    DeviceSearchResult result;
    if ((all_.count < kSampledFrom || BracketByGuess()) && NarrowToGroup()) {
      result.found = {bracket_.high, Decide()};
    }
    result.passes = passes_;
    return result;
  }

 private:
  bool LooksAtAll() const { return elements_.index == nullptr; }
  const DeviceElements& Spare() const { return memory_.lists[spare_]; }

  // Returns what GuessBracket of matched_sample.h returns for all weights and all factors. Searches
  // for both ends at the same time.
  AlphaBracket Guess() {
    DeviceElements sample = Spare();
    sample.count = SampleRuns(all_.count) * kSampleRun;
    device_.TakeSample(all_, problem_.random, sample);
    const double share = terms_.target / problem_.update_square;
    GuessEnd high, low;
    while (!high.Done() || !low.Done()) {
      std::vector<AlphaKey> keys = PartKeys(high.bracket, kDeviceCandidates / 2);
      const std::vector<AlphaKey> low_keys = PartKeys(low.bracket, kDeviceCandidates / 2);
      const std::vector<AlphaKey> high_keys = keys;
      keys.insert(keys.end(), low_keys.begin(), low_keys.end());
      const std::vector<DeviceSum> sums = device_.SumsAt(sample, keys, &share);
      std::vector<bool> surely_above, maybe_above;
      for (size_t j = 0; j < keys.size(); ++j) {
        const double margin = kStandardErrors * std::sqrt(sums[j].squares);
        if (j < high_keys.size()) {
          surely_above.push_back(sums[j].sum > margin);
        } else {
          maybe_above.push_back(sums[j].sum > -margin);
        }
      }
      high.Narrow(high_keys, surely_above);
      low.Narrow(low_keys, maybe_above);
    }
    const AlphaKey end = high.bracket.high;
    return {std::min(low.bracket.high, end) - 1, end};
  }

  // Verifies an estimated bracket, moving and widening it if it is wrong, and keeps the weights
  // that change within it if there is room. Returns false if no alpha reaches the target.
  bool BracketByGuess() {
    AlphaBracket bracket = Guess();
    AlphaBracket known;  // S(known.low) < T, and S(known.high) >= T unless nothing reaches it
    uint64_t stride = std::max<uint64_t>(kDouble / 16, bracket.high - bracket.low);
    for (;;) {
      const DeviceCrossing crossing = Cross(bracket);
      if (crossing.sum_low >= terms_.target) {
        known.high = bracket.low;
        const AlphaKey low = known.high > stride ? known.high - static_cast<AlphaKey>(stride) : 0;
        bracket = {std::max(low, known.low), known.high};
      } else if (crossing.sum_high < terms_.target) {
        if (bracket.high == kGreatestAlpha) return false;
        known.low = bracket.high;
        const uint64_t high = known.low + stride;
        bracket = {known.low, static_cast<AlphaKey>(std::min<uint64_t>(high, known.high))};
      } else {
        bracket_ = bracket;
        certain_ = true;
        sum_low_ = crossing.sum_low;
        Keep(crossing);
        return true;
      }
      stride *= 4;
    }
  }

  DeviceCrossing Cross(AlphaBracket bracket) {
    if (LooksAtAll()) ++passes_;
    return device_.Cross(elements_, bracket.low, bracket.high, Spare());
  }

  // Drops the weights that do not change, if there was room for the others.
  void Keep(const DeviceCrossing& crossing) {
    if (crossing.changed > Spare().count) return;
    elements_ = Spare();
    elements_.count = crossing.changed;
    spare_ = 1 - spare_;
    settled_ += crossing.same;
  }

  // Narrows the bracket to two neighbouring keys. Returns false if no alpha reaches the target.
  bool NarrowToGroup() {
    while (!certain_ || bracket_.high - bracket_.low > 1) {
      if (LooksAtAll()) ++passes_;
      const std::vector<AlphaKey> keys = PartKeys(bracket_, kAtOnce);
      const std::vector<DeviceSum> sums = device_.SumsAt(elements_, keys, nullptr);
      size_t j = 0;
      while (j < keys.size() && settled_ + sums[j].sum < terms_.target) ++j;
      if (j == keys.size()) {
        NUMSIM_CHECK(!certain_, "keys {} to {}", bracket_.low, bracket_.high);
        return false;
      }
      certain_ = true;
      bracket_.high = keys[j];
      if (j > 0) {
        bracket_.low = keys[j - 1];
        sum_low_ = settled_ + sums[j - 1].sum;
      }
      if (bracket_.high - bracket_.low > 1 && elements_.count > kWorthDropping) {
        Keep(Cross(bracket_));
      }
    }
    return true;
  }

  // Decides which members of the tie set move. The last member to move is in one bucket; all
  // members of the buckets before it move.
  TieDecision Decide() {
    const AlphaKey key = bracket_.high;
    TieSet group;
    group.key = key;
    group.sum_below = sum_low_;
    const std::vector<double> added = device_.SumBuckets(elements_, key, problem_.random);
    const uint32_t bucket = LastTieBucket(terms_, added, group.sum_below);
    const size_t count = device_.CollectBucket(elements_, key, problem_.random, bucket, Spare());
    NUMSIM_CHECK(count <= Spare().count, "{} members, room for {}", count, Spare().count);
    const auto fetch = [&](const auto* from, auto& to) {
      to.resize(count);
      device_memory::CopyOut(from, to.data(), count * sizeof(*from), stream_);
      stream_.Wait();
    };
    fetch(static_cast<const float*>(Spare().weights), group.weights);
    fetch(static_cast<const float*>(Spare().update), group.update);
    fetch(static_cast<const uint64_t*>(Spare().index), group.index);
    const auto values_at = [&](AlphaKey at, UninitializedVector<float>& values) {
      values.resize(count);
      RoundStepOnHost(*problem_.plan, group.weights, group.update, AlphaOf(at), values);
    };
    values_at(key - 1, group.at_low);
    values_at(key, group.at_high);
    std::vector<uint32_t> words;
    for (const uint64_t index : group.index) words.push_back(RandomWord(problem_.random, index));
    return DecideMembers(problem_, terms_, group, words);
  }

  const MatchedProblem& problem_;
  const MatchedTerms& terms_;
  const DeviceElements& all_;
  const MatchedMemory& memory_;
  MatchedPasses& device_;
  DeviceStream& stream_;
  DeviceElements elements_;  // those that may change within the bracket, or all
  int spare_ = 0;            // the list that does not hold elements_
  AlphaBracket bracket_;     // S(low) < T, and if certain_ S(high) >= T
  bool certain_ = false;
  double settled_ = 0;  // what all other elements add to S, anywhere in the bracket
  double sum_low_ = 0;  // S(bracket.low)
  int passes_ = 0;
};

}  // namespace

size_t MatchedMemory::RoomForSurvivors(size_t n) {
  return std::min(n, std::max<size_t>(size_t{1} << 16, n / 8));
}

DeviceSearchResult SearchOnDevice(const MatchedProblem& problem,
                                  const MatchedTerms& terms,
                                  const DeviceElements& all,
                                  const MatchedMemory& memory,
                                  MatchedPasses& passes,
                                  DeviceStream& stream) {
  return Search(problem, terms, all, memory, passes, stream).Result();
}

}  // namespace numsim
