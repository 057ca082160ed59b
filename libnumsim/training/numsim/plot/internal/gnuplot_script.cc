#include "numsim/plot/internal/gnuplot_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/io/csv.h"

namespace numsim {
namespace {

// Okabe and Ito's palette for all kinds of colour vision [OkabeIto], except that grey replaces
// yellow, which is hard to see on white paper.
constexpr std::array<std::string_view, 8> kColours = {
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#808080"};
// Dash and gap lengths. Seven dashes for eight colours, so that style 8 differs from style 0.
constexpr std::array<std::string_view, 7> kDashes = {
    "1", "(12,4)", "(12,4,2,4)", "(6,3)", "(16,4,2,4,2,4)", "(18,4,6,4)", "(6,3,2,3)"};
constexpr std::string_view kPredictionDash = "(2.5,3)";  // dotted; no style uses it
// Filled circle, square, triangles, diamond, pentagon, then hollow versions.
constexpr std::array<int, 11> kMarkers = {7, 5, 9, 13, 11, 15, 6, 4, 8, 12, 10};
constexpr size_t kMostMarkers = 20;  // per curve; with more points, every n-th point has a marker

constexpr std::string_view kSettings = R"(set encoding utf8
set border 3 linecolor rgb '#404040' linewidth 0.6
set tics nomirror out scale 0.6, 0.3 textcolor rgb 'black'
set grid xtics ytics back linetype 1 linecolor rgb '#DDDDDD' linewidth 0.5 dashtype 1
set style fill transparent solid 0.2 noborder
set xlabel offset 0, 0.2
unset key
)";

template <typename List>
auto Cyclic(const List& list, int style) {
  NUMSIM_REQUIRE(style >= 0, "figure: style {}, expected >= 0", style);
  return list[static_cast<size_t>(style) % list.size()];
}

std::string MarkerOf(int style) {
  return fmt::format(" pointtype {} pointsize marker_size", Cyclic(kMarkers, style));
}

// Returns the style options of a curve.
std::string CurveStyle(int style, bool dashed, bool markers) {
  std::string text = fmt::format("with {} linecolor rgb '{}' dashtype {} linewidth line_width",
                                 markers ? "linespoints" : "lines",
                                 Cyclic(kColours, style),
                                 dashed ? kPredictionDash : Cyclic(kDashes, style));
  return markers ? text + MarkerOf(style) : text;
}

// Returns the style options of the markers of a curve alone.
std::string MarkersStyle(int style) {
  return fmt::format("with points linecolor rgb '{}' linewidth line_width{}",
                     Cyclic(kColours, style),
                     MarkerOf(style));
}

std::string BandStyle(int style) {
  return fmt::format("with filledcurves linecolor rgb '{}'", Cyclic(kColours, style));
}

// A bar from the low to the high end.
std::string ErrorBarStyle(int style) {
  return fmt::format(
      "with yerrorbars pointtype -1 linecolor rgb '{}' dashtype 1 linewidth line_width",
      Cyclic(kColours, style));
}

// The same along x.
std::string RowErrorBarStyle(std::string_view colour) {
  return fmt::format(
      "with xerrorbars pointtype -1 linecolor rgb '{}' dashtype 1 linewidth line_width", colour);
}

std::string BarStyle(int style) {
  return fmt::format("with boxxyerror linecolor rgb '{}' fillstyle solid 0.85 noborder",
                     Cyclic(kColours, style));
}

std::string BlockName(std::string_view kind, size_t panel, size_t series) {
  return fmt::format("${}_{}_{}", kind, panel + 1, series + 1);
}

std::string JoinedLines(const TextLines& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// Returns `text` made safe for a comment: a comment must not continue on the next line, and
// backquotes are not documented to be safe in comments.
std::string CommentText(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '`' || c == '\\') c = ' ';
  }
  return result;
}

std::string HeadComment(const Figure& figure) {
  std::string text = fmt::format("# Figure {}, made by numsim", CommentText(figure.name));
  if (!figure.source_csv.empty()) text += " from " + CommentText(figure.source_csv);
  return text + fmt::format(".\n# Redraw: gnuplot {0}.gp   (writes {0}.svg and {0}.pdf here)\n",
                            CommentText(figure.name));
}

std::string DataBlocks(const Figure& figure) {
  std::string text;
  const auto append = [&](const std::string& name, const std::string& rows) {
    if (!rows.empty()) text += fmt::format("{} << EOD\n{}EOD\n", name, rows);
  };
  for (size_t p = 0; p < figure.panels.size(); ++p) {
    const Panel& panel = figure.panels[p];
    for (size_t s = 0; s < panel.series.size(); ++s) {
      if (!panel.series[s].label.empty()) {
        text += fmt::format("# {}\n", CommentText(panel.series[s].label));
      }
      if (!panel.rows.empty()) {
        append(BlockName("bars", p, s), panel.dots ? DotRows(panel, s) : BarRows(panel, s));
        append(BlockName("errors", p, s), ErrorBarRows(panel, s));
        continue;
      }
      append(BlockName("curve", p, s), CurveRows(panel, panel.series[s]));
      append(BlockName("band", p, s), BandRows(panel, panel.series[s]));
    }
  }
  return text;
}

std::string Margins(const PageArea& area) {
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n"
      "set bmargin at screen {:.5f}\nset tmargin at screen {:.5f}\n",
      area.left,
      area.right,
      area.bottom,
      area.top);
}

