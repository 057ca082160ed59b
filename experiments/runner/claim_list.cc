#include "experiments/runner/claim_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "experiments/runner/experiment.h"
#include "experiments/runner/references.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments {
namespace {

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return lower;
}

// Returns the key of the paper that the item is from, as in "SwitchBack".
std::string PaperOf(const PaperItem& item) { return KeysCitedBy(item.source).at(0); }

std::vector<ListedClaim> ClaimsOf(const PaperItem& item) {
  std::vector<ListedClaim> claims;
  for (const Experiment& experiment : AllExperiments()) {
    for (const ClaimSpec& spec : experiment.claims) {
      if (std::find(spec.items.begin(), spec.items.end(), item.id) == spec.items.end()) continue;
      claims.push_back({&spec, QuotedVerdict(spec.id)});
    }
  }
  return claims;
}

// Returns the word of a scale: "paper scale" for "paper".
std::string WordOf(std::string_view scale) {
  if (scale == "paper") return kPaperScale;
  const std::vector<std::string> names = {kMechanism, kToy, "paper"};
  if (std::find(names.begin(), names.end(), scale) != names.end()) return std::string(scale);
  const std::string near = NearestName(std::string(scale), names);
  throw Error::Format("--scale '{}': {}expected one of: {}",
                      scale,
                      near.empty() ? "" : fmt::format("did you mean {}? ", near),
                      fmt::join(names, ", "));
}

// Removes claims that no run of that word tests, and items without claims.
void KeepScale(const std::string& word, std::vector<ListedItem>& items) {
  for (ListedItem& item : items) {
    std::erase_if(item.claims, [&](const ListedClaim& claim) {
      return claim.published.word != word ||
             claim.published.verdict == ToString(Verdict::kNotTested);
    });
  }
  std::erase_if(items, [](const ListedItem& item) { return item.claims.empty(); });
}

}  // namespace

std::vector<ListedItem> ListClaims(std::string_view paper, std::string_view scale) {
  const std::string word = scale.empty() ? "" : WordOf(scale);
  std::vector<ListedItem> items;
  std::vector<std::string> papers;
  for (const PaperItem& item : PaperItems()) {
    const std::string key = PaperOf(item);
    if (std::find(papers.begin(), papers.end(), key) == papers.end()) papers.push_back(key);
    if (paper.empty() || LowerCase(key) == LowerCase(paper)) {
      items.push_back({&item, ClaimsOf(item)});
    }
  }
  if (items.empty()) {
    const std::string near = NearestName(std::string(paper), papers);
    throw Error::Format("--paper '{}': {}expected one of: {}",
                        paper,
                        near.empty() ? "" : fmt::format("did you mean {}? ", near),
                        fmt::join(papers, ", "));
  }
  if (!word.empty()) KeepScale(word, items);
  return items;
}

}  // namespace numsim::experiments
