// Hand-made rows of `linear-error` for tests of its tables, claims and figures.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "experiments/linear_error/linear_error.h"
#include "tests/experiments/result_tables.h"

namespace numsim::experiments::linear_error {

// Relative error of (product, inner dimension, seed).
using Law = std::function<double(const std::string&, double, int)>;

inline Law Flat(double level) {
  return [level](const std::string&, double, int) { return level; };
}
// dW's error grows like a power of b from 1 % at 256, by a fifth more with the second seed.
inline Law Growing(double power) {
  return [power](const std::string& product, double inner, int seed) {
    if (product != kWeightGradient) return 0.01;
    return (seed == 1 ? 0.012 : 0.01) * std::pow(inner / 256, power);
  };
}

class MadeUpErrors : public ::testing::Test {
 protected:
  // Starts with no rows, for settings with these options.
  void Start(const Overrides& options = {}, int seeds = 3) {
    results_ = ResultTables(LinearError(), options, seeds);
  }
  // Adds int8 rows of both sweeps. Noise variances are those of Eq. 12 times inner^`excess`.
  void Add(const std::string& operands,
           const std::string& kind,
           const Law& law,
           double excess = 0) {
    for (const double b : tokens_) AddRows(operands, kind, kTokenSweep, {b, 128}, law, excess);
    for (const double n : widths_) AddRows(operands, kind, kWidthSweep, {2048, n}, law, excess);
  }
  Frame Of(std::string_view table) { return results_.Of(std::string(table)); }

  std::vector<double> tokens_ = {256, 512, 1024, 2048, 4096}, widths_ = {128, 256, 300};
  ResultTables results_{LinearError()};

 private:
  void AddRows(const std::string& operands,
               const std::string& kind,
               std::string_view sweep,
               const std::pair<double, double>& shape,
               const Law& law,
               double excess) {
    const auto [tokens, width] = shape;
    for (int seed = 0; seed < results_.settings().seeds; ++seed) {
      for (const std::string& product : {kForward, kInputGradient, kWeightGradient}) {
        const double inner = product == kWeightGradient ? tokens : width;
        const double relative = law(product, inner, seed);
        const double noise = inner / 100 * std::pow(inner, excess);
        results_.Add("errors",
                     {{"operands", operands},
                      {"kind", kind},
                      {"format", "int8"},
                      {"product", product},
                      {"sweep", sweep},
                      {"tokens", tokens},
                      {"in", width},
                      {"out", width},
                      {"inner", inner},
                      {"seed", seed},
                      {"error_variance", noise},
                      {"signal_variance", noise / (relative * relative)},
                      {"relative_error", relative},
                      {"row_error", relative},
                      {"column_error", relative},
                      {"cosine", 0.5}});
      }
    }
  }
};

}  // namespace numsim::experiments::linear_error
