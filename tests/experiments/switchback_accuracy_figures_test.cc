// The figures of `switchback-accuracy`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/experiments/switchback_accuracy_fixture.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using ::testing::HasSubstr;

using Labels = std::vector<std::string>;

class SwitchbackFigures : public SwitchbackTables {
 protected:
  void AddLoss(const Group& group,
               const std::string& variant,
               const std::string& seed,
               int step,
               double loss) {
    AddRow("curves", group, variant, {{"seed", seed}, {"step", step}, {"loss", loss}});
  }
  // Two models, two sizes, two numbers of tokens; int8 and fp8.
  void AddEverything() {
    const Labels variants = {
        "standard", "switchback:int8", "tensor-wise:int8", "switchback:e4m3fn"};
    for (const std::string model : {"clip", "llama"}) {
      for (const std::string size : {"2x64", "4x128"}) {
        for (const std::string tokens : {"1024", "256"}) {
          for (size_t v = 0; v < variants.size(); ++v) {
            const double gap = 0.125 * static_cast<double>(v);
            AddTraining({model, size, tokens}, variants[v], gap);
            AddGradient({model, size, tokens}, variants[v], 0.5 + gap, 0.25 + gap);
          }
        }
      }
    }
  }
  void AddTraining(const Group& group, const std::string& variant, double gap) {
    for (const std::string seed : {"0", "1", "2"}) {
      AddLoss(group, variant, seed, 0, kStart);
      AddLoss(group, variant, seed, 10, 2 + gap);
      const double own = variant == "standard" || seed == "0" ? 0 : 0.03125;
      Add(group,
          variant,
          seed,
          2 + gap + own,
          group.model == "clip" ? 0.75 - gap : kNan,
          {{"parameters", group.size == "2x64" ? "1000" : "8000"}});
    }
  }

  std::vector<Figure> All() {
    return results_.experiment().figures(results_.settings(), results_.Finish());
  }
  Figure FigureOf(const std::string& name) {
    for (const Figure& figure : All()) {
      if (figure.name == name) return figure;
    }
    ADD_FAILURE() << name;
    return {};
  }
  Labels Names() {
    Labels names;
    for (const Figure& figure : All()) names.push_back(figure.name);
    return names;
  }
  static Labels Titles(const Figure& figure) {
    Labels titles;
    for (const Panel& panel : figure.panels) titles.push_back(panel.title);
    return titles;
  }
  // Of the series in the legend.
  static Labels LabelsOf(const Panel& panel) {
    Labels labels;
    for (const Series& series : panel.series) {
      if (!series.label.empty()) labels.push_back(series.label);
    }
    return labels;
  }
  static const Series& SeriesOf(const Panel& panel, const std::string& label) {
    for (const Series& series : panel.series) {
      if (series.label == label) return series;
    }
    ADD_FAILURE() << panel.title << ": " << label;
    static const Series kNone;
    return kNone;
  }
};

TEST_F(SwitchbackFigures, NameTheirTables) {
  AddEverything();
  std::map<std::string, std::string> sources;
  for (const Figure& figure : All()) sources[figure.name] = figure.source_csv;
  EXPECT_EQ(sources,
            (std::map<std::string, std::string>{{"switchback-loss", "curves.csv"},
                                                {"switchback-gap-size", "gaps.csv"},
                                                {"switchback-gap-tokens", "gaps.csv"},
                                                {"switchback-gradient", "gradient_errors.csv"}}));
}

TEST_F(SwitchbackFigures, HaveLabelledAxesFinitePointsAndOneSeriesAVariant) {
  AddEverything();
  for (const Figure& figure : All()) {
    EXPECT_FALSE(figure.title.empty());
    EXPECT_FALSE(figure.panels.empty()) << figure.name;
    std::set<std::string> titles;
    for (const Panel& panel : figure.panels) {
      titles.insert(panel.title + panel.y.label);
      EXPECT_FALSE(panel.x.label.empty()) << figure.name;
      EXPECT_FALSE(panel.y.label.empty()) << figure.name;
      EXPECT_EQ(panel.x.log2, figure.name != "switchback-loss") << figure.name;
      EXPECT_EQ(panel.y.log10, figure.name == "switchback-gradient") << figure.name;
      const Labels labels = LabelsOf(panel);
      EXPECT_FALSE(labels.empty()) << panel.title;
      EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), labels.size());
      for (const Series& series : panel.series) {
        EXPECT_FALSE(series.x.empty()) << panel.title;
        ASSERT_EQ(series.x.size(), series.y.size());
        EXPECT_TRUE(std::is_sorted(series.x.begin(), series.x.end())) << panel.title;
        for (const double x : series.x) EXPECT_TRUE(std::isfinite(x)) << panel.title;
        for (const double y : series.y) EXPECT_TRUE(std::isfinite(y)) << panel.title;
      }
    }
    EXPECT_EQ(titles.size(), figure.panels.size()) << figure.name;
  }
}

