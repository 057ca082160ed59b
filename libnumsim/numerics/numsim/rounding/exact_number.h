// Exact numbers: those that text states, whatever its length, and their sums.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "numsim/rounding/unrounded.h"

namespace numsim {

class Natural;

// (-1)^negative * N * 2^p * 5^q, infinity or NaN. Nothing is ever cut.
class ExactNumber {
 public:
  ExactNumber() : ExactNumber(Unrounded()) {}
  // The number must be exact, not itself rounded to odd.
  explicit ExactNumber(const Unrounded& exact);
  static ExactNumber FromFloat64(double value);

  NumberKind kind() const { return kind_; }
  bool negative() const { return negative_; }
  bool IsFinite() const { return kind_ == NumberKind::kFinite; }
  bool IsZero() const;

  // Returns the number, rounded to odd if it has more than 62 bits: what EncodeUnrounded() rounds
  // once to any format. A magnitude beyond 2^(2^18) or below 2^(-2^18), which no format holds,
  // becomes another such magnitude.
  Unrounded Rounded() const;
  // Returns the nearest float64 (ties to even).
  double ToFloat64() const;
  float ToFloat32() const;
  // Return true if a float64 (float32) holds the number exactly; infinity and NaN count as held.
  bool IsFloat64() const;
  bool IsFloat32() const;

  ExactNumber operator-() const;
  // Throws Error if the exponents of two terms lie too far apart to add them exactly.
  friend ExactNumber operator+(const ExactNumber& a, const ExactNumber& b);
  friend ExactNumber operator-(const ExactNumber& a, const ExactNumber& b) { return a + -b; }

 private:
  friend class ExactNumberReader;

  double Log2() const;  // of the magnitude, about

  NumberKind kind_ = NumberKind::kFinite;
  bool negative_ = false;
  std::shared_ptr<const Natural> natural_;
  int64_t twos_ = 0, fives_ = 0;
};

// Returns the number that the whole text states: a decimal number ("0.78", "-1e-400"), a hexadecimal
// one ("0x1.8p-1"), "inf" or "nan" with a sign or without, in any case. Throws Error whose message
// begins with `what` if the text is none of these or has more than 100,000 characters.
ExactNumber ParseExactNumber(std::string_view text, std::string_view what);

// Does the same for a number or a sum or difference of two, such as "0.75+0x1p-60".
ExactNumber ParseExactSum(std::string_view text, std::string_view what);

}  // namespace numsim