std::string PlotCommand(const std::vector<std::string>& items) {
  return fmt::format("plot {}\n", fmt::join(items, ", \\\n     "));
}

std::vector<std::string> BarItems(const Panel& panel, size_t index) {
  std::vector<std::string> items;
  for (size_t s = 0; s < panel.series.size(); ++s) {
    if (DrawablePoints(panel, panel.series[s]) == 0) continue;
    items.push_back(BlockName("bars", index, s) + " using 1:2:3:4:5:6 " +
                    BarStyle(panel.series[s].style));
  }
  for (size_t s = 0; s < panel.series.size(); ++s) {
    if (ErrorBarRows(panel, s).empty()) continue;
    items.push_back(fmt::format(
        "{} using 1:2:3:4 {}", BlockName("errors", index, s), RowErrorBarStyle("black")));
  }
  return items;
}

// Adds the markers of the points of a block beyond the axis, at its ends: an upward and a downward triangle.
// `columns` selects the points in relation {0} to an end {1} of the axis, and puts them there.
void AddBeyondItems(const std::string& block,
                    const std::vector<double>& values,
                    const Extent& shown,
                    std::string_view columns,
                    int style,
                    std::vector<std::string>& items) {
  const auto add = [&](bool any, char relation, double end, int marker) {
    if (!any) return;
    items.push_back(fmt::format(
        "{} using {} with points linecolor rgb '{}' pointtype {} pointsize 1.5*marker_size",
        block,
        fmt::format(fmt::runtime(columns), relation, FormatCell(end)),
        Cyclic(kColours, style),
        marker));
  };
  const auto above = [&](double value) { return value > shown.high; };
  const auto below = [&](double value) { return value < shown.low; };
  add(std::any_of(values.begin(), values.end(), above), '>', shown.high, 9);
  add(std::any_of(values.begin(), values.end(), below), '<', shown.low, 11);
}

// Returns the error bars first, so that dots are drawn on top.
std::vector<std::string> DotItems(const Panel& panel, size_t index) {
  std::vector<std::string> items;
  for (size_t s = 0; s < panel.series.size(); ++s) {
    if (ErrorBarRows(panel, s).empty()) continue;
    items.push_back(fmt::format("{} using 1:2:3:4 {}",
                                BlockName("errors", index, s),
                                RowErrorBarStyle(Cyclic(kColours, panel.series[s].style))));
  }
  const Extent shown = ShownRange(panel.x, ExtentOfX(panel));
  for (size_t s = 0; s < panel.series.size(); ++s) {
    const Series& series = panel.series[s];
    if (DotRows(panel, s).empty()) continue;
    const std::string block = BlockName("bars", index, s);
    items.push_back(block + " using 1:2 " + MarkersStyle(series.style));
    AddBeyondItems(block, series.x, shown, "($1 {0} {1} ? {1} : NaN):2", series.style, items);
  }
  return items;
}

// Returns the commands for the title and the labels of a panel. gnuplot would put the label of the y
// axis over the labels of its tics if they are wider than it expects.
std::string LabelCommands(const PanelLayout& panel) {
  std::string text = fmt::format("set title {} noenhanced offset 0, -0.5\nset xlabel {} enhanced\n",
                                 GnuplotText(JoinedLines(panel.title_lines)),
                                 GnuplotText(JoinedLines(panel.x_label_lines)));
  if (panel.y_label_lines.empty()) return text + "unset label 3\n";
  return text +
         fmt::format("set label 3 {} at screen {:.5f}, screen {:.5f} center rotate enhanced\n",
                     GnuplotText(JoinedLines(panel.y_label_lines)),
                     panel.y_label_x,
                     (panel.bottom + panel.top) / 2);
}

