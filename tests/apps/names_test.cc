// Names of formats through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/apps/program.h"
#include "tests/support/format_names.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

using NamesTest = ProgramTest;

TEST_F(NamesTest, MeanWhatTheirSourcesMean) {
  std::set<std::string> seen;
  for (const NameRow& row : ReadNameRows()) {
    if (!seen.insert(row.name).second) continue;
    SCOPED_TRACE(row.source + " " + row.name);
    const Outcome outcome = Numsim(std::vector<std::string>{"formats", row.name, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["name"], row.format);
    EXPECT_EQ(json["bits"], row.bits);
    EXPECT_EQ(json["max"].get<float>(), row.largest);
    EXPECT_EQ(json["min_positive"].get<float>(), row.smallest);
    EXPECT_EQ(json.contains("warning"), row.has_note);
    if (!json.contains("codes")) continue;
    uint64_t finite = 0;
    for (const auto& code : json["codes"]) {
      finite +=
          code["class"] == "zero" || code["class"] == "subnormal" || code["class"] == "normal";
      if (code["code"] == row.nan) {
        EXPECT_EQ(code["class"], "NaN");
      }
    }
    EXPECT_EQ(finite, row.finite);
  }
}

TEST_F(NamesTest, OfTwoMeaningsHaveTheirNoteInEveryCommand) {
  PutNpy<float>("x.npy", ElementType::kF32, {1, 2, 3, 4}, {2, 2});
  for (
      const char* words :
      {"inspect e4m3 6",
       "cast x.npy c.npy --format e4m3",
       "stats x.npy --format bf16,e4m3",
       "stats x.npy --format E4M3 --csv -",
       "gemm x.npy x.npy y.npy --format e4m3",
       "update x.npy x.npy w.npy --format e4m3 --rule naive --lr 0.1",
       "oracle gen --op sqrt --format e4m3 --level random:3",
       "oracle answer --op sqrt --format e4m3",
       "run moment-formats --m fp32 --v e4m3,zzz",
       "train --preset tiny --set optimizer.v=e4m3 --describe-config",
       "train --preset tiny --set linear.kind=tensor-wise --set linear.accumulate=e4m3 --describe-config",
       "formats e4m3"}) {
    SCOPED_TRACE(words);
    const Outcome outcome = Numsim(words);
    EXPECT_THAT(outcome.err + outcome.out,
                HasSubstr("e4m3 ends at 240; OCP E4M3 of papers is e4m3fn"));
  }
  EXPECT_THAT(Numsim("inspect e1m2 1").err, HasSubstr("e1m2 follows IEEE 754 and ends at 1.5"));
  EXPECT_EQ(Numsim("inspect e2m1 6").err, "");
  EXPECT_EQ(Numsim("inspect F8_E4M3 448").err, "");
}

TEST_F(NamesTest, OfFormatsWithScalesGetTheSpellingOfOptions) {
  const Outcome outcome = Numsim("inspect mxfp4 6");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--format e2m1fn --granularity block:32 --scale e8m0"));
}

}  // namespace
}  // namespace numsim::apps
