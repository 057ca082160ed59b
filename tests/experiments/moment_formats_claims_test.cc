// The claims of `moment-formats`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/moment_formats/moment_formats.h"
#include "tests/experiments/moment_formats_fixture.h"
#include "tests/experiments/result_tables.h"
#include "tests/support/special_values.h"

namespace numsim::experiments::moment_formats {
namespace {

using ::testing::HasSubstr;

class MomentClaims : public ::testing::Test {
 protected:
  // Losses of the seeds 0, 1, ... relative to those of fp32; infinity: diverged.
  void Gaps(const std::string& m,
            const std::string& v,
            const std::vector<double>& gaps,
            const Regime& regime = {"1e-5", "fresh", "1e-3"}) {
    const double fp32[] = {1.50, 1.52, 1.47};
    for (size_t seed = 0; seed < gaps.size(); ++seed) {
      const bool diverged = gaps[seed] == kInfinity;
      results_.Add("final",
                   {{"m", m},
                    {"v", v},
                    {"epsilon", regime.epsilon},
                    {"update_from", regime.update_from},
                    {"lr", regime.lr},
                    {"seed", seed},
                    {"status", diverged ? "diverged" : "finished"},
                    {"start_loss", 5.5},
                    {"valid_loss", fp32[seed] + gaps[seed]},
                    {"m_bytes", 1},
                    {"v_bytes", 1}});
    }
  }
  std::string VerdictOf(const std::string& name) { return results_.VerdictOf(name); }
  std::string ReasonOf(const std::string& name) { return results_.ClaimOf(name).result.reason; }

  ResultTables results_{MomentFormats()};
};

TEST_F(MomentClaims, AreSupportedWhereThePaperIsReproduced) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {0.001, 0.002, 0});
  Gaps("e5m2", "e5m2", {0.10, 0.101, 0.099});
  Gaps("e4m3fn", "e4m3fn", {0.4, 0.4, 0.41});
  Gaps("e5m2", "e4m3fn", {0.3, 0.3, 0.3});
  EXPECT_EQ(VerdictOf("v-e4m3-fails"), "supported");
  EXPECT_EQ(VerdictOf("m-e4m3-v-e5m2-matches"), "supported");
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "supported");
}

TEST_F(MomentClaims, AreContradictedWhereAllPairsMatchAndThePapersDoesNot) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {0.10, 0.101, 0.099});
  Gaps("e5m2", "e5m2", {0.001, 0.002, 0});
  Gaps("e4m3fn", "e4m3fn", {0.001, 0, 0.001});
  Gaps("e5m2", "e4m3fn", {0, 0, 0.001});
  EXPECT_EQ(VerdictOf("v-e4m3-fails"), "contradicted");
  EXPECT_EQ(VerdictOf("m-e4m3-v-e5m2-matches"), "contradicted");
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "contradicted");
}

// One of two pairs that does not fail contradicts that v in E4M3 fails.
TEST_F(MomentClaims, BothPairsWithVInE4m3HaveToFail) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e4m3fn", {0.4, 0.4, 0.41});
  Gaps("e5m2", "e4m3fn", {0, 0, 0.001});
  EXPECT_EQ(VerdictOf("v-e4m3-fails"), "contradicted");
}

TEST_F(MomentClaims, AreInconclusiveWithinTheNoise) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {-0.05, 0.06, 0.01});
  Gaps("e5m2", "e5m2", {0.08, -0.02, 0.05});
  EXPECT_EQ(VerdictOf("m-e4m3-v-e5m2-matches"), "not tested") << "without v in E4M3";
  EXPECT_EQ(results_.OwnVerdictOf("m-e4m3-v-e5m2-matches"), "inconclusive");
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "inconclusive");
  EXPECT_GT(results_.ClaimOf("both-e5m2-fails").result.seeds_to_decide, 3);
}

TEST_F(MomentClaims, ADivergedTrainingCountsAsNoBetterThanItsStart) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e4m3fn", {kInfinity, kInfinity, kInfinity});
  Gaps("e5m2", "e4m3fn", {3, 3, 3});
  EXPECT_EQ(VerdictOf("v-e4m3-fails"), "supported");
  EXPECT_NEAR(results_.ClaimOf("v-e4m3-fails").result.contrasts.at(0).value, 5.5 - 1.4967, 1e-3);
}

TEST_F(MomentClaims, AreNotTestedWithoutTheirPairs) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn@none", "e5m2@none", {0, 0, 0});  // not as the paper scales
  Gaps("e4m3", "e4m3", {1, 1, 1});              // not OCP's E4M3
  for (const char* const claim :
       {"v-e4m3-fails", "m-e4m3-v-e5m2-matches", "both-e5m2-fails", "memory"}) {
    EXPECT_EQ(VerdictOf(claim), "not tested") << claim;
  }
}