TEST_F(SwitchbackFigures, GiveAVariantOneStyleEverywhere) {
  AddEverything();
  std::map<std::string, std::set<int>> styles;
  std::set<int> all;
  for (const Figure& figure : All()) {
    for (const Panel& panel : figure.panels) {
      for (const Series& series : panel.series) {
        if (series.label.empty()) continue;
        styles[series.label.substr(0, series.label.find(", own"))].insert(series.style);
        all.insert(series.style);
      }
    }
  }
  EXPECT_EQ(styles.size(), 4u);
  for (const auto& [label, used] : styles) EXPECT_EQ(used.size(), 1u) << label;
  EXPECT_EQ(all.size(), 4u);
}

TEST_F(SwitchbackFigures, LossHasAPanelForEachGroupAndPrecision) {
  AddEverything();
  const Figure figure = FigureOf("switchback-loss");
  ASSERT_EQ(figure.panels.size(), 16u);
  EXPECT_EQ(figure.panels[0].title, "clip 2x64, 1024 tokens, int8");
  EXPECT_EQ(figure.panels[1].title, "clip 2x64, 1024 tokens, fp8");
  EXPECT_EQ(figure.panels[15].title, "llama 4x128, 256 tokens, fp8");
  EXPECT_EQ(LabelsOf(figure.panels[0]),
            (Labels{"standard", "switchback:int8", "tensor-wise:int8"}));
  EXPECT_EQ(LabelsOf(figure.panels[1]), (Labels{"standard", "switchback:e4m3fn"}));
  EXPECT_TRUE(SeriesOf(figure.panels[0], "standard").dashed);
  EXPECT_FALSE(SeriesOf(figure.panels[0], "switchback:int8").dashed);
  EXPECT_THAT(figure.panels[0].y.label, HasSubstr("nats"));
}

TEST_F(SwitchbackFigures, LossIsTheMeanOfSeedsWithTheirRange) {
  for (const std::string variant : {"standard", "switchback:int8"}) {
    const double worse = variant == "standard" ? 0 : 1;
    AddLoss(Llama(64), variant, "0", 0, 5);
    AddLoss(Llama(64), variant, "1", 0, 5.5);
    AddLoss(Llama(64), variant, "0", 20, 2 + worse);
    AddLoss(Llama(64), variant, "1", 20, worse > 0 ? kInf : 4);
    AddLoss(Llama(128), variant, "0", 20, 99);
  }
  const Figure figure = FigureOf("switchback-loss");
  const Panel& panel = figure.panels.at(0);
  const Series& standard = SeriesOf(panel, "standard");
  EXPECT_EQ(standard.x, (std::vector<double>{0, 20}));
  EXPECT_EQ(standard.y, (std::vector<double>{5.25, 3}));
  EXPECT_EQ(standard.low, (std::vector<double>{5, 2}));
  EXPECT_EQ(standard.high, (std::vector<double>{5.5, 4}));
  EXPECT_EQ(SeriesOf(panel, "switchback:int8").y, (std::vector<double>{5.25, 3}));
  EXPECT_EQ(panel.x.low, 0);
  EXPECT_EQ(panel.x.high, 20);
}

