// Array functions of the C interface against its functions on single codes.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

constexpr size_t kElements = 35003;  // several threads' worth

// Codes in 1, 2 or 4 bytes each, one element longer than used: the last may not change.
class CodeArray {
 public:
  CodeArray(size_t n, int bytes) : bytes_(bytes), data_((n + 1) * bytes, 0xA5) {}
  void* data() { return data_.data(); }
  uint32_t operator[](size_t i) const {
    uint32_t code = 0;
    std::memcpy(&code, data_.data() + i * bytes_, bytes_);
    return code;
  }
  void Set(size_t i, uint32_t code) { std::memcpy(data_.data() + i * bytes_, &code, bytes_); }
  bool EndIsUntouched() const {
    return std::all_of(data_.end() - bytes_, data_.end(), [](uint8_t b) { return b == 0xA5; });
  }

 private:
  size_t bytes_;
  std::vector<uint8_t> data_;
};

// Values around those of small formats, some special.
std::vector<float> Values(size_t n) {
  std::mt19937 words(5);
  std::vector<float> values(n);
  for (float& value : values) {
    const auto word = static_cast<uint32_t>(words());
    const bool any = word % 16 == 0;
    value = std::bit_cast<float>(any ? static_cast<uint32_t>(words())
                                     : (word & 0x87FFFFFFu) + 0x38000000u);
  }
  return values;
}

std::vector<uint32_t> Words(size_t n) {
  std::mt19937 words(6);
  std::vector<uint32_t> result(n);
  for (uint32_t& word : result) word = static_cast<uint32_t>(words());
  return result;
}

// The R that element i of an array call takes.
uint32_t RandomOf(const numsim_random_t& random, const numsim_rounding_t& rounding, size_t i) {
  if (random.words != nullptr) return random.words[i];
  uint32_t drawn = 0;
  EXPECT_EQ(numsim_random_bits(
                random.seed, random.stream, random.first_index + i, rounding.random_bits, &drawn),
            NUMSIM_OK);
  return drawn;
}

// Formats of each storage width, on vector paths and off them.
const char* const kFormats[] = {"e4m3fn", "e2m1fn", "bnb-e4m3", "e8m0fnu", "int8", "bf16", "tf32"};

