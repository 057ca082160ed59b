// Tests what `linear-error` derives from a GEMM and from its table: measures, growth, crossings,
// verdicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "experiments/core/settings.h"
#include "experiments/linear_error/linear_error.h"

namespace numsim::experiments::linear_error {
namespace {

// Relative error of (product, inner dimension, seed); the noise grows with the inner dimension and
// the signal follows from both.
using Law = std::function<double(LinearGemm, double, uint64_t)>;

Tables EmptyTables() {
  Tables tables;
  for (const TableSpec& spec : LinearError().tables) {
    Table& table = tables[spec.name];
    for (const Column& column : spec.columns) table.columns.push_back(column.name);
  }
  return tables;
}

void AddRows(const std::string& operands,
             const std::string& kind,
             int seeds,
             const Law& law,
             Tables& tables) {
  Table& errors = tables.at(std::string(kErrorsTable));
  const auto add = [&](const std::string& sweep, double tokens, double width) {
    for (int seed = 0; seed < seeds; ++seed) {
      for (const LinearGemm product : kProducts) {
        const double inner = product == LinearGemm::kWeightGradient ? tokens : width;
        const double relative = law(product, inner, static_cast<uint64_t>(seed));
        std::vector<std::string> cells(errors.columns.size(), "0.5");
        const auto set = [&](const char* column, const std::string& text) {
          cells[errors.Column(column)] = text;
        };
        set("operands", operands);
        set("kind", kind);
        set("format", "int8");
        set("product", std::string(ToString(product)));
        set("sweep", sweep);
        set("tokens", FormatCell(tokens));
        set("in", FormatCell(width));
        set("out", FormatCell(width));
        set("inner", FormatCell(inner));
        set("seed", FormatCell(seed));
        set("error_variance", FormatCell(inner / 100));
        set("signal_variance", FormatCell(inner / 100 / (relative * relative)));
        set("relative_error", FormatCell(relative));
        set("row_error", FormatCell(relative));
        set("column_error", FormatCell(relative));
        errors.rows.push_back(cells);
      }
    }
  };
  for (double b = 256; b <= 4096; b *= 2) add("tokens", b, 128);
  for (double n = 128; n <= 512; n *= 2) add("width", 2048, n);
}

Settings SettingsOf(int seeds = 1) { return MakeSettings(LinearError(), "quick", 0, seeds, {}); }

Law Flat(double level) {
  return [level](LinearGemm, double, uint64_t) { return level; };
}

// dW's error grows like a power of b from 1 % at 256.
Law Growing(double power) {
  return [power](LinearGemm product, double inner, uint64_t seed) {
    if (product != LinearGemm::kWeightGradient) return 0.01;
    return (seed == 0 ? 0.01 : 0.012) * std::pow(inner / 256, power);
  };
}

size_t RowOf(const Table& table, const std::string& product, const std::string& sweep) {
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.Text(r, "product") == product && table.Text(r, "sweep") == sweep) return r;
  }
  ADD_FAILURE() << product << " " << sweep;
  return 0;
}

TEST(LinearErrorDerive, GrowthIsTheLogLogSlope) {
  Tables tables = EmptyTables();
  AddRows("normal", "llm-int8", 1, Growing(0.4), tables);
  Derive(SettingsOf(), tables);
  const Table& growth = tables.at(std::string(kGrowthTable));
  const size_t dw = RowOf(growth, "weight-gradient", "tokens");
  EXPECT_NEAR(growth.Number(dw, "relative_growth"), 0.4, 1e-9);
  EXPECT_NEAR(growth.Number(dw, "noise_growth"), 1, 1e-9);
  EXPECT_NEAR(growth.Number(dw, "signal_growth"), 0.2, 1e-9);
  EXPECT_EQ(growth.Text(dw, "points"), "5");
  const size_t y = RowOf(growth, "forward", "width");
  EXPECT_NEAR(growth.Number(y, "noise_growth"), 1, 1e-9);
  EXPECT_NEAR(growth.Number(y, "relative_growth"), 0, 1e-9);
}

