// Selections of the rows of a table: filter, group, and statistics over seeds. Summaries, derived
// tables and figures read results through it.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/claims/mean.h"
#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments {

// One value per seed, by the text of the column `seed`.
using SeedValues = std::map<std::string, double>;

// Rows of a table, in its order. Refers to the table, which must stay unchanged while it is used.
class Frame {
 public:
  // Selects all rows.
  Frame(const Table& table);  // NOLINT(*-explicit-*): a table is the frame of all its rows

  size_t Size() const { return rows_.size(); }
  bool Empty() const { return rows_.empty(); }

  // Return a cell of row i. Throw Error if there is no such column or if it is not a number.
  std::string Text(size_t i, std::string_view column) const;
  double Number(size_t i, std::string_view column) const;
  // Return that cell of the first row, for columns whose value all rows share. Throw Error if there
  // is no row.
  std::string Text(std::string_view column) const { return Text(0, column); }
  double Number(std::string_view column) const { return Number(0, column); }
  // Returns the column.
  std::vector<double> Numbers(std::string_view column) const;
  // Returns each text of the column once, in the order of first appearance.
  std::vector<std::string> Distinct(std::string_view column) const;

  // Returns the rows whose column has that value, or for which `keep` returns true. An argument of
  // `keep` is a frame of one row.
  Frame Where(std::string_view column, const Cell& value) const;
  Frame Where(const std::function<bool(const Frame&)>& keep) const;
  // Returns one frame per combination of values of the columns, in the order of first appearance.
  std::vector<Frame> By(std::initializer_list<std::string_view> columns) const;
  std::vector<Frame> By(const std::vector<std::string>& columns) const;
  // Calls `use` with a frame for each row.
  void ForEach(const std::function<void(const Frame&)>& use) const;

  // Returns the value of a column for each seed. Throws Error if a seed has two rows.
  SeedValues OverSeeds(std::string_view column) const;
  // Returns the mean of the column over the rows; NaN if there is none.
  double Mean(std::string_view column) const;

 private:
  Frame(const Table* table, std::vector<size_t> rows) : table_(table), rows_(std::move(rows)) {}
  // Returns the index of the column in the table.
  size_t Column(std::string_view name) const { return table_->Column(name); }

  const Table* table_;
  std::vector<size_t> rows_;  // indices of the selected rows
};

// Returns the mean over seeds with its 95 % confidence interval (Student's t); NaN without seeds.
Estimate MeanOf(const SeedValues& values);
// Adds value, low and high end of each estimate to a row.
void Append(std::initializer_list<Estimate> estimates, Row& row);
// Returns the mean of values - baseline over the seeds that both have, with its 95 % confidence
// interval; NaN if they share no seed.
Estimate PairedGap(const SeedValues& values, const SeedValues& baseline);

// Returns the mean of column `y` over seeds against column `x`, with the range over seeds as a band
// if there are several. Values of y that are not finite are left out.
Series Line(const Frame& frame, std::string_view x, std::string_view y);

// Returns that line for column `y` minus its value in `baseline` at the same seed and x. Points that
// the baseline does not have are left out.
Series GapLine(const Frame& frame, const Frame& baseline, std::string_view x, std::string_view y);

// Returns an axis from 0 to the largest value of the column, so that all panels have the same axis
// even if a training diverged early.
Axis AxisOf(const Frame& frame, std::string_view column, std::string label);

}  // namespace numsim::experiments
