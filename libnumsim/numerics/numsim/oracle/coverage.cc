#include "numsim/oracle/coverage.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"

namespace numsim {
namespace {

constexpr uint64_t kCasesAtOnce = uint64_t{1} << 18;
constexpr size_t kGrain = 64;

// A bijection of 64-bit words in which every input bit changes half of the output bits
// (splitmix64).
uint64_t Mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// Answers sorted by key; those of one key in the order of the input.
class SortedAnswers {
 public:
  using Answer = std::pair<uint64_t, uint64_t>;  // key of the case, place of the answer

  explicit SortedAnswers(std::vector<Answer> answers) : answers_(std::move(answers)) {
    std::sort(answers_.begin(), answers_.end());
  }

  size_t size() const { return answers_.size(); }
  uint64_t Place(size_t i) const { return answers_[i].second; }
  bool SameKey(size_t i, size_t j) const { return answers_[i].first == answers_[j].first; }
  // Returns the index of the first answer with the key, or size() if there is none.
  size_t Find(uint64_t key) const {
    const auto at = std::lower_bound(answers_.begin(), answers_.end(), Answer(key, 0));
    return at != answers_.end() && at->first == key ? static_cast<size_t>(at - answers_.begin())
                                                    : size();
  }
  // Returns the index after the last answer with the key of answer i.
  size_t End(size_t i) const {
    size_t end = i;
    while (end < size() && SameKey(end, i)) ++end;
    return end;
  }
  // Returns all answers except the first used[i] of each key, i the index of its first answer.
  SortedAnswers Without(const std::vector<uint32_t>& used) const {
    std::vector<Answer> left;
    for (size_t i = 0, end = 0; i < size(); i = end) {
      end = End(i);
      left.insert(left.end(),
                  answers_.begin() + static_cast<std::ptrdiff_t>(i + used[i]),
                  answers_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return SortedAnswers(std::move(left));
  }

 private:
  std::vector<Answer> answers_;
};

template <typename T, typename Less>
std::vector<T> Smallest(std::vector<T> all, size_t limit, const Less& less) {
  std::sort(all.begin(), all.end(), less);
  all.resize(std::min(limit, all.size()));
  return all;
}

}  // namespace

struct CoverageTally::Level {
  Level(const Operation& operation, const CaseLevel& level)
      : generator(operation, level), columns(operation.inputs()) {
    const int bits = std::accumulate(
        columns.begin(), columns.end(), 0, [](int sum, const Column& c) { return sum + c.bits; });
    exact = bits <= 64;
  }

  // Returns a number that identifies the inputs: their bits side by side, or a hash.
  uint64_t Key(std::span<const uint64_t> inputs) const {
    uint64_t key = 0;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (!exact) {
        key = Mixed(key + 0x9E3779B97F4A7C15) ^ inputs[c];
      } else {
        key = columns[c].bits == 64 ? inputs[c] : key << columns[c].bits | inputs[c];
      }
    }
    return exact ? key : Mixed(key);
  }

  // Fills keys[i] with the key of case first + i.
  void Keys(uint64_t first, std::span<uint64_t> keys) const {
    ParallelFor(keys.size(), kGrain, [&](size_t begin, size_t end) {
      std::vector<uint64_t> inputs(columns.size());
      for (size_t i = begin; i < end; ++i) {
        generator.Case(first + i, inputs);
        keys[i] = Key(inputs);
      }
    });
  }

  // Calls visit(index, key) for the cases [first, end) in ascending order.
  template <typename Visit>
  void ForKeys(uint64_t first, uint64_t end, const Visit& visit) const {
    std::vector<uint64_t> keys(std::min(kCasesAtOnce, end - first));
    while (first < end) {
      keys.resize(std::min(kCasesAtOnce, end - first));
      Keys(first, keys);
      for (size_t i = 0; i < keys.size(); ++i) visit(first + i, keys[i]);
      first += keys.size();
    }
  }

