// Products whose scales change along the inner dimension, on a device's tensor cores: against the
// processor's, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/device_factor.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr NamedProduct kPairs[] = {{"int8", "int8", "exact"},
                                   {"e4m3fn", "e4m3fn", "hopper-fp8-fast"},
                                   {"e4m3fn", "e5m2", "hopper-fp8-fast"},
                                   {"e5m2", "e4m3fn", "hopper-fp8-fast"},
                                   {"e4m3fn", "e4m3fn", "hopper-fp8"}};

// The scales of an operand: one for `rows` rows x `segment` elements.
struct Blocks {
  size_t rows, segment;
};

enum class Values { kPowers, kAny, kExtreme, kTiny, kHuge };

float ScaleOf(Values values, oracle::TestRandom& random) {
  const int exponent = static_cast<int>(random.Below(40)) - 20;
  const float any = static_cast<float>(std::ldexp(1 + UnitRandom(random), exponent));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kExtremes[] = {0.0f,
                                 0x1p-149f,
                                 0x1p-51f,
                                 0x1p-50f,
                                 0x1p30f,
                                 0x1p31f,
                                 0x1p-126f,
                                 0x1p127f,
                                 3.4e38f,
                                 -0x1p-3f,
                                 1e-40f,
                                 kInfinity,
                                 -0.0f,
                                 NAN};
  switch (values) {
    case Values::kPowers:
      return std::ldexp(1.0f, exponent);
    case Values::kAny:
      return any;
    case Values::kTiny:  // products of two are so small that results are subnormal
      return std::ldexp(1.0f, -70 + exponent / 4);
    case Values::kHuge:
      return std::ldexp(1.0f, 100 + exponent);
    case Values::kExtreme:
      break;
  }
  if (random.Below(3) != 0) return std::ldexp(1.0f, exponent);
  return kExtremes[random.Below(std::size(kExtremes))];
}

// Stores one scale per block, segment by segment or, if `along`, row by row.
void PutBlocks(Factor& x, Blocks blocks, bool along, Values values, oracle::TestRandom& random) {
  const size_t down = (x.rows() + blocks.rows - 1) / blocks.rows;
  const size_t across = (x.inner() + blocks.segment - 1) / blocks.segment;
  std::vector<float> scales(down * across);
  for (float& scale : scales) scale = ScaleOf(values, random);
  x.SetScales(std::move(scales),
              {.row_group = blocks.rows,
               .row_stride = along ? across : 1,
               .segment = blocks.segment < x.inner() ? blocks.segment : 0,
               .segment_stride = along ? 1 : down});
}

class DeviceBlocks : public DeviceTestOf<NamedProduct> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " has no kernel for blocks";
  }

  Factor Left(size_t rows, size_t inner, Spread spread) {
    return Factor::Random(GetParam().FormatA(), rows, inner, spread, Side::kLeft, random_);
  }
  Factor Right(size_t rows, size_t inner, Spread spread) {
    return Factor::Random(GetParam().FormatB(), rows, inner, spread, Side::kRight, random_);
  }

  // hopper-fp8 promotes within longer segments, which the kernel does not.
  bool Serves(size_t segment) const {
    return std::string_view(GetParam().mode) != "hopper-fp8" || segment == 128;
  }

  void ExpectSame(const Factor& a, const Factor& b, bool transposed_a, bool transposed_b) {
    const AccumulationMode mode = GetParam().Rule();
    const std::vector<float> want = HostProduct(a, b, mode);
    const DeviceFactor x(a, transposed_a), y(b, transposed_b);
    for (const Element element : {Element::kFloat32, Element::kBfloat16}) {
      FloatBuffer out(place(), element);
      const FloatSpan result = out.Renew(a.rows(), b.rows());
      Gemm(x.Get(), y.Get(), mode, result);
      EXPECT_TRUE(SameBits(StoredBits(result), BitsOf(want, element), b.rows()))
          << (element == Element::kBfloat16 ? "bf16, " : "")
          << (transposed_a ? "a transposed, " : "") << (transposed_b ? "b transposed" : "")
          << "\na: " << a.Describe() << "\nb: " << b.Describe();
    }
  }

  oracle::TestRandom random_{20261125};
};

struct BlockProduct {
  size_t rows_a, rows_b, inner;
};

// Columns of a tile that share a scale, that do not, and blocks that end within tiles.
constexpr Blocks kOfA[] = {{1, 128}, {128, 128}, {1, 128}, {5, 128}};
constexpr Blocks kOfB[] = {{128, 128}, {1, 128}, {1, 128}, {48, 128}};

