// The settings of a paper's training, and those in which a run differs.
#pragma once

#include <string>

namespace numsim::experiments {

// A setting of the paper's training.
struct SharedSetting {
  std::string name;    // "tokens per step"
  std::string values;  // of the paper; several are separated by "; "
  std::string source;  // where the paper says so
};

// The setting that only the place of the trainings decides.
inline constexpr const char* kHardwareSetting = "hardware";

// A setting in which a run differs from the paper.
struct Deviation {
  std::string setting, paper, run;  // its name, and its values in the paper and in the run
};

}  // namespace numsim::experiments
