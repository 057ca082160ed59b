// `quantization-variance --input`: segments of the rows of tensors, and verdicts on few lengths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/quantization_variance/input.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/runner/settings.h"
#include "numsim/io/npy.h"
#include "numsim/random/distributions.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments::quantization_variance {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;
using Overrides = std::map<std::string, std::string>;

class Input : public testing::Test {
 protected:
  // Writes a file of float32 numbers and returns its path.
  std::string Put(const std::string& name,
                  std::vector<size_t> shape,
                  const std::vector<float>& values) const {
    Array array;
    array.shape = std::move(shape);
    array.bytes.resize(values.size() * sizeof(float));
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    const fs::path path = directory_.Path() / (name + ".npy");
    WriteNpy(path, array);
    return path.string();
  }

  static Overrides With(const std::string& path, Overrides more = {}) {
    more.insert({{"pairs", "8"},
                 {"k-low", "16"},
                 {"k-high", "64"},
                 {"formats", "e4m3fn"},
                 {"granularities", "row"},
                 {"roundings", "rne"},
                 {"input", path}});
    return more;
  }

  static Settings SettingsOf(const Overrides& overrides, int seeds = 1) {
    return MakeSettings(QuantizationVariance(), "quick", 0, seeds, overrides);
  }

  fs::path Out() const { return directory_.Path() / "out"; }
  RunReport RunIt(const Overrides& overrides, int seeds = 1) const {
    return RunWithoutFigures(QuantizationVariance(), SettingsOf(overrides, seeds), Out());
  }
  Table Variance() const { return ReadCsv(Out() / "variance.csv"); }
  struct Judged {
    std::string verdict, reason;
  };
  Judged JudgedOf(const std::string& claim) const {
    const Table table = ReadCsv(Out() / "verdicts.csv");
    const Frame rows = Frame(table).Where("claim", "quantization-variance/" + claim);
    return {rows.Text("verdict"), rows.Text("reason")};
  }
  std::string ErrorWith(const Overrides& overrides) const {
    std::string error = ErrorOf([&] { RunIt(overrides); });
    EXPECT_FALSE(fs::exists(Out() / "variance.csv"));
    return error;
  }

  const TemporaryDirectory directory_;
};

std::vector<float> Ramp(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 0.01f * static_cast<float>(i % 101) - 0.5f;
  return values;
}

// Rows that share the means of their columns, as those of weights do, plus noise of variance 1.
std::vector<float> SharedMeans(size_t rows, size_t cols) {
  std::vector<float> means(cols), values(rows * cols);
  Fill(Distribution::kNormal, {7, 0}, 0, means);
  Fill(Distribution::kNormal, {7, 1}, 0, values);
  for (size_t i = 0; i < values.size(); ++i) values[i] += means[i % cols];
  return values;
}

// Mean of the squared inner product and its variance over all pairs of different rows and all
// segments of k columns that divide the row; u and v are the same columns.
struct AlignedProducts {
  double mean_square = 0, variance = 0;
};
AlignedProducts OfAlignedSegments(const std::vector<float>& values, size_t cols, size_t k) {
  const size_t rows = values.size() / cols;
  double sum = 0, squares = 0, count = 0;
  for (size_t a = 0; a < rows; ++a) {
    for (size_t b = 0; b < a; ++b) {
      for (size_t column = 0; column < cols; column += k) {
        double product = 0;
        for (size_t i = column; i < column + k; ++i) {
          product += static_cast<double>(values[a * cols + i]) * values[b * cols + i];
        }
        sum += product;
        squares += product * product;
        ++count;
      }
    }
  }
  const double mean = sum / count;
  return {squares / count, squares / count - mean * mean};
}

