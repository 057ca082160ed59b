// Keys of citations, resolved by docs/references.md.
#include "experiments/runner/references.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(References, EntryIsOneLineWithoutTheKey) {
  const std::string entry = ReferenceOf("Adam");
  EXPECT_EQ(entry,
            "D. P. Kingma, J. Ba: Adam: A Method for Stochastic Optimization. ICLR 2015. "
            "arXiv:1412.6980. Algorithm 1.");
}

TEST(References, UnknownKeyHasNoEntry) {
  EXPECT_EQ(ReferenceOf("Nobody2000"), "");
  EXPECT_EQ(ReferenceOf(""), "");
}

TEST(References, ShortFormHasAuthorsTitleAndYear) {
  EXPECT_EQ(ShortReferenceOf("SwitchBack"),
            "M. Wortsman et al.: Stable and low-precision training for large-scale "
            "vision-language models, 2023");
  EXPECT_EQ(ShortReferenceOf("Fishman"),
            "M. Fishman, B. Chmiel, R. Banner, D. Soudry: Scaling FP8 training to trillion-token "
            "LLMs, 2024");
  EXPECT_EQ(ShortReferenceOf("Seed003"), "Low Precision Low LR");  // a note without a year
}

TEST(References, KeysAreThoseWithAnEntryEachOnce) {
  EXPECT_THAT(KeysCitedBy("[Fishman] and [SwitchBack], [0, 1], [Fishman] again, [open"),
              ElementsAre("Fishman", "SwitchBack"));
  EXPECT_THAT(KeysCitedBy("nothing"), IsEmpty());
}

TEST(References, EveryExperimentCitesAKeyThatResolves) {
  for (const Experiment& experiment : AllExperiments()) {
    EXPECT_THAT(KeysCitedBy(experiment.reproduces), Not(IsEmpty())) << experiment.name;
    for (const std::string& key : KeysCitedBy(experiment.reproduces)) {
      EXPECT_THAT(ReferenceOf(key), Not(HasSubstr("**["))) << key;  // one entry, not two
    }
  }
}

}  // namespace
}  // namespace numsim::experiments
