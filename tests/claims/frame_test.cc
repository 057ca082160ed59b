// Frames: filter, group, statistics over seeds, lines of figures.
#include "experiments/claims/frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/special_values.h"

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

// Student's t at 97.5 %: 4.303 for 2 degrees of freedom, 12.706 for 1.
TEST(SeedEstimates, AreMeansWithIntervals) {
  const Estimate three = MeanOf(SeedValues{{"0", 1}, {"1", 2}, {"2", 3}});
  EXPECT_DOUBLE_EQ(three.value, 2);
  EXPECT_NEAR(three.low, 2 - 4.303 / std::sqrt(3.0), 1e-3);
  EXPECT_NEAR(three.high, 2 + 4.303 / std::sqrt(3.0), 1e-3);
  const Estimate one = MeanOf(SeedValues{{"5", 7}});
  EXPECT_EQ(one.value, 7);
  EXPECT_TRUE(std::isnan(one.low));
  EXPECT_TRUE(std::isnan(one.high));
  EXPECT_EQ(MeanOf(SeedValues{{"0", 1}, {"1", kInfinity}}).value, kInfinity);
}

TEST(SeedEstimates, GapsArePairedBySeed) {
  // Gaps of 2 and 1, however far apart the seeds are.
  const Estimate gap = PairedGap({{"0", 3}, {"1", 105}}, {{"0", 1}, {"1", 104}, {"2", 9}});
  EXPECT_DOUBLE_EQ(gap.value, 1.5);
  EXPECT_NEAR(gap.low, 1.5 - 12.706 * 0.5, 1e-3);
  EXPECT_NEAR(gap.high, 1.5 + 12.706 * 0.5, 1e-3);
}

TEST(Line, IsTheMeanWithTheRangeAsBand) {
  const Table losses = {{"step", "loss"}, {{10, 1}, {10, 3}, {20, 5}, {5, 8}, {5, 2}, {5, 5}}};
  const Series series = Line(losses, "step", "loss");
  EXPECT_EQ(series.x, (std::vector<double>{5, 10, 20}));
  EXPECT_EQ(series.y, (std::vector<double>{5, 2, 5}));
  EXPECT_EQ(series.low, (std::vector<double>{2, 1, 5}));
  EXPECT_EQ(series.high, (std::vector<double>{8, 3, 5}));
  EXPECT_FALSE(series.markers);
}

TEST(Line, OfOneSeedHasNoBand) {
  const Table losses = {{"step", "loss"}, {{1, 4}, {2, 6}}};
  const Series series = Line(losses, "step", "loss");
  EXPECT_EQ(series.x, (std::vector<double>{1, 2}));
  EXPECT_EQ(series.y, (std::vector<double>{4, 6}));
  EXPECT_TRUE(series.low.empty());
  EXPECT_TRUE(series.high.empty());
}

const Table kLosses = {{"kind", "step", "loss"},
                       {{"a", "1", "4"},
                        {"b", "1", "100"},
                        {"a", "1", "6"},
                        {"a", "2", "inf"},
                        {"a", "2", "0.5"},
                        {"a", "3", "nan"},
                        {"b", "40", "1"}}};

TEST(Line, TakesTheRowsOfATable) {
  const Series series = Line(Frame(kLosses).Where("kind", "a"), "step", "loss");
  EXPECT_EQ(series.x, (std::vector<double>{1, 2}));  // none of step 3 is finite
  EXPECT_EQ(series.y, (std::vector<double>{5, 0.5}));
  EXPECT_EQ(series.low, (std::vector<double>{4, 0.5}));
  EXPECT_EQ(series.high, (std::vector<double>{6, 0.5}));
}

TEST(AxisOf, ReachesTheLastStepOfAnyRow) {
  const Axis axis = AxisOf(kLosses, "step", "step");
  EXPECT_EQ(axis.label, "step");
  EXPECT_EQ(axis.low, 0);
  EXPECT_EQ(axis.high, 40);
  EXPECT_EQ(AxisOf(Table{{"step"}, {}}, "step", "step").high, 1);
}

}  // namespace
}  // namespace numsim::experiments
