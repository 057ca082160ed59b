// Names of formats in other libraries and in standards, what to say about names with two meanings,
// and the names that numsim itself used in the past.
//
// ParseFormat (format_table.h) takes every name of this list, in any case, with '-' or a space for
// '_', and after a namespace such as "torch.".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "numsim/formats/format_table.h"

namespace numsim {

// The name of a format in another library or standard.
struct FormatName {
  std::string_view source;  // "torch", "CUDA", ...
  std::string_view name;    // as the source writes it
  std::string_view format;  // canonical name in FormatTable()
};

// Returns the names of other sources, by source. Names of two sources that differ only in case or
// in '-' and '_' mean the same format.
std::span<const FormatName> OtherFormatNames();

// A word for a format with scales: its elements, how many of a row share a scale, and the rule of the
// scale (a name of ParseScaleRule). "mxfp4" is e2m1fn with a scale of rule e8m0 for each 32.
struct ScaledFormat {
  std::string_view name;
  std::string_view elements;
  int block;
  std::string_view rule;
};

// Returns the words: mxfp8, mxfp8-e5m2, mxfp6 (e3m2fn), mxfp6-e2m3, mxfp4, mxint8, nvfp4 and others
// for the same.
std::span<const ScaledFormat> ScaledFormats();
// Returns the row of a word, in any case, with or without '-' and '_', or nullptr.
const ScaledFormat* FindScaledFormat(std::string_view text);

// Returns one line about a name whose meaning differs between texts, such as e4m3 and e1m2, and ""
// for every other text: names that are explicit ("ieee-e4m3", "e4m3fn"), texts with keys, and texts
// that ParseFormat refuses.
std::string FormatNote(std::string_view text);

// Called by ParseFormat with the note of each name that it accepts and that has one; nullptr, which
// is also the initial state: no call. The handler must be safe to call from any thread.
using FormatNoteHandler = void (*)(const std::string& note);
// Sets the handler for the whole process.
void SetFormatNoteHandler(FormatNoteHandler handler);

// Where the user writes names of formats. Messages about formats with scales, such as "mxfp4", show
// the spelling of that place. Initially kLibrary.
enum class UserInterface { kLibrary, kProgram, kPython };
// Sets the place for the whole process.
void SetUserInterface(UserInterface interface);

// Returns `text`, a text of an older numsim with format names in it, with today's names. Until
// November 2026 the bare names e2m1, e2m3, e3m2 and ue4m3 stood for IEEE-like formats, which today
// are ieee-e2m1 and so on; today the bare names are those of OCP and CUDA. A name counts where it
// is a whole word; words of paths are left alone. Today's texts that numsim itself writes do not
// change.
std::string FromFormerNames(std::string_view text);

// Returns `text` with replacement(word, has_keys) for each word outside of paths; `has_keys` says
// whether KEY=VALUE follow, as in "e2m1:bias=2".
std::string ReplaceFormatNames(std::string_view text,
                               std::string (*replacement)(std::string_view word, bool has_keys));

}  // namespace numsim
