// Profiles: the conversion rules of other implementations, by name.
//
// A profile is a named set of policies, bit for bit what one implementation in one version does. It
// is defined for some source types and targets and for no others: asking for another one is an
// error, never a guess.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"

namespace numsim {

enum class SourceType : uint8_t { kFloat32, kFloat64 };
std::string_view Name(SourceType type);  // float32, float64
SourceType ParseSourceType(std::string_view text);

// What our knowledge of an implementation rests on, strongest first.
enum class Evidence : uint8_t {
  kSpecification,  // the published rule itself
  kMeasured,       // its results were compared with this profile on a machine
  kRead,           // taken from its source text
  kThirdParty,     // somebody else's public report, not verified by us
};
std::string_view Name(Evidence evidence);

// One line of the table.
struct ProfileInfo {
  std::string_view name;     // lower case, e.g. "cuda-13"
  std::string_view version;  // what is known of it, e.g. "CUDA 13.0, cuda_fp8.hpp, __NV_NOSAT"
  std::string_view source;   // keys of docs/references.md
  Evidence evidence;
  std::string_view note;  // one line: what sets it apart
  // Random bits of each element; 0 for deterministic profiles. (torch-bf16-sr 16, ptx-rs: by target.)
  bool stochastic;
};

// Every profile, in the order in which `numsim oracle profiles` lists them.
std::span<const ProfileInfo> ProfileTable();

// Throws Error listing the names when there is none of that name.
const ProfileInfo& FindProfile(std::string_view name);

// One conversion of one profile: source bits -> code. Immutable and cheap to copy; safe to share
// between threads.
class ProfileConversion {
 public:
  // Throws Error naming the profile and listing its targets when it does not define that one, and
  // likewise for the source type. Custom formats have no profiles.
  ProfileConversion(std::string_view profile, SourceType from, const Format& to);

  const ProfileInfo& profile() const;
  SourceType source_type() const;
  const FormatSpec& format() const;
  // Number of random bits that Encode reads: the low bits of `random`; 0 if deterministic. As they
  // come from the caller's random word: the layout of the implementation (which bits of a register
  // serve which element) is `RandomLayout`'s matter.
  int random_bits() const;

  // The code of `source_bits` (a float32 in the low 32 bits, or a float64).
  uint32_t Encode(uint64_t source_bits, uint32_t random = 0) const noexcept;

  // Magnitude bit patterns (sign clear), ascending, that split the source's magnitudes into ranges
  // on each of which, for one sign and one random word, Encode is monotone: a range whose ends have
  // one code has that code throughout. Each range begins at an entry; the first entry is 0.
  std::vector<uint64_t> MonotoneRanges() const;

 private:
  struct Rule;
  const Rule* rule_;  // one of a static table
  SourceType from_;
  // ... the implementation adds what it needs
};

// Names of the targets of a profile for a source type, in the order of the table of formats.
std::vector<std::string> ProfileTargets(std::string_view profile, SourceType from);

}  // namespace numsim
