// The figures of `moment-formats`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/runner/settings.h"
#include "tests/experiments/moment_formats_fixture.h"

namespace numsim::experiments::moment_formats {
namespace {

using ::testing::HasSubstr;

class MomentFigures : public MomentTables {
 protected:
  // Two records of a curve.
  void Curve(const std::string& m, const std::string& v, double end, const char* seed = "0") {
    AddLoss(m, v, seed, 0, 5);
    AddLoss(m, v, seed, 10, end);
  }
  Figure FigureOf(const std::string& name) {
    if (rows_["final"].empty()) Add({"fp32", "fp32", 5, 1}, "0", {});
    Finish();
    for (const Figure& figure : MomentFormats().figures(SettingsWith({}), tables_)) {
      if (figure.name == name) return figure;
    }
    ADD_FAILURE() << name;
    return {};
  }
  Figure Loss() { return FigureOf("moment-loss"); }
  Figure Flushed() { return FigureOf("moment-flushed"); }
};

TEST_F(MomentFigures, LossHasAPanelForEachStorageOfV) {
  Curve("fp32", "fp32", 2);
  Curve("e4m3fn", "fp32", 2.1);
  Curve("fp32", "e5m2", 2.2);
  Curve("e4m3fn", "e5m2", 2.3);
  Curve("bf16", "bf16", 2.4);
  const Figure figure = Loss();
  EXPECT_EQ(figure.source_csv, "curves.csv");
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[0].title, "v in fp32");
  EXPECT_EQ(figure.panels[1].title, "v in e5m2");
  EXPECT_EQ(figure.panels[2].title, "v in bf16");
  ASSERT_EQ(figure.panels[1].series.size(), 3u);
  EXPECT_EQ(figure.panels[1].series[0].label, "m in fp32");
  EXPECT_EQ(figure.panels[1].series[1].label, "m in e4m3fn");
  EXPECT_EQ(figure.panels[1].series[1].x, (std::vector<double>{0, 10}));
  EXPECT_EQ(figure.panels[1].series[1].y, (std::vector<double>{5, 2.3}));
  EXPECT_TRUE(figure.panels[1].series[1].low.empty());  // one seed
}

TEST_F(MomentFigures, GapsArePairedBySeedAndSinglePairsShareAPanel) {
  Curve("fp32", "fp32", 2, "0");
  Curve("fp32", "fp32", 3, "1");
  for (const char* const m : {"fp32", "e4m3fn"}) {
    Curve(m, "e5m2", 2.5, "0");
    Curve(m, "e5m2", 3.25, "1");
  }
  Curve("bf16", "bf16", 2.125, "0");
  Curve("fp16", "fp16", std::numeric_limits<double>::infinity(), "0");
  const Figure figure = FigureOf("moment-gap");
  ASSERT_EQ(figure.panels.size(), 1u);
  EXPECT_THAT(figure.panels[0].title, HasSubstr("v in e5m2"));
  ASSERT_EQ(figure.panels[0].series.size(), 2u);
  EXPECT_EQ(figure.panels[0].series[1].label, "m in e4m3fn");
  EXPECT_EQ(figure.panels[0].series[1].y, (std::vector<double>{0, 0.375}));
  EXPECT_EQ(figure.panels[0].series[1].low, (std::vector<double>{0, 0.25}));
  EXPECT_EQ(figure.panels[0].series[1].high, (std::vector<double>{0, 0.5}));
  const Figure single = FigureOf("moment-gap-pairs");
  ASSERT_EQ(single.panels.size(), 1u);
  ASSERT_EQ(single.panels[0].series.size(), 2u);
  EXPECT_EQ(single.panels[0].series[0].label, "bf16 / bf16");
  EXPECT_EQ(single.panels[0].series[0].style, 0);
  EXPECT_EQ(single.panels[0].series[0].y, (std::vector<double>{0, 0.125}));
  EXPECT_EQ(single.panels[0].series[1].x, (std::vector<double>{0}));  // diverged
}

TEST_F(MomentFigures, PanelsOfGapsShareTheRangeOfTheirWholeCurves) {
  Curve("fp32", "fp32", 3);  // a gain of 2: gaps up to 0.3 are shown
  Curve("fp32", "e5m2", 3.125);
  Curve("e4m3fn", "e5m2", 3.0625);
  Curve("fp32", "bf16", 2.9375);
  Curve("e4m3fn", "bf16", 3);
  AddLoss("e5m2", "bf16", "0", 0, 5.25);  // diverged
  const Figure figure = FigureOf("moment-gap");
  ASSERT_EQ(figure.panels.size(), 2u);
  for (const Panel& panel : figure.panels) {
    EXPECT_DOUBLE_EQ(panel.y.low, -0.0625 - 0.04 * 0.1875);
    EXPECT_DOUBLE_EQ(panel.y.high, 0.125 + 0.04 * 0.1875);
  }
  EXPECT_EQ(figure.panels[0].title, "v in e5m2");
  EXPECT_EQ(figure.panels[1].title, "v in bf16");
}

TEST_F(MomentFigures, APanelWhoseGapsAreAllAboveTheCutShowsTheLowest) {
  Curve("fp32", "fp32", 3);
  Curve("fp32", "e5m2", 3.125);
  Curve("e4m3fn", "e5m2", 4.5);          // above the cut
  Curve("fp32", "e4m3fn", 4.5);          // above it
  Curve("e4m3fn", "e4m3fn", 4);          // the lowest of that panel
  AddLoss("e5m2", "e4m3fn", "0", 0, 5);  // diverged
  const Figure figure = FigureOf("moment-gap");
  ASSERT_EQ(figure.panels.size(), 2u);
  EXPECT_EQ(figure.panels[0].title, "v in e5m2");
  EXPECT_DOUBLE_EQ(figure.panels[0].y.high, 0.3 + 0.04 * 0.31);
  EXPECT_EQ(figure.panels[1].title, "v in e4m3fn");
  EXPECT_DOUBLE_EQ(figure.panels[1].y.high, 1.2);
}

TEST_F(MomentFigures, WithoutAGainOfTheBaselineThereIsNoGap) {
  Curve("fp32", "fp32", 6);
  Curve("bf16", "bf16", 2);
  Add({"fp32", "fp32", 5, 1}, "0", {});
  Finish();
  for (const Figure& figure : MomentFormats().figures(SettingsWith({}), tables_))
    EXPECT_NE(figure.name, "moment-gap");
}

TEST_F(MomentFigures, EveryPanelOfLossesHasTheBaselineDashed) {
  Curve("fp32", "fp32", 2);
  Curve("fp32", "e5m2", 3);
  Curve("bf16", "bf16", 4);
  for (const Panel& panel : Loss().panels) {
    ASSERT_EQ(panel.series.size(), 2u);
    EXPECT_FALSE(panel.series[0].dashed);
    EXPECT_TRUE(panel.series[1].dashed);
    EXPECT_EQ(panel.series[1].label, "m and v in fp32");
    EXPECT_EQ(panel.series[1].y, (std::vector<double>{5, 2}));
  }
}

TEST_F(MomentFigures, AFormatOfMHasOneStyleInAllPanels) {
  Curve("fp32", "fp32", 2);
  Curve("fp32", "e5m2", 2);
  Curve("e4m3fn", "e5m2", 2);
  Curve("e4m3fn@none", "e5m2@none", 2);
  Curve("e5m2", "e4m3fn", 2);
  std::map<std::string, std::set<int>> styles;  // by format of m
  std::set<int> all;
  for (const Panel& panel : Loss().panels) {
    for (const Series& series : panel.series) {
      const std::string m = series.dashed ? "fp32" : FormatPart(series.label.substr(5));
      styles[m].insert(series.style);
      all.insert(series.style);
    }
  }
  EXPECT_EQ(styles.size(), 3u);
  for (const auto& [m, used] : styles) EXPECT_EQ(used.size(), 1u) << m;
  EXPECT_EQ(all.size(), 3u);
}

TEST_F(MomentFigures, LossesAreDrawnInTheRangeOfTheBaseline) {
  Curve("fp32", "fp32", 2);
  Curve("e5m2", "e4m3fn", 50);
  for (const Panel& panel : Loss().panels) {
    EXPECT_LE(panel.y.low, 2);
    EXPECT_GT(panel.y.low, 1.5);
    EXPECT_GE(panel.y.high, 5);
    EXPECT_LT(panel.y.high, 5.5);
  }
}

TEST_F(MomentFigures, SeedsAreTheMeanWithTheirRange) {
  for (const char* const seed : {"0", "1", "2"}) Curve("fp32", "fp32", 2, seed);
  Curve("bf16", "bf16", 2, "0");
  Curve("bf16", "bf16", 3, "1");
  Curve("bf16", "bf16", 7, "2");
  const Series series = Loss().panels.at(0).series.at(0);
  EXPECT_EQ(series.y, (std::vector<double>{5, 4}));
  EXPECT_EQ(series.low, (std::vector<double>{5, 2}));
  EXPECT_EQ(series.high, (std::vector<double>{5, 7}));
}

// The first seed ends with a loss that is no number.
TEST_F(MomentFigures, ASeedThatDivergesLeavesTheCurve) {
  Curve("fp32", "fp32", 2, "0");
  Curve("fp32", "fp32", 2, "1");
  Curve("e4m3fn@none", "e5m2@none", std::nan(""), "0");
  Curve("e4m3fn@none", "e5m2@none", 3, "1");
  const Series series = Loss().panels.at(0).series.at(0);
  EXPECT_EQ(series.x, (std::vector<double>{0, 10}));
  EXPECT_EQ(series.y, (std::vector<double>{5, 3}));
  EXPECT_EQ(series.low, (std::vector<double>{5, 3}));
}

TEST_F(MomentFigures, ScalingsOfMHavePanelsOfTheirOwn) {
  Curve("fp32", "fp32", 2);
  Curve("dynamic", "fp32", 2);
  Curve("e4m3fn@none", "fp32", 2);
  Curve("bf16", "fp32", 2);         // none is its default
  Curve("e4m3fn", "fp32", 2);       // tensor is its default
  Curve("bf16@tensor", "fp32", 2);  // the same
  Curve("e4m3fn+sr", "fp32", 2);
  const Figure figure = Loss();
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[0].series.size(), 4u);  // with dynamic and the baseline
  EXPECT_EQ(figure.panels[1].series.size(), 3u);
  EXPECT_EQ(figure.panels[2].series.size(), 2u);
  EXPECT_THAT(figure.panels[1].title, HasSubstr("tensor"));
}

