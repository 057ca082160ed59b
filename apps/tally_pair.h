// Two statistics of the same cases in one pass over the input.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "numsim/oracle/cases.h"

namespace numsim::apps {

// Passes every case to two tallies.
class TallyPair : public CaseTally {
 public:
  // Keeps references.
  TallyPair(CaseTally& first, CaseTally& second) : first_(first), second_(second) {}

  std::unique_ptr<CaseTally> Fresh() const override;
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override {
    first_.Add(place, row);
    second_.Add(place, row);
  }
  void Append(const CaseTally& later) override {
    const TallyPair& other = static_cast<const TallyPair&>(later);
    first_.Append(other.first_);
    second_.Append(other.second_);
  }

 private:
  class Part;

  CaseTally& first_;
  CaseTally& second_;
};

// A pair that owns its two tallies.
class TallyPair::Part : public TallyPair {
 public:
  Part(std::unique_ptr<CaseTally> first, std::unique_ptr<CaseTally> second)
      : TallyPair(*first, *second),
        owned_first_(std::move(first)),
        owned_second_(std::move(second)) {}

 private:
  std::unique_ptr<CaseTally> owned_first_, owned_second_;
};

inline std::unique_ptr<CaseTally> TallyPair::Fresh() const {
  return std::make_unique<Part>(first_.Fresh(), second_.Fresh());
}

}  // namespace numsim::apps
