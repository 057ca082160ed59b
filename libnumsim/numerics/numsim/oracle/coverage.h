// Checks that answers cover the cases of a level: each case as often as the level has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// The differences between the cases of a level and the answered ones. The order of the answers
// does not matter. A level may have a case several times (random:N of a small format); then it must
// be answered as many times.
struct Coverage {
  struct Repeated {
    uint64_t place = 0;  // line or row of the surplus answer
    uint64_t index = 0;  // a case of the level with the same inputs
    friend bool operator==(const Repeated&, const Repeated&) = default;
  };
  uint64_t expected = 0;  // cases of the level
  uint64_t missing = 0;   // cases without an answer
  uint64_t repeated = 0;  // answers to a case beyond the number of times that the level has it
  uint64_t foreign = 0;   // answers to cases that the level does not have
  // The first ones of each, in the order of the level, of the input and of the input.
  std::vector<uint64_t> first_missing;  // index of the case
  std::vector<Repeated> first_repeated;
  std::vector<uint64_t> first_foreign;  // line or row

  bool Complete() const { return missing + repeated + foreign == 0; }
};

// Cases are compared by their inputs. Inputs of up to 64 bits in all are compared exactly, longer
// ones by a hash of 64 bits: a wrong case passes as a missing one with probability 2^-64.
//
// Answers in the order of the level need a few megabytes. From the first deviation on, 16 bytes are
// kept for each answer.
class CoverageTally : public CaseTally {
 public:
  // The largest number of answers after the first deviation from the order of the level.
  static constexpr size_t kMostOutOfOrder = size_t{1} << 27;

  // Throws Error if level `full` would have more than 2^32 cases.
  CoverageTally(const Operation& operation, const CaseLevel& level);

  std::unique_ptr<CaseTally> Fresh() const override;
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override;
  // Throws Error if more than kMostOutOfOrder answers follow the first deviation.
  void Append(const CaseTally& later) override;

  // Compares the cases appended so far with those of the level. Generates all cases from the first
  // deviation on, on all threads. Returns up to `limit` cases of each kind.
  Coverage Compare(size_t limit);

 private:
  using Answer = std::pair<uint64_t, uint64_t>;  // key of the case, place of the answer
  struct Level;                                  // generates the cases; shared by all parts

  explicit CoverageTally(std::shared_ptr<const Level> level) : level_(std::move(level)) {}

  // Drops the answers at the front of answers_ that are the next cases of the level.
  void DropInOrder();

  std::shared_ptr<const Level> level_;
  uint64_t in_order_ = 0;    // answers that were dropped
  bool disordered_ = false;  // the first answer of answers_ deviates from the order of the level
  std::vector<Answer> answers_;
};

}  // namespace numsim
