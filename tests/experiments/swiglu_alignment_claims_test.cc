// The claims of `swiglu-alignment`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "tests/experiments/swiglu_alignment_fixture.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

using ::testing::HasSubstr;

using Cells = std::map<std::string, Cell>;

const Overrides kAxes = {
    {"lrs", "1e-3,1.6e-2"}, {"weight-decays", "0,0.01,1"}, {"lengths", "100"}, {"steps", "600"}};

class SwigluClaims : public ::testing::Test {
 protected:
  // Adds ten runs of an arm whose value of a column is `mean`, with noise whose mean is 0.
  void AddRuns(const Arm& arm, const std::string& column, double mean, double noise = 0.01) {
    for (int seed = 0; seed < 10; ++seed) {
      Cells cells = RunOf(arm, seed);
      cells[column] = mean + (seed % 2 == 0 ? noise : -noise);
      results_.Add("runs", cells);
    }
  }
  static Cells RunOf(const Arm& arm, int seed) {
    return {{"size", arm[0]},
            {"lr", arm[1]},
            {"weight_decay", arm[2]},
            {"steps", arm[3]},
            {"seed", seed},
            {"parameters", 1000},
            {"status", "finished"},
            {"cos_early", 0.2},
            {"cos_late", 0.2},
            {"others_early", 0.1},
            {"others_late", 0.1},
            {"w2_early", 1},
            {"w2_late", 1},
            {"above_one", 0.5},
            {"slope", 0.125},
            {"kurtosis_early", 4},
            {"kurtosis_late", 4},
            {"correlation", 0}};
  }
  Arm CentreArm() const { return SwigluAlignmentStudy().centre(results_.settings()); }
  // The verdict if ten runs of the centre have that value.
  std::string IfCentre(const std::string& column, double mean, const std::string& claim) {
    results_.Clear("runs");
    AddRuns(CentreArm(), column, mean);
    return results_.OwnVerdictOf(claim);
  }
  // The verdict if two arms end at these |cos|.
  std::string IfArms(const Arm& arm, double one, const Arm& other, double two, const char* claim) {
    results_.Clear("runs");
    AddRuns(arm, "cos_late", one);
    AddRuns(other, "cos_late", two, -0.01);
    return results_.OwnVerdictOf(claim);
  }

  ResultTables results_{SwigluAlignment(), kAxes, 10};
};

TEST_F(SwigluClaims, AlignmentIsOfEitherSignAndMeasuredFromTheEarlyRecord) {
  EXPECT_EQ(IfCentre("cos_late", 0.35, "outlier-aligns"), "supported");
  EXPECT_EQ(IfCentre("cos_late", -0.35, "outlier-aligns"), "supported");
  EXPECT_EQ(IfCentre("cos_late", 0.25, "outlier-aligns"), "contradicted");
  EXPECT_EQ(IfCentre("cos_early", 0.35, "outlier-aligns"), "contradicted");
  EXPECT_EQ(IfCentre("cos_late", 0.35, "aligns-more-than-others"), "supported");
  EXPECT_EQ(IfCentre("others_late", 0.5, "aligns-more-than-others"), "contradicted");
  EXPECT_EQ(IfCentre("others_late", 0.5, "outlier-aligns"), "contradicted");
}

TEST_F(SwigluClaims, NormsAndKurtosisGrowInBinades) {
  EXPECT_EQ(IfCentre("w2_late", 1.5, "gate-norm-grows"), "supported");
  EXPECT_EQ(IfCentre("w2_late", 1.3, "gate-norm-grows"), "contradicted");
  EXPECT_EQ(IfCentre("kurtosis_late", 8.4, "kurtosis-grows"), "supported");
  EXPECT_EQ(IfCentre("kurtosis_late", 7.6, "kurtosis-grows"), "contradicted");
}

TEST_F(SwigluClaims, SaturationIsAShareOfTheTokens) {
  EXPECT_EQ(IfCentre("above_one", 0.65, "most-tokens-above-1"), "supported");
  EXPECT_EQ(IfCentre("above_one", 0.55, "most-tokens-above-1"), "contradicted");
  EXPECT_EQ(IfCentre("above_one", 0.985, "99-percent-above-1"), "supported");
  EXPECT_EQ(IfCentre("above_one", 0.9, "99-percent-above-1"), "contradicted");
  EXPECT_EQ(IfCentre("slope", 0.05, "gate-is-flat"), "supported");
  EXPECT_EQ(IfCentre("slope", 0.2, "gate-is-flat"), "contradicted");
  EXPECT_EQ(IfCentre("correlation", 0.3, "aligned-channels-are-large"), "supported");
  EXPECT_EQ(IfCentre("correlation", 0.1, "aligned-channels-are-large"), "contradicted");
}

