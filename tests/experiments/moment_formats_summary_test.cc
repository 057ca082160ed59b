// The claims of `moment-formats`, from hand-made tables: each in every direction.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "experiments/moment_formats/moment_formats.h"
#include "tests/experiments/moment_formats_fixture.h"

namespace numsim::experiments::moment_formats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The claims by their number in the summary.
enum ClaimNumber { kSecondMoment, kPapersPair, kOnlyPair, kMemory };

class Claims : public MomentTables {
 protected:
  // A gap in per cent of what fp32 gained; infinity: diverged.
  void Gap(const std::string& m, const std::string& v, double percent) {
    const bool diverged = percent == kInfinity;
    Add({m, v, 101, diverged ? kInfinity : 1 + percent, diverged ? "diverged" : "finished"});
  }
  std::string VerdictOf(ClaimNumber claim) { return Summarised().claims.at(claim).verdict; }
  std::string Measured(ClaimNumber claim) { return Summarised().claims.at(claim).measured; }

  void SetUp() override { Add({"fp32", "fp32", 101, 1}); }
};

TEST_F(Claims, AllHoldWhereThePaperIsReproduced) {
  Gap("e4m3fn", "e5m2", 0.1);
  Gap("e5m2", "e5m2", 2);
  Gap("e4m3fn", "e4m3fn", 40);
  Gap("e5m2", "e4m3fn", kInfinity);
  Finish();
  EXPECT_EQ(VerdictOf(kSecondMoment), "holds");
  EXPECT_EQ(VerdictOf(kPapersPair), "holds");
  EXPECT_EQ(VerdictOf(kOnlyPair), "holds");
}

TEST_F(Claims, SecondMomentInE4m3HoldsWhereEveryPairFails) {
  Gap("fp32", "e4m3fn", 6);
  Gap("bf16@tensor", "e4m3", 6);
  Gap("dynamic", "e4m3fn", kInfinity);
  Finish();
  EXPECT_EQ(VerdictOf(kSecondMoment), "holds");
  EXPECT_NE(Measured(kSecondMoment).find("3 of 3"), std::string::npos) << Measured(kSecondMoment);
  EXPECT_NE(Measured(kSecondMoment).find("diverged"), std::string::npos);
  EXPECT_NE(Measured(kSecondMoment).find("gap 6.0000"), std::string::npos);
}

TEST_F(Claims, SecondMomentInE4m3HoldsInPartWhereAPairIsClose) {
  Gap("fp32", "e4m3fn", 6);
  Gap("fp32", "e4m3", 3);
  Finish();
  EXPECT_EQ(VerdictOf(kSecondMoment), "holds in part");
}

TEST_F(Claims, SecondMomentInE4m3DoesNotHoldWhereNoPairFails) {
  Gap("e4m3fn", "e4m3fn", 3);
  Gap("e5m2", "e4m3", 0);
  Finish();
  EXPECT_EQ(VerdictOf(kSecondMoment), "does not hold");
}

TEST_F(Claims, SecondMomentIsJudgedUnderThePapersScalingAlone) {
  Gap("fp32", "e4m3fn@block", 50);
  Gap("fp32", "e4m3fn@none", 50);
  Gap("fp32", "e4m3fn@coat", 50);
  Gap("fp32", "e4m3fn+sr", 50);
  Gap("e4m3fn@none", "e4m3fn", 50);
  Gap("e4m3fn", "e5m2", 50);
  Finish();
  EXPECT_EQ(VerdictOf(kSecondMoment), "not measured");
}

TEST_F(Claims, PapersPairInEveryDirection) {
  EXPECT_EQ(VerdictOf(kPapersPair), "not measured");
  Gap("e4m3fn@none", "e5m2@none", 0);
  EXPECT_EQ(VerdictOf(kPapersPair), "not measured");
  Gap("e4m3fn", "e5m2", 1);
  EXPECT_EQ(VerdictOf(kPapersPair), "holds");
  Gap("e4m3", "e5m2", 2);
  EXPECT_EQ(VerdictOf(kPapersPair), "holds in part");
  rows_["final"].clear();
  SetUp();
  Gap("e4m3fn", "e5m2", 2);
  EXPECT_EQ(VerdictOf(kPapersPair), "does not hold");
}

TEST_F(Claims, OnlyPairHoldsInPartWhereAnotherMatches) {
  Gap("e4m3fn", "e5m2", 0.1);
  Gap("e5m2", "e5m2", 0.9);
  Gap("e5m2", "e4m3fn", 40);
  Finish();
  EXPECT_EQ(VerdictOf(kOnlyPair), "holds in part");
  EXPECT_NE(Measured(kOnlyPair).find("1 of 2"), std::string::npos) << Measured(kOnlyPair);
}

TEST_F(Claims, OnlyPairDoesNotHoldWhereAllMatch) {
  Gap("e4m3fn", "e5m2", 0.1);
  Gap("e5m2", "e5m2", 0.9);
  Finish();
  EXPECT_EQ(VerdictOf(kOnlyPair), "does not hold");
}

