// The claims of `loss-spikes` that compare arms, from hand-made runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/loss_spikes/loss_spikes.h"
#include "tests/experiments/loss_spikes_fixture.h"

namespace numsim::experiments::loss_spikes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The order of texts is not that of amounts: 4x16 has the least and 12x64 the most layers x width^2,
// though 2x128 is wider and 60x16 deeper. Other optimisers run at a beta2 of their own.
const Overrides kAllAxes = {{"sizes", "2x128,12x64,60x16,4x16"},
                            {"batches", "64,8,256"},
                            {"lrs", "8e-3,1e-2,5e-4"},
                            {"beta2", "0.99,5e-1,0.95,0.999"},
                            {"lambdas", "0.5,0.45"},
                            {"changes", "new,constant:7,contrast:10,jump:100,jump:9"},
                            {"optimizers",
                             "adamw,stable-adamw,stable-adamw:decay,stable-adamw:added,"
                             "stable-adamw:previous,stable-adamw:update,stable-adamw:moment,"
                             "stable-adamw:global,clip-1,clip-2,lion:3,lion:10"},
                            {"optimizer-beta2", "0.98,0.9"}};

struct MadeUpOutcome {
  std::string_view column;
  double margin;  // in the unit of the column
};
constexpr MadeUpOutcome kLoss{"valid_loss", 0.02}, kShare{"accuracy", 0.01};
constexpr MadeUpOutcome kCount{"loss_spikes", 1};
constexpr MadeUpOutcome kMaxRms{"max_rms", 0.5}, kChange{"change_max_rms", 1.3};

// A claim about two arms, each written as its beta2 and what differs from the centre.
struct ArmClaim {
  std::string name, one, other;
  MadeUpOutcome outcome;
  int side;  // of a difference or a ratio; 0: an equivalence
  bool IsRatio() const { return outcome.column == kCount.column; }
};
const ArmClaim kArmClaims[] = {
    {"size-brings-spikes", "0.999 size=12x64", "0.999 size=4x16", kCount, 1},
    {"batch-brings-spikes", "0.999 batch=256", "0.999 batch=8", kCount, 1},
    {"lr-brings-spikes", "0.999 lr=1e-2", "0.999 lr=5e-4", kCount, 1},
    {"size-beta2-mitigates", "0.95 size=12x64", "0.999 size=12x64", kCount, -1},
    {"batch-beta2-mitigates", "0.95 batch=256", "0.999 batch=256", kCount, -1},
    {"lr-beta2-mitigates", "0.95 lr=1e-2", "0.999 lr=1e-2", kCount, -1},
    {"low-beta2-slows", "5e-1", "0.95", kLoss, 1},
    {"high-beta2-costs", "0.999", "0.95", kLoss, 1},
    {"high-beta2-costs-at-large-lr", "0.999 lr=1e-2", "0.95 lr=1e-2", kLoss, 1},
    {"rms-lower-at-low-beta2", "0.95", "0.999", kMaxRms, -1},
    {"update-clipping-mitigates", "0.98 by=stable-adamw", "0.98", kCount, -1},
    {"update-clipping-lowers-loss", "0.98 by=stable-adamw", "0.98", kLoss, -1},
    {"update-clipping-beats-gradient-clipping",
     "0.98 by=stable-adamw",
     "0.98 by=clip-1",
     kShare,
     1},
    {"clip-2-spikes-more", "0.98 by=clip-2", "0.98 by=clip-1", kCount, 1},
    {"rms-of-moment-is-worse", "0.98 by=stable-adamw:moment", "0.98 by=stable-adamw", kLoss, 1},
    {"variant-decay-matches", "0.98 by=stable-adamw:decay", "0.98 by=stable-adamw", kLoss, 0},
    {"variant-added-matches", "0.98 by=stable-adamw:added", "0.98 by=stable-adamw", kLoss, 0},
    {"variant-previous-matches", "0.98 by=stable-adamw:previous", "0.98 by=stable-adamw", kLoss, 0},
    {"variant-update-matches", "0.98 by=stable-adamw:update", "0.98 by=stable-adamw", kLoss, 0},
    {"variant-global-matches", "0.98 by=stable-adamw:global", "0.98 by=stable-adamw", kLoss, 0},
    {"low-beta2-helps-on-new-data", "0.95 data=new", "0.999 data=new", kLoss, -1},
    {"update-clipping-helps-on-new-data",
     "0.999 data=new by=stable-adamw",
     "0.999 data=new",
     kLoss,
     -1},
    {"jump-raises-rms", "0.999 data=jump:100", "0.999", kChange, 1},
    {"contrast-raises-rms", "0.999 data=contrast:10", "0.999", kChange, 1},
    {"constant-factor-does-nothing", "0.999 data=constant:7", "0.999", kChange, 0}};