// |cos| goes from 0.2 at the early record to 0.8 at the end, and passes 0.5 at step 300.
TEST_F(SwigluClaims, SaturationIsJudgedWhenAlignmentIsHalfway) {
  const auto verdict = [&](double slope_at_halfway) {
    results_.Clear("runs");
    results_.Clear("points");
    for (int seed = 0; seed < 10; ++seed) {
      Cells run = RunOf(CentreArm(), seed);
      run["early_step"] = 15;
      results_.Add("runs", run);
      const double noise = seed % 2 == 0 ? 0.002 : -0.002;
      const double records[][3] = {{0, 0.6, 0.01},  // before the early record
                                   {15, 0.2, 0.24},
                                   {200, 0.45, 0.24},
                                   {300, 0.55, slope_at_halfway + noise},
                                   {600, 0.8, 0.01}};
      for (const auto& [step, cos, slope] : records) {
        results_.Add("points",
                     {{"size", CentreArm()[0]},
                      {"lr", CentreArm()[1]},
                      {"weight_decay", CentreArm()[2]},
                      {"steps", CentreArm()[3]},
                      {"seed", seed},
                      {"step", step},
                      {"abs_cos", cos},
                      {"slope", slope}});
      }
    }
    return results_.OwnVerdictOf("saturation-comes-first");
  };
  EXPECT_EQ(verdict(0.05), "supported");
  EXPECT_EQ(verdict(0.15), "contradicted");
}

// |cos| of the leader is -0.3 at the early record, and that of the outlier channel falls.
TEST_F(SwigluClaims, TheLeaderIsThatOfEachTime) {
  const auto verdict = [&](double at_the_end) {
    results_.Clear("runs");
    results_.Clear("points");
    for (int seed = 0; seed < 10; ++seed) {
      Cells run = RunOf(CentreArm(), seed);
      run["early_step"] = 15;
      results_.Add("runs", run);
      const double noise = seed % 2 == 0 ? 0.01 : -0.01;
      const double records[][3] = {
          {0, 0.9, 0.9}, {15, 0.9, -0.3}, {300, 0.2, 0.99}, {600, 0.2, at_the_end + noise}};
      for (const auto& [step, cos, leading] : records) {
        results_.Add("points",
                     {{"size", CentreArm()[0]},
                      {"lr", CentreArm()[1]},
                      {"weight_decay", CentreArm()[2]},
                      {"steps", CentreArm()[3]},
                      {"seed", seed},
                      {"step", step},
                      {"cos", cos},
                      {"leading_cos", leading}});
      }
    }
    return results_.OwnVerdictOf("leader-aligns");
  };
  EXPECT_EQ(verdict(0.45), "supported");
  EXPECT_EQ(verdict(-0.45), "supported");
  EXPECT_EQ(verdict(0.35), "contradicted");
  EXPECT_NEAR(results_.ClaimOf("leader-aligns").result.contrasts.at(0).value, 0.05, 1e-12);
  results_.Clear("points");
  EXPECT_EQ(results_.VerdictOf("leader-aligns"), "inconclusive") << "no record is no evidence";
}

TEST_F(SwigluClaims, AxesCompareTheirEnds) {
  Arm none = CentreArm(), weak = none, strong = none, slow = none, fast = none, brief = none;
  none[2] = "0";
  weak[2] = "0.01";
  strong[2] = "1";
  slow[1] = "1e-3";
  fast[1] = "1.6e-2";
  brief[3] = "100";
  EXPECT_EQ(IfArms(strong, 0.5, none, 0.2, "decay-brings-alignment"), "supported");
  EXPECT_EQ(IfArms(strong, 0.2, none, 0.5, "decay-brings-alignment"), "contradicted");
  EXPECT_EQ(IfArms(weak, 0.5, strong, 0.2, "weak-decay-aligns-more"), "supported");
  EXPECT_EQ(IfArms(weak, 0.2, strong, 0.2, "weak-decay-aligns-more"), "contradicted");
  EXPECT_EQ(IfArms(fast, 0.5, slow, 0.2, "lr-brings-alignment"), "supported");
  EXPECT_EQ(IfArms(fast, 0.2, slow, 0.5, "lr-brings-alignment"), "contradicted");
  EXPECT_EQ(IfArms(CentreArm(), 0.5, brief, 0.2, "length-brings-alignment"), "supported");
  EXPECT_EQ(IfArms(CentreArm(), 0.2, brief, 0.5, "length-brings-alignment"), "contradicted");
}

