#include "numsim/plot/figure.h"

#include <cmath>
#include <cstdlib>

#include "numsim/io/shared/child_process.h"
#include "numsim/plot/internal/gnuplot_script.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using FigureTest = IoTest;

Series Line(std::string label, int style, std::vector<double> x, std::vector<double> y) {
  Series series;
  series.label = std::move(label);
  series.style = style;
  series.x = std::move(x);
  series.y = std::move(y);
  return series;
}

Figure Simple() {
  Figure figure;
  figure.name = "loss";
  figure.title = "Loss & more";
  figure.source_csv = "loss.csv";
  Panel panel;
  panel.title = "e4m3fn_sr";
  panel.x.label = "Step";
  panel.y.label = "Loss";
  panel.y.log10 = true;
  panel.series = {Line("a_1", 0, {1, 2, 3}, {10, 1, 0.1}), Line("b", 1, {1, 2, 3}, {20, 2, 0.2})};
  panel.series[1].low = {10, 1, 0.1};
  panel.series[1].high = {30, 3, 0.3};
  figure.panels = {panel};
  return figure;
}

size_t Count(std::string_view text, std::string_view wanted) {
  size_t count = 0;
  for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) ++count;
  return count;
}

bool HasGnuplot() { return !GnuplotVersion().empty(); }

// gnuplot leaves out what an axis cannot show, and the data keep it.
TEST(CurveRows, KeepsEveryNumberAndInterruptsTheCurveWithoutOne) {
  Panel panel;
  panel.y.log10 = true;
  const Series series = Line("", 0, {0, 1, 2, 3, 4, 5, 6}, {NAN, 0.5, 0, -1, 0.25, INFINITY, 0});
  EXPECT_EQ(CurveRows(panel, series), "1 0.5\n2 0\n3 -1\n4 0.25\n5 inf\n6 0\n");
  EXPECT_EQ(CurveRows(panel, Line("", 0, {1, 2, 3}, {1, NAN, 2})), "1 1\n\n3 2\n");
  EXPECT_EQ(DrawablePoints(panel, series), 2u);
  panel.x.log2 = true;
  EXPECT_EQ(CurveRows(panel, Line("", 0, {0, 1}, {1, 1})), "1 1\n");
}

TEST(BandRows, KeepsEveryEnd) {
  Panel panel;
  panel.y.log10 = true;
  Series series = Line("", 0, {1, 2, 3}, {0.5, 0.25, 1});
  series.low = {-1, 0.125, NAN};
  series.high = {1, INFINITY, 2};
  panel.series = {series};
  EXPECT_EQ(BandRows(panel, series), "1 -1 1\n2 0.125 inf\n");
}

// Ends that a logarithmic axis cannot show are drawn at its own; the data keep them.
TEST(GnuplotScript, BandsEndWhereTheAxisEnds) {
  Figure figure = Simple();
  Panel& panel = figure.panels[0];
  panel.y.low = 0.01;
  panel.y.high = 10;
  panel.series = {Line("a", 0, {1, 2}, {0.5, 0.25})};
  panel.series[0].low = {-1, 0.125};
  panel.series[0].high = {1, 0.5};
  const std::string script = GnuplotScript(figure);
  EXPECT_THAT(script, HasSubstr("1 -1 1\n"));
  EXPECT_THAT(script, HasSubstr("1:($2 < 0.01 ? 0.01 : $2 > 10 ? 10 : $2):"));
  panel.series[0].low[0] = 0.125;
  EXPECT_THAT(GnuplotScript(figure), HasSubstr("$band_1_1 using 1:2:3 with"));
}

// Points at 1, 2, ...
Panel PanelOf(std::vector<double> y, double low, double high) {
  Panel panel;
  panel.y.low = low;
  panel.y.high = high;
  std::vector<double> x(y.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1);
  panel.series = {Line("a", 0, std::move(x), std::move(y))};
  return panel;
}