// What is not able to converge is not the only pair that is.
TEST_F(Claims, OnlyPairDoesNotHoldWhereItDoesNotMatchItself) {
  Gap("e4m3fn", "e5m2", 10);
  Gap("e5m2", "e5m2", 20);
  Finish();
  EXPECT_EQ(VerdictOf(kOnlyPair), "does not hold");
  EXPECT_NE(Measured(kOnlyPair).find("nor does"), std::string::npos) << Measured(kOnlyPair);
}

TEST_F(Claims, OnlyPairIsNotMeasuredWithoutThePairOrWithoutOthers) {
  Gap("e5m2", "e5m2", 20);
  EXPECT_EQ(VerdictOf(kOnlyPair), "not measured");
  rows_["final"].clear();
  SetUp();
  Gap("e4m3fn", "e5m2", 0);
  Gap("e5m2@block", "e5m2@block", 0);  // not as the paper scales
  Gap("bf16", "bf16", 0);              // not FP8
  EXPECT_EQ(VerdictOf(kOnlyPair), "not measured");
}

TEST_F(Claims, NothingIsMeasuredWhereFp32Diverged) {
  rows_["final"].clear();
  Gap("fp32", "fp32", kInfinity);
  Gap("e4m3fn", "e5m2", 0);
  Gap("e5m2", "e5m2", 20);
  Gap("e4m3fn", "e4m3fn", kInfinity);
  Finish();
  EXPECT_EQ(VerdictOf(kSecondMoment), "not measured");
  EXPECT_EQ(VerdictOf(kPapersPair), "not measured");
  EXPECT_EQ(VerdictOf(kOnlyPair), "not measured");
  EXPECT_NE(Summarised().notes.find("no pair is judged"), std::string::npos);
}

// 8 devices: 18 %; 4: 29 %.
TEST_F(Claims, MemoryHoldsInPartByTheAccountedBytes) {
  EXPECT_EQ(VerdictOf(kMemory), "not measured");
  Gap("e4m3fn", "e5m2", 0);
  Finish();
  EXPECT_EQ(VerdictOf(kMemory), "holds in part");
  EXPECT_NE(Measured(kMemory).find("8 devices: 30.3 GB a device, 18.2 % less"), std::string::npos)
      << Measured(kMemory);
  EXPECT_NE(Measured(kMemory).find("4 devices: 33.7 GB a device, 28.6 % less"), std::string::npos)
      << Measured(kMemory);
}

TEST_F(Claims, MemoryIsJudgedOnEightDevices) {
  Gap("e4m3fn", "e5m2", 0);
  Finish();
  const auto save = [&](double on_8, double elsewhere) {
    Table& memory = tables_.at("memory");
    for (std::vector<std::string>& row : memory.rows) {
      row.at(memory.Column("saving")) =
          FormatCell(row.at(memory.Column("devices")) == "8" ? on_8 : elsewhere);
    }
    return SummaryOf(tables_).claims.at(kMemory).verdict;
  };
  EXPECT_EQ(save(0.3, 0.5), "holds");
  EXPECT_EQ(save(0.18, 0.3), "holds in part");
  EXPECT_EQ(save(0.18, 0.5), "does not hold");
  EXPECT_EQ(save(0.5, 0.5), "does not hold");
}

TEST_F(Claims, QuoteThePaperWithItsPlace) {
  const Summary summary = Summarised();
  ASSERT_EQ(summary.claims.size(), 4u);
  for (const Claim& claim : summary.claims) {
    const bool placed = claim.claim.find("Figure 5") != std::string::npos ||
                        claim.claim.find("Table 4") != std::string::npos;
    EXPECT_TRUE(placed) << claim.claim;
  }
}

TEST_F(Claims, NotesHaveTheBaselineTheOtherPairsAndTheBound) {
  Gap("e4m3fn", "e5m2", 0);
  Gap("e4m3fn@coat", "e4m3fn@coat", 3);
  Gap("bf16", "bf16", 0);
  const std::string notes = Summarised().notes;
  EXPECT_NE(notes.find("Baseline: fp32 / fp32: loss 1.0000"), std::string::npos) << notes;
  EXPECT_NE(notes.find("\n  e4m3fn@coat / e4m3fn@coat: loss 4.0000, gap 3.0000"), std::string::npos)
      << notes;
  EXPECT_NE(notes.find("\n  bf16 / bf16"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("e4m3fn / e5m2"), std::string::npos) << notes;  // a claim has it
  EXPECT_NE(notes.find("1.2346 nats"), std::string::npos) << notes;
  EXPECT_NE(notes.find("1 seed:"), std::string::npos) << notes;
}

TEST_F(Claims, NotesDoNotAskForMoreThanThreeSeeds) {
  seeds_ = 2;
  EXPECT_NE(Summarised().notes.find("2 seeds:"), std::string::npos);
  seeds_ = 3;
  EXPECT_EQ(Summarised().notes.find("--seeds"), std::string::npos);
}

}  // namespace
}  // namespace numsim::experiments::moment_formats
