// `numsim oracle answer`: completes given cases with the right results and flags.
#include <unistd.h>

#include <iostream>

#include "apps/operation_options.h"
#include "apps/oracle_command.h"
#include "apps/oracle_numbers.h"
#include "numsim/io/npy.h"
#include "numsim/oracle/answers.h"
#include "numsim/oracle/case_npy.h"

namespace numsim::apps {
namespace {

struct AnswerOptions {
  OperationOptions operation;
  std::string npy, out;
  bool numbers = false;
};

int Answer(const AnswerOptions& options) {
  if (options.numbers) {
    AnswerNumbers(options.operation.Request(), std::cin, WriteToStandardOutput);
    return 0;
  }
  const std::unique_ptr<Operation> operation = MakeOperation(options.operation.Request());
  if (!options.npy.empty()) {
    WriteNpy(options.out, AnswerArray(options.npy, *operation));
    return 0;
  }
  AnswerText answers(*operation, WriteToStandardOutput);
  TallyText(STDIN_FILENO, "standard input", InputColumnsOf(*operation), false, answers);
  return 0;
}

}  // namespace

void AddOracleAnswerCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<AnswerOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "answer",
      "Read cases from standard input, one per line (operands, and the random bits of a stochastic "
      "mode), and write them with the right results and flags");
  AddOperationOptions(sub, options->operation);
  CLI::Option* const npy =
      sub->add_option(
             "--npy", options->npy, "Read the cases from this (cases, columns) array; needs --out")
          ->check(NotEmpty());
  CLI::Option* const out =
      sub->add_option("--out", options->out, "Write the array of --npy with its results here")
          ->check(NotEmpty());
  npy->needs(out);
  out->needs(npy);
  sub->add_flag(
         "--numbers",
         options->numbers,
         "Operands are numbers (decimal or hexadecimal, of any length, or sums A+B), not codes; "
         "they must be numbers of their format, but convert without --format rounds any "
         "number once, from its exact value")
      ->excludes(npy);
  Example(sub,
          "numsim oracle answer --op convert --to e4m3fn --rounding sr --sr-bits 8 <cases.txt\n"
          "  echo 0.1 | numsim oracle answer --op convert --to bf16 --numbers");
  Choose(program, sub, [options] { return Answer(*options); });
}

}  // namespace numsim::apps
