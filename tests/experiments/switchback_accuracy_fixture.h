// Shared by the tests of the tables of `switchback-accuracy`: hand-made trainings.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/core/settings.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::switchback_accuracy {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline const double kNan = std::nan("");

// The 0.975 quantile of Student's t for a mean of n values, from a printed table.
inline double StudentQuantile(size_t n) {
  constexpr double kQuantiles[] = {12.706205, 4.302653, 3.182446, 2.776445};
  return n >= 2 && n <= 5 ? kQuantiles[n - 2] : kNan;
}

struct Interval {
  double mean, low, high;
};

// Mean +- t s / sqrt(n), by two passes.
inline Interval IntervalOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  const double half = StudentQuantile(values.size()) * std::sqrt(squares / (n - 1) / n);
  return {sum / n, sum / n - half, sum / n + half};
}

inline Group Llama(int tokens, const std::string& size = "2x64") {
  return {"llama", size, FormatCell(tokens)};
}
inline Group Clip(int tokens, const std::string& size = "2x64") {
  return {"clip", size, FormatCell(tokens)};
}

class SwitchbackTables : public ::testing::Test {
 protected:
  static constexpr double kStart = 5;  // loss of all trainings before the first step

  using Cells = std::map<std::string, std::string>;

  // A row of a measured table. Cells that are not named are nan.
  void AddRow(const std::string& table,
              const Group& group,
              const std::string& variant_text,
              Cells cells) {
    const Variant variant = ParseVariant(variant_text);
    cells.insert({{"model", group.model},
                  {"size", group.size},
                  {"tokens", group.tokens},
                  {"kind", variant.kind},
                  {"format", variant.format},
                  {"gradient_format", variant.gradient_format},
                  {"parameters", "1000"}});
    for (const TableSpec& spec : SwitchbackAccuracy().tables) {
      if (spec.name != table) continue;
      std::vector<std::string> row;
      for (const Column& column : spec.columns) {
        row.push_back(cells.contains(column.name) ? cells.at(column.name) : "nan");
      }
      rows_[table].push_back(std::move(row));
    }
  }

  // A training. Diverged: infinite loss.
  void Add(const Group& group,
           const std::string& variant,
           const std::string& seed,
           double loss,
           double zero_shot = kNan,
           const Cells& more = {}) {
    Cells cells = more;
    cells.insert({{"seed", seed},
                  {"status", std::isfinite(loss) ? "finished" : "diverged"},
                  {"start_loss", FormatCell(kStart)},
                  {"valid_loss", FormatCell(loss)},
                  {"zero_shot", FormatCell(zero_shot)}});
    AddRow("final", group, variant, std::move(cells));
  }
  // Trainings with these losses for seeds 0, 1, ...
  void AddSeeds(const Group& group,
                const std::string& variant,
                const std::vector<double>& losses,
                const Cells& more = {}) {
    for (size_t i = 0; i < losses.size(); ++i) {
      Add(group, variant, std::to_string(i), losses[i], kNan, more);
    }
  }
  // The baseline for three seeds that differ much more than variants do.
  void AddBaseline(const Group& group) { AddSeeds(group, "standard", kSeeds); }
  // The baseline's losses and these gaps to it.
  void AddGaps(const Group& group, const std::string& variant, const std::vector<double>& gaps) {
    ASSERT_EQ(gaps.size(), kSeeds.size());
    std::vector<double> losses = kSeeds;
    for (size_t i = 0; i < losses.size(); ++i) losses[i] += gaps[i];
    AddSeeds(group, variant, losses);
  }
  void AddGradient(const Group& group,
                   const std::string& variant,
                   double error,
                   double own_error,
                   double cosine = 0.5) {
    AddRow("gradients",
           group,
           variant,
           {{"seed", "0"},
            {"error", FormatCell(error)},
            {"own_error", FormatCell(own_error)},
            {"cosine", FormatCell(cosine)}});
  }

  Settings SettingsOfTest() const {
    return MakeSettings(SwitchbackAccuracy(), "quick", 0, seeds_, {{"steps", "123"}});
  }
  // Makes the tables of the rows so far.
  const Tables& Finish() {
    tables_.clear();
    for (const TableSpec& spec : SwitchbackAccuracy().tables) {
      Table& table = tables_[spec.name];
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
      table.rows = rows_[spec.name];
    }
    Derive(SettingsOfTest(), tables_);
    return tables_;
  }

  // The cell of a derived table.
  const std::string& CellOf(const char* table_name,
                            const Group& group,
                            const std::string& variant,
                            const char* column) const {
    static const std::string kNone = "no such row";
    const Table& table = tables_.at(table_name);
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (GroupOf(table, r) == group && VariantOf(table, r).Text() == variant) {
        return table.Text(r, column);
      }
    }
    ADD_FAILURE() << table_name << ": " << group.Text() << ", " << variant;
    return kNone;
  }
  double Gap(const Group& group, const std::string& variant, const char* column = "gap") const {
    return std::stod(CellOf("gaps", group, variant, column));
  }
  std::string Verdict(const Group& group, const std::string& variant) const {
    return CellOf("gaps", group, variant, "verdict");
  }
  double ErrorOf(const Group& group, const std::string& variant, const char* column) const {
    return std::stod(CellOf("gradient_errors", group, variant, column));
  }

  const std::vector<double> kSeeds = {1, 2, 4};  // losses of the baseline
  // Gaps by which a variant is behind, within noise, ahead; the seeds differ more than these do. The
  // interval of kNoiseGaps is within 5 % of what the baseline gains.
  const std::vector<double> kBehindGaps = {0.125, 0.25, 0.1875};
  const std::vector<double> kNoiseGaps = {0.015625, -0.015625, 0.0078125};
  // The interval of these contains 0 and much more.
  const std::vector<double> kWideGaps = {0.25, -0.25, 0.125};
  const std::vector<double> kAheadGaps = {-0.125, -0.25, -0.1875};
  const std::vector<double> kDivergedGaps = {0.125, kInf, 0.125};

  std::map<std::string, std::vector<std::vector<std::string>>> rows_;  // by table
  Tables tables_;
  int seeds_ = 3;
};

}  // namespace numsim::experiments::switchback_accuracy
