#include "experiments/runner/merge_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/split_list.h"

namespace numsim::experiments {
namespace {

constexpr const char* kUnknown = "unknown";

// Directories by the value that their trials have.
using Values = std::map<std::string, std::set<std::string>>;

std::string DirectoryOf(const FinishedRows& entry) {
  return entry.journal.parent_path().parent_path().string();
}

template <typename Get>
Values Collect(const FinishedTrials& finished, Get get) {
  Values values;
  for (const auto& [index, entry] : finished) {
    const std::string& value = get(entry);
    values[value.empty() ? kUnknown : value].insert(DirectoryOf(entry));
  }
  return values;
}

std::string Describe(const Values& values) {
  std::vector<std::string> parts;
  for (const auto& [value, directories] : values) {
    parts.push_back(fmt::format("{} in {}", value, fmt::join(directories, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string DescribeDoubles(const std::vector<DoubleTrial>& doubles) {
  std::map<std::string, std::vector<size_t>> by_place;
  for (const DoubleTrial& entry : doubles) {
    by_place[fmt::format("{} and {}", entry.first.string(), entry.second.string())].push_back(
        entry.trial);
  }
  std::vector<std::string> parts;
  for (auto& [place, trials] : by_place) {
    std::sort(trials.begin(), trials.end());  // journals have the order in which trials finished
    parts.push_back(fmt::format("numbers {} in {}", NumberList(trials), place));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

bool DependsOnProcessor(const Experiment& experiment, const Settings& settings) {
  if (experiment.timed) return true;
  constexpr std::string_view kMode = "library";  // the word, in a list or as NAME=library
  constexpr std::string_view kEnds = ",;=/: '\"[]{}";
  for (const auto& [name, value] : settings.options) {
    for (size_t at = value.find(kMode); at != std::string::npos; at = value.find(kMode, at + 1)) {
      const size_t end = at + kMode.size();
      const bool begins = at == 0 || kEnds.find(value[at - 1]) != kEnds.npos;
      if (begins && (end == value.size() || kEnds.find(value[end]) != kEnds.npos)) return true;
    }
  }
  return false;
}

std::string NumberList(const std::vector<size_t>& numbers) {
  constexpr size_t kMost = 10;
  const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, numbers.size()));
  std::string text = fmt::format("{}", fmt::join(numbers.begin(), end, ", "));
  if (numbers.size() > kMost) text += fmt::format(" and {} more", numbers.size() - kMost);
  return text;
}

void CheckAllowed(const std::vector<std::string>& allow) {
  std::vector<std::string> names = SplitList(std::string(kAllowable));
  for (std::string& name : names) name.erase(0, name.find_first_not_of(' '));
  for (const std::string& what : allow) {
    if (std::find(names.begin(), names.end(), what) == names.end()) {
      throw NotOneOf("--allow", what, kAllowable);
    }
  }
}

NamedTexts CheckAlike(const Experiment& experiment,
                      const Settings& settings,
                      const FinishedTrials& finished,
                      const std::vector<DoubleTrial>& doubles,
                      const std::vector<std::string>& allow) {
  NamedTexts allowed;
  const auto judge = [&](const std::string& what, bool differs, const std::string& values) {
    const bool is_allowed = std::find(allow.begin(), allow.end(), what) != allow.end();
    if (is_allowed) allowed.emplace_back(what, differs ? values : "none");
    if (!differs || is_allowed) return;
    const bool is_double = what == "double";
    throw Error::Format("merge: {}: {}; expected {}; --allow {} accepts this and records it",
                        is_double ? "trials are in two directories"
                                  : fmt::format("the trials differ in their {}", what),
                        values,
                        is_double ? "each trial once" : "the same everywhere",
                        what);
  };
  judge("double", !doubles.empty(), DescribeDoubles(doubles));
  const Values commits = Collect(finished, [](const FinishedRows& entry) { return entry.commit; });
  judge("commit", commits.size() > 1, Describe(commits));
  const Values builds = Collect(finished, [](const FinishedRows& entry) { return entry.build; });
  judge("build", builds.size() > 1, Describe(builds));
  const Values processors =
      Collect(finished, [](const FinishedRows& entry) { return entry.processor; });
  const auto unknown = processors.find(kUnknown);
  const bool differs =
      processors.size() > 1 || (unknown != processors.end() && unknown->second.size() > 1);
  judge("processor", differs && DependsOnProcessor(experiment, settings), Describe(processors));
  return allowed;
}

}  // namespace numsim::experiments
