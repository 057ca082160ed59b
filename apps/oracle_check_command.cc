// `numsim oracle check`: checks the results of an implementation.
#include <fmt/format.h>
#include <unistd.h>

#include "apps/column_text.h"
#include "apps/operation_options.h"
#include "apps/oracle_command.h"
#include "numsim/base/error.h"
#include "numsim/oracle/case_npy.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/judge.h"
#include "numsim/oracle/pack.h"

namespace numsim::apps {
namespace {

constexpr size_t kMostInputsShown = 4;

struct CheckOptions {
  OperationOptions operation;
  std::string npy, pack;
  bool flags = false;
  std::string nan = "exact";
  uint64_t limit = 20;
};

void PrintValue(const std::string& name, const std::string& note, const std::string& value) {
  fmt::print("  {:<10}{:<10}{}\n", name, note, value);
}

// Prints the case as read, its inputs, and every wrong result with the expected one.
void Print(const Mismatch& mismatch,
           const char* place,
           const CaseColumns& columns,
           const Judge& judge) {
  const auto row_columns = std::span(columns.all).first(mismatch.row.size());
  fmt::print("{} {}: {}\n", place, mismatch.place, RowText(row_columns).Line(mismatch.row));
  if (columns.inputs <= kMostInputsShown) {
    for (size_t i = 0; i < columns.inputs; ++i) {
      PrintValue(columns.all[i].name, "", ColumnText(columns.all[i], mismatch.row[i]));
    }
  }
  for (size_t i = 0; i < columns.results; ++i) {
    const Column& column = columns.all[columns.inputs + i];
    const uint64_t got = mismatch.row[columns.inputs + i];
    if (judge.Accepts(i, got, mismatch.expected[i])) continue;
    PrintValue(column.name, "got", ColumnText(column, got));
    PrintValue("", "expected", ColumnText(column, mismatch.expected[i]));
  }
  const bool flags = mismatch.row.size() > columns.WithoutFlags();
  if (flags && mismatch.row.back() != mismatch.expected_flags) {
    PrintValue("flags", "got", FlagsText(static_cast<Flags>(mismatch.row.back())));
    PrintValue("", "expected", FlagsText(mismatch.expected_flags));
  }
}

int Report(const Judge& judge, const char* place, const CaseColumns& columns) {
  for (const Mismatch& mismatch : judge.first()) Print(mismatch, place, columns, judge);
  if (judge.mismatches() > judge.first().size()) {
    fmt::print("... and {} more\n", judge.mismatches() - judge.first().size());
  }
  const char* const what = judge.judged_flags() ? "results and flags" : "results";
  if (judge.mismatches() == 0) {
    fmt::print("{} cases, all {} right\n", judge.cases(), what);
    return 0;
  }
  fmt::print("{} cases, {} wrong", judge.cases(), judge.mismatches());
  if (judge.wrong_in_flags_alone() > 0) {
    fmt::print(" ({} of them in the flags alone)", judge.wrong_in_flags_alone());
  }
  fmt::print("\n");
  return 1;
}

// Checks every file of a pack against the operation that its manifest states.
int CheckFiles(const CheckOptions& options) {
  uint64_t cases = 0, wrong = 0;
  CheckPack(options.pack,
            options.limit,
            [&](const PackFile& file, const Operation& operation, const Judge& judge) {
              cases += judge.cases();
              wrong += judge.mismatches();
              if (judge.mismatches() == 0) return;
              fmt::print("{}\n", file.path);
              Report(judge, "line", ColumnsOf(operation));
            });
  if (wrong > 0) {
    fmt::print("{} cases, {} wrong\n", cases, wrong);
    return 1;
  }
  fmt::print("{} cases, all right; digests as in the manifest\n", cases);
  return 0;
}

int Check(const CheckOptions& options) {
  if (!options.pack.empty()) return CheckFiles(options);
  if (options.operation.named.op.empty()) throw Error("--op is missing (or --pack)");
  const std::unique_ptr<Operation> operation = MakeOperation(options.operation.Request());
  const CaseColumns columns = ColumnsOf(*operation);
  if (options.flags && !columns.has_flags) {
    throw Error::Format("--flags: {} has no flags", operation->info().name);
  }
  Judge judge(*operation, ParseNanRule(options.nan), options.limit);
  if (options.npy.empty()) {
    TallyText(STDIN_FILENO, "standard input", columns, options.flags, judge);
    return Report(judge, "line", columns);
  }
  TallyNpy(options.npy, columns, options.flags, judge);
  return Report(judge, "row", columns);
}

}  // namespace

void AddOracleCheckCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "check",
      "Check lines of \"inputs result [flags]\" from standard input; exit code 1 if any is wrong");
  AddOperationOptions(sub, options->operation);
  sub->add_flag("--flags", options->flags, "Require flags on every line");
  sub->add_option("--nan",
                  options->nan,
                  "Codes accepted where NaN is expected: exact (canonical NaN) or any (every NaN)")
      ->capture_default_str();
  sub->add_option("--limit", options->limit, "Maximum number of mismatches to print")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1000000}))
      ->capture_default_str();
  sub->add_option("--npy", options->npy, "Check a (cases, columns) array instead of text")
      ->check(NotEmpty());
  CLI::Option* const pack =
      sub->add_option(
             "--pack", options->pack, "Check all files of a pack and their digests instead")
          ->check(NotEmpty());
  sub->get_option("--op")->required(false);
  for (CLI::Option* const option : sub->get_options()) {
    const bool fits =
        option == pack || option->get_name() == "--limit" || option == sub->get_help_ptr();
    if (!fits) pack->excludes(option);
  }
  Example(sub,
          "numsim oracle gen --op add --format e4m3fn --level full | ./my_adder |\n"
          "    numsim oracle check --op add --format e4m3fn");
  Choose(program, sub, [options] { return Check(*options); });
}

}  // namespace numsim::apps
