// `numsim claims`: what the papers claim and what numsim found.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/wrapped_text.h"
#include "experiments/runner/claim_list.h"
#include "numsim/base/error.h"

namespace numsim::apps {
namespace {

using experiments::ListedClaim;
using experiments::ListedItem;

// Returns the verdict and on what it rests, as in "inconclusive (2 layers, width 64, 300 steps; 3
// seeds; preset quick; docs/results.md)".
std::string VerdictText(const ListedClaim& claim) {
  const auto& published = claim.published;
  if (published.page.empty()) {
    return fmt::format("{}: {}", published.verdict, published.reason);
  }
  std::string basis = published.scale;
  basis += fmt::format("; {} seed{}", published.seeds, published.seeds == "1" ? "" : "s");
  basis += fmt::format("; preset {}; {}", published.preset, published.page);
  const std::string reason = published.reason.empty() ? "" : fmt::format(". {}", published.reason);
  return fmt::format("{} ({}){}", published.verdict, basis, reason);
}

void PrintItem(const ListedItem& item) {
  fmt::print("{}\n", item.item->source);
  PrintWrapped(2, std::string(item.item->statement));
  if (!item.item->untested.empty()) {
    PrintWrapped(2, fmt::format("-> not tested. {}", item.item->untested));
  }
  for (const ListedClaim& claim : item.claims) {
    PrintWrapped(2, fmt::format("-> {}: {}", claim.spec->id, VerdictText(claim)));
  }
}

nlohmann::ordered_json Json(const ListedItem& item) {
  return {{"id", item.item->id},
          {"source", item.item->source},
          {"statement", item.item->statement},
          {"contrast", nullptr},
          {"margin", nullptr},
          {"verdict", "not tested"},
          {"reason", item.item->untested},
          {"scale", nullptr},
          {"seeds", nullptr},
          {"page", nullptr}};
}

nlohmann::ordered_json Json(const ListedItem& item, const ListedClaim& claim) {
  const auto& published = claim.published;
  const auto text = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  nlohmann::ordered_json seeds;
  if (!published.seeds.empty()) seeds = std::stoi(published.seeds);
  return {{"id", claim.spec->id},
          {"source", item.item->source},
          {"statement", claim.spec->statement},
          {"contrast", claim.spec->contrast},
          {"margin",
           claim.spec->kind == experiments::ClaimKind::kExact ? nlohmann::ordered_json()
                                                              : text(claim.spec->margin.Text())},
          {"verdict", published.verdict},
          {"reason", published.reason},
          {"scale", text(published.scale)},
          {"seeds", seeds},
          {"page", text(published.page)}};
}

void PrintJson(const std::vector<ListedItem>& items) {
  auto list = nlohmann::ordered_json::array();
  for (const ListedItem& item : items) {
    if (item.claims.empty()) list.push_back(Json(item));
    for (const ListedClaim& claim : item.claims) list.push_back(Json(item, claim));
  }
  fmt::print("{}\n", list.dump(2));
}

}  // namespace

void AddClaimsCommand(Program& program) {
  struct Options {
    std::string paper;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "claims", "List what the papers claim, with the published verdict on each claim");
  sub->add_option("--paper", options->paper, "Only one paper: SwitchBack, Fishman or Seed003");
  sub->add_flag("--json", options->json, "Print a JSON list with one object per claim");
  Example(sub, "numsim claims --paper SwitchBack");
  Choose(program, sub, [options] {
    const std::vector<ListedItem> items = experiments::ListClaims(options->paper);
    if (options->json) {
      PrintJson(items);
      return 0;
    }
    for (const ListedItem& item : items) PrintItem(item);
    return 0;
  });
}

}  // namespace numsim::apps
