// The dynamic 8-bit map of bitsandbytes: 256 values from -1 (signed) or 0 (unsigned) to 1, finer
// towards zero.
//
// For e = 0 .. 6 the interval [10^(-e-1), 10^-e] is cut into 2^(6-e) (signed) or 2^(7-e) (unsigned)
// equal parts, and the middle of each part is a value. The signed map also has the negatives of
// these values. Together with 0 and 1 these are 256 values. Codes number them in ascending order
// [bitsandbytes8], [torchao]. Each value is the float32 nearest to the exact number. PyTorch
// computes its map in float32 and is up to 2 ulp away.
//
// The signed map is asymmetric: its largest value is 1, its smallest -0.99296874.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim {

class DynamicMap {
 public:
  // Returns the map, which is built at the first call and immutable. Thread-safe.
  static const DynamicMap& Get(bool is_signed);

  // The values in ascending order; code c stands for values()[c].
  const std::array<float, 256>& values() const { return values_; }
  // By code c: the smallest float32 whose nearest value has a code >= c.
  const float* thresholds() const { return nearest_.bounds(); }
  // The code of the value 0.
  uint8_t zero_code() const { return zero_code_; }

  // Sets codes[i] to the code of the value nearest to in[i]; of two equally near values, the
  // greater. Inputs beyond the map's ends give the end. Requires that no input is NaN.
  void EncodeNearest(const float* in, size_t n, uint8_t* codes) const noexcept;

  // Rounds stochastically, variant A. With in[i] between two neighbouring values, low <= in[i] <
  // high, codes[i] is the code of high with probability floor(nu 2^bits) / 2^bits, where
  // nu = (in[i] - low) / (high - low) in float64; else the code of low. Uses the random bits of
  // element random.first_index + i. Inputs beyond the map's ends give the end. Requires that no
  // input is NaN and 1 <= bits <= 32.
  void EncodeStochastic(const float* in,
                        size_t n,
                        int bits,
                        const ArrayRandom& random,
                        uint8_t* codes) const noexcept;

 private:
  // Locates a number among 256 ascending bounds. The number's upper bits index a table of first
  // guesses, each at most kMore too low.
  class Staircase {
   public:
    explicit Staircase(const std::array<float, 256>& bounds);
    // Returns the largest c with c == 0 or bounds[c] <= x. Branch-free, because the branch would be
    // unpredictable.
    uint32_t LastNotAbove(float x) const noexcept;
    const float* bounds() const { return bounds_.data(); }  // 256

   private:
    static constexpr int kShift = 17;
    static constexpr int kMore = 2;
    std::array<float, 256 + kMore> bounds_;
    std::array<uint8_t, size_t{1} << (32 - kShift)> first_;
  };

  explicit DynamicMap(const std::array<float, 256>& values);

  std::array<float, 256> values_;
  std::array<double, 256> gaps_;  // from each value to the next; the last is infinite
  Staircase nearest_, below_;     // bounds: the midpoints; the values
  uint8_t zero_code_ = 0;
};

}  // namespace numsim
