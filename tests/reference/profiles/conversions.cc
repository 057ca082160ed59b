#include "tests/reference/profiles/conversions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/reference/oracle.h"

namespace reference {
namespace {

using oracle::Mode;
using oracle::Policy;
using oracle::Setting;
using oracle::Variant;
using Kind = oracle::Real::Kind;

constexpr int kOracle = -1;  // whatever the oracle gives
constexpr int kAnyNan = -2;  // the source leaves the pattern open

// The results for NaN and infinity of either sign.
struct Special {
  int nan_plus = kOracle, nan_minus = kOracle;
  int infinity_plus = kOracle, infinity_minus = kOracle;
};

constexpr Setting kNonsaturate{Mode::kNearestEven, Policy::kNonsaturate};
constexpr Setting kSaturate{Mode::kNearestEven, Policy::kSaturate};

// Correct rounding to `format` and those special cases.
struct Rounded {
  std::shared_ptr<const oracle::Grid> grid;
  Setting setting;
  Special special;

  Expected operator()(const oracle::Real& x, uint32_t random) const {
    int code = kOracle;
    if (x.kind == Kind::kNan) code = x.negative ? special.nan_minus : special.nan_plus;
    if (x.kind == Kind::kInfinity) {
      code = x.negative ? special.infinity_minus : special.infinity_plus;
    }
    if (code >= 0) return {static_cast<uint32_t>(code)};
    return {oracle::Encode(*grid, x, setting, random), code == kAnyNan};
  }
};

// Collects conversions of both source types.
struct Lists {
  std::vector<Conversion> f32, f64;

  void Add(const std::string& profile,
           const std::string& target,
           const Setting& setting,
           const Special& special = {},
           const std::string& meaning = "",
           bool from_double = false) {
    const auto grid = std::make_shared<const oracle::Grid>(
        oracle::FindFormat(meaning.empty() ? target : meaning));
    const Rounded rule{grid, setting, special};
    const int bits = setting.mode == Mode::kStochastic ? setting.random_bits : 0;
    f32.push_back({profile,
                   target,
                   bits,
                   [rule](uint64_t x, uint32_t random) {
                     return rule(oracle::FromFloat32(static_cast<uint32_t>(x)), random);
                   },
                   meaning});
    if (!from_double) return;
    f64.push_back(
        {profile,
         target,
         bits,
         [rule](uint64_t x, uint32_t random) { return rule(oracle::FromFloat64(x), random); },
         meaning});
  }

