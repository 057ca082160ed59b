#include "experiments/runner/claim_report.h"

#include <fmt/format.h>

#include <cmath>

#include "experiments/runner/experiment.h"
#include "experiments/runner/option_names.h"

namespace numsim::experiments {
namespace {

// Returns "llm-int8 - bf16", or with other weights "1 a - 0.5 b - 0.5 c".
std::string NameOf(const Contrast& contrast) {
  std::string name;
  for (const ContrastTerm& term : contrast) {
    const bool first = name.empty();
    const double size = std::abs(term.weight);
    name += term.weight < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
    name += size == 1 ? term.arm : fmt::format("{:g} {}", size, term.arm);
  }
  return name;
}

// Returns the interval, or why there is none.
std::string IntervalText(const ContrastResult& contrast, double confidence) {
  if (std::isnan(contrast.low)) return "no interval";
  return fmt::format("[{:.4g}, {:.4g}] at {:g} %", contrast.low, contrast.high, 100 * confidence);
}

Row RowOf(const JudgedClaim& claim, const Settings& settings, const std::string& scale) {
  const ClaimResult& result = claim.result;
  const std::string unit = claim.spec->margin.unit;
  return {claim.spec->id,
          ToString(claim.spec->kind),
          claim.spec->primary ? "yes" : "no",
          ToString(result.verdict),
          result.reason,
          result.seeds,
          result.seeds_to_decide,
          claim.margin,
          unit,
          result.p,
          result.alpha,
          settings.preset,
          scale};
}

}  // namespace

Table VerdictTable(const std::vector<JudgedClaim>& claims,
                   const Settings& settings,
                   const std::string& scale) {
  Table table{{"claim",
               "kind",
               "primary",
               "verdict",
               "reason",
               "seeds",
               "seeds_to_decide",
               "margin",
               "unit",
               "p",
               "alpha",
               "preset",
               "scale",
               "contrast",
               "estimate",
               "low",
               "high",
               "confidence",
               "pooled"}};
  for (const JudgedClaim& claim : claims) {
    const Row head = RowOf(claim, settings, scale);
    const auto add = [&](const Row& contrast) {
      Row row = head;
      row.insert(row.end(), contrast.begin(), contrast.end());
      table.rows.push_back(std::move(row));
    };
    const auto& contrasts = claim.result.contrasts;
    if (contrasts.empty()) add({"", "", "", "", "", ""});
    for (size_t i = 0; i < contrasts.size(); ++i) {
      add({NameOf(claim.evidence.contrasts.at(i)),
           contrasts[i].value,
           contrasts[i].low,
           contrasts[i].high,
           claim.result.confidence,
           contrasts[i].pooled ? "yes" : "no"});
    }
  }
  return table;
}

std::string MeasuredText(const JudgedClaim& claim) {
  std::string text;
  for (size_t i = 0; i < claim.result.contrasts.size(); ++i) {
    const ContrastResult& contrast = claim.result.contrasts[i];
    text += fmt::format("{}{}: {:.4g} {}, {} (margin {:g})",
                        i == 0 ? "" : "\n",
                        NameOf(claim.evidence.contrasts.at(i)),
                        contrast.value,
                        claim.spec->margin.unit,
                        IntervalText(contrast, claim.result.confidence),
                        claim.margin);
  }
  if (!text.empty() && !claim.evidence.measured.empty()) text += "\n";
  text += claim.evidence.measured;
  return text.empty() ? "-" : text;
}

std::string VerdictText(const JudgedClaim& claim, const std::string& scale) {
  const ClaimResult& result = claim.result;
  if (result.verdict == Verdict::kNotTested) {
    return fmt::format("{}: {}", ToString(result.verdict), result.reason);
  }
  std::string basis = scale;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) basis += (basis.empty() ? "" : "; ") + text;
  };
  const bool exact = claim.spec->kind == ClaimKind::kExact;
  if (!exact) add(fmt::format("{} seed{}", result.seeds, result.seeds == 1 ? "" : "s"));
  add(result.reason);
  if (result.verdict == Verdict::kInconclusive) {
    const bool unknown = result.seeds_to_decide == 0;
    add(unknown ? "" : SeedsText(result.seeds_to_decide) + " seeds would decide it");
  }
  if (!exact && !claim.spec->primary) add("exploratory");
  return basis.empty() ? std::string(ToString(result.verdict))
                       : fmt::format("{} ({})", ToString(result.verdict), basis);
}

namespace {

// Returns the value of an option, or a word for an empty one.
std::string OrEmpty(const std::string& value) { return value.empty() ? "empty" : value; }

}  // namespace

std::string DeviationsText(const std::vector<PaperSetting>& paper, const Settings& settings) {
  std::string text;
  for (const PaperSetting& setting : paper) {
    const bool has_option = !setting.option.empty();
    if (has_option && settings.Get(setting.option) == setting.paper) continue;
    text += has_option
                ? fmt::format("--{} is {}; the paper has {} ({}). {}\n",
                              setting.option,
                              OrEmpty(settings.Get(setting.option)),
                              OrEmpty(setting.paper),
                              setting.source,
                              setting.reason)
                : fmt::format("{} ({}). {}\n", setting.paper, setting.source, setting.reason);
  }
  // Reasons speak of trainings as the experiment sets them up. (update-fidelity has random keys.)
  const auto keys = settings.options.find(std::string(kKeysOption));
  if (keys != settings.options.end() && keys->second.find('=') != std::string::npos) {
    text +=
        fmt::format("--keys is {}: where a line above says otherwise, this holds.\n", keys->second);
  }
  return text;
}

}  // namespace numsim::experiments
