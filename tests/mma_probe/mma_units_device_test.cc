// Hopper's instructions against the modes that were measured of them, bit for bit.
#include "numsim/mma_probe/internal/mma_units_device.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "tests/support/device_test.h"

namespace numsim {
namespace {

// Odd numbers of rows: tiles of 16 x 8 and 64 x 8 with rows beyond the matrix.
constexpr size_t kRowsA = 77, kRowsB = 21;

struct Case {
  const char* unit;
  const char* mode;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.unit; }

struct Operand {
  std::vector<float> values;
  std::vector<uint8_t> codes;
};

// Values on the grid, with exponents -6..5 and zeros; integers for int8.
Operand MakeOperand(const FormatSpec& format, size_t elements, uint64_t stream) {
  const EncodePlan plan = MakeEncodePlan(format, {}, Overflow::kSaturate);
  const size_t bytes = static_cast<size_t>(format.StorageBytes());
  Operand operand;
  for (size_t i = 0; i < elements; ++i) {
    const uint32_t word = RandomWord({11, stream}, i);
    const float significand = 1 + std::ldexp(static_cast<float>(word & 0xFFFF), -16);
    const int exponent = static_cast<int>(word >> 16 & 0xFF) % 12 - 6;
    const float sign = word >> 31 != 0 ? -1.0f : 1.0f;
    float value = (word >> 24 & 0xF) == 0 ? 0.0f : sign * std::ldexp(significand, exponent);
    if (format.sign == Sign::kTwosComplement) value *= 2;
    const uint32_t code = EncodeF32(plan, std::bit_cast<uint32_t>(value), 0);
    operand.values.push_back(Decode(format, code));
    const uint32_t stored = bytes == 4 ? std::bit_cast<uint32_t>(operand.values.back()) : code;
    for (size_t byte = 0; byte < bytes; ++byte) {
      operand.codes.push_back(static_cast<uint8_t>(stored >> (8 * byte)));
    }
  }
  return operand;
}

const MmaUnit* Find(const std::string& name) {
  for (const MmaUnit& unit : MmaUnits()) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

class MmaUnitsDevice : public DeviceTestOf<Case> {
 protected:
  void ExpectRule(const MmaUnit& unit, const AccumulationMode& mode, size_t inner) {
    const Operand a = MakeOperand(unit.a, kRowsA * inner, 2 * inner);
    const Operand b = MakeOperand(unit.b, kRowsB * inner, 2 * inner + 1);
    const Buffer<uint8_t> device_a = CopyAt(a.codes, place()), device_b = CopyAt(b.codes, place());
    Buffer<float> out(place(), kRowsA * kRowsB);
    device_memory::FillBytes(out.View().data, 0xAB, out.View().Bytes(), stream());
    MultiplyByUnit(unit, device_a.View(), device_b.View(), kRowsA, kRowsB, inner, out.View());
    const std::vector<float> got = ToVector(out.View());
    std::vector<float> expected(got.size());
    Gemm({.format = unit.a, .values = a.values, .rows = kRowsA, .inner = inner},
         {.format = unit.b, .values = b.values, .rows = kRowsB, .inner = inner},
         mode,
         expected);
    size_t differ = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(expected[i])) continue;
      if (++differ <= 3) {
        ADD_FAILURE() << unit.name << ", inner " << inner << ", element " << i / kRowsB << ", "
                      << i % kRowsB << ": " << got[i] << ", expected " << expected[i];
      }
    }
    EXPECT_EQ(differ, 0u) << "of " << got.size();
  }
};

TEST_P(MmaUnitsDevice, FollowsItsRule) {
  if (!Device().IsHopper()) GTEST_SKIP() << "the rules are Hopper's, this is " << Device().name;
  const MmaUnit* unit = Find(GetParam().unit);
  ASSERT_NE(unit, nullptr);
  const std::string unavailable = MmaUnavailable(*unit);
  if (!unavailable.empty()) GTEST_SKIP() << unavailable;
  const AccumulationMode mode = ParseAccumulationMode(GetParam().mode);
  for (const size_t steps : {1, 2, 5, 16}) ExpectRule(*unit, mode, steps * unit->InnerStep());
}

INSTANTIATE_TEST_SUITE_P(Measured,
                         MmaUnitsDevice,
                         testing::Values(Case{"mma.sync.m16n8k16 bf16 x bf16", "hopper-bf16"},
                                         Case{"mma.sync.m16n8k16 fp16 x fp16", "hopper-fp16"},
                                         Case{"mma.sync.m16n8k32 int8 x int8", "exact"},
                                         Case{"mma.sync.m16n8k32 e4m3fn x e4m3fn",
                                              "hopper-mma-fp8"},
                                         Case{"wgmma.m64n8k16 bf16 x bf16", "hopper-bf16"},
                                         Case{"wgmma.m64n8k16 fp16 x fp16", "hopper-fp16"},
                                         Case{"wgmma.m64n8k32 int8 x int8", "exact"},
                                         Case{"wgmma.m64n8k32 e4m3fn x e4m3fn", "hopper-fp8-fast"},
                                         Case{"wgmma.m64n8k32 e4m3fn x e5m2", "hopper-fp8-fast"},
                                         Case{"wgmma.m64n8k32 e5m2 x e4m3fn", "hopper-fp8-fast"}));

// Reported by others or by nobody: mma.sync of other fp8 pairs, tf32, e5m2 x e5m2.
INSTANTIATE_TEST_SUITE_P(Expected,
                         MmaUnitsDevice,
                         testing::Values(Case{"mma.sync.m16n8k8 tf32 x tf32", "hopper-tf32"},
                                         Case{"mma.sync.m16n8k32 e4m3fn x e5m2", "hopper-mma-fp8"},
                                         Case{"mma.sync.m16n8k32 e5m2 x e4m3fn", "hopper-mma-fp8"},
                                         Case{"mma.sync.m16n8k32 e5m2 x e5m2", "hopper-mma-fp8"},
                                         Case{"wgmma.m64n8k8 tf32 x tf32", "hopper-tf32"},
                                         Case{"wgmma.m64n8k32 e5m2 x e5m2", "hopper-fp8-fast"}));

using MmaUnitsOfDevice = DeviceTest;

TEST_F(MmaUnitsOfDevice, NothingIsWrittenForNoRows) {
  const MmaUnit& unit = MmaUnits()[0];
  if (!MmaUnavailable(unit).empty()) GTEST_SKIP() << MmaUnavailable(unit);
  const std::vector<float> before(64, 7.0f);
  Buffer<float> memory = CopyAt(before, place());
  const Buffer<uint8_t> rows = CopyAt(std::vector<uint8_t>(32 * 8), place());
  const MatrixSpan<float> nothing = memory.View().Columns(0, 0);
  MultiplyByUnit(unit, {}, rows.View(), 0, 8, unit.InnerStep(), nothing);
  MultiplyByUnit(unit, rows.View(), {}, 8, 0, unit.InnerStep(), nothing);
  EXPECT_EQ(ToVector(memory.View()), before);
}

}  // namespace
}  // namespace numsim
