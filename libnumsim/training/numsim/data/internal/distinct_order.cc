#include <algorithm>
#include <numeric>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/data/internal/shuffle.h"
#include "numsim/data/internal/sources.h"

namespace numsim {

DistinctBatches::DistinctBatches(std::span<const int32_t> concepts, size_t count) : count_(count) {
  NUMSIM_CHECK(count >= 1, "an empty batch");
  examples_.resize(concepts.size());
  std::iota(examples_.begin(), examples_.end(), 0u);
  std::stable_sort(examples_.begin(), examples_.end(), [concepts](uint32_t a, uint32_t b) {
    return concepts[a] < concepts[b];
  });
  // at_least[b] becomes the number of concepts that have b or more examples.
  std::vector<size_t> at_least(examples_.size() + 1);
  for (size_t i = 0, begin = 0; i < examples_.size(); ++i) {
    const bool last =
        i + 1 == examples_.size() || concepts[examples_[i + 1]] != concepts[examples_[i]];
    if (!last) continue;
    ends_.push_back(i + 1);
    ++at_least[i + 1 - begin];
    begin = i + 1;
  }
  for (size_t b = examples_.size(); b-- > 0;) at_least[b] += at_least[b + 1];
  // With B batches, at_least[1] + ... + at_least[B] examples may take part, and B * count are
  // needed. The increments of the first sum never grow with B, so the search can stop at the first
  // failure.
  size_t taking_part = 0;
  for (size_t b = 1; b <= concepts.size() / count; ++b) {
    taking_part += at_least[b];
    if (taking_part < b * count) break;
    batches_ = b;
  }
}

std::vector<uint32_t> DistinctBatches::Order(uint64_t seed, uint64_t epoch) const {
  std::vector<uint32_t> order(batches_ * count_);
  if (order.empty()) return order;
  const EpochShuffle shuffle(seed, epoch, ends_.size());
  std::vector<uint32_t> group;
  size_t dealt = 0;
  for (size_t place = 0; place < ends_.size(); ++place) {
    const size_t concept_number = shuffle(place);
    const size_t begin = concept_number == 0 ? 0 : ends_[concept_number - 1];
    group.assign(examples_.begin() + static_cast<ptrdiff_t>(begin),
                 examples_.begin() + static_cast<ptrdiff_t>(ends_[concept_number]));
    const size_t taken = std::min(group.size(), batches_);
    for (size_t i = 0; i < taken; ++i, ++dealt) {
      const auto draw = static_cast<uint32_t>(begin + i);
      const size_t other = i + EpochDraw(seed, epoch, draw, group.size() - i);
      std::swap(group[i], group[other]);
      const size_t row = dealt / batches_;
      if (row < count_) order[dealt % batches_ * count_ + row] = group[i];
    }
  }
  return order;
}

}  // namespace numsim