TEST_F(MomentClaims, AreNotTestedWhereFp32DoesNotLearn) {
  Gaps("fp32", "fp32", {0, kInfinity, 0});
  Gaps("e4m3fn", "e5m2", {0, 0, 0});
  EXPECT_EQ(VerdictOf("m-e4m3-v-e5m2-matches"), "not tested");
  EXPECT_THAT(ReasonOf("m-e4m3-v-e5m2-matches"), HasSubstr("fp32 itself"));
}

TEST_F(MomentClaims, AreTestedAtTheEpsilonNearestToThePapersFromFreshMoments) {
  for (const char* const epsilon : {"1e-8", "1e-6", "1e-5"}) {
    Gaps("fp32", "fp32", {0, 0, 0}, {epsilon, "stored", "1e-3"});
    const double gap = std::string(epsilon) == "1e-5" ? 0.3 : 0;
    Gaps("e5m2", "e5m2", {0, 0, 0}, {epsilon, "stored", "1e-3"});
    Gaps("e5m2", "e5m2", {gap, gap, gap}, {epsilon, "fresh", "1e-3"});
  }
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "supported");
}

// The seeds that judge would choose the best of them.
TEST_F(MomentClaims, SeveralRatesAreNotJudged) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("fp32", "fp32", {1, 1, 1}, {"1e-5", "fresh", "3e-3"});
  Gaps("e5m2", "e5m2", {1, 1, 1});
  Gaps("e5m2", "e5m2", {0.1, 0.1, 0.1}, {"1e-5", "fresh", "3e-3"});
  EXPECT_EQ(VerdictOf("both-e5m2-fails"), "not tested");
  EXPECT_THAT(ReasonOf("both-e5m2-fails"), HasSubstr("numsim tune"));
}

TEST_F(MomentClaims, EpsilonDecidesWhereTheGapIsAtTheSmallOneAlone) {
  for (const char* const epsilon : {"1e-8", "1e-5"}) {
    const bool small = std::string(epsilon) == "1e-8";
    Gaps("fp32", "fp32", {0, 0, 0}, {epsilon, "fresh", "1e-3"});
    const double gap = small ? 0.3 : 0.01;
    Gaps("fp32", "e4m3fn", {gap, gap, gap}, {epsilon, "fresh", "1e-3"});
    Gaps("fp32", "e4m3fn", {0.1, 0.1, 0.1}, {epsilon, "stored", "1e-3"});
  }
  EXPECT_EQ(VerdictOf("epsilon-decides-fresh"), "supported");
  EXPECT_NEAR(results_.ClaimOf("epsilon-decides-fresh").result.contrasts.at(0).value, 0.29, 1e-9);
  EXPECT_EQ(VerdictOf("epsilon-decides-stored"), "contradicted");
}

TEST_F(MomentClaims, OneEpsilonDecidesNothingAboutEpsilon) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("fp32", "e4m3fn", {0.3, 0.3, 0.3});
  EXPECT_EQ(VerdictOf("epsilon-decides-fresh"), "not tested");
  EXPECT_THAT(ReasonOf("epsilon-decides-fresh"), HasSubstr("--epsilon"));
}

TEST_F(MomentClaims, TheMarginIsThatOfTheModelsSize) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {0, 0, 0});
  EXPECT_EQ(results_.ClaimOf("m-e4m3-v-e5m2-matches").margin, 0.02);
  results_ = ResultTables(MomentFormats(), {{"layers", "12"}, {"width", "768"}, {"heads", "12"}});
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {0, 0, 0});
  EXPECT_EQ(results_.ClaimOf("m-e4m3-v-e5m2-matches").margin, 0.005);
  // 2 x 32768 x 64 parameters in the embedding and the head.
  results_ = ResultTables(MomentFormats(), {{"vocabulary", "32768"}});
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {0, 0, 0});
  EXPECT_EQ(results_.ClaimOf("m-e4m3-v-e5m2-matches").margin, 0.01);
}

// The paper measured devices; stored bytes alone decide nothing about them.
TEST_F(MomentClaims, MemoryIsOutOfReachAndItsBytesAreNamed) {
  Gaps("fp32", "fp32", {0, 0, 0});
  Gaps("e4m3fn", "e5m2", {0, 0, 0});
  EXPECT_EQ(VerdictOf("memory"), "not tested");
  EXPECT_THAT(results_.ClaimOf("memory").result.reason, HasSubstr("alone take 18.2 % less"));
  const std::string measured = results_.ClaimOf("memory").evidence.measured;
  EXPECT_THAT(measured, HasSubstr("8 devices: 30.3 GB per device, 18.2 % less"));
  EXPECT_THAT(measured, HasSubstr("4 devices: 33.7 GB per device, 28.6 % less"));
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
