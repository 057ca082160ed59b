// The one list of formats. The parser, the command line, the docs and the tests read this table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"

namespace numsim {

struct FormatEntry {
  std::string_view name;  // canonical, lower case
  FormatSpec spec;
  std::string_view source;  // keys of docs/references.md
  std::string_view note;    // one line: what it is, and what sets it apart
};

// Every named format, in the order in which `numsim formats` lists them.
std::span<const FormatEntry> FormatTable();

// The entry of that canonical name, or nullptr.
const FormatEntry* FindFormat(std::string_view name);

// A format with the text that names it: a canonical name or a custom description.
struct Format {
  std::string name;
  FormatSpec spec;
};

// Parses the name of a table entry, or a custom format:
//   BASE[:KEY=VALUE[,KEY=VALUE]...]
// BASE is a table name, or eXmY (sign-magnitude) or ueXmY (unsigned) with X exponent bits and Y
// mantissa bits, which starts as IEEE 754 would have it: bias 2^(X-1)-1, infinities, NaNs, signed
// zero. Keys:
//   bias=INTEGER
//   inf=none|ieee|top
//   nan=none|ieee|all-ones|negative-zero
//   zero=signed|unsigned
//   overflow=inf|nan|max       what a finite overflow becomes under `nonsaturate`; without this
//                              key: inf if the format has it, else nan if it has it, else max
// Throws Error when the text does not parse or the format is not valid (see ValidateFormat).
Format ParseFormat(std::string_view text);

// Parses a list separated by commas, in which a custom format keeps its own commas: a piece of the
// form KEY=VALUE continues the format before it.
std::vector<Format> ParseFormatList(std::string_view text);

// Throws Error naming the field at fault unless every rule of numsim holds: 1..8 exponent bits,
// 0..23 mantissa bits, 2..32 bits, NaN and infinity encodings that do not collide (inf=ieee and
// nan=ieee only together), at least one finite value besides zero, and every finite value exact in
// float32.
void ValidateFormat(const FormatSpec& spec, std::string_view text);

// The table name of that spec, or the shortest custom text that ParseFormat reads back to it.
std::string ToString(const FormatSpec& spec);

}  // namespace numsim
