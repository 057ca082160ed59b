// The rows of tests/formats/names.tsv: names of formats as their sources write them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace numsim {

struct NameRow {
  std::string source, name, format;
  int bits = 0;
  double largest = 0, smallest = 0;
  uint64_t finite = 0;          // number of codes that are finite numbers
  std::optional<uint32_t> nan;  // a code of NaN
  bool has_note = false;
};

inline std::vector<NameRow> ReadNameRows() {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/tests/formats/names.tsv");
  std::vector<NameRow> rows;
  bool head = true;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream pieces(line);
    for (std::string cell; std::getline(pieces, cell, '\t');) cells.push_back(cell);
    if (cells.size() != 9) throw std::runtime_error("names.tsv: " + line);
    if (!std::exchange(head, false)) {
      NameRow row;
      row.source = cells[0];
      row.name = cells[1];
      row.format = cells[2];
      row.bits = std::stoi(cells[3]);
      row.largest = std::stod(cells[4]);
      row.smallest = std::stod(cells[5]);
      row.finite = std::stoull(cells[6]);
      if (cells[7] != "none") row.nan = static_cast<uint32_t>(std::stoul(cells[7], nullptr, 16));
      row.has_note = cells[8] == "yes";
      rows.push_back(row);
    }
  }
  if (rows.size() < 120) throw std::runtime_error("names.tsv: too few rows");
  return rows;
}

}  // namespace numsim
