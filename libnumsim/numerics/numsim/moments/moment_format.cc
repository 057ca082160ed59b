#include "numsim/moments/moment_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "numsim/base/keyword.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

constexpr Keyword<MomentScaling> kScalings[] = {{"none", MomentScaling::kNone},
                                                {"tensor", MomentScaling::kTensor},
                                                {"block", MomentScaling::kBlock},
                                                {"coat", MomentScaling::kCoat},
                                                {"dynamic", MomentScaling::kDynamic}};

constexpr size_t kDefaultBlock = 128;
constexpr size_t kDefaultDynamicBlock = 256;
constexpr int kDefaultRandomBits = 32;

size_t ParseNumber(std::string_view text,
                   std::string_view what,
                   size_t most,
                   std::string_view whole) {
  size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || stop != end || number < 1 || number > most) {
    throw Error::Format("moment format '{}': '{}' is not {} from 1 to {}", whole, text, what, most);
  }
  return number;
}

size_t ParseBlock(std::string_view text, std::string_view whole) {
  return ParseNumber(text, "a block size", size_t{1} << 30, whole);
}

// "sr" or "sr:BITS".
Rounding ParseStochastic(std::string_view text, std::string_view whole) {
  const size_t colon = text.find(':');
  if (text.substr(0, colon) != "sr") {
    throw Error::Format(
        "moment format '{}': '+{}' is not a rounding, expected +sr or +sr:BITS", whole, text);
  }
  Rounding rounding{RoundingMode::kStochastic, StochasticVariant::kA, kDefaultRandomBits};
  if (colon != text.npos) {
    const size_t bits = ParseNumber(text.substr(colon + 1), "a number of random bits", 32, whole);
    rounding.random_bits = static_cast<int>(bits);
  }
  return rounding;
}

MomentScaling DefaultScaling(const FormatSpec& spec) {
  return spec.Bits() <= 8 ? MomentScaling::kTensor : MomentScaling::kNone;
}

// SCALING[:BLOCK].
void SetScaling(MomentFormat& moment, std::string_view text, std::string_view whole) {
  const size_t colon = text.find(':');
  const std::string what = fmt::format("moment format '{}': scaling", whole);
  moment.scaling = ParseKeyword(kScalings, what, text.substr(0, colon));
  if (moment.scaling == MomentScaling::kDynamic) {
    throw Error::Format(
        "moment format '{}': dynamic is a format, not a scaling, expected dynamic[:BLOCK]", whole);
  }
  if (colon == text.npos) return;
  if (!moment.HasBlocks()) {
    throw Error::Format(
        "moment format '{}': scaling {} takes no block size", whole, ToString(moment.scaling));
  }
  moment.block = ParseBlock(text.substr(colon + 1), whole);
}

void CheckFormat(const MomentFormat& moment, std::string_view whole) {
  const FormatSpec& spec = moment.format.spec;
  const bool nearest = moment.rounding.mode == RoundingMode::kNearestEven;
  if (spec == kFp32) {
    if (moment.IsExact() && nearest) return;
    throw Error::Format(
        "moment format '{}': fp32 takes neither a scaling nor "
        "a rounding, expected fp32",
        whole);
  }
  if (!spec.IsSigned() || spec.zero == Zero::kNone || spec.Bits() > 16) {
    throw Error::Format(
        "moment format '{}': expected fp32, dynamic or a "
        "format of up to 16 bits with a sign and a "
        "zero",
        whole);
  }
  if (moment.scaling == MomentScaling::kCoat && spec.Bits() > 8) {
    throw Error::Format("moment format '{}': {} has {} bits, scaling coat takes up to 8",
                        whole,
                        moment.format.name,
                        spec.Bits());
  }
}

// "dynamic" or "dynamic:BLOCK".
MomentFormat ParseDynamic(std::string_view text, std::string_view whole) {
  MomentFormat moment{{"int8", kInt8}, MomentScaling::kDynamic, kDefaultDynamicBlock, {}};
  const size_t colon = text.find(':');
  if (text.find('@') != text.npos) {
    throw Error::Format(
        "moment format '{}': dynamic has its own scaling, "
        "expected dynamic[:BLOCK]",
        whole);
  }
  if (colon != text.npos) moment.block = ParseBlock(text.substr(colon + 1), whole);
  return moment;
}

}  // namespace

std::string_view ToString(MomentScaling scaling) { return KeywordToString(kScalings, scaling); }

bool MomentFormat::IsExact() const {
  return scaling == MomentScaling::kNone && format.spec == kFp32;
}

bool MomentFormat::HasBlocks() const {
  return scaling == MomentScaling::kBlock || scaling == MomentScaling::kCoat ||
         scaling == MomentScaling::kDynamic;
}

MomentFormat ParseMomentFormat(std::string_view text) {
  const size_t plus = text.find('+');
  const std::string_view head = text.substr(0, plus);
  const size_t at = head.find('@');
  const std::string_view format = head.substr(0, at);
  MomentFormat moment;
  if (format.substr(0, format.find(':')) == "dynamic") {
    moment = ParseDynamic(head, text);
  } else {
    moment.format = ParseFormat(format);
    moment.scaling = DefaultScaling(moment.format.spec);
    if (at != head.npos) SetScaling(moment, head.substr(at + 1), text);
  }
  if (plus != text.npos) moment.rounding = ParseStochastic(text.substr(plus + 1), text);
  CheckFormat(moment, text);
  return moment;
}

std::vector<MomentFormat> ParseMomentFormatList(std::string_view text) {
  std::vector<MomentFormat> formats;
  for (const std::string& piece : SplitFormatList(text))
    formats.push_back(ParseMomentFormat(piece));
  return formats;
}

std::string ToString(const MomentFormat& format) {
  const bool dynamic = format.scaling == MomentScaling::kDynamic;
  std::string text = dynamic ? "dynamic" : format.format.name;
  if (!dynamic && format.scaling != DefaultScaling(format.format.spec)) {
    text += fmt::format("@{}", ToString(format.scaling));
  }
  if (format.HasBlocks() && format.block != (dynamic ? kDefaultDynamicBlock : kDefaultBlock)) {
    text += fmt::format(":{}", format.block);
  }
  if (format.rounding.mode == RoundingMode::kStochastic) {
    text += "+sr";
    if (format.rounding.random_bits != kDefaultRandomBits) {
      text += fmt::format(":{}", format.rounding.random_bits);
    }
  }
  return text;
}

}  // namespace numsim