TEST_P(DeviceBlocks, EqualTheRuleForEveryShapeOrderAndLayout) {
  constexpr BlockProduct kShapes[] = {{1, 1, 1},
                                      {3, 40, 129},
                                      {64, 32, 256},
                                      {130, 257, 127},
                                      {200, 136, 264},
                                      {129, 300, 640},
                                      {300, 129, 1000}};
  size_t count = 0;
  for (const BlockProduct& shape : kShapes) {
    for (size_t layout = 0; layout < std::size(kOfA); ++layout) {
      Factor a = Left(shape.rows_a, shape.inner, kSpreads[count % std::size(kSpreads)]);
      Factor b = Right(shape.rows_b, shape.inner, kSpreads[(count + 1) % std::size(kSpreads)]);
      PutBlocks(a, kOfA[layout], count % 2 == 0, Values::kPowers, random_);
      PutBlocks(b, kOfB[layout], count % 3 == 0, Values::kPowers, random_);
      ExpectSame(a, b, count % 4 == 1, count % 4 >= 2);
      ++count;
    }
  }
}

TEST_P(DeviceBlocks, EqualTheRuleUnderAnyScales) {
  for (const Values values : {Values::kAny, Values::kExtreme, Values::kTiny, Values::kHuge}) {
    for (size_t layout = 0; layout < std::size(kOfA); ++layout) {
      Factor a = Left(150, 500, Spread::kNormal), b = Right(170, 500, Spread::kExponents);
      a.SetRow(7, 0);  // its results are 0 under any finite scale
      PutBlocks(a, kOfA[layout], true, values, random_);
      PutBlocks(b, kOfB[layout], true, values, random_);
      ExpectSame(a, b, false, false);
    }
  }
}

// Tiles of a launch take turns: the kernel's counters of stages and segments go on.
TEST_P(DeviceBlocks, EqualTheRuleOverManyTiles) {
  Factor a = Left(2500, 300, Spread::kNormal), b = Right(2100, 300, Spread::kNormal);
  PutBlocks(a, {1, 128}, true, Values::kPowers, random_);
  PutBlocks(b, {1, 128}, true, Values::kAny, random_);
  ExpectSame(a, b, false, false);
}

TEST_P(DeviceBlocks, EqualTheRuleForLongerSegments) {
  for (const size_t segment : {size_t{256}, size_t{1024}, size_t{1152}}) {
    if (!Serves(segment)) continue;
    for (const Blocks& of_b : {Blocks{1, segment}, Blocks{128, segment}}) {
      Factor a = Left(130, 2400, Spread::kNormal), b = Right(140, 2400, Spread::kNormal);
      PutBlocks(a, {1, segment}, true, Values::kPowers, random_);
      PutBlocks(b, of_b, true, Values::kPowers, random_);
      ExpectSame(a, b, false, false);
    }
  }
}

TEST_P(DeviceBlocks, OneOperandMayHaveOtherScales) {
  for (const bool first : {false, true}) {
    for (const ScalesFor other : kScalesFor) {
      Factor a = Left(70, 400, Spread::kNormal), b = Right(90, 400, Spread::kNormal);
      PutBlocks(first ? a : b, {1, 128}, true, Values::kPowers, random_);
      PutScales(first ? b : a, other, random_);
      ExpectSame(a, b, false, false);
    }
  }
}

TEST_P(DeviceBlocks, NanAndInfinitiesStayInTheirRowAndColumn) {
  const FormatSpec format = GetParam().FormatA();
  if (format.sign == Sign::kTwosComplement) GTEST_SKIP() << "int8 has neither";
  for (const Blocks& of_b : {Blocks{1, 128}, Blocks{128, 128}}) {
    Factor a = Left(70, 400, Spread::kNormal), b = Right(90, 400, Spread::kNormal);
    PutBlocks(a, {1, 128}, true, Values::kPowers, random_);
    PutBlocks(b, of_b, true, Values::kPowers, random_);
    a.SetCode(3, 200, 0x7F);  // NaN in both formats
    if (format == kE5M2) {
      a.SetCode(5, 399, 0x7C);
      a.SetCode(6, 0, 0x7C);
      a.SetCode(6, 300, 0xFC);
    }
    ExpectSame(a, b, false, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, DeviceBlocks, testing::ValuesIn(kPairs));

// A segment that ends within the 128 bytes that the kernel adds at once has no tensor core product.
TEST_P(DeviceBlocks, ShorterSegmentsAreRefused) {
  Factor a = Left(8, 100, Spread::kNormal), b = Right(8, 100, Spread::kNormal);
  PutBlocks(a, {1, 32}, true, Values::kPowers, random_);
  const DeviceFactor x(a, false), y(b, false);
  Buffer<float> out(place(), 64);
  const auto multiply = [&] { Gemm(x.Get(), y.Get(), GetParam().Rule(), out.View()); };
  if (std::string_view(GetParam().mode) == "exact") {
    multiply();  // one product after another
    EXPECT_TRUE(SameBits(StoredBits(out.View()),
                         BitsOf(HostProduct(a, b, GetParam().Rule()), Element::kFloat32),
                         8));
    return;
  }
  EXPECT_NE(ErrorOf(multiply).find("blocks of multiples of 128"), std::string::npos);
}

}  // namespace
}  // namespace numsim
