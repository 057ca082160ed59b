#include "apps/stats_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "numsim/base/nearest_name.h"

namespace numsim::apps {
namespace {

// A column by which tensors can be compared.
struct Measure {
  std::string_view name;  // of --sort
  std::string_view column;
  std::string_view heading;  // on the terminal
  bool worst_is_least = false;
  bool percent = false;  // on the terminal; a fraction in the CSV
};
constexpr Measure kMeasures[] = {{"sqnr", "sqnr_db", "SQNR dB", true},
                                 {"error", "relative_error", "rel. error"},
                                 {"max-error", "max_error", "max error"},
                                 {"underflow", "underflow_share", "underflow %", false, true},
                                 {"overflow", "overflow_share", "overflow %", false, true},
                                 {"absmax", "absmax", "absmax"}};
constexpr std::string_view kFileOrder = "file", kNameOrder = "name";

// Returns nullptr if there is no measure of that name.
const Measure* FindMeasure(std::string_view name) {
  for (const Measure& measure : kMeasures) {
    if (measure.name == name) return &measure;
  }
  return nullptr;
}

// Returns true if x is worse than y; NaN is worse than nothing.
bool IsWorse(const Measure& measure, double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
  return measure.worst_is_least ? x < y : x > y;
}

bool IsPlainCast(const Table& table, size_t row) { return table.Text(row, "scale") == "none"; }

// Returns the format, with a star if its codes are scaled.
std::string FormatCellText(const Table& table, size_t row) {
  return table.Text(row, "format") + (IsPlainCast(table, row) ? "" : "*");
}

std::string GranularityText(const Table& table, size_t row) {
  return IsPlainCast(table, row) ? "-" : table.Text(row, "granularity");
}

std::string ShapeText(const std::vector<size_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

// Returns the rows that a terminal shows: a plain cast only under the first granularity.
std::vector<size_t> ShownRows(const Table& table) {
  std::map<std::pair<std::string, std::string>, std::string> first;  // tensor, format: granularity
  std::vector<size_t> rows;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string granularity = table.Text(row, "granularity");
    const auto [entry, added] =
        first.try_emplace({table.Text(row, "tensor"), table.Text(row, "format")}, granularity);
    if (!IsPlainCast(table, row) || entry->second == granularity) rows.push_back(row);
  }
  return rows;
}

void PrintRow(const Table& table, size_t row, bool same_tensor, bool with_granularity) {
  fmt::print("{:<28} {:>14} {:>10} {:<12} ",
             same_tensor ? "" : table.Text(row, "tensor"),
             same_tensor ? "" : table.Text(row, "shape"),
             same_tensor ? "" : fmt::format("{:.4g}", table.Number(row, "absmax")),
             FormatCellText(table, row));
  if (with_granularity) fmt::print("{:<12} ", GranularityText(table, row));
  fmt::print("{:>9.2f} {:>11.3e} {:>11.3e} {:>9.3f}% {:>9.3f}%\n",
             table.Number(row, "sqnr_db"),
             table.Number(row, "relative_error"),
             table.Number(row, "max_error"),
             100 * table.Number(row, "underflow_share"),
             100 * table.Number(row, "overflow_share"));
}

}  // namespace

Table EmptyStatsTable() {
  return {{"tensor",
           "dtype",
           "shape",
           "elements",
           "nonfinite",
           "absmax",
           "format",
           "granularity",
           "scale",
           "sqnr_db",
           "relative_error",
           "max_error",
           "mean_error",
           "underflow_share",
           "overflow_share",
           "matrices",
           "matrix"},
          {}};
}

void AddMeasuredRow(Table& table, const StatsRow& row, const StatsMeasures& measures) {
  const MatrixShape& matrix = row.stack.shape;
  table.rows.push_back({row.tensor,
                        row.dtype,
                        ShapeText(row.shape),
                        uint64_t{measures.elements},
                        uint64_t{measures.nonfinite},
                        measures.absmax,
                        row.format,
                        row.granularity,
                        row.scale,
                        measures.sqnr_db,
                        measures.relative_error,
                        measures.max_error,
                        measures.mean_error,
                        measures.underflow_share,
                        measures.overflow_share,
                        uint64_t{row.stack.matrices},
                        fmt::format("{}x{}", matrix.rows, matrix.cols)});
}

std::string StatsOrders() {
  std::string names = fmt::format("{}, {}", kFileOrder, kNameOrder);
  for (const Measure& measure : kMeasures) names += fmt::format(", {}", measure.name);
  return names;
}

void SortStats(Table& table, std::string_view order) {
  if (order == kFileOrder) return;
  const Measure* const measure = FindMeasure(order);
  if (measure == nullptr && order != kNameOrder) {
    throw NotOneOf("--sort", order, StatsOrders());
  }
  std::vector<size_t> rows(table.rows.size());
  std::iota(rows.begin(), rows.end(), size_t{0});
  std::stable_sort(rows.begin(), rows.end(), [&](size_t x, size_t y) {
    if (measure == nullptr) return table.Text(x, "tensor") < table.Text(y, "tensor");
    return IsWorse(*measure, table.Number(x, measure->column), table.Number(y, measure->column));
  });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const size_t row : rows) sorted.push_back(std::move(table.rows[row]));
  table.rows = std::move(sorted);
}

void PrintStats(const Table& table, size_t granularities) {
  const bool with_granularity = granularities > 1;
  fmt::print("{:<28} {:>14} {:>10} {:<12} ", "tensor", "shape", "absmax", "format");
  if (with_granularity) fmt::print("{:<12} ", "granularity");
  fmt::print("{:>9} {:>11} {:>11} {:>10} {:>10}\n",
             "SQNR dB",
             "rel. error",
             "max error",
             "underflow",
             "overflow");
  std::string last;
  for (const size_t row : ShownRows(table)) {
    const std::string name = table.Text(row, "tensor");
    PrintRow(table, row, name == last, with_granularity);
    last = name;
  }
}

void PrintWorstTensors(const Table& table, std::string_view order) {
  const Measure* const measure = FindMeasure(order);
  const Measure& by = measure == nullptr ? kMeasures[0] : *measure;
  using Group = std::pair<std::string, std::string>;  // format, granularity
  std::vector<Group> groups;                          // in order of appearance
  std::map<Group, size_t> worst;                      // group: row
  bool several = false;
  for (const size_t row : ShownRows(table)) {
    several = several || table.Text(row, "tensor") != table.Text(0, "tensor");
    const Group group = {FormatCellText(table, row), GranularityText(table, row)};
    const auto [entry, added] = worst.try_emplace(group, row);
    if (added) groups.push_back(group);
    const double here = table.Number(row, by.column),
                 there = table.Number(entry->second, by.column);
    if (IsWorse(by, here, there)) entry->second = row;
  }
  if (!several) return;
  fmt::print("\nworst tensor of each format and granularity\n{:<12} {:<12} {:>11}  tensor\n",
             "format",
             "granularity",
             by.heading);
  for (const Group& group : groups) {
    const size_t row = worst.at(group);
    fmt::print("{:<12} {:<12} {:>11.4g}  {}\n",
               group.first,
               group.second,
               table.Number(row, by.column) * (by.percent ? 100 : 1),
               table.Text(row, "tensor"));
  }
}

}  // namespace numsim::apps
