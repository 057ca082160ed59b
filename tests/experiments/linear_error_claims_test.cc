// The claims of `linear-error`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/experiments/linear_error_fixture.h"

namespace numsim::experiments::linear_error {
namespace {

using ::testing::HasSubstr;

class LinearErrorClaims : public MadeUpErrors {
 protected:
  std::string VerdictOf(const std::string& name) { return results_.OwnVerdictOf(name); }
  std::string ReasonOf(const std::string& name) { return results_.ClaimOf(name).result.reason; }
  double ValueOf(const std::string& name) {
    return results_.ClaimOf(name).result.contrasts.at(0).value;
  }
};

// An error of dW whose power of b is larger by `spread` for each seed, `power` for the second one.
Law Scattered(double power, double spread) {
  return [=](const std::string& product, double inner, int seed) {
    return Growing(power + spread * (seed - 1))(product, inner, 0);
  };
}

TEST_F(LinearErrorClaims, NoiseGrowsLinearlyUnlessSigmaGrowsToo) {
  Add("normal", "llm-int8", Flat(0.01), 0.03);
  Add("normal", "tensor-wise", Flat(0.01), 0.5);
  Add("coherent", "llm-int8", Flat(0.01), 0.5);
  for (const char* const claim : {"grows-dw-int8", "linear-dw-int8", "linear-y-int8"}) {
    EXPECT_EQ(VerdictOf(claim), "supported") << claim;
  }
  EXPECT_NEAR(ValueOf("linear-y-int8"), 0.03, 1e-9);
  EXPECT_EQ(results_.ClaimOf("linear-y-int8").margin, 0.07);
  Start();
  Add("normal", "llm-int8", Flat(0.01), 0.14);
  EXPECT_EQ(VerdictOf("grows-dw-int8"), "supported");
  EXPECT_EQ(VerdictOf("linear-dw-int8"), "contradicted");
  Start();
  Add("normal", "llm-int8", Flat(0.01), -0.6);
  EXPECT_EQ(VerdictOf("grows-dw-int8"), "contradicted");
}

TEST_F(LinearErrorClaims, NoiseDrownsTheSignalWhereTheRelativeErrorGrows) {
  Add("normal", "llm-int8", Growing(0.1));
  Add("student-t3", "llm-int8", Growing(0.5));
  Add("normal", "switchback", Growing(0.7));
  EXPECT_EQ(VerdictOf("drowns-dw-int8"), "contradicted");
  EXPECT_NEAR(ValueOf("drowns-dw-int8"), 0.1, 1e-9);
  EXPECT_EQ(VerdictOf("drowns-dw-int8-student-t3"), "supported");
  EXPECT_FALSE(results_.ClaimOf("drowns-dw-int8-student-t3").spec->primary);
  EXPECT_EQ(VerdictOf("drowns-dw-e4m3fn"), "not tested");
  Start();
  Add("normal", "llm-int8", Scattered(0.3, 0.2));
  EXPECT_EQ(VerdictOf("drowns-dw-int8"), "inconclusive");
}

TEST_F(LinearErrorClaims, TwoLengthsShowNoLine) {
  tokens_ = {256, 512};
  widths_ = {128};
  Add("normal", "llm-int8", Growing(0.7));
  EXPECT_EQ(VerdictOf("drowns-dw-int8"), "not tested");
  EXPECT_THAT(ReasonOf("drowns-dw-int8"), HasSubstr("two lengths"));
  EXPECT_THAT(ReasonOf("drowns-dw-int8"), HasSubstr("try --tokens-low 32"));
  EXPECT_THAT(ReasonOf("linear-y-int8"),
              HasSubstr("one length, a slope needs three; use more --dims"));
}

TEST_F(LinearErrorClaims, RatiosOfClipAreThoseOfTheLengths) {
  tokens_ = {4096, 65536};
  widths_ = {1280, 2560, 5120};
  Add("normal", "llm-int8", Flat(0.01), 0.1);
  EXPECT_EQ(VerdictOf("clip-gradient-int8"), "supported");
  EXPECT_NEAR(ValueOf("clip-gradient-int8"), 0.1 * std::log2(51.2), 1e-9);
  Start();
  Add("normal", "llm-int8", Flat(0.01), 0.3);
  EXPECT_EQ(VerdictOf("clip-gradient-int8"), "contradicted");
  Start();
  tokens_ = {4096};
  Add("normal", "llm-int8", Flat(0.01));
  EXPECT_THAT(ReasonOf("clip-gradient-int8"),
              HasSubstr("out of reach: no weight-gradient / 65536"));
}

TEST_F(LinearErrorClaims, TheWeightGradientIsTheNoisiestGemm) {
  Add("normal", "llm-int8", Growing(0.5));  // 4 % against 1 %
  Add("student-t3", "llm-int8", Growing(-0.1));
  EXPECT_EQ(VerdictOf("dw-noisiest-int8"), "supported");
  EXPECT_NEAR(ValueOf("dw-noisiest-int8"), 2 + std::log2(1.2) / 3, 1e-9);
  EXPECT_EQ(VerdictOf("dw-noisiest-int8-student-t3"), "contradicted");
  Start();
  Add("normal", "llm-int8", Scattered(0.3, 0.2));
  EXPECT_EQ(VerdictOf("dw-noisiest-int8"), "inconclusive");
}

// Both other GEMMs count: dW is noisier than Y alone here.
TEST_F(LinearErrorClaims, DxIsOneOfTheOtherGemms) {
  Add("normal", "llm-int8", [](const std::string& product, double, int) {
    return product == kForward ? 0.01 : 0.04;
  });
  EXPECT_EQ(VerdictOf("dw-noisiest-int8"), "contradicted");
}

TEST_F(LinearErrorClaims, TheNoisiestGemmIsOutOfReachOfShortSums) {
  tokens_ = {256, 2048};
  Add("normal", "llm-int8", Growing(0.5));
  EXPECT_EQ(VerdictOf("dw-noisiest-int8"), "not tested");
  EXPECT_THAT(ReasonOf("dw-noisiest-int8"), HasSubstr("out of reach: b = 2048"));
}

TEST_F(LinearErrorClaims, SwitchBackSparesTheWeightGradient) {
  Add("normal", "llm-int8", Flat(0.04));
  EXPECT_EQ(VerdictOf("switchback-spares-dw-int8"), "not tested");
  Add("normal", "switchback", Growing(0.1));  // below 1.4 % at the most tokens
  EXPECT_EQ(VerdictOf("switchback-spares-dw-int8"), "supported");
  Start();
  Add("normal", "llm-int8", Flat(0.04));
  Add("normal", "switchback", Growing(0.4));  // 3 %, after 1 % at the fewest
  EXPECT_EQ(VerdictOf("switchback-spares-dw-int8"), "contradicted");
}

TEST_F(LinearErrorClaims, SwitchBackSufficesIfNoGemmIsAboveTheThreshold) {
  const auto only = [](const std::string& bad) {
    return [bad](const std::string& product, double, int) { return product == bad ? 0.06 : 0.01; };
  };
  Add("normal", "switchback", Growing(0.1));
  Add("normal", "llm-int8", Flat(0.2));
  Add("student-t3", "switchback", only(kForward));
  Add("outlier-columns", "switchback", only(kInputGradient));
  Add("outlier-tokens", "switchback", only(kWeightGradient));
  EXPECT_EQ(VerdictOf("switchback-suffices-int8"), "supported");
  EXPECT_NEAR(ValueOf("switchback-suffices-int8"), std::pow(16, 0.1) * (1 + 0.2 / 3) - 5, 1e-9);
  for (const char* const operands : {"student-t3", "outlier-columns", "outlier-tokens"}) {
    EXPECT_EQ(VerdictOf(std::string("switchback-suffices-int8-") + operands), "contradicted");
  }
  EXPECT_EQ(VerdictOf("switchback-suffices-int8-coherent"), "not tested");
}

TEST_F(LinearErrorClaims, OfTensorsStandBesideThoseOfNormalOperands) {
  Start({{"input", "some-{seed}.npy"}, {"tensor-x", "a"}, {"tensor-w", "b"}, {"tensor-g", "c"}});
  widths_.clear();
  Add("normal", "llm-int8", Growing(-0.1));
  Add("file x=a w=b g=c", "llm-int8", Growing(0.5));
  Add("file x=a w=b g=c", "switchback", Growing(0.1));
  EXPECT_EQ(VerdictOf("drowns-dw-int8"), "contradicted");
  EXPECT_EQ(VerdictOf("drowns-dw-int8-tensors"), "supported");
  EXPECT_EQ(VerdictOf("dw-noisiest-int8"), "contradicted");
  EXPECT_EQ(VerdictOf("dw-noisiest-int8-tensors"), "supported");
  EXPECT_EQ(VerdictOf("switchback-suffices-int8-tensors"), "supported");
  EXPECT_EQ(VerdictOf("linear-y-int8"), "not tested");
}

// Seeds that choose rows of the same tensors do not scatter as trainings do.
TEST_F(LinearErrorClaims, TensorsOfOneTrainingAreAnIllustration) {
  const Overrides all = {{"tensor-x", "a"}, {"tensor-w", "b"}, {"tensor-g", "c"}};
  for (const char* const input : {"some.npy", "some.npy,w{seed}.npy"}) {
    Overrides options = all;
    options["input"] = input;
    Start(options);
    Add("file x=a w=b g=c", "llm-int8", Growing(0.5));
    EXPECT_THAT(ReasonOf("drowns-dw-int8-tensors"), HasSubstr("one training is an illustration"));
  }
  Start({{"input", "some-{seed}.npy"}, {"tensor-x", "a"}, {"tensor-w", "b"}});
  Add("file x=a w=b", "llm-int8", Growing(0.5));
  EXPECT_EQ(ReasonOf("drowns-dw-int8-tensors"),
            "--tensor-g is not given, so that operand is drawn");
}

TEST_F(LinearErrorClaims, AreNotTestedWithoutTheKindsAndInconclusiveForOneSeed) {
  Add("normal", "standard", Flat(0.01));
  results_.Finish();
  for (const ClaimSpec& claim : results_.experiment().claims) {
    EXPECT_EQ(VerdictOf(claim.id.substr(claim.id.find('/') + 1)), "not tested") << claim.id;
  }
  Start({}, 1);
  Add("normal", "llm-int8", Growing(0.5));
  for (const char* const claim : {"grows-dw-int8", "drowns-dw-int8", "dw-noisiest-int8"}) {
    EXPECT_EQ(ReasonOf(claim), "one seed");
  }
}

TEST_F(LinearErrorClaims, NotesNameWhereSwitchBackIsNeeded) {
  Start({}, 1);
  for (const char* const operands : {"normal", "student-t3", "outlier-columns"}) {
    const bool columns = std::string(operands) == "outlier-columns";
    Add(operands, "switchback", Flat(columns ? 0.2 : 0.01));
    Add(operands, "llm-int8", std::string(operands) == "student-t3" ? Growing(0.7) : Flat(0.01));
  }
  const std::string notes = results_.experiment().notes(results_.settings(), results_.Finish());
  EXPECT_THAT(notes, HasSubstr("are not: student-t3 int8. Not needed"));
  EXPECT_THAT(notes, HasSubstr("not above it: normal int8. Not enough"));
  EXPECT_THAT(notes, HasSubstr("under SwitchBack too: outlier-columns int8."));
}

}  // namespace
}  // namespace numsim::experiments::linear_error