// The columns of u and v decide: products of different columns have a mean square near 2 k^2 / k,
// those of the same columns grow like k^2.
TEST_F(Input, EveryLengthHasTheProductsOfAlignedSegments) {
  constexpr size_t kRows = 512, kCols = 128;
  const std::vector<float> values = SharedMeans(kRows, kCols);
  RunIt(With(Put("weights", {kRows, kCols}, values),
             {{"pairs", "4096"}, {"k-low", "4"}, {"k-high", "131072"}, {"formats", "int8"}}));
  const Table table = Variance();
  ASSERT_EQ(table.rows.size(), 6u);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto k = static_cast<size_t>(table.Number(r, "k"));
    const AlignedProducts expected = OfAlignedSegments(values, kCols, k);
    // The mean square of the product, from the columns: E[error^2] / relative_error^2.
    const double error = table.Number(r, "mean_error"),
                 relative = table.Number(r, "relative_error");
    const double mean_square = (table.Number(r, "var_error") + error * error) / relative / relative;
    EXPECT_NEAR(mean_square / expected.mean_square, 1, 0.15) << k;
    EXPECT_NEAR(table.Number(r, "var_product") / expected.variance, 1, 0.15) << k;
  }
}

// From k to 2k the variance grows steadily and the relative error changes little, at the full
// length too. With u and v from different columns below it, the error falls to a fifth there.
TEST_F(Input, TheFullLengthIsNoOtherQuantity) {
  RunIt(With(Put("weights", {512, 128}, SharedMeans(512, 128)),
             {{"pairs", "4096"}, {"k-low", "4"}, {"k-high", "128"}, {"formats", "int8"}}));
  const Table table = Variance();
  for (size_t r = 1; r < table.rows.size(); ++r) {
    const double ratio = table.Number(r, "var_product") / table.Number(r - 1, "var_product");
    EXPECT_GT(ratio, 1.2) << table.Text(r, "k");
    EXPECT_LT(ratio, 4) << table.Text(r, "k");
    const double errors = table.Number(r, "relative_error") / table.Number(r - 1, "relative_error");
    EXPECT_GT(errors, 0.6) << table.Text(r, "k");
  }
}

// Element (row, column) is 1000 row + column, so that a segment tells where it is from.
TEST_F(Input, SegmentsOfAPairAreTheSameColumnsAndNested) {
  constexpr size_t kRows = 7, kCols = 40, kLongest = 32;
  std::vector<float> values(kRows * kCols);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(1000 * (i / kCols) + i % kCols);
  }
  const Settings settings = SettingsOf(With(Put("places", {kRows, kCols}, values)));
  const InputRows rows(settings, 3, kLongest);
  std::vector<int> first_columns;
  for (size_t pair = 0; pair < 200; ++pair) {
    int outer = 0;
    for (size_t k = kLongest; k >= 4; k /= 2) {
      std::vector<float> u(k), v(k);
      rows.FillPair(pair, k, u.data(), v.data());
      const int column = static_cast<int>(u[0]) % 1000;
      EXPECT_NE(u[0], v[0]);
      EXPECT_EQ(static_cast<int>(v[0]) % 1000, column);
      EXPECT_EQ(u[k - 1] - u[0], static_cast<float>(k - 1));
      EXPECT_EQ(v[k - 1] - v[0], static_cast<float>(k - 1));
      if (k < kLongest) {
        EXPECT_TRUE(column == outer || column == outer + static_cast<int>(k)) << k;
      }
      outer = column;
      if (k == 4) first_columns.push_back(column);
    }
  }
  EXPECT_THAT(first_columns, Contains(0));          // the first
  EXPECT_THAT(first_columns, Contains(kCols - 4));  // and the last columns of a row
}

TEST_F(Input, GivesRowsOfTheTensor) {
  RunIt(With(Put("weights", {5, 4, 10}, Ramp(200))));
  const Table table = Variance();
  ASSERT_EQ(table.rows.size(), 2u);  // 16 and 32: rows have 40 elements
  EXPECT_EQ(table.Text(0, "source"), "tensor weights");
  EXPECT_EQ(table.Text(0, "k"), "16");
  EXPECT_EQ(table.Text(1, "k"), "32");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(table.Number(i, "var_error"), 0);
    EXPECT_LE(table.Number(i, "absmax"), 0.5);
    EXPECT_GT(table.Number(i, "absmax"), 0);
  }
}

