// Accumulation modes as text: ParseAccumulationMode and ToString.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/formats/format_table.h"

namespace numsim {
namespace {

constexpr std::string_view kChunkedPrefix = "fp32-chunked:";
constexpr std::string_view kTruncPrefix = "trunc:";
constexpr std::string_view kUnfusedSuffix = ":unfused";

struct PlainName {
  std::string_view text;
  AccumulationKind kind;
};
constexpr PlainName kPlainNames[] = {{"exact", AccumulationKind::kExact},
                                     {"fp64", AccumulationKind::kFloat64},
                                     {"library", AccumulationKind::kLibrary}};

// Returns the list of all valid texts, to follow "neither", with the name nearest to `wrong`.
std::string ValidTexts(std::string_view wrong, bool with_library) {
  std::string names;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return fmt::format(
      "exact nor FORMAT nor FORMAT:unfused nor fp64, fp32-chunked:N, trunc:F,CHUNK[,PROMOTE]{} or "
      "one of {}{}",
      with_library ? ", library" : "",
      names,
      DidYouMean(wrong, names));
}

// Parses a decimal number that consists only of digits and is within the bounds.
std::optional<int> ParseCount(std::string_view text, int least, int most) {
  int value = 0;
  if (text.empty() || text[0] == '-') return std::nullopt;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

// Returns the number called `what` of the accumulation mode `whole`, parsed from `text`.
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

AccumulationMode ParseChunked(std::string_view text) {
  const std::string_view count = text.substr(kChunkedPrefix.size());
  return {.kind = AccumulationKind::kChunked,
          .chunk = CountOf(count, "N", text, 1, AccumulationMode::kMaxInterval)};
}

AccumulationMode ParseTrunc(std::string_view text) {
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
  AccumulationMode mode{.kind = AccumulationKind::kAligned};
  mode.fraction_bits = CountOf(pieces[0], "F", text, 1, AccumulationMode::kMaxFractionBits);
  mode.chunk = CountOf(pieces[1], "CHUNK", text, 1, AccumulationMode::kMaxChunk);
  if (pieces.size() == 3) {
    mode.promote = CountOf(pieces[2], "PROMOTE", text, 1, AccumulationMode::kMaxInterval);
    if (mode.promote % mode.chunk != 0) {
      throw Error::Format("accumulator '{}': PROMOTE is not a multiple of CHUNK", text);
    }
  }
  return mode;
}

AccumulationMode ParseInFormat(std::string_view text, bool with_library) {
  const bool unfused = text.ends_with(kUnfusedSuffix);
  const std::string_view format =
      unfused ? text.substr(0, text.size() - kUnfusedSuffix.size()) : text;
  try {
    return {.kind = unfused ? AccumulationKind::kFormatUnfused : AccumulationKind::kFormat,
            .format = ParseFormat(format).spec};
  } catch (const Error& error) {
    throw Error::Format(
        "accumulator '{}' is neither {}; {}", text, ValidTexts(text, with_library), error.what());
  }
}

std::string TruncText(const AccumulationMode& mode) {
  std::string text = fmt::format("{}{},{}", kTruncPrefix, mode.fraction_bits, mode.chunk);
  if (mode.promote != 0) text += fmt::format(",{}", mode.promote);
  if (mode.order == ProductOrder::kBytePairs) text += " by byte pairs";
  return text;
}

std::string BlockScaledText(const AccumulationMode& mode) {
  std::string text = fmt::format("{}{},{}", kTruncPrefix, mode.fraction_bits, mode.chunk);
  if (mode.group != 0) text += fmt::format(" of sums of {}", mode.group);
  return text + ", scales " + ToString(mode.format);
}

AccumulationMode Parse(std::string_view text, bool with_library) {
  for (const PlainName& plain : kPlainNames) {
    const bool wanted = with_library || plain.kind != AccumulationKind::kLibrary;
    if (wanted && plain.text == text) return {.kind = plain.kind};
  }
  if (const AccumulationModeRow* row = FindAccumulationMode(text)) return row->mode;
  if (text.starts_with(kChunkedPrefix)) return ParseChunked(text);
  if (text.starts_with(kTruncPrefix)) return ParseTrunc(text);
  return ParseInFormat(text, with_library);
}

}  // namespace

AccumulationMode ParseAccumulationMode(std::string_view text) { return Parse(text, true); }

AccumulationMode ParseOrderedAccumulationMode(std::string_view text) { return Parse(text, false); }

std::string DefinitionText(const AccumulationMode& mode) {
  switch (mode.kind) {
    case AccumulationKind::kFormat:
      return ToString(mode.format);
    case AccumulationKind::kFormatUnfused:
      return ToString(mode.format) + std::string(kUnfusedSuffix);
    case AccumulationKind::kChunked:
      return fmt::format("{}{}", kChunkedPrefix, mode.chunk);
    case AccumulationKind::kAligned:
      return TruncText(mode);
    case AccumulationKind::kExactChunks:
      return fmt::format("exact sums of {}", mode.chunk);
    case AccumulationKind::kFlushedPairs:
      return fmt::format("flushed sums of {}", mode.chunk);
    case AccumulationKind::kAlignedDown:
      return fmt::format("rounding down, F = {}, sums of {}{}",
                         mode.fraction_bits,
                         mode.chunk,
                         mode.order == ProductOrder::kEvenOdd ? ", even/odd" : "");
    case AccumulationKind::kBlockScaled:
      return BlockScaledText(mode);
    default:
      break;
  }
  for (const PlainName& plain : kPlainNames) {
    if (plain.kind == mode.kind) return std::string(plain.text);
  }
  NUMSIM_CHECK(false, "accumulator kind {}", static_cast<int>(mode.kind));
  return {};
}

std::string ToString(const AccumulationMode& mode) {
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (row.mode == mode) return std::string(row.name);
  }
  return DefinitionText(mode);
}

}  // namespace numsim
