// A cell of a table: a number or a text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace numsim {

// Return the text of a cell. Equal values have equal text.
std::string FormatCell(double value);  // shortest round-trip text; nan, inf, -inf
std::string FormatCell(int64_t value);
std::string FormatCell(uint64_t value);
std::string FormatCell(int value);
std::string FormatCell(std::string_view text);
inline std::string FormatCell(const char* text) { return FormatCell(std::string_view(text)); }

// Holds a float64, an integer or a text. A number stays a number until it is written: reading it
// back from the cell gives the same float64. Numbers that were read from a file are texts that
// Number() parses.
class Cell {
 public:
  Cell() = default;  // an empty text
  template <std::floating_point T>
  Cell(T value) : value_(static_cast<double>(value)) {}  // NOLINT(*-explicit-*)
  template <std::signed_integral T>
  Cell(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT(*-explicit-*)
  template <std::unsigned_integral T>
  Cell(T value) : value_(static_cast<uint64_t>(value)) {}     // NOLINT(*-explicit-*)
  Cell(std::string text) : value_(std::move(text)) {}         // NOLINT(*-explicit-*)
  Cell(std::string_view text) : value_(std::string(text)) {}  // NOLINT(*-explicit-*)
  Cell(const char* text) : value_(std::string(text)) {}       // NOLINT(*-explicit-*)
  Cell(bool) = delete;                                        // write "yes" or "no"

  // Returns the text of a CSV file, as FormatCell does.
  std::string Text() const;
  // Returns the number, parsed from a text, including "nan" and "inf". Throws Error with the text
  // if it is not a number.
  double Number() const;

  // Cells are equal if their texts are: 3 and "3" are.
  friend bool operator==(const Cell& a, const Cell& b) { return a.Text() == b.Text(); }

 private:
  std::variant<std::string, double, int64_t, uint64_t> value_;
};

// The cells of one row of a table.
using Row = std::vector<Cell>;

}  // namespace numsim
