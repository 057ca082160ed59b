// The file of trainings for --rows, to be filled: a row per training of the settings.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

struct RowsTemplate {
  std::filesystem::path file;                  // to be written
  std::filesystem::path configs;               // folder for the configurations; empty: none
  std::vector<std::filesystem::path> collect;  // run directories, whose rows are filled
};

struct RowsTemplateReport {
  size_t trainings = 0, filled = 0;
  std::vector<std::string>
      empty_columns;  // of the filled rows, which a run directory does not have
  // Files of other tables that were written, by the name of the table: curves, validations.
  std::map<std::string, std::filesystem::path> tables = {};
};

// Writes the file, with the configuration of each training as CONFIGS/NUMBER.toml. If the experiment has
// a table "curves" of losses, or one of "validations" along a training, writes its rows of the collected
// trainings beside the file, as STEM-curves.csv for `--rows curves=`. Throws Error if a file exists, if a
// configuration with another content does, and for a run directory that is of none or several of the
// trainings, or of one that has another; nothing is written then.
RowsTemplateReport WriteRowsTemplate(const Experiment& experiment,
                                     const Settings& settings,
                                     const RowsTemplate& request);

}  // namespace numsim::experiments
