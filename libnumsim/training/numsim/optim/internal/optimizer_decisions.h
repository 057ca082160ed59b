// The kernels of a step that add up and decide: a thread per sum, per tensor, or one.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numsim/optim/internal/loss_scaler_rule.h"
#include "numsim/optim/internal/optimizer_kernels.h"

namespace numsim {

// Gradients with a larger norm would overflow when the loss scale is taken out, or when they are
// squared twice.
inline constexpr double kGradientNormLimit = 0x1p127;

// Returns the count after one more step.
NUMSIM_HOST_DEVICE inline StepCount Next(StepCount count, const AdamConstants& adam) {
  ++count.steps;
  count.power1 *= static_cast<double>(adam.beta1);
  count.power2 *= static_cast<double>(adam.beta2);
  return count;
}

// Clears a tensor's plan.
struct BeginKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t tensor) const {
    TensorPlan plan;
    plan.skipped = args.without != nullptr && args.without[tensor] != 0;
    if (args.constants.ranges_with_gradient) Expect(tensor, plan);
    args.tables.plans[tensor] = plan;
  }

 private:
  // Prepares for ranges that are found before the step is decided on (GradientRangeKernel): of states
  // after a step that is taken, whose gradients are multiplied by the loss scale's inverse alone. A
  // step that was not taken has left its ranges.
  NUMSIM_HOST_DEVICE void Expect(size_t tensor, TensorPlan& plan) const {
    StepPlan& step = *args.tables.step;
    if (tensor == 0) step.factor = static_cast<float>(1 / step.scaler.scale);
    const AdamConstants& adam = args.constants.adam;
    const StepCount before = args.tables.states[tensor].count;
    const bool is_adam = args.constants.kind == DirectionKind::kAdam;
    if (is_adam) plan.rates = AdamRatesOf(adam, before, Next(before, adam));
    const TensorRow& row = args.tables.rows[tensor];
    for (int s = 0; s < (is_adam ? 2 : 1); ++s) {
      if (!row.plain[s]) row.moments[s].ranges[0] = {};
    }
  }
};

// Adds the eight partial sums of a block, in order. A thread per sum and block.
struct JoinKernel {
  StepArguments args;
  uint32_t first;  // StepSum of the first sum

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const size_t at = static_cast<size_t>(first) * args.tables.block_count + thread;
    double total = 0;
    for (unsigned lane = 0; lane < kSumLanes; ++lane) {
      total += args.tables.lanes[at * kSumLanes + lane];
    }
    if (at / args.tables.block_count == kRatioSum && args.constants.stable.of_moment) {
      const BlockRow& block = args.tables.blocks[at % args.tables.block_count];
      const double correction =
          static_cast<double>(args.tables.plans[block.tensor].rates.m_correction);
      total = total / (correction * correction);
    }
    args.tables.block_sums[at] = total;
  }
};

// Numbers that a thread loads together before it adds them in order.
inline constexpr uint32_t kTogether = 32;

// Adds the sums of a tensor's blocks, in order: a thread per sum and tensor, and 31 idle ones, because
// a warp would load the numbers of its threads one after the other. From the sum of the gradient it
// also finds its norm, and skips the tensor if that is not finite.
struct TotalKernel {
  static constexpr size_t kThreadsPerSum = 32;
  StepArguments args;
  uint32_t first;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    if (thread % kThreadsPerSum != 0) return;
    const size_t number = thread / kThreadsPerSum;
    const size_t sum = first + number / args.tables.tensor_count;
    const size_t tensor = number % args.tables.tensor_count;
    const TensorRow& row = args.tables.rows[tensor];
    TensorPlan& plan = args.tables.plans[tensor];
    plan.sums[sum] =
        Total(args.tables.block_sums + sum * args.tables.block_count + row.first_block, row.blocks);
    if (sum == kGradientSum && !plan.skipped) SetNorm(plan);
  }

 private:
  // Numbers are loaded while those before them are added.
  static NUMSIM_HOST_DEVICE double Total(const double* blocks, uint32_t count) {
    double next[kTogether], total = 0;
    Load(blocks, count, next);
    NUMSIM_ROLL
    for (uint32_t b = 0; b < count; b += kTogether) {
      double now[kTogether];
      NUMSIM_UNROLL
      for (uint32_t k = 0; k < kTogether; ++k) now[k] = next[k];
      if (b + kTogether < count) Load(blocks + b + kTogether, count - b - kTogether, next);
      NUMSIM_UNROLL
      for (uint32_t k = 0; k < kTogether; ++k) total += now[k];
    }
    return total;
  }
  // Beyond the end are zeros, which change no sum that begins with +0.
  static NUMSIM_HOST_DEVICE void Load(const double* from, uint32_t count, double (&to)[kTogether]) {
    NUMSIM_UNROLL
    for (uint32_t k = 0; k < kTogether; ++k) to[k] = k < count ? from[k] : 0;
  }

  NUMSIM_HOST_DEVICE void SetNorm(TensorPlan& plan) const {
    const double norm = sqrt(plan.sums[kGradientSum]) / args.tables.step->scaler.scale;
    plan.skipped = !(norm < kGradientNormLimit);  // also for NaN
    plan.gradient_norm = plan.skipped ? HUGE_VAL : norm;
  }
};