TEST_F(SwigluClaims, DecayIsJudgedOnlyWhereItActs) {
  results_ = ResultTables(SwigluAlignment(), {{"weight-decays", "0"}}, 10);
  AddRuns(CentreArm(), "cos_late", 0.5);
  Arm none = CentreArm();
  none[2] = "0";
  AddRuns(none, "cos_late", 0.2);
  const JudgedClaim claim = results_.ClaimOf("decay-brings-alignment");
  EXPECT_EQ(ToString(claim.result.verdict), "not tested");
  EXPECT_THAT(claim.result.reason, HasSubstr("out of reach: weight decay times"));
}

TEST_F(SwigluClaims, ADivergedRunIsNoEvidenceOfAlignment) {
  for (int seed = 0; seed < 10; ++seed) {
    Cells cells = RunOf(CentreArm(), seed);
    cells["cos_late"] = 0.9;
    if (seed == 3) cells["status"] = "diverged";
    results_.Add("runs", cells);
  }
  EXPECT_EQ(results_.VerdictOf("outlier-aligns"), "inconclusive");
}

TEST_F(SwigluClaims, DivergenceNeedsThePapersScale) {
  AddRuns(CentreArm(), "cos_late", 0.5);
  const JudgedClaim claim = results_.ClaimOf("fp8-diverges");
  EXPECT_EQ(ToString(claim.result.verdict), "not tested");
  EXPECT_THAT(claim.result.reason, HasSubstr("6.1e+05 tokens; the divergence begins after 2e11"));
}

TEST_F(SwigluClaims, DivergenceIsJudgedAtThePapersScale) {
  results_ = ResultTables(SwigluAlignment(),
                          {{"size", "32x4096"},
                           {"steps", "500000"},
                           {"batch", "1024"},
                           {"context", "4096"},
                           {"products", "tensor-wise:e4m3fn/e5m2"}},
                          10);
  for (int seed = 0; seed < 10; ++seed) {
    Cells cells = RunOf(CentreArm(), seed);
    cells["status"] = "diverged";
    results_.Add("runs", cells);
  }
  EXPECT_EQ(results_.VerdictOf("fp8-diverges"), "supported");
}

// ---- the exact part

class SwigluExactClaims : public SwigluClaims {
 protected:
  // A stationary point that satisfies everything, unless the cells say otherwise.
  void AddPoint(Cells cells) {
    cells.insert({{"teacher", "square"},
                  {"design", "corners"},
                  {"gate", "saturated"},
                  {"bias", 6},
                  {"mu", 0.1},
                  {"gradient", 1e-13},
                  {"slope", 0},
                  {"cos", 1},
                  {"w1", 1},
                  {"w2", 1},
                  {"imbalance", 0},
                  {"imbalance_error", 0},
                  {"eigenvalue_plus", 1},
                  {"eigenvalue_minus", -1},
                  {"p", 0.7},
                  {"q", 0.7},
                  {"split_error", 0},
                  {"square_error", 0},
                  {"vector_error", 0}});
    results_.Add("stationary", cells);
  }
  // The verdict with one good point and one with these cells.
  std::string IfPoint(const Cells& cells, const std::string& claim) {
    results_.Clear("stationary");
    AddPoint({});
    AddPoint(cells);
    return results_.OwnVerdictOf(claim);
  }
};

TEST_F(SwigluExactClaims, OneUnalignedPointRefutesTheTheorem) {
  EXPECT_EQ(IfPoint({}, "theorem-1"), "exact: holds");
  EXPECT_EQ(IfPoint({{"cos", -1}}, "theorem-1"), "exact: holds");
  EXPECT_EQ(IfPoint({{"teacher", "linear"}, {"cos", 0}}, "theorem-1"), "exact: refuted");
  EXPECT_EQ(IfPoint({{"cos", 0.9}}, "theorem-1"), "exact: refuted");
}

TEST_F(SwigluExactClaims, APointThatIsNotAtRestOrNotSaturatedIsNoEvidence) {
  EXPECT_EQ(IfPoint({{"cos", 0}, {"gradient", 1e-6}}, "theorem-1"), "exact: holds");
  EXPECT_EQ(IfPoint({{"cos", 0}, {"slope", 0.1}}, "theorem-1"), "exact: holds");
  results_.Clear("stationary");
  EXPECT_EQ(results_.VerdictOf("theorem-1"), "not tested");
}

