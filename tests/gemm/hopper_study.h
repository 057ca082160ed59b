// For studies of what cuBLASLt computes on a Hopper GPU (hopper_modes_device_test.cc): operands,
// products by the library with options of the caller, candidates and how many outputs they fit.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "numsim/gemm/internal/gemm_library_device.h"
#include "numsim/io/npy.h"
#include "tests/gemm/library_store.h"
#include "tests/support/device_factor.h"
#include "tests/support/device_test.h"

namespace numsim {

using cuda::LibraryOptions;
using cuda::LibraryReduction;
using cuda::LibraryResult;

// A rule of the device and formats that it is for.
struct StudiedMode {
  const char* name;
  const char* a;
  const char* b;

  bool Fast() const { return std::string_view(name) == "hopper-fp8-fast"; }
};
inline constexpr StudiedMode kFp8Modes[] = {{"hopper-fp8-fast", "e4m3fn", "e4m3fn"},
                                            {"hopper-fp8-fast", "e4m3fn", "e5m2"},
                                            {"hopper-fp8-fast", "e5m2", "e4m3fn"},
                                            {"hopper-fp8", "e4m3fn", "e4m3fn"},
                                            {"hopper-fp8", "e4m3fn", "e5m2"},
                                            {"hopper-fp8", "e5m2", "e4m3fn"}};
inline constexpr StudiedMode kWideModes[] = {{"hopper-bf16", "bf16", "bf16"},
                                             {"hopper-fp16", "fp16", "fp16"}};

// Codes beside those of Spread.
enum class Adverse { kLargest, kSubnormal, kOneLarge, kAlternating };
inline constexpr Adverse kAdverses[] = {
    Adverse::kLargest, Adverse::kSubnormal, Adverse::kOneLarge, Adverse::kAlternating};

inline uint32_t AdverseCode(
    const FormatSpec& format, Adverse kind, size_t row, size_t k, oracle::TestRandom& random) {
  const uint32_t sign = random.Below(2) != 0 ? format.SignBit() : 0;
  const uint32_t normal = uint32_t{1} << format.mantissa_bits;
  switch (kind) {
    case Adverse::kLargest:
      return format.MaxFiniteCode() | sign;
    case Adverse::kSubnormal:
      return static_cast<uint32_t>(random.Below(normal)) | sign;
    case Adverse::kOneLarge:
      return k == row % 40 ? format.MaxFiniteCode() : (normal + random.Below(normal)) | sign;
    case Adverse::kAlternating:
      break;
  }
  const uint32_t one = static_cast<uint32_t>(format.bias) << format.mantissa_bits;
  return (one + static_cast<uint32_t>(random.Below(normal))) | (k % 2 != 0 ? format.SignBit() : 0);
}

inline Factor AdverseFactor(
    const FormatSpec& format, Adverse kind, size_t rows, size_t inner, oracle::TestRandom& random) {
  std::vector<uint32_t> codes(rows * inner);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = AdverseCode(format, kind, i / inner, i % inner, random);
  }
  return {format, rows, inner, codes};
}

inline const FormatSpec& FormatOf(LibraryResult result) {
  switch (result) {
    case LibraryResult::kBfloat16:
      return kBf16;
    case LibraryResult::kFloat16:
      return kFp16;
    default:
      return kFp32;
  }
}

// Candidates by name, with the outputs that each gave.
class Candidates {
 public:
  void Judge(const std::string& name,
             const std::vector<uint32_t>& got,
             const std::vector<uint32_t>& predicted) {
    size_t& fitted = fitted_[name];
    for (size_t i = 0; i < got.size(); ++i) fitted += got[i] == predicted[i];
    total_[name] += got.size();
  }
  // Prints them; whether one fits all.
  bool Report(const std::string& title) const {
    bool found = false;
    std::string text = title + ":";
    for (const auto& [name, fitted] : fitted_) {
      const size_t total = total_.at(name);
      found = found || fitted == total;
      text += fmt::format("  {} {}/{}{}", name, fitted, total, fitted == total ? " *" : "");
    }
    fmt::print("{}\n", text);
    std::fflush(stdout);
    return found;
  }
  bool Empty() const { return fitted_.empty(); }

 private:
  std::map<std::string, size_t> fitted_, total_;
};

