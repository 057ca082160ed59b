#include "tests/arith/operand_codes.h"

#include <algorithm>

namespace numsim {

std::vector<uint32_t> EdgeCodes(const oracle::Format& f) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << f.bits) - 1);
  const uint32_t sign = f.signs == oracle::Signs::kNone ? 0 : uint32_t{1} << (f.bits - 1);
  const uint32_t binade = uint32_t{1} << f.mantissa_bits;
  const uint32_t one = static_cast<uint32_t>(f.bias) * binade;
  std::vector<uint32_t> codes = {0, f.max_code - 1, f.max_code, f.max_code / 2};
  for (uint32_t i = 1; i <= 3; ++i) codes.push_back(i);
  // The ends of the lowest binades, of those around 1 and of some on the way up.
  std::vector<uint32_t> starts = {binade, 2 * binade, f.max_code - binade + 1};
  for (int i = -3; i <= 3; ++i) starts.push_back(one + static_cast<uint32_t>(i) * binade);
  for (uint32_t i = 1; i < 8; ++i) starts.push_back(f.max_code / 8 * i / binade * binade);
  for (uint32_t start : starts) {
    for (uint32_t offset : {0u - 2, 0u - 1, 0u, 1u, binade / 2, binade / 3, binade / 7 * 5}) {
      codes.push_back(start + offset);
    }
  }
  if (f.infinity != oracle::kNoCode) codes.push_back(f.infinity);
  for (const oracle::CodeRange& range : f.nans) {
    codes.insert(codes.end(), {range.first, range.last});
  }
  for (uint32_t canonical : {f.nan_plus, f.nan_minus}) {
    if (canonical != oracle::kNoCode) codes.push_back(canonical);
  }
  for (uint32_t& code : codes) code &= mask;
  const size_t count = codes.size();
  for (size_t i = 0; i < count; ++i) codes.push_back(codes[i] ^ sign);
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return codes;
}

uint32_t RandomCode(oracle::TestRandom& random, const oracle::Format& f, uint32_t near) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << f.bits) - 1);
  const uint32_t mantissa = (uint32_t{1} << f.mantissa_bits) - 1;
  const uint32_t bits = random.Next32() & mask;
  const uint32_t sign_and_mantissa = (uint32_t{1} << (f.bits - 1)) | mantissa;
  switch (random.Below(16)) {
    case 0:
      return near & mask;
    case 1:  // subnormal
      return bits & sign_and_mantissa;
    case 2:  // few bits
      return bits & ~(mantissa >> 2);
    case 3:
    case 4:
    case 5:
    case 6:  // the same exponent, or one nearby
      return (near ^ (bits & sign_and_mantissa)) & mask;
    case 7:
    case 8:
    case 9:
      return (near ^ (bits & (sign_and_mantissa | 3 * (mantissa + 1)))) & mask;
    default:
      return bits;
  }
}

}  // namespace numsim
