// Compile-time constants for formats of the table, for template arguments such as
// SoftFloat<kE4M3fn>.
#pragma once

#include <string_view>

#include "numsim/formats/format_list.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// Returns the entry of FormatTable() with the canonical name `name`. Any other name fails to
// compile.
consteval FormatSpec NamedFormat(std::string_view name) {
  // Returns from the loop instead of finding a pointer first: under -fsanitize=undefined, g++ 12
  // cannot compare a pointer to null in a constant expression.
  for (const FormatEntry& entry : format_list::kTable) {
    if (entry.name == name) return entry.spec;
  }
  throw "no format of that name in formats/format_list.h";
}

// The formats of the table that code names, one constant each.
inline constexpr FormatSpec kFp32 = NamedFormat("fp32");
inline constexpr FormatSpec kTf32 = NamedFormat("tf32");
inline constexpr FormatSpec kBf16 = NamedFormat("bf16");
inline constexpr FormatSpec kFp16 = NamedFormat("fp16");
inline constexpr FormatSpec kE5M2 = NamedFormat("e5m2");
inline constexpr FormatSpec kE4M3fn = NamedFormat("e4m3fn");
inline constexpr FormatSpec kE4M3 = NamedFormat("e4m3");
inline constexpr FormatSpec kE3M4 = NamedFormat("e3m4");
inline constexpr FormatSpec kE4M3fnuz = NamedFormat("e4m3fnuz");
inline constexpr FormatSpec kE5M2fnuz = NamedFormat("e5m2fnuz");
inline constexpr FormatSpec kE4M3b11fnuz = NamedFormat("e4m3b11fnuz");
inline constexpr FormatSpec kE8M0fnu = NamedFormat("e8m0fnu");
inline constexpr FormatSpec kE3M2fn = NamedFormat("e3m2fn");
inline constexpr FormatSpec kE2M3fn = NamedFormat("e2m3fn");
inline constexpr FormatSpec kE2M1fn = NamedFormat("e2m1fn");
inline constexpr FormatSpec kInt8 = NamedFormat("int8");
inline constexpr FormatSpec kBinary8p3se = NamedFormat("binary8p3se");
inline constexpr FormatSpec kBinary8p4se = NamedFormat("binary8p4se");
inline constexpr FormatSpec kBinary8p3sf = NamedFormat("binary8p3sf");
inline constexpr FormatSpec kBinary8p4sf = NamedFormat("binary8p4sf");
inline constexpr FormatSpec kBinary8p1uf = NamedFormat("binary8p1uf");

}  // namespace numsim
