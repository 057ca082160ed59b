// The statistics of channels of `swiglu-alignment`, against numbers worked out by hand and Eigen.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <memory>

#include "experiments/swiglu_alignment/channels.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "tests/experiments/swiglu_alignment_fixture.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

// Two channels of width 3, two tokens.
MlpSnapshot SmallMlp() {
  MlpSnapshot mlp;
  mlp.gate_up = {4, 3, {3, 4, 0, 0, 0, 2, /*w1:*/ 4, 3, 0, 0, 0, -1}};
  mlp.down = {3, 2, {4, 0, 3, 1, 0, 0}};
  mlp.inner = {2, 4, {1.5f, -3, 1, 1, -0.5f, 0, 1, 1}};
  mlp.hidden = {2, 2, {-2, 1, 1, 0}};
  return mlp;
}

TEST(SwigluChannels, HaveTheStatisticsOfTheirWeightsAndTokens) {
  const std::vector<ChannelState> states = ChannelsOf(SmallMlp());
  ASSERT_EQ(states.size(), 2u);
  EXPECT_NEAR(states[0].cos, 24.0 / 25, 1e-15);
  EXPECT_NEAR(states[1].cos, -1, 1e-15);
  EXPECT_EQ(states[0].linear_norm, 5);
  EXPECT_EQ(states[1].linear_norm, 1);
  EXPECT_EQ(states[0].gate_norm, 5);
  EXPECT_EQ(states[1].gate_norm, 2);
  EXPECT_NEAR(states[0].cos_down, 1, 1e-15);  // w3 = (4, 3, 0)
  EXPECT_EQ(states[1].cos_down, 0);           // w3 = (0, 1, 0)
  EXPECT_EQ(states[0].above_one, 0.5);
  EXPECT_EQ(states[0].above_e, 0);
  EXPECT_EQ(states[1].above_one, 0.5);
  EXPECT_EQ(states[1].above_e, 0.5);
  const auto slope = [](double z) { return 1 / (2 + std::exp(z) + std::exp(-z)); };
  EXPECT_NEAR(states[0].slope, (slope(1.5) + slope(0.5)) / 2, 1e-15);
  EXPECT_NEAR(states[1].slope, (slope(3) + 0.25) / 2, 1e-15);
  EXPECT_EQ(states[0].largest, 2);
  EXPECT_EQ(states[1].largest, 1);
}

TEST(SwigluChannels, KurtosisIsAMeanOverTokensOfAKurtosisOverChannels) {
  EXPECT_NEAR(KurtosisOf({1, 4, {0, 0, -3, 0}}), 4, 1e-15);
  EXPECT_NEAR(KurtosisOf({1, 4, {1, -1, 1, 1}}), 1, 1e-15);
  // A token without activation does not count.
  EXPECT_NEAR(KurtosisOf({3, 4, {0, 0, -3, 0, 1, -1, 1, 1, 0, 0, 0, 0}}), 2.5, 1e-15);
  EXPECT_TRUE(std::isnan(KurtosisOf({1, 2, {0, 0}})));
}

TEST(SwigluChannels, ColinearityIsThatOfTheFirstSingularVector) {
  MlpSnapshot mlp = SmallMlp();
  mlp.gate_up = {6, 2, {0, 0, 0, 0, 0, 0, /*w1:*/ 3, 1, -1, 2, 0.5f, 1}};
  mlp.hidden = {1, 3, {0, 0, 0}};
  mlp.down = {2, 3, {1, 2, -1, 0.5f, 0, 2}};
  Eigen::MatrixXd up(3, 2), down(2, 3);
  up << 3, 1, -1, 2, 0.5, 1;
  down << 1, 2, -1, 0.5, 0, 2;
  const Eigen::VectorXd left =
      Eigen::JacobiSVD<Eigen::MatrixXd>(up, Eigen::ComputeThinU).matrixU().col(0);
  double expected = 0;
  for (int row = 0; row < 2; ++row) {
    expected = std::max(expected, std::fabs(down.row(row).dot(left)) / down.row(row).norm());
  }
  EXPECT_NEAR(ColinearityOf(mlp), expected, 1e-12);
}

TEST_F(SwigluTraining, ASnapshotIsOfTheModelAndLeavesTheTrainingAsItWas) {
  const Settings settings = TinySettings();
  const TrainConfig config = ConfigOf(settings, {"2x32", "1e-2", "0.1", "80"}, 0);
  const std::shared_ptr<const DataSource> data = OpenData(config.data);
  Trainer watched(config, data), alone(config, data);
  for (int step = 0; step < 3; ++step) {
    const std::vector<MlpSnapshot> mlps = SnapshotOf(watched);
    ASSERT_EQ(mlps.size(), 2u);
    watched.Step();
    alone.Step();
    EXPECT_EQ(watched.last_loss(), alone.last_loss());
    for (const MlpSnapshot& mlp : mlps) {
      ASSERT_EQ(mlp.Channels(), 96u);
      ASSERT_EQ(mlp.gate_up.rows, 192u);
      ASSERT_EQ(mlp.gate_up.cols, 32u);
      ASSERT_EQ(mlp.inner.rows, 64u);
      // The activation of a channel is swish(w2.x) (w1.x), with the gate's half first.
      for (size_t channel = 0; channel < 96; ++channel) {
        const double gate = mlp.inner.Row(5)[channel], linear = mlp.inner.Row(5)[96 + channel];
        EXPECT_NEAR(mlp.hidden.Row(5)[channel], gate / (1 + std::exp(-gate)) * linear, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace numsim::experiments::swiglu_alignment
