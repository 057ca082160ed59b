// `numsim inspect`: one value under every rounding, and exact probabilities.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InspectCommand : public ProgramTest {
 protected:
  // The first line that begins with `key` (blanks at its start do not count), without the key.
  std::string Line(const std::string& arguments, const std::string& key) const {
    const Outcome outcome = Numsim("inspect " + arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    for (std::string line : outcome.Lines()) {
      line.erase(0, line.find_first_not_of(' '));
      if (line.starts_with(key + " ")) return line.substr(key.size());
    }
    ADD_FAILURE() << arguments << ": no line " << key << " in\n" << outcome.out;
    return "";
  }

  // The value that a rounding gives: the last word of its line, before the class.
  std::string Rounded(const std::string& arguments, const std::string& rounding) const {
    std::vector<std::string> words = Words(Line(arguments, rounding));
    while (!words.empty() && std::isalpha(static_cast<unsigned char>(words.back()[0])) != 0 &&
           words.back() != "nan" && words.back() != "inf") {
      words.pop_back();
    }
    return words.empty() ? "" : words.back();
  }
};

TEST_F(InspectCommand, ShowsEveryRoundingOfOneValue) {
  EXPECT_EQ(Rounded("e4m3fn 0.78", "rne"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn 0.78", "rna"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn 0.78", "rtz"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn 0.78", "rtp"), "0.8125");
  EXPECT_EQ(Rounded("e4m3fn 0.78", "rtn"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn 0.78", "odd"), "0.8125");
  EXPECT_THAT(Line("e4m3fn 0.78", "rne"), HasSubstr("0x34"));
  EXPECT_EQ(Rounded("e4m3fn -0.78", "rtp"), "-0.75");
  EXPECT_EQ(Rounded("e4m3fn -0.78", "rtn"), "-0.8125");
}

TEST_F(InspectCommand, ShowsTies) {
  EXPECT_EQ(Rounded("e4m3fn 0.78125", "rne"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn 0.78125", "rna"), "0.8125");
}

// 0.78 lies 0.48 of the way from 0.75 to 0.8125. 0.48 * 2^32 = 2061584302.08.
TEST_F(InspectCommand, ShowsExactProbabilities) {
  for (const char* const variant : {"variant a", "variant b", "variant c"}) {
    const std::string line = Line("e4m3fn 0.78", variant);
    EXPECT_THAT(line, HasSubstr("= 2061584302 / 2^32"));
    EXPECT_THAT(line, HasSubstr("P(0.75) = 0.52"));
    EXPECT_THAT(line, HasSubstr("P(0.8125) = 0.47999"));
  }
}

// 0.48 * 2^4 = 7.68: A cuts it to 7, B and C round it to 8.
TEST_F(InspectCommand, VariantsDifferWithFewBits) {
  EXPECT_THAT(Line("e4m3fn 0.78 --sr-bits 4", "variant a"), HasSubstr("= 7 / 2^4"));
  EXPECT_THAT(Line("e4m3fn 0.78 --sr-bits 4", "variant b"), HasSubstr("= 8 / 2^4"));
  EXPECT_THAT(Line("e4m3fn 0.78 --sr-bits 4", "variant c"), HasSubstr("= 8 / 2^4"));
  // 2.5 / 16 of the gap: B rounds the tie up, C to even.
  EXPECT_THAT(Line("e4m3fn 1.01953125 --sr-bits 4", "variant b"), HasSubstr("= 3 / 2^4"));
  EXPECT_THAT(Line("e4m3fn 1.01953125 --sr-bits 4", "variant c"), HasSubstr("= 2 / 2^4"));
}

// 2^-20 is 2^-11 of the smallest subnormal 2^-9: a clamp of a shift distance would give more.
TEST_F(InspectCommand, ProbabilityFarBelowTheSmallestSubnormalIsExact) {
  const std::string line = Line("e4m3fn 0x1p-20", "variant a");
  EXPECT_THAT(line, HasSubstr("= 2097152 / 2^32"));
}

TEST_F(InspectCommand, SumsAreExact) {
  EXPECT_EQ(Rounded("e4m3fn 0.78125+1e-40", "rne"), "0.8125");
  EXPECT_EQ(Rounded("e4m3fn 0.78125-1e-40", "rne"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn 1e300-1e300", "rne"), "0");
  EXPECT_EQ(Rounded("e4m3fn 0.75+0.03", "rne"), "0.75");
  EXPECT_EQ(Line("e4m3fn 0.75+0.03", "variant a"), Line("e4m3fn 0.78", "variant a"));
  EXPECT_EQ(Rounded("e4m3fn 0.75+0.04", "rne"), "0.8125");
  EXPECT_EQ(Rounded("e4m3fn 1-0.25", "rne"), "0.75");
}

// tests/apps/exact_numbers.py compares many texts with fractions.
TEST_F(InspectCommand, TextOfAnyLengthIsExact) {
  const std::string above = "e4m3fn 0.78125000000000000000000000001";
  EXPECT_THAT(Line(above, "rne"), HasSubstr("0x35"));
  EXPECT_THAT(Line(above, "distances"), HasSubstr("the value lies 0.5 + 1.6e-28 of the gap"));
  EXPECT_THAT(Line(above, "value"), HasSubstr("(exact; nearest float64 0x1.9p-1 (0.78125))"));
  EXPECT_THAT(Line("e4m3fn 1e-400", "rtp"), HasSubstr("0x01"));
  EXPECT_THAT(Line("e4m3fn 1e-400", "distances"), HasSubstr("less than 4.94e-324"));
  EXPECT_THAT(Line("e4m3fn 0.99999999999999999999", "distances"), HasSubstr("the value lies 1 - "));
  EXPECT_THAT(Line("e4m3fn 1" + std::string(5000, '0'), "value"), HasSubstr("(5001 characters)"));
  EXPECT_THAT(Line("e4m3fn 0.75", "value"), HasSubstr("0.75 = float64 0x1.8p-1 (0.75)"));
}

// A profile converts floats, so the text is rounded to one first, once.
TEST_F(InspectCommand, ProfilesSayWhatTheyConvert) {
  const Outcome outcome = Numsim("inspect e4m3fn 0.1 --profile cuda-13");
  EXPECT_THAT(outcome.out,
              HasSubstr("profiles, from float64, to which the value is rounded first"));
  // Between two float32 and just above their middle, where float64 has a tie.
  const Outcome tie = Numsim("inspect e4m3fn 1.000000059604644775390626 --profile all");
  EXPECT_EQ(tie.exit_code, 0);
}

TEST_F(InspectCommand, ShowsOverflowByPolicy) {
  EXPECT_EQ(Rounded("e4m3fn 464", "rne"), "448");
  EXPECT_EQ(Rounded("e4m3fn 465", "rne"), "nan");
  EXPECT_EQ(Rounded("e4m3fn 465", "rne saturate"), "448");
  EXPECT_EQ(Rounded("e4m3fn 465", "rne propagate"), "448");
  EXPECT_EQ(Rounded("e4m3fn 465", "rtz"), "448");
  EXPECT_EQ(Rounded("e5m2 61440", "rne"), "inf");
}

TEST_F(InspectCommand, TakesCodesAndSpecialValues) {
  EXPECT_EQ(Rounded("e4m3fn code:0x34", "rne"), "0.75");
  EXPECT_EQ(Rounded("e4m3fn nan", "rne"), "nan");
  EXPECT_EQ(Rounded("e5m2 inf", "rne"), "inf");
  EXPECT_EQ(Rounded("e5m2 -- -inf", "rne"), "-inf");
  EXPECT_EQ(Rounded("e4m3fn -- -0", "rne"), "-0");
}

TEST_F(InspectCommand, TakesMinusInfinityAsItsMessageSays) {
  EXPECT_EQ(Rounded("e5m2 -inf", "rne"), "-inf");
}

TEST_F(InspectCommand, ShowsTheProbabilityWithUnlimitedBits) {
  const std::string line = Line("e4m3fn 0.78", "unlimited bits");
  EXPECT_THAT(line, HasSubstr("P(0.75) = 0.52"));
}

TEST_F(InspectCommand, ExactValuesHaveNoNeighbours) {
  EXPECT_THAT(Line("e4m3fn 0.75", "neighbours"), HasSubstr("exact"));
  EXPECT_THAT(Numsim("inspect e4m3fn 0.75").out, Not(HasSubstr("stochastic")));
}

TEST_F(InspectCommand, PrintsJson) {
  const Outcome outcome = Numsim("inspect e4m3fn 0.78 --sr-bits 4 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["format"], "e4m3fn");
  EXPECT_EQ(json["neighbours"]["toward_zero"]["code"], "0x34");
  EXPECT_EQ(json["neighbours"]["away_from_zero"]["value"], "0.8125");
  EXPECT_EQ(json["roundings"][0]["mode"], "rne");
  EXPECT_EQ(json["roundings"][0]["bits"], "0 0110 100");
  // 0.48 * 16 = 7.68: variant A cuts it, B and C round it.
  EXPECT_EQ(json["stochastic"][0]["words_away_from_zero"], 7);
  EXPECT_EQ(json["stochastic"][1]["words_away_from_zero"], 8);
  EXPECT_EQ(json["stochastic"][2]["words_away_from_zero"], 8);
}

TEST_F(InspectCommand, JsonOfExactAndInfiniteValuesHasNoNeighbours) {
  const auto exact = nlohmann::json::parse(Numsim("inspect e4m3fn 448 --json").out);
  EXPECT_TRUE(exact["exact"].get<bool>());
  EXPECT_TRUE(exact["neighbours"].is_null());
  EXPECT_TRUE(exact["stochastic"].empty());
  const auto infinite = nlohmann::json::parse(Numsim("inspect e5m2 inf --json").out);
  EXPECT_FALSE(infinite["exact"].get<bool>());
  EXPECT_EQ(infinite["roundings"][0]["value"], "inf");
  EXPECT_EQ(infinite["roundings"][1]["overflow"], "saturate");
  EXPECT_EQ(infinite["roundings"][1]["value"], "57344");
}

TEST_F(InspectCommand, ProfilesAreNotInTheJson) {
  EXPECT_EQ(Numsim("inspect e4m3fn 1 --json --profile all").exit_code, 2);
}

}  // namespace
}  // namespace numsim::apps