TEST(BeyondText, CountsWhatThePanelDoesNotShow) {
  EXPECT_EQ(BeyondText(PanelOf({1, 2, NAN, 3}, 0, 3)), "");
  EXPECT_EQ(BeyondText(PanelOf({-5, 0, 70}, 0, 0)), "") << "the range of the data";
  EXPECT_EQ(BeyondText(PanelOf({1, 3.5, 4.0625, -0.07}, 0, 3)),
            "not shown: 2 points above, to 4.06; 1 point below, to -0.07");
  EXPECT_EQ(BeyondText(PanelOf({1, INFINITY}, 0, 0)), "not shown: 1 point that is infinite");
  Panel log = PanelOf({1, 0.5, 0, 0}, 0, 0);
  log.y.log10 = true;
  EXPECT_EQ(BeyondText(log), "not shown: 2 points at 0");
  log = PanelOf({1, 0.5, 0, -2, 1e-9}, 0.1, 10);
  log.y.log10 = true;
  EXPECT_EQ(BeyondText(log), "not shown: 1 point below, to 1e-09; 2 points at or below 0, to -2");
  Panel band = PanelOf({1, 2}, 0, 3);
  band.series[0].low = {-0.74, NAN};
  band.series[0].high = {1.5, 9};
  EXPECT_EQ(BeyondText(band), "not shown: interval ends from -0.74 to 9");
  band.series[0].y[1] = 12;
  EXPECT_EQ(BeyondText(band), "not shown: 1 point above, to 12; interval ends to -0.74");
}

TEST(BeyondText, IsAboutTheLengthOfBars) {
  Panel panel;
  panel.rows = {"a", "b"};
  panel.x.low = 0;
  panel.x.high = 2;
  panel.series = {Line("", 0, {1, 3}, {0, 1})};
  EXPECT_EQ(BeyondText(panel), "not shown: 1 point above, to 3");
}

TEST(GnuplotScript, MarksPointsBeyondTheAxisAtItsEnd) {
  Figure figure = Simple();
  figure.panels[0] = PanelOf({1, 4, INFINITY, -1}, 0, 3);
  const std::string script = GnuplotScript(figure);
  EXPECT_THAT(script, HasSubstr("1 1\n2 4\n3 inf\n4 -1\n"));
  EXPECT_THAT(script, HasSubstr("using 1:($2 > 3 ? 3 : NaN) with points"));
  EXPECT_THAT(script, HasSubstr("using 1:($2 < 0 ? 0 : NaN) with points"));
  EXPECT_THAT(script, HasSubstr("not shown: 1 point above"));
  figure.panels[0] = PanelOf({1, 2, 3}, 0, 3);
  EXPECT_THAT(GnuplotScript(figure), Not(HasSubstr("NaN) with points")));
}

// Returns the commands of the x axis of base 2 for data from `low` to `high`.
std::string Log2Axis(double low, double high) {
  Axis axis;
  axis.log2 = true;
  return AxisCommands('x', axis, {low, high, false});
}

TEST(AxisCommands, NarrowAxisOfBaseTwoHasTicsAtThePowersOfTwo) {
  EXPECT_THAT(Log2Axis(64, 128), HasSubstr("set xtics ('64' 64, '128' 128)\n"));
  EXPECT_THAT(Log2Axis(32, 128), HasSubstr("set xtics ('32' 32, '64' 64, '128' 128)\n"));
  EXPECT_THAT(Log2Axis(0.25, 1), HasSubstr("set xtics ('0.25' 0.25, '0.5' 0.5, '1' 1)\n"));
}

TEST(AxisCommands, AxisOfBaseTwoWithoutTwoPowersHasRoundNumbers) {
  EXPECT_THAT(Log2Axis(70, 120), HasSubstr("'80' 80, "));
}

TEST(AxisCommands, WideAxisOfBaseTwoLeavesTheTicsToGnuplot) {
  EXPECT_THAT(Log2Axis(64, 131072), HasSubstr("set xtics autofreq\n"));
}

TEST(LegendOf, ListsEachLookOnceOverAllPanels) {
  Figure figure = Simple();
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].series[0].label = "";
  figure.panels[1].series[1].dashed = true;
  const std::vector<LegendEntry> legend = LegendOf(figure);
  ASSERT_EQ(legend.size(), 3u);
  EXPECT_EQ(legend[0].label, "a_1");
  EXPECT_EQ(legend[1].label, "b");
  EXPECT_TRUE(legend[2].dashed);
}

