// Tests the list of everything in [SwitchBack] against one that was read off the paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/claims/catalogue.h"

namespace numsim::experiments {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Captions, numbered equations and headings of appendices, in the order of the text: 21 figures,
// 12 equations, 5 algorithms, 14 appendices and subsections of them. There is no table and no
// theorem. Figure 7 has a second entry, because its halves are measured by different studies.
constexpr const char* kInThePaper[] = {
    "figure-1",     "algorithm-1", "algorithm-2",  "equation-1",  "equation-2",
    "figure-2",     "equation-3",  "figure-3",     "figure-4",    "figure-5",
    "figure-6",     "appendix-a",  "appendix-b",   "figure-7",    "figure-7-right",
    "figure-8",     "appendix-c",  "appendix-c.1", "equation-4",  "algorithm-3",
    "algorithm-4",  "algorithm-5", "appendix-c.2", "figure-9",    "figure-10",
    "figure-11",    "figure-12",   "figure-13",    "figure-14",   "appendix-d",
    "appendix-d.1", "equation-5",  "equation-6",   "equation-7",  "equation-8",
    "equation-9",   "equation-10", "equation-11",  "equation-12", "appendix-d.2",
    "appendix-d.3", "appendix-e",  "figure-15",    "figure-16",   "figure-17",
    "figure-18",    "figure-19",   "figure-20",    "appendix-f",  "appendix-f.1",
    "appendix-f.2", "appendix-g",  "figure-21",
};

// Returns the ids without "switchback/" and without the sections of the main text, which are
// listed only where a claim needs them.
std::vector<std::string> ListedIds() {
  std::vector<std::string> ids;
  for (const PaperItem& item : SwitchBackItems()) {
    const std::string id(item.id);
    EXPECT_THAT(id, StartsWith("switchback/"));
    const std::string name = id.substr(id.find('/') + 1);
    if (!name.starts_with("section-")) ids.push_back(name);
  }
  return ids;
}

TEST(SwitchBackItems, AreThoseOfThePaperInTheOrderOfItsText) {
  EXPECT_THAT(ListedIds(), ElementsAreArray(kInThePaper));
}

TEST(SwitchBackItems, HaveDistinctIdsAndSources) {
  std::set<std::string_view> ids, sources;
  for (const PaperItem& item : SwitchBackItems()) {
    EXPECT_TRUE(ids.insert(item.id).second) << item.id;
    EXPECT_TRUE(sources.insert(item.source).second) << item.source;
  }
}

// Returns the beginning of the source of an id: "[SwitchBack] Appendix C.1" for
// "switchback/appendix-c.1".
std::string SourceOf(const std::string& id) {
  std::string words = id.substr(id.find('/') + 1);
  words = words.substr(0, words.find("-right"));
  const size_t dash = words.find('-');
  words.at(dash) = ' ';
  for (const size_t capital : {size_t{0}, dash + 1}) {
    char& letter = words.at(capital);
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return "[SwitchBack] " + words;
}

TEST(SwitchBackItems, NameTheirPlaceInThePaper) {
  for (const PaperItem& item : SwitchBackItems()) {
    const std::string expected = SourceOf(std::string(item.id));
    EXPECT_THAT(std::string(item.source),
                AnyOf(expected, expected + " (left)", expected + " (right)"));
  }
}

TEST(SwitchBackItems, StateAShortSentence) {
  for (const PaperItem& item : SwitchBackItems()) {
    EXPECT_THAT(std::string(item.statement), EndsWith(".")) << item.id;
    EXPECT_GT(item.statement.size(), 1u) << item.id;
    EXPECT_LE(item.statement.size(), 200u) << item.id;
  }
}

TEST(SwitchBackItems, SayWhyTheyAreUntested) {
  for (const PaperItem& item : SwitchBackItems()) {
    EXPECT_THAT(std::string(item.untested),
                AnyOf(IsEmpty(),
                      StartsWith("not built: "),
                      StartsWith("out of reach: "),
                      StartsWith("no claim: ")))
        << item.id;
  }
}

}  // namespace
}  // namespace numsim::experiments
