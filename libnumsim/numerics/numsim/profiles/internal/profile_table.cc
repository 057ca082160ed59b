// The table of all profiles.
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/base/nearest_name.h"
#include "numsim/profiles/profile.h"

namespace numsim {
namespace {

constexpr Keyword<SourceType> kSourceTypes[] = {
    {"float32", SourceType::kFloat32},
    {"float64", SourceType::kFloat64},
};

constexpr Keyword<Evidence> kEvidence[] = {
    {"specification", Evidence::kSpecification},
    {"measured", Evidence::kMeasured},
    {"read", Evidence::kRead},
    {"third-party", Evidence::kThirdParty},
};

constexpr auto kSpecification = Evidence::kSpecification;
constexpr auto kMeasured = Evidence::kMeasured;
constexpr auto kRead = Evidence::kRead;
constexpr auto kThirdParty = Evidence::kThirdParty;

// One entry per profile. First line: name, version, source, evidence. Second line: the note and, if
// the profile reads random bits, `true`.
// clang-format off
constexpr ProfileInfo kTable[] = {
    {"ocp-saturate",          "OFP8 1.0 and MX 1.0, saturating",                                                    "OCP-OFP8, OCP-MX", kSpecification,
     "infinity and overflow become the largest value; the NaN code and NaN to fp6, fp4 are left open by it: numsim's"},
    {"ocp-nonsaturate",       "OFP8 1.0, not saturating",                                                           "OCP-OFP8",         kSpecification,
     "overflow becomes NaN (e4m3fn) or infinity (e5m2)"},
    {"cuda-13",               "CUDA 13.0, cuda_fp8.hpp, cuda_fp6.hpp, cuda_fp4.hpp, host and H200, __NV_NOSAT",     "CUDA-FP8",         kMeasured,
     "a NaN loses its sign from float32 and keeps it from float64; e8m0fnu ignores signs and rounds up"},
    {"cuda-13-satfinite",     "CUDA 13.0, cuda_fp8.hpp, cuda_fp6.hpp, cuda_fp4.hpp, host and H200, __NV_SATFINITE", "CUDA-FP8",         kMeasured,
     "as cuda-13; overflow and infinity become the largest value"},
    {"cuda-13-rz",            "CUDA 13.0, host and H200, cudaRoundZero, __NV_NOSAT",                                "CUDA-FP8",         kMeasured,
     "e8m0fnu, fp6 and fp4 toward zero"},
    {"cuda-13-rz-satfinite",  "CUDA 13.0, cudaRoundZero, __NV_SATFINITE",                                           "CUDA-FP8",         kMeasured,
     "as cuda-13-rz; infinity to e8m0fnu becomes 2^127"},
    {"ml-dtypes",             "ml_dtypes 0.6.0 under NumPy",                                                        "ml_dtypes",        kMeasured,
     "NaN to fp6 and fp4 becomes a zero of the other sign; e8m0fnu: NaN for zero and negative numbers, ties up; float64 goes through float32"},
    {"torch-2.11",            "PyTorch 2.11.0, Float8_*.h, CPU and CUDA",                                           "PyTorch",          kMeasured,
     "e5m2 NaN is 0x7F; e8m0fnu ignores signs, ties go up, all above 2^-127 goes up to 2^-126"},
    {"torch-2.12",            "PyTorch 2.12 development versions with pull request 178817",                         "PyTorch",          kThirdParty,
     "finite overflow of e4m3fn saturates; that infinity stays NaN there is assumed; the rest as torch-2.11"},
    {"torch-2.15",            "PyTorch 2.15.0, Float8_*.h, CPU",                                                    "PyTorch",          kMeasured,
     "e4m3fn saturates, also infinity; the rest as torch-2.11"},
    {"torch-fp4",             "PyTorch, open pull request 191928 of August 2026",                                   "PyTorch",          kThirdParty,
     "nearest-even; that overflow and infinity saturate is assumed, and NaN is left open by it: numsim's; no release up to 2.15.0 has the cast"},
    {"hip-host",              "amd_hip_fp8.h, cast_to_f8 on an x86 host, __HIP_NOSAT",                              "HIP-FP8",          kRead,
     "overflow is tested before rounding; the exponent shift wraps around: x far below the subnormals converts as x times 2^64; HIP's host emulation, there is no profile of a device"},
    {"hip-host-satfinite",    "amd_hip_fp8.h, cast_to_f8 on an x86 host, __HIP_SATFINITE",                          "HIP-FP8",          kRead,
     "as hip-host; infinity does not saturate"},
    {"onnx-cast-23",          "ONNX Cast up to opset 23, saturate=1",                                               "ONNX-Cast",        kSpecification,
     "infinity becomes NaN in the FNUZ formats; the NaN code of e5m2 is left open by it: numsim's"},
    {"onnx-cast-24",          "ONNX Cast from opset 24, saturate=1",                                                "ONNX-Cast",        kSpecification,
     "infinity becomes the largest value in every format"},
    {"onnx-cast-nosat",       "ONNX Cast, saturate=0, every opset",                                                 "ONNX-Cast",        kSpecification,
     "overflow and infinity become NaN, in e5m2 infinity"},
    {"onnx-e8m0-up",         "onnx 1.23.2, ReferenceEvaluator, Cast to float8e8m0, round_mode=up, saturate=1",  "ONNX-Cast",        kMeasured,
     "the exponent, plus one if the mantissa is not zero, also of subnormals: 2^-127 goes up; signs ignored; infinity is NaN"},
    {"onnx-e8m0-up-nosat",   "onnx 1.23.2, ReferenceEvaluator, Cast to float8e8m0, round_mode=up, saturate=0",  "ONNX-Cast",        kMeasured,
     "as onnx-e8m0-up; overflow becomes NaN"},
    {"onnx-e8m0-down",       "onnx 1.23.2, ReferenceEvaluator, Cast to float8e8m0, round_mode=down, saturate=1 or 0",  "ONNX-Cast",        kMeasured,
     "the exponent; signs ignored; infinity is NaN"},
    {"onnx-e8m0-nearest",    "onnx 1.23.2, ReferenceEvaluator, Cast to float8e8m0, round_mode=nearest, saturate=1",  "ONNX-Cast",        kMeasured,
     "ties go up, all above 2^-127 goes up to 2^-126; signs ignored; infinity is NaN"},
    {"onnx-e8m0-nearest-nosat", "onnx 1.23.2, ReferenceEvaluator, Cast to float8e8m0, round_mode=nearest, saturate=0",  "ONNX-Cast",        kMeasured,
     "as onnx-e8m0-nearest; overflow becomes NaN"},
    {"qpytorch",              "QPyTorch, float_quantize(exp, man, \"nearest\") on the CPU",                         "QPyTorch",         kRead,
     "largest values 480 and 114688 (codes 0x7F), also for NaN and infinity; ties away; subnormal results rounded twice; no negative zero below the normals"},
    {"cpfloat",               "CPFloat, nearest-even, subnormals on; E4M3 as p=4, emin=-6, emax=8",                 "CPFloat",          kRead,
     "E4M3 reaches 480 (0x7F); infinity and NaN have no pattern left there and are written 0x7F too; bits of a NaN are rounded"},
    {"p3109-v4-satfinite",    "P3109 v4.0 draft, NearestTiesToEven, SatFinite",                                     "P3109",            kSpecification,
     "overflow and infinity become the largest value"},
    {"p3109-v4-satpropagate", "P3109 v4.0 draft, NearestTiesToEven, SatPropagate",                                  "P3109",            kSpecification,
     "overflow becomes the largest value, infinity stays"},
    {"p3109-v4-satnone",      "P3109 v4.0 draft, NearestTiesToEven, SatNone (before: OvfInf)",                      "P3109",            kSpecification,
     "overflow becomes infinity in extended formats, the largest value in finite ones"},
    {"gaudi",                 "Intel Gaudi 2 and 3, E4M3 with bias 7",                                              "Gaudi",            kThirdParty,
     "largest value 240; codes 0x78 and above are infinity and NaN, also for the target e4m3fn"},
    {"bitsandbytes",          "bitsandbytes, create_fp8_map and dQuantize",                                         "bnb",              kRead,
     "NaN becomes the lowest value, ties of negative numbers go to the odd code; codes by value, without the division of the map by its maximum, which shifts its ties"},
    {"ptx-rs",                "PTX cvt.rs (sm_100a, sm_103a); .satfinite where it must be",                         "PTX",              kThirdParty,
     "13 random bits to fp16, 16 to bf16, fp8 and fp6, 8 to fp4; bits shared by pairs of elements", true},
    {"ptx-rs-satfinite",      "PTX cvt.rs.satfinite to fp16 and bf16",                                              "PTX",              kThirdParty,
     "overflow and infinity become the largest value", true},
    {"amd-sr",                "v_cvt_sr_fp8_f32, v_cvt_sr_bf8_f32 of RDNA4",                                        "AMD-SR",           kThirdParty,
     "the high 20 or 21 bits of the seed; overflow saturates, infinity does not; NaN is 0xFF or 0xFE", true},
    {"amd-sr-host",           "amd_hip_fp8.h, cast_to_f8 with stoch on an x86 host, __HIP_NOSAT",                   "HIP-FP8",          kRead,
     "the low 20 or 21 bits of the random word; the rest as hip-host", true},
    {"amd-sr-host-satfinite", "amd_hip_fp8.h, cast_to_f8 with stoch on an x86 host, __HIP_SATFINITE",               "HIP-FP8",          kRead,
     "as amd-sr-host; infinity does not saturate", true},
    {"torch-bf16-sr",         "torchao, _fp32_to_bf16_sr of its optimizers",                                        "torchao",          kRead,
     "away from zero where the 16 random bits are less than the 16 bits cut; bits of a NaN are rounded", true},
    {"p3109-a",               "P3109 v4.0 draft, StochasticA, SatNone; p3109-a:N for N random bits, else 32",       "P3109",            kSpecification,
     "P(away) = floor(nu 2^N) / 2^N", true},
    {"p3109-b",               "P3109 v4.0 draft, StochasticB, SatNone; p3109-b:N",                                  "P3109",            kSpecification,
     "P(away) = floor(nu 2^N + 1/2) / 2^N", true},
    {"p3109-c",               "P3109 v4.0 draft, StochasticC, SatNone; p3109-c:N",                                  "P3109",            kSpecification,
     "P(away) = rint(nu 2^N) / 2^N", true},
};
// clang-format on

}  // namespace

std::string_view ToString(SourceType type) { return KeywordToString(kSourceTypes, type); }
SourceType ParseSourceType(std::string_view text) {
  return ParseKeyword(kSourceTypes, "source type", text);
}

std::string_view ToString(Evidence evidence) { return KeywordToString(kEvidence, evidence); }

std::span<const ProfileInfo> ProfileTable() { return kTable; }

const ProfileInfo& FindProfile(std::string_view name) {
  std::string valid;
  for (const ProfileInfo& profile : kTable) {
    if (profile.name == name) return profile;
    if (!valid.empty()) valid += ", ";
    valid += profile.name;
  }
  throw NotOneOf("profile", name, valid);
}

std::string CompleteProfileName(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return std::string(text);
  std::string candidates;
  const ProfileInfo* shortest = nullptr;
  for (const ProfileInfo& profile : kTable) {
    if (profile.name == text) return std::string(text);
    if (text.empty() || !profile.name.starts_with(text)) continue;
    candidates += (candidates.empty() ? "" : ", ") + std::string(profile.name);
    if (!shortest || profile.name.size() < shortest->name.size()) shortest = &profile;
  }
  if (!shortest) return std::string(FindProfile(text).name);  // throws: lists all names
  for (const ProfileInfo& profile : kTable) {
    if (profile.name.starts_with(text) && !profile.name.starts_with(shortest->name)) {
      throw Error::Format("profile '{}' may be any of {}", text, candidates);
    }
  }
  return std::string(shortest->name);
}

}  // namespace numsim
