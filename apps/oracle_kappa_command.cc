// `numsim oracle kappa`: measures the largest error of an implementation in value steps.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

#include "apps/column_text.h"
#include "apps/operation_options.h"
#include "apps/oracle_command.h"
#include "numsim/oracle/case_npy.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/kappa.h"

namespace numsim::apps {
namespace {

struct KappaOptions {
  OperationOptions operation;
  std::string npy;
  std::string nan = "exact";
  std::optional<uint64_t> declared;
};

void PrintPlace(const KappaPlace& at, const char* place, const CaseColumns& columns) {
  const Column& column = columns.all[columns.inputs + at.result];
  fmt::print("  first at          {} {}: {}\n", place, at.place, RowLine(columns.all, at.row));
  fmt::print("    {:<16}got       {}\n",
             column.name,
             ColumnText(column, at.row[columns.inputs + at.result]));
  fmt::print("    {:<16}expected  {}\n", "", ColumnText(column, at.expected));
}

void PrintIncomparable(const KappaMeter& meter, const char* place, const CaseColumns& columns) {
  const KappaMeter::Incomparable& counts = meter.incomparable();
  fmt::print("not comparable      {}\n", counts.Total());
  if (counts.Total() == 0) return;
  fmt::print("  finite expected   {}\n", counts.finite_expected);
  fmt::print("  infinity expected {}\n", counts.infinity_expected);
  fmt::print("  NaN expected      {}\n", counts.nan_expected);
  if (counts.nan_code > 0) {
    fmt::print("  another NaN code  {} (--nan any accepts them)\n", counts.nan_code);
  }
  PrintPlace(*meter.incomparable_at(), place, columns);
}

void Report(const Operation& operation,
            const KappaMeter& meter,
            const char* place,
            const CaseColumns& columns) {
  fmt::print("checked against     {}\n", OperationText(operation));
  fmt::print("cases               {}\n", meter.cases());
  fmt::print(
      "largest error       {} value step{}\n", meter.largest(), meter.largest() == 1 ? "" : "s");
  if (meter.largest_at()) PrintPlace(*meter.largest_at(), place, columns);
  PrintIncomparable(meter, place, columns);
  fmt::print("\n{:>23}  results\n", "value steps");
  for (size_t bin = 0; bin < KappaMeter::kBins; ++bin) {
    const uint64_t count = meter.histogram()[bin];
    if (count > 0) fmt::print("{:>23}  {}\n", KappaMeter::BinText(bin), count);
  }
  if (meter.incomparable().Total() == 0) {
    fmt::print("\nkappa {} covers these cases\n", meter.largest());
  } else {
    const bool nan = meter.incomparable().nan_on_one_side > 0;
    fmt::print("\nno kappa covers these cases: some results are not comparable{}\n",
               meter.incomparable().Total() == meter.incomparable().nan_code ? ""
               : nan ? "; P3109 declares kappa = NaN"
                     : "; P3109 declares kappa = infinity");
  }
}

// Returns the exit code: 1 if the implementation is not as near as it declares.
int Judgement(const KappaMeter& meter, std::optional<uint64_t> declared) {
  if (!declared) return 0;
  const bool holds = meter.largest() <= *declared && meter.incomparable().Total() == 0;
  fmt::print("the declared kappa {} {}\n", *declared, holds ? "holds" : "does not hold");
  return holds ? 0 : 1;
}

int Measure(const KappaOptions& options) {
  const std::unique_ptr<Operation> operation = MakeOperation(options.operation.Request());
  const CaseColumns columns = ColumnsOf(*operation);
  KappaMeter meter(*operation, ParseNanRule(options.nan));
  if (options.npy.empty()) {
    TallyText(STDIN_FILENO, "standard input", columns, false, meter);
  } else {
    TallyNpy(options.npy, columns, false, meter);
  }
  Report(*operation, meter, options.npy.empty() ? "line" : "row", columns);
  return Judgement(meter, options.declared);
}

}  // namespace

void AddOracleKappaCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<KappaOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "kappa",
      "Measure the largest error in value steps (P3109's kappa); reads lines like `check`");
  AddOperationOptions(sub, options->operation);
  AddNanOption(sub, options->nan);
  sub->add_option("--declared",
                  options->declared,
                  "The kappa that the implementation declares; exit code 1 if a result is further "
                  "away or not comparable");
  sub->add_option("--npy", options->npy, "Read a (cases, columns) array instead of text")
      ->check(NotEmpty());
  Example(sub,
          "numsim oracle gen --op add --format binary8p4se --level full | ./my_adder |\n"
          "    numsim oracle kappa --op add --format binary8p4se");
  Choose(program, sub, [options] { return Measure(*options); });
}

}  // namespace numsim::apps
