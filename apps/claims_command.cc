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
using experiments::PublishedVerdict;

// Returns the folder of a run in experiments/published: "moment-formats/small".
std::string RunName(const PublishedVerdict& published) {
  constexpr std::string_view kFolder = "experiments/published/";
  return published.directory.substr(kFolder.size());
}

// Returns other runs' verdicts: ". Also: contradicted (toy, 0.87 M / 1.2 M tokens; moment-formats/small)".
std::string OthersText(const PublishedVerdict& published) {
  std::string text;
  for (const PublishedVerdict& other : published.others) {
    const std::string size = other.Size();
    text += fmt::format("{}{} ({}{}{})",
                        text.empty() ? ". Also: " : ", ",
                        other.verdict,
                        size,
                        size.empty() ? "" : "; ",
                        RunName(other));
  }
  return text;
}

// Returns the verdict and on what it rests, as in "inconclusive (toy, 0.14 M / 1.2 M tokens; 2 layers,
// width 64, 300 steps; 3 seeds; preset quick; docs/results.md)".
std::string VerdictText(const ListedClaim& claim) {
  const PublishedVerdict& published = claim.published;
  if (published.page.empty()) {
    return fmt::format("{}: {}", published.verdict, published.reason);
  }
  if (published.verdict == "not tested") {
    return fmt::format(
        "not tested: {} ({}; {})", published.reason, RunName(published), published.page);
  }
  std::string basis = published.Size();
  basis += (basis.empty() ? "" : "; ") + published.scale;
  basis += fmt::format("; {} seed{}", published.seeds, published.seeds == "1" ? "" : "s");
  basis += fmt::format("; preset {}; {}", published.preset, published.page);
  const std::string reason = published.reason.empty() ? "" : fmt::format(". {}", published.reason);
  return fmt::format("{} ({}){}{}", published.verdict, basis, reason, OthersText(published));
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
          {"control", nullptr},
          {"margin", nullptr},
          {"verdict", "not tested"},
          {"reason", item.item->untested},
          {"scale", nullptr},
          {"word", nullptr},
          {"parameters", nullptr},
          {"tokens", nullptr},
          {"seeds", nullptr},
          {"run", nullptr},
          {"page", nullptr},
          {"also", nlohmann::ordered_json::array()}};
}

// Returns a number of parameters or tokens; null where nothing is trained.
nlohmann::ordered_json SizeJson(double size) {
  if (size == 0) return {};
  return static_cast<int64_t>(size);
}

nlohmann::ordered_json Json(const ListedItem& item, const ListedClaim& claim) {
  const auto& published = claim.published;
  const auto text = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  auto also = nlohmann::ordered_json::array();
  for (const PublishedVerdict& other : published.others) {
    also.push_back({{"verdict", other.verdict},
                    {"word", text(other.word)},
                    {"parameters", SizeJson(other.parameters)},
                    {"tokens", SizeJson(other.tokens)},
                    {"run", RunName(other)}});
  }
  nlohmann::ordered_json seeds;
  if (!published.seeds.empty()) seeds = std::stoi(published.seeds);
  return {{"id", claim.spec->id},
          {"source", item.item->source},
          {"statement", claim.spec->statement},
          {"contrast", claim.spec->contrast},
          {"control", text(claim.spec->control)},
          {"margin",
           claim.spec->kind == experiments::ClaimKind::kExact ? nlohmann::ordered_json()
                                                              : text(claim.spec->margin.Text())},
          {"verdict", published.verdict},
          {"reason", published.reason},
          {"scale", text(published.scale)},
          {"word", text(published.word)},
          {"parameters", SizeJson(published.parameters)},
          {"tokens", SizeJson(published.tokens)},
          {"seeds", seeds},
          {"run", published.page.empty() ? nlohmann::ordered_json() : text(RunName(published))},
          {"page", text(published.page)},
          {"also", std::move(also)}};
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
    std::string paper, scale;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "claims", "List what the papers claim, with the published verdict on each claim");
  sub->add_option("--paper", options->paper, "Only one paper: SwitchBack, Fishman or Seed003");
  sub->add_option(
      "--scale",
      options->scale,
      "Only claims whose quoted verdict is of that scale: mechanism, toy or paper; or of a "
      "model of at least that many parameters, such as 80M");
  sub->add_flag("--json", options->json, "Print a JSON list with one object per claim");
  Example(sub, "numsim claims --paper SwitchBack");
  Choose(program, sub, [options] {
    const std::vector<ListedItem> items = experiments::ListClaims(options->paper, options->scale);
    if (options->json) {
      PrintJson(items);
      return 0;
    }
    if (items.empty())
      fmt::print("No published run tests a claim at the scale {}.\n", options->scale);
    for (const ListedItem& item : items) PrintItem(item);
    return 0;
  });
}

}  // namespace numsim::apps
