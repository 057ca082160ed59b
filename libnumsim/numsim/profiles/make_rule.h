// From a line of the table to a rule that is ready to run.
#pragma once

#include <memory>
#include <string_view>

#include "numsim/profiles/profile_list.h"

namespace numsim {

// Whether the line holds for that source type and target.
bool Serves(const RuleLine& line, SourceType from, std::string_view target);

// The line that serves them, or nullptr. A profile has at most one.
const RuleLine* FindRule(std::string_view profile, SourceType from, std::string_view target);

// Requires that the line serves `from` and `to`. `random_bits` replaces the line's number unless 0.
ConversionRule MakeRule(const RuleLine& line,
                        SourceType from,
                        const FormatSpec& to,
                        int random_bits);

// Where `rule` stops being monotone, ascending, without duplicates: see
// ProfileConversion::MonotoneRanges.
std::vector<uint64_t> Seams(const ConversionRule& rule);

}  // namespace numsim