TEST(LayOut, PanelsAndLegendDoNotOverlap) {
  Figure figure = Simple();
  figure.columns = 2;
  for (int i = 0; i < 4; ++i) figure.panels.push_back(figure.panels[0]);
  const FigureLayout layout = LayOut(figure);
  EXPECT_NEAR(layout.width_inches, 6.8, 1e-9);
  for (size_t i = 0; i < layout.panels.size(); ++i) {
    const PageArea& a = layout.panels[i];
    EXPECT_TRUE(0 < a.left && a.left < a.right && a.right < 1);
    EXPECT_TRUE(layout.legend.top < a.bottom && a.bottom < a.top && a.top < layout.title_top);
    for (size_t j = 0; j < i; ++j) {
      const PageArea& b = layout.panels[j];
      EXPECT_TRUE(a.left > b.right || b.left > a.right || a.bottom > b.top || b.bottom > a.top);
    }
  }
}

// Returns the width of a panel's plot in inches.
double PlotWidth(const FigureLayout& layout, size_t panel) {
  return (layout.panels[panel].right - layout.panels[panel].left) * layout.width_inches;
}

TEST(LayOut, AGivenWidthIsKeptAndPanelsStandBelowEachOther) {
  Figure figure = Simple();
  figure.columns = 2;
  figure.panels.push_back(figure.panels[0]);
  for (const auto& [width, columns] : {std::pair{3.3, 1}, {5.0, 2}, {6.8, 2}, {20.0, 2}}) {
    const FigureStyle style{.width = width};
    const FigureLayout layout = LayOut(Arranged(figure, style), style);
    EXPECT_NEAR(layout.width_inches, width, 1e-9);
    EXPECT_EQ(layout.panels[0].left == layout.panels[1].left, columns == 1) << width;
    EXPECT_NEAR(PlotWidth(layout, 0), PlotWidth(layout, 1), 1e-9);
    EXPECT_GT(PlotWidth(layout, 0), 0.6 * width / columns);
  }
}

TEST(LayOut, TextOfAnotherSizeTakesItsRoom) {
  const Figure figure = Simple();
  const FigureLayout small = LayOut(figure, {.width = 3.3, .font = 6});
  const FigureLayout large = LayOut(figure, {.width = 3.3, .font = 12});
  EXPECT_LT(PlotWidth(large, 0), PlotWidth(small, 0));
  EXPECT_LT(large.panels[0].top * large.height_inches, large.height_inches - 0.3);
  const std::string script = GnuplotScript(figure, {.width = 3.3, .font = 12});
  EXPECT_THAT(script, HasSubstr("font 'Helvetica,12'"));
  EXPECT_THAT(script, HasSubstr("font ',13'"));
}

TEST(LayOut, TooSmallAWidthIsAnErrorThatNamesOneThatIsEnough) {
  const Figure figure = Simple();
  const std::string message = ErrorOf([&] { LayOut(figure, {.width = 1, .font = 20}); });
  ExpectMessage(message, {"figure loss", "1 inches", "20 points", "expected at least 2"});
  const double enough = std::stod(message.substr(message.rfind("least ") + 6));
  EXPECT_NO_THROW(LayOut(figure, {.width = enough, .font = 20}));
}

TEST(LayOut, TheLabelOfTheYAxisIsBesideTheLabelsOfItsTics) {
  Figure figure = Simple();
  figure.panels[0].series = {Line("a", 0, {1, 2}, {0.00012, 0.00023})};
  figure.panels[0].y.log10 = false;
  for (const double width : {0.0, 3.3}) {
    const FigureLayout layout = LayOut(figure, {.width = width});
    const double room = (layout.panels[0].left - layout.panels[0].y_label_x) * layout.width_inches;
    EXPECT_GT(room, 7 * 0.06) << "0.00012 has seven characters";
    EXPECT_GT(layout.panels[0].y_label_x * layout.width_inches, 0.05);
  }
}

