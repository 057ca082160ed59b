#include "experiments/study/read_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "experiments/study/assemble.h"

namespace numsim::experiments::study {
namespace {

Pick ReadPick(const Node& node,
              const std::string& key,
              const std::string& axis,
              const std::string& value,
              const Functions& functions) {
  if (!value.starts_with('$')) return {axis, value};
  const auto found = functions.values.find(value.substr(1));
  if (found != functions.values.end()) return {.axis = axis, .of = found->second};
  throw node.About(key, fmt::format("there is no function '{}'", value));
}

// The kinds of cells, by the key of a column that has its meaning.
constexpr std::pair<const char*, CellKind> kKinds[] = {
    {"text", CellKind::kText}, {"whole", CellKind::kWhole}, {"number", CellKind::kNumber}};

void AddInterval(const std::string& name,
                 const std::string& low,
                 const std::string& high,
                 std::vector<Column>& columns) {
  columns.push_back({name + "_low", low, CellKind::kNumber});
  columns.push_back({name + "_high", high, CellKind::kNumber});
}

// Reads NAME = "meaning", a column of numbers, or NAME = { text = "meaning" }.
void ReadNamedColumn(Node& node, std::vector<Column>& columns) {
  if (!node.IsTable()) {
    columns.push_back({node.key(), node.OptionText(), CellKind::kNumber});
    return;
  }
  Column column{.name = node.key(), .meaning = ""};
  for (const auto& [name, kind] : kKinds) {
    const std::string meaning = node.Text(name, "");
    if (!meaning.empty()) column = {node.key(), meaning, kind};
  }
  if (column.meaning.empty()) throw node.About("text", "expected text, whole or number");
  columns.push_back(column);
  if (node.Flag("interval", false)) {
    const std::string interval = "95 % interval of " + column.name;
    AddInterval(column.name, interval, interval, columns);
  }
  if (node.Flag("over_seeds", false)) {
    const std::string interval = "95 % interval over seeds";
    AddInterval(column.name, interval + " (Student's t)", interval, columns);
  }
}

}  // namespace

Texts OptionTexts(Node table) {
  Texts texts;
  for (const Node& value : table.Values()) texts.emplace_back(value.key(), value.OptionText());
  return texts;
}

std::vector<Column> ReadColumns(Node& node) {
  std::vector<Column> columns;
  for (Node& column : node.Entries("columns")) {
    if (column.Has("name")) {
      columns.push_back({column.Text("name"), column.Text("meaning")});
    } else {
      ReadNamedColumn(column, columns);
    }
    column.CheckTaken();
  }
  return columns;
}

Margin ReadMargin(Node table) {
  if (table.Has("loss")) return LossMargin(table.Text("loss"));
  return {table.Number("value", 0), table.Text("unit"), table.Text("reason")};
}

Picks ReadConditions(Node table, const Functions& functions) {
  Picks picks;
  for (const Node& value : table.Values()) {
    picks.push_back(ReadPick(value, value.key(), value.key(), value.OptionText(), functions));
  }
  return picks;
}

Picks ReadPicks(const Node& node,
                const std::string& key,
                const std::string& text,
                const Functions& functions) {
  Picks picks;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == word.npos) throw node.About(key, fmt::format("'{}' is not AXIS=VALUE", word));
    picks.push_back(
        ReadPick(node, key, word.substr(0, equals), word.substr(equals + 1), functions));
  }
  return picks;
}

void RequireOption(const Node& node,
                   std::string_view key,
                   const std::string& name,
                   const Study& study) {
  const std::vector<OptionRow> options = OptionsOf(study);
  if (std::ranges::count(options, name, &OptionRow::name) > 0) return;
  throw node.About(key, NotOneOf("the option", name, NameList(options, &OptionRow::name)).what());
}

void RequireAxes(Node& node, std::string_view key, const std::vector<Axis>& axes) {
  for (const std::string& name : node.Texts(key)) {
    if (std::ranges::count(axes, name, &Axis::name) > 0) continue;
    throw node.About(key, NotOneOf("the axis", name, NameList(axes, &Axis::name)).what());
  }
}

TableColumns ColumnsOfTables(const Study& study) {
  TableColumns tables;
  for (const TableSpec& table : TablesOf(study)) {
    Named<Column>& columns = tables[table.name];
    for (const Column& column : table.columns) columns.emplace(column.name, column);
  }
  return tables;
}

void RequireColumns(const Node& node,
                    std::string_view key,
                    const Picks& conditions,
                    const Named<Column>& columns) {
  for (const Pick& pick : conditions) FindNamed(columns, pick.axis, "the column", node, key);
}

void RequireNumbers(const Node& node, std::string_view key, const Column& column) {
  if (column.kind != CellKind::kText) return;
  throw node.About(key, fmt::format("the column '{}' holds texts", column.name));
}

}  // namespace numsim::experiments::study