// Equal rows: whichever pairs are drawn, u and v are the same, and every product too.
TEST_F(Input, OfEqualRowsHasNoVariance) {
  std::vector<float> values;
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 16; ++i) values.push_back(static_cast<float>(i) + 0.3f);
  }
  RunIt(With(Put("weights", {3, 16}, values)));
  const Table table = Variance();
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.Number(0, "var_product"), 0);
  EXPECT_EQ(table.Number(0, "var_error"), 0);
  EXPECT_EQ(table.Number(0, "sigma_u2"), table.Number(0, "sigma_v2"));
}

// ---- two tensors

TEST_F(Input, SecondTensorGivesV) {
  const std::string a = Put("activations", {1, 32}, std::vector<float>(32, 1.0f));
  const std::string b = Put("weights", {3, 32}, std::vector<float>(96, 3.0f));
  RunIt(With(a, {{"input-b", b}}));
  const Table table = Variance();
  ASSERT_EQ(table.rows.size(), 2u);
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(table.Text(r, "source"), "tensor activations x weights");
    EXPECT_EQ(table.Number(r, "sigma_u2"), 1);
    EXPECT_EQ(table.Number(r, "sigma_v2"), 9);
  }
}

TEST_F(Input, EveryRowOfTheSecondTensorIsDrawn) {
  std::vector<float> ones(32, 1.0f), values;
  for (int row = 0; row < 4; ++row) values.insert(values.end(), 16, static_cast<float>(row));
  const Settings settings =
      SettingsOf(With(Put("a", {2, 16}, ones), {{"input-b", Put("b", {4, 16}, values)}}));
  const InputRows rows(settings, 0, 16);
  std::vector<int> drawn(4);
  for (size_t pair = 0; pair < 100; ++pair) {
    std::vector<float> u(16), v(16);
    rows.FillPair(pair, 16, u.data(), v.data());
    ++drawn.at(static_cast<size_t>(v[0]));
  }
  EXPECT_THAT(drawn, Not(Contains(0)));
}

TEST_F(Input, TensorsWithRowsOfDifferentLengthsAreAnError) {
  const std::string a = Put("activations", {4, 32}, Ramp(128));
  const std::string b = Put("weights", {2, 64}, Ramp(128));
  const std::string error = ErrorWith(With(a, {{"input-b", b}}));
  EXPECT_THAT(error, HasSubstr("weights.npy"));
  EXPECT_THAT(error, HasSubstr("rows of 64 elements, expected 32"));
  EXPECT_THAT(error, HasSubstr("activations.npy"));
}

TEST_F(Input, SecondTensorThatCannotBeUsedIsNamed) {
  const std::string a = Put("activations", {4, 32}, Ramp(128));
  EXPECT_THAT(ErrorWith(With(a, {{"input-b", "no-such.npy"}})), HasSubstr("no-such.npy"));
  EXPECT_THAT(ErrorWith(With(a, {{"tensor-b", "nope"}})), HasSubstr("nope"));
  const std::string flat = Put("flat", {32}, Ramp(32));
  EXPECT_THAT(ErrorWith(With(a, {{"input-b", flat}})), HasSubstr("flat.npy"));
  std::vector<float> bad = Ramp(64);
  bad[40] = std::nanf("");
  const std::string nan = ErrorWith(With(a, {{"input-b", Put("bad", {2, 32}, bad)}}));
  EXPECT_THAT(nan, HasSubstr("bad.npy"));
  EXPECT_THAT(nan, HasSubstr("element 40"));
}

// ---- errors of the first tensor

