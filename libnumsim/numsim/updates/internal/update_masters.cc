// Rules that keep master weights: a second copy of the weights with more bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_kinds.h"

namespace numsim {
namespace {

// Returns the scale for the greatest |x| of a group. load(block, x) writes the x of a block.
template <typename Load>
float ScaleOfGroup(ElementRange range, const Load& load) {
  struct Maximum {
    float value = 0;
    Maximum& operator+=(const Maximum& other) {
      value = std::max(value, other.value);
      return *this;
    }
  };
  const Maximum all = SumOverBlocks<Maximum>(range.count, [&](size_t begin, size_t count) {
    std::array<double, kSumBlock> x;
    std::array<float, kSumBlock> rounded;
    load({range.begin + begin, count}, x.data());
    for (size_t i = 0; i < count; ++i) rounded[i] = static_cast<float>(x[i]);
    const float absmax = AbsmaxOfAll(rounded.data(), count);
    // Infinity and NaN also count as the largest float32.
    constexpr float kLargest = std::numeric_limits<float>::max();
    return Maximum{absmax < kLargest ? absmax : kLargest};
  });
  return MakeScale(kFp16, all.value, ScaleRule::kPow2Ceil).scale;
}

// Writes the codes of x / scale, exact except for the rounding to fp16. Overwrites x.
void StoreScaled(const EncodePlan& to_fp16, double* x, size_t n, float scale, uint16_t* codes) {
  const double inverse = 1 / static_cast<double>(scale);
  for (size_t i = 0; i < n; ++i) x[i] *= inverse;
  EncodeF64Serial(to_fp16, x, n, codes);
}

// Writes s h for a block.
void LoadScaled(const uint16_t* codes, size_t n, float scale, double* x) {
  std::array<float, kSumBlock> h;
  DecodeSerial(kFp16, codes, n, h.data());
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<double>(scale) * static_cast<double>(h[i]);
}

}  // namespace

uint64_t MasterFp32Block(const UpdateJob& job, ElementRange block, float* after) {
  const float* const update = job.update.data() + block.begin;
  float* const master = job.state->values.View().data + block.begin;
  const float lr = job.learning_rate;
  uint64_t saturated = 0;
  constexpr float kGreatest = std::numeric_limits<float>::max();
  for (size_t i = 0; i < block.count; ++i) {
    master[i] = std::clamp(master[i] + lr * update[i], -kGreatest, kGreatest);
    saturated += std::abs(master[i]) > job.largest ? 1 : 0;
  }
  FakeQuantizeSerial(job.plan, master, block.count, after, {});
  return saturated;
}

uint64_t SplitMasterBlock(const UpdateJob& job, ElementRange block, float* after) {
  const float* const weights = job.weights.data() + block.begin;
  const float* const update = job.update.data() + block.begin;
  uint16_t* const remainders = job.state->words.View().data + block.begin;
  const float lr = job.learning_rate;
  uint64_t saturated = 0;
  for (size_t i = 0; i < block.count; ++i) {
    const float wanted = JoinMaster(weights[i], remainders[i]) + lr * update[i];
    saturated += std::abs(wanted) > job.largest ? 1 : 0;
    const SplitWeight split = SplitMaster(wanted);
    after[i] = split.weight;
    remainders[i] = split.remainder;
  }
  return saturated;
}

void StartSplitMaster(std::span<const float> initial,
                      std::span<uint16_t> remainders,
                      std::span<float> weights) {
  for (size_t i = 0; i < initial.size(); ++i) {
    const SplitWeight split = SplitMaster(initial[i]);
    weights[i] = split.weight;
    remainders[i] = split.remainder;
  }
}

void StartMasterFp16(const EncodePlan& plan,
                     const ElementGroups& groups,
                     std::span<const float> initial,
                     std::span<uint16_t> words,
                     std::span<float> scales,
                     std::span<float> weights) {
  const EncodePlan to_fp16 = MakeEncodePlan(kFp16, {}, Overflow::kSaturate);
  const auto load = [&](ElementRange block, double* x) {
    for (size_t i = 0; i < block.count; ++i) x[i] = static_cast<double>(initial[block.begin + i]);
  };
  for (size_t g = 0; g < groups.Count(); ++g) {
    const ElementRange range = groups.At(g);
    const float scale = ScaleOfGroup(range, load);
    scales[g] = scale;
    ForEachBlock(range.count, [&](size_t offset, size_t count) {
      const size_t begin = range.begin + offset;
      std::array<double, kSumBlock> x{};
      load({begin, count}, x.data());
      StoreScaled(to_fp16, x.data(), count, scale, words.data() + begin);
      LoadScaled(words.data() + begin, count, scale, x.data());
      RoundF64Serial(plan, x.data(), count, weights.data() + begin);
    });
  }
}

GroupResult MasterFp16Group(const UpdateJob& job, const UpdateGroup& group) {
  const double lr = static_cast<double>(job.learning_rate);
  float& scale = job.state->scales.View().data[group.index];
  uint16_t* const words = job.state->words.View().data;
  // x = fl64(m + lr u): s h and the product are exact.
  const auto load = [&, old_scale = scale](ElementRange block, double* x) {
    LoadScaled(words + block.begin, block.count, old_scale, x);
    const float* const update = job.update.data() + block.begin;
    for (size_t i = 0; i < block.count; ++i) x[i] += lr * static_cast<double>(update[i]);
  };
  scale = ScaleOfGroup(group.range, load);
  GroupResult result;
  result.outcome.alpha = job.learning_rate;
  result.sums = SumOverBlocks<StepSums>(group.range.count, [&](size_t offset, size_t n) {
    const size_t begin = group.range.begin + offset;
    std::array<double, kSumBlock> x;
    std::array<float, kSumBlock> after;
    load({begin, n}, x.data());
    StoreScaled(job.own_plan, x.data(), n, scale, words + begin);
    LoadScaled(words + begin, n, scale, x.data());
    RoundF64Serial(job.plan, x.data(), n, after.data());
    const float* const before = job.weights.data() + begin;
    StepSums sums = StepSumsOfBlock(before, after.data(), job.update.data() + begin, n);
    const double largest = static_cast<double>(job.largest);
    for (size_t i = 0; i < n; ++i) sums.saturated += std::abs(x[i]) > largest ? 1 : 0;
    std::copy_n(after.data(), n, job.new_weights.data() + begin);
    return sums;
  });
  return result;
}

}  // namespace numsim
