// How well earlier maxima foretell the next, by hand-made series.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "experiments/feature_statistics/feature_statistics.h"
#include "tests/support/special_values.h"

namespace numsim::experiments::feature_statistics {
namespace {

ForecastQuality Judge(const std::vector<double>& maxima,
                      size_t history,
                      Forecast forecast = Forecast::kMax,
                      size_t first = 0) {
  return JudgeForecast(maxima, forecast, history, first);
}

// Steps 1 to 5 against the one before: 2, 1, 1/4, 16/15 and nothing more, 1.5.
TEST(Forecasts, CountWhatIsAboveTheStepBefore) {
  const double clip = 16.0 / 15;
  const std::vector<double> maxima = {15, 30, 30, 7.5, 7.5 * clip, 12};
  const ForecastQuality quality = Judge(maxima, 1);
  EXPECT_EQ(quality.compared, 5u);
  EXPECT_EQ(quality.overruns, 3u);
  EXPECT_EQ(quality.clipped, 2u);   // not the factor 16/15 itself
  EXPECT_EQ(quality.within_2, 3u);  // neither 2 nor 1/4
  EXPECT_EQ(quality.largest_excess, 2);
}

TEST(Forecasts, TakeTheLargestOfTheHistory) {
  const std::vector<double> maxima = {8, 4, 2, 4, 16, 1, 1, 1, 4};
  const ForecastQuality two = Judge(maxima, 2);
  EXPECT_EQ(two.compared, 8u);
  EXPECT_EQ(two.overruns, 2u);  // 16 after (2, 4), 4 after (1, 1)
  EXPECT_EQ(two.largest_excess, 4);
  const ForecastQuality four = Judge(maxima, 4);
  EXPECT_EQ(four.overruns, 1u);  // 16 after (8, 4, 2, 4); 4 has 16 four steps before
  EXPECT_EQ(four.largest_excess, 2);
  EXPECT_EQ(Judge(maxima, 100).overruns, 1u);
}

TEST(Forecasts, TakeTheMeanOfTheHistory) {
  const std::vector<double> maxima = {1, 3, 4, 7};
  const ForecastQuality quality = Judge(maxima, 2, Forecast::kMean);
  EXPECT_EQ(quality.compared, 3u);  // 3 of 1, 4 of 2, 7 of 3.5
  EXPECT_EQ(quality.overruns, 3u);
  EXPECT_EQ(quality.within_2, 0u);
  EXPECT_EQ(quality.largest_excess, 3);
  EXPECT_DOUBLE_EQ(quality.change_median, 1);
  EXPECT_EQ(Judge(maxima, 1, Forecast::kMean).overruns, Judge(maxima, 1).overruns);
}

// Changes by 2^1, 2^-2, 2^3, 2^0, 2^-4.
TEST(Forecasts, ChangesAreQuantilesOfMagnitudesOfLogarithms) {
  const ForecastQuality quality = Judge({1, 2, 0.5, 4, 4, 0.25}, 1);
  EXPECT_DOUBLE_EQ(quality.change_median, 2);
  EXPECT_NEAR(quality.change_95, 3.8, 1e-12);  // between 3 and 4
}

TEST(Forecasts, StepsBeforeTheFirstAreHistoryAlone) {
  const std::vector<double> maxima = {1, 2, 4, 3, 5};
  const ForecastQuality quality = Judge(maxima, 2, Forecast::kMax, 3);
  EXPECT_EQ(quality.compared, 2u);  // 3 of 4, 5 of 4
  EXPECT_EQ(quality.overruns, 1u);
  EXPECT_EQ(quality.largest_excess, 1.25);
}

// As the gradients of the first step under a layer-scale of 0.
TEST(Forecasts, ZerosGiveNoScale) {
  const ForecastQuality quality = Judge({0, 0, 3, 0, 6}, 2);
  EXPECT_EQ(quality.compared, 1u);
  EXPECT_EQ(quality.overruns, 1u);
  EXPECT_EQ(quality.largest_excess, 2);
}

TEST(Forecasts, EndAtTheFirstMaximumThatIsNotFinite) {
  EXPECT_EQ(Judge({1, 2, kInfinity, 4, 8}, 1).compared, 1u);
  EXPECT_EQ(Judge({1, std::nan(""), 4}, 1).compared, 0u);
}

TEST(Forecasts, OfNothingAreNan) {
  const ForecastQuality quality = Judge({1}, 4);
  EXPECT_EQ(quality.compared, 0u);
  EXPECT_TRUE(std::isnan(quality.change_median));
  EXPECT_TRUE(std::isnan(quality.change_95));
  EXPECT_TRUE(std::isnan(quality.largest_excess));
}

}  // namespace
}  // namespace numsim::experiments::feature_statistics
