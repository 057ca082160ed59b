// `numsim oracle check`: checks the results of an implementation.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "apps/mismatch_report.h"
#include "apps/operation_options.h"
#include "apps/oracle_command.h"
#include "apps/tally_pair.h"
#include "numsim/base/error.h"
#include "numsim/oracle/case_npy.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/coverage.h"
#include "numsim/oracle/judge.h"
#include "numsim/oracle/pack.h"

namespace numsim::apps {
namespace {

constexpr size_t kMostUncovered = 5;  // missing, repeated or foreign cases that are printed

struct CheckOptions {
  OperationOptions operation;
  LevelOptions level;
  std::string npy, pack, failures;
  bool flags = false;
  std::string nan = "exact";
  uint64_t limit = 20;
};

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
              PrintVerdict(judge, "line", ColumnsOf(operation));
            });
  if (wrong > 0) {
    fmt::print("{} cases, {} wrong\n", cases, wrong);
    return 1;
  }
  fmt::print("{} cases, all right; digests as in the manifest\n", cases);
  return 0;
}

void Read(const CheckOptions& options, const CaseColumns& columns, CaseTally& total) {
  if (options.npy.empty()) {
    TallyText(STDIN_FILENO, "standard input", columns, options.flags, total);
  } else {
    TallyNpy(options.npy, columns, options.flags, total);
  }
}

// Judges the cases and, if there is a level, compares them with its cases.
int CheckCases(const CheckOptions& options, const Operation& operation, Judge& judge) {
  const CaseColumns columns = ColumnsOf(operation);
  const char* const place = options.npy.empty() ? "line" : "row";
  if (options.level.level.empty()) {
    Read(options, columns, judge);
    const int code = PrintVerdict(judge, place, columns);
    fmt::print("completeness not checked: give --level and --seed of gen\n");
    return code;
  }
  const CaseLevel level = options.level.Parsed();
  CoverageTally coverage(operation, level);
  TallyPair both(judge, coverage);
  Read(options, columns, both);
  const Coverage compared = coverage.Compare(kMostUncovered);
  const int code = PrintVerdict(judge, place, columns);
  return std::max(code, PrintCoverage(compared, operation, level, place));
}

int Check(const CheckOptions& options) {
  if (!options.pack.empty()) return CheckFiles(options);
  if (options.operation.named.op.empty()) throw Error("--op is missing (or --pack)");
  const std::unique_ptr<Operation> operation = MakeOperation(options.operation.Request());
  const CaseColumns columns = ColumnsOf(*operation);
  if (options.flags && !columns.has_flags) {
    throw Error::Format("--flags: {} has no flags", operation->info().name);
  }
  const NanRule nan = ParseNanRule(options.nan);
  if (options.failures.empty()) {
    Judge judge(*operation, nan, options.limit);
    return CheckCases(options, *operation, judge);
  }
  MismatchFile file(options.failures, options.npy.empty() ? "line" : "row", columns);
  Judge judge(*operation, nan, options.limit, [&](const Mismatch& m) { file.Write(m); });
  const int code = CheckCases(options, *operation, judge);
  file.Commit();
  return code;
}

}  // namespace

void AddOracleCheckCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "check",
      "Check lines of \"inputs result [flags]\" from standard input; exit code 1 if any is wrong, "
      "or if --level is given and cases are missing");
  AddOperationOptions(sub, options->operation);
  AddLevelOptions(sub,
                  options->level,
                  "Cases that must be answered, each as often as `gen` writes it, in any order");
  sub->get_option("--seed")->needs("--level");
  sub->add_flag("--flags", options->flags, "Require flags on every line");
  AddNanOption(sub, options->nan);
  sub->add_option("--limit", options->limit, "Maximum number of mismatches to print")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1000000}))
      ->capture_default_str();
  sub->add_option("--failures", options->failures, "Write all mismatches to this CSV file")
      ->check(NotEmpty());
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
          "    numsim oracle check --op add --format e4m3fn --level full");
  Choose(program, sub, [options] { return Check(*options); });
}

}  // namespace numsim::apps