// Variants lie beside each other: x is moved by less than a tenth, evenly to both sides.
TEST_F(SwitchbackFigures, GapsAreShownAgainstTokensWithTheirIntervals) {
  AddEverything();
  const Figure figure = FigureOf("switchback-gap-tokens");
  EXPECT_EQ(Titles(figure),
            (Labels{"clip 2x64, int8",
                    "clip 2x64, fp8",
                    "clip 2x64, int8",
                    "clip 2x64, fp8",
                    "clip 4x128, int8",
                    "clip 4x128, fp8",
                    "clip 4x128, int8",
                    "clip 4x128, fp8",
                    "llama 2x64, int8",
                    "llama 2x64, fp8",
                    "llama 4x128, int8",
                    "llama 4x128, fp8"}));
  const Panel& panel = figure.panels.at(8);
  EXPECT_EQ(LabelsOf(panel), (Labels{"switchback:int8", "tensor-wise:int8"}));
  std::set<double> places;
  for (const std::string& label : LabelsOf(panel)) {
    const Series& curve = SeriesOf(panel, label);
    ASSERT_EQ(curve.x.size(), 2u);
    EXPECT_TRUE(curve.x[0] > 256 / 1.1 && curve.x[0] < 1.1 * 256) << curve.x[0];
    EXPECT_TRUE(curve.x[1] > 1024 / 1.1 && curve.x[1] < 1.1 * 1024) << curve.x[1];
    const double gap = (label == "switchback:int8" ? 0.125 : 0.25) + 0.0625 / 3;
    EXPECT_NEAR(curve.y[0], gap, 1e-12);
    EXPECT_TRUE(places.insert(curve.x[0]).second);
    // The interval of each point: a line without a name, in the colour of the variant.
    const Interval interval = IntervalOf({gap - 0.0625 / 3, gap + 0.03125 / 3, gap + 0.03125 / 3});
    for (size_t i = 0; i < 2; ++i) {
      const auto is_bar = [&](const Series& series) {
        return series.label.empty() && !series.markers && series.style == curve.style &&
               series.x == std::vector<double>{curve.x[i], curve.x[i]} &&
               std::abs(series.y.at(0) - interval.low) < 1e-4 &&
               std::abs(series.y.at(1) - interval.high) < 1e-4;
      };
      EXPECT_EQ(std::count_if(panel.series.begin(), panel.series.end(), is_bar), 1) << label;
    }
  }
  ASSERT_EQ(places.size(), 2u);
  EXPECT_NEAR(*places.begin() * *places.rbegin(), 256 * 256, 1e-6);
  EXPECT_LT(panel.y.low, 0);
  EXPECT_GT(panel.y.high, 0.25);
}

TEST_F(SwitchbackFigures, GapsAgainstTheSizeAreThoseOfTheMostTokens) {
  AddEverything();
  for (const std::string size : {"2x64", "4x128"}) {
    AddTraining({"llama", size, "4096"}, "standard", 0);
    AddTraining({"llama", size, "4096"}, "switchback:int8", size == "2x64" ? 0.5 : 0.75);
  }
  const Figure figure = FigureOf("switchback-gap-size");
  EXPECT_EQ(Titles(figure),
            (Labels{"clip, 1024 tokens, int8",
                    "clip, 1024 tokens, fp8",
                    "clip, 1024 tokens, int8",
                    "clip, 1024 tokens, fp8",
                    "llama, 4096 tokens, int8"}));
  const Series& curve = SeriesOf(figure.panels.back(), "switchback:int8");
  EXPECT_EQ(curve.x, (std::vector<double>{1000, 8000}));
  ASSERT_EQ(curve.y.size(), 2u);
  EXPECT_NEAR(curve.y[0], 0.5 + 0.0625 / 3, 1e-12);
  EXPECT_NEAR(curve.y[1], 0.75 + 0.0625 / 3, 1e-12);
}

TEST_F(SwitchbackFigures, OneSizeHasNoFigureOfSizesAndNoShadowNoneOfGradients) {
  AddTraining(Llama(64), "standard", 0);
  AddTraining(Llama(64), "switchback:int8", 0.5);
  EXPECT_EQ(Names(), (Labels{"switchback-loss", "switchback-gap-tokens"}));
  Clear();
  AddTraining(Llama(64), "standard", 0);
  EXPECT_EQ(Names(), Labels{"switchback-loss"});
}

