// Shared by the tests of `moment-formats`: small settings, hand-made tables.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/runner/settings.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments::moment_formats {

// A model that trains in milliseconds.
inline const Overrides kTiny = TinyRun("moment-formats");

// The parts of an arm that do not concern formats: those of kTiny.
struct Regime {
  std::string epsilon = "1e-8", update_from = "fresh", lr = "1e-2";
};
inline Arm ArmOf(const MomentPair& pair, const Regime& regime = {}) {
  return {pair.m, pair.v, regime.epsilon, regime.update_from, regime.lr};
}

inline Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

inline Settings SettingsWith(const Overrides& overrides, int seeds = 1) {
  return MakeSettings(MomentFormats(), "quick", 0, seeds, overrides);
}

inline TrainConfig ConfigOf(const Settings& settings, const MomentPair& pair, uint64_t seed) {
  return study::ConfigOf(MomentFormatsStudy(), settings, ArmOf(pair), seed);
}

// One training of a pair, as final.csv has it.
struct Training {
  std::string m, v;
  double start, loss;  // validation, before and after
  std::string status = "finished";
  double m_bytes = 1, v_bytes = 1;
};

class MomentTables : public ::testing::Test {
 protected:
  // With v_flushed of its records.
  void Add(const Training& training,
           const std::string& seed = "0",
           const std::vector<double>& v_flushed = {0}) {
    AddRow("final",
           {{"m", training.m},
            {"v", training.v},
            {"seed", seed},
            {"status", training.status},
            {"start_loss", training.start},
            {"valid_loss", training.loss},
            {"entropy_bound", "1.23456789"},
            {"m_bytes", training.m_bytes},
            {"v_bytes", training.v_bytes}});
    for (size_t i = 0; i < v_flushed.size(); ++i) {
      AddFlushed(training.m, training.v, seed, static_cast<int>(i), v_flushed[i]);
    }
  }
  void AddFlushed(
      const std::string& m, const std::string& v, const std::string& seed, int step, double share) {
    AddRow("flushed", {{"m", m}, {"v", v}, {"seed", seed}, {"step", step}, {"v_flushed", share}});
  }
  void AddLoss(
      const std::string& m, const std::string& v, const std::string& seed, int step, double loss) {
    AddRow("curves", {{"m", m}, {"v", v}, {"seed", seed}, {"step", step}, {"loss", loss}});
  }

  // Makes the tables of the rows so far.
  void Finish(const Overrides& overrides = {}) {
    tables_.clear();
    for (const TableSpec& spec : MomentFormats().tables) {
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
      table.rows = rows_[spec.name];
    }
    MomentFormats().derive(SettingsWith(overrides, seeds_), tables_);
  }
  const Table& Pairs() const { return tables_.at("pairs"); }
  size_t RowOf(const std::string& m, const std::string& v) const {
    for (size_t r = 0; r < Pairs().rows.size(); ++r) {
      if (Pairs().Text(r, "m") == m && Pairs().Text(r, "v") == v) return r;
    }
    ADD_FAILURE() << m << " / " << v;
    return 0;
  }

  std::map<std::string, std::vector<Row>> rows_;  // by table
  Tables tables_;
  int seeds_ = 1;

 private:
  static Cell CellOf(const std::string& column) {
    const std::map<std::string, Cell> regime = {
        {"epsilon", "1e-8"}, {"update_from", "fresh"}, {"lr", "1e-3"}};
    const auto found = regime.find(column);
    return found == regime.end() ? Cell("nan") : found->second;
  }
  // Cells that are not named are those of one regime, or nan.
  void AddRow(const std::string& table, const std::map<std::string, Cell>& cells) {
    for (const TableSpec& spec : MomentFormats().tables) {
      if (spec.name != table) continue;
      Row row;
      for (const Column& column : spec.columns) {
        const auto cell = cells.find(column.name);
        row.push_back(cell == cells.end() ? CellOf(column.name) : cell->second);
      }
      rows_[table].push_back(std::move(row));
    }
  }
};

}  // namespace numsim::experiments::moment_formats
