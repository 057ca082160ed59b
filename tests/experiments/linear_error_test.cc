// The experiment `linear-error`: a golden CSV, one trial recomputed from the paper's formulas, and
// bad options.
#include "experiments/linear_error/linear_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/linear_error/operands.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/base/parallel.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::linear_error {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;
using Matrix = std::vector<double>;

const Overrides kSmall = {{"kinds", "switchback,llm-int8"},
                          {"formats", "int8"},
                          {"tokens-low", "16"},
                          {"tokens-high", "32"},
                          {"width", "8"},
                          {"dims", "12"},
                          {"tokens-fixed", "16"},
                          {"outlier-tokens", "0.1"}};

Settings SettingsWith(const Overrides& overrides, uint64_t seed = 0) {
  return MakeSettings(LinearError(), "quick", seed, 1, overrides);
}

Overrides With(Overrides overrides, const std::string& name, const std::string& value) {
  overrides[name] = value;
  return overrides;
}

// `numsim run linear-error --kinds switchback,llm-int8 --formats int8 --tokens-low 16
//    --tokens-high 32 --width 8 --dims 12 --tokens-fixed 16 --outlier-tokens 0.1 --out DIR`
TEST(LinearError, EqualsTheGoldenCsvOnAnyNumberOfThreads) {
  ExpectGoldenCsv(LinearError(), SettingsWith(kSmall), "errors");
}

Table RowsOf(const Settings& settings, const Trial& trial) {
  return experiments::RowsOf(LinearError(), settings, trial);
}

Trial TrialOf(const std::string& operands, LinearShape shape, uint64_t seed) {
  return {.label = "trial",
          .seed = seed,
          .parameters = {{"operands", operands},
                         {"sweep", "tokens"},
                         {"tokens", std::to_string(shape.tokens)},
                         {"in", std::to_string(shape.in)},
                         {"out", std::to_string(shape.out)}}};
}

Matrix Transpose(const Matrix& a, size_t rows, size_t cols) {
  Matrix t(a.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) t[j * rows + i] = a[i * cols + j];
  }
  return t;
}

// A B^T, both with rows of length `inner`.
Matrix Multiply(const Matrix& a, const Matrix& b, size_t inner) {
  Matrix out;
  for (size_t i = 0; i < a.size(); i += inner) {
    for (size_t j = 0; j < b.size(); j += inner) {
      double sum = 0;
      for (size_t k = 0; k < inner; ++k) sum += a[i + k] * b[j + k];
      out.push_back(sum);
    }
  }
  return out;
}

// round(127 x / absmax) absmax / 127 with one absmax for every `inner` elements: Eq. 1.
Matrix RowWise(Matrix a, size_t inner) {
  for (size_t i = 0; i < a.size(); i += inner) {
    float absmax = 0;
    for (size_t k = i; k < i + inner; ++k) {
      absmax = std::max(absmax, static_cast<float>(std::fabs(a[k])));
    }
    const float inv_scale = 127 / absmax, scale = absmax / 127;
    for (size_t k = i; k < i + inner; ++k) {
      a[k] = std::nearbyint(static_cast<float>(a[k]) * inv_scale) * static_cast<double>(scale);
    }
  }
  return a;
}

// The columns of the table, in two passes from their definitions.
void ExpectRow(const Table& table, size_t row, const Matrix& r, const Matrix& y) {
  const auto n = static_cast<double>(r.size());
  double bias = 0, mean = 0, ee = 0, rr = 0, yr = 0, yy = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    bias += (y[i] - r[i]) / n;
    mean += r[i] / n;
    ee += (y[i] - r[i]) * (y[i] - r[i]);
    rr += r[i] * r[i];
    yr += y[i] * r[i];
    yy += y[i] * y[i];
  }
  double noise = 0, signal = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    noise += (y[i] - r[i] - bias) * (y[i] - r[i] - bias) / n;
    signal += (r[i] - mean) * (r[i] - mean) / n;
  }
  // The library rounds references and products to float32.
  const auto near = [&](const char* column, double expected) {
    EXPECT_NEAR(table.Number(row, column), expected, 1e-4 * std::abs(expected)) << column;
  };
  near("error_variance", noise);
  near("signal_variance", signal);
  near("relative_error", std::sqrt(ee / rr));
  near("sqnr_db", 10 * std::log10(rr / ee));
  EXPECT_NEAR(table.Number(row, "bias"), bias, 1e-4 * std::sqrt(noise));
  EXPECT_NEAR(table.Number(row, "gain"), yr / rr, 1e-6);
  EXPECT_NEAR(table.Number(row, "cosine"), yr / std::sqrt(rr * yy), 1e-6);
}

