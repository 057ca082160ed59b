// Frames: filter, group, statistics over seeds, lines of figures.
#include "experiments/core/frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

const Table kTrainings{{"arm", "seed", "step", "loss"},
                       {{"b", 0, 10, 3.0},
                        {"a", 0, 10, 1.0},
                        {"a", 1, 10, 2.0},
                        {"b", 0, 20, 2.5},
                        {"a", 0, 20, 0.5},
                        {"a", 1, 20, std::numeric_limits<double>::infinity()}}};

TEST(Frame, SelectsRowsInTheOrderOfTheTable) {
  const Frame a = Frame(kTrainings).Where("arm", "a");
  ASSERT_EQ(a.Size(), 4u);
  EXPECT_EQ(a.Text(1, "seed"), "1");
  EXPECT_EQ(a.Number("loss"), 1);  // of the first row
  EXPECT_EQ(a.Where("step", 20).Numbers("loss").front(), 0.5);
  const Frame early = a.Where([](const Frame& row) { return row.Number("step") < 15; });
  EXPECT_EQ(early.Numbers("loss"), (std::vector<double>{1, 2}));
  EXPECT_TRUE(a.Where("arm", "b").Empty());
}

TEST(Frame, GroupsInTheOrderOfFirstAppearance) {
  const std::vector<Frame> groups = Frame(kTrainings).By({"arm", "seed"});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].Text("arm"), "b");
  EXPECT_EQ(groups[2].Text("seed"), "1");
  for (const Frame& group : groups) EXPECT_EQ(group.Size(), 2u);
  EXPECT_EQ(Frame(kTrainings).Distinct("arm"), (std::vector<std::string>{"b", "a"}));
  std::string arms;
  Frame(kTrainings).ForEach([&](const Frame& row) { arms += row.Text("arm"); });
  EXPECT_EQ(arms, "baabaa");
}

TEST(Frame, ValuesOverSeedsNeedOneRowPerSeed) {
  const Frame a = Frame(kTrainings).Where("arm", "a").Where("step", 10);
  EXPECT_EQ(a.OverSeeds("loss"), (SeedValues{{"0", 1}, {"1", 2}}));
  EXPECT_EQ(a.Mean("loss"), 1.5);
  EXPECT_TRUE(std::isnan(a.Where("arm", "b").Mean("loss")));
  EXPECT_EQ(ErrorOf([] { Frame(kTrainings).Where("arm", "b").OverSeeds("loss"); }),
            "column 'loss': seed 0 has two values");
}

TEST(Frame, PairedGapsUseTheSeedsOfBoth) {
  const SeedValues values = {{"0", 3}, {"1", 5}, {"2", 9}};
  const SeedValues baseline = {{"1", 1}, {"0", 1}, {"7", 100}};
  // Gaps of 2 and 4; one degree of freedom: 12.7062 standard errors of 1.
  const Estimate gap = PairedGap(values, baseline);
  EXPECT_EQ(gap.value, 3);
  EXPECT_NEAR(gap.low, 3 - 12.7062, 1e-4);
}

TEST(Frame, LinesAreMeansOverSeedsWithTheRangeAsBand) {
  const Series line = Line(Frame(kTrainings).Where("arm", "a"), "step", "loss");
  EXPECT_EQ(line.x, (std::vector<double>{10, 20}));
  EXPECT_EQ(line.y, (std::vector<double>{1.5, 0.5}));  // the infinite loss is left out
  EXPECT_EQ(line.low, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(line.high, (std::vector<double>{2, 0.5}));
  EXPECT_TRUE(Line(Frame(kTrainings).Where("arm", "b"), "step", "loss").low.empty());
  EXPECT_EQ(Line(Frame(kTrainings).Where("arm", "b"), "step", "loss", 2.75).y,
            (std::vector<double>{3, 2.75}));
}

TEST(Frame, GapLinesSubtractTheSameSeedAndStep) {
  const Frame all = kTrainings;
  const Series gap = GapLine(all.Where("arm", "a"), all.Where("arm", "b"), "step", "loss");
  EXPECT_EQ(gap.x, (std::vector<double>{10, 20}));
  EXPECT_EQ(gap.y, (std::vector<double>{-2, -2}));  // seed 1 has no baseline
  EXPECT_EQ(AxisOf(all, "step", "step").high, 20);
}

TEST(Frame, NamesWhatIsMissing) {
  EXPECT_EQ(ErrorOf([] { Frame(kTrainings).Numbers("los"); }), "no column 'los' in the table");
  EXPECT_EQ(ErrorOf([] { Frame(kTrainings).Where("arm", "c").Text("arm"); }),
            "Frame: row 0 of 0, column 'arm'");
}

}  // namespace
}  // namespace numsim::experiments
