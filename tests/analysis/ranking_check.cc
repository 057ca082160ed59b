#include "tests/analysis/ranking_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/reference/analysis/ranking_by_hand.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

void ExpectSameNumber(double value, double expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << value;
  } else {
    EXPECT_EQ(value, expected);
  }
}

}  // namespace

PrecisionRanking Rank(const Trainer& trainer, RankBy by) {
  return RankPrecision(trainer, by, [](size_t, size_t) {});
}

RowName First(const PrecisionRanking& ranking) {
  if (ranking.tensors.empty()) return {};
  return {ranking.tensors[0].layer, ranking.tensors[0].tensor};
}
const RankedTensor* Find(const PrecisionRanking& ranking, const RowName& name) {
  for (const RankedTensor& row : ranking.tensors) {
    if (row.layer == name.first && row.tensor == name.second) return &row;
  }
  return nullptr;
}

TrainConfig TwoBlocks() {
  TrainConfig config = TinyConfig();
  config.model.layers = 2;
  config.model.width = 32;
  config.model.context = 16;
  config.model.initial_deviation = 0.2;
  return config;
}

LinearOptions Quantized(std::string_view kind, std::string_view format) {
  LinearOptions options;
  options.kind = kind;
  options.format = format;
  options.high_precision = "fp32";
  return options;
}

void ExpectConsistent(const PrecisionRanking& ranking) {
  for (size_t i = 0; i < ranking.tensors.size(); ++i) {
    const RankedTensor& own = ranking.tensors[i];
    EXPECT_NEAR(own.effect,
                EffectByHand(ranking.error, own.error_without),
                1e-12 * std::max(1.0, std::abs(own.effect)));
    if (i == 0) continue;
    const RankedTensor& before = ranking.tensors[i - 1];
    EXPECT_TRUE(before.effect > own.effect ||
                (before.effect == own.effect && before.error_alone >= own.error_alone))
        << before.layer << ' ' << before.tensor << " before " << own.layer << ' ' << own.tensor;
  }
}

void ExpectClose(double value, double expected) {
  if (std::isfinite(expected)) {
    EXPECT_NEAR(value, expected, 1e-10 * std::max(1e-4, std::abs(expected)));
  } else {
    EXPECT_EQ(value, expected);
  }
}

void ExpectRankingByHand(Trainer& trainer, RankBy by) {
  SCOPED_TRACE(ToString(by));
  const PrecisionRanking ranking = Rank(trainer, by);
  EXPECT_EQ(ranking.by, by);
  ExpectConsistent(ranking);
  const RankingByHand expected = RankByHand(trainer, by);
  EXPECT_EQ(ranking.step, trainer.steps_taken());
  ExpectSameNumber(ranking.loss, expected.loss);
  ExpectSameNumber(ranking.float32_loss, expected.float32_loss);
  ExpectClose(ranking.error, expected.error);
  ExpectClose(ranking.error_high, expected.error_high);
  EXPECT_EQ(ranking.worst_parameter, expected.worst_parameter);
  ExpectClose(ranking.worst_error, expected.worst_error);
  ASSERT_FALSE(expected.rows.empty());
  EXPECT_EQ(ranking.tensors.size(), expected.rows.size());
  for (const RowByHand& by_hand : expected.rows) {
    const RankedTensor* const row = Find(ranking, {by_hand.layer, by_hand.tensor});
    SCOPED_TRACE(by_hand.layer + ' ' + by_hand.tensor);
    ASSERT_NE(row, nullptr);
    ExpectClose(row->error_without, by_hand.error_without);
    ExpectClose(row->error_alone, by_hand.error_alone);
  }
}

}  // namespace numsim
