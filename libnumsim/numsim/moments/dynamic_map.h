// The dynamic 8-bit map of bitsandbytes: 256 values from -1 or 0 to 1, finer
// towards zero.
//
// For e = 0 .. 6 the interval [10^(-e-1), 10^-e] is cut into 2^(6-e) equal
// parts (signed) or 2^(7-e) (unsigned), and the middle of each is a value;
// signed, its negative is one too. With 0 and 1 these are 256 values. Codes
// number them in ascending order [bitsandbytes8], [torchao]. Each is the
// float32 nearest to the exact number. PyTorch computes its map in float32 and
// is up to 2 ulp away.
//
// The signed map is lopsided: it ends at 1 and at -0.99296874.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

class DynamicMap {
 public:
  // Made at the first call; immutable.
  static const DynamicMap& Get(bool is_signed);

  // Ascending; code c is worth values()[c].
  const std::array<float, 256>& values() const { return values_; }
  // Of the value 0.
  uint8_t zero_code() const { return zero_code_; }

  // codes[i] = that of the value nearest to in[i], the greater of two equally
  // near. Beyond the map's ends: the end. Requires no NaN.
  void EncodeNearest(const float* in, size_t n, uint8_t* codes) const noexcept;

  // in[i] lies between two neighbours, low <= in[i] < high. The code of high
  // with probability floor(nu 2^bits) / 2^bits, nu = (in[i] - low) / (high -
  // low) in float64; else that of low: stochastic rounding, variant A, with
  // draw i of `random` (its first_index counted in). Beyond the map's ends: the
  // end. Requires no NaN and 1 <= bits <= 32.
  void EncodeStochastic(const float* in,
                        size_t n,
                        int bits,
                        const ArrayRandom& random,
                        uint8_t* codes) const noexcept;

 private:
  // Finds a number's place among 256 ascending bounds. The upper half of its
  // bits leads to a first guess, which is at most kMore too low.
  class Staircase {
   public:
    explicit Staircase(const std::array<float, 256>& bounds);
    // The largest c with c == 0 or bounds[c] <= x, without a branch: no
    // processor could guess it.
    uint32_t LastNotAbove(float x) const noexcept;

   private:
    static constexpr int kShift = 17;
    static constexpr int kMore = 2;
    std::array<float, 256 + kMore> bounds_;
    std::array<uint8_t, size_t{1} << (32 - kShift)> first_;
  };

  explicit DynamicMap(const std::array<float, 256>& values);

  std::array<float, 256> values_;
  std::array<double, 256> gaps_;  // from a value to the next; the last is infinite
  Staircase nearest_, below_;     // midpoints; values
  uint8_t zero_code_ = 0;
};

}  // namespace numsim
