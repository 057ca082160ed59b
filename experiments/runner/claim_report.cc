#include "experiments/runner/claim_report.h"

#include <fmt/format.h>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {
namespace {

// Returns the cells of a contrast.
Row CellsOf(const char* role,
            const Contrast& contrast,
            const ContrastResult& result,
            double confidence) {
  return {role, NameOf(contrast), result.value, result.low, result.high, confidence};
}

// Returns a size as a cell, which is empty where nothing is trained.
Cell SizeCell(double size) {
  if (size == 0) return "";
  return static_cast<int64_t>(size);
}

Row RowOf(const JudgedClaim& claim, const Settings& settings, const RunScale& scale) {
  const ClaimResult& result = claim.result;
  const std::string unit = claim.spec->margin.unit;
  const TrainedScale trained = ScaleOf(claim, scale);
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
          scale.words,
          SizeCell(trained.parameters),
          SizeCell(trained.tokens),
          ScaleWord(trained)};
}

}  // namespace

Table VerdictTable(const std::vector<JudgedClaim>& claims,
                   const Settings& settings,
                   const RunScale& scale) {
  Table table{{"claim",           "kind",       "primary", "verdict",   "reason", "seeds",
               "seeds_to_decide", "margin",     "unit",    "p",         "alpha",  "preset",
               "scale",           "parameters", "tokens",  "word",      "role",   "contrast",
               "estimate",        "low",        "high",    "confidence"}};
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
      add(CellsOf(
          "contrast", claim.evidence.contrasts.at(i), contrasts[i], claim.result.confidence));
    }
    if (const auto& control = claim.result.control) {
      add(CellsOf("control", claim.evidence.control, control->contrast, claim.result.confidence));
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
  if (claim.result.control) text += "\ncontrol: " + ControlText(claim);
  if (!text.empty() && !claim.evidence.measured.empty()) text += "\n";
  text += claim.evidence.measured;
  return text.empty() ? "-" : text;
}

std::string VerdictText(const JudgedClaim& claim, const RunScale& scale) {
  const ClaimResult& result = claim.result;
  if (result.verdict == Verdict::kNotTested) {
    return fmt::format("{}: {}", ToString(result.verdict), result.reason);
  }
  std::string basis = SizeText(ScaleOf(claim, scale));
  const auto add = [&](const std::string& text) {
    if (!text.empty()) basis += (basis.empty() ? "" : "; ") + text;
  };
  const bool exact = claim.spec->kind == ClaimKind::kExact;
  add(scale.words);
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

// Returns the words of a text on lines of at most `width` characters, unless a word is longer.
std::vector<std::string> Lines(const std::string& text, size_t width) {
  std::vector<std::string> lines = {""};
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    begin = end + 1;
  }
  return lines;
}

// Returns a row of a table whose cells are wrapped. Its lines begin with a blank, so that a summary keeps
// them as they are.
std::string TableRow(const std::vector<std::string>& cells) {
  constexpr size_t kWidths[] = {21, 23, 24};
  std::vector<std::vector<std::string>> lines;
  size_t height = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(Lines(cells[i], kWidths[i]));
    height = std::max(height, lines.back().size());
  }
  std::string text;
  for (size_t row = 0; row < height; ++row) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = row < lines[i].size() ? lines[i][row] : "";
      line += fmt::format("{} {:<{}}", i == 0 ? "" : " |", cell, kWidths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

std::string DeviationsText(const Experiment& experiment, const Settings& settings) {
  std::string text;
  if (experiment.deviations) {
    for (Deviation& deviation : experiment.deviations(settings)) {
      if (text.empty()) text = TableRow({"setting", "paper", "this run"});
      if (!settings.rows.files.empty() && deviation.setting == kHardwareSetting) {
        deviation.run = "trained elsewhere";
      }
      text += TableRow({deviation.setting, deviation.paper, deviation.run});
    }
  }
  for (const PaperSetting& setting : experiment.paper_settings) {
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
  return text;
}

}  // namespace numsim::experiments
