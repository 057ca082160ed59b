// Measures how far the results of an implementation are from the correct ones, in value steps: the
// unit in which approximate implementations declare their error under [P3109] (v4.0, 4.4).
//
// An implementation is kappa-approximate if it meets two conditions. Wherever the correct result is
// finite, its result is finite and at most kappa value steps away. Everywhere else, it gives the
// correct infinity or a NaN. One that misses a NaN anywhere declares kappa = NaN, and one that misses
// only infinities kappa = infinity. The number of value steps between two finite values is the number of
// representable values from the one (inclusive) to the other (exclusive): 0 for equal values (and
// for -0 and +0), 1 for neighbours.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "numsim/oracle/cases.h"
#include "numsim/oracle/judge.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// Returns the number of value steps between two codes; 0 for the same infinity and for two NaNs.
// Returns nothing if they cannot be compared: at least one is infinite, NaN or unused, and they are
// neither the same code nor both NaN.
std::optional<uint64_t> ValueSteps(const FormatSpec& format, uint32_t a, uint32_t b) noexcept;

// The case and the result in which an error was first seen.
struct KappaPlace {
  uint64_t place = 0;         // line or row of the input
  size_t result = 0;          // index of the result column
  std::vector<uint64_t> row;  // as read
  uint64_t expected = 0;      // the expected code of that result

  friend bool operator==(const KappaPlace&, const KappaPlace&) = default;
};

class KappaMeter : public CaseTally {
 public:
  // Number of bins of the histogram: 0, 1, 2, 3, 4, then (4, 8], (8, 16], ... by powers of two.
  static constexpr size_t kBins = 35;
  static size_t BinOf(uint64_t steps) noexcept;
  static std::string BinText(size_t bin);  // "4", "5-8"

  // Throws Error that names --op if no result is a code of a format. Keeps a reference to the
  // operation. Under NanRule::kExact a NaN of another code than the expected one is not comparable,
  // as Judge does not accept it; [P3109] means kAny.
  KappaMeter(const Operation& operation, NanRule nan);

  std::unique_ptr<CaseTally> Fresh() const override;
  // Adds one case. Ignores flags and results that are not codes of a format.
  void Add(uint64_t place, std::span<const uint64_t> row) noexcept override;
  void Append(const CaseTally& later) override;

  uint64_t cases() const { return cases_; }
  // The largest number of value steps of any result, and the first result with that number (none if
  // all are 0).
  uint64_t largest() const { return largest_; }
  const std::optional<KappaPlace>& largest_at() const { return largest_at_; }
  // Numbers of results that cannot be compared with the expected ones, by the expected value.
  struct Incomparable {
    uint64_t finite_expected = 0;    // expected a finite value, got NaN or an infinity
    uint64_t infinity_expected = 0;  // expected an infinity, got anything else
    uint64_t nan_expected = 0;       // expected NaN, got a finite value or an infinity
    uint64_t nan_code = 0;           // NanRule::kExact: expected NaN, got NaN of another code
    uint64_t nan_on_one_side = 0;    // of the first three, those with exactly one NaN
    uint64_t Total() const { return finite_expected + infinity_expected + nan_expected + nan_code; }
    friend bool operator==(const Incomparable&, const Incomparable&) = default;
  };
  const Incomparable& incomparable() const { return incomparable_; }
  const std::optional<KappaPlace>& incomparable_at() const { return incomparable_at_; }
  // Number of comparable results per bin.
  const std::array<uint64_t, kBins>& histogram() const { return histogram_; }

 private:
  void AddResult(uint64_t place, std::span<const uint64_t> row, size_t result);

  const Operation& operation_;
  NanRule nan_;
  size_t inputs_;
  std::vector<uint64_t> expected_;  // results of the current case
  uint64_t cases_ = 0;
  uint64_t largest_ = 0;
  std::optional<KappaPlace> largest_at_;
  Incomparable incomparable_;
  std::optional<KappaPlace> incomparable_at_;
  std::array<uint64_t, kBins> histogram_{};
};

}  // namespace numsim
