// Formats of a user's own table of values.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"

namespace numsim {

// Returns the format "table:" + path, whose code c stands for the number c of the file, rounded to the
// nearest float32. The file is a .npy array of numbers of one dimension, or text: numbers between
// blanks, commas or line ends, with comments from # to the end of the line. Throws Error that names the
// file if it cannot be read, and as AddTable (formats/value_table.h) does.
Format ReadTable(const std::filesystem::path& path);

// Parses a format for casts and quantised matrices: what ParseFormat takes, a name of a table of values
// such as "nf4", or "table:FILE", which reads the file.
Format ParseCastFormat(std::string_view text);

// Parses a comma-separated list of these, as ParseFormatList does.
std::vector<Format> ParseCastFormatList(std::string_view text);

}  // namespace numsim
