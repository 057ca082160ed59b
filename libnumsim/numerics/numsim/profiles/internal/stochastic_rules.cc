// The stochastic rules of all profiles, with the layouts of their random bits.
#include "numsim/profiles/internal/rules.h"

namespace numsim {
namespace {

constexpr auto kSat = Overflow::kSaturate;
constexpr auto kProp = Overflow::kPropagate;
constexpr std::string_view kHipFnAndUz4 = "e4m3fn e4m3fnuz";

constexpr Rounding Bits(int n, StochasticVariant variant = StochasticVariant::kA) {
  return {RoundingMode::kStochastic, variant, n};
}

// Returns the layout in which R is a field of the register and each register serves one element.
constexpr RandomLayout Field(int8_t bits, int8_t shift = 0) {
  return {.bits = bits, .shift = {shift, 0, 0, 0}};
}

// The layouts of cvt.rs [PTX]. Elements are the source operands in order: a, b or a, b, e, f.
constexpr RandomLayout kFp16Pair{.bits = 13, .elements = 2, .shift = {16, 0}};
constexpr RandomLayout kBf16Pair{.bits = 16, .elements = 2, .shift = {16, 0}};
// The upper half serves a and b, the lower half e and f. The first element of each pair uses its
// half in reversed order, according to a third-party report.
constexpr RandomLayout kFp8Four{
    .bits = 16, .elements = 4, .shift = {16, 16, 0, 0}, .reversed = {true, false, true, false}};
// The upper bytes of both halves serve a and b, the lower bytes e and f. That a and e use the upper
// half is an assumption.
constexpr RandomLayout kFp4Four{.bits = 8, .elements = 4, .shift = {24, 8, 16, 0}};

// One row per rule. Fields that are left out are those of numsim's own rule.
// clang-format off
constexpr RuleLine kRules[] = {
    {.profile = "ptx-rs",           .targets = "fp16",          .rounding = Bits(13), .nan = {0x7FFF, 0x7FFF}, .layout = kFp16Pair},
    {.profile = "ptx-rs",           .targets = "bf16",          .rounding = Bits(16), .nan = {0x7FFF, 0x7FFF}, .layout = kBf16Pair},
    {.profile = "ptx-rs",           .targets = "e5m2 e4m3fn",   .rounding = Bits(16), .overflow = kSat, .nan = {0x7F, 0x7F}, .layout = kFp8Four},
    {.profile = "ptx-rs",           .targets = "e3m2fn e2m3fn", .rounding = Bits(16), .overflow = kSat, .layout = kFp8Four},
    {.profile = "ptx-rs",           .targets = "e2m1fn",        .rounding = Bits(8), .overflow = kSat, .layout = kFp4Four},
    {.profile = "ptx-rs-satfinite", .targets = "fp16",          .rounding = Bits(13), .overflow = kSat, .nan = {0x7FFF, 0x7FFF}, .layout = kFp16Pair},
    {.profile = "ptx-rs-satfinite", .targets = "bf16",          .rounding = Bits(16), .overflow = kSat, .nan = {0x7FFF, 0x7FFF}, .layout = kBf16Pair},

    {.profile = "amd-sr",                .targets = "e4m3fn",     .rounding = Bits(20), .overflow = kProp, .nan = {0xFF, 0xFF}, .infinity = {0xFF, 0xFF},
     .layout = Field(20, 12)},
    {.profile = "amd-sr",                .targets = "e5m2",       .rounding = Bits(21), .overflow = kProp, .nan = {0xFE, 0xFE}, .layout = Field(21, 11)},
    {.profile = "amd-sr-host",           .targets = kHipFnAndUz4, .rounding = Bits(20), .finite = EncodeHip, .breakpoints = HipBreakpoints, .layout = Field(20)},
    {.profile = "amd-sr-host",           .targets = "e5m2",       .rounding = Bits(21), .nan = {0x7F, 0xFF}, .finite = EncodeHip, .breakpoints = HipBreakpoints,
     .layout = Field(21)},
    {.profile = "amd-sr-host",           .targets = "e5m2fnuz",   .rounding = Bits(21), .finite = EncodeHip, .breakpoints = HipBreakpoints, .layout = Field(21)},
    {.profile = "amd-sr-host-satfinite", .targets = kHipFnAndUz4, .rounding = Bits(20), .overflow = kProp, .finite = EncodeHip, .breakpoints = HipBreakpoints,
     .layout = Field(20)},
    {.profile = "amd-sr-host-satfinite", .targets = "e5m2",       .rounding = Bits(21), .overflow = kProp, .nan = {0x7F, 0xFF}, .finite = EncodeHip,
     .breakpoints = HipBreakpoints, .layout = Field(21)},
    {.profile = "amd-sr-host-satfinite", .targets = "e5m2fnuz",   .rounding = Bits(21), .overflow = kProp, .finite = EncodeHip, .breakpoints = HipBreakpoints,
     .layout = Field(21)},

    {.profile = "torch-bf16-sr", .targets = "bf16", .rounding = Bits(16), .nan_payload = RoundNanToBf16, .breakpoints = RoundNanToBf16Breakpoints, .layout = Field(16),
     .mirrored_random = true},

    {.profile = "p3109-a", .from = Sources::kBoth, .targets = "binary*", .rounding = Bits(32, StochasticVariant::kA), .layout = Field(32)},
    {.profile = "p3109-b", .from = Sources::kBoth, .targets = "binary*", .rounding = Bits(32, StochasticVariant::kB), .layout = Field(32)},
    {.profile = "p3109-c", .from = Sources::kBoth, .targets = "binary*", .rounding = Bits(32, StochasticVariant::kC), .layout = Field(32)},
};
// clang-format on

}  // namespace

std::span<const RuleLine> StochasticRules() { return kRules; }

}  // namespace numsim
