// Implements TallyText() of case_text.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/base/printable.h"
#include "numsim/oracle/case_text.h"

namespace numsim {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 22;
constexpr size_t kPieceBytes = size_t{1} << 17;

// Reads whole lines of a file, up to 4 MiB at a time.
class LineReader {
 public:
  LineReader(int descriptor, std::string_view source)
      : descriptor_(descriptor), source_(source), buffer_(kBufferBytes) {}

  // Returns the next lines, or an empty text at the end of the file. The last line of a file may
  // lack a line feed. The text is valid until the next call. `line` is the number of the first line
  // of the text, for messages.
  std::string_view Next(uint64_t line) {
    std::memmove(buffer_.data(), buffer_.data() + used_, size_ - used_);
    size_ -= used_;
    while (size_ < buffer_.size() && Fill()) {
    }
    const std::string_view text(buffer_.data(), size_);
    used_ = size_;
    if (size_ == buffer_.size()) {
      const size_t last = text.rfind('\n');
      if (last == std::string_view::npos) {
        throw Error::Format("{}: line {} is longer than {} bytes", source_, line, buffer_.size());
      }
      used_ = last + 1;
    }
    return text.substr(0, used_);
  }

 private:
  // Appends available bytes to the buffer. Returns false at the end of the file.
  bool Fill() {
    for (;;) {
      const ssize_t got = ::read(descriptor_, buffer_.data() + size_, buffer_.size() - size_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error::Format("{}: cannot read: {}", source_, std::strerror(errno));
      size_ += static_cast<size_t>(got);
      return got > 0;
    }
  }

  int descriptor_;
  std::string_view source_;
  std::vector<char> buffer_;
  size_t used_ = 0;  // bytes of the buffer that earlier calls returned
  size_t size_ = 0;  // bytes in the buffer
};

// Removes the first line from `text` and returns it without its line feed.
std::string_view TakeLine(std::string_view& text) {
  const size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

// Returns a description of the fault in a row, such as "column 2 (b): ...", or "" if the row has
// `width` columns and no fault.
std::string FaultText(const ParsedRow& parsed, const CaseColumns& columns, size_t width) {
  using Fault = ParsedRow::Fault;
  const size_t index = parsed.columns;
  if (parsed.fault == Fault::kNone && index == width) return "";
  if (parsed.fault == Fault::kTooMany || index >= width) {
    return fmt::format("column {} is unexpected after {}", width + 1, columns.Names(width));
  }
  const Column& column = columns.all[index];
  const std::string where = fmt::format("column {} ({})", index + 1, column.name);
  if (parsed.fault == Fault::kNone) {
    return fmt::format("{} is missing, expected {}", where, columns.Names(width));
  }
  const std::string token = Printable(parsed.token, 24);
  if (parsed.fault == Fault::kTooLarge) {
    return fmt::format("{}: '{}' does not fit into {} bits", where, token, column.bits);
  }
  return fmt::format("{}: '{}' is not a hexadecimal number", where, token);
}

// A sequence of lines that one thread reads.
struct Piece {
  std::string_view text;
  uint64_t first_line = 0;
  uint64_t line_feeds = 0;
  std::unique_ptr<CaseTally> tally;
  uint64_t fault_line = 0;  // 0: no fault
  std::string fault;
};

void ReadPiece(const CaseColumns& columns, size_t width, Piece& piece) {
  std::vector<uint64_t> row(columns.all.size());
  std::string_view text = piece.text;
  for (uint64_t line = piece.first_line; !text.empty(); ++line) {
    const ParsedRow parsed =
        ParseRow(TakeLine(text), std::span(columns.all).first(width), std::span(row).first(width));
    if (parsed.fault == ParsedRow::Fault::kNone && parsed.columns == width) {
      piece.tally->Add(line, std::span(row).first(width));
    } else if (parsed.fault != ParsedRow::Fault::kNone || parsed.columns > 0) {
      piece.fault = FaultText(parsed, columns, width);
      piece.fault_line = line;
      return;
    }
  }
}

std::vector<Piece> Split(std::string_view text, uint64_t first_line, const CaseTally& total) {
  std::vector<Piece> pieces;
  while (!text.empty()) {
    const size_t feed = text.find('\n', std::min(kPieceBytes, text.size()) - 1);
    const size_t length = feed == std::string_view::npos ? text.size() : feed + 1;
    Piece piece;
    piece.text = text.substr(0, length);
    piece.first_line = first_line;
    piece.line_feeds =
        static_cast<uint64_t>(std::count(piece.text.begin(), piece.text.end(), '\n'));
    piece.tally = total.Fresh();
    first_line += piece.line_feeds;
    text.remove_prefix(length);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// Returns the number of columns of the first row in `text`, or nothing if all lines are empty.
std::optional<size_t> FirstWidth(std::string_view text,
                                 uint64_t line,
                                 std::string_view source,
                                 const CaseColumns& columns,
                                 bool require_flags) {
  std::vector<uint64_t> row(columns.all.size());
  for (; !text.empty(); ++line) {
    const ParsedRow parsed = ParseRow(TakeLine(text), columns.all, row);
    if (parsed.fault == ParsedRow::Fault::kNone && parsed.columns == 0) continue;
    const size_t begun = parsed.columns + (parsed.fault == ParsedRow::Fault::kNone ? 0 : 1);
    const bool flags = require_flags || begun > columns.WithoutFlags();
    const size_t width = flags ? columns.all.size() : columns.WithoutFlags();
    const std::string fault = FaultText(parsed, columns, width);
    if (!fault.empty()) throw Error::Format("{}: line {}, {}", source, line, fault);
    return width;
  }
  return std::nullopt;
}

}  // namespace

void TallyText(int descriptor,
               std::string_view source,
               const CaseColumns& columns,
               bool require_flags,
               CaseTally& total) {
  LineReader reader(descriptor, source);
  std::optional<size_t> width;
  uint64_t line = 1;
  for (;;) {
    const std::string_view text = reader.Next(line);
    if (text.empty()) break;
    if (!width) width = FirstWidth(text, line, source, columns, require_flags);
    std::vector<Piece> pieces = Split(text, line, total);
    ParallelTasks(pieces.size(), [&](size_t i) {
      if (width) ReadPiece(columns, *width, pieces[i]);
    });
    for (const Piece& piece : pieces) {
      if (piece.fault_line > 0) {
        throw Error::Format("{}: line {}, {}", source, piece.fault_line, piece.fault);
      }
      total.Append(*piece.tally);
      line += piece.line_feeds;
    }
  }
  if (!width) {
    throw Error::Format(
        "{}: no cases, expected lines of {}", source, columns.Names(columns.WithoutFlags()));
  }
}

}  // namespace numsim