TEST_F(Input, ThatCannotBeUsedIsAnError) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values = Ramp(64);
    values[7] = bad;
    const std::string error = ErrorWith(With(Put("weights", {2, 32}, values)));
    EXPECT_THAT(error, HasSubstr("weights.npy"));
    EXPECT_THAT(error, HasSubstr("element 7"));
    fs::remove_all(Out());
  }
  std::string error = ErrorWith(With(Put("weights", {1, 64}, Ramp(64))));
  EXPECT_THAT(error, HasSubstr("weights.npy"));
  EXPECT_THAT(error, HasSubstr("one row"));
  fs::remove_all(Out());
  error = ErrorWith(With(Put("weights", {8, 8}, Ramp(64))));
  EXPECT_THAT(error, HasSubstr("--input"));
  EXPECT_THAT(error, HasSubstr("--k-low"));
  EXPECT_THAT(ErrorWith(With(Put("weights", {64}, Ramp(64)))), HasSubstr("dimensions"));
  const std::string good = Put("weights", {2, 32}, Ramp(64));
  EXPECT_THAT(ErrorWith(With(good, {{"tensor", "nope"}})), HasSubstr("nope"));
}

// ---- verdicts

TEST_F(Input, TwoLengthsMeasureNoSlopeAndSayWhatToTry) {
  RunIt(With(Put("weights", {64, 128}, SharedMeans(64, 128)),
             {{"k-low", "64"}, {"k-high", "131072"}, {"formats", "int8"}}),
        2);
  for (const char* const claim : {"grows", "linear", "sigma-grows", "drowns"}) {
    const Judged judged = JudgedOf(claim + std::string("-int8"));
    EXPECT_EQ(judged.verdict, "not tested") << claim;
    EXPECT_THAT(judged.reason, HasSubstr("two lengths")) << claim;
    EXPECT_THAT(judged.reason, HasSubstr("try --k-low 8")) << claim;
  }
}

TEST_F(Input, ASlopeOfFewPairsIsInconclusive) {
  RunIt(With(Put("weights", {64, 128}, Ramp(64 * 128)),
             {{"k-low", "32"}, {"k-high", "128"}, {"pairs", "4"}}),
        2);
  EXPECT_EQ(JudgedOf("drowns-e4m3fn").verdict, "inconclusive");
}

TEST_F(Input, EnoughLengthsGiveAVerdict) {
  std::vector<float> values(512 * 512);
  Fill(Distribution::kNormal, {5, 0}, 0, values);
  RunIt(With(Put("weights", {512, 512}, values),
             {{"k-low", "8"}, {"k-high", "512"}, {"pairs", "512"}}),
        5);
  EXPECT_EQ(JudgedOf("drowns-e4m3fn").verdict, "contradicted");
  EXPECT_EQ(JudgedOf("grows-e4m3fn").verdict, "supported");
  EXPECT_EQ(JudgedOf("grows-int8").verdict, "not tested");
}

// ---- panels and settings

TEST_F(Input, EqualGranularitiesShareAPanelAndTheSummarySaysSo) {
  const Overrides overrides = With(Put("weights", {16, 32}, SharedMeans(16, 32)),
                                   {{"granularities", "row,tensor,block:32,block:16"}});
  RunIt(overrides);
  const Tables tables = {{"variance", Variance()}};
  EXPECT_THAT(QuantizationVariance().notes(SettingsOf(overrides), tables),
              HasSubstr("row and block:32 are the same"));
  const std::vector<Figure> figures = QuantizationVariance().figures(SettingsOf(overrides), tables);
  std::vector<std::string> titles;
  for (const Panel& panel : figures.at(2).panels) titles.push_back(panel.title);
  EXPECT_THAT(titles,
              ElementsAre("tensor weights, row and block:32, nearest-even",
                          "tensor weights, tensor, nearest-even",
                          "tensor weights, block:16, nearest-even"));
}

TEST_F(Input, SettingsListWhatHadAnEffect) {
  std::string settings = RunIt(With(Put("weights", {4, 32}, Ramp(128)))).summary;
  settings.resize(settings.find("Deviations:"));
  EXPECT_THAT(settings, Not(HasSubstr("--distributions")));
  EXPECT_THAT(settings, Not(HasSubstr("--input-b")));
  EXPECT_THAT(settings, HasSubstr("--pairs 8"));
}

}  // namespace
}  // namespace numsim::experiments::quantization_variance