class SpikeClaims : public SpikeTables {
 protected:
  SpikeClaims() { SetOptions(kAllAxes); }

  // Returns the arm of a text such as "0.999 size=4x16 by=lion:3".
  Arm ArmFrom(const std::string& text) {
    const std::map<std::string, Place> fields = {
        {"size", kSize}, {"batch", kBatch}, {"lr", kLr}, {"data", kData}, {"by", kOptimizer}};
    std::istringstream words(text);
    std::string word;
    words >> word;
    Arm arm = Centre(results_.settings(), word);
    while (words >> word) {
      const size_t at = word.find('=');
      arm[fields.at(word.substr(0, at))] = word.substr(at + 1);
    }
    return arm;
  }

  // Adds seeds with this mean. Seeds differ by more than a margin, so that only a comparison of the
  // same seeds decides. The noise has a mean of 0 over ten seeds.
  void AddSeeds(const std::string& arm,
                MadeUpOutcome outcome,
                double mean,
                double noise = 0,
                int seeds = 10) {
    for (int seed = 0; seed < seeds; ++seed) {
      const double effect = 3 * outcome.margin * (seed % 5 - 2);
      AddRun(ArmFrom(arm),
             seed,
             {{std::string(outcome.column), mean + effect + (seed % 2 == 0 ? noise : -noise)}});
    }
  }
  void AddDiverged(const std::string& arm, int seeds) {
    const Cells cells = {{"status", "diverged"}, {"valid_loss", HUGE_VAL}, {"accuracy", 0}};
    for (int seed = 0; seed < seeds; ++seed) AddRun(ArmFrom(arm), seed, cells);
  }
  // Replaces the runs by those of both arms, whose difference is `gap` margins, or 20 `gap` of 400 spikes.
  void Fill(const ArmClaim& c, double gap, double noise = 0.02, int seeds = 10) {
    const double margin = c.outcome.margin;
    results_.Clear("runs");
    if (c.IsRatio()) {
      AddSeeds(c.one, c.outcome, 400 + 20 * gap, noise < 1 ? 0 : 10 * noise, seeds);
      AddSeeds(c.other, c.outcome, 400, 0, seeds);
      return;
    }
    AddSeeds(c.one, c.outcome, (40 + gap) * margin, noise * margin, seeds);
    AddSeeds(c.other, c.outcome, 40 * margin, 0, seeds);
  }
  std::string VerdictOf(const std::string& name) { return results_.OwnVerdictOf(name); }
  std::string ReasonOf(const std::string& name) {
    const ClaimResult result = results_.ClaimOf(name).result;
    EXPECT_EQ(ToString(result.verdict), "not tested") << name;
    return result.reason;
  }
  double EstimateOf(const std::string& name) {
    const JudgedClaim claim = results_.ClaimOf(name);
    EXPECT_EQ(claim.result.contrasts.size(), 1u) << name << claim.result.reason;
    return claim.result.contrasts.empty() ? 0 : claim.result.contrasts[0].value;
  }
};

// ---- claims about two arms

