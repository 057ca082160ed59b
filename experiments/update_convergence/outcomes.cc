#include "experiments/update_convergence/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/core/frame.h"
#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

std::vector<Configuration> ConfigurationsOf(const Table& table) {
  std::vector<Configuration> all;
  const auto key = [](const Configuration& c) {
    return std::tie(c.problem, c.optimiser, c.format, c.rate);
  };
  for (size_t r = 0; r < table.rows.size(); ++r) {
    Configuration c{table.Text(r, "problem"),
                    table.Text(r, "optimiser"),
                    table.Text(r, "format"),
                    table.Text(r, "lr"),
                    {}};
    if (c.format == kBaselineFormat) continue;
    if (all.empty() || key(all.back()) != key(c)) all.push_back(std::move(c));
    all.back().rows[table.Text(r, "rule")] = r;
  }
  return all;
}

}  // namespace

const size_t* Outcomes::Row(const Configuration& c, const std::string& rule) const {
  const auto found = c.rows.find(rule);
  return found == c.rows.end() ? nullptr : &found->second;
}

bool Outcomes::Loses(const Configuration& c) const {
  const size_t* const row = Row(c, std::string(ToString(UpdateKind::kNaive)));
  return row != nullptr && std::abs(Number(*row, "projection_ratio") - 1) > kRatio;
}

Outcomes OutcomesOf(const Settings& settings, const Tables& tables) {
  const Table& cheapest = tables.at(std::string(kCheapestTable));
  Outcomes in{settings,
              tables.at(std::string(kFinalTable)),
              cheapest,
              Frame(cheapest).Distinct("format"),
              Frame(cheapest).Distinct("lr"),
              {},
              0};
  for (Configuration& c : ConfigurationsOf(in.final_table)) {
    if (in.final_table.Text(c.rows.begin()->second, "within_fp32") == "none") {
      ++in.without_progress;
    } else {
      in.configurations.push_back(std::move(c));
    }
  }
  return in;
}

std::string Count::Text() const { return all == 0 ? "-" : fmt::format("{}/{}", yes, all); }

std::string Verdict(const Count& count) {
  Tally tally;
  for (size_t i = 0; i < count.all; ++i) tally.Add(AnswerOf(i < count.yes));
  return tally.Verdict();
}

Tally TallyRows(const Outcomes& in,
                const std::string& rule,
                const std::function<Answer(size_t row)>& answer) {
  Tally tally;
  for (const Configuration& c : in.configurations) {
    const size_t* const row = in.Row(c, rule);
    if (row != nullptr) tally.Add(answer(*row));
  }
  return tally;
}

Count CountRows(const Outcomes& in,
                const std::string& rule,
                const Holds& holds,
                const std::string& format,
                const std::string& rate) {
  Count count;
  for (const Configuration& c : in.configurations) {
    if ((!format.empty() && c.format != format) || (!rate.empty() && c.rate != rate)) continue;
    const size_t* const row = in.Row(c, rule);
    if (row == nullptr) continue;
    ++count.all;
    count.yes += holds(*row) ? 1 : 0;
  }
  return count;
}

Count Beats(const Outcomes& in, UpdateKind a, UpdateKind b, const std::string& format) {
  Count count;
  for (const Configuration& c : in.configurations) {
    const size_t* const first = in.Row(c, std::string(ToString(a)));
    const size_t* const second = in.Row(c, std::string(ToString(b)));
    if (first == nullptr || second == nullptr || !in.Loses(c)) continue;
    if (!format.empty() && c.format != format) continue;
    if (std::isnan(in.Number(*first, "gap")) || std::isnan(in.Number(*second, "gap"))) continue;
    ++count.all;
    count.yes += in.Number(*first, "gap") < in.Number(*second, "gap") - kGrowth ? 1 : 0;
  }
  return count;
}

}  // namespace numsim::experiments::update_convergence
