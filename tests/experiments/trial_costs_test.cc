// The file of trial costs, and shards that are cut by it.
#include "experiments/runner/trial_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "experiments/runner/runner.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

class TrialCosts : public RunFixture {
 protected:
  std::filesystem::path Write(const std::string& text) const {
    const std::filesystem::path path = Directory("costs.csv");
    std::ofstream(path) << text;
    return path;
  }
  static Trial OfCost(const std::string& label, double cost) {
    Trial trial;
    trial.label = label;
    trial.cost = cost;
    return trial;
  }
  std::vector<Trial> trials_of_three_ = {
      OfCost("a, \"b\"", 0.1), OfCost("c", 1e-7), OfCost("d", 12)};
};

TEST_F(TrialCosts, AreReadAsTheyWereWritten) {
  const auto path = Write(TrialCostsText(trials_of_three_));
  std::vector<Trial> read = trials_of_three_;
  for (Trial& trial : read) trial.cost = 1;
  ReadTrialCosts(path, read);
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].cost, trials_of_three_[i].cost);
}

TEST_F(TrialCosts, OfOtherTrialsOrWithoutNumbersAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n1,c,1\n",
       "has the costs of 2 trials; these settings have 3"},
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n1,x,1\n2,d,1\n",
       "record 2: expected label 'c', found 'x'"},
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n2,c,1\n2,d,1\n",
       "record 2: expected trial 1, found '2'"},
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n1,c,0\n2,d,1\n",
       "record 2: expected a cost above 0, found '0'"},
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n1,c,inf\n2,d,1\n",
       "record 2: expected a cost above 0, found 'inf'"},
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n1,c,nan\n2,d,1\n",
       "record 2: expected a cost above 0, found 'nan'"},
      {"trial,label,cost\n0,\"a, \"\"b\"\"\",1\n1,c,much\n2,d,1\n", "much"},
      {"trial,label\n0,\"a, \"\"b\"\"\"\n1,c\n2,d\n", "cost"},
  };
  for (const auto& [text, message] : cases) {
    const auto path = Write(text);
    std::vector<Trial> trials = trials_of_three_;
    const std::string error = ErrorOf([&] { ReadTrialCosts(path, trials); });
    EXPECT_THAT(error, HasSubstr("costs.csv: ")) << text;
    EXPECT_THAT(error, HasSubstr(message)) << text;
  }
}

// One trial costs as much as all others together.
TEST_F(TrialCosts, CutShardsWithTheResultsOfOneRun) {
  std::vector<Trial> trials = MadeUpTrials(settings_);
  for (Trial& trial : trials) trial.cost = 1;
  trials[4].cost = static_cast<double>(trials.size() - 1);
  const auto costs = Write(TrialCostsText(trials));
  std::vector<std::filesystem::path> shards;
  std::vector<size_t> sizes;
  for (int k = 0; k < 2; ++k) {
    shards.push_back(Directory("shard " + std::to_string(k)));
    RunOptions options = Shard(shards.back(), k, 2);
    options.trial_costs = costs;
    sizes.push_back(Run(Counting(), options).trials_run);
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(1u, trials_ - 1));
  const std::filesystem::path out = Directory("merged");
  Merge(Counting(), shards, out, {"numsim", "merge"});
  EXPECT_EQ(ResultsIn(out), Expected());
}

}  // namespace
}  // namespace numsim::experiments
