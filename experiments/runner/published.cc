#include "experiments/runner/published.h"

#include <tuple>

#include "experiments/claims/frame.h"
#include "experiments/claims/scale.h"
#include "experiments/runner/published_files.h"
#include "experiments/runner/result_directory.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

constexpr std::string_view kFolder = "experiments/published/";

Table ReadPublished(const std::string& name) {
  const std::string path = std::string(kFolder) + name;
  for (const auto& [known, text] : kPublishedFiles) {
    if (known == name) return ParseCsv(text, path);
  }
  throw Error::Format("{}: not found among the published results", path);
}

std::vector<PublishedRun> ReadRuns() {
  std::vector<PublishedRun> runs;
  const Table list = ReadPublished("runs.csv");
  Frame(list).ForEach([&](const Frame& row) {
    const std::string directory = row.Text("directory");
    runs.push_back({std::string(kFolder) + directory,
                    row.Text("page"),
                    ReadPublished(directory + "/" + std::string(kVerdictsFile))});
  });
  return runs;
}

constexpr int kTests = 2;

// Returns how much a run says about a claim: kTests if it tests it, 1 if it has its arms and they show why
// it is not tested, 0 if it leaves arms out.
int Knowledge(const Frame& verdict) {
  if (verdict.Text("verdict") != ToString(Verdict::kNotTested)) return kTests;
  const std::string reason = verdict.Text("reason");
  const auto begins = [&](std::string_view text) { return reason.starts_with(text); };
  return begins(kOutOfReach) || begins(kNoEvidence) ? 1 : 0;
}

double NumberOrZero(const Frame& row, const char* column) {
  return row.Text(column).empty() ? 0 : row.Number(column);
}

PublishedVerdict VerdictOf(const PublishedRun& run, const Frame& rows) {
  return {.verdict = rows.Text("verdict"),
          .scale = rows.Text("scale"),
          .seeds = rows.Text("seeds"),
          .preset = rows.Text("preset"),
          .margin = rows.Text("margin"),
          .reason = rows.Text("reason"),
          .page = run.page,
          .directory = run.directory,
          .parameters = NumberOrZero(rows, "parameters"),
          .tokens = NumberOrZero(rows, "tokens"),
          .word = rows.Text("word")};
}

}  // namespace

const std::vector<PublishedRun>& PublishedRuns() {
  static const std::vector<PublishedRun> runs = ReadRuns();
  return runs;
}

std::string PublishedVerdict::Size() const { return SizeText(word, parameters, tokens); }

PublishedVerdict QuotedVerdict(std::string_view claim) {
  PublishedVerdict quoted;
  std::vector<PublishedVerdict> tested;
  std::tuple<int, double, double> known;
  for (const PublishedRun& run : PublishedRuns()) {
    const Frame rows = Frame(run.verdicts).Where("claim", claim);
    if (rows.Empty()) continue;
    PublishedVerdict verdict = VerdictOf(run, rows);
    // A run that leaves a claim's arms out takes nothing back.
    const int knowledge = Knowledge(rows);
    if (knowledge == kTests) tested.push_back(verdict);
    const std::tuple here(knowledge, TwoDigits(verdict.parameters), TwoDigits(verdict.tokens));
    if (here < known) continue;
    known = here;
    quoted = std::move(verdict);
  }
  for (PublishedVerdict& other : tested) {
    if (other.verdict != quoted.verdict) quoted.others.push_back(std::move(other));
  }
  return quoted;
}

}  // namespace numsim::experiments
