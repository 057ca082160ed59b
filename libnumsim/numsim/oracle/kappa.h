// How far an implementation is from the right results, in value steps: the measure in which [P3109]
// has approximate implementations declared (v4.0, 4.4).
//
// An implementation is kappa-approximate when, wherever the right result is finite, it gives a
// finite result that lies at most kappa value steps away, and elsewhere the right infinity or NaN.
// The steps between two finite values are the representable values from the one, counted, up to the
// other, not counted: 0 for the same value (and for -0 and +0), 1 for neighbours.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// The steps between two codes; 0 for the same infinity and for two NaNs; none when they cannot be
// compared: one of them is not finite and the other is another kind of value, or a code is unused.
std::optional<uint64_t> ValueSteps(const FormatSpec& format, uint32_t a, uint32_t b) noexcept;

// Where something was seen first.
struct KappaPlace {
  uint64_t place = 0;         // line or row of the input
  size_t result = 0;          // index of the result column
  std::vector<uint64_t> row;  // as it came
  uint64_t expected = 0;      // the right code of that result

  friend bool operator==(const KappaPlace&, const KappaPlace&) = default;
};

class KappaMeter : public CaseTally {
 public:
  // Bins of the histogram: 0, 1, 2, 3, 4, then (4, 8], (8, 16], ... by powers of two.
  static constexpr size_t kBins = 35;
  static size_t BinOf(uint64_t steps) noexcept;
  static std::string BinText(size_t bin);  // "4", "5-8"

  // Throws Error that names --op when no result is a code of a format. Keeps a reference.
  explicit KappaMeter(const Operation& operation);

  std::unique_ptr<CaseTally> Fresh() const override;
  // Results that are no codes, and flags, do not count.
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override;
  void Append(const CaseTally& later) override;

  uint64_t cases() const { return cases_; }
  // The largest number of steps of a result, and the first result that has it (none if all are 0).
  uint64_t largest() const { return largest_; }
  const std::optional<KappaPlace>& largest_at() const { return largest_at_; }
  // Results that cannot be compared with the right ones, by what the right one is.
  struct Incomparable {
    uint64_t finite_expected = 0;    // NaN or infinity where a finite value is right
    uint64_t infinity_expected = 0;  // something else than the infinity that is right
    uint64_t nan_expected = 0;       // a number where NaN is right
    uint64_t Total() const { return finite_expected + infinity_expected + nan_expected; }
    friend bool operator==(const Incomparable&, const Incomparable&) = default;
  };
  const Incomparable& incomparable() const { return incomparable_; }
  const std::optional<KappaPlace>& incomparable_at() const { return incomparable_at_; }
  // Comparable results by bin.
  const std::array<uint64_t, kBins>& histogram() const { return histogram_; }

 private:
  void AddResult(uint64_t place, std::span<const uint64_t> row, size_t result);

  const Operation& operation_;
  size_t inputs_;
  std::vector<uint64_t> expected_;  // of the case at hand
  uint64_t cases_ = 0;
  uint64_t largest_ = 0;
  std::optional<KappaPlace> largest_at_;
  Incomparable incomparable_;
  std::optional<KappaPlace> incomparable_at_;
  std::array<uint64_t, kBins> histogram_{};
};

}  // namespace numsim