// Returns the ends of a band as columns 2 and 3. An end that the axis cannot show, which is not
// positive or infinite, is drawn at the end of the axis; the data keep it.
std::pair<std::string, std::string> BandEnds(const Panel& panel, const Series& series) {
  const auto drawable = [&](double end) { return std::isnan(end) || IsDrawable(panel.y, end); };
  if (std::all_of(series.low.begin(), series.low.end(), drawable) &&
      std::all_of(series.high.begin(), series.high.end(), drawable)) {
    return {"2", "3"};
  }
  const Extent shown = ShownRange(panel.y, ExtentOfY(panel));
  const auto within = [&](int column) {
    return fmt::format("(${0} < {1} ? {1} : ${0} > {2} ? {2} : ${0})",
                       column,
                       FormatCell(shown.low),
                       FormatCell(shown.high));
  };
  return {within(2), within(3)};
}

// Returns the item that draws the band of a curve, or its error bars.
std::string BandItem(const Panel& panel, size_t index, size_t s) {
  const Series& series = panel.series[s];
  const auto [low, high] = BandEnds(panel, series);
  const bool bars = series.error_bars || DrawablePoints(panel, series) == 1;
  return BlockName("band", index, s) +
         (bars
              ? fmt::format(" using 1:(($2+$3)/2):{}:{} {}", low, high, ErrorBarStyle(series.style))
              : fmt::format(" using 1:{}:{} {}", low, high, BandStyle(series.style)));
}

// Adds the items that draw a curve. If not every point has a marker, those of the styles are at
// different points, so that curves that coincide can be told apart.
void AddCurveItems(const Series& series,
                   size_t points,
                   const std::string& block,
                   std::vector<std::string>& items) {
  const size_t interval = (points + kMostMarkers - 1) / kMostMarkers;
  const bool apart = series.markers && interval > 1;
  items.push_back(block + " using 1:2 " +
                  CurveStyle(series.style, series.dashed, series.markers && !apart));
  if (!apart) return;
  const auto style = static_cast<size_t>(series.style);
  const size_t spread = style % kColours.size() * interval / kColours.size();
  const size_t first = interval < kColours.size() ? style % interval : spread;
  items.push_back(fmt::format(
      "{} every {}::{} using 1:2 {}", block, interval, first, MarkersStyle(series.style)));
}

// Returns the bands first, so that curves are drawn on top.
std::vector<std::string> CurveItems(const Panel& panel, size_t index) {
  std::vector<std::string> items;
  for (size_t s = 0; s < panel.series.size(); ++s) {
    if (!BandRows(panel, panel.series[s]).empty()) items.push_back(BandItem(panel, index, s));
  }
  const Extent shown = ShownRange(panel.y, ExtentOfY(panel));
  for (size_t s = 0; s < panel.series.size(); ++s) {
    const Series& series = panel.series[s];
    if (CurveRows(panel, series).empty()) continue;
    const size_t points = std::max<size_t>(DrawablePoints(panel, series), 1);
    const std::string block = BlockName("curve", index, s);
    AddCurveItems(series, points, block, items);
    // A curve without markers or with many points leaves the panel visibly.
    if (!series.markers || series.x.size() > kMostMarkers) continue;
    AddBeyondItems(block, series.y, shown, "1:($2 {0} {1} ? {1} : NaN)", series.style, items);
  }
  return items;
}

std::string PanelCommands(const Figure& figure, const FigureLayout& layout, size_t index) {
  const Panel& panel = figure.panels[index];
  const Extent x = ExtentOfX(panel);
  std::string text = fmt::format("\n# Panel {}\n", index + 1) + Margins(layout.panels[index]);
  text += LabelCommands(layout.panels[index]);
  text += AxisCommands('x', panel.x, x);
  text += panel.rows.empty() ? AxisCommands('y', panel.y, ExtentOfY(panel))
                             : RowAxisCommands(panel, layout.panels[index].row_names);
  if (x.empty) {
    return text +
           "set label 1 'no data' at graph 0.5, graph 0.5 center\n"
           "plot NaN notitle\n"
           "unset label 1\nset ytics enhanced\n";
  }
  if (!panel.rows.empty()) {
    return text + PlotCommand(panel.dots ? DotItems(panel, index) : BarItems(panel, index)) +
           "set ytics enhanced\n";
  }
  return text + PlotCommand(CurveItems(panel, index));
}

