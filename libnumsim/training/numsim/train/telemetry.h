// The telemetry of a training: tables with reproducible contents only.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/io/csv.h"

namespace numsim {

// A telemetry table and the meaning of its columns; docs/training.md lists them.
struct TelemetryTable {
  std::string_view name;  // train, valid, tensors, quantised, optimizer, what_if
  std::string_view when;  // the steps that have rows
  std::vector<std::pair<std::string_view, std::string_view>> columns;  // name, meaning with unit
};
// Returns all telemetry tables.
std::span<const TelemetryTable> TelemetryTables();
// Returns the tables that a training of this configuration writes: all of them, except that what_if
// needs recipes.
std::span<const TelemetryTable> TelemetryTables(const TrainConfig& config);

// The name of the table of [what_if].
inline constexpr std::string_view kWhatIfTable = "what_if";

// Rows in memory, in the order in which they were added, until they are written to files.
class Telemetry {
 public:
  Telemetry();

  // Adds a row. Requires one cell per column of the table.
  void Add(std::string_view table, Row cells);
  const Table& Of(std::string_view table) const;
  // Removes all rows, e.g. after they were written.
  void Clear();

 private:
  std::map<std::string, Table, std::less<>> tables_;
};

}  // namespace numsim
