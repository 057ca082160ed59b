// The experiment `quantization-variance`: a golden CSV and one trial recomputed by hand.
#include "experiments/quantization_variance/quantization_variance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/distributions.h"
#include "tests/experiments/golden_run.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::quantization_variance {
namespace {

using ::testing::HasSubstr;

using Overrides = std::map<std::string, std::string>;

constexpr size_t kPairs = 8;

Overrides Small() {
  return {{"pairs", std::to_string(kPairs)},
          {"k-low", "64"},
          {"k-high", "256"},
          {"distributions", "normal,laplace,student-t3"},
          {"formats", "int8,e4m3fn,bf16"}};
}

Settings SettingsWith(const Overrides& overrides, uint64_t seed = 0) {
  return MakeSettings(QuantizationVariance(), "quick", seed, 1, overrides);
}

// `numsim run quantization-variance --pairs 8 --k-low 64 --k-high 256
//    --distributions normal,laplace,student-t3 --formats int8,e4m3fn,bf16 --out DIR`
TEST(QuantizationVariance, EqualsTheGoldenCsvOnAnyNumberOfThreads) {
  ExpectGoldenCsv(QuantizationVariance(), SettingsWith(Small()), "variance");
}

Table RowsOf(const Settings& settings, const Trial& trial) {
  return experiments::RowsOf(QuantizationVariance(), settings, trial);
}

// The expected columns, from the definitions: two-pass formulas, plain sums in order.
struct Naive {
  double var_product = 0, var_quantized = 0, var_error = 0, mean_error = 0;
  double sigma_u2 = 0, sigma_v2 = 0, sigma_q2 = 0, prediction = 0, relative_error = 0;
  double underflow_share = 0, absmax = 0;
};

double Mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double Variance(const std::vector<double>& x) {
  const double mean = Mean(x);
  double sum = 0;
  for (const double value : x) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(x.size() - 1);
}

Naive Recompute(const std::vector<float>& u,
                const std::vector<float>& v,
                const std::vector<float>& uq,
                const std::vector<float>& vq,
                size_t k) {
  Naive n;
  std::vector<double> product, quantized, error;
  double error_square = 0, product_square = 0;
  size_t nonzero = 0, underflow = 0;
  for (size_t first = 0; first < u.size(); first += k) {
    double exact = 0, rounded = 0, largest_u = 0, largest_v = 0;
    for (size_t i = first; i < first + k; ++i) {
      const double a = u[i], b = v[i], aq = uq[i], bq = vq[i];
      exact += a * b;
      rounded += aq * bq;
      n.sigma_u2 += a * a;
      n.sigma_v2 += b * b;
      n.sigma_q2 += (aq - a) * (aq - a) + (bq - b) * (bq - b);
      largest_u = std::max(largest_u, std::abs(a));
      largest_v = std::max(largest_v, std::abs(b));
      nonzero += (a != 0 ? 1 : 0) + (b != 0 ? 1 : 0);
      underflow += (a != 0 && aq == 0 ? 1 : 0) + (b != 0 && bq == 0 ? 1 : 0);
    }
    product.push_back(exact);
    quantized.push_back(rounded);
    error.push_back(rounded - exact);
    error_square += (rounded - exact) * (rounded - exact);
    product_square += exact * exact;
    n.absmax += (largest_u + largest_v) / 2;
  }
  const auto elements = static_cast<double>(u.size());
  n.sigma_u2 /= elements;
  n.sigma_v2 /= elements;
  n.sigma_q2 /= 2 * elements;
  n.prediction = static_cast<double>(k) * n.sigma_q2 * (n.sigma_u2 + n.sigma_v2 + n.sigma_q2);
  n.var_product = Variance(product);
  n.var_quantized = Variance(quantized);
  n.var_error = Variance(error);
  n.mean_error = Mean(error);
  n.relative_error = std::sqrt(error_square / product_square);
  n.underflow_share = static_cast<double>(underflow) / static_cast<double>(nonzero);
  n.absmax /= elements / static_cast<double>(k);
  return n;
}

void ExpectRow(const Table& table, size_t row, const Naive& n) {
  const auto near = [&](const char* column, double expected) {
    EXPECT_NEAR(table.Number(row, column), expected, 1e-9 * std::abs(expected)) << column;
  };
  near("var_product", n.var_product);
  near("var_quantized", n.var_quantized);
  near("var_error", n.var_error);
  EXPECT_NEAR(table.Number(row, "mean_error"), n.mean_error, 1e-9 * std::sqrt(n.var_error));
  near("sigma_u2", n.sigma_u2);
  near("sigma_v2", n.sigma_v2);
  near("sigma_q2", n.sigma_q2);
  near("prediction", n.prediction);
  near("ratio", n.var_error / n.prediction);
  near("relative_error", n.relative_error);
  near("underflow_share", n.underflow_share);
  near("absmax", n.absmax);
}

struct Treated {
  std::string format;
  std::string granularity;
  std::string rounding;
};

void PrintTo(const Treated& t, std::ostream* out) {
  *out << t.format << " " << t.granularity << " " << t.rounding;
}

class RecomputedTrial : public testing::TestWithParam<Treated> {};

TEST_P(RecomputedTrial, HasTheNumbersOfItsDefinitions) {
  const Treated& treated = GetParam();
  constexpr size_t k = 128;
  constexpr uint64_t seed = 3;
  const Settings settings = SettingsWith({{"pairs", std::to_string(kPairs)},
                                          {"formats", treated.format},
                                          {"granularities", treated.granularity},
                                          {"roundings", treated.rounding}},
                                         seed);
  const Trial trial{
      .label = "trial",
      .seed = seed,
      .parameters = {{"source", "laplace"}, {"k", std::to_string(k)}, {"sweep", "yes"}}};
  const Table table = RowsOf(settings, trial);
  ASSERT_EQ(table.rows.size(), 1u);

  std::vector<float> u(kPairs * k), v(kPairs * k), uq(u.size()), vq(v.size());
  Fill(Distribution::kLaplace, {seed, 0}, 0, u);
  Fill(Distribution::kLaplace, {seed, 1}, 0, v);
  QuantizeOptions options;
  options.format = FindFormat(treated.format)->spec;
  options.layout = ParseScaleLayout(treated.granularity);
  options.rounding = {ParseRoundingMode(treated.rounding), StochasticVariant::kA, 16};
  options.scale_rule = options.format.Bits() <= 8 ? ScaleRule::kAbsmax : ScaleRule::kNone;
  options.random = {{seed, 3}, 0};
  FakeQuantize(u, {kPairs, k}, options, uq);
  options.random = {{seed, 4}, 0};
  FakeQuantize(v, {kPairs, k}, options, vq);
  ExpectRow(table, 0, Recompute(u, v, uq, vq, k));
}

INSTANTIATE_TEST_SUITE_P(QuantizationVariance,
                         RecomputedTrial,
                         testing::Values(Treated{"int8", "row", "rne"},
                                         Treated{"int8", "tensor", "rne"},
                                         Treated{"e4m3fn", "block:32", "rne"},
                                         Treated{"e5m2", "row", "sr"},
                                         Treated{"bf16", "row", "rne"}));

// Row-wise int8 is round(127 / absmax * x): Eq. 1 of the paper, with no code of the library.
TEST(QuantizationVariance, RowWiseInt8IsEquationOne) {
  constexpr size_t k = 64;
  const Settings settings = SettingsWith({{"pairs", std::to_string(kPairs)},
                                          {"formats", "int8"},
                                          {"granularities", "row"},
                                          {"roundings", "rne"}});
  const Trial trial{.label = "trial",
                    .seed = 0,
                    .parameters = {{"source", "normal"}, {"k", "64"}, {"sweep", "yes"}}};
  const Table table = RowsOf(settings, trial);
  std::vector<float> u(kPairs * k), v(kPairs * k);
  FillNormal({0, 0}, 0, u);
  FillNormal({0, 1}, 0, v);
  const auto quantized = [](const std::vector<float>& x) {
    std::vector<float> q(x.size());
    for (size_t first = 0; first < x.size(); first += k) {
      float absmax = 0;
      for (size_t i = first; i < first + k; ++i) absmax = std::max(absmax, std::fabs(x[i]));
      const float inv_scale = 127 / absmax, scale = absmax / 127;
      for (size_t i = first; i < first + k; ++i) {
        q[i] = std::nearbyint(x[i] * inv_scale) * scale;
      }
    }
    return q;
  };
  ExpectRow(table, 0, Recompute(u, v, quantized(u), quantized(v), k));
}

// The ratio of geometric means; its interval is that of a mean of two logarithms on either side.
TEST(QuantizationVariance, RatiosOfSeveralSeedsAreOfTheirMeans) {
  const Settings settings = MakeSettings(QuantizationVariance(), "quick", 0, 2, Small());
  Tables tables;
  for (const TableSpec& spec : QuantizationVariance().tables) {
    for (const Column& column : spec.columns) tables[spec.name].columns.push_back(column.name);
  }
  Table& variance = tables.at("variance");
  const auto add = [&](const char* k, const char* seed, double value, double log_error) {
    Row row(variance.columns.size(), "nan");
    const double half = std::exp(1.959963984540054 * log_error);
    for (const auto& [column, cell] : std::map<std::string, Cell>{{"source", "normal"},
                                                                  {"format", "int8"},
                                                                  {"granularity", "row"},
                                                                  {"rounding", "rne"},
                                                                  {"k", k},
                                                                  {"seed", seed},
                                                                  {"sweep", "no"},
                                                                  {"var_error", value},
                                                                  {"var_error_low", value / half},
                                                                  {"var_error_high", value * half},
                                                                  {"relative_error", value / 2}}) {
      row[variance.Column(column)] = cell;
    }
    variance.rows.push_back(std::move(row));
  };
  add("8192", "0", 8, 0.1);
  add("8192", "1", 2, 0.2);
  add("2048", "0", 1, 0.3);
  add("2048", "1", 4, 0.4);
  QuantizationVariance().derive(settings, tables);
  const Table& ratios = tables.at("dimension_ratios");
  ASSERT_EQ(ratios.rows.size(), 1u);
  EXPECT_EQ(ratios.Text(0, "noisy_k"), "8192");
  EXPECT_EQ(ratios.Text(0, "quiet_k"), "2048");
  EXPECT_EQ(ratios.Number(0, "predicted"), 4);
  const double half = std::exp(1.959963984540054 * std::sqrt(0.01 + 0.04 + 0.09 + 0.16) / 2);
  EXPECT_NEAR(ratios.Number(0, "measured"), 2, 1e-9);
  EXPECT_NEAR(ratios.Number(0, "measured_low"), 2 / half, 1e-9);
  EXPECT_NEAR(ratios.Number(0, "measured_high"), 2 * half, 1e-9);
  EXPECT_NEAR(ratios.Number(0, "relative_error_ratio"), 2, 1e-9);
}

TEST(QuantizationVariance, BadOptionsAreNamed) {
  const Experiment experiment = QuantizationVariance();
  const auto message = [&](const Overrides& overrides) {
    return ErrorOf([&] { experiment.trials(SettingsWith(overrides)); });
  };
  EXPECT_EQ(message({}), "no error");
  for (const char* const option : {"pairs", "tensor-rows", "sr-bits", "k-low", "k-high"}) {
    EXPECT_THAT(message({{option, "-1"}}), HasSubstr("--" + std::string(option)));
  }
  EXPECT_THAT(message({{"k-low", "3"}}), HasSubstr("--k-low"));
  EXPECT_THAT(message({{"formats", "nope"}}), HasSubstr("nope"));
  EXPECT_THAT(message({{"granularities", "cell"}}), HasSubstr("cell"));
  EXPECT_THAT(message({{"distributions", "cauchy"}}), HasSubstr("cauchy"));
  EXPECT_THAT(message({{"roundings", "up"}}), HasSubstr("up"));
  for (const char* const option : {"tensor", "input-b", "tensor-b"}) {
    EXPECT_EQ(message({{option, "w"}}), "--" + std::string(option) + " needs --input FILE");
  }
}

}  // namespace
}  // namespace numsim::experiments::quantization_variance
