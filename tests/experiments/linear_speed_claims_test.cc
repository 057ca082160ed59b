// The claims of `linear-speed`, from hand-made tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/linear_speed/linear_speed.h"
#include "tests/experiments/result_tables.h"

namespace numsim::experiments::linear_speed {
namespace {

using ::testing::HasSubstr;

using Numbers = std::vector<double>;

// Where layers are timed.
struct Size {
  int dim = 4096, tokens = 16384;
};

class LinearSpeedClaims : public ::testing::Test {
 protected:
  void Operation(const std::string& kind,
                 Size size,
                 size_t seed,
                 const std::string& operation,
                 const std::string& part,
                 double seconds,
                 double kept_bytes = 0) {
    results_.Add("operations",
                 {{"device", "a GPU"},
                  {"backend", backend_},
                  {"threads", 1},
                  {"library", "cuBLASLt"},
                  {"kind", kind},
                  {"format", kind == "standard" ? "bf16" : format_},
                  {"high_precision", "bf16"},
                  {"product", "library"},
                  {"width", 1},
                  {"dim", size.dim},
                  {"tokens", size.tokens},
                  {"seed", seed},
                  {"operation", operation},
                  {"part", part},
                  {"seconds", seconds},
                  {"kept_bytes", kept_bytes}});
  }
  // A standard layer whose three GEMMs take 1 s each.
  void Standard(Size size, size_t seeds) {
    for (size_t seed = 0; seed < seeds; ++seed) {
      for (const char* const gemm :
           {"forward product", "input gradient product", "weight gradient product"}) {
        Operation("standard", size, seed, gemm, "product", 1);
      }
      Operation("standard", size, seed, "other", "other", 0);
    }
  }
  // For seeds 0, 1, ...: SwitchBack whose two int8 GEMMs take `gemm` seconds each and whose two
  // quantise operations `quantize` each.
  void SwitchBack(Size size, const Numbers& gemm, const Numbers& quantize) {
    for (size_t seed = 0; seed < gemm.size(); ++seed) {
      Operation("switchback", size, seed, "forward product", "product", gemm[seed]);
      Operation("switchback", size, seed, "input gradient product", "product", gemm[seed]);
      Operation("switchback", size, seed, "weight gradient product", "product", 1);
      Operation("switchback", size, seed, "quantize X", "quantize", quantize[seed]);
      Operation("switchback", size, seed, "quantize W", "quantize", quantize[seed]);
      Operation("switchback", size, seed, "other", "other", 0);
    }
  }
  void Both(Size size, const Numbers& gemm, const Numbers& quantize) {
    Standard(size, gemm.size());
    SwitchBack(size, gemm, quantize);
  }
  // SwitchBack and SwitchBackM that save so many bytes for backward.
  void Saving(Size size, double plain, double saving) {
    Operation("switchback", size, 0, "other", "other", 0, plain);
    Operation("switchback-m", size, 0, "other", "other", 0, saving);
  }
  // Layers that confirm every claim about one size.
  void Good(Size size) { Both(size, {0.55, 0.551, 0.549}, {0.1, 0.101, 0.099}); }
  void Clear() { results_ = ResultTables(LinearSpeed()); }
  std::string VerdictOf(const std::string& name) { return results_.OwnVerdictOf(name); }
  std::string ReasonOf(const std::string& name) { return results_.ClaimOf(name).result.reason; }
  double ValueOf(const std::string& name) {
    return results_.ClaimOf(name).result.contrasts.at(0).value;
  }

