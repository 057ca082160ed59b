// Cases as JSON, CSV and text for Verilog's $readmemh, beside the text of case_text.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "numsim/oracle/cases.h"

namespace numsim {

enum class CaseOutput : uint8_t {
  kHex,       // case_text.h
  kJson,      // one object: op, columns (name, bits, kind, format) and cases, arrays of integers
  kCsv,       // a line with the names of the columns, then a line per case: integers with prefix 0x
  kReadmemh,  // comments that give the bits of each column, then one word per case
};

// Converts between an output and its name: hex, json, csv, readmemh. Parsing throws Error, listing
// the names, for any other text.
std::string_view ToString(CaseOutput output);
CaseOutput ParseCaseOutput(std::string_view text);

// Passes the rows as text to `write`, in pieces, in order. A word of kReadmemh has the first column
// at its top; each column takes whole hexadecimal digits, and `_` separates columns.
void WriteCases(const CaseRows& rows,
                std::string_view op,
                CaseOutput output,
                const std::function<void(std::string_view)>& write);

}  // namespace numsim
