#include "apps/oracle_numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/oracle/case_text.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/exact_number.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::apps {
namespace {

// Parses an integer of a column, in two's complement. Returns false if it is none or does not fit.
bool ParseInteger(const std::string& text, const Column& column, uint64_t& value) {
  const char* const end = text.data() + text.size();
  if (!column.is_signed) {
    const auto [stop, status] = std::from_chars(text.data(), end, value);
    return status == std::errc() && stop == end && value <= LargestOf(column.bits);
  }
  int64_t number = 0;
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  const auto most = static_cast<int64_t>(LargestOf(column.bits) >> 1);
  value = static_cast<uint64_t>(number) & LargestOf(column.bits);
  return status == std::errc() && stop == end && number <= most && number >= -most - 1;
}

bool ParseBits(const std::string& text, const Column& column, uint64_t& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value, 16);
  return status == std::errc() && stop == end && value <= LargestOf(column.bits);
}

// Reads the lines of one operation.
class Lines {
 public:
  Lines(const OperationRequest& request, const std::function<void(std::string_view)>& write)
      : operation_(MakeOperation(request)),
        any_source_(request.op == "convert" && request.format.empty() && request.profile.empty()),
        text_(ColumnsOf(*operation_).all),
        write_(write) {
    if (!any_source_) return;
    plan_ = MakeEncodePlan(operation_->results()[0].format->spec,
                           request.rounding.value_or(Rounding{}),
                           request.overflow.value_or(Overflow::kNonsaturate));
    plan_.tininess = request.tininess.value_or(Tininess::kAfterRounding);
  }

  void Answer(size_t number, const std::string& line) {
    std::istringstream words(line);
    std::vector<std::string> tokens;
    for (std::string word; words >> word;) tokens.push_back(word);
    if (tokens.empty()) return;
    const std::vector<Column>& columns = operation_->inputs();
    if (tokens.size() != columns.size()) {
      throw Error::Format("standard input: line {} has {} columns, expected {} ({})",
                          number,
                          tokens.size(),
                          columns.size(),
                          ColumnsOf(*operation_).Names(columns.size()));
    }
    std::vector<uint64_t> row(ColumnsOf(*operation_).all.size());
    for (size_t c = any_source_ ? 1 : 0; c < columns.size(); ++c) {
      row[c] = Parsed(number, columns[c], tokens[c]);
    }
    if (any_source_) return Convert(number, tokens[0], row);
    Complete(*operation_, row);
    write_(text_.Line(row) + "\n");
  }

 private:
  static std::string Where(size_t line, const Column& column) {
    return fmt::format("standard input: line {}, column '{}':", line, column.name);
  }

  static uint64_t Parsed(size_t line, const Column& column, const std::string& text) {
    uint64_t value = 0;
    if (column.kind == ColumnKind::kCode) {
      const ExactNumber number = ParseExactSum(text, Where(line, column));
      const EncodePlan plan = MakeEncodePlan(column.format->spec);
      const Rounded code = EncodeUnrounded(plan, number.Rounded());
      if (code.flags == 0) return code.code;
      throw Error::Format("{} '{}' is not a number of {}",
                          Where(line, column),
                          Printable(text),
                          column.format->name);
    }
    const bool integer = column.kind == ColumnKind::kInteger;
    if (integer ? ParseInteger(text, column, value) : ParseBits(text, column, value)) return value;
    throw Error::Format("{} '{}' is not {} of {} bits",
                        Where(line, column),
                        Printable(text),
                        integer ? "an integer" : "a hexadecimal number",
                        column.bits);
  }

  // Rounds the number of a conversion from its exact value.
  void Convert(size_t line, const std::string& text, const std::vector<uint64_t>& row) {
    const Column& source = operation_->inputs()[0];
    const ExactNumber number = ParseExactSum(text, Where(line, source));
    const bool random = operation_->inputs().size() > 1;
    const Rounded r =
        EncodeUnrounded(plan_, number.Rounded(), random ? static_cast<uint32_t>(row[1]) : 0);
    std::string result = text;
    if (random) result += fmt::format(" {:0{}X}", row[1], operation_->inputs()[1].Digits());
    write_(fmt::format(
        "{} {:0{}X} {:02X}\n", result, r.code, operation_->results()[0].Digits(), r.flags));
  }

  std::unique_ptr<Operation> operation_;
  bool any_source_;
  RowText text_;
  const std::function<void(std::string_view)>& write_;
  EncodePlan plan_;
};

}  // namespace

void AnswerNumbers(const OperationRequest& request,
                   std::istream& in,
                   const std::function<void(std::string_view)>& write) {
  Lines lines(request, write);
  size_t number = 0;
  for (std::string line; std::getline(in, line);) lines.Answer(++number, line);
}

}  // namespace numsim::apps
