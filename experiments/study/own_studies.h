// Studies of users, which are files alone: a program takes them without being compiled again.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments::study {

// The environment variable with the files: paths separated by ':', each a file or a folder of *.toml.
inline constexpr const char* kOwnStudies = "NUMSIM_STUDIES";

// Returns the studies of `paths`, in their order, those of a folder by their names. A study has the option
// study-rows, whose value is the SHA-256 of what rows follow from in its file, so that rows of others are
// never continued, judged or drawn.
// Throws Error naming the file for one that cannot be read or is no study, and for a name that is taken.
std::vector<Experiment> OwnStudies(std::string_view paths, const std::vector<Experiment>& known);

}  // namespace numsim::experiments::study