TEST(LinearErrorDerive, CrossingsAreInterpolatedForTheMeanAndForEverySeed) {
  Tables tables = EmptyTables();
  AddRows("normal", "llm-int8", 2, Growing(0.5), tables);
  Derive(SettingsOf(2), tables);
  const Table& crossings = tables.at(std::string(kCrossingsTable));
  ASSERT_EQ(crossings.rows.size(), 3u);
  // 1 % and 1.2 % at 256, growing like sqrt(b): level L is crossed at 256 (L / start)^2.
  const double mean = std::sqrt(0.01 * 0.012);
  EXPECT_EQ(crossings.Text(1, "threshold"), "2");
  EXPECT_NEAR(crossings.Number(1, "tokens"), 256 * 0.02 * 0.02 / (mean * mean), 1e-6);
  EXPECT_NEAR(crossings.Number(1, "tokens_low"), 256 * std::pow(0.02 / 0.012, 2), 1e-6);
  EXPECT_NEAR(crossings.Number(1, "tokens_high"), 1024, 1e-6);
  EXPECT_EQ(crossings.Text(1, "status"), "reached");
  EXPECT_EQ(crossings.Text(0, "threshold"), "5");
  EXPECT_EQ(crossings.Text(0, "tokens"), "inf");
  EXPECT_EQ(crossings.Text(0, "status"), "not reached up to 4096");
}

TEST(LinearErrorDerive, ACrossingAtTheFirstLengthSaysSo) {
  Tables tables = EmptyTables();
  AddRows("normal", "llm-int8", 1, Flat(0.07), tables);
  AddRows(
      "coherent",
      "llm-int8",
      1,
      [](LinearGemm, double inner, uint64_t) { return 0.07 * 256 / inner; },
      tables);
  Derive(SettingsOf(), tables);
  const Table& crossings = tables.at(std::string(kCrossingsTable));
  EXPECT_EQ(crossings.Text(0, "tokens"), "256");
  EXPECT_EQ(crossings.Text(0, "status"), "above from the start, 256");
  EXPECT_EQ(crossings.Text(3, "status"), "above from the start, 256, below again at the end");
}

TEST(LinearErrorDerive, AProductBreaksUnderTheMeasuresThatExceedTheirLimit) {
  Tables tables = EmptyTables();
  AddRows("normal", "llm-int8", 1, Growing(0.7), tables);
  Derive(SettingsOf(), tables);
  const Table& products = tables.at(std::string(kProductsTable));
  ASSERT_EQ(products.rows.size(), 3u);
  EXPECT_EQ(products.Text(0, "product"), "forward");
  EXPECT_EQ(products.Text(0, "sweep"), "width");
  EXPECT_EQ(products.Text(0, "length"), "512");
  EXPECT_EQ(products.Text(0, "breaks_under"), "noise");
  EXPECT_EQ(products.Text(2, "length"), "4096");
  EXPECT_EQ(products.Text(2, "breaks_under"), "noise growth relative row column");
}

std::vector<std::string> Verdicts(Tables tables, int seeds = 1) {
  Derive(SettingsOf(seeds), tables);
  std::vector<std::string> verdicts;
  for (const Claim& claim : Summarise(SettingsOf(seeds), tables).claims) {
    verdicts.push_back(claim.verdict);
  }
  return verdicts;
}

// The order of the claims: noise grows, drowns (normal), drowns (others), ratio of D.3, dW is the
// cause, SwitchBack helps.
TEST(LinearErrorSummary, VerdictsFollowTheTables) {
  Tables flat = EmptyTables();
  AddRows("normal", "llm-int8", 1, Flat(0.01), flat);
  AddRows("student-t3", "llm-int8", 1, Growing(0.5), flat);
  AddRows("normal", "switchback", 1, Flat(0.01), flat);
  AddRows("student-t3", "switchback", 1, Flat(0.01), flat);
  // dW ends at 4 % for student-t3: below 5 %.
  using Texts = std::vector<std::string>;
  EXPECT_EQ(Verdicts(flat),
            (Texts{"holds", "does not hold", "holds", "holds", "does not hold", "holds"}));

  Tables growing = EmptyTables();
  AddRows("normal", "llm-int8", 1, Growing(0.7), growing);
  AddRows("coherent", "llm-int8", 1, Flat(0.01), growing);
  AddRows("normal", "switchback", 1, Flat(0.01), growing);
  AddRows("coherent", "switchback", 1, Flat(0.08), growing);
  EXPECT_EQ(Verdicts(growing),
            (Texts{"holds", "holds", "does not hold", "holds", "holds in part", "holds in part"}));
}

// The slope of 0.3 is above the criterion of 0.25, but the points scatter about the line.
TEST(LinearErrorSummary, AGrowthThatItsIntervalDoesNotConfirmIsNotMeasured) {
  Tables tables = EmptyTables();
  AddRows(
      "normal",
      "llm-int8",
      1,
      [](LinearGemm product, double inner, uint64_t) {
        if (product != LinearGemm::kWeightGradient) return 0.01;
        const bool odd = std::lround(std::log2(inner)) % 2 == 1;
        return (odd ? 0.01 : 0.02) * std::pow(inner / 256, 0.3);
      },
      tables);
  Derive(SettingsOf(), tables);
  const Table& growth = tables.at(std::string(kGrowthTable));
  const size_t dw = RowOf(growth, "weight-gradient", "tokens");
  EXPECT_GT(growth.Number(dw, "relative_growth"), 0.25);
  const Claim drown = Summarise(SettingsOf(), tables).claims.at(1);
  EXPECT_EQ(drown.verdict, "not measured");
  EXPECT_EQ(drown.basis.find("1 of 1 undecided: "), 0u) << drown.basis;
}

