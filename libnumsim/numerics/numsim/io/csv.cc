#include "numsim/io/csv.h"

#include <algorithm>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/base/require.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/shared/byte_stream.h"

namespace numsim {
namespace {

void AppendCell(const std::string& cell, std::string& text) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    text += cell;
    return;
  }
  text += '"';
  for (const char c : cell) text.append(c == '"' ? 2 : 1, c);
  text += '"';
}

void AppendRow(const Row& cells, std::string& text) {
  const size_t begin = text.size();
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += ',';
    AppendCell(cells[i].Text(), text);
  }
  // A single empty cell is quoted; otherwise its row would be an empty line.
  if (text.size() == begin) text += "\"\"";
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

// Returns the file that has the table: PATH, or PATH.gz if that is there instead.
std::filesystem::path FileOf(const std::filesystem::path& path) {
  std::filesystem::path compressed = path;
  compressed += ".gz";
  if (!std::filesystem::exists(compressed)) return path;
  if (!std::filesystem::exists(path)) return compressed;
  throw Error::Format(
      "{}: is there beside {}, expected one of them", compressed.string(), path.string());
}

}  // namespace

size_t Table::Column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) throw Error::Format("no column '{}' in the table", Printable(name));
  return static_cast<size_t>(found - columns.begin());
}

const Cell& Table::At(size_t row, std::string_view column) const {
  NUMSIM_REQUIRE(row < rows.size(), "Table: row {}, expected less than {}", row, rows.size());
  const size_t index = Column(column);
  NUMSIM_REQUIRE(index < rows[row].size(),
                 "Table: row {} has {} cells, expected {}",
                 row,
                 rows[row].size(),
                 columns.size());
  return rows[row][index];
}

std::string Table::Text(size_t row, std::string_view column) const {
  return At(row, column).Text();
}

double Table::Number(size_t row, std::string_view column) const {
  const Cell& cell = At(row, column);
  try {
    return cell.Number();
  } catch (const Error& error) {
    throw Error::Format("column '{}', record {}: {}", Printable(column), row + 1, error.what());
  }
}

std::string ToCsv(const Table& table) {
  NUMSIM_REQUIRE(!table.columns.empty(), "ToCsv: no columns, expected at least one");
  std::string text;
  AppendRow({table.columns.begin(), table.columns.end()}, text);
  for (const auto& row : table.rows) {
    RequireSize(row.size(), table.columns.size(), "ToCsv", "row");
    AppendRow(row, text);
  }
  return text;
}

void WriteCsv(const std::filesystem::path& path, const Table& table) {
  WriteFileAtomically(path, ToCsv(table));
}

bool HasCsv(const std::filesystem::path& path) { return std::filesystem::exists(FileOf(path)); }

std::string ReadCsvText(const std::filesystem::path& path) {
  return ReadInflatedText(FileOf(path));
}

Table ReadCsv(const std::filesystem::path& path) {
  return ParseCsv(ReadCsvText(path), path.string());
}

Table ParseCsv(std::string_view text, const std::string& file) {
  Reader reader(text, file);
  if (reader.AtEnd()) throw Error::Format("{}:1: empty file, expected a header row", file);
  Table table;
  table.columns = reader.Row();
  CheckHeader(table.columns, file);
  while (!reader.AtEnd()) {
    const size_t line = reader.Line();
    const std::vector<std::string> cells = reader.Row();
    table.rows.emplace_back(cells.begin(), cells.end());
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
