// Profiles: the conversion rules of other implementations, by name.
//
// A profile is a named set of rules that reproduces one version of one implementation bit for bit.
// It is defined for certain source types and target formats only. Asking for any other conversion
// is an error; a profile never guesses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"

namespace numsim {

// The assignment of the bits of an implementation's random register to elements.

// A register of 32 random bits serves `elements` elements, numbered from 0 in the order of the
// source operands of the instruction. Element i uses the `bits` bits of the register from bit
// shift[i] up, in reversed order if reversed[i] is set. bits == 0: deterministic.
struct RandomLayout {
  int8_t bits = 0;
  int8_t elements = 1;
  int8_t shift[4] = {0, 0, 0, 0};
  bool reversed[4] = {false, false, false, false};

  // Returns R of an element: `bits` random bits in the low end. Requires element < elements.
  constexpr uint32_t Random(uint32_t word, int element) const noexcept {
    if (bits == 0) return 0;
    const uint32_t field = (word >> shift[element]) & (~uint32_t{0} >> (32 - bits));
    if (!reversed[element]) return field;
    uint32_t mirrored = 0;
    for (int i = 0; i < bits; ++i) mirrored |= ((field >> i) & 1) << (bits - 1 - i);
    return mirrored;
  }
};

// The type of the numbers that a profile converts, with the names float32 and float64.
enum class SourceType : uint8_t { kFloat32, kFloat64 };
std::string_view ToString(SourceType type);  // float32, float64
SourceType ParseSourceType(std::string_view text);

// The evidence for a profile, strongest first.
enum class Evidence : uint8_t {
  kSpecification,  // the published rule itself
  kMeasured,       // results of the implementation were compared with this profile on a machine
  kRead,           // derived from the implementation's source code
  kThirdParty,     // a public report by others, not verified by us
};
std::string_view ToString(Evidence evidence);  // specification, measured, read, third-party

// One row of the table of profiles.
struct ProfileInfo {
  std::string_view name;     // lower case, e.g. "cuda-13"
  std::string_view version;  // the implementation, e.g. "CUDA 13.0, cuda_fp8.hpp, __NV_NOSAT"
  std::string_view source;   // keys of docs/references.md
  Evidence evidence;         // the weakest evidence of any of its rules
  std::string_view note;     // its distinguishing behaviour, in one line
  bool stochastic = false;   // true if it reads random bits (ProfileConversion::random_bits)
};

// Returns all profiles, in the order in which `numsim oracle profiles` lists them.
std::span<const ProfileInfo> ProfileTable();

// Returns the profile of that name. Throws Error, listing the names, if there is none.
const ProfileInfo& FindProfile(std::string_view name);

// Returns `text` with an abbreviated name of a profile written out: "hip" stands for "hip-host",
// "p3109-a:8" and "rule:..." stay as they are. An abbreviation is the beginning of a name. If
// several names begin with it, it stands for the one that begins all of them: "cuda" for "cuda-13",
// whose variants are "cuda-13-rz" and others. Throws Error that lists the candidates if there is no
// such name, or all names if none begins with `text`.
std::string CompleteProfileName(std::string_view text);

struct ConversionRule;  // internal/rules.h

// One conversion of one profile, from source bits to a code. Immutable, cheap to copy, and safe to
// share between threads.
//
// Codes are bit patterns of the target format. An implementation may give a pattern another meaning
// than the target format does: QPyTorch's "e4m3" reaches 480, with the code 0x7F, which is a NaN of
// e4m3fn.
class ProfileConversion {
 public:
  // Makes the conversion from the source type `from` to the format `to`. `profile` is one of
  //   a name of ProfileTable()
  //   NAME:BITS                 p3109-a, p3109-b, p3109-c with that many random bits (1..32)
  //   rule:ROUNDING,OVERFLOW    numsim's own rule for any target, e.g. rule:rtz,saturate
  // Throws Error, naming the profile and listing its targets, if the profile does not define this
  // target or source type. Conversions to custom formats are defined by rule: only.
  ProfileConversion(std::string_view profile, SourceType from, const Format& to);

  // Returns the profile's entry in the table, or for rule: an entry with the name "rule".
  const ProfileInfo& profile() const;
  const std::string& name() const;  // as passed to the constructor
  SourceType source_type() const;
  const FormatSpec& format() const;  // of the target
  // Returns the format by which the implementation interprets the codes. It equals format() unless
  // the implementation gives patterns another meaning, as described above.
  const FormatSpec& meaning() const;

  // Returns the number of random bits that Encode reads, from the low end of `random`; 0 if
  // deterministic.
  int random_bits() const;
  // Returns the argument `random` of Encode for one of the elements that share the random register
  // `word` of the implementation (RandomLayout); 0 if deterministic. Requires 0 <= element <
  // RandomElements().
  uint32_t RandomOfWord(uint32_t word, int element = 0) const noexcept;
  int RandomElements() const;  // the number of elements that share a register; 1 if deterministic
  const RandomLayout& random_layout() const;

  // Returns the code of `source_bits`, a float32 in the low 32 bits or a float64.
  uint32_t Encode(uint64_t source_bits, uint32_t random = 0) const noexcept;
  // Writes codes[i] = Encode(first + i, random), faster than single calls. Requires a float32
  // source and first + i < 2^32 for all i.
  void EncodeRun(uint32_t first, uint32_t random, std::span<uint32_t> codes) const noexcept;

  // Returns the beginnings of ranges of magnitude bit patterns (sign bit clear), ascending from 0.
  // The ranges cover all magnitudes of the source type. On each range, for a fixed sign and fixed
  // random bits, Encode is monotone: if both ends of an interval within a range have the same code,
  // the whole interval has it.
  std::vector<uint64_t> MonotoneRanges() const;

 private:
  std::string name_;
  const ProfileInfo* profile_;
  std::shared_ptr<const ConversionRule> rule_;
  SourceType from_;
};

// Returns the names of the target formats that a profile defines for a source type, in the order of
// the table of formats. `profile` is written as for ProfileConversion. Throws Error if it is not a
// profile.
std::vector<std::string> ProfileTargets(std::string_view profile, SourceType from);

}  // namespace numsim
