#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/claim_report.h"
#include "experiments/runner/option_names.h"
#include "experiments/runner/runner.h"

namespace numsim::experiments {
namespace {

constexpr size_t kWidth = 88;

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

std::string SettingsText(const Experiment& experiment, const Settings& settings) {
  std::vector<std::string> unused;
  if (experiment.unused_options) unused = experiment.unused_options(settings);
  std::string text = fmt::format(
      "--preset {} --seed {} --seeds {}", settings.preset, settings.seed, settings.seeds);
  for (const auto& [name, value] : settings.options) {
    if (std::find(unused.begin(), unused.end(), name) != unused.end()) continue;
    if (name == kKeysOption && value.empty()) continue;
    text += fmt::format(" --{} {}", name, value.empty() ? "\"\"" : value);
  }
  return text;
}

}  // namespace

std::string SummaryText(const Experiment& experiment,
                        const Settings& settings,
                        const std::vector<JudgedClaim>& judged,
                        const RunScale& scale,
                        std::string_view notes,
                        std::string_view changed) {
  std::string text = Wrap("", fmt::format("{}: {}", experiment.name, experiment.title));
  if (!experiment.reproduces.empty()) text += Wrap("Reproduces: ", experiment.reproduces);
  text += Wrap("Settings:   ", SettingsText(experiment, settings));
  if (!settings.rows.files.empty()) {
    text += Wrap("Rows:       ",
                 fmt::format("of trainings made elsewhere, with {}: {}. {}",
                             settings.rows.scale,
                             settings.rows.Text(),
                             settings.rows.note));
  }
  if (experiment.timed) text += Wrap("Times:      ", kTimedNote);
  for (const TableSpec& table : experiment.tables) {
    if (!table.timed) continue;
    text += Wrap("Times:      ", fmt::format("only in {}.csv. {}", table.name, kTimedNote));
  }
  if (!changed.empty()) text += Wrap("Changed:    ", changed);
  const std::string deviations = DeviationsText(experiment, settings);
  if (!deviations.empty()) text += Wrap("Deviations: ", deviations);
  for (const JudgedClaim& claim : judged) {
    text += "\n" +
            Wrap("Claim:    ", fmt::format("{}: {}", claim.spec->id, claim.spec->statement)) +
            Wrap("Contrast: ", claim.spec->contrast) +
            (claim.spec->control.empty() ? "" : Wrap("Control:  ", claim.spec->control)) +
            Wrap("Measured: ", MeasuredText(claim)) + Wrap("Verdict:  ", VerdictText(claim, scale));
  }
  notes = notes.substr(0, notes.find_last_not_of(" \n") + 1);
  if (!notes.empty()) text += "\n" + Wrap("", notes);
  return text;
}

}  // namespace numsim::experiments
