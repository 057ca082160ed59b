// Hints for mistyped commands and options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace numsim::apps {

// Returns "did you mean NAME?" for the first argument that `app` did not expect and that is near
// the name of a command (if the command is missing) or of an option of the command given; "" if
// there is none. Requires that app.parse was called.
std::string Suggestion(const CLI::App& app);

}  // namespace numsim::apps
