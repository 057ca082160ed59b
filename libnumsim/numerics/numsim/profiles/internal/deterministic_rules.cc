// The deterministic rules of all profiles: one line per rule, for all targets that it serves.
#include "numsim/profiles/internal/rules.h"

namespace numsim {
namespace {

constexpr auto kF32 = Sources::kFloat32;
constexpr auto kF64 = Sources::kFloat64;
constexpr auto kAny = Sources::kBoth;
constexpr auto kVia = Sources::kThroughFloat32;
constexpr Rounding kAway{RoundingMode::kNearestAway};
constexpr Rounding kZero{RoundingMode::kTowardZero};
constexpr Rounding kUp{RoundingMode::kUp};
constexpr auto kSat = Overflow::kSaturate;
constexpr auto kProp = Overflow::kPropagate;
constexpr std::string_view kMx = "e3m2fn e2m3fn e2m1fn";
constexpr OwnCodes kAllOnes{0x7F, 0x7F};  // for both signs
constexpr OwnCodes kSignedOnes{0x7F, 0xFF};
constexpr OwnCodes kExponentNan{0xFF, 0xFF};  // the NaN of e8m0fnu

// One row per rule. Fields that are left out are those of numsim's own rule.
// clang-format off
constexpr RuleLine kRules[] = {
    {.profile = "ocp-saturate",    .from = kAny, .targets = "e5m2 e4m3fn e3m2fn e2m3fn e2m1fn", .overflow = kSat},
    {.profile = "ocp-nonsaturate", .from = kAny, .targets = "e5m2 e4m3fn"},

    {.profile = "cuda-13",              .from = kF32, .targets = "e5m2 e4m3fn", .nan = kAllOnes},
    {.profile = "cuda-13",              .from = kF64, .targets = "e4m3fn"},
    {.profile = "cuda-13",              .from = kF64, .targets = "e5m2",        .nan_payload = CudaNanFromFloat64, .breakpoints = CudaNanBreakpoints},
    {.profile = "cuda-13",              .from = kAny, .targets = kMx,           .overflow = kSat},
    {.profile = "cuda-13",              .from = kAny, .targets = "e8m0fnu",     .rounding = kUp, .ignore_sign = true},
    {.profile = "cuda-13-satfinite",    .from = kF32, .targets = "e5m2 e4m3fn", .overflow = kSat, .nan = kAllOnes},
    {.profile = "cuda-13-satfinite",    .from = kF64, .targets = "e4m3fn",      .overflow = kSat},
    {.profile = "cuda-13-satfinite",    .from = kF64, .targets = "e5m2",        .overflow = kSat, .nan_payload = CudaNanFromFloat64, .breakpoints = CudaNanBreakpoints},
    {.profile = "cuda-13-satfinite",    .from = kAny, .targets = kMx,           .overflow = kSat},
    {.profile = "cuda-13-satfinite",    .from = kAny, .targets = "e8m0fnu",     .rounding = kUp, .overflow = kSat, .ignore_sign = true},
    {.profile = "cuda-13-rz",           .from = kAny, .targets = kMx,           .rounding = kZero, .overflow = kSat},
    {.profile = "cuda-13-rz",           .from = kAny, .targets = "e8m0fnu",     .rounding = kZero, .ignore_sign = true},
    {.profile = "cuda-13-rz-satfinite", .from = kAny, .targets = kMx,           .rounding = kZero, .overflow = kSat},
    {.profile = "cuda-13-rz-satfinite", .from = kAny, .targets = "e8m0fnu",     .rounding = kZero, .overflow = kSat, .ignore_sign = true},

    {.profile = "ml-dtypes", .from = kVia, .targets = "bf16 e5m2 e4m3fn e4m3 e3m4 e4m3fnuz e5m2fnuz e4m3b11fnuz"},
    {.profile = "ml-dtypes", .from = kVia, .targets = "e3m2fn e2m3fn", .overflow = kSat, .nan = {0x20, 0x00}},
    {.profile = "ml-dtypes", .from = kVia, .targets = "e2m1fn",        .overflow = kSat, .nan = {0x8, 0x0}},
    {.profile = "ml-dtypes", .from = kVia, .targets = "e8m0fnu",       .nan = kExponentNan, .infinity = kExponentNan, .zero = kExponentNan,
     .finite = EncodeExponentHalfUpOfPositive},

    {.profile = "torch-2.11", .from = kF32, .targets = "e4m3fn e4m3fnuz e5m2fnuz"},
    {.profile = "torch-2.11", .from = kF32, .targets = "e5m2",    .nan = kSignedOnes},
    {.profile = "torch-2.11", .from = kF32, .targets = "e8m0fnu", .nan = kExponentNan, .infinity = kExponentNan, .zero = {0, 0},
     .finite = EncodeExponentHalfUp},
    {.profile = "torch-2.12", .from = kF32, .targets = "e4m3fn",  .overflow = kProp},
    {.profile = "torch-2.12", .from = kF32, .targets = "e4m3fnuz e5m2fnuz"},
    {.profile = "torch-2.12", .from = kF32, .targets = "e5m2",    .nan = kSignedOnes},
    {.profile = "torch-2.12", .from = kF32, .targets = "e8m0fnu", .nan = kExponentNan, .infinity = kExponentNan, .zero = {0, 0},
     .finite = EncodeExponentHalfUp},
    {.profile = "torch-2.15", .from = kF32, .targets = "e4m3fn",  .overflow = kSat},
    {.profile = "torch-2.15", .from = kF32, .targets = "e4m3fnuz e5m2fnuz"},
    {.profile = "torch-2.15", .from = kF32, .targets = "e5m2",    .nan = kSignedOnes},
    {.profile = "torch-2.15", .from = kF32, .targets = "e8m0fnu", .nan = kExponentNan, .infinity = kExponentNan, .zero = {0, 0},
     .finite = EncodeExponentHalfUp},

    {.profile = "torch-fp4", .from = kF32, .targets = "e2m1fn", .overflow = kSat},

    {.profile = "hip-host",           .from = kAny, .targets = "e4m3fn e4m3fnuz e5m2fnuz", .finite = EncodeHip, .breakpoints = HipBreakpoints},
    {.profile = "hip-host",           .from = kAny, .targets = "e5m2",                     .nan = kSignedOnes, .finite = EncodeHip, .breakpoints = HipBreakpoints},
    {.profile = "hip-host-satfinite", .from = kAny, .targets = "e4m3fn e4m3fnuz e5m2fnuz", .overflow = kProp, .finite = EncodeHip, .breakpoints = HipBreakpoints},
    {.profile = "hip-host-satfinite", .from = kAny, .targets = "e5m2",                     .overflow = kProp, .nan = kSignedOnes, .finite = EncodeHip,
     .breakpoints = HipBreakpoints},

    {.profile = "onnx-cast-23",    .from = kF32, .targets = "e4m3fn e5m2",                   .overflow = kSat},
    {.profile = "onnx-cast-23",    .from = kF32, .targets = "e4m3fnuz e5m2fnuz",             .overflow = kProp},
    {.profile = "onnx-cast-24",    .from = kF32, .targets = "e4m3fn e5m2 e4m3fnuz e5m2fnuz", .overflow = kSat},
    {.profile = "onnx-cast-nosat", .from = kF32, .targets = "e4m3fn e5m2 e4m3fnuz e5m2fnuz"},

    {.profile = "onnx-e8m0-up",            .from = kF32, .targets = "e8m0fnu", .rounding = kUp, .overflow = kSat, .nan = kExponentNan, .infinity = kExponentNan,
     .zero = {0, 0}, .finite = EncodeExponentByMode},
    {.profile = "onnx-e8m0-up-nosat",      .from = kF32, .targets = "e8m0fnu", .rounding = kUp, .nan = kExponentNan, .infinity = kExponentNan,
     .zero = {0, 0}, .finite = EncodeExponentByMode},
    {.profile = "onnx-e8m0-down",          .from = kF32, .targets = "e8m0fnu", .rounding = kZero, .nan = kExponentNan, .infinity = kExponentNan,
     .zero = {0, 0}, .finite = EncodeExponentByMode},
    {.profile = "onnx-e8m0-nearest",       .from = kF32, .targets = "e8m0fnu", .rounding = kAway, .overflow = kSat, .nan = kExponentNan, .infinity = kExponentNan,
     .zero = {0, 0}, .finite = EncodeExponentByMode},
    {.profile = "onnx-e8m0-nearest-nosat", .from = kF32, .targets = "e8m0fnu", .rounding = kAway, .nan = kExponentNan, .infinity = kExponentNan,
     .zero = {0, 0}, .finite = EncodeExponentByMode},

    {.profile = "qpytorch", .from = kF32, .targets = "e4m3fn qpytorch-e4m3", .meaning = "qpytorch-e4m3", .rounding = kAway, .overflow = kSat,
     .nan = kSignedOnes, .zero = {0, 0}, .finite = EncodeQPyTorch, .nan_payload = RoundNanPayload, .breakpoints = RoundNanPayloadBreakpoints},
    {.profile = "qpytorch", .from = kF32, .targets = "e5m2 qpytorch-e5m2",   .meaning = "qpytorch-e5m2", .rounding = kAway, .overflow = kSat,
     .nan = kSignedOnes, .zero = {0, 0}, .finite = EncodeQPyTorch, .nan_payload = RoundNanPayload, .breakpoints = RoundNanPayloadBreakpoints},

    {.profile = "cpfloat", .from = kF32, .targets = "fp16 e5m2",            .nan_payload = RoundNanPayload, .breakpoints = RoundNanPayloadBreakpoints},
    {.profile = "cpfloat", .from = kF32, .targets = "e4m3fn qpytorch-e4m3", .meaning = "qpytorch-e4m3", .overflow = kSat, .nan = kSignedOnes,
     .nan_payload = RoundNanPayload, .breakpoints = RoundNanPayloadBreakpoints},

    {.profile = "p3109-v4-satfinite",    .from = kAny, .targets = "binary*", .overflow = kSat},
    {.profile = "p3109-v4-satpropagate", .from = kAny, .targets = "binary*", .overflow = kProp},
    {.profile = "p3109-v4-satnone",      .from = kAny, .targets = "binary*"},

    {.profile = "gaudi",        .from = kF32, .targets = "e4m3 e4m3fn",       .meaning = "e4m3"},
    {.profile = "bitsandbytes", .from = kF32, .targets = "bnb-e4m3 bnb-e5m2", .overflow = kSat, .nan = {0xFF, 0xFF}, .finite = EncodeBitsAndBytes},
};
// clang-format on

}  // namespace

std::span<const RuleLine> DeterministicRules() { return kRules; }

}  // namespace numsim