  std::string backend_ = "cuda", format_ = "int8";
  ResultTables results_{LinearSpeed()};
};

const std::vector<std::string> kOfOneSize = {"int8-gemms",
                                             "quantize-operations",
                                             "saves-time",
                                             "quantize-share",
                                             "quantize-share-large-dim"};

TEST_F(LinearSpeedClaims, AreJudgedByTheirNumbers) {
  struct Case {
    std::string name;
    Numbers gemm, quantize;
    std::string verdict;
  };
  const Numbers half = {0.55, 0.551, 0.549}, tenth = {0.1, 0.101, 0.099};
  const std::vector<Case> cases = {
      {"int8-gemms", half, tenth, "supported"},
      {"int8-gemms", {0.65, 0.651, 0.649}, tenth, "contradicted"},
      {"int8-gemms", {0.45, 0.451, 0.449}, tenth, "contradicted"},
      {"int8-gemms", {0.50, 0.62, 0.56}, tenth, "inconclusive"},
      {"quantize-operations", half, tenth, "supported"},
      {"quantize-operations", half, {0.4, 0.41, 0.39}, "contradicted"},
      {"quantize-operations", half, {0.1, 0.9, 0.3}, "inconclusive"},
      {"saves-time", half, tenth, "supported"},  // 23 %
      {"saves-time", {0.9, 0.91, 0.89}, tenth, "contradicted"},
      {"saves-time", {0.5, 1, 0.8}, tenth, "inconclusive"},
      {"quantize-share", half, tenth, "supported"},  // 8.7 %
      {"quantize-share", half, {0.4, 0.41, 0.39}, "contradicted"},
      {"quantize-share", half, {0.1, 0.6, 0.3}, "inconclusive"},
      {"quantize-share-large-dim", half, tenth, "supported"},
      {"quantize-share-large-dim", half, {0.2, 0.201, 0.199}, "contradicted"},  // 16 %
      {"quantize-share-large-dim", half, {0.1, 0.2, 0.15}, "inconclusive"}};
  for (const Case& one : cases) {
    Clear();
    Both({}, one.gemm, one.quantize);
    EXPECT_EQ(VerdictOf(one.name), one.verdict) << one.name << one.gemm[0] << one.quantize[0];
  }
}

TEST_F(LinearSpeedClaims, HaveTheirUnits) {
  Both({}, {0.5, 0.5, 0.5}, {0.1, 0.1, 0.1});
  EXPECT_DOUBLE_EQ(ValueOf("int8-gemms"), -5);  // percent, from 55
  EXPECT_DOUBLE_EQ(ValueOf("quantize-operations"), -1);
  EXPECT_NEAR(ValueOf("saves-time"), 100 * (1 - 2.2 / 3), 1e-12);
  EXPECT_NEAR(ValueOf("quantize-share"), 100 * 0.2 / 2.2 - 25, 1e-12);
  EXPECT_NEAR(ValueOf("quantize-share-large-dim"), 100 * 0.2 / 2.2 - 12, 1e-12);
}

TEST_F(LinearSpeedClaims, OneMeasurementDecidesNothing) {
  Both({}, {0.55}, {0.1});
  for (const std::string& name : kOfOneSize) {
    EXPECT_EQ(VerdictOf(name), "inconclusive") << name;
    if (name == "int8-gemms") continue;  // has no control
    EXPECT_EQ(ReasonOf(name), "one seed") << name;
  }
}

TEST_F(LinearSpeedClaims, NeedSizesOfThePaper) {
  const Numbers slow = {2, 2.1, 1.9};
  Both({.dim = 512}, slow, slow);
  Both({.tokens = 8192}, slow, slow);
  for (const std::string& name : kOfOneSize) {
    EXPECT_THAT(ReasonOf(name), HasSubstr("out of reach: no dim")) << name;
  }
  Good({.dim = 1024});
  EXPECT_EQ(VerdictOf("saves-time"), "supported");
  EXPECT_EQ(VerdictOf("quantize-share"), "supported");
  EXPECT_THAT(ReasonOf("quantize-share-large-dim"), HasSubstr("no dim of 4096"));
  Good({.dim = 4096});
  for (const std::string& name : kOfOneSize) EXPECT_EQ(VerdictOf(name), "supported") << name;
}

TEST_F(LinearSpeedClaims, OneSizeThatSavesNothingOrQuantisesLongContradicts) {
  Good({});
  Both({.tokens = 32768}, {0.55, 0.55, 0.55}, {0.9, 0.91, 0.89});
  EXPECT_EQ(VerdictOf("saves-time"), "contradicted");
  EXPECT_EQ(VerdictOf("quantize-share"), "contradicted");
  EXPECT_EQ(VerdictOf("quantize-share-large-dim"), "contradicted");
  EXPECT_THAT(results_.ClaimOf("saves-time").evidence.measured,
              HasSubstr("dim 4096, 16384 tokens: 23.3"));
}

TEST_F(LinearSpeedClaims, AreAboutTheTimesOfAGpuInInt8) {
  backend_ = "avx3";
  Good({});
  for (const std::string& name : kOfOneSize) {
    EXPECT_THAT(ReasonOf(name), HasSubstr("out of reach: these are times of a processor")) << name;
  }
  Clear();
  backend_ = "cuda";
  format_ = "e4m3fn";
  Good({});
  EXPECT_THAT(ReasonOf("saves-time"), HasSubstr("--formats leave out"));
  format_ = "int8";
  SwitchBack({}, {2, 2.1, 1.9}, {1, 1, 1});
  EXPECT_EQ(VerdictOf("saves-time"), "contradicted");
  Clear();
  SwitchBack({}, {0.5, 0.5, 0.5}, {0.1, 0.1, 0.1});
  EXPECT_THAT(ReasonOf("saves-time"), HasSubstr("leave out standard"));
}

TEST_F(LinearSpeedClaims, SwitchBackMSavesMemoryIfItDoesAtEverySizeOfThePaper) {
  backend_ = "avx3";  // bytes are the same on any machine
  Standard({}, 1);
  Saving({.dim = 512}, 100, 300);
  EXPECT_EQ(VerdictOf("switchback-m-memory"), "not tested");
  Saving({}, 100, 60);
  EXPECT_EQ(VerdictOf("switchback-m-memory"), "exact: holds");
  EXPECT_EQ(results_.ClaimOf("switchback-m-memory").evidence.measured,
            "  dim 4096, 16384 tokens: 60 % of the bytes of switchback");
  Saving({.dim = 1024}, 100, 100);
  EXPECT_EQ(VerdictOf("switchback-m-memory"), "exact: refuted");
}

TEST_F(LinearSpeedClaims, GrowthIsFromTheSmallestToTheGreatestSize) {
  const std::vector<std::pair<Numbers, std::string>> cases = {
      {{0.5, 0.51, 0.49}, "supported"},  // 27 % more than with 0.9
      {{0.85, 0.86, 0.84}, "contradicted"},
      {{0.2, 1.2, 0.8}, "inconclusive"},
      {{0.5}, "inconclusive"}};
  for (const auto& [gemm, verdict] : cases) {
    const Numbers slow(gemm.size(), 0.9), quick(gemm.size(), 0.1);
    Clear();
    Both({.dim = 1024}, slow, quick);
    Both({.dim = 2048}, quick, quick);  // between them
    Both({.dim = 4096}, gemm, quick);
    EXPECT_EQ(VerdictOf("grows-with-dim"), verdict) << testing::PrintToString(gemm);
    EXPECT_EQ(VerdictOf("grows-with-tokens"), "not tested");
    Clear();
    Both({.tokens = 131072}, gemm, quick);
    Both({.tokens = 16384}, slow, quick);
    EXPECT_EQ(VerdictOf("grows-with-tokens"), verdict) << testing::PrintToString(gemm);
    EXPECT_THAT(ReasonOf("grows-with-dim"), HasSubstr("--dims has a single size"));
  }
}

}  // namespace
}  // namespace numsim::experiments::linear_speed