TEST(LayOut, LongLabelsAreBroken) {
  Figure figure = Simple();
  const std::string words =
      "some words that are far too many for a column of a paper, and some more";
  figure.panels[0].x.label = figure.panels[0].y.label = words;
  figure.panels[0].series[0].label = words;
  const FigureLayout layout = LayOut(figure, {.width = 3.3});
  EXPECT_GT(layout.panels[0].x_label_lines.size(), 1u);
  EXPECT_GT(layout.panels[0].y_label_lines.size(), 1u);
  EXPECT_EQ(layout.legend_columns, 1);
  EXPECT_EQ(layout.legend_lines[0].size(), 2u);
  EXPECT_GT(LayOut(figure, {.width = 3.3}).height_inches,
            LayOut(Simple(), {.width = 3.3}).height_inches + 0.3);
}

TEST(Arranged, ShowsThePanelsOfTheStyleInItsOrder) {
  Figure figure = Simple();
  for (const char* const title : {"second", "third"}) {
    figure.panels.push_back(figure.panels[0]);
    figure.panels.back().title = title;
  }
  const Figure chosen = Arranged(figure, {.panels = {3, 1}});
  ASSERT_EQ(chosen.panels.size(), 2u);
  EXPECT_EQ(chosen.panels[0].title, "third");
  EXPECT_EQ(chosen.panels[1].title, "e4m3fn_sr");
  for (const size_t number : {0, 4}) {
    ExpectMessage(ErrorOf([&] { Arranged(figure, {.panels = {number}}); }),
                  {"figure loss", "no panel", "1 to 3"});
  }
}

TEST(Arranged, PanelsShareTheRangeOfAllValuesUnlessTheyHaveTheirOwn) {
  Figure figure = Simple();
  figure.same_y = true;
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].series = {Line("a", 0, {1, 2}, {1e-3, 1})};
  figure.panels.push_back(figure.panels[0]);
  figure.panels[2].y.low = 1;
  figure.panels[2].y.high = 2;
  const std::vector<Panel> panels = Arranged(figure, {}).panels;
  EXPECT_EQ(panels[0].y.low, panels[1].y.low);
  EXPECT_EQ(panels[0].y.high, panels[1].y.high);
  EXPECT_TRUE(panels[0].y.low < 1e-3 && panels[0].y.high > 30);
  EXPECT_EQ(panels[2].y.high, 2);
}

TEST(LegendOf, PointsThatNoLineJoinsAreShownWithoutALine) {
  Figure figure = Simple();
  figure.panels[0].series = {Line("one", 0, {1}, {1}),
                             Line("apart", 1, {1, 2, 3}, {1, NAN, 1}),
                             Line("line", 2, {1, 2, 3}, {1, 1, NAN})};
  const std::vector<LegendEntry> legend = LegendOf(figure);
  ASSERT_EQ(legend.size(), 3u);
  EXPECT_FALSE(legend[0].line);
  EXPECT_FALSE(legend[1].line);
  EXPECT_TRUE(legend[2].line);
  EXPECT_THAT(GnuplotScript(figure), HasSubstr("2 with points"));
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].series[0] = Line("one", 0, {1, 2}, {1, 2});
  EXPECT_TRUE(LegendOf(figure)[0].line) << "a line in another panel";
}

TEST(GnuplotScript, CurvesThatCoincideHaveTheirMarkersAtDifferentPoints) {
  std::vector<double> x(100), y(100);
  for (size_t i = 0; i < x.size(); ++i) x[i] = y[i] = 1 + static_cast<double>(i);
  Figure figure = Simple();
  figure.panels[0].series = {Line("a", 0, x, y), Line("b", 1, x, y), Line("c", 4, x, y)};
  const std::string script = GnuplotScript(figure);
  for (const char* const every : {"every 5::0", "every 5::1", "every 5::4"}) {
    EXPECT_THAT(script, HasSubstr(every));
  }
  figure.panels[0].series[0].low = figure.panels[0].series[0].high = y;
  EXPECT_THAT(GnuplotScript(figure), HasSubstr("filledcurves"));
  figure.panels[0].series[0].error_bars = true;
  EXPECT_THAT(GnuplotScript(figure), Not(HasSubstr("filledcurves")));
  EXPECT_THAT(GnuplotScript(figure), HasSubstr("yerrorbars"));
}

