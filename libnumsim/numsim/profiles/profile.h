// Profiles: the conversion rules of other implementations, by name.
//
// A profile is a named set of policies, bit for bit what one implementation in one version does. It
// is defined for some source types and targets and for no others: asking for another one is an
// error, never a guess.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"

namespace numsim {

// Which bits of an implementation's random register serve which element.

// A register of 32 random bits serves `elements` elements, numbered as the source operands of the
// instruction: 0 is the first. Element i takes the `bits` bits of the register from shift[i] up,
// in reversed order where reversed[i] is set.
struct RandomLayout {
  int8_t bits = 0;
  int8_t elements = 1;
  int8_t shift[4] = {0, 0, 0, 0};
  bool reversed[4] = {false, false, false, false};

  // R of that element: `bits` random bits in the low end. Requires element < elements.
  constexpr uint32_t Random(uint32_t word, int element) const noexcept {
    if (bits == 0) return 0;
    const uint32_t field = (word >> shift[element]) & (~uint32_t{0} >> (32 - bits));
    if (!reversed[element]) return field;
    uint32_t mirrored = 0;
    for (int i = 0; i < bits; ++i) mirrored |= ((field >> i) & 1) << (bits - 1 - i);
    return mirrored;
  }
};

enum class SourceType : uint8_t { kFloat32, kFloat64 };
std::string_view ToString(SourceType type);  // float32, float64
SourceType ParseSourceType(std::string_view text);

// What our knowledge of an implementation rests on, strongest first.
enum class Evidence : uint8_t {
  kSpecification,  // the published rule itself
  kMeasured,       // its results were compared with this profile on a machine
  kRead,           // taken from its source text
  kThirdParty,     // somebody else's public report, not verified by us
};
std::string_view ToString(Evidence evidence);  // specification, measured, read, third-party

// One line of the table.
struct ProfileInfo {
  std::string_view name;     // lower case, e.g. "cuda-13"
  std::string_view version;  // what is known of it, e.g. "CUDA 13.0, cuda_fp8.hpp, __NV_NOSAT"
  std::string_view source;   // keys of docs/references.md
  Evidence evidence;         // of the weakest of its rules
  std::string_view note;     // one line: what sets it apart
  bool stochastic = false;   // reads random bits: ProfileConversion::random_bits
};

// Every profile, in the order in which `numsim oracle profiles` lists them.
std::span<const ProfileInfo> ProfileTable();

// Throws Error listing the names when there is none of that name.
const ProfileInfo& FindProfile(std::string_view name);

struct ConversionRule;  // conversion_rule.h

// One conversion of one profile: source bits -> code. Immutable and cheap to copy; safe to share
// between threads.
//
// Codes are bit patterns of the target. An implementation may give a pattern another meaning than
// the target does: QPyTorch's "e4m3" reaches 480, which is written as 0x7F, a NaN of e4m3fn.
class ProfileConversion {
 public:
  // `profile` is one of
  //   a name of ProfileTable()
  //   NAME:BITS                 p3109-a, p3109-b, p3109-c with that many random bits (1..32)
  //   rule:ROUNDING,OVERFLOW    numsim's own rule for any target, e.g. rule:rtz,saturate
  // Throws Error naming the profile and listing its targets when it does not define that one, and
  // likewise for the source type. Of custom formats only rule: knows a conversion.
  ProfileConversion(std::string_view profile, SourceType from, const Format& to);

  // The table's entry; of rule: one with the name "rule".
  const ProfileInfo& profile() const;
  const std::string& name() const;  // as given
  SourceType source_type() const;
  const FormatSpec& format() const;  // the target's
  // What the codes mean to the implementation: format() but where the note above applies.
  const FormatSpec& meaning() const;

  // Number of random bits that Encode reads: the low bits of `random`; 0 if deterministic.
  int random_bits() const;
  // The `random` that Encode takes for element `element` of those which one random register of the
  // implementation serves (random_layout.h). Requires element < RandomElements(). 0 if
  // deterministic.
  uint32_t RandomOfWord(uint32_t word, int element = 0) const noexcept;
  int RandomElements() const;  // elements that one register serves; 1 if deterministic
  const RandomLayout& random_layout() const;

  // The code of `source_bits` (a float32 in the low 32 bits, or a float64).
  uint32_t Encode(uint64_t source_bits, uint32_t random = 0) const noexcept;
  // codes[i] = Encode(first + i, random), faster. Requires a float32 source and first + i < 2^32.
  void EncodeRun(uint32_t first, uint32_t random, std::span<uint32_t> codes) const noexcept;

  // Magnitude bit patterns (sign clear), ascending, that split the source's magnitudes into ranges
  // on each of which, for one sign and one random word, Encode is monotone: a range whose ends have
  // one code has that code throughout. Each range begins at an entry; the first entry is 0.
  std::vector<uint64_t> MonotoneRanges() const;

 private:
  std::string name_;
  const ProfileInfo* profile_;
  std::shared_ptr<const ConversionRule> rule_;
  SourceType from_;
};

// Names of the targets of a profile, written as for ProfileConversion, for a source type, in the
// order of the table of formats. Throws Error for what is no profile.
std::vector<std::string> ProfileTargets(std::string_view profile, SourceType from);

}  // namespace numsim
