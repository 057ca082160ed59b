#include "numsim/cast/shared/table_cast_simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/shared/float_environment.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/formats/value_table.h"
#include "numsim/rounding/shared/float64_bits.h"
#include "numsim/rounding/shared/table_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/cast/shared/table_cast_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Counts the steps that a key exceeds, for tables of at most 16 values: one comparison each.
struct CountEach {
  const int32_t* steps;
  size_t count;

  template <class DI>
  HWY_INLINE hn::Vec<DI> operator()(DI di, hn::Vec<DI> key) const {
    auto position = hn::Zero(di);
    for (size_t i = 0; i < count; ++i) {
      const auto reached = hn::Gt(key, hn::Set(di, steps[i]));
      position = hn::Sub(position, hn::VecFromMask(di, reached));
    }
    return position;
  }
};

// Counts them by a binary search, for larger tables. There are a power of two minus 1 of steps.
struct CountByHalves {
  const int32_t* steps;
  size_t count;

  template <class DI>
  HWY_INLINE hn::Vec<DI> operator()(DI di, hn::Vec<DI> key) const {
    auto position = hn::Zero(di);
    for (size_t half = (count + 1) / 2; half > 0; half /= 2) {
      const auto probe = hn::GatherIndex(di, steps + half - 1, position);
      const auto jump = hn::Set(di, static_cast<int32_t>(half));
      position = hn::Add(position, hn::IfThenElseZero(hn::Gt(key, probe), jump));
    }
    return position;
  }
};

// Writes the positions of n numbers; those of NaN are `of_nan`.
template <class Count>
HWY_NOINLINE void PositionsBy(
    const Count count, uint32_t of_nan, const float* in, size_t n, uint8_t* positions) {
  const hn::ScalableTag<int32_t> di;
  const hn::Rebind<uint8_t, decltype(di)> d8;
  const size_t lanes = hn::Lanes(di);
  const auto convert = [&](const int32_t* from, uint8_t* to) HWY_ATTR {
    const auto bits = hn::LoadU(di, from);
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
    const auto flipped = hn::Xor(bits, hn::Set(di, 0x7FFFFFFF));
    const auto key = hn::IfThenElse(hn::Lt(bits, hn::Zero(di)), flipped, bits);
    const auto is_nan = hn::Gt(magnitude, hn::Set(di, 0x7F800000));
    const auto position = count(di, key);
    const auto result = hn::IfThenElse(is_nan, hn::Set(di, static_cast<int32_t>(of_nan)), position);
    hn::StoreU(hn::DemoteTo(d8, result), d8, to);
  };
  const int32_t* const bits = reinterpret_cast<const int32_t*>(in);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) convert(bits + i, positions + i);
  if (i == n) return;
  int32_t tail_in[HWY_MAX_BYTES / sizeof(int32_t)] = {};
  uint8_t tail_out[HWY_MAX_BYTES / sizeof(int32_t)];
  std::copy(bits + i, bits + n, tail_in);
  convert(tail_in, tail_out);
  std::copy(tail_out, tail_out + (n - i), positions + i);
}

