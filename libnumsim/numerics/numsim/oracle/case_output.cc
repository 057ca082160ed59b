#include "numsim/oracle/case_output.h"

#include <fmt/format.h>

#include <vector>

#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<CaseOutput> kOutputs[] = {{"hex", CaseOutput::kHex},
                                            {"json", CaseOutput::kJson},
                                            {"csv", CaseOutput::kCsv},
                                            {"readmemh", CaseOutput::kReadmemh}};

std::string JsonHead(const CaseRows& rows, std::string_view op) {
  std::string text = fmt::format("{{\"op\": \"{}\",\n \"columns\": [", op);
  for (const Column& column : rows.columns()) {
    text +=
        fmt::format("{}\n  {{\"name\": \"{}\", \"bits\": {}, \"kind\": \"{}\"{}}}",
                    &column == &rows.columns().front() ? "" : ",",
                    column.name,
                    column.bits,
                    ToString(column.kind),
                    column.format ? fmt::format(", \"format\": \"{}\"", column.format->name) : "");
  }
  return text + "],\n \"cases\": [";
}

std::string CsvHead(const CaseRows& rows) {
  std::string text;
  for (const Column& column : rows.columns()) text += (text.empty() ? "" : ",") + column.name;
  return text + "\n";
}

// Says which bits of a word belong to which column.
std::string ReadmemhHead(const CaseRows& rows, std::string_view op) {
  int bits = 0;
  for (const Column& column : rows.columns()) bits += 4 * column.Digits();
  std::string text = fmt::format("// {}: {} words of {} bits\n", op, rows.size(), bits);
  for (const Column& column : rows.columns()) {
    bits -= 4 * column.Digits();
    text += fmt::format("// [{}:{}] {}{}\n",
                        bits + column.bits - 1,
                        bits,
                        column.name,
                        column.format ? " " + column.format->name : "");
  }
  return text;
}

std::string Line(const std::vector<Column>& columns,
                 const std::vector<uint64_t>& row,
                 CaseOutput output) {
  std::string text;
  for (size_t c = 0; c < row.size(); ++c) {
    if (output == CaseOutput::kJson) {
      text += fmt::format("{}{}", c == 0 ? "" : ", ", row[c]);
    } else {
      const bool csv = output == CaseOutput::kCsv;
      text += fmt::format("{}{}{:0{}X}",
                          c == 0 ? ""
                          : csv  ? ","
                                 : "_",
                          csv ? "0x" : "",
                          row[c],
                          columns[c].Digits());
    }
  }
  return text;
}

}  // namespace

std::string_view ToString(CaseOutput output) { return KeywordToString(kOutputs, output); }

CaseOutput ParseCaseOutput(std::string_view text) { return ParseKeyword(kOutputs, "output", text); }

void WriteCases(const CaseRows& rows,
                std::string_view op,
                CaseOutput output,
                const std::function<void(std::string_view)>& write) {
  if (output == CaseOutput::kHex) return WriteCaseText(rows, write);
  const bool json = output == CaseOutput::kJson;
  constexpr size_t kPiece = size_t{1} << 18;
  std::string text = json                         ? JsonHead(rows, op)
                     : output == CaseOutput::kCsv ? CsvHead(rows)
                                                  : ReadmemhHead(rows, op);
  std::vector<uint64_t> row(rows.columns().size());
  for (uint64_t i = 0; i < rows.size(); ++i) {
    rows.Row(i, row);
    const std::string line = Line(rows.columns(), row, output);
    text += json ? fmt::format("{}\n  [{}]", i == 0 ? "" : ",", line) : line + "\n";
    if (text.size() < kPiece) continue;
    write(text);
    text.clear();
  }
  if (json) text += "]}\n";
  write(text);
}

}  // namespace numsim
