// Checks the results of cases, and their flags if there are any, against the operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// The fault of a case, the worst one first. A case has the first kind that applies.
enum class MismatchKind : uint8_t {
  kValue,  // a result differs from the expected one, and they are not both NaN
  kFlags,  // every result is right or another NaN where NaN is right; the flags are wrong
  kNan,    // NaN is right, and the result is another code of NaN; `--nan any` accepts the case
};
// The number of kinds.
inline constexpr size_t kMismatchKinds = 3;
// Returns "value", "flags" or "nan".
std::string_view ToString(MismatchKind kind);

// A case whose result is wrong.
struct Mismatch {
  uint64_t place = 0;              // line or row of the input
  std::vector<uint64_t> row;       // inputs, results and, if the input has them, flags, as read
  std::vector<uint64_t> expected;  // all expected results
  Flags expected_flags = 0;
  MismatchKind kind = MismatchKind::kValue;

  friend bool operator==(const Mismatch&, const Mismatch&) = default;
};

// Counts the wrong results of an implementation and keeps the first of each kind.
class Judge : public CaseTally {
 public:
  // Receives every mismatch in the order of the input.
  using Sink = std::function<void(const Mismatch&)>;

  // Keeps a reference to the operation, and stores the first `limit` mismatches of each kind. If
  // `sink` is set, Append() passes it every mismatch of the part that it appends.
  Judge(const Operation& operation, NanRule nan, size_t limit, Sink sink = nullptr);

  // As CaseTally says.
  std::unique_ptr<CaseTally> Fresh() const override;
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override;
  void Append(const CaseTally& later) override;

  // Returns the number of columns of a row without flags.
  size_t columns() const { return inputs_ + expected_.size(); }
  uint64_t cases() const { return cases_; }
  uint64_t mismatches() const;
  uint64_t mismatches(MismatchKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  // True if any of the cases had flags.
  bool judged_flags() const { return judged_flags_; }
  // Returns up to `limit` mismatches: first those of kind kValue, then kFlags, then kNan, each kind
  // in the order of the input.
  std::vector<Mismatch> first() const;

  // Returns true if `got` is accepted as result `i` of the operation where `expected` is correct.
  bool Accepts(size_t i, uint64_t got, uint64_t expected) const noexcept;

 private:
  using Lists = std::array<std::vector<Mismatch>, kMismatchKinds>;  // one list per kind

  bool AreBothNan(size_t i, uint64_t got, uint64_t expected) const noexcept;
  void Keep(const Mismatch& mismatch);

  const Operation& operation_;
  NanRule nan_;
  size_t limit_;
  Sink sink_;
  bool keeps_all_ = false;  // a part whose mismatches Append() passes on
  size_t inputs_;
  std::vector<uint64_t> expected_;  // results of the current case
  uint64_t cases_ = 0;
  std::array<uint64_t, kMismatchKinds> counts_{};
  bool judged_flags_ = false;
  Lists kept_;
  std::vector<Mismatch> all_;  // if keeps_all_, instead of kept_
};

// Returns true if `column` holds codes of a format and `code` is one of its NaNs.
bool IsNan(const Column& column, uint64_t code) noexcept;

}  // namespace numsim
