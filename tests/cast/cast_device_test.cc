// Casts of arrays on the device against the host's, bit for bit. The host's vector code equals the
// scalar rule (cast_test.cc) and is fast enough to check very many elements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/reference/inputs.h"
#include "tests/support/device_test.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr RandomStream kStream = {.seed = 0x1234567890ABCDEF, .stream = 0x0F0E0D0C0B0A0908};
constexpr Overflow kPolicies[] = {
    Overflow::kNonsaturate, Overflow::kSaturate, Overflow::kPropagate};

std::string Describe(const EncodePlan& plan) {
  const auto& [mode, variant, bits] = plan.rounding;
  return fmt::format("{} {} {} {} {}",
                     ToString(plan.format),
                     ToString(mode),
                     ToString(variant),
                     bits,
                     ToString(plan.overflow));
}

template <typename T>
std::vector<uint32_t> Words(const std::vector<T>& values) {
  std::vector<uint32_t> words;
  words.reserve(values.size());
  for (T value : values) {
    if constexpr (std::is_same_v<T, float>) {
      words.push_back(std::bit_cast<uint32_t>(value));
    } else {
      words.push_back(value);
    }
  }
  return words;
}

// The first element that differs, as bits.
template <typename T>
testing::AssertionResult Same(const std::vector<T>& got, const std::vector<T>& want) {
  if (got.size() != want.size()) return testing::AssertionFailure() << "lengths differ";
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0) {
    return testing::AssertionSuccess();
  }
  const std::vector<uint32_t> a = Words(got), b = Words(want);
  const size_t i =
      static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  return testing::AssertionFailure() << fmt::format("element {}: {:#x}, not {:#x}", i, a[i], b[i]);
}

// Calls act with a code of the format's storage type.
template <typename Act>
void WithCodeType(const FormatSpec& format, const Act& act) {
  if (format.StorageBytes() == 1) return act(uint8_t{});
  if (format.StorageBytes() == 2) return act(uint16_t{});
  act(uint32_t{});
}

std::vector<float> Floats(const std::vector<uint32_t>& words) {
  std::vector<float> values;
  values.reserve(words.size());
  for (uint32_t word : words) values.push_back(std::bit_cast<float>(word));
  return values;
}

// Every upper half of a float32 with lower halves at and next to ties of formats of few and of
// many mantissa bits.
const std::vector<float>& EveryUpperHalf() {
  static const std::vector<float> inputs = [] {
    std::vector<uint32_t> words;
    for (uint32_t low :
         {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      for (uint32_t high = 0; high < 0x10000; ++high) words.push_back(high << 16 | low);
    }
    return Floats(words);
  }();
  return inputs;
}

std::vector<float> RandomFloats(size_t n) {
  std::vector<uint32_t> words(n);
  oracle::TestRandom random(11);
  // Half of them near the values of small formats, half of them any.
  for (uint32_t& word : words) {
    word = random.Next32();
    if (word & 1) word = (word & 0x80FFFFFFu) | (0x33u + word % 20) << 24;
  }
  return Floats(words);
}

EncodePlan Stochastic(std::string_view format,
                      int bits,
                      StochasticVariant variant = StochasticVariant::kA) {
  return MakeEncodePlan(ParseFormat(format).spec, {RoundingMode::kStochastic, variant, bits});
}

// A conversion for each kernel.
std::vector<EncodePlan> PlansOfEveryPath() {
  std::vector<EncodePlan> plans = {
      Stochastic("e4m3fn", 32, StochasticVariant::kB),
      Stochastic("bnb-e4m3", 16),
      MakeEncodePlan(ParseFormat("e4m3fn").spec, {.mode = RoundingMode::kUp})};
  for (const char* format : {"e4m3fn", "e4m3fnuz", "fp16", "bf16"}) {
    for (int bits : {5, 8, 11, 16, 24, 32}) plans.push_back(Stochastic(format, bits));
  }
  for (const Format& format : ParseFormatList("e4m3fn,e5m2,e4m3fnuz,bf16,fp16,tf32,fp32,int8")) {
    plans.push_back(MakeEncodePlan(format.spec));
  }
  return plans;
}

// The host's results, always by the best target of the processor.
class CastDeviceTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ForceBackend(AvailableBackends().front());
  }

  template <typename Code>
  void ExpectEncodeEqualsHost(const EncodePlan& plan,
                              const std::vector<float>& in,
                              MatrixSpan<const float> in_device,
                              const ArrayRandom& random) {
    std::vector<Code> want(in.size());
    Encode(plan, in, want, random);
    Buffer<Code> codes(place(), in.size());
    device_memory::FillBytes(codes.View().data, 0xA5, codes.View().Bytes(), stream());
    Encode(plan, in_device, codes.View(), random);
    EXPECT_TRUE(Same(ToVector(codes.View()), want)) << Describe(plan);
  }

  void ExpectFakeQuantizeEqualsHost(const EncodePlan& plan,
                                    const std::vector<float>& in,
                                    MatrixSpan<const float> in_device,
                                    const ArrayRandom& random) {
    std::vector<float> want(in.size());
    FakeQuantize(plan, in, want, random);
    Buffer<float> out(place(), in.size());
    device_memory::FillBytes(out.View().data, 0xA5, out.View().Bytes(), stream());
    FakeQuantize(plan, in_device, out.View(), random);
    EXPECT_TRUE(Same(ToVector(out.View()), want)) << Describe(plan);
  }

 private:
  const ExecutionState state_;
};

