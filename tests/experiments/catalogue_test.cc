// Tests the list of everything in the papers. The expected numbers were counted in the texts.
#include "experiments/claims/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::StartsWith;

std::set<std::string> Numbered(const std::string& prefix, int last) {
  std::set<std::string> ids;
  for (int number = 1; number <= last; ++number) ids.insert(prefix + std::to_string(number));
  return ids;
}

// Returns the ids of a paper without its name and without the sections of the text: those are
// listed only where a claim needs them.
std::set<std::string> IdsOf(std::span<const PaperItem> items) {
  std::set<std::string> ids;
  for (const PaperItem& item : items) {
    const std::string id(item.id.substr(item.id.find('/') + 1));
    if (!id.starts_with("section-")) ids.insert(id);
  }
  return ids;
}

TEST(Catalogue, HasAllOfFishman) {
  std::set<std::string> expected = {
      "theorem-1", "appendix-a", "appendix-a.1", "appendix-a.2", "appendix-a.3", "appendix-a.4"};
  expected.merge(Numbered("figure-", 12));
  expected.merge(Numbered("table-", 5));
  expected.merge(Numbered("equation-", 3));
  EXPECT_EQ(IdsOf(FishmanItems()), expected);
}

TEST(Catalogue, HasAllPartsAndFiguresOfSeed003) {
  EXPECT_EQ(IdsOf(Seed003Items()),
            (std::set<std::string>{"quantization-barrier",
                                   "collective-precision",
                                   "algorithm",
                                   "precision",
                                   "figure-fp8",
                                   "figure-fp16",
                                   "figure-bf16",
                                   "pretraining",
                                   "figure-debug",
                                   "conclusion"}));
}

// Advice names its evidence: a mistyped claim would be "not tested" for ever.
TEST(Catalogue, AdviceNamesClaimsOfItsExperiment) {
  size_t named = 0;
  for (const Experiment& experiment : AllExperiments()) {
    std::set<std::string> claims;
    for (const ClaimSpec& claim : experiment.claims) claims.insert(claim.id);
    for (const Advice& advice : experiment.advice) {
      EXPECT_FALSE(advice.claims.empty()) << advice.text;
      for (const std::string& claim : advice.claims) {
        EXPECT_TRUE(claims.contains(claim)) << claim;
        ++named;
      }
    }
  }
  EXPECT_GT(named, 0u);
}

TEST(Catalogue, EachItemHasASourceAndASentenceAndIsListedOnce) {
  std::set<std::string_view> ids;
  for (const PaperItem& item : PaperItems()) {
    SCOPED_TRACE(item.id);
    EXPECT_TRUE(ids.insert(item.id).second);
    EXPECT_THAT(std::string(item.source), StartsWith("["));
    EXPECT_THAT(std::string(item.statement), EndsWith("."));
    if (item.untested.empty()) continue;
    EXPECT_THAT(
        std::string(item.untested),
        AnyOf(StartsWith("not built: "), StartsWith("out of reach: "), StartsWith("no claim: ")));
    EXPECT_THAT(std::string(item.untested), EndsWith("."));
  }
  EXPECT_EQ(
      ids.size(),
      SwitchBackItems().size() + FishmanItems().size() + Seed003Items().size() + Fp4Items().size());
}

TEST(Catalogue, AnItemSaysWhyItIsUntestedExactlyIfNoClaimIsAboutIt) {
  std::set<std::string> claimed;
  for (const Experiment& experiment : AllExperiments()) {
    for (const ClaimSpec& claim : experiment.claims) {
      claimed.insert(claim.items.begin(), claim.items.end());
    }
  }
  for (const PaperItem& item : PaperItems()) {
    EXPECT_EQ(item.untested.empty(), claimed.erase(std::string(item.id)) == 1) << item.id;
  }
  EXPECT_EQ(claimed, std::set<std::string>()) << "claims about items that are not listed";
}

}  // namespace
}  // namespace numsim::experiments
