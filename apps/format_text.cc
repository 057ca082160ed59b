#include "apps/format_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <set>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_names.h"

namespace numsim::apps {

std::string CodeText(const FormatSpec& format, uint32_t code) {
  return fmt::format("0x{:0{}X}", code, (format.Bits() + 3) / 4);
}

std::string BitsText(const FormatSpec& format, uint32_t code) {
  if (format.sign == Sign::kTwosComplement || format.IsTable())
    return fmt::format("{:0{}b}", code, format.Bits());
  std::string text;
  if (format.IsSigned()) {
    text += (code & format.SignBit()) != 0 ? '1' : '0';
    text += ' ';
  }
  const uint32_t magnitude = code & ~format.SignBit();
  text += fmt::format("{:0{}b}", magnitude >> format.mantissa_bits, format.exponent_bits);
  if (format.mantissa_bits > 0) {
    const uint32_t mantissa = magnitude & ((uint32_t{1} << format.mantissa_bits) - 1);
    text += fmt::format(" {:0{}b}", mantissa, format.mantissa_bits);
  }
  return text;
}

std::string ValueText(float value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  return fmt::format("{}", value);
}

ValueClass ClassOf(const FormatSpec& format, uint32_t code) {
  if (!format.IsTable()) return Classify(format, code);
  const float value = Decode(format, code);
  if (std::isnan(value)) return ValueClass::kUnused;
  return value == 0 ? ValueClass::kZero : ValueClass::kNormal;
}

std::string ClassText(ValueClass value_class) {
  switch (value_class) {
    case ValueClass::kZero:
      return "zero";
    case ValueClass::kSubnormal:
      return "subnormal";
    case ValueClass::kNormal:
      return "normal";
    case ValueClass::kInfinity:
      return "infinity";
    case ValueClass::kNan:
      return "NaN";
    case ValueClass::kUnused:
      return "unused";
  }
  return "?";
}

void PrintFormatNotes() {
  SetFormatNoteHandler([](const std::string& note) {
    static std::mutex mutex;
    static std::set<std::string> printed;
    const std::lock_guard lock(mutex);
    if (printed.insert(note).second) fmt::print(stderr, "numsim: note: {}\n", note);
  });
}

std::string FormatHelp(std::string_view help) {
  return fmt::format("{} ({})", help, FormatNote("e4m3"));
}

}  // namespace numsim::apps
