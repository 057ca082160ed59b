// README.md says what the program has: its counts, and the experiments with the parts of papers that they
// reproduce. NUMSIM_UPDATE_GOLDEN=1 writes these; the result of an experiment is written by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/demo.h"
#include "experiments/runner/experiment.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/updates/update_rule.h"
#include "tests/support/doc_page.h"
#include "tests/support/golden_text.h"

namespace numsim::experiments {
namespace {

constexpr std::string_view kWords[] = {
    "no",       "one",     "two",     "three",     "four",     "five",     "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",   "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"};

std::string Word(size_t number) {
  return number < std::size(kWords) ? std::string(kWords[number]) : std::to_string(number);
}

// Returns the presets of a name that the experiments have.
std::vector<Preset> PresetsNamed(std::string_view name) {
  std::vector<Preset> found;
  for (const Experiment& experiment : AllExperiments()) {
    for (const Preset& preset : experiment.presets) {
      if (preset.name == name) found.push_back(preset);
    }
  }
  return found;
}

// A number that a file says, in a word or in digits, before a text.
struct Count {
  std::string file;
  std::string before;  // a pattern: what stands behind the number
  size_t number;
};

std::vector<Count> Counts() {
  double seconds = 0;
  for (const Preset& preset : PresetsNamed("quick")) seconds += preset.seconds;
  const auto minutes = static_cast<size_t>(std::lround(seconds / 60));
  size_t notebooks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SourceRoot() / "notebooks")) {
    if (entry.path().extension() == ".ipynb") ++notebooks;
  }
  const size_t in_demo = PresetsNamed(kDemoPreset).size();
  return {{"README.md", "experiments\\b(?!: verdicts)", AllExperiments().size()},
          {"README.md", "experiments: verdicts", in_demo},
          {"README.md", "minutes\\.\n\nWithout root", minutes},
          {"README.md", "\\[notebooks\\]", notebooks},
          {"README.md", "formats, among them", FormatTable().size()},
          {"README.md", "rounding modes", std::size(kRoundingModes)},
          {"README.md", "accumulation modes", AccumulationModeTable().size()},
          {"README.md", "kinds of layers", LinearKinds().size()},
          {"README.md", "rules for applying", UpdateKinds().size()},
          {"libnumsim/python/README.md", "rounding modes", std::size(kRoundingModes)},
          {"numsim", "experiments in two minutes", in_demo},
          {"numsim", "minutes\n#   ./numsim test", minutes}};
}

// Returns the text with the right number. Fails if it says none.
std::string WithCount(const std::string& text, const Count& count) {
  std::string words = "[0-9]+";
  for (const std::string_view word : kWords) words += fmt::format("|{}", word);
  const std::regex pattern(fmt::format("\\b({})(\\s+{})", words, count.before));
  EXPECT_TRUE(std::regex_search(text, pattern))
      << count.file << ": expected a number before " << count.before;
  std::string written;
  auto rest = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    const bool digits = std::isdigit(static_cast<unsigned char>(match->str(1)[0])) != 0;
    written.append(rest, (*match)[0].first);
    written += (digits ? std::to_string(count.number) : Word(count.number)) + match->str(2);
    rest = (*match)[0].second;
  }
  return written.append(rest, text.cend());
}

// Returns what an experiment reproduces, in the words of README.md.
std::string Reproduced(const Experiment& experiment) {
  std::string text = experiment.reproduces;
  const auto replace = [&](std::string_view key, std::string_view words) {
    const size_t at = text.find(key);
    if (at != std::string::npos) text.replace(at, key.size(), words);
  };
  replace("[SwitchBack]", "SwitchBack");
  replace("[Fishman]", "\"FP8 training\"");
  replace("[Seed003]", "\"Low precision, low LR\":");
  return text;
}

// Returns the text with a row per experiment: those that are there keep their place and their result. Fails
// for a row of no experiment, and for a row without a result.
std::string WithExperiments(const std::string& text) {
  const std::string header = "| experiment | claim of | result |\n| --- | --- | --- |\n";
  const size_t begin = text.find(header) + header.size();
  const size_t end = text.find("\n\n", begin) + 1;
  std::string rows = text.substr(begin, end - begin);
  for (const Experiment& experiment : AllExperiments()) {
    const std::string name = fmt::format("| `{}` | ", experiment.name);
    size_t at = rows.find(name);
    if (at == std::string::npos) {
      at = rows.size();
      rows += name + " | TODO |\n";
    }
    EXPECT_EQ(rows.find(name, at + 1), std::string::npos) << experiment.name << ": two rows";
    const size_t second = at + name.size(), third = rows.find(" | ", second);
    EXPECT_NE(rows.substr(third, rows.find('\n', third) - third), " | TODO |")
        << experiment.name << ": write its result";
    rows.replace(second, third - second, Reproduced(experiment));
  }
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(rows, '\n')), AllExperiments().size())
      << "rows of the table of experiments";
  return text.substr(0, begin) + rows + text.substr(end);
}

TEST(Readme, SaysWhatTheProgramHas) {
  for (const std::string file : {"README.md", "libnumsim/python/README.md", "numsim"}) {
    const std::string text = SourceText(file);
    ASSERT_FALSE(text.empty()) << file << ": NUMSIM_SOURCE_DIR is not set";
    std::string right = text;
    for (const Count& count : Counts()) {
      if (count.file == file) right = WithCount(right, count);
    }
    if (file == "README.md") right = WithExperiments(right);
    ExpectGoldenLines("../" + file, right);
  }
}

TEST(Readme, NumbersOfOtherThingsStay) {
  const Count count{"x", "experiments\\b(?!: verdicts)", 14};
  EXPECT_EQ(WithCount("13 experiments, thirteen\nexperiments; two experiments: verdicts", count),
            "14 experiments, fourteen\nexperiments; two experiments: verdicts");
  EXPECT_EQ(WithCount("no experiments", {"x", "experiments", 21}), "21 experiments");
}

}  // namespace
}  // namespace numsim::experiments
