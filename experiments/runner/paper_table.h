// Tables of results as text for a paper: LaTeX, Markdown or CSV.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/csv.h"

namespace numsim::experiments {

enum class TableStyle { kLatex, kMarkdown, kCsv };

// A table whose cells are texts; numbers are plain decimals, "2.110 +- 0.048" with an interval.
struct PaperTable {
  struct Column {
    std::string name;
    bool number = false;  // numbers stand right, and in LaTeX between dollar signs
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Which rows and columns of a table of results are wanted.
struct Selection {
  std::vector<std::string> rows;    // columns whose values name a row
  std::vector<std::string> values;  // columns of numbers, averaged over the seeds of a row
  std::vector<std::pair<std::string, std::string>> where;  // column, value: only these records
};

// Returns a row per combination of values of Selection::rows, in the order of the table. A value is the mean
// over seeds and half of its 95 % interval (Student's t), "2.110 +- 0.048", where the half has two
// significant digits; a mean of one seed has four digits and no interval. The last column counts the seeds. With a style of CSV,
// a value takes three columns, mean, low and high, with all digits. Throws Error for a column that `table`
// lacks (with the nearest name), for a text where a number is needed, if no record is left, and if records
// of one row have the same seed: then Selection::rows needs another column. `file` is its name in errors.
PaperTable MeansOverSeeds(const Table& table,
                          const Selection& selection,
                          TableStyle style,
                          const std::string& file);

// Returns a row per contrast of verdicts.csv: claim, contrast, estimate with interval and its confidence,
// margin, seeds, verdict and scale. `claims` are names after the slash; empty: all that were tested. Throws Error for a name that
// is not there, with the nearest one.
PaperTable VerdictsOf(const Table& verdicts,
                      const std::vector<std::string>& claims,
                      TableStyle style);

// Returns the table as text. LaTeX is a tabular of the package booktabs; `origin` is a comment above it,
// and what LaTeX would take for a command is escaped.
std::string ToText(const PaperTable& table, TableStyle style, std::string_view origin);

}  // namespace numsim::experiments