TEST_F(SwigluExactClaims, TheProofIsJudgedWhereSigmaIsOne) {
  EXPECT_EQ(IfPoint({{"square_error", 1e-6}}, "a-squared"), "exact: refuted");
  EXPECT_EQ(IfPoint({{"square_error", 1e-6}, {"gate", "sigmoid"}}, "a-squared"), "exact: holds");
  EXPECT_EQ(IfPoint({{"vector_error", 1}}, "eigenvectors"), "exact: refuted");
  EXPECT_EQ(IfPoint({{"split_error", 1e-6}}, "two-eigenspaces"), "exact: refuted");
  EXPECT_EQ(IfPoint({{"teacher", "linear"}, {"q", 0}}, "two-eigenspaces"), "exact: refuted");
  EXPECT_EQ(IfPoint({{"teacher", "linear"}, {"eigenvalue_minus", -0.9}}, "two-eigenspaces"),
            "exact: refuted");
  EXPECT_EQ(IfPoint({{"teacher", "linear"}}, "two-eigenspaces"), "exact: holds");
  EXPECT_EQ(IfPoint({{"imbalance", 1e-6}}, "norm-balance"), "exact: refuted");
  EXPECT_EQ(IfPoint({{"imbalance", 1e-6}, {"gate", "sigmoid"}}, "norm-balance"), "exact: holds");
  EXPECT_EQ(IfPoint({{"imbalance_error", 1e-6}, {"gate", "sigmoid"}}, "norm-balance"),
            "exact: refuted");
}

TEST_F(SwigluExactClaims, EveryStartCounts) {
  const auto add = [&](const char* teacher, double mu, double cos) {
    results_.Add("starts",
                 {{"teacher", teacher},
                  {"mu", mu},
                  {"cos_start", 0.3},
                  {"cos", cos},
                  {"steps", 10},
                  {"slope", 0}});
  };
  add("square", 0.01, 0.995);
  add("square", 0, -0.995);
  add("linear", 0.01, 0.001);
  EXPECT_EQ(results_.VerdictOf("square-teacher-aligns"), "exact: holds");
  EXPECT_EQ(results_.VerdictOf("aligns-without-l2"), "exact: holds");
  EXPECT_EQ(results_.VerdictOf("linear-teacher-stays-apart"), "exact: holds");
  add("square", 0, 0.5);
  add("linear", 0.01, -0.2);
  EXPECT_EQ(results_.VerdictOf("square-teacher-aligns"), "exact: holds");
  EXPECT_EQ(results_.VerdictOf("aligns-without-l2"), "exact: refuted");
  EXPECT_EQ(results_.VerdictOf("linear-teacher-stays-apart"), "exact: refuted");
}

TEST_F(SwigluExactClaims, GrowthIsJudgedByItsBounds) {
  const auto add = [&](const char* name, double u, double over_u) {
    results_.Add("growth",
                 {{"activation", name}, {"u", u}, {"over_u", over_u}, {"over_square", over_u / u}});
  };
  add("swiglu", 4, 4 / (1 + std::exp(-4)));
  add("swish", 4, 1 / (1 + std::exp(-4)));
  EXPECT_EQ(results_.VerdictOf("swiglu-is-quadratic"), "exact: holds");
  EXPECT_EQ(results_.VerdictOf("others-at-most-linear"), "exact: holds");
  add("swiglu", 8, 7.9);
  add("gelu", -8, -1.1);
  EXPECT_EQ(results_.VerdictOf("swiglu-is-quadratic"), "exact: refuted");
  EXPECT_EQ(results_.VerdictOf("others-at-most-linear"), "exact: refuted");
}

TEST(SwigluExact, VerdictsOfTheRealTables) {
  ResultTables results(SwigluAlignment());
  Tables tables = results.Finish();
  tables.at("stationary").rows = StationaryRows();
  tables.at("growth").rows = GrowthRows();
  std::map<std::string, std::string> verdicts;
  for (const JudgedClaim& claim : Judge(results.experiment().claims, results.settings(), tables)) {
    verdicts[claim.spec->id] = ToString(claim.result.verdict);
  }
  EXPECT_EQ(verdicts["swiglu-alignment/theorem-1"], "exact: refuted");
  EXPECT_EQ(verdicts["swiglu-alignment/eigenvectors"], "exact: refuted");
  for (const char* const name : {"a-squared",
                                 "two-eigenspaces",
                                 "norm-balance",
                                 "swiglu-is-quadratic",
                                 "others-at-most-linear"}) {
    EXPECT_EQ(verdicts[std::string("swiglu-alignment/") + name], "exact: holds") << name;
  }
}

}  // namespace
}  // namespace numsim::experiments::swiglu_alignment