  template <typename Rule>
  void AddF32(const std::string& profile, const std::string& target, int random_bits, Rule rule) {
    f32.push_back({profile, target, random_bits, [rule](uint64_t x, uint32_t random) {
                     return Expected{rule(static_cast<uint32_t>(x), random)};
                   }});
  }
};

constexpr Special kAnyNans{kAnyNan, kAnyNan};

void AddOcp(Lists& lists) {
  for (const char* const target : {"e5m2", "e4m3fn"}) {
    lists.Add("ocp-saturate", target, kSaturate, kAnyNans, "", true);
    lists.Add("ocp-nonsaturate", target, kNonsaturate, kAnyNans, "", true);
  }
}

// The headers of CUDA 13.0 on the host. From float64 the NaN keeps its sign, and in E5M2 the top
// bits of its payload.
void AddCudaFp8(Lists& lists, const std::string& profile, const Setting& setting) {
  lists.Add(profile, "e4m3fn", setting, {0x7F, 0x7F});
  lists.Add(profile, "e5m2", setting, {0x7F, 0x7F});
  const auto grid = [](const char* name) {
    return std::make_shared<const oracle::Grid>(oracle::FindFormat(name));
  };
  const Rounded e4m3{grid("e4m3fn"), setting, {0x7F, 0xFF}};
  lists.f64.push_back({profile, "e4m3fn", 0, [e4m3](uint64_t x, uint32_t) {
                         return e4m3(oracle::FromFloat64(x), 0);
                       }});
  const Rounded e5m2{grid("e5m2"), setting, {}};
  lists.f64.push_back({profile, "e5m2", 0, [e5m2](uint64_t x, uint32_t) {
                         if (!std::isnan(std::bit_cast<double>(x))) {
                           return e5m2(oracle::FromFloat64(x), 0);
                         }
                         const uint64_t sign = x >> 63 << 7;
                         return Expected{static_cast<uint32_t>(sign | 0x7E | (x >> 50 & 3))};
                       }});
}

void AddCudaFp6Fp4(Lists& lists, const std::string& profile, Mode mode) {
  const Setting setting{mode, Policy::kSaturate};
  lists.Add(profile, "e3m2fn", setting, {0x1F, 0x1F}, "", true);
  lists.Add(profile, "e2m3fn", setting, {0x1F, 0x1F}, "", true);
  lists.Add(profile, "e2m1fn", setting, {0x7, 0x7}, "", true);
}

void AddCudaE8m0(Lists& lists, const std::string& profile, bool up, bool saturate) {
  lists.AddF32(
      profile, "e8m0fnu", 0, [=](uint32_t x, uint32_t) { return CudaE8m0(x, up, saturate); });
  lists.f64.push_back({profile, "e8m0fnu", 0, [=](uint64_t x, uint32_t) {
                         return Expected{CudaE8m0FromDouble(x, up, saturate)};
                       }});
}

void AddCuda(Lists& lists) {
  for (const bool saturate : {false, true}) {
    const std::string nearest = saturate ? "cuda-13-satfinite" : "cuda-13";
    AddCudaFp8(lists, nearest, saturate ? kSaturate : kNonsaturate);
    AddCudaFp6Fp4(lists, nearest, Mode::kNearestEven);
    AddCudaE8m0(lists, nearest, true, saturate);
    const std::string toward_zero = saturate ? "cuda-13-rz-satfinite" : "cuda-13-rz";
    AddCudaFp6Fp4(lists, toward_zero, Mode::kTowardZero);
    AddCudaE8m0(lists, toward_zero, false, saturate);
  }
}

// ml_dtypes keeps the sign of a NaN; where there is no NaN it gives a zero of the other sign. A
// float64 is rounded to float32 first.
void AddMlDtypes(Lists& lists) {
  const auto first = static_cast<std::ptrdiff_t>(lists.f32.size());
  const std::string profile = "ml-dtypes";
  lists.Add(profile, "e4m3fn", kNonsaturate, {0x7F, 0xFF});
  lists.Add(profile, "e5m2", kNonsaturate, {0x7E, 0xFE});
  lists.Add(profile, "e4m3", kNonsaturate, {0x7C, 0xFC});
  lists.Add(profile, "e3m4", kNonsaturate, {0x78, 0xF8});
  lists.Add(profile, "bf16", kNonsaturate, {0x7FC0, 0xFFC0});
  for (const char* const target : {"e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz"}) {
    lists.Add(profile, target, kNonsaturate, {0x80, 0x80, 0x80, 0x80});
  }
  lists.Add(profile, "e3m2fn", kSaturate, {0x20, 0x00});
  lists.Add(profile, "e2m3fn", kSaturate, {0x20, 0x00});
  lists.Add(profile, "e2m1fn", kSaturate, {0x8, 0x0});
  lists.AddF32(profile, "e8m0fnu", 0, [](uint32_t x, uint32_t) {
    return x == 0 || x >= 0x8000'0000 ? 0xFF : TorchE8m0(x);
  });
  for (auto line = lists.f32.begin() + first; line != lists.f32.end(); ++line) {
    Conversion conversion = *line;
    conversion.encode = [encode = line->encode](uint64_t x, uint32_t random) {
      const double value = std::bit_cast<double>(x);
      const uint32_t sign = static_cast<uint32_t>(x >> 63) << 31;
      if (std::isnan(value)) return encode(sign | 0x7FC0'0000, random);
      return encode(std::bit_cast<uint32_t>(static_cast<float>(value)), random);
    };
    lists.f64.push_back(conversion);
  }
}

void AddTorch(Lists& lists) {
  lists.Add("torch-fp4", "e2m1fn", kSaturate, kAnyNans);
  lists.Add("torch-2.11", "e4m3fn", kNonsaturate, {0x7F, 0xFF, 0x7F, 0xFF});
  lists.Add("torch-2.12", "e4m3fn", kSaturate, {0x7F, 0xFF, 0x7F, 0xFF});
  lists.Add("torch-2.15", "e4m3fn", kSaturate, {0x7F, 0xFF});
  for (const char* const profile : {"torch-2.11", "torch-2.12", "torch-2.15"}) {
    lists.Add(profile, "e5m2", kNonsaturate, {0x7F, 0xFF});
    lists.Add(profile, "e4m3fnuz", kNonsaturate, {0x80, 0x80, 0x80, 0x80});
    lists.Add(profile, "e5m2fnuz", kNonsaturate, {0x80, 0x80, 0x80, 0x80});
    lists.AddF32(profile, "e8m0fnu", 0, [](uint32_t x, uint32_t) { return TorchE8m0(x); });
  }
}

// ONNX's reference evaluator, by the value: the power of two at or below it, or the next one.
uint32_t OnnxE8m0(uint32_t x, Mode mode, bool saturate) {
  const double value = std::fabs(static_cast<double>(std::bit_cast<float>(x)));
  if (!std::isfinite(value)) return 0xFF;
  if (value == 0) return 0;
  int exponent;
  const double fraction = 2 * std::frexp(value, &exponent);  // from 1 to 2
  const int power = exponent - 1 + 127;
  if (power < 1) {  // between 0 and 2^-126, the codes 0 and 1
    return mode == Mode::kUp || (mode == Mode::kNearestAway && value > 0x1p-127) ? 1 : 0;
  }
  const bool up = mode == Mode::kUp ? fraction > 1 : mode == Mode::kNearestAway && fraction >= 1.5;
  const auto code = static_cast<uint32_t>(power + (up ? 1 : 0));
  return saturate && code == 0xFF ? 0xFE : code;
}

void AddOnnxE8m0(Lists& lists) {
  const auto add = [&](const char* profile, Mode mode, bool saturate) {
    lists.AddF32(
        profile, "e8m0fnu", 0, [=](uint32_t x, uint32_t) { return OnnxE8m0(x, mode, saturate); });
  };
  add("onnx-e8m0-up", Mode::kUp, true);
  add("onnx-e8m0-up-nosat", Mode::kUp, false);
  add("onnx-e8m0-down", Mode::kTowardZero, true);
  add("onnx-e8m0-nearest", Mode::kNearestAway, true);
  add("onnx-e8m0-nearest-nosat", Mode::kNearestAway, false);
}

void AddOnnx(Lists& lists) {
  AddOnnxE8m0(lists);
  for (const char* const target : {"e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"}) {
    const bool fnuz = std::string(target).ends_with("fnuz");
    Special before = kAnyNans;
    if (fnuz) before = {0x80, 0x80, 0x80, 0x80};
    lists.Add("onnx-cast-23", target, kSaturate, before);
    lists.Add("onnx-cast-24", target, kSaturate, fnuz ? Special{0x80, 0x80} : kAnyNans);
    lists.Add("onnx-cast-nosat", target, kNonsaturate, before);
  }
}

const HipTarget kHipE4m3{3, -6, 448, false};
const HipTarget kHipE5m2{2, -14, 57344, false};
const HipTarget kHipE4m3Fnuz{3, -7, 240, true};
const HipTarget kHipE5m2Fnuz{2, -15, 57344, true};

void AddHip(Lists& lists, const std::string& name, const HipTarget& target) {
  for (const bool saturate : {false, true}) {
    const std::string suffix = saturate ? "-satfinite" : "";
    lists.AddF32("hip-host" + suffix, name, 0, [=](uint32_t x, uint32_t) {
      return HipHost(target, {23, 8}, x, saturate);
    });
    lists.f64.push_back({"hip-host" + suffix, name, 0, [=](uint64_t x, uint32_t) {
                           return Expected{HipHost(target, {52, 11}, x, saturate)};
                         }});
    lists.AddF32(
        "amd-sr-host" + suffix, name, 23 - target.mantissa_bits, [=](uint32_t x, uint32_t random) {
          return HipHostStochastic(target, x, saturate, random);
        });
  }
}

void AddQPyTorch(Lists& lists) {
  for (const char* const target : {"e4m3fn", "qpytorch-e4m3"}) {
    lists.AddF32("qpytorch", target, 0, [](uint32_t x, uint32_t) { return QPyTorch(4, 3, x); });
  }
  for (const char* const target : {"e5m2", "qpytorch-e5m2"}) {
    lists.AddF32("qpytorch", target, 0, [](uint32_t x, uint32_t) { return QPyTorch(5, 2, x); });
  }
}

// Codes of the float32 numbers that CPFloat delivers. NaN and infinity of E4M3 have no pattern left
// and take the largest magnitude's.
void AddCpFloat(Lists& lists) {
  struct Line {
    const char* target;
    const char* grid;
    int p, min_exponent, max_exponent;
  };
  for (const Line& line : {Line{"fp16", "fp16", 11, -14, 15},
                           Line{"e5m2", "e5m2", 3, -14, 15},
                           Line{"e4m3fn", "qpytorch-e4m3", 4, -6, 8},
                           Line{"qpytorch-e4m3", "qpytorch-e4m3", 4, -6, 8}}) {
    const auto grid = std::make_shared<const oracle::Grid>(oracle::FindFormat(line.grid));
    lists.f32.push_back(
        {"cpfloat", line.target, 0, [=](uint64_t x, uint32_t) {
           const uint32_t rounded =
               CpFloatBits(line.p, line.min_exponent, line.max_exponent, static_cast<uint32_t>(x));
           const oracle::Real real = oracle::FromFloat32(rounded);
           if (line.p == 4 && real.kind != Kind::kFinite) {
             return Expected{real.negative ? 0xFFu : 0x7Fu};
           }
           const bool any = real.kind == Kind::kNan;
           return Expected{oracle::Encode(*grid, real, kNonsaturate), any};
         }});
  }
}

void AddP3109(Lists& lists) {
  for (const oracle::Format& format : oracle::NamedFormats()) {
    if (!format.name.starts_with("binary8") && !format.name.starts_with("binary4")) continue;
    for (const auto& [name, policy] : {std::pair{"satfinite", Policy::kSaturate},
                                       std::pair{"satpropagate", Policy::kPropagate},
                                       std::pair{"satnone", Policy::kNonsaturate}}) {
      lists.Add(
          std::string("p3109-v4-") + name, format.name, {Mode::kNearestEven, policy}, {}, "", true);
    }
    int bits = 1 + static_cast<int>(lists.f32.size() % 20);
    for (const auto& [name, variant] : {std::pair{"p3109-a", Variant::kA},
                                        std::pair{"p3109-b", Variant::kB},
                                        std::pair{"p3109-c", Variant::kC}}) {
      lists.Add(name + (":" + std::to_string(bits)),
                format.name,
                {Mode::kStochastic, Policy::kNonsaturate, variant, bits},
                {},
                "",
                true);
      lists.Add(name, format.name, {Mode::kStochastic, Policy::kNonsaturate, variant, 32});
    }
  }
}

Setting StochasticA(int bits, Policy policy) {
  return {Mode::kStochastic, policy, Variant::kA, bits};
}

void AddStochastic(Lists& lists) {
  const std::string ptx = "ptx-rs", ptx_sat = "ptx-rs-satfinite";
  lists.Add(ptx, "bf16", StochasticA(16, Policy::kNonsaturate), {0x7FFF, 0x7FFF});
  lists.Add(ptx, "fp16", StochasticA(13, Policy::kNonsaturate), {0x7FFF, 0x7FFF});
  lists.Add(ptx_sat, "bf16", StochasticA(16, Policy::kSaturate), {0x7FFF, 0x7FFF});
  lists.Add(ptx_sat, "fp16", StochasticA(13, Policy::kSaturate), {0x7FFF, 0x7FFF});
  lists.Add(ptx, "e4m3fn", StochasticA(16, Policy::kSaturate), kAnyNans);
  lists.Add(ptx, "e5m2", StochasticA(16, Policy::kSaturate), kAnyNans);
  lists.Add(ptx, "e3m2fn", StochasticA(16, Policy::kSaturate), {0x1F, 0x1F});
  lists.Add(ptx, "e2m3fn", StochasticA(16, Policy::kSaturate), {0x1F, 0x1F});
  lists.Add(ptx, "e2m1fn", StochasticA(8, Policy::kSaturate), {0x7, 0x7});
  // Infinity does not saturate: NaN in E4M3, of which the sources do not give the pattern.
  lists.f32.push_back(
      {"amd-sr", "e4m3fn", 20, [](uint64_t x, uint32_t random) {
         static const oracle::Grid grid(oracle::FindFormat("e4m3fn"));
         const oracle::Real real = oracle::FromFloat32(static_cast<uint32_t>(x));
         if (real.kind == Kind::kNan) return Expected{0xFF};
         if (real.kind == Kind::kInfinity) return Expected{0x7F, true};
         return Expected{oracle::Encode(grid, real, StochasticA(20, Policy::kSaturate), random)};
       }});
  lists.Add("amd-sr", "e5m2", StochasticA(21, Policy::kSaturate), {0xFE, 0xFE, 0x7C, 0xFC});
  const auto bf16 = std::make_shared<const oracle::Grid>(oracle::FindFormat("bf16"));
  lists.f32.push_back(
      {"torch-bf16-sr", "bf16", 16, [bf16](uint64_t x, uint32_t random) {
         const uint32_t bits = TorchaoBits(static_cast<uint32_t>(x), random);
         const oracle::Real real = oracle::FromFloat32(bits);
         return Expected{oracle::Encode(*bf16, real, kNonsaturate), real.kind == Kind::kNan};
       }});
}

Lists MakeLists() {
  Lists lists;
  AddOcp(lists);
  AddCuda(lists);
  AddMlDtypes(lists);
  AddTorch(lists);
  AddOnnx(lists);
  AddHip(lists, "e4m3fn", kHipE4m3);
  AddHip(lists, "e5m2", kHipE5m2);
  AddHip(lists, "e4m3fnuz", kHipE4m3Fnuz);
  AddHip(lists, "e5m2fnuz", kHipE5m2Fnuz);
  AddQPyTorch(lists);
  AddCpFloat(lists);
  AddP3109(lists);
  AddStochastic(lists);
  // Gaudi's E4M3 is IEEE's, also where it is called e4m3fn.
  lists.Add("gaudi", "e4m3", kNonsaturate, kAnyNans);
  lists.Add("gaudi", "e4m3fn", kNonsaturate, kAnyNans, "e4m3");
  return lists;
}

const Lists& AllLists() {
  static const Lists kLists = MakeLists();
  return kLists;
}

}  // namespace

const std::vector<Conversion>& Float32Conversions() { return AllLists().f32; }
const std::vector<Conversion>& Float64Conversions() { return AllLists().f64; }

const Conversion& FindConversion(const std::string& profile, const std::string& target) {
  for (const Conversion& conversion : Float32Conversions()) {
    if (conversion.profile == profile && conversion.target == target) return conversion;
  }
  std::fprintf(stderr, "no reference for %s to %s\n", profile.c_str(), target.c_str());
  std::abort();
}

}  // namespace reference