TEST(WrapMarkup, BreaksNeverWithinBracesAndCountsWhatIsShown) {
  const TextLines lines = WrapMarkup("norm {/Italic x y} of x_{max} z", 12);
  EXPECT_EQ(lines, (TextLines{"norm {/Italic x y} of", "x_{max} z"}));
  EXPECT_TRUE(WrapMarkup("", 5).empty());
}

TEST(WrapText, BreaksAtBlanksOnly) {
  EXPECT_EQ(WrapText("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(WrapText("unbreakable", 4), std::vector<std::string>{"unbreakable"});
  EXPECT_EQ(WrapText("\xc3\xa9\xc3\xa9 b", 4), std::vector<std::string>{"\xc3\xa9\xc3\xa9 b"});
  EXPECT_TRUE(WrapText("", 4).empty());
}

TEST(GnuplotText, CannotBeLeft) {
  EXPECT_EQ(GnuplotText("it's `id` \"$x\" \\"), "'it''s `id` \"$x\" \\'");
  EXPECT_EQ(GnuplotText("a\nb\tc"), "'a'.\"\\n\".'b c'");
}

TEST(GnuplotScript, HoldsDataAndBothFilesAndNoPath) {
  const std::string script = GnuplotScript(Simple());
  for (const char* const text : {"from loss.csv",
                                 "$curve_1_1 << EOD\n1 10\n2 1\n3 0.1\nEOD\n",
                                 "$band_1_2 << EOD\n1 10 30\n",
                                 "'svg pdf'",
                                 "set output 'loss'.'.'.kind",
                                 "set logscale y 10",
                                 "unset logscale x",
                                 "title 'a_1'",
                                 "set title 'e4m3fn_sr' noenhanced",
                                 "noenhanced"}) {
    EXPECT_THAT(script, HasSubstr(text));
  }
  EXPECT_EQ(Count(script, "title 'b'"), 1u);
  EXPECT_EQ(script.find("\n1 10 30\n") < script.find("with filledcurves"), true);
  EXPECT_LT(script.find("with filledcurves"), script.find("with linespoints"));
  EXPECT_THAT(script, Not(HasSubstr(std::filesystem::temp_directory_path().string())));
  EXPECT_EQ(script, GnuplotScript(Simple()));
}

TEST(GnuplotScript, SameStyleLooksTheSameInEveryPanel) {
  Figure figure = Simple();
  figure.panels.push_back(figure.panels[0]);
  std::swap(figure.panels[1].series[0], figure.panels[1].series[1]);
  const std::string script = GnuplotScript(figure);
  const std::string look = "linecolor rgb '#0072B2' dashtype 1 ";
  EXPECT_EQ(Count(script, look), 3u);  // two panels and the legend
}

TEST(GnuplotScript, NarrowLogAxisShowsNumbers) {
  Figure figure = Simple();
  figure.panels[0].series = {Line("a", 0, {1, 2}, {3.1, 3.3})};
  const std::string script = GnuplotScript(figure);
  EXPECT_THAT(script, HasSubstr("'3.2' 3.2"));
}

// Two series of bars in rows with names, beside a panel of curves.
Figure Bars() {
  Figure figure = Simple();
  figure.columns = 2;
  Panel panel;
  panel.x.label = "Error";
  panel.rows = {"blocks.0.mlp.gate_up weight-gradient.x", "head", "b"};
  panel.series = {Line("c", 2, {0.5, -0.25, NAN}, {0, 1, 2}), Line("", 3, {INFINITY, 1}, {0, 2})};
  figure.panels.insert(figure.panels.begin(), panel);
  return figure;
}

TEST(BarRows, BeginAtZeroAndShareTheHeightOfTheRow) {
  const Panel panel = Bars().panels[0];
  EXPECT_EQ(BarRows(panel, 0), "0.5 0 0 0.5 -0.4 0\n-0.25 1 -0.25 0 0.6 1\n");
  EXPECT_EQ(BarRows(panel, 1), "1 2 0 1 2 2.4\n");
  EXPECT_EQ(ExtentOfX(panel).low, -0.25);
  EXPECT_EQ(ExtentOfX(panel).high, 1);
  Panel positive = panel;
  positive.series = {Line("", 0, {3, 2}, {0, 1})};
  EXPECT_EQ(ExtentOfX(positive).low, 0);
}

TEST(ErrorBarRows, LieInTheMiddleOfTheirBars) {
  Panel panel;
  panel.rows = {"a", "b"};
  panel.series = {Line("", 0, {3, -2}, {0, 1}), Line("", 1, {1, NAN}, {0, 1})};
  EXPECT_EQ(ErrorBarRows(panel, 0), "");
  panel.series[0].low = {2.5, -7};
  panel.series[0].high = {3.5, 9};
  panel.series[1].low = {0, 0};
  panel.series[1].high = {2, 2};
  // Each of two bars is 0.4 high.
  EXPECT_EQ(ErrorBarRows(panel, 0), "3 -0.2 2.5 3.5\n-2 0.8 -7 9\n");
  EXPECT_EQ(ErrorBarRows(panel, 1), "1 0.2 0 2\n");
  EXPECT_EQ(ExtentOfX(panel).low, -7);
  EXPECT_EQ(ExtentOfX(panel).high, 9);
  panel.series[0].high[1] = NAN;
  EXPECT_EQ(ErrorBarRows(panel, 0), "3 -0.2 2.5 3.5\n");
}

// Dots in rows with names, one of them infinite.
Figure Dots() {
  Figure figure = Simple();
  Panel panel;
  panel.dots = true;
  panel.rows = {"none", "clip"};
  panel.x.log10 = true;
  panel.series = {Line("a", 0, {3, INFINITY}, {0, 1}), Line("b", 1, {30, 40}, {0, 1})};
  panel.series[1].low = {20, NAN};
  panel.series[1].high = {50, NAN};
  figure.panels = {panel};
  return figure;
}

TEST(DotRows, LieWhereTheMiddleOfABarWouldBe) {
  const Panel panel = Dots().panels[0];
  EXPECT_EQ(DotRows(panel, 0), "3 -0.2\ninf 0.8\n");
  EXPECT_EQ(DotRows(panel, 1), "30 0.2\n40 1.2\n");
  EXPECT_EQ(ErrorBarRows(panel, 1), "30 0.2 20 50\n");
  EXPECT_EQ(ExtentOfX(panel).low, 3);  // and not 0
  EXPECT_EQ(ExtentOfX(panel).high, 50);
  EXPECT_EQ(BeyondText(panel), "not shown: 1 point that is infinite");
}

TEST(GnuplotScript, DotsHaveNamesTheMarkersOfTheirSeriesAndErrorBars) {
  const std::string script = GnuplotScript(Dots());
  for (const char* const text :
       {"set logscale x 10",
        "set ytics ('none' 0, 'clip' 1) noenhanced",
        "$errors_1_2 using 1:2:3:4 with xerrorbars pointtype -1 linecolor rgb "
        "'#D55E00'",
        "$bars_1_1 using 1:2 with points linecolor rgb '#0072B2'",
        "$bars_1_1 using ($1 > ",
        "2 with points linecolor rgb '#D55E00' linewidth line_width pointtype 5 "
        "pointsize marker_size title 'b'"}) {
    EXPECT_THAT(script, HasSubstr(text));
  }
  EXPECT_THAT(script, Not(HasSubstr("boxxyerror")));
  EXPECT_THAT(script, Not(HasSubstr("$bars_1_2 using (")));
}

TEST_F(FigureTest, DotsAreDrawn) {
  if (!HasGnuplot()) GTEST_SKIP() << "no gnuplot that writes SVG and PDF";
  EXPECT_EQ(DrawFigure(Dots(), Directory()).size(), 3u);
  EXPECT_THAT(Bytes(Path("loss.svg")), HasSubstr(">clip<"));
}

// A band of one point would have no area.
TEST(GnuplotScript, OnePointHasAnErrorBar) {
  Figure figure = Simple();
  EXPECT_THAT(GnuplotScript(figure), Not(HasSubstr("yerrorbars")));
  figure.panels[0].series[1] = Line("b", 1, {1}, {2});
  figure.panels[0].series[1].low = {1};
  figure.panels[0].series[1].high = {3};
  EXPECT_THAT(GnuplotScript(figure),
              HasSubstr("$band_1_2 using 1:(($2+$3)/2):2:3 with yerrorbars"));
  EXPECT_THAT(GnuplotScript(figure), Not(HasSubstr("filledcurves")));
}

TEST(GnuplotScript, BarsHaveTheirNamesFromTheTopDown) {
  const std::string script = GnuplotScript(Bars());
  for (const char* const text :
       {"$bars_1_1 << EOD\n0.5 0 0 0.5 -0.4 0\n",
        "set yrange [2.5:-0.5]",
        "set ytics ('blocks.0.mlp.gate_up weight-gradient.x' 0, 'head' 1, "
        "'b' 2) noenhanced",
        "with boxxyerror linecolor rgb '#009E73'",
        "NaN with boxes linecolor rgb '#009E73' fillstyle solid 0.85 noborder "
        "title 'c'",
        "set ytics enhanced\nunset label 2\n\n# Panel 2\n"}) {
    EXPECT_THAT(script, HasSubstr(text));
  }
  EXPECT_THAT(script, Not(HasSubstr("$curve_1")));
}

TEST(LayOut, NamesOfBarsTakeWidthAndRowsTakeHeight) {
  Figure figure = Bars();
  const FigureLayout layout = LayOut(figure);
  Figure curves = figure;
  curves.panels[0] = curves.panels[1];
  const FigureLayout plain = LayOut(curves);
  EXPECT_GT(layout.width_inches, plain.width_inches + 1);
  EXPECT_EQ(layout.height_inches, plain.height_inches);
  const auto width = [](const FigureLayout& of, size_t panel) {
    return (of.panels[panel].right - of.panels[panel].left) * of.width_inches;
  };
  for (const size_t panel : {0, 1}) EXPECT_NEAR(width(layout, panel), width(plain, panel), 1e-9);
  figure.panels[0].rows.resize(40);
  EXPECT_GT(LayOut(figure).height_inches, layout.height_inches + 3);
}

TEST_F(FigureTest, BarsAreDrawn) {
  if (!HasGnuplot()) GTEST_SKIP() << "no gnuplot that writes SVG and PDF";
  Figure figure = Bars();
  Panel empty;
  empty.rows = {"it's `touch pwned`"};
  empty.series = {Line("", 0, {NAN}, {0})};
  figure.panels.push_back(empty);
  EXPECT_EQ(DrawFigure(figure, Directory()).size(), 3u);
  EXPECT_EQ(Names().size(), 3u);
  EXPECT_THAT(Bytes(Path("loss.svg")), HasSubstr("blocks.0.mlp.gate_up weight-gradient.x"));
}

TEST_F(FigureTest, SvgAndPdfStandBesideAScriptThatRedrawsThem) {
  if (!HasGnuplot()) GTEST_SKIP() << "no gnuplot that writes SVG and PDF";
  const std::vector<std::string> expected = {"loss.gp", "loss.svg", "loss.pdf"};
  EXPECT_EQ(DrawFigure(Simple(), Directory()), expected);
  EXPECT_EQ(Names(), (std::vector<std::string>{"loss.gp", "loss.pdf", "loss.svg"}));
  const std::string svg = Bytes(Path("loss.svg"));
  EXPECT_THAT(svg, HasSubstr("Loss &amp; more"));
  EXPECT_THAT(svg, HasSubstr("e4m3fn_sr"));
  EXPECT_TRUE(Bytes(Path("loss.pdf")).starts_with("%PDF-"));

  std::filesystem::remove(Path("loss.svg"));
  std::filesystem::remove(Path("loss.pdf"));
  const auto redrawn = RunProgram({"gnuplot", "loss.gp"}, Directory(), {});
  ASSERT_TRUE(redrawn);
  EXPECT_EQ(redrawn->exit_code, 0) << redrawn->output;
  EXPECT_EQ(redrawn->output, "");
  EXPECT_EQ(Bytes(Path("loss.svg")), svg);
  EXPECT_TRUE(std::filesystem::exists(Path("loss.pdf")));
}

TEST_F(FigureTest, TwoDrawingsHaveTheSameBytes) {
  if (!HasGnuplot()) GTEST_SKIP() << "no gnuplot that writes SVG and PDF";
  DrawFigure(Simple(), Directory());
  const std::string svg = Bytes(Path("loss.svg")), pdf = Bytes(Path("loss.pdf"));
  EXPECT_THAT(pdf, HasSubstr("/CreationDate (D:19700101000000"));
  DrawFigure(Simple(), Directory());
  EXPECT_EQ(Bytes(Path("loss.svg")), svg);
  EXPECT_EQ(Bytes(Path("loss.pdf")), pdf);
}

TEST_F(FigureTest, DataThatCannotBeDrawnGiveAnEmptyPanelAndNoError) {
  if (!HasGnuplot()) GTEST_SKIP() << "no gnuplot that writes SVG and PDF";
  Figure figure = Simple();
  const auto add = [&](std::vector<double> x, std::vector<double> y, bool log) {
    Panel panel;
    panel.y.log10 = log;
    panel.series = {Line("x", 0, std::move(x), std::move(y))};
    figure.panels.push_back(panel);
  };
  for (const bool log : {false, true}) {
    add({}, {}, log);
    add({1, 2}, {NAN, -INFINITY}, log);
    add({1}, {1}, log);
    add({1, 2}, {0, 0}, log);
    add({1, 2}, {5, 5}, log);
    add({1, 2}, {1e17, 1e17 + 16}, log);
    add({1e-300, 2e-300}, {1e-300, 2e-300}, log);
    add({5e-324, 1}, {5e-324, 1}, log);
    add({-1e300, 1e300}, {1, 1e300}, log);
    add({-1.7e308, 1.7e308}, {1, 1.7e308}, log);
  }
  figure.panels.push_back(Panel{});
  EXPECT_EQ(DrawFigure(figure, Directory()).size(), 3u);
}

TEST_F(FigureTest, LabelsRunNoCommands) {
  if (!HasGnuplot()) GTEST_SKIP() << "no gnuplot that writes SVG and PDF";
  Figure figure = Simple();
  const std::string hostile = "`touch pwned`'.system('touch pwned').' \"`touch pwned`\" @x $y \\";
  figure.title = figure.panels[0].title = hostile;
  figure.source_csv = "a.csv\nsystem('touch pwned')";
  figure.panels[0].x.label = figure.panels[0].series[0].label = hostile;
  figure.name = "it's `touch pwned`";
  EXPECT_EQ(DrawFigure(figure, Directory()).size(), 3u);
  EXPECT_EQ(Names().size(), 3u);
}

TEST_F(FigureTest, WithoutGnuplotOnlyTheScriptIsWritten) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", Directory().c_str(), 1);
  const std::vector<std::string> written = DrawFigure(Simple(), Directory());
  const std::string version = GnuplotVersion();
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(version, "");
  EXPECT_EQ(written, std::vector<std::string>{"loss.gp"});
  EXPECT_EQ(Names(), std::vector<std::string>{"loss.gp"});
}

TEST_F(FigureTest, FailureOfGnuplotIsAnErrorWithWhatItSaid) {
  Put("gnuplot",
      "#!/bin/sh\n"
      "case \"$2\" in --version) echo gnuplot 9.9;; -e) ;; *) echo line 3: no luck >&2; exit 1;; "
      "esac\n");
  std::filesystem::permissions(Path("gnuplot"), std::filesystem::perms::all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (Directory().string() + ":" + path).c_str(), 1);
  const std::string message = ErrorOf([&] { DrawFigure(Simple(), Directory()); });
  ::setenv("PATH", path.c_str(), 1);
  ExpectMessage(message, {"loss.gp", "gnuplot failed", "line 3: no luck"});
  EXPECT_EQ(Names(), (std::vector<std::string>{"gnuplot", "loss.gp"}));
}

TEST_F(FigureTest, MissingDirectoryIsAnError) {
  ExpectMessage(ErrorOf([&] { DrawFigure(Simple(), Path("no")); }), {"loss.gp", "No such file"});
}

}  // namespace
}  // namespace numsim
