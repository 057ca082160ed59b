#include "numsim/oracle/case_text.h"

#include <array>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr uint8_t kBlank = 0xFE;
constexpr uint8_t kOther = 0xFF;

// The meaning of each byte in a row: the value of a digit, kBlank or kOther.
constexpr std::array<uint8_t, 256> kByteMeanings = [] {
  std::array<uint8_t, 256> meanings{};
  meanings.fill(kOther);
  for (uint8_t i = 0; i < 10; ++i) meanings['0' + i] = i;
  for (uint8_t i = 0; i < 6; ++i) {
    const auto digit = static_cast<uint8_t>(10 + i);
    meanings['A' + i] = digit;
    meanings['a' + i] = digit;
  }
  for (const char blank : {' ', '\t', '\r'}) meanings[static_cast<uint8_t>(blank)] = kBlank;
  return meanings;
}();

uint8_t Meaning(char byte) { return kByteMeanings[static_cast<uint8_t>(byte)]; }

// Returns the position after a prefix "0x" or "0X" of the token at `p`, or `p` if it has none. "0x"
// alone is no prefix: it has no digits.
const char* AfterPrefix(const char* p, const char* end) {
  const bool prefixed = end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
  return prefixed && Meaning(p[2]) != kBlank ? p + 2 : p;
}

}  // namespace

RowText::RowText(std::span<const Column> columns) {
  for (const Column& column : columns) {
    NUMSIM_CHECK(column.bits >= 1 && column.bits <= 64, "{}: {} bits", column.name, column.bits);
    digits_.push_back(column.Digits());
    bytes_ += static_cast<size_t>(column.Digits()) + 1;
  }
}

void RowText::Write(std::span<const uint64_t> row, char* out) const noexcept {
  for (size_t i = 0; i < digits_.size(); ++i) {
    uint64_t value = row[i];
    for (int digit = digits_[i] - 1; digit >= 0; --digit, value >>= 4) {
      out[digit] = "0123456789ABCDEF"[value & 0xF];
    }
    out += digits_[i];
    *out++ = i + 1 < digits_.size() ? ' ' : '\n';
  }
}

std::string RowText::Line(std::span<const uint64_t> row) const {
  std::string line(bytes_, '\0');
  Write(row, line.data());
  line.pop_back();
  return line;
}

ParsedRow ParseRow(std::string_view line,
                   std::span<const Column> columns,
                   std::span<uint64_t> row) noexcept {
  using Fault = ParsedRow::Fault;
  const char* p = line.data();
  const char* const end = p + line.size();
  ParsedRow parsed;
  for (;;) {
    while (p != end && Meaning(*p) == kBlank) ++p;
    if (p == end) return parsed;
    const char* const token = p;
    p = AfterPrefix(p, end);
    uint64_t value = 0;
    Fault fault = parsed.columns == columns.size() ? Fault::kTooMany : Fault::kNone;
    for (; p != end && Meaning(*p) != kBlank; ++p) {
      const uint8_t digit = Meaning(*p);
      if (fault == Fault::kNone && digit > 15) fault = Fault::kNotHexadecimal;
      if (fault == Fault::kNone && value >> 60 != 0) fault = Fault::kTooLarge;
      value = value << 4 | (digit & 0xF);
    }
    if (fault == Fault::kNone && value > LargestOf(columns[parsed.columns].bits)) {
      fault = Fault::kTooLarge;
    }
    if (fault != Fault::kNone) {
      parsed.fault = fault;
      parsed.token = std::string_view(token, static_cast<size_t>(p - token));
      return parsed;
    }
    row[parsed.columns++] = value;
  }
}

}  // namespace numsim
