#include "apps/update_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  const char* name;
  std::string text;
};

std::vector<Figure> Figures(const UpdateOutcome& o) {
  return {{"status", std::string(ToString(o.status))},
          {"moved", FormatCell(o.moved)},
          {"saturated", FormatCell(o.saturated)},
          {"achieved_norm", FormatCell(o.achieved_norm)},
          {"target_norm", FormatCell(o.target_norm)},
          {"achieved_projection", FormatCell(o.achieved_projection)},
          {"target_projection", FormatCell(o.target_projection)},
          {"alpha", fmt::format("{}", o.alpha)},
          {"matched", FormatCell(o.matched)},
          {"matched_target", FormatCell(o.matched_target)},
          {"passes", FormatCell(o.passes)}};
}

// Returns the status as text, and other figures as a JSON number, or null if JSON cannot represent
// them.
Json JsonOf(const Figure& figure) {
  if (figure.name == std::string("status")) return figure.text;
  if (!Json::accept(figure.text)) return nullptr;
  return Json::parse(figure.text);
}

}  // namespace

std::string OutcomeText(const UpdateOutcome& outcome) {
  std::string text;
  for (const Figure& figure : Figures(outcome)) {
    text += fmt::format("{:<20} {}\n", figure.name, figure.text);
  }
  return text;
}

std::string OutcomeJson(const UpdateOutcome& outcome) {
  Json json;
  for (const Figure& figure : Figures(outcome)) json[figure.name] = JsonOf(figure);
  return json.dump(2) + "\n";
}

Table OutcomeTable(const std::vector<UpdateOutcome>& groups) {
  Table table;
  table.columns.emplace_back("group");
  for (const Figure& figure : Figures({})) table.columns.emplace_back(figure.name);
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<std::string> row = {FormatCell(uint64_t{g})};
    for (const Figure& figure : Figures(groups[g])) row.push_back(figure.text);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace numsim::apps
