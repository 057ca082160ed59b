// `numsim oracle accumulation-modes`: lists the named accumulation modes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/oracle_command.h"
#include "numsim/arith/accumulation_mode.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

const char* Evidence(const AccumulationModeRow& row) {
  return row.measured ? "measured" : "reported";
}

void PrintTable() {
  constexpr const char* kColumns = "{:<16} {:<43} {:<20} {:<9} {:<16} {}\n";
  fmt::print(kColumns, "name", "rule", "operands", "evidence", "source", "note");
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    fmt::print(kColumns,
               row.name,
               DefinitionText(row.mode),
               row.operands,
               Evidence(row),
               row.source,
               row.note);
  }
}

void PrintJson() {
  Json all = Json::array();
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    Json json;
    json["name"] = row.name;
    json["rule"] = DefinitionText(row.mode);
    json["operands"] = row.operands;
    json["evidence"] = Evidence(row);
    json["measured_inner"] = row.measured_inner;
    json["source"] = row.source;
    json["note"] = row.note;
    all.push_back(json);
  }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void AddOracleAccumulationModesCommand(Program& program, CLI::App* oracle) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = oracle->add_subcommand(
      "accumulation-modes", "List the named accumulation modes: how devices add up products");
  sub->alias("accumulators");
  sub->add_flag("--json", *json, "Print JSON");
  Example(sub, "numsim oracle accumulation-modes");
  Choose(program, sub, [json] {
    if (*json) {
      PrintJson();
    } else {
      PrintTable();
    }
    return 0;
  });
}

}  // namespace numsim::apps
