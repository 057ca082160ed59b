// The claims of `switchback-accuracy`, from hand-made trainings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/experiments/switchback_accuracy_fixture.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using ::testing::HasSubstr;

const char* const kStandardArm = "standard";
const char* const kSwitchback = "switchback:int8";
const char* const kLlm = "llm-int8:int8";
const char* const kTensorWise = "tensor-wise:int8";

using Gaps = std::vector<double>;
const Gaps kFar = {0.100, 0.101, 0.099}, kNear = {0, 0.001, 0.001}, kNoise = {-0.05, 0.06, 0.01};
const Gaps kSame = {0, 0, 0};
const Gaps kAllDiverged = {kInf, kInf, kInf};

class SwitchbackClaims : public SwitchbackTables {
 protected:
  std::string VerdictOf(const std::string& name) { return results_.OwnVerdictOf(name); }
  std::string ReasonOf(const std::string& name) { return results_.ClaimOf(name).result.reason; }
  std::string MeasuredOf(const std::string& name) {
    return results_.ClaimOf(name).evidence.measured;
  }
  // A baseline, a reference equal to it unless it is the baseline, and an arm.
  void AddArms(const Group& group,
               const std::string& arm,
               const std::string& reference,
               const Gaps& gaps,
               const std::string& parameters = "1000") {
    AddBaseline(group, {{"parameters", parameters}});
    if (reference != kStandardArm) AddGaps(group, reference, kSame, {{"parameters", parameters}});
    AddGaps(group, arm, gaps, {{"parameters", parameters}});
  }
  // Accuracies of clip in percent, relative to 50, 40 and 60.
  void AddAccuracies(const std::string& variant, const Gaps& points) {
    const Gaps of_seeds = {50, 40, 60};
    for (size_t i = 0; i < points.size(); ++i) {
      const double accuracy = points[i] == kInf ? kNan : (of_seeds[i] + points[i]) / 100;
      Add(Clip(64), variant, std::to_string(i), points[i] == kInf ? kInf : 1, accuracy);
    }
  }
};

struct LossCase {
  const char *name, *arm, *reference;
  bool equivalence;
};
const LossCase kLossCases[] = {{"llm-int8-loses-llama", kLlm, kStandardArm, false},
                               {"int8-matches-llama", kSwitchback, kStandardArm, true},
                               {"fp8-matches-llama", "switchback:e4m3fn/e5m2", kStandardArm, true},
                               {"llm-int8-behind-switchback", kLlm, kSwitchback, false},
                               {"switchback-m-matches", "switchback-m:int8", kSwitchback, true},
                               {"switchback-q-matches", "switchback-q:int8", kSwitchback, true},
                               {"tensor-wise-int8-loses", kTensorWise, kSwitchback, false}};

// Other groups say the opposite.
TEST_F(SwitchbackClaims, AboutLossesAreJudgedInTheLargestGroup) {
  for (const LossCase& c : kLossCases) {
    for (const bool far : {true, false}) {
      Clear();
      AddArms(Llama(9), c.arm, c.reference, far ? kNear : kFar);
      AddArms(Llama(64), c.arm, c.reference, far ? kFar : kNear);
      AddArms(Llama(128, "1x32"), c.arm, c.reference, far ? kNear : kFar, "999");
      EXPECT_EQ(VerdictOf(c.name), far == c.equivalence ? "contradicted" : "supported")
          << c.name << far;
      EXPECT_EQ(MeasuredOf(c.name), "llama 2x64, 64 tokens");
      EXPECT_EQ(results_.ClaimOf(c.name).margin, 0.02);
    }
  }
}

TEST_F(SwitchbackClaims, AreInconclusiveInNoiseAndWithOneSeed) {
  for (const LossCase& c : kLossCases) {
    Clear();
    AddArms(Llama(64), c.arm, c.reference, kNoise);
    EXPECT_EQ(VerdictOf(c.name), "inconclusive") << c.name;
    Clear();
    AddSeeds(Llama(64), kStandardArm, {1});
    if (c.reference != std::string(kStandardArm)) AddSeeds(Llama(64), c.reference, {1});
    AddSeeds(Llama(64), c.arm, {2});
    EXPECT_EQ(VerdictOf(c.name), "inconclusive") << c.name;
  }
}

TEST_F(SwitchbackClaims, AreNotTestedWithoutTheirVariants) {
  AddBaseline(Llama(64));
  AddBaseline(Clip(64));
  AddGaps(Llama(64), "llm-int8:e4m3fn", kFar);
  for (const ClaimSpec& claim : results_.experiment().claims) {
    EXPECT_EQ(VerdictOf(claim.id.substr(claim.id.find('/') + 1)), "not tested") << claim.id;
  }
  EXPECT_THAT(ReasonOf("llm-int8-loses-llama"), HasSubstr(kLlm));
}

