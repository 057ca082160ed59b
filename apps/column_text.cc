#include "apps/column_text.h"

#include <fmt/format.h>

#include "apps/format_text.h"
#include "numsim/formats/decode.h"
#include "numsim/oracle/case_text.h"

namespace numsim::apps {

std::string ColumnText(const Column& column, uint64_t value) {
  if (column.format) {
    const FormatSpec& format = column.format->spec;
    const auto code = static_cast<uint32_t>(value);
    return fmt::format("{}  {}  {}",
                       CodeText(format, code),
                       BitsText(format, code),
                       ValueText(Decode(format, code)));
  }
  const std::string code = fmt::format("0x{:0{}X}", value, column.Digits());
  if (!column.is_signed) return fmt::format("{}  {}", code, value);
  const int unused = 64 - column.bits;
  return fmt::format("{}  {}", code, static_cast<int64_t>(value << unused) >> unused);
}

std::string RowLine(std::span<const Column> columns, std::span<const uint64_t> row) {
  constexpr size_t kLongest = 100, kBegin = 8, kEnd = 4;  // characters, columns, columns
  const size_t count = row.size();
  const std::string line = RowText(columns.first(count)).Line(row);
  if (line.size() <= kLongest || count <= kBegin + kEnd + 1) return line;
  return fmt::format("{} ... ({} columns) ... {}",
                     RowText(columns.first(kBegin)).Line(row.first(kBegin)),
                     count - kBegin - kEnd,
                     RowText(columns.subspan(count - kEnd, kEnd)).Line(row.last(kEnd)));
}

std::string FlagsText(Flags flags) {
  struct Name {
    Flags flag;
    const char* text;
  };
  static constexpr Name kNames[] = {{kInvalid, "invalid"},
                                    {kDivideByZero, "divide-by-zero"},
                                    {kOverflow, "overflow"},
                                    {kUnderflow, "underflow"},
                                    {kInexact, "inexact"}};
  std::string text = fmt::format("0x{:02X}", flags);
  for (const Name& name : kNames) {
    if ((flags & name.flag) == 0) continue;
    text += ' ';
    text += name.text;
  }
  return flags == 0 ? text + " none" : text;
}

}  // namespace numsim::apps
