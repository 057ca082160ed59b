// Valid inputs of the parsers, and the small objects that they belong to.
#pragma once

#include <string>
#include <vector>

#include "apps/update_state_file.h"
#include "numsim/config/config.h"
#include "numsim/updates/update_rule.h"

namespace numsim::fuzz {

using Seeds = std::vector<std::string>;

Seeds NpySeeds();
Seeds SafetensorsSeeds();
Seeds IdxSeeds();
Seeds CaptionSeeds();
Seeds TomlSeeds();
Seeds CsvSeeds();
Seeds JournalSeeds();
Seeds SettingsSeeds();
Seeds ManifestSeeds();
Seeds PackSeeds();
Seeds OracleSeeds();
Seeds CheckpointSeeds();
Seeds UpdateStateSeeds();
Seeds ModeSeeds();
Seeds FormatSeeds();
Seeds MomentSeeds();
Seeds RuleSeeds();
Seeds LevelSeeds();
Seeds NumberSeeds();

std::string IdxLabels();      // of 4 images
std::string CaptionImages();  // a .npy file of 4 images
// The training whose checkpoint is a seed.
TrainConfig SmallTraining();
// The owner of the state that is a seed, and the initial state.
apps::UpdateStateOwner SmallOwner();
UpdateState SmallState();

}  // namespace numsim::fuzz
