// How ParseFormat finds a name, and what it says when there is none.
#pragma once

#include <string>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"

namespace numsim {

// Returns `name` without a namespace ("torch."), in lower case, with '-' for '_' and for spaces.
// Two names with the same result are the same name.
std::string FoldedName(std::string_view name);

// Returns the entry that a folded name stands for, in numsim's own table or in OtherFormatNames(),
// or nullptr if there is none.
const FormatEntry* FindFoldedName(std::string_view folded);

// Returns the table of values (value_table.h) of that folded name, or nullptr.
struct ValueTable;
const ValueTable* FindFoldedTable(std::string_view folded);

// Returns the Error about the unknown base `base` of the text `whole`, with the spelling of what is
// meant, or the nearest name.
Error UnknownFormat(std::string_view whole, std::string_view base);

// Calls the handler of SetFormatNoteHandler, if there is one and the text has a note.
void PassNoteOn(std::string_view text);

}  // namespace numsim
