// What is recorded of a training, as tables that hold only what is reproducible.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/csv.h"

namespace numsim {

// A table of telemetry and the meaning of its columns; docs/training.md shows them.
struct TelemetryTable {
  std::string_view name;  // train, valid, tensors, quantised, optimizer
  std::string_view when;  // which steps have rows
  std::vector<std::pair<std::string_view, std::string_view>> columns;  // name, meaning with unit
};
std::span<const TelemetryTable> TelemetryTables();

// Rows in memory, in the order in which they came. A sink may take them away to a file.
class Telemetry {
 public:
  Telemetry();

  // Requires cells as many as the table's columns.
  void Add(std::string_view table, std::vector<std::string> cells);
  const Table& Of(std::string_view table) const;
  // Forgets the rows, e.g. after they were written.
  void Clear();

 private:
  std::map<std::string, Table, std::less<>> tables_;
};

}  // namespace numsim
