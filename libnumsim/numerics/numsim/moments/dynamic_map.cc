#include "numsim/moments/dynamic_map.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/formats/value_table.h"

namespace numsim {
namespace {

using Table = std::array<float, 256>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Table MakeValues(bool is_signed) {
  const std::vector<float> values = DynamicMapValues(is_signed);
  Table table;
  NUMSIM_CHECK(values.size() == table.size(), "{} values", values.size());
  std::copy(values.begin(), values.end(), table.begin());
  return table;
}

// Returns the smallest float32 >= x.
float RoundUp(double x) {
  const float nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, kInfinity) : nearest;
}

// Returns thresholds: thresholds[c] is the smallest float32 whose nearest value has a code >= c.
Table MakeThresholds(const Table& values) {
  Table thresholds;
  thresholds[0] = values[0];
  for (size_t c = 1; c < values.size(); ++c) {
    const double low = static_cast<double>(values[c - 1]), high = static_cast<double>(values[c]);
    thresholds[c] = RoundUp((low + high) / 2);  // the sum is exact
  }
  return thresholds;
}

uint32_t LastNotAboveOf(const Table& bounds, float x) {
  const auto above = std::upper_bound(bounds.begin(), bounds.end(), x);
  return static_cast<uint32_t>(std::max<ptrdiff_t>(above - bounds.begin() - 1, 0));
}

}  // namespace

DynamicMap::Staircase::Staircase(const Table& bounds) {
  // NaNs after the bounds: LastNotAbove reads up to kMore entries beyond its guess, and
  // NaN <= x is false.
  std::fill(bounds_.begin(), bounds_.end(), std::numeric_limits<float>::quiet_NaN());
  std::copy(bounds.begin(), bounds.end(), bounds_.begin());
  for (uint32_t key = 0; key < first_.size(); ++key) {
    const float one_end = std::bit_cast<float>(key << kShift);
    const float other_end = std::bit_cast<float>((key << kShift) + ((1u << kShift) - 1));
    first_[key] = 0;
    if (!std::isfinite(one_end)) {  // an infinity, followed by NaNs
      first_[key] = one_end > 0 ? 255 : 0;
      continue;
    }
    const uint32_t least = LastNotAboveOf(bounds, std::min(one_end, other_end));
    const uint32_t most = LastNotAboveOf(bounds, std::max(one_end, other_end));
    NUMSIM_CHECK(most - least <= kMore, "{} bounds from {} on", most - least, one_end);
    first_[key] = static_cast<uint8_t>(least);
  }
}

inline uint32_t DynamicMap::Staircase::LastNotAbove(float x) const noexcept {
  const uint32_t first = first_[std::bit_cast<uint32_t>(x) >> kShift];
  uint32_t code = first;
  for (uint32_t more = 1; more <= kMore; ++more) {
    code += static_cast<uint32_t>(bounds_[first + more] <= x);
  }
  return code;
}

const DynamicMap& DynamicMap::Get(bool is_signed) {
  static const DynamicMap with_sign(MakeValues(true)), without_sign(MakeValues(false));
  return is_signed ? with_sign : without_sign;
}

DynamicMap::DynamicMap(const Table& values)
    : values_(values), nearest_(MakeThresholds(values)), below_(values) {
  for (size_t c = 0; c + 1 < values.size(); ++c) {
    gaps_[c] = static_cast<double>(values[c + 1]) - static_cast<double>(values[c]);
  }
  gaps_.back() = std::numeric_limits<double>::infinity();
  zero_code_ = static_cast<uint8_t>(LastNotAboveOf(values, 0.0f));
}

void DynamicMap::EncodeNearest(const float* in, size_t n, uint8_t* codes) const noexcept {
  for (size_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(nearest_.LastNotAbove(in[i]));
}

void DynamicMap::EncodeStochastic(
    const float* in, size_t n, int bits, const ArrayRandom& random, uint8_t* codes) const noexcept {
  constexpr size_t kPiece = 1024;
  uint32_t draws[kPiece];
  const int64_t whole = int64_t{1} << bits;
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t count = std::min(kPiece, n - begin);
    RandomBitsSimd({random.stream, random.first_index + begin}, bits, count, draws);
    for (size_t i = 0; i < count; ++i) {
      // Clamps infinities to the ends of the map: they would make the quotient below NaN.
      const float x = std::clamp(in[begin + i], values_.front(), values_.back());
      const uint32_t code = below_.LastNotAbove(x);
      const double above = static_cast<double>(x) - static_cast<double>(values_[code]);
      const auto share = static_cast<int64_t>(above / gaps_[code] * static_cast<double>(whole));
      const uint32_t up = share + int64_t{draws[i]} >= whole;
      codes[begin + i] = static_cast<uint8_t>(code + up);
    }
  }
}

}  // namespace numsim
