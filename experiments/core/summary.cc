#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/claim_report.h"
#include "experiments/core/runner.h"
#include "experiments/core/verdict.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

constexpr size_t kWidth = 88;
constexpr std::array<std::string_view, 4> kVerdicts = {
    kHolds, kDoesNotHold, kHoldsInPart, kNotMeasured};

// Returns the number of characters, counted as UTF-8 code points.
size_t Width(std::string_view text) {
  const auto starts_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  };
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

// Returns `head` and the words of `text` (one line) on lines of at most kWidth characters; the
// second and later lines start below the first word. A word is never broken.
std::string WrapLine(std::string_view head, std::string_view text) {
  const std::string indent(Width(head), ' ');
  std::string wrapped;
  std::string line(head);
  bool line_has_word = false;
  for (size_t begin = 0; (begin = text.find_first_not_of(' ', begin)) != text.npos;) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (line_has_word && Width(line) + 1 + Width(word) > kWidth) {
      wrapped += line + "\n";
      line = indent;
      line_has_word = false;
    }
    if (line_has_word) line += ' ';
    line += word;
    line_has_word = true;
    begin = end;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return wrapped + line + "\n";
}

// Wraps each line of `text`. Lines that begin with a space (a small table) are not wrapped.
std::string Wrap(std::string_view head, std::string_view text) {
  std::string wrapped;
  const std::string indent(Width(head), ' ');
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string_view line_head = begin == 0 ? head : std::string_view(indent);
    wrapped +=
        line.starts_with(' ') ? fmt::format("{}{}\n", line_head, line) : WrapLine(line_head, line);
    begin = end + 1;
  }
  return wrapped;
}

std::string SettingsText(const Settings& settings, const std::vector<std::string>& unused) {
  std::string text = fmt::format(
      "--preset {} --seed {} --seeds {}", settings.preset, settings.seed, settings.seeds);
  for (const auto& [name, value] : settings.options) {
    if (std::find(unused.begin(), unused.end(), name) != unused.end()) continue;
    text += fmt::format(" --{} {}", name, value.empty() ? "\"\"" : value);
  }
  return text;
}

std::string VerdictText(const Claim& claim) {
  return claim.basis.empty() ? claim.verdict : fmt::format("{} ({})", claim.verdict, claim.basis);
}

}  // namespace

std::string SummaryText(const Experiment& experiment,
                        const Settings& settings,
                        const Summary& s,
                        const std::vector<JudgedClaim>& judged) {
  std::string text = Wrap("", fmt::format("{}: {}", experiment.name, experiment.title));
  if (!experiment.reproduces.empty()) text += Wrap("Reproduces: ", experiment.reproduces);
  text += Wrap("Settings:   ", SettingsText(settings, s.unused_options));
  if (experiment.timed) text += Wrap("Times:      ", kTimedNote);
  for (const TableSpec& table : experiment.tables) {
    if (!table.timed) continue;
    text += Wrap("Times:      ", fmt::format("only in {}.csv. {}", table.name, kTimedNote));
  }
  const std::string deviations = DeviationsText(experiment.paper_settings, settings);
  if (!deviations.empty()) text += Wrap("Deviations: ", deviations);
  const std::string scale = experiment.scale ? experiment.scale(settings) : "";
  for (const JudgedClaim& claim : judged) {
    text += "\n" +
            Wrap("Claim:    ", fmt::format("{}: {}", claim.spec->id, claim.spec->statement)) +
            Wrap("Contrast: ", claim.spec->contrast) + Wrap("Measured: ", MeasuredText(claim)) +
            Wrap("Verdict:  ", VerdictText(claim, scale));
  }
  for (const Claim& claim : s.claims) {
    NUMSIM_CHECK(std::count(kVerdicts.begin(), kVerdicts.end(), claim.verdict) == 1,
                 "{}: verdict \"{}\"",
                 experiment.name,
                 claim.verdict);
    text += "\n" + Wrap("Claim:    ", claim.claim) + Wrap("Measured: ", claim.measured) +
            Wrap("Verdict:  ", VerdictText(claim));
  }
  std::string_view notes = s.notes;
  notes = notes.substr(0, notes.find_last_not_of(" \n") + 1);
  if (!notes.empty()) text += "\n" + Wrap("", notes);
  return text;
}

}  // namespace numsim::experiments
