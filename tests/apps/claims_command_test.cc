// `numsim claims` and its JSON.
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/claims/catalogue.h"
#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ClaimsCommand : public ProgramTest {};

TEST_F(ClaimsCommand, ListsEveryItemOfThePapers) {
  const std::string out = Output("claims");
  for (const experiments::PaperItem& item : experiments::PaperItems()) {
    EXPECT_THAT(out, HasSubstr(std::string(item.source) + "\n"));
  }
  EXPECT_THAT(out, HasSubstr("-> not tested. not built: "));
  EXPECT_THAT(out, HasSubstr("-> moment-formats/both-e5m2-fails: inconclusive (toy, 85 M "));
  EXPECT_THAT(out, HasSubstr("-> update-fidelity/root-learning-rate: exact: holds (mechanism; "));
  // A verdict of another run that differs is named.
  EXPECT_THAT(out, HasSubstr("Also: "));
}

TEST_F(ClaimsCommand, JsonHasEveryFieldAndTheVerdictsOfTheStandard) {
  const nlohmann::json list = nlohmann::json::parse(Output("claims --json"));
  const std::set<std::string> verdicts = {
      "supported", "contradicted", "inconclusive", "not tested", "exact: holds", "exact: refuted"};
  std::set<std::string> sources;
  for (const nlohmann::json& claim : list) {
    for (const char* const field : {"id",
                                    "source",
                                    "statement",
                                    "contrast",
                                    "margin",
                                    "verdict",
                                    "scale",
                                    "word",
                                    "parameters",
                                    "tokens",
                                    "seeds",
                                    "run",
                                    "page",
                                    "also"}) {
      EXPECT_TRUE(claim.contains(field)) << claim.dump() << field;
    }
    EXPECT_TRUE(verdicts.contains(claim.at("verdict"))) << claim.dump();
    sources.insert(claim.at("source"));
  }
  EXPECT_EQ(sources.size(), experiments::PaperItems().size());
}

TEST_F(ClaimsCommand, PaperSelects) {
  const std::string out = Output("claims --paper seed003");
  EXPECT_THAT(out, HasSubstr("[Seed003] Conclusion\n"));
  EXPECT_THAT(out, Not(HasSubstr("[Fishman]")));
  const Outcome wrong = Numsim("claims --paper Fishmann");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean Fishman?"));
}

TEST_F(ClaimsCommand, ScaleSelects) {
  for (const nlohmann::json& claim : nlohmann::json::parse(Output("claims --scale toy --json"))) {
    EXPECT_EQ(claim.at("word"), "toy") << claim.dump();
    EXPECT_GT(claim.at("parameters"), 0) << claim.dump();
    EXPECT_GT(claim.at("tokens"), 0) << claim.dump();
  }
  EXPECT_THAT(Output("claims --scale mechanism"), Not(HasSubstr("(toy, ")));
  EXPECT_EQ(Output("claims --scale paper"), "No published run tests a claim at the scale paper.\n");
  const Outcome wrong = Numsim("claims --scale large");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(
      wrong.err,
      HasSubstr("expected a number of parameters, such as 80M, or one of: mechanism, toy, paper"));
}

TEST_F(ClaimsCommand, ScaleSelectsByTheNumberOfParameters) {
  const auto claims_from = [&](const std::string& least) {
    return nlohmann::json::parse(Output("claims --json --scale " + least));
  };
  const nlohmann::json of_80_million = claims_from("80M");
  EXPECT_FALSE(of_80_million.empty());
  for (const nlohmann::json& claim : of_80_million) {
    EXPECT_GE(claim.at("parameters"), 80'000'000) << claim.dump();
    EXPECT_NE(claim.at("verdict"), "not tested") << claim.dump();
  }
  size_t as_large = 0;
  for (const nlohmann::json& claim : nlohmann::json::parse(Output("claims --json"))) {
    if (claim.at("parameters").is_null() || claim.at("verdict") == "not tested") continue;
    as_large += claim.at("parameters") >= 80'000'000;
  }
  EXPECT_EQ(of_80_million.size(), as_large);
  EXPECT_EQ(claims_from("80000K"), of_80_million);
  EXPECT_EQ(claims_from("0.08B"), of_80_million);
  EXPECT_EQ(claims_from("80000000"), of_80_million);
  EXPECT_TRUE(claims_from("900B").empty());
  for (const std::string wrong : {"80MB", "80 M", "-80M", "0", "M", "1e8M", "nan", "inf", "80m"}) {
    EXPECT_EQ(Numsim("claims --scale '" + wrong + "'").exit_code, 2) << wrong;
  }
}

TEST_F(ClaimsCommand, DescribeShowsTheClaimsWithTheirMargins) {
  const std::string out = Output("describe moment-formats");
  EXPECT_THAT(out, HasSubstr("moment-formats/v-e4m3-fails (difference)"));
  EXPECT_THAT(out, HasSubstr("[Fishman] Section 5.2, [Fishman] Figure 5: The second moment"));
  EXPECT_THAT(out, HasSubstr("margin: 0.02 nats per token"));
}

TEST_F(ClaimsCommand, DescribeAdvisesWithTheVerdictsBesideIt) {
  const std::string out = Output("describe loss-spikes");
  EXPECT_THAT(out, HasSubstr("what to change when a training of yours does this"));
  EXPECT_THAT(out, HasSubstr("Clip updates: --set optimizer.kind=stable-adamw"));
  EXPECT_THAT(out, ContainsRegex("\n    loss-spikes/update-clipping-lowers-loss: [a-z ]+ \\("));
  EXPECT_THAT(Output("describe moment-formats"), Not(HasSubstr("what to change")));
}

}  // namespace
}  // namespace numsim::apps
