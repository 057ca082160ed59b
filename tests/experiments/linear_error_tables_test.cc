// Tests the tables that `linear-error` derives from its rows: growth, crossings, errors of each GEMM;
// its figures.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/experiments/linear_error_fixture.h"

namespace numsim::experiments::linear_error {
namespace {

class LinearErrorTables : public MadeUpErrors {
 protected:
  LinearErrorTables() { Start({}, 1); }
};

TEST_F(LinearErrorTables, GrowthIsTheLogLogSlope) {
  Add("normal", "llm-int8", Growing(0.4));
  const Frame growth = Of("growth");
  const Frame dw = growth.Where("product", kWeightGradient).Where("sweep", kTokenSweep);
  EXPECT_NEAR(dw.Number("relative_growth"), 0.4, 1e-9);
  EXPECT_NEAR(dw.Number("noise_growth"), 1, 1e-9);
  EXPECT_NEAR(dw.Number("signal_growth"), 0.2, 1e-9);
  EXPECT_EQ(dw.Text("points"), "5");
  const Frame y = growth.Where("product", kForward).Where("sweep", kWidthSweep);
  EXPECT_NEAR(y.Number("noise_growth"), 1, 1e-9);
  EXPECT_NEAR(y.Number("relative_growth"), 0, 1e-9);
}

TEST_F(LinearErrorTables, CrossingsAreInterpolatedForTheMeanAndForEverySeed) {
  Start({}, 2);
  Add("normal", "llm-int8", Growing(0.5));
  const Frame crossings = Of("crossings");
  ASSERT_EQ(crossings.Size(), 3u);
  // 1 % and 1.2 % at 256, growing like sqrt(b): level L is crossed at 256 (L / start)^2.
  const double mean = std::sqrt(0.01 * 0.012);
  const Frame reached = crossings.Where("threshold", 2);
  EXPECT_NEAR(reached.Number("tokens"), 256 * 0.02 * 0.02 / (mean * mean), 1e-6);
  EXPECT_NEAR(reached.Number("tokens_low"), 256 * std::pow(0.02 / 0.012, 2), 1e-6);
  EXPECT_NEAR(reached.Number("tokens_high"), 1024, 1e-6);
  EXPECT_EQ(reached.Text("status"), "reached");
  EXPECT_EQ(crossings.Where("threshold", 5).Text("tokens"), "inf");
  EXPECT_EQ(crossings.Where("threshold", 5).Text("status"), "not reached up to 4096");
}

TEST_F(LinearErrorTables, ACrossingAtTheFirstLengthSaysSo) {
  Add("normal", "llm-int8", Flat(0.07));
  Add("coherent", "llm-int8", [](const std::string&, double inner, int) {
    return 0.07 * 256 / inner;
  });
  const Frame crossings = Of("crossings").Where("threshold", 5);
  EXPECT_EQ(crossings.Text(0, "tokens"), "256");
  EXPECT_EQ(crossings.Text(0, "status"), "above from the start, 256");
  EXPECT_EQ(crossings.Text(1, "status"), "above from the start, 256, below again at the end");
}

TEST_F(LinearErrorTables, AProductIsMeasuredAtTheLongestLengthOfItsOwnSweep) {
  Add("normal", "llm-int8", Growing(0.5));
  const Frame products = Of("products");
  ASSERT_EQ(products.Size(), 3u);
  const Frame y = products.Where("product", kForward);
  EXPECT_EQ(y.Text("sweep"), "width");
  EXPECT_EQ(y.Text("length"), "300");
  EXPECT_NEAR(y.Number("noise_growth"), 1, 1e-9);
  const Frame dw = products.Where("product", kWeightGradient);
  EXPECT_EQ(dw.Text("length"), "4096");
  EXPECT_NEAR(dw.Number("relative_error"), 0.04, 1e-9);
  EXPECT_NEAR(dw.Number("relative_growth"), 0.5, 1e-9);
}

// Tensors of files have no width sweep.
TEST_F(LinearErrorTables, WithoutItsOwnSweepAProductHasNoGrowth) {
  widths_.clear();
  Add("file", "llm-int8", Flat(0.01));
  const Frame y = Of("products").Where("product", kForward);
  EXPECT_EQ(y.Text("sweep"), "tokens");
  EXPECT_EQ(y.Text("length"), "4096");
  EXPECT_TRUE(std::isnan(y.Number("noise_growth")));
}

TEST_F(LinearErrorTables, FiguresHaveAPanelForEachSortOfOperands) {
  Start({}, 2);
  for (const char* const operands : {"normal", "coherent", "student-t3"}) {
    for (const char* const kind : {"standard", "llm-int8", "switchback", "tensor-wise"}) {
      Add(operands, kind, Growing(0.3));
    }
  }
  const std::vector<Figure> figures =
      results_.experiment().figures(results_.settings(), results_.Finish());
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
  EXPECT_EQ(figures[1].panels[1].series[0].x.back(), 300);
  EXPECT_EQ(figures[1].panels[1].series[2].x.back(), 4096);
}

}  // namespace
}  // namespace numsim::experiments::linear_error
