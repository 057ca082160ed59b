// Conversions of other implementations, selected by the name of a profile.
#include "numsim/profiles/profile.h"

#include <bit>

#include "numsim/capi/internal/arrays.h"
#include "numsim/capi/internal/text.h"

using numsim::ProfileConversion;
using numsim::SourceType;
using numsim::capi::CatchAll;
using numsim::capi::TextBuffer;

namespace numsim::capi {
namespace {

static_assert(static_cast<int>(SourceType::kFloat32) == NUMSIM_FLOAT32);
static_assert(static_cast<int>(SourceType::kFloat64) == NUMSIM_FLOAT64);

// Returns true if the text before the colon is the name of a profile, or "rule" for numsim's own
// conversion. An error is then about the rest of the text, the source type or the target.
bool IsKnown(std::string_view profile) {
  const std::string_view name = profile.substr(0, profile.find(':'));
  const auto has_name = [name](const ProfileInfo& info) { return info.name == name; };
  return name == "rule" || std::any_of(ProfileTable().begin(), ProfileTable().end(), has_name);
}

// Lists the names for messages that do not fit the caller's buffer.
constexpr std::string_view kLister = "numsim_profile_name";

// Checks profile, source type and target and returns body(conversion). Converts exceptions to a
// status and a message.
template <typename Body>
numsim_status_t WithConversion(const char* profile,
                               int source_type,
                               const numsim_format_t* to,
                               TextBuffer message,
                               const Body& body) noexcept {
  message.Write("");
  FormatSpec spec;
  const bool is_type = source_type == NUMSIM_FLOAT32 || source_type == NUMSIM_FLOAT64;
  const numsim_status_t bad =
      FirstError({Require(profile != nullptr && is_type), ReadFormat(to, &spec)});
  if (bad != NUMSIM_OK) {
    message.Write(numsim_status_text(bad));
    return bad;
  }
  const numsim_status_t on_error =
      IsKnown(profile) ? NUMSIM_ERROR_UNSUPPORTED : NUMSIM_ERROR_UNKNOWN_PROFILE;
  return CatchAll(message, on_error, [&] {
    const numsim_status_t status = body(
        ProfileConversion(profile, static_cast<SourceType>(source_type), {ToString(spec), spec}));
    if (status != NUMSIM_OK) message.Write(numsim_status_text(status));
    return status;
  });
}

uint64_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(value); }

template <typename Float>
numsim_status_t EncodeArray(const ProfileConversion& conversion,
                            const Float* in,
                            size_t n,
                            const numsim_random_t* random,
                            void* codes,
                            int code_bytes) {
  Draws draws;
  const Memory from = {in, n, sizeof(Float)};
  const Memory out = {codes, n, static_cast<size_t>(code_bytes)};
  numsim_status_t status = FirstError({CheckCodeBytes(code_bytes, conversion.format()),
                                       from.Check(),
                                       draws.Read(random, n, conversion.random_bits())});
  if (status == NUMSIM_OK) status = out.Check();
  if (status == NUMSIM_OK) status = CheckDisjoint(out, {from, draws.Words()});
  if (status != NUMSIM_OK || n == 0) return status;
  WithCodes(codes, code_bytes, n, [&]<typename Code>(std::span<Code> span) {
    ForEachElement(n, [&](size_t i) {
      span[i] = static_cast<Code>(conversion.Encode(BitsOf(in[i]), draws.At(i)));
    });
  });
  return NUMSIM_OK;
}

}  // namespace
}  // namespace numsim::capi

size_t numsim_profile_count(void) noexcept { return numsim::ProfileTable().size(); }

// Names in the table are string literals, so their data ends with a 0.
const char* numsim_profile_name(size_t index) noexcept {
  const auto table = numsim::ProfileTable();
  return index < table.size() ? table[index].name.data() : nullptr;
}

numsim_status_t numsim_profile_random_bits(const char* profile,
                                           int source_type,
                                           const numsim_format_t* to,
                                           int* bits,
                                           char* message,
                                           size_t message_size) noexcept {
  const auto body = [bits](const ProfileConversion& conversion) -> numsim_status_t {
    if (bits == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
    *bits = conversion.random_bits();
    return NUMSIM_OK;
  };
  return numsim::capi::WithConversion(
      profile, source_type, to, {message, message_size, numsim::capi::kLister}, body);
}

numsim_status_t numsim_profile_encode(const char* profile,
                                      int source_type,
                                      uint64_t value_bits,
                                      const numsim_format_t* to,
                                      uint32_t random,
                                      uint32_t* code,
                                      char* message,
                                      size_t message_size) noexcept {
  const auto body = [&](const ProfileConversion& conversion) -> numsim_status_t {
    const bool too_wide = source_type == NUMSIM_FLOAT32 && value_bits > UINT32_MAX;
    if (code == nullptr || too_wide) return NUMSIM_ERROR_BAD_ARGUMENT;
    *code = conversion.Encode(value_bits, random);
    return NUMSIM_OK;
  };
  return numsim::capi::WithConversion(
      profile, source_type, to, {message, message_size, numsim::capi::kLister}, body);
}

numsim_status_t numsim_profile_encode_array(const char* profile,
                                            int source_type,
                                            const void* in,
                                            size_t n,
                                            const numsim_format_t* to,
                                            const numsim_random_t* random,
                                            void* codes,
                                            int code_bytes,
                                            char* message,
                                            size_t message_size) noexcept {
  const auto body = [&](const ProfileConversion& conversion) {
    if (source_type == NUMSIM_FLOAT32) {
      return numsim::capi::EncodeArray(
          conversion, static_cast<const float*>(in), n, random, codes, code_bytes);
    }
    return numsim::capi::EncodeArray(
        conversion, static_cast<const double*>(in), n, random, codes, code_bytes);
  };
  return numsim::capi::WithConversion(
      profile, source_type, to, {message, message_size, numsim::capi::kLister}, body);
}
