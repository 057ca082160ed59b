// `numsim oracle answer`: completes given cases with the right results and flags.
#include <unistd.h>

#include "apps/operation_options.h"
#include "apps/oracle_command.h"
#include "numsim/io/npy.h"
#include "numsim/oracle/answers.h"
#include "numsim/oracle/case_npy.h"

namespace numsim::apps {
namespace {

struct AnswerOptions {
  OperationOptions operation;
  std::string npy, out;
};

int Answer(const AnswerOptions& options) {
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
  Example(sub,
          "numsim oracle answer --op convert --to e4m3fn --rounding sr --sr-bits 8 <cases.txt");
  Choose(program, sub, [options] { return Answer(*options); });
}

}  // namespace numsim::apps