TEST_F(SwitchbackFigures, AccuraciesAreThoseOfClip) {
  AddEverything();
  const Figure figure = FigureOf("switchback-gap-tokens");
  size_t panels = 0;
  for (const Panel& panel : figure.panels) {
    if (panel.y.label.find("accuracy") == std::string::npos) continue;
    ++panels;
    EXPECT_EQ(panel.title.find("clip"), 0u) << panel.title;
    EXPECT_TRUE(SeriesOf(panel, "standard").dashed);
    EXPECT_EQ(SeriesOf(panel, "standard").x, (std::vector<double>{256, 1024}));
    EXPECT_EQ(SeriesOf(panel, "standard").y, (std::vector<double>{0.75, 0.75}));
    const bool is_int8 = panel.title.ends_with("int8");
    EXPECT_EQ(LabelsOf(panel).size(), is_int8 ? 3u : 2u);
    if (is_int8) {
      EXPECT_EQ(SeriesOf(panel, "tensor-wise:int8").y, (std::vector<double>{0.5, 0.5}));
    }
  }
  EXPECT_EQ(panels, 4u);
}

// A tensor-wise variant that is far off, and what diverged, is named and not drawn.
TEST_F(SwitchbackFigures, WhatIsFarAboveIsInTheTitle) {
  const std::vector<double> behind = {0.125, 0.25, 0.1875}, noise = {0.015625, -0.015625, 0},
                            diverged = {0.125, kInf, 0.125};
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:int8", behind);
  AddGaps(Llama(64), "tensor-wise:int8", {50, 51, 52});
  AddGaps(Llama(64), "switchback:e4m3fn", noise);
  AddGaps(Llama(64), "switchback:e4m3fn/e5m2", diverged);
  AddBaseline(Llama(128));
  AddGaps(Llama(128), "switchback:e4m3fn", diverged);
  AddGaps(Llama(128), "switchback:e4m3fn/e5m2", diverged);
  const Figure figure = FigureOf("switchback-gap-tokens");
  EXPECT_EQ(Titles(figure),
            (Labels{"llama 2x64, int8; above: tensor-wise:int8",
                    "llama 2x64, fp8; above: switchback:e4m3fn, switchback:e4m3fn/e5m2"}));
  const Interval gap = IntervalOf(behind);
  EXPECT_GT(figure.panels.at(0).y.high, gap.high);
  EXPECT_LT(figure.panels.at(0).y.high, 1);
  EXPECT_LT(figure.panels.at(0).y.low, 0);
}

TEST_F(SwitchbackFigures, WhatIsNotFarAboveIsDrawn) {
  AddBaseline(Llama(64));
  AddGaps(Llama(64), "switchback:int8", {0.25, 0.25, 0.25});
  AddGaps(Llama(64), "tensor-wise:int8", {0.5, 0.5, 0.5});
  const Figure figure = FigureOf("switchback-gap-tokens");
  EXPECT_EQ(Titles(figure), Labels{"llama 2x64, int8"});
  EXPECT_GT(figure.panels.at(0).y.high, 0.5);
}

TEST_F(SwitchbackFigures, ErrorsOfGradientsAreShownAgainstTokens) {
  AddEverything();
  const Figure figure = FigureOf("switchback-gradient");
  EXPECT_EQ(Titles(figure),
            (Labels{"clip 2x64, int8",
                    "clip 2x64, fp8",
                    "clip 4x128, int8",
                    "clip 4x128, fp8",
                    "llama 2x64, int8",
                    "llama 2x64, fp8",
                    "llama 4x128, int8",
                    "llama 4x128, fp8"}));
  const Panel& panel = figure.panels.at(5);
  EXPECT_EQ(LabelsOf(panel),
            (Labels{"standard", "switchback:e4m3fn", "standard, own", "switchback:e4m3fn, own"}));
  const Series& whole = SeriesOf(panel, "switchback:e4m3fn");
  const Series& own = SeriesOf(panel, "switchback:e4m3fn, own");
  EXPECT_EQ(whole.x, (std::vector<double>{256, 1024}));
  EXPECT_EQ(whole.y, (std::vector<double>{0.875, 0.875}));
  EXPECT_EQ(own.y, (std::vector<double>{0.625, 0.625}));
  EXPECT_FALSE(whole.dashed);
  EXPECT_TRUE(own.dashed);
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
