#include <algorithm>

#include "numsim/base/error.h"
#include "numsim/data/internal/text_model.h"

namespace numsim {

TextTable::TextTable(std::span<const double> weights) {
  const size_t count = weights.size();
  NUMSIM_CHECK(count >= 1 && count <= size_t{1} << 16, "{} outcomes", count);
  double sum = 0;
  for (const double weight : weights) {
    NUMSIM_CHECK(weight > 0, "weight {}", weight);
    sum += weight;
  }
  // Each outcome gets 1 plus its share of the remaining total, rounded down. The first outcome also
  // gets the remainder.
  const auto shared = static_cast<double>(kTotal - count);
  uint32_t given = 0;
  for (const double weight : weights) {
    const uint32_t width = 1 + static_cast<uint32_t>(shared * (weight / sum) * (1 - 0x1p-40));
    given += width;
    ends_.push_back(given);
  }
  NUMSIM_CHECK(given <= kTotal, "weights add up to {}", given);
  for (uint32_t& end : ends_) end += kTotal - given;
}

size_t TextTable::Outcome(uint32_t word) const {
  const auto above = std::upper_bound(ends_.begin(), ends_.end(), word >> 8);
  return static_cast<size_t>(above - ends_.begin());
}

std::vector<double> ZipfWeights(size_t count) {
  std::vector<double> weights(count);
  for (size_t rank = 0; rank < count; ++rank) {
    weights[rank] = 1 / (static_cast<double>(rank) + 2.7);
  }
  return weights;
}

}  // namespace numsim