// Calls test(format, rounding, code_bytes, random) for formats, modes, widths and both sources of
// random bits.
template <typename Test>
void ForEachSetting(const std::vector<uint32_t>& words, const Test& test) {
  for (const char* name : kFormats) {
    const numsim_format_t format = CFormat(name);
    numsim_format_info_t info;
    ASSERT_EQ(numsim_format_info(&format, &info), NUMSIM_OK);
    for (const BothRoundings& rounding : Roundings()) {
      const bool stochastic = rounding.rounding.mode == RoundingMode::kStochastic;
      for (int bytes = info.storage_bytes; bytes <= 4; bytes *= 2) {
        SCOPED_TRACE(::testing::Message()
                     << name << " mode " << rounding.c.mode << " in " << bytes);
        test(format, rounding.c, bytes, numsim_random_t{nullptr, 11, 12, 1234});
        if (stochastic) test(format, rounding.c, bytes, numsim_random_t{words.data(), 0, 0, 0});
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(CArray, EncodesFloat32AsSingleNumbers) {
  const std::vector<float> in = Values(kElements);
  const std::vector<uint32_t> words = Words(kElements);
  ForEachSetting(words, [&](const auto& format, const auto& rounding, int bytes, auto random) {
    CodeArray codes(in.size(), bytes);
    ASSERT_EQ(numsim_encode_array_f32(
                  in.data(), in.size(), &format, &rounding, &random, codes.data(), bytes),
              NUMSIM_OK);
    for (size_t i = 0; i < in.size(); i += 7) {
      uint32_t code = 0;
      const uint32_t r =
          rounding.mode == NUMSIM_ROUND_STOCHASTIC ? RandomOf(random, rounding, i) : 0;
      numsim_encode_f32(std::bit_cast<uint32_t>(in[i]), &format, &rounding, r, &code, nullptr);
      ASSERT_EQ(codes[i], code) << in[i];
    }
    ASSERT_TRUE(codes.EndIsUntouched());
  });
}

TEST(CArray, EncodesFloat64AsSingleNumbers) {
  const std::vector<float> narrow = Values(kElements);
  std::vector<double> in(narrow.begin(), narrow.end());
  for (size_t i = 0; i < in.size(); i += 2) in[i] *= 1.0 + 0x1p-40;
  const std::vector<uint32_t> words = Words(kElements);
  ForEachSetting(words, [&](const auto& format, const auto& rounding, int bytes, auto random) {
    CodeArray codes(in.size(), bytes);
    ASSERT_EQ(numsim_encode_array_f64(
                  in.data(), in.size(), &format, &rounding, &random, codes.data(), bytes),
              NUMSIM_OK);
    for (size_t i = 0; i < in.size(); i += 7) {
      uint32_t code = 0;
      const uint32_t r =
          rounding.mode == NUMSIM_ROUND_STOCHASTIC ? RandomOf(random, rounding, i) : 0;
      numsim_encode_f64(std::bit_cast<uint64_t>(in[i]), &format, &rounding, r, &code, nullptr);
      ASSERT_EQ(codes[i], code) << in[i];
    }
    ASSERT_TRUE(codes.EndIsUntouched());
  });
}

TEST(CArray, DecodesAsSingleCodesWhateverTheUpperBits) {
  const std::vector<uint32_t> words = Words(kElements);
  for (const char* name : kFormats) {
    const numsim_format_t format = CFormat(name);
    numsim_format_info_t info;
    ASSERT_EQ(numsim_format_info(&format, &info), NUMSIM_OK);
    for (int bytes = info.storage_bytes; bytes <= 4; bytes *= 2) {
      CodeArray codes(kElements, bytes);
      for (size_t i = 0; i < kElements; ++i) codes.Set(i, words[i]);
      std::vector<float> out(kElements);
      ASSERT_EQ(numsim_decode_array_f32(&format, codes.data(), bytes, kElements, out.data()),
                NUMSIM_OK);
      for (size_t i = 0; i < kElements; ++i) {
        uint32_t bits = 0;
        numsim_decode_f32(&format, words[i] & ((uint64_t{1} << info.bits) - 1), &bits);
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), bits) << name << " " << words[i];
      }
    }
  }
}

struct Result {
  uint32_t code = 0;
  uint8_t flags = 0;
};

// The operation on single codes.
Result Single(int operation,
              const numsim_format_t (&f)[3],
              const uint32_t (&x)[3],
              const numsim_format_t& to,
              const numsim_rounding_t& rounding,
              uint32_t random) {
  Result r;
  const numsim_rounding_t* mode = &rounding;
  switch (operation) {
    case NUMSIM_OPERATION_ADD:
      numsim_add(f, x[0], f + 1, x[1], &to, mode, random, &r.code, &r.flags);
      break;
    case NUMSIM_OPERATION_SUBTRACT:
      numsim_subtract(f, x[0], f + 1, x[1], &to, mode, random, &r.code, &r.flags);
      break;
    case NUMSIM_OPERATION_MULTIPLY:
      numsim_multiply(f, x[0], f + 1, x[1], &to, mode, random, &r.code, &r.flags);
      break;
    case NUMSIM_OPERATION_DIVIDE:
      numsim_divide(f, x[0], f + 1, x[1], &to, mode, random, &r.code, &r.flags);
      break;
    case NUMSIM_OPERATION_FMA:
      numsim_fma(f, x[0], f + 1, x[1], f + 2, x[2], &to, mode, random, &r.code, &r.flags);
      break;
    default:
      numsim_sqrt(f, x[0], &to, mode, random, &r.code, &r.flags);
  }
  return r;
}

int Arity(int operation) {
  return operation == NUMSIM_OPERATION_SQRT ? 1 : operation == NUMSIM_OPERATION_FMA ? 3 : 2;
}

// Checks an array call with operands of 1, 2 and 4 bytes.
void ExpectArithmeticAsSingle(int operation,
                              const numsim_format_t& to,
                              const numsim_rounding_t& rounding,
                              int out_bytes,
                              const numsim_random_t& random,
                              const std::vector<uint32_t>& words) {
  constexpr size_t kN = 1500;
  const numsim_format_t formats[3] = {CFormat("e4m3fn"), CFormat("e5m2"), CFormat("bf16")};
  const int widths[3] = {1, 4, 2};
  const uint32_t masks[3] = {0xFF, 0xFF, 0xFFFF};
  std::vector<CodeArray> arrays;
  numsim_codes_t operands[3] = {};
  for (int k = 0; k < 3; ++k) {
    arrays.emplace_back(kN, widths[k]);
    for (size_t i = 0; i < kN; ++i) arrays[k].Set(i, words[i * 3 + k]);
  }
  for (int k = 0; k < 3; ++k) operands[k] = {formats[k], arrays[k].data(), widths[k], 0};
  CodeArray out(kN, out_bytes), again(kN, out_bytes);
  std::vector<uint8_t> flags(kN, 0xFF);
  uint8_t all = 0xFF, expected_all = 0, all_alone = 0xFF;
  const numsim_codes_t* b = Arity(operation) >= 2 ? operands + 1 : nullptr;
  const numsim_codes_t* c = Arity(operation) >= 3 ? operands + 2 : nullptr;
  const auto call = [&](void* to_codes, uint8_t* each, uint8_t* together) {
    return numsim_arithmetic_array(operation,
                                   operands,
                                   b,
                                   c,
                                   kN,
                                   &to,
                                   &rounding,
                                   &random,
                                   to_codes,
                                   out_bytes,
                                   each,
                                   together);
  };
  ASSERT_EQ(call(out.data(), flags.data(), &all), NUMSIM_OK);
  ASSERT_EQ(call(again.data(), nullptr, nullptr), NUMSIM_OK);
  for (size_t i = 0; i < kN; ++i) {
    uint32_t codes[3];
    for (int k = 0; k < 3; ++k) codes[k] = words[i * 3 + k] & masks[k];
    const uint32_t r = rounding.mode == NUMSIM_ROUND_STOCHASTIC ? RandomOf(random, rounding, i) : 0;
    const Result want = Single(operation, formats, codes, to, rounding, r);
    ASSERT_EQ(out[i], want.code) << operation << ": " << codes[0] << " " << codes[1];
    ASSERT_EQ(again[i], want.code);
    ASSERT_EQ(flags[i], want.flags) << operation << ": " << codes[0] << " " << codes[1];
    expected_all |= want.flags;
  }
  EXPECT_EQ(all, expected_all);
  ASSERT_EQ(call(again.data(), nullptr, &all_alone), NUMSIM_OK);
  EXPECT_EQ(all_alone, expected_all);
  ASSERT_TRUE(out.EndIsUntouched());
}

TEST(CArray, ArithmeticGivesTheCodesAndFlagsOfSingleNumbers) {
  const std::vector<uint32_t> words = Words(kElements);
  ForEachSetting(words, [&](const auto& to, const auto& rounding, int bytes, const auto& random) {
    for (int operation = 0; operation <= NUMSIM_OPERATION_SQRT; ++operation) {
      ExpectArithmeticAsSingle(operation, to, rounding, bytes, random, words);
      if (::testing::Test::HasFailure()) return;
    }
  });
}

TEST(CArray, ElementaryFunctionsGiveTheCodesAndFlagsOfSingleNumbers) {
  constexpr size_t kN = 700;  // more than the codes of e4m3fn
  const std::vector<uint32_t> words = Words(kElements);
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  CodeArray in(kN, 2);
  for (size_t i = 0; i < kN; ++i) in.Set(i, words[i]);
  const numsim_codes_t a = {e4m3fn, in.data(), 2, 0};
  int function = 0;
  ForEachSetting(words, [&](const auto& to, const auto& rounding, int bytes, const auto& random) {
    function = (function + 1) % (NUMSIM_ATANH + 1);
    CodeArray out(kN, bytes);
    std::vector<uint8_t> flags(kN, 0xFF);
    uint8_t all = 0xFF, expected_all = 0;
    ASSERT_EQ(numsim_elementary_array(
                  function, &a, kN, &to, &rounding, &random, out.data(), bytes, flags.data(), &all),
              NUMSIM_OK);
    for (size_t i = 0; i < kN; ++i) {
      const bool draws = rounding.mode == NUMSIM_ROUND_STOCHASTIC;
      const uint32_t r = draws ? RandomOf(random, rounding, i) : 0;
      uint32_t code = 0;
      uint8_t flag = 0;
      numsim_elementary(function, &e4m3fn, words[i] & 0xFF, &to, &rounding, r, &code, &flag);
      ASSERT_EQ(out[i], code) << function << " of " << (words[i] & 0xFF);
      ASSERT_EQ(flags[i], flag) << function << " of " << (words[i] & 0xFF);
      expected_all |= flag;
    }
    EXPECT_EQ(all, expected_all);
    EXPECT_TRUE(out.EndIsUntouched());
  });
}

TEST(CArray, ArithmeticMayReplaceAnOperand) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const std::vector<uint32_t> words = Words(kElements);
  std::vector<uint8_t> a(kElements), b(kElements), apart(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    a[i] = static_cast<uint8_t>(words[i]);
    b[i] = static_cast<uint8_t>(words[i] >> 8);
  }
  const numsim_codes_t first = {e4m3fn, a.data(), 1, 0}, second = {e4m3fn, b.data(), 1, 0};
  const auto multiply_to = [&](std::vector<uint8_t>& out) {
    return numsim_arithmetic_array(NUMSIM_OPERATION_MULTIPLY,
                                   &first,
                                   &second,
                                   nullptr,
                                   out.size(),
                                   &e4m3fn,
                                   nullptr,
                                   nullptr,
                                   out.data(),
                                   1,
                                   nullptr,
                                   nullptr);
  };
  ASSERT_EQ(multiply_to(apart), NUMSIM_OK);
  ASSERT_EQ(multiply_to(b), NUMSIM_OK);
  EXPECT_EQ(b, apart);
}

}  // namespace
}  // namespace numsim::capi_test
