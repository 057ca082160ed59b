#include "apps/claim_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "apps/wrapped_text.h"
#include "experiments/claims/catalogue.h"

namespace numsim::apps {
namespace {

using experiments::ClaimSpec;
using experiments::PaperSetting;

std::string SourcesOf(const ClaimSpec& claim) {
  std::vector<std::string_view> sources;
  for (const experiments::PaperItem& item : experiments::PaperItems()) {
    for (const std::string& id : claim.items) {
      if (id == item.id) sources.push_back(item.source);
    }
  }
  return fmt::format("{}", fmt::join(sources, ", "));
}

void PrintClaim(const ClaimSpec& claim) {
  fmt::print(
      "\n  {} ({}{})\n", claim.id, ToString(claim.kind), claim.primary ? "" : ", exploratory");
  const std::string sources = SourcesOf(claim);
  PrintWrapped(4, (sources.empty() ? "" : sources + ": ") + claim.statement);
  PrintWrapped(4, "contrast: " + claim.contrast);
  if (!claim.control.empty()) PrintWrapped(4, "control: " + claim.control);
  if (!claim.no_control.empty()) PrintWrapped(4, "no control: " + claim.no_control);
  if (claim.kind != experiments::ClaimKind::kExact) {
    PrintWrapped(4, fmt::format("margin: {}. {}", claim.margin.Text(), claim.margin.justification));
  }
  if (!claim.scale.empty()) PrintWrapped(4, "scale: " + claim.scale);
}

}  // namespace

void PrintClaims(const experiments::Experiment& experiment) {
  if (experiment.claims.empty()) return;
  fmt::print("\nclaims; a run tests one if its options have every arm that the contrast names\n");
  for (const ClaimSpec& claim : experiment.claims) PrintClaim(claim);
  if (experiment.paper_settings.empty() && experiment.training_settings.empty()) return;
  fmt::print("\nsettings of the paper\n");
  for (const experiments::SharedSetting& setting : experiment.training_settings) {
    PrintWrapped(2, fmt::format("{}: {} ({})", setting.name, setting.values, setting.source));
  }
  for (const PaperSetting& setting : experiment.paper_settings) {
    const std::string name = setting.option.empty() ? "" : fmt::format("--{} ", setting.option);
    PrintWrapped(2,
                 fmt::format("{}{} ({}). {}", name, setting.paper, setting.source, setting.reason));
  }
}

}  // namespace numsim::apps
