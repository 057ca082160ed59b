#include "numsim/train/internal/what_if_rows.h"

#include "numsim/formats/format_names.h"
#include "numsim/io/csv.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {

WhatIfTable ReadWhatIf(const TrainConfig& config, const std::filesystem::path& directory) {
  WhatIfTable rows;
  if (config.what_if.recipes.empty()) return rows;
  const Table table = ReadCsv(directory / CsvFile(kWhatIfTable));
  for (size_t row = 0; row < table.rows.size(); ++row) {
    // Recipes are written with names that do not change here; only rows of older versions have others.
    rows[{FromFormerNames(table.Text(row, "recipe")), table.Text(row, "tensor")}].push_back(
        {static_cast<uint64_t>(table.Number(row, "step")),
         table.Text(row, "layer"),
         table.Number(row, "overflow"),
         table.Number(row, "sqnr_db"),
         table.Number(row, "gradient_to_noise")});
  }
  return rows;
}

}  // namespace numsim