// Of every preset: each curve is in one panel, and told from the others there and by its panel.
TEST_F(MomentFigures, ShowEveryPairOfThePresetsOnce) {
  for (const Preset& preset : MomentFormats().presets) {
    rows_.clear();
    const std::vector<MomentPair> pairs =
        PairsOf(MakeSettings(MomentFormats(), preset.name, 0, 1, {}));
    for (size_t i = 0; i < pairs.size(); ++i) {
      Curve(pairs[i].m, pairs[i].v, 2 + 1e-3 * static_cast<double>(i));
      AddFlushed(pairs[i].m, pairs[i].v, "0", 1, 0.5);
    }
    std::set<double> ends;
    std::set<std::string> titles;
    const Figure loss = Loss();
    for (const Panel& panel : loss.panels) {
      EXPECT_TRUE(titles.insert(panel.title).second) << preset.name << ": " << panel.title;
      std::set<std::string> labels;
      std::set<int> styles;
      for (const Series& series : panel.series) {
        EXPECT_TRUE(labels.insert(series.label).second) << panel.title << ": " << series.label;
        if (series.dashed) continue;
        EXPECT_TRUE(styles.insert(series.style).second) << panel.title << ": " << series.label;
        EXPECT_TRUE(ends.insert(series.y.back()).second) << series.label;
      }
    }
    EXPECT_EQ(ends.size(), pairs.size() - 1) << preset.name;
    std::set<std::string> storages, labels;
    for (const MomentPair& pair : pairs) storages.insert(pair.v);
    const Figure flushed = Flushed();
    for (const Series& series : flushed.panels.at(0).series) labels.insert(series.label);
    EXPECT_EQ(labels.size(), storages.size() - 1) << preset.name;  // all but fp32
  }
}

