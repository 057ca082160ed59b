#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/array.h"
#include "numsim/io/internal/file_headers.h"

namespace numsim {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  NpyDict Parse() {
    Expect('{', "a dict");
    while (!TryTake('}')) {
      ParseItem();
      if (TryTake('}')) break;
      Expect(',', "',' or '}' after a value");
    }
    SkipSpace();
    if (position_ != text_.size()) Fail("nothing after the dict");
    Require(has_descr_, "descr");
    Require(has_order_, "fortran_order");
    Require(has_shape_, "shape");
    return dict_;
  }

 private:
  void ParseItem() {
    const std::string key = ParseString("a key in quotes");
    Expect(':', "':' after a key");
    if (key == "descr") {
      Once(key, has_descr_);
      SkipSpace();
      if (Peek() == '[' || Peek() == '(') Fail("a simple element type, not a structured one");
      dict_.descr = ParseString("descr in quotes");
    } else if (key == "fortran_order") {
      Once(key, has_order_);
      dict_.fortran_order = ParseBool();
    } else if (key == "shape") {
      Once(key, has_shape_);
      dict_.shape = ParseShape();
    } else {
      throw Error::Format("{}: npy header: unknown key '{}'", file_, Printable(key));
    }
  }

  std::string ParseString(std::string_view expected) {
    SkipSpace();
    const char quote = Peek();
    if (quote != '\'' && quote != '"') Fail(expected);
    const size_t begin = position_ + 1;
    const size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) Fail("a closing quote");
    position_ = end + 1;
    const std::string_view content = text_.substr(begin, end - begin);
    if (content.find('\\') != std::string_view::npos) Fail("a string without escapes");
    return std::string(content);
  }

  bool ParseBool() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    Fail("True or False for fortran_order");
  }

  std::vector<size_t> ParseShape() {
    std::vector<size_t> shape;
    Expect('(', "a tuple for shape");
    while (!TryTake(')')) {
      shape.push_back(ParseExtent());
      const bool comma = TryTake(',');
      if (!comma && shape.size() == 1) Fail("',' after the only extent of a tuple");
      if (!comma) {
        Expect(')', "',' or ')' after an extent");
        break;
      }
    }
    return shape;
  }

  size_t ParseExtent() {
    SkipSpace();
    uint64_t extent = 0;
    const char* const begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
    if (error != std::errc() || extent > uint64_t{INT64_MAX}) Fail("an extent from 0 to 2^63-1");
    position_ += static_cast<size_t>(end - begin);
    return static_cast<size_t>(extent);
  }

  void Once(std::string_view key, bool& seen) {
    if (seen) throw Error::Format("{}: npy header: key '{}' appears twice", file_, key);
    seen = true;
  }

  void Require(bool seen, std::string_view key) {
    if (!seen) throw Error::Format("{}: npy header: key '{}' is missing", file_, key);
  }

  void SkipSpace() {
    position_ = std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size());
  }

  char Peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  bool TryTake(char wanted) {
    SkipSpace();
    if (Peek() != wanted) return false;
    ++position_;
    return true;
  }

  void Expect(char wanted, std::string_view expected) {
    if (!TryTake(wanted)) Fail(expected);
  }

  [[noreturn]] void Fail(std::string_view expected) const {
    const std::string_view rest = text_.substr(std::min(position_, text_.size()));
    throw Error::Format("{}: npy header: expected {} at byte {} of the dict, found {}",
                        file_,
                        expected,
                        position_,
                        rest.empty() ? "its end" : "'" + Printable(rest, 24) + "'");
  }

  std::string_view text_;
  std::string_view file_;
  size_t position_ = 0;
  NpyDict dict_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

NpyDict ParseNpyDict(std::string_view text, std::string_view file) {
  return Parser(text, file).Parse();
}

std::string NpyDictText(const NpyDict& dict) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}",
                     dict.descr,
                     dict.fortran_order ? "True" : "False",
                     ShapeToString(dict.shape));
}

}  // namespace numsim
