// `numsim oracle accumulators`: the named rules of accumulation.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/oracle_command.h"
#include "numsim/arith/accumulator.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

const char* Evidence(const AccumulatorRow& row) { return row.measured ? "measured" : "reported"; }

void PrintTable() {
  constexpr const char* kColumns = "{:<16} {:<43} {:<20} {:<9} {:<16} {}\n";
  fmt::print(kColumns, "name", "rule", "operands", "evidence", "source", "note");
  for (const AccumulatorRow& row : AccumulatorTable()) {
    fmt::print(
        kColumns, row.name, RuleText(row.rule), row.operands, Evidence(row), row.source, row.note);
  }
}

void PrintJson() {
  Json all = Json::array();
  for (const AccumulatorRow& row : AccumulatorTable()) {
    Json json;
    json["name"] = row.name;
    json["rule"] = RuleText(row.rule);
    json["operands"] = row.operands;
    json["evidence"] = Evidence(row);
    json["source"] = row.source;
    json["note"] = row.note;
    all.push_back(json);
  }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void AddOracleAccumulatorsCommand(Program& program, CLI::App* oracle) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = oracle->add_subcommand(
      "accumulators", "List the named rules of --accumulator: how devices add up products");
  sub->add_flag("--json", *json, "Write JSON");
  Example(sub, "numsim oracle accumulators");
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
