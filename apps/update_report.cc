#include "apps/update_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  const char* name;
  Cell value;
};

std::vector<Figure> Figures(const UpdateOutcome& o) {
  return {{"status", std::string(ToString(o.status))},
          {"moved", o.moved},
          {"saturated", o.saturated},
          {"achieved_norm", o.achieved_norm},
          {"target_norm", o.target_norm},
          {"achieved_projection", o.achieved_projection},
          {"target_projection", o.target_projection},
          {"alpha", fmt::format("{}", o.alpha)},
          {"matched", o.matched},
          {"matched_target", o.matched_target},
          {"passes", o.passes}};
}

// Returns the figures of a whole step, with the stream of its random bits, which is its number.
std::vector<Figure> FiguresOfStep(const UpdateOutcome& outcome, RandomStream random) {
  std::vector<Figure> figures = Figures(outcome);
  figures.push_back({"seed", random.seed});
  figures.push_back({"step", random.stream});
  return figures;
}

// Returns the status as text, and other figures as a JSON number, or null if JSON cannot represent
// them.
Json JsonOf(const Figure& figure) {
  const std::string text = figure.value.Text();
  if (figure.name == std::string("status")) return text;
  if (!Json::accept(text)) return nullptr;
  return Json::parse(text);
}

}  // namespace

std::string OutcomeText(const UpdateOutcome& outcome, RandomStream random) {
  std::string text;
  for (const Figure& figure : FiguresOfStep(outcome, random)) {
    text += fmt::format("{:<20} {}\n", figure.name, figure.value.Text());
  }
  return text;
}

std::string OutcomeJson(const UpdateOutcome& outcome, RandomStream random) {
  Json json;
  for (const Figure& figure : FiguresOfStep(outcome, random)) json[figure.name] = JsonOf(figure);
  return json.dump(2) + "\n";
}

Table OutcomeTable(const std::vector<UpdateOutcome>& groups) {
  Table table;
  table.columns.emplace_back("group");
  for (const Figure& figure : Figures({})) table.columns.emplace_back(figure.name);
  for (size_t g = 0; g < groups.size(); ++g) {
    Row row = {uint64_t{g}};
    for (const Figure& figure : Figures(groups[g])) row.push_back(figure.value);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace numsim::apps
