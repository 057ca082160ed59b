#include "experiments/study/read_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/study/assemble.h"
#include "experiments/study/dots.h"
#include "experiments/study/lines.h"
#include "experiments/study/outcomes.h"

namespace numsim::experiments::study {
namespace {

// Returns the function that fills a title with the value of a panel, {}, and with columns of its rows.
PanelTitle TitleOf(const std::string& pattern) {
  if (pattern.empty()) return {};
  return [=](const std::string& value, const Frame& rows) {
    return Fill(pattern, [&](const std::string& column) {
      return column.empty() ? value : rows.Text(column);
    });
  };
}

// Reads the columns under these keys and the conditions. Throws Error unless the table, which has these
// columns, has all of them, and numbers under x and y.
Picks ReadShown(Node& node,
                const Named<Column>& columns,
                const Functions& functions,
                std::initializer_list<const char*> keys) {
  for (const std::string_view key : keys) {
    const std::string name = node.Text(key, "");
    if (name.empty()) continue;
    const Column& column = FindNamed(columns, name, "the column", node, key);
    if (key == "x" || key == "y" || key == "dotted") RequireNumbers(node, key, column);
  }
  Picks where = ReadConditions(node.Table("where"), functions);
  RequireColumns(node, "where", where, columns);
  return where;
}

// Throws Error unless the table of a figure has the intervals of the column y.
void RequireInterval(Node& node, const Named<Column>& columns) {
  for (const char* const end : {"_low", "_high"}) {
    FindNamed(columns, node.Text("y") + end, "the column", node, "interval");
  }
}

// Throws Error if dots of several arms would lie in one row.
void RequireOneArm(Node& node, const Study& study, const Named<Column>& columns) {
  if (study.centre) return;
  for (const Axis& axis : study.axes) {
    const auto shows = [&](const char* key) { return node.Text(key, "") == axis.name; };
    if (!columns.contains(axis.name) || shows("along") || shows("line") || shows("panel")) continue;
    throw node.About("along",
                     fmt::format("{} also has rows for each {}: name it as line or panel",
                                 node.Text("table"),
                                 axis.name));
  }
}

std::function<Figure(const Results&)> ReadDots(Node& node,
                                               const Study& study,
                                               const Named<Column>& columns,
                                               const Functions& functions) {
  Picks where = ReadShown(node, columns, functions, {"along", "line", "panel", "x"});
  RequireOneArm(node, study, columns);
  return Draw(Dots{.name = node.Text("name"),
                   .title = node.Text("title"),
                   .table = node.Text("table"),
                   .along = node.Text("along"),
                   .line = node.Text("line", ""),
                   .panel = node.Text("panel", ""),
                   .x = node.Text("x"),
                   .x_label = node.Text("x_label"),
                   .y_label = node.Text("y_label"),
                   .log10 = node.Flag("log10", false),
                   .columns = node.Whole("columns", 2),
                   .panel_title = TitleOf(node.Text("panel_title", "")),
                   .where = std::move(where)});
}

std::function<Figure(const Results&)> ReadLines(Node& node,
                                                const Named<Column>& columns,
                                                const Functions& functions) {
  Picks where = ReadShown(node, columns, functions, {"panel", "line", "x", "y", "by", "dotted"});
  const bool interval = node.Flag("interval", false);
  if (interval) RequireInterval(node, columns);
  return Draw(Lines{.name = node.Text("name"),
                    .title = node.Text("title"),
                    .table = node.Text("table"),
                    .panel = node.Text("panel"),
                    .line = node.Text("line"),
                    .x = node.Text("x"),
                    .y = node.Text("y"),
                    .x_label = node.Text("x_label"),
                    .y_label = node.Text("y_label"),
                    .log10 = node.Flag("log10", false),
                    .log2_x = node.Flag("log2_x", false),
                    .same_y = node.Flag("same_y", false),
                    .to_last = node.Flag("to_last", false),
                    .markers = node.Flag("markers", false),
                    .columns = node.Whole("columns", 2),
                    .by = node.Text("by", ""),
                    .panel_title = TitleOf(node.Text("panel_title", "")),
                    .where = std::move(where),
                    .interval = interval,
                    .dotted = node.Text("dotted", ""),
                    .dotted_label = node.Text("dotted_label", ""),
                    .rows = FindIfAny(functions.rows, node, "rows")});
}

std::function<Figure(const Results&)> ReadLosses(Node& node, const Study& study) {
  for (const char* const key : {"panel", "line"}) RequireAxes(node, key, study.axes);
  return LossFigure(node.Text("name"),
                    node.Text("title"),
                    node.Text("panel"),
                    node.Text("line"),
                    TitleOf(node.Text("panel_title", "")));
}

std::function<Figure(const Results&)> ReadGaps(Node& node, const Study& study) {
  for (const char* const key : {"along", "line"}) RequireAxes(node, key, study.axes);
  return GapFigure(node.Text("name"), node.Text("title"), node.Text("along"), node.Text("line"));
}

// Returns a figure as the only one of a list.
FigureSource Alone(std::function<Figure(const Results&)> draw) {
  return [draw = std::move(draw)](const Results& results) {
    return std::vector<Figure>{draw(results)};
  };
}

FigureSource ReadFigure(Node& node,
                        const Study& study,
                        const TableColumns& tables,
                        const Functions& functions) {
  const std::string draw = node.Text("draw");
  const auto columns = [&]() -> const Named<Column>& { return Find(tables, node, "table"); };
  if (draw == "lines") return Alone(ReadLines(node, columns(), functions));
  if (draw == "dots") return Alone(ReadDots(node, study, columns(), functions));
  if (draw == "losses") return Alone(ReadLosses(node, study));
  if (draw == "gaps") return Alone(ReadGaps(node, study));
  Named<FigureSource> figures = functions.several_figures;
  for (const auto& [name, function] : functions.figures) figures.emplace(name, Alone(function));
  for (const char* const name : {"lines", "dots", "losses", "gaps"}) figures.emplace(name, nullptr);
  return Find(figures, node, "draw");
}

}  // namespace

std::vector<FigureSource> ReadFigures(Node& root, const Study& study, const Functions& functions) {
  const TableColumns tables = ColumnsOfTables(study);
  return ReadEach<FigureSource>(
      root, "figures", [&](Node& node) { return ReadFigure(node, study, tables, functions); });
}

}  // namespace numsim::experiments::study