void Positions(const int32_t* steps,
               size_t count,
               uint32_t of_nan,
               const float* in,
               size_t n,
               uint8_t* positions) {
  if (count < 16) return PositionsBy(CountEach{steps, count}, of_nan, in, n, positions);
  PositionsBy(CountByHalves{steps, count}, of_nan, in, n, positions);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(Positions);

namespace {

constexpr size_t kTableBlock = 1024;

// Writes the positions of n float32. Vectors count the steps that a key exceeds, so each step is put
// one lower. Keys that no number exceeds fill the array to a power of two minus 1 of steps.
void PositionsOf(
    const ValueTable& table, RoundingMode mode, const float* in, size_t n, uint8_t* positions) {
  const std::vector<int32_t>& steps = table_rule::StepsOf(table.spec, mode).f32;
  int32_t padded[255];
  const size_t count = std::bit_ceil(steps.size() + 1) - 1;
  std::transform(steps.begin(), steps.end(), padded, [](int32_t step) { return step - 1; });
  std::fill(padded + steps.size(), padded + count, std::numeric_limits<int32_t>::max());
  const auto of_nan = static_cast<uint32_t>(table.values.size() - 1);
  HWY_DYNAMIC_DISPATCH(Positions)(padded, count, of_nan, in, n, positions);
}

void PositionsOf(
    const ValueTable& table, RoundingMode mode, const double* in, size_t n, uint8_t* positions) {
  const std::vector<int64_t>& steps = table_rule::StepsOf(table.spec, mode).f64;
  for (size_t i = 0; i < n; ++i) {
    const int64_t key = table_rule::KeyOf(std::bit_cast<uint64_t>(in[i]));
    const auto reached = std::upper_bound(steps.begin(), steps.end(), key) - steps.begin();
    positions[i] = static_cast<uint8_t>(std::isnan(in[i]) ? steps.size() : size_t(reached));
  }
}

// Returns whether x is rounded from `position` to the next one. The quotient in float64 decides if
// it is farther from the threshold than its error, which is below 2^-51 of it; otherwise exact
// arithmetic does.
bool RoundsUp(
    const EncodePlan& plan, const ValueTable& table, size_t position, double x, uint32_t random) {
  const auto low = static_cast<double>(table.values[position]);
  const auto high = static_cast<double>(table.values[position + 1]);
  const bool from_low = std::abs(low) <= std::abs(high);
  const double t = from_low ? low : high, away = from_low ? high : low;
  const auto [shift, least, or_equal] = table_rule::ThresholdOf(plan.rounding, random);
  const double scaled = (x - t) / (away - t) * static_cast<double>(uint64_t{1} << shift);
  const double beyond = scaled - static_cast<double>(least);
  if (std::abs(beyond) > scaled * 0x1p-50) return (beyond > 0) == from_low;
  return table_rule::RoundsUp(plan, position, ExactFloat64(std::bit_cast<uint64_t>(x)), random);
}

// Moves positions up by the random bits.
template <typename Float>
[[gnu::noinline]] void RoundUpBlock(const EncodePlan& plan,
                                    const ValueTable& table,
                                    const Float* in,
                                    size_t n,
                                    const uint32_t* words,
                                    uint8_t* positions) {
  const size_t last = table.values.size() - 1;
  const auto lowest = static_cast<double>(table.values.front());
  for (size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(in[i]);
    const size_t position = positions[i];
    if (position == last || x <= lowest) continue;  // the ends of the table, and NaN
    if (RoundsUp(plan, table, position, x, words[i]))
      positions[i] = static_cast<uint8_t>(position + 1);
  }
}

template <typename Float>
void EncodeBlocks(
    const EncodePlan& plan, const Float* in, size_t n, uint8_t* codes, const ArrayRandom& random) {
  const ValueTable& table = TableOf(plan.format);
  PositionsOf(table, plan.rounding.mode, in, n, codes);
  if (plan.rounding.mode == RoundingMode::kStochastic) {
    const DefaultFloatEnvironment environment;
    uint32_t words[kTableBlock];
    for (size_t begin = 0; begin < n; begin += kTableBlock) {
      const size_t count = std::min(kTableBlock, n - begin);
      RandomBitsSimd(
          {random.stream, random.first_index + begin}, plan.rounding.random_bits, count, words);
      RoundUpBlock(plan, table, in + begin, count, words, codes + begin);
    }
  }
  for (size_t i = 0; i < n; ++i) codes[i] = table.codes[codes[i]];
}

}  // namespace

void EncodeInTable(const EncodePlan& plan,
                   const float* in,
                   size_t n,
                   uint8_t* codes,
                   const ArrayRandom& random) noexcept {
  EncodeBlocks(plan, in, n, codes, random);
}

void EncodeInTable(const EncodePlan& plan,
                   const double* in,
                   size_t n,
                   uint8_t* codes,
                   const ArrayRandom& random) noexcept {
  EncodeBlocks(plan, in, n, codes, random);
}

}  // namespace numsim
#endif  // HWY_ONCE