// An experiment that does not train the arms of a claim could never test it.
TEST_F(SpikeClaims, CompareTheArmsOfTheirContrastAndTheyAreTrained) {
  const std::vector<Arm> arms = ArmsOf(LossSpikesStudy(), results_.settings());
  for (const ArmClaim& c : kArmClaims) {
    EXPECT_EQ(std::count(arms.begin(), arms.end(), ArmFrom(c.one)), 1) << c.name;
    EXPECT_EQ(std::count(arms.begin(), arms.end(), ArmFrom(c.other)), 1) << c.name;
    Fill(c, 2);
    const JudgedClaim claim = results_.ClaimOf(c.name);
    ASSERT_EQ(claim.evidence.contrasts.size(), 1u) << c.name << claim.result.reason;
    EXPECT_EQ(claim.evidence.contrasts[0][0].arm, TextOf(ArmFrom(c.one))) << c.name;
    EXPECT_EQ(claim.evidence.contrasts[0][1].arm, TextOf(ArmFrom(c.other))) << c.name;
    EXPECT_EQ(claim.evidence.parameters, 1000) << c.name;
  }
}

TEST_F(SpikeClaims, AreDecidedByTheMarginOnTheirSide) {
  for (const ArmClaim& c : kArmClaims) {
    if (c.IsRatio()) continue;
    const bool same = c.side == 0;
    const std::map<double, const char*> verdicts = {{-1.1, "contradicted"},
                                                    {0.9, same ? "supported" : "contradicted"},
                                                    {1.1, same ? "contradicted" : "supported"}};
    for (const auto& [gap, verdict] : verdicts) {
      Fill(c, same ? gap : c.side * gap);
      EXPECT_EQ(VerdictOf(c.name), verdict) << c.name << " " << gap;
    }
  }
}

// Any ratio but 1 decides; that spikes are removed needs half of them gone.
TEST_F(SpikeClaims, OfCountsAreDecidedByTheirRatio) {
  for (const ArmClaim& c : kArmClaims) {
    if (!c.IsRatio()) continue;
    for (const auto& [gap, verdict] : {std::pair{2, "supported"}, std::pair{-2, "contradicted"}}) {
      Fill(c, c.side * gap);
      EXPECT_EQ(VerdictOf(c.name), verdict) << c.name << " " << gap;
    }
    const size_t end = c.name.find("-beta2-mitigates");
    if (end == c.name.npos) continue;
    const std::string removes = c.name.substr(0, end) + "-beta2-removes";
    for (const auto& [gap, verdict] : {std::pair{-12, "supported"},
                                       std::pair{-10, "inconclusive"},
                                       std::pair{-8, "contradicted"}}) {
      Fill(c, gap);
      EXPECT_EQ(VerdictOf(removes), verdict) << removes << " " << gap;
    }
    EXPECT_NEAR(EstimateOf(c.name), 0.6, 1e-12);
  }
}

// Few spikes of the baseline are no evidence against a remedy.
TEST_F(SpikeClaims, ARemedyOfRareSpikesIsNotContradicted) {
  for (int seed = 0; seed < 40; ++seed) {
    AddRun(ArmFrom("0.98 by=stable-adamw"), seed, {{"loss_spikes", seed % 7 == 0 ? 4 : 0}});
    AddRun(ArmFrom("0.98"), seed, {{"loss_spikes", seed % 7 == 1 ? 4 : 0}});
  }
  EXPECT_EQ(VerdictOf("update-clipping-mitigates"), "inconclusive");
}

TEST_F(SpikeClaims, AreInconclusiveInNoiseAndWithOneSeed) {
  for (const ArmClaim& c : kArmClaims) {
    for (const double gap : {3.0 * c.side, 0.0}) {
      Fill(c, gap, 30);
      EXPECT_EQ(VerdictOf(c.name), "inconclusive") << c.name;
    }
    Fill(c, 3 * c.side, 0, 1);
    EXPECT_EQ(VerdictOf(c.name), "inconclusive") << c.name;
    if (c.side == 0) continue;
    EXPECT_EQ(results_.ClaimOf(c.name).result.reason, "one seed") << c.name;
  }
}

TEST_F(SpikeClaims, AreNotTestedWithoutOneOfTheirArms) {
  for (const ArmClaim& c : kArmClaims) {
    for (const std::string& missing : {c.one, c.other}) {
      results_.Clear("runs");
      AddSeeds(missing == c.one ? c.other : c.one, c.outcome, 40 * c.outcome.margin);
      EXPECT_EQ(ReasonOf(c.name), "was not trained: " + TextOf(ArmFrom(missing))) << c.name;
    }
  }
}

