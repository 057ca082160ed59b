#include "apps/integer_cast.h"

#include <cstring>

#include "apps/code_array.h"
#include "numsim/base/parallel.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::apps {
namespace {

constexpr size_t kGrain = 4096;

// Returns the integer, rounded to odd if it needs 64 bits.
template <typename Integer>
Unrounded Exact(Integer x) {
  Unrounded result;
  result.negative = x < 0;
  const auto bits = static_cast<uint64_t>(x);
  const uint64_t magnitude = result.negative ? 0 - bits : bits;
  const bool wide = magnitude >> 63 != 0;
  result.exponent = wide ? 1 : 0;
  result.significand = wide ? (magnitude >> 1) | (magnitude & 1) : magnitude;
  return result;
}

template <typename Integer>
void EncodeAll(const EncodePlan& plan, const Array& in, const ArrayRandom& random, Array& codes) {
  const bool draws = plan.rounding.mode == RoundingMode::kStochastic;
  WithCodes(codes, [&](auto out) {
    using Code = typename decltype(out)::element_type;
    ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        Integer x;
        std::memcpy(&x, in.bytes.data() + i * sizeof(Integer), sizeof(Integer));
        const uint32_t bits =
            draws ? RandomBits(random.stream, random.first_index + i, plan.rounding.random_bits)
                  : 0;
        out[i] = static_cast<Code>(EncodeUnrounded(plan, Exact(x), bits).code);
      }
    });
  });
}

}  // namespace

void EncodeIntegers(const EncodePlan& plan,
                    const Array& in,
                    const ArrayRandom& random,
                    Array& codes) {
  switch (in.type) {
    case ElementType::kI16:
      return EncodeAll<int16_t>(plan, in, random, codes);
    case ElementType::kI32:
      return EncodeAll<int32_t>(plan, in, random, codes);
    case ElementType::kI64:
      return EncodeAll<int64_t>(plan, in, random, codes);
    default:
      return EncodeAll<uint64_t>(plan, in, random, codes);
  }
}

}  // namespace numsim::apps