// Returns what the legend shows of an entry. A curve at 2 is outside the range; a box would fill it.
std::string LegendLook(const LegendEntry& entry) {
  if (entry.bars) {
    return fmt::format("NaN with boxes linecolor rgb '{}' fillstyle solid 0.85 noborder",
                       Cyclic(kColours, entry.style));
  }
  return "2 " + (entry.line ? CurveStyle(entry.style, entry.dashed, entry.markers)
                            : MarkersStyle(entry.style));
}

// Returns the commands for the legend: a plot without axes whose curves lie outside its range, so
// that only the legend is visible.
std::string LegendCommands(const Figure& figure, const FigureLayout& layout) {
  if (layout.legend_columns == 0) return "";
  std::string text = "\n# Legend\n" + Margins(layout.legend);
  text += fmt::format(
      "unset title\nunset border\nunset tics\nunset grid\nunset xlabel\nunset label 3\n"
      "unset logscale\nset xrange [0:1]\nset yrange [0:1]\n"
      "set key center center horizontal Left reverse maxcols {} samplen 3.2 spacing 1.1 "
      "width 1 noenhanced\n",
      layout.legend_columns);
  std::vector<std::string> items;
  const std::vector<LegendEntry> legend = LegendOf(figure);
  for (size_t i = 0; i < legend.size(); ++i) {
    std::string look = LegendLook(legend[i]);
    for (const std::string& line : layout.legend_lines[i]) {
      items.push_back(look + " title " + GnuplotText(line));
      look = "2 with lines linecolor rgb 'white'";  // more lines of the same label
    }
  }
  return text + PlotCommand(items);
}

// Returns the commands that open the loop over both files. Sizes are in inches for PDF and in CSS
// pixels, 96 per inch, for SVG. pdfcairo draws text 4/3 as large as specified; svg interprets
// points as pixels and draws smaller markers.
std::string TerminalCommands(const Figure& figure, const FigureLayout& layout, double font) {
  return fmt::format(
      "do for [kind in 'svg pdf'] {{\n"
      "if (kind eq 'pdf') {{\n"
      "  set terminal pdfcairo enhanced size {0:.3f}in, {1:.3f}in font 'Helvetica,{5:g}' "
      "fontscale 0.75\n"
      "  line_width = 1.3; marker_size = 0.45\n"
      "}} else {{\n"
      "  set terminal svg enhanced size {2:.0f}, {3:.0f} "
      "font 'Helvetica,Arial,sans-serif,{5:g}' fontscale 1.3333 background rgb 'white'\n"
      "  line_width = 1.0; marker_size = 0.6\n"
      "}}\n"
      "set output {4}.'.'.kind\n",
      layout.width_inches,
      layout.height_inches,
      96 * layout.width_inches,
      96 * layout.height_inches,
      GnuplotText(figure.name),
      font);
}

}  // namespace

std::string GnuplotText(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "''";
    } else if (c == '\n') {
      result += "'.\"\\n\".'";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result + "'";
}

std::string GnuplotScript(const Figure& whole, const FigureStyle& style) {
  NUMSIM_REQUIRE(!whole.name.empty() && whole.name.find('/') == std::string::npos,
                 "figure: name '{}', expected a file name without a folder",
                 whole.name);
  const Figure figure = Arranged(whole, style);
  const FigureLayout layout = LayOut(figure, style);
  // The settings are inside the loop, so that the second file does not start with those left over
  // from the first.
  std::string text = HeadComment(figure) + "\n" + DataBlocks(figure) + "\n" +
                     TerminalCommands(figure, layout, style.font) + "reset\n" +
                     std::string(kSettings) + "set multiplot\n";
  if (!layout.title_lines.empty()) {
    text +=
        fmt::format("set label 2 {} at screen 0.5, screen {:.5f} center noenhanced font ',{:g}'\n",
                    GnuplotText(JoinedLines(layout.title_lines)),
                    layout.title_top,
                    style.font + 1);
  }
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    text += PanelCommands(figure, layout, i);
    if (i == 0) text += "unset label 2\n";
  }
  text += LegendCommands(figure, layout);
  return text + "\nunset multiplot\nunset output\n}\n";
}

}  // namespace numsim
