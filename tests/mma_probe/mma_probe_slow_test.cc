// The probe on simulated units of every mode, and on faulty ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ostream>

#include "numsim/formats/format_table.h"
#include "numsim/mma_probe/mma_probe.h"
#include "tests/mma_probe/simulated_units.h"

namespace numsim {
namespace {

struct KnownUnit {
  std::string mode, a, b;
};
void PrintTo(const KnownUnit& unit, std::ostream* out) {
  *out << unit.mode << " on " << unit.a << " x " << unit.b;
}

// Every row of the table with every format that it names, against itself. The probe asks for products
// without scales of blocks.
std::vector<KnownUnit> UnitsOfTheTable() {
  std::vector<KnownUnit> units;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (IsBlockScaled(row.mode)) continue;
    std::string_view rest = row.operands;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(", "), rest.size());
      const std::string format(rest.substr(0, end));
      units.push_back({std::string(row.name), format, format});
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
  }
  return units;
}

// The mode, or modes that give the same bits on all that was asked, the known one among them or
// equal to the first on products of their own.
void ExpectFound(const KnownUnit& known) {
  const AccumulationMode mode = ParseAccumulationMode(known.mode);
  const FormatSpec a = ParseFormat(known.a).spec, b = ParseFormat(known.b).spec;
  const MmaProbe probe = ProbeUnit(SimulatedUnit(mode, a, b), {.products = 1000});
  ASSERT_FALSE(probe.modes.empty()) << FoundText(probe);
  EXPECT_EQ(probe.Same(), probe.Compared());
  if (probe.modes[0] == mode) return;
  const TensorCore found = SimulatedUnit(probe.modes[0], a, b);
  const TensorCore right = SimulatedUnit(mode, a, b);
  for (const std::string& kind : ProbeKinds(a, b)) {
    for (const size_t inner : {48, 512}) {
      for (uint64_t i = 1000000; i < 1000002; ++i) {
        const ProbeAnswer x = Ask(found, RandomBlock(kind, a, b, inner, i));
        const ProbeAnswer y = Ask(right, RandomBlock(kind, a, b, inner, i));
        for (size_t d = 0; d < x.block.Dots(); ++d) {
          if (std::isnan(x.Out(d)) && std::isnan(y.Out(d))) continue;
          ASSERT_EQ(x.Out(d), y.Out(d)) << FoundText(probe) << ", " << kind << ", " << inner;
        }
      }
    }
  }
}

class MmaProbeOfKnown : public testing::TestWithParam<KnownUnit> {};

TEST_P(MmaProbeOfKnown, FindsTheRule) { ExpectFound(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Table, MmaProbeOfKnown, testing::ValuesIn(UnitsOfTheTable()));

INSTANTIATE_TEST_SUITE_P(Others,
                         MmaProbeOfKnown,
                         testing::Values(KnownUnit{"exact", "e4m3fn", "e5m2"},
                                         KnownUnit{"exact", "bf16", "bf16"},
                                         KnownUnit{"fp64", "bf16", "bf16"},
                                         KnownUnit{"fp64", "fp16", "fp16"},
                                         KnownUnit{"fp32", "bf16", "bf16"},
                                         KnownUnit{"fp32", "e4m3fn", "e4m3fn"},
                                         KnownUnit{"fp32:unfused", "tf32", "tf32"},
                                         KnownUnit{"fp16", "fp16", "fp16"},
                                         KnownUnit{"bf16", "e4m3fn", "e4m3fn"},
                                         KnownUnit{"fp32-chunked:24", "bf16", "bf16"},
                                         KnownUnit{"fp32-chunked:256", "e5m2", "e5m2"},
                                         KnownUnit{"trunc:1,3", "e5m2", "e5m2"},
                                         KnownUnit{"trunc:33,7,77", "e5m2", "e5m2"},
                                         KnownUnit{"trunc:11,20", "bf16", "bf16"},
                                         KnownUnit{"trunc:19,61,122", "fp16", "fp16"},
                                         KnownUnit{"trunc:13,128,256", "e4m3fn", "e4m3fn"},
                                         KnownUnit{"trunc:27,16,16", "fp16", "fp16"},
                                         KnownUnit{"trunc:40,1", "bf16", "bf16"},
                                         KnownUnit{"trunc:14,32", "e4m3fn", "e4m3fn"}));

MmaProbe ProbeOf(const char* mode, const char* a, const char* b) {
  return ProbeUnit(
      SimulatedUnit(ParseAccumulationMode(mode), ParseFormat(a).spec, ParseFormat(b).spec),
      {.products = 2000});
}

TEST(MmaProbe, SeesRoundingDownAndFlushing) {
  const MmaProbe down = ProbeOf("cdna3-fp8", "e4m3fnuz", "e4m3fnuz");
  EXPECT_EQ(down.modes.at(0), ParseAccumulationMode("cdna3-fp8"));
  EXPECT_EQ(down.seen.cut, CutDirection::kDown);
  EXPECT_EQ(down.seen.result_cut, CutDirection::kNearest);
  const MmaProbe flushed = ProbeOf("cdna2-bf16-2", "bf16", "bf16");
  EXPECT_EQ(flushed.modes.at(0), ParseAccumulationMode("cdna2-bf16-2"));
  EXPECT_EQ(flushed.seen.flushes_subnormals, true);
}

TEST(MmaProbe, IntegersAreAddedExactly) {
  const MmaProbe probe = ProbeOf("exact", "int8", "int8");
  EXPECT_EQ(FoundText(probe), "exact");
  EXPECT_TRUE(probe.seen.integers);
}

// Changes what a unit that follows trunc:25,16 gives.
template <class Change>
TensorCore Changed(const char* name, const Change& change) {
  TensorCore unit = SimulatedUnit(ParseAccumulationMode("hopper-bf16"), kBf16, kBf16);
  unit.name = name;
  unit.multiply =
      [inner_unit = unit.multiply, change](
          std::span<const float> a, std::span<const float> b, size_t inner, std::span<float> out) {
        inner_unit(a, b, inner, out);
        for (float& x : out) change(inner, x);
      };
  return unit;
}

// One bit in one of the larger inner dimensions.
TEST(MmaProbe, OneWrongBitContradictsARule) {
  const TensorCore unit = Changed("wrong", [](size_t inner, float& x) {
    if (inner == 512 && x > 1e6f) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ 1);
  });
  const MmaProbe probe = ProbeUnit(unit, {.products = 2000});
  EXPECT_TRUE(probe.modes.empty());
  EXPECT_LT(probe.Same(), probe.Compared());
}

TEST(MmaProbe, ReportsNanBitsThatDiffer) {
  const TensorCore unit = Changed("other NaN", [](size_t, float& x) {
    if (x != x) x = std::bit_cast<float>(0xFFC00000u);
  });
  const MmaProbe probe = ProbeUnit(unit, {.products = 2000});
  EXPECT_EQ(probe.modes.at(0), ParseAccumulationMode("hopper-bf16"));
  EXPECT_FALSE(probe.nan_bits_as_mode);
  const std::vector<std::string> lines = ProbeLines(probe);
  EXPECT_NE(std::find(lines.begin(), lines.end(), "NaN results: FFC00000"), lines.end());
}

}  // namespace
}  // namespace numsim