TEST_F(SwitchbackClaims, AreNotTestedWhereStandardDoesNotLearn) {
  for (const double loss : {kStart, kInf}) {
    Clear();
    AddSeeds(Llama(64), kStandardArm, {1, 2, loss == kInf ? kInf : 50});
    AddGaps(Llama(64), kLlm, kFar);
    EXPECT_THAT(ReasonOf("llm-int8-loses-llama"), HasSubstr("standard itself"));
  }
}

TEST_F(SwitchbackClaims, ADivergedTrainingHasTheLossOfTheStart) {
  AddArms(Llama(64), kLlm, kSwitchback, kAllDiverged);
  EXPECT_NEAR(results_.ClaimOf("llm-int8-loses-llama").result.contrasts.at(0).value,
              kStart - 7.0 / 3,
              1e-9);
}

TEST_F(SwitchbackClaims, MatchOnlyWhereThePapersFailureIsSeen) {
  AddArms(Llama(64), kSwitchback, kStandardArm, kNear);
  EXPECT_THAT(ReasonOf("int8-matches-llama"), HasSubstr("no evidence: the control"));
  AddGaps(Llama(64), kLlm, kFar);  // which is judged, and is no control
  AddGaps(Llama(64), kTensorWise, kNear);
  EXPECT_THAT(ReasonOf("int8-matches-llama"),
              HasSubstr("tensor-wise:int8 - standard is not seen to"));
  Clear();
  AddArms(Llama(64), kSwitchback, kStandardArm, kNear);
  AddGaps(Llama(64), kTensorWise, kFar);
  EXPECT_EQ(results_.VerdictOf("int8-matches-llama"), "supported");
  AddGaps(Llama(64), "switchback:e4m3fn/e5m2", kNear);
  EXPECT_THAT(ReasonOf("fp8-matches-llama"), HasSubstr("was not trained: tensor-wise:e4m3fn/e5m2"));
  AddGaps(Llama(64), "tensor-wise:e4m3fn/e5m2", kAllDiverged);
  EXPECT_EQ(results_.VerdictOf("fp8-matches-llama"), "supported");
}

// Other arms change nothing, however they scatter.
TEST_F(SwitchbackClaims, TensorWiseTrainingsDoNotCountInOtherClaims) {
  AddArms(Llama(64), kLlm, kSwitchback, kFar);
  AddGaps(Llama(64), kTensorWise, {0.2, 2, 0.7});
  EXPECT_EQ(VerdictOf("llm-int8-loses-llama"), "supported");
  EXPECT_EQ(VerdictOf("tensor-wise-int8-loses"), "inconclusive");
}

TEST_F(SwitchbackClaims, OfClipAreAboutAccuracy) {
  struct Case {
    Gaps llm, switchback;
    const char *loses, *matches;
  };
  for (const Case& c : {Case{{-6, -5.9, -6.1}, {-0.1, 0, -0.1}, "supported", "supported"},
                        Case{{-0.1, 0, 0.1}, {-6, -5.9, -6}, "contradicted", "contradicted"},
                        Case{{-3, 2, -4}, {-3, 2, -4}, "inconclusive", "inconclusive"},
                        Case{kAllDiverged, kSame, "supported", "supported"}}) {
    Clear();
    AddAccuracies(kStandardArm, kSame);
    AddAccuracies(kLlm, c.llm);
    AddAccuracies(kSwitchback, c.switchback);
    AddAccuracies("switchback:e4m3fn", c.switchback);
    EXPECT_EQ(VerdictOf("llm-int8-loses-clip"), c.loses);
    EXPECT_EQ(VerdictOf("int8-matches-clip"), c.matches);
    EXPECT_EQ(VerdictOf("fp8-matches-clip"), c.matches);  // without the paper's E5M2
    EXPECT_EQ(results_.ClaimOf("llm-int8-loses-clip").margin, 1);
  }
  AddAccuracies("switchback:e4m3fn/e5m2", kNoise);
  EXPECT_EQ(results_.ClaimOf("fp8-matches-clip").evidence.contrasts.at(0).at(0).arm,
            "switchback:e4m3fn/e5m2");
}