TEST_F(SpikeClaims, WithoutRunsNothingIsTested) {
  for (const ClaimSpec& claim : results_.experiment().claims) {
    EXPECT_NE(ReasonOf(claim.id.substr(claim.id.find('/') + 1)), "") << claim.id;
  }
}

TEST_F(SpikeClaims, NameTheOptionThatLeavesTheirArmsOut) {
  SetOptions({});  // those of the preset quick
  const std::map<std::string, const char*> reasons = {
      {"size-brings-spikes", "there is one model size (--sizes)"},
      {"size-beta2-mitigates", "there is one model size (--sizes)"},
      {"batch-brings-spikes", "there is one batch size (--batches)"},
      {"batch-beta2-mitigates", "there is one batch size (--batches)"},
      {"lr-brings-spikes", "there is one learning rate (--lrs)"},
      {"lr-beta2-mitigates", "there is one learning rate (--lrs)"},
      {"high-beta2-costs-at-large-lr", "there is one learning rate (--lrs)"},
      {"schedule-does-not-help", "there is no schedule (--lambdas)"},
      {"jump-raises-rms", "there is no change (--changes)"}};
  for (const auto& [name, reason] : reasons) EXPECT_EQ(ReasonOf(name), reason) << name;
  SetOptions({{"changes", "new,constant:7"}, {"lrs", "4e-3"}});  // the rate of the centre
  EXPECT_EQ(ReasonOf("jump-raises-rms"), "--changes has no jump:F");
  EXPECT_EQ(ReasonOf("contrast-raises-rms"), "--changes has no contrast:F");
  EXPECT_EQ(ReasonOf("lr-brings-spikes"), "there is one learning rate (--lrs)");
}

// Compared with 0.95, 0.99 is not too low a beta2, and 0.950 is the same one.
TEST_F(SpikeClaims, ALowBeta2IsBelowTheOneThatIsRecommended) {
  for (const char* const beta2 : {"0.99,0.95,0.999", "0.999,0.99", "0.99,0.950"}) {
    SetOptions({{"beta2", beta2}});
    for (const char* const each : {"0.95", "0.950", "0.99", "0.999"}) {
      AddSeeds(each, kLoss, std::stod(each), 0.001);
    }
    EXPECT_EQ(ReasonOf("low-beta2-slows"), "--beta2 has no lower value") << beta2;
  }
}

// ---- runs that diverged, students, and spikes that are too rare

TEST_F(SpikeClaims, ADivergedRunHasTheLossOfAGuessAndNoAccuracy) {
  AddDiverged("0.999", 10);
  AddSeeds("0.95", kLoss, 1);
  EXPECT_EQ(VerdictOf("high-beta2-costs"), "supported");
  EXPECT_NEAR(EstimateOf("high-beta2-costs"), 2.5, 1e-12);
  AddDiverged("0.98 by=clip-1", 10);
  AddSeeds("0.98 by=stable-adamw", kShare, 0.4);
  EXPECT_EQ(VerdictOf("update-clipping-beats-gradient-clipping"), "supported");
  EXPECT_NEAR(EstimateOf("update-clipping-beats-gradient-clipping"), 40, 1e-12);
}

TEST_F(SpikeClaims, AStudentHasNeitherNatsNorAccuracy) {
  Overrides options = kAllAxes;
  options["models"] = "mlp";
  SetOptions(options);
  const auto refused = StartsWith("out of reach: a student has squared errors");
  for (const ArmClaim& c : kArmClaims) {
    // A student of width 16 cannot be trained.
    if (c.name.starts_with("size-")) continue;
    Fill(c, 2 * c.side);
    if (c.outcome.column == kLoss.column || c.outcome.column == kShare.column) {
      EXPECT_THAT(ReasonOf(c.name), refused);
    } else {
      EXPECT_EQ(VerdictOf(c.name), "supported") << c.name;
    }
  }
  EXPECT_THAT(ReasonOf("schedule-does-not-help"), refused);
}

