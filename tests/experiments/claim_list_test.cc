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
            "Seed003");
}

}  // namespace
}  // namespace numsim::experiments
