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

// The gaps of a table as stochastic rounding needs them. Gap i is from position i to the next one; the
// last one, beyond the end, moves nothing.
struct Gaps {
  double toward[256];   // the end toward zero, from which nu counts
  double inverse[256];  // 1 / (the other end - that one)
  uint8_t up_if_away[256];
  double lowest, highest;

  explicit Gaps(const ValueTable& table)
      : lowest(static_cast<double>(table.values.front())),
        highest(static_cast<double>(table.values.back())) {
    const size_t last = table.values.size() - 1;
    for (size_t i = 0; i < last; ++i) {
      const auto low = static_cast<double>(table.values[i]);
      const auto high = static_cast<double>(table.values[i + 1]);
      const bool from_low = std::abs(low) <= std::abs(high);
      toward[i] = from_low ? low : high;
      inverse[i] = 1 / (from_low ? high - low : low - high);
      up_if_away[i] = from_low;
    }
    toward[last] = highest;
    inverse[last] = 0;
    up_if_away[last] = 1;
  }
};

// Moves positions up by the random bits. Those round away from zero if nu * 2^shift exceeds
// first - step * R. The product in float64 decides if it is farther from that than its error, which is
// below 2^-50 of it; otherwise exact arithmetic does. Without branches, which would be unpredictable.
template <typename Float>
[[gnu::noinline]] void RoundUpBlock(const EncodePlan& plan,
                                    const Gaps& gaps,
                                    const Float* in,
                                    size_t n,
                                    const uint32_t* words,
                                    uint8_t* positions) {
  const table_rule::Threshold of_zero = table_rule::ThresholdOf(plan.rounding, 0);
  const double scale = static_cast<double>(uint64_t{1} << of_zero.shift);
  const auto first = static_cast<double>(of_zero.least);
  const double step = plan.rounding.variant == StochasticVariant::kA ? 1 : 2;
  for (size_t i = 0; i < n; ++i) {
    const auto given = static_cast<double>(in[i]);
    const double below = given < gaps.highest ? given : gaps.highest;  // NaN too
    const double x = below > gaps.lowest ? below : gaps.lowest;
    const size_t position = positions[i];
    const double scaled = (x - gaps.toward[position]) * gaps.inverse[position] * scale;
    const double beyond = scaled - (first - step * static_cast<double>(words[i]));
    const uint8_t up = (beyond > 0) == (gaps.up_if_away[position] != 0);
    positions[i] = static_cast<uint8_t>(position + up);
    if (std::abs(beyond) <= scaled * 0x1p-49) [[unlikely]] {
      const Unrounded exact = ExactFloat64(std::bit_cast<uint64_t>(x));
      positions[i] = static_cast<uint8_t>(
          position + (table_rule::RoundsUp(plan, position, exact, words[i]) ? 1 : 0));
    }
  }
}

template <typename Float>
void EncodeBlocks(
    const EncodePlan& plan, const Float* in, size_t n, uint8_t* codes, const ArrayRandom& random) {
  const ValueTable& table = TableOf(plan.format);
  PositionsOf(table, plan.rounding.mode, in, n, codes);
  if (plan.rounding.mode == RoundingMode::kStochastic) {
    const DefaultFloatEnvironment environment;
    const Gaps gaps(table);
    uint32_t words[kTableBlock];
    for (size_t begin = 0; begin < n; begin += kTableBlock) {
      const size_t count = std::min(kTableBlock, n - begin);
      RandomBitsSimd(
          {random.stream, random.first_index + begin}, plan.rounding.random_bits, count, words);
      RoundUpBlock(plan, gaps, in + begin, count, words, codes + begin);
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
