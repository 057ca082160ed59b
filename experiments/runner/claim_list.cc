#include "experiments/runner/claim_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

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

// The runs whose claims are listed.
struct ScaleFilter {
  std::string word = {};  // "toy", say; empty: any
  double least_parameters = 0;
};

// Returns the number that the text means, "80M" or "1.5B"; 0 for another text.
double NumberOfParameters(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number > 0 && number < 1e15)) return 0;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.empty()) return number;
  if (unit == "K" || unit == "k") return 1e3 * number;
  if (unit == "M") return 1e6 * number;
  return unit == "B" ? 1e9 * number : 0;
}

// Returns the filter of --scale: "paper scale" for "paper", a least size for "80M".
ScaleFilter FilterOf(std::string_view scale) {
  if (scale.empty()) return {};
  if (scale == "paper") return {.word = kPaperScale};
  const std::vector<std::string> names = {kMechanism, kToy, "paper"};
  if (std::find(names.begin(), names.end(), scale) != names.end()) {
    return {.word = std::string(scale)};
  }
  if (const double parameters = NumberOfParameters(scale); parameters > 0) {
    return {.least_parameters = parameters};
  }
  const std::string near = NearestName(std::string(scale), names);
  throw Error::Format("--scale '{}': {}expected a number of parameters, such as 80M, or one of: {}",
                      scale,
                      near.empty() ? "" : fmt::format("did you mean {}? ", near),
                      fmt::join(names, ", "));
}

// Removes claims that no run of that scale tests, and items without claims.
void Keep(const ScaleFilter& filter, std::vector<ListedItem>& items) {
  for (ListedItem& item : items) {
    std::erase_if(item.claims, [&](const ListedClaim& claim) {
      const PublishedVerdict& published = claim.published;
      return (!filter.word.empty() && published.word != filter.word) ||
             published.parameters < filter.least_parameters ||
             published.verdict == ToString(Verdict::kNotTested);
    });
  }
  std::erase_if(items, [](const ListedItem& item) { return item.claims.empty(); });
}

}  // namespace

std::vector<ListedItem> ListClaims(std::string_view paper, std::string_view scale) {
  const ScaleFilter filter = FilterOf(scale);
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
  if (!scale.empty()) Keep(filter, items);
  return items;
}

}  // namespace numsim::experiments
