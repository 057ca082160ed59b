// Parts of a study file that its readers share: names of functions and of columns, texts, margins.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/name_list.h"
#include "experiments/study/node.h"
#include "experiments/study/study.h"
#include "experiments/study/study_file.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments::study {

// Texts that stand for {NAME} in other texts.
using Words = std::map<std::string, std::string>;

// Returns what a table has for a name that stands under a key. Throws Error with the nearest name.
template <typename T>
const T& FindNamed(const Named<T>& table,
                   const std::string& name,
                   const char* what,
                   const Node& node,
                   std::string_view key) {
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  const std::string list = NameList(table, &Named<T>::value_type::first);
  throw node.About(key, NotOneOf(what, name, list.empty() ? "nothing" : list).what());
}
// Returns what a table of functions has for the name under a key.
template <typename T>
const T& Find(const Named<T>& table, Node& node, std::string_view key) {
  return FindNamed(table, node.Text(key), "the name", node, key);
}
// Returns the same, or an empty function if there is no such key or no text under it.
template <typename T>
T FindIfAny(const Named<T>& table, Node& node, std::string_view key) {
  return node.Text(key, "").empty() ? T() : Find(table, node, key);
}

// Reads each table of an array, whose keys must all be known.
template <typename T, typename Function>
std::vector<T> ReadEach(Node& root, std::string_view key, Function read) {
  std::vector<T> results;
  for (Node& table : root.Tables(key)) {
    results.push_back(read(table));
    table.CheckTaken();
  }
  return results;
}

// Returns the values of a table as texts of options.
Texts OptionTexts(Node table);

// Reads the columns of a table: { name, meaning }, or NAME = "meaning" with what its cells are.
std::vector<Column> ReadColumns(Node& node);

Margin ReadMargin(Node table);

// Reads conditions: columns, each with its value, or with "$NAME", a value that settings decide.
Picks ReadConditions(Node table, const Functions& functions);
// Reads "AXIS=VALUE AXIS=VALUE", where a value may be "$NAME", from the text of a key.
Picks ReadPicks(const Node& node,
                const std::string& key,
                const std::string& text,
                const Functions& functions);

// Throws Error unless the study has an option of this name.
void RequireOption(const Node& node,
                   std::string_view key,
                   const std::string& name,
                   const Study& study);
// Throws Error unless an axis has the name under a key, or each of the names.
void RequireAxes(Node& node, std::string_view key, const std::vector<Axis>& axes);

// The columns of each table, by their names.
using TableColumns = Named<Named<Column>>;
// Returns those of a study's tables.
TableColumns ColumnsOfTables(const Study& study);
// Throws Error unless these columns have the names of conditions.
void RequireColumns(const Node& node,
                    std::string_view key,
                    const Picks& conditions,
                    const Named<Column>& columns);
// Throws Error unless the column holds numbers, as far as its table says.
void RequireNumbers(const Node& node, std::string_view key, const Column& column);

}  // namespace numsim::experiments::study
