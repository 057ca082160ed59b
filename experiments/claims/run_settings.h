// The settings of a run, on which its rows and so its verdicts depend.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace numsim::experiments {

// A file of `--rows`: the rows of one table.
struct RowsFile {
  std::string table;
  std::string name;    // without its folder
  std::string sha256;  // of its bytes
};

// The rows of trainings that were made elsewhere (docs/rows.md).
struct GivenRows {
  std::vector<RowsFile> files = {};  // the table of the trainings first; empty: this run measures
  std::string scale = {};            // "85.3 million parameters, 65.5 million tokens"
  std::string note = {};             // which trainings are missing, what was checked

  // Returns "final.csv (SHA-256 0123456789ab...)", for every file.
  std::string Text() const;
};

// Everything that determines the rows and nothing else: no path, thread count or backend.
struct Settings {
  std::string preset;                          // name of one of the experiment's presets
  uint64_t seed = 0;                           // first seed
  int seeds = 1;                               // number of seeds: seed, seed + 1, ...
  int max_seeds = 0;                           // --until-decided: the most seeds; 0: only `seeds`
  int looks = 1;                               // number of planned looks, set by the runner
  std::map<std::string, std::string> options;  // value of every option, defaults included
  GivenRows rows = {};                         // --rows

  // Returns the value of an option. Aborts when the experiment does not declare the option.
  const std::string& Get(std::string_view name) const;
  // Return the value as a number from `low` to `high`. Throw Error naming the option, its value and
  // the range if it is anything else.
  int64_t GetInteger(std::string_view name, int64_t low, int64_t high) const;
  double GetDouble(std::string_view name, double low, double high) const;
  // Returns true for yes and false for no. Throws Error naming the option for anything else.
  bool GetYes(std::string_view name) const;
  // Returns the elements of a comma-separated list. Throws Error for an empty element.
  std::vector<std::string> GetList(std::string_view name) const;
  // The same for an option that may be empty: no elements.
  std::vector<std::string> GetListOrNone(std::string_view name) const;
  // Returns a comma-separated list of integers; `low`, `high` and errors are as for GetInteger.
  std::vector<int64_t> GetIntegers(std::string_view name, int64_t low, int64_t high) const;
};

}  // namespace numsim::experiments