class HopperStudy : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " is not a Hopper GPU";
    fmt::print("{}, {}\n", Device().name, DeviceGemmLibrary());
  }

  // Pairs of factors of every distribution.
  std::vector<std::pair<Factor, Factor>> Pairs(const StudiedMode& rule, size_t inner) {
    const FormatSpec a = ParseFormat(rule.a).spec, b = ParseFormat(rule.b).spec;
    std::vector<std::pair<Factor, Factor>> pairs;
    for (const Spread spread : kSpreads) {
      pairs.emplace_back(Factor::Random(a, kRowsA, inner, spread, Side::kLeft, random_),
                         Factor::Random(b, kRowsB, inner, spread, Side::kRight, random_));
    }
    for (const Adverse kind : kAdverses) {
      pairs.emplace_back(AdverseFactor(a, kind, kRowsA, inner, random_),
                         AdverseFactor(b, kind, kRowsB, inner, random_));
    }
    return pairs;
  }

  LibraryOptions Options(const StudiedMode& rule, LibraryResult result) const {
    LibraryOptions options;
    options.result = result;
    options.fast_accumulation = rule.Fast();
    return options;
  }

  // Bits of the device's results with one NaN; empty: there is no algorithm.
  std::vector<uint32_t> Outputs(const Factor& a, const Factor& b, const LibraryOptions& options) {
    const DeviceFactor left(a, false), right(b, false);
    const size_t n = a.rows() * b.rows(), bytes = cuda::BytesOf(options.result);
    Buffer<uint8_t> out(place(), n * bytes);
    uint8_t* const to = out.View().data;
    device_memory::FillBytes(to, 0xA5, n * bytes, stream());
    auto& library = place().Context().Get<cuda::DeviceLibrary>();
    algorithm_ = library.Describe(left.Get(), right.Get(), options, to);
    if (!library.Multiply(left.Get(), right.Get(), options, to, stream())) return {};
    const std::vector<uint8_t> all = ToVector(out.View());
    std::vector<uint32_t> bits(n);
    for (size_t i = 0; i < n; ++i) {
      std::memcpy(&bits[i], all.data() + i * bytes, bytes);
      if (options.result == LibraryResult::kInt32) continue;
      bits[i] = WithOneNan(FormatOf(options.result), bits[i]);
    }
    return bits;
  }

  std::vector<float> Sums(const Factor& a, const Factor& b, const StudiedMode& rule) {
    Factor left = a, right = b;
    left.SetScales({}, {});
    right.SetScales({}, {});
    return HostProduct(left, right, ParseAccumulationMode(rule.name));
  }

  // CASE-a.npy and so on into NUMSIM_RECORD_DIR, if it is set.
  void Record(const std::string& name,
              const Factor& a,
              const Factor& b,
              LibraryResult result,
              const std::vector<uint32_t>& out) {
    const char* const directory = std::getenv("NUMSIM_RECORD_DIR");
    if (directory == nullptr) return;
    const std::string path = std::string(directory) + "/" + name;
    WriteCodes(path + "-a.npy", a);
    WriteCodes(path + "-b.npy", b);
    WriteScales(path + "-sa.npy", a);
    WriteScales(path + "-sb.npy", b);
    Array array;
    array.shape = {a.rows(), b.rows()};
    array.type = cuda::BytesOf(result) == 4 ? ElementType::kU32 : ElementType::kU16;
    array.bytes.resize(out.size() * cuda::BytesOf(result));
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(array.bytes.data() + i * cuda::BytesOf(result), &out[i], cuda::BytesOf(result));
    }
    WriteNpy(path + "-out.npy", array);
  }

  static constexpr size_t kRowsA = 48, kRowsB = 48;

  std::string algorithm_;
  oracle::TestRandom random_{1234};

 private:
  static void WriteCodes(const std::string& path, const Factor& factor) {
    Factor stored = factor;
    stored.Store(Storage::kCodes, false);
    const GemmOperand x = stored.Get();
    const bool wide = x.format.StorageBytes() == 2;
    const auto bytes = wide ? std::as_bytes(x.codes16.Span()) : std::as_bytes(x.codes8.Span());
    Array array;
    array.type = wide ? ElementType::kU16 : ElementType::kU8;
    array.shape = {x.rows, x.inner};
    array.bytes.assign(bytes.begin(), bytes.end());
    WriteNpy(path, array);
  }
  static void WriteScales(const std::string& path, const Factor& factor) {
    const GemmOperand x = factor.Get();
    if (x.scales.data.Empty()) return;
    const auto bytes = std::as_bytes(x.scales.data.Span());
    Array array;
    array.shape = {x.scales.data.Elements()};
    array.bytes.assign(bytes.begin(), bytes.end());
    WriteNpy(path, array);
  }
};

inline std::string CaseName(const StudiedMode& rule, size_t inner, const std::string& more) {
  return fmt::format("{}.{}.{}.{}.{}", rule.name, rule.a, rule.b, inner, more);
}

}  // namespace numsim
