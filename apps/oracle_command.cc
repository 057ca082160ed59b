#include "apps/oracle_command.h"

namespace numsim::apps {

void AddOracleCommand(Program& program) {
  CLI::App* oracle = program.app.add_subcommand(
      "oracle",
      "Reference results: generate test vectors, check implementations, compare vendors' "
      "conversions");
  oracle->fallthrough();
  Example(oracle, "numsim oracle gen --op add --format e4m3fn --level full --results");
  AddOracleGenCommand(program, oracle);
  AddOracleCheckCommand(program, oracle);
  AddOracleAnswerCommand(program, oracle);
  AddOracleKappaCommand(program, oracle);
  AddOraclePackCommand(program, oracle);
  AddOracleDiffCommand(program, oracle);
  AddOracleProfilesCommand(program, oracle);
  AddOracleAccumulationModesCommand(program, oracle);
  AddOracleProbeDeviceCommand(program, oracle);
}

}  // namespace numsim::apps
