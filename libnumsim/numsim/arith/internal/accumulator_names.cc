// Rules of accumulation as text: ParseAccumulator and Name.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "numsim/arith/accumulator.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"

namespace numsim {
namespace {

constexpr std::string_view kChunkedPrefix = "fp32-chunked:";
constexpr std::string_view kTruncPrefix = "trunc:";
constexpr std::string_view kUnfusedSuffix = ":unfused";

struct PlainName {
  std::string_view text;
  AccumulatorKind kind;
};
constexpr PlainName kPlainNames[] = {{"exact", AccumulatorKind::kExact},
                                     {"fp64", AccumulatorKind::kFloat64},
                                     {"library", AccumulatorKind::kLibrary}};

// Everything that ParseAccumulator takes, after "neither".
std::string ValidTexts() {
  std::string text =
      "exact nor FORMAT nor FORMAT:unfused nor fp64, fp32-chunked:N, trunc:F,CHUNK[,PROMOTE], "
      "library or one of ";
  const char* separator = "";
  for (const AccumulatorRow& row : AccumulatorTable()) {
    text += fmt::format("{}{}", separator, row.name);
    separator = ", ";
  }
  return text;
}

// A decimal number of digits alone that is within the bounds.
std::optional<int> ParseCount(std::string_view text, int least, int most) {
  int value = 0;
  if (text.empty() || text[0] == '-') return std::nullopt;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

// The number called `what` of the rule `whole`.
int CountOf(
    std::string_view text, std::string_view what, std::string_view whole, int least, int most) {
  const std::optional<int> value = ParseCount(text, least, most);
  if (!value) {
    throw Error::Format("accumulator '{}': {} is '{}', expected a whole number from {} to {}",
                        whole,
                        what,
                        text,
                        least,
                        most);
  }
  return *value;
}

Accumulator ParseChunked(std::string_view text) {
  const std::string_view count = text.substr(kChunkedPrefix.size());
  return {.kind = AccumulatorKind::kChunked,
          .chunk = CountOf(count, "N", text, 1, Accumulator::kMaxInterval)};
}

Accumulator ParseTrunc(std::string_view text) {
  std::vector<std::string_view> pieces;
  const std::string_view rest = text.substr(kTruncPrefix.size());
  for (size_t begin = 0; begin <= rest.size();) {
    const size_t end = std::min(rest.find(',', begin), rest.size());
    pieces.push_back(rest.substr(begin, end - begin));
    begin = end + 1;
  }
  if (pieces.size() != 2 && pieces.size() != 3) {
    throw Error::Format("accumulator '{}' is not of the form trunc:F,CHUNK[,PROMOTE]", text);
  }
  Accumulator rule{.kind = AccumulatorKind::kAligned};
  rule.fraction_bits = CountOf(pieces[0], "F", text, 1, Accumulator::kMaxFractionBits);
  rule.chunk = CountOf(pieces[1], "CHUNK", text, 1, Accumulator::kMaxChunk);
  if (pieces.size() == 3) {
    rule.promote = CountOf(pieces[2], "PROMOTE", text, 1, Accumulator::kMaxInterval);
    if (rule.promote % rule.chunk != 0) {
      throw Error::Format("accumulator '{}': PROMOTE is not a multiple of CHUNK", text);
    }
  }
  return rule;
}

Accumulator ParseInFormat(std::string_view text) {
  const bool unfused = text.ends_with(kUnfusedSuffix);
  const std::string_view format =
      unfused ? text.substr(0, text.size() - kUnfusedSuffix.size()) : text;
  try {
    return {.kind = unfused ? AccumulatorKind::kFormatUnfused : AccumulatorKind::kFormat,
            .format = ParseFormat(format).spec};
  } catch (const Error& error) {
    throw Error::Format("accumulator '{}' is neither {}; {}", text, ValidTexts(), error.what());
  }
}

std::string TruncText(const Accumulator& rule) {
  std::string text = fmt::format("{}{},{}", kTruncPrefix, rule.fraction_bits, rule.chunk);
  if (rule.promote != 0) text += fmt::format(",{}", rule.promote);
  if (rule.order == ProductOrder::kBytePairs) text += " by byte pairs";
  return text;
}

}  // namespace

Accumulator ParseAccumulator(std::string_view text) {
  for (const PlainName& plain : kPlainNames) {
    if (plain.text == text) return {.kind = plain.kind};
  }
  for (const AccumulatorRow& row : AccumulatorTable()) {
    if (row.name == text) return row.rule;
  }
  if (text.starts_with(kChunkedPrefix)) return ParseChunked(text);
  if (text.starts_with(kTruncPrefix)) return ParseTrunc(text);
  return ParseInFormat(text);
}

std::string RuleText(const Accumulator& rule) {
  switch (rule.kind) {
    case AccumulatorKind::kFormat:
      return FormatText(rule.format);
    case AccumulatorKind::kFormatUnfused:
      return FormatText(rule.format) + std::string(kUnfusedSuffix);
    case AccumulatorKind::kChunked:
      return fmt::format("{}{}", kChunkedPrefix, rule.chunk);
    case AccumulatorKind::kAligned:
      return TruncText(rule);
    case AccumulatorKind::kExactChunks:
      return fmt::format("exact sums of {}", rule.chunk);
    case AccumulatorKind::kFlushedPairs:
      return fmt::format("flushed sums of {}", rule.chunk);
    case AccumulatorKind::kAlignedDown:
      return fmt::format("rounding down, F = {}, sums of {}{}",
                         rule.fraction_bits,
                         rule.chunk,
                         rule.order == ProductOrder::kEvenOdd ? ", even/odd" : "");
    default:
      break;
  }
  for (const PlainName& plain : kPlainNames) {
    if (plain.kind == rule.kind) return std::string(plain.text);
  }
  NUMSIM_CHECK(false, "accumulator kind {}", static_cast<int>(rule.kind));
  return {};
}

std::string Name(const Accumulator& rule) {
  for (const AccumulatorRow& row : AccumulatorTable()) {
    if (row.rule == rule) return std::string(row.name);
  }
  return RuleText(rule);
}

}  // namespace numsim
