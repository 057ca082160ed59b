#include "experiments/runner/trial_costs.h"

#include <cmath>

#include "numsim/base/error.h"
#include "numsim/io/csv.h"

namespace numsim::experiments {

std::string TrialCostsText(const std::vector<Trial>& trials) {
  Table table{{"trial", "label", "cost"}, {}};
  for (size_t i = 0; i < trials.size(); ++i) {
    table.rows.push_back({i, trials[i].label, trials[i].cost});
  }
  return ToCsv(table);
}

void ReadTrialCosts(const std::filesystem::path& path, std::vector<Trial>& trials) {
  const Table table = ReadCsv(path);
  if (table.rows.size() != trials.size()) {
    throw Error::Format("{}: has the costs of {} trials; these settings have {}",
                        path.string(),
                        table.rows.size(),
                        trials.size());
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      throw Error::Format(
          "{}: record {}: expected {}, found '{}'", path.string(), i + 1, expected, found);
    };
    if (table.Text(i, "trial") != std::to_string(i)) {
      refuse(fmt::format("trial {}", i), table.Text(i, "trial"));
    }
    if (table.Text(i, "label") != trials[i].label) {
      refuse(fmt::format("label '{}'", trials[i].label), table.Text(i, "label"));
    }
    double cost = 0;
    try {
      cost = table.Number(i, "cost");
    } catch (const Error& error) {
      throw Error::Format("{}: {}", path.string(), error.what());
    }
    if (!(cost > 0) || !std::isfinite(cost)) refuse("a cost above 0", table.Text(i, "cost"));
    trials[i].cost = cost;
  }
}

}  // namespace numsim::experiments
