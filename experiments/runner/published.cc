#include "experiments/runner/published.h"

#include "experiments/claims/frame.h"
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

// Returns how much a run says about a claim: 2 if it tests it, 1 if it has its arms and they show why
// it is not tested, 0 if it leaves arms out.
int Knowledge(const Frame& verdict) {
  if (verdict.Text("verdict") != ToString(Verdict::kNotTested)) return 2;
  const std::string reason = verdict.Text("reason");
  const auto begins = [&](std::string_view text) { return reason.starts_with(text); };
  return begins(kOutOfReach) || begins(kNoEvidence) ? 1 : 0;
}

}  // namespace

const std::vector<PublishedRun>& PublishedRuns() {
  static const std::vector<PublishedRun> runs = ReadRuns();
  return runs;
}

PublishedVerdict QuotedVerdict(std::string_view claim) {
  PublishedVerdict quoted;
  int known = 0;
  for (const PublishedRun& run : PublishedRuns()) {
    const Frame rows = Frame(run.verdicts).Where("claim", claim);
    if (rows.Empty()) continue;
    // A run that leaves a claim's arms out takes nothing back.
    const int here = Knowledge(rows);
    if (here < known) continue;
    known = here;
    quoted = {rows.Text("verdict"),
              rows.Text("scale"),
              rows.Text("seeds"),
              rows.Text("preset"),
              rows.Text("margin"),
              rows.Text("reason"),
              run.page,
              run.directory};
  }
  return quoted;
}

}  // namespace numsim::experiments
