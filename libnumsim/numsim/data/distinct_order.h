// An epoch of batches in which no concept occurs twice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace numsim {

// Examples grouped by concept, and how many batches of `count` an epoch has. With B batches each
// concept takes part with at most B of its examples; B is the largest number for which enough
// examples are left to fill B batches. Where no concept has more than examples / count examples,
// every example takes part, and B is as large as without the rule.
class DistinctBatches {
 public:
  // Requires count >= 1.
  DistinctBatches(std::span<const int32_t> concepts, size_t count);

  size_t Batches() const { return batches_; }

  // The examples of an epoch: batch b has order[b * count] and up. (seed, epoch) decides it. The
  // concepts come in a random order, the examples of each in a random order and at most B of them,
  // and they are dealt out to the batches in turn. So examples of a concept lie in neighbouring
  // batches, and batches are filled evenly; what is over count is left out of the epoch.
  std::vector<uint32_t> Order(uint64_t seed, uint64_t epoch) const;

 private:
  size_t count_, batches_ = 0;
  std::vector<uint32_t> examples_;  // by concept
  std::vector<size_t> ends_;        // of each concept's examples
};

}  // namespace numsim
