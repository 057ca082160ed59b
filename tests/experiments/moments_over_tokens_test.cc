// The experiment `moments-over-tokens`: arms, validations along a training, and tables and claims from
// hand-made results.
#include "experiments/moments_over_tokens/moments_over_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/settings.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments::moments_over_tokens {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

Settings SettingsWith(const Overrides& overrides) {
  Overrides all = TinyRun("moments-over-tokens");
  for (const auto& [option, value] : overrides) all[option] = value;
  return MakeSettings(MomentsOverTokens(), "quick", 0, 1, all);
}

TEST(MomentsOverTokens, EndingsOfAnArmSetTheirKeys) {
  const Settings settings = SettingsWith({});
  const auto optimizer = [&](const std::string& moments) {
    return study::ConfigOf(MomentsOverTokensStudy(), settings, {moments, "1e-6"}, 0).optimizer;
  };
  const OptimizerConfig fp32 = optimizer("fp32");
  EXPECT_EQ(ToString(fp32.m) + ToString(fp32.v), "fp32fp32");
  EXPECT_EQ(fp32.epsilon, 1e-6);
  const OptimizerConfig plain = optimizer("e4m3fn/e5m2");
  EXPECT_EQ(ToString(plain.m), "e4m3fn");
  EXPECT_EQ(ToString(plain.v), "e5m2");
  EXPECT_EQ(plain.moment_tensors, "*");
  EXPECT_FALSE(plain.update_from_stored);
  const OptimizerConfig both = optimizer("e4m3fn/e4m3fn-blocks-stored");
  EXPECT_EQ(both.moment_tensors, "blocks.*");
  EXPECT_TRUE(both.update_from_stored);
  EXPECT_TRUE(optimizer("e4m3fn/e4m3fn-stored").update_from_stored);
  EXPECT_EQ(optimizer("e4m3fn/e4m3fn-stored").moment_tensors, "*");
}

TEST(MomentsOverTokens, RefusesWhatIsNoPair) {
  for (const char* const wrong : {"e4m3fn", "e4m3fn/", "e4m3fn/e4m3fn-stored-blocks", "x/e5m2"}) {
    EXPECT_THAT(ErrorOf([&] {
                  MomentsOverTokens().trials(SettingsWith({{"moments", wrong}}));
                }),
                HasSubstr("--moments"))
        << wrong;
  }
}

// The rows of one training: the last two cells of `validations` are tokens and loss.
Rows RowsOf(const Overrides& overrides) {
  const Settings settings = SettingsWith(overrides);
  return MomentsOverTokens().run(settings, MomentsOverTokens().trials(settings).back());
}

// The rate is constant, so a validation along a training is the end of one of that length.
TEST(MomentsOverTokens, ValidatesAtTheEndsOfShorterTrainings) {
  const Rows rows = RowsOf({{"steps", "20"}, {"validations", "3"}, {"warmup", "2"}});
  std::map<std::string, std::string> losses;
  for (const Row& row : rows.at("validations")) {
    losses[row[row.size() - 3].Text()] = row.back().Text();
    EXPECT_EQ(std::stod(row[row.size() - 2].Text()), 32 * std::stod(row[row.size() - 3].Text()))
        << "2 sequences of 16 tokens";
  }
  ASSERT_EQ(losses.size(), 4u);  // 0, 5, 10, 20
  const Row& final = rows.at("final").back();
  EXPECT_EQ(losses.at("20"), final.back().Text());
  EXPECT_EQ(losses.at("5"), final[final.size() - 3].Text()) << "early_loss";
  EXPECT_EQ(losses.at("0"), final[final.size() - 4].Text()) << "start_loss";
  const Rows half = RowsOf({{"steps", "10"}, {"validations", "1"}, {"warmup", "2"}});
  EXPECT_EQ(losses.at("10"), half.at("final").back().back().Text());
  EXPECT_NE(losses.at("10"), losses.at("20"));
}

