// The probe on units whose rule is known, and on one that follows none.
#include "numsim/mma_probe/mma_probe.h"

#include <gtest/gtest.h>

#include <bit>

#include "numsim/formats/format_table.h"
#include "tests/mma_probe/simulated_units.h"

namespace numsim {
namespace {

MmaProbe ProbeOf(const char* rule, const char* a, const char* b) {
  return ProbeUnit(
      SimulatedUnit(ParseAccumulationMode(rule), ParseFormat(a).spec, ParseFormat(b).spec),
      {.products = 2000});
}

// Every fact of a Hopper tensor core that [Hopper-measured] states.
TEST(MmaProbe, SeesHopperBf16) {
  const MmaProbe probe = ProbeOf("hopper-bf16", "bf16", "bf16");
  EXPECT_EQ(FoundText(probe),
            "trunc:25,16 (hopper-bf16, hopper-fp16, blackwell-fp16, blackwell-bf16)");
  EXPECT_EQ(probe.modes.size(), 1u);
  EXPECT_EQ(probe.Same(), probe.Compared());
  EXPECT_GE(probe.Compared(), 2000u);
  const UnitObservations& seen = probe.seen;
  EXPECT_EQ(seen.kept_bits, 25);
  EXPECT_FALSE(seen.kept_bits_at_least);
  EXPECT_EQ(seen.cut, CutDirection::kTowardZero);
  EXPECT_EQ(seen.result_bits, 23);
  EXPECT_EQ(seen.result_cut, CutDirection::kTowardZero);
  EXPECT_EQ(seen.together.size(), 16u);
  EXPECT_EQ(seen.chunk, 16u);
  EXPECT_FALSE(seen.promotion);
  EXPECT_EQ(seen.flushes_subnormals, false);
  EXPECT_EQ(seen.normalises_subnormals, false);
  EXPECT_EQ(seen.least_bit, -133 - 25);
  EXPECT_FALSE(seen.least_bit_at_most);
  EXPECT_EQ(seen.nans, std::vector<uint32_t>(3, 0x7FFFFFFF));
  EXPECT_TRUE(probe.nan_bits_as_mode);
  EXPECT_EQ(seen.cancelled_zero, 0u);
}

TEST(MmaProbe, SeesFewBitsAndPromotion) {
  const MmaProbe probe = ProbeOf("hopper-fp8", "e4m3fn", "e5m2");
  EXPECT_EQ(FoundText(probe), "trunc:13,32,128 (hopper-fp8)");
  EXPECT_EQ(probe.modes.size(), 1u);
  EXPECT_EQ(probe.seen.kept_bits, 13);
  EXPECT_EQ(probe.seen.result_bits, 13);
  EXPECT_EQ(probe.seen.promotion, 128u);
}

TEST(MmaProbe, SeesTheOrderOfBytePairs) {
  const MmaProbe probe = ProbeOf("hopper-mma-fp8", "e4m3fn", "e4m3fn");
  EXPECT_EQ(FoundText(probe), "trunc:25,16,32 by byte pairs (hopper-mma-fp8)");
  const std::vector<size_t> pairs = {0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29};
  EXPECT_EQ(probe.seen.together, pairs);
  EXPECT_EQ(probe.seen.promotion, 32u);
}

// Rules that no name gives away.
TEST(MmaProbe, FindsParametersWithoutAName) {
  EXPECT_EQ(FoundText(ProbeOf("trunc:12,32,96", "e4m3fn", "e4m3fn")), "trunc:12,32,96");
  AccumulationMode pairs = ParseAccumulationMode("trunc:11,8,64");
  pairs.order = ProductOrder::kBytePairs;
  const MmaProbe probe = ProbeUnit(SimulatedUnit(pairs, kE4M3fn, kE4M3fn), {.products = 2000});
  EXPECT_EQ(probe.modes, std::vector<AccumulationMode>{pairs});
}

// One bit of one product, in the last block that is asked for.
TEST(MmaProbe, ComparesEveryProduct) {
  const TensorCore right =
      SimulatedUnit(ParseAccumulationMode("hopper-fp8-fast"), kE4M3fn, kE4M3fn);
  size_t calls = 0, wrong = ~size_t{0};
  TensorCore unit = right;
  unit.multiply =
      [&](std::span<const float> a, std::span<const float> b, size_t inner, std::span<float> out) {
        right.multiply(a, b, inner, out);
        if (++calls == wrong) out[77] = -out[77] + 1;
      };
  const MmaProbe clean = ProbeUnit(unit, {.products = 1000});
  EXPECT_EQ(FoundText(clean), "trunc:13,32 (hopper-fp8-fast)");
  wrong = calls;
  calls = 0;
  const MmaProbe probe = ProbeUnit(unit, {.products = 1000});
  EXPECT_EQ(calls, wrong);
  EXPECT_EQ(FoundText(probe), "no rule; closest: trunc:13,32 (hopper-fp8-fast)");
  EXPECT_EQ(probe.Same() + 1, probe.Compared());
}

TEST(MmaProbe, SaysThatNoRuleFitsAPairwiseTree) {
  const MmaProbe probe = ProbeUnit(PairwiseUnit(kE4M3fn, kE4M3fn), {.products = 2000});
  EXPECT_TRUE(probe.modes.empty());
  EXPECT_EQ(FoundText(probe).rfind("no rule; closest: ", 0), 0u) << FoundText(probe);
  EXPECT_LT(probe.Same(), probe.Compared());
  EXPECT_GT(probe.Same(), 0u);
}

TEST(ProbeBlocks, ArePureFunctionsOfTheirArguments) {
  for (const std::string& kind : ProbeKinds(kBf16, kBf16)) {
    const ProbeBlock one = RandomBlock(kind, kBf16, kBf16, 32, 7);
    const ProbeBlock two = RandomBlock(kind, kBf16, kBf16, 32, 7);
    const ProbeBlock other = RandomBlock(kind, kBf16, kBf16, 32, 8);
    const auto bits = [](const ProbeBlock& block) {
      std::vector<uint32_t> all;
      for (const float x : block.a) all.push_back(std::bit_cast<uint32_t>(x));
      for (const float x : block.b) all.push_back(std::bit_cast<uint32_t>(x));
      return all;
    };
    EXPECT_EQ(bits(one), bits(two)) << kind;
    EXPECT_NE(bits(one), bits(other)) << kind;
  }
  EXPECT_EQ(ProbeKinds(kBf16, kBf16).size(), 6u);
  EXPECT_EQ(ProbeKinds(kInt8, kInt8).size(), 4u);
}

}  // namespace
}  // namespace numsim
