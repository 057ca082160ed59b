// Update rule master-fp16-scaled: keeps the weights a second time, in fp16 with scales.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/internal/update_method.h"

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

class MasterFp16Scaled final : public UpdateMethod {
 public:
  constexpr MasterFp16Scaled()
      : UpdateMethod({.state = RuleState::kWords, .has_scope = true, .has_scales = true}) {}

  EncodePlan OwnPlan(const UpdateRule&, const FormatSpec&) const override {
    return WeightPlan(kFp16);
  }

  void Start(const UpdateStart& start) const override {
    const std::span<uint16_t> words = start.state.words.Span();
    const std::span<float> scales = start.state.scales.Span();
    const EncodePlan to_fp16 = WeightPlan(kFp16);
    const auto load = [&](ElementRange block, double* x) {
      for (size_t i = 0; i < block.count; ++i)
        x[i] = static_cast<double>(start.initial[block.begin + i]);
    };
    for (size_t g = 0; g < start.groups.Count(); ++g) {
      const ElementRange range = start.groups.At(g);
      const float scale = ScaleOfGroup(range, load);
      scales[g] = scale;
      ForEachBlock(range.count, [&](size_t offset, size_t count) {
        const size_t begin = range.begin + offset;
        std::array<double, kSumBlock> x{};
        load({begin, count}, x.data());
        StoreScaled(to_fp16, x.data(), count, scale, words.data() + begin);
        LoadScaled(words.data() + begin, count, scale, x.data());
        RoundF64Serial(start.plan, x.data(), count, start.weights.data() + begin);
      });
    }
  }

  bool HasFiniteWords(const float*, const uint16_t* words, size_t n) const override {
    bool finite = true;
    for (size_t i = 0; i < n; ++i) finite = finite && (words[i] & 0x7C00) != 0x7C00;
    return finite;
  }

  // A block may have several scales.
  void LoadWeights(const KeptWeights& kept, ElementRange block, double* out) const override {
    std::array<float, kSumBlock> h{};
    DecodeSerial(kFp16, kept.state.words.View().data + block.begin, block.count, h.data());
    const float* const scales = kept.state.scales.View().data;
    const size_t cols = kept.weights.cols;
    const bool one = kept.rule.scope.granularity == Granularity::kTensor;
    for (size_t i = 0; i < block.count; ++i) {
      const size_t at = block.begin + i;
      const size_t group = one ? 0 : kept.rule.scope.Index(at / cols, at % cols, cols);
      out[i] = static_cast<double>(scales[group]) * static_cast<double>(h[i]);
    }
  }

  GroupResult StepGroup(const UpdateJob& job, const UpdateGroup& group) const override {
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
};

}  // namespace

const UpdateMethod& MasterFp16ScaledMethod() {
  static constexpr MasterFp16Scaled kMethod;
  return kMethod;
}

}  // namespace numsim
