// COAT's dynamic range expansion [COAT]: raises the magnitudes of a block to a power k that spreads
// them over the whole range of the format.
//
// With a the largest and c the smallest nonzero magnitude of a block, M the format's largest value
// and p its smallest positive value:
//   R0      = min(M^2 / 2, M / p)
//   k       = floor(16 ln(R0) / ln(a / c)) / 16, at least 1/16 and at most 65536; 1 if a == c
//   expand  x -> sign(x) M (|x| / a)^k, which is then rounded to the format
//   decode  v -> sign(v) a (|v| / M)^(1/k), for a code of value v
// M^2 / 2 is COAT's range for E4M3, 100352; here it is used for every format. In formats whose
// smallest value is relatively large (int8) the block's smallest magnitude would then be flushed,
// hence the bound M / p.
//
// COAT stores three numbers per block: k, m = sqrt(a c) and S = (a / m)^k / M, and rounds
// (|x| / m)^k / S to a code. That equals M (|x| / a)^k: m cancels, so a and k suffice.
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

// Constants of a format that all its blocks share.
class CoatFormat {
 public:
  // Requires a format of at most 8 bits with a sign and a zero.
  explicit CoatFormat(const FormatSpec& format) noexcept;

  // Returns a and k of a block, computed from its finite elements. If none of them is nonzero,
  // a = M and k = 1, which is a plain cast.
  CoatBlock MakeBlock(const float* in, size_t n) const noexcept;

  // Sets out[i] to the float32 of M (|in[i]| / a)^k with the sign of in[i]. The power is computed
  // in float64 by square roots and multiplications, with a relative error of at most 2^-30; where
  // |in[i]| == a the result is exactly M. Infinities and NaN are kept. `in` may equal `out`.
  void Expand(const CoatBlock& block, const float* in, size_t n, float* out) const noexcept;

  const FormatSpec& format() const { return format_; }
  float max() const { return max_; }
  double log_range() const { return log_range_; }  // ln R0
  // By code: its value, and ln(|value| / M), which is 0 if the value is zero or not finite.
  const std::array<float, 256>& values() const { return values_; }
  const std::array<double, 256>& log_ratios() const { return log_ratio_; }

  // Computes for every code of value v the factor sign(v) (|v| / M)^(1/k), which decoding
  // multiplies by a. Zero, infinity and NaN codes keep their values. Requires
  // IsCoatExponent(exponent).
  using Factors = std::array<double, 256>;
  void MakeFactors(float exponent, Factors& factors) const noexcept;

 private:
  FormatSpec format_;
  float max_;
  double log_range_;                   // ln R0
  std::array<float, 256> values_;      // by code
  std::array<double, 256> log_ratio_;  // by code: ln(|value| / M); 0 if zero or not finite
};

// Returns true if MakeBlock can return this k: a multiple of 1/16 from 1/16 to 65536.
bool IsCoatExponent(float exponent) noexcept;

// Caches the factors of recently used k, for the blocks of one format that a thread decodes. Not
// thread-safe: each thread has its own cache.
class CoatFactorCache {
 public:
  CoatFactorCache();
  // Selects the format, keeps it alive, and clears the cache if the format differs.
  void Choose(const std::shared_ptr<const CoatFormat>& format);
  // Returns CoatFormat::MakeFactors of the selected format. Valid until the next call.
  const CoatFormat::Factors& Get(float exponent);

 private:
  static constexpr size_t kSlots = 64;
  std::shared_ptr<const CoatFormat> format_;
  std::vector<uint32_t> keys_;  // 16 k of each slot; 0: empty
  std::vector<CoatFormat::Factors> factors_;
};

}  // namespace numsim
