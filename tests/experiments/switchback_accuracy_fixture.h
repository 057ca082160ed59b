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

#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "tests/experiments/result_tables.h"

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

// The trainings that differ only in variant and seed.
struct Group {
  std::string model, size, tokens;
};
inline Group Llama(int tokens, const std::string& size = "2x64") {
  return {"llama", size, FormatCell(tokens)};
}
inline Group Clip(int tokens, const std::string& size = "2x64") {
  return {"clip", size, FormatCell(tokens)};
}

class SwitchbackTables : public ::testing::Test {
 protected:
  static constexpr double kStart = 5;  // loss of all trainings before the first step

  using Cells = std::map<std::string, Cell>;

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
                  {"layers", variant.layers}});
    if (table == "final") cells.insert({"parameters", "1000"});
    results_.Add(table, cells);
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
                  {"start_loss", kStart},
                  {"valid_loss", loss},
                  {"zero_shot", zero_shot}});
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
  void AddBaseline(const Group& group, const Cells& more = {}) {
    AddSeeds(group, "standard", kSeeds, more);
  }
  // The baseline's losses and these gaps to it.
  void AddGaps(const Group& group,
               const std::string& variant,
               const std::vector<double>& gaps,
               const Cells& more = {}) {
    std::vector<double> losses = gaps;
    for (size_t i = 0; i < losses.size(); ++i) losses[i] += kSeeds.at(i);
    AddSeeds(group, variant, losses, more);
  }
  void AddGradient(const Group& group,
                   const std::string& variant,
                   double error,
                   double own_error,
                   double cosine = 0.5,
                   const std::string& seed = "0") {
    AddRow("gradients",
           group,
           variant,
           {{"seed", seed}, {"error", error}, {"own_error", own_error}, {"cosine", cosine}});
  }
  void Clear() {
    for (const char* const table : {"final", "curves", "gradients"}) results_.Clear(table);
  }

  // A cell of a derived table.
  double ValueOf(const char* table,
                 const Group& group,
                 const std::string& variant,
                 const char* column) {
    const Frame rows = RowsOf(results_.Of(table), variant)
                           .Where("model", group.model)
                           .Where("size", group.size)
                           .Where("tokens", group.tokens);
    EXPECT_EQ(rows.Size(), 1u) << table << ": " << variant;
    return rows.Number(column);
  }
  double Gap(const Group& group, const std::string& variant, const char* column = "gap") {
    return ValueOf("gaps", group, variant, column);
  }
  double ErrorOf(const Group& group, const std::string& variant, const char* column) {
    return ValueOf("gradient_errors", group, variant, column);
  }

  const std::vector<double> kSeeds = {1, 2, 4};  // losses of the baseline
  ResultTables results_{SwitchbackAccuracy(), {{"steps", "123"}}};
};

}  // namespace numsim::experiments::switchback_accuracy
