// Calls of cast/ whose arrays do not fit throw Error.
#include "tests/support/misuse.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "numsim/cast/arithmetic.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"

namespace numsim {
namespace {

const FormatSpec kE4m3fn = ParseFormat("e4m3fn").spec;
const FormatSpec kFp16 = ParseFormat("fp16").spec;
const FormatSpec kFp32 = ParseFormat("fp32").spec;

TEST(CastMisuse, SizesThatDifferThrow) {
  const EncodePlan plan = MakeEncodePlan(kE4m3fn);
  const std::vector<float> in(3);
  const std::vector<double> wide(3);
  std::vector<uint8_t> codes8(2);
  std::vector<uint16_t> codes16(4);
  std::vector<uint32_t> codes32(1);
  std::vector<float> out(5);
  ExpectErrors({
      {[&] { Encode(plan, in, codes8); }, "Encode: 'codes' has 2 elements, expected 3"},
      {[&] { Encode(plan, in, codes16); }, "Encode: 'codes' has 4 elements, expected 3"},
      {[&] { Encode(plan, in, codes32); }, "Encode: 'codes' has 1 elements, expected 3"},
      {[&] { Encode(plan, wide, codes32); }, "Encode: 'codes' has 1 elements, expected 3"},
      {[&] { Decode(kE4m3fn, codes8, out); }, "Decode: 'out' has 5 elements, expected 2"},
      {[&] { Decode(kE4m3fn, codes16, out); }, "Decode: 'out' has 5 elements, expected 4"},
      {[&] { Decode(kE4m3fn, codes32, out); }, "Decode: 'out' has 5 elements, expected 1"},
      {[&] { FakeQuantize(plan, in, out); }, "FakeQuantize: 'out' has 5 elements, expected 3"},
  });
}

TEST(CastMisuse, CodesThatAreTooNarrowThrow) {
  const std::vector<float> in(2);
  std::vector<float> out(2);
  std::vector<uint8_t> codes8(2);
  std::vector<uint16_t> codes16(2);
  ExpectErrors({
      {[&] { Encode(MakeEncodePlan(kFp16), in, codes8); },
       "Encode: 'codes' has codes of 8 bits, and the format has 16"},
      {[&] { Encode(MakeEncodePlan(kFp32), in, codes16); },
       "Encode: 'codes' has codes of 16 bits, and the format has 32"},
      {[&] { Decode(kFp16, codes8, out); },
       "Decode: 'codes' has codes of 8 bits, and the format has 16"},
  });
}

TEST(CastMisuse, RandomBitsAreOneTo32) {
  const auto plan = [](int bits) {
    return MakeEncodePlan(kE4m3fn, {.mode = RoundingMode::kStochastic, .random_bits = bits});
  };
  std::vector<uint32_t> words(3);
  ExpectErrors({
      {[&] { plan(0); }, "MakeEncodePlan: 0 random bits, expected 1 to 32"},
      {[&] { plan(33); }, "MakeEncodePlan: 33 random bits, expected 1 to 32"},
      {[&] { RandomBitsArray({}, 0, words); }, "RandomBitsArray: 0 random bits, expected 1 to 32"},
      {[&] { RandomBitsArray({}, 33, words); },
       "RandomBitsArray: 33 random bits, expected 1 to 32"},
  });
  EXPECT_EQ(plan(32).rounding.random_bits, 32);
}

TEST(CastMisuse, OperandsOfAnotherSizeOrNumberThrow) {
  const EncodePlan plan = MakeEncodePlan(kE4m3fn);
  std::vector<uint8_t> two(2), three(3), flags(1);
  const ArrayOperand a{kE4m3fn, std::span<const uint8_t>(three)};
  const ArrayOperand b{kE4m3fn, std::span<const uint8_t>(two)};
  const ArrayOperand wide{kFp16, std::span<const uint8_t>(three)};
  const std::span<uint8_t> out(three);
  ExpectErrors({
      {[&] { Arithmetic(ArithmeticOp::kAdd, a, b, {}, plan, out); },
       "Arithmetic: 'b' has 2 elements, expected 3"},
      {[&] { Arithmetic(ArithmeticOp::kAdd, b, a, {}, plan, out); },
       "Arithmetic: 'a' has 2 elements, expected 3"},
      {[&] { Arithmetic(ArithmeticOp::kFma, a, a, {}, plan, out); },
       "Arithmetic: 'c' has 0 elements, expected 3"},
      {[&] { Arithmetic(ArithmeticOp::kSquareRoot, a, a, {}, plan, out); },
       "Arithmetic: 'b' has 3 elements, expected 0"},
      {[&] { Arithmetic(ArithmeticOp::kAdd, a, wide, {}, plan, out); },
       "Arithmetic: 'b' has codes of 8 bits, and the format has 16"},
      {[&] { Arithmetic(ArithmeticOp::kAdd, a, a, {}, MakeEncodePlan(kFp16), out); },
       "Arithmetic: 'out' has codes of 8 bits, and the format has 16"},
      {[&] { Arithmetic(ArithmeticOp::kAdd, a, a, {}, plan, out, {}, true, flags); },
       "Arithmetic: 'flags' has 1 elements, expected 3"},
  });
}

}  // namespace
}  // namespace numsim
