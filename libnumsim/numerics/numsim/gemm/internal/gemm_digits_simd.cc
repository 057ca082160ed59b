#include "numsim/gemm/internal/gemm_digits_simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

// Plain loops, which the compiler turns into vectors. They run only beside the int8 kernels of
// gemm_amx_simd.cc and gemm_vnni_simd.cc, so that one target is enough.
#if defined(__x86_64__) && defined(__GNUC__)
#define NUMSIM_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define NUMSIM_WIDE
#endif

namespace numsim {
namespace {

constexpr uint64_t kEachByte = 0x8080808080808080u;

// With 128 added to each digit, the digits are the bytes of the sum.
template <typename Real, typename Integer>
NUMSIM_WIDE void Cut(
    const float* x, size_t n, Real scale, int digits, uint8_t* __restrict to, size_t stride) {
  using Bits = std::make_unsigned_t<Integer>;
  constexpr size_t kPiece = 256;
  constexpr float kMost = std::numeric_limits<float>::max();
  Bits bytes[kPiece];
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t count = std::min(kPiece, n - begin);
    for (size_t k = 0; k < count; ++k) {
      const float value = std::fabs(x[begin + k]) <= kMost ? x[begin + k] : 0.0f;
      const auto integer = static_cast<Integer>(static_cast<Real>(value) * scale);
      bytes[k] = static_cast<Bits>(integer) + static_cast<Bits>(kEachByte);
    }
    for (int i = 0; i < digits; ++i) {
      uint8_t* const digit = to + static_cast<size_t>(i) * stride + begin;
      for (size_t k = 0; k < count; ++k) {
        digit[k] = static_cast<uint8_t>((bytes[k] >> (8 * i)) ^ 0x80);
      }
    }
  }
}

// The sum of high, a multiple of 2^52, and low in [0, 2^52), both exact in float64.
NUMSIM_WIDE inline double OddSum(double high, double low) {
  const double sum = high + low;
  const double rest = low - (sum - high);  // exact
  const auto bits = std::bit_cast<int64_t>(sum);
  const int64_t away = (rest > 0) == (sum > 0) ? 1 : -1;
  const bool even = (bits & 1) == 0;
  return std::bit_cast<double>(bits + (rest != 0 && even ? away : 0));
}

NUMSIM_WIDE inline double OddNumber(int64_t high, int64_t low) {
  constexpr int64_t kLowBits = (int64_t{1} << 20) - 1;
  constexpr int64_t kWord = (int64_t{1} << 32) - 1;
  high += low >> 32;
  return OddSum(static_cast<double>(high & ~kLowBits) * 0x1p32,
                static_cast<double>((high & kLowBits) << 32 | (low & kWord)));
}

}  // namespace

void CutIntoDigits(const float* x, size_t n, int unit, int digits, uint8_t* to, size_t stride) {
  // Where float32 has the power of two, and int32 the integers.
  if (digits < 4 && unit > -127 && unit < 127) {
    return Cut<float, int32_t>(x, n, std::ldexp(1.0f, -unit), digits, to, stride);
  }
  Cut<double, int64_t>(x, n, std::ldexp(1.0, -unit), digits, to, stride);
}

NUMSIM_WIDE void AddShifted(const int32_t* sums, int shift, size_t n, int64_t* __restrict totals) {
  for (size_t k = 0; k < n; ++k) {
    const auto wide = static_cast<uint64_t>(int64_t{sums[k]}) << shift;
    totals[k] = static_cast<int64_t>(static_cast<uint64_t>(totals[k]) + wide);
  }
}

NUMSIM_WIDE void RoundToOdd(
    const int64_t* low, const int64_t* high, int unit, size_t n, double* __restrict out) {
  const double scale = std::ldexp(1.0, unit);
  for (size_t k = 0; k < n; ++k) out[k] = OddNumber(high[k], low[k]) * scale;
}

NUMSIM_WIDE void RoundToOdd(const int64_t* low, int unit, size_t n, double* __restrict out) {
  const double scale = std::ldexp(1.0, unit);
  for (size_t k = 0; k < n; ++k) out[k] = OddNumber(0, low[k]) * scale;
}

}  // namespace numsim