// A step with an infinite gradient is not taken: the training ends, and is not validated again.
TEST(MomentsOverTokens, ValidatesOnceBeforeAStepThatIsNotTaken) {
  const Rows rows = RowsOf({{"steps", "20"},
                            {"validations", "3"},
                            {"keys", "stress.burst_tensor=head.weight;stress.burst_step=5"}});
  std::vector<std::string> steps;
  for (const Row& row : rows.at("validations")) steps.push_back(row[row.size() - 3].Text());
  EXPECT_THAT(steps, ElementsAre("0", "5"));
  EXPECT_EQ(rows.at("final").back().back().Text(), "inf");
}

class MomentsOverTokensTables : public ::testing::Test {
 protected:
  // `losses` after 16, 32 and 64 tokens.
  void Train(const std::string& moments, int seed, const std::vector<double>& losses) {
    const std::map<std::string, Cell> key = {
        {"moments", moments}, {"epsilon", epsilon_}, {"seed", seed}};
    int tokens = 16;
    for (const double loss : losses) {
      std::map<std::string, Cell> row = key;
      row.insert({{"step", tokens / 16}, {"tokens", tokens}, {"valid_loss", loss}});
      results_.Add("validations", row);
      tokens *= 2;
    }
    const bool finished = losses.size() == 3;
    std::map<std::string, Cell> run = key;
    run.insert({{"status", finished ? "finished" : "diverged"},
                {"parameters", parameters_},
                {"start_loss", 7},
                {"early_loss", losses.empty() ? kInf : losses.front()},
                {"valid_loss", finished ? losses.back() : kInf}});
    results_.Add("final", run);
  }
  void TrainAll(double early, double late) {
    for (const int seed : {0, 1, 2}) {
      const double shift = 0.001 * seed;  // what seeds have in common cancels
      Train("fp32", seed, {5 + shift, 4 + shift, 3 + shift});
      Train("e4m3fn/e4m3fn", seed, {5 + early + 1.1 * shift, 4.1, 3 + late + 1.1 * shift});
    }
  }
  std::string epsilon_ = "1e-5";
  int parameters_ = 140000;
  ResultTables results_{MomentsOverTokens(), {{"moments", "e4m3fn/e4m3fn"}}, 3};
};

TEST_F(MomentsOverTokensTables, GapsArePairedBySeedAtEqualTokens) {
  Train("fp32", 0, {5, 4, 3});
  Train("fp32", 1, {5.5, 4.5, 3.5});
  Train("e4m3fn/e4m3fn", 0, {5.3, 4.1, 3});
  Train("e4m3fn/e4m3fn", 1, {5.9, 4.6});
  const Frame gaps = results_.Of("gaps").Where("moments", std::string("e4m3fn/e4m3fn"));
  EXPECT_THAT(gaps.Numbers("tokens"), ElementsAre(16, 32, 64));
  EXPECT_THAT(gaps.Numbers("seeds"), ElementsAre(2, 2, 1));
  EXPECT_NEAR(gaps.Numbers("gap")[0], 0.35, 1e-12);
  EXPECT_NEAR(gaps.Numbers("gap")[1], 0.1, 1e-12);
  EXPECT_NEAR(gaps.Numbers("gap")[2], 0, 1e-12);
  // 0.3 and 0.4: t of one degree of freedom is 12.7062 at 97.5 %, the standard error 0.05.
  EXPECT_NEAR(gaps.Numbers("gap_low")[0], 0.35 - 12.7062047 * 0.05, 1e-6);
  EXPECT_NEAR(gaps.Numbers("gap_high")[0], 0.35 + 12.7062047 * 0.05, 1e-6);
}

