// The table of `numsim stats`: a row per tensor, granularity and format.
#pragma once

#include <string>
#include <string_view>

#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/stats/error_measures.h"

namespace numsim::apps {

// Returns a table with the columns that docs/stats.md defines and no rows.
Table EmptyStatsTable();

// Adds the row of a tensor, whose elements were `array`, under a format and the options.
void AddStatsRow(Table& table,
                 const TensorInfo& tensor,
                 const Array& array,
                 const Format& format,
                 const QuantizeOptions& options,
                 const ErrorMeasures& errors);

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