// Of an accuracy of 11.7 % no layer can lose enough.
TEST_F(SwitchbackClaims, OfClipNeedAnAccuracyFromWhichTheFailureOfThePaperFits) {
  for (const bool enough : {false, true}) {
    Clear();
    for (const char* const variant : {kStandardArm, kLlm, kSwitchback}) {
      for (const char* const seed : {"0", "1", "2"}) {
        Add(Clip(64), variant, seed, 1, enough ? 0.119 : 0.117);
      }
    }
    EXPECT_EQ(VerdictOf("llm-int8-loses-clip"), enough ? "contradicted" : "not tested");
    EXPECT_EQ(VerdictOf("int8-matches-clip"), enough ? "supported" : "not tested");
    if (!enough) {
      EXPECT_THAT(ReasonOf("int8-matches-clip"), HasSubstr("the accuracy of standard is 11.7 %"));
    }
  }
}

// Five seeds of a published run, since withdrawn.
TEST_F(SwitchbackClaims, ThePublishedRunDoesNotDecideAboutLlmInt8) {
  AddSeeds(Llama(64), kStandardArm, {1.72747, 1.77093, 1.83328, 1.72510, 1.74766});
  AddSeeds(Llama(64), kSwitchback, {1.72973, 1.75515, 1.71342, 1.71678, 1.75899});
  AddSeeds(Llama(64), kLlm, {1.74631, 1.79436, 1.74691, 1.73194, 1.78714});
  const ClaimResult result = results_.ClaimOf("llm-int8-loses-llama").result;
  EXPECT_EQ(ToString(result.verdict), "inconclusive");
  EXPECT_NEAR(result.contrasts.at(0).value, 0.0004, 1e-4);
}

TEST_F(SwitchbackClaims, ClipGoesBeforeLlamaIfItHasTheVariants) {
  AddArms(Llama(64), kLlm, kSwitchback, kFar);
  AddArms(Clip(32), kLlm, kStandardArm, kNear);
  EXPECT_EQ(MeasuredOf("llm-int8-behind-switchback"), "llama 2x64, 64 tokens");
  AddGaps(Clip(32), kSwitchback, kSame);
  EXPECT_EQ(MeasuredOf("llm-int8-behind-switchback"), "clip 2x64, 32 tokens");
}

TEST_F(SwitchbackClaims, GridsHaveToMatchInBothKinds) {
  for (const bool far : {true, false}) {
    Clear();
    AddArms(Llama(64), "switchback:bnb-e4m3/bnb-e5m2", "switchback:e4m3fn/e5m2", kNear);
    EXPECT_EQ(VerdictOf("grids-match"), "not tested");
    AddGaps(Llama(64), "tensor-wise:e4m3fn/e5m2", kSame);
    AddGaps(Llama(64), "tensor-wise:bnb-e4m3/bnb-e5m2", far ? kFar : kNear);
    EXPECT_EQ(VerdictOf("grids-match"), far ? "contradicted" : "supported");
  }
}

TEST_F(SwitchbackClaims, TensorWiseFp8IsJudgedAboveThePapersSizeAlone) {
  struct Case {
    const char* parameters;
    size_t diverged;  // of 6
    const char* verdict;
  };
  for (const Case& c : {Case{"420000000", 6, "not tested"},
                        Case{"430000000", 6, "supported"},
                        Case{"430000000", 3, "inconclusive"},
                        Case{"430000000", 0, "contradicted"}}) {
    Clear();
    std::vector<double> losses(6, 1);
    for (size_t i = 0; i < c.diverged; ++i) losses[i] = kInf;
    AddSeeds(Clip(64), kStandardArm, {1, 1, 1, 1, 1, 1}, {{"parameters", c.parameters}});
    AddSeeds(Clip(64), "tensor-wise:e4m3fn/e5m2", losses, {{"parameters", c.parameters}});
    EXPECT_EQ(VerdictOf("tensor-wise-fp8-diverges"), c.verdict) << c.parameters << c.diverged;
  }
}

// The weight gradient has to lose under both scales of W.
TEST_F(SwitchbackClaims, TheWeightGradientIsJudgedApartFromTheScaleOfW) {
  const char* const q = "switchback-q:int8";
  for (const bool far : {true, false}) {
    Clear();
    AddArms(Llama(64), kLlm, kSwitchback, kFar);
    AddGaps(Llama(64), "llm-int8-tensor-w:int8", kFar);
    EXPECT_EQ(VerdictOf("weight-gradient-loses"), "not tested");
    AddGaps(Llama(64), q, far ? kNear : kFar);
    EXPECT_EQ(VerdictOf("weight-gradient-loses"), far ? "supported" : "contradicted");
  }
}

