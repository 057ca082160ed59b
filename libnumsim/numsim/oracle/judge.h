// Checks the results of cases, and their flags if there are any, against the operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// The codes that are accepted for a result that must be NaN.
enum class NanRule : uint8_t {
  kExact,  // only the canonical NaN
  kAny,    // every NaN of the format
};
// Parses "exact" or "any". Throws Error that names --nan for any other text.
NanRule ParseNanRule(std::string_view text);

struct Mismatch {
  uint64_t place = 0;              // line or row of the input
  std::vector<uint64_t> row;       // inputs, results and, if the input has them, flags, as read
  std::vector<uint64_t> expected;  // all expected results
  Flags expected_flags = 0;

  friend bool operator==(const Mismatch&, const Mismatch&) = default;
};

class Judge : public CaseTally {
 public:
  // Keeps a reference to the operation, and stores the first `limit` mismatches.
  Judge(const Operation& operation, NanRule nan, size_t limit);

  std::unique_ptr<CaseTally> Fresh() const override;
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override;
  void Append(const CaseTally& later) override;

  uint64_t cases() const { return cases_; }
  uint64_t mismatches() const { return mismatches_; }
  // Number of mismatches with correct results and wrong flags.
  uint64_t wrong_in_flags_alone() const { return wrong_in_flags_alone_; }
  // True if any of the cases had flags.
  bool judged_flags() const { return judged_flags_; }
  const std::vector<Mismatch>& first() const { return first_; }

  // Returns true if `got` is accepted as result `i` of the operation where `expected` is correct.
  bool Accepts(size_t i, uint64_t got, uint64_t expected) const noexcept;

 private:
  const Operation& operation_;
  NanRule nan_;
  size_t limit_;
  size_t inputs_;
  std::vector<uint64_t> expected_;  // results of the current case
  uint64_t cases_ = 0;
  uint64_t mismatches_ = 0;
  uint64_t wrong_in_flags_alone_ = 0;
  bool judged_flags_ = false;
  std::vector<Mismatch> first_;
};

// Returns true if `column` holds codes of a format and `code` is one of its NaNs.
bool IsNan(const Column& column, uint64_t code) noexcept;

}  // namespace numsim