// llm-int8 quantises every operand along its inner dimension; switchback's dW is not quantised.
TEST(LinearError, ATrialHasTheNumbersOfThePapersFormulas) {
  const LinearShape shape{24, 10, 6};
  const Settings settings = SettingsWith(
      {{"kinds", "llm-int8,switchback"}, {"formats", "int8"}, {"high-precision", "fp32"}}, 5);
  const LinearOperands operands = MakeOperands(settings, "student-t3", shape, 5);
  const Matrix x(operands.x.begin(), operands.x.end()), w(operands.w.begin(), operands.w.end()),
      g(operands.g.begin(), operands.g.end());
  const Matrix wt = Transpose(w, shape.out, shape.in), gt = Transpose(g, shape.tokens, shape.out),
               xt = Transpose(x, shape.tokens, shape.in);
  const auto quantized = [](const Matrix& a, const Matrix& b, size_t inner) {
    return Multiply(RowWise(a, inner), RowWise(b, inner), inner);
  };
  const Table table = RowsOf(settings, TrialOf("student-t3", shape, 5));
  ASSERT_EQ(table.rows.size(), 6u);
  ExpectRow(table, 0, Multiply(x, w, shape.in), quantized(x, w, shape.in));
  ExpectRow(table, 1, Multiply(g, wt, shape.out), quantized(g, wt, shape.out));
  ExpectRow(table, 2, Multiply(gt, xt, shape.tokens), quantized(gt, xt, shape.tokens));
  EXPECT_EQ(table.Text(2, "product"), "weight-gradient");
  EXPECT_EQ(table.Text(0, "inner"), "10");
  EXPECT_EQ(table.Text(1, "inner"), "6");
  EXPECT_EQ(table.Text(2, "inner"), "24");
  EXPECT_GT(table.Number(3, "relative_error"), 1e-3);
  EXPECT_LT(table.Number(5, "relative_error"), 1e-6);
}

TEST(LinearError, BadOptionsAreNamed) {
  const Experiment experiment = LinearError();
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { experiment.trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  for (const char* const option : {"tokens-low",
                                   "tokens-high",
                                   "width",
                                   "dims",
                                   "tokens-fixed",
                                   "sr-bits",
                                   "outlier-columns",
                                   "outlier-column-size",
                                   "outlier-tokens",
                                   "outlier-token-size",
                                   "coherence",
                                   "threshold"}) {
    const std::string error = message({{option, "-1"}});
    EXPECT_THAT(error, HasSubstr("--" + std::string(option)));
  }
  const std::map<std::string, std::string> unknown = {{"operands", "cauchy"},
                                                      {"kinds", "nope"},
                                                      {"formats", "float9"},
                                                      {"high-precision", "e4m3"},
                                                      {"accumulate", "slowly"},
                                                      {"gradient-rounding", "upwards"}};
  for (const auto& [option, value] : unknown) {
    const std::string error = message({{option, value}});
    EXPECT_THAT(error, HasSubstr(value)) << option;
  }
  EXPECT_THAT(message({{"tokens-low", "24"}}), HasSubstr("--tokens-low"));
  for (const char* const option : {"operands", "kinds", "formats", "dims", "threshold"}) {
    const Settings settings = SettingsWith({});
    const std::string first = settings.GetList(option).front();
    const std::string error = message({{option, first + "," + first}});
    EXPECT_THAT(error, HasSubstr("twice")) << option;
  }
}

// A kind is measured with the formats that it takes; what no kind takes is an error.
TEST(LinearError, AFormatThatNoKindTakesIsAnError) {
  const auto message = [](const Overrides& overrides) {
    return ErrorOf([&] { Treatments(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({{"formats", "int8,e4m3fn"}}), "no error");
  EXPECT_NE(message({{"formats", "int8,fp32"}}), "no error");
  EXPECT_NE(message({{"formats", "fp32"}}), "no error");
}

TEST(LinearError, RowsDoNotDependOnTheOtherKindsAndFormats) {
  const Trial trial = TrialOf("normal", {16, 8, 8}, 0);
  const Overrides alone = With(With({}, "kinds", "llm-int8"), "formats", "e4m3fn");
  const Overrides more = With(With({}, "kinds", "standard,llm-int8"), "formats", "int8,e4m3fn");
  const auto sr = [](const Overrides& o) { return With(o, "gradient-rounding", "sr"); };
  const Table a = RowsOf(SettingsWith(sr(alone)), trial), b = RowsOf(SettingsWith(sr(more)), trial);
  ASSERT_EQ(a.rows.size(), 3u);
  ASSERT_EQ(b.rows.size(), 9u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(a.rows[i], b.rows[6 + i]);
}

}  // namespace
}  // namespace numsim::experiments::linear_error
