#include "numsim/quantize/scale_layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "numsim/base/error.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr const char* kEveryKind[] = {"tensor",
                                      "row",
                                      "column",
                                      "block:1",
                                      "block:3",
                                      "block:7",
                                      "block:9",
                                      "tile:1x1",
                                      "tile:1x3",
                                      "tile:3x1",
                                      "tile:3x2",
                                      "tile:4x7",
                                      "tile:9x9"};
constexpr size_t kMaxSize = std::numeric_limits<size_t>::max();

TEST(ScaleLayout, NamesParseBackToTheSameLayout) {
  for (const char* text : {"tensor",
                           "row",
                           "column",
                           "block:1",
                           "block:32",
                           "block:1000000",
                           "tile:1x1",
                           "tile:128x1",
                           "tile:3x1000000"}) {
    EXPECT_EQ(ToString(ParseScaleLayout(text)), text);
    EXPECT_EQ(ParseScaleLayout(ToString(ParseScaleLayout(text))), ParseScaleLayout(text));
  }
  EXPECT_EQ(ParseScaleLayout("block:7"), (ScaleLayout{Granularity::kBlock, 7}));
  EXPECT_EQ(ParseScaleLayout("tile:2x7"), (ScaleLayout{Granularity::kTile, 7, 2}));
  EXPECT_EQ(ParseScaleLayout("tensor"), ScaleLayout{});
}

TEST(ScaleLayout, AnythingElseIsRefusedWithTheListOfValidOnes) {
  for (const char* text :
       {"",           "Row",        "rows",      "block",
        "block:",     "block:0",    "block:-1",  "block:+8",
        "block:8x",   "block: 8",   "block:8.0", "block:18446744073709551616",
        "tile",       "tile:",      "tile:8",    "tile:8x",
        "tile:x8",    "tile:0x8",   "tile:8x0",  "tile:8X8",
        "tile:8 x 8", "tile:8x8x8", "tile:8x-8", "tile:18446744073709551616x8"}) {
    EXPECT_EQ(ErrorOf([&] { ParseScaleLayout(text); }),
              fmt::format("granularity '{}' is not one of tensor, row, column, block:N, "
                          "tile:ROWSxCOLS with sizes >= 1",
                          text));
  }
}

