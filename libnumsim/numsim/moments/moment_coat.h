// COAT's dynamic range expansion [COAT]: a block of magnitudes is raised to a
// power k that spreads it over the whole range of the format.
//
// With a the largest and c the least magnitude of a block, zeros left out, M
// the format's largest value and p its smallest positive one:
//   R0 = min(M^2 / 2, M / p)
//   k  = floor(16 ln(R0) / ln(a / c)) / 16, at least 1/16, at most 65536; 1
//   where a == c a value x becomes   sign(x) M (|x| / a)^k,   which is then
//   rounded to the format a code of value v   is worth   sign(v) a (|v| /
//   M)^(1/k)
// M^2 / 2 is what COAT writes for E4M3, 100352, and stands here for every
// format. In formats whose smallest value is far up (int8) the block's least
// magnitude would then be flushed, hence M / p.
//
// COAT stores three numbers a block: k, m = sqrt(a c) and S = (a / m)^k / M,
// codes being those of
// (|x| / m)^k / S. That is M (|x| / a)^k: m cancels, and a and k are all there
// is to store.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "numsim/formats/format_spec.h"

namespace numsim {

struct CoatBlock {
  float absmax = 1;    // a > 0
  float exponent = 1;  // k, a multiple of 1/16
};

// Numbers of a format that all its blocks share.
class CoatFormat {
 public:
  // Requires a format of up to 8 bits with a sign and a zero.
  explicit CoatFormat(const FormatSpec& format) noexcept;

  // Of the finite elements. Without a magnitude above zero: a = M and k = 1, a
  // plain cast.
  CoatBlock MakeBlock(const float* in, size_t n) const noexcept;

  // out[i] = float32 of M (|in[i]| / a)^k with the sign of in[i]. The power is
  // taken in float64 by square roots and products; it is exact to 2^-30 and M
  // itself where |in[i]| == a. Infinities and NaN stay. in may equal out.
  void Expand(const CoatBlock& block, const float* in, size_t n, float* out) const noexcept;

  const FormatSpec& format() const { return format_; }
  float max() const { return max_; }

  // For every code, the value over M, to the power 1/k, with its sign: what a
  // is multiplied with. NaN codes: NaN. Requires a k that MakeBlock makes.
  using Factors = std::array<double, 256>;
  void MakeFactors(float exponent, Factors& factors) const noexcept;

 private:
  FormatSpec format_;
  float max_;
  double log_range_;                   // ln R0
  std::array<float, 256> values_;      // of codes
  std::array<double, 256> log_ratio_;  // ln(|value| / M), of magnitude codes that are not zero
};

// Whether k is one that MakeBlock makes.
bool IsCoatExponent(float exponent) noexcept;

// Factors of the last few k, for the blocks of one format that a thread
// decodes.
class CoatFactorCache {
 public:
  CoatFactorCache();
  // Forgets what belongs to another format, and keeps this one alive.
  void Choose(const std::shared_ptr<const CoatFormat>& format);
  const CoatFormat::Factors& Get(float exponent);

 private:
  static constexpr size_t kSlots = 64;
  std::shared_ptr<const CoatFormat> format_;
  std::vector<uint32_t> keys_;  // 16 k; 0: empty
  std::vector<CoatFormat::Factors> factors_;
};

}  // namespace numsim
