// The subcommands of `numsim oracle`, which computes reference results. One file per subcommand.
#pragma once

#include "apps/command.h"

namespace numsim::apps {

// Each adds its subcommand to `oracle`.
void AddOracleGenCommand(Program& program, CLI::App* oracle);
void AddOracleCheckCommand(Program& program, CLI::App* oracle);
void AddOracleAnswerCommand(Program& program, CLI::App* oracle);
void AddOracleKappaCommand(Program& program, CLI::App* oracle);
void AddOraclePackCommand(Program& program, CLI::App* oracle);
void AddOracleDiffCommand(Program& program, CLI::App* oracle);
void AddOracleProfilesCommand(Program& program, CLI::App* oracle);
void AddOracleAccumulationModesCommand(Program& program, CLI::App* oracle);
void AddOracleProbeDeviceCommand(Program& program, CLI::App* oracle);

}  // namespace numsim::apps