// Half of the runs are not most of them, and the runs of one arm are not those of each.
TEST_F(SpikeClaims, ArmsThatMostlyCollapsedAreLeftOut) {
  struct Case {
    int first, second;  // collapsed runs of ten
    bool left_out;
  };
  for (const Case& c :
       {Case{5, 5, false}, Case{6, 5, false}, Case{5, 6, false}, Case{6, 6, true}}) {
    results_.Clear("runs");
    for (int seed = 0; seed < 10; ++seed) {
      AddRun(ArmFrom("5e-1"), seed, {{"valid_loss", 2}, {"collapsed", seed < c.first ? 1 : 0}});
      AddRun(ArmFrom("0.95"), seed, {{"valid_loss", 1}, {"collapsed", seed < c.second ? 1 : 0}});
    }
    const std::string reason = results_.ClaimOf("low-beta2-slows").result.reason;
    EXPECT_EQ(reason.find("most runs of each arm collapsed") != reason.npos, c.left_out) << reason;
  }
}

// Five spikes in ten runs of one of the arms are enough.
TEST_F(SpikeClaims, SpikesThatDoNotOccurAreNoEvidence) {
  for (const ArmClaim& c : kArmClaims) {
    if (!c.IsRatio()) continue;
    for (const bool swapped : {false, true}) {
      for (const int spikes : {4, 5}) {
        results_.Clear("runs");
        for (int seed = 0; seed < 10; ++seed) {
          const int here = seed < spikes ? 1 : 0;
          AddRun(ArmFrom(swapped ? c.other : c.one), seed, {{"loss_spikes", here}});
          AddRun(ArmFrom(swapped ? c.one : c.other), seed, {{"loss_spikes", 0}});
        }
        const ClaimResult result = results_.ClaimOf(c.name).result;
        EXPECT_EQ(result.verdict == Verdict::kNotTested, spikes < 5) << c.name;
        if (spikes == 5) continue;
        EXPECT_THAT(result.reason, StartsWith("out of reach: ")) << c.name;
        EXPECT_THAT(result.reason, HasSubstr(" loss spikes per run, expected 0.5 or more"));
      }
    }
  }
}

// ---- remedies

TEST_F(SpikeClaims, AScheduleDoesNotHelpUnlessItIsBetterByAPoint) {
  struct Case {
    double first, second, noise;
    const char* verdict;
  };
  for (const Case& c : {Case{0.4, 0.4, 0.001, "supported"},
                        Case{0.3, 0.405, 0.001, "supported"},
                        Case{0.3, 0.42, 0.001, "contradicted"},
                        Case{0.42, 0.3, 0.001, "contradicted"},
                        Case{0.4, 0.41, 0.05, "inconclusive"}}) {
    results_.Clear("runs");
    AddSeeds("0.98", kShare, 0.4);
    AddSeeds("1-t^-0.5", kShare, c.first, c.noise);
    EXPECT_THAT(ReasonOf("schedule-does-not-help"), HasSubstr("beta2 1-t^-0.45 adamw"));
    AddSeeds("1-t^-0.45", kShare, c.second, -c.noise);
    EXPECT_EQ(VerdictOf("schedule-does-not-help"), c.verdict) << c.first << " " << c.second;
  }
}

// Whatever its losses are: a rate that is derived from AdamW's is not Lion's own.
TEST_F(SpikeClaims, LionIsNotTestedAtRatesThatWereNotTuned) {
  AddSeeds("0.98", kLoss, 1);
  EXPECT_THAT(ReasonOf("lion-beats-adamw"), StartsWith("was not trained: "));
  for (const char* const lion : {"0.98 by=lion:10", "0.98 by=lion:3"}) {
    AddSeeds(lion, kLoss, 0.5, 0.001);
    EXPECT_THAT(ReasonOf("lion-beats-adamw"), StartsWith("no evidence: the learning rates of Lion"))
        << lion;
  }
}

}  // namespace
}  // namespace numsim::experiments::loss_spikes
