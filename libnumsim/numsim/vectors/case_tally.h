// What is worked out from cases with their answers. Readers (case_text.h, case_npy.h) hand the
// cases over on several threads; the outcome does not depend on how many.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace numsim {

class CaseTally {
 public:
  virtual ~CaseTally() = default;

  // An empty tally with the same settings, for another part of the input.
  virtual std::unique_ptr<CaseTally> Fresh() const = 0;

  // Adds one case: inputs, results and, if the input has them, flags, each below 2^bits of its
  // column. `place`: its line or row in the input.
  virtual void Add(uint64_t place, std::span<const uint64_t> row) noexcept = 0;

  // Adds what Fresh() of this tally has collected from the part that follows. Deterministic.
  virtual void Append(const CaseTally& later) = 0;
};

}  // namespace numsim
