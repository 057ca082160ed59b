#include "experiments/study/read_tables.h"

#include <algorithm>

#include "experiments/study/outcomes.h"

namespace numsim::experiments::study {
namespace {

// Adds columns that another table of the study has too: { table, columns }. Their meaning is that of the
// other table, or a text that says so.
void AddColumnsOf(
    Node& node, const char* key, bool same, const Study& study, std::vector<Column>& columns) {
  if (!node.Has(key)) return;
  Node other = node.Table(key);
  const TableColumns tables = ColumnsOfTables(study);
  const Named<Column>& all = Find(tables, other, "table");
  const std::string as_in = "as in " + other.Text("table") + ".csv";
  for (const std::string& name : other.Texts("columns")) {
    const Column& column = FindNamed(all, name, "the column", other, "columns");
    columns.push_back({name, same ? column.meaning : as_in, column.kind});
  }
  other.CheckTaken();
}

// Returns the columns that other tables have too, then the table's own.
std::vector<Column> ReadAllColumns(Node& node, const Study& study) {
  std::vector<Column> columns;
  AddColumnsOf(node, "as_in", false, study, columns);
  AddColumnsOf(node, "same_as", true, study, columns);
  return Joined(std::move(columns), ReadColumns(node));
}

// Returns the columns that a study may have: its own, and those of all.
Named<EndColumn> EndColumnsOf(const Functions& functions) {
  Named<EndColumn> columns;
  for (const EndColumn& column : functions.columns) columns.emplace(column.column.name, column);
  for (const auto& make : {StatusColumn,
                           StepsColumn,
                           ParametersColumn,
                           StartLossColumn,
                           TrainLossColumn,
                           ValidLossColumn,
                           ZeroShotColumn,
                           EarlyLossColumn,
                           ChanceLossColumn}) {
    EndColumn column = make();
    columns.emplace(column.column.name, std::move(column));
  }
  return columns;
}

std::vector<EndColumn> ReadEndColumns(Node& node, const Functions& functions) {
  const Named<EndColumn> all = EndColumnsOf(functions);
  std::vector<EndColumn> columns;
  for (const std::string& name : node.Texts("columns")) {
    columns.push_back(FindNamed(all, name, "the column", node, "columns"));
  }
  return columns;
}

DerivedTable ReadOutcomeTable(Node& node, const std::vector<Axis>& axes) {
  std::vector<GapColumn> gaps;
  for (Node& gap : node.Tables("gaps")) {
    RequireAxes(gap, "baseline_of", axes);
    gaps.push_back({gap.Text("name"), gap.Text("meaning"), gap.Texts("baseline_of")});
    gap.CheckTaken();
  }
  return Outcomes(gaps);
}

DerivedTable ReadMeans(Node& node, const NamedOutcomes& outcomes) {
  std::vector<MeanColumn> columns;
  for (Node& column : node.Tables("columns")) {
    columns.push_back({column.Text("name"),
                       column.Text("meaning"),
                       column.Flag("interval", false),
                       column.Flag("finished", false),
                       column.Flag("diverged", false)});
    if (column.Has("outcome")) columns.back().outcome = Find(outcomes, column, "outcome").of;
    column.CheckTaken();
  }
  return ArmMeans(node.Text("name"), columns);
}

}  // namespace

MeasuredTable ReadTable(Node& node, const Study& study) {
  MeasuredTable table{.name = node.Text("name"),
                      .columns = ReadAllColumns(node, study),
                      .timed = node.Flag("timed", false)};
  node.CheckTaken();
  return table;
}

ProbeSpec ReadProbe(Node& node, const Study& study, const Functions& functions) {
  Named<ProbeSpec> probes = functions.probes;
  const std::string measure = node.Text("measure");
  const bool losses = measure == "curves" || measure == "validations";
  const std::string unit = losses ? node.Text("unit", "nats") : "";
  probes.emplace("curves", Curves(unit));
  probes.emplace("validations", Validations(unit));
  probes.emplace("residual-stream", ResidualStream());
  probes.emplace("quantized-operands", QuantizedOperands());
  const bool end = measure == "end-of-training";
  probes.emplace(
      "end-of-training",
      end ? EndOfTraining(node.Text("table"), ReadEndColumns(node, functions)) : ProbeSpec());
  ProbeSpec probe = Find(probes, node, "measure");
  if (node.Has("tables") && !probe.tables.empty()) {
    throw node.About("tables", "what is measured has its own tables");
  }
  for (Node& table : node.Tables("tables")) probe.tables.push_back(ReadTable(table, study));
  return probe;
}

DerivedTable ReadDerived(Node& node,
                         const Study& study,
                         const Functions& functions,
                         const NamedOutcomes& outcomes) {
  const std::string rows = node.Text("rows");
  if (rows == "outcomes") return ReadOutcomeTable(node, study.axes);
  if (rows == "means") return ReadMeans(node, outcomes);
  Named<int> known = {{"outcomes", 0}, {"means", 0}};
  for (const auto& [name, function] : functions.tables) known.emplace(name, 0);
  Find(known, node, "rows");
  return {.name = node.Text("name"),
          .columns = ReadAllColumns(node, study),
          .of_arms = node.Flag("of_arms", false),
          .rows = Find(functions.tables, node, "rows")};
}

}  // namespace numsim::experiments::study
