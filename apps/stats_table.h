// The table of `numsim stats`: a row per tensor, granularity and format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/given_scales.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {

// Returns a table with the columns that docs/stats.md defines and no rows.
Table EmptyStatsTable();

// The measured columns.
struct StatsMeasures {
  size_t elements = 0, nonfinite = 0;
  double absmax = 0, sqnr_db = 0, relative_error = 0, max_error = 0, mean_error = 0;
  double underflow_share = 0, overflow_share = 0;
};

// Returns the columns of ErrorMeasures or Float64ErrorMeasures.
template <typename Errors>
StatsMeasures MeasuresOf(const Errors& errors) {
  return {errors.elements,
          errors.nonfinite,
          errors.max_signal,
          errors.SqnrDb(),
          errors.RelativeError(),
          errors.max_error,
          errors.MeanError(),
          errors.UnderflowShare(),
          errors.OverflowShare()};
}

// The columns that are not measured.
struct StatsRow {
  std::string tensor, dtype;
  std::vector<size_t> shape;
  MatrixStack stack;
  std::string format, granularity, scale;
};

// Adds a row.
void AddMeasuredRow(Table& table, const StatsRow& row, const StatsMeasures& measures);

// Returns "file, name, sqnr, ...", the names that SortStats takes.
std::string StatsOrders();

// Sorts the rows by `order`: by tensor name, or by a measure, the worst first and NaN last. Rows
// that are equal in this keep their order, and so do all rows for "file". Throws Error listing the
// names for any other text.
void SortStats(Table& table, std::string_view order);

// Prints the table for a terminal: with the column `granularity` if `granularities` > 1, and then
// only one row for a plain cast, which is the same under each of them.
void PrintStats(const Table& table, size_t granularities);

// Prints for each format and granularity the tensor that is worst by the measure of `order`, or by
// SQNR for an order that is no measure. Prints nothing for a table of one tensor.
void PrintWorstTensors(const Table& table, std::string_view order);

}  // namespace numsim::apps