// Two lengths with several seeds give a slope with an interval, but show no line.
TEST(LinearErrorSummary, TwoLengthsMeasureNoGrowth) {
  Tables tables = EmptyTables();
  AddRows("normal", "llm-int8", 3, Growing(0.7), tables);
  Table& errors = tables.at(std::string(kErrorsTable));
  std::erase_if(errors.rows, [&](const std::vector<std::string>& row) {
    const std::string& tokens = row[errors.Column("tokens")];
    return row[errors.Column("sweep")] == "tokens" && tokens != "256" && tokens != "512";
  });
  Derive(SettingsOf(3), tables);
  EXPECT_FALSE(std::isnan(tables.at(std::string(kGrowthTable)).Number(0, "noise_growth")));
  EXPECT_EQ(Summarise(SettingsOf(3), tables).claims.at(1).verdict, "not measured");
}

TEST(LinearErrorSummary, NamesWhereSwitchBackIsNeeded) {
  Tables tables = EmptyTables();
  AddRows("normal", "llm-int8", 1, Flat(0.01), tables);
  AddRows("normal", "switchback", 1, Flat(0.01), tables);
  AddRows("student-t3", "llm-int8", 1, Growing(0.7), tables);
  AddRows("student-t3", "switchback", 1, Flat(0.01), tables);
  AddRows("outlier-columns", "llm-int8", 1, Flat(0.2), tables);
  AddRows("outlier-columns", "switchback", 1, Flat(0.2), tables);
  Derive(SettingsOf(), tables);
  const std::string notes = Summarise(SettingsOf(), tables).notes;
  const auto at = [&](const char* text) { return notes.find(text); };
  const size_t needed = at("student-t3 int8 (from b = "), not_needed = at("Not needed"),
               normal = at("normal int8"), not_enough = at("Not enough"),
               columns = at("outlier-columns int8");
  ASSERT_NE(needed, std::string::npos) << notes;
  ASSERT_NE(columns, std::string::npos) << notes;
  EXPECT_LT(needed, not_needed) << notes;
  EXPECT_LT(not_needed, normal) << notes;
  EXPECT_LT(normal, not_enough) << notes;
  EXPECT_LT(not_enough, columns) << notes;
}

TEST(LinearErrorSummary, SaysNotMeasuredWithoutTheKinds) {
  Tables tables = EmptyTables();
  AddRows("normal", "standard", 1, Flat(0.01), tables);
  for (const std::string& verdict : Verdicts(tables)) EXPECT_EQ(verdict, "not measured");
}

TEST(LinearErrorFigures, HaveAPanelForEachSortOfOperands) {
  Tables tables = EmptyTables();
  for (const char* const operands : {"normal", "coherent", "student-t3"}) {
    for (const char* const kind : {"llm-int8", "switchback", "tensor-wise"}) {
      AddRows(operands, kind, 2, Growing(0.3), tables);
    }
  }
  Derive(SettingsOf(2), tables);
  const std::vector<Figure> figures = Figures(SettingsOf(2), tables);
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[0].name, "weight-gradient-error");
  ASSERT_EQ(figures[0].panels.size(), 3u);
  ASSERT_EQ(figures[0].panels[0].series.size(), 4u);  // three kinds and the threshold
  const Series& llm = figures[0].panels[0].series[1];
  EXPECT_EQ(llm.label, "llm-int8 int8");
  EXPECT_NEAR(llm.y[0], 100 * std::sqrt(0.01 * 0.012), 1e-9);
  EXPECT_NEAR(llm.low[0], 1, 1e-9);
  EXPECT_NEAR(llm.high[0], 1.2, 1e-9);
  EXPECT_EQ(figures[1].name, "products-int8");
  EXPECT_EQ(figures[1].panels.size(), 4u);  // noise, and a relative error for each
  EXPECT_EQ(figures[2].name, "noise-int8");
  // Y against widths, dW against tokens.
  EXPECT_EQ(figures[1].panels[1].series[0].x.back(), 512);
  EXPECT_EQ(figures[1].panels[1].series[2].x.back(), 4096);
}

}  // namespace
}  // namespace numsim::experiments::linear_error
