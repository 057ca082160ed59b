#include "apps/integer_cast.h"

#include <cstring>
#include <type_traits>

#include "apps/code_array.h"
#include "numsim/arith/arith.h"
#include "numsim/base/parallel.h"
#include "numsim/random/streams.h"

namespace numsim::apps {
namespace {

constexpr size_t kGrain = 4096;

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
        if constexpr (std::is_signed_v<Integer>) {
          out[i] = static_cast<Code>(FromInt64(x, plan, bits).code);
        } else {
          out[i] = static_cast<Code>(FromUint64(x, plan, bits).code);
        }
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
