#include "numsim/cast/shared/round_step.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "numsim/arith/shared/exact.h"
#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/cast/internal/cast_device.h"
#include "numsim/cast/internal/nearest_grid.h"
#include "numsim/cast/internal/round_step_simd.h"
#include "numsim/cast/internal/stochastic_grid.h"
#include "numsim/cast/internal/stochastic_step_simd.h"
#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

// Chunks of a parallel loop start at multiples of this, so that each begins with a whole tile of
// random words.
constexpr size_t kGrain = size_t{1} << 14;

Unrounded ValueOf(float x) { return ExactValue(kFp32, std::bit_cast<uint32_t>(x)); }

// Computes one element by the definition, in exact arithmetic.
float RoundOne(const EncodePlan& plan, float base, float direction, float factor, uint32_t random) {
  const Unrounded product = exact::Product(ValueOf(factor), ValueOf(direction)).value;
  const Unrounded sum = exact::Sum(ValueOf(base), product, false).value;
  return Decode(plan.format, EncodeUnrounded(plan, sum, random).code);
}

// True if rounding to odd in float64 and then by the plan equals rounding once. float64 needs two
// bits more than the final rounding looks at. It holds the product of two float32 exactly, and
// neither products nor sums overflow or underflow in it.
bool OddFloat64Suffices(const EncodePlan& plan) {
  const bool stochastic = plan.rounding.mode == RoundingMode::kStochastic;
  const int bits = plan.format.mantissa_bits + 1 + 2 + (stochastic ? plan.rounding.random_bits : 0);
  return bits + plan.format.subnormal_shift <= 53;
}

struct Buffers {
  alignas(64) double base[kPaddedBlock], direction[kPaddedBlock], factor[kPaddedBlock];
  alignas(64) double sum[kPaddedBlock];
};

// Computes the elements in vectors, block by block: the exact product and the sum rounded to odd in
// float64, then the rounding rule. Requires the default floating-point environment.
[[gnu::noinline]] void RoundInVectors(const EncodePlan& plan,
                                      const float* base,
                                      const float* direction,
                                      float factor,
                                      size_t n,
                                      float* out,
                                      const ArrayRandom& random) {
  const OddOperation operation{ArithmeticOp::kFma, false, false};
  Buffers block{};
  std::fill_n(block.factor, kPaddedBlock, static_cast<double>(factor));
  for (size_t begin = 0; begin < n; begin += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - begin);
    for (size_t i = 0; i < count; ++i) {
      block.base[i] = static_cast<double>(base[begin + i]);
      block.direction[i] = static_cast<double>(direction[begin + i]);
    }
    OddResults(operation, block.direction, block.factor, block.base, count, block.sum, nullptr);
    const ArrayRandom advanced = Advance(random, begin);
    RoundF64Serial(plan, block.sum, count, out + begin, advanced);
  }
}

// Serves any plan. Computes in vectors of float64 if they suffice, else in exact arithmetic.
void RoundAny(const EncodePlan& plan,
              const float* base,
              const float* direction,
              float factor,
              size_t n,
              float* out,
              const ArrayRandom& random) {
  if (!UsesScalarReference() && OddFloat64Suffices(plan)) {
    return RoundInVectors(plan, base, direction, factor, n, out, random);
  }
  for (size_t i = 0; i < n; ++i) {
    out[i] = RoundOne(plan, base[i], direction[i], factor, Draw(plan, random, i));
  }
}

// Calls vectors(i), which computes elements from i on up to the vector with the first NaN sum and
// returns their number, and patch(i, count) for elements from there on, until all n are done.
template <typename Patch, typename Vectors>
void RoundWithPatches(size_t n, const Patch& patch, const Vectors& vectors) {
  constexpr size_t kPatch = 64;
  for (size_t i = 0; i < n;) {
    i += vectors(i);
    const size_t count = std::min(kPatch, n - i);
    if (count > 0) patch(i, count);
    i += count;
  }
}

}  // namespace

void RoundStepSerial(const EncodePlan& plan,
                     const float* base,
                     const float* direction,
                     float factor,
                     size_t n,
                     float* out,
                     const ArrayRandom& random) noexcept {
  const DefaultFloatEnvironment environment;
  const auto patch = [&](size_t i, size_t count) {
    const ArrayRandom advanced = Advance(random, i);
    RoundAny(plan, base + i, direction + i, factor, count, out + i, advanced);
  };
  if (UsesScalarReference()) return patch(0, n);
  if (const auto grid = MakeNearestGrid(plan); grid && HasFusedSteps()) {
    return RoundWithPatches(n, patch, [&](size_t i) {
      return RoundStepSimd(*grid, base + i, direction + i, factor, n - i, out + i);
    });
  }
  if (const auto grid = MakeStochasticGrid(plan); grid && HasStochasticSteps()) {
    return RoundWithPatches(n, patch, [&](size_t i) {
      const ArrayRandom advanced = Advance(random, i);
      return StochasticStepSimd(*grid, base + i, direction + i, factor, n - i, out + i, advanced);
    });
  }
  patch(0, n);
}

void RoundFloatStepSerial(const EncodePlan& plan,
                          const float* base,
                          const float* direction,
                          float factor,
                          size_t n,
                          float* out) noexcept {
  const auto patch = [&](size_t begin, size_t count) {
    for (size_t i = begin; i < begin + count; ++i) out[i] = base[i] + factor * direction[i];
    FakeQuantizeSerial(plan, out + begin, count, out + begin, {});
  };
  const std::optional<NearestGrid> grid = MakeNearestGrid(plan);
  if (!grid || UsesScalarReference() || !HasFusedSteps()) return patch(0, n);
  RoundWithPatches(n, patch, [&](size_t i) {
    return RoundFloatStepSimd(*grid, base + i, direction + i, factor, n - i, out + i);
  });
}

void RoundStepOnHost(const EncodePlan& plan,
                     std::span<const float> base,
                     std::span<const float> direction,
                     float factor,
                     std::span<float> out,
                     const ArrayRandom& random) noexcept {
  NUMSIM_CHECK(base.size() == out.size() && direction.size() == out.size(),
               "{} base, {} direction, {} out",
               base.size(),
               direction.size(),
               out.size());
  ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
    const ArrayRandom advanced = Advance(random, begin);
    RoundStepSerial(plan,
                    base.data() + begin,
                    direction.data() + begin,
                    factor,
                    end - begin,
                    out.data() + begin,
                    advanced);
  });
}

void RoundStep(const EncodePlan& plan,
               MatrixSpan<const float> base,
               MatrixSpan<const float> direction,
               float factor,
               MatrixSpan<float> out,
               const ArrayRandom& random) {
  RequireSize(base.Elements(), out.Elements(), "RoundStep", "base");
  RequireSize(direction.Elements(), out.Elements(), "RoundStep", "direction");
  const Place place = OnePlace("RoundStep", {base.place, direction.place, out.place});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      NUMSIM_REQUIRE(HasStepRule(plan), "RoundStep: a device has no step of that plan");
      return cuda::RoundStep(plan, base, direction, factor, out, random);
    }
    if (UsesDevice() && HasStepRule(plan)) {
      OffloadedCall call;
      const MatrixSpan<float> there = call.Room<float>(out.Shape());
      cuda::RoundStep(plan, call.In(base), call.In(direction), factor, there, random);
      return call.Out(there, out);
    }
  }
  RoundStepOnHost(plan, base.Span(), direction.Span(), factor, out.Span(), random);
}

}  // namespace numsim