struct FormatName {
  std::string name;
};
void PrintTo(const FormatName& format, std::ostream* out) { *out << format.name; }

class CastEveryFormatDeviceTest : public CastDeviceTest,
                                  public testing::WithParamInterface<FormatName> {
 protected:
  const FormatSpec format = ParseFormat(GetParam().name).spec;
};

std::vector<FormatName> FormatNames() {
  std::vector<FormatName> names;
  for (const FormatEntry& entry : FormatTable()) names.push_back({std::string(entry.name)});
  for (const Format& custom :
       ParseFormatList("e5m10:bias=20,e8m3:bias=130,inf=none,nan=none,ue5m3,ue5m6,e1m6,"
                       "e2m0:inf=none,nan=none,e4m3:nan=negative-zero,inf=top,e5m6,e8m12,e8m22,"
                       "e4m23:bias=100,e8m6:bias=140")) {
    names.push_back({custom.name});
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(,
                         CastEveryFormatDeviceTest,
                         testing::ValuesIn(FormatNames()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

TEST_P(CastEveryFormatDeviceTest, DeterministicModesEqualTheHost) {
  const std::vector<float>& in = EveryUpperHalf();
  const Buffer<float> in_device = CopyAt(in, place());
  for (RoundingMode mode : kDeterministicModes) {
    for (Overflow policy : kPolicies) {
      const EncodePlan plan = MakeEncodePlan(format, {.mode = mode}, policy);
      WithCodeType(format, [&](auto code) {
        ExpectEncodeEqualsHost<decltype(code)>(plan, in, in_device.View(), {});
      });
      ExpectFakeQuantizeEqualsHost(plan, in, in_device.View(), {});
    }
  }
}

TEST_P(CastEveryFormatDeviceTest, StochasticRoundingEqualsTheHost) {
  const std::vector<float>& in = EveryUpperHalf();
  const Buffer<float> in_device = CopyAt(in, place());
  const ArrayRandom random = {kStream, 1000003};
  for (int bits : {1, 5, 8, 11, 16, 17, 24, 32}) {
    for (int v = 0; v < 3; ++v) {
      const Rounding rounding = {
          RoundingMode::kStochastic, static_cast<StochasticVariant>(v), bits};
      for (Overflow policy : kPolicies) {
        const EncodePlan plan = MakeEncodePlan(format, rounding, policy);
        WithCodeType(format, [&](auto code) {
          ExpectEncodeEqualsHost<decltype(code)>(plan, in, in_device.View(), random);
        });
      }
      const EncodePlan plan = MakeEncodePlan(format, rounding);
      ExpectFakeQuantizeEqualsHost(plan, in, in_device.View(), random);
    }
  }
}

TEST_P(CastEveryFormatDeviceTest, DecodeEqualsTheHostForEveryCodeAndIgnoresBitsAboveTheCode) {
  oracle::TestRandom random(9);
  WithCodeType(format, [&](auto zero) {
    using Code = decltype(zero);
    std::vector<Code> codes;
    for (uint32_t i = 0; i < (3u << 16) + 5; ++i) {
      codes.push_back(static_cast<Code>(sizeof(Code) == 4 ? random.Next32() : i));
    }
    std::vector<float> want(codes.size());
    Decode(format, codes, want);
    const Buffer<Code> codes_device = CopyAt(codes, place());
    Buffer<float> out(place(), codes.size());
    device_memory::FillBytes(out.View().data, 0xA5, out.View().Bytes(), stream());
    Decode(format, codes_device.View(), out.View());
    EXPECT_TRUE(Same(ToVector(out.View()), want));
  });
}

// As many random patterns for each format and mode as NUMSIM_DEVICE_RANDOM_FLOATS says, 2^20
// without it.
uint64_t RandomFloatCount() {
  const char* text = std::getenv("NUMSIM_DEVICE_RANDOM_FLOATS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : uint64_t{1} << 20;
}

// Chunks of random patterns, encoded on both sides, in memory that is taken once.
template <typename Code>
class RandomChunks {
 public:
  static constexpr uint64_t kElements = uint64_t{1} << 24;

  explicit RandomChunks(uint64_t total)
      : words_(std::min(total, kElements)),
        words_device_(ThreadPlace(), words_.size()),
        codes_(ThreadPlace(), words_.size()) {}

  // Makes the patterns begin .. begin + n - 1 of the stream on both sides.
  void Make(uint64_t begin, size_t n) {
    words_.resize(n);
    RandomBitsArray({kInputs, begin}, 32, words_);
    RandomBitsArray({kInputs, begin}, 32, words_device_.Renew(n));
  }
  // The first difference of their codes.
  testing::AssertionResult Compare(const EncodePlan& plan, const ArrayRandom& random) {
    const auto as_floats = [](MatrixSpan<const uint32_t> words) {
      const auto* const floats = reinterpret_cast<const float*>(words.data);
      return MatrixSpan<const float>(floats, words.Shape(), words.place);
    };
    want_.resize(words_.size());
    Encode(plan, as_floats(words_device_.View()), codes_.Renew(words_.size()), random);
    Encode(plan, as_floats(words_), want_, random);
    return Same(ToVector(codes_.View()), want_);
  }

 private:
  static constexpr RandomStream kInputs = {.seed = 77, .stream = 3};
  std::vector<uint32_t> words_;
  std::vector<Code> want_;
  Buffer<uint32_t> words_device_;
  Buffer<Code> codes_;
};

TEST_P(CastEveryFormatDeviceTest, RandomFloatsEqualTheHost) {
  if (format.Bits() > 16) GTEST_SKIP() << "formats of up to 16 bits";
  const int bits = 8 << (format.mantissa_bits % 3);
  const EncodePlan plans[] = {
      MakeEncodePlan(format),
      MakeEncodePlan(format, {RoundingMode::kStochastic, StochasticVariant::kA, bits})};
  const uint64_t total = RandomFloatCount();
  WithCodeType(format, [&](auto code) {
    RandomChunks<decltype(code)> chunks(total);
    for (uint64_t begin = 0; begin < total && !HasFailure(); begin += chunks.kElements) {
      chunks.Make(begin, std::min<uint64_t>(chunks.kElements, total - begin));
      for (const EncodePlan& plan : plans) {
        EXPECT_TRUE(chunks.Compare(plan, {kStream, begin})) << Describe(plan);
      }
    }
  });
}

// An array on the device at any alignment, between two strips that nobody may write to.
template <typename T>
class Framed {
 public:
  Framed(size_t n, size_t offset)
      : begin_(kStrip + offset), n_(n), all_(ThreadPlace(), begin_ + n + kStrip) {
    device_memory::FillBytes(all_.View().data, 0xA5, all_.View().Bytes(), ThreadStream());
  }
  MatrixSpan<T> Get() { return all_.View().Columns(begin_, n_); }
  // The elements. Fails the test when a strip was written to.
  std::vector<T> Values() {
    const std::vector<T> all = ToVector(all_.View());
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(all.data());
    const uint8_t* end = bytes + all.size() * sizeof(T);
    const auto untouched = std::count(bytes, bytes + begin_ * sizeof(T), uint8_t{0xA5}) +
                           std::count(bytes + (begin_ + n_) * sizeof(T), end, uint8_t{0xA5});
    EXPECT_EQ(static_cast<size_t>(untouched), (begin_ + kStrip) * sizeof(T))
        << "of " << n_ << " elements";
    return {all.begin() + static_cast<ptrdiff_t>(begin_),
            all.begin() + static_cast<ptrdiff_t>(begin_ + n_)};
  }

 private:
  static constexpr size_t kStrip = 32;
  size_t begin_, n_;
  Buffer<T> all_;
};

struct Placement {
  size_t n;
  size_t in_offset, out_offset;
  uint64_t first_index;
};

class CastPlacementDeviceTest : public CastDeviceTest {
 protected:
  // Encode, FakeQuantize, the same in place, and Decode of `n` elements at these places.
  void ExpectEverythingEqualsHost(const EncodePlan& plan, const Placement& p) {
    SCOPED_TRACE(fmt::format("{}: {} elements, from {} to {}, first index {}",
                             Describe(plan),
                             p.n,
                             p.in_offset,
                             p.out_offset,
                             p.first_index));
    const std::span<const float> in = std::span(inputs_).first(p.n);
    const ArrayRandom random = {kStream, p.first_index};
    Framed<float> in_device(p.n, p.in_offset);
    CopyMatrix<float>(in, in_device.Get());
    std::vector<float> values(p.n);
    FakeQuantize(plan, in, values, random);
    Framed<float> rounded(p.n, p.out_offset);
    FakeQuantize(plan, in_device.Get(), rounded.Get(), random);
    EXPECT_TRUE(Same(rounded.Values(), values)) << "fake quantise";
    WithCodeType(plan.format, [&](auto code) {
      ExpectCodesEqualHost<decltype(code)>(plan, p, in_device.Get(), values);
    });
    FakeQuantize(plan, in_device.Get(), in_device.Get(), random);
    EXPECT_TRUE(Same(in_device.Values(), values)) << "fake quantise in place";
  }

 private:
  template <typename Code>
  void ExpectCodesEqualHost(const EncodePlan& plan,
                            const Placement& p,
                            MatrixSpan<const float> in_device,
                            const std::vector<float>& values) {
    const ArrayRandom random = {kStream, p.first_index};
    std::vector<Code> want(p.n);
    Encode(plan, std::span<const float>(inputs_).first(p.n), want, random);
    Framed<Code> codes(p.n, p.out_offset);
    Encode(plan, in_device, codes.Get(), random);
    EXPECT_TRUE(Same(codes.Values(), want)) << "encode";
    Framed<float> decoded(p.n, p.in_offset);
    Decode(plan.format, codes.Get(), decoded.Get());
    EXPECT_TRUE(Same(decoded.Values(), values)) << "decode";
  }

  const std::vector<float> inputs_ = RandomFloats(200'000);
};

TEST_F(CastPlacementDeviceTest, EveryLengthAndAlignmentIsConvertedToItsLastElement) {
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    for (size_t n = 0; n <= 300 && !HasFailure(); ++n) {
      ExpectEverythingEqualsHost(plan, {n, n * 7 % 16, n * 5 % 16, 3 * n});
    }
  }
}

TEST_F(CastPlacementDeviceTest, LongArraysAtAnyAlignmentAreConverted) {
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    for (size_t n : {4095, 4096, 4097, 8192, 12'288, 65'537, 200'000}) {
      for (size_t in : {0, 1, 4}) {
        for (size_t out : {0, 2, 3, 4}) {
          ExpectEverythingEqualsHost(plan, {n, in, out, 0});
        }
      }
    }
  }
}

TEST_F(CastPlacementDeviceTest, DrawsAreThoseOfTheElementsIndexWhereverTheArrayStarts) {
  for (const char* format : {"e4m3fn", "fp16", "bf16", "tf32"}) {
    for (int bits : {1, 8, 9, 16, 17, 32}) {
      const EncodePlan plan = Stochastic(format, bits);
      for (uint64_t base : {uint64_t{0}, (uint64_t{1} << 32) - 70, uint64_t{1} << 40}) {
        for (uint64_t offset : {0, 1, 3, 4, 16, 63, 64, 130, 255, 1'000'003}) {
          for (size_t out : {0, 1}) ExpectEverythingEqualsHost(plan, {9001, 0, out, base + offset});
        }
      }
    }
  }
}

TEST_F(CastDeviceTest, RandomBitsEqualTheHostForEveryWidth) {
  for (int bits = 1; bits <= 32; ++bits) {
    for (size_t n : {0, 1, 63, 257, 4096, 17'000}) {
      const ArrayRandom random = {kStream, (uint64_t{1} << 32) - static_cast<uint64_t>(5 * bits)};
      std::vector<uint32_t> want(n);
      RandomBitsArray(random, bits, want);
      Framed<uint32_t> drawn(n, n % 5);
      RandomBitsArray(random, bits, drawn.Get());
      EXPECT_TRUE(Same(drawn.Values(), want)) << bits << " bits, " << n;
    }
  }
}

TEST_F(CastDeviceTest, CodesMayBeWiderThanTheFormat) {
  const std::vector<float> in = RandomFloats(10'000);
  const Buffer<float> in_device = CopyAt(in, place());
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    if (plan.format.Bits() <= 16) {
      ExpectEncodeEqualsHost<uint16_t>(plan, in, in_device.View(), {kStream, 5});
    }
    ExpectEncodeEqualsHost<uint32_t>(plan, in, in_device.View(), {kStream, 5});
  }
}

// The host's calls copy chunks of 2^26 elements; so do they on either side of a border.
TEST_F(CastDeviceTest, HostCallsUnderTheBackendCudaGiveTheSameBitsAcrossChunks) {
  const std::string host = AvailableBackends().front();
  for (size_t n : {size_t{0}, size_t{1}, (size_t{1} << 26) - 1, (size_t{1} << 26) + 67}) {
    std::vector<float> in(n);
    RandomBitsArray({kStream, 0}, 32, std::span(reinterpret_cast<uint32_t*>(in.data()), n));
    for (const EncodePlan& plan :
         {MakeEncodePlan(ParseFormat("e4m3fn").spec), Stochastic("e5m2", 16)}) {
      const ArrayRandom random = {kStream, 12'345};
      std::vector<uint8_t> codes[2];
      std::vector<float> values[2];
      for (int device = 0; device < 2; ++device) {
        ForceBackend(device ? "cuda" : host);
        codes[device].resize(n);
        values[device].resize(n);
        Encode(plan, in, codes[device], random);
        Decode(plan.format, codes[device], values[device]);
      }
      EXPECT_TRUE(codes[0] == codes[1]) << n << " elements";
      EXPECT_TRUE(Same(values[1], values[0])) << n << " elements";
    }
  }
}

}  // namespace
}  // namespace numsim
