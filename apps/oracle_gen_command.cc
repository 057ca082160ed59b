// `numsim oracle gen`: writes test cases of an operation, with or without the expected results.
#include "apps/operation_options.h"
#include "apps/oracle_command.h"
#include "numsim/io/npy.h"
#include "numsim/oracle/case_npy.h"
#include "numsim/oracle/case_output.h"
#include "numsim/oracle/cases.h"

namespace numsim::apps {
namespace {

struct GenOptions {
  OperationOptions operation;
  LevelOptions level = {.level = "edges"};
  bool results = false;
  std::string npy;
  std::string as = "hex";
};

int Generate(const GenOptions& options) {
  const CaseOutput as = ParseCaseOutput(options.as);
  const std::unique_ptr<Operation> operation = MakeOperation(options.operation.Request());
  const CaseRows rows(*operation, options.level.Parsed(), options.results);
  if (!options.npy.empty()) {
    WriteNpy(options.npy, CaseArray(rows, options.npy));
    return 0;
  }
  WriteCases(rows, operation->info().name, as, WriteToStandardOutput);
  return 0;
}

}  // namespace

void AddOracleGenCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<GenOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "gen", "Write test cases of an operation: hexadecimal codes, one case per line");
  AddOperationOptions(sub, options->operation);
  AddLevelOptions(sub, options->level, "Cases to write");
  sub->get_option("--level")->capture_default_str();
  sub->add_flag("--results", options->results, "Also write the expected results and flags");
  sub->add_option("--npy",
                  options->npy,
                  "Write a (cases, columns) array to this file instead of text to standard output")
      ->check(NotEmpty());
  sub->add_option(
         "--as",
         options->as,
         "Form of the text: hex (what check and answer read), json, csv (with a header) or "
         "readmemh (one word per case, for Verilog's $readmemh)")
      ->capture_default_str()
      ->excludes("--npy");
  Example(sub,
          "numsim oracle gen --op add --format e4m3fn --level full\n"
          "  numsim oracle gen --op dot --format e2m1fn --scale-format e8m0fnu --to fp32 --results "
          "--as csv");
  Choose(program, sub, [options] { return Generate(*options); });
}

}  // namespace numsim::apps
