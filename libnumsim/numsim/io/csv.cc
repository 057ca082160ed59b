#include "numsim/io/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"
#include "numsim/io/shared/printable.h"

namespace numsim {
namespace {

template <typename T>
std::string ShortestText(T value) {
  char buffer[32];  // the longest double takes 24
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

void AppendRow(const std::vector<std::string>& cells, std::string& text) {
  // A single empty cell is quoted; otherwise its row would be an empty line.
  if (cells.size() == 1 && cells[0].empty()) text += "\"\"";
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      text += cells[i];
      continue;
    }
    text += '"';
    for (const char c : cells[i]) text.append(c == '"' ? 2 : 1, c);
    text += '"';
  }
  text += '\n';
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  bool AtEnd() const { return position_ == text_.size(); }
  size_t Line() const { return line_; }

  std::vector<std::string> Row() {
    std::vector<std::string> cells;
    do {
      cells.push_back(Peek() == '"' ? QuotedCell() : PlainCell());
    } while (TryTake(','));
    TakeLineEnd();
    return cells;
  }

 private:
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }

  bool TryTake(char wanted) {
    if (AtEnd() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  std::string PlainCell() {
    const size_t end = std::min(text_.find_first_of(",\"\r\n", position_), text_.size());
    std::string cell(text_.substr(position_, end - position_));
    position_ = end;
    if (Peek() == '"') Fail("a quote within an unquoted cell");
    return cell;
  }

  std::string QuotedCell() {
    std::string cell;
    const size_t first_line = line_;
    ++position_;
    for (;;) {
      if (AtEnd()) {
        line_ = first_line;
        Fail("a quoted cell without its closing quote");
      }
      const char c = text_[position_++];
      if (c == '"' && !TryTake('"')) return cell;
      if (c == '\n') ++line_;
      cell += c;
    }
  }

  void TakeLineEnd() {
    if (AtEnd()) return;
    TryTake('\r');
    if (!TryTake('\n')) Fail("text after a closing quote, or a lone carriage return");
    ++line_;
  }

  [[noreturn]] void Fail(std::string_view what) const {
    throw Error::Format("{}:{}: {}", file_, line_, what);
  }

  std::string_view text_;
  std::string_view file_;
  size_t position_ = 0;
  size_t line_ = 1;
};

void CheckHeader(const std::vector<std::string>& columns, const std::string& file) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) throw Error::Format("{}:1: column {} has no name", file, i + 1);
    if (std::find(columns.begin(), columns.begin() + i, columns[i]) != columns.begin() + i) {
      throw Error::Format("{}:1: column '{}' appears twice", file, Printable(columns[i]));
    }
  }
}

}  // namespace

std::string FormatCell(double value) {
  // Omits the sign of a NaN, which depends on compiler and processor.
  if (std::isnan(value)) return "nan";
  return ShortestText(value);
}
std::string FormatCell(int64_t value) { return ShortestText(value); }
std::string FormatCell(uint64_t value) { return ShortestText(value); }
std::string FormatCell(int value) { return ShortestText(value); }
std::string FormatCell(std::string_view text) { return std::string(text); }

size_t Table::Column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) throw Error::Format("no column '{}' in the table", Printable(name));
  return static_cast<size_t>(found - columns.begin());
}

const std::string& Table::Text(size_t row, std::string_view column) const {
  NUMSIM_REQUIRE(row < rows.size(), "Table: row {}, expected less than {}", row, rows.size());
  const size_t index = Column(column);
  NUMSIM_REQUIRE(index < rows[row].size(),
                 "Table: row {} has {} cells, expected {}",
                 row,
                 rows[row].size(),
                 columns.size());
  return rows[row][index];
}

double Table::Number(size_t row, std::string_view column) const {
  const std::string& text = Text(row, column);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    throw Error::Format("column '{}', record {}: '{}' is not a number",
                        Printable(column),
                        row + 1,
                        Printable(text));
  }
  return value;
}

std::string ToCsv(const Table& table) {
  NUMSIM_REQUIRE(!table.columns.empty(), "ToCsv: no columns, expected at least one");
  std::string text;
  AppendRow(table.columns, text);
  for (const auto& row : table.rows) {
    RequireSize(row.size(), table.columns.size(), "ToCsv", "row");
    AppendRow(row, text);
  }
  return text;
}

void WriteCsv(const std::filesystem::path& path, const Table& table) {
  WriteFileAtomically(path, ToCsv(table));
}

Table ReadCsv(const std::filesystem::path& path) {
  const std::string text = ReadText(path);
  const std::string file = path.string();
  Reader reader(text, file);
  if (reader.AtEnd()) throw Error::Format("{}:1: empty file, expected a header row", file);
  Table table;
  table.columns = reader.Row();
  CheckHeader(table.columns, file);
  while (!reader.AtEnd()) {
    const size_t line = reader.Line();
    table.rows.push_back(reader.Row());
    if (table.rows.back().size() != table.columns.size()) {
      throw Error::Format("{}:{}: {} cells, expected {} as in the header",
                          file,
                          line,
                          table.rows.back().size(),
                          table.columns.size());
    }
  }
  return table;
}

}  // namespace numsim