// Decides, in one thread, whether the step is taken, and by which factor gradients are multiplied.
struct DecideKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t) const {
    const StepConstants& constants = args.constants;
    StepPlan plan;
    plan.scaler = args.tables.step->scaler;
    const double scale = plan.scaler.scale;
    plan.loss_scale = scale;
    double square = 0;
    for (uint32_t begin = 0; begin < args.tables.tensor_count; begin += kTogether) {
      double next[kTogether];
      bool infinite[kTogether];
      NUMSIM_UNROLL
      for (uint32_t k = 0; k < kTogether; ++k) {
        const uint32_t last = args.tables.tensor_count - 1;
        const TensorPlan& tensor = args.tables.plans[begin + k < last ? begin + k : last];
        next[k] = tensor.sums[kGradientSum];
        if (tensor.skipped || begin + k > last) next[k] = 0;
        infinite[k] = tensor.gradient_norm == HUGE_VAL;
      }
      NUMSIM_UNROLL
      for (uint32_t k = 0; k < kTogether; ++k) {
        square += next[k];
        plan.finite = plan.finite && !infinite[k];
      }
    }
    plan.gradient_norm = sqrt(square) / scale;
    plan.skipped = !UpdateLossScale(constants.scaler, plan.finite, plan.scaler);
    plan.moves = !plan.skipped && (plan.finite || constants.scaler.kind == LossScaling::kTensor);
    if (!plan.moves) {
      plan.gradient_norm = HUGE_VAL;
    } else if (constants.clip_norm > 0 && plan.gradient_norm > constants.clip_norm) {
      plan.clip_factor = constants.clip_norm / plan.gradient_norm;
    }
    plan.factor = static_cast<float>(plan.clip_factor / scale);
    *args.tables.step = plan;
  }
};

