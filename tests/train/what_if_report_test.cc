// The summary and the figure of what-if telemetry, from rows written by hand.
#include "numsim/train/internal/what_if_report.h"

#include <cmath>

#include "numsim/io/csv.h"
#include "numsim/train/telemetry.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();

struct Line {
  uint64_t step;
  const char* layer;
  const char* tensor;
  double overflow, sqnr_db, ratio;
};

class WhatIfReport : public IoTest {
 protected:
  void SetUp() override {
    IoTest::SetUp();
    config_.what_if.recipes = {ParseWhatIfRecipe("e2m1fn tensor")};
  }

  void Write(const std::vector<Line>& lines) const {
    Telemetry telemetry;
    for (const Line& line : lines) {
      telemetry.Add("what_if",
                    {line.step,
                     line.layer,
                     line.tensor,
                     "e2m1fn tensor",
                     line.overflow,
                     0,
                     line.sqnr_db,
                     0,
                     1,
                     1,
                     1,
                     0,
                     3,
                     line.ratio});
    }
    WriteCsv(Path("what_if.csv"), telemetry.Of("what_if"));
  }

  TrainConfig config_;
};

TEST_F(WhatIfReport, SummaryNamesTheWorstLayers) {
  Write({{0, "a", "X", 0, kNoNumber, kNoNumber},
         {0, "b", "X", 0, 20, kNoNumber},
         {0, "a", "W", 0.25, 10, kNoNumber},
         {0, "b", "G", 0, 2, 1.25},
         {0, "a", "G", 0, kEndless, kEndless},
         {50, "a", "X", 0, 30, kNoNumber},
         {50, "b", "X", 0, 12.5, kNoNumber},
         {50, "a", "W", 0.5, 11, kNoNumber},
         {50, "b", "G", 0, 4, 1.732},
         {50, "a", "G", 0, 5, 1.7321}});
  EXPECT_EQ(
      WhatIfText(config_, Directory()),
      "what if                     e2m1fn tensor\n"
      "  X                         lowest SQNR 12.5 dB, b at step 50; no overflow\n"
      "  W                         lowest SQNR 10 dB, a at step 0; largest overflow 0.5, a at "
      "step 50\n"
      "  G                         lowest SQNR 2 dB, b at step 0; no overflow\n"
      "  |G| < sqrt(3) noise       2 of 4: b at steps 0, 50\n");
}

TEST_F(WhatIfReport, SummaryNamesTenStepsAtMost) {
  std::vector<Line> lines;
  for (uint64_t step = 0; step < 12; ++step) lines.push_back({step, "a", "G", 0, 0, 1});
  Write(lines);
  EXPECT_THAT(WhatIfText(config_, Directory()),
              ::testing::HasSubstr("12 of 12: a at steps 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...\n"));
}

TEST_F(WhatIfReport, WithoutRecipesThereIsNoneAndTheFileIsNotRead) {
  config_.what_if.recipes.clear();
  EXPECT_EQ(WhatIfText(config_, Directory()), "");
  EXPECT_TRUE(WhatIfFigure(config_, Directory()).panels.empty());
}

TEST_F(WhatIfReport, FigureHasTheMedianAndTheRangeOfTheLayers) {
  Write({{0, "a", "X", 0, 10, kNoNumber},
         {0, "b", "X", 0, 40, kNoNumber},
         {0, "c", "X", 0, 20, kNoNumber},
         {0, "a", "G", 0, kEndless, kEndless},
         {50, "a", "X", 0, 5, kNoNumber},
         {50, "b", "X", 0, kEndless, kNoNumber},
         {50, "a", "G", 0, 5, 2}});
  const Figure figure = WhatIfFigure(config_, Directory());
  EXPECT_EQ(figure.name, "what_if");
  EXPECT_EQ(figure.source_csv, "what_if.csv");
  ASSERT_EQ(figure.panels.size(), 2u);  // W has no rows
  const Series& x = figure.panels[0].series.at(0);
  EXPECT_EQ(x.label, "e2m1fn tensor");
  EXPECT_EQ(x.x, (std::vector<double>{0, 50}));
  EXPECT_EQ(x.y, (std::vector<double>{20, 5}));
  EXPECT_EQ(x.low, (std::vector<double>{10, 5}));
  EXPECT_EQ(x.high, (std::vector<double>{40, 5}));
  const std::vector<Series>& g = figure.panels[1].series;
  ASSERT_EQ(g.size(), 2u);
  EXPECT_TRUE(std::isnan(g[0].y[0]));
  EXPECT_EQ(g[0].y[1], 5);
  EXPECT_NEAR(g[1].y[0], 10 * std::log10(3.0), 1e-12);
  EXPECT_EQ(g[1].x, (std::vector<double>{0, 50}));
}

}  // namespace
}  // namespace numsim
