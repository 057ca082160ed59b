// TOML as a list of keys and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/config/shared/config_value.h"

namespace numsim {

// The entries of a document, in the order of its lines. `name` stands for the file in places and
// messages. Throws Error "NAME:LINE: ..." for what is no TOML, a key that is there twice among it.
std::vector<ConfigEntry> ReadToml(std::string_view document, std::string_view name);

// "KEY=VALUE" of the command line, where VALUE is TOML or, if it is not, text without quotes. A
// table or an array of tables gives several entries. Their place is "--set". Throws Error when
// there is no key before '='.
std::vector<ConfigEntry> ReadOverride(std::string_view text);

}  // namespace numsim
