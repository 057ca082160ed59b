// The table of formats, the only one: the parser, the command line, the docs and the tests read it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_spec.h"

namespace numsim {

// A row of the table of formats.
struct FormatEntry {
  std::string_view name;  // canonical, lower case
  FormatSpec spec;
  std::string_view source;  // keys of docs/references.md
  std::string_view note;    // one line: what the format is and what is special about it
};

// Returns every named format, in the order in which `numsim formats` lists them.
std::span<const FormatEntry> FormatTable();

// Returns the entry with the canonical name `name`, or nullptr if there is none.
const FormatEntry* FindFormat(std::string_view name);

// A format and the text that names it: a canonical name or a custom description.
struct Format {
  std::string name;
  FormatSpec spec;
};

// Parses the name of a table entry or of another source (format_names.h), in any case, or a custom
// format:
//   BASE[:KEY=VALUE[,KEY=VALUE]...]
// BASE is one of these names, or
//   eXmY, ueXmY            X exponent bits and Y mantissa bits, with a sign (sign-magnitude) and
//                          without; except for names above, such as e2m1, which is e2m1fn, they
//                          follow IEEE 754: bias 2^(X-1)-1, infinities, NaNs and signed zero
//                          (ueXmY: unsigned)
//   ieee-eXmY, ieee-ueXmY  the same without exception
//   binaryKpP{s|u}{e|f}    [P3109] with K bits and precision P
//   fixedI.F, ufixedI.F    fixed point: multiples of 2^-F with I bits before the point, the sign bit
//                          among them, and F behind it: -2^(I-1) .. 2^(I-1) - 2^-F in two's complement,
//                          and 0 .. 2^I - 2^-F without a sign. The largest value stands for NaN
//   intN, uintN            fixedN.0, ufixedN.0; except for int8 of the table, -127 .. 127
// Keys:
//   bias=INTEGER
//   inf=none|ieee|top
//   nan=none|ieee|all-ones|negative-zero
//   zero=signed|unsigned
//   overflow=inf|nan|max       the result of a finite overflow under `nonsaturate`; default: inf
//                              if the format has infinities, else nan if it has NaNs, else max
//   subnormals=keep|flush      flush: a subnormal result becomes a zero of its sign, and codes of
//                              subnormals are read as zero
// fixedI.F and intN have one key:
//   range=full|symmetric       symmetric: the most negative code is unused
// Names of tables of values (value_table.h) are refused.
// Passes the note of a name with two meanings to the handler of SetFormatNoteHandler.
// Throws Error when the text does not parse or the format is not valid (see ValidateFormat).
Format ParseFormat(std::string_view text);

// The same without the note.
Format ParseFormatWithoutNote(std::string_view text);

// Parses a comma-separated list of formats. Custom formats may contain commas: a piece of the form
// KEY=VALUE continues the format before it.
std::vector<Format> ParseFormatList(std::string_view text);

// Throws Error naming the field at fault unless `spec` meets all of numsim's rules: 1..8 exponent
// bits, 0..23 mantissa bits, 2..32 bits in total, NaN and infinity encodings that do not collide
// (inf=ieee and nan=ieee only together), at least one finite value besides zero, and every finite
// value exact in float32. `text` names the format in the message.
void ValidateFormat(const FormatSpec& spec, std::string_view text);

// Returns the table name of `spec`, or the shortest custom text that ParseFormat parses to it.
std::string ToString(const FormatSpec& spec);

}  // namespace numsim
