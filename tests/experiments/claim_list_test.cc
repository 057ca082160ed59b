// Tests the list of `numsim claims`.
#include "experiments/runner/claim_list.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

TEST(ClaimList, HasEveryItemWithItsClaimsOrTheReasonWhyItHasNone) {
  const std::vector<ListedItem> items = ListClaims("");
  ASSERT_EQ(items.size(), PaperItems().size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].item, &PaperItems()[i]);
    EXPECT_EQ(items[i].claims.empty(), !items[i].item->untested.empty()) << items[i].item->id;
  }
}

TEST(ClaimList, QuotesThePublishedVerdict) {
  const std::set<std::string> verdicts = {
      "supported", "contradicted", "inconclusive", "not tested", "exact: holds", "exact: refuted"};
  size_t published = 0;
  for (const ListedItem& item : ListClaims("")) {
    for (const ListedClaim& claim : item.claims) {
      EXPECT_TRUE(verdicts.contains(claim.published.verdict)) << claim.published.verdict;
      const PublishedVerdict quoted = QuotedVerdict(claim.spec->id);
      EXPECT_EQ(claim.published.verdict, quoted.verdict);
      EXPECT_EQ(claim.published.page, quoted.page);
      if (quoted.page.empty()) {
        EXPECT_EQ(quoted.reason, "no published run") << claim.spec->id;
        continue;
      }
      ++published;
      EXPECT_FALSE(quoted.scale.empty());
    }
  }
  EXPECT_GT(published, 0u);
}

TEST(ClaimList, SelectsAPaperInAnyCaseAndNamesThePapersOtherwise) {
  EXPECT_EQ(ListClaims("fishman").size(), FishmanItems().size());
  EXPECT_EQ(ErrorOf([] { ListClaims("Fishmann"); }),
            "--paper 'Fishmann': did you mean Fishman? expected one of: SwitchBack, Fishman, "
            "Seed003, NVFP4, FourOverSix, Quartet-II, UFP4, AMD-MXFP4, MXFP4-SR, INT-FP");
}

// Which of the runs is quoted, by the tables alone.
TEST(ClaimList, QuotesTheLargestRunThatTestsAClaimAndNamesThoseThatDiffer) {
  size_t with_others = 0;
  for (const ListedItem& item : ListClaims("")) {
    for (const ListedClaim& claim : item.claims) {
      const PublishedVerdict& quoted = claim.published;
      std::set<std::string> others;
      for (const PublishedRun& run : PublishedRuns()) {
        const Frame rows = Frame(run.verdicts).Where("claim", claim.spec->id);
        if (rows.Empty() || rows.Text("verdict") == "not tested") continue;
        if (rows.Text("verdict") != quoted.verdict) others.insert(run.directory);
        if (rows.Text("parameters").empty()) continue;
        // Layer-scales, a fifth of a percent, make no larger model.
        EXPECT_LE(rows.Number("parameters"), 1.05 * quoted.parameters) << run.directory;
        if (rows.Number("parameters") > 0.95 * quoted.parameters) {
          EXPECT_LE(rows.Number("tokens"), 1.05 * quoted.tokens) << run.directory;
        }
      }
      std::set<std::string> named;
      for (const PublishedVerdict& other : quoted.others) named.insert(other.directory);
      EXPECT_EQ(named, others) << claim.spec->id;
      with_others += others.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(with_others, 0u);
}

TEST(ClaimList, SelectsAScale) {
  size_t all = 0, selected = 0;
  for (const ListedItem& item : ListClaims("")) {
    for (const ListedClaim& claim : item.claims) all += claim.published.verdict != "not tested";
  }
  for (const auto& [scale, word] :
       {std::pair{"mechanism", "mechanism"}, {"toy", "toy"}, {"paper", "paper scale"}}) {
    for (const ListedItem& item : ListClaims("", scale)) {
      EXPECT_FALSE(item.claims.empty());
      for (const ListedClaim& claim : item.claims) {
        EXPECT_EQ(claim.published.word, word);
        EXPECT_NE(claim.published.verdict, "not tested");
        ++selected;
      }
    }
  }
  EXPECT_EQ(selected, all);
  EXPECT_EQ(
      ErrorOf([] { ListClaims("", "toys"); }),
      "--scale 'toys': did you mean toy? expected a number of parameters, such as 80M, or one of: "
      "mechanism, toy, paper");
}

}  // namespace
}  // namespace numsim::experiments