// Llm-int8 loses 0.1 with the head and nothing without it; SwitchBack loses nothing or as much.
TEST_F(SwitchbackClaims, TheHeadIsJudgedByADifferenceOfDifferences) {
  for (const bool both : {true, false}) {
    Clear();
    AddArms(Llama(64), kLlm, kSwitchback, kNear);
    AddGaps(Llama(64), std::string(kLlm) + "+all", kFar);
    EXPECT_EQ(VerdictOf("head-loses"), "not tested");
    AddGaps(Llama(64), std::string(kSwitchback) + "+all", both ? kFar : kNear);
    AddArms(Clip(64), kLlm, kSwitchback, kFar);  // has no head
    EXPECT_EQ(VerdictOf("head-loses"), both ? "contradicted" : "supported");
  }
}

// ---- growth with batch x sequence

TEST_F(SwitchbackClaims, GapGrowsFromTheFewestToTheMostTokens) {
  struct Case {
    Gaps few, many;
    const char* verdict;
  };
  for (const Case& c : {Case{{0.2, -0.2, 0.1}, {0.3, -0.101, 0.201}, "supported"},
                        Case{kFar, kFar, "contradicted"},
                        Case{kNear, kNoise, "inconclusive"},
                        Case{kNear, kAllDiverged, "inconclusive"}}) {
    Clear();
    AddArms(Llama(1024), kLlm, kStandardArm, c.many);
    EXPECT_EQ(VerdictOf("gap-grows"), "not tested");
    AddArms(Llama(64), kLlm, kStandardArm, c.few);
    AddArms(Llama(256), kLlm, kStandardArm, {9, 9, 9});
    EXPECT_EQ(VerdictOf("gap-grows"), c.verdict);
    EXPECT_EQ(MeasuredOf("gap-grows"), "llama 2x64, 1024 tokens against 64");
  }
}

// Own errors of llm-int8 and switchback at the most tokens, relative to those at the fewest; the
// errors of both are as these.
TEST_F(SwitchbackClaims, NoiseIsJudgedByRatiosOverSeeds) {
  struct Case {
    Gaps llm, switchback;
    const char *grows, *avoids, *noisier;
  };
  for (const Case& c :
       {Case{{2, 2.02, 1.98}, {1, 1.01, 0.99}, "supported", "supported", "supported"},
        Case{{1, 1.01, 0.99}, {2, 2.02, 1.98}, "contradicted", "contradicted", "contradicted"},
        Case{{0.5, 2, 1}, {1, 1.5, 0.8}, "inconclusive", "inconclusive", "inconclusive"},
        Case{{2}, {1}, "inconclusive", "inconclusive", "inconclusive"},
        Case{{}, {}, "not tested", "not tested", "not tested"}}) {
    Clear();
    for (const int tokens : {1024, 64}) {
      AddArms(Llama(tokens), kLlm, kSwitchback, kNear);
      for (size_t i = 0; i < c.llm.size(); ++i) {
        const std::string seed = std::to_string(i);
        const double llm = tokens == 64 ? 1 : c.llm[i], own = tokens == 64 ? 1 : c.switchback[i];
        AddGradient(Llama(tokens), kLlm, 0.3 * llm, 0.02 * llm, 0.5, seed);
        AddGradient(Llama(tokens), kSwitchback, 0.3 * own, 0.01 * own, 0.5, seed);
      }
    }
    EXPECT_EQ(VerdictOf("noise-grows"), c.grows);
    EXPECT_EQ(VerdictOf("switchback-avoids-noise"), c.avoids);
    EXPECT_EQ(VerdictOf("llm-int8-noisier"), c.noisier);
    if (c.llm.size() == 1) {
      EXPECT_EQ(
          MeasuredOf("noise-grows"),
          "llama 2x64, 1024 tokens against 64, own errors 4 and 2 %; one seed is an illustration");
    }
  }
}

TEST_F(SwitchbackClaims, MarginsAreThoseOfTheModelsSize) {
  AddArms(Llama(64), kLlm, kSwitchback, kNear, "2000000");
  EXPECT_EQ(results_.ClaimOf("llm-int8-loses-llama").margin, 0.01);
  EXPECT_EQ(results_.ClaimOf("llm-int8-behind-switchback").margin, 0.01);
}

TEST_F(SwitchbackClaims, NotesNameTheModelsThatWereTrained) {
  AddBaseline(Clip(64, "12x64"), {{"parameters", "777"}});
  AddBaseline(Clip(128, "12x64"), {{"parameters", "777"}});
  AddBaseline(Llama(64), {{"parameters", "333"}});
  EXPECT_THAT(results_.experiment().notes(results_.settings(), results_.Finish()),
              HasSubstr("Trained: clip 12x64 (777 parameters), llama 2x64 (333 parameters)."));
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
