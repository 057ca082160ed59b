// Hand-made results of an experiment, for tests of its derived tables, claims and figures.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "experiments/claims/claim.h"
#include "experiments/claims/frame.h"
#include "experiments/runner/experiment.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments {

using Overrides = std::map<std::string, std::string>;

class ResultTables {
 public:
  explicit ResultTables(Experiment experiment, const Overrides& options = {}, int seeds = 3)
      : experiment_(std::move(experiment)),
        settings_(MakeSettings(experiment_, "quick", 0, seeds, options)) {}

  // Adds a row to a table. Cells that are not named are nan.
  void Add(const std::string& table, const std::map<std::string, Cell>& cells) {
    Row row;
    for (const std::string& column : ColumnsOf(table)) {
      const auto cell = cells.find(column);
      row.push_back(cell == cells.end() ? Cell("nan") : cell->second);
    }
    for (const auto& [name, cell] : cells) {
      EXPECT_EQ(std::count(columns_.begin(), columns_.end(), name), 1) << table << ": " << name;
    }
    rows_[table].push_back(std::move(row));
  }
  void Clear(const std::string& table) { rows_[table].clear(); }

  // Returns the tables of the rows so far, derived ones included.
  const Tables& Finish() {
    tables_.clear();
    for (const TableSpec& spec : experiment_.tables) {
      tables_[spec.name].columns = ColumnsOf(spec.name);
      tables_[spec.name].rows = rows_[spec.name];
    }
    if (experiment_.derive) experiment_.derive(settings_, tables_);
    return tables_;
  }
  Frame Of(const std::string& table) { return Finish().at(table); }

  // Returns the judged claim EXPERIMENT/NAME, or only its verdict, as text.
  JudgedClaim ClaimOf(const std::string& name) {
    Finish();
    for (JudgedClaim& claim : Judge(experiment_.claims, settings_, tables_)) {
      if (claim.spec->id == experiment_.name + "/" + name) return claim;
    }
    ADD_FAILURE() << "no claim " << name;
    return {};
  }
  std::string VerdictOf(const std::string& name) {
    return std::string(ToString(ClaimOf(name).result.verdict));
  }

  // Returns the verdict of a claim's own numbers. That of an equivalence whose control is not among the
  // rows is then not "not tested".
  std::string OwnVerdictOf(const std::string& name) {
    const ClaimResult result = ClaimOf(name).result;
    const std::string without =
        std::string(kNoEvidence) + "the c";  // the control, the claim names none
    if (!result.reason.starts_with(without)) return std::string(ToString(result.verdict));
    if (result.p > result.alpha) return "inconclusive";
    return result.p_supported < result.p_contradicted ? "supported" : "contradicted";
  }

  const Settings& settings() const { return settings_; }
  const Experiment& experiment() const { return experiment_; }

 private:
  const std::vector<std::string>& ColumnsOf(const std::string& table) {
    columns_.clear();
    for (const TableSpec& spec : experiment_.tables) {
      if (spec.name != table) continue;
      for (const Column& column : spec.columns) columns_.push_back(column.name);
    }
    EXPECT_FALSE(columns_.empty()) << "no table " << table;
    return columns_;
  }

  Experiment experiment_;
  Settings settings_;
  std::map<std::string, std::vector<Row>> rows_;  // by table
  std::vector<std::string> columns_;
  Tables tables_;
};

}  // namespace numsim::experiments
