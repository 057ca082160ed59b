// Nearest-even to int8 has a way of its own: every float32 input on every backend, against the
// scalar rule.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/quantize.h"
#include "numsim/rounding/encode.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr uint64_t kInputs = uint64_t{1} << 32;
constexpr size_t kBlock = size_t{1} << 20;

// Calls check(values, codes) with every float32, a block at a time, and the rule's codes of them.
template <typename Check>
void ForEveryBlock(const Check& check) {
  const EncodePlan plan = MakeEncodePlan(kInt8, {}, Overflow::kSaturate);
  std::vector<float> values(kBlock);
  std::vector<uint8_t> codes(kBlock);
  for (uint64_t first = 0; first < kInputs; first += kBlock) {
    ParallelFor(kBlock, 4096, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const uint32_t bits = static_cast<uint32_t>(first + i);
        values[i] = std::bit_cast<float>(bits);
        codes[i] = static_cast<uint8_t>(EncodeF32(plan, bits, 0));
      }
    });
    WithEachBackend([&] {
      if (!UsesScalarReference()) check(plan, values, codes);  // the reference is the rule
    });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(NearestInt8, EqualsTheRuleForEveryFloat32) {
  const MatrixShape shape{kBlock / 1024, 1024};
  const std::vector<float> one(1024, 1.0f);
  std::vector<uint8_t> out(kBlock);
  ForEveryBlock([&](const EncodePlan& plan,
                    const std::vector<float>& values,
                    const std::vector<uint8_t>& codes) {
    Encode(plan, values, std::span(out), {});
    EXPECT_EQ(out, codes) << "cast";
    const auto quantize = [&](const char* layout) {
      const ScaleLayout of = ParseScaleLayout(layout);
      const auto factors = std::span(one).first(of.Count(shape.rows, shape.cols));
      Quantize(plan, HostMatrix(values, shape), of, factors, std::span(out));
      EXPECT_EQ(out, codes) << layout;
    };
    quantize("tensor");
    quantize("column");
  });
}

}  // namespace
}  // namespace numsim
