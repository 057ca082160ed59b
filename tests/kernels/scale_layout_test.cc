#include "numsim/kernels/scale_layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr size_t kMaxSize = std::numeric_limits<size_t>::max();

TEST(ScaleLayout, NamesParseBackToTheSameLayout) {
  for (const char* text : {"tensor", "row", "column", "block:1", "block:32", "block:1000000"}) {
    EXPECT_EQ(Name(ParseScaleLayout(text)), text);
    EXPECT_EQ(ParseScaleLayout(Name(ParseScaleLayout(text))), ParseScaleLayout(text));
  }
  EXPECT_EQ(ParseScaleLayout("block:7"), (ScaleLayout{Granularity::kBlock, 7}));
  EXPECT_EQ(ParseScaleLayout("tensor"), ScaleLayout{});
}

TEST(ScaleLayout, AnythingElseIsRefusedWithTheListOfValidOnes) {
  for (const char* text : {"",
                           "Row",
                           "rows",
                           "block",
                           "block:",
                           "block:0",
                           "block:-1",
                           "block:+8",
                           "block:8x",
                           "block: 8",
                           "block:8.0",
                           "block:18446744073709551616"}) {
    try {
      ParseScaleLayout(text);
      FAIL() << "'" << text << "' was accepted";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   fmt::format("granularity '{}' is not one of tensor, row, column, block:N with "
                               "N >= 1",
                               text)
                       .c_str());
    }
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
}

TEST(ScaleLayout, AnEmptyMatrixHasNoScalesButTheTensors) {
  for (const char* text : {"row", "block:4"}) EXPECT_EQ(ParseScaleLayout(text).Count(0, 5), 0u);
  for (const char* text : {"column", "block:4"}) EXPECT_EQ(ParseScaleLayout(text).Count(5, 0), 0u);
  EXPECT_EQ(ParseScaleLayout("tensor").Count(0, 5), 1u);
}

TEST(ScaleLayout, ABlockLongerThanAnyRowIsARow) {
  const ScaleLayout layout = {Granularity::kBlock, kMaxSize};
  EXPECT_EQ(ParseScaleLayout(Name(layout)), layout);
  EXPECT_EQ(layout.Count(3, 5), 3u);
  EXPECT_EQ(layout.Index(2, 4, 5), 2u);
}

TEST(ScaleLayout, IndexNumbersTheScalesRowByRow) {
  EXPECT_EQ(ParseScaleLayout("tensor").Index(2, 3, 5), 0u);
  EXPECT_EQ(ParseScaleLayout("row").Index(2, 3, 5), 2u);
  EXPECT_EQ(ParseScaleLayout("column").Index(2, 3, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(0, 1, 5), 0u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(0, 2, 5), 1u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(1, 0, 5), 3u);
  EXPECT_EQ(ParseScaleLayout("block:2").Index(2, 4, 5), 8u);
}

TEST(ScaleLayout, IndicesCoverTheCountWithoutGaps) {
  for (const char* text : {"tensor", "row", "column", "block:1", "block:3", "block:7", "block:9"}) {
    const ScaleLayout layout = ParseScaleLayout(text);
    std::set<size_t> seen;
    for (size_t r = 0; r < 4; ++r) {
      for (size_t c = 0; c < 7; ++c) seen.insert(layout.Index(r, c, 7));
    }
    EXPECT_EQ(seen.size(), layout.Count(4, 7)) << text;
    EXPECT_EQ(*seen.rbegin(), layout.Count(4, 7) - 1) << text;
  }
}

}  // namespace
}  // namespace numsim