  CaseGenerator generator;
  std::vector<Column> columns;
  bool exact = true;
};

namespace {

// Adds the answers that are left over: each repeats a case of the level or belongs to none.
template <typename Level>
void AddSurplus(const Level& level, const SortedAnswers& left, size_t limit, Coverage& coverage) {
  if (left.size() == 0) return;
  const uint64_t none = level.generator.size();
  std::vector<uint64_t> index_of(left.size(), none);  // per key, at its first answer
  level.ForKeys(0, none, [&](uint64_t index, uint64_t key) {
    const size_t first = left.Find(key);
    if (first < left.size()) index_of[first] = std::min(index_of[first], index);
  });
  std::vector<Coverage::Repeated> repeated;
  std::vector<uint64_t> foreign;
  for (size_t i = 0, first = 0; i < left.size(); ++i) {
    if (!left.SameKey(i, first)) first = i;
    if (index_of[first] < none) {
      repeated.push_back({left.Place(i), index_of[first]});
    } else {
      foreign.push_back(left.Place(i));
    }
  }
  coverage.repeated = repeated.size();
  coverage.foreign = foreign.size();
  coverage.first_repeated = Smallest(
      std::move(repeated), limit, [](const auto& a, const auto& b) { return a.place < b.place; });
  coverage.first_foreign = Smallest(std::move(foreign), limit, std::less<>());
}

}  // namespace

CoverageTally::CoverageTally(const Operation& operation, const CaseLevel& level)
    : level_(std::make_shared<const Level>(operation, level)) {}

std::unique_ptr<CaseTally> CoverageTally::Fresh() const {
  return std::unique_ptr<CoverageTally>(new CoverageTally(level_));
}

void CoverageTally::Add(uint64_t place, std::span<const uint64_t> row) noexcept {
  answers_.push_back({level_->Key(row.first(level_->columns.size())), place});
}

void CoverageTally::Append(const CaseTally& later) {
  const std::vector<Answer>& added = static_cast<const CoverageTally&>(later).answers_;
  answers_.insert(answers_.end(), added.begin(), added.end());
  if (!disordered_ && answers_.size() >= kCasesAtOnce) DropInOrder();
  if (answers_.size() > kMostOutOfOrder) {
    throw Error::Format(
        "--level: more than {} answers in another order than that of gen; completeness of so many "
        "is checked in gen's order only",
        kMostOutOfOrder);
  }
}

void CoverageTally::DropInOrder() {
  std::vector<uint64_t> keys(std::min(answers_.size(), level_->generator.size() - in_order_));
  level_->Keys(in_order_, keys);
  size_t same = 0;
  while (same < keys.size() && answers_[same].first == keys[same]) ++same;
  answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(same));
  in_order_ += same;
  disordered_ = !answers_.empty();
}

Coverage CoverageTally::Compare(size_t limit) {
  if (!disordered_) DropInOrder();
  const uint64_t size = level_->generator.size();
  Coverage coverage;
  coverage.expected = size;
  if (answers_.empty()) {
    coverage.missing = size - in_order_;
    coverage.first_missing.resize(std::min<uint64_t>(limit, coverage.missing));
    std::iota(coverage.first_missing.begin(), coverage.first_missing.end(), in_order_);
    return coverage;
  }
  const SortedAnswers answers(answers_);
  std::vector<uint32_t> used(answers.size(), 0);  // per key, at its first answer
  level_->ForKeys(in_order_, size, [&](uint64_t index, uint64_t key) {
    const size_t first = answers.Find(key);
    if (first < answers.size() && first + used[first] < answers.size() &&
        answers.SameKey(first, first + used[first])) {
      ++used[first];
      return;
    }
    ++coverage.missing;
    if (coverage.first_missing.size() < limit) coverage.first_missing.push_back(index);
  });
  AddSurplus(*level_, answers.Without(used), limit, coverage);
  return coverage;
}

}  // namespace numsim
