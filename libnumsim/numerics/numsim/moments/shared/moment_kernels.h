// Loading and storing a moment by kernels (backend/shared/kernel_threads.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "numsim/moments/moment_loss.h"
#include "numsim/moments/shared/moment_element.h"
#include "numsim/random/streams.h"

namespace numsim {

// A moment of n elements and its values in float32.
struct MomentArguments {
  MomentCodec codec;
  StoredMoment stored;
  float* values = nullptr;  // LoadKernel writes, all others read
  size_t n = 0;
  RandomStream random = {};
};

// A scale that is computed again where another one begins. Elements must ascend.
template <class Make>
class ScaleCursor {
 public:
  NUMSIM_INLINE ScaleCursor(const MomentCodec& codec, const Make& make)
      : codec_(codec), make_(make) {}
  NUMSIM_INLINE const MomentScale& At(size_t i) {
    if (i >= end_) {
      scale_ = make_(ScaleIndex(codec_, i));
      end_ = EndOfScale(codec_, i);
    }
    return scale_;
  }

 private:
  const MomentCodec& codec_;
  Make make_;
  MomentScale scale_;
  size_t end_ = 0;
};

// Makes the scales under which a moment is stored now, and those under which it will be.
struct MakeStoredScale {
  const MomentCodec& codec;
  const float* scales;
  NUMSIM_INLINE MomentScale operator()(size_t index) const {
    return StoredScale(codec, scales, index);
  }
};
struct MakeNextScale {
  const MomentCodec& codec;
  const MomentRange* ranges;
  NUMSIM_INLINE MomentScale operator()(size_t index) const {
    if (codec.scaling == MomentScaling::kNone) return {};
    return NextScale(codec, ranges[index]);
  }
};

// Elements per thread, a multiple of eight.
inline constexpr size_t kMomentRun = 16;

struct LoadMomentKernel {
  MomentArguments at;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const size_t begin = thread * kMomentRun;
    const size_t end = begin + kMomentRun < at.n ? begin + kMomentRun : at.n;
    ScaleCursor scales(at.codec, MakeStoredScale{at.codec, at.stored.scales});
    for (size_t i = begin; i < end; ++i) {
      at.values[i] =
          at.codec.exact
              ? reinterpret_cast<const float*>(at.stored.codes)[i]
              : DecodeMoment(at.codec, scales.At(i), LoadCode(at.codec, at.stored.codes, i));
    }
  }
};

// Finds the ranges.
struct RangeKernel {
  MomentArguments at;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    if (at.codec.scaling == MomentScaling::kNone) return;
    size_t i = thread * kMomentRun;
    const size_t end = i + kMomentRun < at.n ? i + kMomentRun : at.n;
    while (i < end) {
      const size_t index = ScaleIndex(at.codec, i);
      const size_t next = EndOfScale(at.codec, i);
      MomentRange range;
      for (; i < end && i < next; ++i) TakeIn(at.values[i], range);
      JoinRange<Env>(range, at.stored.ranges[index]);
    }
  }
};

// Writes the codes, under the scales that follow from the ranges.
struct EncodeMomentKernel {
  MomentArguments at;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const MomentCodec& codec = at.codec;
    const size_t begin = thread * kMomentRun;
    const size_t end = begin + kMomentRun < at.n ? begin + kMomentRun : at.n;
    ScaleCursor scales(codec, MakeNextScale{codec, at.stored.ranges});
    const bool draws = codec.plan.rounding.mode == RoundingMode::kStochastic;
    for (size_t i = begin; i < end; ++i) {
      if (codec.exact) {
        reinterpret_cast<float*>(at.stored.codes)[i] = at.values[i];
        continue;
      }
      const uint32_t draw = draws ? RandomBits(at.random, i, codec.plan.rounding.random_bits) : 0;
      const uint32_t old = LoadCode(codec, at.stored.codes, i);
      const uint32_t code = EncodeMoment(codec, scales.At(i), at.values[i], draw);
      ReplaceCode<Env>(codec, at.stored.codes, i, old, code);
    }
  }
};

// Stores the scales and empties the ranges. A thread per scale.
struct KeepScalesKernel {
  MomentCodec codec;
  StoredMoment stored;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t index) const {
    StoreScale(codec, NextScale(codec, stored.ranges[index]), stored.scales, index);
    stored.ranges[index] = {};
  }
};

// Adds up the loss over parts of kMomentLossPart elements, a thread per part, with the stored values.
struct MomentLossKernel {
  MomentArguments at;
  MomentLoss* parts = nullptr;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t part) const {
    const MomentCodec& codec = at.codec;
    const size_t begin = part * kMomentLossPart;
    const size_t end = begin + kMomentLossPart < at.n ? begin + kMomentLossPart : at.n;
    ScaleCursor scales(codec, MakeStoredScale{codec, at.stored.scales});
    MomentLoss loss;
    for (size_t i = begin; i < end; ++i) {
      const MomentScale& scale = scales.At(i);
      const float stored = codec.exact
                               ? reinterpret_cast<const float*>(at.stored.codes)[i]
                               : DecodeMoment(codec, scale, LoadCode(codec, at.stored.codes, i));
      AddLoss(at.values[i], stored, Saturates(codec, scale, at.values[i]), loss);
    }
    parts[part] = loss;
  }
};

// Stores at.values. run(kernel, threads) runs a kernel after those before it. Requires empty ranges,
// and leaves them empty.
template <class Run>
void StoreMoment(const Run& run, const MomentArguments& at, size_t scales) {
  const size_t threads = (at.n + kMomentRun - 1) / kMomentRun;
  if (scales > 0) run(RangeKernel{at}, threads);
  run(EncodeMomentKernel{at}, threads);
  run(KeepScalesKernel{at.codec, at.stored}, scales);
}

}  // namespace numsim