TEST_F(MomentFigures, ShowTheBaselineWhereItIsAlone) {
  Add({"fp32", "fp32", 5, 1});
  Curve("fp32", "fp32", 2);
  Finish();
  const std::vector<Figure> figures = MomentFormats().figures(SettingsWith({}), tables_);
  ASSERT_EQ(figures.size(), 1u);  // nothing is flushed
  ASSERT_EQ(figures[0].panels.size(), 1u);
  ASSERT_EQ(figures[0].panels[0].series.size(), 1u);
  EXPECT_TRUE(figures[0].panels[0].series[0].dashed);
}

// The axis cannot show 0; the panel says so (plot/figure.h).
TEST_F(MomentFigures, FlushedSharesOfZeroStayZero) {
  Curve("fp32", "fp32", 2);
  AddFlushed("fp32", "fp32", "0", 1, 0);
  AddFlushed("fp32", "e5m2", "0", 1, 0);
  AddFlushed("fp32", "e5m2", "0", 11, 0.25);
  AddFlushed("e5m2", "e5m2", "0", 1, 0.5);  // the first m stands for all
  AddFlushed("fp32", "e4m3fn", "0", 1, 0.75);
  const Figure figure = Flushed();
  EXPECT_EQ(figure.source_csv, "flushed.csv");
  ASSERT_EQ(figure.panels.size(), 1u);
  const Panel& panel = figure.panels[0];
  ASSERT_EQ(panel.series.size(), 2u);
  EXPECT_TRUE(panel.y.log10);
  EXPECT_EQ(panel.series[0].label, "v in e5m2");
  EXPECT_EQ(panel.series[0].y, (std::vector<double>{0, 0.25}));
  EXPECT_EQ(panel.series[1].label, "v in e4m3fn");
  EXPECT_NE(panel.series[0].style, panel.series[1].style);
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
