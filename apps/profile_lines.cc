#include "apps/profile_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "apps/format_text.h"
#include "numsim/formats/decode.h"
#include "numsim/profiles/profile.h"

namespace numsim::apps {
namespace {

bool Defines(const std::string& profile, SourceType from, const std::string& target) {
  const std::vector<std::string> targets = ProfileTargets(profile, from);
  return std::find(targets.begin(), targets.end(), target) != targets.end();
}

std::string CodeAndValue(const ProfileConversion& conversion, uint32_t code) {
  return fmt::format(
      "{} {}", CodeText(conversion.format(), code), ValueText(Decode(conversion.meaning(), code)));
}

// Returns how many of the random words 0 .. 2^N - 1 give the same code as word 0. Relies on the
// code changing at most once over the words.
uint64_t WordsOfFirstCode(const ProfileConversion& conversion, uint64_t bits) {
  const uint32_t first = conversion.Encode(bits, 0);
  uint64_t low = 0, end = uint64_t{1} << conversion.random_bits();
  while (end - low > 1) {
    const uint64_t middle = low + (end - low) / 2;
    (conversion.Encode(bits, static_cast<uint32_t>(middle)) == first ? low : end) = middle;
  }
  return low + 1;
}

std::string Result(const ProfileConversion& conversion, uint64_t bits) {
  const uint32_t code = conversion.Encode(bits, 0);
  if (conversion.random_bits() == 0) return CodeAndValue(conversion, code);
  const uint64_t words = uint64_t{1} << conversion.random_bits();
  const uint32_t other = conversion.Encode(bits, static_cast<uint32_t>(words - 1));
  if (other == code) return CodeAndValue(conversion, code);
  const uint64_t first = WordsOfFirstCode(conversion, bits);
  return fmt::format("{} for {}, {} for {} of 2^{} random words",
                     CodeAndValue(conversion, code),
                     first,
                     CodeAndValue(conversion, other),
                     words - first,
                     conversion.random_bits());
}

// Converts from float32 if the value is a float32 or if the profile does not support float64.
std::string Line(const std::string& name, const Format& format, const ExactNumber& value) {
  const bool exact = value.IsFloat32();
  const bool wide = !exact && Defines(name, SourceType::kFloat64, format.name);
  const SourceType from = wide ? SourceType::kFloat64 : SourceType::kFloat32;
  const uint64_t bits = wide ? std::bit_cast<uint64_t>(value.ToFloat64())
                             : std::bit_cast<uint32_t>(value.ToFloat32());
  return fmt::format("profile {:<22} {}{}\n",
                     name,
                     Result(ProfileConversion(name, from, format), bits),
                     !exact && !wide ? "   (for the value rounded to float32)" : "");
}

}  // namespace

std::string ProfileLines(const std::string& name, const Format& format, const ExactNumber& value) {
  std::string lines =
      fmt::format("\nprofiles, from {}{}\n",
                  ToString(value.IsFloat32() ? SourceType::kFloat32 : SourceType::kFloat64),
                  value.IsFloat64() ? "" : ", to which the value is rounded first");
  if (name != "all") return lines + Line(name, format, value);
  for (const ProfileInfo& profile : ProfileTable()) {
    const std::string text(profile.name);
    const bool defined = Defines(text, SourceType::kFloat32, format.name) ||
                         Defines(text, SourceType::kFloat64, format.name);
    if (defined) lines += Line(text, format, value);
  }
  return lines;
}

}  // namespace numsim::apps
