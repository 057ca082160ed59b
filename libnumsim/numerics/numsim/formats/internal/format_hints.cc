// Messages about names that are no format, or that mean one thing here and another elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "numsim/base/nearest_name.h"
#include "numsim/base/printable.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/internal/name_lookup.h"
#include "numsim/formats/value_table.h"

namespace numsim {
namespace {

std::atomic<FormatNoteHandler> note_handler = nullptr;
std::atomic<UserInterface> user_interface = UserInterface::kLibrary;

constexpr std::string_view kMxRule = "e8m0";
constexpr ScaledFormat kScaledFormats[] = {
    {"mxfp4", "e2m1fn", 32, kMxRule},
    {"mxfp4-e2m1", "e2m1fn", 32, kMxRule},
    {"mxf4", "e2m1fn", 32, kMxRule},
    {"mx4", "e2m1fn", 32, kMxRule},
    {"mxfp6", "e3m2fn", 32, kMxRule},
    {"mxfp6-e3m2", "e3m2fn", 32, kMxRule},
    {"mxfp6-e2m3", "e2m3fn", 32, kMxRule},
    {"mx6", "e3m2fn", 32, kMxRule},
    {"mxfp8", "e4m3fn", 32, kMxRule},
    {"mxfp8-e4m3", "e4m3fn", 32, kMxRule},
    {"mxfp8-e5m2", "e5m2", 32, kMxRule},
    {"mxf8", "e4m3fn", 32, kMxRule},
    {"mxint8", "fixed2.6:range=symmetric", 32, kMxRule},
    {"nvfp4", "e2m1fn", 16, "nvfp4"},
    {"nvf4", "e2m1fn", 16, "nvfp4"},
    {"nvfp4-e2m1", "e2m1fn", 16, "nvfp4"},
};

// Returns the folded name without its separators.
std::string Plain(std::string_view text) {
  std::string plain = FoldedName(text);
  std::erase(plain, '-');
  return plain;
}

// A name that stands for several formats, or for none of numsim's.
struct VagueName {
  std::string_view name;  // folded, without '-'
  std::string_view hint;
};
constexpr std::string_view kFp8 =
    "did you mean e4m3fn (OCP's E4M3, up to 448) or e5m2 (OCP's E5M2, up to 57344)?";
constexpr std::string_view kFp6 =
    "did you mean e3m2fn (OCP's E3M2, up to 28) or e2m3fn (OCP's E2M3, up to 7.5)?";
constexpr std::string_view kFp4 = "did you mean e2m1fn (OCP's E2M1, up to 6)?";
constexpr std::string_view kWide = "formats have at most 32 bits; did you mean fp32?";
constexpr std::string_view kInteger = "did you mean int8 (-127 to 127) or fixed8.0 (-128 to 127)?";
constexpr std::string_view kFixed =
    "did you mean fixedI.F? Its I counts the sign bit, which the notations QI.F do not agree on";
constexpr VagueName kVagueNames[] = {
    {"fp8", kFp8},
    {"float8", kFp8},
    {"f8", kFp8},
    {"fp6", kFp6},
    {"float6", kFp6},
    {"f6", kFp6},
    {"fp4", kFp4},
    {"float4", kFp4},
    {"fp64", kWide},
    {"float64", kWide},
    {"f64", kWide},
    {"double", kWide},
    {"int", kInteger},
    {"fixed", kFixed},
    {"fixedpoint", kFixed},
};

// Returns how the place of the user writes a format with scales.
std::string Spelling(const ScaledFormat& row) {
  switch (user_interface) {
    case UserInterface::kProgram:
      return fmt::format(
          "use --format {0} --granularity block:{1} --scale {2}; in a configuration {3}\"{0} "
          "block:{1} {2}\" in what_if.recipes",
          row.elements,
          row.block,
          row.rule,
          row.rule == kMxRule
              ? fmt::format("linear.kind = \"mx\" and linear.format = \"{}\", or ", row.elements)
              : "");
    case UserInterface::kPython:
      return fmt::format("use numsim.quantize(x, \"{}\", scaling=\"block:{}/{}\")",
                         row.elements,
                         row.block,
                         row.rule);
    case UserInterface::kLibrary:
      break;
  }
  return fmt::format(
      "use {} with scales per block of {} by the rule {}", row.elements, row.block, row.rule);
}

std::string_view ListOfNames() {
  switch (user_interface) {
    case UserInterface::kProgram:
      return "`numsim formats` lists";
    case UserInterface::kPython:
      return "numsim.formats() lists";
    case UserInterface::kLibrary:
      break;
  }
  return "the table of formats has";
}

// Returns the name with the least distance once case and separators are left out; "" if none is
// near.
std::string NearestFormat(std::string_view folded) {
  std::vector<std::string> names, keys;
  for (const FormatEntry& entry : FormatTable()) names.emplace_back(entry.name);
  for (const FormatName& row : OtherFormatNames()) names.emplace_back(row.name);
  for (const ValueTable* const table : NamedTables()) names.push_back(table->name);
  for (const std::string& name : names) keys.push_back(FoldedName(name));
  const std::string near = NearestName(folded, keys);
  const auto found = std::find(keys.begin(), keys.end(), near);
  if (near.empty()) return "";
  return names[static_cast<size_t>(found - keys.begin())];
}

// Returns "; ..." with what the name probably means, or "".
std::string Hint(std::string_view folded) {
  const std::string plain = Plain(folded);
  if (const ScaledFormat* const row = FindScaledFormat(folded)) {
    return fmt::format("; it is {} with scales: {}", row->elements, Spelling(*row));
  }
  for (const VagueName& row : kVagueNames) {
    if (row.name == plain) return fmt::format("; {}", row.hint);
  }
  const std::string near = NearestFormat(folded);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

// Returns the note of the IEEE-like format of a small shape, which texts define otherwise.
std::string NoteOfShape(const Format& format) {
  FormatSpec numbers = format.spec;
  numbers.infinity = Infinity::kNone;
  numbers.nan = Nan::kNone;
  numbers.overflow_to = OverflowTo::kMax;
  return fmt::format(
      "{} follows IEEE 754 and ends at {}, with infinity and NaN; where every code is a number, "
      "as in many papers, it is {}, up to {}",
      format.name,
      MaxFinite(format.spec),
      ToString(numbers),
      MaxFinite(numbers));
}

}  // namespace

Error UnknownFormat(std::string_view whole, std::string_view base) {
  if (base == "table" || FindFoldedTable(FoldedName(base)) != nullptr) {
    return Error::Format(
        "format '{}': a table of values, which only casts and quantised matrices "
        "of the host take",
        Printable(whole));
  }
  return Error::Format("format '{}': '{}' is neither a name that {} nor of the form eXmY{}",
                       Printable(whole),
                       Printable(base),
                       ListOfNames(),
                       base.size() > 64 ? "" : Hint(FoldedName(base)));
}

std::span<const ScaledFormat> ScaledFormats() { return kScaledFormats; }

const ScaledFormat* FindScaledFormat(std::string_view text) {
  const std::string plain = Plain(text);
  for (const ScaledFormat& row : kScaledFormats) {
    if (Plain(row.name) == plain) return &row;
  }
  return nullptr;
}

std::string FormatNote(std::string_view text) {
  const std::string folded = FoldedName(text);
  if (folded.find(':') != folded.npos || folded.starts_with("ieee-")) return "";
  Format format;
  try {
    format = ParseFormatWithoutNote(text);
  } catch (const Error&) {
    return "";
  }
  if (format.name == "e4m3") return "e4m3 ends at 240; OCP E4M3 of papers is e4m3fn";
  const bool plain = format.spec.Bits() <= 8 && format.spec.infinity == Infinity::kIeee;
  return plain && FindFormat(format.name) == nullptr ? NoteOfShape(format) : "";
}

void SetFormatNoteHandler(FormatNoteHandler handler) { note_handler = handler; }

void SetUserInterface(UserInterface interface) { user_interface = interface; }

void PassNoteOn(std::string_view text) {
  const FormatNoteHandler handler = note_handler;
  if (handler == nullptr) return;
  const std::string note = FormatNote(text);
  if (!note.empty()) handler(note);
}

}  // namespace numsim
