// Reads TOML as a list of keys and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/config/config_value.h"

namespace numsim {

// Returns the entries of a document in the order of its lines. `name` stands for the file name in
// places and messages. Throws Error "NAME:LINE: ..." if the document is not valid TOML, which
// includes duplicate keys.
std::vector<ConfigEntry> ReadToml(std::string_view document, std::string_view name);

// Parses "KEY=VALUE" from the command line. VALUE is TOML, or text without quotes if it is not
// valid TOML. Returns several entries for a table or an array of tables. The place of the entries
// is "--set". Throws Error if there is no key before '='.
std::vector<ConfigEntry> ReadOverride(std::string_view text);

}  // namespace numsim