// The two arms that trained at one epsilon alone do not share a style, and an arm ends where a seed diverged.
TEST_F(MomentsOverTokensTables, FigureHasOneStylePerArmAndNoSurvivorsAlone) {
  for (const std::string epsilon : {"1e-5", "1e-8"}) {
    epsilon_ = epsilon;
    for (const int seed : {0, 1}) {
      Train("fp32", seed, {5, 4, 3});
      Train("e4m3fn/e4m3fn", seed, {5.5, 4.5, 3.5});
      Train(epsilon == "1e-5" ? "e4m3fn/e4m3fn-stored" : "e4m3fn/e4m3fn-blocks",
            seed,
            seed == 0 ? std::vector<double>{5.1, 4.1, 3.1} : std::vector<double>{5.2, 4.2});
    }
  }
  const std::vector<Figure> figures =
      results_.experiment().figures(results_.settings(), results_.Finish());
  const auto gaps = std::find_if(figures.begin(), figures.end(), [](const Figure& figure) {
    return figure.name == "moments-over-tokens";
  });
  ASSERT_NE(gaps, figures.end());
  ASSERT_EQ(gaps->panels.size(), 2u);
  const auto style = [&](int panel, int series) {
    return gaps->panels[panel].series[series].style;
  };
  EXPECT_EQ(gaps->panels[0].series[1].label, "e4m3fn/e4m3fn-stored");
  EXPECT_EQ(gaps->panels[1].series[1].label, "e4m3fn/e4m3fn-blocks");
  EXPECT_EQ(style(0, 0), style(1, 0));
  EXPECT_NE(style(0, 1), style(1, 1));
  EXPECT_NE(style(0, 0), style(1, 1));
  for (const Panel& panel : gaps->panels) {
    EXPECT_EQ(panel.series[0].x.size(), 3u);
    EXPECT_EQ(panel.series[1].x.size(), 2u) << "after 64 tokens one of two seeds is left";
    EXPECT_EQ(panel.series[1].low.size(), 2u);
  }
}

// Margins of losses are smaller for larger models.
TEST_F(MomentsOverTokensTables, MarginIsThatOfTheSizeOfTheModels) {
  parameters_ = 135'000'000;
  TrainAll(0.3, 0.008);
  EXPECT_EQ(results_.ClaimOf("late-v-e4m3-fails").margin, 0.005);
  EXPECT_EQ(results_.VerdictOf("late-v-e4m3-fails"), "supported");
}

TEST_F(MomentsOverTokensTables, ASmallModelHasALargerMargin) {
  TrainAll(0.3, 0.008);
  EXPECT_EQ(results_.ClaimOf("late-v-e4m3-fails").margin, 0.02);
  EXPECT_EQ(results_.VerdictOf("late-v-e4m3-fails"), "contradicted");
}

TEST_F(MomentsOverTokensTables, AGapThatClosesFailsEarlyAlone) {
  TrainAll(0.3, 0);
  EXPECT_EQ(results_.VerdictOf("late-v-e4m3-fails"), "contradicted");
  EXPECT_EQ(results_.VerdictOf("early-v-e4m3-fails"), "supported");
  EXPECT_EQ(results_.VerdictOf("gap-closes-at-1e-5"), "supported");
}

TEST_F(MomentsOverTokensTables, AGapThatStaysFailsAtTheEnd) {
  TrainAll(0.3, 0.3);
  EXPECT_EQ(results_.VerdictOf("late-v-e4m3-fails"), "supported");
  EXPECT_EQ(results_.VerdictOf("early-v-e4m3-fails"), "supported");
  EXPECT_EQ(results_.VerdictOf("gap-closes-at-1e-5"), "contradicted");
}

TEST_F(MomentsOverTokensTables, ATrainingThatDivergedCountsAsNoBetterThanAtItsStart) {
  for (const int seed : {0, 1, 2}) {
    Train("fp32", seed, {5, 4, 3});
    Train("e4m3fn/e4m3fn", seed, {});
  }
  const JudgedClaim late = results_.ClaimOf("late-v-e4m3-fails");
  EXPECT_EQ(results_.VerdictOf("late-v-e4m3-fails"), "supported");
  EXPECT_EQ(late.result.contrasts.front().value, 7 - 3);
}

}  // namespace
}  // namespace numsim::experiments::moments_over_tokens
