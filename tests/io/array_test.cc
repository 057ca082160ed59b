#include "numsim/io/array.h"

#include <gtest/gtest.h>

namespace numsim {
namespace {

TEST(Array, ScalarHasOneElementAndAZeroExtentNone) {
  EXPECT_EQ((Array{ElementType::kF32, {}, {}}.Elements()), 1u);
  EXPECT_EQ((Array{ElementType::kF32, {3, 0, 5}, {}}.Elements()), 0u);
  EXPECT_EQ((Array{ElementType::kF32, {3, 4}, {}}.Elements()), 12u);
}

TEST(ElementType, NameEndsInItsBitsUnlessItIsAnEightBitFloat) {
  EXPECT_EQ(ToString(ElementType::kBf16), "bfloat16");
  EXPECT_EQ(ToString(ElementType::kF8E4M3), "e4m3fn");
  EXPECT_EQ(ToString(ElementType::kF8E5M2), "e5m2");
  EXPECT_EQ(ElementBytes(ElementType::kF8E5M2), 1u);
  for (const ElementType type : {ElementType::kF64,
                                 ElementType::kF32,
                                 ElementType::kF16,
                                 ElementType::kBf16,
                                 ElementType::kU8,
                                 ElementType::kU16,
                                 ElementType::kU32}) {
    EXPECT_TRUE(ToString(type).ends_with(std::to_string(8 * ElementBytes(type)))) << ToString(type);
  }
}

TEST(CheckedElements, RefusesWhatDoesNotFitSixtyThreeBits) {
  using Shape = std::vector<size_t>;
  EXPECT_EQ(CheckedElements(Shape{}, 32), 1u);
  EXPECT_EQ(CheckedElements(Shape{2, 3}, 32), 6u);
  EXPECT_EQ(CheckedElements(Shape{size_t{1} << 62}, 1), size_t{1} << 62);
  EXPECT_FALSE(CheckedElements(Shape{size_t{1} << 62, 2}, 1));
  EXPECT_FALSE(CheckedElements(Shape{size_t{1} << 32, size_t{1} << 32}, 8));
  EXPECT_FALSE(CheckedElements(Shape{SIZE_MAX}, 8));
}

TEST(CheckedElements, ZeroExtentDoesNotHideAnOverflow) {
  using Shape = std::vector<size_t>;
  EXPECT_EQ(CheckedElements(Shape{0, 7}, 32), 0u);
  EXPECT_FALSE(CheckedElements(Shape{0, SIZE_MAX, 8}, 8));
  EXPECT_FALSE(CheckedElements(Shape{SIZE_MAX, 8, 0}, 8));
}

TEST(ShapeToString, WritesTuplesAsPython) {
  EXPECT_EQ(ShapeToString(std::vector<size_t>{}), "()");
  EXPECT_EQ(ShapeToString(std::vector<size_t>{5}), "(5,)");
  EXPECT_EQ(ShapeToString(std::vector<size_t>{2, 3}), "(2, 3)");
}

}  // namespace
}  // namespace numsim