TEST(ScaleLayout, CountsTheScalesOfAMatrix) {
  EXPECT_EQ(ParseScaleLayout("tensor").Count(3, 5), 1u);
  EXPECT_EQ(ParseScaleLayout("row").Count(3, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("column").Count(3, 5), 5u);
  EXPECT_EQ(ParseScaleLayout("block:1").Count(3, 5), 15u);
  EXPECT_EQ(ParseScaleLayout("block:2").Count(3, 5), 9u);
  EXPECT_EQ(ParseScaleLayout("block:5").Count(3, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("block:6").Count(3, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("tile:1x1").Count(3, 5), 15u);
  EXPECT_EQ(ParseScaleLayout("tile:2x1").Count(3, 5), 10u);
  EXPECT_EQ(ParseScaleLayout("tile:1x2").Count(3, 5), 9u);
  EXPECT_EQ(ParseScaleLayout("tile:2x2").Count(3, 5), 6u);
  EXPECT_EQ(ParseScaleLayout("tile:3x5").Count(3, 5), 1u);
  EXPECT_EQ(ParseScaleLayout("tile:4x6").Count(3, 5), 1u);
}

TEST(ScaleLayout, AnEmptyMatrixHasNoScalesButTheTensors) {
  for (const char* text : {"row", "block:4", "tile:2x2"}) {
    EXPECT_EQ(ParseScaleLayout(text).Count(0, 5), 0u);
  }
  for (const char* text : {"column", "block:4", "tile:2x2"}) {
    EXPECT_EQ(ParseScaleLayout(text).Count(5, 0), 0u);
  }
  EXPECT_EQ(ParseScaleLayout("tensor").Count(0, 5), 1u);
}

TEST(ScaleLayout, ABlockLongerThanAnyRowIsARow) {
  const ScaleLayout layout = {Granularity::kBlock, kMaxSize};
  EXPECT_EQ(ParseScaleLayout(ToString(layout)), layout);
  EXPECT_EQ(layout.Count(3, 5), 3u);
  EXPECT_EQ(layout.Index(2, 4, 5), 2u);
}

TEST(ScaleLayout, ATileBeyondTheMatrixIsTheTensor) {
  const ScaleLayout layout = {Granularity::kTile, kMaxSize, kMaxSize};
  EXPECT_EQ(ParseScaleLayout(ToString(layout)), layout);
  EXPECT_EQ(layout.Count(3, 5), 1u);
  EXPECT_EQ(layout.Index(2, 4, 5), 0u);
}

TEST(ScaleLayout, IndexNumbersTheScalesRowByRow) {
  EXPECT_EQ(ParseScaleLayout("tensor").Index(2, 3, 5), 0u);
  EXPECT_EQ(ParseScaleLayout("row").Index(2, 3, 5), 2u);
  EXPECT_EQ(ParseScaleLayout("column").Index(2, 3, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(0, 1, 5), 0u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(0, 2, 5), 1u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(1, 0, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(2, 4, 5), 8u);
  EXPECT_EQ(ParseScaleLayout("tile:2x3").Index(0, 2, 5), 0u);
  EXPECT_EQ(ParseScaleLayout("tile:2x3").Index(1, 3, 5), 1u);
  EXPECT_EQ(ParseScaleLayout("tile:2x3").Index(2, 2, 5), 2u);
  EXPECT_EQ(ParseScaleLayout("tile:2x3").Index(3, 4, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("tile:2x1").Index(2, 4, 5), 9u);
}

TEST(ScaleLayout, IndicesCoverTheCountWithoutGaps) {
  for (const char* text : kEveryKind) {
    const ScaleLayout layout = ParseScaleLayout(text);
    std::set<size_t> seen;
    for (size_t r = 0; r < 4; ++r) {
      for (size_t c = 0; c < 7; ++c) seen.insert(layout.Index(r, c, 7));
    }
    EXPECT_EQ(seen.size(), layout.Count(4, 7)) << text;
    EXPECT_EQ(*seen.rbegin(), layout.Count(4, 7) - 1) << text;
  }
}

TEST(ScaleLayout, TransposedSharesScalesAmongTheSameElements) {
  constexpr size_t kRows = 4, kCols = 7;
  for (const char* text : kEveryKind) {
    const ScaleLayout layout = ParseScaleLayout(text);
    const ScaleLayout other = Transposed(layout);
    EXPECT_EQ(other.Count(kCols, kRows), layout.Count(kRows, kCols)) << text;
    // Each scale here is one there, wherever its elements are met.
    std::map<size_t, size_t> there;
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t c = 0; c < kCols; ++c) {
        const size_t index = other.Index(c, r, kRows);
        EXPECT_EQ(there.emplace(layout.Index(r, c, kCols), index).first->second, index) << text;
      }
    }
    std::set<size_t> distinct;
    for (const auto& pair : there) distinct.insert(pair.second);
    EXPECT_EQ(distinct.size(), there.size()) << text;
  }
}

TEST(ScaleLayout, TransposedByName) {
  const auto transposed = [](const char* text) {
    return ToString(Transposed(ParseScaleLayout(text)));
  };
  EXPECT_EQ(transposed("tensor"), "tensor");
  EXPECT_EQ(transposed("row"), "column");
  EXPECT_EQ(transposed("column"), "row");
  EXPECT_EQ(transposed("block:32"), "tile:32x1");
  EXPECT_EQ(transposed("tile:32x1"), "block:32");
  EXPECT_EQ(transposed("tile:2x3"), "tile:3x2");
}

}  // namespace
}  // namespace numsim
