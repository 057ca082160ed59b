// The conversions of other implementations a second time, for the tests of profiles/.
//
// Rules that round correctly are made of the independent reference (tests/reference) and a list of
// what becomes of NaN and infinity. The others are worked out here from the published description
// of each implementation, step by step, in the arithmetic that it uses. No header of the library is
// included.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace reference {

// The reference result for one input: the code, or, where a source leaves the pattern of a NaN
// open, that any NaN of the target will do.
struct Expected {
  uint32_t code;
  bool any_nan = false;
};

// One conversion of a profile. `random` as for numsim::ProfileConversion::Encode.
struct Conversion {
  std::string profile;
  std::string target;
  int random_bits;
  std::function<Expected(uint64_t bits, uint32_t random)> encode;
  std::string meaning = "";  // format whose codes the target's patterns are; empty: the target
};

inline void PrintTo(const Conversion& conversion, std::ostream* os) {
  *os << conversion.profile << " to " << conversion.target;
}

// The low `bits` bits of `word`, 0 <= bits <= 32.
constexpr uint32_t LowBits(uint32_t word, int bits) {
  return static_cast<uint32_t>(word & ((uint64_t{1} << bits) - 1));
}

// Every conversion from float32 of which there is a reference, and those from float64.
const std::vector<Conversion>& Float32Conversions();
const std::vector<Conversion>& Float64Conversions();
// The one of that profile and target. Aborts when there is none: a typing error in a test.
const Conversion& FindConversion(const std::string& profile, const std::string& target);

// The rules that are no correct rounding.

// HIP's host code. Magnitudes beyond the largest value overflow before they are rounded. Below the
// smallest normal the significand is shifted by the difference of exponents, which the processor
// takes modulo 64.
struct HipTarget {
  int mantissa_bits;
  int min_exponent;  // of the smallest normal
  double max;
  bool fnuz;
};
struct HipSource {
  int mantissa_bits;
  int exponent_bits;
};
uint32_t HipHost(const HipTarget& target, const HipSource& source, uint64_t bits, bool saturate);
// The same with the low bits of `random` added to what is cut off.
uint32_t HipHostStochastic(const HipTarget& target, uint32_t bits, bool saturate, uint32_t random);

// QPyTorch's float_quantize(exponent_bits, mantissa_bits), rounding "nearest".
uint32_t QPyTorch(int exponent_bits, int mantissa_bits, uint32_t bits);

// CPFloat's nearest-even with p significant bits, as float32 bits: what it makes of a NaN included.
uint32_t CpFloatBits(int p, int min_exponent, int max_exponent, uint32_t bits);

// torchao's stochastic rounding to bf16, as float32 bits before the last conversion.
uint32_t TorchaoBits(uint32_t bits, uint32_t random);

// bitsandbytes' search in the sorted values of its map; the index that it returns.
int BitsAndBytesIndex(const std::vector<double>& map, float x);

// To E8M0: |x| toward zero or up (CUDA), and nearest as PyTorch does it.
uint32_t CudaE8m0(uint32_t bits, bool up, bool saturate);
uint32_t CudaE8m0FromDouble(uint64_t bits, bool up, bool saturate);
uint32_t TorchE8m0(uint32_t bits);

}  // namespace reference