// Decides on learning rate and decay of a tensor, from its RMS if that clips, and on whether the
// weights take the step, if that can be told without a look at all elements.
struct SettleKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t tensor) const {
    TensorPlan& plan = args.tables.plans[tensor];
    if (!plan.moves) return;
    SetRates(tensor, plan);
    const TensorState& state = args.tables.states[tensor];
    if (args.only_writer && state.weights_bits != kNotKnown) {
      plan.weights_bits = state.weights_bits;
      plan.state_bits = state.state_bits;
    }
    if (Greater(plan.weights_bits, plan.state_bits) >= 0x7F800000u) {
      plan.verdict = WeightVerdict::kRefuse;
      return;
    }
    if (!StaysFinite(tensor, plan)) return;
    if (plan.learning_rate == 0) {
      plan.verdict = WeightVerdict::kZero;
    } else if (Moves(static_cast<uint32_t>(tensor), plan)) {
      plan.verdict = WeightVerdict::kGo;
    }
  }

 private:
  NUMSIM_HOST_DEVICE double RmsOf(size_t tensor) const {
    double square = args.tables.plans[tensor].sums[kRatioSum];
    uint64_t elements = args.tables.rows[tensor].n;
    if (args.constants.stable.global) {
      square = 0;
      elements = 0;
      for (uint32_t i = 0; i < args.tables.tensor_count; ++i) {
        if (!args.tables.plans[i].moves) continue;
        square += args.tables.plans[i].sums[kRatioSum];
        elements += args.tables.rows[i].n;
      }
    }
    return elements == 0 ? 0 : sqrt(square / static_cast<double>(elements));
  }

  NUMSIM_HOST_DEVICE void SetRates(size_t tensor, TensorPlan& plan) const {
    const StableOptions& stable = args.constants.stable;
    double ratio = 1;
    if (args.constants.clips_by_rms) {
      plan.rms = RmsOf(tensor);
      if (plan.rms > stable.threshold) {
        // The bound keeps learning rate and decay representable; no useful step reaches it.
        ratio = plan.rms / stable.threshold;
        if (ratio > 0x1p100) ratio = 0x1p100;
      }
    }
    plan.learning_rate = static_cast<float>(args.learning_rate / ratio);
    const double decay = args.constants.weight_decay * (stable.clipped_decay ? 1 : ratio);
    plan.decay = args.tables.rows[tensor].decays ? static_cast<float>(decay) : 0;
  }

  // Returns a bound of the magnitudes of a state when it was stored, infinity if there is none.
  NUMSIM_HOST_DEVICE double Bound(size_t tensor, int s, uint32_t bits) const {
    if (bits >= 0x7F800000u) return HUGE_VAL;
    return Stored(tensor, s, static_cast<double>(std::bit_cast<float>(bits)));
  }
  // Returns a bound of what is stored for magnitudes up to x.
  NUMSIM_HOST_DEVICE double Stored(size_t tensor, int s, double x) const {
    if (args.tables.rows[tensor].plain[s]) return x;
    return 2 * x + static_cast<double>(args.constants.codecs[s].least);
  }

  // Returns true if it is certain that every direction and every update with decay is finite.
  NUMSIM_HOST_DEVICE bool StaysFinite(size_t tensor, const TensorPlan& plan) const {
    constexpr double kSlack = 1.001, kLimit = 1e38;
    const StepConstants& constants = args.constants;
    const TensorState& state = args.tables.states[tensor];
    const double gradient =
        kSlack * sqrt(plan.sums[kGradientSum]) * static_cast<double>(args.tables.step->factor);
    const bool adam = constants.kind == DirectionKind::kAdam;
    const AverageRates of_m = adam ? plan.rates.m : constants.of_m;
    const double old_m = Bound(tensor, 0, state.m_bits);
    double m = kSlack * (fabs(static_cast<double>(of_m.keep)) * old_m +
                         fabs(static_cast<double>(of_m.share)) * gradient);
    if (constants.from_stored) m = Stored(tensor, 0, m);
    double direction = m;
    if (adam) {
      // No square overflows, and no product of an infinity and zero can occur.
      if (!(gradient < 1e15) || !(Bound(tensor, 1, state.v_bits) < 1e30)) return false;
      const double mean = m / static_cast<double>(plan.rates.m_correction);
      if (!(mean < kLimit)) return false;
      direction = kSlack * mean / static_cast<double>(plan.rates.denominator.epsilon);
    } else if (constants.kind == DirectionKind::kLion) {
      if (!(old_m < kLimit && gradient < kLimit)) return false;
      direction = 1;
    }
    const double weight = static_cast<double>(std::bit_cast<float>(plan.weights_bits)) +
                          static_cast<double>(std::bit_cast<float>(plan.state_bits));
    return m < kLimit &&
           direction + kSlack * fabs(static_cast<double>(plan.decay)) * weight < kLimit;
  }

  // Returns true if one of the first elements moves.
  NUMSIM_HOST_DEVICE bool Moves(uint32_t tensor, const TensorPlan& plan) const {
    switch (args.constants.kind) {
      case DirectionKind::kAdam:
        return MovesAs<DirectionKind::kAdam>(tensor, plan);
      case DirectionKind::kSgd:
        return MovesAs<DirectionKind::kSgd>(tensor, plan);
      case DirectionKind::kLion:
        return MovesAs<DirectionKind::kLion>(tensor, plan);
    }
    return false;
  }
  template <DirectionKind kKind>
  NUMSIM_HOST_DEVICE bool MovesAs(uint32_t tensor, const TensorPlan& plan) const {
    constexpr size_t kLook = 8;
    const TensorRow& row = args.tables.rows[tensor];
    TensorElements<kKind, false> elements(args, tensor, row, plan);
    for (size_t i = 0; i < kLook && i < row.n; ++i) {
      const RawElement raw = elements.Load(i);
      StepElement e = elements.Advance(raw, i);
      if (args.constants.from_stored) {
        uint32_t draws[2] = {0, 0};
        DrawMoments(elements, i, draws);
        elements.Encode(e, i, draws);
      }
      elements.Direct(raw, e);
      if (elements.Decayed(raw, e.direction) != 0) return true;
    }
    return false;
  }
};

// Counts the step of a tensor that takes it, and computes its rates. `settles`: goes on with
// SettleKernel, which may follow at once unless RMS clips.
struct RatesKernel {
  StepArguments args;
  bool settles;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t tensor) const {
    TensorPlan& plan = args.tables.plans[tensor];
    plan.moves = args.tables.step->moves && !plan.skipped;
    if (!plan.moves) return;
    StepCount& count = args.tables.states[tensor].count;
    const StepCount before = count;
    const AdamConstants& adam = args.constants.adam;
    count = Next(before, adam);
    if (args.constants.kind == DirectionKind::kAdam) {
      plan.rates = AdamRatesOf(adam, before, count);
    }
    if (settles) SettleKernel{args}.template Run<Env>(tensor);
  }
};

// Decides on the tensors that ScanKernel looked at.
struct JudgeKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t tensor) const {
    TensorPlan& plan = args.tables.plans[tensor];
    if (!plan.moves || plan.verdict != WeightVerdict::kUnknown) return;
    if (Greater(plan.direction_bits, plan.decayed_bits) >= 0x7F800000u) {
      plan.verdict = WeightVerdict::kRefuse;
    } else if (plan.decayed_bits == 0 || plan.learning_rate == 0) {
      plan.verdict = WeightVerdict::kZero;
    } else {
      plan.verdict = WeightVerdict::kGo;
    }
  }
};

// Keeps what the next step needs of this one.
struct FinishKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t tensor) const {
    const TensorPlan& plan = args.tables.plans[tensor];
    if (!plan.moves) return;
    TensorState& state = args.tables.states[tensor];
    state.m_bits = plan.m_bits;
    state.v_bits = plan.v_bits;
    if (plan.verdict != WeightVerdict::kGo || args.constants.apart) return;
    state.weights_bits = plan.new_weights_bits;
    state.state_bits = plan.new_state_bits;
  }
};

}  // namespace numsim
