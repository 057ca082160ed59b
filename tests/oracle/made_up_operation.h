// An operation that a test can compute in its head, and a tally that remembers what it was given.
#pragma once

#include <string>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// e4m3fn codes a, b -> sum = a + b mod 256 as a code, and bit = the lowest bit of a; flags a &
// 0x1F.
class MadeUpOperation : public Operation {
 public:
  MadeUpOperation() : Operation({"made-up", "", true, {}}, CaseShape::kElementwise) {
    inputs_ = {Code("a"), Code("b")};
    results_ = {Code("sum"), Bit("bit")};
    operands_ = 2;
  }

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    results[0] = (inputs[0] + inputs[1]) & 0xFF;
    results[1] = inputs[0] & 1;
    return static_cast<Flags>(inputs[0] & 0x1F);
  }

 private:
  static Column Code(const std::string& name) {
    Column column;
    column.name = name;
    column.bits = 8;
    column.format = ParseFormat("e4m3fn");
    return column;
  }
  static Column Bit(const std::string& name) {
    Column column;
    column.name = name;
    column.bits = 1;
    column.kind = ColumnKind::kTruth;
    return column;
  }
};

class RememberingTally : public CaseTally {
 public:
  struct Case {
    uint64_t place;
    std::vector<uint64_t> row;
    friend bool operator==(const Case&, const Case&) = default;
  };

  std::unique_ptr<CaseTally> Fresh() const override { return std::make_unique<RememberingTally>(); }
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override {
    cases.push_back({place, {row.begin(), row.end()}});
  }
  void Append(const CaseTally& later) override {
    const auto& other = static_cast<const RememberingTally&>(later);
    cases.insert(cases.end(), other.cases.begin(), other.cases.end());
  }

  std::vector<Case> cases;
};

}  // namespace numsim
