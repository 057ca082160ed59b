// Everything that the papers claim, with the claims that experiments declare about it and their
// published verdicts.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/claims/catalogue.h"
#include "experiments/claims/claim.h"
#include "experiments/runner/published.h"

namespace numsim::experiments {

struct ListedClaim {
  const ClaimSpec* spec = nullptr;
  PublishedVerdict published;
};

struct ListedItem {
  const PaperItem* item = nullptr;
  std::vector<ListedClaim> claims;  // none if the item says why it is not tested
};

// Returns the items of a paper, by its key in docs/references.md in any case, or those of all
// papers for "". With a scale, only the claims that a published run of that scale tests, and the items that
// have some: mechanism, toy or paper, or a least number of parameters with K, M, B or no unit ("80M").
// Throws Error naming what was expected for another text.
std::vector<ListedItem> ListClaims(std::string_view paper, std::string_view scale = {});

}  // namespace numsim::experiments
